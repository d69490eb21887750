"""dp-accounting's Renyi accountant, default orders."""

# The package is in the environment of the peers only.
# pyright: reportMissingImports=false

from __future__ import annotations

import math

import dp_accounting
from dp_accounting.rdp import RdpAccountant

from benchmarks.case import Answer, Case, NotOfferedError, Part

PACKAGE = "dp-accounting"
RELATIONS = dp_accounting.NeighboringRelation


def solve(case: Case) -> Answer:
    """Its epsilon, or the sigma that its own calibration finds with it."""
    if case.target is not None:
        return _calibrated(case)
    # It takes randomized response under replacement alone, whose pair is the same.
    coins = {part.kind for part in case.parts} == {"randomized-response"}
    relation = RELATIONS.REPLACE_ONE if coins else RELATIONS.ADD_OR_REMOVE_ONE
    accountant = RdpAccountant(neighboring_relation=relation)
    for part in case.parts:
        accountant.compose(_event(part, part.parameter), part.times)
    return Answer(accountant.get_epsilon(case.delta))


def _event(part: Part, parameter: float) -> dp_accounting.DpEvent:
    if part.kind == "gaussian":
        plain = dp_accounting.GaussianDpEvent(parameter)
        return dp_accounting.PoissonSampledDpEvent(part.rate, plain) if part.rate < 1 else plain
    if part.kind == "laplace":
        return dp_accounting.LaplaceDpEvent(parameter)
    if part.kind == "randomized-response":
        return dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(parameter)), 2)
    raise NotOfferedError(part.kind)


def _calibrated(case: Case) -> Answer:
    (part,) = case.parts

    def event(sigma: float) -> dp_accounting.DpEvent:
        return dp_accounting.SelfComposedDpEvent(_event(part, sigma), part.times)

    bracket = dp_accounting.LowerEndpointAndGuess(0.3, 1.0)
    return Answer(
        dp_accounting.calibrate_dp_mechanism(RdpAccountant, event, case.target, case.delta, bracket)
    )
