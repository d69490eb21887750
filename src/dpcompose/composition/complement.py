"""One order of a pair, read from the other one: a test and its complement."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcompose.composition.elementary import wide
from dpcompose.loss import Product
from dpcompose.values import Bound, Certificate

_FAR, _HALVINGS, _LARGEST = 1e-2, 16, 30.0
"""Above this relative width an order is also read from the other one, by as many halvings; not beyond this epsilon."""


def narrower(products: Sequence[Product], delta: float, found: Sequence[Bound]) -> list[Bound]:
    """The epsilons of both orders of one pair, where the one is wide and the other is not with that order's help."""
    first, second = found
    return [_helped(first, second, products[1], delta), _helped(second, first, products[0], delta)]


def _helped(known: Bound, others: Bound, other: Product, delta: float) -> Bound:
    helps = known.width > _FAR * known.upper and known.lower < _LARGEST and not wide(others, 1e-6)
    return epsilon(other, delta, known) if helps else known


def epsilon(other: Product, delta: float, known: Bound) -> Bound:
    """Where the one order's delta is that value, from the other order's profile H, at most as wide as what is known.

    A test of P against Q and its complement have P(S) - e^x Q(S) = 1 - e^x + e^x (Q(S^c) - e^-x P(S^c)), so that the
    one order's delta at x is 1 - e^x + e^x H(-x), here to a rounding of 8 U (1 + e^x).
    """
    lower, upper = known.lower, min(known.upper, _LARGEST)
    low, high = lower, upper
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found, growth = other.delta(-middle, tolerance=1e-13), math.exp(middle)
        rounding = 2.0**-50 * (1 + growth)
        least_here, most_here = (
            growth * end - math.expm1(middle) for end in (found.lower, found.upper)
        )
        if most_here + rounding <= delta:
            high = upper = middle
        elif least_here - rounding > delta:
            low = lower = middle
        else:  # near the solution, where only a point farther out is proved
            break
    if upper >= known.upper and lower <= known.lower:
        return known
    return Bound(
        lower, upper if upper < _LARGEST else known.upper, Certificate("profile of the other order")
    )
