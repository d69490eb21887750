"""What a person is exposed to: what is promised, what is spent, and when each number holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from campaigns.adaptive import Walk, answers, cost_of, largest
from campaigns.exposure import trees
from dpcompose import (
    Adjacency,
    BlackBox,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    compose,
)
from dpcompose.account import (
    Account,
    Exposure,
    ExposureStatement,
    exposure,
    fix_budgets,
    open_partition,
    open_scope,
    open_slots,
    take_slot,
)
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    ConcentratedFilter,
    Curators,
    Filter,
    GaussianFilter,
    Line,
    Odometer,
    PureFilter,
    RenyiFilter,
)
from dpcompose.errors import DomainError, UnknownScopeError, UnsupportedError
from dpcompose.guarantee.optimal import homogeneous_epsilon
from dpcompose.ledger import Ledger
from tests.adaptive.test_turned import sampled, turned

ADA: dict[str, Any] = {"actor": "Ada"}
DELTA = 1e-6
FILTERS: list[Filter] = [
    PureFilter(0.1),
    BasicFilter(0.1, delta=1e-9),
    AdvancedFilter(0.2, delta=1e-8, slack=5e-9),
    ConcentratedFilter(0.001, delta=1e-9),
    RenyiFilter(16.0, budget=0.01),
    GaussianFilter(0.05),
]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.open("memory:")


def of(ledger: Ledger, *paths: str, delta: float = DELTA) -> Exposure:
    return exposure(ledger, paths=paths, delta=delta)


# Promised


@pytest.mark.parametrize("filter", FILTERS, ids=lambda each: each.kind)
def test_one_budget_promises_its_guarantee(ledger: Ledger, filter: Filter) -> None:
    open_scope(ledger, "world", filter=filter, **ADA)
    promised = of(ledger, "world").promised
    assert promised.epsilon == filter.epsilon_at(delta=DELTA) and promised.regime == "fixed budgets"


@pytest.mark.parametrize("filter", FILTERS, ids=lambda each: each.kind)
def test_equal_budgets_compose_by_the_tightest_theorem(ledger: Ledger, filter: Filter) -> None:
    for name in "abc":
        open_scope(ledger, name, filter=filter, **ADA)
    fix_budgets(ledger, paths=["a", "b", "c"], **ADA)
    assert (
        of(ledger, "a", "b", "c").promised.epsilon
        == Curators(3, filter=filter).total(delta=DELTA).epsilon
    )
    assert of(ledger, "a", "a").promised.epsilon == filter.epsilon_at(delta=DELTA)


def test_different_budgets_promise_more_than_each_and_less_than_the_sum(ledger: Ledger) -> None:
    for place, filter in enumerate(FILTERS):
        open_scope(ledger, f"r{place}", filter=filter, **ADA)
        fix_budgets(ledger, paths=[f"r{each}" for each in range(place + 1)], **ADA)
        together = of(ledger, *[f"r{each}" for each in range(place + 1)]).promised.epsilon
        assert together >= max(each.epsilon_at(delta=DELTA) for each in FILTERS[: place + 1]) * (
            1 - 1e-12
        )
        share = DELTA / (place + 1)
        assert together <= 1.5 * sum(each.epsilon_at(delta=share) for each in FILTERS[: place + 1])


def test_a_pure_and_a_gaussian_budget_are_not_promised_too_little(ledger: Ledger) -> None:
    """Against the composition of the worst interactions inside: randomized response and Gaussian noise."""
    open_scope(ledger, "a", filter=PureFilter(0.7), **ADA)
    open_scope(ledger, "b", filter=GaussianFilter(0.4), **ADA)
    fix_budgets(ledger, paths=["a", "b"], **ADA)
    truth = compose(BlackBox(0.7), GaussianDP(0.4)).epsilon(delta=DELTA)
    assert truth.lower <= of(ledger, "a", "b").promised.epsilon <= truth.upper * (1 + 1e-9)


def test_a_filter_above_bounds_its_own_charges_and_all_below(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    open_scope(ledger, "world/sales", filter=PureFilter(0.1), **ADA)
    open_scope(ledger, "world/taxes", filter=PureFilter(0.1), **ADA)
    assert of(ledger, "world/sales", delta=0.0).promised.epsilon == 1.0
    assert of(ledger, "world/sales", "world/taxes", "world", delta=0.0).promised.epsilon == 1.0


def test_slots_promise_the_optimum_of_example_3_7(ledger: Ledger) -> None:
    slack = math.exp(-32)
    open_slots(ledger, "world", slots=10_000, filter=PureFilter(1 / 801), **ADA)
    whole = of(ledger, "world", delta=slack).promised.epsilon
    assert whole == homogeneous_epsilon(slack, epsilon=1 / 801, times=10_000).upper
    assert 0.89046814 < whole < 0.89046815
    for name in "abc":
        take_slot(ledger, f"world/{name}", **ADA)
    two = of(ledger, "world/a", "world/b", delta=0.0).promised.epsilon
    assert two == pytest.approx(2 / 801, rel=1e-15) and two >= 2 / 801


def test_groups_without_caps_promise_what_their_children_do(ledger: Ledger) -> None:
    ledger.scope("group", **ADA)
    open_scope(ledger, "group/a", filter=PureFilter(0.1), **ADA)
    open_scope(ledger, "group/b", filter=PureFilter(0.1), **ADA)
    assert of(ledger, "group/a", delta=0.0).promised.epsilon == 0.1
    assert 0.2 <= of(ledger, "group/a", "group/b", delta=0.0).promised.epsilon < 0.2 + 1e-15
    assert not of(ledger, "group", delta=0.0).promised.available
    ledger.charge("group", cost={}, key="free", **ADA)
    assert not of(ledger, "group/a", delta=0.0).promised.available


def test_a_partition_promises_its_cap_or_the_child_that_is_named(ledger: Ledger) -> None:
    open_partition(ledger, "free", **ADA)
    open_scope(ledger, "free/north", filter=PureFilter(0.1), **ADA)
    assert of(ledger, "free/north", delta=0.0).promised.epsilon == 0.1
    assert not of(ledger, "free", delta=0.0).promised.available
    open_partition(ledger, "capped", filter=PureFilter(0.3), **ADA)
    # Three tenths, rounded up: the double 0.3 is below them.
    assert of(ledger, "capped", delta=0.0).promised.epsilon == math.nextafter(0.3, 1)


def test_nothing_is_promised_below_the_deltas_of_the_budgets(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=BasicFilter(0.1, delta=1e-6), **ADA)
    assert of(ledger, "world", delta=1e-7).promised.regime == "unavailable"


def test_budgets_under_different_adjacencies_are_not_added(ledger: Ledger) -> None:
    open_scope(ledger, "a", filter=PureFilter(0.1), **ADA)
    open_scope(ledger, "b", filter=PureFilter(0.1), adjacency=Adjacency.REPLACE, **ADA)
    fix_budgets(ledger, paths=["a", "b"], **ADA)
    assert "adjacencies" in of(ledger, "a", "b").promised.holds


def test_a_budget_that_is_opened_after_an_answer_promises_nothing_with_those_before(
    ledger: Ledger,
) -> None:
    """The natural filter in a ledger: delta 0.0634 where each of the two openings adds up to (1.5, 0.05)."""
    open_scope(ledger, "world", filter=None, **ADA)
    first = open_scope(ledger, "world/a", filter=PureFilter(1.0), **ADA)
    first.charge(RandomizedResponse(1.0), key="a", **ADA)
    assert of(ledger, "world/a", delta=0.05).promised.available
    for name, late in (
        ("yes", PureFilter(0.6114909688018489)),
        ("no", BasicFilter(0.0, delta=0.05)),
    ):
        open_scope(ledger, f"world/{name}", filter=late, **ADA)
        promised = of(ledger, "world/a", f"world/{name}", delta=0.05).promised
        assert not promised.available and "natural filter" in promised.holds
        assert (
            f"'world/{name}' was opened by entry" in promised.holds
            and "after entry 3" in promised.holds
        )


@pytest.mark.parametrize("where", ["an ancestor", "a slot", "a child"])
def test_every_charge_about_the_person_comes_after_the_budgets(ledger: Ledger, where: str) -> None:
    open_scope(ledger, "world", filter=None, **ADA)
    open_scope(ledger, "world/a", filter=PureFilter(3.0), **ADA)
    path, charged = "world/a/x", "world/a/x"
    if where == "a slot":
        open_slots(ledger, "world/a/slots", slots=2, filter=PureFilter(1.0), **ADA)
        charged = take_slot(ledger, "world/a/slots/ada", **ADA).scope
        path = "world/a"
    elif where == "a child":
        open_partition(ledger, "world/a/wards", **ADA)
        charged = open_scope(ledger, "world/a/wards/north", filter=PureFilter(1.0), **ADA).scope
        path = "world/a/wards"
    else:
        open_scope(ledger, path, filter=PureFilter(1.0), **ADA)
        charged = "world/a"
    Account(ledger, scope=charged).charge(BlackBox(0.5), key="0", **ADA)
    open_scope(ledger, "world/b", filter=PureFilter(1.0), **ADA)
    assert f"had charged {charged!r}" in of(ledger, path, "world/b").promised.holds


def test_closed_and_unused_budgets_count_in_full(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=None, **ADA)
    for name in "ab":
        open_scope(ledger, f"world/{name}", filter=PureFilter(0.5), **ADA)
    ledger.close_scope("world/b", key="close", **ADA)
    assert of(ledger, "world/a", "world/b", delta=0.0).promised.epsilon == 1.0


def test_budgets_of_two_trees_compose_where_each_tree_recorded_the_others_before_its_first_charge() -> (
    None
):
    def opened(*, recorded: str, charged: str = "") -> tuple[Ledger, list[str]]:
        ledger = Ledger.open("memory:")
        accounts = {name: open_scope(ledger, name, filter=PureFilter(0.5), **ADA) for name in "ab"}
        if charged:
            accounts[charged].charge(BlackBox(0.25), key="early", **ADA)
        if recorded == "both":
            fix_budgets(ledger, paths=["a", "b"], **ADA)
        elif recorded:
            (head,) = [entry.hash for entry in ledger.entries("a" if recorded == "b" else "b")]
            ledger.scope(
                f"{recorded}/fixed-by-hand", description={"open elsewhere": {"other": head}}, **ADA
            )
        for name in "ab":
            accounts[name].charge(BlackBox(0.25), key="late", **ADA)
        return ledger, ["a", "b"]

    ledger, paths = opened(recorded="both")
    assert of(ledger, *paths, delta=0.0).promised.epsilon == 1.0
    for recorded, lacking in (("", "a"), ("a", "b"), ("b", "a")):
        ledger, paths = opened(recorded=recorded)
        assert (
            f"no entry of {lacking!r} before its first charge, entry"
            in of(ledger, *paths).promised.holds
        )
    with pytest.raises(UnsupportedError, match="entry 2 charged it"):
        opened(recorded="both", charged="b")
    # What is opened when one tree was charged is recorded nowhere, though the new tree has no charge.
    ledger, paths = opened(recorded="both")
    open_scope(ledger, "c", filter=PureFilter(0.5), **ADA)
    assert not of(ledger, *paths, "c").promised.available


def test_a_record_takes_no_slot(ledger: Ledger) -> None:
    open_slots(ledger, "a", slots=2, filter=PureFilter(0.5), **ADA)
    open_scope(ledger, "b", filter=PureFilter(0.5), **ADA)
    with pytest.raises(UnsupportedError, match="slot"):
        fix_budgets(ledger, paths=["a", "b"], **ADA)
    assert ledger.balance("a").taken == 0
    with pytest.raises(UnsupportedError, match="no cap"):
        open_scope(ledger, "c", filter=None, **ADA)
        fix_budgets(ledger, paths=["b", "c"], **ADA)


def test_no_adversary_who_opens_and_charges_gets_more_than_is_promised() -> None:
    """The short version of `campaigns.exposure`: by backward induction; the order forgotten is caught."""
    found, control = trees([1, 8])
    assert max(found) <= 1.0 + 1e-9 and max(found) > 0.9
    assert max(control) > 1.2


def adversary(filters: list[Filter], rng: np.random.Generator, *, rounds: int) -> Walk:
    """A random one against several budgets, which spends each to its end; solved exactly."""
    leaves: list[tuple[float, float]] = []

    def node(left: list[list[float]], round: int, probability: float, loss: float) -> None:
        if round == rounds:
            leaves.append((probability, loss))
            return
        remaining = rounds - round
        which = remaining - 1 if remaining <= len(filters) else int(rng.integers(len(filters)))
        filter, last = filters[which], remaining <= len(filters)
        share = 1.0 if last else float(rng.uniform()) ** 2
        size = float(largest(cost_of(filter), np.array(left[which][0] * share)))
        coin = left[which][1] if last else left[which][1] * float(rng.integers(2)) * 0.5
        after = [list(each) for each in left]
        after[which] = [
            left[which][0] - float(cost_of(filter)(np.array(size))),
            left[which][1] - coin,
        ]
        for one, two in zip(*answers(filter, np.array(size), rng), strict=True):
            node(
                after,
                round + 1,
                probability * (1 - coin) * float(one),
                loss + math.log(float(one) / float(two)),
            )

    limits = [[float(each) for each in filter.limits.values()] for filter in filters]
    node([[*each, 0.0][:2] for each in limits], 0, 1.0, 0.0)
    probability, loss = (np.array([row]) for row in zip(*leaves, strict=True))
    return Walk(probability, loss, 1 - np.sum(probability, axis=1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "filters",
    [
        [PureFilter(0.7), BasicFilter(0.5, delta=0.01)],
        [PureFilter(0.7), GaussianFilter(0.6)],
        [BasicFilter(0.6, delta=0.02), ConcentratedFilter(0.1, delta=0.01)],
        [ConcentratedFilter(0.2, delta=0.0), GaussianFilter(0.5), PureFilter(0.3)],
        [AdvancedFilter(1.0, delta=0.1, slack=0.08), RenyiFilter(4.0, budget=0.3)],
    ],
    ids=lambda each: "+".join(filter.kind for filter in each),
)
def test_no_adversary_gets_more_from_several_budgets_than_is_promised(
    ledger: Ledger, filters: list[Filter]
) -> None:
    for place, filter in enumerate(filters):
        open_scope(ledger, f"r{place}", filter=filter, **ADA)
    paths, rng, closest = (
        [f"r{place}" for place in range(len(filters))],
        np.random.default_rng(4),
        0.0,
    )
    fix_budgets(ledger, paths=paths, **ADA)
    walks = [adversary(filters, rng, rounds=len(filters) + 3) for _ in range(60)]
    for delta in (0.05, 0.15, 0.3):
        promised = of(ledger, *paths, delta=delta).promised
        for walk in walks if promised.available else []:
            reached = float(walk.delta(promised.epsilon)[0])
            assert reached <= delta * (1 + 1e-9)
            closest = max(closest, reached / delta)
    assert closest > 0.2


# Spent


def test_nothing_charged_is_nothing_spent(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(0.1), **ADA)
    assert of(ledger, "world").spent == ExposureStatement(
        0.0, "sum along the path", "nothing was charged"
    )


def test_pure_charges_are_summed_and_those_of_a_common_ancestor_count_once(ledger: Ledger) -> None:
    world = open_scope(ledger, "world", filter=PureFilter(8.0), **ADA)
    sales = open_scope(ledger, "world/sales", filter=PureFilter(8.0), **ADA)
    taxes = open_scope(ledger, "world/taxes", filter=PureFilter(8.0), **ADA)
    for account, epsilon in [(world, 1.0), (sales, 0.5), (taxes, 0.25), (sales, 0.5)]:
        account.charge(BlackBox(epsilon), key=f"{account.scope} {account.left()}", **ADA)
    assert of(ledger, "world/sales").spent.epsilon == 2.0
    assert of(ledger, "world/taxes").spent.epsilon == 1.25
    assert of(ledger, "world/sales", "world/taxes").spent.epsilon == 2.25
    assert of(ledger, "world").spent.epsilon == 2.25
    assert of(ledger, "world").spent.regime == "sum along the path"


def test_of_a_partition_the_worst_child_counts_unless_one_is_named(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(8.0), **ADA)
    open_partition(ledger, "world/regions", **ADA)
    for name, epsilon in [("north", 0.5), ("south", 0.25)]:
        open_scope(ledger, f"world/regions/{name}", filter=PureFilter(1.0), **ADA).charge(
            BlackBox(epsilon), key=name, **ADA
        )
    assert of(ledger, "world/regions").spent.epsilon == 0.5
    assert of(ledger, "world/regions/south").spent.epsilon == 0.25
    assert of(ledger, "world/regions/south", "world/regions/north").spent.epsilon == 0.75


def test_spending_in_slots_is_spent(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(8.0), **ADA)
    open_slots(ledger, "world/slots", slots=4, filter=PureFilter(1.0), **ADA)
    for name in "ab":
        take_slot(ledger, f"world/slots/{name}", **ADA).charge(BlackBox(0.25), key=name, **ADA)
    assert of(ledger, "world/slots/a").spent.epsilon == 0.25
    assert of(ledger, "world/slots").spent.epsilon == 0.5
    assert (
        of(ledger, "world").spent.epsilon == 0.5
        and of(ledger, "world", delta=0.0).promised.epsilon == 8.0
    )


def test_committed_schedules_compose_tightly(ledger: Ledger) -> None:
    schedule = [(Gaussian(10.0), 60), (Laplace(20.0), 3)]
    account = open_scope(
        ledger, "world", filter=ConcentratedFilter(2.0, delta=0.0), schedule=schedule, **ADA
    )
    for number in range(50):
        account.charge(Gaussian(10.0), key=str(number), **ADA)
    spent = of(ledger, "world").spent
    assert spent.epsilon == (Gaussian(10.0) * 50).epsilon(delta=DELTA).upper
    whole = (Gaussian(10.0) * 60 + Laplace(20.0) * 3).epsilon(delta=DELTA).upper
    assert (
        spent.regime == "committed schedule"
        and repr(whole) in spent.holds
        and "not chosen" in spent.holds
    )
    for number in range(50, 63):
        account.charge(Gaussian(10.0) if number < 60 else Laplace(20.0), key=str(number), **ADA)
    spent = of(ledger, "world").spent
    assert spent.epsilon == whole and "finished" in spent.holds


def test_what_a_schedule_spent_holds_for_turned_pairs(ledger: Ledger) -> None:
    """Two answers on samples, and one that hardly fails: who turns one pair is above the profile of either order."""
    answer, last = RandomizedResponse(1.0).sampled(0.1), BlackBox(0.0, delta=1e-9)
    schedule = [(answer, 2), last]
    account = open_scope(
        ledger, "world", filter=ConcentratedFilter(9.0, delta=0.5), schedule=schedule, **ADA
    )
    for number, mechanism in enumerate((answer, answer, last)):
        account.charge(mechanism, key=str(number), **ADA)
    delta = 0.018758
    spent = of(ledger, "world", delta=delta).spent
    assert spent.regime == "committed schedule"
    assert turned([sampled(1.0, 0.1)] * 2, spent.epsilon) <= delta


def test_a_schedule_committed_after_an_answer_was_chosen_from_it(ledger: Ledger) -> None:
    """The natural filter's counter-example, each round committed in a scope of its own."""
    open_scope(ledger, "world", filter=ConcentratedFilter(9.0, delta=0.5), **ADA)
    first = open_scope(
        ledger, "world/first", filter=BasicFilter(9.0, delta=0.5), schedule=[BlackBox(1.0)], **ADA
    )
    first.charge(BlackBox(1.0), key="first", **ADA)
    late = [BlackBox(0.0, delta=0.05)]
    second = open_scope(
        ledger, "world/second", filter=BasicFilter(9.0, delta=0.5), schedule=late, **ADA
    )
    second.charge(late[0], key="second", **ADA)
    spent = of(ledger, "world", delta=0.05).spent
    assert not spent.available and "natural filter" in spent.holds


def test_schedules_in_two_top_level_scopes_have_no_order(ledger: Ledger) -> None:
    for root in ("a", "b"):
        account = open_scope(
            ledger, root, filter=ConcentratedFilter(1.0, delta=0.0), schedule=[Gaussian(9.0)], **ADA
        )
        account.charge(Gaussian(9.0), key=root, **ADA)
    assert of(ledger, "a").spent.regime == "committed schedule"
    assert not of(ledger, "a", "b").spent.available


def test_nothing_is_charged_past_the_account_beside_a_schedule(ledger: Ledger) -> None:
    schedule = [(Gaussian(9.0), 2)]
    account = open_scope(
        ledger, "world", filter=ConcentratedFilter(1.0, delta=0.0), schedule=schedule, **ADA
    )
    account.charge(Gaussian(9.0), key="0", **ADA)
    with pytest.raises(UnsupportedError, match="a cost without a mechanism"):
        ledger.charge("world", cost={"rho": 0, "delta": 0}, key="1", **ADA)
    assert of(ledger, "world").spent.regime == "committed schedule"


def test_adaptive_charges_without_an_odometer_are_unavailable(ledger: Ledger) -> None:
    account = open_scope(ledger, "world", filter=ConcentratedFilter(1.0, delta=0.0), **ADA)
    account.charge(Gaussian(9.0), key="0", **ADA)
    spent = of(ledger, "world").spent
    assert (spent.regime, spent.epsilon, spent.available) == ("unavailable", math.inf, False)
    assert "natural filter" in spent.holds


def test_an_odometer_fixed_at_opening_reads(ledger: Ledger) -> None:
    odometer = Odometer(1e-7, boundary=Line(0.05), mechanism_delta=2e-8)
    account = open_scope(
        ledger, "world", filter=ConcentratedFilter(1.0, delta=1e-6), odometer=odometer, **ADA
    )
    inner = open_scope(ledger, "world/sales", filter=ConcentratedFilter(1.0, delta=1e-6), **ADA)
    state = odometer.start()
    for number, (mechanism, where) in enumerate(
        [(Gaussian(10.0), account), (BlackBox(0.3, delta=1e-9), inner), (Laplace(5.0), inner)]
    ):
        where.charge(mechanism, key=str(number), **ADA)
        state = odometer.step(state, mechanism)
    spent = of(ledger, "world").spent
    assert spent.regime == "odometer" and spent.failure >= 1e-7
    assert spent.epsilon == pytest.approx(odometer.reading(state).epsilon, rel=1e-14)


def test_an_odometer_whose_reserve_is_used_up_reads_nothing(ledger: Ledger) -> None:
    odometer = Odometer(1e-7, mechanism_delta=1e-9)
    account = open_scope(
        ledger, "world", filter=ConcentratedFilter(1.0, delta=1e-3), odometer=odometer, **ADA
    )
    account.charge(BlackBox(0.3, delta=1e-9), key="0", **ADA)
    assert "more was charged" in of(ledger, "world").spent.holds


def test_an_odometer_fixed_after_an_answer_reads_nothing(ledger: Ledger) -> None:
    world = open_scope(ledger, "world", filter=ConcentratedFilter(1.0, delta=0.0), **ADA)
    world.charge(BlackBox(0.1), key="0", **ADA)
    late = open_scope(
        ledger,
        "world/late",
        filter=ConcentratedFilter(1.0, delta=0.0),
        odometer=Odometer(1e-7),
        **ADA,
    )
    late.charge(Gaussian(9.0), key="1", **ADA)
    assert "after the first answer" in of(ledger, "world").spent.holds


def test_pure_charges_outside_an_odometer_are_added_to_its_reading(ledger: Ledger) -> None:
    a = open_scope(
        ledger, "a", filter=ConcentratedFilter(1.0, delta=0.0), odometer=Odometer(1e-7), **ADA
    )
    b = open_scope(ledger, "b", filter=PureFilter(1.0), **ADA)
    a.charge(Gaussian(9.0), key="0", **ADA)
    alone = of(ledger, "a").spent.epsilon
    b.charge(BlackBox(0.25), key="1", **ADA)
    assert of(ledger, "a", "b").spent.epsilon == pytest.approx(alone + 0.25, rel=1e-14)


# Bad input


@pytest.mark.parametrize("paths", [[], (), "world", None])
def test_paths_are_a_sequence_of_names(ledger: Ledger, paths: object) -> None:
    open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    with pytest.raises(DomainError):
        exposure(ledger, paths=paths, delta=DELTA)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [math.nan, -1.0, 1.5, "0", None])
def test_delta_is_a_probability(ledger: Ledger, delta: float) -> None:
    open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    with pytest.raises(DomainError):
        exposure(ledger, paths=["world"], delta=delta)


def test_unknown_scopes_are_named(ledger: Ledger) -> None:
    with pytest.raises(UnknownScopeError):
        of(ledger, "nowhere")


def test_a_partition_without_a_cap_has_one_adjacency_all_the_same(ledger: Ledger) -> None:
    """A replaced record leaves one child and enters another: the largest of them, 1, was shown for 1 + 1."""
    open_partition(ledger, "world", **ADA)
    with pytest.raises(DomainError, match="adjacency"):
        open_scope(ledger, "world/a", filter=PureFilter(2.0), adjacency=Adjacency.REPLACE, **ADA)
    open_scope(ledger, "world/b", filter=PureFilter(2.0), **ADA)


@pytest.mark.parametrize("odometer", [None, Odometer(1e-6)])
def test_charges_under_different_adjacencies_have_no_sum(
    ledger: Ledger, odometer: Odometer | None
) -> None:
    for path, adjacency in (("a", Adjacency.REPLACE), ("b", Adjacency.ADD_REMOVE)):
        account = open_scope(
            ledger, path, filter=PureFilter(2.0), adjacency=adjacency, odometer=odometer, **ADA
        )
        account.charge(BlackBox(1.0, holds_under=adjacency), key="0", **ADA)
    found = of(ledger, "a", "b").spent
    assert not found.available and "different adjacencies" in found.holds
    assert of(ledger, "a").spent.epsilon == of(ledger, "b").spent.epsilon == 1.0
    stated = [of(ledger, *paths).adjacency for paths in (["a"], ["b"], ["a", "b"])]
    assert stated == [Adjacency.REPLACE, Adjacency.ADD_REMOVE, None]


def test_odometers_of_several_roots_say_what_they_rest_on(ledger: Ledger) -> None:
    for path in ("a", "b"):
        odometer = Odometer(1e-6)
        account = open_scope(
            ledger, path, filter=ConcentratedFilter(2.0, delta=0.0), odometer=odometer, **ADA
        )
        account.charge(Gaussian(9.0), key="0", **ADA)
    assert "another top-level scope" in of(ledger, "a", "b").spent.holds
    assert "another top-level scope" not in of(ledger, "a").spent.holds


@pytest.mark.parametrize("paths", ["world", None, [], [3], 7, (path for path in ["world"])])
def test_paths_are_a_sequence(ledger: Ledger, paths: object) -> None:
    open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    with pytest.raises(DomainError, match="path"):
        exposure(ledger, paths=paths, delta=DELTA)  # type: ignore[arg-type]


@pytest.mark.parametrize("actor", [3, None, "", "\x1b[2J", []])
def test_who_fixes_budgets_is_named_even_where_nothing_is_recorded(actor: Any) -> None:
    found = Ledger.open("memory:")
    open_scope(found, "world", filter=PureFilter(1.0), actor="keeper")
    with pytest.raises(DomainError, match=r"actor( = | is missing)"):
        fix_budgets(found, paths=["world"], actor=actor)
