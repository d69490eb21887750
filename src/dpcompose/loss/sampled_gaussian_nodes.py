"""log M of sampled Gaussians at the nodes of lines, in rows.

The sums over the noise run on Im x = theta s^2, where arg r is in [0, theta] and |r^(iu)| falls with u: the distance of
their points serves every node of the line. theta = 0 where the line is short.

Both directions come from one grid: with r^i(a + b) - 1 = (r^ia - 1) r^ib + (r^ib - 1) the nodes cost about the square
root of their number of waves, a matrix product does the rest, and a sum close to 1 keeps its distance from 1. All waves
are products of one, and every |r^iu| <= 1, so that errors add up: each level of doubling adds 5 U u |log r|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from typing import NamedTuple

import numpy as np

from dpcompose.contour import Line, guarded, joined
from dpcompose.loss.sampled_gaussian_grid import Grid, shortened
from dpcompose.loss.sampled_gaussian_plan import Parts
from dpcompose.numerics import (
    Complexes,
    Reals,
    U,
    log_one_plus,
    product,
    row_dots,
    row_sums,
    row_tops,
)

_LARGEST_EXPONENT = 300.0
"""log of the largest likelihood ratio of the noise that is computed as it is."""
_SHORT, _MOST_CHUNK, _SERIAL = 32, 16, 1 << 16
_LEVELS = 6
_ENTRIES, _MOST_NODES = 1 << 21, 4096
"""Entries of an array of waves, and nodes that are computed at once."""


@dataclass(frozen=True)
class RaisedGrid:
    """Points x + i theta s^2, x a multiple of the step; all shapes (m, n), but for those of theta and step, (m, 1).

    Args:
        x: Their real parts, exact.
        step: Their distance.
        theta: The height over s^2, in [0, pi / 2).
        log_weight: log of the modulus of the density of N(0, s^2) there, times the step.
        ratio: log r, its imaginary part in [0, theta].
        ratio_error: A bound on its error.
        weight_error: A bound on the relative error of the weights.
    """

    x: Reals
    step: Reals
    theta: Reals
    log_weight: Reals
    ratio: Complexes
    ratio_error: Reals
    weight_error: Reals

    @cached_property
    def phase(self) -> Reals:
        """The argument of the weights."""
        return -self.theta * self.x

    @cached_property
    def turn(self) -> Complexes:
        """The weights over their moduli."""
        return _unit(self.phase)

    @cached_property
    def size(self) -> Reals:
        """|log r|."""
        return np.abs(self.ratio)


def raised(parts: Parts, low: Reals, high: Reals, theta: Reals, points: int) -> RaisedGrid:
    """For each row the grid of so many points over [low, high], moved off the real line by theta s^2; shapes (m, 1)."""
    noise, rate = parts.noise, parts.rate
    step = shortened((high - low) / (points - 2) * (1 + 2**-18))
    x = step * (np.ceil(low / step) - 1 + np.arange(points))
    s2, square = noise * noise, x * x
    log_weight = (
        np.log(step / noise)
        - 0.5 * math.log(2 * math.pi)
        + theta * theta * s2 / 2
        - square / (2 * s2)
    )
    z = (2 * x - 1) / (2 * s2)
    # r = 1 + q (e^z - 1) - q e^z (1 - cos theta) + i q e^z sin theta. Where e^z may overflow it is 1 + q e^(z + i theta),
    # and beyond e^40 the second term alone.
    far, near = z > _LARGEST_EXPONENT, np.minimum(z, _LARGEST_EXPONENT)
    sampled, rise, log_rate = rate * np.exp(near), rate * np.expm1(near), np.log(rate)
    if far.any():
        beyond = np.exp(np.minimum(z + log_rate, 40.0))
        sampled, rise = np.where(far, beyond, sampled), np.where(far, beyond, rise)
    real, imaginary = rise - sampled * (2 * np.square(np.sin(theta / 2))), sampled * np.sin(theta)
    ratio = log_one_plus(real, imaginary)
    modulus = np.exp(ratio.real)
    if far.any():
        ratio = np.where(far & (z + log_rate > 40), z + log_rate + 1j * theta, ratio)
    # x is exact, so z and the exponent of the weight carry relative errors of `units` U; r moves by q e^z times that.
    units, size = 4 + 2 * parts.ulps, np.abs(ratio)
    trigonometric = 30 * (1 - np.cos(theta)) + 19 * np.sin(theta)
    moved = units * np.abs(z) + (trigonometric + 1)
    if far.any():
        moved = moved - far * (4 * log_rate)
    argument_error = (sampled * moved + 12 * np.abs(rise)) / modulus
    spread = np.maximum(size, np.minimum(np.hypot(real, imaginary) / modulus, 1 + size))
    ratio_error = U * (argument_error + 16 * spread) * (1 + 1e-9)
    exponent_error = units / 2 * (square / s2 + theta * theta * s2) + 4 * (
        theta * np.abs(x) + np.abs(log_weight)
    )
    weight_error = U * (12 + parts.ulps + exponent_error)
    return RaisedGrid(
        x, step, theta, log_weight, ratio, ratio_error=ratio_error, weight_error=weight_error
    )


class Waves(NamedTuple):
    """r^(iu) - 1 at u = 0, b, 2 b, ... (first factor, few) and at u = 0, h, 2 h, ... below b (second), on a grid."""

    blocks: Complexes
    within: Complexes

    def thinned(self, stride: int) -> Waves:
        """The waves of every `stride`-th node only; the stride divides the number of near waves."""
        return Waves(self.blocks, self.within[:, ::stride])


def waves(grid: RaisedGrid, step: Reals, blocks: int, within: int) -> Waves:
    """The waves of far times near nodes; `step`: the distance h of the nodes, shape (m, 1)."""
    distance = np.concatenate([within * step, step], axis=1)[:, :, None]
    solved = _waves(distance * grid.ratio[:, None], max(blocks, within))
    return Waves(solved[:, 0, :blocks], solved[:, 1, :within])


def _waves(angle: Complexes, count: int) -> Complexes:
    """e^(i k angle) - 1 for k below `count`, on an axis before the last."""
    solved = np.zeros((*angle.shape[:-1], count, angle.shape[-1]), dtype=np.complex128)
    one, size = _wave(angle)[..., None, :], 1
    while size < count:
        taken = min(size, count - size)
        rows = np.multiply(solved[..., :taken, :], 1 + one, out=solved[..., size : size + taken, :])
        rows += one
        one, size = np.multiply(one, 2 + one), size + taken
    return solved


def _wave(angle: Complexes) -> Complexes:
    """e^(i angle) - 1, relative error at most 36 U beside that of the angle; nonnegative imaginary parts.

    With t = tan(a / 2): cos a - 1 = -2 t^2 / (1 + t^2) and sin a = 2 t / (1 + t^2).
    """
    tangent = np.tan(0.5 * angle.real)
    sine = 2 * tangent / (1 + tangent * tangent)
    falling = np.expm1(-angle.imag)
    solved = np.empty(angle.shape, dtype=np.complex128)
    solved.real, solved.imag = falling - tangent * sine * (1 + falling), sine * (1 + falling)
    return solved


def _unit(angle: Reals) -> Complexes:
    """e^(i angle)."""
    solved = np.empty(angle.shape, dtype=np.complex128)
    solved.real, solved.imag = np.cos(angle), np.sin(angle)
    return solved


def nodes(
    parts: Parts, grid: RaisedGrid, waved: Waves, step: Reals, power: Reals, log_step_error: Reals
) -> Line:
    """log M of one copy at the nodes of one direction, shape (m p, far near).

    Args:
        parts: The losses.
        grid: Their grid.
        waved: The waves on it.
        step: The distance of the nodes, shape (m p, 1) or (1, 1).
        power: order + 1 when removing; -order when adding.
        log_step_error: log of a bound on what the step of the grid leaves out.
    """
    count = waved.blocks.shape[1] * waved.within.shape[1]
    frequencies = step * np.arange(count, dtype=float)
    terms = _terms(grid, power, _chunk(grid.x.shape[1], count))
    return _line(parts, grid, waved, frequencies, log_step_error, terms)


def line_at(
    parts: Parts,
    grid: RaisedGrid,
    frequencies: Reals,
    power: Reals,
    log_step_error: Reals,
    *,
    first: int,
) -> Line:
    """log M of one copy at increasing frequencies from 0 on, those of index `first` on, shape (m p, n).

    Other arguments are those of `nodes`. Where multiples of the least distance are close together each is the sum of a
    far and a near one; elsewhere each is by itself.
    """
    count, step = len(frequencies), float(np.diff(frequencies).min(initial=np.inf))
    step = step if step < np.inf else 1.0
    places, most = np.rint(frequencies / step), max(_ENTRIES // grid.x.size, 1)
    whole = bool((places * step == frequencies).all())
    together = min(max(most * most // 4, 1), _MOST_NODES)
    ratio, lines, at = grid.ratio[:, None, :], list[Line](), first

    @cache
    def near_waves(size: int) -> Complexes:
        return _wave((step * np.arange(size))[:, None] * ratio)

    @cache
    def terms(chunk: int) -> _Terms:
        return _terms(grid, power, chunk)

    while at < count:
        end = min(at + together, count)
        close = whole and places[end - 1] - places[at] < 4 * (end - at)
        if close:
            size = math.isqrt(end - at)
            blocks, which = np.unique(places[at:end] // size, return_inverse=True)
            far, chosen = blocks * (size * step), which * size + (places[at:end] % size).astype(int)
        else:
            end, size = min(at + most, count), 1
            far, chosen = frequencies[at:end], slice(None)
        waved = Waves(_wave(far[:, None] * ratio), near_waves(size))
        every = (far[:, None] + step * np.arange(size)).reshape(1, -1)
        known = terms(_chunk(grid.x.shape[1], every.shape[1]))
        line = _line(parts, grid, waved, every, log_step_error, known)
        lines.append(line[:, chosen])
        at = end
    return reduce(joined, lines)


def _line(
    parts: Parts,
    grid: RaisedGrid,
    waved: Waves,
    frequencies: Reals,
    log_step_error: Reals,
    terms: _Terms,
) -> Line:
    """log M of one copy at sums of far and near frequencies, shape (m p, far near).

    With terms of modulus T0 = |w| and T1 = |w r^p|, good to a relative e, the sum of w (r^z - 1) is off by at most
    (|p| + u) times the sum of (T0 + T1) (e |log r| + d), d the error of log r: both |e^x - 1| and the effect of that
    error are below that.
    """
    count, power = frequencies.shape[1], terms.power
    chunk = _chunk(grid.x.shape[1], count)
    within: Complexes = np.multiply(terms.tilted[:, None, :], waved.within)
    single = np.add.reduce(within, axis=-1)[:, None, :]
    within += terms.tilted[:, None, :]
    product = (_products(waved.blocks, within, chunk) + single).reshape(len(power), count)
    x = terms.rise.real + product.real + np.expm1(-terms.shift)
    # M at the conjugate is the conjugate.
    y = np.where(power > 0, 1.0, -1.0) * (terms.rise.imag + product.imag)
    powers = np.concatenate([power, np.zeros_like(power)], axis=1)
    beyond = row_sums(outside(parts, grid, grid.theta, powers, terms.shift))
    omitted = np.exp(np.minimum(log_step_error - terms.shift, 700.0)) + beyond
    slanting = row_dots(terms.sizes, terms.fuzz) * 1.001
    error = slanting * (np.abs(power) + frequencies) + omitted
    farthest = (np.abs(power) + frequencies[:, -1:]) * terms.fuzz
    if (farthest > 1e-3).any():  # where an error is not small e^x - 1 is above x
        more = np.where(farthest > 1e-3, np.expm1(np.minimum(farthest, 700.0)) - farthest, 0.0)
        error = error + row_dots(terms.sizes, more)
    error = error + U * (4 * np.abs(x) + 8 * np.minimum(terms.shift, 1.0))
    line = guarded(x, y, error, log_one_plus(x, y))
    return Line(line.log + terms.shift, line.error + 4 * U * terms.shift)


def _products(blocks: Complexes, within: Complexes, chunk: int) -> Complexes:
    """The sums over the points of far times near, shape (m, far, near): over chunks first, so that they round less."""
    split = [
        each.reshape(*each.shape[:2], -1, chunk).transpose(0, 2, 1, 3) for each in (blocks, within)
    ]
    left, right = (
        np.ascontiguousarray(split[0]),
        np.ascontiguousarray(split[1].transpose(0, 1, 3, 2)),
    )
    return np.add.reduce(product(left, right), axis=1)


def _chunk(points: int, count: int) -> int:
    """A divisor of the points, so small that no product of `count` nodes wakes the threads of a BLAS."""
    most = min(points if points <= _SHORT else _MOST_CHUNK, _SERIAL // count)
    return next(size for size in range(most, 0, -1) if points % size == 0)


class _Terms(NamedTuple):
    """Sums at a real power, in units of e^shift: w r^p of each point, the sum of w (r^p - 1); of each point |w| + |w r^p|,
    and the error of log r."""

    power: Reals
    shift: Reals
    tilted: Complexes
    rise: Complexes
    sizes: Reals
    fuzz: Reals


def _terms(grid: RaisedGrid, power: Reals, chunk: int) -> _Terms:
    moved = power * grid.ratio
    exponent = grid.log_weight + moved.real
    shift = np.maximum(row_tops(exponent), 0.0)
    size, own = np.exp(exponent - shift), np.exp(grid.log_weight - shift)
    weight, tilted = own * grid.turn, size * _unit(moved.imag + grid.phase)
    within: Complexes = np.multiply(weight, _excess(np.minimum(moved.real, 1.0), moved.imag))
    rise = np.where(moved.real < 1, within, tilted - weight)
    total = np.add.reduce(rise, axis=-1, keepdims=True)
    wide = np.abs(power) * grid.size
    relative = (
        U * (1.5 * chunk + moved.shape[-1] / chunk + 70 + 5 * _LEVELS + 4 * wide + shift)
        + grid.weight_error
    )
    sizes, fuzz = size + own, relative * grid.size + grid.ratio_error
    return _Terms(power, shift, tilted, total, sizes, fuzz)


def _excess(real: Reals, imaginary: Reals) -> Complexes:
    """e^(a + ib) - 1, relative error at most 36 U of |a + ib| max(1, e^a)."""
    rise, half = np.expm1(real), np.sin(imaginary / 2)
    solved = np.empty(rise.shape, dtype=np.complex128)
    solved.real, solved.imag = rise - 2 * (1 + rise) * half * half, (1 + rise) * np.sin(imaginary)
    return solved


def outside(
    parts: Parts, grid: Grid | RaisedGrid, theta: Reals | float, powers: Reals, shift: Reals
) -> Reals:
    """Bounds on the sums of |n r^p| beyond a grid on Im x = theta s^2 in units of e^shift, for some powers of each row.

    Up to theta = pi / 2 the slope of log |n r^p| is (p w - x) / s^2, where w in [0, 1] is the real part of
    q e^(z + i theta) / r and rises with x: so terms fall at a rate of their own at least.

    Args:
        parts: The losses.
        grid: Their grid.
        theta: Its height over s^2.
        powers: The powers p, shape (m, k), as is the result.
        shift: Shape (m, k) or (m, 1).
    """
    s2, first, last = parts.noise**2, grid.x[:, :1], grid.x[:, -1:]
    points = grid.points if isinstance(grid, Grid) else grid
    odds = np.exp((2 * first - 1) / (2 * s2) + np.log(parts.rate) - np.log1p(-parts.rate))
    cosine = np.cos(theta)
    share = odds * (cosine + odds) / (1 + odds * (2 * cosine + odds)) * (1 + 1e-9)
    left = grid.step * (-first - np.maximum(-powers, 0.0) * share) / s2
    right = grid.step * (last - np.maximum(powers, 0.0)) / s2
    weight, ratio = points.log_weight, points.ratio.real
    before = _tail(weight[:, :1] + powers * ratio[:, :1] - shift, left)
    return (before + _tail(weight[:, -1:] + powers * ratio[:, -1:] - shift, right)) * (1 + 1e-9)


def _tail(log_term: Reals, falling: Reals) -> Reals:
    """e^log_term (q + q^2 + ...) for q = e^-falling; infinite where terms do not fall."""
    rate = np.expm1(np.minimum(np.maximum(falling, 1e-300), 700.0))
    return np.where(falling > 0, np.exp(np.minimum(log_term, 700.0)) / rate, math.inf)
