"""The audit loop refutes broken mechanisms and not correct ones, and no row influences the stakes
on itself.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcompose import BlackBox, Concentrated, Gaussian, RandomizedResponse
from dpcompose.audit import Pair, Subject, Transcripts, Verdict, audit
from dpcompose.audit.arm import Arm, step
from dpcompose.audit.claim import Point, points
from dpcompose.audit.feature import features_of
from dpcompose.errors import DomainError
from dpcompose.experiment import Experiment, Holds, NaturalFilterBreaker, Query, Repeater

SEED = bytes(range(32))


def laplace(scale: float, seed: int) -> Subject:
    rng = np.random.default_rng(seed)
    return Subject(
        lambda data: data + np.rint(rng.laplace(scale=scale) * 2**20) / 2**20,
        batch=lambda data, n: data + np.rint(rng.laplace(scale=scale, size=n) * 2**20) / 2**20,
    )


@pytest.mark.parametrize("seed", range(3))
def test_half_the_scale_is_refuted(seed: int) -> None:
    found = audit(
        laplace(0.5, seed), [Pair(0.0, 1.0)], claim=BlackBox(1.0), samples=20_000, seed=SEED
    )
    assert found.verdict is Verdict.REFUTED and found.samples < 3000
    assert 0 < found.epsilon.lower <= 2.0


def test_the_right_scale_is_not_refuted_and_its_epsilon_found() -> None:
    found = audit(
        laplace(1.0, 1),
        [Pair(0.0, 1.0)],
        claim=BlackBox(1.0),
        alpha=0.05,
        samples=100_000,
        seed=SEED,
    )
    assert found.verdict is Verdict.NOT_REFUTED
    assert 0.9 <= found.epsilon.lower <= 1.0
    assert 0 < found.unseen < 0.01
    assert found.tried and not any(tried.excess > 0.05 for tried in found.tried)


def test_a_wide_claim_excludes_events() -> None:
    found = audit(
        laplace(4.0, 1),
        [Pair(0.0, 1.0)],
        claim=BlackBox(1.0),
        samples=30_000,
        seed=SEED,
        ladder=False,
    )
    assert all(tried.excluded for tried in found.tried if tried.event.startswith("value at"))


def test_a_curve_is_refuted_at_its_points() -> None:
    rng = np.random.default_rng(5)
    subject = Subject(lambda data: data, batch=lambda data, n: data + rng.normal(scale=0.5, size=n))
    for claim in (Concentrated(0.5), Gaussian(1.0)):
        found = audit(
            subject, [Pair(0.0, 1.0)], claim=claim, samples=20_000, seed=SEED, ladder=False
        )
        assert found.verdict is Verdict.REFUTED


def test_distance_shows_small_errors() -> None:
    pairs = [Pair(0.0, float(k), distance=k) for k in (1, 4, 16)]
    found = audit(
        laplace(10 / 1.3, 3), pairs, claim=BlackBox(0.1), samples=60_000, seed=SEED, ladder=False
    )
    assert found.verdict is Verdict.REFUTED


def test_a_known_law_certifies() -> None:
    found = audit(
        laplace(2.0, 1),
        [Pair(0.0, 1.0)],
        claim=BlackBox(1.0),
        law=BlackBox(0.5),
        samples=1000,
        seed=SEED,
    )
    assert found.verdict is Verdict.CERTIFIED


def test_the_same_seed_and_rows_give_the_same_certificate() -> None:
    one, two = (
        audit(laplace(0.8, 4), [Pair(0.0, 1.0)], claim=BlackBox(1.0), samples=3000, seed=SEED)
        for _ in range(2)
    )
    assert one.certificate == two.certificate


@pytest.mark.parametrize("claim", [BlackBox(1.0, delta=1.0), BlackBox(50.0), "epsilon 1", None])
def test_an_empty_claim_is_an_error(claim: object) -> None:
    with pytest.raises(DomainError):
        audit(laplace(1.0, 1), [Pair(0.0, 1.0)], claim=claim)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "given",
    [
        {"alpha": 0.0},
        {"alpha": math.nan},
        {"samples": 0},
        {"seed": b"short"},
        {"pairs": []},
        {"pairs": [(0, 1)]},
    ],
)
def test_bad_input_is_one_clear_error(given: dict[str, object]) -> None:
    arguments = {"pairs": [Pair(0.0, 1.0)], "claim": BlackBox(1.0)} | given
    with pytest.raises(DomainError):
        audit(laplace(1.0, 1), arguments.pop("pairs"), **arguments)  # pyright: ignore


def test_shuffled_coins_win_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stakes from the past, then new coins that know nothing of the rows: the mean factor of a batch is at most 1.

    A control that cuts its cells from the batch's own coins wins.
    """
    rng, subject, pair = np.random.default_rng(0), laplace(0.5, 6), Pair(0.0, 1.0)
    arm = Arm(pair, points(BlackBox(1.0)), None, worth=-math.inf)
    honest, cheating = [], []
    for _ in range(12):
        coins = rng.integers(0, 2, arm.next_rows).astype(np.uint8)
        rows = subject.draw(pair, coins)
        arm.features = features_of(rows)
        members = arm.members()
        if members:
            places = [member.cells.index(member.feature.score(rows)) for member in members]
            for _ in range(40):
                fair = rng.permutation(rng.integers(0, 2, len(coins)).astype(np.uint8))
                honest.append(
                    math.exp(
                        min(step(0.0, members, arm.points, fair, places, math.inf).log_wealth, 50.0)
                    )
                )
        arm.learn(rows, coins)
        own = Arm(pair, arm.points, arm.features)
        own.learn(rows, coins)
        members = own.members()
        places = [member.cells.index(member.feature.score(rows)) for member in members]
        cheating.append(
            math.exp(step(0.0, members, arm.points, coins, places, math.inf).log_wealth)
        )
    assert np.mean(honest) <= 1 + 4 * np.std(honest) / math.sqrt(len(honest))
    assert np.mean(cheating) > 1.3


def test_false_alarms_are_rare() -> None:
    """Correct mechanisms at their exact boundary, stopped at the most favorable moment."""
    theta = 1 / (1 + math.exp(-1.0))
    alarms = 0
    for seed in range(14):
        rng = np.random.default_rng(seed)

        def response(data: int, n: int, rng: np.random.Generator = rng) -> np.ndarray:
            return np.where(rng.random(n) < theta, data, 1 - data).astype(float)

        subject = laplace(1.0, seed) if seed % 2 else Subject(lambda data: data, batch=response)
        found = audit(
            subject, [Pair(0, 1)], claim=BlackBox(1.0), alpha=0.05, samples=3000, ladder=False
        )
        alarms += found.peak >= math.log(20)
    assert alarms <= 4


def interaction(adversary: object, family: list[object], rounds: int) -> Transcripts:
    return Transcripts(Experiment(adversary, family=family, rounds=rounds), seed=3)  # pyright: ignore[reportArgumentType]


def test_rounds_that_keep_their_claims_may_exceed_the_total() -> None:
    response = RandomizedResponse(0.3)
    game = interaction(Repeater(Query(response, ("Bob",), (), Holds("Bob"))), [response], 10)
    broken = audit(game, [game.pair], claim=BlackBox(1.5), samples=60_000, seed=SEED, ladder=False)
    assert broken.verdict is Verdict.REFUTED
    right = audit(
        game, [game.pair], claim=BlackBox(0.3) * 10, samples=6_000, seed=SEED, ladder=False
    )
    assert right.verdict is Verdict.NOT_REFUTED


def test_foreign_rounds_adapt() -> None:
    rng = np.random.default_rng(2)

    def play(data: float) -> list[float]:
        view: list[float] = []
        for number in range(10):
            sign = 1.0 if number == 0 or view[-1] > 0.5 else -1.0
            view.append(sign * data + rng.laplace())
        return view

    game = Subject(play)
    assert (
        audit(
            game, [Pair(0.0, 1.0)], claim=BlackBox(10.0), samples=1500, seed=SEED, ladder=False
        ).verdict
        is Verdict.NOT_REFUTED
    )
    tight = audit(
        game, [Pair(0.0, 1.0)], claim=BlackBox(0.5), samples=3000, seed=SEED, ladder=False
    )
    assert tight.verdict is Verdict.REFUTED


def test_a_point_of_a_group_is_the_books() -> None:
    assert points(BlackBox(0.5, delta=1e-6), distance=3)[0].epsilon >= 1.5
    assert Point(0.0, 0.01).group(5).delta >= 0.05


@pytest.mark.slow
def test_the_breaker_of_natural_filters_is_refuted() -> None:
    breaker = NaturalFilterBreaker()
    game = interaction(breaker, [query.mechanism for query in breaker.queries], 2)
    found = audit(
        game,
        [game.pair],
        claim=BlackBox(1.5, delta=0.05),
        samples=2_000_000,
        seed=SEED,
        ladder=False,
    )
    assert found.verdict is Verdict.REFUTED


def test_the_pair_that_tells_gets_most_of_the_rows() -> None:
    rng = np.random.default_rng(3)
    pairs = [Pair(index, -index) for index in range(1, 33)]

    def slightly(data: int, n: int) -> np.ndarray:
        return (rng.random(n) < {5: 0.6, -5: 0.4}.get(data, 0.5)).astype(float)

    found = audit(
        Subject(batch=slightly), pairs, claim=BlackBox(0.05), samples=20_000, alpha=1e-300,
        ladder=False, seed=SEED,
    )  # fmt: skip
    rows = np.diff([0, *(moment.samples for moment in found.moments)])
    told = sum(rows[at] for at, moment in enumerate(found.moments) if moment.pair == 4)
    assert found.verdict is Verdict.NOT_REFUTED and told > found.samples * 0.6
