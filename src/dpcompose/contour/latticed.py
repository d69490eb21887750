"""A variable on a lattice: the line is a circle, and its sum is finite."""

from __future__ import annotations

import math

import numpy as np

from dpcompose.contour.contour import Contour, centered
from dpcompose.contour.placement import NEGLIGIBLE
from dpcompose.contour.transform import Lattice, Transform
from dpcompose.numerics.elementary import U


def latticed(
    transform: Transform, lattice: Lattice, order: float, period: float, outer: tuple[tuple[float, float], ...]
) -> Contour:
    """The nodes around the circle; the farthest are left out where there are many."""
    half = max(1, math.ceil(period / lattice.spacing / 2))
    step = 2 * math.pi / lattice.spacing / (2 * half + 1)
    _, _, variance = transform.cumulants(order)
    kept, tail = half + 1, 0.0
    reach = 9.5 / math.sqrt(variance)
    if half > 64 and reach < half * step:
        kept, tail = _tail(transform, lattice, order, step, half, reach)
    frequency = step * np.arange(kept)
    line = transform.line(order, frequency)
    log, scale = centered(line.log)
    # j 2 pi / ((2 half + 1) spacing) is rounded: a relative 3 U of a frequency moves log M by at most 3 U u |log M|'.
    _, first, _ = transform.cumulants(order)
    shaken = 4 * U * frequency * (abs(first) + 8 * math.sqrt(variance))
    kernel = lattice.spacing * np.where(frequency == 0, 1.0, 2.0) + 0j
    return Contour(
        order,
        step,
        frequency,
        log,
        line.error + shaken,
        scale,
        kernel,
        None,
        tail,
        outer,
        transform.maximum,
        lattice,
        0.0,
        "lattice",
    )


def _tail(
    transform: Transform, lattice: Lattice, order: float, step: float, half: int, reach: float
) -> tuple[int, float]:
    """How many of the nodes 0..half to keep, and a bound on the rest: |kernel| <= 2 / (1 - e^(-order spacing)) each."""
    end = (half + 0.5) * step  # half the circle
    edges = np.minimum(reach * 1.2 ** np.arange(60), end)
    edges = edges[: int(np.searchsorted(edges, end)) + 1]
    log_bound = transform.log_envelope(order, edges)[:-1]
    counts = np.diff(edges) / step + 1
    rest = (
        np.cumsum((np.exp(log_bound) * counts)[::-1])[::-1]
        * 4
        * lattice.spacing
        / -math.expm1(-order * lattice.spacing)
    )
    enough = np.flatnonzero(rest <= math.exp(-NEGLIGIBLE))
    if not len(enough):
        return half + 1, 0.0
    first = int(enough[0])
    return min(half + 1, math.ceil(edges[first] / step)), float(rest[first])
