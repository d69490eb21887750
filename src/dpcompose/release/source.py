"""Where rows come from: frames, files and tables of a database, each opened as a relation."""

# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from dpcompose.errors import DomainError, MissingExtraError, UnsupportedError
from dpcompose.release.arrow import of_frame, read_csv
from dpcompose.release.engines import (
    Engine,
    Expression,
    OnDuckDB,
    OnPostgreSQL,
    OnSpark,
    Relation,
    base,
    turn,
    without_warnings,
)

Opening = Callable[[Any], Expression]
"""How a file or a frame is opened on a connection."""


def of_arrow(frame: Any) -> Expression:
    """An Arrow table, without a copy, as a table of a DuckDB in memory.

    Raises:
        DomainError: If DuckDB holds no such types.
    """
    import duckdb

    found = None
    with suppress(duckdb.Error):
        found = _embedded(lambda connection: _registered(connection, frame))
    if found is None:
        types = ", ".join(sorted({str(each.type) for each in frame.schema}))
        raise DomainError(
            "source",
            types,
            "a frame whose types DuckDB holds",
            "Cast the columns, or leave some out",
        )
    return found


def of_parquet(path: str) -> Expression:
    """Parquet files, read when they are asked."""
    return _embedded(lambda connection: connection.read_parquet(path))


def together(data: Expression, backend: Any) -> Expression | None:
    """The same rows over another connection; None unless all that is not there yet is a file or a frame.

    A file or a frame is opened there once more, by the words in which it was opened first, and takes its own place in
    the expression. So the rows are those of the same sources, and no row passes from one connection to another. A
    connection that somebody else made is neither left nor entered: what is declared there is not known here.

    Raises:
        DomainError: If a file has other columns by now.
    """
    import ibis.expr.operations as ops

    places: dict[Any, Any] = {}
    with turn(backend):
        here = _openings(backend)
        for node in data.op().find(ops.DatabaseTable):
            if node.source is backend:
                continue
            opening = _openings(node.source).get(node.name)
            if opening is None or not here:
                return None
            name = next((name for name, known in here.items() if known is opening), None)
            found = backend.table(name) if name is not None else _record_opening(opening, backend)
            if found.schema() != node.schema:
                raise DomainError(
                    "table", list(found.columns), "the columns that the file had when it was opened"
                )
            places[node] = found.op()
    return data.op().replace(places).to_expr() if places else data


def _embedded(opening: Opening) -> Expression:
    import ibis

    connection = ibis.duckdb.connect()
    try:
        return _record_opening(opening, connection)
    except Exception:
        connection.disconnect()
        raise


def _record_opening(opening: Opening, connection: Any) -> Expression:
    found = opening(connection)
    _openings(connection)[found.op().name] = opening
    return found


def _openings(connection: Any) -> dict[str, Opening]:
    """The files and frames that were opened here over a connection, by their names on it."""
    return connection.__dict__.setdefault("dpcompose_opened", {})


def _registered(connection: Any, frame: Any) -> Expression:
    """The frame as a view; the first one of a connection is called so, and others have names of their own."""
    name = f"frame_{uuid.uuid4().hex}" if _openings(connection) else "frame"
    connection.con.register(name, frame)
    return connection.table(name)


OBJECT_STORES = ("s3", "gs", "gcs", "r2")
"""Schemes that DuckDB's extension httpfs reads."""
_MAGIC = "*?["


def in_object_store(source: object) -> bool:
    """Whether it is the URL of files in an object store."""
    return isinstance(source, str) and "://" in source and urlsplit(source).scheme in OBJECT_STORES


def several(path: Path) -> bool:
    """Whether a path names a folder, or is a pattern for files."""
    return path.is_dir() or (any(mark in str(path) for mark in _MAGIC) and not path.exists())


def local_files(path: Path) -> Expression:
    """The Parquet files of a folder and of the folders in it, or those that a pattern fits.

    Raises:
        DomainError: If there are none, or a pattern fits other files too.
    """
    pattern = f"{glob.escape(str(path))}/**/*.parquet" if path.is_dir() else str(path)
    found = glob.glob(pattern, recursive=True)
    if not found or not all(each.endswith(".parquet") for each in found):
        raise DomainError(
            "source",
            str(path),
            "a folder of Parquet files, or a pattern that fits Parquet files alone",
        )
    return _read(pattern, str(path))


def stored_files(url: str) -> Expression:
    """The Parquet files of an object store; without credentials where none are set up for DuckDB.

    Raises:
        DomainError: If it names no Parquet files, or they cannot be read from here.
    """
    parts = urlsplit(url)
    if not parts.netloc or parts.username or parts.password or not url.endswith(("/", ".parquet")):
        domain = f"{parts.scheme}://bucket/folder/ or {parts.scheme}://bucket/name.parquet, * in names, no credentials"
        raise DomainError("source", f"{parts.scheme}://...", domain, "A URL for a folder ends in /")
    return _read(f"{url}**/*.parquet" if url.endswith("/") else url, f"{parts.scheme}://...")


def _read(pattern: str, shown: str) -> Expression:
    import duckdb

    found = None
    with suppress(OSError, duckdb.Error):
        found = of_parquet(pattern)
    # The engine's words may hold what the files do.
    if found is None:
        raise DomainError(
            "source", shown, "Parquet files that can be read, all with the same columns"
        )
    return found


def is_spark_frame(source: object) -> bool:
    """Whether it is a frame of Spark's; Spark is not imported to find out."""
    return (
        type(source).__module__.startswith("pyspark.sql.") and type(source).__name__ == "DataFrame"
    )


def spark_frame(frame: Any) -> Expression:
    """A frame of Spark's as a table: a view of it in its own session."""
    import ibis

    name = f"dpcompose_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    return ibis.pyspark.connect(frame.sparkSession).table(name)


@dataclass(frozen=True)
class Source:
    """A source that was opened.

    Args:
        label: What to call it in the ledger.
        data: Its rows, as an ibis table.
        engine: Where they are.
        base: The table of the database, or the frame, that it is.
        relation: What the database says of it; None for frames and files.
        identity: What a request is named by: where it is, never what it holds. A frame without a name is no other.
    """

    label: str
    data: Expression
    engine: Engine
    base: Any
    relation: Relation | None
    identity: str


@runtime_checkable
class ArrowStream(Protocol):
    """A frame of any library that offers its columns as Arrow does."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule of the stream."""
        ...


def opened(
    source: Any, *, name: str | None, schema: Mapping[str, str] | None, line_breaks: bool = False
) -> Source:
    """A source as an ibis table, and what is known of it.

    Raises:
        DomainError: If it is nothing that can be opened, or cannot be.
        UnsupportedError: If it is an ibis expression that is no plain table, or on an unknown engine.
        MissingExtraError: If ibis is not installed.
    """
    try:
        import ibis
    except ImportError:
        raise MissingExtraError("asking tables", "data") from None
    with without_warnings():
        label, data = _opened(source, name, line_breaks)
        table = base(data)
        stored, spark = in_object_store(source), is_spark_frame(source)
        foreign = (
            isinstance(source, ibis.Table)
            or spark
            or (isinstance(source, str) and "://" in source and not stored)
        )
        engine = _engine_of(data, foreign=foreign)
        relation = place = None
        if isinstance(source, str | os.PathLike) and not foreign:
            place = f"files {source}" if stored else f"file {Path(source).resolve()}"
        elif foreign and isinstance(table, ibis.expr.operations.DatabaseTable):
            with turn(data.get_backend()):
                engine.require(data.get_backend())
                relation = engine.relation(table, data.get_backend())
            place = relation.location
        identity = place or (uuid.uuid4().hex if name is None else f"named {name}")
        return Source(
            name or label, _typed(_nullable(data, table), schema), engine, table, relation, identity
        )


def _nullable(data: Expression, table: Any) -> Expression:
    """The same columns, each as one that may be NULL: to ibis another type, which it neither unites nor compares."""
    import ibis

    if all(each.nullable for each in table.schema.values()):
        return data
    schema = ibis.schema({name: each.copy(nullable=True) for name, each in table.schema.items()})
    return table.copy(schema=schema).to_expr().select(*data.columns)


def _engine_of(expression: Expression, *, foreign: bool) -> Engine:
    """The engine that holds a table.

    Args:
        expression: The table.
        foreign: Whether it was made elsewhere, with whatever is declared there.

    Raises:
        UnsupportedError: If it is none of DuckDB, PostgreSQL and Spark.
    """
    engines: dict[str, Engine] = {
        "duckdb": OnDuckDB(foreign=foreign),
        "postgres": OnPostgreSQL(),
        "pyspark": OnSpark(),
    }
    name = str(expression.get_backend().name)
    if name not in engines:
        reason = "its sums, orders and comparisons are not known to agree with the others'"
        raise UnsupportedError(f"a table on {name}", reason, "Use DuckDB, PostgreSQL or Spark")
    return engines[name]


def _name_of(table: Any) -> str:
    match table.op():
        case object(name=str(name)):
            return name
        case _:
            return "table"


def _opened(source: Any, name: str | None, line_breaks: bool) -> tuple[str, Expression]:
    import ibis

    match source:
        case ibis.Table():
            return _name_of(source), source
        case str() if in_object_store(source):
            return source.rstrip("/").rpartition("/")[2], stored_files(source)
        case str() if "://" in source:
            return _database(source, name)
        case str() | os.PathLike():
            return _file(Path(source), line_breaks)
        case _ if is_spark_frame(source):
            return "frame", spark_frame(source)
        case ArrowStream():
            return "frame", of_arrow(of_frame(source))
        case _:
            domain = "an ibis table, a pandas, polars, Arrow or Spark frame, a path, or the URL of a database or store"
            raise DomainError("source", type(source).__name__, domain)


def _file(path: Path, line_breaks: bool) -> tuple[str, Expression]:
    if several(path):
        return path.name, local_files(path)
    suffix = path.suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise DomainError("source", str(path), "a file whose name ends in .parquet or .csv")
    if not path.is_file():
        raise DomainError("source", str(path), "a file that exists")
    import duckdb

    data = None
    with suppress(OSError, duckdb.Error):
        data = (
            of_parquet(str(path))
            if suffix == ".parquet"
            else of_arrow(read_csv(path, line_breaks=line_breaks))
        )
    if data is None:
        raise DomainError("source", str(path), f"a {suffix[1:]} file that can be read")
    return path.name, data


def _database(url: str, name: str | None) -> tuple[str, Expression]:
    scheme = urlsplit(url).scheme
    if scheme not in _CONNECTIONS:
        raise DomainError(
            "source",
            f"{scheme}://...",
            "a URL such as postgresql://..., duckdb://... or spark://...",
        )
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
        raise DomainError(
            "source", f"{scheme}://...", f"a database that can be reached and has a table {name!r}"
        )
    return name, found


def _duckdb(url: str) -> Any:
    import ibis

    return ibis.duckdb.connect(url.removeprefix("duckdb://"), read_only=True)


def _postgresql(url: str) -> Any:
    """A connection that takes whatever libpq does: sockets, services, passwords from a file."""
    import ibis
    import psycopg

    def connect() -> None:
        backend.con = psycopg.connect(url, autocommit=True)
        backend._post_connect()

    backend: Any = ibis.postgres.from_connection(psycopg.connect(url, autocommit=True))
    backend.dpcompose_connect = connect
    return backend


def _spark(url: str) -> Any:
    """A session on the cluster of a spark:// URL, or the one that is running."""
    import ibis
    from pyspark.sql import SparkSession

    return ibis.pyspark.connect(SparkSession.builder.master(url).appName("dpcompose").getOrCreate())


def _typed(data: Expression, schema: Mapping[str, str] | None) -> Expression:
    """The columns of `schema` with these types; a value that does not read as one becomes NULL."""
    if schema is not None and not isinstance(schema, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(
            "schema", schema, "a mapping from columns to types, such as {'age': 'int64'}"
        )
    if not schema:
        return data
    import ibis

    if data.get_backend().name != "duckdb":
        raise DomainError(
            "schema", dict(schema), "nothing for a database", "Cast the columns in a view there"
        )
    found = data
    for name, wanted in schema.items():
        if name not in data.columns:
            raise DomainError("schema", name, f"names of columns: {', '.join(data.columns)}")
        try:
            dtype = ibis.dtype(wanted)
        except Exception:
            raise DomainError(
                "schema", wanted, "a type such as int64, float64, string, boolean, date"
            ) from None
        found = found.mutate(**{name: found[name].try_cast(dtype)})
    return found


_EXTRAS = {
    "postgres": ("psycopg", "postgres"),
    "postgresql": ("psycopg", "postgres"),
    "spark": ("pyspark", "spark"),
}
_CONNECTIONS = {
    "duckdb": _duckdb,
    "postgres": _postgresql,
    "postgresql": _postgresql,
    "spark": _spark,
}
