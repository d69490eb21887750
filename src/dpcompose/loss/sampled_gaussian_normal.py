"""How fast |M| falls along a line where the tilted losses are nearly normal: from two moments and one shifted path.

Let L be a loss under the measure n r^p / M, phi its characteristic function and L' another copy. 1 - cos v is at least
v^2 / 2 - v^4 / 24, so that with v = Var L and f = E (L - L')^4
  |phi(u)|^2 <= 1 - u^2 v + u^4 f / 24,   which falls up to u^2 = 12 v / f.
From there on, over the path Im x = theta s^2 and with a(x) = arg r(x + i theta s^2) >= 0,
  |phi(u)| <= e^(theta^2 s^2 / 2) cos(theta / 2)^min(p, 0) E e^(-u a(x)),   which falls with u.

Both come from sums over a grid. In the strip |Im x| <= angle s^2 the integrand n r^p is at most e^(angle^2 s^2 / 2)
cos(angle / 2)^min(p, 0) times itself on the real line, log r moves by at most 3.66, and a keeps its sign as long as
theta + angle < pi / 2. What the sums err by is relative to M, so that nothing is assumed about M.

Reference: [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcompose.loss.sampled_gaussian_points import Grid, missed
from dpcompose.numerics.elementary import Reals, U, row_dots, row_sums, row_tops

_THETAS = np.array([0.1, 0.25])
_LIFTS, _LOG_COSINES = _THETAS**2 / 2, np.log(np.cos(_THETAS / 2))
_SINES, _RESTS = np.sin(_THETAS)[:, None], (1 - np.cos(_THETAS))[:, None]
_NARROW, _WIDE = 1.2, 2.5
# By how much log r moves within the wide strip: theta - log cos(theta / 2), whose fourth power is below 180.
# No line needs its tail to be below e^this, and none that is above it is worth having.
_QUIET = -50.0
# What a sum over the narrow strip may miss for the wide one not to be asked.
_NOTHING = 1e-20


@dataclass(frozen=True)
class NearNormal:
    """Bounds on log |M(order + iu) / M(order)| of one copy of each row; all shapes (m, 1).

    Args:
        variance: A lower bound on v.
        fourth: An upper bound on f.
        last: Up to which frequency they are used.
        after: The bound from there on.
    """

    variance: Reals
    fourth: Reals
    last: Reals
    after: Reals

    def __getitem__(self, rows: slice) -> NearNormal:
        """Some of the rows."""
        return NearNormal(self.variance[rows], self.fourth[rows], self.last[rows], self.after[rows])

    def log_envelope(self, edges: Reals) -> Reals:
        """For each edge a bound from there up to the next, the last for ever, shape (m, n)."""
        square = np.square(np.minimum(edges, self.last))
        falling = 0.5 * np.log1p(square * (square * self.fourth / 24 - self.variance)) + 64 * U
        return np.minimum(np.maximum(falling, self.after), 0.0)


def near_normal(
    grid: Grid, noise: Reals, rate: Reals, power: Reals, side: Reals, times: Reals, asked: slice
) -> NearNormal | None:
    """The bounds at one order for each row; None if they cannot make all copies quiet together.

    Args:
        grid: Any grid over the rows' integrands; a fine one is not needed.
        noise: sigma / sensitivity, shape (m, 1), as are all others.
        rate: The sampling rates.
        power: order + 1 or -order.
        side: How far the integrands reach beyond 0, 1 and their modes, at least sqrt(78) noise.
        times: How many copies.
        asked: The rows that will be asked first: where they are not quiet, none of them.
    """
    points, s2, step = grid.points, noise * noise, grid.step
    exponent = points.log_weight + power * points.ratio
    share = np.exp(exponent - row_tops(exponent))
    share /= row_sums(share)
    mean = row_dots(share, points.ratio)
    away = points.ratio - mean
    square = away * away
    weighted = share * square
    second, fourth = row_dots(share, square), row_dots(weighted, square)
    deepest = times * np.log1p(-6 * second * second / (2 * fourth + 6 * second * second))
    if not float(deepest[asked].sum()) < 2 * _QUIET:
        return None
    # Beyond the grid terms fall by e^(-step side / s^2) or faster, and log r moves by at most step / s^2.
    beyond = _outermost(share) / np.expm1(step * side / s2)
    far = np.maximum(np.abs(_outermost(away)), np.maximum(1 / noise, 1.0))
    outside = row_sums(beyond)
    narrow, size = missed(noise, power, step, _NARROW), 1 + second + fourth
    lost = missed(noise, power, step, _WIDE) if float(narrow.max()) > _NOTHING else narrow
    # What the means of (L - mean)^1, ^2 and ^4 err by: 2^(j - 1) (size + 3.66^j) lost, and the ends.
    err = 1600 * lost * size + 16 * row_dots(beyond, np.square(np.square(far)))
    loose = 1e-9 + _rounded(grid, power, mean * mean / second)
    off = err + loose * np.sqrt(second)
    variance = second * (1 - loose) - err - off * off
    fourth = (2 * fourth + 6 * second * second) * (1 + 16 * loose) + 28 * size * err
    if not ((variance > 0) & (fourth < math.inf)).all():
        return None
    last = np.sqrt(12 * variance / fourth)
    weight = -np.expm1(np.log1p(-rate) - points.ratio)[:, None, :]
    angle = np.arctan2(weight * _SINES, 1 - weight * _RESTS)
    decayed = np.vecdot(share[:, None, :], np.exp(-last[:, :, None] * angle))
    lifted = s2 * _LIFTS - np.maximum(-power, 0.0) * _LOG_COSINES
    left = decayed * (1 + 2 * (lost + outside) + loose) + 1.1 * (narrow + outside)
    after = np.minimum.reduce(lifted + np.log(left), axis=-1, keepdims=True) + 1e-9 + 1e-14 * last
    quiet = float((times * after)[asked].sum()) < _QUIET
    return NearNormal(variance, fourth, last, after) if quiet else None


def _outermost(of_points: Reals) -> Reals:
    return of_points[:, :: of_points.shape[-1] - 1]


def _rounded(grid: Grid, power: Reals, off_center: Reals) -> Reals:
    """A bound on the relative errors of the moments by rounding: those of the shares, and those of log r around its
    mean, of which `off_center` is the square in units of the variance."""
    points = grid.points
    slant, largest = row_tops(points.slant), row_tops(np.abs(_outermost(points.ratio)))
    moved = row_tops(points.fuzz) + slant * (1 + np.abs(power) * largest)
    moved = moved + U * (points.ratio.shape[-1] + 64 + 4 * row_tops(np.abs(_outermost(points.log_weight))))
    return 64 * moved * (1 + off_center)
