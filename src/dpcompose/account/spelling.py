"""Budgets as a command spells them: the kind of scope, the name of a filter, its parameters or a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpcompose.account.opening import open_partition, open_scope, open_slots, take_slot
from dpcompose.account.typed import exact
from dpcompose.adaptive import Odometer
from dpcompose.adaptive.description import FILTERS, from_description
from dpcompose.adaptive.filter import Filter
from dpcompose.errors import DomainError
from dpcompose.guarantee import Adjacency
from dpcompose.ledger import Kind, Ledger, Scope


@dataclass(frozen=True)
class Spelling:
    """A budget in words; amounts are decimal text, taken exactly.

    Args:
        kind: filter, slots or partition.
        filter: The name of a filter, such as concentrated; None for a scope that caps nothing itself.
        parameters: The filter's own parameters by name; empty with a target.
        target: epsilon, delta and mechanism_delta of a target, those that were given.
        slots: For slots, how many.
        price_delta: For slots, the delta at which they are charged to filters of (epsilon, delta).
        adjacency: add-remove, replace or zero-out.
        odometer: The probability that the reading of its odometer is ever exceeded; None for no odometer.
        note: Anything else to keep.
    """

    kind: str = "filter"
    filter: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    target: Mapping[str, str] = field(default_factory=dict[str, str])
    slots: int | None = None
    price_delta: str | None = None
    adjacency: str = "add-remove"
    odometer: str | None = None
    note: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def open(self, ledger: Ledger, path: str, *, actor: str, key: str | None = None) -> Scope:
        """Open it; in a scope of slots, take a slot.

        Raises:
            DomainError: A word that is none, or one that does not go with the others.
            UnsupportedError, LedgerError: See `open_scope`, `open_slots`, `open_partition`, `take_slot`.
        """
        if self.adjacency not in {each.value for each in Adjacency}:
            raise DomainError("adjacency", self.adjacency, ", ".join(each.value for each in Adjacency))
        common: dict[str, Any] = {"note": self.note, "actor": actor, "key": key}
        parent = path.rpartition("/")[0]
        if parent and ledger.balance(parent).scope.kind is Kind.SLOTS:
            if self != Spelling(note=self.note, adjacency=self.adjacency, odometer=self.odometer):
                raise DomainError("filter", self.filter, "nothing in a slot: its budget was fixed with the slots")
            take_slot(ledger, path, odometer=self._odometer(), **common)
            return ledger.balance(path).scope
        common["adjacency"] = Adjacency(self.adjacency)
        match self.kind:
            case Kind.SLOTS:
                chosen = self._filter()
                if chosen is None or self.slots is None:
                    raise DomainError("slots", self.slots, "a number of slots, and the filter that each has")
                return open_slots(ledger, path, slots=self.slots, filter=chosen, delta=self.price_delta, **common)
            case Kind.PARTITION:
                return open_partition(ledger, path, filter=self._filter(), **common)
            case Kind.FILTER:
                open_scope(ledger, path, filter=self._filter(), odometer=self._odometer(), **common)
                return ledger.balance(path).scope
            case _:
                raise DomainError("kind", self.kind, ", ".join(Kind))

    def _odometer(self) -> Odometer | None:
        return None if self.odometer is None else Odometer(float(exact("odometer", self.odometer)))

    def _filter(self) -> Filter | None:
        if self.filter is None:
            if self.parameters or self.target:
                raise DomainError("filter", None, f"the name of a filter: {', '.join(FILTERS)}")
            return None
        if self.filter not in FILTERS:
            raise DomainError("filter", self.filter, ", ".join(FILTERS))
        if self.parameters and self.target:
            raise DomainError("parameters", dict(self.parameters), "left out where a target epsilon is given")
        if self.parameters:
            return from_description({"filter": self.filter, "version": 1, **self.parameters})
        if "epsilon" not in self.target:
            raise DomainError("epsilon", None, "the target of the filter, or its own parameters")
        target = {name: exact(name, text) for name, text in self.target.items()}
        return FILTERS[self.filter].for_target(target.pop("epsilon"), **target)
