"""The nodes of many lines of sampled Gaussians, each row with an order and a distance of nodes of its own.

Both directions come from one grid over the noise: with r^i(a + b) - 1 = (r^ia - 1) r^ib + (r^ib - 1) the nodes cost
about the square root of their number of waves, a matrix product does the rest, and a sum close to 1 keeps its distance
from 1. With t = tan(v / 2), e^iv - 1 = 2 t (i - t) / (1 + t^2), to a few U of itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpcompose.contour.exponential_sums import guarded
from dpcompose.contour.transform import Line
from dpcompose.loss.sampled_gaussian_grid import Grid
from dpcompose.loss.sampled_gaussian_plan import Parts
from dpcompose.numerics.elementary import Complexes, Reals, U, log_one_plus, row_dots, row_sums, row_tops

_FEW, _SERIAL = 128, 1 << 15


class Waves(NamedTuple):
    """r^(iu) - 1 at u = 0, b, 2 b, ... (first factor, few) and at u = 0, h, 2 h, ... below b (second), on a grid."""

    far: Complexes
    near: Complexes


def waves(grid: Grid, step: Reals, far: int, near: int) -> Waves:
    """The waves of far times near nodes; `step`: the distance h of the nodes, shape (m, 1)."""
    turn = (step * grid.points.ratio)[:, None, :]
    multiples = near * np.arange(far, dtype=float)[:, None]
    return Waves(_wave(multiples * turn), _wave(np.arange(near, dtype=float)[:, None] * turn))


def _wave(angle: Reals) -> Complexes:
    """e^(i angle) - 1, relative error at most 24 U beside that of the angle."""
    tangent = np.tan(0.5 * angle)
    scaled = 2 * tangent / (1 + tangent * tangent)
    found = np.empty(angle.shape, dtype=np.complex128)
    found.real, found.imag = -tangent * scaled, scaled
    return found


def nodes(parts: Parts, grid: Grid, waved: Waves, step: Reals, power: Reals, log_step_error: Reals) -> Line:
    """log M of one copy at the nodes of one direction, shape (m p, far near).

    With terms T0 = w and T1 = w r^p, good to a relative e, the sum of w (r^z - 1) is off by at most
    (|p| + u) times the sum of e (T0 + T1) |log r|: both |e^x - 1| and the effect of an error of log r are below that.

    Args:
        parts: The losses.
        grid: Their grid.
        waved: The waves on it.
        step: The distance of the nodes, shape (m p, 1).
        power: order + 1 when removing; -order when adding.
        log_step_error: log of a bound on what the step of the grid leaves out.
    """
    count = waved.far.shape[1] * waved.near.shape[1]
    chunk = _chunk(grid.x.shape[1], count)
    terms = _terms(grid, power, chunk)
    tilted, sign = terms.tilted[:, None, :], np.where(power > 0, 1.0, -1.0)
    near = tilted * waved.near
    single = np.add.reduce(near, axis=-1)[:, None, :]
    product = _products(waved.far, near + tilted, chunk) + single
    product = product.reshape(len(step), count)
    x = terms.rise + product.real + np.expm1(-terms.shift)
    y = sign * product.imag
    frequency = step * np.arange(count, dtype=float)
    size = np.abs(power) + frequency
    omitted = np.exp(np.minimum(log_step_error - terms.shift, 700.0)) + _outside(parts, grid, power, terms.shift)
    error = terms.slanting * size + omitted + U * (4 * np.abs(x) + 8 * np.minimum(terms.shift, 1.0))
    line = guarded(x, y, error, log_one_plus(x, y))
    return Line(line.log + terms.shift, line.error + 4 * U * terms.shift)


def _products(far: Complexes, near: Complexes, chunk: int) -> Complexes:
    """The sums over the points of far times near, shape (m, far, near): over chunks first, so that they round less."""
    split = [each.reshape(*each.shape[:2], -1, chunk).transpose(0, 2, 1, 3) for each in (far, near)]
    return np.add.reduce(np.ascontiguousarray(split[0]) @ np.ascontiguousarray(split[1].transpose(0, 1, 3, 2)), axis=1)


def _chunk(points: int, count: int) -> int:
    """A divisor of a `class_of` points, so small that no product of `count` nodes wakes the threads of a BLAS."""
    most = _SERIAL // count
    return points if points <= min(_FEW, most) else 1 << min(points.bit_length() - 4, most.bit_length() - 1)


def moment_bounds(parts: Parts, grid: Grid, power: Reals, log_step_error: Reals) -> Reals:
    """An upper bound on log M of one copy at a real order, shape (m p, 1)."""
    terms = _terms(grid, power, 1)
    total = np.exp(-terms.shift) + terms.rise + terms.slanting * np.abs(power)
    total = total + np.exp(np.minimum(log_step_error - terms.shift, 700.0)) + _outside(parts, grid, power, terms.shift)
    return np.log(np.maximum(total, 1e-300)) + terms.shift + 16 * U * (1 + terms.shift)


class _Terms(NamedTuple):
    """Sums at a real power, in units of e^shift: w r^p of each point, the sum of w (r^p - 1), and that of errors."""

    shift: Reals
    tilted: Reals
    rise: Reals
    slanting: Reals


def _terms(grid: Grid, power: Reals, chunk: int) -> _Terms:
    points = grid.points
    moved = power * points.ratio
    exponent = points.log_weight + moved
    shift = np.maximum(row_tops(exponent), 0.0)
    tilted, weight = np.exp(exponent - shift), np.exp(points.log_weight - shift)
    rise = np.where(moved < 1, weight * np.expm1(np.minimum(moved, 1.0)), tilted - weight)
    wide = np.abs(moved)
    relative = U * (1.5 * chunk + moved.shape[-1] / chunk + 128 + 4 * (np.abs(points.log_weight) + wide) + shift)
    relative = relative + points.weight_error + points.ratio_error * (1 + wide)
    slanting = row_dots(relative * (tilted + weight), np.abs(points.ratio)) * 1.001
    return _Terms(shift, tilted, row_sums(rise), slanting)


def _outside(parts: Parts, grid: Grid, power: Reals, shift: Reals) -> Reals:
    """A bound on the sums of n r^p and of n beyond the grid, in units of e^shift.

    log (n r^p) has the slope (p w - x) / s^2 with w in [0, 1] rising: so terms fall at a rate of their own at least.
    """
    points, s2, first, last = grid.points, parts.noise**2, grid.x[:, :1], grid.x[:, -1:]
    weight = -np.expm1(-np.maximum(points.ratio[:, :1] - np.log1p(-parts.rate), 0.0))
    found = np.zeros_like(s2)
    for each in (power, np.zeros_like(power)):
        left = points.log_weight[:, :1] + each * points.ratio[:, :1] - shift
        right = points.log_weight[:, -1:] + each * points.ratio[:, -1:] - shift
        falling_left = grid.step * (-first - np.maximum(-each, 0.0) * weight) / s2
        falling_right = grid.step * (last - np.maximum(each, 0.0)) / s2
        found = found + _tail(left, falling_left) + _tail(right, falling_right)
    return found


def _tail(log_term: Reals, falling: Reals) -> Reals:
    """e^log_term (q + q^2 + ...) for q = e^-falling; infinite where terms do not fall."""
    rate = np.expm1(np.minimum(np.maximum(falling, 1e-300), 700.0))
    return np.where(falling > 0, np.exp(np.minimum(log_term, 700.0)) / rate, math.inf)
