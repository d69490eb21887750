"""The probability that (epsilon, delta) promises fail outright, and the delta that remains for all else."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from decimal import Decimal

from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, decimal_context, down, up

Failures = Sequence[tuple[float, int]]
"""Pairs (delta, times)."""


def with_failures(pure: Bound, failures: Failures, certificate: Certificate) -> Bound:
    """1 - prod (1 - delta_i)^(k_i) (1 - pure): the infinite losses put together with the finite ones, certified."""
    if any(delta == 1.0 and times for delta, times in failures):
        return Bound(1.0, 1.0, certificate)
    exponent = math.fsum(times * math.log1p(-delta) for delta, times in failures)
    if exponent == 0.0:
        return Bound(pure.lower, pure.upper, certificate)
    infinite, finite = -math.expm1(exponent), math.exp(exponent)
    error = UNIT_ROUNDOFF * (40.0 + 12.0 * min(abs(exponent), 800.0))
    lower = down((infinite + finite * pure.lower) * (1.0 - error))
    return Bound(
        max(0.0, lower), min(1.0, up((infinite + finite * pure.upper) * (1.0 + error))), certificate
    )


def remaining_delta(target: float, failures: Failures) -> Bound | None:
    """(target - D) / (1 - D), D = 1 - prod (1 - delta_i)^(k_i), enclosed; None where it is certainly negative.

    The lower end is negative where it is not known whether the target is feasible.
    """
    failures = [(delta, times) for delta, times in failures if delta > 0.0 and times > 0]
    if not failures:
        return Bound(target, target)
    if len(failures) == 1 and failures[0] == (target, 1):
        return Bound(0.0, 0.0)
    quick = _remaining(target, failures)
    if quick is not None:
        return quick
    # Enough digits to tell k delta from 1 - (1 - delta)^k, which differ by about (k delta)^2 / 2.
    places = 80 + 2 * max(math.ceil(-math.log10(delta)) for delta, _ in failures)
    places = max(places, 80 + math.ceil(-math.log10(target)) if target else 0)
    with decimal.localcontext(decimal_context(places)):
        kept = Decimal(1)
        for delta, times in failures:
            kept *= (1 - Decimal(delta)) ** times
        failed = 1 - kept
        uncertain = Decimal(10) ** (20 - places)
        low, high = Decimal(target) - failed - uncertain, Decimal(target) - failed + uncertain
        if high < 0 or kept < uncertain:
            return None
        lower = down(float(low / kept))
        return Bound(lower if low < 0 else max(0.0, lower), min(1.0, up(float(high / kept))))


def _remaining(target: float, failures: Failures) -> Bound | None:
    """The same in floats, where the difference keeps its digits."""
    if any(delta > 0.5 for delta, _ in failures):
        return None
    exponent = math.fsum(times * math.log1p(-delta) for delta, times in failures)
    # log1p errs by 8 u, so do expm1 and exp; the product and the sum by u each.
    failed = -math.expm1(exponent)
    difference = target - failed
    if not (
        difference > 1e-300
        and 40 * UNIT_ROUNDOFF * failed <= 1e-13 * difference
        and exponent > -1.0
    ):
        return None
    value = difference / math.exp(exponent)
    error = UNIT_ROUNDOFF * (20.0 * failed / difference - 10.0 * exponent + 16.0)
    return Bound(value * (1.0 - error), value * (1.0 + error))


def mirrored_epsilon(
    target: float, delta: Callable[[float], Bound], certificate: Certificate
) -> Bound:
    """The profile of a symmetric pair at a negative epsilon from the one at its opposite.

    delta(epsilon) = 1 - e^epsilon + e^epsilon delta(-epsilon); every term is positive.
    """
    floor, factor, other = -math.expm1(target), math.exp(target), delta(-target)
    error = 24 * UNIT_ROUNDOFF
    lower, upper = (
        (floor + factor * other.lower) * (1.0 - error),
        (floor + factor * other.upper) * (1.0 + error),
    )
    return Bound(max(0.0, down(lower)), min(1.0, up(upper)), certificate)
