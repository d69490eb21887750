"""A filter from its plain description, which a ledger stores; the natural filter is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NoReturn

from dpcompose.adaptive.amount import mapping, read, written
from dpcompose.adaptive.budget import Budget
from dpcompose.adaptive.divergence_filters import ConcentratedFilter, GaussianFilter, RenyiFilter
from dpcompose.adaptive.filter import VERSION, Filter
from dpcompose.adaptive.menu_filter import MenuFilter
from dpcompose.adaptive.promise_filters import AdvancedFilter, BasicFilter, PureFilter
from dpcompose.adaptive.union_filter import UnionFilter
from dpcompose.errors import DomainError, UnsupportedError

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
