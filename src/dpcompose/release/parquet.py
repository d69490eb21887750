"""Parquet files by one name: a file, a folder, a pattern, or a place in an object store; and the frames of Spark."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

import glob
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpcompose.errors import DomainError
from dpcompose.release.embedded import of_parquet
from dpcompose.release.engine import Expression

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
