"""Public tables, which tables of people may be joined with."""
# pyarrow is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.release.arrow import of_frame, read_csv

MOST_PUBLIC = 10**6


@dataclass(frozen=True)
class PublicTable:
    """A table of which nothing is private, frozen: its rows are copied when it is made. Make it with `public`.

    Args:
        kinds: The kind of each column.
        digest: A fingerprint of its rows, which requests are named by.
    """

    kinds: Mapping[str, str]
    digest: str
    frame: Any = field(repr=False, compare=False)

    def for_join(self, keys: tuple[str, ...], at_most: int | None) -> tuple[Any, int]:
        """The rows that are joined on these keys, and how many at most there are for a key.

        Rows with a NULL key are left out, for they meet nothing. Counted here, on the copy, so the bound holds.

        Raises:
            DomainError: If a key is no column, or is not unique and no bound is given.
        """
        import pyarrow as pa

        if not keys or len(set(keys)) < len(keys) or not all(each in self.kinds for each in keys):
            raise DomainError(
                "on", list(keys), f"columns of the public table: {', '.join(self.kinds)}"
            )
        most = 1 if at_most is None else check.count("at_most", at_most)
        if not 1 <= most <= 1_000:
            raise DomainError("at_most", most, "an integer between 1 and 1,000")
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
    """A public table that a catalog lists: a file, and the digest that its rows have to have.

    Args:
        name: Its name in the catalog.
        source: The file.
        digest: Of the table that was catalogued.
    """

    name: str
    source: str
    digest: str

    def opened(self) -> PublicTable:
        """The table, copied.

        Raises:
            DomainError: If it cannot be read, or is another one by now.
        """
        found = public(self.source)
        if found.digest != self.digest:
            domain, remedy = (
                f"the public table that was catalogued, {self.digest}",
                "Ask the keeper",
            )
            raise DomainError(self.name, found.digest, domain, remedy)
        return found


def frozen(source: Any) -> Any:
    """The public table that an entry of a catalog names; anything else as it is.

    Raises:
        DomainError: As `PublicSource.opened`.
    """
    return source.opened() if isinstance(source, PublicSource) else source


def public_source(name: str, source: str) -> PublicSource:
    """The entry of a catalog for a file.

    Raises:
        DomainError: As `public`.
    """
    return PublicSource(name, source, public(source).digest)


def public(source: Any) -> PublicTable:
    """A public table: nothing in it is protected, and its rows are copied here, so that it cannot change.

    Columns of other types than integers, floats, text, truth values and dates are left out.

    Args:
        source: A pandas, polars or Arrow frame, or the path of a CSV or Parquet file; up to a million rows.

    Raises:
        DomainError: If it cannot be read, is larger, or two names differ in their letters' case only.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    frame = None
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
    if not isinstance(frame, pa.Table):
        frame = pa.table(frame)
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
    """A column as one of the five types, copied; None for others."""
    import pyarrow as pa
    import pyarrow.types as types

    kinds = (
        (types.is_boolean, pa.bool_(), "boolean"),
        (types.is_integer, pa.int64(), "integer"),
        (types.is_floating, pa.float64(), "float"),
        (types.is_string, pa.string(), "text"),
        (types.is_large_string, pa.string(), "text"),
        (types.is_date, pa.date32(), "date"),
    )
    for holds, wanted, kind in kinds:
        if holds(column.type):
            try:
                return pa.array(column.to_pylist(), wanted), kind
            except (pa.ArrowException, OverflowError, ValueError):
                raise DomainError(
                    "source", kind, "64-bit integers, dates of years 1 to 9999, text in UTF-8"
                ) from None
    return None
