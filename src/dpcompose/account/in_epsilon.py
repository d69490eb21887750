"""Amounts of a currency as people read them: the epsilon that they alone allow, at the delta of the scope's target."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcompose.adaptive import Filter, from_description
from dpcompose.ledger import Amount, Balance

_ABOUT = 1e-5
"""The relative error of an epsilon that is left: a whole budget of 1 reads as 1, and not as 0.999999."""


def both_in_epsilon(
    filter: Filter | Mapping[str, Any],
    target: tuple[str, str],
    amounts: Mapping[str, Amount],
    left: Mapping[str, Amount],
    *,
    before: Mapping[str, Amount] | None = None,
) -> tuple[float, float] | None:
    """The epsilon of some amounts and of what is left, at the delta of a target; None if the filter has none.

    Args:
        filter: Whose currencies they are, or its description.
        target: The epsilon and delta that a scope was opened for.
        amounts: By currency.
        left: By currency.
        before: What was spent when so much was left, if it is known: what a menu leaves depends on it.
    """
    own = filter if isinstance(filter, Filter) else from_description(filter)
    delta, whole = float(Fraction(target[1])), left.get("epsilon")
    spent = own.epsilon_of(_fractions(amounts), delta=delta)
    taken = _fractions({} if before is None else before)
    # The pure theorem alone leaves all of the target: the others leave no more, and would be slow to read.
    if whole is not None and whole.fraction >= Fraction(target[0]):
        remaining = float(target[0])
    else:
        remaining = own.epsilon_of(_fractions(left), delta=delta, left=True, spent=taken)
    if spent is None or remaining is None:
        return None
    return spent, _whole(remaining, float(target[0]))


def used(balance: Balance) -> Fraction | None:
    """The part of a budget of several theorems or counts that is spent, at most 1, for reading; None for the others."""
    stated = balance.scope.description.get("budget", {}).get("filter")
    if stated is None or not balance.scope.alternatives:
        return None
    filter = from_description(stated)
    part = filter.used({name: Fraction(0) for name in filter.limits} | _fractions(balance.spent))
    return Fraction(1) if part is None else min(part, Fraction(1))


def _whole(epsilon: float, target: float) -> float:
    """The epsilon that is left; the target itself if it is that but for rounding."""
    return target if epsilon >= target * (1 - _ABOUT) else epsilon


def _fractions(amounts: Mapping[str, Amount]) -> dict[str, Fraction]:
    return {name: amount.fraction for name, amount in amounts.items()}
