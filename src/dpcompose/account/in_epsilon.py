"""Amounts of a currency as people read them: the epsilon that they alone allow, at the delta of the scope's target."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcompose.adaptive import (
    BasicFilter,
    ConcentratedFilter,
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
    from_description,
)
from dpcompose.guarantee import ConcentratedDP, gaussian_epsilon, lossless_epsilon
from dpcompose.ledger import Amount
from dpcompose.values import rounded_up, up

_ABOUT = 1e-5
"""The relative error of an epsilon that is left: a whole budget of 1 reads as 1, and not as 0.999999."""


def epsilon_of(filter: Filter, amounts: Mapping[str, Fraction], *, delta: float) -> float | None:
    """The epsilon at `delta` of whoever spends these amounts under a filter; None if the filter has no such number.

    Args:
        filter: Whose currencies they are.
        amounts: By currency; others are passed over.
        delta: The total delta, in [0, 1].
    """
    own = [amounts.get(currency) for currency in filter.limits]
    if own[0] is None:
        return None
    amount = rounded_up(own[0])
    if amount == 0:
        return 0.0
    match filter:
        case PureFilter() | BasicFilter():
            found = amount
        case ConcentratedFilter():
            found = ConcentratedDP(amount, delta=rounded_up(own[1] or Fraction(0))).epsilon(
                delta=delta
            )
        case RenyiFilter():
            found = lossless_epsilon(amount, order=filter.order, delta=delta)
        case GaussianFilter():
            found = gaussian_epsilon(delta, mu=up(math.sqrt(amount))).upper
        case _:
            return None
    return found if found < math.inf else None


def both_in_epsilon(
    filter: Filter | Mapping[str, Any],
    target: tuple[str, str],
    amounts: Mapping[str, Amount],
    left: Mapping[str, Amount],
) -> tuple[float, float] | None:
    """The epsilon of some amounts and of what is left, at the delta of a target; None if the filter has none.

    Args:
        filter: Whose currencies they are, or its description.
        target: The epsilon and delta that a scope was opened for.
        amounts: By currency.
        left: By currency.
    """
    own, delta = (
        filter if isinstance(filter, Filter) else from_description(filter),
        float(Fraction(target[1])),
    )
    used, remaining = (
        epsilon_of(own, {name: amount.fraction for name, amount in each.items()}, delta=delta)
        for each in (amounts, left)
    )
    return (
        None if used is None or remaining is None else (used, _whole(remaining, float(target[0])))
    )


def _whole(epsilon: float, target: float) -> float:
    """The epsilon that is left; the target itself if it is that but for rounding."""
    return target if epsilon >= target * (1 - _ABOUT) else epsilon
