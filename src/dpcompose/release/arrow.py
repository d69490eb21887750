"""Arrow tables: the form in which answers are handed out, and in which data frames and CSV files come in."""
# pyarrow has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import csv
import gc
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dpcompose.errors import DomainError, MissingExtraError
from dpcompose.files import path_of, replacing


@cache
def warm_up() -> None:
    """Let the collector take its long look at all that was imported now: when a question is asked, time goes to it."""
    gc.collect()


def arrow_table(columns: Sequence[tuple[str, str, Sequence[Any]]]) -> Any:
    """A table of named columns, each of a type as Arrow writes it."""
    import pyarrow as pa

    types = {
        "int64": pa.int64(),
        "int32": pa.int32(),
        "double": pa.float64(),
        "string": pa.string(),
    }
    types |= {"int16": pa.int16(), "bool": pa.bool_(), "date32": pa.date32()}
    arrays = [pa.array(cells, type=types[type]) for _, type, cells in columns]
    return pa.Table.from_arrays(arrays, names=[name for name, _, _ in columns])


def polars_frame(table: Any) -> Any:
    """An Arrow table as a polars data frame.

    Raises:
        MissingExtraError: If polars is not installed.
    """
    try:
        import polars
    except ImportError:
        raise MissingExtraError("a polars data frame", "data") from None
    return polars.from_arrow(table)


def of_frame(frame: Any) -> Any:
    """A data frame as an Arrow table.

    Raises:
        DomainError: If a column mixes types, or two have one name.
    """
    import pyarrow as pa

    found = None
    with suppress(pa.ArrowException, TypeError, ValueError):
        found = pa.table(frame)
    # Arrow's own words quote values.
    if found is None:
        raise DomainError("source", "frame", "a data frame whose columns each hold one type")
    found = pa.table([_readable(each) for each in found.columns], names=found.column_names)
    if len(set(found.column_names)) < len(found.column_names):
        raise DomainError(
            "source", found.column_names, "a data frame whose columns have different names"
        )
    return found


def _readable(column: Any) -> Any:
    """The column; texts that are no UTF-8, at which an engine would fail, become NULL."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    with suppress(pa.ArrowInvalid):
        column.validate(full=True)
        return column
    return pa.chunked_array(
        [[_text(cell) for cell in column.cast(pa.large_binary()).to_pylist()]], type=column.type
    )


def _text(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def write(table: Any, path: str | Path) -> None:
    """Write an Arrow table as CSV or Parquet, by the end of the file's name.

    Raises:
        DomainError: If the name ends otherwise, or the file cannot be written.
    """
    import pyarrow.csv
    import pyarrow.parquet

    place = path_of("path", path)
    if place.suffix not in (".csv", ".parquet"):
        raise DomainError("path", str(path), "a name that ends in .csv or .parquet")
    try:
        with replacing(place) as beside:
            if place.suffix == ".parquet":
                pyarrow.parquet.write_table(table, beside)
            else:
                pyarrow.csv.write_csv(table, beside)
    except OSError as error:
        raise DomainError(
            "path", str(path), f"a file that can be written ({error.strerror})"
        ) from None


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
            raise DomainError(
                "source", str(path), "a CSV file whose first line names its columns, each once"
            )
        cells: list[list[str | None]] = [[] for _ in names]
        for line in lines:
            for column, cell in zip_longest(cells, (line or [])[: len(names)]):
                column.append(cell or None)
    return arrow_table(
        [(name, "string", column) for name, column in zip(names, cells, strict=True)]
    )


def _by_line(path: Path) -> Iterator[list[str] | None]:
    """The cells of each line; None for one that is left out."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream):
            text = line.rstrip(b"\r\n").decode(
                "utf-8-sig" if number == 0 else "utf-8", errors="replace"
            )
            try:
                yield (
                    next(csv.reader([text], strict=True), None) if '"' in text else text.split(",")
                )
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
