"""Calibration: find the parameter of a family of mechanisms at which a privacy target is met.

A target is an epsilon at a delta, or a limit on an attacker's success (`Target`). Several families
can be searched in one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcompose import check
from dpcompose.composition.batch import (
    Progress,
    Refusing,
    epsilon as many_epsilons,
    located,
    refuse_batch_options,
)
from dpcompose.composition.composition import Composable, Composition, compose
from dpcompose.composition.profile import risk
from dpcompose.composition.question import Asking, Options, asks
from dpcompose.errors import DomainError, DPComposeError, UnreachableError
from dpcompose.pictured import Card
from dpcompose.values import Bound, down, up

# The target of a calibration: an epsilon at a delta, or a limit on an attacker's success.


_TARGETS = {
    "epsilon": check.nonnegative,
    "delta": check.probability,
    "advantage": check.open_probability,
    "true_positive_rate": check.open_probability,
    "false_positive_rate": check.probability,
    "bayes_error": check.open_probability,
    "prior": check.open_probability,
}
ATTACKS = tuple(_TARGETS)[2:]
"""The arguments of `calibrate` that limit an attacker's success."""


@dataclass(frozen=True)
class Target:
    """A quantity to be kept at or below a limit: epsilon at a delta, or a measure of an attacker's
    success.

    Args:
        limit: The largest accepted value of the quantity.
        measured: Returns the certified bound on the quantity for a composition, under the options
            of its question.
        quantity: The name of the quantity in texts.
    """

    limit: float
    measured: Callable[[Composition, Options], Bound]
    quantity: str = "epsilon"

    @classmethod
    def of(cls, arguments: Mapping[str, float | None]) -> Target:
        """Return the one target that the keyword arguments of `calibrate` state.

        Args:
            arguments: The arguments epsilon, delta, advantage, true_positive_rate,
                false_positive_rate, bayes_error and prior, by name; None where absent.

        Raises:
            DomainError: If they state no target or more than one, or a number is outside its
                domain.
        """
        given = {
            name: _TARGETS[name](name, value)
            for name, value in arguments.items()
            if value is not None
        }
        match given:
            case {"epsilon": limit, "delta": mass, **rest} if not rest:
                return cls(limit, partial(_epsilon, delta=mass))
            case {"advantage": limit, **rest} if not rest:
                return cls(limit, _advantage, "advantage")
            case {"true_positive_rate": limit, "false_positive_rate": rate, **rest} if not rest:
                return _power(limit, rate)
            case {"bayes_error": limit, **rest} if not rest.keys() - {"prior"}:
                return _bayes(limit, rest.get("prior", 0.5))
            case _:
                one = "epsilon and delta, or advantage, or true_positive_rate and false_positive_rate, or bayes_error"
                name = "delta" if "epsilon" in given else "epsilon"
                raise DomainError(
                    name,
                    arguments[name],
                    f"one target: {one} (and prior)",
                    f"Given: {', '.join(given) or 'none'}",
                )


def _epsilon(member: Composition, options: Options, *, delta: float) -> Bound:
    return member.epsilon(delta=delta, **options)


def _advantage(member: Composition, options: Options) -> Bound:
    """Return the advantage of an attacker, delta(0)."""
    return member.delta(epsilon=0.0, **options)


def _power(limit: float, rate: float) -> Target:
    """Return the target that the true positive rate at false positive rate `rate` is at most
    `limit`.
    """
    if not limit > rate:
        reached = "who looks at nothing has as many true positives as false ones"
        raise DomainError(
            "true_positive_rate", limit, f"more than the false positive rate, {rate!r}: {reached}"
        )

    def measured(member: Composition, options: Options) -> Bound:
        curve = member.profile(**options).power(rate)
        return Bound(float(curve.lower), float(curve.upper))

    return Target(limit, measured, "true positive rate")


def _bayes(least: float, prior: float) -> Target:
    """Return the target that the Bayes error at `prior` is at least `least`, as an upper limit on
    its complement.
    """
    if not least < min(prior, 1 - prior):
        most = "less than the smaller of prior and 1 - prior, the error of who looks at nothing"
        raise DomainError("bayes_error", least, most)

    def measured(member: Composition, options: Options) -> Bound:
        error = risk(member.profile(**options), prior=prior, false_positive_rate=1.0).bayes_error
        return Bound(max(down(1 - error.upper), 0.0), min(up(1 - error.lower), 1.0))

    return Target(down(1 - least), measured, "chance of a right guess")


_LARGER = {
    "epsilon": "epsilon or delta",
    "chance of a right guess": "chance of a right guess (a smaller Bayes error)",
}
"""What a user may ask more of, where it is not the quantity itself."""
CLOSE = 2e-10
AIMED = 0.4 * CLOSE
"""How far beside the expected solution a step is aimed, relatively."""
PINNED = 1e-8
"""An end whose epsilon is so close to the target, relatively, is next to it."""
FORESEEN = 5
"""So many steps outward are led by the points before them."""
STUCK = 4
"""After so many steps that have not halved the bracket, the search bisects."""
_LEAST, _MOST = 1e-12, 1e12
_LEAST_COUNT, _MOST_COUNT = 0, 10**15
DIRECTIONS = ("decreasing", "increasing", "unordered")


@dataclass(frozen=True)
class Calibration(Card):
    """A parameter at which a family of mechanisms meets a target.

    Args:
        value: The parameter: the bound of `family(value)` has its upper end at or below the target.
        bound: The certified epsilon at `value`, in nats; for a target on an attacker the advantage,
            the true positive rate, or the probability of a right guess, 1 - Bayes error.
        neighbor: The same quantity at the adjacent parameter (2e-10 away, or the next integer),
            which misses the target; None if the family ends at `value`.
        extreme: Whether the family is treated as monotone, so that no parameter beyond `value`
            meets the target.
        quantity: The name of what `bound` bounds.
    """

    value: float
    bound: Bound
    neighbor: Bound | None
    extreme: bool
    quantity: str = "epsilon"


@dataclass(frozen=True, eq=False)
class Calibrations(Card):
    """Parameters at which several families meet their targets; `calibrations[i]` is a
    `Calibration`.

    Args:
        value: The parameters, shape (n,); NaN where no parameter was found.
        calibrations: The calibrations, by index of the family.
        refusals: The errors of families without a calibration, by index.
    """

    value: NDArray[np.float64]
    calibrations: Mapping[int, Calibration] = field(repr=False)
    refusals: Mapping[int, DPComposeError]

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: int) -> Calibration:
        """Return the calibration of family number `index`; raises the error of a family that has
        none.
        """
        at = range(len(self))[index]
        if at in self.refusals:
            raise self.refusals[at]
        return self.calibrations[at]


Searching = Generator[float, Bound, Calibration]
"""A generator that yields trial parameters, is sent their bounds, and returns a `Calibration`."""
Family = Callable[[float], Composable]
"""Maps a parameter to a mechanism or composition."""


@overload
def calibrate(
    family: Family,
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
    **options: Unpack[Options],
) -> Calibration: ...
@overload
def calibrate(
    family: Iterable[Family],
    *,
    epsilon: ArrayLike,
    delta: ArrayLike,
    parameter: str = "decreasing",
    integer: bool = False,
    bracket: tuple[float, float] | None = None,
    masked: bool = False,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Calibrations: ...
@asks()
def calibrate(
    family: Family | Iterable[Family],
    *,
    epsilon: Any = None,
    delta: Any = None,
    advantage: float | None = None,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    bayes_error: float | None = None,
    prior: float | None = None,
    parameter: str = "decreasing",
    integer: bool = False,
    bracket: tuple[float, float] | None = None,
    masked: bool = False,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Calibration | Calibrations:
    """Return a parameter p at which the upper end of `family(p).epsilon(delta=delta)` is at most
    `epsilon`.

    If epsilon decreases in p (a noise scale) it is the smallest such p, if epsilon increases in p
    (a rate, a count) the largest, up to a relative 2e-10 or exactly for integers. If epsilon is not
    monotone in p (the sigma of a discrete Gaussian) it is some p that meets the target.

    >>> from dpcompose import Gaussian
    >>> round(calibrate(Gaussian, epsilon=1.0, delta=1e-5).value, 9)
    3.730631635

    A target may instead limit the success of an attacker, in the terms of `Risk`:

    >>> round(calibrate(Gaussian, advantage=0.1).value, 6)
    3.978948

    Several families are calibrated in one call:

    >>> calibrate([Gaussian] * 2, epsilon=[1.0, 2.0], delta=1e-5).value.round(9).tolist()
    [3.730631635, 1.993812446]

    Args:
        family: A function from the parameter to a mechanism or composition; or a sequence of such
            functions, one for each of several questions, which are searched together and much
            faster.
        epsilon: The target, in nats; finite, >= 0. Of many: one for all, or one for each, shape
            (n,).
        delta: In [0, 1]. Of many: likewise.
        advantage: The target instead: the largest advantage of an attacker, in (0, 1).
        true_positive_rate: The target instead: the largest one at `false_positive_rate`, in (0, 1).
        false_positive_rate: In [0, 1); below the true positive rate.
        bayes_error: The target instead: the least probability of a wrong guess; > 0, below prior
            and 1 - prior.
        prior: In (0, 1); by default 0.5.
        parameter: How epsilon responds when the parameter grows: "decreasing", "increasing" or
            "unordered" (neither, or not known). If the first two fail, the opposite direction is
            searched too.
        integer: Whether the parameter is an integer >= 0.
        bracket: The interval of parameters to search, ends included; by default [1e-12, 1e12], or
            [0, 10^15] for integers. The family must be defined at 1, or at the end of the bracket
            closest to 1, but not on all of the bracket.
        masked: For a sequence: whether a family without a calibration is entered in `refusals`. If
            False, the first such error is raised, with its index.
        progress: For a sequence: called as `progress(done, total)` with numbers of families.
        options: Adjacency, orientation and tolerance of the epsilon, as in `Options`.

    Raises:
        DomainError: If an argument is outside its domain, or an array differs in length from the
            families.
        UnreachableError: If no parameter in the bracket meets the target; or only its end, where
            nothing is released, does; or all do, so that none is extreme. Carries the epsilon
            reached.
    """
    Asking.read(options, unproved="a calibration")
    limits = (advantage, true_positive_rate, false_positive_rate, bayes_error, prior)
    attack = dict(zip(ATTACKS, limits, strict=True))
    searching = partial(search, parameter=parameter, integer=integer, bracket=bracket)
    several = not callable(family) and not isinstance(family, str | bytes)
    if several and isinstance(family, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        for name, value in attack.items():
            if value is not None:
                accepted = "epsilon and delta for several families"
                raise DomainError(name, value, accepted, "Calibrate the families one by one")
        families = _Families(masked, progress, [*family], integer, options)
        return families.calibrated(searching, epsilon, delta)
    refuse_batch_options(masked, progress)
    target = Target.of({"epsilon": epsilon, "delta": delta, **attack})
    if not callable(family):
        raise DomainError("family", family, "a function of the parameter")

    def measured(value: float) -> Bound:
        member = _member(family, int(value) if integer else value)
        return target.measured(compose(member), options)

    return _calibrated(searching(target.limit, quantity=target.quantity), measured)


def _calibrated(searching: Searching, measured: Callable[[float], Bound]) -> Calibration:
    """Run a search to its end; `measured` returns the bound at a trial parameter, or raises a
    DomainError where there is none.
    """
    value = next(searching)
    while True:
        bound: Bound | DomainError
        try:
            bound = measured(value)
        except DomainError as error:
            bound = error
        try:
            value = _sent(searching, bound)
        except StopIteration as end:
            return end.value


@dataclass
class _Families(Refusing):
    """The searches of one call about several families: each step evaluates the trial parameters of
    all of them in one batch.

    Args:
        families: The functions from a parameter to a mechanism or composition.
        integer: Whether the parameters are integers.
        options: The options of `epsilon`.
        calibrations: The results, by index.
    """

    families: list[Family]
    integer: bool
    options: Options
    calibrations: dict[int, Calibration] = field(default_factory=dict[int, Calibration])

    def calibrated(
        self, searching: Callable[[float], Searching], epsilon: ArrayLike, delta: ArrayLike
    ) -> Calibrations:
        """Return the calibration of each family.

        Args:
            searching: Returns the search for one epsilon.
            epsilon: The targets in nats: one for all, or shape (n,).
            delta: The deltas: one for all, or shape (n,).
        """
        count = len(self.families)
        targets = self.numbers("epsilon", epsilon, count, check.nonnegative)
        deltas = self.numbers("delta", delta, count, check.probability)
        active: dict[int, tuple[Searching, float]] = {}
        for index, family in enumerate(self.families):
            if not callable(family):
                error = DomainError(f"family[{index}]", family, "a function of the parameter")
                self.refuse(index, error)
            elif index not in self.refusals:
                begun = searching(targets[index])
                active[index] = begun, next(begun)
        while active:
            self._stepped(active, deltas)
            self.tell(len(self.calibrations), count)
        values = [
            self.calibrations[index].value if index in self.calibrations else math.nan
            for index in range(count)
        ]
        return Calibrations(np.array(values, dtype=np.float64), self.calibrations, self.refusals)

    def _stepped(self, active: dict[int, tuple[Searching, float]], deltas: list[float]) -> None:
        """Evaluate the trial parameter of every active search and send it its bound.

        Args:
            active: The unfinished searches with their trial parameters, by index; finished ones are
                removed.
            deltas: The deltas of all families.
        """
        answers: dict[int, Bound | DPComposeError] = {}
        members: dict[int, Composable] = {}
        for index, (_, value) in active.items():
            try:
                members[index] = _member(
                    self.families[index], int(value) if self.integer else value
                )
            except DPComposeError as error:
                answers[index] = error
        bounds = many_epsilons(
            members.values(),
            delta=[deltas[index] for index in members],
            masked=True,
            **self.options,
        )
        for at, index in enumerate(members):
            answers[index] = bounds.refusals[at] if at in bounds.refusals else bounds[at]
        for index, bound in answers.items():
            begun = active.pop(index)[0]
            try:
                active[index] = begun, _sent(begun, bound)
            except StopIteration as end:
                self.calibrations[index] = end.value
            except DPComposeError as error:
                self.refuse(index, located(error, f"families[{index}]"))


def _member(family: Family, value: float) -> Composable:
    """Return `family(value)`; raises a DomainError if the family has no such member."""
    accepted = "a function whose values are mechanisms or compositions"
    return check.kind("family", family(value), Composable, accepted)


def _sent(searching: Searching, bound: Bound | DPComposeError) -> float:
    """Send a search the bound at its trial parameter, or the error; return the next parameter."""
    return searching.send(bound) if isinstance(bound, Bound) else searching.throw(bound)


def search(
    limit: float,
    *,
    parameter: str,
    integer: bool,
    bracket: tuple[float, float] | None,
    quantity: str = "epsilon",
) -> Searching:
    """Generate a calibration: yields trial parameters, is sent their bounds, and returns the
    `Calibration`.

    Args:
        limit: The largest accepted upper end of a bound.
        parameter: As in `calibrate`.
        integer: As in `calibrate`.
        bracket: As in `calibrate`.
        quantity: The name of what is bounded.

    Raises:
        DomainError: If an argument is outside its domain.
        UnreachableError: If no parameter of the bracket meets the limit, or all do.
    """
    if not isinstance(parameter, str) or parameter not in DIRECTIONS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("parameter", parameter, "one of 'decreasing', 'increasing', 'unordered'")
    check.flag("integer", integer)
    least, most = _bracket(bracket, integer)
    first = _Search(limit, -1.0 if parameter == "increasing" else 1.0, least, most, integer)
    larger = _LARGER.get(quantity, quantity)
    good, bad = yield from _solve(
        first, larger + ("" if bracket is None else ", or widen the bracket")
    )
    return Calibration(
        int(good[0]) if integer else good[0],
        good[1],
        bad[1] if bad else None,
        parameter != "unordered",
        quantity,
    )


def _bracket(bracket: tuple[float, float] | None, integer: bool) -> tuple[float, float]:
    """Return the checked ends of the bracket, or the default ones for `None`."""
    if bracket is None:
        return (_LEAST_COUNT, _MOST_COUNT) if integer else (_LEAST, _MOST)
    if not isinstance(bracket, tuple) or len(bracket) != 2:  # pyright: ignore
        raise DomainError("bracket", bracket, "a pair (least, most)")
    guard = check.count if integer else check.positive
    least, most = guard("bracket[0]", bracket[0]), guard("bracket[1]", bracket[1])
    if not least < most:
        raise DomainError("bracket", bracket, "a pair with least < most")
    return least, most


def _solve(search: _Search, remedy: str) -> Generator[float, Bound, tuple[Point, Point | None]]:
    """Return the best point and its neighbor from the search in its direction, or in the opposite
    one if that fails.

    Args:
        search: The search in the stated direction.
        remedy: What the error recommends.

    Raises:
        UnreachableError: If neither direction finds a parameter.
    """
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
    """Raised when a search reaches the end of its bracket with the target met, or missed, at every
    trial parameter.

    Args:
        met: Whether the target was met.
        seen: The bounds at the trial parameters.
    """

    def __init__(self, *, met: bool, seen: list[Bound]) -> None:
        self.met, self.seen = met, seen
        super().__init__()


Point = tuple[float, Bound]


@dataclass(frozen=True)
class _Search:
    """Searches for the extreme parameter that meets a target: moves to the safe side until it is
    met, then bisects.

    Args:
        target: The largest accepted upper end of a bound.
        sign: 1 if larger parameters are safer, -1 if smaller ones are.
        least: The lower end of the bracket.
        most: The upper end of the bracket.
        integer: Whether the parameters are integers.
    """

    target: float
    sign: float
    least: float
    most: float
    integer: bool

    def run(self) -> Generator[float, Bound, tuple[Point, Point | None]]:
        """Return the extreme point that meets the target and the adjacent one that does not, None
        where there is none.
        """
        bad: Point | None
        good, wall, bad, first = yield from self._bracketed()
        points, widths = [good, *([bad] if bad else [])], list[float]()
        for _ in range(200):
            if self._adjacent(good[0], wall):
                break
            # Where epsilon is constant, or jumps, other steps hardly move the ends: then one
            # bisection follows.
            width = abs(good[0] - wall)
            stuck = len(widths) >= STUCK and width > widths[-STUCK] / 2
            widths.append(width)
            value = None if bad is None or stuck else self._between(good, bad, points)
            value = self._middle(good[0], wall) if value is None else value
            bound = yield from self._tried(value)
            meets = bound is not None and self._meets(bound)
            points += [] if bound is None else [(value, bound)]
            if bound is not None and meets:
                good = (value, bound)
            else:
                wall, bad = value, None if bound is None else (value, bound)
        if bad is None and good[1].upper < first.upper:
            raise _EndedError(met=True, seen=[first, good[1]])
        return good, bad

    def _meets(self, bound: Bound) -> bool:
        return bound.upper <= self.target

    def _tried(self, value: float) -> Generator[float, Bound, Bound | None]:
        """Yield `value` and return its bound, or None where the family has no member."""
        try:
            return (yield value)
        except DomainError:
            return None

    def _bracketed(
        self,
    ) -> Generator[float, Bound, tuple[Point, float, Point | None, Bound]]:
        """Return a point that meets the target, a parameter beyond which none does, the point
        there, and the bound at the start.

        From a start the steps grow in the logarithm, and the first few lead no farther than to
        where the solution is expected. The third is None where the family has no member at the
        second.

        Raises:
            _EndedError: If the bracket ends before the target is both met and missed.
        """
        start = min(max(1.0, float(self.least)), float(self.most))
        last: Point = (start, (yield start))
        met = self._meets(last[1])
        limit = self.most if (self.sign > 0) != met else self.least
        stride, expected, seen = 2.0, math.inf, [last[1]]
        while last[0] != limit:
            step = min(stride, expected) if len(seen) <= FORESEEN else stride
            value = self._stepped(last[0], step if limit > last[0] else 1 / step, limit)
            bound = yield from self._tried(value)
            stride = min(stride * stride, 2.0**12)
            if bound is None and not met:
                # The family ends before the target is met, so any solution lies before its end.
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
            expected = self._expected(last, (value, bound))
            last = (value, bound)
        raise _EndedError(met=met, seen=seen)

    def _expected(self, before: Point, last: Point) -> float:
        """Return the factor of a step from `last` to a little beyond where the line through both
        points, in logarithms, meets the target; inf if it does not.
        """
        ends = before[1].upper, last[1].upper
        if self.integer or not 0 < min(ends) < max(ends) < math.inf or not self.target > 0:
            return math.inf
        ratio = math.log(self.target / ends[1]) / math.log(ends[1] / ends[0])
        exponent = 1.15 * ratio * abs(math.log(last[0] / before[0]))
        return math.exp(min(exponent, 700.0)) if exponent > 0 else math.inf

    def _stepped(self, value: float, factor: float, limit: float) -> float:
        moved = value * factor if value > 0 else 1.0 if factor > 1 else 0.0
        if self.integer:
            moved = float(round(moved)) if factor > 1 else float(math.floor(moved))
        return min(moved, limit) if factor > 1 else max(moved, limit)

    def _adjacent(self, good: float, bad: float) -> bool:
        return abs(good - bad) <= 1 if self.integer else abs(good - bad) <= CLOSE * max(good, bad)

    def _middle(self, one: float, other: float) -> float:
        return float((int(one) + int(other)) // 2) if self.integer else math.sqrt(one * other)

    def _between(self, good: Point, bad: Point, points: list[Point]) -> float | None:
        """Return where the curve through the last three points, in logarithms, meets the target, a
        little to the safe side; None for the middle, where an epsilon is 0 or infinite, or the ends
        are far apart.

        Once an end is next to the target, the step leads from there to just beyond the solution.
        """
        low, high = sorted((good[0], bad[0]))
        if self.integer or not self._rises(good, bad) or high > 4 * low:
            return None
        short, over = (math.log(self.target / end[1].upper) for end in (good, bad))
        if min(short, -over) < PINNED:
            slope = (over - short) / math.log(bad[0] / good[0])
            end, inward, miss = (
                (good, -self.sign, short) if short < -over else (bad, self.sign, over)
            )
            value = end[0] * (1 + inward * max(0.9 * CLOSE, 1.02 * abs(miss / slope) + AIMED))
            return value if low < value < high else None
        for known in (points[-3:], (good, bad)):
            places = [
                math.log(self.target / bound.upper)
                for _, bound in known
                if 0 < bound.upper < math.inf
            ]
            if len(set(places)) == len(known):
                weights = [
                    math.prod(other / (other - place) for other in places if other != place)
                    for place in places
                ]
                logs = (
                    weight * math.log(point[0])
                    for weight, point in zip(weights, known, strict=True)
                )
                value = math.exp(min(sum(logs), 700.0)) * (1 + self.sign * AIMED)
                if low < value < high:
                    return value
        return None

    def _rises(self, good: Point, bad: Point) -> bool:
        """Return whether the target and both epsilons have logarithms, which differ."""
        return 0 < good[1].upper < bad[1].upper < math.inf and self.target > 0
