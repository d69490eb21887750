"""Where the deltas of the parts add up to the one that is asked, basic composition has an epsilon."""

from __future__ import annotations

import math

import pytest

from dpcompose import BlackBox, Composition, Laplace, RandomizedResponse, parallel


@pytest.mark.parametrize("delta", [1e-12, 1e-7, 1e-6, 3e-6, 1e-5, 0.1])
def test_they_are_added_without_rounding(delta: float) -> None:
    """Some of these are above their decimals as doubles, and some below."""
    one = BlackBox(0.3, delta=delta)
    cases: list[tuple[Composition, float, float]] = [
        (Laplace(20.0) * 10 + one, delta, 0.8),
        (one + BlackBox(0.0), delta, 0.3),
        (one + BlackBox(0.5, delta=2 * delta) + BlackBox(0.1), delta + 2 * delta, 0.9),
    ]
    for composed, asked, most in cases:
        if asked < delta + 2 * delta or composed.count < 3:
            found = composed.epsilon(delta=asked)
            assert most * 0.3 < found.lower <= found.upper <= most * (1 + 1e-15)
    assert parallel(one, Laplace(20.0)).epsilon(delta=delta).upper == 0.3
    assert (one + Laplace(20.0)).epsilon(delta=delta * (1 - 1e-15)).upper == float("inf")


def test_parts_that_lose_mass_and_nothing_else() -> None:
    """The sum of no finite losses has a curve, and a lattice far finer than the question is not followed."""
    lost = BlackBox(0.0, delta=0.3) * 3 + RandomizedResponse(30.0) + BlackBox(0.1)
    found = lost.epsilon(delta=0.657)
    assert 30 < found.lower <= found.upper
    for epsilon in (1e-6, 1e-9):
        fine = (BlackBox(0.0, delta=1e-6) * 4 + BlackBox(epsilon)).delta(epsilon=-1.0)
        least = -math.expm1(-1.0)
        assert least < fine.lower <= fine.upper < least + 4e-6
