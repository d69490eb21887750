"""Arrow tables: the form in which answers are handed out, and in which data frames come in."""
# pyarrow has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from dpcompose.errors import DomainError


@cache
def ready() -> None:
    """Import now what Arrow and ibis would import at the first question: when it is asked, time goes to the answer.

    So does the collector's long look at all that was imported.
    """
    import pyarrow as pa
    import pyarrow.dataset  # pyright: ignore[reportUnusedImport]

    pa.array([0])
    gc.collect()


def arrow_table(columns: Sequence[tuple[str, str, Sequence[Any]]]) -> Any:
    """A table of named columns, each of a type as Arrow writes it."""
    import pyarrow as pa

    types = {"int64": pa.int64(), "int32": pa.int32(), "double": pa.float64(), "string": pa.string()}
    types |= {"int16": pa.int16(), "bool": pa.bool_(), "date32": pa.date32()}
    arrays = [pa.array(cells, type=types[type]) for _, type, cells in columns]
    return pa.Table.from_arrays(arrays, names=[name for name, _, _ in columns])


def arrow_list(values: Sequence[Any]) -> Any:
    """A table of one column, `value`."""
    import pyarrow as pa

    return pa.table({"value": pa.array(list(values))})


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
        raise DomainError("source", found.column_names, "a data frame whose columns have different names")
    return found


def _readable(column: Any) -> Any:
    """The column; texts that are no UTF-8, at which an engine would fail, become NULL."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    with suppress(pa.ArrowInvalid):
        column.validate(full=True)
        return column
    return pa.chunked_array([[_text(cell) for cell in column.cast(pa.large_binary()).to_pylist()]], type=column.type)


def _text(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def write(table: Any, path: Path) -> None:
    """Write an Arrow table as CSV or Parquet, by the end of the file's name."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)
