"""The scopes below one top-level scope that are about a person, with the charges of each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from dpcompose.account.scope import Budgeted
from dpcompose.adaptive import Odometer
from dpcompose.ledger import Entry, Kind, Moment
from dpcompose.ledger.entry import GRANTED


@dataclass(frozen=True)
class Tree:
    """A scope, and what below it is about the person.

    Args:
        budget: The scope.
        charges: The entries of its own charges, oldest first.
        children: The scopes below it that are about the person.
        chosen: Whether a path names this scope or one above it: then everything below it is about the person.
        odometer: The nearest one at it or above, with the path and the entry where it was fixed.
    """

    budget: Budgeted
    charges: tuple[Entry, ...]
    children: tuple[Tree, ...]
    chosen: bool
    odometer: tuple[str, Odometer, int] | None

    @classmethod
    def of(cls, ledger: Moment, root: str, paths: Sequence[str]) -> Self:
        """The tree below a top-level scope, of the scopes on the way to the paths and of all below them."""
        budgets = {scope.path: Budgeted.of(scope) for scope in ledger.scopes(root) if _about(scope.path, paths)}
        charges: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in ledger.entries(root):
            if entry.kind == GRANTED and entry.scope in budgets:
                charges[entry.scope].append(entry)
        below: defaultdict[str, list[str]] = defaultdict(list)
        for path in budgets:
            below[path.rpartition("/")[0]].append(path)

        def built(path: str, above: tuple[str, Odometer, int] | None) -> Self:
            own = budgets[path].odometer
            nearest = (path, own, budgets[path].scope.opened) if own is not None else above
            children = tuple(built(child, nearest) for child in below[path])
            chosen = any(path == each or path.startswith(f"{each}/") for each in paths)
            return cls(budgets[path], tuple(charges[path]), children, chosen, nearest)

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

    def all(self) -> Iterator[Tree]:
        """This scope and all below it."""
        yield self
        for child in self.children:
            yield from child.all()


def _about(scope: str, paths: Sequence[str]) -> bool:
    return any(path == scope or path.startswith(f"{scope}/") or scope.startswith(f"{path}/") for path in paths)
