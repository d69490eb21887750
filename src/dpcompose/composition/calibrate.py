"""The parameter of a family that meets a target: the extreme one where the family is monotone in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpcompose.composition.container import TOLERANCE, Composable, compose
from dpcompose.errors import DomainError, UnreachableError
from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.numerics import check
from dpcompose.numerics.bound import Bound

CLOSE = 2e-10
_LEAST, _MOST = 1e-12, 1e12
_LEAST_COUNT, _MOST_COUNT = 0, 10**15
DIRECTIONS = ("decreasing", "increasing", "unordered")


@dataclass(frozen=True)
class Calibration:
    """A parameter whose certified epsilon meets the target.

    Args:
        value: The parameter: `family(value)` has `bound.upper` at most the target.
        bound: Its epsilon.
        neighbor: Epsilon just beyond it (2e-10 away, or the next integer), where the target was not met; None if the
            range ends there.
        extreme: Whether the family was declared monotone, so that nothing beyond `value` meets the target either.
    """

    value: float
    bound: Bound
    neighbor: Bound | None
    extreme: bool


def calibrate(
    family: Callable[[float], Composable], *, epsilon: float, delta: float, parameter: str = "decreasing", integer: bool = False,
    bracket: tuple[float, float] | None = None, adjacency: Adjacency = Adjacency.ADD_REMOVE,
    orientation: Orientation = Orientation.SAME, tolerance: float = TOLERANCE,
) -> Calibration:  # fmt: skip
    """A parameter p such that the certified upper end of `family(p).epsilon(delta=delta)` is at most `epsilon`.

    Where epsilon is decreasing in p (a noise scale) the smallest such p, where it is increasing (a rate, a count) the
    largest, up to a relative 2e-10 or exactly for integers; where it is neither (a discrete Gaussian's sigma), one that
    meets the target.

    >>> from dpcompose import Gaussian
    >>> round(calibrate(Gaussian, epsilon=1.0, delta=1e-5).value, 9)
    3.730631635

    Args:
        family: From the parameter to a mechanism or composition.
        epsilon: The target, in nats; finite, >= 0.
        delta: In [0, 1].
        parameter: How epsilon depends on the parameter: "decreasing", "increasing" or "unordered" (neither, or not
            known).
        integer: Whether the parameter is an integer >= 0.
        bracket: Where to search, ends included; by default from 1e-12 to 1e12, or 0 to 10^15.
        adjacency: What one person's data may change.
        orientation: Whether the same world holds the record in every round.
        tolerance: Passed on to `epsilon`.

    Raises:
        DomainError: If an argument is outside its domain.
        UnreachableError: If no parameter of the bracket meets the target; carries the best epsilon found.
    """
    epsilon, delta = check.nonnegative("epsilon", epsilon), check.probability("delta", delta)
    if not callable(family):
        raise DomainError("family", family, "a function of the parameter")
    if parameter not in DIRECTIONS:
        raise DomainError("parameter", parameter, "one of 'decreasing', 'increasing', 'unordered'")
    least, most = _bracket(bracket, integer)

    def measured(value: float) -> Bound:
        found = compose(family(int(value) if integer else value))
        return found.epsilon(delta=delta, adjacency=adjacency, orientation=orientation, tolerance=tolerance)

    search = _Search(measured, epsilon, -1.0 if parameter == "increasing" else 1.0, least, most, integer)
    good, bad = search.run()
    return Calibration(int(good[0]) if integer else good[0], good[1], bad[1] if bad else None, parameter != "unordered")


def _bracket(bracket: tuple[float, float] | None, integer: bool) -> tuple[float, float]:
    if bracket is None:
        return (_LEAST_COUNT, _MOST_COUNT) if integer else (_LEAST, _MOST)
    if not isinstance(bracket, tuple | list) or len(bracket) != 2:
        raise DomainError("bracket", bracket, "a pair (least, most)")
    guard = check.count if integer else check.positive
    least, most = guard("bracket[0]", bracket[0]), guard("bracket[1]", bracket[1])
    if not least < most:
        raise DomainError("bracket", bracket, "a pair with least < most")
    return least, most


Point = tuple[float, Bound]


@dataclass(frozen=True)
class _Search:
    """Towards the safe side (`sign` 1: larger is safer) until the target is met, then between a good and a bad point."""

    measured: Callable[[float], Bound]
    target: float
    sign: float
    least: float
    most: float
    integer: bool

    def run(self) -> tuple[Point, Point | None]:
        """The best point that meets the target, and the worst that does not, next to it."""
        good, bad = self._bracketed()
        if bad is None:
            return good, None
        for _ in range(200):
            if self._adjacent(good[0], bad[0]):
                break
            value = self._between(good, bad)
            bound = self.measured(value)
            if bound.upper <= self.target:
                good = (value, bound)
            else:
                bad = (value, bound)
            pinned = None if self.integer else self._pin(good, bad)
            if pinned is not None:
                good, bad = pinned
        return good, bad

    def _bracketed(self) -> tuple[Point, Point | None]:
        """A good and a bad point by doubling the distance (in the logarithm) from a start."""
        value = float(min(max(1, int(self.least)), int(self.most))) if self.integer else 1.0
        value = min(max(value, self.least), self.most)
        here = value, self.measured(value)
        outward = -self.sign if here[1].upper <= self.target else self.sign
        limit, stride = self.least if outward < 0 else self.most, 2.0
        while here[0] != limit and stride > 1.001:
            value = self._stepped(here[0], stride**outward, limit)
            bound = self._tried(value) if value != here[0] else None
            if bound is None:
                stride = 1.0 if self.integer and abs(value - here[0]) <= 1 else math.sqrt(stride)
                continue
            there = value, bound
            if (there[1].upper <= self.target) != (here[1].upper <= self.target):
                return (there, here) if there[1].upper <= self.target else (here, there)
            here, stride = there, min(stride * stride, 2.0**12)
        if here[1].upper <= self.target:
            return here, None
        remedy = "Widen the bracket, or ask for a larger epsilon or delta"
        raise UnreachableError("calibrate", self.target, here[1].upper, remedy)

    def _tried(self, value: float) -> Bound | None:
        """The bound, or None where the family has no member."""
        try:
            return self.measured(value)
        except DomainError:
            return None

    def _stepped(self, value: float, factor: float, limit: float) -> float:
        moved = value * factor if value > 0 else 1.0 if factor > 1 else 0.0
        if self.integer:
            moved = float(round(moved)) if factor > 1 else float(math.floor(moved))
        return min(moved, limit) if factor > 1 else max(moved, limit)

    def _adjacent(self, good: float, bad: float) -> bool:
        return abs(good - bad) <= 1 if self.integer else abs(good - bad) <= CLOSE * max(good, bad)

    def _between(self, good: Point, bad: Point) -> float:
        """A secant step in the logarithms where both epsilons are positive and finite, kept well inside; else the middle."""
        low, high = sorted((good[0], bad[0]))
        if self.integer:
            return float((int(low) + int(high)) // 2)
        middle = math.sqrt(low * high)
        ends = good[1].upper, bad[1].upper
        if not (0 < ends[0] < ends[1] < math.inf and self.target > 0) or high > 4 * low:
            return middle
        share = math.log(self.target / ends[0]) / math.log(ends[1] / ends[0])
        value = good[0] * (bad[0] / good[0]) ** share
        return value if low < value < high else middle

    def _pin(self, good: Point, bad: Point) -> tuple[Point, Point] | None:
        """Once the secant lands next to one end, probe a hair on the other side of it."""
        near = good if abs(math.log(self.target / good[1].upper)) < 1e-8 else None if good[1].upper > 0 else None
        if near is None or self._adjacent(good[0], bad[0]):
            return None
        slope = (
            math.log(bad[1].upper / good[1].upper) / math.log(bad[0] / good[0]) if 0 < bad[1].upper < math.inf else -1.0
        )
        reach = max(0.9 * CLOSE, 2 * abs(math.log(self.target / good[1].upper) / slope)) if slope else CLOSE
        value = good[0] * (1 - self.sign * reach)
        low, high = sorted((good[0], bad[0]))
        if not low < value < high:
            return None
        bound = self.measured(value)
        return (good, (value, bound)) if bound.upper > self.target else ((value, bound), bad)
