"""Amounts of a currency as people read them: the epsilon that they alone allow, at the delta of the scope's target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction

from dpcompose.account.scope import ScopeBudget, chain, target_of
from dpcompose.adaptive import from_description
from dpcompose.errors import OverdrawnError, UnsupportedError, few_digits
from dpcompose.ledger import Amount, Balance, Ledger

_ABOUT = 1e-5
"""The relative error of an epsilon that is left: a whole budget of 1 reads as 1, and not as 0.999999."""


def nearest_target(found: Sequence[ScopeBudget]) -> ScopeBudget | None:
    """The budget of a chain, the highest first, that was opened for a target and is nearest to the last scope."""
    return next((each for each in reversed(found) if each.target is not None), None)


def balance_in_epsilon(balance: Balance, left: Mapping[str, Amount]) -> tuple[float, float] | None:
    """Both what is spent and what is left of a scope, in epsilon at the delta of its target; None if it has none."""
    target, budget = target_of(balance.scope), balance.scope.description.get("budget", {})
    if target is None:
        return None
    filter, delta = from_description(budget["filter"]), float(Fraction(target[1]))
    spent = filter.epsilon_of(_fractions(balance.spent), delta=delta)
    rest = filter.epsilon_of(_fractions(left), delta=delta, left=True)
    return None if spent is None or rest is None else (spent, _whole(rest, float(target[0])))


def used(balance: Balance) -> Fraction | None:
    """The part of a budget of several theorems or counts that is spent, at most 1, for reading; None for the others."""
    stated = balance.scope.description.get("budget", {}).get("filter")
    if stated is None or not balance.scope.alternatives:
        return None
    filter = from_description(stated)
    part = filter.used({name: Fraction(0) for name in filter.limits} | _fractions(balance.spent))
    return Fraction(1) if part is None else min(part, Fraction(1))


def charge_in_epsilon(
    found: Sequence[ScopeBudget], asked: Mapping[str, Amount], left: Mapping[str, Amount]
) -> tuple[float, float] | None:
    """Both what a charge asks and what is left, in epsilon at the delta of the nearest target, if there is one."""
    budget = nearest_target(found)
    return None if budget is None else _both(budget, asked, left)


def _both(
    budget: ScopeBudget, asked: Mapping[str, Amount], left: Mapping[str, Amount]
) -> tuple[float, float] | None:
    if budget.filter is None or budget.target is None:
        return None
    delta = float(Fraction(budget.target[1]))
    more = budget.filter.epsilon_of(_fractions(asked), delta=delta)
    rest = budget.filter.epsilon_of(_fractions(left), delta=delta, left=True)
    return None if more is None or rest is None else (more, _whole(rest, float(budget.target[0])))


def refusal_in_words(
    refusal: OverdrawnError, ledger: Ledger, path: str, *, asked: Mapping[str, Amount]
) -> OverdrawnError:
    """The refusal of a charge, about the scope that was named: in epsilon, where a budget on its chain has a target.

    Args:
        refusal: What the ledger said, about the first scope from the root down that is short.
        ledger: Where.
        path: The scope that was named.
        asked: What was asked there.
    """
    left, currency = ledger.available(path), refusal.currency
    if currency not in asked or currency not in left:
        return refusal
    budget = None
    with suppress(UnsupportedError):  # caps without a filter have no epsilon
        budget = nearest_target(chain(ledger, path))
    amounts = (
        f"{few_digits(asked[currency], up=True)} asked, {few_digits(left[currency], up=False)} left"
    )
    words = f"{path}: {currency} {amounts}"
    both = None if budget is None else _both(budget, asked, left)
    if both is not None and budget is not None and budget.target is not None:
        asked_epsilon, left_epsilon = few_digits(both[0], up=True), few_digits(both[1], up=False)
        at = few_digits(budget.target[1], up=True)
        exactly = "" if currency == "epsilon" else f" at delta {at} ({currency} {amounts})"
        words = f"{path}: epsilon {asked_epsilon} asked, {left_epsilon} left{exactly}"
    short = "" if refusal.scope == path else f"; {refusal.scope} is short"
    budgeted = "" if budget is None else f". The budget of {budget.path} is {budget.in_words}"
    return refusal.reworded(f"{words}{short}{budgeted}. Nothing was spent; ask for less")


def _whole(epsilon: float, target: float) -> float:
    """The epsilon that is left; the target itself if it is that but for rounding."""
    return target if epsilon >= target * (1 - _ABOUT) else epsilon


def _fractions(amounts: Mapping[str, Amount]) -> dict[str, Fraction]:
    return {name: amount.fraction for name, amount in amounts.items()}
