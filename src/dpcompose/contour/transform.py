"""A sum L of independent real random variables, described by its moment generating function M(t) =
E[e^(tL)].

`contour` requires only M on vertical lines, with error bounds. Further properties (a decay of |M|
along the line, a lattice that contains L) make the bounds narrower.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar, cast

import numpy as np

from dpcompose.numerics import Complexes, Reals

Owner = TypeVar("Owner")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ArrayRows:
    """A dataclass of arrays, or of other such dataclasses; indexing selects rows in all of them."""

    def __getitem__(self, rows: Any) -> Self:
        own: Any = self
        return cast("Any", type(self))(*[vars(self)[each.name][rows] for each in fields(own)])


@dataclass(frozen=True)
class Line(ArrayRows):
    """The logarithm of the moment generating function M(order + i u) at given frequencies u >= 0.

    Args:
        log: Complex values of log M, on any branch.
        error: For each value, a bound on |true log M - log| modulo 2 pi i; from 1 on, only log |M|
            <= log + error holds.
    """

    log: Complexes
    error: Reals

    @property
    def floor(self) -> Reals:
        """Return a lower bound on log |M| at the first frequency, shape (..., 1); -inf if there is
        none. M is the moment generating function.
        """
        error = self.error[..., :1]
        return np.where(error < 1, self.log.real[..., :1] - error, -np.inf)


def joined(first: Line, last: Line) -> Line:
    """Return the concatenation of two lines."""
    log, error = (
        np.concatenate([first.log, last.log], axis=-1),
        np.concatenate([first.error, last.error], axis=-1),
    )
    return Line(log, error)


@dataclass(frozen=True)
class Lattice:
    """A lattice: all values of the variable are in offset + spacing * integers."""

    spacing: float
    offset: float


@dataclass(frozen=True)
class Cumulants(ArrayRows):
    """The cumulant generating function K = log M and its first two derivatives at many real orders,
    each of shape (n,); uncertified.
    """

    log_m: Reals
    first: Reals
    second: Reals


def remembered(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """A decorator that caches a method's results for each object and list of arguments; arrays are
    compared by their bytes.
    """

    @wraps(method)
    def wrapper(self: Owner, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        results: dict[Any, Result] = vars(self).setdefault("_remembered", {})
        values = (*args, *kwargs.values())
        key = (
            method.__name__,
            *[each.tobytes() if isinstance(each, np.ndarray) else each for each in values],
        )
        if key not in results:
            results[key] = method(self, *args, **kwargs)
        return results[key]

    return wrapper


class Transform(ABC):
    """A random variable L, described by its moment generating function M(t) = E[e^(tL)].

    M(order) is finite for 0 < order < some abscissa. A family must define three members; every
    other member has a sound default, and a better one makes the bounds narrower or cheaper.
    """

    tabulates: ClassVar[bool] = False
    """Whether `curve` at many orders costs hardly more than `cumulants` at one."""

    @property
    def maximum(self) -> float:
        """An upper bound on the variable, rounded up; inf if there is none."""
        return math.inf

    @property
    def minimum(self) -> float:
        """A lower bound on the variable, rounded down; -inf if there is none."""
        return -math.inf

    @property
    def lattice(self) -> Lattice | None:
        """The lattice that contains all values of the variable; None if none is known."""
        return None

    @property
    def summands(self) -> tuple[Transform, ...]:
        """The independent variables whose sum this is; the variable itself if they are unknown."""
        return (self,)

    @property
    def reverse(self) -> Transform | None:
        """The same sum for the pairs in the reverse order, if it can share nodes with this one;
        else None.
        """
        return None

    @property
    def scale(self) -> float:
        """An estimate of the cumulant generating function K(1), from which the search for an order
        starts.
        """
        return self.cumulants(1.0)[0]

    @property
    def copies(self) -> float:
        """The number of independent summands; inf if unknown."""
        return math.inf

    @property
    def blow_up(self) -> float:
        """An order close to which the cumulant generating function K becomes infinite; inf if
        unknown.
        """
        return math.inf

    @abstractmethod
    def cumulants(self, order: float) -> tuple[float, float, float]:
        """Return the cumulant generating function K = log M and its first two derivatives at a real
        order, accurate to about 1e-6; uncertified.
        """

    def curve(self, orders: Reals) -> Cumulants:
        """Return `cumulants` at many real orders; infinite or NaN where the cumulant generating
        function K overflows.
        """
        return Cumulants(*np.array([self.cumulants(float(order)) for order in orders]).T)

    def moment_bound(self, order: float) -> float:
        """Return an upper bound on the logarithm of the moment generating function M at a real
        order, up to a few units too large; it bounds terms that are small anyway.
        """
        line = self.line(order, np.zeros(1))
        return float(line.log[0].real + line.error[0])

    @abstractmethod
    def line(self, order: float, frequencies: Reals) -> Line:
        """Return the logarithm of the moment generating function M along the vertical line through
        `order`.
        """

    def line_with_reverse(self, order: float, frequencies: Reals) -> Line:
        """Return `line`, when `line` of the reverse will be needed at the same nodes."""
        return self.line(order, frequencies)

    @abstractmethod
    def log_envelope(self, order: float, edges: Reals) -> Reals:
        """Return for each edge a bound on log |M(order + iu) / M(order)| for u up to the next edge;
        the last bound holds for all larger u. M is the moment generating function.
        """

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        """Return `log_envelope` with the smallest bounds that can be proved, at a higher cost."""
        return self.log_envelope(order, edges)

    def envelope_with_reverse(self, order: float, edges: Reals) -> Reals:
        """Return `log_envelope`, when that of the reverse will be needed at the same edges."""
        return self.log_envelope(order, edges)

    def log_bounds(self, order: float) -> Iterable[Callable[[Reals], Reals]]:
        """Return cheap functions of frequencies u that bound the factors of |M(order + iu) /
        M(order)|, in logarithms; their sum is a bound. M is the moment generating function.
        """
        return ()

    def limsup(self, order: float) -> float:
        """Return a lower bound on the limit superior of |M(order + iu)| / M(order) as u grows,
        which atoms make positive; or 0. M is the moment generating function.
        """
        return 0.0


def blockwise(magnitude: Reals, variance: Reals | float, edges: Reals) -> Reals:
    """Return the logarithm of a bound on |phi| over each [edges[b], edges[b+1]], from |phi| at the
    edges.

    f = |phi|^2 is the characteristic function of a symmetrized variable, so |f''| <= 2 variance,
    and on a block of width D, f <= max(f at its ends) + variance D^2 / 4. The last entry is 0:
    there is no bound beyond the last edge.

    Args:
        magnitude: Upper bounds on |phi| at the edges, shape (..., n).
        variance: An upper bound on the variance of the tilted variable, shape (..., 1) or a float.
        edges: Increasing frequencies, shape (n,).
    """
    square = magnitude * magnitude
    top = np.maximum(square[..., :-1], square[..., 1:]) + variance * np.diff(edges) ** 2 / 4
    bound = 0.5 * np.log(np.minimum(top * (1 + 1e-12), 1.0))
    return np.concatenate([bound, np.zeros_like(square[..., :1])], axis=-1)


class TabulatedTransform(Transform):
    """A variable whose `curve` at many orders costs hardly more than at one, so that `cumulants` is
    taken from `curve`.
    """

    tabulates = True

    def cumulants(self, order: float) -> tuple[float, float, float]:
        at = self.curve(np.array([order]))
        return float(at.log_m[0]), float(at.first[0]), float(at.second[0])

    @abstractmethod
    def curve(self, orders: Reals) -> Cumulants: ...


@dataclass(frozen=True)
class TransformSum(Transform):
    """The sum of independent variables, itself a transform."""

    terms: tuple[Transform, ...]
    tabulates: ClassVar[bool] = True

    @property
    def summands(self) -> tuple[Transform, ...]:
        return self.terms

    @property
    def maximum(self) -> float:
        return math.fsum(term.maximum for term in self.terms) * (1 + 2e-16 if self.terms else 1)

    @property
    def minimum(self) -> float:
        return math.fsum(term.minimum for term in self.terms)

    @property
    def scale(self) -> float:
        return sum(term.scale for term in self.terms)

    @property
    def copies(self) -> float:
        return sum(term.copies for term in self.terms)

    @property
    def blow_up(self) -> float:
        return min((term.blow_up for term in self.terms), default=math.inf)

    def cumulants(self, order: float) -> tuple[float, float, float]:
        rows = [term.cumulants(order) for term in self.terms]
        return sum(row[0] for row in rows), sum(row[1] for row in rows), sum(row[2] for row in rows)

    def curve(self, orders: Reals) -> Cumulants:
        nothing = np.zeros((3, len(orders)))  # the sum of no terms
        rows = [term.curve(orders) for term in self.terms]
        parts = np.sum([nothing, *((row.log_m, row.first, row.second) for row in rows)], axis=0)
        return Cumulants(parts[0], parts[1], parts[2])

    def moment_bound(self, order: float) -> float:
        bounds = [term.moment_bound(order) for term in self.terms]
        return math.fsum(bounds) + 4 * 2.0**-53 * math.fsum(map(abs, bounds))

    def line(self, order: float, frequencies: Reals) -> Line:
        if not self.terms:  # terms that are always 0 have M = 1
            return Line(
                np.zeros(np.shape(frequencies), dtype=np.complex128),
                np.zeros(np.shape(frequencies)),
            )
        return _added([term.line(order, frequencies) for term in self.terms])

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return np.sum([term.log_envelope(order, edges) for term in self.terms], axis=0)

    def limsup(self, order: float) -> float:
        return math.prod(term.limsup(order) for term in self.terms)


def summed_line(terms: Iterable[Transform], order: float, frequencies: Reals) -> Line:
    """Return the line of a sum, adding the terms one by one, so that the nodes of only one term are
    in memory.
    """
    log, error = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
    for term in terms:
        one = term.line(order, frequencies)
        log += one.log
        error += one.error + 2.0**-53 * np.abs(log)
    return Line(log, error)


def _added(lines: Sequence[Line]) -> Line:
    log = np.sum([line.log for line in lines], axis=0)
    error = np.sum([line.error for line in lines], axis=0)
    spread = np.sum([np.abs(line.log) for line in lines], axis=0)
    return Line(log, error + len(lines) * 2.0**-53 * spread)
