"""Filters as data: caps and prices in the right direction, decisions, targets, descriptions, refusals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import flint
import pytest
from hypothesis import given, settings, strategies as st

from dpcompose import (
    Adjacency,
    BlackBox,
    Bound,
    Concentrated,
    DiscreteGaussian,
    DPComposeError,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
)
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    Budget,
    ConcentratedFilter,
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
    from_description,
)
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, RenyiDP

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]
GRID = 10**40
FILTERS: list[Filter] = [
    PureFilter(1.0),
    BasicFilter(1.0, delta=1e-6),
    AdvancedFilter(1.0, delta=1e-6, slack=5e-7),
    ConcentratedFilter(0.05, delta=1e-7),
    RenyiFilter(8.0, budget=0.5),
    GaussianFilter(0.5),
]
every_filter = pytest.mark.parametrize("filter", FILTERS, ids=lambda each: each.kind)
THEOREMS = ["pure", "basic", "zcdp", "renyi", "gaussian"]
every_theorem = pytest.mark.parametrize("only", THEOREMS)


def cheap(filter: Filter) -> Any:
    """A mechanism that every filter can price."""
    return (
        Gaussian(50.0)
        if filter.kind in ("concentrated", "renyi", "gaussian")
        else BlackBox(0.01, delta=0.0)
    )


def typed(value: float) -> Fraction:
    """What a float means where it is typed: its shortest decimal."""
    return Fraction(repr(value))


def ceiling(value: Fraction) -> Fraction:
    return Fraction(-(-value * GRID // 1), GRID)


def ball(value: float | str | Fraction) -> flint.arb:
    exact = Fraction(value)
    return flint.arb(exact.numerator) / flint.arb(exact.denominator)


# Directions, against ball arithmetic


@settings(max_examples=200, deadline=None)
@given(
    epsilon=st.floats(1e-12, 1e3),
    delta=st.floats(1e-300, 1.0),
    share=st.floats(1e-9, 1.0),
)
def test_the_caps_of_the_advanced_filter_are_within_its_theorem_and_close_to_it(
    epsilon: float, delta: float, share: float
) -> None:
    slack = max(delta * share, 5e-324)
    caps = AdvancedFilter(epsilon, delta=delta, slack=slack).caps
    with flint.ctx.workprec(900):
        logarithm = -ball(typed(slack)).log()

        def theorem(squares: Fraction) -> flint.arb:
            return (2 * logarithm * ball(squares)).sqrt() + ball(squares) / 2

        assert theorem(caps["epsilon squared"]) <= ball(typed(epsilon))
        assert theorem(
            caps["epsilon squared"] * (1 + Fraction(1, 10**80)) + Fraction(2, GRID)
        ) > ball(typed(epsilon))
    assert caps["delta"] <= typed(delta) - typed(slack) < caps["delta"] + Fraction(1, GRID)


@every_filter
def test_caps_are_multiples_of_the_grid(filter: Filter) -> None:
    assert all((cap * GRID).denominator == 1 and cap >= 0 for cap in filter.caps.values())


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(1e-9, 20.0))
def test_the_price_of_a_promise_is_not_below_the_truth(epsilon: float) -> None:
    mechanism = BlackBox(epsilon, delta=1e-9)
    assert BasicFilter(1.0, delta=1e-6).price(mechanism)["epsilon"] == ceiling(typed(epsilon))
    squared = AdvancedFilter(1.0, delta=1e-6, slack=1e-7).price(mechanism)["epsilon squared"]
    assert squared == ceiling(typed(epsilon) ** 2)
    rho = ConcentratedFilter(1.0, delta=1e-6).price(mechanism)["rho"]
    with flint.ctx.workprec(300):
        truth = ball(typed(epsilon)) * (ball(typed(epsilon)) / 2).tanh()
        assert ball(rho) >= truth
        assert ball(rho) <= truth * ball(1 + Fraction(1, 10**13)) + ball(Fraction(1, GRID))


@pytest.mark.parametrize(
    ("mechanism", "truth"),
    [
        (Gaussian(10.0), Fraction(1, 200)),
        (GaussianDP(0.25), Fraction(1, 32)),
        (DiscreteGaussian(5.0), Fraction(1, 50)),
        (Exponential(1.0), Fraction(1, 8)),
        (Concentrated(0.125), Fraction(1, 8)),
        (Gaussian(10.0) * 3 + Concentrated(0.5), Fraction(103, 200)),
    ],
)
def test_a_known_rho_is_charged_exactly_but_for_rounding_up(
    mechanism: Any, truth: Fraction
) -> None:
    rho = ConcentratedFilter(1.0, delta=0.0).price(mechanism)["rho"]
    assert truth <= rho <= truth * (1 + Fraction(1, 10**14))


def test_a_price_of_one_decimal_is_that_decimal() -> None:
    prices = BasicFilter(1.0, delta=1e-6).price(BlackBox(0.125, delta=1e-7))
    assert prices == {"epsilon": Fraction(1, 8), "delta": Fraction(1, 10**7)}
    assert PureFilter(1.0).price(BlackBox(0.125)) == {"epsilon": Fraction(1, 8)}


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(3.0),
        RandomizedResponse(1.0, categories=5),
        Laplace(2.0).sampled(0.1),
        Exponential(0.5),
    ],
)
def test_prices_bound_both_directions(mechanism: Any) -> None:
    """Charged prices against the certified profile of the mechanism, which is the larger of both orders."""
    pure = PureFilter(9.0).price(mechanism)["epsilon"]
    assert mechanism.delta(epsilon=math.nextafter(float(pure) * (1 + 1e-12), 9)).lower == 0
    for order in (1.5, 8.0):
        rho = ConcentratedFilter(9.0, delta=0.0).price(mechanism)["rho"]
        renyi = RenyiFilter(order, budget=9.0).price(mechanism)[
            next(iter(RenyiFilter(order, budget=9.0).limits))
        ]
        bound = mechanism.renyi(order)
        assert bound.lower <= renyi <= bound.upper * (1 + 1e-12)
        assert bound.lower <= rho * Fraction(order) * (1 + Fraction(1, 10**12))


# The golden rows


def rows(name: str) -> list[dict[str, Any]]:
    found = [row for row in GOLDEN if row["name"] == name]
    assert found
    return found


def listed(text: Any) -> list[Fraction]:
    if isinstance(text, list):
        return [Fraction(each) for each in text]
    epsilon, _, times = text.partition(" x ")
    return [Fraction(epsilon)] * int(times)


@pytest.mark.parametrize(
    "row", rows("whitehouse_filter_eps"), ids=lambda row: str(row["params"]["eps"])
)
def test_the_advanced_filter_against_the_golden_totals(row: dict[str, Any]) -> None:
    """The filter of exactly that total takes the last of the golden charges; one of a hair less does not."""
    charges, slack = listed(row["params"]["eps"]), Fraction(row["params"]["delta_prime"])
    total = Fraction(row["expected"])
    squares = sum(charge**2 for charge in charges)
    enough = AdvancedFilter(total * (1 + Fraction(1, 10**27)), delta=slack, slack=slack)
    short = AdvancedFilter(total * (1 - Fraction(1, 10**27)), delta=slack, slack=slack)
    assert short.caps["epsilon squared"] < squares <= enough.caps["epsilon squared"]


def test_the_advanced_filter_grants_the_golden_number_of_rounds() -> None:
    (row,) = rows("whitehouse_max_rounds")
    filter = AdvancedFilter(
        Fraction(row["params"]["eps"]), delta=Fraction("1e-6"), slack=Fraction("1e-6")
    )
    state, mechanism = filter.start(), BlackBox(float(row["params"]["eps_each"]))
    decision = filter.step(state, mechanism)[1]
    while decision.granted:
        state, decision = filter.step(state, mechanism)
    assert state.granted == Fraction(row["expected"]) == 349


def test_the_concentrated_filter_against_the_golden_totals() -> None:
    (row,) = rows("filter_zcdp_tanh_eps")
    charges, slack = listed(row["params"]["eps"]), float(row["params"]["delta_prime"])
    filter = ConcentratedFilter(1.0, delta=0.0)
    spent = sum(filter.price(BlackBox(float(charge)))["rho"] for charge in charges)
    basic = float(spent) + 2 * math.sqrt(-float(spent) * math.log(slack))
    assert basic == pytest.approx(float(row["expected"]), rel=1e-13)
    # theory.md, E.2: by the conversion of one moment 1.47093416547973859920; the exact one is better.
    best = ConcentratedFilter(spent, delta=0.0).epsilon_at(delta=slack)
    assert 1.4 < best <= 1.4709341654797386


# Decisions


@every_filter
def test_refused_exactly_when_a_sum_would_exceed_its_cap(filter: Filter) -> None:
    state, mechanism = filter.start(), cheap(filter)
    price = filter.step(state, mechanism, delta=1e-8)[1].price
    most = min(
        limit // price[currency] for currency, limit in filter.limits.items() if price[currency]
    )
    state, decision = filter.step(state, mechanism * 0)
    assert decision.granted and set(state.spent.values()) == {0}
    assert 1 < most < 2000
    for _ in range(int(most)):
        state, decision = filter.step(state, mechanism, delta=1e-8)
        assert decision.granted and decision.short is None and decision.reason == "granted"
    after, refused = filter.step(state, mechanism, delta=1e-8)
    assert after is state and not refused.granted
    assert refused.price == price and refused.left == state.left
    first = next(currency for currency in filter.caps if price[currency] > state.left[currency])
    assert refused.short == first and first in refused.reason


def test_a_refusal_names_the_first_currency_that_is_short_and_changes_nothing() -> None:
    filter = BasicFilter(1.0, delta=1e-6)
    state, _ = filter.step(filter.start(), BlackBox(0.5, delta=1e-6))
    for asked, short in [((0.6, 1e-9), "epsilon"), ((0.5, 1e-9), "delta"), ((0.5, 0.0), None)]:
        after, decision = filter.step(state, BlackBox(asked[0], delta=asked[1]))
        assert decision.short == short and (after is state) == (short is not None)


def test_after_a_refusal_something_smaller_may_be_granted() -> None:
    filter = PureFilter(1.0)
    state, decision = filter.step(filter.start(), BlackBox(1.5))
    assert not decision.granted
    assert filter.step(state, BlackBox(1.0))[1].granted


def test_sums_are_exact() -> None:
    filter = PureFilter(0.8)
    state, mechanism = filter.start(), BlackBox(0.1)
    for _ in range(8):
        state, decision = filter.step(state, mechanism)
        assert decision.granted
    assert (
        state.left == {"epsilon": 0} and filter.step(state, BlackBox(1e-300))[1].short == "epsilon"
    )


def test_a_state_is_bound_to_its_filter() -> None:
    state = PureFilter(1.0).start()
    with pytest.raises(DomainError, match="the filter that it was opened with"):
        PureFilter(2.0).step(state, BlackBox(0.1))
    with pytest.raises(DomainError, match="state"):
        PureFilter(2.0).step(None, BlackBox(0.1))  # type: ignore[arg-type]


def test_charges_are_priced_under_the_adjacency_of_the_state() -> None:
    filter = PureFilter(1.0)
    assert filter.step(filter.start(), Laplace(1.25))[1].granted
    _, decision = filter.step(filter.start(adjacency=Adjacency.REPLACE), Laplace(1.25))
    assert decision.short == "epsilon" and decision.price["epsilon"] >= Fraction(16, 10)


# Targets and conversions


@every_theorem
@settings(max_examples=8, deadline=None)
@given(epsilon=st.floats(1e-3, 30.0), exponent=st.floats(-12.0, -2.0))
def test_a_target_stays_within_the_target_and_close_to_it(
    only: str, epsilon: float, exponent: float
) -> None:
    delta = 10.0**exponent
    filter = Budget(epsilon, delta, only=only)
    reached = filter.epsilon_at(delta=delta)
    # A cap that is typed is its decimal, and what is promised of it is rounded up.
    assert reached <= (math.nextafter(epsilon, math.inf) if only == "basic" else epsilon)
    if only != "basic":
        assert reached >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize("only", ["basic", "zcdp"])
def test_what_is_kept_for_the_charges_is_a_cap(only: str) -> None:
    filter = Budget(1.0, 1e-6, only=only, reserve=2.5e-7)
    kept = typed(2.5e-7)
    assert kept - Fraction(1, GRID) < filter.caps["delta"] <= kept
    assert filter.epsilon_at(delta=1e-6) <= 1.0


@pytest.mark.parametrize("only", ["pure", "renyi", "gaussian"])
def test_delta_for_charges_is_refused_where_nothing_charges_it(only: str) -> None:
    with pytest.raises(DomainError, match="charges no delta"):
        Budget(1.0, 1e-6, only=only, reserve=1e-7)


def test_the_guarantee_is_the_best_conversion() -> None:
    guarantee = AdvancedFilter(1.0, delta=1e-6, slack=1e-6).guarantee()
    assert isinstance(guarantee, ApproximateDP)
    # The double 1e-6 is below the decimal that was typed.
    assert guarantee == ApproximateDP(guarantee.epsilon, delta=math.nextafter(1e-6, 1))
    assert 0.8 < guarantee.epsilon < 0.84
    assert ConcentratedFilter(0.5, delta=0.25).guarantee() == ConcentratedDP(0.5, delta=0.25)
    curve = RenyiFilter(8.0, budget=0.5).guarantee()
    assert isinstance(curve, RenyiDP)
    assert curve(8.0) == 0.5 and curve(8.5) == math.inf


@every_filter
def test_nothing_finite_is_promised_at_a_delta_that_the_charges_may_use_up(filter: Filter) -> None:
    lost = filter.caps.get("delta", Fraction(0))
    if lost:
        assert filter.epsilon_at(delta=float(lost) / 2) == math.inf


# Descriptions


@every_theorem
@given(epsilon=st.one_of(st.floats(1e-6, 5.0), st.fractions(Fraction(1, 1000), Fraction(5))))
@settings(max_examples=10, deadline=None)
def test_a_description_is_plain_text_and_reads_back_exactly(only: str, epsilon: Any) -> None:
    filter = Budget(epsilon, Fraction(1, 10**6), only=only)
    description = json.loads(json.dumps(filter.description()))
    again = from_description(description)
    assert again == filter and again.caps == filter.caps and type(again) is type(filter)


@pytest.mark.parametrize(
    "change",
    [
        {"filter": "unknown"},
        {"filter": None},
        {"version": 3},
        {"epsilon": "nan"},
        {"epsilon": "-1.0"},
        {"epsilon": 1.0},
        {"epsilon": "one"},
        {"epsilon": "1/0"},
        {"epsilon": "inf"},
        {"delta": "2.0"},
        {"surplus": "1.0"},
    ],
)
def test_a_broken_description_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DomainError):
        from_description(BasicFilter(1.0, delta=1e-6).description() | change)


# Refusals


def test_the_natural_filter_is_refused_with_its_counter_example() -> None:
    with pytest.raises(
        UnsupportedError, match=r"delta\(1\.5\) = 0\.0634470710684997560374, against 0\.05"
    ):
        from_description({"filter": "natural"})


UNPRICED = [
    (PureFilter(1.0), Gaussian(1.0)),
    (PureFilter(1.0), BlackBox(0.1, delta=1e-9)),
    (PureFilter(1.0), Concentrated(0.1)),
    (BasicFilter(1.0, delta=1e-6), Gaussian(1.0)),
    (BasicFilter(1.0, delta=1e-6), BlackBox(0.1, delta=1.0)),
    (AdvancedFilter(1.0, delta=1e-6, slack=1e-7), Concentrated(0.1)),
    (ConcentratedFilter(1.0, delta=1e-6), Gaussian(1.0).sampled(0.1)),
    (RenyiFilter(8.0, budget=1.0), BlackBox(0.1, delta=1e-9)),
    (RenyiFilter(8.0, budget=1.0), Concentrated(0.1, delta=1e-9)),
    (GaussianFilter(1.0), DiscreteGaussian(5.0)),
    (GaussianFilter(1.0), Gaussian(1.0).sampled(0.5)),
    (GaussianFilter(1.0), Laplace(1.0)),
    (GaussianFilter(1.0), Gaussian(1.0) + DiscreteGaussian(5.0)),
]


@pytest.mark.parametrize(("filter", "mechanism"), UNPRICED, ids=lambda each: repr(each)[:40])
def test_what_has_no_proved_price_is_refused(filter: Filter, mechanism: Any) -> None:
    with pytest.raises(UnsupportedError):
        filter.price(mechanism)


def test_a_delta_named_too_small_for_a_mechanism_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="nothing finite is certified"):
        BasicFilter(1.0, delta=1e-6).price(BlackBox(0.1, delta=1e-7), delta=1e-8)


class Odd:
    """Names prices that are none."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def _said(self, *_: Any, **__: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    pure = approximate = epsilon = renyi = zcdp = gdp = _said


class Mute(Odd):
    def __repr__(self) -> str:
        raise RuntimeError("no name")


ODD = [
    math.nan,
    -1.0,
    math.inf,
    "free",
    0.5 + 0j,
    None,
    True,
    RuntimeError("broken"),
    ZeroDivisionError(),
]
ODD += [
    Bound(-1.0, -0.5),
    Bound(0.0, math.inf),
    ApproximateDP(math.inf),
    ApproximateDP(0.1, delta=1.0),
]


@every_filter
@pytest.mark.parametrize("answer", ODD, ids=repr)
@pytest.mark.parametrize("make", [Odd, Mute])
def test_a_mechanism_that_answers_nonsense_or_raises_is_refused(
    filter: Filter, answer: Any, make: Any
) -> None:
    state = filter.start()
    with pytest.raises(UnsupportedError):
        filter.step(state, make(answer), delta=1e-8)
    assert state == filter.start()


@every_filter
@pytest.mark.parametrize(
    "thing", [None, 1.0, "Laplace(1)", math.nan, object(), [Laplace(1.0)]], ids=range(6)
)
def test_what_is_no_mechanism_is_refused(filter: Filter, thing: Any) -> None:
    with pytest.raises(UnsupportedError):
        filter.price(thing)


@every_filter
@pytest.mark.parametrize("delta", [math.nan, -1e-9, 1.5, math.inf, "1e-9", True])
def test_a_bad_delta_is_named(filter: Filter, delta: Any) -> None:
    with pytest.raises(DomainError, match="delta"):
        filter.step(filter.start(), Gaussian(1.0), delta=delta)


@every_filter
def test_a_bad_adjacency_is_named(filter: Filter) -> None:
    with pytest.raises(DomainError, match="adjacency"):
        filter.start(adjacency="replace")  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="adjacency"):
        filter.price(Gaussian(1.0), adjacency="replace")  # type: ignore[arg-type]


LONG = [
    Decimal("1e999999999"),
    Decimal("1e-999999999"),
    Fraction(1, 10**5000),
    Decimal("snan"),
    10**5000,
]
BAD = [
    *LONG,
    math.nan,
    -1.0,
    -5e-324,
    math.inf,
    -math.inf,
    True,
    None,
    "1",
    1j,
    Decimal("nan"),
    Decimal("inf"),
    [1.0],
]


@pytest.mark.parametrize("value", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize(
    "build",
    [
        PureFilter,
        lambda bad: BasicFilter(bad, delta=0.5),
        lambda bad: BasicFilter(1.0, delta=bad),
        lambda bad: AdvancedFilter(bad, delta=0.5, slack=0.5),
        lambda bad: AdvancedFilter(1.0, delta=bad, slack=0.5),
        lambda bad: AdvancedFilter(1.0, delta=0.5, slack=bad),
        lambda bad: ConcentratedFilter(bad, delta=0.5),
        lambda bad: ConcentratedFilter(1.0, delta=bad),
        lambda bad: RenyiFilter(bad, budget=1.0),
        lambda bad: RenyiFilter(2.0, budget=bad),
        GaussianFilter,
        *[lambda bad, only=only: Budget(bad, 1e-6, only=only) for only in THEOREMS],  # type: ignore[misc]
        *[lambda bad, only=only: Budget(1.0, bad, only=only) for only in THEOREMS],  # type: ignore[misc]
        *[
            lambda bad, only=only: Budget(1.0, 0.5, only=only, reserve=bad or math.nan)
            for only in ("basic", "zcdp")
        ],  # type: ignore[misc]
    ],
)
def test_bad_parameters_are_refused(build: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(DPComposeError):
        build(value)


@pytest.mark.parametrize(
    "build",
    [
        lambda: AdvancedFilter(1.0, delta=1e-6, slack=0.0),
        lambda: AdvancedFilter(1.0, delta=1e-6, slack=2e-6),
        lambda: AdvancedFilter(1.0, delta=0.0, slack=0.0),
        lambda: AdvancedFilter(1.0, slack=1e-7),
        lambda: ConcentratedFilter(0.5, rho=0.5),
        lambda: ConcentratedFilter(0.5, 1e-6, 1e-6),
        lambda: Budget(1.0, 1e-6, reserve=2e-6, only="basic"),
        lambda: RenyiFilter(1.0, budget=1.0),
        lambda: BasicFilter(1.0, delta=1.0000000000000002),
        lambda: PureFilter(1e16),
    ],
)
def test_parameters_outside_a_theorem_are_refused(build: Callable[[], Any]) -> None:
    with pytest.raises(DomainError):
        build()


@pytest.mark.slow
@every_theorem
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-200, 1e-9, 300.0])
def test_a_target_ends_whatever_the_target(only: str, epsilon: float) -> None:
    """A guess that underflowed to 0 was doubled for ever."""
    orders = (8.0,) if only == "renyi" else None
    made = Budget(epsilon, 1e-6, only=only, orders=orders)
    assert made.epsilon_at(delta=1e-6) <= (
        math.nextafter(epsilon, math.inf) if only == "basic" else epsilon
    )


@every_theorem
def test_everything_fits_where_delta_is_one(only: str) -> None:
    assert Budget(1.0, 1.0, only=only).epsilon_at(delta=1.0) <= 1.0


@every_filter
@pytest.mark.parametrize("times", [-1, 2.5, math.nan, True, None, 10**16])
def test_a_number_of_budgets_is_one(filter: Filter, times: Any) -> None:
    """Fewer than no budgets of a rho cost less than none."""
    with pytest.raises(DomainError, match="times"):
        filter.total(times, delta=1e-6)


def test_a_refusal_rounds_what_is_asked_up_and_what_is_left_down() -> None:
    filter = PureFilter(Fraction(1) - Fraction(1, 10**9))
    _, decision = filter.step(filter.start(), BlackBox(1.0 + 2**-40))
    assert decision.reason == "refused: epsilon 1.00001 asked, 0.999999 left"


def test_the_currency_of_a_huge_order_is_short_enough_for_a_ledger() -> None:
    assert [*RenyiFilter(1e60, budget=1.0).limits] == ["renyi:1e+60"]
    assert [*RenyiFilter(64.0, budget=1.0).limits] == ["renyi:64"]
