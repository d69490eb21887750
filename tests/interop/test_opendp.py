"""OpenDP's measurements in and our totals out, held against exact values; nothing is invoked before it is charged."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import mpmath
import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    Gaussian,
    Laplace,
    RandomizedResponse,
    compose,
)
from dpcompose.account import Account, open_scope
from dpcompose.adaptive import BasicFilter, Budget, PureFilter
from dpcompose.errors import (
    AlreadyRedeemedError,
    DomainError,
    EngineError,
    OverdrawnError,
    ReleaseError,
    UnsupportedError,
)
from dpcompose.ledger import Ledger
from dpcompose.mechanisms import DominatingPair

pytest.importorskip("opendp")

from opendp import combinators, domains, measurements, measures, metrics, mod, transformations

from dpcompose.interop.opendp import (
    compositor,
    from_measurement,
    privacy_profile,
    to_measurement,
)

ADD_REMOVE, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE


@pytest.fixture(autouse=True)
def features() -> Any:
    mod.enable_features("contrib", "honest-but-curious")
    yield
    mod.disable_features("contrib", "honest-but-curious")


def space() -> tuple[Any, Any]:
    return domains.atom_domain(T="f64", nan=False), metrics.absolute_distance(T="f64")


def made(
    measure: Any,
    privacy_map: Callable[[float], Any],
    function: Callable[[Any], Any] = lambda _: 1.0,
) -> Any:
    return measurements.make_user_measurement(*space(), measure, function, privacy_map, TO="f64")


def with_profile(curve: Callable[[float], float]) -> Any:
    return made(
        measures.smoothed_max_divergence(), lambda _: measures.new_privacy_profile(curve).curve
    )


def exact_gaussian(mu: float, epsilon: float) -> Any:
    with mpmath.workdps(40):
        low, high = (
            mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu,
            -mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu,
        )
        return mpmath.ncdf(low) - mpmath.exp(epsilon) * mpmath.ncdf(high)


def exact_laplace(largest: float, epsilon: float) -> Any:
    with mpmath.workdps(40):
        return (
            -mpmath.expm1((mpmath.mpf(epsilon) - mpmath.mpf(largest)) / 2)
            if epsilon < largest
            else mpmath.mpf(0)
        )


def exact_response(largest: float, epsilon: float) -> Any:
    with mpmath.workdps(40):
        truth = 1 / (1 + mpmath.exp(-mpmath.mpf(largest)))
        return max(truth - mpmath.exp(epsilon) * (1 - truth), mpmath.mpf(0))


FAMILIES = [
    (Gaussian(2.0), lambda epsilon: exact_gaussian(0.5, epsilon)),
    (Gaussian(2.0) * 16, lambda epsilon: exact_gaussian(2.0, epsilon)),
    (Laplace(0.5), lambda epsilon: exact_laplace(2.0, epsilon)),
    (RandomizedResponse(1.5), lambda epsilon: exact_response(1.5, epsilon)),
]


@pytest.mark.parametrize(("total", "exact"), FAMILIES)
def test_the_round_trip_stays_above_the_exact_profile_and_next_to_it(
    total: Any, exact: Callable[[float], Any]
) -> None:
    domain, metric = space()
    out = to_measurement(
        total,
        lambda _: 1.0,
        input_domain=domain,
        input_metric=metric,
        d_in=1.0,
        adjacency=ADD_REMOVE,
        TO="f64",
    )
    back = from_measurement(out, 1.0, adjacency=ADD_REMOVE)
    own = privacy_profile(total)
    for epsilon in (0.0, 0.01, 0.3, 1.0, 1.49, 1.99, 3.0, 6.0):
        truth = exact(epsilon)
        for upper, share in (
            (own.delta(epsilon), 1e-9),
            (compose(back).delta(epsilon=epsilon).upper, 2e-4),
        ):
            assert truth <= upper <= truth * (1 + share) + 1e-9, (epsilon, upper)


def test_a_composition_of_profiles_stays_above_the_exact_one() -> None:
    for total in (Gaussian(4.0),):
        domain, metric = space()
        out = to_measurement(
            total,
            lambda _: 1.0,
            input_domain=domain,
            input_metric=metric,
            d_in=1.0,
            adjacency=ADD_REMOVE,
            TO="f64",
        )
        ten = from_measurement(out, 1.0, adjacency=ADD_REMOVE) * 10
        truth = (total * 10).epsilon(delta=1e-6)
        assert truth.lower <= ten.epsilon(delta=1e-6).upper <= truth.upper * 1.001


def test_a_profile_of_steps_is_above_every_mechanism_below_the_steps() -> None:
    """Upper ends need not be convex: the pair is the polygon below them, above every convex curve that is."""
    step = compose(
        from_measurement(
            with_profile(lambda epsilon: 0.25 if epsilon < 1 else 0.01), 1, adjacency=ADD_REMOVE
        )
    )
    for hidden in (
        BlackBox(0.4, delta=0.01),
        BlackBox(0.0, delta=0.01),
        Gaussian(2.0),
        RandomizedResponse(0.5),
        Laplace(2.0),
    ):
        assert hidden.delta(epsilon=0.0).lower <= 0.25 and hidden.delta(epsilon=1.0).lower <= 0.01
        for copies, delta in ((1, 0.011), (5, 0.06), (20, 0.3)):
            assert (step * copies).epsilon(delta=delta).upper >= (hidden * copies).epsilon(
                delta=delta
            ).lower
        for epsilon in (-1.0, 0.0, 0.2, 0.5, 0.9, 1.0, 2.0):
            assert step.delta(epsilon=epsilon).upper >= hidden.delta(epsilon=epsilon).lower
    assert (
        step.delta(epsilon=5.0).upper >= 0.01 and step.epsilon(delta=0.005).upper == math.inf
    )  # a floor stays


def test_each_measure_is_read_as_its_own_statement() -> None:
    laplace, gaussian = (
        make(*space(), scale=2.0)
        for make in (measurements.make_laplace, measurements.make_gaussian)
    )
    profile = combinators.make_zCDP_to_approxDP(gaussian)
    found = [
        from_measurement(each, 1.0, adjacency=ADD_REMOVE)
        for each in (
            laplace,
            gaussian,
            combinators.make_fix_delta(profile, 1e-6),
            combinators.make_approximate(laplace),
            combinators.make_approximate(gaussian),
            measurements.make_canonical_noise(*space(), d_in=1.0, d_out=(0.5, 1e-6)),
        )
    ]
    fixed = profile.map(1.0).epsilon(1e-6)
    assert found[0] == found[3] == BlackBox(0.5) and found[1] == found[4] == Concentrated(0.125)
    assert found[2] == BlackBox(fixed, delta=1e-6) and found[5] == BlackBox(0.5, delta=1e-6)
    asked = compose(from_measurement(profile, 1.0, adjacency=ADD_REMOVE))
    for delta in (1e-9, 1e-6, 1e-3):
        native = Concentrated(0.125).epsilon(delta=delta)
        assert (
            native.lower
            <= asked.epsilon(delta=delta).upper
            <= profile.map(1.0).epsilon(delta) * 1.001
        )
        assert asked.epsilon(delta=delta).upper >= Gaussian(2.0).epsilon(delta=delta).lower
    curve = made(measures.renyi_divergence(), lambda distance: lambda order: order * distance / 8)
    renyi = compose(from_measurement(curve, 1.0, adjacency=ADD_REMOVE)).epsilon(delta=1e-6).upper
    assert renyi == pytest.approx(Concentrated(0.125).epsilon(delta=1e-6).upper, rel=1e-9)


@pytest.mark.parametrize("largest", [0.1, 0.3, math.log(3), 1.1, 2 / 3])
def test_what_a_map_returns_is_an_upper_end_in_both_readings(largest: float) -> None:
    read = from_measurement(
        made(measures.max_divergence(), lambda _: largest), 1.0, adjacency=ADD_REMOVE
    )
    typed = compose(read).typed(adjacency=ADD_REMOVE)
    assert typed is not None and typed.epsilon is not None and typed.epsilon >= largest
    assert compose(read).epsilon(delta=0.0).upper >= largest


def test_the_metric_says_which_neighbors_are_meant() -> None:
    rows = domains.vector_domain(domains.atom_domain(T=bool))
    noise = measurements.make_laplace(
        domains.atom_domain(T="i32"), metrics.absolute_distance(T="i32"), scale=2.0
    )
    count = transformations.make_count(rows, metrics.symmetric_distance(), TO="i32") >> noise
    assert from_measurement(count, 1) == BlackBox(0.5) and from_measurement(count, 3) == BlackBox(
        1.5
    )
    assert from_measurement(count, 2, adjacency=REPLACE) == BlackBox(1.0, holds_under=REPLACE)
    response = from_measurement(measurements.make_randomized_response_bool(0.75), 1)
    exact = math.log(3)
    assert (
        exact <= compose(response).epsilon(delta=0.0, adjacency=REPLACE).upper < exact * (1 + 1e-14)
    )
    for adjacency in (REPLACE, Adjacency.ZERO_OUT):
        with pytest.raises(UnsupportedError, match="neighbors"):
            from_measurement(count, 1, adjacency=adjacency)
    with pytest.raises(UnsupportedError, match="neighbors"):
        from_measurement(measurements.make_randomized_response_bool(0.75), 1, adjacency=ADD_REMOVE)
    with pytest.raises(DomainError, match="adjacency"):
        from_measurement(noise, 1)
    with pytest.raises(DomainError, match="at least 1"):
        from_measurement(count, 0)


@pytest.mark.parametrize("d_in", [math.nan, math.inf, -1.0, "1", True, None, [1.0]])
def test_what_is_no_distance_is_refused(d_in: Any) -> None:
    with pytest.raises(DomainError):
        from_measurement(measurements.make_laplace(*space(), scale=2.0), d_in, adjacency=ADD_REMOVE)


def test_another_type_is_refused() -> None:
    for wrong in (None, 3, measures.max_divergence(), "laplace"):
        with pytest.raises(DomainError):
            from_measurement(wrong, 1.0)
    with pytest.raises(DomainError):
        from_measurement(measurements.make_laplace(*space(), scale=2.0), 1.0, adjacency="replace")  # type: ignore
    with pytest.raises(DomainError):
        privacy_profile("gaussian")  # pyright: ignore[reportArgumentType]
    counting = measurements.make_randomized_response_bool(0.75)
    with pytest.raises(DomainError, match="distance of"):
        from_measurement(counting, 1.5)


def fails(_: float) -> Any:
    raise ZeroDivisionError("no map")


@pytest.mark.parametrize(
    "measurement",
    [
        lambda: made(measures.max_divergence(), lambda _: math.nan),
        lambda: made(measures.max_divergence(), lambda _: math.inf),
        lambda: made(measures.max_divergence(), lambda _: -1.0),
        lambda: made(measures.max_divergence(), lambda _: 1e9),
        lambda: made(measures.max_divergence(), fails),
        lambda: made(measures.zero_concentrated_divergence(), lambda _: math.nan),
        lambda: made(measures.renyi_divergence(), lambda _: lambda order: math.nan),
        lambda: made(measures.renyi_divergence(), lambda _: lambda order: 1 / order),
        lambda: made(measures.user_divergence("mine"), lambda _: 1.0),
        lambda: with_profile(fails),
        lambda: with_profile(lambda _: math.nan),
        lambda: with_profile(lambda _: -0.5),
        lambda: measurements.make_canonical_noise(*space(), d_in=0.5, d_out=(0.5, 1e-6)),
    ],
)
def test_a_map_that_says_nothing_there_is_one_clear_error(measurement: Callable[[], Any]) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        from_measurement(measurement(), 1.0, adjacency=ADD_REMOVE)
    assert (
        "d_in = 1.0" in str(refusal.value)
        and len(str(refusal.value)) < 300
        and "\n" not in str(refusal.value)
    )


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        ([], []), ([1.0], []), ([1.0], [0.1, 0.2]), ([2.0, 1.0], [0.1, 0.0]), ([1.0, 1.0], [0.1, 0.0]), ([-1.0], [0.1]),
        ([math.nan], [0.1]), ([math.inf], [0.1]), ([1.0], [1.1]), ([1.0], [math.nan]), ([True], [0.1]), ("1", [0.1]),
        (1.0, 0.1), ({1.0: 0.1}, [0.1]), ([1.0], None), (["1"], [0.1]),
    ],
)  # fmt: skip
def test_points_that_are_none_are_refused(epsilon: Any, delta: Any) -> None:
    with pytest.raises(DomainError):
        DominatingPair.from_points(epsilon, delta, adjacency=ADD_REMOVE)


def test_points_that_floats_cannot_tell_apart_are_one() -> None:
    close = [
        0.0,
        1e-20,
        1e-17,
        math.nextafter(1.0, 2.0),
        math.nextafter(math.nextafter(1.0, 2.0), 2.0),
        700.0,
    ]
    pair = DominatingPair.from_points(close, [0.1, 0.2, 0.05, 0.01, 0.02, 0.0], adjacency=REPLACE)
    assert 0.05 <= pair.delta(epsilon=0.0, adjacency=REPLACE).upper < 0.0501
    assert 0.01 <= pair.delta(epsilon=1.001, adjacency=REPLACE).upper < 0.0101
    one = DominatingPair.from_points([0.5], [1e-3], adjacency=ADD_REMOVE)
    for epsilon in (-2.0, 0.0, 0.25, 0.5, 3.0):
        worst = BlackBox(0.5, delta=1e-3).delta(epsilon=epsilon)
        assert worst.lower <= one.delta(epsilon=epsilon).upper <= worst.upper + 1e-12


def hockey_stick(
    first: list[Fraction], second: list[Fraction], copies: int, ratio: Fraction
) -> Fraction:
    """delta at ln(ratio) of so many copies of a pair of distributions, outcome by outcome, exactly."""
    total = Fraction(0)
    for outcome in product(range(len(first)), repeat=copies):
        masses = [
            math.prod((side[each] for each in outcome), start=Fraction(1))
            for side in (first, second)
        ]
        total += max(masses[0] - ratio * masses[1], Fraction(0))
    return total


@pytest.mark.parametrize("seed", range(12))
def test_the_pair_above_points_dominates_the_pair_that_hides_below_them(seed: int) -> None:
    random = Random(seed)
    outcomes = random.randint(2, 4)
    sides: list[list[Fraction]] = []
    for _ in range(2):
        weights = [random.choice([0, 1, 1, 2, 5, 30]) for _ in range(outcomes)]
        weights[random.randrange(outcomes)] += 1
        sides.append([Fraction(weight, sum(weights)) for weight in weights])
    orders = [(sides[0], sides[1]), (sides[1], sides[0])]
    epsilons = sorted(
        {round(random.choice([0.0, random.uniform(0, 4)]), 3) for _ in range(random.randint(1, 8))}
    )
    slack = random.choice([0.0, 1e-3])
    ends: list[float] = []
    for each in epsilons:  # at a ratio a little below e^epsilon, so that each value is an upper end
        ratio = Fraction(math.exp(each) * (1 - 1e-15))
        exact = max(hockey_stick(*order, 1, ratio) for order in orders)
        ends.append(min(float(exact) * (1 + 1e-15) + slack * random.random(), 1.0))
    pair = DominatingPair.from_points(epsilons, ends, adjacency=ADD_REMOVE)
    for copies in (1, 2, 3):
        for epsilon in (-1.0, 0.0, 0.1, 0.7, 2.0, 5.0):
            above = (pair * copies).delta(epsilon=epsilon).upper
            for order in orders:
                assert (
                    hockey_stick(*order, copies, Fraction(math.exp(epsilon) * (1 + 1e-15))) <= above
                )


def test_totals_go_no_farther_than_they_were_stated() -> None:
    domain, metric = space()
    arguments: dict[str, Any] = {
        "input_domain": domain,
        "input_metric": metric,
        "d_in": 1.0,
        "adjacency": ADD_REMOVE,
    }
    out = to_measurement(Laplace(2.0), lambda _: 7.0, TO="f64", **arguments)
    assert out(1.0) == 7.0 and out.map(0.5).delta(0.0) >= out.map(1.0).delta(0.0) > 0
    with pytest.raises(UnsupportedError, match="at most 1"):
        from_measurement(out, 2.0, adjacency=ADD_REMOVE)
    with pytest.raises(DomainError):
        to_measurement(Laplace(2.0), lambda _: 7.0, **{**arguments, "input_metric": "absolute"})
    mod.disable_features("honest-but-curious")
    with pytest.raises(UnsupportedError, match="honest-but-curious"):
        privacy_profile(Laplace(2.0))


def scope(budget: Any = None, **arguments: Any) -> Account:
    chosen = budget or PureFilter(1)
    return open_scope(Ledger.open("memory:"), "world", filter=chosen, actor="Ada", **arguments)


def test_a_measurement_is_charged_before_it_is_invoked_and_refused_before() -> None:
    order: list[str] = []
    account = scope()

    def function(_: Any) -> float:
        order.append("invoked")
        assert account.ledger.balance("world").spent["epsilon"].fraction > 0
        return 1.0

    one = made(measures.max_divergence(), lambda distance: 0.6 * distance, function)
    domain, metric = space()
    around = compositor(account, 3.0, input_domain=domain, input_metric=metric, d_in=1.0)
    assert around.invoke(one, actor="Ada", key="first") == 1.0 and order == ["invoked"]
    assert "3.0" not in repr(around)
    with pytest.raises(OverdrawnError):
        around.invoke(one, actor="Ada", key="second")
    with pytest.raises(AlreadyRedeemedError):
        around.invoke(one, actor="Ada", key="first")
    small = made(measures.max_divergence(), lambda distance: 0.1 * distance, function)
    with pytest.raises(UnsupportedError):
        around.invoke(
            made(measures.user_divergence("mine"), lambda _: 0.0, function),
            actor="Ada",
            key="third",
        )
    with pytest.raises(DomainError, match="input_domain"):
        around.invoke(
            measurements.make_laplace(
                domains.atom_domain(T="i32"), metrics.absolute_distance(T="i32"), scale=9.0
            ),
            actor="Ada",
            key="fourth",
        )
    assert order == ["invoked"]
    assert around.invoke(small, actor="Ada", key="fifth") == 1.0
    assert account.ledger.balance("world").spent["epsilon"].fraction == pytest.approx(0.7)


def test_a_failure_of_opendp_leaves_the_charge_and_tells_nothing() -> None:
    account = scope(Budget(1, 1e-6, only="zcdp"))
    domain, metric = space()
    around = compositor(account, 3.0, input_domain=domain, input_metric=metric, d_in=1.0)

    def leaking(value: float) -> float:
        raise ValueError(f"the secret is {value}")

    with pytest.raises(EngineError) as failure:
        around.invoke(
            made(measures.zero_concentrated_divergence(), lambda _: 0.01, leaking),
            actor="Ada",
            key="one",
        )
    assert "secret" not in str(failure.value)
    assert account.ledger.balance("world").spent["rho"].fraction >= 0.01
    interactive = combinators.make_adaptive_composition(
        *space(),
        output_measure=measures.zero_concentrated_divergence(),
        d_in=1.0,
        d_mids=[0.001, 0.001],
    )
    with pytest.raises(ReleaseError, match="answers once"):
        around.invoke(interactive, actor="Ada", key="two")


def test_a_profile_is_charged_at_a_point_of_its_curve() -> None:
    account = scope(BasicFilter(1, delta=1e-5))
    domain, metric = space()
    around = compositor(account, 3.0, input_domain=domain, input_metric=metric, d_in=1.0)
    profile = combinators.make_zCDP_to_approxDP(measurements.make_gaussian(*space(), scale=10.0))
    assert isinstance(around.invoke(profile, actor="Ada", key="one", delta=1e-6), float)
    assert (
        account.ledger.balance("world").spent["epsilon"].fraction
        >= Gaussian(10.0).epsilon(delta=1e-6).lower
    )


def test_a_compositor_needs_an_account_and_a_metric_of_its_neighbors() -> None:
    domain, metric = space()
    with pytest.raises(DomainError):
        compositor("world", 3.0, input_domain=domain, input_metric=metric, d_in=1.0)  # pyright: ignore
    with pytest.raises(DomainError):
        compositor(scope(), 3.0, input_domain=domain, input_metric="absolute", d_in=1.0)
    with pytest.raises(UnsupportedError):
        compositor(
            scope(adjacency=REPLACE),
            [True],
            input_domain=domain,
            input_metric=metrics.symmetric_distance(),
            d_in=1,
        )
