"""Adaptive choice among several mechanisms costs at least as much as each of them, and as every
fixed choice.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    Gaussian,
    Laplace,
    Orientation,
    RandomizedResponse,
    compose,
)
from dpcompose.composition import one_of
from dpcompose.errors import DomainError, UnsupportedError

EPSILONS = np.array([-1.0, -0.2, 0.0, 0.1, 0.3, 0.7, 1.0, 2.0, 4.0])


@pytest.mark.parametrize("times", [1, 3])
def test_every_fixed_choice_is_below(times: int) -> None:
    options = (Laplace(1.0), Gaussian(1.2), RandomizedResponse(0.9))
    bound = (one_of(*options) * times).profile()(EPSILONS)
    for option in options:
        assert np.all((option * times).profile()(EPSILONS).lower <= bound.upper)
    if times == 3:
        assert np.all(compose(*options).profile()(EPSILONS).lower <= bound.upper)


def test_one_round_costs_what_its_worst_option_does() -> None:
    options = (Laplace(1.0), Gaussian(1.2))
    bound = one_of(*options).profile()(EPSILONS)
    worst = np.max([option.profile()(EPSILONS).upper for option in options], axis=0)
    assert np.all(bound.upper >= worst * (1 - 1e-12))
    assert np.all(bound.upper <= worst * (1 + 1e-3) + 1e-12)
    assert np.all(bound.lower <= worst)
    assert np.allclose(bound.lower, worst, rtol=1e-3, atol=1e-9)


def test_what_is_dominated_does_not_count() -> None:
    both, one = one_of(Laplace(1.0), RandomizedResponse(1.0)) * 5, RandomizedResponse(1.0) * 5
    for epsilon in EPSILONS:
        bound, truth = both.delta(epsilon=float(epsilon)), one.delta(epsilon=float(epsilon))
        assert truth.lower <= bound.upper <= truth.upper * (1 + 1e-9) + 1e-12
        assert bound.lower == pytest.approx(truth.lower, rel=1e-9, abs=1e-12)


def test_crossing_options_are_worse_than_either() -> None:
    """The counter-example of the natural filter: its family, and what it reaches."""
    family = (RandomizedResponse(0.611490968801848951918), BlackBox(0.0, delta=0.05))
    path = compose(RandomizedResponse(1.0), one_of(*family))
    assert path.delta(epsilon=1.5).upper >= 0.0634470710684997560374
    for option in family:
        assert compose(RandomizedResponse(1.0), option).delta(epsilon=1.5).upper < 0.0501


def test_directions_are_kept_apart() -> None:
    sampled = (Gaussian(1.0).sampled(0.1), RandomizedResponse(1.0).sampled(0.1))
    asked = one_of(*sampled) * 2
    same, free = asked.delta(epsilon=0.2), asked.delta(epsilon=0.2, orientation=Orientation.FREE)
    assert same.upper <= free.upper * (1 + 1e-6)
    for option in sampled:
        assert (option * 2).delta(epsilon=0.2).lower <= same.upper
        assert (option * 2).delta(epsilon=0.2, orientation=Orientation.FREE).lower <= free.upper


def test_it_is_a_part_like_any_other() -> None:
    choice = one_of(Laplace(1.0), Gaussian(1.0))
    assert choice == one_of(Gaussian(1.0), Laplace(1.0), Laplace(1.0))
    assert hash(choice) == hash(one_of(Gaussian(1.0), Laplace(1.0)))
    assert repr(choice) == "one_of(Gaussian(1.0), Laplace(1.0))"
    assert one_of(Laplace(1.0)) == compose(Laplace(1.0))
    assert (choice + choice) == choice * 2
    assert one_of(Laplace(1.0), RandomizedResponse(0.5)).pure() == pytest.approx(1.0)
    assert math.isfinite((choice * 3).epsilon(delta=1e-6).upper)


def test_what_cannot_be_chosen_is_refused() -> None:
    with pytest.raises(DomainError, match="at least one"):
        one_of()
    with pytest.raises(DomainError, match="single mechanism"):
        one_of(Laplace(1.0) * 2, Gaussian(1.0))
    with pytest.raises(UnsupportedError, match="one privacy loss"):
        one_of(Laplace(1.0), Concentrated(0.1)).delta(epsilon=1.0)
    with pytest.raises(UnsupportedError, match="Sample the options"):
        one_of(Laplace(1.0), Gaussian(1.0)).sampled(0.1).delta(epsilon=1.0)
    with pytest.raises(UnsupportedError):
        one_of(Laplace(1.0), BlackBox(1.0)).delta(epsilon=1.0, adjacency=Adjacency.ZERO_OUT)
