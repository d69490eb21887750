"""No adaptive sequence ends above a filter's guarantee, and without any one of its conditions some do.

The campaign's vectorized trees under the filters' limits, and smaller trees played against the filters themselves. The
full run: `python -m campaigns.adaptive --adversaries 100000`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from campaigns import adaptive
from campaigns.adaptive import FILTERS, Walk, answers, cost_of, excess, largest, limits_of, walk
from dpcompose import BlackBox, GaussianDP
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    ConcentratedFilter,
    Decision,
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
    Spending,
)

ROUNDOFF = 1e-9
every_filter = pytest.mark.parametrize("filter", FILTERS, ids=repr)
SMALL: list[Filter] = [
    PureFilter(1.5),
    BasicFilter(1.5, delta=0.05),
    AdvancedFilter(1.5, delta=0.05, slack=0.03),
    ConcentratedFilter(0.4, delta=0.02),
    RenyiFilter(3.0, budget=0.8),
    GaussianFilter(1.0),
]
every_small = pytest.mark.parametrize("filter", SMALL, ids=lambda each: each.kind)


@every_filter
def test_no_greedy_sequence_ends_above_the_guarantee(filter: Filter) -> None:
    assert adaptive.campaign(filter, adversaries=1500, rounds=6, seed=11) <= ROUNDOFF


@every_filter
def test_without_any_one_of_its_limits_some_sequence_does(filter: Filter) -> None:
    for currency, limit in limits_of(filter).items():
        lifted = limits_of(filter) | {
            currency: min(100 * limit, 0.9) if currency == "delta" else 20 * limit
        }
        if not limit:
            continue
        seen = walk(filter, lifted, adversaries=200, rounds=6, rng=np.random.default_rng(3))
        assert np.max(excess(filter, seen)) > 0.05, currency


def test_without_its_slack_the_advanced_filter_ends_above_its_guarantee() -> None:
    filter = AdvancedFilter(0.6, delta=0.3, slack=0.29)
    whole = limits_of(filter) | {"delta": 0.3}
    rng = np.random.default_rng(3)
    assert (
        np.max(excess(filter, walk(filter, limits_of(filter), adversaries=500, rounds=6, rng=rng)))
        <= ROUNDOFF
    )
    assert np.max(excess(filter, walk(filter, whole, adversaries=500, rounds=6, rng=rng))) > 0.01


@every_filter
def test_the_trees_pay_what_the_filter_asks(filter: Filter) -> None:
    cost, first = cost_of(filter), next(iter(filter.limits))
    for size in (1e-3, 0.1, 0.7, 2.0):
        mechanism = GaussianDP(size) if filter.kind == "gaussian" else BlackBox(size)
        assert float(filter.price(mechanism)[first]) == pytest.approx(
            float(cost(np.array(size))), rel=1e-12
        )


# The filters themselves


def played(filter: Filter, *, rounds: int, rng: np.random.Generator) -> Walk:
    """One adversary against `filter.step`: every node asks, goes on with what it may, and spends all at last."""
    leaves: list[tuple[float, float]] = []

    def node(state: Spending, round: int, probability: float, loss: float) -> None:
        if round == rounds:
            leaves.append((probability, loss))
            return
        size, toss = proposal(filter, state, rng, last=round == rounds - 1)
        state, granted = _asked(filter, state, size, toss)
        if not granted:
            size, toss = 0.0, 0.0
        for one, two in zip(*answers(filter, np.array(size), rng), strict=True):
            node(
                state,
                round + 1,
                probability * (1 - toss) * float(one),
                loss + math.log(float(one) / float(two)),
            )

    node(filter.start(), 0, 1.0, 0.0)
    probability, loss = (np.array([row]) for row in zip(*leaves, strict=True))
    return Walk(probability, loss, 1 - np.sum(probability, axis=1))


def proposal(
    filter: Filter, state: Spending, rng: np.random.Generator, *, last: bool
) -> tuple[float, float]:
    """What to ask: a random part of what is left by the prices of the theorem, all of it in the last round."""
    left = [max(float(amount), 0.0) for amount in state.left.values()]
    share = 1.0 if last or rng.uniform() < 0.2 else rng.uniform()
    size = float(largest(cost_of(filter), np.array(left[0] * (1 - 1e-12)) * share))
    coins = "delta" in filter.limits and (last or rng.uniform() < 0.5)
    return min(size, 30.0), min(left[1] * share * (1 - 1e-12), 0.95) if coins else 0.0


def _asked(filter: Filter, state: Spending, size: float, toss: float) -> tuple[Spending, bool]:
    mechanism = (
        GaussianDP(size if size > 1e-6 else 0.0)
        if filter.kind == "gaussian"
        else BlackBox(size, delta=toss)
    )
    state, decision = filter.step(
        state, mechanism, delta=toss if filter.kind == "concentrated" and toss else None
    )
    return state, decision.granted


def worst(filter: Filter, honest: Filter, *, adversaries: int = 12, rounds: int = 4) -> float:
    rng = np.random.default_rng(7)
    return max(
        float(excess(honest, played(filter, rounds=rounds, rng=rng))[0]) for _ in range(adversaries)
    )


@every_small
def test_no_adversary_gets_more_from_the_filter_than_it_promises(filter: Filter) -> None:
    assert worst(filter, filter) <= ROUNDOFF


def mutant(filter: Filter, **changes: Any) -> Filter:
    """The same filter with some of its parts replaced."""
    made = object.__new__(type("Mutant", (type(filter),), changes))
    for name in filter.__dataclass_fields__:  # type: ignore[attr-defined]
        if name != "_":
            object.__setattr__(made, name, getattr(filter, name))
    return made


def without(currency: str, filter: Filter) -> Filter:
    large = Fraction(9, 10) if currency == "delta" else 100 * filter.limits[currency]
    return mutant(filter, limits=property(lambda self: filter.limits | {currency: large}))


def forgetful(
    self: Filter, state: Spending, mechanism: Any, *, delta: float | None = None
) -> tuple[Spending, Decision]:
    """Every charge alone is within the limits; the sum is not kept."""
    _, decision = Filter.step(self, state, mechanism, delta=delta)
    return state, decision


def late(
    self: Filter, state: Spending, mechanism: Any, *, delta: float | None = None
) -> tuple[Spending, Decision]:
    """Looks at the price after the answer: whoever has anything left may go on."""
    after, decision = Filter.step(self, state, mechanism, delta=delta)
    open_still = any(amount > 0 for amount in state.left.values())
    if decision.granted or not open_still:
        return after, decision
    spent = {name: state.spent[name] + amount for name, amount in decision.price.items()}
    more = Spending(self, state.adjacency, spent, state.granted + 1)
    return more, Decision(True, decision.price, more)


@every_small
def test_a_filter_without_one_of_its_limits_is_caught(filter: Filter) -> None:
    for currency in filter.limits:
        assert worst(without(currency, filter), filter) > 0.05, currency


@every_small
def test_a_filter_that_forgets_is_caught(filter: Filter) -> None:
    assert worst(mutant(filter, step=forgetful), filter) > 0.05


@every_small
def test_a_filter_that_looks_at_the_price_too_late_is_caught(
    filter: Filter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "proposal", _bold)
    assert worst(filter, filter) <= ROUNDOFF
    assert worst(mutant(filter, step=late), filter) > 0.05


def _bold(
    filter: Filter, state: Spending, rng: np.random.Generator, *, last: bool
) -> tuple[float, float]:
    """Something small, and at last far more than is left."""
    return (4.0, 0.5 if "delta" in filter.limits else 0.0) if last else (0.01, 0.0)


@pytest.mark.parametrize("amount", [Fraction(-1, 10), Fraction(-1, 10**40)])
def test_nothing_is_refunded(amount: Fraction) -> None:
    """A negative price, however it came about, is refused."""
    filter = mutant(PureFilter(1.0), _price=lambda self, mechanism, delta, adjacency: (amount,))
    state, decision = filter.step(filter.start(), BlackBox(0.1))
    assert not decision.granted and decision.short == "epsilon" and state == filter.start()


def test_a_state_cannot_be_carried_to_another_filter_after_an_answer() -> None:
    """Each of two filters is sound, and switching between them is not."""
    state = PureFilter(1.0).start()
    for other in (PureFilter(2.0), BasicFilter(1.0, delta=0.1)):
        with pytest.raises(ValueError, match="the filter that it was opened with"):
            other.step(state, BlackBox(0.1))


def test_the_natural_filter_would_be_above_its_budget() -> None:
    """The counter-example, solved: each branch composes to (1.5, 0.05), the whole has 0.0634470710684997560374."""
    first, second, shown = 1.0, 0.611490968801848951918, 0.05
    yes = 1 / (1 + math.exp(-first))
    high = 1 / (1 + math.exp(-second))
    leaves = [
        (yes * high, first + second),
        (yes * (1 - high), first - second),
        ((1 - yes) * (1 - shown), -first),
    ]
    probability, loss = (np.array([row]) for row in zip(*leaves, strict=True))
    delta = Walk(probability, loss, np.array([(1 - yes) * shown])).delta(1.5)[0]
    truth = 0.0634470710684997560374
    assert delta == pytest.approx(truth, rel=1e-14) and delta > 0.05
    for branch in (
        BlackBox(first) + BlackBox(second),
        BlackBox(first) + BlackBox(0.0, delta=shown),
    ):
        assert branch.delta(epsilon=1.5).lower <= shown * (1 + 1e-12)
