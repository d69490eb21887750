"""The embedded DuckDB: each file or frame has a connection of its own, until it is asked together with another one."""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.release.engine import Expression, turn

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
        found = _opened(lambda connection: _registered(connection, frame))
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
    return _opened(lambda connection: connection.read_parquet(path))


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
            found = backend.table(name) if name is not None else _kept(opening, backend)
            if found.schema() != node.schema:
                raise DomainError(
                    "table", list(found.columns), "the columns that the file had when it was opened"
                )
            places[node] = found.op()
    return data.op().replace(places).to_expr() if places else data


def _opened(opening: Opening) -> Expression:
    import ibis

    connection = ibis.duckdb.connect()
    try:
        return _kept(opening, connection)
    except Exception:
        connection.disconnect()
        raise


def _kept(opening: Opening, connection: Any) -> Expression:
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
