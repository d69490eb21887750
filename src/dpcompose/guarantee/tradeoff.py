"""Trade-off functions: the smallest type II error of a test between the two worlds, at a type I error."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpcompose.errors import DomainError
from dpcompose.guarantee.approximate import ApproximateDP, promise_of
from dpcompose.numerics import check
from dpcompose.numerics.bound import UNIT_ROUNDOFF, Bound, Certificate, down, up
from dpcompose.numerics.normal_tail import upper_quantile, upper_tail
from dpcompose.numerics.roots import minimum

_ROUNDED = Certificate("closed form, round-off bounded", unit="relative type II error")
_SEARCHED = Certificate("supremum of the supporting lines of a privacy profile", unit="absolute type II error")


def blowup(alpha: float, *, promise: ApproximateDP) -> Bound:
    """The largest power at level alpha of a test against an (epsilon, delta)-DP mechanism: 1 minus the trade-off.

    min(1, delta + e^epsilon alpha, 1 - e^-epsilon (1 - delta - alpha)); certified to a few units in the last place.

    >>> round(blowup(0.3, promise=ApproximateDP(0.5, delta=1e-3)).upper, 13)
    0.49561638121

    Args:
        alpha: The type I error, in [0, 1].
        promise: What the mechanism promises.

    Raises:
        DomainError: If alpha is outside [0, 1], or promise is not an ApproximateDP.

    Reference: [DongRothSu2022, Proposition 2.5]
    """
    alpha, promise = check.probability("alpha", alpha), promise_of(promise)
    epsilon, delta = promise.epsilon, promise.delta
    if promise.vacuous or Fraction(alpha) >= 1 - Fraction(delta):
        return Bound(1.0, 1.0, _ROUNDED)
    # The third line as a sum of positive terms, (1 - e^-epsilon) + e^-epsilon (delta + alpha).
    steep = delta + math.exp(min(epsilon, 700.0)) * alpha
    shallow = -math.expm1(-epsilon) + math.exp(-epsilon) * (delta + alpha)
    lower = min(1.0, steep, shallow)
    # Beyond e^700 the steep line is known from below only.
    upper = lower if epsilon <= 700.0 or alpha == 0.0 else min(1.0, shallow)
    return Bound(max(0.0, down(lower * (1.0 - 16 * UNIT_ROUNDOFF))), min(1.0, up(upper * (1.0 + 16 * UNIT_ROUNDOFF))))


def approximate(alpha: float, *, promise: ApproximateDP) -> Bound:
    """The trade-off of (epsilon, delta)-DP: max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta - alpha)).

    >>> approximate(0.05, promise=ApproximateDP(1.0, delta=1e-5)).contains(0.8640759085770477)
    True

    Args:
        alpha: The type I error, in [0, 1].
        promise: What the mechanism promises.

    Raises:
        DomainError: If alpha is outside [0, 1], or promise is not an ApproximateDP.

    Reference: [DongRothSu2022, Proposition 2.5]
    """
    power = blowup(alpha, promise=promise)
    room = 1 - Fraction(alpha) - Fraction(promise.delta)
    if promise.vacuous or room <= 0:
        return Bound(0.0, 0.0, _ROUNDED)
    # Where the third line is active, its own form keeps the relative accuracy that 1 - power loses.
    shallow = math.exp(-promise.epsilon) * float(room)
    lower = max(0.0, down(1.0 - power.upper), down(shallow * (1.0 - 16 * UNIT_ROUNDOFF)))
    return Bound(lower, max(lower, up(1.0 - power.lower)), _ROUNDED)


def gaussian(alpha: float, *, mu: float) -> Bound:
    """The trade-off function of mu-GDP: Phi(Phi^-1(1 - alpha) - mu), certified.

    >>> gaussian(0.05, mu=1.0).contains(0.7404889771585559)
    True

    Args:
        alpha: The type I error, in [0, 1].
        mu: The distance of the means in standard deviations; finite, >= 0.

    Raises:
        DomainError: If alpha is outside [0, 1], or mu is not a finite number >= 0.

    Reference: [DongRothSu2022, Definition 2.6]
    """
    alpha, mu = check.probability("alpha", alpha), check.nonnegative("mu", mu)
    if alpha in (0.0, 1.0):
        return Bound(1.0 - alpha, 1.0 - alpha, _ROUNDED)
    quantile = upper_quantile(alpha)
    lower = upper_tail(Fraction(mu) - Fraction(quantile.lower)).lower
    return Bound(lower, upper_tail(Fraction(mu) - Fraction(quantile.upper)).upper, _ROUNDED)


def from_profile(alpha: float, *, profile: Callable[[float], Bound]) -> Bound:
    """The trade-off function of whatever has this profile: the supremum of 1 - delta(epsilon) - e^epsilon alpha.

    Every epsilon, negative ones included, bounds it from below, with the upper end of the profile. In a = e^epsilon the
    lines form a concave function: two chords beyond the best point bound it from above, with the lower ends.

    Args:
        alpha: The type I error, in [0, 1].
        profile: From a real epsilon (infinite at alpha 0) to delta, convex and decreasing in e^epsilon.

    Raises:
        DomainError: If alpha is outside [0, 1], or profile is not callable.

    Reference: [DongRothSu2022, Proposition 2.12]
    """
    alpha = check.probability("alpha", alpha)
    if not callable(profile):
        raise DomainError("profile", profile, "a function from epsilon to a Bound on delta")
    if alpha == 1.0:
        return Bound(0.0, 0.0, _SEARCHED)
    if alpha == 0.0:
        # The supremum is approached at infinity, where the profile is the probability of an infinite loss.
        lost = profile(math.inf)
        return Bound(max(0.0, down(1.0 - lost.upper)), min(1.0, up(1.0 - lost.lower)), _SEARCHED)

    def line(epsilon: float) -> Bound:
        delta, cost = profile(epsilon), math.exp(epsilon) * alpha
        slack = 8 * UNIT_ROUNDOFF * (1.0 + cost)
        return Bound(down(1.0 - delta.upper - cost - slack), up(1.0 - delta.lower - cost + slack))

    best = minimum(lambda epsilon: -line(epsilon).lower, start=0.0, step=1.0, limit=650.0, steps=45)
    lower = max(0.0, line(best).lower)
    upper = 1.0 - alpha
    for stride in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0):
        upper = min(upper, _above(line, best, stride))
    return Bound(min(lower, upper), upper, _SEARCHED)


def _above(line: Callable[[float], Bound], best: float, stride: float) -> float:
    # The maximum of a concave function of a = e^epsilon, from three points, if it surely lies between the outer two.
    left, middle, right = line(best - stride), line(best), line(best + stride)
    if not (left.upper <= middle.lower and right.upper <= middle.lower):
        return 1.0
    ratio = math.exp(stride)
    over_left = middle.upper + (middle.upper - right.lower) / ratio
    over_right = middle.upper + (middle.upper - left.lower) * ratio
    return up(max(over_left, over_right) * (1.0 + 16 * UNIT_ROUNDOFF))
