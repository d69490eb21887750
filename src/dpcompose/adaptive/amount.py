"""Exact amounts: fractions. As money in a ledger they are multiples of 1e-40: a price rounded up once, a cap down."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, cast

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.guarantee import ApproximateDP
from dpcompose.numerics import largest as largest_between
from dpcompose.pictured import Card
from dpcompose.values import exact, rounded_down

GRID = 10**40
LARGEST = 1e15
"""No parameter of a filter is larger: nothing overflows, and no promise beyond it is worth a number."""
DIGITS, LONGEST = 1800, 4000
"""The most digits of a parameter's denominator, so that a description is short enough to be read back."""
Amounts: TypeAlias = Mapping[str, Fraction]
"""Amounts asked, spent or left, by the name of the currency."""
Number: TypeAlias = int | float | Fraction | Decimal
"""A parameter of a filter: a float means its shortest decimal, a fraction or a decimal exactly that number."""


class Exactly:
    """A dataclass that is equal to another that states the same exact numbers: 0.3 is 3/10, and Fraction(0.3) is not."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._stated == cast("Any", other)._stated

    def __hash__(self) -> int:
        return hash(self._stated)

    @property
    def _stated(self) -> tuple[Any, ...]:
        return tuple([_meaning(getattr(self, each.name)) for each in fields(cast("Any", self))])


def _meaning(value: Any) -> Any:
    """A number as the exact one that it stands for; anything else is itself."""
    if isinstance(value, tuple):
        return tuple(map(_meaning, cast("tuple[Any, ...]", value)))
    return exact(value) if isinstance(value, float | Fraction) else value


def above(value: Fraction) -> Fraction:
    """The smallest multiple of 1e-40 that is at least `value`: a price."""
    return Fraction(-(-value.numerator * GRID // value.denominator), GRID)


def below(value: Fraction) -> Fraction:
    """The largest multiple of 1e-40 that is at most `value`: a cap."""
    return Fraction(value.numerator * GRID // value.denominator, GRID)


def nonnegative(name: str, value: Any) -> float | Fraction:
    """`value` as a number in [0, 1e15]: a float stays itself, any other number becomes a fraction."""
    return _between(name, value, LARGEST, f"a number in [0, {LARGEST:g}]")


def probability(name: str, value: Any) -> float | Fraction:
    """`value` as a number in [0, 1]: a float stays itself, any other number becomes a fraction."""
    return _between(name, value, 1.0, "a number in [0, 1]")


def written(value: float | Fraction) -> str:
    """Text from which `read` gets the very same number back."""
    return repr(value) if isinstance(value, float) else f"{value.numerator}/{value.denominator}"


def read(name: str, text: Any) -> float | Fraction:
    """The number that `written` wrote."""
    with suppress(ValueError, ZeroDivisionError):
        if isinstance(text, str) and len(text) <= LONGEST:
            return Fraction(text) if "/" in text else float(text)
    raise DomainError(name, text, "a number as text, such as '0.5' or '1/2'")


def mapping(description: Any) -> Mapping[str, Any]:
    """`description`, if it is a mapping."""
    return cast(Any, check.kind("description", description, Mapping, "a mapping"))


def exact_amounts(name: str, amounts: Any) -> dict[str, Fraction]:
    """Amounts by currency, exact, once it is certain that each is a number >= 0."""
    domain, given = "amounts >= 0 by currency", mapping(amounts)
    return {each: exact(_between(name, amount, 1e37, domain)) for each, amount in given.items()}


def _between(name: str, value: Any, most: float, domain: str) -> float | Fraction:
    """`value`, if it is in [0, most]; it is compared before it is made a fraction, which may be long."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        raise DomainError(name, value, domain)
    # A signaling NaN cannot even be compared.
    if (isinstance(value, Decimal) and value.is_nan()) or not 0 <= value <= most:
        raise DomainError(name, value, domain)
    if isinstance(value, float):
        return float(value) + 0
    # A decimal may be written short and be long: 1e-999999999.
    if not (isinstance(value, Decimal) and value and value.adjusted() < -DIGITS):
        number = Fraction(value)
        if number.denominator < 10**DIGITS:
            return number
    shown = f"<a fraction whose denominator has more than {DIGITS} digits>"
    domain = f"{domain}, whose denominator has at most {DIGITS} digits"
    raise DomainError(name, shown, domain, "Round it: a limit down, an amount to charge up")


# Totals of fixed budgets, and budgets for a target.
#
# The total at one delta is the least over the theorems that apply. A target asks for the largest budget within it.


SMALLEST = 1e-50
"""No parameter is searched for below this."""
_CLOSE = 1.0 + 1e-13


@dataclass(frozen=True)
class Total(Card):
    """An epsilon, an upper bound, and the theorem that gives it.

    Args:
        epsilon: In nats; infinite where nothing finite is proved.
        theorem: Its name.
        reference: The source of its proof.
    """

    epsilon: float
    theorem: str
    reference: str


def target(epsilon: Number, delta: Number) -> tuple[float, float]:
    """A target, both rounded down: epsilon above 0, and delta in (0, 1).

    Raises:
        DomainError: If a number is outside its domain.
    """
    most, at = exact(nonnegative("epsilon", epsilon)), exact(probability("delta", delta))
    if not most > 0 or not 0 < at < 1:
        raise DomainError(
            "epsilon and delta", (epsilon, delta), "epsilon above 0, and delta in (0, 1)"
        )
    return rounded_down(most), rounded_down(at)


def optimal(promise: ApproximateDP, times: int, *, delta: float) -> float:
    """The optimal composition of equal (epsilon, delta) promises, each of which may be an interaction.

    Reference: [KairouzOhViswanath2015, Theorem 3.3], [VadhanZhang2023]
    """
    from dpcompose.guarantee import homogeneous_epsilon  # it needs numpy

    found = homogeneous_epsilon(
        delta, epsilon=promise.epsilon, delta=promise.delta, times=times
    ).upper
    return min(found, promise.epsilon) if times == 1 and delta >= promise.delta else found


def largest(within: Callable[[float], bool], *, guess: float) -> float:
    """About the largest x > 0 that is proved to be within the target, of a claim that holds below it; 0 if none is."""
    low = high = min(max(guess, SMALLEST), LARGEST)
    while not within(low):
        low, high = low / 2.0, low
        if low < SMALLEST:
            return 0.0
    while high == low or within(high):
        low, high = high, high * 2.0
        if high > LARGEST:
            return low

    def middle(low: float, high: float) -> float:
        return math.sqrt(low) * math.sqrt(high) if high > low * _CLOSE else low

    return largest_between(within, low=low, high=high, middle=middle)


def sequence(name: str, value: Any) -> list[Any]:
    """A list of whatever is to be checked."""
    if not isinstance(value, list | tuple):
        raise DomainError(name, value, "a list")
    return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
