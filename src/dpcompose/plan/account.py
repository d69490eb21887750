"""The privacy cost of a plan: in total, by each theorem, and of each mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from typing import Any, Self

from dpcompose import check
from dpcompose.composition import (
    ATTACKS,
    Calibration,
    Comparison,
    Composable,
    Composition,
    Risk,
    calibrate as calibrated,
    compose,
    risk,
)
from dpcompose.errors import DomainError, UnreachableError, UnsupportedError
from dpcompose.pictured import Card, Plot
from dpcompose.plan.plan import Plan, PlanEntry, PlanQuestion
from dpcompose.plan.schema import MECHANISMS
from dpcompose.values import Adjacency, Bound


@dataclass(frozen=True)
class PlanCalibration(Card):
    """A plan with one parameter calibrated to a target.

    Args:
        plan: The plan with the calibrated value.
        key: The key of the calibrated parameter, such as `mechanism.training.sigma`.
        value: The calibrated value.
        epsilon: The target epsilon, in nats; None if the target is an attacker's success.
        delta: The target delta; None if the target is an attacker's success.
        calibration: The certified value of the targeted number at the parameter, and at the next
            value beyond.
        attack: The target for an attacker's success as pairs (name, value), with the names of
            `composition.calibrate`; empty if epsilon is the target.
    """

    plan: Plan
    key: str
    value: float
    epsilon: float | None
    delta: float | None
    calibration: Calibration
    attack: tuple[tuple[str, float], ...] = ()

    @property
    def extreme(self) -> str:
        """ "smallest" or "largest" for the extreme value that meets the target, else "feasible"."""
        if not self.calibration.extreme:
            return "feasible"
        entry, parameter = self.plan.locate(self.key)
        response = MECHANISMS[entry.kind].key(parameter).response
        return "smallest" if response == "decreasing" else "largest"


def calibrate(
    plan: Plan, key: str, *, epsilon: float | None = None, delta: float | None = None, **attack: Any
) -> PlanCalibration:
    """The extreme value of the parameter `key` for which `plan` is (epsilon, delta)-DP, certified.

    It is the smallest value of a parameter such as a noise scale, the largest of one such as a
    sampling rate.

    Args:
        plan: The plan; its question is ignored.
        key: The parameter, as `Plan.locate` reads it.
        epsilon: The target epsilon, in nats; finite, >= 0.
        delta: The target delta, in [0, 1].
        attack: A target for an attacker's success in place of epsilon and delta, as in
            `composition.calibrate`: advantage, true_positive_rate and false_positive_rate, or
            bayes_error and prior.

    Raises:
        DomainError: If the key does not name a number of the plan, or a target is outside its
            domain.
        UnreachableError: If no value of the parameter meets the target, or every value does.
        UnsupportedError: If some mechanisms have no guarantee under the plan's adjacency.
    """
    if unknown := attack.keys() - set(ATTACKS):
        raise DomainError(
            "target", min(unknown), f"epsilon and delta, or some of {', '.join(ATTACKS)}"
        )
    require_common_adjacency(plan)
    entry, parameter = plan.locate(key)
    varied = MECHANISMS[entry.kind].key(parameter)
    integer = varied.role == "count"
    # Twice the limits of the domain; the search itself finds where the domain ends.
    bracket = {"rate": (1e-12, 2.0), "delta": (1e-300, 2.0)}.get(parameter)

    def family(value: float) -> Composition:
        return plan.with_value(key, int(value) if integer else value).composition()

    try:
        found = calibrated(
            family, epsilon=epsilon, delta=delta, parameter=str(varied.response), integer=integer, bracket=bracket,
            adjacency=plan.adjacency, **attack,
        )  # fmt: skip
    except UnreachableError as error:
        remedy = "The rest of the plan, or the mechanism at its least, already costs that much"
        if error.limit <= error.target:
            remedy = (
                "Whatever the value, the plan keeps to the target: it does not limit this number"
            )
        raise UnreachableError(key, error.target, error.limit, remedy) from None
    changed = plan.with_value(key, found.value)
    return PlanCalibration(
        changed, key, found.value, epsilon, delta, calibration=found, attack=tuple(attack.items())
    )


Progress = Callable[[str, int, int], None]
"""A callback, called as progress(next step, steps done, steps in all)."""

FEW = 12
"""The largest number of mechanisms for which `account` computes `Contribution.without`."""


@dataclass(frozen=True)
class Contribution(Card):
    """The contribution of one mechanism to the cost of a plan.

    Args:
        entry: The mechanism, with its number of runs.
        alone: The epsilon or delta of all runs of this mechanism alone.
        without: The epsilon or delta of the plan without this mechanism; None if not computed, or
            if it is the only one.
    """

    entry: PlanEntry
    alone: Bound
    without: Bound | None


@dataclass(frozen=True)
class PlanAccount(Card):
    """The certified privacy cost of a plan.

    Args:
        plan: The plan.
        question: The fixed delta, or the fixed epsilon.
        total: The certified epsilon at the fixed delta, or delta at the fixed epsilon.
        limit: The epsilon of the budget; None if there is none.
        comparisons: The epsilon of every theorem that applies, at `delta`; empty if that is 0 or 1.
        contributions: The contribution of each mechanism, in the order of the plan.
        finite: If the total is vacuous (epsilon infinite or delta 1), the cost of the mechanisms
            whose cost alone is not; else None.
    """

    plan: Plan
    question: PlanQuestion
    total: Bound
    limit: float | None
    comparisons: tuple[Comparison, ...]
    contributions: tuple[Contribution, ...]
    finite: Bound | None
    plot = Plot("waterfall")

    @property
    def within(self) -> bool | None:
        """Whether the total is certified to be at most the limit; None without a limit."""
        return None if self.limit is None else self.total.upper <= self.limit

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The names of the mechanisms whose cost alone is vacuous: epsilon infinite, or delta 1."""
        return tuple(
            share.entry.name
            for share in self.contributions
            if not _useful(self.question, share.alone)
        )

    @property
    def delta(self) -> float:
        """The fixed delta, or the upper end of the computed one."""
        return self.question.value if self.question.fixed == "delta" else self.total.upper


def account(
    plan: Plan, question: PlanQuestion, *, limit: float | None = None, every: bool = False,
    progress: Progress | None = None,
) -> PlanAccount:  # fmt: skip
    """The certified cost of `plan`: epsilon at a fixed delta, or delta at a fixed epsilon.

    Args:
        plan: The plan.
        question: The fixed delta, for which epsilon is computed, or the fixed epsilon, for which
            delta is.
        limit: The epsilon of a budget, finite, >= 0; only with a fixed delta.
        every: Whether to compose the plan without each mechanism even if it has more than 12.
        progress: Called before each step.

    Raises:
        DomainError: If `limit` is not a finite number >= 0, or is combined with a fixed epsilon.
        UnsupportedError: If some mechanisms have no guarantee under the plan's adjacency; the text
            lists them.
    """
    check.flag("every", every)
    if limit is not None:
        if question.fixed != "delta":
            raise DomainError("limit", limit, "None unless a delta is given")
        limit = check.nonnegative("epsilon", limit)
    require_common_adjacency(plan)
    several = len(plan.entries) > 1 and (every or len(plan.entries) <= FEW)
    total_steps, done = 2 + len(plan.entries) * (1 + several), count()

    def tell(what: str) -> None:
        if progress is not None:
            progress(what, next(done), total_steps)

    ask = cache(partial(_answer, question=question, adjacency=plan.adjacency))
    tell("the total")
    total = ask(plan.composition())
    contributions: list[Contribution] = []
    for entry in plan.entries:
        tell(f"{entry.name} alone")
        alone = ask(compose(entry.mechanism * entry.times))
        rest = plan.without(entry.name) if several else None
        if rest is not None:
            tell(f"all but {entry.name}")
        contributions.append(
            Contribution(entry, alone, None if rest is None else ask(rest.composition()))
        )
    tell("other theorems")
    delta = question.value if question.fixed == "delta" else total.upper
    comparisons = (
        plan.composition().compare(delta=delta, adjacency=plan.adjacency) if 0 < delta < 1 else ()
    )
    finite = None
    if not _useful(question, total):
        rest = [share.entry for share in contributions if _useful(question, share.alone)]
        if 0 < len(rest) < len(contributions):
            finite = ask(replace(plan, entries=tuple(rest)).composition())
    return PlanAccount(
        plan,
        question,
        total,
        limit,
        tuple(comparisons),
        contributions=tuple(contributions),
        finite=finite,
    )


def require_common_adjacency(plan: Plan) -> None:
    """Raise UnsupportedError if some mechanisms have no guarantee under the plan's adjacency."""
    lacking = _lacking(plan, plan.adjacency)
    if lacking:
        others = [
            each.value
            for each in Adjacency
            if each is not plan.adjacency and not _lacking(plan, each)
        ]
        raise UnsupportedError(
            f"{plan.source} under {plan.adjacency.value}",
            f"no sound guarantee is known of {'; '.join(f'{name} ({why})' for name, why in lacking)}",
            f"All of the plan is known under {' and '.join(others)}"
            if others
            else "No adjacency covers all of the plan",
        )


def _lacking(plan: Plan, adjacency: Adjacency) -> list[tuple[str, str]]:
    lacking: list[tuple[str, str]] = []
    for entry in plan.entries:
        try:
            for part, _ in compose(entry.mechanism).parts:
                part.pairs(adjacency)
        except UnsupportedError as error:
            lacking.append((entry.name, error.reason))
    return lacking


def _answer(composition: Composition, *, question: PlanQuestion, adjacency: Adjacency) -> Bound:
    if question.fixed == "delta":
        return composition.epsilon(delta=question.value, adjacency=adjacency)
    return composition.delta(epsilon=question.value, adjacency=adjacency)


def _useful(question: PlanQuestion, bound: Bound) -> bool:
    return bound.upper < (math.inf if question.fixed == "delta" else 1.0)


PRIOR, FALSE_POSITIVE_RATE = 0.5, 1e-3
DECADES, STEPS = 6, 4
"""False positive rates of a picture go from 10^-6 to 1, with four for each decade."""
TOLERANCE = 1e-6


@dataclass(frozen=True)
class PlanRisk(Card):
    """The largest success of an attacker against a plan.

    Args:
        risk: The success at even prior odds, and at a false positive rate of 1/1000.
        rates: Increasing false positive rates.
        powers: The largest true positive rate at each of `rates`, certified.
    """

    risk: Risk
    rates: tuple[float, ...]
    powers: tuple[Bound, ...]

    def power(self, rate: float) -> Bound:
        """The largest true positive rate at the false positive rate `rate`.

        Raises DomainError if the rate is not in `rates`.
        """
        if check.real("rate", rate) not in self.rates:
            raise DomainError(
                "rate", rate, "one of the rates of this risk", "Profile.power answers at any other"
            )
        return self.powers[self.rates.index(rate)]


def risk_of(plan: Plan, *, progress: Progress | None = None) -> PlanRisk:
    """The largest success of an attacker who sees every answer and knows all but one person's data.

    Args:
        plan: The plan.
        progress: Called before each step.

    Raises:
        UnsupportedError: If some mechanisms have no guarantee under the plan's adjacency; the text
            lists them.
    """
    require_common_adjacency(plan)
    profile = plan.composition().profile(adjacency=plan.adjacency, tolerance=TOLERANCE)
    if progress is not None:
        progress("what an attacker gains", 0, 2)
    found = risk(profile, prior=PRIOR, false_positive_rate=FALSE_POSITIVE_RATE)
    rates = tuple(
        float(f"1e{step // STEPS}") * 10 ** (step % STEPS / STEPS)
        for step in range(-DECADES * STEPS, 1)
    )
    if progress is not None:
        progress("the best test at every false positive rate", 1, 2)
    curve = profile.power(rates)
    powers = tuple(
        Bound(low, high)
        for low, high in zip(curve.lower.tolist(), curve.upper.tolist(), strict=True)
    )
    return PlanRisk(found, rates, powers)


POINTS = 25
"""The number of deltas at which the profile is drawn."""
STOPS = 10
"""The largest number of sizes at which the theorems are compared."""
ENOUGH = 8
"""A plan is drawn in parts if its runs have at least this common divisor, else repeated."""


@dataclass(frozen=True)
class EpsilonCurve(Card):
    """A curve of epsilon: certified intervals, or single upper bounds or estimates.

    Args:
        name: The name of the theorem.
        kind: "certified", "upper bound" or "estimate".
        points: Pairs (abscissa, epsilon); for a certified curve, epsilon is the upper end.
        lower: The lower ends of a certified curve; else empty.
    """

    name: str
    kind: str
    points: tuple[tuple[float, float], ...]
    lower: tuple[float, ...] = ()


@dataclass(frozen=True)
class Growth(Card):
    """The growth of epsilon: one curve for each theorem.

    Args:
        unit: The unit of `stops`: answers, or repetitions of the whole plan.
        stops: The sizes of the plan, increasing.
        delta: The delta of every epsilon.
        curves: The epsilon of each theorem over `stops`, the tightest at the last stop first.
    """

    unit: str
    stops: tuple[int, ...]
    delta: float
    curves: tuple[EpsilonCurve, ...]


@dataclass(frozen=True)
class TrainingHistory(Card):
    """The certified epsilon after increasing numbers of steps, such as those of a training.

    Args:
        steps: The numbers of steps, increasing.
        epsilon: The certified epsilon of the first steps, one bound for each of these numbers.
        delta: The delta at which epsilon is computed.
        target: The epsilon of the budget, in nats; None if there is none.
        holds: A sentence that states the condition under which these numbers hold.
    """

    steps: tuple[int, ...]
    epsilon: tuple[Bound, ...]
    delta: float
    target: float | None = None
    holds: str = "All steps were fixed beforehand."

    @classmethod
    def of(
        cls,
        steps: Sequence[tuple[Composable, int]],
        delta: float,
        *,
        adjacency: Adjacency,
        points: int = POINTS,
        progress: Progress | None = None,
        **others: Any,
    ) -> Self:
        """The history of a list of mechanisms with counts, at up to `points` evenly spaced numbers
        of steps.

        Args:
            steps: The mechanisms in their order.
            delta: The delta at which epsilon is computed.
            adjacency: The neighboring relation.
            points: The largest number of numbers of steps.
            progress: Called before each of them.
            others: The fields `target` and `holds`.
        """
        points = check.count("points", points, least=1)
        whole = sum(times for _, times in steps)
        counts = sorted({whole * point // points for point in range(1, points + 1)} - {0})
        bounds: list[Bound] = []
        for number in counts:
            if progress is not None:
                progress(f"epsilon of {number:,} steps", len(bounds), len(counts))
            part = first_steps(steps, number)
            bounds.append(part.epsilon(delta=delta, adjacency=adjacency))
        return cls(tuple(counts), tuple(bounds), delta, **others)


def first_steps(steps: Sequence[tuple[Composable, int]], count: int) -> Composition:
    """The composition of the first `count` mechanisms of a list with counts."""
    taken: list[Composable] = []
    for mechanism, times in steps:
        if now := min(times, count):
            taken.append(mechanism * now)
        count -= now
    return compose(*taken)


def drawn_delta(account: PlanAccount) -> float:
    """The delta of the pictures: that of the account, or 1e-6 if that is 0 or 1."""
    return account.delta if 0 < account.delta < 1 else 1e-6


def over_delta(account: PlanAccount, *, progress: Progress | None = None) -> EpsilonCurve:
    """The certified epsilon of the plan at 25 deltas, from 0.1 to well below the account's delta.

    `progress` is called before each of them.
    """
    last = max(min(2 * math.log10(drawn_delta(account)), -12.0), -300.0)
    composition = account.plan.composition()
    points: list[tuple[float, float]] = []
    lower: list[float] = []
    for step in range(POINTS):
        delta = 10 ** (-1 + (last + 1) * step / (POINTS - 1))
        if progress is not None:
            progress(f"epsilon at delta {delta:.0e}", step, POINTS)
        bound = composition.epsilon(delta=delta, adjacency=account.plan.adjacency)
        points.append((delta, bound.upper))
        lower.append(bound.lower)
    return EpsilonCurve("certified", "certified", tuple(points), tuple(lower))


def over_times(account: PlanAccount, *, progress: Progress | None = None) -> Growth:
    """The epsilon of each theorem as the plan grows, to its full size or by repetition of it.

    Several mechanisms grow in proportion, and the size is their number of answers. `progress` is
    called before each size.
    """
    unit, part, most, answers = _divided(account.plan)
    counts = sorted({round(most ** (step / (STOPS - 1))) for step in range(STOPS)})
    stops = tuple(count * answers for count in counts)
    delta = drawn_delta(account)
    found: dict[str, list[tuple[int, float, float | None, str]]] = {}
    for done, (runs, stop) in enumerate(zip(counts, stops, strict=True)):
        if progress is not None:
            progress(f"theorems at {stop:,} {unit.partition(',')[0]}", done, len(stops))
        composition = compose(*(entry.mechanism * (entry.times * runs) for entry in part.entries))
        for each in composition.compare(delta=delta, adjacency=part.adjacency):
            found.setdefault(each.name, []).append((stop, each.epsilon, each.lower, each.kind))
    return Growth(unit, stops, delta, tuple(_curve(name, rows) for name, rows in found.items()))


def _curve(name: str, rows: list[tuple[int, float, float | None, str]]) -> EpsilonCurve:
    points = tuple((float(stop), epsilon) for stop, epsilon, _, _ in rows)
    lower = tuple(lower for _, _, lower, _ in rows if lower is not None)
    return EpsilonCurve(name, rows[-1][3], points, lower if len(lower) == len(points) else ())


def _divided(plan: Plan) -> tuple[str, Plan, int, int]:
    """(unit, part, count, answers): a part of the plan, its number of repetitions, and its answers.

    The unit is that of the sizes of a `Growth`.
    """
    divisor = math.gcd(*(entry.times for entry in plan.entries))
    if divisor < ENOUGH:
        return "repetitions of the whole plan", plan, 64, 1
    part = replace(
        plan, entries=tuple(replace(entry, times=entry.times // divisor) for entry in plan.entries)
    )
    unit = "answers" if len(plan.entries) == 1 else "answers, of all mechanisms in proportion"
    return unit, part, divisor, sum(entry.times for entry in part.entries)
