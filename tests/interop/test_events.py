"""Events, read without dp_accounting: each against a formula that shares no code, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import mpmath
import pytest
from mpmath import mp, mpf

from dpcompose import (
    Adjacency,
    Composition,
    DiscreteGaussian,
    DPComposeError,
    Gaussian,
    compose,
    mechanisms,
)
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.interop.dp_accounting import from_dp_event
from dpcompose.interop.event_tree import event_tuple
from dpcompose.mechanisms import TruncatedPoisson

ADD_REMOVE, REPLACE, ZERO_OUT = Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.ZERO_OUT
Normals = list[tuple[Any, float, float]]
"""Weights, means and standard deviations."""
NOISE: Normals = [(1.0, 0.0, 1.0)]
ROUNDED = 1e-14
"""Parameters that a formula gives are rounded to their costlier side: an ulp or two."""


def event(name: str, **fields: Any) -> Any:
    return event_tuple(f"{name}DpEvent", **fields)


def gaussian(noise: float = 2.0) -> Any:
    return event("Gaussian", noise_multiplier=noise)


def laplace(noise: float = 2.0) -> Any:
    return event("Laplace", noise_multiplier=noise)


def times(one: Any, count: Any) -> Any:
    return event("SelfComposed", event=one, count=count)


def together(*events: Any) -> Any:
    return event("Composed", events=list(events))


def poisson(rate: float, one: Any) -> Any:
    return event("PoissonSampled", sampling_probability=rate, event=one)


def responses(noise: float, buckets: int) -> Any:
    return event("RandomizedResponse", noise_parameter=noise, num_buckets=buckets)


def tree(noise: float, steps: Any) -> Any:
    return event("SingleEpochTreeAggregation", noise_multiplier=noise, step_counts=steps)


def without_replacement(records: Any, batch: Any, one: Any) -> Any:
    return event(
        "SampledWithoutReplacement", source_dataset_size=records, sample_size=batch, event=one
    )


def truncated(records: int = 20, rate: float = 0.3, batch: int = 6, noise: float = 1.2) -> Any:
    return event(
        "TruncatedSubsampledGaussian",
        dataset_size=records,
        sampling_probability=rate,
        truncated_batch_size=batch,
        noise_multiplier=noise,
    )


def mixture(
    noise: float = 1.5, shifts: Any = (0.0, 1.0, 3.0), weights: Any = (0.5, 0.25, 0.25)
) -> Any:
    return event(
        "MixtureOfGaussians", standard_deviation=noise, sensitivities=shifts, sampling_probs=weights
    )


def selection(one: Any, mean: float = 10.0, shape: float = 1.0) -> Any:
    return event("RepeatAndSelect", event=one, mean=mean, shape=shape)


# The truth, by other means.


def hockey_stick(upper: list[Any], lower: list[Any], epsilon: float) -> Any:
    """The larger of both directions, of two lists of masses."""
    factor = mpmath.exp(mpf(epsilon))
    rows = list(zip(map(_mp, upper), map(_mp, lower), strict=True))
    sums: list[Any] = [mpmath.fsum(max(p - factor * q, 0) for p, q in rows)]
    sums.append(mpmath.fsum(max(q - factor * p, 0) for p, q in rows))
    return max(sums)


def _mp(value: Any) -> Any:
    return mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else mpf(value)


def powers(upper: list[Any], lower: list[Any], count: int) -> tuple[list[Any], list[Any]]:
    """The masses of so many independent ones."""
    rows = list(product(*[list(zip(upper, lower, strict=True))] * count))
    return [math.prod(p for p, _ in row) for row in rows], [
        math.prod(q for _, q in row) for row in rows
    ]


def normal(mu: Any, epsilon: float) -> Any:
    mu, e = mpf(mu), mpf(epsilon)
    return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


def mixtures(upper: Normals, lower: Normals, epsilon: float) -> Any:
    """The larger direction of two mixtures of normals: where one is above, and by how much."""
    factor = mpmath.exp(mpf(epsilon))

    def one(p: Normals, q: Normals) -> Any:
        rows = [*p, *[(-factor * weight, mean, sigma) for weight, mean, sigma in q]]

        def above(x: Any) -> Any:
            return mpmath.fsum(weight * mpmath.npdf(x, mean, sigma) for weight, mean, sigma in rows)

        def mass(a: Any, b: Any) -> Any:
            return mpmath.fsum(
                w * (mpmath.ncdf(b, mean, sigma) - mpmath.ncdf(a, mean, sigma))
                for w, mean, sigma in rows
            )

        nodes = [mpf(each) / 2 for each in range(-24, 40)]
        signs = [above(x) > 0 for x in nodes]
        changes = [
            (a, b) for (a, one), (b, two) in pairwise(zip(nodes, signs, strict=True)) if one != two
        ]
        ends = [-mpmath.inf, *(_bisected(above, a, b) for a, b in changes), mpmath.inf]
        return mpmath.fsum(max(mass(a, b), 0) for a, b in pairwise(ends))

    return max(one(upper, lower), one(lower, upper))


def _bisected(of: Callable[[Any], Any], low: Any, high: Any) -> Any:
    rising = of(high) > 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if (of(middle) > 0) == rising else (middle, high)
    return low


def at_rate(rate: float, mean: float = 1.0) -> Normals:
    return [(1 - rate, 0.0, 1.0), (rate, mean, 1.0)]


def discrete_laplace(rate: float, shift: int) -> tuple[list[Any], list[Any]]:
    def at(x: int) -> Any:
        return mpmath.exp(-mpf(rate) * abs(x)) * mpmath.tanh(mpf(rate) / 2)

    return [at(x) for x in range(-400, 400)], [at(x - shift) for x in range(-400, 400)]


def discrete_gaussian(sigma: float, shift: int) -> tuple[list[Any], list[Any]]:
    def at(x: int) -> Any:
        return mpmath.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2))

    total = mpmath.fsum(at(x) for x in range(-60, 61))
    return [at(x) / total for x in range(-60, 61)], [at(x - shift) / total for x in range(-60, 61)]


def answers(noise: float, buckets: int) -> tuple[list[Fraction], list[Fraction]]:
    p = Fraction(noise)
    truth, lie = 1 - p + p / buckets, p / buckets
    return [truth, lie] + [lie] * (buckets - 2), [lie, truth] + [lie] * (buckets - 2)


def null_answers(noise: float, buckets: int) -> tuple[list[Fraction], list[Fraction]]:
    return answers(noise, buckets)[0], [Fraction(1, buckets)] * buckets


def promised(epsilon: float, delta: float) -> tuple[list[Any], list[Any]]:
    e, d = mpf(epsilon), mpf(delta)
    truth, lie = (1 - d) / (1 + mpmath.exp(-e)), (1 - d) / (1 + mpmath.exp(e))
    return [d, truth, lie, mpf(0)], [mpf(0), lie, truth, d]


def amplified(mu: Any, share: Any, epsilon: float) -> Any:
    """Balle, Barthe and Gaboardi, Theorem 9, for a batch without replacement."""
    inner = mpmath.log1p(mpmath.expm1(mpf(epsilon)) / share)
    return share * normal(mu, inner)


EPSILON = 0.4
EXACT: dict[str, tuple[Any, Adjacency, Callable[[], Any]]] = {
    "gaussian": (gaussian(), ADD_REMOVE, lambda: normal(mpf(1) / 2, EPSILON)),
    "gaussian, zeroed": (gaussian(), ZERO_OUT, lambda: normal(mpf(1) / 2, EPSILON)),
    "gaussian, replaced": (gaussian(), REPLACE, lambda: normal(1, EPSILON)),
    "gaussians": (
        together(gaussian(), times(gaussian(4.0), 8)),
        ADD_REMOVE,
        lambda: normal(mpmath.sqrt(0.75), EPSILON),
    ),
    "laplace": (laplace(), ADD_REMOVE, lambda: -mpmath.expm1((mpf(EPSILON) - mpf(1) / 2) / 2)),
    "laplace, replaced": (laplace(), REPLACE, lambda: -mpmath.expm1((mpf(EPSILON) - 1) / 2)),
    "permute and flip": (
        event("PermuteAndFlip", epsilon=0.5),
        ADD_REMOVE,
        lambda: -mpmath.expm1((mpf(EPSILON) - mpf(1) / 2) / 2),
    ),
    "discrete laplace": (
        times(event("DiscreteLaplace", noise_parameter=0.3, sensitivity=2), 1),
        ADD_REMOVE,
        lambda: hockey_stick(*discrete_laplace(0.3, 2), EPSILON),
    ),
    "discrete laplace, replaced": (
        event("DiscreteLaplace", noise_parameter=0.3, sensitivity=2),
        REPLACE,
        lambda: hockey_stick(*discrete_laplace(0.3, 4), EPSILON),
    ),
    "discrete gaussian": (
        event("DiscreteGaussian", sigma=3.0, sensitivity=2.7, dimension=1),
        ADD_REMOVE,
        lambda: hockey_stick(*discrete_gaussian(3.0, 2), EPSILON),
    ),
    "randomized response": (
        responses(0.5, 4),
        REPLACE,
        lambda: hockey_stick(*answers(0.5, 4), EPSILON),
    ),
    "responses": (
        times(responses(0.5, 2), 10),
        REPLACE,
        lambda: hockey_stick(*powers(*answers(0.5, 2), 10), 3.0),
    ),
    "response, zeroed": (
        responses(0.3, 3),
        ZERO_OUT,
        lambda: hockey_stick(*null_answers(0.3, 3), EPSILON),
    ),
    "responses, zeroed": (
        times(responses(0.3, 3), 5),
        ZERO_OUT,
        lambda: hockey_stick(*powers(*null_answers(0.3, 3), 5), 2.0),
    ),
    "promises": (
        times(event("EpsilonDelta", epsilon=0.3, delta=1e-3), 4),
        REPLACE,
        lambda: hockey_stick(*powers(*promised(0.3, 1e-3), 4), EPSILON),
    ),
    "trees": (tree(4.0, [3, 13, 8]), ZERO_OUT, lambda: normal(mpf(1) / 2, EPSILON)),
    "tree of 16": (tree(4.0, 16), ZERO_OUT, lambda: normal(mpmath.sqrt(5) / 4, EPSILON)),
    "mixture": (
        mixture(),
        ADD_REMOVE,
        lambda: mixtures(
            [(0.5, 0.0, 1.5), (0.25, 1.0, 1.5), (0.25, 3.0, 1.5)], [(1.0, 0.0, 1.5)], EPSILON
        ),
    ),
    "sampled": (
        poisson(0.25, gaussian(1.0)),
        ADD_REMOVE,
        lambda: mixtures(at_rate(0.25), NOISE, EPSILON),
    ),
    "sampled, replaced": (
        poisson(0.25, gaussian(1.0)),
        REPLACE,
        lambda: mixtures(at_rate(0.25, -1.0), at_rate(0.25), EPSILON),
    ),
    "four on one sample": (
        poisson(0.25, times(gaussian(2.0), 4)),
        ADD_REMOVE,
        lambda: mixtures(at_rate(0.25), NOISE, EPSILON),
    ),
    "sample of a sample": (
        poisson(0.5, poisson(0.5, gaussian(1.0))),
        ZERO_OUT,
        lambda: mixtures(at_rate(0.25), NOISE, EPSILON),
    ),
    "everything, sampled": (poisson(0.25, event("NonPrivate")), REPLACE, lambda: mpf(0.25)),
    "without replacement": (
        without_replacement(100, 25, gaussian(3.0)),
        REPLACE,
        lambda: amplified(mpf(2) / 3, mpf(1) / 4, EPSILON),
    ),
}
ASKED = {"responses": 3.0, "responses, zeroed": 2.0}


@pytest.mark.parametrize("name", EXACT)
def test_an_event_means_what_its_formula_says(name: str) -> None:
    one, adjacency, truth = EXACT[name]
    with mp.workdps(30):
        exact = truth()
    found = from_dp_event(one, adjacency=adjacency).delta(
        epsilon=ASKED.get(name, EPSILON), adjacency=adjacency
    )
    assert found.lower * (1 - ROUNDED) <= exact <= found.upper
    assert found.width <= 1e-6 * found.upper


def test_a_sample_of_a_composition_is_no_composition_of_samples() -> None:
    one, several = (
        from_dp_event(poisson(0.1, times(gaussian(), 4))),
        from_dp_event(times(poisson(0.1, gaussian()), 4)),
    )
    assert one.delta(epsilon=0.5).lower > several.delta(epsilon=0.5).upper


@pytest.mark.parametrize(
    ("square", "dimension"), [(1.0, None), (2.0, None), (3.9, None), (2.0, 2), (3.0, 2), (9.0, 3)]
)
def test_no_vector_of_integers_costs_more(square: float, dimension: int | None) -> None:
    """Every vector within the sensitivity, coordinate by coordinate."""
    stated = event(
        "DiscreteGaussian", sigma=1.5, sensitivity=math.sqrt(square), dimension=dimension
    )
    upper = from_dp_event(stated).delta(epsilon=0.5).upper
    coordinates = dimension or int(square)
    for shifts in product(range(int(square) + 1), repeat=coordinates):
        if 0 < sum(shift**2 for shift in shifts) <= square:
            moved = DiscreteGaussian(1.5, shift=tuple(shift for shift in shifts if shift))
            assert moved.delta(epsilon=0.5).lower <= upper


def test_a_split_change_costs_no_more_under_discrete_laplace_noise() -> None:
    """Changes of two coordinates against one of their sum, exactly: delta is linear in e^epsilon between the losses."""
    for rate in (Fraction(1, 5), Fraction(1, 2), Fraction(9, 10)):
        laws = {shift: _losses(rate, shift) for shift in range(1, 7)}
        for one, two in ((1, 1), (1, 2), (2, 2), (1, 4), (3, 3), (2, 4)):
            both = [(a + b, p * q) for a, p in laws[one] for b, q in laws[two]]
            for level in range(-one - two, one + two + 1):
                assert _delta(both, level, rate) <= _delta(laws[one + two], level, rate)


def _losses(rate: Fraction, shift: int) -> list[tuple[int, Fraction]]:
    """Losses in units of -ln(rate), of noise of mass proportional to rate^|x|, moved by `shift`, with their masses."""
    ends = [(shift, 1 / (1 + rate)), (-shift, rate**shift / (1 + rate))]
    return ends + [(shift - 2 * x, (1 - rate) / (1 + rate) * rate**x) for x in range(1, shift)]


def _delta(law: list[tuple[int, Fraction]], level: int, rate: Fraction) -> Fraction:
    return sum(
        (mass * (1 - rate ** (loss - level)) for loss, mass in law if loss > level), Fraction(0)
    )


@pytest.mark.parametrize(("mean", "shape"), [(3.0, 1.0), (2.0, math.inf)])
def test_the_best_of_some_runs_costs_no_less_than_an_exact_one(mean: float, shape: float) -> None:
    """The best of K answers in {0, 1}, 1 being better: E[x^K] at the probability of 0 is that of no 1."""

    def none(zero: Any) -> Any:
        return (
            mpmath.exp(mean * (zero - 1))
            if shape == math.inf
            else zero / (mean - (mean - 1) * zero)
        )

    stated = selection(responses(0.5, 2), mean=mean, shape=shape)
    found = from_dp_event(stated, adjacency=REPLACE).delta(epsilon=1.0, adjacency=REPLACE)
    one, two = mpf(0.75), mpf(0.25)
    empty = none(mpf(0)) if shape == math.inf else mpf(0)
    first, second = ([empty, none(zero) - empty, 1 - none(zero)] for zero in (one, two))
    assert 0 < hockey_stick(first, second, 1.0) <= found.upper
    assert found.lower <= found.upper <= 1


def test_events_known_by_a_curve() -> None:
    concentrated = from_dp_event(event("ZC", rho=0.5, xi=0.0))
    assert concentrated.epsilon(delta=1e-6).upper >= Gaussian(1.0).epsilon(delta=1e-6).lower
    assert concentrated.epsilon(delta=1e-6).upper <= 0.5 + 2 * math.sqrt(0.5 * math.log(1e6))
    line = from_dp_event(event("ZC", rho=0.1, xi=0.25))
    assert 0.25 + 0.1 * 3 <= line.renyi(3.0).upper <= (0.25 + 0.1 * 3) * (1 + 1e-15)
    assert line.parts == from_dp_event(event("ZC", rho=0.1, xi=0.25)).parts
    bounded = from_dp_event(event("ExponentialMechanism", epsilon=1.0), adjacency=ZERO_OUT)
    assert bounded.delta(epsilon=0.5, adjacency=ZERO_OUT).contains(0.07740468631569081)


def test_a_capped_batch() -> None:
    assert from_dp_event(truncated()) == compose(
        TruncatedPoisson(1.2, rate=0.3, records=20, batch=6)
    )
    assert from_dp_event(truncated(batch=50)) == compose(
        TruncatedPoisson(1.2, rate=0.3, records=20, batch=20)
    )


NOTHING = {
    "no operation": (event("NoOp"), ADD_REMOVE),
    "no events": (together(), ADD_REMOVE),
    "no runs": (times(gaussian(), 0), ADD_REMOVE),
    "no sample": (poisson(0.0, event("NonPrivate")), ADD_REMOVE),
    "a sample of nothing": (poisson(0.5, event("NoOp")), REPLACE),
    "one bucket": (responses(0.0, 1), REPLACE),
    "a uniform answer": (responses(1.0, 3), REPLACE),
    "no move": (mixture(noise=0.0, shifts=[0.0, 1.0], weights=[1.0, 0.0]), ADD_REMOVE),
    "no steps": (tree(1.0, [0, 0]), ZERO_OUT),
    "no batch": (without_replacement(10, 0, gaussian()), REPLACE),
    "the best of nothing": (selection(event("NoOp")), ADD_REMOVE),
    "an empty batch": (truncated(batch=0), ADD_REMOVE),
    "no sensitivity": (
        event("DiscreteGaussian", sigma=1.0, sensitivity=0.0, dimension=None),
        ADD_REMOVE,
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_is_released(name: str) -> None:
    one, adjacency = NOTHING[name]
    assert from_dp_event(one, adjacency=adjacency) == Composition()


EVERYTHING = {
    "all": (event("NonPrivate"), ADD_REMOVE),
    "gaussian": (gaussian(0.0), REPLACE),
    "laplace": (laplace(0.0), ZERO_OUT),
    "discrete laplace": (event("DiscreteLaplace", noise_parameter=0.0, sensitivity=1), ADD_REMOVE),
    "discrete gaussian": (
        event("DiscreteGaussian", sigma=0.0, sensitivity=1.0, dimension=None),
        ADD_REMOVE,
    ),
    "the truth": (responses(0.0, 2), REPLACE),
    "tree": (tree(0.0, 4), ZERO_OUT),
    "mixture": (mixture(noise=0.0), ADD_REMOVE),
    "the best": (selection(event("NonPrivate")), ADD_REMOVE),
    "hidden among others": (
        together(gaussian(), times(together(event("NonPrivate")), 3)),
        ADD_REMOVE,
    ),
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_everything_is_released(name: str) -> None:
    one, adjacency = EVERYTHING[name]
    found = from_dp_event(one, adjacency=adjacency)
    assert found.epsilon(delta=0.99, adjacency=adjacency).lower == math.inf
    assert found.delta(epsilon=100.0, adjacency=adjacency).upper == 1


REFUSED = {
    "unsupported": (event("Unsupported"), ADD_REMOVE, "UnsupportedDpEvent"),
    "unknown": (event("Quantum", spin=0.5), ADD_REMOVE, "QuantumDpEvent"),
    "unknown inside": (
        times(together(gaussian(), event("Quantum")), 3),
        ADD_REMOVE,
        "QuantumDpEvent",
    ),
    "of another module": (
        event_tuple("GaussianDpEvent", module_name="mine", noise_multiplier=1.0),
        ADD_REMOVE,
        "mine.G",
    ),
    "responses": (responses(0.5, 2), ADD_REMOVE, "`REPLACE_ONE` or `REPLACE_SPECIAL`"),
    "mixture": (mixture(), REPLACE, "`ADD_OR_REMOVE_ONE` or `REPLACE_SPECIAL`"),
    "tree": (tree(1.0, 4), ADD_REMOVE, "`REPLACE_SPECIAL`"),
    "tree, replaced": (tree(1.0, 4), REPLACE, "`REPLACE_SPECIAL`"),
    "batch": (without_replacement(10, 2, gaussian()), ADD_REMOVE, "`REPLACE_ONE`"),
    "batch, zeroed": (without_replacement(10, 2, gaussian()), ZERO_OUT, "`REPLACE_ONE`"),
    "batch of laplace": (without_replacement(10, 2, laplace()), REPLACE, "fixed size"),
    "batch of two": (without_replacement(10, 2, times(gaussian(), 2)), REPLACE, "fixed size"),
    "with replacement": (
        event("SampledWithReplacement", source_dataset_size=10, sample_size=2, event=gaussian()),
        REPLACE,
        "several times",
    ),
    "capped": (truncated(), ZERO_OUT, "`ADD_OR_REMOVE_ONE`"),
    "capped, replaced": (truncated(), REPLACE, "`ADD_OR_REMOVE_ONE`"),
    "laplace on a sample": (
        poisson(0.1, laplace()),
        REPLACE,
        "`ADD_OR_REMOVE_ONE` or `REPLACE_SPECIAL`",
    ),
    "two on a sample": (
        poisson(0.1, times(gaussian(), 2)),
        REPLACE,
        "several mechanisms on one sample",
    ),
    "a promise on a sample": (
        poisson(0.1, event("EpsilonDelta", epsilon=1.0, delta=0.0)),
        ZERO_OUT,
        "ADD_OR_REMOVE",
    ),
    "a curve on a sample": (
        poisson(0.1, event("ZC", rho=1.0, xi=0.0)),
        ADD_REMOVE,
        "no pair is known",
    ),
    "a tree on a sample": (poisson(0.1, tree(1.0, 4)), ZERO_OUT, "no pair is known"),
    "a selection on a sample": (
        poisson(0.1, selection(gaussian())),
        ADD_REMOVE,
        "no pair is known",
    ),
    "a capped batch on a sample": (poisson(0.1, truncated()), ADD_REMOVE, "no pair is known"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_sound_statement_is_refused_by_name(name: str) -> None:
    one, adjacency, said = REFUSED[name]
    with pytest.raises(UnsupportedError, match=said):
        from_dp_event(one, adjacency=adjacency)


def test_a_promise_about_a_null_record_is_not_amplified_as_if_it_were_absent() -> None:
    """Reading the batch's size, or its first record, is free under zero-out: absence of the record is not covered."""
    stated = poisson(0.1, event("ExponentialMechanism", epsilon=1.0))
    assert from_dp_event(stated).epsilon(delta=0.0).upper < 0.2
    with pytest.raises(UnsupportedError):
        from_dp_event(stated, adjacency=ZERO_OUT)


def _cycle() -> Any:
    events: list[Any] = [gaussian()]
    events.append(event("Composed", events=events))
    return events[1]


def _cycle_through_a_sample() -> Any:
    events: list[Any] = []
    events.append(poisson(0.5, event("Composed", events=events)))
    return events[0]


def _deep(depth: int, around: Callable[[Any], Any]) -> Any:
    found = gaussian(100.0)
    for _ in range(depth):
        found = around(found)
    return found


BAD: dict[str, tuple[Any, str]] = {
    "a number": (1.0, "event = 'a float'"),
    "nothing": (None, "event"),
    "a tuple": ((), "event"),
    "a table": ({}, "event"),
    "an event that is text": (together("gaussian"), "event = 'a str'"),
    "no list": (event("Composed", events=gaussian()), "a list of events"),
    "text for a list": (event("Composed", events="gg"), "a list of events"),
    "a cycle": (_cycle(), "a cycle"),
    "a cycle through a sample": (_cycle_through_a_sample(), "a cycle"),
    "samples of samples": (_deep(17, lambda one: poisson(0.9, one)), "at most 16 deep"),
    "not a number": (gaussian(math.nan), r"GaussianDpEvent.noise_multiplier = nan"),
    "no sign": (gaussian(-1.0), r"GaussianDpEvent.noise_multiplier = -1.0"),
    "infinite": (gaussian(math.inf), r"GaussianDpEvent.noise_multiplier = inf"),
    "text": (gaussian("1"), r"GaussianDpEvent.noise_multiplier = '1'"),  # type: ignore[arg-type]
    "true": (laplace(True), r"LaplaceDpEvent.noise_multiplier = True"),
    "tiny noise": (gaussian(1e-7), r"GaussianDpEvent.noise_multiplier = 1e-07"),
    "negative count": (times(gaussian(), -1), "count = -1"),
    "half a count": (times(gaussian(), 1.5), "count = 1.5"),
    "count of nan": (times(gaussian(), math.nan), "count = nan"),
    "too many": (_deep(60, lambda one: times(one, 2)), r"10\^15"),
    "a rate above 1": (
        poisson(1.5, gaussian()),
        r"PoissonSampledDpEvent.sampling_probability = 1.5",
    ),
    "a field more": (
        event("Gaussian", noise_multiplier=1.0, clip=2.0),
        "GaussianDpEvent = 'the fields clip",
    ),
    "a field less": (event("Gaussian"), "GaussianDpEvent = 'the fields none'"),
    "buckets": (responses(0.5, 0), "RandomizedResponseDpEvent.num_buckets = 0"),
    "shifts": (
        mixture(shifts=[0.0, -1.0, 1.0]),
        r"MixtureOfGaussiansDpEvent.sensitivities\[1\] = -1.0",
    ),
    "weights": (mixture(weights=[0.5, 0.25, 0.2]), "MixtureOfGaussiansDpEvent.sampling_probs"),
    "too few shifts": (mixture(shifts=[0.0, 1.0]), "MixtureOfGaussiansDpEvent"),
    "mean": (selection(gaussian(), mean=0.5), "RepeatAndSelectDpEvent.mean = 0.5"),
    "shape": (selection(gaussian(), shape=-1.0), "RepeatAndSelectDpEvent.shape = -1.0"),
    "rho": (event("ZC", rho=-0.1, xi=0.0), "ZCDpEvent.rho = -0.1"),
    "xi": (event("ZC", rho=0.1, xi=math.inf), "ZCDpEvent.xi = inf"),
    "delta": (event("EpsilonDelta", epsilon=0.1, delta=2.0), "EpsilonDeltaDpEvent.delta = 2.0"),
    "half a step": (
        event("DiscreteGaussian", sigma=1.0, sensitivity=0.5, dimension=None),
        "sensitivity = 0.5",
    ),
    "no dimension": (
        event("DiscreteGaussian", sigma=1.0, sensitivity=1.0, dimension=0),
        "dimension = 0",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_event_is_one_clear_error(name: str) -> None:
    one, said = BAD[name]
    with pytest.raises(DomainError, match=said) as error:
        from_dp_event(one)
    assert len(str(error.value)) < 400
    assert error.value.__suppress_context__ or error.value.__context__ is None


def test_bad_values_where_one_adjacency_is_covered() -> None:
    for one, adjacency in (
        (without_replacement(10, 11, gaussian()), REPLACE),
        (without_replacement(0, 0, gaussian()), REPLACE),
        (tree(1.0, []), ZERO_OUT),
        (tree(1.0, -3), ZERO_OUT),
        (tree(1.0, "12"), ZERO_OUT),
        (responses(1.5, 2), REPLACE),
    ):
        with pytest.raises(DomainError):
            from_dp_event(one, adjacency=adjacency)
    with pytest.raises(DPComposeError):
        from_dp_event(gaussian(), adjacency="replace")  # type: ignore[arg-type]


def test_events_that_are_counted() -> None:
    inner = times(together(gaussian(), times(laplace(), 3)), 5)
    assert (
        from_dp_event(times(inner, 2))
        == from_dp_event(gaussian()) * 10 + from_dp_event(laplace()) * 30
    )


def test_deep_and_shared_trees() -> None:
    once = _deep(10_000, lambda one: times(one, 1))
    assert from_dp_event(once) == compose(Gaussian(100.0))
    beside = _deep(1000, lambda one: together(one, gaussian(100.0)))
    assert from_dp_event(beside) == Gaussian(100.0) * 1001
    shared = _deep(40, lambda one: together(one, one))
    assert from_dp_event(shared) == Gaussian(100.0) * 2**40


def test_many_events() -> None:
    many = together(*[gaussian(10.0 + each * 1e-4) for each in range(20_000)])
    assert from_dp_event(many).count == len(from_dp_event(many).parts) == 20_000


def test_reading_a_sample_leaves_the_mechanisms_as_they_are() -> None:
    sampled = event_tuple(
        "PoissonSampledDpEvent",
        sampling_probability=0.1,
        event=event_tuple("GaussianDpEvent", noise_multiplier=1.0),
    )
    assert from_dp_event(sampled) == compose(Gaussian(1.0).sampled(0.1))
    assert Gaussian in mechanisms.kinds().values()
