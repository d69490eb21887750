"""Marginals measured in rounds, and synthetic data: charge, noise and results.

The graphical model is replaced by a stand-in, since it sees only released numbers (the real one:
tests/interop/test_marginals.py).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any, cast

import pyarrow as pa
import pytest

import dpcompose.release as release
from campaigns.release import audit
from campaigns.release.marginals import Latest, Weakened
from dpcompose.audit import Verdict
from dpcompose.errors import DomainError, MissingExtraError, OverdrawnError, UnsupportedError
from dpcompose.release import aim, sampler
from dpcompose.release.aim import (
    LARGEST_COUNT,
    UNIT,
    AdaptiveMarginals,
    Allowance,
    ExactMarginals,
    workload,
)
from dpcompose.release.session import Session

from .world import ledger, session_of, without_a_model

SIZES = (2, 3, 2)
WEIGHTS = workload(list(combinations(range(3), 3)))


def step(make: type[AdaptiveMarginals] = AdaptiveMarginals, **given: Any) -> AdaptiveMarginals:
    known: dict[str, Any] = {
        "rho": 0.3,
        "change": 3,
        "sizes": SIZES,
        "weights": WEIGHTS,
        "rounds": 9,
    }
    return make(**(known | {"megabytes": 1.0, "start": Latest(SIZES)} | given))


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Fraction]:
    """The exact rho of all that the samplers were asked for since, for a unit of so many rows."""
    sigmas, scales = list[float](), list[tuple[float, int]]()
    gaussian, least = sampler.discrete_gaussian, sampler.least_with_noise

    def drawn(values: Sequence[int], *, sigma: float) -> list[int]:
        sigmas.append(sigma)
        return gaussian(values, sigma=sigma)

    def chosen(scores: Sequence[int], *, scale: float, flips: bool) -> int:
        assert not flips
        scales.append((scale, len(scores)))
        return least(scores, scale=scale, flips=flips)

    monkeypatch.setattr(sampler, "discrete_gaussian", drawn)
    monkeypatch.setattr(sampler, "least_with_noise", chosen)

    def rho(change: int) -> Fraction:
        # Each candidate's score is moved by at most its weight; the largest of those that were small enough counts.
        weights = list(WEIGHTS.values())
        noise = sum(
            (Fraction(change**2) / (2 * Fraction(sigma) ** 2) for sigma in sigmas), Fraction()
        )
        lengths = [
            2 * UNIT * change * max(weights[:number]) / Fraction(scale) for scale, number in scales
        ]
        return noise + sum((length**2 / 8 for length in lengths), Fraction())

    return rho


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"change": 1, "rho": 1e-6, "rounds": 4},
        {"rho": 100.0, "rounds": 30},
        # Nothing that is measured moves this model, so that rounds grow dear at once.
        {"start": Latest(SIZES, guess=-1e300), "rounds": 40},
        {"start": Latest(SIZES, large=2), "rounds": 5},
    ],
)
def test_the_rounds_cost_no_more_than_is_charged(
    given: dict[str, Any], spent: Callable[[int], Fraction]
) -> None:
    asked = step(**given)
    asked.draw([(0, 0, 0, 40), (1, 2, 1, 3)])
    price = Fraction(asked.mechanism.zcdp().rho)  # type: ignore[union-attr]
    assert Fraction(asked.rho) <= price
    assert (1 - Fraction(1, 10**9)) * price <= spent(asked.change) <= price


def test_noise_for_less_than_one_unit_moves_is_found(spent: Callable[[int], Fraction]) -> None:
    asked = step(Weakened, parts=1.001)
    asked.draw([(0, 0, 0, 40)])
    assert spent(asked.change) > Fraction(asked.rho)


def test_no_round_takes_more_than_is_left() -> None:
    left = Allowance(Fraction(1, 3))
    left.take(Fraction(1, 3) - Fraction(1, 10**30))
    with pytest.raises(DomainError):
        left.take(Fraction(2, 10**30))
    assert left.left == Fraction(1, 10**30)


@pytest.mark.parametrize("seed", range(5))
def test_one_unit_moves_counts_and_distances_as_far_as_is_said(seed: int) -> None:
    draw, change = random.Random(seed), 3
    cells = Counter(
        {
            cell: draw.choice([0, 1, 5, 10**9, LARGEST_COUNT, 2**50])
            for cell in product(*map(range, SIZES))
        }
    )
    more = cells + Counter(draw.choices(list(cells), k=change))
    one, other = (
        ExactMarginals([(*cell, n) for cell, n in each.items()], SIZES) for each in (cells, more)
    )
    farthest = 0
    for columns in WEIGHTS:
        moved = other.counts(columns) - one.counts(columns)
        assert abs(moved).sum() == change
        guess = [
            draw.choice([0.0, 5.4999, -3e9, 1e308, float("inf"), float("nan"), 2.0**31])
            for _ in moved
        ]
        off = abs(other.distance(columns, guess) - one.distance(columns, guess))
        farthest = max(farthest, off)
        assert off <= UNIT * change
    assert farthest > 0
    known = {
        cell: sum(n for full, n in cells.items() if full[1:] == cell)
        for cell in product(range(3), range(2))
    }
    assert one.counts((1, 2)).tolist() == list(known.values())


def test_distances_of_many_large_cells_do_not_overflow() -> None:
    whole = ExactMarginals([(0, 0, 2**52)], (1000, 1000))
    assert whole.distance((0, 1), [-1e300] * 10**6) == UNIT * LARGEST_COUNT * (10**6 + 1)


def test_parts_count_the_columns_that_they_share() -> None:
    asked = [(0, 1), (1, 2)]
    assert workload(asked) == {(0,): 1, (1,): 2, (2,): 1, (0, 1): 3, (1, 2): 3}


@pytest.mark.statistical
def test_neighbors_cannot_be_told_apart_by_marginals() -> None:
    # Refuted by chance with probability at most 1e-9.
    assert audit.marginals(300, 1e-9).verdict is Verdict.NOT_REFUTED
    assert audit.PLANTED["too little noise on marginals"](1500).verdict is Verdict.REFUTED


# --- Questions to a session. ---

BY, KEYS = ["city", "ill", "year"], [["oslo", "rome"], [False, True], [1, 2, 3]]
ASKED: dict[str, Any] = {"by": BY, "keys": KEYS, "rounds": 6}
SPEND = {"rho": 1, "delta": 1e-6}


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_model(monkeypatch)


def patients() -> release.Table:
    rows = [(f"p{n}", ("oslo", "rome")[n % 2], n % 3 == 0, n % 3 + 1) for n in range(30)]
    rows += [("many", "rome", True, 1)] * 500 + [
        ("p1", "bonn", True, 1),
        ("p1", "oslo", None, 1),
        (None, "oslo", True, 1),
    ]
    names = ("person", "city", "ill", "year")
    frame = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    return release.table(frame, unit="person", max_rows_per_unit=2, name="patients")


def asked(epsilon: float = 100.0) -> Session:
    return session_of(patients(), ledger(epsilon=epsilon))


@pytest.mark.usefixtures("stand_in")
def test_an_answer_holds_every_marginal_and_is_charged_once() -> None:
    session = asked()
    before = session.account.left()
    found = session.synthetic(**ASKED, spend={"epsilon": 60, "delta": 1e-6}, key="once")
    assert 59.99 < float(found.spent["epsilon"].fraction) <= 60
    assert found.spent["delta"].fraction == Fraction(1, 10**6)
    assert (
        session.account.left()["epsilon"].fraction
        == before["epsilon"].fraction - found.spent["epsilon"].fraction
    )
    again = session.synthetic(**ASKED, spend={"epsilon": 60, "delta": 1e-6}, key="once")
    assert again.answer.replayed
    assert again.measured == found.measured
    assert (
        session.account.left()["epsilon"].fraction
        == before["epsilon"].fraction - found.spent["epsilon"].fraction
    )
    assert [each.columns for each in found.measured[:3]] == [(0,), (1,), (2,)]
    table = found.answer.table.to_pylist()
    assert len(table) == sum(len(each.counts) for each in found.measured)
    assert table[2] == {"city": None, "ill": False, "year": None, "measurement": 1} | {
        name: table[2][name] for name in ("count", "sigma")
    }


@pytest.mark.usefixtures("stand_in")
def test_rows_are_bounded_and_others_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda values, **_: list(values))
    found = asked().synthetic(**ASKED, spend=SPEND)
    marginal = {
        tuple(row.values())[:-1]: row["count"]
        for row in found.marginal(["year", "city"]).to_pylist()
    }
    if (0, 2) in {each.columns for each in found.measured}:
        assert marginal["rome", 1] == 5 + 2
    # 30 rows, and 2 of the 500 of one person; none of bonn, of NULL, of nobody.
    assert found.measured[0].counts == (15, 15 + 2)
    assert found.sample().num_rows == 32
    assert found.sample(7).to_pylist()[3] == {"city": "oslo", "ill": True, "year": 1}
    assert found.to_pandas(3).shape == (3, 3)
    wide, narrow = (
        cast("tuple[float, ...]", found.answer.expected_error(each)) for each in (0.95, 0.5)
    )
    assert all(more > less for more, less in zip(wide, narrow, strict=True))


@pytest.mark.usefixtures("stand_in")
def test_what_is_asked_is_explained() -> None:
    session, question = asked(), release.Synthetic(**ASKED, spend=SPEND)
    text = str(session.explain(question))
    assert "synthetic data by city, ill, year, 12 public cells" in text
    assert "L2 squared 4" in text
    with pytest.raises(UnsupportedError):
        session.quote(question).expected_error(0.95)
    with pytest.raises(DomainError, match="follows from its answer"):
        session.synthetic(**ASKED, error=5)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"by": "city"}, "by"),
        ({"by": ["city", "city", "ill"]}, "by"),
        ({"keys": None}, "by"),
        ({"keys": KEYS[:2]}, "by"),
        ({"keys": [[], *KEYS[1:]]}, "keys"),
        ({"keys": [["oslo", None], *KEYS[1:]]}, "keys"),
        ({"by": ["city", "ill", "person2"]}, "person2"),
        ({"spend": {"epsilon": 1}}, "spend"),
        ({"spend": {"rho": -1}}, "rho"),
        ({"marginals": 0}, "marginals"),
        ({"marginals": [["city", "bonn"]]}, "marginals"),
        ({"marginals": "city"}, "marginals"),
        ({"marginals": ["city"]}, "marginals"),
        ({"marginals": []}, "marginals"),
        ({"marginals": True}, "marginals"),
        ({"rounds": 3}, "rounds"),
        ({"rounds": 10**5}, "rounds"),
        ({"megabytes": float("nan")}, "megabytes"),
        ({"megabytes": 0}, "megabytes"),
    ],
)
def test_bad_questions_cost_nothing(given: dict[str, Any], name: str) -> None:
    session, bad = asked(), cast("dict[str, Any]", {"spend": SPEND})
    before = session.account.left()
    with pytest.raises(DomainError, match=name):
        session.synthetic(**(bad | ASKED | given))
    assert session.account.left() == before


@pytest.mark.usefixtures("stand_in")
def test_no_more_than_the_scope_has_is_drawn() -> None:
    with pytest.raises(OverdrawnError):
        asked(epsilon=0.5).synthetic(**ASKED, spend={"epsilon": 1, "delta": 1e-6})


@pytest.mark.usefixtures("stand_in")
def test_columns_and_rows_that_are_not_there_are_refused() -> None:
    found = asked().synthetic(**ASKED, spend=SPEND)
    for wrong in ([], ["person"], ["city", "city"], 3):
        with pytest.raises(DomainError):
            found.marginal(wrong)  # type: ignore[arg-type]
    for rows in (0, -1, 1.5, 10**9):
        with pytest.raises(DomainError):
            found.sample(rows)  # type: ignore[arg-type]
    with pytest.raises(DomainError):
        release.SyntheticData(asked().count(spend={"epsilon": 1}))


def test_without_the_extra_nothing_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mbi", None)
    session = asked()
    before = session.account.left()
    with pytest.raises(MissingExtraError, match="marginals"):
        session.synthetic(**ASKED, spend=SPEND)
    assert session.account.left() == before
    with pytest.raises(MissingExtraError):
        aim.require()
