"""Menus and unions: what they grant, that no adversary exceeds it, and that one state more would be too much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from campaigns.backward import Found, play
from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    Exponential,
    Gaussian,
    Laplace,
    Orientation,
    RandomizedResponse,
    compose,
)
from dpcompose.account import open_partition, open_scope, open_slots
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    Budget,
    ConcentratedFilter,
    Curators,
    Filter,
    GaussianFilter,
    MenuFilter,
    PureFilter,
    RenyiFilter,
    UnionFilter,
    advise,
    from_description,
    menu_filter,
)
from dpcompose.adaptive.menu_search import closed, reached
from dpcompose.adaptive.worst_case import worst_case
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, OverdrawnError, UnsupportedError
from dpcompose.ledger import Ledger
from dpcompose.mechanisms import DominatingPair
from dpcompose.values import exact, rounded_up, up
from oracles import backward

RESPONSES = {
    (64, 8): {0: 206, 2: 140, 4: 74, 5: 48},
    (64, 16): {0: 216, 8: 112, 14: 34},
    (24, 8): {0: 34, 2: 24},
}
"""Answers of the small one that are left after so many of the large one."""


def test_no_adversary_exceeds_a_filter_and_the_controls_are_caught() -> None:
    found = Found()
    for seed in (0, 1, 2, 5, 8):
        play(seed, found)
    assert not found.above and found.filters > 25 and 0.7 < found.nearest <= 1.0
    assert found.too_many_caught == found.too_many > 0


def test_the_natural_filter_is_caught() -> None:
    found = Found()
    for seed in range(13, 30):
        play(seed, found)
        if found.natural:
            return
    raise AssertionError("no menu where the natural filter exceeds its target")


@pytest.mark.parametrize("sizes", RESPONSES)
def test_the_counts_of_two_responses(sizes: tuple[int, int]) -> None:
    budget = MenuFilter.for_target([RandomizedResponse(1 / each) for each in sizes], 1.0, 1e-6)
    for large, small in RESPONSES[sizes].items():
        assert max(state[0] for state in budget.states if state[1] >= large) >= small
    assert budget.worst <= 1e-6
    if sizes[0] > 24:
        return
    other = MenuFilter.for_target([RandomizedResponse(1 / each) for each in sizes[::-1]], 1.0, 1e-6)
    assert sorted(state[::-1] for state in other.states) == sorted(budget.states)


def test_the_certified_worst_case_is_the_exact_one_on_a_lattice() -> None:
    menu = [BlackBox(0.125), BlackBox(0.375, delta=1e-5)]
    states = {(9, 0), (6, 1), (3, 2)}
    case = worst_case(tuple(compose(each) for each in menu), Adjacency.ADD_REMOVE, 0.5, 1e-3)
    inside = set(closed(states))

    def granted(state: tuple[int, ...], place: int) -> bool:
        return (*state[:place], state[place] + 1, *state[place + 1 :]) in inside

    orders = [backward.promise(1, Fraction(1, 8)), backward.promise(3, Fraction(1, 8), 1e-5)]
    truth = float(backward.worst(orders, granted, 0.5))
    assert truth <= case.of(sorted(inside)) <= truth * (1 + 1e-9)


def test_turned_pairs_are_heeded() -> None:
    """Five sampled responses at epsilon 0.15: 0.043949 where pairs may be turned, 0.039057 where not."""
    sampled = RandomizedResponse(1.0).sampled(0.1)
    budget = MenuFilter(
        (compose(sampled),), epsilon=0.15, delta=0.04395, weights=(1,), total_weight=5
    )
    yes = 1 / (1 + math.exp(-1.0))
    mixed = 0.1 * yes + 0.9 * (1 - yes)
    pair = [(mixed, 1 - yes), (1 - mixed, yes)]
    orders = backward.both_orders([(backward.ball(p), backward.ball(q)) for p, q in pair], 0, 2)
    truth = float(backward.worst([orders], lambda state, _: state[0] < 5, 0.15))
    assert truth == pytest.approx(0.043949, abs=1e-6)
    assert truth <= budget.worst <= truth * 1.001
    assert (sampled * 5).delta(epsilon=0.15, orientation=Orientation.SAME).upper < 0.0391


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(1 / 64),
        BlackBox(1 / 128, delta=1e-10),
        Laplace(16.0),
        Gaussian(50.0),
        Exponential(0.05),
    ],
)
def test_stopping_adaptively_is_free(mechanism: Composable) -> None:
    budget = MenuFilter.for_target([mechanism], 1.0, 1e-6)
    count = budget.total_weight
    assert (
        (mechanism * count).delta(epsilon=1.0).upper
        <= 1e-6
        < (mechanism * (count + 1)).delta(epsilon=1.0).upper
    )


def test_a_loss_between_the_nodes_counts_as_a_little_more() -> None:
    for mechanism in (Laplace(16.0), Laplace(4.0).sampled(0.3)):
        case = worst_case((compose(mechanism),), Adjacency.ADD_REMOVE, 0.7, 1e-4)
        for times, curve in zip(range(6), case.linear((1,)), strict=False):
            found = case.lattice.value(curve)
            truth = (mechanism * times).delta(epsilon=0.7, orientation=Orientation.SAME)
            assert truth.lower <= found <= truth.upper * 1.02 + 1e-9


def test_one_state_too_many_is_refused_when_it_is_opened() -> None:
    known = MenuFilter.for_target([BlackBox(1 / 8), BlackBox(1 / 2)], 1.0, 1e-4)
    (first, *rest) = known.states
    more = MenuFilter(
        known.menu, epsilon=1.0, delta=1e-4, states=((first[0] + 1, *first[1:]), *rest)
    )
    with pytest.raises(DomainError, match="worst case"):
        more.start()
    with pytest.raises(DomainError, match="worst case"):
        open_scope(Ledger.open("memory:"), "world", filter=more, actor="Ada")


def union_of(
    epsilon: float, *, delta: float, orders: Sequence[float | None] = (None,)
) -> UnionFilter:
    """As old ledgers have it: a pure filter, and Renyi filters that share delta."""
    share = Fraction(str(delta)) / len(orders)
    renyi = [Budget(epsilon, share, orders=(order,), only="renyi") for order in orders]
    return UnionFilter((PureFilter(epsilon), *renyi), (0, *[share] * len(orders)))


def test_weighed_menus_grant_more_than_a_renyi_budget() -> None:
    menu = [Laplace(each) for each in (24.0, 12.0, 6.0, 3.0)]
    budget = MenuFilter.for_target(menu, 1.0, 1e-3)
    renyi = union_of(1.0, delta=1e-3)
    assert budget.weights and budget.worst <= 1e-3
    for mechanism in menu:
        counts = [granted(each, [mechanism] * 500) for each in (budget, renyi)]
        assert counts[0] >= counts[1]


def granted(filter: Any, run: Sequence[Composable]) -> int:
    state = filter.start()
    for mechanism in run:
        state, decision = filter.step(state, mechanism)
        if not decision.granted:
            break
    return state.granted


def test_a_union_grants_what_its_filters_do() -> None:
    share = 5e-7
    union = union_of(1.0, delta=2 * share, orders=(None, 3.0))
    parts = [PureFilter(1.0)] + [
        Budget(1.0, share, orders=(order,), only="renyi") for order in (None, 3.0)
    ]
    for run in (
        [BlackBox(0.125)] * 9,
        [BlackBox(1 / 128)] * 900,
        [Laplace(2.0), *[Laplace(64.0)] * 300],
        [BlackBox(0.5)] * 3,
    ):
        assert granted(union, run) >= max(granted(each, run) for each in parts)
    mixed = UnionFilter((GaussianFilter(0.2), ConcentratedFilter(0.01, delta=1e-7)), (5e-7, 5e-7))
    assert granted(mixed, [Gaussian(50.0)] * 200) == granted(
        GaussianFilter(0.2), [Gaussian(50.0)] * 200
    )
    assert mixed.guarantee().delta <= 1e-6 * (1 + 1e-15)


def test_a_union_stays_refused_once_all_its_filters_are() -> None:
    union = union_of(1.0, delta=1e-6)
    state, first = union.step(union.start(), BlackBox(1.0))
    after, second = union.step(state, Gaussian(1000.0))
    assert first.granted and not second.granted and after == state
    state, third = union.step(union.start(), Gaussian(1000.0))
    assert third.granted and not union.step(state, BlackBox(1.0))[1].granted
    assert state.left["epsilon (pure)"] == 0 < state.left[list(union.limits)[1]]


@pytest.mark.parametrize(
    "budget",
    [
        union_of(0.5, delta=1e-5, orders=(None, 4.0)),
        MenuFilter.for_target([BlackBox(0.1), Laplace(2.0)], 0.9, Fraction(1, 1000)),
        MenuFilter.for_target([Gaussian(8.0) * 2, Laplace(4.0).sampled(0.5)], 1.0, 0.01),
        MenuFilter((compose(BlackBox(0.25)),), epsilon=1.0, delta=0.0, states=((4,),), adjacency=Adjacency.REPLACE),
    ],
    ids=lambda each: each.kind,
)  # fmt: skip
def test_a_description_gives_an_equal_filter(budget: Any) -> None:
    assert from_description(budget.description()) == budget and hash(budget) == hash(
        from_description(budget.description())
    )


def test_a_ledger_grants_what_the_filter_does_and_verifies() -> None:
    small, large = BlackBox(1 / 8), BlackBox(1 / 2)
    ledger = Ledger.open("memory:")
    for place, budget in enumerate(
        (MenuFilter.for_target([small, large], 1.0, 1e-3), union_of(1.0, delta=1e-3))
    ):
        account = open_scope(ledger, f"world{place}", filter=budget, actor="Ada")
        run = [large] + [small] * 30
        count = granted(budget, run)
        for number, mechanism in enumerate(run[:count]):
            account.charge(mechanism, actor="Ada", key=str(number))
        with pytest.raises(OverdrawnError):
            account.charge(run[count], actor="Ada", key="one more")
        with pytest.raises(UnsupportedError, match="one set of amounts"):
            open_slots(ledger, f"world{place}/slots", slots=2, filter=budget, actor="Ada")
    assert ledger.verify().scopes == 2
    assert ledger.balance("world0").scope.alternatives


def test_a_scope_whose_alternatives_cannot_be_read_takes_no_charge() -> None:
    ledger = Ledger.open("memory:")
    for place, stated in enumerate(([{"other": "1"}], [{}], [], "x", [{"epsilon": "many"}])):
        description = {"budget": {"alternatives": stated}}
        ledger.scope(
            f"w{place}", kind="filter", caps={"epsilon": 1}, description=description, actor="Ada"
        )
        with pytest.raises(OverdrawnError):
            ledger.charge(
                f"w{place}", cost={"epsilon": "0.5"}, description={}, actor="Ada", key="a"
            )


BLACK = BlackBox(0.1)


@pytest.mark.parametrize(
    ("menu", "says"),
    [
        ([BLACK, BLACK], "twice"),
        ([BLACK, BlackBox(0.0)], "tells nothing"),
        ([BLACK, BlackBox(0.1, delta=1.0)], "may be finite"),
        (range(1, 10**5), "99999 members"),
        ([BLACK, BlackBox(3.0)], "at least once"),
        ([BLACK, Laplace(1e-3)], "at least once"),
        ([BLACK, BlackBox(1.0, delta=1 - 1e-9)], "at least once"),
        ([], "0 members"),
        ("text", "a list"),
        ([BLACK, 1], "mechanisms and compositions"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_menus(menu: Any, says: str) -> None:
    if isinstance(menu, range):  # so many are made here, not for each worker that collects tests
        menu = [BlackBox(each / 10**6) for each in menu]
    with pytest.raises(DomainError, match=says):
        MenuFilter.for_target(menu, 1.0, 1e-6)


@pytest.mark.parametrize(
    "target", [(0.0, 1e-6), (1.0, 0.0), (1.0, 1.0), (math.nan, 0.1), (-1.0, 0.1), (1.0, True)]
)
def test_bad_targets(target: tuple[Any, Any]) -> None:
    with pytest.raises(DomainError):
        MenuFilter.for_target([BLACK], *target)


def test_a_state_of_another_menu_and_another_adjacency() -> None:
    one, two = (MenuFilter.for_target([BlackBox(each)], 1.0, 1e-3) for each in (0.1, 0.2))
    with pytest.raises(DomainError, match="this filter"):
        one.step(two.start(), BLACK)
    with pytest.raises(DomainError, match="that of the menu"):
        one.start(adjacency=Adjacency.REPLACE)
    with pytest.raises(UnsupportedError, match="not on the menu"):
        one.step(one.start(), BlackBox(0.11))


@pytest.mark.parametrize(
    "given",
    [
        {"states": ((1, 2),)}, {"states": ((-1,),)}, {"states": ((1.5,),)}, {"weights": (0,), "total_weight": 1}, {},
        {"weights": (1,), "states": ((1,),)}, {"weights": (1,), "total_weight": -1},
        {"weights": (1,), "total_weight": 10**9},
    ],
)  # fmt: skip
def test_bad_states(given: dict[str, Any]) -> None:
    with pytest.raises(DomainError):
        MenuFilter((compose(BLACK),), epsilon=1.0, delta=0.1, **given)


def test_bad_unions() -> None:
    pure = PureFilter(1.0)
    union = union_of(1.0, delta=1e-6)
    for filters, shares in (
        ((), ()),
        ((pure,), ()),
        ((pure, pure), (0, 0)),
        ((union,), (0,)),
        ((pure,), (-1,)),
        ((pure,), "x"),
    ):
        with pytest.raises(DomainError):
            UnionFilter(filters, shares)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DomainError, match="finite epsilon"):
        UnionFilter((RenyiFilter(2.0, budget=1.0),), (0.0,)).start().filter.guarantee()


def test_a_union_that_promises_nothing_is_not_opened() -> None:
    union = UnionFilter((PureFilter(1.0), RenyiFilter(8.0, budget=100.0)), (0.0, 0.0))
    for opened in (
        union.start,
        lambda: open_scope(Ledger.open("memory:"), "u", filter=union, actor="Ada"),
        lambda: open_partition(Ledger.open("memory:"), "u", filter=union, actor="Ada"),
        lambda: Curators(2, filter=union),
    ):
        with pytest.raises(DomainError, match="finite epsilon"):
            opened()


@pytest.mark.parametrize("share", [0.1, Fraction(1, 10), Fraction(0.1), 0.3, 1e-6])
def test_the_share_of_a_filter_may_be_its_own_delta(share: float | Fraction) -> None:
    for inner in (BasicFilter(1.0, delta=share), AdvancedFilter(1.0, delta=share, slack=share)):
        union = UnionFilter((PureFilter(1.0), inner), (0.0, share))
        promise = union.guarantee()
        assert promise.epsilon <= 1.0 and promise.delta == rounded_up(exact(share))
        assert Curators(1, filter=union).total(delta=promise.delta).epsilon <= 1.0
    below = exact(share) * (1 - Fraction(1, 10**18))
    with pytest.raises(DomainError, match="finite epsilon"):
        UnionFilter((PureFilter(1.0), BasicFilter(1.0, delta=share)), (0.0, below)).guarantee()


@pytest.mark.parametrize("delta", [0.1, 0.3, 1e-6, Fraction(1, 3)])
def test_the_promise_holds_at_its_own_delta(delta: float | Fraction) -> None:
    at = float(delta) if isinstance(delta, float) else rounded_up(Fraction(delta))
    for budget in (
        UnionFilter((PureFilter(1.0),), (delta,)),
        MenuFilter.for_target([BlackBox(0.5)], 1.0, delta),
    ):
        assert budget.epsilon_at(delta=at) <= 1.0 < budget.epsilon_at(delta=at / 2)


def test_one_member_that_is_known_by_its_rho_alone() -> None:
    menu = MenuFilter.for_target([Concentrated(0.01)], 1.0, 1e-6)
    total = menu.total_weight
    deltas = [(Concentrated(0.01) * times).delta(epsilon=1.0).upper for times in (total, total + 1)]
    assert total > 0 and menu.start().granted == 0 and deltas[0] <= 1e-6 < deltas[1]
    rows = {row.kind: row for row in advise([(Concentrated(0.001), 5)], 1.0, delta=1e-6)}
    assert rows["menu"].alone == (24,) and not rows["menu"].refusal


def test_a_member_that_fits_more_often_than_a_menu_counts() -> None:
    menu = MenuFilter.for_target([RandomizedResponse(1e-10)], 1e-9, 1e-6)
    start = menu.start()
    assert start.granted == 0 and menu.left(start) >= (10**6,)


def test_a_mechanism_without_a_pair_is_refused() -> None:
    known = Concentrated(0.001)
    with pytest.raises(UnsupportedError):
        MenuFilter.for_target([known, BLACK], 1.0, 1e-3)
    pair = DominatingPair.atoms(
        upper=[0.5, 0.5], lower=[0.25, 0.75], adjacency=Adjacency.ADD_REMOVE
    )
    with pytest.raises(UnsupportedError, match="written down"):
        MenuFilter.for_target([pair], 2.0, 0.1).description()


@pytest.mark.parametrize(
    ("menu", "epsilon", "delta"),
    [
        (
            [RandomizedResponse(1 / 8), RandomizedResponse(1 / 4), RandomizedResponse(1 / 2)],
            1,
            1e-6,
        ),
        ([Laplace(24.0), Laplace(12.0), Laplace(6.0), Laplace(3.0)], 1, 1e-3),
        ([Laplace(16.0), Gaussian(10.0)], 1, 1e-6),
        ([BlackBox(0.25, delta=1e-7), BlackBox(0.5), Gaussian(6.0)], 2, 1e-5),
        ([Laplace(2.0), Gaussian(2.0).sampled(0.1)], 1, 1e-4),
        # The third keeps the promise of the first, which fits as often: it counts as itself.
        (
            [
                BlackBox(0.1, delta=1e-6),
                BlackBox(0.3, delta=1e-6),
                RandomizedResponse(0.6).sampled(0.1),
                RandomizedResponse(0.02),
            ],
            0.3,
            1e-5,
        ),
    ],
)
def test_a_menu_never_grants_less_than_a_budget(
    menu: list[Composable], epsilon: float, delta: float
) -> None:
    budget = Budget(epsilon, delta)
    filter = MenuFilter.for_target(menu, epsilon, delta)
    assert filter.guarantee().delta <= up(delta) and filter.guarantee().epsilon <= up(epsilon)
    prices = [(budget.price(each), filter.price(each)) for each in menu]

    def grants(own: Filter, counts: Sequence[int], side: int) -> bool:
        return any(
            all(
                sum(n * price[side][name] for n, price in zip(counts, prices, strict=True)) <= cap
                for name, cap in caps.items()
            )
            for caps in own.alternatives
        )

    granted = reached(len(menu), lambda counts: grants(budget, counts, 0), limit=20_000)
    assert granted and all(grants(filter, counts, 1) for counts in granted)
    assert from_description(filter.description()) == filter


def test_a_menu_that_takes_too_long_grants_what_a_budget_does() -> None:
    menu = MenuFilter.for_target([Gaussian(20.0), Laplace(30.0)], 1, 1e-6, work=1e6)
    budget = Budget(1, 1e-6)
    assert menu.budget == budget and not menu.weights and not menu.states
    run = [Gaussian(20.0), Laplace(30.0)] * 60
    assert granted(menu, run) == granted(budget, run) > 0
    # A member that no budget grants once: what to do is said.
    with pytest.raises(UnsupportedError, match="Open a Budget"):
        MenuFilter.for_target([Gaussian(20.0), Gaussian(0.5)], 1, 1e-6, work=1e6)


def test_a_menu_of_two_small_steps_of_training_opens() -> None:
    steps = [Gaussian(sigma).sampled(1e-5) for sigma in (2.0, 1.5)]
    menu = MenuFilter.for_target(steps, 1, 1e-6)
    assert min(menu.left(menu.start())) > 1000


def test_one_kind_is_granted_as_if_it_were_fixed_and_others_by_a_small_budget() -> None:
    step = Gaussian(2.0).sampled(0.1)
    budget = MenuFilter.for_kind(step, 2.0, 1e-5)
    (total,) = [budget.total_weight]
    assert (step * total).delta(epsilon=2.0).upper + 1e-5 / 20 <= 1e-5
    assert (step * (total + 4)).delta(epsilon=2.0).lower > 1e-5 * 19 / 20
    assert from_description(budget.description()) == budget
    state, decision = budget.step(budget.start(), step)
    assert decision.granted and budget.left(state)[0] == total - 1
    many, decision = budget.step(state, step * (total - 2))  # as so many charges
    assert decision.granted and budget.left(many)[0] == 1
    assert not budget.step(many, step * 2)[1].granted
    state, decision = budget.step(state, Gaussian(20.0))  # not on the menu: its count ends
    assert decision.granted
    own = Budget(2.0, Fraction(1, 10**5) / 20)
    spent = own.step(own.step(own.start(), step)[0], Gaussian(20.0))[0]
    granted = 0
    while (outcome := budget.step(state, step))[1].granted:
        state, (spent, decision) = outcome[0], own.step(spent, step)
        assert decision.granted
        granted += 1
    assert not own.step(spent, step)[1].granted and granted < total - 1
    with pytest.raises(DomainError, match="FREE for more than one member"):
        MenuFilter(
            (compose(step), compose(Gaussian(20.0))), epsilon=2.0, delta=1e-5, weights=(1, 1), total_weight=3,
            orientation=Orientation.SAME,
        )  # fmt: skip
    with pytest.raises(DomainError, match="at most delta"):
        MenuFilter(
            (compose(step),), epsilon=2.0, delta=1e-5, weights=(1,), total_weight=total + 4,
            orientation=Orientation.SAME,
        ).start()  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "delta"),
    [
        (Gaussian(20.0).sampled(0.01), 2.0, 1e-6),
        (Laplace(5.0), 0.5, 1e-5),
        (Laplace(5.0), 1.0, 0.0),
        (BlackBox(0.1, delta=1e-8), 8.0, 1e-9),
        (BlackBox(1e-200), 500.0, 1e-300),  # their quotient to a power is beyond floats
    ],
)
def test_one_more_of_a_kind_would_exceed_the_target(
    mechanism: Composable, epsilon: float, delta: float
) -> None:
    options: Any = {"adjacency": Adjacency.ADD_REMOVE, "orientation": Orientation.SAME}
    member = compose(mechanism)
    most = menu_filter._fixed(member, epsilon, delta, **options)
    spent = [(member * each).delta(epsilon=epsilon, **options).upper for each in (most, most + 1)]
    assert spent[0] <= delta
    assert most == menu_filter.MOST_COUNT or spent[1] > delta
