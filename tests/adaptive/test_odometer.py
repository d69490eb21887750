"""Odometers: boundaries derived, crossed no more often than they say, for mechanisms chosen to cross them.

Simulations state their size and the probability with which a true bound would fail them; seeds are fixed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings, strategies as st
from scipy import integrate, stats

from campaigns.odometers import Ride
from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    Exponential,
    Gaussian,
    Laplace,
    RandomizedResponse,
)
from dpcompose.adaptive import Line, Mixture, Odometer
from dpcompose.errors import DomainError, UnsupportedError
from oracles.backward import ever, promise
from oracles.ball import ball

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]
Boundaries = Line | Mixture
every_boundary = pytest.mark.parametrize("family", [Line, Mixture])


# Boundaries


def test_the_line_against_the_golden_row() -> None:
    (row,) = (row for row in GOLDEN if row["name"] == "odometer_linear")
    variance, tight = float(row["params"]["V"]), float(row["params"]["y"])
    found = Line(tight / 2).above(variance / 2, failure=float(row["params"]["delta_prime"]))
    assert float(row["expected"]) <= found * (1 + 1e-15) and found == pytest.approx(
        float(row["expected"]), rel=1e-13
    )


@settings(max_examples=60, deadline=None)
@given(rho=st.floats(0, 50), tight=st.floats(1e-3, 50), exponent=st.floats(-12, -0.5))
def test_the_line_is_the_best_of_one_exponent(rho: float, tight: float, exponent: float) -> None:
    """e^(l X - l^2 V / 2) reaches 1 / failure where X is on the line, for the l that the line stands for."""
    failure, variance = 10**exponent, 2 * rho
    slope = math.sqrt(-2 * math.log(failure) / (2 * tight))
    excess = Line(tight).above(rho, failure=failure) - rho
    assert slope * excess - slope**2 * variance / 2 == pytest.approx(-math.log(failure), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(rho=st.floats(0, 20), tight=st.floats(1e-2, 20), exponent=st.floats(-10, -0.5))
def test_the_mixture_reaches_one_over_failure_on_its_boundary(
    rho: float, tight: float, exponent: float
) -> None:
    """The mixture over half-normal l, integrated numerically, at the boundary: at least 1 / failure, and close."""
    failure, variance = 10**exponent, 2 * rho
    twice = -2 * math.log(failure)
    rest = 2 * tight / (1 + twice + math.log1p(twice))
    excess = Mixture(tight).above(rho, failure=failure) - rho
    center, width = excess / (variance + rest), 1 / math.sqrt(variance + rest)

    def integrand(slope: float) -> float:
        density = 0.5 * math.log(2 * rest / math.pi) - rest * slope**2 / 2
        return math.exp(density + slope * excess - slope**2 * variance / 2 + math.log(failure))

    ends = max(0.0, center - 40 * width), center + 40 * width
    value = integrate.quad(
        integrand, *ends, points=[max(center, ends[0])], limit=400, epsabs=0, epsrel=1e-11
    )[0]
    assert 1 - 1e-9 <= value <= 1 + 1e-6


@every_boundary
def test_boundaries_grow_with_rho_and_fall_with_failure(
    family: Callable[[float], Boundaries],
) -> None:
    boundary = family(0.2)
    grid = np.linspace(0, 3, 40)
    rows = [
        [boundary.above(float(rho), failure=failure) for rho in grid]
        for failure in (1e-9, 1e-6, 1e-2)
    ]
    assert all(np.all(np.diff(row) > 0) for row in rows)
    assert np.all(np.diff(np.array(rows), axis=0) < 0)


def test_the_mixture_is_near_the_best_line_everywhere() -> None:
    mixture = Mixture(0.2)
    for rho in np.geomspace(0.02, 20, 20):
        assert mixture.above(rho, failure=1e-6) <= 1.25 * Line(rho).above(rho, failure=1e-6)


@every_boundary
@pytest.mark.parametrize("tight", [0.0, -1.0, math.nan, math.inf, 1e-300, 1e300, "1"])
def test_boundaries_are_made_for_a_sensible_rho(
    family: Callable[[Any], Boundaries], tight: Any
) -> None:
    with pytest.raises(DomainError, match="tight_at"):
        family(tight)


@every_boundary
@pytest.mark.parametrize("tight", [1e-50, 1e-3, 1e50])
@pytest.mark.parametrize("rho", [0.0, 5e-324, 1.0, 1e99, 1e308, math.inf])
@pytest.mark.parametrize("failure", [5e-324, 1e-6, 1 - 2**-53])
def test_boundaries_are_numbers_wherever_they_are_asked(
    family: Callable[[float], Boundaries], tight: float, rho: float, failure: float
) -> None:
    """NaN was the answer where a square overflowed, and NaN is below no loss."""
    assert rho < family(tight).above(rho, failure=failure) or rho == math.inf
    with pytest.raises(DomainError):
        family(tight).above(-1.0, failure=failure)


# False alarms


def crossings(odometer: Odometer, *, runs: int, rounds: int, seed: int, strategy: str) -> int:
    """How often the realized loss is ever above the reading: rho_i-zCDP Gaussian answers, sizes chosen to cross.

    "one": equal small steps up to where a line is tight and far beyond. "chase": large steps while the loss is close
    to the reading, small ones else. The loss of a step of mu is mu^2 / 2 + mu Z.
    """
    rng = np.random.default_rng(seed)
    loss, spent = np.zeros(runs), np.zeros(runs)
    crossed = np.zeros(runs, dtype=bool)
    grid = np.linspace(0, 12, 4001)
    failure = odometer.delta - odometer.mechanism_delta
    curve = np.array([odometer.boundary.above(float(rho), failure=failure) for rho in grid])
    for _ in range(rounds):
        reading = np.interp(spent, grid, curve)
        mu = np.full(runs, 0.15) if strategy == "one" else np.where(loss > 0.6 * reading, 0.6, 0.08)
        mu = np.where(spent + mu**2 / 2 < 12, mu, 0.0)
        loss += mu**2 / 2 + mu * rng.standard_normal(runs)
        spent += mu**2 / 2
        crossed |= (loss > np.interp(spent, grid, curve)) & (mu > 0)
    return int(np.sum(crossed))


@pytest.mark.statistical
@every_boundary
@pytest.mark.parametrize("strategy", ["one", "chase"])
def test_the_reading_is_crossed_no_more_often_than_stated(
    family: Callable[[float], Boundaries], strategy: str
) -> None:
    """40,000 interactions, stated probability 0.05: a true bound fails this with probability below 1e-9."""
    runs, stated = 40_000, 0.05
    found = crossings(
        Odometer(stated, boundary=family(0.5)), runs=runs, rounds=400, seed=17, strategy=strategy
    )
    assert found <= stats.binom.isf(1e-9, runs, stated)
    # A bound that nothing ever comes near would prove little.
    assert found >= 0.3 * stated * runs


def test_a_bound_for_one_time_is_crossed_more_often_at_all_times() -> None:
    """The control: rho + 2 sqrt(rho ln(1 / delta)), right at each time alone, fails when looked at all the time."""

    class OneTime:
        tight_at, kind = 0.5, "line"

        def above(self, rho: float, *, failure: float) -> float:
            return rho + 2 * math.sqrt(-rho * math.log(failure))

    odometer = Odometer(0.05)
    object.__setattr__(odometer, "boundary", OneTime())
    assert (
        crossings(odometer, runs=20_000, rounds=400, seed=17, strategy="one") > 1.2 * 0.05 * 20_000
    )


def test_cut_losses_of_approximate_mechanisms_are_within_their_bound() -> None:
    """E[e^(l L); L <= e] of (epsilon, delta) pairs, worst and random, against what the odometer allows."""
    rng, checked = np.random.default_rng(3), 0
    for _ in range(400):
        epsilon, delta, stretch = (
            rng.uniform(0.02, 2),
            10 ** rng.uniform(-6, -1.2),
            rng.uniform(1.05, 3),
        )
        cut = stretch * epsilon
        odometer = Odometer(0.999, mechanism_delta=0.99, stretch=stretch)
        try:
            allowed = odometer.mileage(BlackBox(epsilon, delta=delta))
        except UnsupportedError:
            assert delta / -math.expm1(epsilon - cut) >= 0.99
            continue
        rho, drift = float(allowed.rho), float(allowed.drift)
        for one, two in pairs(rng, epsilon, delta):
            inside = (one > 0) & (two > 0)
            loss = np.log(one[inside] / two[inside])
            kept = loss <= cut
            outside = 1 - np.sum(one[inside][kept])
            assert outside <= float(allowed.failure) * (1 + 1e-9)
            checked += 1
            for slope in (1e-3, 0.1, 1.0, 5.0, 30.0):
                moment = np.sum(one[inside][kept] * np.exp(slope * loss[kept]))
                assert math.log(moment) <= slope * (slope + 1) * rho + slope * drift + 1e-12
    assert checked > 1000


def pairs(rng: np.random.Generator, epsilon: float, delta: float) -> list[tuple[Any, Any]]:
    """Pairs of distributions that are (epsilon, delta)-close in both orders."""
    high = 1 / (1 + math.exp(-epsilon))
    worst = np.array([delta, (1 - delta) * high, (1 - delta) * (1 - high), 0.0])
    found = [(worst, worst[::-1])]
    # Mass delta of the other world never shown, the rest pressed: losses a little above epsilon.
    pressed = (
        np.array([high, 1 - high, 0.0]),
        np.array([(1 - delta) * (1 - high), (1 - delta) * high, delta]),
    )
    for one, two in (pressed, pressed[::-1]):
        if _close(one, two, epsilon, delta):
            found.append((one, two))
    for _ in range(20):
        weights = rng.dirichlet(np.ones(6) * 0.7)
        other = weights * np.exp(rng.uniform(-1.3, 1.3, 6) * epsilon)
        one, two = weights, other / np.sum(other)
        if _close(one, two, epsilon, delta):
            found += [(one, two), (two, one)]
    return found


def _close(one: Any, two: Any, epsilon: float, delta: float) -> bool:
    gaps = [np.sum(np.maximum(p - math.exp(epsilon) * q, 0)) for p, q in ((one, two), (two, one))]
    return max(gaps) <= delta


# Readings


def test_pure_charges_read_their_sum_where_that_is_smaller() -> None:
    odometer = Odometer(1e-6, boundary=Mixture(0.05))
    state = odometer.step(odometer.start(), BlackBox(0.25))
    assert odometer.reading(state).epsilon == 0.25 and odometer.reading(state).failure == 0
    for _ in range(100):
        state = odometer.step(state, BlackBox(0.25))
    reading = odometer.reading(state)
    assert (
        reading.epsilon < 0.25 * 101
        and reading.failure == 1e-6
        and "not an (epsilon, delta)" in reading.meaning
    )


def test_a_gaussian_has_no_sum_along_the_path() -> None:
    odometer = Odometer(1e-6)
    state = odometer.step(odometer.step(odometer.start(), BlackBox(0.001)), Gaussian(100.0))
    assert state.mileage.epsilon is None and odometer.reading(state).epsilon > 0.1


@pytest.mark.parametrize(
    "mechanism", [Laplace(3.0), Gaussian(3.0), Exponential(0.5), RandomizedResponse(1.0)]
)
def test_zero_concentrated_mechanisms_need_no_cut(mechanism: Any) -> None:
    added = Odometer(1e-6).mileage(mechanism)
    known = mechanism.zcdp()
    assert Fraction(known.rho) * (1 - Fraction(1, 10**12)) <= added.rho <= Fraction(known.rho)
    assert added.failure == added.drift == 0


def test_the_reserve_for_deltas_is_a_limit() -> None:
    odometer = Odometer(1e-6, mechanism_delta=1e-7)
    state = odometer.step(odometer.start(), BlackBox(0.5, delta=1e-8))
    with pytest.raises(UnsupportedError, match="larger mechanism_delta"):
        odometer.step(state, BlackBox(0.5, delta=9e-8))
    assert odometer.reading(state).failure == 1e-6
    with pytest.raises(UnsupportedError):
        Odometer(1e-6).step(Odometer(1e-6).start(), BlackBox(0.5, delta=1e-9))


def test_without_a_price_there_is_no_mileage() -> None:
    odometer = Odometer(1e-3, mechanism_delta=1e-4)
    for mechanism in (Concentrated(0.1, delta=1e-9), Gaussian(1.0).sampled(0.1)):
        with pytest.raises(UnsupportedError):
            odometer.mileage(mechanism)
    assert odometer.mileage(Gaussian(1.0).sampled(0.1), delta=1e-9).failure > 0


def test_descriptions_read_back() -> None:
    odometer = Odometer(1e-5, boundary=Line(0.3), mechanism_delta=2e-7, stretch=1.5)
    assert Odometer.from_description(json.loads(json.dumps(odometer.description()))) == odometer


@pytest.mark.parametrize(
    "build",
    [
        lambda: Odometer(0.0),
        lambda: Odometer(1.0),
        lambda: Odometer(math.nan),
        lambda: Odometer(1e-6, mechanism_delta=1e-6),
        lambda: Odometer(1e-6, stretch=1.0),
        lambda: Odometer(1e-6, stretch=math.inf),
        lambda: Odometer(1e-6, boundary="line"),  # type: ignore[arg-type]
        lambda: Line(0.0),
        lambda: Mixture(-1.0),
        lambda: Mixture(math.nan),
        lambda: Line(1.0).above(-1.0, failure=0.5),
        lambda: Mixture(1.0).above(math.nan, failure=0.5),
        lambda: Mixture(1.0).above(1.0, failure=1.5),
        lambda: Odometer.from_description({"odometer": "stitched"}),
        lambda: Odometer(1e-6).step(Odometer(1e-5).start(), Laplace(1.0)),
        lambda: Odometer(1e-6).start(adjacency="replace"),  # type: ignore[arg-type]
    ],
)
def test_bad_odometers_are_refused(build: Callable[[], Any]) -> None:
    with pytest.raises(DomainError):
        build()


def test_answers_are_priced_under_the_adjacency_of_the_state() -> None:
    odometer = Odometer(1e-6)
    one, two = (odometer.step(odometer.start(adjacency=each), Laplace(2.0)) for each in (
        Adjacency.ADD_REMOVE, Adjacency.REPLACE))  # fmt: skip
    assert two.mileage.rho > 2 * one.mileage.rho


@pytest.mark.parametrize(
    "said", [None, 3, {}, {"odometer": []}, {"odometer": "line", "version": 1}]
)
def test_what_is_no_odometer_is_refused(said: Any) -> None:
    with pytest.raises(DomainError):
        Odometer.from_description(said)


def test_an_odometer_keeps_something_for_its_boundary() -> None:
    with pytest.raises(DomainError, match="mechanism_delta"):
        Odometer(5e-324, mechanism_delta=5e-324)
    odometer = Odometer(1e-323, mechanism_delta=5e-324)
    assert odometer.reading(odometer.start()).epsilon == 0.0


def test_a_promise_without_epsilon_says_what_to_state_instead() -> None:
    odometer = Odometer(1e-6, mechanism_delta=5e-7)
    with pytest.raises(UnsupportedError, match="State it with a larger epsilon"):
        odometer.step(odometer.start(), BlackBox(0.0, delta=1e-9))
    assert odometer.step(odometer.start(), BlackBox(0.1, delta=1e-9)).answers == 1


def test_every_adversary_exactly() -> None:
    """A short version of `python -m campaigns.odometers`: the worst probability of ever being above, in balls."""
    caught = 0
    with ctx.workprec(256):
        for seed in range(1000, 1016):
            ride = Ride.drawn(seed)
            assert ride.reached() <= ball(Fraction(ride.odometer.delta)), ride
            if ride.odometer.delta <= 0.05:
                caught += ride.reached(one_time=True) > ball(Fraction(1, 20))
    assert caught > 0


def test_the_worst_case_is_that_of_all_paths() -> None:
    """Two answers of loss +-1, above at 1: one, or two after one below; by hand p + 0, and p^2 above at 2."""
    with ctx.workprec(256):
        likely = ball(1).exp() / (1 + ball(1).exp())
        for least, expected in ((1, likely), (2, likely**2)):
            found = ever([promise(1, 1)], lambda _, key, least=least: key[0] >= least, 2)
            assert found.overlaps(expected) and found.rad() < 1e-60
