"""Opens frames, files and database tables as queries of their engine."""

# The drivers have types in part only.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from dpcompose import check
from dpcompose.errors import DomainError, MissingExtraError, UnsupportedError, optional_library
from dpcompose.release.arrow import of_frame, read_csv
from dpcompose.release.engines import OnDuckDB, OnPostgreSQL, OnSpark, engine_of
from dpcompose.release.query import Engine, Query, TableName, without_warnings


def of_arrow(frame: Any) -> Query:
    """Return an Arrow table as a table of an in-memory DuckDB, without a copy.

    Raises:
        DomainError: If DuckDB has no such types.
    """
    import duckdb

    found = None
    with suppress(duckdb.Error):
        found = _embedded(lambda engine, name: engine.raw.register(name, frame))
    if found is None:
        types = ", ".join(sorted({str(each.type) for each in frame.schema}))
        raise DomainError(
            "source",
            types,
            "a frame whose types DuckDB holds",
            "Cast the columns, or leave some out",
        )
    return found


def of_parquet(path: str) -> Query:
    """Return Parquet files as a query; they are read when a question is asked."""
    return _embedded(lambda engine, name: engine.raw.read_parquet(path).create_view(name))


def _embedded(opening: Callable[[Engine, str], None]) -> Query:
    engine = OnDuckDB.embedded()
    try:
        return engine.opened(opening, f"frame_{uuid.uuid4().hex}")
    except Exception:
        engine.close()
        raise


OBJECT_STORES = ("s3", "gs", "gcs", "r2")
"""URL schemes of object stores that DuckDB's extension httpfs reads."""
_MAGIC = "*?["


def in_object_store(source: object) -> bool:
    """Whether the source is a URL of files in an object store."""
    return isinstance(source, str) and "://" in source and urlsplit(source).scheme in OBJECT_STORES


def several(path: Path) -> bool:
    """Whether a path is a folder or a pattern for files."""
    return path.is_dir() or (any(mark in str(path) for mark in _MAGIC) and not path.exists())


def local_files(path: Path) -> Query:
    """Return the Parquet files of a folder and its subfolders, or those that match a pattern.

    Raises:
        DomainError: If there are none, or the pattern matches other files too.
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


def stored_files(url: str) -> Query:
    """Return the Parquet files of an object store, without credentials if DuckDB has none.

    Raises:
        DomainError: If the URL names no Parquet files, or they cannot be read.
    """
    parts = urlsplit(url)
    if not parts.netloc or parts.username or parts.password or not url.endswith(("/", ".parquet")):
        domain = f"{parts.scheme}://bucket/folder/ or {parts.scheme}://bucket/name.parquet, * in names, no credentials"
        raise DomainError("source", f"{parts.scheme}://...", domain, "A URL for a folder ends in /")
    return _read(f"{url}**/*.parquet" if url.endswith("/") else url, f"{parts.scheme}://...")


def _read(pattern: str, shown: str) -> Query:
    import duckdb

    found = None
    with suppress(OSError, duckdb.Error):
        found = of_parquet(pattern)
    # The engine's message may quote contents of files.
    if found is None:
        raise DomainError(
            "source", shown, "Parquet files that can be read, all with the same columns"
        )
    return found


def is_spark_frame(source: object) -> bool:
    """Whether the source is a Spark frame, without importing Spark."""
    return (
        type(source).__module__.startswith("pyspark.sql.") and type(source).__name__ == "DataFrame"
    )


@runtime_checkable
class ArrowStream(Protocol):
    """A frame of any library that exports its columns as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a PyCapsule of the Arrow stream."""


def opened(
    source: Any, *, name: str | None, schema: Mapping[str, str] | None, line_breaks: bool = False
) -> dict[str, Any]:
    """Open a source as a query; return the fields of a `UnitTable` that follow from it.

    Its name is that in the ledger. A source is identified in requests by its location, never by its
    contents; every unnamed frame is a source of its own.

    Raises:
        DomainError: If it is no known kind of source, or cannot be opened.
        UnsupportedError: If it is a table of ibis.
        MissingExtraError: If a library is not installed.
    """
    if find_spec("duckdb") is None or find_spec("pyarrow") is None:
        raise MissingExtraError("asking tables", "data")
    with without_warnings():
        label, data, base = _opened(source, name, line_breaks)
        engine, relation, place = data.engine, None, None
        if base:
            with engine.turn:
                engine.require()
                relation = engine.relation(base)
            place = relation.location
        elif isinstance(source, str | os.PathLike):
            stored = in_object_store(source)
            place = f"files {source}" if stored else f"file {Path(source).resolve()}"
        identity = place or (uuid.uuid4().hex if name is None else f"named {name}")
        opened = {"name": name or label, "data": _typed(data, schema), "source": identity}
        return opened | {"base": base, "relation": relation}


def _opened(source: Any, name: str | None, line_breaks: bool) -> tuple[str, Query, TableName]:
    """Return the label of a source, its rows, and the database table that it is."""
    if isinstance(source, str) and "://" in source and not in_object_store(source):
        return _of_database(lambda: _connected(source), f"{urlsplit(source).scheme}://...", name)
    engine = engine_of(source)
    if engine is not None:
        return _of_database(lambda: engine, f"a connection of {engine.name}", name)
    if type(source).__module__.partition(".")[0] == "ibis":
        reason = "in its expressions one unit's rows can decide what becomes of the rows of others"
        remedy = (
            "Give the frame, the file or the database that it reads, such as "
            'release.table("duckdb://visits.db", name="visits", ...)'
        )
        raise UnsupportedError("a table of ibis", reason, remedy)
    match source:
        case str() if in_object_store(source):
            return source.rstrip("/").rpartition("/")[2], stored_files(source), ()
        case str() | os.PathLike():
            return *_file(Path(source), line_breaks), ()
        case _ if is_spark_frame(source):
            view, engine = f"dpcompose_{uuid.uuid4().hex}", OnSpark(source.sparkSession)
            source.createOrReplaceTempView(view)
            return "frame", engine.table((view,)), (view,)
        case ArrowStream():
            return "frame", of_arrow(of_frame(source)), ()
        case _:
            domain = "a pandas, polars, Arrow or Spark frame, a path, the URL of a database or store, or a connection"
            raise DomainError("source", type(source).__name__, domain)


def _file(path: Path, line_breaks: bool) -> tuple[str, Query]:
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


def _of_database(
    connected: Callable[[], Engine], where: str, name: str | None
) -> tuple[str, Query, TableName]:
    if name is None:
        raise DomainError("name", name, "the name of a table of the database")
    base = tuple(name.rsplit(".", 1))
    engine = data = None
    try:
        engine = connected()
        with engine.turn:
            data = engine.table(base)
    except (DomainError, MissingExtraError):
        raise
    except Exception:
        data = None
    # A driver's message may contain the password of the URL.
    if data is None:
        domain = f"a database that can be reached and has a table {name!r}"
        raise DomainError("source", where, domain)
    return name, data, base


def _connected(url: str) -> Engine:
    """Connect to the engine of a URL."""
    scheme = urlsplit(url).scheme
    if scheme not in _CONNECTIONS:
        domain = "a URL such as postgresql://..., duckdb://... or spark://..."
        raise DomainError("source", f"{scheme}://...", domain)
    connect, library, extra = _CONNECTIONS[scheme]
    optional_library(library, f"a table on {scheme}://", extra)
    return connect(url)


def _duckdb(url: str) -> Engine:
    import duckdb

    return OnDuckDB(duckdb.connect(url.removeprefix("duckdb://"), read_only=True))


def _postgresql(url: str) -> Engine:
    """Connect as libpq does, including by socket, service file and password file."""
    import psycopg

    def connect() -> Any:
        return psycopg.connect(url, autocommit=True)

    return OnPostgreSQL(connect(), connect=connect)


def _spark(url: str) -> Engine:
    """Return a session on the cluster of a spark:// URL, or the running session."""
    from pyspark.sql import SparkSession

    return OnSpark(SparkSession.builder.master(url).appName("dpcompose").getOrCreate())


def _typed(data: Query, schema: Mapping[str, str] | None) -> Query:
    """Cast the columns in `schema` to these types; a value that does not convert becomes NULL."""
    accepted = "a mapping from columns to types, such as {'age': 'int64'}"
    schema = {} if schema is None else check.kind("schema", schema, Mapping, accepted)
    if not schema:
        return data
    engine = data.engine
    if not isinstance(engine, OnDuckDB):
        raise DomainError(
            "schema", dict(schema), "nothing for a database", "Cast the columns in a view there"
        )
    columns: dict[str, str] = {}
    for name, wanted in schema.items():
        if name not in data.types:
            raise DomainError("schema", name, f"names of columns: {', '.join(data.columns)}")
        columns[name] = engine.tried(data[name], wanted)
    return data.mutate(**columns)


_CONNECTIONS: Mapping[str, tuple[Callable[[str], Engine], str, str]] = {
    "duckdb": (_duckdb, "duckdb", "data"),
    "postgres": (_postgresql, "psycopg", "postgres"),
    "postgresql": (_postgresql, "psycopg", "postgres"),
    "spark": (_spark, "pyspark", "spark"),
}
"""For the scheme of a URL: what connects to its engine, the library for that, and the extra that has it."""
