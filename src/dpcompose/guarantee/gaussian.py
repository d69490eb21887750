"""Gaussian differential privacy: the profile of N(mu, 1) against N(0, 1), and its inverses.

All rest on the upper tail of the normal distribution. `density`, `mills`, `mills_slope` and
`mills_drop` return `(value, error)`: the true number lies within `error * |value|` of `value`. The
errors are theorems about floating-point arithmetic, given that `math.exp` is accurate to 1 ulp (8
are allowed for) and that `scipy.special.erfcx` is accurate to `ERFCX_ERROR` on [-0.4, 3.6]:
measured against ball arithmetic at 60,000 points of each of nine intervals, its worst error there
is 10.4 units of roundoff; ten times that and more are allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import erfcx, ndtri

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.numerics import increasing_root, walk
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, around, down, up

_CLOSED_FORM = Certificate("Gaussian closed form (Mills' ratio)", unit="relative delta")
_TRADEOFF = Certificate("closed form, round-off bounded", unit="relative type II error")
_TINY = 5e-324
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class GaussianTradeoff:
    """A mu-Gaussian differential privacy (mu-GDP) guarantee.

    No test between the outputs on two neighbors is more powerful, at any level, than the best test
    between N(0, 1) and N(mu, 1).

    >>> GaussianTradeoff(1.0).profile(1.0).contains(0.12693673750664395)
    True

    Args:
        mu: The distance of the means in standard deviations; finite, >= 0.

    Raises:
        DomainError: If mu is not a finite number >= 0.

    Reference: [DongRothSu2022, Definition 2.6]
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check.nonnegative("mu", self.mu))

    def profile(self, epsilon: float) -> Bound:
        """The smallest delta for which mu-GDP implies (epsilon, delta)-DP, for any real `epsilon`."""
        return gaussian_profile(epsilon, mu=self.mu)

    def epsilon(self, delta: float) -> Bound:
        """The smallest epsilon >= 0, in nats, for which mu-GDP implies (epsilon, delta)-DP."""
        return gaussian_epsilon(delta, mu=self.mu)

    def tradeoff(self, alpha: float) -> Bound:
        """The trade-off function of mu-GDP at type I error `alpha`; see `gaussian_tradeoff`."""
        return gaussian_tradeoff(alpha, mu=self.mu)


def gaussian_profile(epsilon: float, *, mu: float) -> Bound:
    """The smallest delta for which mu-GDP implies (epsilon, delta)-differential privacy.

    delta = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu) = phi(a) (Mills(a) -
    Mills(a + mu)) with a = epsilon / mu - mu / 2. Both ends are certified. The relative width is at
    most 2e-12 for delta >= 1e-300; below that, the absolute width is at most 1e-323. Squares are
    exact and no difference cancels (see `mills_drop`).

    >>> gaussian_profile(5.0, mu=1.0).contains(5.793721691919494e-07)
    True

    Args:
        epsilon: In nats; any real number, infinite and negative ones included.
        mu: The distance of the means in standard deviations; finite, >= 0.

    Raises:
        DomainError: If epsilon is NaN or not a real number, or mu is not a finite number >= 0.

    Reference: [BalleWang2018, Theorem 8], [DongRothSu2022, Corollary 2.13]
    """
    epsilon, mu = check.real("epsilon", epsilon), check.nonnegative("mu", mu)
    if math.isinf(epsilon):
        return _certified(0.0 if epsilon > 0.0 else 1.0, 0.0 if epsilon > 0.0 else 1.0)
    if epsilon >= 0.0:
        return _certified(0.0, 0.0) if mu == 0.0 else _sides(epsilon, mu).delta
    # The pair is symmetric: delta(epsilon) = 1 - e^epsilon + e^epsilon delta(-epsilon), all terms positive.
    floor, mirrored, factor = (
        -math.expm1(epsilon),
        gaussian_profile(-epsilon, mu=mu),
        math.exp(epsilon),
    )
    margin = 16 * UNIT_ROUNDOFF
    return _certified(
        max(0.0, (floor + factor * mirrored.lower) * (1.0 - margin)),
        (floor + factor * mirrored.upper) * (1.0 + margin),
    )


def gaussian_epsilon(delta: float, *, mu: float) -> Bound:
    """The smallest epsilon >= 0 for which mu-GDP implies (epsilon, delta)-differential privacy.

    The root of `gaussian_profile` by Newton's method, then certified: the profile is proved to be
    at most `delta` at the upper end, and at least `delta` at the lower end unless that is 0. The
    relative width is at most 1e-12 for delta from 1e-300 to 1 - 1e-12, except near epsilon = 0,
    where the problem is ill-conditioned.

    >>> gaussian_epsilon(1e-5, mu=1.0).contains(4.377178095681225)
    True

    Args:
        delta: In [0, 1]; epsilon is infinite at 0 unless mu is 0.
        mu: The distance of the means in standard deviations; finite, >= 0.

    Raises:
        DomainError: If delta is outside [0, 1], or mu is not a finite number >= 0.

    Reference: [BalleWang2018, Theorem 8], [DongRothSu2022, Corollary 2.13]
    """
    delta, mu = check.probability("delta", delta), check.nonnegative("mu", mu)
    farthest = mu * (mu / 2.0 - float(ndtri(delta))) if 1e-300 <= delta <= 0.5 else 0.0
    if 0.0 < farthest < 1e300:
        quick = _enclosed(_neared(delta, mu, farthest), delta, mu)
        if quick is not None:
            return quick
    if mu == 0.0 or delta == 1.0 or _sides(0.0, mu).at_most(delta):
        return _certified_epsilon(0.0, 0.0)
    if delta == 0.0:
        return _certified_epsilon(math.inf, math.inf)
    farthest = mu * (mu / 2.0 - float(ndtri(delta)))
    if not farthest < 1e300:
        return Bound(
            0.0, math.inf, Certificate("Gaussian closed form", notes=("epsilon exceeds 1e300",))
        )
    point = increasing_root(
        _excess(delta, mu), start=farthest, lower=0.0, upper=farthest * (1.0 + 1e-9) + _TINY
    )
    margin = _margin(point, delta, mu)
    upper = walk(point, margin, lambda candidate: _sides(candidate, mu).at_most(delta))
    lower = walk(
        point, -margin, lambda candidate: candidate <= 0.0 or _sides(candidate, mu).at_least(delta)
    )
    return _certified_epsilon(max(0.0, lower), upper)


def gaussian_tradeoff(alpha: float, *, mu: float) -> Bound:
    """The smallest type II error at type I error `alpha` under mu-GDP, certified.

    It is Phi(Phi^-1(1 - alpha) - mu).

    >>> gaussian_tradeoff(0.05, mu=1.0).contains(0.7404889771585559)
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
        return Bound(1.0 - alpha, 1.0 - alpha, _TRADEOFF)
    quantile = upper_quantile(alpha)
    lower = upper_tail(Fraction(mu) - Fraction(quantile.lower)).lower
    return Bound(lower, upper_tail(Fraction(mu) - Fraction(quantile.upper)).upper, _TRADEOFF)


def gaussian_mu(epsilon: float, *, delta: float) -> Bound:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP; the lower end is the safe one.

    >>> gaussian_mu(1.0, delta=1e-5).contains(0.26805112321129422)
    True

    Args:
        epsilon: In nats; >= 0, infinite allowed.
        delta: A number in [0, 1].

    Raises:
        DomainError: If epsilon is negative or NaN, or delta is outside [0, 1].

    Reference: [BalleWang2018, Algorithm 1]
    """
    epsilon, delta = check.real("epsilon", epsilon), check.probability("delta", delta)
    if not epsilon >= 0.0:
        raise DomainError("epsilon", epsilon, "a number >= 0")
    if epsilon == math.inf or delta == 1.0:
        return _certified(math.inf, math.inf, clip=math.inf)
    if delta == 0.0:
        return _certified(0.0, 0.0)
    # delta increases with mu, and d delta / d mu = phi(a); the logarithm of mu is the variable.
    point = math.exp(
        increasing_root(_mu_excess(epsilon, delta), start=0.0, lower=-745.0, upper=355.0)
    )
    margin = 1e-14 * point + _TINY
    lower = walk(point, -margin, lambda mu: mu <= 0.0 or _sides(epsilon, mu).at_most(delta))
    upper = walk(point, margin, lambda mu: mu > 1e154 or _sides(epsilon, mu).at_least(delta))
    return _certified(max(0.0, lower), math.inf if upper > 1e154 else upper, clip=math.inf)


def _neared(delta: float, mu: float, farthest: float) -> float:
    # Uncertified: the root to about eight significant digits, by Newton's method; 0 if it leads
    # below 0.
    excess, point = _excess(delta, mu), farthest
    for _ in range(40):
        value, slope = excess(point)
        step = value / slope if slope > 0.0 else point
        point -= step
        if not point > 0.0:
            return 0.0
        if abs(step) * (1.0 + (point / mu + mu / 2.0 + 1.0) / mu) <= 1e-4:
            break
    return point


def _enclosed(point: float, delta: float, mu: float) -> Bound | None:
    # Both ends from the profile at one point and its slope: -delta' = e^epsilon Phi(-b) changes by
    # a factor of at most 1 + (b + 1) / mu per unit of epsilon, in logarithms, since 1 / Mills(b) <=
    # b + 1. None where that makes the bounds too wide.
    if not (point > 0.0 and mu <= 1e6):
        return None
    found = _sides(point, mu).delta
    _, steepness, _, _ = _logarithms(point, mu)
    slope = found.upper * steepness
    change = 1.0 + (point / mu + mu / 2.0 + 1.0) / mu
    # The slope may be larger or smaller by 2e-6: its own error, and its change over the interval.
    above, below = found.upper - delta, found.lower - delta
    if not max(abs(above), abs(below)) * change <= 1e-7 * slope:
        return None
    upper = point + above / slope * (1.0 + 2e-6 if above > 0.0 else 1.0 - 2e-6)
    lower = point + below / slope * (1.0 - 2e-6 if below > 0.0 else 1.0 + 2e-6)
    lower, upper = down(down(lower)), up(up(upper))
    return _certified_epsilon(lower, upper) if lower > 0.0 else None


@dataclass(frozen=True)
class _Sides:
    delta: Bound
    complement: Bound

    def at_most(self, target: float) -> bool:
        """Whether the profile is proved to be at most `target`.

        1 - target is exact for target >= 1/2.
        """
        return self.delta.upper <= target or (
            target >= 0.5 and self.complement.lower >= 1.0 - target
        )

    def at_least(self, target: float) -> bool:
        """Whether the profile is proved to be at least `target`."""
        return self.delta.lower >= target or (
            target >= 0.5 and self.complement.upper <= 1.0 - target
        )


def _sides(epsilon: float, mu: float) -> _Sides:
    # epsilon >= 0 and mu > 0, both finite; a and a + mu are rounded once, a^2 is not rounded at all.
    # near = top / base.
    (rise, fall), (size, part) = epsilon.as_integer_ratio(), mu.as_integer_ratio()
    top, base = 2 * rise * part * part - size * size * fall, 2 * size * part * fall
    if top > FARTHEST * base:
        return _Sides(_certified(0.0, _TINY), _certified(down(1.0), 1.0))
    if top < -FARTHEST * base:
        return _Sides(_certified(down(1.0), 1.0), _certified(0.0, _TINY))
    near, height, height_error = top / base, _height(top, base), 12 * UNIT_ROUNDOFF
    if near >= 0 or mu <= 1.0:
        drop, drop_error = mills_drop(near, width=mu)
        error = height_error + drop_error + 4 * UNIT_ROUNDOFF
        delta = around(height * drop, relative=error, absolute=4 * _TINY)
        return _Sides(
            _certified(delta.lower, delta.upper),
            _certified(down(1.0 - delta.upper), up(1.0 - delta.lower)),
        )
    (before, before_error), (after, after_error) = (
        mills(-near),
        mills((top * part + size * base) / (base * part)),
    )
    error = height_error + max(before_error, after_error) + 4 * UNIT_ROUNDOFF
    other = around(height * (before + after), relative=error, absolute=4 * _TINY)
    return _Sides(
        _certified(down(1.0 - other.upper), up(1.0 - other.lower)),
        _certified(other.lower, other.upper),
    )


def _height(top: int, base: int) -> float:
    # The normal density at top / base, to 12 u: the exponent is rounded once, and its remainder added.
    square, double = top * top, 2 * base * base
    leading = -square / double
    count, unit = leading.as_integer_ratio()
    remainder = -(square * unit + count * double) / (double * unit)
    return math.exp(leading) * (1.0 + remainder) / _ROOT_TWO_PI


def _logarithms(epsilon: float, mu: float) -> tuple[float, float, float, float]:
    # Uncertified: log delta, -d log delta / d epsilon, log (1 - delta), d log (1 - delta) / d epsilon.
    near = epsilon / mu - mu / 2.0
    # d delta / d epsilon = -e^epsilon Phi(-b) = -phi(a) Mills(b), b = a + mu.
    slope = mills(max(near + mu, 0.0))[0]
    log_height = -near * near / 2.0 - 0.5 * math.log(2.0 * math.pi)
    if near >= 0.0 or mu <= 1.0:
        drop = mills_drop(max(near, -0.5), width=mu)[0]
        log_delta = log_height + math.log(drop)
        complement = -math.expm1(min(log_delta, -_TINY))
        return (
            log_delta,
            slope / drop,
            math.log(complement),
            math.exp(log_height) * slope / complement,
        )
    ratio = mills(-near)[0] + slope
    log_complement = log_height + math.log(ratio)
    delta = -math.expm1(min(log_complement, -_TINY))
    return math.log(delta), math.exp(log_height) * slope / delta, log_complement, slope / ratio


def _excess(delta: float, mu: float) -> Callable[[float], tuple[float, float]]:
    # Increasing in epsilon, zero where the profile is delta; log-concave tails make Newton's method converge globally.
    def above_half(point: float) -> tuple[float, float]:
        _, _, log_complement, slope = _logarithms(point, mu)
        return log_complement - math.log1p(-delta), slope

    def below_half(point: float) -> tuple[float, float]:
        log_delta, slope, _, _ = _logarithms(point, mu)
        return math.log(delta) - log_delta, slope

    return above_half if delta > 0.5 else below_half


def _mu_excess(epsilon: float, delta: float) -> Callable[[float], tuple[float, float]]:
    def excess(log_mu: float) -> tuple[float, float]:
        mu = math.exp(log_mu)
        near = epsilon / mu - mu / 2.0
        if abs(near) > 1e3:
            return (math.inf if near < 0.0 else -math.inf), 0.0
        height = math.exp(-near * near / 2.0 - 0.5 * math.log(2.0 * math.pi))
        log_delta, _, log_complement, _ = _logarithms(epsilon, mu)
        if delta > 0.5:
            return math.log1p(-delta) - log_complement, mu * height / max(
                math.exp(log_complement), _TINY
            )
        return log_delta - math.log(delta), mu * height / max(math.exp(log_delta), _TINY)

    return excess


def _margin(point: float, delta: float, mu: float) -> float:
    # The width in epsilon that corresponds to the error of the profile, plus two units in the last
    # place.
    _, slope, _, complement_slope = _logarithms(point, mu)
    sides = _sides(point, mu)
    side, steepness = (sides.complement, complement_slope) if delta > 0.5 else (sides.delta, slope)
    error = side.width / max(side.upper, _TINY)
    return max(0.6 * error / max(steepness, _TINY), 2.0 * math.ulp(point))


def _certified(lower: float, upper: float, *, clip: float = 1.0) -> Bound:
    return Bound(max(0.0, lower), min(clip, upper), _CLOSED_FORM)


def _certified_epsilon(lower: float, upper: float) -> Bound:
    return Bound(lower, upper, _CLOSED_FORM)


ERFCX_ERROR = 110 * UNIT_ROUNDOFF
FARTHEST = 45
"""Beyond 45 standard deviations a tail is below 1e-400: no float can tell it from zero."""
FRACTION_FROM = 5.0
"""From here on Mills' ratio comes from Laplace's continued fraction, whose error is proved."""
FRACTION_TERMS = 24
FRACTION_ERROR = 30 * UNIT_ROUNDOFF
"""Convergents at x = 5 differ by 19.4 units of roundoff, less beyond; rounding adds 3.4."""

# Abscissae and weights of the ten-point Gauss-Legendre rule on [0, 1], rounded from ball arithmetic.
_NODES = (
    (0.01304673574141414, 0.03333567215434407),
    (0.06746831665550775, 0.0747256745752903),
    (0.1602952158504878, 0.10954318125799102),
    (0.2833023029353764, 0.13463335965499817),
    (0.4255628305091844, 0.14776211235737644),
    (0.5744371694908156, 0.14776211235737644),
    (0.7166976970646236, 0.13463335965499817),
    (0.8397047841495122, 0.10954318125799102),
    (0.9325316833444922, 0.0747256745752903),
    (0.9869532642585859, 0.03333567215434407),
)


def density(point: Fraction) -> tuple[float, float]:
    """The standard normal density at `point`, and its relative error.

    The error is an absolute one if the density is below 1e-300.

    The square of `point` is exact.
    """
    exponent = -point * point / 2
    leading = float(exponent)
    remainder = float(exponent - Fraction(leading))
    return math.exp(leading) * (1.0 + remainder) / math.sqrt(2.0 * math.pi), 12 * UNIT_ROUNDOFF


def mills(point: float) -> tuple[float, float]:
    """Mills' ratio (1 - Phi(x)) / phi(x) at x = `point` >= -1/2, and its relative error.

    The error includes a rounding of x, to which the relative sensitivity is at most 1 for x >= 0,
    and at most 0.6 on [-1/2, 0].
    """
    if point < FRACTION_FROM:
        return math.sqrt(math.pi / 2.0) * float(
            erfcx(point / math.sqrt(2.0))
        ), ERFCX_ERROR + 8 * UNIT_ROUNDOFF
    return 1.0 / (point + _fraction_tail(point)), FRACTION_ERROR + 4 * UNIT_ROUNDOFF


def mills_slope(point: float) -> tuple[float, float]:
    """1 - x Mills(x), minus the slope of Mills' ratio, at x = `point` >= -1/2; its relative error.

    It is int_0^inf t exp(-x t - t^2 / 2) dt, hence completely monotone. The error includes a
    rounding of x, to which the relative sensitivity is at most 2.
    """
    if point < FRACTION_FROM:
        ratio, error = mills(point)
        slope = 1.0 - point * ratio
        return slope, (
            abs(point) * ratio * (error + 2 * UNIT_ROUNDOFF) + UNIT_ROUNDOFF
        ) / slope + 4 * UNIT_ROUNDOFF
    tail = _fraction_tail(point)
    return tail / (point + tail), 2 * FRACTION_ERROR


def mills_drop(point: float, *, width: float) -> tuple[float, float]:
    """Mills(x) - Mills(x + width) at x = `point`, and its relative error.

    It is defined for x >= -1/2 and 0 < width <= 1, and for x >= 0 and any width > 0.

    Up to a width of 1 it is the integral of `mills_slope` by ten-point Gauss-Legendre quadrature.
    Even derivatives of a completely monotone function are positive, hence the rule is too small, by
    a relative 2e-16 at most for x <= 45: the error is at most 1.4e-28 width^21 times the 20th
    derivative of the slope, itself at most 2^10 10! e^(1/2) / (3/4)^11, against a slope of at least
    1 / ((x + width)^2 + 3). For larger widths, and from width 1/4 on where erfcx evaluates both
    ends, the two values are subtracted and the error accounts for cancellation.
    """
    if width < 0.25 or (width <= 1.0 and point + width > FRACTION_FROM):
        total = worst = 0.0
        for abscissa, weight in _NODES:
            slope, error = mills_slope(point + width * abscissa)
            total += weight * slope
            worst = max(worst, error)
        return width * total, worst + 40 * UNIT_ROUNDOFF
    near, near_error = mills(point)
    far, far_error = mills(point + width)
    drop = near - far
    # The argument point + width is rounded twice: once here, once in the caller.
    return drop, (
        near * near_error + far * (far_error + 4 * UNIT_ROUNDOFF)
    ) / drop + 4 * UNIT_ROUNDOFF


def _fraction_tail(point: float) -> float:
    # Laplace: Mills(x) = 1 / (x + 1 / (x + 2 / (x + 3 / ...))); all terms positive, convergents enclose the value.
    tail = 0.0
    for term in range(FRACTION_TERMS, 0, -1):
        tail = term / (point + tail)
    return tail


def upper_tail(point: Fraction) -> Bound:
    """P[N(0, 1) > point], certified.

    The relative width is below 1e-13 for point >= 0; for point < 0 that of its complement is.
    """
    if point < 0:
        other = upper_tail(-point)
        return Bound(max(0.0, down(1.0 - other.upper)), min(1.0, up(1.0 - other.lower)))
    if point > FARTHEST:
        return Bound(0.0, 5e-324)
    (height, height_error), (ratio, ratio_error) = density(point), mills(float(point))
    tail = around(
        height * ratio, relative=height_error + ratio_error + 4 * UNIT_ROUNDOFF, absolute=2e-323
    )
    return Bound(max(0.0, tail.lower), min(0.5, tail.upper))


def upper_quantile(tail: float) -> Bound:
    """The point x with P[N(0, 1) > x] = `tail`, for tail in (0, 1), certified."""
    if tail > 0.5:
        other = upper_quantile(1.0 - tail)
        return Bound(-other.upper, -other.lower)
    point = -float(ndtri(tail))
    margin = max(2.0 * math.ulp(point), 1e-14)
    above = walk(point, margin, lambda x: upper_tail(Fraction(x)).upper <= tail)
    return Bound(walk(point, -margin, lambda x: upper_tail(Fraction(x)).lower >= tail), above)
