"""E S^m e^(-xS) on a ray, for the likelihood ratio S of one random allocation.

S = (Y_1 + ... + Y_t) / t, Y = e^(g / s - 1 / (2 s^2)) for independent standard normal g: what an epoch of t Gaussian
steps says about a record in one of them, at random. With f_j(z) = E Y^j e^(-zY), the numbers D_m(x) = E S^m e^(-xS) are
m! [w^m] (sum of w^j f_j(x / t) / j!)^t / t^m, and at x = 0 the moments of S themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from dpcompose.numerics import Complexes, Reals, U

_DEPTH, _REACH = 44.0, 11.0
"""Aliases are below e^-44 of what they are compared with; a normal variable is cut at eleven deviations."""
_TURN = 2.5
"""The noise path is turned by at most so many deviations, which costs e^(2.5^2 / 2) = 23 in rounding."""
_SMALL = 0.5
"""Below this |z|, 1 - f_0 is summed without its 1."""
MOST_DEGREE, FARTHEST_DEGREE = 256, 33.0
"""D_m is known for m up to the first, and up to so many times s: Y^m moves the noise that far."""


_BLOCK_CELLS, _MOST_CELLS = 2_000_000, 60_000_000
"""Entries of a matrix of places and nodes of the noise, at once and in all: of more, nothing is known."""


class Table(NamedTuple):
    """log of D_m(e^(y + i angle)) at nodes y, any branch, with bounds on the relative errors; inf where unknown."""

    log: Complexes
    error: Reals


class Fs(NamedTuple):
    """log f_0(z), and f_j(z) / f_0(z) e^(-tilt j) for j = 1..m, with bounds on their absolute errors; f_j is the mean
    of Y^j over the noise, as defined above."""

    log_first: Complexes
    first_error: Reals
    ratios: Complexes
    ratio_errors: Reals


@dataclass(frozen=True)
class Allocation:
    """The law of S.

    Args:
        sigma: The noise of one step, for a record of norm 1; s in the text.
        steps: t.
    """

    sigma: float
    steps: int

    @property
    def most(self) -> int:
        """The largest degree m."""
        return max(1, min(MOST_DEGREE, math.floor(FARTHEST_DEGREE * self.sigma)))

    @cached_property
    def whole(self) -> Reals:
        """log E S^k for k = 0..most, to `whole_error`: all terms are positive.

        Coefficients E S^k / k! are taken times (m / e)^k, m = most: within doubles. They are at least 1 / (3 sqrt m),
        as E S^k >= 1 and k! <= 3 sqrt(k) (k / e)^k; and below e^700, as E S^k <= e^(k^2 / (2 s^2)) <= e^545 and
        (m / e)^k / k! <= e^(m / e) <= e^95.
        """
        degrees = np.arange(self.most + 1)
        logs = degrees * (degrees - 1) / (2 * self.sigma**2) - gammaln(degrees + 1)
        tilt = 1 - math.log(self.most)
        terms = np.exp(logs - degrees * tilt - (degrees - 1) * math.log(self.steps))
        values, _ = _power(terms[1:, None] + 0j, np.zeros((self.most, 1)), self.steps)
        return np.log(values[:, 0].real) + degrees * tilt + gammaln(degrees + 1)

    def whole_error(self, degree: int) -> float:
        """A bound on the error of `whole` at that degree."""
        return U * (64 * degree * degree + 400 + 16 * degree * (1 + math.log(self.most)))

    def above(self, order: float) -> float:
        """An upper bound on log E S^order for order >= 0, by the chord between whole orders; inf beyond the last."""
        below = math.floor(order)
        if not order <= self.most:
            return math.inf
        share, high = order - below, min(below + 1, self.most)
        return (
            (1 - share) * float(self.whole[below])
            + share * float(self.whole[high])
            + self.whole_error(high)
        )

    def _tilt(self, degree: int) -> float:
        """A scale of w: with it the coefficients of the power neither overflow nor, for the most part, underflow.

        E S^m is at least 1 and at least what the largest step alone brings, and log E S^k grows convexly from 0.
        """
        alone = degree * (degree - 1) / (2 * self.sigma**2) - (degree - 1) * math.log(self.steps)
        return (max(alone, 0.0) - math.lgamma(degree + 1)) / max(degree, 1)

    def table(self, degree: int, start: float, step: float, count: int, angle: float) -> Table:
        """D_m(e^(y + i angle)) at y = start + step * k, m = degree <= most, angle in [0, pi / 2)."""
        logs, errors = self.tables(degree, start, step, count, angle)
        return Table(logs[-1], errors[-1])

    @np.errstate(all="ignore")  # what overflows or is undefined has an infinite error
    def tables(self, degree: int, start: float, step: float, count: int, angle: float) -> Table:
        """The same of all D_k, k = 0..degree, one in each row."""
        places = start + step * np.arange(count)
        fs = self._by_blocks(degree, places - math.log(self.steps), step, angle)
        if fs is None:
            return Table(
                np.full((degree + 1, count), 700.0 + 0j), np.full((degree + 1, count), np.inf)
            )
        values, errors = _power(fs.ratios, fs.ratio_errors, self.steps)
        powers = np.arange(degree + 1)[:, None]
        sizes, offset = np.abs(values), powers * self._tilt(degree) + gammaln(powers + 1)
        least = np.where(sizes > 0, sizes, 1e-300)
        log = self.steps * fs.log_first + np.log(np.where(sizes > 0, values, 1e-300)) + offset
        error = (errors + 1e-300) / least + self.steps * fs.first_error
        error = error + 8 * U * (np.abs(log) + powers**2 + np.abs(offset) + 8)
        return Table(log, np.where(np.isfinite(error) & np.isfinite(log.real), error, np.inf))

    def _by_blocks(self, degree: int, places: Reals, step: float, angle: float) -> Fs | None:
        """`_fs` at a few places at a time, so that the matrix of places and noise stays small; None if it would be huge
        all the same."""
        noise = _Path.along(self, degree, places, step, angle).count
        if not len(places) * noise <= _MOST_CELLS:
            return None
        size = max(2, _BLOCK_CELLS // noise)
        starts = range(0, max(len(places) - 1, 1), size)  # no block of one place
        parts = [slice(at, at + size if at + size + 1 < len(places) else None) for at in starts]
        rows = [self._fs(degree, places[part], step, angle) for part in parts]
        return (
            rows[0]
            if len(rows) == 1
            else Fs(*(np.concatenate(each, axis=-1) for each in zip(*rows, strict=True)))
        )

    def _fs(self, degree: int, places: Reals, step: float, angle: float) -> Fs:
        """f_j(e^(place + i angle)) for j = 0..degree, at equidistant places."""
        path = _Path.along(self, degree, places, step, angle)
        sums, errors = path.sums(self._weights(degree, path))
        relative = errors[:, 0] / np.abs(sums[:, 0])
        log_first = np.log(sums[:, 0])
        first_error = np.where(relative < 0.5, 1.5 * relative, np.inf) + 8 * U
        leading = int((np.exp(places) < _SMALL).sum())
        if leading:
            log_first[:leading], first_error[:leading] = self._near_one(path, leading, angle)
        value = np.exp(log_first)
        value_error = np.abs(value) * (first_error + 4 * U)
        least = np.abs(value) - value_error
        ratios = sums[:, 1:] / value[:, None]
        ratio_errors = (
            errors[:, 1:] + np.abs(ratios) * (value_error + 8 * U * np.abs(value))[:, None]
        ) / least[:, None]
        return Fs(
            log_first, first_error, ratios.T, np.where(least[:, None] > 0, ratio_errors, np.inf).T
        )

    def _weights(self, degree: int, path: _Path) -> _Weights:
        """At each node of the noise its density times Y^j, scaled by one factor for each j, and bounds on the rounding
        errors."""
        powers, noise = np.arange(degree + 1), path.noise[:, None]
        scale = (
            -powers * self._tilt(degree)
            - np.maximum(powers - 1, 0) * math.log(self.steps)
            - gammaln(powers + 1)
        )
        scale[0] = 0.0
        exponent = -(noise**2) / 2 + powers * (noise / self.sigma - 1 / (2 * self.sigma**2)) + scale
        turn = path.theta * (self.sigma * noise - powers)
        roundings = 4 * (
            noise**2 + powers * np.abs(noise) / self.sigma + powers / self.sigma**2 + np.abs(scale)
        )
        return _Weights(
            exponent, turn, roundings + 2 * path.theta * (self.sigma * np.abs(noise) + powers)
        )

    def _near_one(self, path: _Path, leading: int, angle: float) -> tuple[Complexes, Reals]:
        """log f_0 at the first places, from f_0 - 1 = -z + E(e^(-zY) - 1 + zY), and bounds on its errors.

        |e^-w - 1 + w| <= |w|^2 / 2 for Re w >= 0, and |w| on a moved path is the same.
        """
        weights, places = self._weights(0, path), path.places[:leading]
        along = path.density * path.grown * np.exp(weights.exponent[:, 0] + 1j * weights.turn[:, 0])
        length = leading
        if path.radius.ndim == 1:
            length = (leading - 1) * path.rows + (path.count - 1) * path.columns + 1
        entire = path.strided(
            _exp_minus_linear(path.radius[:length] * np.exp(1j * path.path_angle)), leading
        )
        square = 0.5 * np.exp(2 * places + 1 / self.sigma**2)
        rounding = np.abs(entire) @ (np.abs(along) * (weights.roundings[:, 0] + path.sway)) * 2 * U
        z = np.exp(places + 1j * angle)
        less = entire @ along - z
        error = rounding + square * (4 * path.alias + 1e-25 * path.grown) + 8 * U * np.abs(less)
        error = error + 8 * U * np.abs(z) * (1 + np.abs(places) + math.log(self.steps))
        log = 0.5 * np.log1p(2 * less.real + np.abs(less) ** 2) + 1j * np.arctan2(
            less.imag, 1 + less.real
        )
        return log, (error + 8 * U * np.abs(less)) / np.maximum(np.abs(1 + less) - error, 1e-300)


class _Weights(NamedTuple):
    """Logarithms of sizes, angles, and roundings in U: a row for each node of the noise, a column for each j."""

    exponent: Reals
    turn: Reals
    roundings: Reals


@dataclass(frozen=True)
class _Path:
    """A trapezoidal rule for the noise, on the path g - i theta s; all log z + log Y lie on one grid.

    On the path |Y^j e^(-zY)| is Y^j e^(-|z| Y cos(turned)), and the density of the noise is e^(theta^2 s^2 / 2) times
    larger. Moved by another +-eta s it stays below the same with cos(widest), times e^((theta + eta)^2 s^2 / 2): so the
    aliases are at most e^(-2 pi eta / h) times that. This majorant is log-concave in g; its sums beyond either end are
    bounded by the ratio of the last two terms, and its integral by a few times its sum.

    Args:
        places: log |z|, shape (n,).
        noise: The nodes of g.
        theta: How far the path is turned, as an angle of Y.
        turned: The angle of zY on the path.
        widest: The largest angle of zY on the moved paths.
        density: The step of the rule over the square root of 2 pi.
        alias: The bound on the aliases, relative to the majorant without its own factor.
        radius: |zY| on the whole grid; as a matrix, where its entries would not share the points of a grid.
        rows: How many units of the grid the places are apart.
        columns: How many the nodes of the noise.
    """

    places: Reals
    noise: Reals
    theta: float
    path_angle: float
    widest: float
    density: float
    grown: float
    alias: float
    radius: Reals
    sway: float
    rows: int
    columns: int

    @property
    def count(self) -> int:
        """How many nodes the rule has."""
        return len(self.noise)

    @classmethod
    def along(cls, law: Allocation, degree: int, places: Reals, step: float, angle: float) -> _Path:
        sigma = law.sigma
        theta = min(angle, _TURN / sigma)
        path_angle = angle - theta
        # The step below is longest at the second of these.
        eta = min(
            0.6 * (math.pi / 2 - path_angle), math.hypot(math.sqrt(2 * _DEPTH) / sigma, theta)
        )
        widest, moved = path_angle + eta, (sigma * (theta + eta)) ** 2 / 2
        fine = 2 * math.pi * eta / (_DEPTH + moved)
        rows = max(1, math.ceil(step / fine))
        columns = max(1, math.floor(fine / step)) if rows == 1 else 1
        unit = step / rows
        h = unit * columns
        first = math.floor((-_REACH / sigma - max(_peak(float(places[-1]), sigma), 0.0)) / h)
        shift = h * np.arange(first, math.ceil((max(degree, 2) / sigma + _REACH) / sigma / h) + 1)
        units = (len(places) - 1) * rows + (len(shift) - 1) * columns + 1
        if units <= len(places) * len(shift):
            line = places[0] - 1 / (2 * sigma**2) + shift[0] + unit * np.arange(units)
        else:
            line = (places - 1 / (2 * sigma**2))[:, None] + shift
        return cls(
            places=places,
            noise=shift * sigma,
            theta=theta,
            path_angle=path_angle,
            widest=widest,
            density=sigma * h / math.sqrt(2 * math.pi),
            grown=math.exp(theta**2 * sigma**2 / 2),
            alias=20 * math.exp(min(moved - 2 * math.pi * eta / h, 300.0)),
            radius=np.exp(line),
            # e^(-zY) moves by at most |zY| times the relative error of |zY|, against the majorant.
            sway=(float(np.abs(line).max()) + 8)
            / (math.e * (math.cos(path_angle) - math.cos(widest)))
            + len(shift)
            + 32,
            rows=rows,
            columns=columns,
        )

    def strided(self, values: Any, places: int | None = None) -> Any:
        """Values on the grid as a matrix: a row for each of the (first) places, a column for each node of the noise."""
        count = len(self.places) if places is None else places
        if values.ndim == 2:
            return values[:count]
        reach = (self.count - 1) * self.columns + 1
        windows = np.lib.stride_tricks.sliding_window_view(values, reach)
        return np.ascontiguousarray(windows[:: self.rows, :: self.columns][:count])

    def sums(self, weights: _Weights) -> tuple[Complexes, Reals]:
        """The sums over the noise, and bounds on their errors, shape (places, degree + 1)."""
        size = np.exp(weights.exponent) * self.density
        kernel = self.strided(np.exp(-self.radius * np.exp(1j * self.path_angle)))
        values = kernel @ (size * self.grown * np.exp(1j * weights.turn))
        major = self.strided(np.exp(-self.radius * math.cos(self.widest)))
        errors = (
            major @ (size * ((weights.roundings + self.sway) * U * self.grown + self.alias))
            + 1e-300
        )
        decay = self.strided(self.radius * math.cos(self.widest))
        unit = math.log(self.density * self.grown)
        for at, inner in ((0, 1), (-1, -2)):
            last, next_last = (decay[:, [each]] for each in (at, inner))
            edge = weights.exponent[at] - last + unit
            rise = edge - unit - weights.exponent[inner] + next_last
            beyond = np.exp(np.minimum(edge, 700.0)) / -np.expm1(np.minimum(rise, -1e-300))
            errors = errors + np.where(rise < -1e-3, beyond, np.inf)
        return values, errors


def _peak(log_size: float, sigma: float) -> float:
    """About how far to the left the noise goes where z is e^place: the root of s^2 d = e^(place - d), by halving."""
    low, high = 0.0, max(log_size, 1.0) + 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if math.exp(min(log_size - middle, 700.0)) > sigma**2 * middle
            else (low, middle)
        )
    return high


def _exp_minus_linear(w: Complexes) -> Complexes:
    """e^-w - 1 + w for Re w >= 0, relative error below 2^-46."""
    inner = np.where(np.abs(w) < 0.1, w, 0.0)
    series = 1 - inner / 12
    for k in range(11, 2, -1):
        series = 1 - inner / k * series
    real = np.expm1(-w.real)
    half = np.sin(w.imag / 2)
    path_angle = (real - 2 * (real + 1) * half * half) - 1j * (real + 1) * np.sin(w.imag)
    return np.where(np.abs(w) < 0.1, inner * inner / 2 * series, path_angle + w)


def _power(ratios: Complexes, errors: Reals, times: int) -> tuple[Complexes, Reals]:
    """The coefficients k = 0..m of (1 + sum of a_j w^j)^t with a_j = ratio_j / t, and bounds on their absolute errors.

    k c_k is the sum over j <= k of (j t - (k - j)) a_j c_(k - j). The same with the sizes of all terms bounds how every
    error grows. Where t < m some terms are negative, and the series is multiplied with itself instead.
    """
    degree, width = ratios.shape
    shape = (degree + 1, width)
    values, major, grown = np.zeros(shape, complex), np.zeros(shape), np.zeros(shape)
    values[0] = major[0] = 1.0
    sizes = np.abs(ratios) + errors
    doubts = errors + 16 * U * sizes
    if times < degree:
        first = _Series(values.copy(), major.copy(), grown.copy())
        first.values[1:], first.sizes[1:], first.errors[1:] = (
            ratios / times,
            sizes / times,
            doubts / times,
        )
        power = first
        for digit in bin(times)[3:]:
            power = _times(power, power)
            power = _times(power, first) if digit == "1" else power
        return power.values, power.errors
    for k in range(1, degree + 1):
        each = np.arange(1, k + 1)
        factor = ((each - (k - each) / times) / k)[:, None]
        values[k] = (factor * ratios[:k] * values[k - 1 :: -1]).sum(axis=0)
        bound, doubt = factor * sizes[:k], factor * (doubts[:k] + k * U * sizes[:k])
        major[k] = (bound * major[k - 1 :: -1]).sum(axis=0) * (1 + 1e-9)
        grown[k] = (bound * grown[k - 1 :: -1] + doubt * major[k - 1 :: -1]).sum(axis=0) * (
            1 + 1e-9
        )
    return values, grown


class _Series(NamedTuple):
    """Coefficients, bounds on their sizes, and bounds on their errors, each of shape (degree + 1, n)."""

    values: Complexes
    sizes: Reals
    errors: Reals


def _times(one: _Series, two: _Series) -> _Series:
    """The product, cut at the same degree."""
    values, sizes, errors = (
        np.zeros_like(one.values),
        np.zeros_like(one.sizes),
        np.zeros_like(one.errors),
    )
    for k in range(len(one.values)):
        back = slice(k, None, -1)
        values[k] = (one.values[: k + 1] * two.values[back]).sum(axis=0)
        sizes[k] = (one.sizes[: k + 1] * two.sizes[back]).sum(axis=0) * (1 + 1e-9)
        moved = (one.sizes[: k + 1] * two.errors[back] + one.errors[: k + 1] * two.sizes[back]).sum(
            axis=0
        )
        errors[k] = (moved + (k + 8) * U * sizes[k]) * (1 + 1e-9)
    return _Series(values, sizes, errors)
