"""Arrow tables: answers are returned in this form, and data frames and CSV files are converted to
it.

Public tables, which private tables may be joined with, are Arrow tables too.
"""
# pyarrow has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import csv
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dpcompose import check
from dpcompose.errors import DomainError, optional_library
from dpcompose.files import path_of, replacing


def arrow_table(columns: Sequence[tuple[str, str, Sequence[Any]]]) -> Any:
    """Return an Arrow table of named columns; each type is named as in Arrow."""
    import pyarrow as pa

    arrays = [pa.array(cells, type=pa.type_for_alias(type)) for _, type, cells in columns]
    return pa.Table.from_arrays(arrays, names=[name for name, _, _ in columns])


def polars_frame(table: Any) -> Any:
    """Return an Arrow table as a polars data frame.

    Raises:
        MissingExtraError: If polars is not installed.
    """
    return optional_library("polars", "a polars data frame", "data").from_arrow(table)


def of_frame(frame: Any) -> Any:
    """Return a data frame as an Arrow table.

    Raises:
        DomainError: If a column mixes types, or two columns have one name.
    """
    import pyarrow as pa

    found = None
    with suppress(pa.ArrowException, TypeError, ValueError):
        found = pa.table(frame)
    # The message of Arrow's own error quotes private values.
    if found is None:
        raise DomainError("source", "frame", "a data frame whose columns each hold one type")
    found = pa.table([_readable(each) for each in found.columns], names=found.column_names)
    if len(set(found.column_names)) < len(found.column_names):
        raise DomainError(
            "source", found.column_names, "a data frame whose columns have different names"
        )
    return found


def _readable(column: Any) -> Any:
    """Return the column with text that is not UTF-8, at which an engine would fail, as NULL."""
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
    """Write an Arrow table as CSV or Parquet; the end of the file name decides.

    Raises:
        DomainError: If the name has another ending, or the file cannot be written.
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
    """Read a CSV file as an Arrow table of text. Types inferred from rows, or errors at rows, would
    reveal private data.

    Each line is parsed separately, so that a quote in one line does not change how other people's
    lines are read. A line with an unclosed quote, such as one end of a cell with a line break, is
    left out. Bytes that are not UTF-8 become question marks, short lines are filled with NULL, long
    lines are cut, and empty cells are NULL.

    Args:
        path: The file.
        line_breaks: Whether quoted cells may contain line breaks; an unclosed quote then swallows
            the lines after it.

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
    """Yield the cells of each line; None for a line that is left out."""
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
    """Lift the limit on cell length. Otherwise a long cell would end early, and its last lines be
    read as other people's rows.
    """
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


MOST_PUBLIC = 10**6
ARROW_TYPES = {
    "boolean": "bool",
    "integer": "int64",
    "float": "double",
    "text": "string",
    "date": "date32",
}
"""Maps the kinds of columns of public tables, and of keys, to Arrow's types."""


@dataclass(frozen=True)
class PublicTable:
    """A frozen table in which nothing is private; its rows are copied by `public`, which makes it.

    Args:
        kinds: The kind of each column.
        digest: A fingerprint of its rows, which is part of the identity of requests.
    """

    kinds: Mapping[str, str]
    digest: str
    frame: Any = field(repr=False, compare=False)

    @classmethod
    def without_rows(cls, kinds: Mapping[str, str], digest: str) -> PublicTable:
        """Return an empty table with these columns and this digest."""
        columns = [(name, ARROW_TYPES[kind], []) for name, kind in kinds.items()]
        return cls(kinds, digest, arrow_table(columns))

    def opened(self) -> PublicTable:
        """Return itself."""
        return self

    def for_join(self, keys: tuple[str, ...], at_most: int | None) -> tuple[Any, int]:
        """Return the rows for a join on these keys, and the largest number of rows with one key.

        Rows with a NULL key match nothing and are left out. The bound is counted on the frozen
        copy, so it holds.

        Raises:
            DomainError: If a key is no column, or the keys are not unique and no bound is given.
        """
        import pyarrow as pa

        if not keys or len(set(keys)) < len(keys) or not all(each in self.kinds for each in keys):
            raise DomainError(
                "on", list(keys), f"columns of the public table: {', '.join(self.kinds)}"
            )
        most = 1 if at_most is None else check.count("at_most", at_most, least=1, most=1_000)
        seen: dict[tuple[Any, ...], int] = {}
        kept: list[bool] = []
        for key in zip(*(self.frame.column(name).to_pylist() for name in keys), strict=True):
            number = seen[key] = seen.get(key, 0) + 1
            there = all(part is not None for part in key)
            if there and at_most is None and number > 1:
                remedy = "Give at_most=, the rows of a key that are joined"
                raise DomainError(
                    "on", list(keys), "a key that is unique in the public table", remedy
                )
            kept.append(there and number <= most)
        return self.frame.filter(pa.array(kept, pa.bool_())), most


@dataclass(frozen=True)
class PublicSource:
    """A public table listed in a catalog: a file and the digest that its rows must have.

    Args:
        name: Its name in the catalog.
        source: The file.
        digest: The digest of the table when it was catalogued.
    """

    name: str
    source: str
    digest: str

    def opened(self) -> PublicTable:
        """Read and copy the table.

        Raises:
            DomainError: If it cannot be read, or its digest has changed.
        """
        found = public(self.source)
        if found.digest != self.digest:
            domain, remedy = (
                f"the public table that was catalogued, {self.digest}",
                "Ask the keeper",
            )
            raise DomainError(self.name, found.digest, domain, remedy)
        return found


PublicTables = Mapping[str, PublicSource | PublicTable]
"""The public tables of a catalog by name."""


def public(source: Any) -> PublicTable:
    """Return a public table: nothing in it is protected. Its rows are copied, so that it cannot
    change.

    Columns of types other than integers, floats, text, truth values and dates are left out.

    Args:
        source: A pandas, polars or Arrow frame, or the path of a CSV or Parquet file; up to a
            million rows.

    Raises:
        DomainError: If it cannot be read, is larger, or two column names differ only in the case of
            letters.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix.lower() not in (".csv", ".parquet") or not path.is_file():
            raise DomainError("source", str(path), "a .csv or .parquet file that exists")
        frame = (
            read_csv(path, line_breaks=False)
            if path.suffix.lower() == ".csv"
            else parquet.read_table(path)
        )
    else:
        frame = of_frame(source)
    if not frame.num_rows <= MOST_PUBLIC:
        raise DomainError("source", frame.num_rows, f"at most {MOST_PUBLIC:,} rows")
    names = [name.casefold() for name in frame.column_names]
    if len(set(names)) < len(names):
        raise DomainError(
            "source", frame.column_names, "names that differ in more than their letters' case"
        )
    columns = {
        name: found
        for name in frame.column_names
        if (found := _plain(frame.column(name))) is not None
    }
    if not columns:
        raise DomainError(
            "source", frame.column_names, "columns of integers, floats, text, truth values or dates"
        )
    copied = pa.table({name: column for name, (column, _) in columns.items()})
    kinds = {name: kind for name, (_, kind) in columns.items()}
    fingerprint = sha256(repr(sorted(kinds.items())).encode())
    for batch in copied.to_batches(max_chunksize=10_000):
        fingerprint.update(repr(batch.to_pylist()).encode(errors="backslashreplace"))
    return PublicTable(kinds, fingerprint.hexdigest()[:32], copied)


def _plain(column: Any) -> tuple[Any, str] | None:
    """Return a copy of the column as one of the five supported types; None for others."""
    import pyarrow as pa
    import pyarrow.types as types

    kinds = (
        (types.is_boolean, "boolean"),
        (types.is_integer, "integer"),
        (types.is_floating, "float"),
        (types.is_string, "text"),
        (types.is_large_string, "text"),
        (types.is_date, "date"),
    )
    for holds, kind in kinds:
        if holds(column.type):
            try:
                return pa.array(column.to_pylist(), pa.type_for_alias(ARROW_TYPES[kind])), kind
            except (pa.ArrowException, OverflowError, ValueError):
                raise DomainError(
                    "source", kind, "64-bit integers, dates of years 1 to 9999, text in UTF-8"
                ) from None
    return None
