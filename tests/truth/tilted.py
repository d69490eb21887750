"""A second opinion in floats: the loss on a lattice of step h, exponentially tilted, convolved by FFT without wrapping.

Upper end: the (P, Q) mass of each cell is split between its two edges so that both masses stay (this can only
separate the pair), what is above the last edge goes to infinity, what is below the first goes up to it. Lower end:
the mass of a cell is merged into one point of loss log(P/Q) (this can only blur the pair) and lowered to the lattice
start + n h, where the start is chosen so that smooth losses are lowered by O(h^2) only; what is outside the edges is
dropped. Both ends get a slack of 1e-10 of the tilted mass for float errors, which is generous and not proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

Array = np.ndarray

SLACK = 1e-10


@dataclass(frozen=True)
class Cells:
    """The P and Q mass of a loss between consecutive edges, and the P mass above and below them."""

    above: float
    below: float
    upper: Array
    lower: Array


Law = Callable[[Array], Cells]


def gaussian(mu: float) -> Law:
    """The loss N(mu^2/2, mu^2)."""

    def cells(edges: Array) -> Cells:
        p, q = ((edges - sign * mu * mu / 2) / mu for sign in (1, -1))
        return Cells(float(ndtr(-p[-1])), float(ndtr(p[0])), _normal(p), _normal(q))

    return cells


def sampled_gaussian(rate: float, mu: float) -> Law:
    """log(1 - rate + rate e^{mu x - mu^2/2}) with the record first."""

    def cells(edges: Array) -> Cells:
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.where(np.expm1(edges) > -rate, np.log1p(np.expm1(edges) / rate), -np.inf)
        x = inner / mu + mu / 2
        without, shifted = _normal(x), _normal(x - mu)
        top = (1 - rate) * ndtr(-x[-1]) + rate * ndtr(mu - x[-1])
        bottom = (1 - rate) * ndtr(x[0]) + rate * ndtr(x[0] - mu)
        return Cells(float(top), float(bottom), (1 - rate) * without + rate * shifted, without)

    return cells


def laplace(bound: float) -> Law:
    """Atoms 1/2 at `bound` and e^-bound / 2 at -bound, density e^{(l - bound)/2} / 4."""

    def cells(edges: Array) -> Cells:
        inside = np.clip(edges, -bound, bound)
        p = np.where(edges >= bound, 1.0, np.exp((inside - bound) / 2) / 2)
        q = np.where(edges >= bound, 1.0, 1 - np.exp(-(inside + bound) / 2) / 2)
        p, q = np.where(edges < -bound, 0.0, p), np.where(edges < -bound, 0.0, q)
        return Cells(1 - float(p[-1]), float(p[0]), np.diff(p), np.diff(q))

    return cells


def delta(
    epsilon: float, parts: Sequence[tuple[Law, int]], *, step: float, reach: float, order: float
) -> tuple[float, float]:
    """Two ends around delta(epsilon); any `order` > 0 and `reach`, the largest |loss| of one step, are valid."""
    count = math.ceil(reach / step)
    edges = np.arange(-count, count + 1) * step
    outside, upper, lower = 0.0, [], []
    for law, times in parts:
        cells = law(edges)
        outside += times * cells.above
        upper.append((_split(cells, edges), -count * step, times))
        masses, start = _merged(cells, edges)
        lower.append((masses, start, times))
    high = _tail(epsilon, upper, step, order, 1.0) + outside
    return max(0.0, _tail(epsilon, lower, step, order, -1.0)), min(1.0, high)


def _normal(points: Array) -> Array:
    """The standard normal mass between consecutive points, from the nearer tail."""
    left, right = points[:-1], points[1:]
    return np.where(left > 0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))


def _split(cells: Cells, edges: Array) -> Array:
    width = edges[1] - edges[0]
    scaled = cells.lower * np.exp(edges[:-1])  # both masses relative to the lower edge
    up = np.clip((cells.upper - scaled) / -math.expm1(-width), 0.0, cells.upper)
    masses = np.zeros(len(edges))
    masses[1:] += up
    masses[:-1] += cells.upper - up
    masses[0] += cells.below
    return masses


def _merged(cells: Cells, edges: Array) -> tuple[Array, float]:
    kept = (cells.upper > 1e-30) & (cells.lower > 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where(kept, np.log(cells.upper / cells.lower), np.inf)
    offset = float(np.min(losses - edges[:-1]))
    start = edges[0] + min(max(offset, 0.0), edges[1] - edges[0])
    return np.where(kept, cells.upper, 0.0), start


def _tail(epsilon: float, parts: list[tuple[Array, float, int]], step: float, order: float, sign: float) -> float:
    """The hockey-stick sum over the convolution, `sign` saying on which side the slack goes."""
    length = sum(times * (len(masses) - 1) for masses, _, times in parts) + 1
    size = 1 << (length - 1).bit_length()
    spectrum, log_scale, start = np.ones(size // 2 + 1, complex), 0.0, 0.0
    for masses, first, times in parts:
        with np.errstate(divide="ignore"):
            logs = np.log(masses) + order * (first + step * np.arange(len(masses)))
        top = float(np.max(logs))
        weights = np.exp(logs - top)
        total = float(weights.sum())
        spectrum = spectrum * np.fft.rfft(weights / total, size) ** times
        log_scale += times * (top + math.log(total))
        start += times * first
    tilted = np.fft.irfft(spectrum, size)[:length]
    gaps = start + step * np.arange(length) - epsilon
    kept = gaps > 0
    value = float(np.sum(tilted[kept] * np.exp(-order * gaps[kept]) * -np.expm1(-gaps[kept])))
    return math.exp(log_scale - order * epsilon) * (value + sign * SLACK)
