"""Real orders close to the saddle point, where the contour is placed. Any order is valid; the
choice only affects the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcompose.contour.contour import kernel_peak
from dpcompose.contour.transform import Cumulants, Transform
from dpcompose.numerics import Reals

LEAST_ORDER, MOST = 2.0**-20, 2.0**40
_LARGEST = 1e7
"""The largest order * value: beyond it the rounding error of that product is too large."""
# Multiples of a guess: evaluating K at all of them in a table is cheaper than several Newton steps.
_AROUND = 1.3 ** np.arange(-8.0, 4.0)
_BETWEEN = np.linspace(0.0, 1.0, 10)
# Multiples of a guess that cover the saddle point and the orders around it that may be used for a
# line or a bound.
_LADDER = np.exp(np.arange(-1.2, 1.85, 0.1))
# Finer multiples, for an M that becomes infinite soon above the guess.
_FINER_LADDER = np.exp(np.arange(-1.2, 0.27, 0.05))
_STEEP, _STEEPEST = 8.0, 100.0
# Multiples of a known saddle point, densest close to it; `_CENTER` is the index of the saddle
# point.
_MULTIPLES = np.exp(
    np.concatenate(
        [
            np.arange(-0.56, 0.0, 0.07),
            [0.0, 0.015],
            np.arange(0.035, 0.25, 0.05),
            np.arange(0.3, 1.8, 0.15),
        ]
    )
)
_CENTER = 8


@dataclass(frozen=True)
class Chart:
    """A table of the cumulant generating function K = log M and its derivatives at orders around a
    saddle point.

    Args:
        orders: Increasing, each of at most 24 binary digits, shape (n,).
        curve: K and its derivatives at these orders.
        at: The index of the saddle point, which is accurate to a few percent.
    """

    orders: Reals
    curve: Cumulants
    at: int

    @property
    def order(self) -> float:
        """The order of the saddle point."""
        return float(self.orders[self.at])

    @property
    def cumulants(self) -> tuple[float, float, float]:
        """The cumulant generating function K and its first two derivatives at the saddle point."""
        return (
            float(self.curve.log_m[self.at]),
            float(self.curve.first[self.at]),
            float(self.curve.second[self.at]),
        )


def around(transform: Transform, order: float) -> Chart:
    """Return the chart around a known saddle point."""
    orders = all_shortened(np.minimum(order * _MULTIPLES, _farthest(transform, order)))
    return Chart(orders, transform.curve(orders), _CENTER)


def _farthest(transform: Transform, order: float) -> float:
    """Return the largest order worth trying: the moment generating function M is infinite beyond
    it.
    """
    return 1.25 * max(order, transform.blow_up)


def charted(transform: Transform, aim: Aim) -> Chart | None:
    """Return the chart around a saddle point; None if one table does not contain it. Moments that
    overflow count as above it.
    """
    if not transform.tabulates:
        return None
    guess = aim.first(transform)
    most = min(_farthest(transform, guess), MOST)
    ladder = _LADDER if guess < 0.5 * most else _FINER_LADDER
    for _ in range(2):
        orders = guess * ladder
        orders = all_shortened(orders[: int(np.searchsorted(orders, most)) + 1])
        known = transform.curve(orders)
        gap = aim.excess(orders, known)
        above = np.flatnonzero(~(gap <= 0))
        if not len(above):
            guess = float(orders[-1]) * 1.5
        elif not above[0]:
            guess = float(orders[above[0]]) / 1.5
        else:
            right = int(above[0])
            jump, short_of = float(gap[right] - gap[right - 1]), -float(gap[right - 1])
            if not jump < _STEEPEST or orders[-1] < 1.15 * orders[right]:
                return None
            chart = Chart(orders, known, right if 2 * short_of > jump else right - 1)
            return (
                chart
                if jump < _STEEP
                else _sharpened(transform, chart, short_of / jump + right - 1)
            )
        if not (LEAST_ORDER <= guess <= most):
            return None
    return None


def saddle_for_value(
    transform: Transform, value: float, *, start: float | None = None, tolerance: float = 0.02
) -> float:
    """Return the order l with K'(l) = value + 1/l + 1/(l + 1), to a relative tolerance. K is the
    cumulant generating function.
    """
    aim = Aim(value=value)
    start = aim.first(transform) if start is None else start
    return shortened(_zero(transform, aim, start, tolerance), bits=24)


def _sharpened(transform: Transform, chart: Chart, position: float) -> Chart:
    """Return the same chart with its center moved to the zero of the linear interpolation between
    the two closest orders.
    """
    left, at = math.floor(position), chart.at
    low, high = float(chart.orders[left]), float(chart.orders[left + 1])
    order = shortened(low * (high / low) ** (position - left), bits=24)
    moved = Cumulants(chart.curve.log_m.copy(), chart.curve.first.copy(), chart.curve.second.copy())
    moved.log_m[at], moved.first[at], moved.second[at] = transform.cumulants(order)
    orders = chart.orders.copy()
    orders[at] = order
    return Chart(orders, moved, at)


def for_mass(transform: Transform, log_mass: float) -> float:
    """Return the order of the saddle point for the x with hockey-stick divergence g(x) =
    e^log_mass, both by the saddle-point approximation.
    """
    aim = Aim(log_mass=log_mass)
    return shortened(_zero(transform, aim, aim.first(transform), 0.02), bits=24)


@dataclass(frozen=True)
class Aim:
    """Which saddle point is wanted: the one at a value x, or the one where the hockey-stick
    divergence g is about e^log_mass.

    Args:
        value: The point x; ignored if `log_mass` is not None.
        log_mass: The logarithm of g; None if `value` is used.
    """

    value: float = math.nan
    log_mass: float | None = None

    def excess(self, order: Reals, at: Cumulants) -> Reals:
        """Return a function of the order that is increasing and 0 at the saddle point."""
        if self.log_mass is None:
            gap = excess_of_value(order, at, self.value)
        else:
            gap = excess_of_mass(order, at, self.log_mass)
        return np.where(order * at.first > _LARGEST, np.inf, gap)

    def first(self, transform: Transform) -> float:
        """Return a first guess, exact for a Gaussian with K = rho l (l + 1); at most the order
        where M becomes infinite. K is the cumulant generating function.

        For a Gaussian log g is about -rho l^2.
        """
        rho, value = _rho(transform), self.value
        if self.log_mass is not None:
            start = math.sqrt((1 - self.log_mass) / rho)
        elif abs(value) < 1e100:
            start = (value + math.hypot(value, 4 * math.sqrt(rho))) / (4 * rho)
        else:
            start = 1.0
        return min(start, transform.blow_up)


def excess_of_value(order: Reals, at: Cumulants, value: Reals | float) -> Reals:
    """Return order (K' - value - 1/order - 1/(order + 1)). K is the cumulant generating function."""
    return order * (at.first - value - 1 / order - 1 / (order + 1))


def excess_of_mass(order: Reals, at: Cumulants, log_mass: Reals | float) -> Reals:
    """Return `log_mass` minus log g at the x whose saddle point is `order`. g is the hockey-stick
    divergence.

    log g(x) is about K - l x - log(l (l + 1)) - log(2 pi curvature) / 2.
    """
    kernel = np.log(order) + np.log1p(order)
    width = 0.5 * np.log(2 * np.pi * curvature(order, at))
    return order * at.first - 1 - order / (order + 1) - (at.log_m - log_mass - kernel - width)


def _rho(transform: Transform) -> float:
    """Return the rho of a Gaussian whose cumulant generating function K is about this one's at 1; 1 if K(1) is 0,
    infinite or unknown."""
    scale = transform.scale
    return scale / 2 if 1e-300 < scale < math.inf else 1.0


def moments_exceed(
    cumulants: Callable[[float], tuple[float, float, float]],
    value: float,
    log_mass: float,
    *,
    start: float,
) -> bool:
    """Return whether no moment bounds g(value) by e^log_mass, according to uncertified values of
    the cumulant generating function K; False if in doubt. g is the hockey-stick divergence.

    The moment of order l gives log g <= K(l) - l value + l log l - (l + 1) log(l + 1), which is
    convex in l > 0, so its minimum is at least the value where the tangents on both sides of it
    meet.
    """
    order, low, high = (
        min(max(start, LEAST_ORDER), MOST),
        (LEAST_ORDER, 0.0, 0.0),
        (MOST, math.inf, 0.0),
    )
    for _ in range(24):
        log_m, first, second = cumulants(order)
        turn = math.log1p(1 / order)
        height, slope = log_m - order * (value + turn) - math.log1p(order), first - value - turn
        if height <= log_mass:
            return False
        if (
            slope >= 0 and height - slope * order > log_mass
        ):  # the tangent here, extended to order 0
            return True
        bend, rising = second + 1 / (order * (order + 1)), not slope < 0
        low, high = (low, (order, height, slope)) if rising else ((order, height, slope), high)
        if low[2] < 0 < high[2] and high[1] < math.inf:
            share = (low[1] - high[1] + high[2] * (high[0] - low[0])) / (high[2] - low[2])
            if low[1] + low[2] * share > log_mass:
                return True
        step = -slope / (bend * order) if 0 < bend < math.inf else -math.copysign(1.0, slope)
        moved = order * math.exp(min(max(step, -1.0), 1.0) if step == step else -1.0)
        order = moved if low[0] < moved < high[0] else math.sqrt(low[0] * high[0])
    return False


@dataclass(frozen=True)
class MomentLevels:
    """Estimates of the bounds on the hockey-stick divergence g at one x by the moments of several
    orders.

    Args:
        chart: The orders, with the best one as the center.
        level: The logarithm of e^(-order x) M(order) times the maximum of the kernel, shape (n,).
    """

    chart: Chart
    level: Reals

    @property
    def order(self) -> float:
        """The order with the smallest bound."""
        return self.chart.order

    @property
    def chernoff(self) -> float:
        """An estimate of the logarithm of the smallest bound."""
        return float(self.level[self.chart.at])

    def serves(self, order: float) -> bool:
        """Whether a line through this order loses little accuracy."""
        nearest = min(int(np.searchsorted(self.chart.orders, order)), len(self.level) - 1)
        return bool(self.level[nearest] <= self.chernoff + 2)


def moment_levels(transform: Transform, chart: Chart, x: float) -> MomentLevels:
    """Return the bounds K(t) - t x + const of log g(x) at the orders t of `chart`, which may be the
    chart of the losses in the other direction.
    """
    known = transform.curve(chart.orders)
    level = known.log_m - chart.orders * x + kernel_peak(chart.orders)
    level = np.where(np.isnan(level), np.inf, level)
    return MomentLevels(Chart(chart.orders, known, int(level.argmin())), level)


def value_for(order: float, log_m: float, first: float, second: float, log_mass: float) -> float:
    """Return the x at which the saddle-point approximation through `order` gives hockey-stick
    divergence g(x) = e^log_mass.
    """
    curvature = second + 1 / order**2 + 1 / (order + 1) ** 2
    log_height = -math.log(order) - math.log1p(order) - 0.5 * math.log(2 * math.pi * curvature)
    x = (log_m + log_height - log_mass) / order
    # Close to the saddle point's own x the approximation is quadratic; far from it a linear one is
    # useless.
    own = first - 1 / order - 1 / (order + 1)
    return x if abs(x - own) * order < 4 else own


def curvature(order: Reals, at: Cumulants) -> Reals:
    """Return K'' plus the second derivative of the logarithm of the kernel. K is the cumulant
    generating function.
    """
    return at.second + 1 / order**2 + 1 / (order + 1) ** 2


def shortened(value: float, *, bits: int) -> float:
    """Return `value` rounded to `bits` binary digits, so that small multiples of it, and it plus
    one, are exact.
    """
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits)


def all_shortened(values: Reals) -> Reals:
    """Return each value rounded to 24 binary digits, as by `shortened`."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(mantissa, 24)), exponent - 24)


@np.errstate(
    all="ignore"
)  # where moments overflow the difference is not finite, which ends the search
def _zero(transform: Transform, aim: Aim, guess: float, tolerance: float) -> float:
    """Return the zero of an increasing function of the order, from a table around the guess, else
    by Newton's method.
    """
    guess = min(max(guess, LEAST_ORDER), MOST)
    if transform.tabulates:
        orders = np.minimum(np.maximum(guess * _AROUND, LEAST_ORDER), MOST)
        for _ in range(3):
            gap = aim.excess(orders, transform.curve(orders))
            above = np.flatnonzero(~(gap <= 0))
            if not len(above) or above[0] == 0:
                break
            left, right, at = float(orders[above[0] - 1]), float(orders[above[0]]), int(above[0])
            jump = float(gap[at] - gap[at - 1])
            if jump < min(8.0, 400 * tolerance):
                return left * (right / left) ** (-float(gap[at - 1]) / jump)
            orders = left * (right / left) ** _BETWEEN
            guess = left

    def one(order: float) -> tuple[float, float]:
        point = np.array([order])
        at = Cumulants(*np.array(transform.cumulants(order))[:, None])
        return float(aim.excess(point, at)[0]), float(order * order * curvature(point, at)[0])

    return _increasing_zero(one, guess, tolerance)


def _increasing_zero(
    function: Callable[[float], tuple[float, float]], start: float, tolerance: float
) -> float:
    """Return the zero of an increasing function by Newton's method in the logarithm, accurate to
    the tolerance.

    Steps are limited to a factor e. Where the function grows fast they are short; steps from far
    away are lengthened.
    """
    low, high, point, stretch = LEAST_ORDER, MOST, min(max(start, LEAST_ORDER), MOST), 1.0
    for _ in range(80):
        gap, slope = function(point)
        if not math.isfinite(gap):
            high, point = point, math.sqrt(low * point)
            continue
        low, high = (low, point) if gap > 0 else (point, high)
        step = -gap / slope if slope > 0 else -math.copysign(1.0, gap)
        close = abs(gap) < 25 * tolerance
        stretch = 1.0 if close or abs(step) > 0.1 else 3 * stretch
        candidate = point * math.exp(min(max(step * stretch, -1.0), 1.0))
        candidate = candidate if low < candidate < high else math.sqrt(low * high)
        if (close and abs(candidate / point - 1) < tolerance) or high / low < 1 + min(
            0.002, tolerance / 10
        ):
            return candidate
        point = candidate
    return point
