"""The privacy cost of a plan: in total, by each theorem, and of each mechanism."""

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
        changed, key, found.value, epsilon, delta, calibration=found, attack=tuple(attack.items())
    )


Progress = Callable[[str, int, int], None]
"""Called as progress(next step, steps done, steps in all)."""

FEW = 12
"""The largest number of mechanisms for which `account` computes `Contribution.without` by default.
"""


@dataclass(frozen=True)
class Contribution:
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
