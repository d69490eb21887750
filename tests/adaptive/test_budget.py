"""One budget for every kind of charge: what it grants, why it is sound, how it is written down and opened."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from campaigns.backward import Found, Game, granted_by, play, worst_of
from campaigns.reach import ONLY, RUNS, rounds
from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    compose,
)
from dpcompose.account import open_scope
from dpcompose.adaptive import Budget, Curators, from_description, pricing
from dpcompose.adaptive.theorems import _epsilon_of_tails
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, TypedAmounts, gaussian_epsilon
from dpcompose.ledger import Ledger
from oracles.ball import ball


@pytest.mark.parametrize("name", RUNS)
def test_one_budget_is_within_8_percent_of_the_best_theorem(name: str) -> None:
    run, wanted = RUNS[name]
    granted = rounds(Budget(1, 1e-6), run)
    best = max(rounds(Budget(1, 1e-6, only=only), run) for only in ONLY)
    # Gaussian noise alone, of which a theorem knows everything, loses 11 percent: 125 of 140.
    assert granted >= max(wanted, (0.89 if name == "Gaussian 50" else 0.92) * best)


def test_little_noise_on_a_sample_is_granted() -> None:
    """Its divergence of a high order is useless: its rarest losses are left to the reserve."""
    step = Gaussian(1.1).sampled(0.01)
    assert rounds(Budget(1, 1e-6), [step]) >= 60
    assert rounds(Budget(0.5, 1e-5), [step]) >= 4
    assert rounds(Budget(0.5, 1e-5), [step * 3]) >= 1
    assert rounds(Budget(4, 1e-9), [BlackBox(0.01, delta=1e-10)]) == 1


def test_losses_that_are_cut_off_bound_the_composition() -> None:
    """The promise of the sums of what remains is above the exact delta of as many steps, fixed in advance."""
    step, budget = Gaussian(1.1).sampled(0.01), Budget(1, 1e-6)
    price = budget.price(step)
    order = min(each.order for each in budget.parts if each.order)
    for times in (1, 16, 64):
        lost = times * float(price["delta"])
        log_moment = (order - 1) * times * float(price[f"renyi:{order:g}"])
        for epsilon in (0.1, 0.5, 1.0):
            # The use of one moment: E[(1 - e^(epsilon - L))_+] is at most this.
            used = math.exp(log_moment - (order - 1) * epsilon)
            exactly = (step * times).delta(epsilon=epsilon).lower
            assert exactly <= lost + used


def test_a_cut_leaves_the_rarest_losses_alone() -> None:
    """What remains of the pair, atom by atom, has the divergences that are stated, in decimals."""
    step = Gaussian(1.1).sampled(0.01)
    cut = Fraction(1, 10**9)
    rest = pricing.remainder(step, delta=None, adjacency=Adjacency.ADD_REMOVE, cut=cut)
    assert rest.amounts == TypedAmounts(delta=cut)
    sigma, rate, order = 1.1, 0.01, 15.0
    points = np.linspace(-12.0, 12.0, 400_001)
    without = np.exp(-((points / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
    within = without * (1 - rate + rate * np.exp((2 * points - 1) / (2 * sigma**2)))
    loss = np.log(within / without)
    step_size = points[1] - points[0]
    tail = np.cumsum(within[::-1])[::-1] * step_size
    kept = tail > float(cut)
    sums = float(np.sum(within[kept] * np.exp((order - 1) * loss[kept]))) * step_size
    truth = (math.log(sums) - math.log1p(-float(cut)) * order) / (order - 1)
    stated = rest.divergence(order)
    assert stated is not None and truth <= float(stated) <= 1.02 * truth


def test_no_adversary_exceeds_a_budget() -> None:
    """A short run of `python -m campaigns.backward --budgets`."""
    found = Found()
    for seed in range(12):
        play(seed, found, only_budgets=True)
    assert not found.above
    assert found.filters >= 20 and 0.5 < found.nearest <= 1


def test_a_charge_without_a_price_ends_a_theorem_for_good() -> None:
    budget = Budget(1, 1e-6)
    state = budget.start()
    for _ in range(10):
        state, decision = budget.step(state, Gaussian(50.0))
    assert decision.granted
    assert [name for name in budget.limits if state.spent[name] > 1] == ["epsilon"]
    # One randomized response of 0.9 fits the pure theorem alone, which the Gaussian noise has ended.
    assert budget.step(budget.start(), RandomizedResponse(0.9))[1].granted
    assert not budget.step(state, RandomizedResponse(0.9))[1].granted


def test_the_reserve_is_common_to_all_theorems() -> None:
    budget = Budget(1, 1e-6)
    used, _ = budget.step(budget.start(), BlackBox(0.0, delta=1e-7))
    assert used.granted == 1
    refused = budget.step(used, BlackBox(0.0, delta=1e-12))[1]
    assert refused.short == "delta"
    assert budget.step(used, Laplace(64.0))[1].granted


def test_all_prices_are_those_of_one_remainder() -> None:
    budget = Budget(1, 1e-6)
    box, names = BlackBox(0.01, delta=1e-9), list(budget.limits)
    price = budget.price(box)
    pure = budget.price(BlackBox(0.01))
    assert all(float(price[each]) == pytest.approx(float(pure[each])) for each in names[:-1])
    assert price["delta"] == Fraction(1, 10**9)
    # rho but for delta says nothing of epsilon or mu, however small.
    but = budget.price(Concentrated(1e-4, delta=1e-9))
    assert but["epsilon"] > 1 and but["mu squared"] > 1 and but["rho"] < 1
    both = budget.price(compose(box, Gaussian(50.0) * 2))
    apart = [budget.price(box), budget.price(Gaussian(50.0))]
    assert both["delta"] == price["delta"] and both["epsilon"] > 1
    assert both["rho"] == pytest.approx(apart[0]["rho"] + 2 * apart[1]["rho"])


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 7.0])
def test_pure_privacy_has_a_mu(epsilon: float) -> None:
    """mu squared of (epsilon, 0)-DP: the curve of that mu is nowhere above randomized response's."""
    mu = float(Budget(1, 1e-6).price(BlackBox(epsilon))["mu squared"]) ** 0.5
    if mu < 1:
        answer, gaussian = BlackBox(epsilon), GaussianDP(mu)
        for at in (0.0, 0.2 * epsilon, 0.9 * epsilon):
            assert answer.delta(epsilon=at).lower <= gaussian.delta(epsilon=at).upper


def test_a_budget_is_read_back_with_its_shares_and_limits() -> None:
    for budget in (
        Budget(1, 1e-6),
        Budget(Fraction(1, 3), 1e-9, orders=(2.0, None, 64.0)),
        Budget(8, 1e-5, shares={"gaussian": 4e-6, "renyi": 5e-6}),
        *[Budget(0.5, 1e-6, only=only) for only in ONLY],
    ):
        again = from_description(budget.description())
        assert again == budget and again.limits == budget.limits
        assert again.alternatives == budget.alternatives
    assert Budget(1, 1e-6) != Budget(1, 1e-7)


def test_one_theorem_alone_is_that_theorem() -> None:
    assert Budget(0.5, only="pure").limits == {"epsilon": Fraction(1, 2)}
    assert list(Budget(1, 1e-6, only="zcdp", reserve=1e-7).limits) == ["rho", "delta"]
    gaussian = Budget(1, 1e-6, only="gaussian")
    assert Curators(4, filter=gaussian).total(delta=1e-6).theorem == "sum of mu squared"
    assert repr(gaussian) == "Budget(1, 1e-06, only='gaussian')"


def test_without_delta_a_budget_is_pure() -> None:
    budget = Budget(1)
    assert (
        budget.guarantee() == ApproximateDP(1.0)
        and budget.step(budget.start(), Laplace(1.0))[1].granted
    )
    with pytest.raises(UnsupportedError):
        budget.price(Gaussian(50.0))


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": float("nan")},
        {"epsilon": -1.0},
        {"delta": 1.5},
        {"only": "advanced"},
        {"reserve": 1e-5},
        {"shares": {"renyi": 2e-6}},
        {"shares": {"pure": 1e-7}},
        {"only": "renyi", "shares": {"renyi": 1e-7}},
        {"only": "renyi", "reserve": 1e-7},
        {"orders": ()},
        {"orders": (2.0, 2.0)},
        {"orders": (0.5,)},
    ],
)
def test_bad_input(bad: dict[str, object]) -> None:
    stated: dict[str, object] = {"epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(DomainError):
        Budget(**(stated | bad))  # pyright: ignore[reportArgumentType]


def test_a_budget_opens_itself() -> None:
    ledger = Ledger.open("memory:")
    account = Budget(1, 1e-6).open(ledger, "city", actor="Ada")
    assert account.room(account.price(Gaussian(50.0))) == 125
    account.charge(Gaussian(50.0), actor="Ada", key="first")
    # The first charge ended the pure theorem; room counts what the others still grant.
    assert account.room(account.price(Gaussian(50.0))) == 124
    inner = Budget(Fraction(1, 3), 1e-7, only="zcdp").open(ledger, "city/a", actor="Ada")
    inner.charge(Gaussian(60.0), actor="Ada", key="second")
    assert account == open_scope(ledger, "city", epsilon=1, delta=1e-6, actor="Ada")
    assert account.left()["mu squared"].fraction < Fraction(1, 19)
    with pytest.raises(DomainError, match="grants something"):
        Budget(0, 0).open(ledger, "none", actor="Ada")


def test_a_budget_that_promises_nothing_does_not_open() -> None:
    with pytest.raises(DomainError):
        Budget(0, 0).start()
    stated = Budget(1, 1e-6).description()
    stated["parts"][2]["share"] = "1e-30"
    promise: Any = from_description(stated).guarantee()
    assert promise.epsilon > 1.0
    stated["parts"][2]["share"] = "0.0"
    with pytest.raises(DomainError):
        from_description(stated).start()


def test_charges_with_a_delta_fill_the_reserve_and_no_adversary_exceeds_the_whole() -> None:
    """The pure theorem too takes them: exact backward induction where pure and reserve are all of the budget."""
    spacing, delta = Fraction(1, 4), Fraction(1, 100)
    lost = delta / 4
    for reserve in (delta / 4, delta / 2, delta):
        budget = Budget(Fraction(3, 2), delta, reserve=reserve, shares={"renyi": delta - reserve})
        game = Game(spacing, ((1, lost), (2, Fraction(0))), Fraction(3, 2), delta)
        states = granted_by(budget, game)
        assert states is not None and max(first for first, _ in states) == int(reserve / lost)
        assert any(second and first for first, second in states)
        assert worst_of(states, game) <= ball(delta)
    # Control: without the common reserve, two theorems that each took a quarter would exceed it.
    beyond = {(first, second) for first in range(7) for second in range(4)}
    assert worst_of(beyond, game) > ball(delta)


@pytest.mark.parametrize(
    ("only", "delta", "reserve"),
    [("zcdp", 0, None), ("zcdp", 0.5, 0.5), ("renyi", 0, None), ("gaussian", 0.0, None)],
)
def test_a_theorem_without_a_delta_promises_nothing(
    only: str, delta: float, reserve: float | None
) -> None:
    """It was said of "parts", which is no argument."""
    with pytest.raises(DomainError, match=r"^delta and reserve .*promises nothing"):
        Budget(1.0, delta, only=only, reserve=reserve)


def test_the_reading_of_mu_is_an_upper_end_of_its_curve() -> None:
    """From `math.erfc` alone, within the width that the curve itself states."""
    rng, quick = np.random.default_rng(5), 0
    for _ in range(1000):
        mu, delta = float(np.exp(rng.uniform(-8, 3))), float(np.exp(rng.uniform(-200, -0.7)))
        found, curve = _epsilon_of_tails(mu, delta), gaussian_epsilon(delta, mu=mu)
        if found is not None:
            quick += 1
            assert curve.lower <= found <= curve.upper * (1 + 1e-12)
    assert quick > 500
    assert _epsilon_of_tails(0.0, 1e-6) is _epsilon_of_tails(1.0, 0.0) is None
