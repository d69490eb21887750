"""Lemma 3.19: a sum of bounded, slightly drifting variables rarely strays far."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from decimal import Decimal

from dpcompose.errors import DomainError
from dpcompose.numerics import check
from dpcompose.numerics.exact import digits, float_above


@dataclass(frozen=True)
class Deviation:
    """P[sum > threshold] <= probability, both rounded up.

    Args:
        threshold: What the sum is compared with.
        probability: The bound.
    """

    threshold: float
    probability: float


def azuma(deviations: float, *, times: int, size: float, drift: float) -> Deviation:
    """If |C_i| <= size and E[C_i | past] <= drift, then P[sum C_i > k drift + z sqrt(k) size] <= e^(-z^2 / 2).

    It is Hoeffding's form, which uses that each C_i varies over a range of 2 size; Azuma's own, with |C_i - E C_i| <=
    2 size, would give e^(-z^2 / 8).

    >>> round(azuma(3.0, times=100, size=0.1, drift=0.005).probability, 15)
    0.011108996538242

    Args:
        deviations: The z of the lemma; finite, > 0.
        times: The number of variables, an integer from 1 to 10^15.
        size: The bound on each of them; finite, >= 0.
        drift: The bound on each conditional mean; finite, of at most `size` in absolute value.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRoth2014, Lemma 3.19]
    """
    deviations, times = check.positive("deviations", deviations), check.times(times, least=1)
    size, drift = check.nonnegative("size", size), check.finite("drift", drift)
    if not abs(drift) <= size:
        raise DomainError("drift", drift, f"at most the size {size!r} in absolute value: no variable has another mean")
    with decimal.localcontext(digits(80)):
        score = Decimal(deviations)
        reach = score * Decimal(times).sqrt() * Decimal(size)
        # A negative drift may take away nearly all of it, and with it the digits that are known.
        threshold = times * Decimal(drift) + reach * (1 + Decimal("1e-70"))
        return Deviation(float_above(threshold), float_above((-min(score * score / 2, Decimal(10**6))).exp()))
