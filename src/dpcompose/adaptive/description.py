"""A filter from its plain description, which a ledger stores; the natural filter is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Self

from dpcompose.adaptive.amount import (
    LARGEST,
    Number,
    delta_without_rounding,
    mapping,
    nonnegative,
    probability,
    read,
    sequence,
    written,
)
from dpcompose.adaptive.budget import Budget
from dpcompose.adaptive.filter import BEYOND, VERSION, Filter, Spending
from dpcompose.adaptive.theorems import KINDS, Advanced, best_order
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, Priced
from dpcompose.values import Adjacency, exact, rounded_down, rounded_up


@dataclass(frozen=True)
class OneTheorem:
    """The budget of one theorem alone by the name that it has in a ledger, and with the parameters that it has there.

    Args:
        kind: The name.
    """

    kind: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return (
            ("epsilon", "delta", "slack")
            if self.kind == "advanced"
            else KINDS[self.kind].parameters
        )

    def __call__(self, *values: Number, **named: Number) -> Budget:
        """The budget of these parameters, those that are not named in the order of `parameters`."""
        numbers: dict[str, Any] = dict(zip(self.parameters, values, strict=False)) | named
        if sorted(numbers) != sorted(self.parameters) or len(numbers) < len(values) + len(named):
            expected = f"those of a {self.kind} filter: {', '.join(self.parameters)}"
            raise DomainError("parameters", [*numbers], expected)
        if self.kind == "advanced":
            return Budget.of_theorem(Advanced.of_slack(**numbers))
        row = KINDS[self.kind]
        order, delta = numbers.pop("order", 0.0), numbers.pop("delta", 0)
        return Budget.of_theorem(row(numbers.popitem()[1], delta, order))

    def for_target(
        self,
        epsilon: Number,
        *,
        delta: Number = 0.0,
        mechanism_delta: Number = 0.0,
        order: float | None = None,
    ) -> Budget:
        """The budget with the largest limit that implies (epsilon, delta), `mechanism_delta` of it for charges.

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If delta is reserved for charges by a theorem that charges none.
        """
        kept = exact(probability("mechanism_delta", mechanism_delta))
        if self.kind == "advanced":
            slack = exact(probability("delta", delta)) - kept
            return self(epsilon, delta, slack)
        if kept and self.kind not in ("basic", "concentrated"):
            what = f"a {self.kind} filter with mechanism_delta = {mechanism_delta!r}"
            raise UnsupportedError(
                what, "nothing could spend it: it charges no delta", "Leave it out"
            )
        if not kept <= exact(probability("delta", delta)):
            raise DomainError(
                "mechanism_delta", mechanism_delta, f"at most the total delta {delta!r}"
            )
        if (
            self.kind == "renyi"
            and order is None
            and exact(probability("delta", delta)) > 0
            and epsilon
        ):
            target = nonnegative("epsilon", epsilon)
            order = best_order(
                rounded_down(exact(target)), rounded_down(exact(probability("delta", delta)))
            )
        only = Budget(
            epsilon,
            delta,
            only=KINDS[self.kind].name,
            reserve=None if self.kind == "basic" or not kept else kept,
            orders=(order,) if self.kind == "renyi" else None,
        )
        return Budget.of_theorem(replace(only.parts[0], portion=Fraction(0)))

    def described(self, stated: Mapping[str, Any]) -> Budget:
        """The budget of the parameters that a description states."""
        numbers = {key: read(key, text) for key, text in stated.items()}
        if "squares" in numbers and sorted(numbers) == ["delta", "slack", "squares"]:
            kept, used = exact(numbers["delta"]), exact(numbers["slack"])
            return Budget.of_theorem(Advanced(numbers["squares"], kept - used, portion=used))
        return self(**numbers)


PureFilter, BasicFilter, AdvancedFilter, ConcentratedFilter, RenyiFilter, GaussianFilter = (
    OneTheorem(kind) for kind in ("pure", "basic", "advanced", "concentrated", "renyi", "gaussian")
)
NAMED = {
    each.kind: each
    for each in (PureFilter, BasicFilter, AdvancedFilter, ConcentratedFilter, RenyiFilter, GaussianFilter)
}  # fmt: skip


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
        if len(shares) != len(filters):
            raise DomainError("shares", self.shares, "one share of delta for each filter")
        shares = tuple([probability("shares", each) for each in shares])
        if not sum(map(exact, shares)) <= 1:
            raise DomainError("shares", self.shares, "shares whose sum is at most 1")
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

    def start(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Spending:
        """The state before any charge, once it is certain that there is a guarantee."""
        self.guarantee()
        return super().start(adjacency=adjacency)

    def guarantee(self) -> ApproximateDP:
        """The largest epsilon of the filters, each at its share, and the sum of the shares.

        Raises:
            DomainError: If a filter has no finite epsilon at its share.
        """
        # The exact share: as a float it may fall below the delta of the very filter whose share it is.
        epsilons = [
            each.parts[0].total(1, delta_without_rounding(exact(portion), each.omitted(1))).epsilon
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
        amounts: list[Fraction] = []
        refusals: list[UnsupportedError] = []
        for each in self.filters:
            caps = list(each.limits.values())
            try:
                prices = list(each.price(mechanism, delta=delta, adjacency=adjacency).values())
            except UnsupportedError as refusal:
                refusals.append(refusal)
                prices = [cap + 1 for cap in caps]
            amounts += [min(price, cap + 1) for price, cap in zip(prices, caps, strict=True)]
        if len(refusals) == len(self.filters):
            raise refusals[-1]
        return tuple(amounts)

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


FILTERS = (*NAMED, "budget", UnionFilter.kind, "menu")
"""The names of filters in descriptions."""


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
        _refuse_natural()
    if not isinstance(kind, str) or kind not in FILTERS:
        raise DomainError("filter", kind, f"one of {', '.join(FILTERS)}")
    version = description.get("version")
    if version not in (1, VERSION):
        raise DomainError(
            "version", version, f"1 or {VERSION}", "A newer dpcompose may have written it"
        )
    stated = {key: text for key, text in description.items() if key not in ("filter", "version")}
    # In version 1 a float was exactly that double, as an order still is.
    if version == 1 and kind in NAMED:
        stated = {
            key: text if key == "order" else written(_double(read(key, text)))
            for key, text in stated.items()
        }
    if kind == "menu":
        # It needs numpy, and the others do not.
        from dpcompose.adaptive.menu_filter import MenuFilter

        return MenuFilter.described(stated)
    return {**NAMED, "budget": Budget, UnionFilter.kind: UnionFilter}[kind].described(stated)


def _double(value: float | Fraction) -> float | Fraction:
    return Fraction(value) if math.isfinite(value) else value


def _refuse_natural() -> NoReturn:
    """Refuse to stop when the exact composition so far would exceed the budget.

    The continuations' privacy profiles cross: each branch keeps below the budget at one epsilon, and the choice between
    them is itself informative. Theorems for parameters fixed in advance do not become filters.

    Reference: [TranKoskelaRaisaHonkela2026]
    """
    raise UnsupportedError(
        "the natural filter",
        _UNSOUND,
        "Open a Budget, or fixed sub-budgets (Curators), which compose by the tightest theorem",
    )
