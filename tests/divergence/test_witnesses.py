"""Lemmas 3.17 and 3.18: the witnesses are checked independently of the code that computes them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from dpcompose.divergence import (
    extreme_pair,
    hockey_stick,
    kl,
    max_divergence,
    max_ratio,
    one_sided_witness,
    symmetric_witness,
    total_variation,
)
from dpcompose.errors import DomainError, UnsupportedError

SEED = 20261121
PAIRS = 1000
Masses = list[Fraction]


def random_pair(rng: random.Random) -> tuple[Masses, Masses, Fraction]:
    size = rng.randint(1, 8)
    # Small weights, so that ties, zeros and ratios of exactly a occur.
    first, second = ([rng.randint(0, rng.choice([3, 1000])) for _ in range(size)] for _ in range(2))
    first[rng.randrange(size)] += 1
    second[rng.randrange(size)] += 1
    a = rng.choice(
        [Fraction(1), Fraction(2), 1 + Fraction(rng.randint(1, 500), rng.randint(1, 100))]
    )
    return [Fraction(w, sum(first)) for w in first], [Fraction(w, sum(second)) for w in second], a


def apart(left: Masses, right: Masses) -> Fraction:
    return sum((abs(p - q) for p, q in zip(left, right, strict=True)), Fraction(0)) / 2


def covers(cover: Masses, covered: Masses, a: Fraction) -> bool:
    return all(p <= a * q for p, q in zip(covered, cover, strict=True))


def excess(y: Masses, z: Masses, a: Fraction) -> Fraction:
    return sum((max(p - a * q, Fraction(0)) for p, q in zip(y, z, strict=True)), Fraction(0))


def is_distribution(masses: Masses) -> bool:
    return sum(masses) == 1 and min(masses) >= 0


def test_part_1_is_attained_exactly_on_random_pairs() -> None:
    rng = random.Random(SEED)
    moved = 0
    for _ in range(PAIRS):
        y, z, a = random_pair(rng)
        witness = one_sided_witness(y, z, ratio=a)
        nearby = [witness.nearby[x] for x in range(len(y))]
        assert is_distribution(nearby)
        assert covers(z, nearby, a)
        assert (
            apart(y, nearby)
            == witness.distance
            == excess(y, z, a)
            == hockey_stick(y, z, ratio=a).value
        )
        assert witness.check()
        moved += nearby != y
    assert moved > PAIRS / 4


def test_part_2_is_attained_exactly_on_random_pairs() -> None:
    rng = random.Random(SEED + 1)
    moved = 0
    for _ in range(PAIRS):
        y, z, a = random_pair(rng)
        witness = symmetric_witness(y, z, ratio=a)
        near_y = [witness.nearby_first[x] for x in range(len(y))]
        near_z = [witness.nearby_second[x] for x in range(len(y))]
        assert is_distribution(near_y)
        assert is_distribution(near_z)
        assert covers(near_z, near_y, a)
        assert covers(near_y, near_z, a)
        distance = max(excess(y, z, a), excess(z, y, a)) / (1 + a)
        assert apart(y, near_y) == apart(z, near_z) == witness.distance == distance
        assert witness.check()
        moved += near_y != y
    assert moved > PAIRS / 4


def test_no_witness_is_nearer() -> None:
    """Linear programming over all pairs Y', Z' finds the same distances (20 pairs)."""
    rng = random.Random(SEED + 2)
    for _ in range(20):
        y, z, a = random_pair(rng)
        assert least_distance(y, z, a, both=False) == pytest.approx(
            float(one_sided_witness(y, z, ratio=a).distance)
        )
        assert least_distance(y, z, a, both=True) == pytest.approx(
            float(symmetric_witness(y, z, ratio=a).distance)
        )


def least_distance(y: Masses, z: Masses, a: Fraction, *, both: bool) -> float:
    """The least t with Delta(Y, Y') <= t, and Delta(Z, Z') <= t if `both`, else Z' = Z; variables Y', Z', u, v, t."""
    n = len(y)
    one, zero = np.eye(n), np.zeros((n, n))
    free, none, total = np.zeros((n, 1)), np.zeros((1, n)), np.ones((1, n))
    rows = [
        np.hstack([one, -float(a) * one, zero, zero, free]),  # Y' <= a Z'
        np.hstack([-one, zero, -one, zero, free]),  # Y - Y' <= u
        np.hstack([zero, -one, zero, -one, free]),  # Z - Z' <= v
        np.hstack([none, none, total, none, [[-1]]]),  # sum u <= t
        np.hstack([none, none, none, total, [[-1]]]),
    ]
    floats = np.array(y, dtype=float), np.array(z, dtype=float)
    limits = [np.zeros(n), -floats[0], -floats[1], np.zeros(1), np.zeros(1)]
    if both:
        rows.append(np.hstack([-float(a) * one, one, zero, zero, free]))
        limits.append(np.zeros(n))
    sums = np.vstack(
        [np.hstack([total, none, none, none, [[0]]]), np.hstack([none, total, none, none, [[0]]])]
    )
    fixed = (
        [(0, 1)] * n
        + ([(0, 1)] * n if both else [(q, q) for q in floats[1]])
        + [(0, 1)] * (2 * n + 1)
    )
    cost = np.zeros(4 * n + 1)
    cost[-1] = 1
    found = linprog(
        cost, A_ub=np.vstack(rows), b_ub=np.hstack(limits), A_eq=sums, b_eq=[1, 1], bounds=fixed
    )
    assert found.fun is not None
    return float(found.fun)


@pytest.mark.parametrize("a", [Fraction(2), Fraction(11, 10), Fraction(50)])
def test_part_2_read_as_printed_is_false(a: Fraction) -> None:
    """Y' = Y and Z' = Z satisfy the printed right-hand side at distance 0; the left-hand side fails below 1 - 1/a."""
    y, z = [Fraction(1), Fraction(0)], [1 / a, 1 - 1 / a]
    assert max_ratio(y, z) == a
    delta = (1 - 1 / a) * Fraction(999, 1000)
    assert max_ratio(y, z, delta=delta) <= a
    assert max_ratio(z, y, delta=delta) == math.inf
    assert symmetric_witness(y, z, ratio=a).distance == (1 - 1 / a) / (1 + a) > 0


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-20, 0.1, 0.5, 3.0, 40.0])
def test_witnesses_at_an_epsilon_hold_at_that_epsilon(epsilon: float) -> None:
    y, z = (
        [Fraction(7, 10), Fraction(2, 10), Fraction(1, 10)],
        [Fraction(3, 10), Fraction(3, 10), Fraction(4, 10)],
    )
    one, both = one_sided_witness(y, z, epsilon=epsilon), symmetric_witness(y, z, epsilon=epsilon)
    assert one.check()
    assert both.check()
    # The ratio a is rational, at most e^epsilon: the bound on ln a may straddle epsilon by a float.
    for near, cover in (
        (one.nearby, one.second),
        (both.nearby_first, both.nearby_second),
        (both.nearby_second, both.nearby_first),
    ):
        assert max_divergence(near, cover).lower <= epsilon
        assert max_ratio(near, cover) <= one.ratio
    exact = hockey_stick(y, z, epsilon=epsilon)
    assert exact.lower <= float(one.distance) <= math.nextafter(exact.upper, 1)


def test_floats_are_taken_as_they_are() -> None:
    y, z = [0.7, 0.2, 0.1], [0.3, 0.3, 0.4]
    one, both = one_sided_witness(y, z, ratio=1.5), symmetric_witness(y, z, ratio=1.5)
    assert one.check()
    assert both.check()
    assert one.nearby.total == sum(Fraction(mass) for mass in y) != 1
    assert total_variation(one.nearby, y).value == one.distance


def test_floats_of_unequal_sums_leave_no_room_at_ratio_1() -> None:
    with pytest.raises(UnsupportedError, match="Fractions"):
        one_sided_witness([0.5, 0.5], [0.5 - 2**-54, 0.5], ratio=1)
    with pytest.raises(UnsupportedError, match="Fractions"):
        symmetric_witness([0.5, 0.5], [0.5 - 2**-54, 0.5], ratio=1)


@pytest.mark.parametrize("call", [one_sided_witness, symmetric_witness])
def test_below_0_there_is_no_witness(call: object) -> None:
    for keyword in ({"epsilon": -1e-300}, {"ratio": Fraction(999, 1000)}):
        with pytest.raises(DomainError, match=next(iter(keyword))):
            call([1], [1], **keyword)  # type: ignore[operator]


def test_a_wrong_witness_does_not_check() -> None:
    y, z = [Fraction(1), Fraction(0)], [Fraction(1, 4), Fraction(3, 4)]
    one, both = one_sided_witness(y, z, ratio=2), symmetric_witness(y, z, ratio=2)
    assert not replace(one, nearby=one.first).check()
    assert not replace(one, distance=one.distance / 2).check()
    assert not replace(one, nearby=one.second).check()
    assert not replace(both, nearby_first=both.first).check()
    assert not replace(both, distance=2 * both.distance).check()
    assert not replace(both, nearby_first=both.nearby_second).check()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_extreme_pair_attains_the_tight_form_of_lemma_3_18(epsilon: float) -> None:
    y, z = extreme_pair(epsilon=epsilon)
    assert max_divergence(y, z).lower <= epsilon
    assert kl(y, z).upper == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-15)
    assert kl(y, z).upper == pytest.approx(kl(z, y).upper)


@pytest.mark.slow
def test_no_pair_within_epsilon_exceeds_it() -> None:
    """1,000 random pairs, scaled to be within epsilon by part 2 of Lemma 3.17."""
    rng = random.Random(SEED + 3)
    for _ in range(PAIRS):
        y, z, a = random_pair(rng)
        witness = symmetric_witness(y, z, ratio=a)
        epsilon = math.log(a)
        assert kl(witness.nearby_first, witness.nearby_second).lower <= epsilon * math.tanh(
            epsilon / 2
        ) * (1 + 1e-14)
