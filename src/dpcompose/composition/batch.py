"""Bounds on epsilon or delta for many compositions in one call, in shared array computations where
possible.

Each bound depends on its own composition and argument alone, not on the other entries or their
order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from dpcompose import check
from dpcompose.composition.composition import Askable, Composable, ComposablePart, compose
from dpcompose.composition.losses import gathered
from dpcompose.composition.question import TOLERANCE, Asking, Options, PrivacyQuestion, ask, asks
from dpcompose.errors import DomainError, DPComposeError, UnreachableError, UnsupportedError
from dpcompose.loss import (
    Growing,
    SampledGaussianLoss,
    SampledGaussianQuestion,
    sampled_gaussian_ends,
)
from dpcompose.values import Bound, Bounds, Certificate

Progress = Callable[[int, int], None]
"""A callback that receives the number of finished questions and their total number."""
CHUNK = 1 << 14
"""Compositions per array computation: enough to fill arrays, few enough for memory."""
_MOST_PARTS = 8
_FARTHEST = 600.0
Guard = Callable[[str, Any], float]
_TOGETHER, _REFUSED = Certificate("contour, many questions at once"), Certificate("refused")
_MANY = "an answer to many questions at once"
_MET = Certificate("contours of this question alone and of many at once")


@overload
def epsilon(compositions: Askable, *, delta: float, **options: Unpack[Options]) -> Bound: ...
@overload
def epsilon(
    compositions: Iterable[Askable],
    *,
    delta: ArrayLike,
    masked: bool = False,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Bounds: ...
@asks()
def epsilon(
    compositions: Askable | Iterable[Askable],
    *,
    delta: Any,
    masked: bool = False,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Bound | Bounds:
    """Return certified bounds on epsilon at `delta`, in nats: one `Bound` for one composition,
    `Bounds` for a sequence. A sequence is much faster than one call for each composition.

    >>> from dpcompose import Gaussian
    >>> found = epsilon([Gaussian(sigma) * 100 for sigma in (10.0, 20.0)], delta=1e-5)
    >>> found[0].contains(4.377178095681225), found.upper.round(3).tolist()
    (True, [4.377, 1.993])
    >>> epsilon(Gaussian(1.0), delta=1e-5) == Gaussian(1.0).epsilon(delta=1e-5)
    True

    Args:
        compositions: A mechanism, composition or group, or a sequence of them.
        delta: In [0, 1]: one number for all, or one for each, shape (n,).
        masked: For a sequence: whether a question without an answer is marked in `refused`, with
            its error in `refusals`. If False, the first such error is raised, with the index of its
            composition.
        progress: For a sequence: called as `progress(done, total)` with numbers of questions.
        options: Adjacency, orientation and tolerance, as in `Options`; `proof` for one composition
            only.

    Raises:
        DomainError: If a number is outside its domain, or an array of deltas and the sequence of
            compositions differ in length.
        UnsupportedError: If no sound losses of a mechanism are known under the adjacency or
            orientation.
    """
    return _answered("delta", compositions, delta, masked, progress, options)


@overload
def delta(compositions: Askable, *, epsilon: float, **options: Unpack[Options]) -> Bound: ...
@overload
def delta(
    compositions: Iterable[Askable],
    *,
    epsilon: ArrayLike,
    masked: bool = False,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Bounds: ...
@asks()
def delta(
    compositions: Askable | Iterable[Askable],
    *,
    epsilon: Any,
    masked: bool = False,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Bound | Bounds:
    """Return certified bounds on delta at `epsilon`: one `Bound` for one composition, `Bounds` for
    a sequence. A sequence is much faster than one call for each composition.

    >>> from dpcompose import BlackBox
    >>> delta([BlackBox(0.1) * 10] * 2, epsilon=[0.5, 2.0])[0].contains(0.009929626917388853)
    True

    Args:
        compositions: A mechanism, composition or group, or a sequence of them.
        epsilon: In nats: one real number for all, or one for each, shape (n,).
        masked: For a sequence: whether a question without an answer is marked in `refused`, with
            its error in `refusals`. If False, the first such error is raised, with the index of its
            composition.
        progress: For a sequence: called as `progress(done, total)` with numbers of questions.
        options: Adjacency, orientation and tolerance, as in `Options`; `proof` for one composition
            only.

    Raises:
        DomainError: If a number is outside its domain, or an array of epsilons and the sequence of
            compositions differ in length.
        UnsupportedError: If no sound losses of a mechanism are known under the adjacency or
            orientation.
    """
    return _answered("epsilon", compositions, epsilon, masked, progress, options)


def _answered(
    argument: str,
    compositions: Askable | Iterable[Askable],
    value: Any,
    masked: bool,
    progress: Progress | None,
    options: Options,
) -> Bound | Bounds:
    """Return the bound for one composition, or the bounds for several, at the number named
    `argument`.
    """
    if isinstance(compositions, Askable):
        refuse_batch_options(masked, progress)
        one = compositions.epsilon if argument == "delta" else compositions.delta
        return one(**{argument: value}, **options)
    asking = Asking.read(options, unproved=_MANY)
    return _Batch(masked, progress, argument, asking).answered(compositions, value)


def refuse_batch_options(masked: object, progress: object) -> None:
    """Raise a DomainError if `masked` or `progress`, which need a sequence of compositions, is set
    for one composition.
    """
    for name, value, absent in (("masked", masked, False), ("progress", progress, None)):
        if value is not absent:
            remedy = "Pass a list of one composition or family, or leave the option out"
            raise DomainError(name, value, f"{absent} beside a single composition", remedy)


@asks()
def running_epsilon(
    schedule: Composable | Iterable[Composable],
    *,
    delta: float,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Bounds:
    """Return certified bounds on epsilon, in nats, after every step of a schedule: entry k bounds
    the composition of the first k + 1 mechanisms.

    >>> from dpcompose import Gaussian
    >>> found = running_epsilon([Gaussian(2.0).sampled(0.01) * 300, Gaussian(1.0).sampled(0.01) * 200], delta=1e-6)
    >>> len(found), bool(found.upper[299] < 0.5 < found.upper[499])
    (500, True)

    Args:
        schedule: Mechanisms and compositions in the order in which they run; or one composition,
            whose parts run in their order.
        delta: The delta at which every epsilon is bounded, in [0, 1].
        progress: Called as `progress(done, total)` with numbers of steps.
        options: Adjacency, orientation and tolerance, as in `Options`.

    Raises:
        DomainError: If a number is outside its domain, or an entry of the schedule is neither a
            mechanism nor a composition.
        UnsupportedError: If no sound losses of a mechanism are known under the adjacency or
            orientation.
    """
    delta = check.probability("delta", delta)
    check.progress(progress)
    items = [schedule] if isinstance(schedule, Composable) else list(schedule)
    for index, item in enumerate(items):
        if not isinstance(item, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(f"schedule[{index}]", item, "a mechanism or a composition")
    parts = [entry for item in items for entry in item._counted()]  # pyright: ignore[reportPrivateUsage]
    asking = Asking.read(options, unproved=_MANY)
    tolerance, whole = asking.tolerance, ask(tuple(parts), asking)
    total = sum(times for _, times in parts)
    ends, certificates = np.full((2, total), np.nan), [_TOGETHER] * total
    phases = _phases(parts, whole)
    if phases is not None and 0 < delta < 1:
        for first, lower, upper in Growing(delta, tolerance).running(phases):
            good = upper - lower <= 10 * tolerance * np.maximum(upper, 1e-3)
            ends[:, first : first + len(lower)] = np.where(good, (lower, upper), np.nan)
            if progress is not None:
                progress(int(np.isfinite(ends[1]).sum()), total)
    steps = np.cumsum([times for _, times in parts])
    for index in np.flatnonzero(np.isnan(ends[1])).tolist():
        last = int(np.searchsorted(steps, index, side="right"))
        prefix = (*parts[:last], (parts[last][0], index + 1 - int(steps[last] - parts[last][1])))
        bound = compose(*(part * times for part, times in prefix)).epsilon(delta=delta, **options)
        ends[:, index], certificates[index] = (bound.lower, bound.upper), bound.certificate
        if progress is not None:
            progress(index + 1, total)
    # Epsilon never decreases from one step to the next, so the lower and upper ends are made
    # monotone.
    lower, upper = np.maximum.accumulate(ends[0]), np.minimum.accumulate(ends[1][::-1])[::-1]
    return Bounds(lower, upper, tuple(certificates))


def _phases(
    parts: Sequence[tuple[ComposablePart, int]], whole: PrivacyQuestion
) -> list[tuple[SampledGaussianLoss, int]] | None:
    """Return the sampled-Gaussian loss of each part with its count, in the order in which they run.

    None if there is no part, one has no such loss, or an adversary orients the rounds of `whole`.
    """
    if not parts or whole.rounds:
        return None
    losses = [(sampled_gaussian(part, whole.asking), times) for part, times in parts]
    phases = [(loss, times) for loss, times in losses if loss is not None]
    return phases if len(phases) == len(losses) else None


@lru_cache(maxsize=1 << 12)
def sampled_gaussian(part: ComposablePart, asking: Asking) -> SampledGaussianLoss | None:
    """Return the loss of `part` when a record is removed, if that is one sampled-Gaussian loss;
    else None.
    """
    pair = gathered(((part, 1),), asking.adjacency).single
    loss = pair.remove if pair and pair.attained else None
    if pair is None or not isinstance(loss, SampledGaussianLoss) or not loss.remove:
        return None
    return loss if pair.add == replace(loss, remove=False) else None


@dataclass
class Refusing:
    """A call about several compositions or families whose errors are collected or raised.

    Args:
        masked: Whether errors are collected in `refusals`; if False, the first one is raised.
        progress: Called as `progress(done, total)`.
        refusals: The errors, by index.
    """

    masked: bool
    progress: Progress | None
    refusals: dict[int, DPComposeError] = field(
        default_factory=dict[int, DPComposeError], kw_only=True
    )

    def __post_init__(self) -> None:
        check.flag("masked", self.masked)
        check.progress(self.progress)

    def refuse(self, index: int, error: DPComposeError) -> None:
        """Raise the error, or mark the question of this index with it."""
        if not self.masked:
            raise error
        self.refusals[index] = error

    def numbers(self, name: str, values: ArrayLike, count: int, guard: Guard) -> list[float]:
        """Return one checked number for each of `count` questions; NaN where it is refused.

        Args:
            name: The name of the numbers, for errors.
            values: One number for all questions, or one for each.
            count: The number of questions.
            guard: Returns a checked number, or raises a DomainError.

        Raises:
            DomainError: If there are neither one nor `count` numbers, or one is refused and refusals
                are not collected.
        """
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence | np.ndarray):
            return [guard(name, values)] * count
        if isinstance(values, np.ma.MaskedArray):
            raise DomainError(name, values, "no masked array", "Leave the masked entries out")
        entries = np.asarray(values, dtype=object)
        if entries.shape == ():
            return [guard(name, entries.item())] * count
        if entries.shape != (count,):
            raise DomainError(
                f"the shape of {name}",
                entries.shape,
                f"one number, or {count}: one for each composition",
            )
        found: list[float] = []
        elements: list[Any] = entries.tolist()
        for index, value in enumerate(elements):
            try:
                found.append(guard(f"{name}[{index}]", value))
            except DomainError as error:
                self.refuse(index, error)
                found.append(math.nan)
        return found

    def tell(self, done: int, total: int) -> None:
        """Report progress: `done` finished answers plus the refused ones."""
        if self.progress is not None:
            self.progress(done + len(self.refusals), total)


@dataclass
class _Batch(Refusing):
    """The compositions of one call to `epsilon` or `delta`, with their bounds.

    Args:
        argument: The name of the number given for each composition: "delta" or "epsilon".
        asking: The options of the call.
        bounds: The bounds, by index of the composition.
        rough: Bounds from the array computation that are wider than the tolerance, by index; they
            are intersected with the bounds computed one by one.
    """

    argument: str
    asking: Asking
    bounds: dict[int, Bound] = field(default_factory=dict[int, Bound])
    rough: dict[int, Bound] = field(default_factory=dict[int, Bound])

    def answered(self, compositions: Iterable[Askable], values: ArrayLike) -> Bounds:
        """Return a bound for each composition, at the one number or the array `values`."""
        subjects = self._subjects(compositions)
        guard = check.probability if self.argument == "delta" else check.real
        each = self.numbers(self.argument, values, len(subjects), guard)
        asked = [index for index in range(len(subjects)) if index not in self.refusals]
        for start in range(0, len(asked), CHUNK):
            some = {index: subjects[index] for index in asked[start : start + CHUNK]}
            self._together(some, each)
            for index, subject in some.items():
                if index in self.bounds or index in self.refusals:
                    continue
                if (asked_one := self._question(index, subject)) is not None:
                    one = asked_one.epsilon if self.argument == "delta" else asked_one.delta
                    self.bounds[index] = _both(one(each[index]), self.rough.get(index))
                    self.tell(len(self.bounds), len(subjects))
            self.tell(len(self.bounds), len(subjects))
        return self._bounds(len(subjects))

    def _subjects(self, compositions: Iterable[Askable]) -> Sequence[Askable]:
        if isinstance(compositions, Askable | str | bytes) or not isinstance(
            compositions, Iterable
        ):  # pyright: ignore
            raise DomainError(
                "compositions", compositions, "a mechanism or a composition, or a sequence of them"
            )
        subjects = list(compositions)
        for index, subject in enumerate(subjects):
            if not isinstance(subject, Askable):  # pyright: ignore[reportUnnecessaryIsInstance]
                name = f"compositions[{index}]"
                self.refuse(index, DomainError(name, subject, "a mechanism or a composition"))
        return subjects

    def _question(self, index: int, subject: Askable) -> PrivacyQuestion | None:
        """Return the `PrivacyQuestion` about composition number `index`, or None if it is refused."""
        try:
            return subject._question(self.asking)  # pyright: ignore[reportPrivateUsage]
        except DPComposeError as error:
            self.refuse(index, located(error, f"compositions[{index}]"))
        return None

    def _together(self, some: dict[int, Askable], each: list[float]) -> None:
        """Bound the compositions of sampled Gaussians among `some` in one array computation.

        Bounds within the tolerance go to `bounds`, wider ones to `rough`; a composition without
        sound losses is refused.
        """
        for_delta = self.argument == "epsilon"
        rows: dict[int, SampledGaussianQuestion] = {}
        for index, subject in some.items():
            question, number = self._question(index, subject), each[index]
            losses = None if question is None else _sampled_gaussians(question)
            if losses is not None and (0 <= number <= _FARTHEST if for_delta else 0 < number < 1):
                rows[index] = SampledGaussianQuestion(tuple(losses), number)
        ends = sampled_gaussian_ends(
            list(rows.values()), for_delta=for_delta, tolerance=self.asking.tolerance
        )
        for index, lower, upper in zip(rows, *(end.tolist() for end in ends), strict=True):
            if lower <= upper:
                narrow = upper - lower <= self.asking.tolerance * (
                    10 * upper if for_delta else max(upper, 1e-3)
                )
                (self.bounds if narrow else self.rough)[index] = Bound(lower, upper, _TOGETHER)

    def _bounds(self, count: int) -> Bounds:
        ends = np.full((2, count), np.nan)
        certificates = [_REFUSED] * count
        for index, bound in self.bounds.items():
            ends[:, index], certificates[index] = (bound.lower, bound.upper), bound.certificate
        return Bounds(ends[0], ends[1], tuple(certificates), self.refusals)


def _both(one: Bound, other: Bound | None) -> Bound:
    """Return the intersection of two bounds on the same number; the first one if they do not
    meet.
    """
    if other is None or not max(one.lower, other.lower) <= min(one.upper, other.upper):
        return one
    certificate = one.certificate if one.upper - one.lower <= other.upper - other.lower else _MET
    return Bound(max(one.lower, other.lower), min(one.upper, other.upper), certificate)


def located(error: DPComposeError, location: str) -> DPComposeError:
    """Return the error with `location`, such as "compositions[3]", before the name of the offending
    argument.
    """
    match error:
        case UnsupportedError(what=what, reason=reason, remedy=remedy):
            return UnsupportedError(f"{location}, {what}", reason, remedy)
        case UnreachableError(what=what, target=target, limit=limit, remedy=remedy):
            return UnreachableError(f"{location}, {what}", target, limit, remedy)
        case DomainError(name=name, value=value, domain=domain, remedy=remedy):
            return DomainError(f"{location}, {name}", value, domain, remedy)
        case _:
            return error


def _sampled_gaussians(question: PrivacyQuestion) -> list[tuple[SampledGaussianLoss, int]] | None:
    """Return the sampled-Gaussian losses in one direction with their counts; None if the array
    computation does not apply.

    It applies if the losses are attained by a mechanism, each is a sampled Gaussian loss or its
    reverse, and few of them are distinct.
    """
    if not question.tight or len(question.dominating) != 2:
        return None
    remove, add = (product.group for product in question.dominating)
    found: list[tuple[SampledGaussianLoss, int]] = []
    for (one, times), (other, _) in zip(remove, add, strict=True):
        if not isinstance(one, SampledGaussianLoss) or not one.remove:
            return None
        if other != replace(one, remove=False):
            return None
        found.append((one, times))
    return found if len(found) <= _MOST_PARTS and sum(times for _, times in found) > 1 else None


# Epsilon of a growing history: each call costs as much as the new entries, and returns the same
# bits as a computation from scratch.


_KEPT = Certificate("contour, kept while steps are added")
History = Sequence[tuple[Composable, int]]
"""Mechanisms in the order in which they ran, each with its number of runs."""


class GrowingEpsilon:
    """Bounds epsilon at one delta, under add-remove, of a history of mechanisms that grows between
    calls.

    The bound is a function of the history alone, to the last bit. If the history only grew and
    consists of sampled Gaussians, the cost is that of the new entries; any other history is
    evaluated in full. Pass the same mechanism objects again: entries are compared by identity
    first.

    >>> from dpcompose import Gaussian
    >>> from dpcompose.composition import GrowingEpsilon
    >>> history = [(Gaussian(1.0).sampled(0.01), 500)]
    >>> growing = GrowingEpsilon(1e-6)
    >>> first = growing.bound(history)
    >>> history.append((Gaussian(1.1).sampled(0.01), 200))
    >>> growing.bound(history) == GrowingEpsilon(1e-6).bound(history) != first
    True

    Args:
        delta: The delta at which epsilon is bounded, in [0, 1].

    Raises:
        DomainError: If delta is outside its domain.
    """

    def __init__(self, delta: float) -> None:
        self.delta = check.probability("delta", delta)
        self._growing = Growing(self.delta, TOLERANCE)
        self._known: list[tuple[Composable, int]] = []
        self._phases: list[tuple[SampledGaussianLoss, int] | None] = []
        self._answer: Bound | None = None

    def bound(self, history: History) -> Bound:
        """Return the certified epsilon, in nats, of all (mechanism, count) entries of `history`; 0
        if it is empty.
        """
        if self._answer is None or list(history) != self._known:
            self._answer = None
            self._extend(history)
            self._answer = self._evaluate()
        return self._answer

    def _extend(self, history: History) -> None:
        """Read the new entries of `history`; start again if the entries read before are not its
        beginning.
        """
        last = max(len(self._known) - 1, 0)
        begun = len(history) >= len(self._known) and list(history[:last]) == self._known[:last]
        for (mechanism, times), (earlier, before) in zip(
            history[last:], self._known[last:], strict=False
        ):
            begun = begun and mechanism is earlier and times >= before
        if not begun:
            last, self._growing = 0, Growing(self.delta, TOLERANCE)
        phases = [_phase(mechanism, times) for mechanism, times in history[last:]]
        self._known[last:], self._phases[last:] = history[last:], phases

    def _evaluate(self) -> Bound:
        """Return the bound on epsilon of the entries read so far."""
        steps = sum(times for _, times in self._known[:2])
        if all(self._phases) and 0 < self.delta < 1 and steps > 1:
            phases = cast("list[tuple[SampledGaussianLoss, int]]", self._phases)
            lower, upper = self._growing.epsilon(phases)
            if upper - lower <= 10 * TOLERANCE * max(upper, 1e-3):
                return Bound(lower, upper, _KEPT)
        return compose(*(mechanism * times for mechanism, times in self._known)).epsilon(
            delta=self.delta
        )


def _phase(mechanism: Composable, times: int) -> tuple[SampledGaussianLoss, int] | None:
    """Return the sampled-Gaussian loss of `mechanism` when a record is removed, with `times`; None
    if it has another loss.
    """
    times = check.times(times, least=1)
    parts = mechanism._counted()  # pyright: ignore[reportPrivateUsage]
    if len(parts) != 1 or parts[0][1] != 1:
        return None
    loss = sampled_gaussian(parts[0][0], Asking())
    return None if loss is None else (loss, times)
