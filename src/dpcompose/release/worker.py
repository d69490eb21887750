"""The tables of a catalog in a process of their own, and tables without rows that are told from a catalog alone.

The process has the rows and nothing else: no ledger, no token. It is told SQL that was built from checked trees, and
gives back integers. Each text is cut to the longest that the catalog declares before any function takes it, and rows
whose person has a longer name belong to nobody: so the work for a row is bounded, whoever is in the table.
"""

# The drivers have types in part only.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from threading import Lock
from time import monotonic
from types import MappingProxyType
from typing import Any

from dpcompose.errors import DomainError, EngineError, UnsupportedError
from dpcompose.release.bounds import Bounds
from dpcompose.release.catalog import LONGEST, Catalog, arguments_of_table
from dpcompose.release.engines import OnDuckDB
from dpcompose.release.public import PublicSource
from dpcompose.release.query import KINDS, Query
from dpcompose.release.table import CATALOGUED, Table, columns_of, table

VIEW = "counter_"
STARTING = 120.0
"""Seconds in which the process opens its tables."""


@dataclass(frozen=True)
class Rows:
    """The rows of a statement."""

    rows: Sequence[tuple[Any, ...]]

    def fetchall(self) -> Sequence[tuple[Any, ...]]:
        """All of them."""
        return self.rows


@dataclass
class Worker:
    """A connection of DuckDB in another process, as an engine needs it. A process that fails once is ended.

    Args:
        definitions: The tables by name, as a catalog has them.
        until: When the statement that runs has to be done, by the clock `monotonic`.
    """

    definitions: Mapping[str, Mapping[str, Any]]
    until: float = field(default_factory=lambda: monotonic() + STARTING)
    _turn: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_read, args=(theirs, dict(self.definitions)), daemon=True
        )
        self.process.start()
        theirs.close()
        if not self._received()[0]:
            raise EngineError("DuckDB", charged=False)

    def execute(self, words: str, values: Sequence[Any] = ()) -> Rows:
        """The rows of a statement.

        Raises:
            RuntimeError: It failed or took too long, or the process is gone; nothing else is said.
        """
        return Rows(self._request("execute", words, list(values)) or [])

    def register(self, name: str, frame: Any) -> None:
        """A public table under a name."""
        self._request("register", name, frame)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()

    def _request(self, method: str, *values: Any) -> Any:
        with self._turn:
            with suppress(OSError):
                self._pipe.send((method, values))
            good, rows = self._received()
            if not good:
                self.close()
                raise RuntimeError("the worker failed")
            return rows

    def _received(self) -> tuple[bool, Any]:
        with suppress(EOFError, OSError):
            if self._pipe.poll(max(self.until - monotonic(), 0.0)):
                return self._pipe.recv()
        return False, None


def _read(pipe: Connection, definitions: Mapping[str, Mapping[str, Any]]) -> None:
    """Open the tables, then answer statements until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in [each for each in os.environ if each.startswith("DPCOMPOSE_")]:
        del os.environ[name]
    engine: Any = None
    for name, definition in definitions.items():
        made = table(**arguments_of_table(definition))
        engine = made.engine if engine is None else engine
        data = made.data.over(engine)
        if made.relation is not None or data is None:
            raise UnsupportedError(
                "a database behind a counter", "its counter reads files", "Name a file"
            )
        for each in data.tables():
            engine.open(each)
        words = _cut(made, data, definition.get("longest", LONGEST)).words
        engine.raw.execute(f"CREATE TEMP VIEW {engine.quoted(VIEW + name)} AS {words}")
    pipe.send((True, None))
    while True:
        method, values = pipe.recv()
        try:
            found = getattr(engine.raw, method)(*values)
            pipe.send((True, found.fetchall() if method == "execute" else None))
        except Exception:
            # Its words may speak of rows.
            pipe.send((False, None))


def _cut(source: Table, data: Query, longest: int) -> Query:
    texts = [each.name for each in source.columns if each.kind == "text"]
    units = [f"LENGTH({data[name]}) <= {longest}" for name in texts if name in source.unit]
    others = [name for name in texts if name not in source.unit]
    short = {
        name: source.engine.cast(f"SUBSTRING({data[name]}, 1, {longest})", "string")
        for name in others
    }
    return data.filter(*units).mutate(**short)


def opened_in(catalog: Catalog, worker: Worker) -> dict[str, Table]:
    """The tables of a catalog, whose rows are read by a worker.

    Raises:
        DomainError: If the columns of one are no longer those that were catalogued.
    """
    engine = OnDuckDB(worker, foreign=False)
    return {
        name: _of_catalog(name, description, engine.table((VIEW + name,)), catalog.public)
        for name, description in catalog.described.items()
    }


def without_rows(
    tables: Mapping[str, Mapping[str, Any]],
    public: Mapping[str, PublicSource] = MappingProxyType({}),
) -> dict[str, Table]:
    """The tables that are described, with no rows in them: what is decided without looking at rows is the same."""
    engine, words = OnDuckDB.embedded(), {type: word for word, type in reversed(KINDS.items())}
    for name, description in tables.items():
        columns = ", ".join(
            f"{engine.quoted(column)} {words.get(type, type)}"
            for column, type in description["types"]
        )
        engine.raw.execute(f"CREATE TABLE {engine.quoted(name)} ({columns})")
    return {
        name: _of_catalog(name, description, engine.table((name,)), public)
        for name, description in tables.items()
    }


def _of_catalog(
    name: str, description: Mapping[str, Any], data: Query, public: Mapping[str, PublicSource]
) -> Table:
    if [*data.types.items()] != [tuple(each) for each in description["types"]]:
        raise DomainError(
            name, data.columns, f"the columns catalogued, {description['types']}", "Ask the keeper"
        )
    return Table(
        name,
        tuple(description["unit"]),
        Bounds(*description["bounds"]),
        columns_of(data),
        data=data,
        source=f"{CATALOGUED}{description['version']} {name}",
        ranges={column: tuple(ends) for column, ends in description["ranges"].items()},
        public_tables=public,
    )
