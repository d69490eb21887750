"""Inputs on which other privacy accountants return wrong numbers: here the bounds contain the right
one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpcompose import Adjacency, BlackBox, Bound, Exponential, Gaussian, Laplace, RandomizedResponse

DEFECTS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "peer_defects.json").read_text()
)
REPLACE = Adjacency.REPLACE

# The call that names the defect, and how the same question is put here.
ASKED: dict[str, Callable[[], Bound]] = {
    # Half of the answers are random over both categories: the truth has odds of 3.
    "RandomizedResponseDpEvent(0.5,2),10": lambda: (
        RandomizedResponse(math.log(3), holds_under=REPLACE) * 10
    ).epsilon(delta=1e-6, adjacency=REPLACE),
    "from_gaussian_mechanism(100.).self_compose(10**6)": lambda: (Gaussian(100.0) * 10**6).epsilon(
        delta=1e-10
    ),
    "from_gaussian_mechanism(1000.).self_compose(10**6)": lambda: (
        Gaussian(1000.0) * 10**6
    ).epsilon(delta=1e-11),
    "from_gaussian_mechanism(100.).self_compose(10**4)": lambda: (Gaussian(100.0) * 10**4).delta(
        epsilon=8.5
    ),
    "PureDPMechanism(1.0),eps_error=0.1": lambda: (BlackBox(1.0) * 1000).epsilon(delta=1e-6),
    "PureDPMechanism(1.0), k=100": lambda: (BlackBox(1.0) * 100).epsilon(delta=1e-6),
    "PureDPMechanism(2.0), k=50": lambda: (BlackBox(2.0) * 50).epsilon(delta=1e-6),
    "get_epsilon_S(1e-6,sigma=2,q=.01,ncomp=1e5": lambda: (
        Gaussian(2.0).sampled(0.01) * 100_000
    ).epsilon(delta=1e-6, adjacency=REPLACE),
    "advanced_composition(DifferentialPrivacyParameters(0.1,1e-8),1000": lambda: (
        BlackBox(0.1, delta=1e-8) * 1000
    ).epsilon(delta=1e-5),
    "ExponentialMechanismDpEvent(1.0),1000": lambda: (Exponential(1.0) * 1000).epsilon(delta=1e-6),
    "5x GaussianDpEvent(3.0), REPLACE_ONE": lambda: (Gaussian(3.0) * 5).epsilon(
        delta=1e-5, adjacency=REPLACE
    ),
    "ComposeAFA": lambda: (Laplace(100.0) * 1000).epsilon(delta=1e-6),
}
# A budget of decimals is the ledger's business, not a composition's.
LEDGER = "BudgetAccountant"


def defect(call: str) -> dict[str, Any]:
    (found,) = [each for each in DEFECTS if call in each["repro"]]
    return found


def test_every_defect_is_asked() -> None:
    left = [
        each["repro"]
        for each in DEFECTS
        if not any(call in each["repro"] for call in (*ASKED, LEDGER))
    ]
    assert not left


# What the table calls correct is itself computed. Grid steps of 1e-4, rounded up ten times; and eight digits of an
# integral, of which oracles says 19.5138704614. All others are good to their last digits.
ROUNDED_UP = {"RandomizedResponseDpEvent(0.5,2),10": 1e-3}
INEXACT = {"get_epsilon_S(1e-6,sigma=2,q=.01,ncomp=1e5": 1e-8}
# The value of a theorem of Renyi divergences: an upper bound, which the curve of the exponential mechanism is below.
THEOREM = "ExponentialMechanismDpEvent(1.0),1000"


@pytest.mark.parametrize(
    "call", [call for call in ASKED if not isinstance(defect(call)["correct"], str)]
)
def test_the_right_value_is_inside_and_the_wrong_one_is_not(call: str) -> None:
    bound, row = ASKED[call](), defect(call)
    correct, above = row["correct"], ROUNDED_UP.get(call, 0.0)
    slack = (
        INEXACT.get(
            call, max(1e-14, 10.0 ** (1 - len(f"{correct!r}".split("e")[0].replace(".", ""))))
        )
        * correct
    )
    if call == THEOREM:
        assert bound.lower < bound.upper < correct
        return
    assert bound.lower - slack <= correct <= bound.upper + slack + above
    assert bound.width <= 1e-6 * correct
    wrong = row["got"] if isinstance(row["got"], list) else [row["got"]]
    assert not any(bound.contains(value) for value in wrong if isinstance(value, float))


def test_theorems_come_close_to_the_exact_renyi_curve_of_bounded_range() -> None:
    """That figure takes the supremum over the shapes at each order; ours, epsilon^2 / 8, is within a percent."""
    rows = (Exponential(1.0) * 1000).compare(delta=1e-6)
    assert (
        min(row.epsilon for row in rows if row.kind != "estimate")
        <= defect(THEOREM)["correct"] * 1.01
    )


def test_the_sensitivity_of_replacing_is_doubled() -> None:
    bound, row = (
        ASKED["5x GaussianDpEvent(3.0), REPLACE_ONE"](),
        defect("5x GaussianDpEvent(3.0), REPLACE_ONE"),
    )
    assert row["correct"].startswith(">= 6.99922")
    assert bound.lower == pytest.approx(6.99922, abs=5e-5) and bound.lower > 2 * row["got"]
    # The one number that the peer takes for both adjacencies.
    assert (Gaussian(3.0) * 5).epsilon(delta=1e-5).upper < row["got"] + 1


def test_laplace_noise_stays_below_its_renyi_bound() -> None:
    bound, row = ASKED["ComposeAFA"](), defect("ComposeAFA")
    assert row["correct"].startswith("<= 1.4658")
    assert 0 < bound.lower <= bound.upper <= 1.4658 < row["got"]
