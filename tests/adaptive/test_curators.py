"""Fixed sub-budgets: the total is the tightest theorem's, adaptive inside, whatever the order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from campaigns.adaptive import answers
from dpcompose import Adjacency, BlackBox, Gaussian, GaussianDP
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    Budget,
    ConcentratedFilter,
    Curators,
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
)
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.optimal import homogeneous_epsilon

SLACK = math.exp(-32)
FILTERS: list[Filter] = [
    PureFilter(0.1),
    BasicFilter(0.1, delta=1e-9),
    AdvancedFilter(0.2, delta=1e-8, slack=5e-9),
    ConcentratedFilter(0.001, delta=1e-9),
    RenyiFilter(16.0, budget=0.01),
    GaussianFilter(0.05),
]
every_filter = pytest.mark.parametrize("filter", FILTERS, ids=lambda each: each.kind)


def test_example_3_7_and_its_optimum() -> None:
    book = Curators(10_000, filter=PureFilter(1 / 801)).total(delta=SLACK)
    assert 0.890468147 < book.epsilon < 0.890468148
    best = Curators.for_target(10_000, 1.0, delta=SLACK)
    assert isinstance(best.filter, Budget) and best.filter.epsilon is not None
    assert 1 / best.filter.epsilon == pytest.approx(715.5106, abs=1e-4)
    assert 1 - 1e-9 < best.total(delta=SLACK).epsilon <= 1.0


@every_filter
def test_one_curator_is_the_filter(filter: Filter) -> None:
    assert Curators(1, filter=filter).total(delta=1e-6).epsilon == filter.epsilon_at(delta=1e-6)


@every_filter
def test_more_curators_never_cost_less_and_no_more_than_their_sum(filter: Filter) -> None:
    totals = [
        Curators(count, filter=filter).total(delta=1e-6).epsilon for count in (1, 2, 5, 20, 100)
    ]
    assert totals == sorted(totals)
    for count, total in zip((1, 2, 5, 20, 100), totals, strict=True):
        assert total <= count * filter.epsilon_at(delta=1e-6 / count) * (1 + 1e-9)


def test_the_best_of_several_theorems_is_taken() -> None:
    assert Curators(100, filter=PureFilter(0.01)).total(delta=1e-6).theorem == "optimal composition"
    assert (
        Curators(100, filter=AdvancedFilter(0.5, delta=1e-8, slack=5e-9)).total(delta=1e-6).theorem
        == "sum of rho"
    )
    few = Curators(100, filter=ConcentratedFilter(0.001, delta=0.0))
    whole = ConcentratedFilter(0.1, delta=0.0).epsilon_at(delta=1e-6)
    assert few.total(delta=1e-6).epsilon == pytest.approx(whole, rel=1e-14)


def test_for_target_is_within_and_close() -> None:
    found = Curators.for_target(50, 1.0, delta=1e-6)
    assert 1 - 1e-6 < found.total(delta=1e-6).epsilon <= 1.0


def interleaved(
    curators: Curators, rng: np.random.Generator, left: list[float], *, rounds: int
) -> list[tuple[float, float]]:
    """The leaves of a random adversary's tree, probability and loss; the last rounds spend all of each budget."""
    if rounds == 0:
        return [(1.0, 0.0)]
    last = rounds <= len(left)
    curator = rounds - 1 if last else int(rng.integers(len(left)))
    size = left[curator] * (1.0 if last else rng.uniform() ** 2)
    after = [amount - size * (each == curator) for each, amount in enumerate(left)]
    found: list[tuple[float, float]] = []
    for one, two in zip(*answers(curators.filter, np.array(size), rng), strict=True):
        below = interleaved(curators, rng, after, rounds=rounds - 1)
        found += [(float(one) * p, math.log(float(one) / float(two)) + loss) for p, loss in below]
    return found


def test_interleaved_adversaries_stay_below_the_total() -> None:
    """Two pure budgets of 0.8, spent in any order by adversaries who see all answers, solved exactly."""
    total, rng = Curators(2, filter=PureFilter(0.8)), np.random.default_rng(2)
    for _ in range(300):
        leaves = interleaved(total, rng, [0.8, 0.8], rounds=6)
        for epsilon in (0.4, 0.8, 1.2):
            reached = sum(p * max(0.0, -math.expm1(epsilon - loss)) for p, loss in leaves)
            assert reached <= (BlackBox(0.8) * 2).delta(epsilon=epsilon).upper * (1 + 1e-9) + 1e-15
        for delta in (1e-3, 1e-2):
            assert (
                homogeneous_epsilon(delta, epsilon=0.8, times=2).upper
                == total.total(delta=delta).epsilon
            )


@pytest.mark.parametrize(
    ("above", "below", "finite"),
    [
        (PureFilter(9.0), PureFilter(0.1), True),
        (PureFilter(9.0), BasicFilter(0.1, delta=1e-9), False),
        (GaussianFilter(9.0), GaussianFilter(0.1), True),
        (GaussianFilter(9.0), PureFilter(0.1), False),
        (RenyiFilter(8.0, budget=9.0), ConcentratedFilter(0.1, delta=1e-9), False),
        (RenyiFilter(8.0, budget=9.0), RenyiFilter(7.0, budget=0.1), False),
        (RenyiFilter(8.0, budget=9.0), RenyiFilter(9.0, budget=0.1), True),
        (ConcentratedFilter(9.0, delta=1e-6), RenyiFilter(9.0, budget=0.1), False),
        (ConcentratedFilter(9.0, delta=1e-6), AdvancedFilter(0.1, delta=1e-8, slack=1e-9), True),
        (AdvancedFilter(9.0, delta=1e-6, slack=1e-7), PureFilter(0.1), True),
    ],
)
def test_all_budgets_together_are_one_charge_to_a_budget_above(
    above: Filter, below: Filter, finite: bool
) -> None:
    curators = Curators(5, filter=below)
    if finite:
        assert all(amount >= 0 for amount in above.price(curators).values())
    else:
        with pytest.raises(UnsupportedError):
            above.price(curators)


def test_prices_say_nothing_under_another_adjacency() -> None:
    curators = Curators(5, filter=PureFilter(0.1), adjacency=Adjacency.REPLACE)
    with pytest.raises(UnsupportedError, match="say nothing under add-remove"):
        PureFilter(9.0).price(curators)
    assert PureFilter(9.0).price(curators, adjacency=Adjacency.REPLACE)["epsilon"] >= 0.5


@pytest.mark.parametrize(
    "build",
    [
        lambda: Curators(0, filter=PureFilter(1.0)),
        lambda: Curators(10**15 + 1, filter=PureFilter(1.0)),
        lambda: Curators(2.5, filter=PureFilter(1.0)),  # type: ignore[arg-type]
        lambda: Curators(2, filter="pure"),  # type: ignore[arg-type]
        lambda: Curators(2, filter=PureFilter(1.0), adjacency="replace"),  # type: ignore[arg-type]
        lambda: Curators(2, filter=PureFilter(1.0)).total(delta=math.nan),
        lambda: Curators.for_target(10, 0.0, delta=1e-6),
        lambda: Curators(2, filter=ConcentratedFilter(1.0, delta=0.0)).renyi(1.0),
        lambda: Curators(2, filter=ConcentratedFilter(1.0, delta=0.0)).renyi(-3.0),
    ],
)  # fmt: skip
def test_bad_input_is_refused(build: Callable[[], Any]) -> None:
    with pytest.raises(DomainError):
        build()


def test_gaussian_curators_are_exactly_gaussian() -> None:
    total = Curators(16, filter=GaussianFilter(0.25)).total(delta=1e-6).epsilon
    assert (GaussianDP(0.25) * 16).epsilon(delta=1e-6).contains(
        total * (1 - 1e-14)
    ) or total == pytest.approx(Gaussian(1.0).epsilon(delta=1e-6).upper, rel=1e-12)


@pytest.mark.parametrize("question", ["approximate", "epsilon", "gdp", "pure", "renyi", "zcdp"])
@pytest.mark.parametrize("adjacency", [3, None, [], "replace"])
def test_an_adjacency_that_is_none_is_refused_by_name(question: str, adjacency: Any) -> None:
    curators = Curators(3, filter=PureFilter(1.0))
    more: dict[str, Any] = {"epsilon": {"delta": 1e-5}, "renyi": {"order": 2.0}}.get(question, {})
    with pytest.raises(DomainError, match=r"adjacency( = | is missing)"):
        getattr(curators, question)(adjacency=adjacency, **more)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: Curators(10**5000, filter=PureFilter(1.0)),
        lambda: Curators.for_target(10**5000, 1.0, delta=1e-6),
        lambda: Curators(3, filter=PureFilter(1.0)).epsilon(delta=0.1, orientation=None),  # type: ignore[arg-type]
        lambda: PureFilter(1.0).promised() * -1,
        lambda: PureFilter(1.0).promised() * [],  # type: ignore[operator]
        lambda: PureFilter(1.0).omitted(0.5),  # type: ignore[arg-type]
    ],
)
def test_a_count_that_is_none_is_refused_by_name(ask: Callable[[], object]) -> None:
    with pytest.raises(DomainError, match=r"expected (an integer|Orientation)"):
        ask()
