"""Results are bit-identical in every order, process and number of threads. The long campaign is
`python -m campaigns.repeated`.
"""

from __future__ import annotations

import numpy as np
import pytest

from campaigns import repeated
from dpcompose.numerics import elementary

QUESTIONS = [
    ["line", "(BlackBox(1e-4) * 10**8).epsilon(delta=1e-6)", 0],
    [
        "line",
        "(Gaussian(1.0).sampled(0.3) * 3).epsilon(delta=1e-30, adjacency=Adjacency.REPLACE)",
        0,
    ],
    ["line", "(Laplace(3.0) * 5 + Laplace(2.0) * 7 + Laplace(4.0)).epsilon(delta=1e-9)", 0],
    [
        "line",
        "running_epsilon([Gaussian(2.0).sampled(0.01) * 30, Gaussian(1.0).sampled(0.02) * 30], delta=1e-6)",
        0,
    ],
    [
        "epsilon",
        "Gaussian(0.317465866477144).sampled(1.3740960382162258e-06) * 180",
        5.916589065464443e-06,
    ],
    [
        "line",
        "(Gaussian(0.6219602097967759).sampled(5.080730113676554e-06) * 2576516).epsilon(delta=3e-10)",
        0,
    ],
    ["epsilon", "Gaussian(1.1).sampled(0.01) * 1000", 1e-5],
    ["delta", "Gaussian(1.1).sampled(0.01) * 1000", 0.7],
]


def test_the_same_bits_whatever_was_asked_before() -> None:
    found = [repeated.process(QUESTIONS, order, threads) for order, threads in ((1, 1), (2, 2))]
    assert repeated.compared(found) == {"same": len(QUESTIONS)}


def test_two_answers_to_one_question_are_seen() -> None:
    counts = repeated.compared(
        [[(["line", "a", 0], [1.0, 2.0])], [(["line", "a", 0], [1.0, 2.0000000000000004])]]
    )
    assert counts == {"different": 1}


@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 1),
        (1, 400, 30),
        (2, 3, 1),
        (50, 3000, 51),
        (3, 40_000, 3),
        (17, 382, 16),
        (33, 220, 32),
    ],
)
@pytest.mark.parametrize("lead", [(), (2,)])
def test_products_in_blocks_are_products(
    shape: tuple[int, int, int], lead: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(1)
    rows, inner, columns = shape
    left, right = rng.random((*lead, rows, inner)), rng.random((*lead, inner, columns)) + 1j
    found = elementary.product(left, right)
    assert found.shape == (*lead, rows, columns)
    np.testing.assert_allclose(found, left @ right, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 8192, 8193, 50_000])
def test_sums_of_products_in_pieces_are_sums_of_products(count: int) -> None:
    rows = np.random.default_rng(2).random((2, count))
    np.testing.assert_allclose(
        elementary.dots(rows, rows[::-1]), np.einsum("ij,ij->i", rows, rows[::-1]), rtol=1e-13
    )
