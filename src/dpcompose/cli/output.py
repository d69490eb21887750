"""Files that a command writes, checked before anything is computed."""

from __future__ import annotations

from pathlib import Path

from dpcompose.errors import DomainError


def require_writable(option: str, path: Path | None, *suffixes: str) -> None:
    """Raise DomainError unless `path` is None or can become a file of that kind."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise DomainError(option, str(path), f"a file name that ends in {' or '.join(suffixes)}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise DomainError(option, str(path), "a file in a directory that exists")


def write(option: str, path: Path, text: str) -> None:
    """Write `text` to `path`; DomainError if that cannot be done."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DomainError(option, str(path), f"a file that can be written ({error.strerror})") from None


def package_version() -> str:
    """The version of dpcompose that is installed."""
    from importlib.metadata import version

    return version("dpcompose")
