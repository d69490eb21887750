"""The parameter of a family that meets a target: the extreme one where the family is monotone in it.

A target is an epsilon at a delta, or a limit on what an attacker gains (`target.py`). A search knows it as a number
that must not be exceeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial

from dpcompose import check
from dpcompose.composition.composition import Composable, compose
from dpcompose.composition.question import TOLERANCE
from dpcompose.composition.target import Target
from dpcompose.errors import DomainError, UnreachableError
from dpcompose.values import Adjacency, AdjacencyName, Bound, Orientation

CLOSE = 2e-10
STUCK = 12
"""Steps to one side after which a search bisects."""
_LEAST, _MOST = 1e-12, 1e12
_LEAST_COUNT, _MOST_COUNT = 0, 10**15
DIRECTIONS = ("decreasing", "increasing", "unordered")


@dataclass(frozen=True)
class Calibration:
    """A parameter whose certified epsilon, or whatever the target limits, meets the target.

    Args:
        value: The parameter: `family(value)` has `bound.upper` at most the target.
        bound: Its epsilon; with a target for an attacker, the advantage, the true positive rate, or the probability of
            a right guess, 1 - Bayes error.
        neighbor: The same just beyond it (2e-10 away, or the next integer), where the target was not met; None if the
            family ends there.
        extreme: Whether the family is taken to be monotone, so that nothing beyond `value` meets the target either.
    """

    value: float
    bound: Bound
    neighbor: Bound | None
    extreme: bool


Searching = Generator[float, Bound, Calibration]
"""A search that yields values to be measured and is sent their bounds."""


def calibrate(
    family: Callable[[float], Composable],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    bayes_error: float | None = None,
    prior: float | None = None,
    parameter: str = "decreasing",
    integer: bool = False,
    bracket: tuple[float, float] | None = None,
    adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
    orientation: Orientation = Orientation.SAME,
    tolerance: float = TOLERANCE,
) -> Calibration:
    """A parameter p such that the certified upper end of `family(p).epsilon(delta=delta)` is at most `epsilon`.

    Where epsilon is decreasing in p (a noise scale) the smallest such p, where it is increasing (a rate, a count) the
    largest, up to a relative 2e-10 or exactly for integers; where it is neither (a discrete Gaussian's sigma), one that
    meets the target. If nothing is found in the direction that is given, the other one is searched.

    >>> from dpcompose import Gaussian
    >>> round(calibrate(Gaussian, epsilon=1.0, delta=1e-5).value, 9)
    3.730631635

    Instead of an epsilon, what an attacker gains can be limited, in the words of `Risk`:

    >>> round(calibrate(Gaussian, advantage=0.1).value, 6)
    3.978948

    Args:
        family: From the parameter to a mechanism or composition.
        epsilon: The target, in nats; finite, >= 0.
        delta: In [0, 1].
        advantage: The target instead: the largest advantage of an attacker, in (0, 1).
        true_positive_rate: The target instead: the largest one at `false_positive_rate`, in (0, 1).
        false_positive_rate: In [0, 1); below the true positive rate.
        bayes_error: The target instead: the least probability of a wrong guess; > 0, below prior and 1 - prior.
        prior: In (0, 1); by default 0.5.
        parameter: How epsilon depends on the parameter: "decreasing", "increasing" or "unordered" (neither, or not
            known). Of the first two it is where the search begins: the direction that is true is found.
        integer: Whether the parameter is an integer >= 0.
        bracket: Where to search, ends included; by default from 1e-12 to 1e12, or 0 to 10^15. The family need not be
            defined on all of it, but at 1, or at the end of the bracket next to 1.
        adjacency: What one person's data may change.
        orientation: Whether the same world holds the record in every round.
        tolerance: Passed on to `epsilon`.

    Raises:
        DomainError: If an argument is outside its domain.
        UnreachableError: If no parameter of the bracket meets the target, or only one at its end does that releases
            nothing, or all of them do, so that none is the extreme one; carries the epsilon that is reached.
    """
    target = Target.of(
        epsilon=epsilon, delta=delta, advantage=advantage, true_positive_rate=true_positive_rate,
        false_positive_rate=false_positive_rate, bayes_error=bayes_error, prior=prior,
    )  # fmt: skip
    if not callable(family):
        raise DomainError("family", family, "a function of the parameter")

    def measured(value: float) -> Bound:
        member = family(int(value) if integer else value)
        if not isinstance(member, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "family", member, "a function whose values are mechanisms or compositions"
            )
        return target.measured(compose(member), adjacency, orientation, tolerance)

    found = search(
        target.limit, parameter=parameter, integer=integer, bracket=bracket, larger=target.larger
    )
    asked = next(found)
    while True:
        try:
            asked = answer(found, partial(measured, asked))
        except StopIteration as end:
            return end.value


def answer(found: Searching, measured: Callable[[], Bound]) -> float:
    """The next value that a search asks for, told what was measured or that the family has no such member."""
    try:
        bound = measured()
    except DomainError as error:
        return found.throw(error)
    return found.send(bound)


def search(
    limit: float,
    *,
    parameter: str,
    integer: bool,
    bracket: tuple[float, float] | None,
    larger: str = "epsilon or delta",
) -> Searching:
    """Yields the values to be measured, is sent their bounds, and returns the calibration. Arguments as in `calibrate`.

    `larger` says what to ask for where the limit is out of reach.

    Raises:
        DomainError: If an argument is outside its domain.
        UnreachableError: As `calibrate`.
    """
    if not isinstance(parameter, str) or parameter not in DIRECTIONS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("parameter", parameter, "one of 'decreasing', 'increasing', 'unordered'")
    if not isinstance(integer, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("integer", integer, "True or False")
    least, most = _bracket(bracket, integer)
    first = _Search(limit, -1.0 if parameter == "increasing" else 1.0, least, most, integer)
    good, bad = yield from _found(
        first, larger + ("" if bracket is None else ", or widen the bracket")
    )
    return Calibration(
        int(good[0]) if integer else good[0],
        good[1],
        bad[1] if bad else None,
        parameter != "unordered",
    )


def _bracket(bracket: tuple[float, float] | None, integer: bool) -> tuple[float, float]:
    if bracket is None:
        return (_LEAST_COUNT, _MOST_COUNT) if integer else (_LEAST, _MOST)
    if not isinstance(bracket, tuple) or len(bracket) != 2:  # pyright: ignore
        raise DomainError("bracket", bracket, "a pair (least, most)")
    guard = check.count if integer else check.positive
    least, most = guard("bracket[0]", bracket[0]), guard("bracket[1]", bracket[1])
    if not least < most:
        raise DomainError("bracket", bracket, "a pair with least < most")
    return least, most


def _found(search: _Search, remedy: str) -> Generator[float, Bound, tuple[Point, Point | None]]:
    """The result of the search in the direction given, or else in the other one; an error where neither finds any."""
    tried: list[_EndedError] = []
    for each in (search, replace(search, sign=-search.sign)):
        try:
            good, bad = yield from each.run()
        except _EndedError as ended:
            tried.append(ended)
            continue
        useless = good[0] in (0, search.least, search.most) and not (search.integer and good[0] > 0)
        if bad is not None and useless:
            what = f"calibrate: of {search.least:g} to {search.most:g} only the end, {good[0]:g}, meets it"
            raise UnreachableError(what, search.target, bad[1].upper, f"Ask for a larger {remedy}")
        return good, bad
    reached = [point.upper for ended in tried for point in ended.seen]
    if any(ended.met for ended in tried):
        what = f"calibrate: every value from {search.least:g} to {search.most:g} that was tried meets it"
        raise UnreachableError(
            what,
            search.target,
            max(reached),
            f"No value is the extreme one: ask for a smaller {remedy}",
        )
    raise UnreachableError("calibrate", search.target, min(reached), f"Ask for a larger {remedy}")


class _EndedError(Exception):
    """The range ended before the target was both met and missed."""

    def __init__(self, *, met: bool, seen: list[Bound]) -> None:
        self.met, self.seen = met, seen
        super().__init__()


Point = tuple[float, Bound]


@dataclass(frozen=True)
class _Search:
    """Towards the safe side (`sign` 1: larger is safer) until the target is met, then between good and bad."""

    target: float
    sign: float
    least: float
    most: float
    integer: bool

    def run(self) -> Generator[float, Bound, tuple[Point, Point | None]]:
        """The best point that meets the target, and the one next to it that does not; None where there is none."""
        good: Point
        wall: float | None
        bad: Point | None
        good, wall, bad, first = yield from self._bracketed()
        sides: list[bool] = []
        for _ in range(200):
            if wall is None or self._adjacent(good[0], wall):
                break
            # A secant that keeps landing on one side is halted by a bisection: a number may saturate.
            stuck = len(sides) >= STUCK and len(set(sides[-STUCK:])) == 1
            value: float = (
                self._middle(good[0], wall) if bad is None or stuck else self._between(good, bad)
            )
            bound = yield from self._tried(value)
            sides = [] if stuck else [*sides, bound is not None and self._meets(bound)]
            if bound is None:
                wall, bad = value, None
            elif self._meets(bound):
                good = (value, bound)
            else:
                wall, bad = value, (value, bound)
            if bad is not None and not self.integer:
                good, bad = yield from self._pinned(good, bad)
                wall = bad[0]
        if bad is None and good[1].upper < first.upper:
            raise _EndedError(met=True, seen=[first, good[1]])
        return good, bad

    def _meets(self, bound: Bound) -> bool:
        return bound.upper <= self.target

    def _tried(self, value: float) -> Generator[float, Bound, Bound | None]:
        """The bound, or None where the family has no member."""
        try:
            return (yield value)
        except DomainError:
            return None

    def _bracketed(
        self,
    ) -> Generator[float, Bound, tuple[Point, float | None, Point | None, Bound]]:
        """A good point, and one beyond which nothing is good, by ever longer strides (in the logarithm) from a start.

        The second is where the target is missed, with its bound, or where the family has no member. The last is the
        bound at the start.

        Raises:
            _EndedError: If the range ends first.
        """
        start = min(max(1.0, float(self.least)), float(self.most))
        last: Point = (start, (yield start))
        met = self._meets(last[1])
        limit = self.most if (self.sign > 0) != met else self.least
        stride, seen = 2.0, [last[1]]
        while last[0] != limit:
            value = self._stepped(last[0], stride if limit > last[0] else 1 / stride, limit)
            bound = yield from self._tried(value)
            stride = min(stride * stride, 2.0**12)
            if bound is None and not met:
                # The family ends before the target is met: whatever is left lies before its end.
                while bound is None and not self._adjacent(last[0], value):
                    limit, value = value, self._middle(last[0], value)
                    bound = yield from self._tried(value)
                if bound is None:
                    break
            if bound is None:
                return last, value, None, seen[0]
            seen.append(bound)
            if self._meets(bound) != met:
                good, bad = (last, (value, bound)) if met else ((value, bound), last)
                return good, bad[0], bad, seen[0]
            last = (value, bound)
        raise _EndedError(met=met, seen=seen)

    def _stepped(self, value: float, factor: float, limit: float) -> float:
        moved = value * factor if value > 0 else 1.0 if factor > 1 else 0.0
        if self.integer:
            moved = float(round(moved)) if factor > 1 else float(math.floor(moved))
        return min(moved, limit) if factor > 1 else max(moved, limit)

    def _adjacent(self, good: float, bad: float) -> bool:
        return abs(good - bad) <= 1 if self.integer else abs(good - bad) <= CLOSE * max(good, bad)

    def _middle(self, one: float, other: float) -> float:
        return float((int(one) + int(other)) // 2) if self.integer else math.sqrt(one * other)

    def _between(self, good: Point, bad: Point) -> float:
        """A secant step in the logarithms where both epsilons are positive and finite; else the middle."""
        low, high = sorted((good[0], bad[0]))
        ends = good[1].upper, bad[1].upper
        if (
            self.integer
            or not (0 < ends[0] < ends[1] < math.inf and self.target > 0)
            or high > 4 * low
        ):
            return self._middle(low, high)
        share = math.log(self.target / ends[0]) / math.log(ends[1] / ends[0])
        value = good[0] * (bad[0] / good[0]) ** share
        return value if low < value < high else self._middle(low, high)

    def _pinned(self, good: Point, bad: Point) -> Generator[float, Bound, tuple[Point, Point]]:
        """Once the secant lands next to the good end, probe a hair on the other side of it."""
        ends = good[1].upper, bad[1].upper
        if self._adjacent(good[0], bad[0]) or not (
            0 < ends[0] < ends[1] < math.inf and self.target > 0
        ):
            return good, bad
        miss = abs(math.log(self.target / ends[0]))
        slope = math.log(ends[1] / ends[0]) / math.log(bad[0] / good[0])
        value = good[0] * (1 - self.sign * max(0.9 * CLOSE, 2 * abs(miss / slope)))
        low, high = sorted((good[0], bad[0]))
        if not (miss < 1e-8 and low < value < high):
            return good, bad
        bound = yield from self._tried(value)
        if bound is None:
            return good, bad
        return ((value, bound), bad) if self._meets(bound) else (good, (value, bound))
