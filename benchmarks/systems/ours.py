"""dpcompose: both directions, default tolerance."""

from __future__ import annotations

from benchmarks.case import Answer, Case, Part
from dpcompose import (
    BlackBox,
    Composition,
    Gaussian,
    Laplace,
    RandomizedResponse,
    calibrate,
    compose,
)

PACKAGE = "dpcompose"
KINDS = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "black-box": BlackBox,
    "randomized-response": RandomizedResponse,
}
STEPS = (1e-10, 2e-10, 5e-10, 1e-9, 1e-8, 1e-6, 1e-3)
"""How far below a calibrated sigma, relatively, `confirmed` looks for one that is too small."""


def solve(case: Case) -> Answer:
    """The certified interval of epsilon, or of the calibrated sigma."""
    if case.target is not None:
        return _calibrated(case, case.target)
    bound = compose(*(_composed(part) for part in case.parts)).epsilon(delta=case.delta)
    return Answer(bound.upper, bound.lower, bound.certificate.method)


def _composed(part: Part, parameter: float | None = None) -> Composition:
    mechanism = KINDS[part.kind](part.parameter if parameter is None else parameter)
    return (mechanism.sampled(part.rate) if part.rate < 1 else mechanism) * part.times


def _calibrated(case: Case, target: float) -> Answer:
    (part,) = case.parts
    found = calibrate(lambda sigma: _composed(part, sigma), epsilon=target, delta=case.delta)
    return Answer(found.value, method=found.bound.certificate.method)


def confirmed(case: Case, answer: Answer) -> Answer:
    """A calibrated sigma with its lower end: the nearest one tried that provably misses the target. Not timed."""
    if case.target is None:
        return answer
    (part,) = case.parts
    for distance in STEPS:
        smaller = answer.upper * (1 - distance)
        if _composed(part, smaller).epsilon(delta=case.delta).lower > case.target:
            return Answer(answer.upper, smaller, answer.method)
    return answer
