"""Turns at a tree: charges without terms go side by side, whatever weighs terms goes alone."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Condition, Lock

from dpcompose.errors import StoreError
from dpcompose.serve.database import Database, Run

LONGEST = 0.02
"""Seconds after which a crowd takes nobody in any more, so that whoever must be alone has a turn."""

_TERMS = " union all ".join(
    f"select 1 from service_{name} where root = ?{more}"
    for name, more in (("reservation", " and ended = 0"), ("quota", ""), ("threshold", ""))
)


@dataclass(eq=False)
class _Crowd:
    """Threads that charge one tree under one lock of the database, which a look at its terms begins."""

    born: float
    threads: int = 1
    plain: bool | None = None
    lock: ExitStack = field(default_factory=ExitStack)


@dataclass(eq=False)
class Turns:
    """Who may charge a tree now. No term is made or changed while anybody charges without heeding terms.

    Args:
        database: Its locks hold for every server.
    """

    database: Database
    _changed: Condition = field(default_factory=Condition)
    _crowds: dict[str, _Crowd] = field(default_factory=dict[str, _Crowd])
    _mine: defaultdict[str, Lock] = field(default_factory=lambda: defaultdict(Lock))

    @contextmanager
    def alone(self, root: str) -> Generator[Run]:
        """The tree to oneself, in one transaction."""
        with self._changed:
            mine = self._mine[root]
        with mine, self.database.locked(root) as run:
            yield run

    @contextmanager
    def together(self, root: str) -> Generator[bool]:
        """With others that do the same; gives whether the tree has no terms, and will have none until the end."""
        crowd = self._entered(root)
        try:
            yield bool(crowd.plain)
        finally:
            self._left(root, crowd)

    def _entered(self, root: str) -> _Crowd:
        with self._changed:
            while (crowd := self._crowds.get(root)) is not None:
                if crowd.plain is not None and time.monotonic() - crowd.born < LONGEST:
                    crowd.threads += 1
                    return crowd
                self._changed.wait()
            crowd = self._crowds[root] = _Crowd(time.monotonic())
            mine = self._mine[root]
        try:
            crowd.lock.enter_context(mine)
            run = crowd.lock.enter_context(self.database.locked(root, shared=True))
            plain = not run(f"select 1 from ({_TERMS}) as terms limit 1", (root, root, root))
        except BaseException:
            self._ended(root)
            crowd.lock.close()
            raise
        with self._changed:
            crowd.born, crowd.plain = time.monotonic(), plain
            self._changed.notify_all()
        return crowd

    def _left(self, root: str, crowd: _Crowd) -> None:
        with self._changed:
            crowd.threads -= 1
            if crowd.threads:
                return
            self._ended(root)
        with suppress(StoreError):  # what was charged is charged
            crowd.lock.close()

    def _ended(self, root: str) -> None:
        with self._changed:
            del self._crowds[root]
            self._changed.notify_all()
