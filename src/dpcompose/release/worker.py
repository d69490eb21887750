"""Runs the tables of a catalog in a separate process.

The process has the rows and nothing else: no ledger, no token, no environment variable, no open
file of the service. It runs one SELECT at a time, built from checked syntax trees, and returns
integers. There DuckDB reads no other file and no URL, and writes nothing; a table of PostgreSQL is
read by a connection that may not write. Memory is limited, and no core is dumped. Each text is cut
to the length that the catalog declares before any function uses it, and rows whose unit is a longer
text are left out. So the work for each row is bounded, whatever the rows contain.
"""

# The drivers have types in part only.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import DEVNULL, Popen
from threading import Lock
from time import monotonic
from typing import Any

from dpcompose.account import Account
from dpcompose.errors import EngineError, UnsupportedError
from dpcompose.release.bounding import Binding
from dpcompose.release.catalog import LONGEST, Catalog, arguments_of_table, described_table
from dpcompose.release.engines import OnDuckDB, OnPostgreSQL
from dpcompose.release.query import Query
from dpcompose.release.source import in_object_store, several
from dpcompose.release.table import Table, table

VIEW = "counter_"
STARTING = 120.0
"""Seconds within which the process must open its tables."""
_LOCKED = (
    "SET temp_directory = ''",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""After these statements DuckDB reads only allowed files and writes nothing, irrevocably."""
_READ_ONLY = (
    "SET default_transaction_read_only = on",
    "SET client_connection_check_interval = 1000",
)
"""After these statements PostgreSQL writes nothing, and ends a statement for which nobody waits."""


class _Checked(OnPostgreSQL):
    """PostgreSQL in another process, which has checked its connection."""

    def require(self) -> None:
        """Accept the connection."""


@dataclass(frozen=True)
class Rows:
    """The result rows of a statement."""

    rows: Sequence[tuple[Any, ...]]

    def fetchall(self) -> Sequence[tuple[Any, ...]]:
        """Return all rows."""
        return self.rows


@dataclass
class Worker:
    """A connection of an engine in another process, with the interface that an engine needs. A
    process that fails once is ended.

    Args:
        definitions: The tables by name, as in a catalog.
        memory: The memory limit in gigabytes.
        until: The deadline of the running statement, by the clock `monotonic`.
    """

    definitions: Mapping[str, Mapping[str, Any]]
    memory: float = 4.0
    until: float = field(default_factory=lambda: monotonic() + STARTING)
    _turn: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        self._pipe, theirs = Pipe()
        self.process = _started(theirs)
        theirs.close()
        self._pipe.send((dict(self.definitions), int(self.memory * 2**30)))
        good, self._engine = self._received()
        if not good:
            self.close()
            raise EngineError("the engine of the tables", charged=False)

    def execute(self, words: str, values: Sequence[Any] = ()) -> Rows:
        """Run a statement and return its rows.

        Raises:
            RuntimeError: If it failed, took too long, or the process has ended; the reason is not
                revealed.
        """
        return Rows(self._request("execute", words, list(values)) or [])

    def register(self, name: str, frame: Any) -> None:
        """Register a public table under a name."""
        self._request("register", name, frame)

    def tables(self, catalog: Catalog) -> dict[str, Table]:
        """Return the tables of a catalog, whose rows are read in the process.

        From here on the scope stores its unit and its truncation key, so that no analyst chooses
        them.

        Raises:
            DomainError: If the columns of a table are no longer those that were catalogued.
        """
        engine = _Checked(self) if self._engine == _Checked.name else OnDuckDB(self, foreign=False)
        tables = {
            name: described_table(name, each, engine.table((VIEW + name,)), catalog.public)
            for name, each in catalog.described.items()
        }
        account = Account(catalog.ledger, scope=catalog.scope)
        own = Binding.of(next(iter(tables.values())))
        if own.stored(account) is own:
            own.write(account, actor="keeper")
        return tables

    @property
    def outdated(self) -> bool:
        """Whether the process has ended, or a table of its database is no longer the one that it opened."""
        with suppress(RuntimeError):
            if self._engine == _Checked.name and self._request("outdated"):
                self.close()
        return self.process.returncode is not None

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()

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


def _started(pipe: Connection) -> Popen[bytes]:
    """Start a process that inherits one end of a pipe. Its error output may reveal rows and is
    discarded.
    """
    number, path = pipe.fileno(), os.pathsep.join(map(os.path.abspath, sys.path))
    line = f"from dpcompose.release.worker import answer; answer({number})"
    return Popen(
        [sys.executable, "-c", line], pass_fds=[number], env={"PYTHONPATH": path}, cwd="/",
        stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL,
    )  # fmt: skip


def answer(number: int) -> None:
    """Main loop of the process: open the tables, then answer statements until the pipe is closed.

    Args:
        number: The file descriptor of its end of the pipe.
    """
    from duckdb import DuckDBPyConnection

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = Connection(number)
    definitions, memory = pipe.recv()
    for limit, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        resource.setrlimit(limit, (most, most))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    raw = _opened(definitions, memory)
    read = _rows if isinstance(raw, DuckDBPyConnection) else _rows_of_postgres
    at_first = _state(raw, definitions) if read is _rows_of_postgres else None
    pipe.send((True, OnDuckDB.name if read is _rows else _Checked.name))
    while True:
        method, values = pipe.recv()
        rows: Any = None
        try:
            if method == "execute":
                rows = read(raw, *values)
            elif method == "outdated":
                rows = _state(raw, definitions) != at_first
            else:
                raw.register(*values)
            pipe.send((True, rows))
        except Exception:
            # The engine's message may reveal rows.
            pipe.send((False, None))


def _opened(definitions: Mapping[str, Mapping[str, Any]], memory: int) -> Any:
    """Return a connection that has the tables under their names: an in-memory DuckDB for files,
    which has no other access, or PostgreSQL.
    """
    engine: Any = None
    files: list[str] = []
    folders: list[str] = []
    for name, definition in definitions.items():
        if in_object_store(definition["source"]):
            raise UnsupportedError(
                "an object store", "a counter reads local files only", "Use a file"
            )
        made = table(**arguments_of_table(definition))
        engine = made.engine if engine is None else engine
        path = Path(definition["source"])
        if made.relation is not None:
            _require_plain(made, definitions)
            data = made.data
        elif several(path):
            folders.append(str(path if path.is_dir() else path.parent))
            data = made.data.over(engine)
        else:
            files.append(str(path))
            data = made.data.over(engine)
        if data is None:
            raise UnsupportedError("files beside a database", "a process reads one of them")
        for each in data.tables():
            engine.open(each)
        words = _cut(made, data, definition.get("longest", LONGEST)).words
        engine.raw.execute(f"CREATE TEMP VIEW {engine.quoted(VIEW + name)} AS {words}")
    if isinstance(engine, OnPostgreSQL):
        engine.require()
        for words in _READ_ONLY:
            engine.raw.execute(words)
        return engine.raw
    for name, allowed in (("allowed_paths", files), ("allowed_directories", folders)):
        engine.raw.execute(f"SET {name} = [{', '.join(map(engine.text, allowed))}]")
    for words in (f"SET memory_limit = '{memory * 3 // 4}B'", *_LOCKED):
        engine.raw.execute(words)
    return engine.raw


def _state(raw: Any, definitions: Mapping[str, Mapping[str, Any]]) -> object:
    """Return which tables of PostgreSQL bear the names of a catalog, what it states about them, and their columns."""
    engine, found = OnPostgreSQL(raw), list[object]()
    for each in definitions.values():
        name = tuple(each["name"].rsplit(".", 1))
        table = engine.table(name)
        (number,) = raw.execute("SELECT to_regclass(%s)::oid", [table.name]).fetchone()
        found.append((number, engine.relation(name), table.types))
    return found


def _require_plain(source: Table, definitions: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a table of a database other than PostgreSQL, a view, and one beside other sources."""
    sources = {each["source"] for each in definitions.values()}
    plain = source.relation is not None and source.relation.plain
    if not (plain and len(sources) == 1 and isinstance(source.engine, OnPostgreSQL)):
        reason = "a counter reads files, or plain tables of one PostgreSQL database"
        raise UnsupportedError("this source behind a counter", reason)


def _rows_of_postgres(raw: Any, words: str, values: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
    """Run one statement in a transaction that may not write, and return its rows; SET is ignored."""
    if words.startswith("SET "):
        return []
    return raw.execute(words, values or None, prepare=True).fetchall()


def _rows(raw: Any, words: str, values: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
    """Run one SELECT and return its rows; SET is ignored, since settings are fixed at the start."""
    kinds = [each.type.name for each in raw.extract_statements(words)]
    if kinds == ["SET"]:
        return []
    if kinds != ["SELECT"]:
        raise UnsupportedError("this statement", "the process answers one SELECT at a time")
    return raw.execute(words, values).fetchall()


def _cut(source: Table, data: Query, longest: int) -> Query:
    texts = [each.name for each in source.columns if each.kind == "text"]
    units = [f"LENGTH({data[name]}) <= {longest}" for name in texts if name in source.unit]
    others = [name for name in texts if name not in source.unit]
    short = {
        name: source.engine.cast(f"SUBSTRING({data[name]}, 1, {longest})", "string")
        for name in others
    }
    return data.filter(*units).mutate(**short)
