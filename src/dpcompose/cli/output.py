"""Files that a command writes, checked before anything is computed."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpcompose.cli.outcome import emit
from dpcompose.errors import DomainError
from dpcompose.files import replacing


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


def emit_document(document: Mapping[str, Any]) -> None:
    """Print one JSON document, with the version that made it."""
    from dpcompose.report import dumps

    emit(dumps({"dpcompose": package_version()} | dict(document)) + "\n")


def package_version() -> str:
    """The version of dpcompose that is installed."""
    from importlib.metadata import version

    return version("dpcompose")
