"""A sum of independent real random variables, seen through its moment generating function.

The engine in `contour` asks nothing more of a variable L than this: M(t) = E[e^(tL)] on vertical lines, with an error.
What a variable knows beyond that (a decay of |M| along the line, a lattice that carries it) makes the answer narrower.
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
    """A dataclass of arrays, or of others of its kind: rows are chosen in all of them at once."""

    def __getitem__(self, rows: Any) -> Self:
        own: Any = self
        return cast("Any", type(self))(*[vars(self)[each.name][rows] for each in fields(own)])


@dataclass(frozen=True)
class Line(ArrayRows):
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


def joined(first: Line, last: Line) -> Line:
    """Two lines, one after the other."""
    log, error = (
        np.concatenate([first.log, last.log], axis=-1),
        np.concatenate([first.error, last.error], axis=-1),
    )
    return Line(log, error)


@dataclass(frozen=True)
class Lattice:
    """The variable lives on offset + spacing * integers."""

    spacing: float
    offset: float


@dataclass(frozen=True)
class Cumulants(ArrayRows):
    """K = log M and its first two derivatives at many real orders, each of shape (n,); planning quality."""

    log_m: Reals
    first: Reals
    second: Reals


def remembered(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """A method that an object evaluates once for each list of arguments: arrays are compared by
    their bytes.
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
    """A random variable L, seen through its moment generating function M(t) = E[e^(tL)].

    M(order) is finite for 0 < order < some abscissa. A family declares three members; every other one has a sound
    default, and a better answer makes the enclosure narrower or cheaper.
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
        """The lattice that carries the variable, if one is known."""
        return None

    @property
    def summands(self) -> tuple[Transform, ...]:
        """The independent variables whose sum this is: itself alone, if it does not tell."""
        return (self,)

    @property
    def reverse(self) -> Transform | None:
        """The same sum for the pairs in the other order, if it can share its nodes with this one; or None."""
        return None

    @property
    def scale(self) -> float:
        """About K(1): where to look first for an order."""
        return self.cumulants(1.0)[0]

    @property
    def copies(self) -> float:
        """How many independent summands there are; inf if that is not known."""
        return math.inf

    @property
    def blow_up(self) -> float:
        """An order near which K begins to grow beyond all bounds; inf if none is known."""
        return math.inf

    @abstractmethod
    def cumulants(self, order: float) -> tuple[float, float, float]:
        """K = log M and its first two derivatives at a real order: good to 1e-6, used for planning only."""

    def curve(self, orders: Reals) -> Cumulants:
        """`cumulants` at many real orders; infinite or NaN where K is too large for that."""
        return Cumulants(*np.array([self.cumulants(float(order)) for order in orders]).T)

    def moment_bound(self, order: float) -> float:
        """An upper bound on log M at a real order, to a few units: it bounds what is far away."""
        line = self.line(order, np.zeros(1))
        return float(line.log[0].real + line.error[0])

    @abstractmethod
    def line(self, order: float, frequencies: Reals) -> Line:
        """log M along the vertical line through `order`."""

    def line_with_reverse(self, order: float, frequencies: Reals) -> Line:
        """`line`, where the reverse will be asked for the same one."""
        return self.line(order, frequencies)

    @abstractmethod
    def log_envelope(self, order: float, edges: Reals) -> Reals:
        """For each edge, a bound on log |M(order + iu) / M(order)| for u up to the next; the last holds ever after."""

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        """`log_envelope`, as low as the variable can prove it at a higher cost."""
        return self.log_envelope(order, edges)

    def near_normal_envelope(
        self, order: float, edges: Reals, *, with_reverse: bool
    ) -> Reals | None:
        """`log_envelope` where it costs little because the sum is nearly normal; None if that is not known.

        `with_reverse`: the reverse will be asked for the same.
        """
        return None

    def coarse_line(
        self, order: float, nodes: Reals, edges: Reals, *, with_reverse: bool
    ) -> tuple[Line | None, Reals]:
        """The line to a thousandth, None where that costs much, and `log_envelope`; the first node is 0.

        `with_reverse`: the reverse will be asked for the same.
        """
        return None, self.log_envelope(order, edges)

    def log_bounds(self, order: float) -> Iterable[Callable[[Reals], Reals]]:
        """Cheap functions of frequencies u, each a bound on a factor of log |M(order + iu) / M(order)|, to be added."""
        return ()

    def limsup(self, order: float) -> float:
        """A lower bound on the limit superior of |M(order + iu)| / M(order) as u grows, as atoms cause it; or 0."""
        return 0.0


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


class TabulatedTransform(Transform):
    """A variable whose `curve` at many orders costs hardly more than at one: `cumulants` is its
    value at one.
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
        rows = [term.curve(orders) for term in self.terms]
        parts = np.sum([(row.log_m, row.first, row.second) for row in rows], axis=0)
        return Cumulants(parts[0], parts[1], parts[2])

    def moment_bound(self, order: float) -> float:
        bounds = [term.moment_bound(order) for term in self.terms]
        return math.fsum(bounds) + 4 * 2.0**-53 * math.fsum(map(abs, bounds))

    def line(self, order: float, frequencies: Reals) -> Line:
        if not self.terms:  # what loses nothing: M is 1
            return Line(
                np.zeros(np.shape(frequencies), dtype=np.complex128),
                np.zeros(np.shape(frequencies)),
            )
        return _added([term.line(order, frequencies) for term in self.terms])

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return np.sum([term.log_envelope(order, edges) for term in self.terms], axis=0)

    def coarse_line(
        self, order: float, nodes: Reals, edges: Reals, *, with_reverse: bool
    ) -> tuple[Line | None, Reals]:
        found = [
            term.coarse_line(order, nodes, edges, with_reverse=with_reverse) for term in self.terms
        ]
        bounds = np.sum([bound for _, bound in found], axis=0)
        lines = [line for line, _ in found if line is not None]
        return (_added(lines) if len(lines) == len(found) else None), bounds

    def limsup(self, order: float) -> float:
        return math.prod(term.limsup(order) for term in self.terms)


def summed_line(terms: Iterable[Transform], order: float, frequencies: Reals) -> Line:
    """The line of a sum, one term after the other: of many nodes no more than one term's are held at once."""
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
