"""What a mechanism says of itself is held to its runs, and its noise to the law that it states."""

from __future__ import annotations

import math
import random
import time
from typing import Any

import numpy as np
import pytest

from dpcompose import BlackBox, Concentrated, GaussianDP, Laplace
from dpcompose.audit import (
    Pair,
    Primitives,
    Subject,
    Verdict,
    audit,
    model as models,
    modelled,
    replay,
)
from dpcompose.audit.claim import certified
from dpcompose.audit.model import model
from dpcompose.audit.primitives import Norm
from dpcompose.audit.zoo_recorded import RECORDED
from dpcompose.errors import DomainError

ONE, PAIRS = BlackBox(1.0), [Pair((1.0,), ())]


@pytest.mark.parametrize("name", RECORDED)
def test_every_defect_is_found_without_statistics_and_no_twin(name: str) -> None:
    entry, start = RECORDED[name], time.process_time()
    assert replay(entry.broken(), entry.pairs, claim=entry.claim).verdict is Verdict.REFUTED
    assert time.process_time() - start < 1
    assert replay(entry.twin(), entry.pairs, claim=entry.claim).verdict is not Verdict.REFUTED


def honest(rows: Any, noise: Primitives) -> float:
    return noise.laplace(sum(rows), scale=1.0)


def test_replay_and_the_law_certify_together() -> None:
    found = replay(honest, PAIRS, claim=ONE)
    assert found.verdict is Verdict.CERTIFIED and found.calls == (
        "Laplace noise of scale 1, sensitivity 1 (l1)",
    )
    subject = Subject(
        lambda rows: sum(rows) + round(np.random.default_rng().laplace() * 2**20) / 2**20
    )
    tied = audit(subject, PAIRS, claim=ONE, replayed=found, samples=300)
    assert (
        tied.verdict is Verdict.CERTIFIED
        and "the code made these calls, on 1 pairs" in tied.description
    )
    broken = audit(Subject(sum), PAIRS, claim=ONE, replayed=found, samples=2000)
    assert (
        broken.verdict is Verdict.REFUTED
        and "one of them, or dpcompose, is wrong" in broken.description
    )
    wrong = replay(lambda rows, noise: noise.laplace(2 * sum(rows), scale=1.0), PAIRS, claim=ONE)
    open_ = audit(subject, PAIRS, claim=ONE, law=BlackBox(0.5), replayed=wrong, samples=100)
    assert open_.verdict is Verdict.NOT_REFUTED and "moves by 2" in open_.description


def other_parameters(rows: Any, noise: Primitives) -> float:
    return noise.laplace(0.0, scale=2.0 + len(rows))


def one_call_more(rows: Any, noise: Primitives) -> list[float]:
    return [noise.laplace(0.0, scale=20.0) for _ in rows] + [noise.laplace(0.0, scale=20.0)]


def caught(rows: Any, noise: Primitives) -> float:
    try:
        return noise.laplace(0.0, scale=2.0 + len(rows))
    except BaseException:
        return 0.0


def raising(rows: Any, noise: Primitives) -> float:
    return noise.laplace(sum(rows), scale=1.0) / len(rows)


def printing(rows: Any, noise: Primitives) -> float:
    print(len(rows))
    return noise.laplace(sum(rows), scale=1.0)


def nan(rows: Any, noise: Primitives) -> float:
    return noise.laplace(math.nan if rows else 0.0, scale=1.0)


def longer(rows: Any, noise: Primitives) -> Any:
    return noise.laplace(np.zeros(1 + len(rows)), scale=1.0)


@pytest.mark.parametrize(
    "mechanism", [other_parameters, one_call_more, caught, raising, printing, nan, longer]
)
def test_calls_or_answers_that_depend_on_the_data_refute(mechanism: Any) -> None:
    assert replay(mechanism, PAIRS, claim=BlackBox(3.0)).verdict is Verdict.REFUTED


def test_what_cannot_be_compared_stays_open() -> None:
    coins = replay(lambda rows, noise: honest(rows, noise) + random.random(), PAIRS, claim=ONE)
    assert coins.verdict is Verdict.NOT_REFUTED and "randomness" in coins.reason
    rounded = replay(
        lambda rows, noise: noise.laplace(sum(rows), scale=1.0, sensitivity=1 - 1e-12),
        PAIRS,
        claim=ONE,
    )
    assert rounded.verdict is Verdict.NOT_REFUTED and "rounding" in rounded.reason
    silent = replay(lambda rows, noise: 0.0, PAIRS, claim=ONE)
    assert silent.verdict is Verdict.NOT_REFUTED and "no call" in silent.reason


def test_distance_and_norms() -> None:
    far = [Pair((1.0, 1.0, 1.0), (), distance=3)]
    assert replay(honest, far, claim=ONE).verdict is Verdict.CERTIFIED
    assert (
        Norm.L1.distance([1.0, 2.0], [0.0, 0.0]) == 3
        and Norm.LINF.distance([1.0, 2.0], [0.0, 0.0]) == 2
    )
    assert Norm.L2.distance([3.0, 4.0], [0.0, 0.0]) == 5 and Norm.ANY.distance("a", "b") == 1
    assert Norm.L1.distance(math.inf, math.inf) == 0 and Norm.L1.distance(math.inf, 0.0) == math.inf
    for norm in (Norm.L1, Norm.L2, Norm.LINF):
        assert (
            norm.distance([1.0], [1.0, 2.0])
            == norm.distance(math.nan, 0.0)
            == norm.distance("a", 0.0)
            == math.inf
        )


def test_a_curve_is_certified_by_its_parameter() -> None:
    assert certified(Laplace(10.0), Concentrated(0.005)) and not certified(
        Laplace(10.0), Concentrated(0.001)
    )
    assert certified(GaussianDP(0.5), GaussianDP(0.5)) and not certified(
        GaussianDP(0.6), GaussianDP(0.5)
    )


@pytest.mark.parametrize(
    "given", [{"pairs": []}, {"pairs": [1]}, {"claim": BlackBox(1.0, delta=1.0)}, {"runs": 0}]
)
def test_bad_arguments_are_errors(given: Any) -> None:
    with pytest.raises(DomainError):
        replay(honest, **{"pairs": PAIRS, "claim": ONE} | given)


def test_a_scale_a_tenth_too_small_is_found_on_residuals() -> None:
    rng = np.random.default_rng(5)
    found = [
        model(lambda n: rng.laplace(scale=1 / 1.1, size=n), models.laplace(1.0)) for _ in range(11)
    ]
    assert all(each.verdict is Verdict.REFUTED for each in found)
    assert float(np.median([each.samples for each in found])) < 4200


LAWS: dict[str, tuple[Any, models.Law]] = {
    "Laplace": (lambda rng, n: rng.laplace(scale=2.0, size=n), models.laplace(2.0)),
    "Gaussian": (lambda rng, n: rng.normal(scale=2.0, size=n), models.gaussian(2.0)),
    "discrete Laplace": (
        lambda rng, n: rng.geometric(-math.expm1(-0.5), n) - rng.geometric(-math.expm1(-0.5), n),
        models.discrete_laplace(2.0),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_right_laws_are_rarely_refuted(name: str) -> None:
    draw, law = LAWS[name]
    rng = np.random.default_rng(1)
    alarms = sum(
        model(lambda n: draw(rng, n), law, alpha=0.05, samples=1000).verdict is Verdict.REFUTED
        for _ in range(150)
    )
    assert alarms <= 18  # 7.5 expected at most; more than 18 with probability below 2e-4


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (lambda rng, n: rng.normal(size=n), models.laplace(1.0)),
        (lambda rng, n: rng.laplace(size=n), models.discrete_laplace(1.0)),
        (lambda rng, n: np.repeat(rng.laplace(size=n), 2)[:n], models.laplace(1.0)),
        (lambda rng, n: np.clip(rng.normal(size=n), -3, 3), models.gaussian(1.0)),
        (lambda rng, n: np.full(n, math.nan), models.laplace(1.0)),
    ],
)
def test_other_laws_are_refuted(noise: Any, law: models.Law) -> None:
    rng = np.random.default_rng(3)
    assert model(lambda n: noise(rng, n), law, samples=100_000).verdict is Verdict.REFUTED


def test_the_noise_of_a_mechanism_is_held_to_its_law() -> None:
    def wrong(rows: Any, noise: Primitives) -> Any:
        value, rng = float(sum(rows)), np.random.default_rng()
        return noise.call(
            "own", lambda: value + rng.laplace(scale=0.5), value, mechanism=Laplace(1.0), sensitivity=1.0,
            law=models.laplace(1.0),
        )  # fmt: skip

    assert replay(wrong, PAIRS, claim=ONE).verdict is Verdict.CERTIFIED
    assert modelled(wrong, (1.0,), runs=1000)[0].verdict is Verdict.REFUTED
    assert modelled(honest, (1.0,), runs=500)[0].verdict is Verdict.NOT_REFUTED
