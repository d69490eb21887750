"""Files that a command writes, checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dpcompose.errors import DomainError


def require_writable(option: str, path: Path | None, *suffixes: str) -> None:
    """Raise DomainError unless `path` is None or can become a file of that kind."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise DomainError(option, str(path), f"a file name that ends in {' or '.join(suffixes)}")
    above = path.absolute().parent
    if path.is_dir() or not above.is_dir():
        raise DomainError(option, str(path), "a file in a directory that exists")
    if not os.access(path if path.exists() else above, os.W_OK):
        raise DomainError(option, str(path), "a file that can be written")


@contextmanager
def writing(option: str, path: Path) -> Generator[None]:
    """Turn a failure to write `path`, inside, into a DomainError."""
    try:
        yield
    except OSError as error:
        raise DomainError(option, str(path), f"a file that can be written ({error.strerror})") from None


def write(option: str, path: Path, text: str) -> None:
    """Write `text` to `path`; DomainError if that cannot be done."""
    with writing(option, path):
        path.write_text(text, encoding="utf-8")


def package_version() -> str:
    """The version of dpcompose that is installed."""
    from importlib.metadata import version

    return version("dpcompose")
