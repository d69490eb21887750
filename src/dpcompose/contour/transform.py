"""A sum of independent real random variables, seen through its moment generating function.

The engine in `contour` asks nothing more of a variable L than this: M(t) = E[e^(tL)] on vertical lines, with an error.
What a variable knows beyond that (a decay of |M| along the line, a lattice that carries it) makes the answer narrower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcompose.numerics.elementary import Complexes, Reals


@dataclass(frozen=True)
class Line:
    """log M(order + i u) at given frequencies u >= 0.

    Args:
        log: Complex values of log M, any branch.
        error: For each value, a bound on |true log M - log| modulo 2 pi i; from 1 on, only log |M| <= log + error.
    """

    log: Complexes
    error: Reals

    @property
    def floor(self) -> Reals:
        """A lower bound on log |M| at the first frequency, shape (..., 1); -inf if none is known."""
        error = self.error[..., :1]
        return np.where(error < 1, self.log.real[..., :1] - error, -np.inf)


@dataclass(frozen=True)
class Lattice:
    """The variable lives on offset + spacing * integers."""

    spacing: float
    offset: float


class Transform(Protocol):
    """A random variable with M(order) finite for 0 < order < `abscissa`."""

    @property
    def maximum(self) -> float:
        """An upper bound on the variable, rounded up; inf if there is none."""
        ...

    @property
    def minimum(self) -> float:
        """A lower bound on the variable, rounded down; -inf if there is none."""
        ...

    @property
    def lattice(self) -> Lattice | None:
        """The lattice that carries the variable, if one is known."""
        ...

    def cumulants(self, order: float) -> tuple[float, float, float]:
        """K = log M and its first two derivatives at a real order: good to 1e-6, used for planning only."""
        ...

    def line(self, order: float, frequencies: Reals) -> Line:
        """log M along the vertical line through `order`."""
        ...

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        """For each edge, a bound on log |M(order + iu) / M(order)| for u up to the next; the last holds ever after."""
        ...


@dataclass(frozen=True)
class Curve:
    """K = log M and its first two derivatives at many real orders, each of shape (n,); planning quality."""

    log_m: Reals
    first: Reals
    second: Reals


def curve(transform: Transform, orders: Reals) -> Curve:
    """K and its derivatives at many real orders; infinite or NaN where it is too large for that."""
    many = getattr(transform, "curve", None)
    if many is not None:
        return many(orders)
    return Curve(*np.array([transform.cumulants(float(order)) for order in orders]).T)


def moment_bound(transform: Transform, order: float) -> float:
    """An upper bound on log M at a real order, to a few units: it bounds what is far away."""
    cheap = getattr(transform, "moment_bound", None)
    if cheap is not None:
        return cheap(order)
    line = transform.line(order, np.zeros(1))
    return float(line.log[0].real + line.error[0])


def survey(
    transform: Transform, order: float, nodes: Reals, edges: Reals, *, together: bool = False
) -> tuple[Line | None, Reals]:
    """`log_envelope`, and the line to a thousandth where that costs hardly more; the first node is 0.

    `together`: what faces the transform will be asked the same.
    """
    rough = getattr(transform, "survey", None)
    if rough is None:
        return None, transform.log_envelope(order, edges)
    return rough(order, nodes, edges, together=together)


def near_normal(transform: Transform, order: float, edges: Reals, *, together: bool) -> Reals | None:
    """`log_envelope` where it costs little because the sum is nearly normal; None if that is not known.

    `together`: what faces the transform will be asked the same.
    """
    cheap = getattr(transform, "near_normal", None)
    return None if cheap is None else cheap(order, edges, together=together)


def line_together(transform: Transform, order: float, frequencies: Reals) -> Line:
    """The line of a transform with what faces it, of which the same will be asked."""
    both = getattr(transform, "line_together", transform.line)
    return both(order, frequencies)


def facing(transform: Transform) -> Transform | None:
    """The same sum seen from the other order of its pairs, sharing what it can; None if the transform has none."""
    return getattr(transform, "facing", None)


def blockwise(magnitude: Reals, variance: Reals | float, edges: Reals) -> Reals:
    """log of a bound on |phi| over [edges[b], edges[b+1]], from |phi| at the edges.

    f = |phi|^2 is the characteristic function of a symmetrized variable, so |f''| <= 2 variance and on a block of
    width D, f <= max(f at its ends) + variance D^2 / 4. The last entry is 0: nothing is known beyond the last edge.

    Args:
        magnitude: Upper bounds on |phi| at the edges, shape (..., n).
        variance: An upper bound on the variance of the tilted variable, shape (..., 1) or a float.
        edges: Increasing frequencies, shape (n,).
    """
    square = magnitude * magnitude
    top = np.maximum(square[..., :-1], square[..., 1:]) + variance * np.diff(edges) ** 2 / 4
    bound = 0.5 * np.log(np.minimum(top * (1 + 1e-12), 1.0))
    return np.concatenate([bound, np.zeros_like(square[..., :1])], axis=-1)


@dataclass(frozen=True)
class Sum:
    """The sum of independent variables, itself a transform."""

    terms: tuple[Transform, ...]

    @property
    def maximum(self) -> float:
        return math.fsum(term.maximum for term in self.terms) * (1 + 2e-16 if self.terms else 1)

    @property
    def minimum(self) -> float:
        return math.fsum(term.minimum for term in self.terms)

    @property
    def lattice(self) -> Lattice | None:
        return None

    @property
    def scale(self) -> float:
        """About K(1)."""
        return sum(getattr(term, "scale", None) or term.cumulants(1.0)[0] for term in self.terms)

    @property
    def copies(self) -> float:
        """How many summands there are; inf if a term does not say."""
        return sum(getattr(term, "copies", math.inf) for term in self.terms)

    @property
    def explosion(self) -> float:
        """An order near which K begins to explode, if one is known."""
        return min(getattr(term, "explosion", math.inf) for term in self.terms)

    def cumulants(self, order: float) -> tuple[float, float, float]:
        rows = [term.cumulants(order) for term in self.terms]
        return sum(row[0] for row in rows), sum(row[1] for row in rows), sum(row[2] for row in rows)

    def curve(self, orders: Reals) -> Curve:
        """The sums of the terms' curves."""
        rows = [curve(term, orders) for term in self.terms]
        parts = np.sum([(row.log_m, row.first, row.second) for row in rows], axis=0)
        return Curve(parts[0], parts[1], parts[2])

    def moment_bound(self, order: float) -> float:
        """The sum of the terms' bounds, rounded up."""
        bounds = [moment_bound(term, order) for term in self.terms]
        return math.fsum(bounds) + 4 * 2.0**-53 * math.fsum(map(abs, bounds))

    def line(self, order: float, frequencies: Reals) -> Line:
        if not self.terms:  # what loses nothing: M is 1
            return Line(np.zeros(np.shape(frequencies), dtype=np.complex128), np.zeros(np.shape(frequencies)))
        return _added([term.line(order, frequencies) for term in self.terms])

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return np.sum([term.log_envelope(order, edges) for term in self.terms], axis=0)

    def survey(self, order: float, nodes: Reals, edges: Reals, *, together: bool) -> tuple[Line | None, Reals]:
        """The terms' surveys, added up; no line unless all have one."""
        found = [survey(term, order, nodes, edges, together=together) for term in self.terms]
        bounds = np.sum([bound for _, bound in found], axis=0)
        lines = [line for line, _ in found if line is not None]
        return (_added(lines) if len(lines) == len(found) else None), bounds


def _added(lines: Sequence[Line]) -> Line:
    log = np.sum([line.log for line in lines], axis=0)
    error = np.sum([line.error for line in lines], axis=0)
    spread = np.sum([np.abs(line.log) for line in lines], axis=0)
    return Line(log, error + len(lines) * 2.0**-53 * spread)
