"""Bounds on |M| of Laplace sums, in single precision and over stretches: every one against ball arithmetic."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from flint import acb, arb, ctx

from dpcompose.contour.quadrature import NEGLIGIBLE
from dpcompose.loss.laplace_sum import LaplaceSum
from dpcompose.numerics.elementary import Reals


def log_modulus(epsilon: float, order: float, u: float) -> float:
    """log |M(order + iu) / M(order)| of one loss, rounded down a little."""
    with ctx.workprec(160):
        exact, line = arb(epsilon), acb(arb(order), arb(u))
        moments = [
            ((t + 1) * (t * exact).exp() + t * (-(t + 1) * exact).exp()) / (2 * t + 1)
            for t in (line, arb(order))
        ]
        ratio = arb(abs(moments[0])) / arb(abs(moments[1]))
        return float(ratio.log().lower()) - 1e-15 if ratio > 0 else -math.inf


def truth(transform: LaplaceSum, order: float, u: float) -> float:
    rows = zip(transform.epsilon.ravel(), transform.times.ravel(), strict=True)
    return math.fsum(times * log_modulus(float(epsilon), order, u) for epsilon, times in rows) * (
        1 + 1e-15
    )


def drawn(rng: Random, rows: int, *, alike: bool, spread: float) -> LaplaceSum:
    size = 10 ** rng.uniform(-2.5, 0.5)
    epsilon = np.array([size * math.exp(rng.uniform(-spread, spread)) for _ in range(rows)])
    times = np.array([1.0 if alike else float(rng.choice([1, 2, 7])) for _ in range(rows)])
    return LaplaceSum(epsilon[:, None], times[:, None])


def nodes(rng: Random, transform: LaplaceSum, count: int) -> Reals:
    """Increasing frequencies, some of them where a row or all rows are nearly as loud as at 0, or nearly silent."""
    size = float(transform.epsilon.mean())
    found = [10 ** rng.uniform(-1.0, 5.0) / size for _ in range(count // 2)]
    row = float(transform.epsilon[0, 0])
    found += [
        math.pi / 2 / row * rng.randint(1, 400) * (1 + rng.uniform(-1e-4, 1e-4))
        for _ in range(count - count // 2)
    ]
    return np.array([0.0, *sorted(found)])


@pytest.mark.parametrize("seed", range(24))
def test_bounds_of_few_rows_are_above_the_truth(seed: int) -> None:
    """All rows are in one of the bounds or another, none twice: their sum bounds the whole."""
    rng = Random(f"few {seed}")
    transform = drawn(
        rng,
        rng.choice([1, 2, 8, 17, 40]),
        alike=bool(seed % 2),
        spread=rng.choice([1e-9, 0.1, 1.0]),
    )
    order, u = 10 ** rng.uniform(-1.5, 3.0), nodes(rng, transform, 30)
    found = np.sum([np.minimum(bound(u), 0.0) for bound in transform.log_bounds(order)], axis=0)
    exact = np.array([truth(transform, order, float(each)) for each in u])
    assert np.all(found >= exact)
    # Where the rows are loud they are hardly larger: what c = 1 / (2 u) adds, and single precision.
    copies = float(transform.times.sum())
    loud = (exact > -0.1 * copies) & (u > 1e3 * (1 + order))
    assert np.all(found[loud] - exact[loud] <= 1e-2 * copies)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_over_stretches_are_above_the_truth(seed: int) -> None:
    rng = Random(f"stretches {seed}")
    transform = drawn(
        rng, rng.choice([3, 150, 300]), alike=bool(seed % 2), spread=rng.choice([0.02, 0.5])
    )
    order, size = 10 ** rng.uniform(0.0, 1.5), float(transform.epsilon.mean())
    u = (rng.choice([0.01, 0.04]) / size) * np.arange(rng.choice([3000, 6000])) + rng.choice(
        [0.0, 1e3 / size]
    )
    for swing in (0.1, 0.8, 3.0):
        found = transform.screen(order).over(swing, u)
        faint = np.flatnonzero(found <= -NEGLIGIBLE)
        assert np.all((found == 0) | (found <= -NEGLIGIBLE))
        for at in rng.sample(faint.tolist(), min(len(faint), 12)):
            assert found[at] >= truth(transform, order, float(u[at])), (swing, u[at])


@pytest.mark.parametrize("swing", [0.3, 0.8])
def test_a_stretch_is_as_loud_as_its_loudest_frequency(swing: float) -> None:
    """Copies of one scale come back to the mass of their atoms; there, and as far around as it lasts, none is faint."""
    transform, order = LaplaceSum(np.full((400, 1), 0.02), np.ones((400, 1))), 6.0
    u = 100.0 + np.arange(0.0, 1500.0, 0.4)
    found = transform.screen(order).over(swing, u)
    exact = np.array([400 * log_modulus(0.02, order, float(each)) for each in u])
    assert np.all(found >= np.minimum(exact, 0.0))
    assert np.mean(found <= -NEGLIGIBLE) > 0.3 and np.mean(exact > -NEGLIGIBLE) > 0.05


@pytest.mark.parametrize("seed", range(6))
def test_half_turns_to_the_nearest_silence_are_as_few_as_anywhere_on_a_stretch(seed: int) -> None:
    rng = Random(f"nearest {seed}")
    transform = drawn(rng, 30, alike=True, spread=0.5)
    size = float(transform.epsilon.mean())
    middle = np.sort([10 ** rng.uniform(0.0, 5.0) / size for _ in range(40)]).astype(np.float32)
    reach = 10 ** rng.uniform(-3.0, 0.0) / size
    found = transform.screen(1.0)._nearest(slice(None), middle, reach)
    for share in (-1.0, rng.uniform(-1.0, 1.0), 1.0):
        turns = transform.epsilon / math.pi * (middle.astype(float) + share * reach)
        assert np.all(found <= np.abs(turns - np.rint(turns)) + 1e-15 * turns)
    ends = [transform.epsilon / math.pi * (middle.astype(float) + side * reach) for side in (-1, 1)]
    least = np.minimum(*(np.abs(turns - np.rint(turns)) for turns in ends))
    inside = np.rint(ends[0]) == np.rint(ends[1])
    assert np.all(least - found <= 1e-5 + 1e-6 * ends[1].max()) or not np.all(inside)


@pytest.mark.parametrize("seed", range(12))
def test_the_envelope_of_many_rows_is_above_the_truth(seed: int) -> None:
    """Edges next to each other, where the curvature between them adds nothing, and far apart."""
    rng = Random(f"envelope {seed}")
    transform = drawn(
        rng, rng.choice([5, 16, 40]), alike=bool(seed % 2), spread=rng.choice([0.02, 1.0])
    )
    order, size = 10 ** rng.uniform(-1.5, 2.0), float(transform.epsilon.mean())
    ratio = rng.choice([1 + 1e-7, 1 + 1e-3, 1.2])
    edges = 10 ** rng.uniform(-2.0, 3.0) / size * ratio ** np.arange(12)
    bound = transform.log_envelope(order, edges)
    for left, right, most in zip(edges, [*edges[1:], 30 * edges[-1]], bound, strict=True):
        for u in (left, right, left + (right - left) * rng.random()):
            assert most >= truth(transform, order, float(u))
    exact, copies = truth(transform, order, float(edges[3])), float(transform.times.sum())
    assert bound[3] - exact <= 1e-4 * copies or exact < -0.1 * copies or ratio > 1.01


@pytest.mark.parametrize("rows", [1, 16])
def test_the_envelope_knows_what_rises_between_two_edges(rows: int) -> None:
    """Two atoms are in step again in the middle of a block: |phi|^2 is a cosine's square there, as curved as may be."""
    transform, order = LaplaceSum(np.full((rows, 1), 0.01), np.ones((rows, 1))), 0.125
    for turn in (1, 2, 5):
        peak = math.pi / 0.01 * turn
        bound = float(
            transform.log_envelope(order, np.array([peak - 30.0, peak + 30.0, peak + 60.0]))[0]
        )
        exact = truth(transform, order, peak)
        assert exact <= bound <= exact + 0.01 * rows


def test_what_comes_back_is_the_mass_of_the_atoms() -> None:
    """Far out the envelope can be no smaller: it is at that many losses, of the tilted law, at an end."""
    transform, order = LaplaceSum(np.array([[0.1], [0.3]]), np.array([[2.0], [5.0]])), 3.0
    mass = 1.0
    for epsilon, times in ((0.1, 2), (0.3, 5)):
        smooth = math.exp(-epsilon / 2) * math.sinh((order + 0.5) * epsilon) / (2 * (order + 0.5))
        atoms = (math.exp(order * epsilon) + math.exp(-(order + 1) * epsilon)) / 2
        mass *= (atoms / (atoms + smooth)) ** times
    assert transform.limsup(order) == pytest.approx(mass, rel=1e-13)
    assert math.exp(transform.log_envelope(order, np.array([1e6, 1e12]))[-1]) == pytest.approx(
        mass, rel=1e-6
    )
