"""Targets of budgets, as typed, and amounts as people read them: the epsilon that they alone allow, at the target's delta.

Targets are read without a library of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcompose.errors import UnsupportedError, few_digits
from dpcompose.ledger import Amount, Balance, Kind, Ledger, Scope, paths_down_to

if TYPE_CHECKING:
    from dpcompose.adaptive import Filter

NumericLiteral = int | float | str | Decimal | Fraction
Costs = Mapping[str, Amount]


def exact(name: str, value: NumericLiteral) -> Fraction:
    """Exactly what was typed.

    Raises:
        DomainError: Negative, infinite, no number, or not a multiple of 1e-40.
    """
    return Amount.of(value, name=name).fraction


def target_of(scope: Scope) -> tuple[str, str] | None:
    """The epsilon and delta that a scope was opened for, as decimals; None if it states none.

    A menu states its own; one that is no decimal of 40 digits is rounded down.
    """
    budget = scope.description.get("budget", {})
    target = budget.get("target")
    filter: Mapping[str, Any] = budget.get("filter") or {}
    if target is None and filter.get("filter") == "menu":
        target = {name: str(Amount.down(Fraction(filter[name]))) for name in ("epsilon", "delta")}
    if target is None:
        return None
    return str(exact_text("epsilon", target["epsilon"])), str(exact_text("delta", target["delta"]))


def target_in_words(target: tuple[str, str]) -> str:
    """Such as "epsilon 1 at delta 1e-6"."""
    epsilon, delta = (few_digits(text, up=False) for text in target)
    return f"epsilon {epsilon} at delta {delta}"


def exact_text(name: str, value: NumericLiteral) -> Decimal:
    """A number of a target as the shortest decimal that is it."""
    return Decimal(str(Amount.of(value, name=name))).normalize()


_AVERAGES = ("delta", "rho", "mu squared", "renyi:")
"""How the names of currencies begin that are averages over answers."""


def refuse_unknown(ledger: Ledger, path: str, *, cost: Mapping[str, NumericLiteral]) -> None:
    """Refuse a bare cost in averages inside a partition: that it was a one-shot mechanism is not known.

    Args:
        ledger: Where.
        path: The scope that is charged.
        cost: The amounts by currency.

    Raises:
        UnsupportedError: If it has a delta, a rho or a divergence, and a scope on the way to it is a partition.
    """
    above = [ledger.balance(each).scope for each in paths_down_to(path)]
    if not any(scope.kind is Kind.PARTITION for scope in above):
        return
    for name, amount in sorted(cost.items()):
        if name.startswith(_AVERAGES) and exact(name, amount) > 0:
            what = f"a bare cost with a {name} at {path!r}"
            reason = f"it does not say what runs, and in a partition a {name} holds for one-shot mechanisms alone"
            raise UnsupportedError(what, reason, "Charge a mechanism, or a plan file")


def balance_in_epsilon(balance: Balance, left: Costs) -> tuple[float, float] | None:
    """Both what is spent and what is left of a scope, in epsilon at the delta of its target; None if it has none."""
    target = target_of(balance.scope)
    if target is None:
        return None
    filter = balance.scope.description["budget"]["filter"]
    found = [both_in_epsilon(filter, target, each, left, before=each) for each in balance.front]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return max(spent for spent, _ in known), min(left for _, left in known)


_ABOUT = 1e-5
"""The relative error of an epsilon that is left: the target itself if it is that but for rounding, 1 and not 0.999999."""


def both_in_epsilon(
    filter: Filter | Mapping[str, Any],
    target: tuple[str, str],
    amounts: Costs,
    left: Costs,
    *,
    before: Costs | None = None,
) -> tuple[float, float] | None:
    """The epsilon of some amounts and of what is left, at the delta of a target; None if the filter has none.

    Args:
        filter: Whose currencies they are, or its description.
        target: The epsilon and delta that a scope was opened for.
        amounts: By currency.
        left: By currency.
        before: What was spent when so much was left, if it is known: what a menu leaves depends on it.
    """
    from dpcompose.adaptive import from_description

    own = from_description(filter) if isinstance(filter, Mapping) else filter
    whole, delta, pure = float(target[0]), float(Fraction(target[1])), left.get("epsilon")
    spent, remaining = own.epsilon_of(_fractions(amounts), delta=delta), whole
    # Where the pure theorem alone leaves all of the target, the others leave no more, and would be slow to read.
    if pure is None or pure.fraction < Fraction(target[0]):
        taken = _fractions(before or {})
        remaining = own.epsilon_of(_fractions(left), delta=delta, left=True, spent=taken)
    if spent is None or remaining is None:
        return None
    return spent, whole if remaining >= whole * (1 - _ABOUT) else remaining


def used(balance: Balance) -> Fraction | None:
    """The part of a budget of several theorems or counts that is spent, at most 1, for reading; None for the others."""
    stated = balance.scope.description.get("budget", {}).get("filter")
    if stated is None or not balance.scope.alternatives:
        return None
    from dpcompose.adaptive import from_description

    filter = from_description(stated)
    part = filter.used(fullest(filter, balance))
    return Fraction(1) if part is None else min(part, Fraction(1))


def fullest(filter: Filter, balance: Balance) -> dict[str, Fraction]:
    """The amounts that the person spent of whose budget the least is left."""
    zero = dict.fromkeys(filter.limits, Fraction(0))
    spent = [zero | _fractions(each) for each in balance.front]
    return max(spent, key=lambda each: filter.used(each) or 0) if len(spent) > 1 else spent[0]


def _fractions(amounts: Costs) -> dict[str, Fraction]:
    return {name: amount.fraction for name, amount in amounts.items()}
