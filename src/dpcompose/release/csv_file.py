"""CSV files: every column text, every line a row of its own."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.release.arrow import arrow_table


def read_csv(path: Path, *, line_breaks: bool) -> Any:
    """A CSV file as an Arrow table of text: types that follow from the rows would tell of them, as would an error.

    Each line is read by itself, so that no quote, open or closed, decides how the lines of others are read. A line
    with an unclosed quote, as one end of a cell with a line break is, is left out. Bytes that are no UTF-8 become
    question marks, short lines are filled with NULL, long ones cut; empty cells are NULL.

    Args:
        path: The file.
        line_breaks: Whether cells in quotes go on over lines; an unclosed quote swallows the lines after it.

    Raises:
        DomainError: If the first line does not name the columns.
    """
    with _cells_of_any_length():
        lines = _over_lines(path) if line_breaks else _by_line(path)
        names = next(lines, None)
        if not names or len(set(names)) < len(names):
            raise DomainError("source", str(path), "a CSV file whose first line names its columns, each once")
        cells: list[list[str | None]] = [[] for _ in names]
        for line in lines:
            for column, cell in zip_longest(cells, (line or [])[: len(names)]):
                column.append(cell or None)
    return arrow_table([(name, "string", column) for name, column in zip(names, cells, strict=True)])


def _by_line(path: Path) -> Iterator[list[str] | None]:
    """The cells of each line; None for one that is left out."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream):
            text = line.rstrip(b"\r\n").decode("utf-8-sig" if number == 0 else "utf-8", errors="replace")
            try:
                yield next(csv.reader([text], strict=True), None) if '"' in text else text.split(",")
            except csv.Error:
                yield None


def _over_lines(path: Path) -> Iterator[list[str] | None]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        lines = csv.reader(stream)
        while True:
            try:
                yield next(lines)
            except StopIteration:
                return
            except csv.Error:
                yield None


@contextmanager
def _cells_of_any_length() -> Generator[None]:
    """A cell that is too long would end amid its letters, and its last lines be read as other people's rows."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)
