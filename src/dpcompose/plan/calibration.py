"""The value of one parameter of a plan for which the plan keeps to a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcompose.composition import ATTACKS, Calibration, Composition, calibrate as calibrated
from dpcompose.errors import DomainError, UnreachableError
from dpcompose.plan.account import require_common_adjacency
from dpcompose.plan.plan import Plan
from dpcompose.plan.schema import MECHANISMS


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
