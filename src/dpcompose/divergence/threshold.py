"""The ratio a = e^epsilon at which two distributions are compared, given as epsilon or, exactly, as a."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcompose.divergence.distribution import Rational, exact
from dpcompose.divergence.enclosure import Arithmetic
from dpcompose.errors import DomainError

# Beyond e^-3000 an enclosure would only carry zeros around.
_VANISHING = Fraction(1, 10**1000)


@dataclass(frozen=True)
class Threshold:
    """Rational numbers with `lower <= a <= upper`; equal where a is rational."""

    lower: Fraction
    upper: Fraction


def exact_ratio(value: Any, *, least: int = 0) -> Fraction:
    """`value` as a rational ratio e^epsilon of at least `least`."""
    domain = f"a finite ratio e^epsilon >= {least}"
    ratio = exact("ratio", value, domain)
    if not ratio >= least:
        raise DomainError("ratio", value, domain)
    return ratio


def one_of(epsilon: Any, ratio: Any) -> None:
    """Refuses unless exactly one of the two is given."""
    if (epsilon is None) == (ratio is None):
        raise DomainError("epsilon, ratio", (epsilon, ratio), "exactly one of the two")


def exponential(epsilon: Fraction, *, arithmetic: Arithmetic) -> Threshold:
    """An enclosure of e^epsilon."""
    if epsilon == 0:
        return Threshold(Fraction(1), Fraction(1))
    if epsilon < -3000:
        return Threshold(Fraction(0), _VANISHING)
    interval = arithmetic.exp(arithmetic.of(epsilon))
    return Threshold(Fraction(interval.lower), Fraction(interval.upper))


def floor_ratio(epsilon: Rational | None, ratio: Rational | None) -> Fraction:
    """The ratio a >= 1 itself, or a rational number in [1, e^epsilon] within a relative 1e-58 of e^epsilon.

    Raises:
        DomainError: Unless exactly one is given, and epsilon in [0, 1e6] or ratio >= 1.
    """
    one_of(epsilon, ratio)
    if epsilon is None:
        return exact_ratio(ratio, least=1)
    domain = "a number in [0, 1e6]"
    power = exact("epsilon", epsilon, domain)
    if not 0 <= power <= 10**6:
        raise DomainError("epsilon", epsilon, domain)
    # Of a tiny epsilon the enclosure begins below 1.
    return max(exponential(power, arithmetic=Arithmetic(60)).lower, Fraction(1))
