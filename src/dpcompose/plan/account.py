"""The account of a plan: its total cost, the bound of each theorem, and the contribution of each mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from typing import Any

from dpcompose import check
from dpcompose.composition import (
    ATTACKS,
    Calibration,
    Comparison,
    Composition,
    calibrate as calibrated,
    compose,
)
from dpcompose.errors import DomainError, UnreachableError, UnsupportedError
from dpcompose.pictured import Plot
from dpcompose.plan.plan import Plan, PlanEntry, PlanQuestion
from dpcompose.plan.schema import MECHANISMS
from dpcompose.values import Adjacency, Bound


@dataclass(frozen=True)
class PlanCalibration:
    """A plan that keeps to a target.

    Args:
        plan: The plan with the value found.
        key: The parameter that was varied, such as `mechanism.training.sigma`.
        value: The value found.
        epsilon: The target; None with a target for an attacker.
        delta: The delta of the target, likewise.
        found: The certified number that the target limits, there and next to it.
        attack: The target for an attacker, in the names of `composition.calibrate`; empty with an epsilon.
    """

    plan: Plan
    key: str
    value: float
    epsilon: float | None
    delta: float | None
    found: Calibration
    attack: tuple[tuple[str, float], ...] = ()

    @property
    def extreme(self) -> str:
        """The place of the value among those that keep to the target: smallest, largest or feasible."""
        if not self.found.extreme:
            return "feasible"
        entry, parameter = self.plan.locate(self.key)
        response = MECHANISMS[entry.kind].key(parameter).response
        return "smallest" if response == "decreasing" else "largest"


def calibrate(
    plan: Plan, key: str, *, epsilon: float | None = None, delta: float | None = None, **attack: Any
) -> PlanCalibration:
    """The extreme value of `key` with which `plan` is certified to cost at most `epsilon` at `delta`.

    Args:
        plan: The plan; its own question does not matter.
        key: As in `Plan.locate`.
        epsilon: In nats; finite, >= 0.
        delta: In [0, 1].
        attack: A target for an attacker instead, as in `composition.calibrate`: advantage, true_positive_rate and
            false_positive_rate, or bayes_error and prior.

    Raises:
        DomainError: If the key names no number of the plan, or a target is outside its domain.
        UnreachableError: If no value of it keeps to the target.
        UnsupportedError: If some mechanisms have no sound guarantee under the plan's adjacency.
    """
    if unknown := attack.keys() - set(ATTACKS):
        raise DomainError(
            "target", min(unknown), f"epsilon and delta, or some of {', '.join(ATTACKS)}"
        )
    require_common_adjacency(plan)
    entry, parameter = plan.locate(key)
    varied = MECHANISMS[entry.kind].key(parameter)
    integer = varied.role == "count"
    # Twice as far as the domain: the search itself reports where the domain ends.
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
        changed, key, found.value, epsilon, delta, found=found, attack=tuple(attack.items())
    )


Progress = Callable[[str, int, int], None]
"""Called with what comes next, how many steps are done, and how many there are."""

FEW = 12
"""A plan of at most this many mechanisms is also composed without each of them, even if `every` is False."""


@dataclass(frozen=True)
class Share:
    """The contribution of one mechanism of a plan.

    Args:
        entry: The mechanism and how often it runs.
        alone: The answer to the same question for this mechanism alone, all its runs together.
        without: The answer for the rest of the plan; None if it was not asked for, or nothing is left.
    """

    entry: PlanEntry
    alone: Bound
    without: Bound | None


@dataclass(frozen=True)
class PlanAccount:
    """The cost of a plan.

    Args:
        plan: The plan.
        question: The delta or the epsilon that was given.
        total: The certified answer: epsilon at that delta, or delta at that epsilon.
        limit: The largest epsilon that the total may have, or None without a budget.
        comparisons: Every theorem that applies, at the delta given or found; empty where that delta is 0 or 1.
        shares: One for each mechanism, in the order of the plan.
        finite: Where the total is infinite, the answer for the mechanisms that are finite alone; otherwise None.
    """

    plan: Plan
    question: PlanQuestion
    total: Bound
    limit: float | None
    comparisons: tuple[Comparison, ...]
    shares: tuple[Share, ...]
    finite: Bound | None
    plot = Plot("waterfall")

    @property
    def within(self) -> bool | None:
        """Whether the total certainly keeps to the limit; None without one."""
        return None if self.limit is None else self.total.upper <= self.limit

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The mechanisms without a useful bound for this question."""
        return tuple(
            share.entry.name for share in self.shares if not _useful(self.question, share.alone)
        )

    @property
    def delta(self) -> float:
        """The delta given, or the upper end of the delta found."""
        return self.question.value if self.question.given == "delta" else self.total.upper


def account(
    plan: Plan, question: PlanQuestion, *, limit: float | None = None, every: bool = False,
    progress: Progress | None = None,
) -> PlanAccount:  # fmt: skip
    """The cost of `plan`, as an answer to `question`.

    Args:
        plan: The plan.
        question: A delta, to ask for epsilon; or an epsilon, to ask for delta.
        limit: A largest epsilon to hold the total against; only with a delta. Finite, >= 0.
        every: Whether to compose the rest of the plan for every mechanism even when they are many.
        progress: Called before each step.

    Raises:
        DomainError: If a limit is given with an epsilon.
        UnsupportedError: If some mechanisms have no sound guarantee under the plan's adjacency; it lists them.
    """
    check.flag("every", every)
    if limit is not None:
        if question.given != "delta":
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
    shares: list[Share] = []
    for entry in plan.entries:
        tell(f"{entry.name} alone")
        alone = ask(compose(entry.mechanism * entry.times))
        rest = plan.without(entry.name) if several else None
        if rest is not None:
            tell(f"all but {entry.name}")
        shares.append(Share(entry, alone, None if rest is None else ask(rest.composition())))
    tell("other theorems")
    delta = question.value if question.given == "delta" else total.upper
    comparisons = (
        plan.composition().compare(delta=delta, adjacency=plan.adjacency) if 0 < delta < 1 else ()
    )
    finite = None
    if not _useful(question, total):
        rest = [share.entry for share in shares if _useful(question, share.alone)]
        if 0 < len(rest) < len(shares):
            finite = ask(replace(plan, entries=tuple(rest)).composition())
    return PlanAccount(
        plan, question, total, limit, tuple(comparisons), shares=tuple(shares), finite=finite
    )


def require_common_adjacency(plan: Plan) -> None:
    """Raise UnsupportedError, with a list, if some mechanisms have no guarantee under the plan's adjacency."""
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
    if question.given == "delta":
        return composition.epsilon(delta=question.value, adjacency=adjacency)
    return composition.delta(epsilon=question.value, adjacency=adjacency)


def _useful(question: PlanQuestion, bound: Bound) -> bool:
    return bound.upper < (math.inf if question.given == "delta" else 1.0)
