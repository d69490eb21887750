"""Parallel composition: the truth is computed from joint distributions of all cells, and both naive
rules are wrong.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Orientation,
    compose,
)
from dpcompose.composition.composition import ComposablePart
from dpcompose.composition.losses import Pairs
from dpcompose.composition.parallel import parallel
from dpcompose.composition.question import Asking, ask
from dpcompose.divergence import hockey_stick
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.loss.atomic import AtomicLoss, Atoms
from dpcompose.loss.base import Pair

SEED = 61
ADD_REMOVE, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE
Masses = tuple[float, ...]


@dataclass(frozen=True)
class Cell(ComposablePart):
    """A mechanism on one cell, by its outputs with and without the record, and with one record or the other."""

    present: Masses
    absent: Masses
    before: Masses
    after: Masses

    @property
    def label(self) -> str:
        return "cell"

    def pairs(self, adjacency: Adjacency) -> Pairs:
        upper, lower = (
            (self.present, self.absent) if adjacency is ADD_REMOVE else (self.before, self.after)
        )
        loss = AtomicLoss(Atoms.of(list(upper), list(lower)))
        return ((Pair(loss, loss.reverse), 1),)

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        raise UnsupportedError("cell", "not sampled")


def random_masses(rng: random.Random) -> Masses:
    """Three masses above 0 whose sum is exactly 1."""
    cuts = sorted(rng.sample(range(1, 64), 2))
    return cuts[0] / 64, (cuts[1] - cuts[0]) / 64, (64 - cuts[1]) / 64


def joint(*sides: Masses) -> dict[Any, Fraction]:
    return {
        outcome: math.prod(
            (Fraction(side[x]) for side, x in zip(sides, outcome, strict=True)), start=Fraction(1)
        )
        for outcome in itertools.product(range(3), repeat=len(sides))
    }


def truth(cells: list[Cell], epsilon: float, adjacency: Adjacency) -> float:
    """The largest hockey stick over all pairs of worlds that differ in one person, on the outputs of all cells."""
    worlds: list[tuple[list[Masses], list[Masses]]] = []
    idle = [cell.absent for cell in cells]
    for i, cell in enumerate(cells):
        upper, lower = (
            (cell.present, cell.absent) if adjacency is ADD_REMOVE else (cell.before, cell.after)
        )
        worlds.append(([*idle[:i], upper, *idle[i + 1 :]], [*idle[:i], lower, *idle[i + 1 :]]))
    if adjacency is REPLACE:
        for i, j in itertools.permutations(range(len(cells)), 2):
            first, second = idle.copy(), idle.copy()
            first[i], second[j] = cells[i].present, cells[j].present
            worlds.append((first, second))
    both = [pair for first, second in worlds for pair in ((first, second), (second, first))]
    return max(hockey_stick(joint(*p), joint(*q), epsilon=epsilon).upper for p, q in both)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE])
def test_joint_outputs_of_three_cells(adjacency: Adjacency) -> None:
    """Ten random triples of asymmetric mechanisms, one of them on two cells alike."""
    rng = random.Random(SEED)
    for _ in range(10):
        cells = [Cell(*(random_masses(rng) for _ in range(4))) for _ in range(rng.choice([2, 3]))]
        cells.append(cells[0])
        together = parallel(*cells, adjacency=adjacency)
        for epsilon in (-0.5, 0.0, 0.7, 1.5):
            bound = together.delta(epsilon=epsilon)
            assert (
                bound.lower * (1 - 1e-15)
                <= truth(cells, epsilon, adjacency)
                <= bound.upper * (1 + 1e-15) + 1e-300
            )
            assert bound.width <= 1e-9 * bound.upper + 1e-300


def shared(scale: float) -> DiscreteLaplace:
    """A count whose replacement within the cell changes it by no more than a removal: randomized response twice."""
    return DiscreteLaplace(scale, shift=1, replace=1)


def test_the_larger_epsilon_is_not_enough_under_replacement() -> None:
    cells = shared(1.0), shared(2.0), shared(1 / 0.3)
    together = parallel(*cells, adjacency=REPLACE)
    # Randomized response of 1 and 0.5 composed: the record moves between the two cells of largest epsilon.
    assert together.delta(epsilon=1.2).upper == pytest.approx(0.117941766034587508799, rel=1e-12)
    assert parallel(*cells).delta(epsilon=1.2).upper == 0
    assert together.pure() == pytest.approx(1.5)
    assert together.epsilon(delta=0).contains(1.5)


def test_the_sum_of_the_two_largest_is_not_enough_either() -> None:
    together = parallel(Laplace(1.0), Laplace(2.0), adjacency=REPLACE)
    pure = together.pure()
    assert pure == pytest.approx(2.0)
    assert pure is not None and pure > 1.5


def test_a_black_box_of_epsilon_is_a_group_of_two_within_its_cell() -> None:
    assert parallel(BlackBox(1.0), BlackBox(0.5), adjacency=REPLACE).pure() == pytest.approx(2.0)


def test_all_epsilons_together_are_too_much() -> None:
    cells = [Laplace(1.0, replace_sensitivity=1.0)] * 10
    assert parallel(*cells).epsilon(delta=0).contains(1.0)
    assert parallel(*cells, adjacency=REPLACE).epsilon(delta=0).contains(2.0)
    assert compose(*cells).epsilon(delta=0).contains(10.0)


def test_a_histogram_of_gaussian_counts() -> None:
    """Moving between two cells is a shift by the root of two: the worst, if replacing within one is no shift."""
    cells = [Gaussian(2.0, replace_sensitivity=1e-6)] * 5
    vector = Gaussian(2.0, sensitivity=math.sqrt(2))
    for delta in (1e-3, 1e-10):
        found = parallel(*cells, adjacency=REPLACE).epsilon(delta=delta)
        assert found.upper == pytest.approx(vector.epsilon(delta=delta).upper, rel=1e-9)
        assert parallel(*cells).epsilon(delta=delta) == cells[0].epsilon(delta=delta)
    default = parallel(Gaussian(2.0), Gaussian(2.0), adjacency=REPLACE).epsilon(delta=1e-3)
    assert default.upper == pytest.approx(
        Gaussian(2.0, sensitivity=2.0).epsilon(delta=1e-3).upper, rel=1e-9
    )


def test_sampled_gaussians_remove_here_and_add_there() -> None:
    """The move alone, against a sum over a plane that is accurate to 1e-5; it is worse than either removal."""
    one, other = Gaussian(1.0).sampled(0.5), Gaussian(0.8).sampled(0.3)
    move = parallel(one, other, adjacency=REPLACE).cases[-1]
    question = ask(move, Asking(REPLACE))
    found, moved = question.delta(0.2), moved_delta(0.5, 1.0, 0.3, 1.25, 0.2)
    assert found.lower - 1e-5 <= moved <= found.upper + 1e-5
    assert found.lower > max(case.delta(epsilon=0.2).upper for case in (one, other))


def moved_delta(
    rate: float, mu: float, other_rate: float, other_mu: float, epsilon: float
) -> float:
    grid = np.linspace(-8, 10, 3000)
    normal = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)

    def mixed(q: float, mean: float) -> Any:
        return (1 - q) * normal + q * np.exp(-((grid - mean) ** 2) / 2) / math.sqrt(2 * math.pi)

    first = mixed(rate, mu)[:, None] * normal[None, :]
    second = normal[:, None] * mixed(other_rate, other_mu)[None, :]
    cell = (grid[1] - grid[0]) ** 2
    forward = np.maximum(first - math.exp(epsilon) * second, 0).sum() * cell
    backward = np.maximum(second - math.exp(epsilon) * first, 0).sum() * cell
    return float(max(forward, backward))


def test_one_cell_can_be_left_for_where_nothing_runs() -> None:
    """A record may leave the only cell: as bad as a removal, however little a replacement within it changes."""
    cell = Laplace(1.0, replace_sensitivity=1e-3)
    assert parallel(cell, adjacency=REPLACE).epsilon(delta=0).contains(1.0)
    assert parallel(cell, adjacency=REPLACE, moves=False).epsilon(delta=0).upper == pytest.approx(
        1e-3
    )


def test_records_that_keep_their_cell() -> None:
    cells = Laplace(1.0, replace_sensitivity=1.5), Laplace(2.0)
    assert parallel(*cells, adjacency=REPLACE, moves=False).pure() == pytest.approx(1.5)


def test_compositions_in_cells_and_other_guarantees() -> None:
    cells = Gaussian(2.0) * 3, compose(Gaussian(1.0), Laplace(5.0))
    together = parallel(*cells)
    for delta in (1e-3, 1e-8):
        assert together.epsilon(delta=delta).upper == max(
            cell.epsilon(delta=delta).upper for cell in cells
        )
    assert together.renyi(4.0).upper == max(cell.renyi(4.0).upper for cell in cells)
    assert together.pure() is None
    rho = together.zcdp()
    assert rho is not None
    assert rho.rho == max(
        promise.rho for promise in (cell.zcdp() for cell in cells) if promise is not None
    )
    moved = parallel(Concentrated(0.1), Concentrated(0.2), adjacency=REPLACE).zcdp()
    assert moved is not None
    assert moved.rho == pytest.approx(0.8)


def test_order_does_not_matter_and_calling_twice_gives_the_same() -> None:
    cells = [Laplace(1.0), Gaussian(2.0), Laplace(3.0) * 4]
    found = {
        parallel(*order, adjacency=REPLACE).epsilon(delta=1e-6).upper
        for order in itertools.permutations(cells)
    }
    assert max(found) == pytest.approx(min(found), rel=1e-9)
    assert parallel(*cells).epsilon(delta=1e-6) == parallel(*cells).epsilon(delta=1e-6)


def test_bad_input() -> None:
    with pytest.raises(DomainError, match="cells"):
        parallel()
    with pytest.raises(DomainError, match="item"):
        parallel(Laplace(1.0), 0.5)  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="adjacency"):
        parallel(Laplace(1.0), adjacency="swap")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="moves=False"):
        parallel(Laplace(1.0), adjacency=Adjacency.ZERO_OUT)
    with pytest.raises(DomainError, match="delta"):
        parallel(Laplace(1.0)).epsilon(delta=math.nan)


def test_what_no_cell_can_promise_is_refused() -> None:
    with pytest.raises(UnsupportedError):
        parallel(Laplace(1.0).sampled(0.1), adjacency=REPLACE).epsilon(delta=1e-6)
    stated = BlackBox(1.0, holds_under=REPLACE)
    with pytest.raises(UnsupportedError):
        parallel(stated, stated, adjacency=REPLACE).epsilon(delta=1e-6)
    assert parallel(stated, stated, adjacency=REPLACE, moves=False).epsilon(delta=0).contains(1.0)
    with pytest.raises(UnsupportedError):
        parallel(Gaussian(1.0).sampled(0.1), Gaussian(2.0)).epsilon(
            delta=1e-6, orientation=Orientation.FREE
        )


def test_cells_are_not_composed_further() -> None:
    """What sees everybody belongs into every cell, but not under replacement: who moves is replaced there, not two."""
    cells = parallel(Laplace(1.0), Laplace(2.0))
    two = Laplace(1.0).group(2)
    for attempt in (
        lambda: cells + Laplace(1.0), lambda: Laplace(1.0) + cells, lambda: cells * 2,
        lambda: two + Laplace(1.0), lambda: Laplace(1.0) + two, lambda: two * 2,
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match="cannot be composed further"):
            attempt()
    with pytest.raises(DomainError, match="a mechanism or a composition"):
        compose(cells, Laplace(1.0))  # pyright: ignore[reportArgumentType]
