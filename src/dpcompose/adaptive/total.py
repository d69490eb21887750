"""The total of several fixed budgets at one delta: each theorem that applies is evaluated, and the least kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.guarantee.optimal import homogeneous_epsilon
from dpcompose.numerics.bound import UNIT_ROUNDOFF, up
from dpcompose.numerics.exact import double_below


@dataclass(frozen=True)
class Total:
    """An epsilon, an upper bound, and the theorem that gives it.

    Args:
        epsilon: In nats; infinite where nothing finite is proved.
        theorem: Its name.
        reference: Where it is proved.
    """

    epsilon: float
    theorem: str
    reference: str


def asked(delta: Fraction, lost: Iterable[tuple[Fraction, float, int]]) -> float:
    """Where to ask what is computed with the losses' deltas rounded up, for the answer at `delta` without rounding.

    With a mass c lost outright, epsilon at delta is that of the rest at (delta - c) / (1 - c). So 1 - delta shrinks by
    the factor (1 - c'') / (1 - c) = 1 - h for each c that is rounded up to c''; (1 - h)^n <= 1 - n h + (n h)^2 / 2.
    Rounded down; so that what leaves 1e-6 out has an epsilon at 1e-6, whatever the doubles next to it are.

    Args:
        delta: Exactly what was asked.
        lost: Exact deltas, with what they were rounded up to, and how often each is lost.
    """
    for exactly, rounded, times in lost:
        if exactly < min(delta, 1):
            share = times * (Fraction(rounded) - exactly) / (1 - exactly)
            kept = share - (share * share / 2 if times > 1 else 0)
            delta += (1 - delta) * max(kept, Fraction(0)) if share < 1 else 0
        elif exactly == delta and times == 1:
            delta = Fraction(rounded)
    return double_below(delta)


def least(totals: Iterable[Total]) -> Total:
    """The smallest: all are true at the same delta."""
    return min(totals, key=lambda total: total.epsilon)


def optimal(promise: ApproximateDP, times: int, *, delta: float) -> Total:
    """The optimal composition of equal (epsilon, delta) promises, each of which may be an interaction.

    Reference: [KairouzOhViswanath2015, Theorem 3.3], [VadhanZhang2023]
    """
    found = homogeneous_epsilon(delta, epsilon=promise.epsilon, delta=promise.delta, times=times).upper
    if times == 1 and delta >= promise.delta:
        found = min(found, promise.epsilon)
    return Total(found, "optimal composition", "[KairouzOhViswanath2015, Theorem 3.3]")


def sum_of_rho(promise: ConcentratedDP, times: int, *, delta: float) -> Total:
    """The sum of the rho; what each promise leaves out is left out with probability at most 1 - (1 - delta)^times.

    Reference: [WhitehouseRamdasRogersWu2023, Theorem 1]
    """
    rho = up(promise.rho * times) if times > 1 else promise.rho
    kept = times * math.log1p(-promise.delta) if promise.delta < 1.0 else -math.inf
    lost = promise.delta if times == 1 else min(1.0, up(-math.expm1(kept) * (1.0 + 16 * UNIT_ROUNDOFF)))
    found = ConcentratedDP(rho, delta=lost if promise.delta else 0.0).epsilon(delta=delta) if times else 0.0
    return Total(found, "sum of rho", "[WhitehouseRamdasRogersWu2023, Theorem 1]")


def curve(promise: Callable[[float], float], times: int, *, delta: float, lost: float, least_share: float) -> Total:
    """The optimal composition of one (epsilon, d) of the curve each, the best of a few d between `lost` and delta.

    Args:
        promise: From a delta to the epsilon of one budget.
        times: How many budgets.
        delta: Of all together.
        lost: The delta that one budget cannot go below.
        least_share: The smallest part of (delta - times lost) / times that is tried.
    """
    spare = delta / times - lost
    if not spare > 0.0:
        return Total(math.inf, "optimal composition", "[KairouzOhViswanath2015, Theorem 3.3]")
    shares = [least_share ** (step / 4.0) * 0.9 for step in range(5)]
    points = [lost + spare * share for share in shares]
    return least(optimal(ApproximateDP(promise(point), delta=point), times, delta=delta) for point in points)
