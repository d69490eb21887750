"""Reading a long log page by page: each request costs what it looks at, not what the log holds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from dpcompose.errors import DomainError
from dpcompose.ledger import DisagreementError, Entry, Ledger, Replay, differences, root_of
from dpcompose.serve.asked import Answer, Fields
from dpcompose.serve.queue import heed

WINDOW = 5000
"""Numbers of a tree that one request for entries looks at."""
MOST_ENTRIES = 1000
FOLLOWED = 20_000
"""Entries that one request of a verification follows."""
RUNNING = 4
"""Verifications that are remembered; each remembers the keys of its tree."""


@dataclass(frozen=True)
class Page:
    """Entries, the newest first.

    Args:
        entries: At most a thousand.
        before: The number before which the next page begins; None at the end.
    """

    entries: list[Entry]
    before: int | None


def page(ledger: Ledger, scope: str, fields: Fields, wanted: Callable[[Entry], bool]) -> Page:
    """The newest entries at or below a scope among the numbers before the one that was asked."""
    with ledger.moment() as moment:
        moment.balance(scope)
        end = moment.snapshot.head(root_of(scope)).sequence + 1
        before = min(_place(fields, "before", end), end)
        first = max(before - WINDOW, 1)
        found = list(moment.snapshot.records_of(scope, below=True, after=first - 1, limit=WINDOW))
    entries: list[Entry] = []
    for record in reversed(found):
        if record.sequence < before and wanted(record.entry):
            entries.append(record.entry)
            if len(entries) == MOST_ENTRIES:
                return Page(entries, record.sequence if record.sequence > 1 else None)
    return Page(entries, first if first > 1 else None)


def _place(fields: Fields, name: str, default: int) -> int:
    """A number of an entry, which a URL brings as text."""
    value = fields.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        value = int(value)
    if not (type(value) is int and 0 <= value < 2**63):
        raise DomainError(name, value, "the number of an entry")
    return value


@dataclass(frozen=True)
class Verifier:
    """Follows the chain of a tree, some entries for each request."""

    ledger: Ledger
    _running: OrderedDict[tuple[str, str], Replay] = field(
        default_factory=OrderedDict[tuple[str, str], Replay]
    )
    _lock: Lock = field(default_factory=Lock)

    def follow(self, actor: str, root: str, fields: Fields) -> Answer:
        """Follow the entries after the number that was asked, 0 for all from the first; say how far that is.

        Only an answer with `done` says that the tree agrees: with its hashes, its rules, and its balances.

        Raises:
            DomainError: That number is not where this server stopped.
        """
        after = _place(fields, "after", 0)
        with self._lock:
            replay = self._running.pop((actor, root), None) if after else Replay(root)
        if replay is None or replay.last.sequence != after:
            raise DomainError(
                "after", after, "where this server stopped for you", "Begin again at 0"
            )
        found = self._followed(replay, root)
        if "followed" in found:
            with self._lock:
                self._running[actor, root] = replay
                while len(self._running) > RUNNING:
                    self._running.popitem(last=False)
        return found

    def follow_all(self, root: str) -> Answer:
        """Follow the entries of a tree to the last one."""
        replay = Replay(root)
        while "followed" in (found := self._followed(replay, root)):
            pass
        return found

    def _followed(self, replay: Replay, root: str) -> Answer:
        with self.ledger.moment() as moment:
            end = moment.snapshot.head(root)
            try:
                for record in moment.snapshot.records(
                    root, after=replay.last.sequence, limit=FOLLOWED
                ):
                    heed()
                    replay.follow(record)
            except DisagreementError:
                return {"agrees": False, "entries": end.sequence}
            done = replay.last.sequence >= end.sequence
            if done:
                nodes = moment.snapshot.nodes_between(root, f"{root}0")
                own = (node for node in nodes if root_of(node.scope.path) == root)
                agrees = replay.last == end and not list(differences(replay.balances, own))
                return {"agrees": agrees, "done": True, "entries": end.sequence, "hash": end.hash}
        return {
            "agrees": True,
            "done": False,
            "followed": replay.last.sequence,
            "entries": end.sequence,
        }
