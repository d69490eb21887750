"""A filter from its plain description, which a ledger stores; the natural filter is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Self

from dpcompose.adaptive.amount import (
    LARGEST,
    Number,
    Target,
    delta_without_rounding,
    mapping,
    probability,
    read,
    written,
)
from dpcompose.adaptive.budget import Budget
from dpcompose.adaptive.filter import BEYOND, VERSION, Filter, Spending
from dpcompose.adaptive.menu_filter import MenuFilter
from dpcompose.adaptive.theorems import (
    AdvancedFilter,
    BasicFilter,
    ConcentratedFilter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
)
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, Priced
from dpcompose.values import Adjacency, exact, rounded_down, rounded_up

_PARTS: dict[str, type[Filter]] = {
    each.kind: each
    for each in (
        PureFilter,
        BasicFilter,
        AdvancedFilter,
        ConcentratedFilter,
        RenyiFilter,
        GaussianFilter,
    )
}


@dataclass(frozen=True, eq=False)
class UnionFilter(Filter):
    """Grants a charge while at least one of its filters would have granted it and all before it.

    Each filter has a share of delta. An interaction ends with every sum of some filter i within its limits, and so did
    all that went before. Let E be an event, and E_i the part of it that ends so, i the first such filter. The adversary
    who stops where filter i would refuse reaches E_i with the same probability in either world, and filter i holds him
    to P(E_i) - e^epsilon Q(E_i) <= delta_i, the delta of filter i at epsilon. So P(E) - e^epsilon Q(E) is at most the
    sum of the delta_i. A pure filter of epsilon has delta_i = 0: it costs the others nothing.

    >>> from dpcompose import BlackBox
    >>> union = UnionFilter.for_target(1.0, delta=1e-6)
    >>> [each.kind for each in union.filters], union.guarantee().epsilon <= 1.0
    (['pure', 'renyi'], True)
    >>> union.step(union.start(), BlackBox(1.0))[1].granted
    True

    Args:
        filters: At least one, none of them a union or a menu; two of one kind only if their currencies differ.
        shares: The delta at which the guarantee of each is taken, in [0, 1]; together at most 1.

    Raises:
        DomainError: If a number is outside its domain, or the filters do not go together.
    """

    filters: tuple[Filter, ...]
    shares: tuple[float | Fraction, ...]
    kind: ClassVar[str] = "union"

    def __post_init__(self) -> None:
        filters, shares = _sequence("filters", self.filters), _sequence("shares", self.shares)
        if not filters or not all(
            isinstance(each, Filter) and each.kind in _PARTS for each in filters
        ):
            raise DomainError(
                "filters", self.filters, f"a list of filters, each {', '.join(_PARTS)}"
            )
        if len(shares) != len(filters):
            raise DomainError("shares", self.shares, "one share of delta for each filter")
        shares = tuple([probability("shares", each) for each in shares])
        if not sum(map(exact, shares)) <= 1:
            raise DomainError("shares", self.shares, "shares whose sum is at most 1")
        object.__setattr__(self, "filters", tuple(filters))
        object.__setattr__(self, "shares", shares)
        names = [name for each in self.filters for name in _names(each).values()]
        if len(set(names)) < len(names):
            raise DomainError("filters", self.filters, "filters with different currencies")

    @classmethod
    def for_target(
        cls,
        epsilon: Number,
        *,
        delta: Number = 0.0,
        mechanism_delta: Number = 0.0,
        orders: Sequence[float | None] = (None,),
    ) -> Self:
        """The pure filter of epsilon, and one Renyi filter for each order, delta in equal shares among these.

        It grants at least what the pure filter does, and what each Renyi filter does at its share.

        Args:
            epsilon: The target, in nats.
            delta: The delta of the target; above 0 unless there are no orders.
            mechanism_delta: Only 0.
            orders: Finite, > 1; None for the best order of answers of small loss.
        """
        target = Target.of(epsilon, delta, mechanism_delta)
        target.without_charged_delta("UnionFilter")
        orders = _sequence("orders", orders)
        if not orders:
            return cls((PureFilter(target.epsilon),), (0.0,))
        if len(orders) == 1:
            share = target.delta
        else:
            share = Fraction(rounded_down(exact(target.delta) / len(orders)))
        renyi = [
            RenyiFilter.for_target(target.epsilon, delta=share, order=order) for order in orders
        ]
        return cls((PureFilter(target.epsilon), *renyi), (0.0, *([share] * len(orders))))

    @property
    def limits(self) -> dict[str, Fraction]:
        """Beyond every sum: it is the alternatives that limit."""
        return {name: BEYOND for each in self.filters for name in _names(each).values()}

    @property
    def alternatives(self) -> tuple[dict[str, Fraction], ...]:
        """The limits of each filter."""
        return tuple(
            {name: each.limits[currency] for currency, name in _names(each).items()}
            for each in self.filters
        )

    @property
    def delta(self) -> Fraction:
        """The sum of the shares."""
        return sum(map(exact, self.shares), Fraction(0))

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
            each._total(1, delta_without_rounding(exact(share), each.omitted(1))).epsilon
            for each, share in zip(self.filters, self.shares, strict=True)
        ]
        if not max(epsilons) <= LARGEST:
            raise DomainError(
                "shares", self.shares, "shares at which every filter has a finite epsilon"
            )
        return ApproximateDP(max(epsilons), delta=rounded_up(self.delta))

    def _charged_delta(self) -> Fraction:
        return self.delta

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
        return {
            "filter": self.kind,
            "version": VERSION,
            "filters": parts,
            "shares": [*map(written, self.shares)],
        }

    @classmethod
    def described(cls, stated: Mapping[str, Any]) -> Self:
        if sorted(stated) != ["filters", "shares"]:
            raise DomainError(
                "parameters", list(stated), "those of a union filter: filters, shares"
            )
        filters = [_part(mapping(each)) for each in _sequence("filters", stated["filters"])]
        return cls(
            tuple(filters),
            tuple(read("shares", each) for each in _sequence("shares", stated["shares"])),
        )


def _part(stated: Mapping[str, Any]) -> Filter:
    kind = stated.get("filter")
    if not isinstance(kind, str) or kind not in _PARTS or stated.get("version") != VERSION:
        raise DomainError("filters", kind, f"each {', '.join(_PARTS)}, of version {VERSION}")
    return _PARTS[kind].described(
        {key: text for key, text in stated.items() if key not in ("filter", "version")}
    )


def _names(part: Filter) -> dict[str, str]:
    """The currencies of a filter, by their names in a union."""
    return {currency: f"{currency} ({part.kind})" for currency in part.limits}


def _sequence(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise DomainError(name, value, "a list")
    return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


_UNSOUND = (
    "stopping when the exact composition of the parameters so far would exceed the budget is unsound if they are chosen"
    " from earlier answers. Budget (1.5, 0.05): randomized response with epsilon 1, then, if it answers yes, another"
    " with epsilon 0.611490968801848951918, if no, a (0, 0.05) mechanism. Each branch composes to (1.5, 0.05) exactly,"
    " and the interaction has delta(1.5) = 0.0634470710684997560374, against 0.05"
)

OF_NUMBERS: dict[str, type[Filter]] = {
    each.kind: each
    for each in (
        PureFilter,
        BasicFilter,
        AdvancedFilter,
        ConcentratedFilter,
        RenyiFilter,
        GaussianFilter,
    )
}
"""Filters whose parameters are numbers."""
FILTERS: dict[str, type[Filter]] = {
    **OF_NUMBERS,
    Budget.kind: Budget,
    UnionFilter.kind: UnionFilter,
    MenuFilter.kind: MenuFilter,
}


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
    if version == 1 and kind in OF_NUMBERS:
        stated = {
            key: text if key == "order" else written(_double(read(key, text)))
            for key, text in stated.items()
        }
    return FILTERS[kind].described(stated)


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
