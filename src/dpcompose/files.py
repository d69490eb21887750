"""Reading and writing files that the caller names: reading is bounded, and a file is written whole
or not at all.
"""

from __future__ import annotations

import os
import secrets
import stat
import tomllib
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dpcompose.errors import DomainError, PlanError

LONGEST_LINE = 10_000
"""Characters of a line of TOML: reading a dotted key takes time quadratic in its length."""


def path_of(name: str, value: Any) -> Path:
    """Return `value` as a path; DomainError if it is neither text nor a path, such as a number (an
    open descriptor).
    """
    try:
        if b"\0" not in os.fsencode(value) and not isinstance(value, bytes):
            return Path(value)
    except (TypeError, ValueError):
        pass
    raise DomainError(name, value, "the name of a file")


def read(path: Path, *, most: int) -> bytes:
    """Return the first `most` + 1 bytes of the file at `path`; a named pipe without a writer is
    empty, and does not block.

    Raises:
        OSError: If the file cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    with open(handle, "rb") as stream:
        return stream.read(most + 1)


def load_text(path: str | Path, *, most: int, what: str) -> str:
    """Return the text of a file of at most `most` bytes.

    Args:
        path: The file.
        most: The largest accepted size in bytes.
        what: The name of the file's content in errors.

    Raises:
        DomainError: If `path` is neither text nor a path.
        PlanError: If the file is missing, not UTF-8 or too large.
    """
    file = path_of("path", path)
    try:
        content = read(file, most=most)
        if len(content) > most:
            raise PlanError(str(path), "", "", None, f"{what} of at most {most:,} bytes")
        # Some editors begin a file with a byte order mark.
        return content.decode("utf-8-sig")
    except OSError as error:
        raise PlanError(
            str(path), "", "", None, f"{what} that can be read ({error.strerror})"
        ) from None
    except UnicodeDecodeError as error:
        raise PlanError(
            str(path), "", "", None, f"UTF-8 text; byte {error.start} is not valid"
        ) from None


def read_toml(text: str, *, source: str) -> dict[str, Any]:
    """Return the tables of a TOML text; raises a PlanError, which names `source`, if it is not
    TOML.
    """
    for position, line in enumerate(text.splitlines(), start=1):
        if len(line) > LONGEST_LINE:
            expected = f"lines of at most {LONGEST_LINE:,} characters; line {position} is longer"
            raise PlanError(source, "", "", None, expected)
    try:
        return tomllib.loads(text)
    # A ValueError that is no TOMLDecodeError: an integer of more digits than Python converts, or an impossible date.
    except ValueError as error:
        raise PlanError(source, "", "", None, f"TOML: {error}") from None
    except RecursionError:
        raise PlanError(source, "", "", None, "TOML that is not nested so deeply") from None


def each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, as an `object_pairs_hook`; a repeated name, of which readers would keep one, is a ValueError."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name is there twice")
    return fields


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield a path to write to, in the directory of `path`; on exit that file replaces `path`, if
    nothing failed.

    A symbolic link at `path` is replaced, not the file it points to. If the block raises, nothing
    is changed.

    Raises:
        OSError: If the file cannot be written, or `path` is a directory, a device or a pipe.
    """
    mode = None
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
    if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise OSError(0, "there is something else than a file of that name")
    beside = path.parent / f".{secrets.token_hex(8)}{path.suffix}"
    try:
        yield beside
        if mode is not None and stat.S_ISREG(mode):
            beside.chmod(stat.S_IMODE(mode))
        handle = os.open(beside, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        beside.replace(path)
    finally:
        with suppress(OSError):
            beside.unlink()
