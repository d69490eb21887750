"""The result of a command: a document or a page, files, errors and the exit status."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
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

if TYPE_CHECKING:
    from dpcompose.report import Page

DONE = 0
REFUSED = 1
"""Refused, over budget, refuted, or not to be reached."""
BAD_INPUT = 2
NOT_AVAILABLE = 3
"""A part that is not installed, a question without a sound answer, or no standard output."""
INTERNAL = 4


@contextmanager
def error_boundary() -> Generator[None]:
    """Turn the errors of dpcompose, raised inside, into a sentence and an exit status."""
    try:
        yield
    except (PlanError, DomainError) as error:
        raise _end(str(error), BAD_INPUT) from None
    except (UnsupportedError, MissingExtraError) as error:
        raise _end(str(error), NOT_AVAILABLE) from None
    except (UnreachableError, RefusedRoundError, LedgerError, ReleaseError, StatementError) as error:
        raise _end(str(error), REFUSED) from None


def emit(command: str, document: Callable[[], Mapping[str, Any]], page: Callable[[], Page], *, json: bool) -> None:
    """Print the result of a command on standard output: as one JSON document, or as a page.

    Args:
        command: The words after `dpcompose`, such as "ledger show".
        document: Makes the document, which is printed with the command and the version of dpcompose.
        page: Makes the page.
        json: Whether to print the document.
    """
    if json:
        emit_document(command, document())
    else:
        from dpcompose.cli.terminal import show

        show(page())


def emit_document(command: str, document: Mapping[str, Any]) -> None:
    """Print one JSON document on standard output; see `emit`."""
    from dpcompose.report import dumps

    stdout(dumps({"dpcompose": package_version(), "command": command} | dict(document)) + "\n")


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
        raise DomainError(option, str(path), f"a file that can be written ({error.strerror})") from None


def write(option: str, path: Path, text: str) -> None:
    """Write `text` to `path`, all of it or nothing; DomainError if that cannot be done."""
    with writing(option, path), replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def package_version() -> str:
    """The version of dpcompose that is installed."""
    from importlib.metadata import version

    return version("dpcompose")


def _end(message: str, status: int) -> typer.Exit:
    stderr(f"dpcompose: {message}")
    return typer.Exit(status)
