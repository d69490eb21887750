"""dp-accounting's privacy loss distributions, composed as its PLDAccountant does, which takes no promises."""

# The package is in the environment of the peers only.
# pyright: reportMissingImports=false

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

import dp_accounting
from dp_accounting.pld import common, privacy_loss_distribution

from benchmarks.case import Answer, Case, Part

PACKAGE = "dp-accounting"
Distribution: TypeAlias = privacy_loss_distribution.PrivacyLossDistribution


def solver(interval: float) -> Callable[[Case], Answer]:
    """`solve` at that grid."""
    return lambda case: (
        _calibrated(case, interval) if case.target is not None else _composed(case, interval)
    )


def _composed(case: Case, interval: float) -> Answer:
    total = reduce(Distribution.compose, (_distribution(part, interval) for part in case.parts))
    return Answer(total.get_epsilon_for_delta(case.delta))


def _distribution(part: Part, interval: float) -> Distribution:
    if part.kind == "gaussian" and part.rate == 1:
        # Its accountant merges equal Gaussians, which is faster and tighter than composing them.
        sigma = part.parameter / math.sqrt(part.times)
        return privacy_loss_distribution.from_gaussian_mechanism(
            sigma, value_discretization_interval=interval
        )
    single = KINDS[part.kind](part, interval)
    return single.self_compose(part.times) if part.times > 1 else single


def _sampled_gaussian(part: Part, interval: float) -> Distribution:
    return privacy_loss_distribution.from_gaussian_mechanism(
        part.parameter, value_discretization_interval=interval, sampling_prob=part.rate
    )


def _laplace(part: Part, interval: float) -> Distribution:
    return privacy_loss_distribution.from_laplace_mechanism(
        part.parameter, value_discretization_interval=interval
    )


def _promise(part: Part, interval: float) -> Distribution:
    promised = common.DifferentialPrivacyParameters(part.parameter, 0.0)
    return privacy_loss_distribution.from_privacy_parameters(
        promised, value_discretization_interval=interval
    )


def _coin(part: Part, interval: float) -> Distribution:
    noise = 2 / (1 + math.exp(part.parameter))
    return privacy_loss_distribution.from_randomized_response(
        noise, 2, value_discretization_interval=interval
    )


KINDS = {
    "gaussian": _sampled_gaussian,
    "laplace": _laplace,
    "black-box": _promise,
    "randomized-response": _coin,
}


def _calibrated(case: Case, interval: float) -> Answer:
    (part,) = case.parts

    def event(sigma: float) -> dp_accounting.DpEvent:
        step = dp_accounting.PoissonSampledDpEvent(part.rate, dp_accounting.GaussianDpEvent(sigma))
        return dp_accounting.SelfComposedDpEvent(step, part.times)

    def accountant() -> dp_accounting.pld.PLDAccountant:
        return dp_accounting.pld.PLDAccountant(value_discretization_interval=interval)

    bracket = dp_accounting.LowerEndpointAndGuess(0.3, 1.0)
    return Answer(
        dp_accounting.calibrate_dp_mechanism(accountant, event, case.target, case.delta, bracket)
    )
