"""Exact numbers in, balls out: the little that every oracle needs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx, fmpq

Number = int | float | Fraction | arb

HALF = Fraction(1, 2)


def ball(value: Number) -> arb:
    """The ball of an exact number: a float is that very double."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return value if isinstance(value, arb) else arb(value)


def ratio(numerator: int | float | Fraction, denominator: int | float | Fraction) -> Fraction:
    """The exact quotient of two doubles."""
    return Fraction(numerator) / Fraction(denominator)


def widen(center: arb, by: arb) -> arb:
    """`center` -+ `by`."""
    return center + by * arb(0, 1)


def floor(value: arb) -> int:
    """The integer part of the middle of `value`."""
    whole = value.mid().floor().unique_fmpz()
    assert whole is not None  # the middle is one number
    return int(whole)


def span(lower: arb, upper: arb) -> arb:
    """The ball around [lower, upper]."""
    return lower.union(upper)


def hockey(loss: arb) -> arb:
    """(1 - e^{-loss})_+, also where the sign of `loss` is not known."""
    if loss <= 0:
        return arb(0)
    value = -(-loss).expm1()
    return value if loss > 0 else arb(0).union(value.nonnegative_part())


def unit(value: arb) -> arb:
    """`value`, known to lie in [0, 1], without the part of its ball outside."""
    return value if 0 <= value <= 1 else value.nonnegative_part().min(arb(1))


def refined(
    oracle: Callable[[], arb], *, bits: int = 80, start: int = 128, limit: int = 1 << 15
) -> arb:
    """The ball that `oracle` returns at the first working precision where `bits` of it are right."""
    precision = start
    while True:
        with ctx.workprec(precision):
            value = oracle()
        if value.is_zero() or value.rel_accuracy_bits() >= bits or precision >= limit:
            return value
        precision *= 2


def inverse(
    curve: Callable[[arb], arb],
    target: Number,
    *,
    low: Number = 0,
    high: Number = 1,
    bits: int = 75,
) -> arb:
    """The smallest x >= `low` with curve(x) <= target, for a decreasing curve: a proved bracket by Illinois steps."""
    with ctx.workprec(bits + 64):
        goal = ball(target)
        left, right = ball(low), ball(high)
        if curve(left) <= goal:
            return left
        while not curve(right) <= goal:
            left, right = (right, 2 * right) if curve(right) > goal else (left, 2 * right)
        at_left, at_right = _gap(curve, left, goal), _gap(curve, right, goal)
        side = 0
        for turn in range(400):
            if right - left <= right.abs_upper() * arb(2) ** -bits:
                break
            weight = at_left / (at_left - at_right) if turn % 4 != 3 else arb(HALF.numerator) / 2
            point = (left + (right - left) * weight).mid()
            if not left < point < right:
                point = ((left + right) / 2).mid()
            gap = _gap(curve, point, goal)
            if gap > 0:
                left, at_left, at_right = point, gap, at_right / 2 if side > 0 else at_right
                side = 1
            elif gap < 0:
                right, at_right, at_left = point, gap, at_left / 2 if side < 0 else at_left
                side = -1
            else:
                return _around(curve, point, goal, left, right)
        return left.union(right)


def _gap(curve: Callable[[arb], arb], point: arb, goal: arb) -> arb:
    value = curve(point)
    return (value / goal).log() if value > 0 else (arb(-1) if value < goal else value - goal)


def _around(curve: Callable[[arb], arb], point: arb, goal: arb, left: arb, right: arb) -> arb:
    """A bracket around a point where the curve cannot be told from the goal."""
    step = point.abs_upper() * arb(2) ** -200 + arb(2) ** -300
    while point - step > left and not curve((point - step).mid()) > goal:
        step *= 4
    low = (point - step).mid() if point - step > left else left
    step = point.abs_upper() * arb(2) ** -200 + arb(2) ** -300
    while point + step < right and not curve((point + step).mid()) <= goal:
        step *= 4
    return low.union((point + step).mid() if point + step < right else right)
