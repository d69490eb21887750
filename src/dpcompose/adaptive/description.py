"""A filter from its plain description, which a ledger stores; the natural filter is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import (
    LARGEST,
    Number,
    mapping,
    probability,
    read,
    sequence,
    written,
)
from dpcompose.adaptive.budget import Budget
from dpcompose.adaptive.filter import BEYOND, VERSION, Filter
from dpcompose.adaptive.theorems import KINDS, Advanced, best_order
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, Priced
from dpcompose.values import Adjacency, exact, rounded_down, rounded_up


def one_theorem(kind: str, *values: Number, **named: Number) -> Budget:
    """The budget of one theorem alone, by the name and with the parameters that a ledger has for it.

    >>> one_theorem("concentrated", 0.5, delta=1e-6)
    Budget.limited('zcdp', 0.5, delta=1e-06)

    Args:
        kind: The name.
        values: The parameters that are not named, in the order in which a ledger lists them.
        named: The others.

    Raises:
        DomainError: If a parameter is unknown, missing or outside its domain.
    """
    listed = ("epsilon", "delta", "slack") if kind == "advanced" else KINDS[kind].parameters
    numbers: dict[str, Any] = dict(zip(listed, values, strict=False)) | named
    if sorted(numbers) != sorted(listed) or len(numbers) < len(values) + len(named):
        expected = f"those of a {kind} filter: {', '.join(listed)}"
        raise DomainError("parameters", [*numbers], expected)
    if kind == "advanced":
        return Budget.of_theorem(Advanced.of_slack(**numbers))
    order, delta = numbers.pop("order", 0.0), numbers.pop("delta", 0)
    return Budget.of_theorem(KINDS[kind](numbers.popitem()[1], delta, order))


def for_target(kind: str, epsilon: Fraction, delta: Fraction, reserve: Fraction) -> Budget:
    """The budget of one theorem alone for a target, in the parameters that a ledger has for it, `reserve` for charges.

    A scope that is opened again by the same words is the same scope, so this is what those words have always meant.
    """
    if kind == "advanced":
        return one_theorem(kind, epsilon, delta, delta - reserve)
    ends, only = (rounded_down(epsilon), rounded_down(delta)), KINDS[kind].name
    orders = (best_order(*ends),) if kind == "renyi" and all(ends) else None
    budget = Budget(epsilon, delta, only=only, reserve=reserve or None, orders=orders)
    return Budget.of_theorem(replace(budget.parts[0], portion=Fraction(0)))


PureFilter, BasicFilter, ConcentratedFilter, RenyiFilter, GaussianFilter, AdvancedFilter = (
    partial(one_theorem, kind) for kind in KINDS
)


def _described(kind: str, stated: Mapping[str, Any]) -> Budget:
    """The budget of one theorem alone that a description states."""
    numbers = {key: read(key, text) for key, text in stated.items()}
    if sorted(numbers) == ["delta", "slack", "squares"] and kind == "advanced":
        kept, used = exact(numbers["delta"]), exact(numbers["slack"])
        return Budget.of_theorem(Advanced(numbers["squares"], kept - used, portion=used))
    return one_theorem(kind, **numbers)


@dataclass(frozen=True, eq=False)
class UnionFilter(Filter):
    """Of old ledgers alone: budgets of one theorem each, of which at least one must have granted all charges.

    Each prices a charge for itself, with a delta of its own. Otherwise it is a `Budget`, which has the proof.

    Args:
        filters: At least one budget of one theorem; two of one kind only if their currencies differ.
        shares: The delta at which the guarantee of each is taken, in [0, 1]; together at most 1.

    Raises:
        DomainError: If a number is outside its domain, or the filters do not go together.
    """

    filters: tuple[Budget, ...]
    shares: tuple[float | Fraction, ...]
    kind: ClassVar[str] = "union"

    def __post_init__(self) -> None:
        filters, shares = sequence("filters", self.filters), sequence("shares", self.shares)
        if not filters or not all(isinstance(each, Budget) and each.theorem for each in filters):
            raise DomainError("filters", self.filters, "a list of budgets of one theorem each")
        shares = tuple([probability("shares", each) for each in shares])
        if len(shares) != len(filters) or not sum(map(exact, shares)) <= 1:
            raise DomainError("shares", self.shares, "one for each filter, at most 1 together")
        object.__setattr__(self, "filters", tuple(filters))
        object.__setattr__(self, "shares", shares)
        if len(self.limits) < sum(len(each.limits) for each in self.filters):
            raise DomainError("filters", self.filters, "filters with different currencies")

    @property
    def limits(self) -> dict[str, Fraction]:
        """Beyond every sum: it is the alternatives that limit."""
        return dict.fromkeys([name for caps in self.alternatives for name in caps], BEYOND)

    @property
    def alternatives(self) -> tuple[dict[str, Fraction], ...]:
        """The limits of each filter."""
        return tuple(
            {f"{name} ({each.kind})": cap for name, cap in each.limits.items()}
            for each in self.filters
        )

    def guarantee(self) -> ApproximateDP:
        """The largest epsilon of the filters, each at its share, and the sum of the shares.

        Raises:
            DomainError: If a filter has no finite epsilon at its share.
        """
        # The exact share: as a float it may fall below the delta of the very filter whose share it is.
        epsilons = [
            each.parts[0].epsilon(pricing.delta_without_rounding(exact(portion), each.omitted(1)))
            for each, portion in zip(self.filters, self.shares, strict=True)
        ]
        if not max(epsilons) <= LARGEST:
            raise DomainError(
                "shares", self.shares, "shares at which every filter has a finite epsilon"
            )
        return ApproximateDP(max(epsilons), delta=rounded_up(self._charged_delta()))

    def _charged_delta(self) -> Fraction:
        return sum(map(exact, self.shares), Fraction(0))

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        """The prices under all filters; where one has none, or more than it ever grants, its cap and one."""

        def priced(filter: Budget) -> dict[str, Fraction]:
            return filter.price(mechanism, delta=delta, adjacency=adjacency)

        prices = [pricing.unless_refused(partial(priced, each)) for each in self.filters]
        if not any(prices):
            priced(self.filters[-1])  # it says why
        return tuple(
            cap + 1 if price is None else min(price[name], cap + 1)
            for each, price in zip(self.filters, prices, strict=True)
            for name, cap in each.limits.items()
        )

    def description(self) -> dict[str, Any]:
        parts = [each.description() for each in self.filters]
        shares = [*map(written, self.shares)]
        return {"filter": self.kind, "version": VERSION, "filters": parts, "shares": shares}

    @classmethod
    def described(cls, stated: Mapping[str, Any]) -> Self:
        """The union that a description states."""
        if sorted(stated) != ["filters", "shares"]:
            raise DomainError(
                "parameters", list(stated), "those of a union filter: filters, shares"
            )
        filters = [from_description(each) for each in sequence("filters", stated["filters"])]
        shares = [read("shares", each) for each in sequence("shares", stated["shares"])]
        return cls(tuple(filters), tuple(shares))  # pyright: ignore[reportArgumentType]


_UNSOUND = (
    "stopping when the exact composition of the parameters so far would exceed the budget is unsound if they are chosen"
    " from earlier answers. Budget (1.5, 0.05): randomized response with epsilon 1, then, if it answers yes, another"
    " with epsilon 0.611490968801848951918, if no, a (0, 0.05) mechanism. Each branch composes to (1.5, 0.05) exactly,"
    " and the interaction has delta(1.5) = 0.0634470710684997560374, against 0.05"
)
"""Why nobody may stop when the exact composition so far would exceed the budget [TranKoskelaRaisaHonkela2026].

The continuations' privacy profiles cross: each branch keeps below the budget at one epsilon, and the choice between
them is itself informative. Theorems for parameters fixed in advance do not become filters.
"""


def _menu(stated: Mapping[str, Any]) -> Filter:
    from dpcompose.adaptive.menu_filter import MenuFilter  # it needs numpy

    return MenuFilter.described(stated)


FILTERS: dict[str, Callable[[Mapping[str, Any]], Filter]] = {
    **{kind: partial(_described, kind) for kind in KINDS},
    "budget": Budget.described,
    UnionFilter.kind: UnionFilter.described,
    "menu": _menu,
}
"""The readers of descriptions, by the name of the filter."""


def from_description(description: Mapping[str, Any]) -> Filter:
    """The filter that `Filter.description` described, equal to it in every bit.

    >>> from_description(Budget(0.5).description())
    Budget(0.5, 0, only='pure')

    Args:
        description: With the keys "filter", "version" and the filter's parameters, numbers as text.

    Raises:
        DomainError: If a key is unknown or missing, or a value is outside its domain.
        UnsupportedError: If it describes the natural filter.
    """
    description = mapping(description)
    kind = description.get("filter")
    if kind == "natural":
        remedy = (
            "Open a Budget, or fixed sub-budgets (Curators), which compose by the tightest theorem"
        )
        raise UnsupportedError("the natural filter", _UNSOUND, remedy)
    if not isinstance(kind, str) or kind not in FILTERS:
        raise DomainError("filter", kind, f"one of {', '.join(FILTERS)}")
    version = description.get("version")
    if version not in (1, VERSION):
        raise DomainError(
            "version", version, f"1 or {VERSION}", "A newer dpcompose may have written it"
        )
    stated = {key: text for key, text in description.items() if key not in ("filter", "version")}
    # In version 1 a float was exactly that double, as an order still is.
    if version == 1 and kind in KINDS:
        stated = {
            key: text if key == "order" else written(_double(read(key, text)))
            for key, text in stated.items()
        }
    return FILTERS[kind](stated)


def _double(value: float | Fraction) -> float | Fraction:
    return Fraction(value) if math.isfinite(value) else value
