"""Where tables come from: ibis tables, data frames, files, databases."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

import csv
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpcompose.errors import DomainError, MissingExtraError
from dpcompose.release.arrow import arrow_table, of_frame
from dpcompose.release.engine import unsaid
from dpcompose.release.expression import Expression


def opened(source: Any, *, name: str | None, schema: Mapping[str, str] | None) -> tuple[str, Expression, bool]:
    """What to call a source in the ledger, the source as an ibis table, and whether that was made elsewhere.

    Raises:
        DomainError: If it is nothing that can be opened, or cannot be.
        MissingExtraError: If ibis is not installed.
    """
    try:
        import ibis
    except ImportError:
        raise MissingExtraError("asking tables", "data") from None
    with unsaid():
        label, data = _opened(source, name)
        foreign = isinstance(source, ibis.Table) or (isinstance(source, str) and "://" in source)
        if foreign and data.get_backend().name == "duckdb":
            _letter_by_letter(data)
        return name or label, _typed(data, schema), foreign


def _letter_by_letter(data: Expression) -> None:
    """Refuse a connection that takes different texts for equal, whatever their columns say."""
    from dpcompose.release.on_duckdb import collation

    found = collation(data)
    if found not in ("", "binary"):
        remedy = "Equal keys would be written as one row or another has them: RESET default_collation"
        raise DomainError("default_collation", found, "none, or binary", remedy)


def _opened(source: Any, name: str | None) -> tuple[str, Expression]:
    import ibis

    from dpcompose.release.on_duckdb import of_arrow

    match source:
        case ibis.Table():
            return _label_of(source), source
        case str() if "://" in source:
            return _database(source, name)
        case str() | os.PathLike():
            return _file(Path(source))
        case _ if hasattr(source, "__arrow_c_stream__"):
            return "frame", of_arrow(of_frame(source))
        case _:
            domain = "an ibis table, a pandas, polars or Arrow frame, a path, or the URL of a database"
            raise DomainError("source", type(source).__name__, domain)


def _label_of(data: Expression) -> str:
    named: Any = data.op()
    return str(getattr(named, "name", "table"))


def _file(path: Path) -> tuple[str, Expression]:
    from dpcompose.release.on_duckdb import of_arrow, of_parquet

    suffix = path.suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise DomainError("source", str(path), "a file whose name ends in .parquet or .csv")
    if not path.is_file():
        raise DomainError("source", str(path), "a file that exists")
    data = None
    with suppress(OSError, *_engine_errors()):
        data = of_parquet(str(path)) if suffix == ".parquet" else of_arrow(_csv(path))
    if data is None:
        raise DomainError("source", str(path), f"a {suffix[1:]} file that can be read")
    return path.name, data


def _engine_errors() -> tuple[type[Exception], ...]:
    import duckdb

    return (duckdb.Error,)


def _csv(path: Path) -> Any:
    """A CSV file, every column text: types that follow from the rows would tell of them, as would a line refused.

    Bytes that are no UTF-8 become question marks, short lines are filled with NULL, long ones cut; empty cells are
    NULL; and a line that cannot be read at all is left out.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream, _cells_of_any_length():
        lines = csv.reader(stream)
        names = next(lines, [])
        if not names or len(set(names)) < len(names):
            raise DomainError("source", str(path), "a CSV file whose first line names its columns, each once")
        cells: list[list[str | None]] = [[] for _ in names]
        while True:
            try:
                line = next(lines)
            except StopIteration:
                break
            except csv.Error:
                continue
            for column, cell in zip_longest(cells, line[: len(names)]):
                column.append(cell or None)
    return arrow_table([(name, "string", column) for name, column in zip(names, cells, strict=True)])


@contextmanager
def _cells_of_any_length() -> Generator[None]:
    """A cell that is too long would end amid its letters, and its last lines be read as other people's rows."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _database(url: str, name: str | None) -> tuple[str, Expression]:
    scheme = urlsplit(url).scheme
    if scheme not in _CONNECTIONS:
        raise DomainError("source", f"{scheme}://...", "a URL such as postgresql://..., duckdb://... or spark://...")
    if name is None:
        raise DomainError("name", name, "the name of a table of the database")
    extra = _EXTRAS.get(scheme)
    if extra is not None and find_spec(extra[0]) is None:
        raise MissingExtraError(f"a table on {scheme}://", extra[1])
    connection = found = None
    with suppress(Exception):
        connection = _CONNECTIONS[scheme](url)
        schema, _, table = name.rpartition(".")
        found = connection.table(table, database=schema or None)
    # A driver's words may hold the password of the URL.
    if found is None:
        if connection is not None:
            connection.disconnect()
        raise DomainError("source", f"{scheme}://...", f"a database that can be reached and has a table {name!r}")
    return name, found


def _duckdb(url: str) -> Any:
    import ibis

    return ibis.duckdb.connect(url.removeprefix("duckdb://"), read_only=True)


def _postgresql(url: str) -> Any:
    """A connection that takes whatever libpq does: sockets, services, passwords from a file."""
    import ibis
    import psycopg

    return ibis.postgres.from_connection(psycopg.connect(url, autocommit=True))


def _spark(url: str) -> Any:
    """A session on the cluster of a spark:// URL, or the one that is running."""
    import ibis
    from pyspark.sql import SparkSession

    return ibis.pyspark.connect(SparkSession.builder.master(url).appName("dpcompose").getOrCreate())


def _typed(data: Expression, schema: Mapping[str, str] | None) -> Expression:
    """The columns of `schema` with these types; a value that does not read as one becomes NULL."""
    if not schema:
        return data
    import ibis

    if data.get_backend().name != "duckdb":
        raise DomainError("schema", dict(schema), "nothing for a database", "Cast the columns in a view there")
    found = data
    for name, wanted in schema.items():
        if name not in data.columns:
            raise DomainError("schema", name, f"names of columns: {', '.join(data.columns)}")
        try:
            dtype = ibis.dtype(wanted)
        except Exception:
            raise DomainError("schema", wanted, "a type such as int64, float64, string, boolean, date") from None
        found = found.mutate(**{name: found[name].try_cast(dtype)})
    return found


_EXTRAS = {"postgres": ("psycopg", "postgres"), "postgresql": ("psycopg", "postgres"), "spark": ("pyspark", "spark")}
_CONNECTIONS = {"duckdb": _duckdb, "postgres": _postgresql, "postgresql": _postgresql, "spark": _spark}
