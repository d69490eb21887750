"""Budgets as a command names them: the kind of scope, the name of a filter, its parameters or a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpcompose.account.opening import open_partition, open_scope, open_slots, take_slot
from dpcompose.account.scope import ScopeBudget, exact, path_in
from dpcompose.adaptive import Odometer
from dpcompose.adaptive.description import FILTERS, from_description
from dpcompose.adaptive.filter import Filter
from dpcompose.errors import DomainError
from dpcompose.guarantee import Adjacency
from dpcompose.ledger import Kind, Ledger, Scope
from dpcompose.numerics.exact import rounded_down


@dataclass(frozen=True)
class BudgetArguments:
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
        if self.adjacency not in [each.value for each in Adjacency]:
            raise DomainError("adjacency", self.adjacency, ", ".join(each.value for each in Adjacency))
        common: dict[str, Any] = {"note": self.note, "actor": actor, "key": key}
        parent = path_in(ledger, path).rpartition("/")[0]
        if parent and ledger.balance(parent).scope.kind is Kind.SLOTS:
            self._as_slot(ScopeBudget.of(ledger.balance(parent).scope))
            take_slot(ledger, path, odometer=self._odometer(), **common)
            return ledger.balance(path).scope
        common["adjacency"] = Adjacency(self.adjacency)
        self._nothing_ignored()
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

    def _as_slot(self, slots: ScopeBudget) -> None:
        """Refuse words that a slot does not take: its budget was fixed with the slots."""
        if self != BudgetArguments(note=self.note, adjacency=self.adjacency, odometer=self.odometer):
            raise DomainError("filter", self.filter, "nothing in a slot: its budget was fixed with the slots")
        fixed = None if slots.adjacency is None else slots.adjacency.value
        if self.adjacency not in (fixed, BudgetArguments.adjacency):
            raise DomainError("adjacency", self.adjacency, f"{fixed}, which was fixed with the slots")

    def _nothing_ignored(self) -> None:
        """Refuse words that do not go with the kind: whoever wrote them would believe that they count."""
        for name, value, kind in (
            ("slots", self.slots, Kind.SLOTS),
            ("price_delta", self.price_delta, Kind.SLOTS),
            ("odometer", self.odometer, Kind.FILTER),
        ):
            if value is not None and self.kind != kind:
                raise DomainError(name, value, f"left out: it goes with kind {kind}, not {self.kind}")

    def _odometer(self) -> Odometer | None:
        return None if self.odometer is None else Odometer(rounded_down(exact("odometer", self.odometer)))

    def _filter(self) -> Filter | None:
        if self.filter is None:
            if self.parameters or self.target:
                raise DomainError("filter", None, f"the name of a filter: {', '.join(FILTERS)}")
            return None
        if self.filter not in list(FILTERS):
            raise DomainError("filter", self.filter, ", ".join(FILTERS))
        if self.parameters and self.target:
            raise DomainError("parameters", dict(self.parameters), "left out where a target epsilon is given")
        if self.parameters:
            typed = {name: _typed(name, text) for name, text in self.parameters.items()}
            return from_description({"filter": self.filter, "version": 1, **typed})
        if "epsilon" not in self.target:
            raise DomainError("epsilon", None, "the target of the filter, or its own parameters")
        target = {name: exact(name, text) for name, text in self.target.items()}
        return FILTERS[self.filter].for_target(target.pop("epsilon"), **target)


def _typed(name: str, text: str) -> str:
    """A number as a description has it: a decimal is that decimal, not the double next to it, which may be larger."""
    return text if "/" in text else "{}/{}".format(*exact(name, text).as_integer_ratio())
