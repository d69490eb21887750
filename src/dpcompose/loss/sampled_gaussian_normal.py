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
from typing import NamedTuple

import numpy as np

from dpcompose.loss.sampled_gaussian_points import Grid, missed
from dpcompose.numerics.elementary import Reals, U, row_dots, row_sums, row_tops

_THETAS = (0.1, 0.25)
_LOG_COSINES = tuple(math.log(math.cos(theta / 2)) for theta in _THETAS)
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
    points = grid.points
    exponent = points.log_weight + power * points.ratio
    share = np.exp(exponent - row_tops(exponent))
    share /= row_sums(share)
    mean = row_dots(share, points.ratio)
    away = points.ratio - mean
    square = away * away
    second, fourth = row_dots(share, square), row_dots(share * square, square)
    deepest = times * np.log1p(-6 * second * second / (2 * fourth + 6 * second * second))
    if not float(deepest[asked].sum()) < 2 * _QUIET:
        return None
    # From here on a row is a handful of numbers, and floats are cheaper than columns of two.
    ends = [
        each[:, at] for each in (share, away, points.ratio, points.log_weight) for at in (slice(1), slice(-1, None))
    ]
    columns = [
        noise,
        power,
        side,
        grid.step,
        mean,
        second,
        fourth,
        row_tops(points.ratio_error),
        row_tops(points.weight_error),
        *ends,
    ]
    rows = [_Row(*row).bounded(share.shape[-1]) for row in np.concatenate(columns, axis=1).tolist()]
    bounds = [row for row in rows if row is not None]
    if len(bounds) < len(rows):
        return None
    last = np.array([[row.last] for row in bounds])
    weight = -np.expm1(np.log1p(-rate) - points.ratio)[:, None, :]
    angle = np.arctan2(weight * _SINES, 1 - weight * _RESTS)
    decayed = np.vecdot(share[:, None, :], np.exp(-last[:, :, None] * angle))
    after = np.array([[row.after(sums)] for row, sums in zip(bounds, decayed.tolist(), strict=True)])
    if not float((times * after)[asked].sum()) < _QUIET:
        return None
    variance, fourth = (np.array([[row.variance] for row in bounds]), np.array([[row.fourth] for row in bounds]))
    return NearNormal(variance, fourth, last, after)


class _Row(NamedTuple):
    """What the grid has of one row; `first` and `final` are of its first and last point."""

    noise: float
    power: float
    side: float
    step: float
    mean: float
    second: float
    fourth: float
    slant: float
    fuzz: float
    first_share: float
    final_share: float
    first_away: float
    final_away: float
    first_ratio: float
    final_ratio: float
    first_weight: float
    final_weight: float

    def bounded(self, points: int) -> _Bounds | None:
        """Bounds from so many points; None if they are vacuous."""
        second, fourth = self.second, self.fourth
        if not second > 0:
            return None
        # Beyond the grid terms fall by e^(-step side / s^2) or faster, and log r moves by at most step / s^2.
        falling = math.expm1(min(self.step * self.side / (self.noise * self.noise), 700.0))
        before, beyond = self.first_share / falling, self.final_share / falling
        least = max(1 / self.noise, 1.0)
        far, farther = max(abs(self.first_away), least), max(abs(self.final_away), least)
        narrow, size = missed(self.noise, self.power, self.step, _NARROW), 1 + second + fourth
        lost = missed(self.noise, self.power, self.step, _WIDE) if narrow > _NOTHING else narrow
        # What the means of (L - mean)^1, ^2 and ^4 err by: 2^(j - 1) (size + 3.66^j) lost, and the ends.
        err = 1600 * lost * size + 16 * (
            before * far * far * far * far + beyond * farther * farther * farther * farther
        )
        loose = 1e-9 + self._rounded(points)
        off = err + loose * math.sqrt(second)
        variance = second * (1 - loose) - err - off * off
        fourth = (2 * fourth + 6 * second * second) * (1 + 16 * loose) + 28 * size * err
        if not (variance > 0 and fourth < math.inf):
            return None
        outside = before + beyond
        factor, left = 1 + 2 * (lost + outside) + loose, 1.1 * (narrow + outside)
        return _Bounds(variance, fourth, math.sqrt(12 * variance / fourth), factor, left, self.noise, self.power)

    def _rounded(self, points: int) -> float:
        """A bound on the relative errors of the moments by rounding: those of the shares, and those of log r around its
        mean, whose square in units of the variance counts."""
        largest = max(abs(self.first_ratio), abs(self.final_ratio))
        heaviest = max(abs(self.first_weight), abs(self.final_weight))
        moved = self.fuzz + self.slant * (1 + abs(self.power) * largest) + U * (points + 64 + 4 * heaviest)
        return 64 * moved * (1 + self.mean * self.mean / self.second)


class _Bounds(NamedTuple):
    """What is proved of one row; its shifted sums are good to a factor and what is left out of them."""

    variance: float
    fourth: float
    last: float
    factor: float
    left: float
    noise: float
    power: float

    def after(self, decayed: list[float]) -> float:
        """The bound from `last` on, the best of all shifts."""
        negative, least = max(-self.power, 0.0), math.inf
        for theta, log_cosine, sums in zip(_THETAS, _LOG_COSINES, decayed, strict=True):
            lifted = (theta * self.noise) ** 2 / 2 - negative * log_cosine
            least = min(least, lifted + math.log(sums * self.factor + self.left))
        return least + 1e-9 + 1e-14 * self.last
