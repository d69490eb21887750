"""The output of a command: results on standard output, messages and progress on standard error, files, the exit status."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcompose.errors import (
    DomainError,
    LedgerError,
    MissingExtraError,
    PlanError,
    RefusedRoundError,
    ReleaseError,
    StatementError,
    UnreachableError,
    UnsupportedError,
    printable,
)
from dpcompose.files import replacing
from dpcompose.version import __version__

FORMAT = 1
"""The version of all documents; a later one may have more members, never fewer."""
DONE = 0
REFUSED = 1
"""Refused, over budget, refuted, or not to be reached."""
BAD_INPUT = 2
NOT_AVAILABLE = 3
"""A part that is not installed, a question without a sound answer, or no standard output."""
INTERNAL = 4
STOPPED = 130


@dataclass(frozen=True)
class Invocation:
    """The words that were typed.

    Args:
        command: The words of the command, such as "ledger show".
        json: Whether --json is among the others.
    """

    command: str = ""
    json: bool = False


INVOKED: ContextVar[Invocation | None] = ContextVar("INVOKED", default=None)
"""The command that runs."""


@contextmanager
def error_boundary(*options: str) -> Generator[None]:
    """Turn the errors of dpcompose, raised inside, into a sentence and an exit status; into a document for --json.

    Args:
        options: Parameters that are options of the command: a missing one is named as it is typed.
    """
    try:
        yield
    except (PlanError, DomainError) as error:
        if isinstance(error, DomainError) and error.value is None and error.name in options:
            error = DomainError(
                f"--{error.name.replace('_', '-')}", error.value, error.domain, error.remedy
            )
        raise _end(error, BAD_INPUT) from None
    except (UnsupportedError, MissingExtraError) as error:
        raise _end(error, NOT_AVAILABLE) from None
    except (
        UnreachableError,
        RefusedRoundError,
        LedgerError,
        ReleaseError,
        StatementError,
    ) as error:
        raise _end(error, REFUSED) from None


def emit_document(command: str, document: Mapping[str, Any]) -> None:
    """Print one JSON document on standard output; with what every document has; see `headed`."""
    from dpcompose.document import dumps

    stdout(dumps(headed(command, document)) + "\n")


def headed(command: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with what every document has: the version, the format and the command."""
    return {"dpcompose": __version__, "format": FORMAT, "command": command} | dict(document)


def require_writable(option: str, path: Path | None, *suffixes: str) -> None:
    """Raise DomainError unless `path` is None or can become a file of that kind; of any kind, if it belongs to no ledger."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise DomainError(option, str(path), f"a file name that ends in {' or '.join(suffixes)}")
    try:
        there, directory = os.path.lexists(path), path.parent.stat()
        if not stat.S_ISDIR(directory.st_mode) or not directory.st_nlink or path.is_dir():
            domain = "a file in a directory that exists"
        elif there and not (path.is_symlink() or path.is_file()):
            domain = "a file, not a device or a pipe"
        else:
            files = [path.parent, *([path] if path.is_file() else [])]
            writable = all(os.access(each, os.W_OK) for each in files)
            domain = "" if writable else "a file that can be written"
    except (FileNotFoundError, NotADirectoryError):
        domain = "a file in a directory that exists"
    except (OSError, ValueError) as error:
        domain = f"a file that can be written ({error})"
    if not suffixes and not domain:
        from dpcompose.ledger import Ledger

        if Ledger.is_of_database(path):
            domain = "a file of its own, not one of a database, which would be written over"
    if domain:
        raise DomainError(option, str(path), domain)


@contextmanager
def writing(option: str, path: Path) -> Generator[None]:
    """Turn a failure to write `path`, inside, into a DomainError."""
    try:
        yield
    except OSError as error:
        raise DomainError(
            option, str(path), f"a file that can be written ({error.strerror})"
        ) from None


def write(option: str, path: Path, text: str) -> None:
    """Write `text` to `path`, all of it or nothing; DomainError if that cannot be done."""
    with writing(option, path), replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def _end(error: Exception, status: int) -> SystemExit:
    report_error(type(error).__name__, str(error), status)
    for note in vars(error).get("__notes__", ()):
        stderr(note)
    return SystemExit(status)


def report_error(kind: str, message: str, status: int) -> None:
    """Say an error on standard error, and as a document on standard output if the command has --json."""
    words = INVOKED.get()
    if words is not None and words.json:
        emit_document(
            words.command, {"error": {"kind": kind, "message": message, "status": status}}
        )
    stderr(f"dpcompose: {message}")


BRIEF = 2.0
"""Seconds after which a terminal shows progress."""


class UnprintedError(Exception):
    """Standard output could not be written; typer would end the command with another status for an OSError.

    Args:
        reason: Why; empty if its reader has closed it, as `| head` does.
    """


def stdout(text: str) -> None:
    """Write text to standard output and flush it.

    Raises:
        UnprintedError: If it cannot be written.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        closed = isinstance(error, BrokenPipeError)
        raise UnprintedError("" if closed else error.strerror or str(error)) from None


def stderr(text: str) -> None:
    """Write a line to standard error, without characters that control a terminal."""
    with suppress(OSError):
        print(printable(text), file=sys.stderr, flush=True)


class Progress:
    """Shows the current step as a bar, after two seconds, on a terminal alone: a log has nothing of it.

    Args:
        what: The first step.
    """

    def __init__(self, what: str) -> None:
        self._step: tuple[str, int, int | None] = (what, 0, None)
        self._bar: Any = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(BRIEF, self._begin)
        self._timer.daemon = True

    def __call__(self, what: str, done: int, total: int) -> None:
        """The next step is `what`, after `done` of `total`."""
        with self._lock:
            self._step = (what, done, total)
            self._draw()

    def start(self) -> None:
        """Begin to count the seconds, if there is a terminal to show them."""
        if sys.stderr.isatty():
            self._timer.start()

    def stop(self) -> None:
        """Remove the bar."""
        self._timer.cancel()
        with self._lock:
            if self._bar is not None:
                self._bar.stop()

    def _begin(self) -> None:
        from rich import progress as bars
        from rich.console import Console

        with self._lock:
            if not self._timer.finished.is_set():
                columns = (
                    bars.TextColumn("{task.description}"),
                    bars.BarColumn(),
                    bars.MofNCompleteColumn(),
                    bars.TimeElapsedColumn(),
                )
                self._bar = bars.Progress(*columns, console=Console(stderr=True), transient=True)
                self._bar.add_task("")
                self._draw()
                self._bar.start()

    def _draw(self) -> None:
        if self._bar is not None:
            what, done, total = self._step
            self._bar.update(0, description=what, completed=done, total=total)


@contextmanager
def progress(what: str) -> Generator[Progress]:
    """Progress while the block runs: first of `what`, then of the steps that it is told."""
    shown = Progress(what)
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()
