"""The curves of a plan: epsilon over delta, and the growth of epsilon with the number of answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpcompose import check
from dpcompose.composition import Risk, compose, risk
from dpcompose.errors import DomainError
from dpcompose.pictured import Card
from dpcompose.plan.account import PlanAccount, Progress, require_common_adjacency
from dpcompose.plan.plan import Plan
from dpcompose.values import Bound

PRIOR, FALSE_POSITIVE_RATE = 0.5, 1e-3
DECADES, STEPS = 6, 4
"""False positive rates are drawn from 10^-6 to 1, four a decade."""
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
"""The least common divisor of the numbers of runs at which growth is drawn inside the plan.

A plan with a smaller one is drawn as it is repeated.
"""


@dataclass(frozen=True)
class EpsilonCurve:
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


Curve = EpsilonCurve


@dataclass(frozen=True)
class Growth:
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
    for done, (count, stop) in enumerate(zip(counts, stops, strict=True)):
        if progress is not None:
            progress(f"theorems at {stop:,} {unit.partition(',')[0]}", done, len(stops))
        composition = compose(*(entry.mechanism * (entry.times * count) for entry in part.entries))
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
