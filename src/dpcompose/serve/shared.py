"""A counter of several servers over one database, which share the turn, the mark of who reads rows, and the answers.

Servers queue for a lock that the database keeps for each scope. It ends with its server, or with the connection that
took it. Whoever reads rows has left a mark before; so a mark that the next one finds was left by a server that died.
An answer becomes visible in the transaction that deletes the mark of its own attempt. Before that it is stored
encrypted, and its key is in memory only. At most one draw is ever made for a charge: so whatever the log of the
database holds of a transaction that was lost, nothing was chosen among several draws.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from dpcompose import release
from dpcompose.errors import StoreError
from dpcompose.ledger import Receipt

_TABLES = (
    "CREATE TABLE counter_answer (scope TEXT, name TEXT, body TEXT NOT NULL, key TEXT, "
    "stored TIMESTAMPTZ NOT NULL DEFAULT now(), PRIMARY KEY (scope, name))",
    "CREATE INDEX counter_answer_stored ON counter_answer (scope, stored)",
    "CREATE INDEX counter_answer_pending ON counter_answer (scope) WHERE key IS NULL",
)
_MARK = "SELECT body FROM counter_answer WHERE scope = ? AND name = 'reading'"
_NEW = "INSERT INTO counter_answer (scope, name, body) VALUES (?, ?, ?)"
_UNMARK = "DELETE FROM counter_answer WHERE scope = ? AND name = 'reading' AND body = ?"
_SHOW = (
    f"WITH own AS ({_UNMARK} RETURNING scope) UPDATE counter_answer SET key = ? FROM own "
    "WHERE counter_answer.scope = own.scope AND name = ? RETURNING name"
)
_FIND = "SELECT key, body FROM counter_answer WHERE scope = ? AND name = ? AND key IS NOT NULL"
_DELETE = (
    "DELETE FROM counter_answer WHERE scope = ? AND name <> 'reading' "
    "AND (key IS NULL OR stored < now() - make_interval(days => ?))"
)
LONGEST = 36_600
"""Days for which an answer is stored."""


@dataclass(eq=False)
class Shared(release.Shelf):
    """The turn, the mark and the answers of one scope.

    Args:
        store: The store of the ledger, on PostgreSQL.
        scope: The path of the scope.
    """

    store: Any
    scope: str
    _lock: Lock = field(default_factory=Lock)
    _rows: Any = None
    _attempt: str = ""

    def __post_init__(self) -> None:
        with self.store.turn("counter_answer") as rows:
            if rows.row("SELECT to_regclass('counter_answer')") == (None,):
                for statement in _TABLES:
                    rows.run(statement)

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Keep all other servers and threads from what follows; the other methods are for such a block."""
        with self._lock, self.store.turn(f"counter {self.scope}") as self._rows:
            yield

    def exists(self) -> bool:
        """Whether somebody's mark is there; from then on it is one's own."""
        mark = self._rows.row(_MARK, (self.scope,))
        self._attempt = "" if mark is None else mark[0]
        return mark is not None

    def touch(self) -> None:
        """Leave a mark, unless there is one."""
        if not self._attempt:
            self._attempt = secrets.token_hex(16)
            self._rows.run(_NEW, (self.scope, "reading", self._attempt))

    def unlink(self, *, missing_ok: bool = True) -> None:
        """Delete the own mark, by whatever connection there is."""
        if self._attempt:
            with self.store.turn(f"mark {self._attempt}") as rows:
                rows.run(_UNMARK, (self.scope, self._attempt))
            self._attempt = ""

    def turn(self, receipt: Receipt) -> AbstractContextManager[object]:
        """Whoever asks has the turn of the scope already."""
        return nullcontext()

    def read(self, name: str) -> tuple[str, str, str] | None:
        row = self._rows.row(_FIND, (self.scope, name))
        return None if row is None else (*row, self.store.url)

    def write(self, name: str, text: str) -> None:
        self._rows.run(_NEW, (self.scope, name, text))

    def show(self, name: str, key: str) -> None:
        if not self._rows.run(_SHOW, (self.scope, self._attempt, key, name)):
            raise StoreError(self.store.url, "another server has closed these tables", "Ask anew")
        self._attempt = ""

    def delete_unstored(self, days: float) -> None:
        """Delete answers that are too old, and those that never became visible."""
        self._rows.run(_DELETE, (self.scope, int(min(days, LONGEST))))
