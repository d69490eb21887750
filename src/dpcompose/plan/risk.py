"""The gain of an attacker from all answers of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from dpcompose import check
from dpcompose.composition import Risk, risk
from dpcompose.errors import DomainError
from dpcompose.plan.account import Progress, require_common_adjacency
from dpcompose.plan.plan import Plan
from dpcompose.values import Bound

PRIOR, FALSE_POSITIVE_RATE = 0.5, 1e-3
DECADES, STEPS = 6, 4
"""False positive rates are drawn from 10^-6 to 1, four a decade."""
TOLERANCE = 1e-6


@dataclass(frozen=True)
class PlanRisk:
    """The largest success of an attacker, as numbers and as a curve.

    Args:
        risk: At even odds, and at a false positive rate of 1 in 1,000.
        rates: False positive rates, increasing.
        powers: The largest true positive rate at each of them.
    """

    risk: Risk
    rates: tuple[float, ...]
    powers: tuple[Bound, ...]

    def power(self, rate: float) -> Bound:
        """The largest true positive rate at one of the rates; DomainError at any other."""
        if check.real("rate", rate) not in self.rates:
            raise DomainError(
                "rate", rate, "one of the rates of this risk", "Profile.power answers at any other"
            )
        return self.powers[self.rates.index(rate)]


def risk_of(plan: Plan, *, progress: Progress | None = None) -> PlanRisk:
    """The best that an attacker can do who sees every answer and knows all but one person's data.

    Args:
        plan: The plan.
        progress: Called before each step.

    Raises:
        UnsupportedError: If some mechanisms have no sound guarantee under the plan's adjacency; it lists them.
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
