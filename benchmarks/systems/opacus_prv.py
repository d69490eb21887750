"""Opacus with the accountant that its engine uses by default. Importing it needs torch."""

# The package is in the environment of the peers only.
# pyright: reportMissingImports=false

from __future__ import annotations

from opacus.accountants import PRVAccountant
from opacus.accountants.utils import get_noise_multiplier

from benchmarks.case import Answer, Case, NotOfferedError

PACKAGE = "opacus"


def solve(case: Case) -> Answer:
    """Its epsilon, or the sigma that its own search finds."""
    if any(part.kind != "gaussian" for part in case.parts):
        raise NotOfferedError("only Gaussian noise")
    if case.target is not None:
        (part,) = case.parts
        asked = {
            "target_epsilon": case.target,
            "target_delta": case.delta,
            "sample_rate": part.rate,
            "steps": part.times,
        }
        return Answer(get_noise_multiplier(accountant="prv", **asked))
    accountant = PRVAccountant()
    accountant.history = [(part.parameter, part.rate, part.times) for part in case.parts]
    return Answer(float(accountant.get_epsilon(case.delta)))
