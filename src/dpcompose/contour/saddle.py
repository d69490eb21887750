"""Real orders near the saddle point, where the contour is drawn. Any order is valid; these only decide the width."""

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
"""The largest order * value: beyond it the rounding of that product leaves no digits."""
# Multiples of a guess at which a whole table is cheaper than Newton's steps one by one.
_AROUND = 1.3 ** np.arange(-8.0, 4.0)
_BETWEEN = np.linspace(0.0, 1.0, 10)
# Multiples of a guess: they span the saddle point and the orders around it where a line may stand or be bounded.
_LADDER = np.exp(np.arange(-1.2, 1.85, 0.1))
# Finer multiples, for where M blows up soon beyond the guess.
_FINER_LADDER = np.exp(np.arange(-1.2, 0.27, 0.05))
_STEEP, _STEEPEST = 8.0, 100.0
# Multiples of a known saddle point, densest next to it; `_CENTER` is the index of the saddle point.
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
    """K and its derivatives around a saddle point.

    Args:
        orders: Increasing, each of at most 24 binary digits, shape (n,).
        curve: K there.
        at: Which of the orders is the saddle point, to a few percent.
    """

    orders: Reals
    curve: Cumulants
    at: int

    @property
    def order(self) -> float:
        """The saddle point."""
        return float(self.orders[self.at])

    @property
    def cumulants(self) -> tuple[float, float, float]:
        """K and its first two derivatives there."""
        return (
            float(self.curve.log_m[self.at]),
            float(self.curve.first[self.at]),
            float(self.curve.second[self.at]),
        )


def around(transform: Transform, order: float) -> Chart:
    """The chart around a known saddle point."""
    orders = all_shortened(np.minimum(order * _MULTIPLES, _farthest(transform, order)))
    return Chart(orders, transform.curve(orders), _CENTER)


def _farthest(transform: Transform, order: float) -> float:
    """The largest order worth a look: M has blown up beyond it."""
    return 1.25 * max(order, transform.blow_up)


def charted(transform: Transform, aim: Aim) -> Chart | None:
    """The chart around a saddle point, None if one table does not find it; moments that overflow count as above it."""
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
    """The order l with K'(l) = value + 1/l + 1/(l + 1), to a relative tolerance."""
    aim = Aim(value=value)
    start = aim.first(transform) if start is None else start
    return shortened(_zero(transform, aim, start, tolerance), bits=24)


def _sharpened(transform: Transform, chart: Chart, position: float) -> Chart:
    """The same chart with its center moved to where a straight line through the two nearest orders would vanish."""
    left, at = math.floor(position), chart.at
    low, high = float(chart.orders[left]), float(chart.orders[left + 1])
    order = shortened(low * (high / low) ** (position - left), bits=24)
    moved = Cumulants(chart.curve.log_m.copy(), chart.curve.first.copy(), chart.curve.second.copy())
    moved.log_m[at], moved.first[at], moved.second[at] = transform.cumulants(order)
    orders = chart.orders.copy()
    orders[at] = order
    return Chart(orders, moved, at)


def for_mass(transform: Transform, log_mass: float) -> float:
    """The order of the saddle point at the value x whose g(x) is, by the saddle-point approximation, e^log_mass."""
    aim = Aim(log_mass=log_mass)
    return shortened(_zero(transform, aim, aim.first(transform), 0.02), bits=24)


@dataclass(frozen=True)
class Aim:
    """Which saddle point is wanted: that at a value x, or that where g is about e^log_mass.

    Args:
        value: x, unless `log_mass` is given.
        log_mass: log g, or None.
    """

    value: float = math.nan
    log_mass: float | None = None

    def excess(self, order: Reals, at: Cumulants) -> Reals:
        """A function of the order that rises through 0 at the saddle point."""
        if self.log_mass is None:
            gap = excess_of_value(order, at, self.value)
        else:
            gap = excess_of_mass(order, at, self.log_mass)
        return np.where(order * at.first > _LARGEST, np.inf, gap)

    def first(self, transform: Transform) -> float:
        """The first guess, as if for a Gaussian with K = rho l (l + 1); at most where M blows up.

        The log g of a Gaussian is about -rho l^2.
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
    """order (K' - value - 1/order - 1/(order + 1))."""
    return order * (at.first - value - 1 / order - 1 / (order + 1))


def excess_of_mass(order: Reals, at: Cumulants, log_mass: Reals | float) -> Reals:
    """How far log g, at the x of which the order is the saddle point, is below `log_mass`.

    log g(x) is about K - l x - log(l (l + 1)) - log(2 pi curvature) / 2.
    """
    kernel = np.log(order) + np.log1p(order)
    width = 0.5 * np.log(2 * np.pi * curvature(order, at))
    return order * at.first - 1 - order / (order + 1) - (at.log_m - log_mass - kernel - width)


def _rho(transform: Transform) -> float:
    """The rho of a Gaussian with the same K(1), roughly; 1 if that is no guide."""
    scale = transform.scale
    return scale / 2 if 1e-300 < scale < math.inf else 1.0


def moments_exceed(
    cumulants: Callable[[float], tuple[float, float, float]],
    value: float,
    log_mass: float,
    *,
    start: float,
) -> bool:
    """Whether no moment bounds g(value) by e^log_mass or less, as far as K is known for planning; False if in doubt.

    By the moment of order l, log g <= K(l) - l value + l log l - (l + 1) log(l + 1), which is convex in l > 0, and so
    at least where the tangents on either side of its least value meet.
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
        ):  # the tangent here, prolonged to order 0
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
    """About how small each moment makes g at one x, for planning.

    Args:
        chart: The orders, with the best one as the center.
        level: log of e^(-order x) M(order) and of the largest value of the kernel, shape (n,).
    """

    chart: Chart
    level: Reals

    @property
    def order(self) -> float:
        """The best order."""
        return self.chart.order

    @property
    def chernoff(self) -> float:
        """About log of the bound by its moment."""
        return float(self.level[self.chart.at])

    def serves(self, order: float) -> bool:
        """Whether a line through this order loses little."""
        nearest = min(int(np.searchsorted(self.chart.orders, order)), len(self.level) - 1)
        return bool(self.level[nearest] <= self.chernoff + 2)


def moment_levels(transform: Transform, chart: Chart, x: float) -> MomentLevels:
    """The moments of a transform at the orders of its reverse's chart."""
    known = transform.curve(chart.orders)
    level = known.log_m - chart.orders * x + kernel_peak(chart.orders)
    level = np.where(np.isnan(level), np.inf, level)
    return MomentLevels(Chart(chart.orders, known, int(level.argmin())), level)


def value_for(order: float, log_m: float, first: float, second: float, log_mass: float) -> float:
    """The x at which the saddle-point approximation through `order` makes g(x) = e^log_mass."""
    curvature = second + 1 / order**2 + 1 / (order + 1) ** 2
    log_height = -math.log(order) - math.log1p(order) - 0.5 * math.log(2 * math.pi * curvature)
    x = (log_m + log_height - log_mass) / order
    # Next to the saddle point's own value the approximation is quadratic; far from it the line through it is no guide.
    own = first - 1 / order - 1 / (order + 1)
    return x if abs(x - own) * order < 4 else own


def curvature(order: Reals, at: Cumulants) -> Reals:
    """K'' plus that of the kernel."""
    return at.second + 1 / order**2 + 1 / (order + 1) ** 2


def shortened(value: float, *, bits: int) -> float:
    """`value` rounded to `bits` binary digits, so that small multiples of it, and it plus one, are exact."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits)


def all_shortened(values: Reals) -> Reals:
    """`short` to 24 digits, of each."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(mantissa, 24)), exponent - 24)


@np.errstate(
    all="ignore"
)  # where the moments overflow the gap is not finite, which ends the search there
def _zero(transform: Transform, aim: Aim, guess: float, tolerance: float) -> float:
    """The zero of an increasing function of the order: read off a table around the guess, else by Newton's method."""
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
            if jump < 8:
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
    """Newton in the logarithm for an increasing function, until it is near 0 and the point good to the tolerance.

    Steps are clipped to a factor e. Where the function blows up they are short; those far from 0 are stretched.
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
        if (close and abs(candidate / point - 1) < tolerance) or high / low < 1.002:
            return candidate
        point = candidate
    return point
