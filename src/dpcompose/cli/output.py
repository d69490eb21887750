"""The result of a command: a document or a page, files, errors and the exit status."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpcompose.cli.streams import stderr, stdout
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
)
from dpcompose.files import replacing
from dpcompose.version import __version__

if TYPE_CHECKING:
    from dpcompose.report import Page

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


def emit(
    command: str,
    document: Callable[[], Mapping[str, Any]],
    page: Callable[[], Page],
    *,
    json: bool,
    csv: bool = False,
) -> None:
    """Print the result of a command on standard output: as one JSON document, as CSV or as a page.

    Args:
        command: The words after `dpcompose`, such as "ledger show".
        document: Makes the document, which is printed with the command and the version of dpcompose.
        page: Makes the page.
        json: Whether to print the document.
        csv: Whether to print the tables as CSV.
    """
    if json and csv:
        raise _end(DomainError("--csv", True, "not beside --json: one of them"), BAD_INPUT)
    if json:
        emit_document(command, document())
    elif csv:
        from dpcompose.report import csv_text

        stdout(csv_text(page()))
    else:
        from dpcompose.cli.terminal import show

        show(page())


def emit_document(command: str, document: Mapping[str, Any]) -> None:
    """Print one JSON document on standard output; see `emit`."""
    from dpcompose.report import dumps

    stdout(dumps(headed(command, document)) + "\n")


def headed(command: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with what every document has: the version, the format and the command."""
    return {"dpcompose": package_version(), "format": FORMAT, "command": command} | dict(document)


def require_writable(option: str, path: Path | None, *suffixes: str) -> None:
    """Raise DomainError unless `path` is None or can become a file of that kind."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise DomainError(option, str(path), f"a file name that ends in {' or '.join(suffixes)}")
    try:
        there, directory = os.path.lexists(path), path.parent.stat()
        if not stat.S_ISDIR(directory.st_mode) or not directory.st_nlink or path.is_dir():
            raise DomainError(option, str(path), "a file in a directory that exists")
        if there and not (path.is_symlink() or path.is_file()):
            raise DomainError(option, str(path), "a file, not a device or a pipe")
        if not os.access(path.parent, os.W_OK) or (path.is_file() and not os.access(path, os.W_OK)):
            raise DomainError(option, str(path), "a file that can be written")
    except (FileNotFoundError, NotADirectoryError):
        raise DomainError(option, str(path), "a file in a directory that exists") from None
    except (OSError, ValueError) as error:
        raise DomainError(option, str(path), f"a file that can be written ({error})") from None


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


def package_version() -> str:
    """The version of dpcompose that runs."""
    return __version__


def _end(error: Exception, status: int) -> typer.Exit:
    report_error(type(error).__name__, str(error), status)
    return typer.Exit(status)


def report_error(kind: str, message: str, status: int) -> None:
    """Say an error on standard error, and as a document on standard output if the command has --json."""
    words = INVOKED.get()
    if words is not None and words.json:
        emit_document(
            words.command, {"error": {"kind": kind, "message": message, "status": status}}
        )
    stderr(f"dpcompose: {message}")
