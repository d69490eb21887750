"""A pair that may have either order when a record is replaced: for one run the truth is the larger
of both orders.
"""

import math
import warnings
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from dpcompose import Adjacency
from dpcompose.mechanisms import DominatingPair

REPLACE = Adjacency.REPLACE
PAIRS = [
    ([1.0, 2.9083654433504594e-82], [1.0, 5.2856204328989575e-84]),
    ([1 - 2.0**-50, 2.0**-50], [1 - 2.0**-52, 2.0**-52]),
    ([1.0, 8.510000242573986e-304], [1.544035188996217e-124, 1.0]),
    ([0.9786947949654898, 0.0213052050345102], [0.940744372546513, 0.05925562745348701]),
    ([0.0, 1.0], [0.0, 1.0]),
]


def _ball(number):
    return arb(fmpq(*Fraction(number).as_integer_ratio()))


def _delta(upper, lower, epsilon):
    """The larger of both orders."""
    ctx.prec = 2000
    a, rows = (
        _ball(epsilon).exp(),
        [(_ball(p), _ball(q)) for p, q in zip(upper, lower, strict=True)],
    )
    sums = [
        sum((max(p - a * q, arb(0)) for p, q in each), arb(0))
        for each in (rows, [(q, p) for p, q in rows])
    ]
    return max(sums)


@pytest.mark.parametrize("masses", PAIRS)
def test_both_ends_hold_the_truth_of_one_pair(masses):
    upper, lower = masses
    pair = DominatingPair.atoms(upper=upper, lower=lower, adjacency=REPLACE)
    for epsilon in (0.0, 0.2, 0.69, 3.69, 285.0, 697.8446262991):
        answer, truth = (
            pair.delta(epsilon=epsilon, adjacency=REPLACE),
            _delta(upper, lower, epsilon),
        )
        assert answer.lower <= truth <= answer.upper
    for delta in (0.3, 1e-13, 1e-83, 1e-165):
        answer = pair.epsilon(delta=delta, adjacency=REPLACE)
        assert answer.upper < math.inf
        assert _delta(upper, lower, answer.upper) <= delta
        assert answer.lower == 0 or _delta(upper, lower, math.nextafter(answer.lower, 0)) >= delta


def test_finite_losses_beyond_the_envelope_are_finite_when_composed():
    pair = DominatingPair.atoms(
        upper=[1.0, 2.988313969479536e-306], lower=[1e-19, 1.0], adjacency=REPLACE
    )
    assert (pair * 5).epsilon(delta=0.5, adjacency=REPLACE).upper <= 3518


def test_what_is_lost_either_way_warns_of_nothing():
    pairs = [([0.0, 1.0], [1.0, 3e-123]), ([0.25, 0.75], [1.0, 0.0])]
    total = sum(
        (
            DominatingPair.atoms(upper=p, lower=q, adjacency=Adjacency.ADD_REMOVE) * 2
            for p, q in pairs[1:]
        ),
        DominatingPair.atoms(upper=pairs[0][0], lower=pairs[0][1], adjacency=Adjacency.ADD_REMOVE)
        * 2,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert total.delta(epsilon=1.0).upper <= 1


def test_the_smallest_rates_are_converted():
    rate = 2.9602237646874004e-151
    pair = DominatingPair.atoms(
        upper=[0.75, 0.25, 0.0], lower=[0.25, 0.5, 0.25], adjacency=Adjacency.ADD_REMOVE
    )
    assert (pair.sampled(rate) * 3).epsilon(delta=1e-155).upper < 1e-149


def test_a_profile_with_an_error_has_a_lower_end_below_it():
    def profile(epsilon):
        return max(1 - math.exp(min(epsilon, 1.0) / 2 - 0.5), 1 - math.exp(min(epsilon, 0.0)), 0.0)

    loose = DominatingPair.from_profile(profile, error=1e-3, adjacency=REPLACE).delta(
        epsilon=0.5, adjacency=REPLACE
    )
    assert loose.lower <= profile(0.5) <= loose.upper
