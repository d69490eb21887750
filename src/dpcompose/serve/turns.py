"""Turns at a tree: charges without terms go together, whatever weighs terms goes alone."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from dpcompose.serve.database import Database, Run

_TERMS = " union all ".join(
    f"select 1 from service_{name} where root = ?{more}"
    for name, more in (("reservation", " and ended = 0"), ("quota", ""), ("threshold", ""))
)


@dataclass(eq=False)
class Turns:
    """Who may charge a tree now. No term is made or changed while anybody charges without heeding terms.

    Args:
        database: Its locks hold for every server.
    """

    database: Database
    _mine: dict[str, Lock] = field(default_factory=dict[str, Lock])

    @contextmanager
    def alone(self, root: str, *, shared: bool = False) -> Generator[Run]:
        """The tree to oneself, in one transaction; in a shared turn, other servers may have one of theirs."""
        with self._mine.setdefault(root, Lock()), self.database.locked(root, shared=shared) as run:
            yield run

    @contextmanager
    def plain(self, root: str) -> Generator[bool]:
        """A shared turn; gives whether the tree has no terms, and will have none until the end."""
        with self.alone(root, shared=True) as run:
            yield not run(f"select 1 from ({_TERMS}) as terms limit 1", (root, root, root))
