"""A sampled Gaussian with a record replaced: its closed profile where e^epsilon or delta is hardly a float."""

from __future__ import annotations

import pytest

from dpcompose import Adjacency, Gaussian

CASES = [
    (0.02, 0.5, 701.0),
    (0.02, 0.5, 720.0),
    (0.02, 0.5, 2000.0),
    (1.6980893567526403, 0.0006070926630512049, 14.734891964857013),
    (0.3, 0.01, 30.0),
]


@pytest.mark.parametrize(("sigma", "rate", "epsilon"), CASES)
def test_the_profile_holds_what_is_proved(sigma: float, rate: float, epsilon: float) -> None:
    step = Gaussian(sigma).sampled(rate)
    found = step.delta(epsilon=epsilon, adjacency=Adjacency.REPLACE)
    proved = step.delta(epsilon=epsilon, adjacency=Adjacency.REPLACE, proof=True)
    assert found.lower <= proved.lower <= proved.upper <= found.upper
    assert found.upper - found.lower <= 1e-9 * found.upper
