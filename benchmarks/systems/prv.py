"""Microsoft's accountant, at the errors of its own examples: 0.01 in epsilon, a thousandth of delta."""

# The package is in the environment of the peers only.
# pyright: reportMissingImports=false

from __future__ import annotations

from prv_accountant import PRVAccountant, privacy_random_variables as variables

from benchmarks.case import Answer, Case, NotOfferedError, Part

PACKAGE = "prv-accountant"


def solve(case: Case) -> Answer:
    """The ends that it calls bounds."""
    if case.target is not None:
        raise NotOfferedError("calibration")
    counts = [part.times for part in case.parts]
    errors = {"eps_error": 0.01, "delta_error": case.delta / 1000}
    accountant = PRVAccountant(
        [_variable(part) for part in case.parts], max_self_compositions=counts, **errors
    )
    lower, _, upper = accountant.compute_epsilon(case.delta, counts)
    return Answer(float(upper), float(lower))


def _variable(part: Part) -> variables.PrivacyRandomVariable:
    if part.kind == "laplace":
        return variables.LaplaceMechanism(1 / part.parameter)
    if part.kind != "gaussian":
        return variables.PureDPMechanism(part.parameter)
    if part.rate == 1:
        return variables.GaussianMechanism(part.parameter)
    return variables.PoissonSubsampledGaussianMechanism(part.rate, part.parameter)
