"""The scopes below one top-level scope that are about a person, with the charges of each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dpcompose.account.scope import Budgeted
from dpcompose.adaptive import Odometer
from dpcompose.errors import DomainError
from dpcompose.ledger import Entry, Kind, Moment
from dpcompose.ledger.entry import GRANTED, OPENED

RECORD = "open elsewhere"
"""What an opening's description names, by path: the hashes of the entries that opened budgets in other trees."""


@dataclass(frozen=True)
class Tree:
    """A scope, and what below it is about the person.

    Args:
        budget: The scope.
        charges: The entries of its own charges, oldest first.
        children: The scopes below it that are about the person.
        chosen: Whether a path names this scope or one above it: then everything below it is about the person.
        odometer: The nearest one at it or above, with the path and the entry where it was fixed.
        hash: Of the entry that opened it.
        records: For the top-level scope, the entries below it that record hashes of openings elsewhere, with these.
    """

    budget: Budgeted
    charges: tuple[Entry, ...]
    children: tuple[Tree, ...]
    chosen: bool
    odometer: tuple[str, Odometer, int] | None
    hash: str = ""
    records: tuple[tuple[int, frozenset[str]], ...] = ()

    @classmethod
    def of(cls, ledger: Moment, root: str, paths: Sequence[str]) -> Self:
        """The tree below a top-level scope, of the scopes on the way to the paths and of all below them."""
        budgets = {scope.path: Budgeted.of(scope) for scope in ledger.scopes(root) if _about(scope.path, paths)}
        charges: defaultdict[str, list[Entry]] = defaultdict(list)
        hashes: dict[str, str] = {}
        records: list[tuple[int, frozenset[str]]] = []
        for entry in ledger.entries(root):
            if entry.kind == GRANTED and entry.scope in budgets:
                charges[entry.scope].append(entry)
            elif entry.kind == OPENED:
                hashes[entry.scope] = entry.hash
                if RECORD in entry.description:
                    records.append((entry.sequence, _hashes(entry.description[RECORD])))
        below: defaultdict[str, list[str]] = defaultdict(list)
        for path in budgets:
            below[path.rpartition("/")[0]].append(path)

        def built(path: str, above: tuple[str, Odometer, int] | None) -> Self:
            own = budgets[path].odometer
            nearest = (path, own, budgets[path].scope.opened) if own is not None else above
            children = tuple(built(child, nearest) for child in below[path])
            chosen = any(path == each or path.startswith(f"{each}/") for each in paths)
            recorded = tuple(records) if path == root else ()
            own_hash, own_charges = hashes.get(path, ""), tuple(charges[path])
            return cls(budgets[path], own_charges, children, chosen, nearest, own_hash, recorded)

        return built(root, None)

    @property
    def kind(self) -> Kind:
        """The kind of the scope."""
        return self.budget.scope.kind

    @property
    def parts_people(self) -> bool:
        """Whether the person is in one child only, nobody said which: the worst of them counts."""
        return self.kind is Kind.PARTITION and self.chosen

    @property
    def first(self) -> float:
        """The number of the first charge in it; infinite if there is none."""
        return min((entry.sequence for node in self.all() for entry in node.charges[:1]), default=math.inf)

    def records_before_charges(self, hashes: Iterable[str]) -> bool:
        """Whether one entry, before the first charge in it, records all of these."""
        return any(number < self.first and recorded >= set(hashes) for number, recorded in self.records)

    def all(self) -> Iterator[Tree]:
        """This scope and all below it."""
        yield self
        for child in self.children:
            yield from child.all()


def trees_of(ledger: Moment, paths: Sequence[str]) -> list[Tree]:
    """The trees of some scopes, one for each top-level scope.

    Raises:
        DomainError: If `paths` is no sequence, or an empty one.
        UnknownScopeError: If there is no such scope.
    """
    if isinstance(paths, str) or not isinstance(paths, Sequence) or not paths:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("paths", paths, "a sequence of at least one path")
    inside: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        scope = ledger.balance(path).scope
        inside.setdefault(scope.root, []).append(scope.path)
    return [Tree.of(ledger, root, below) for root, below in inside.items()]


def _hashes(said: Any) -> frozenset[str]:
    """The hashes of a record, which anybody may have written; what cannot be read records nothing."""
    found = said.values() if isinstance(said, dict) else ()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return frozenset(each for each in found if isinstance(each, str))  # pyright: ignore[reportUnknownVariableType]


def _about(scope: str, paths: Sequence[str]) -> bool:
    return any(path == scope or path.startswith(f"{scope}/") or scope.startswith(f"{path}/") for path in paths)
