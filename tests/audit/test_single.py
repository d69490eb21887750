"""A single coordinate of a large answer that reveals the record is found, and without one nothing
is found.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpcompose import BlackBox
from dpcompose.audit import Pair, Subject, Verdict, audit
from dpcompose.audit.feature import named
from dpcompose.audit.game import outcomes_of, text_of_outcomes
from dpcompose.audit.learned import LEARNERS, single
from dpcompose.audit.outcome import rows_of

LIKELY = 0.9
"""With that probability an answer tells the datum; e^1 / (1 + e^1) is allowed."""


def told(data: float, draw: random.Random) -> int:
    return int(data) if draw.random() < LIKELY else 1 - int(data)


def letter(data: float, draw: random.Random) -> str:
    text = "".join(draw.choices("0123456789abcdef", k=300))
    return text[:157] + "07"[told(data, draw)] + text[158:]


def byte(data: float, draw: random.Random) -> bytes:
    return bytes([*draw.randbytes(333), told(data, draw), *draw.randbytes(66)])


def number(data: float, draw: random.Random) -> list[float]:
    return [draw.gauss() + 3 * told(data, draw) * (place == 407) for place in range(601)]


def array(data: float, draw: random.Random) -> np.ndarray:
    return np.array(number(data, draw))


def key(data: float, draw: random.Random) -> dict[str, int]:
    return {
        f"key {place}": told(data, draw) if place == 150 else draw.randrange(9)
        for place in range(200)
    }


def depth(data: float, draw: random.Random) -> Any:
    answer: Any = draw.gauss() / 5 + told(data, draw)
    for _ in range(15):
        answer = [answer]
    return {"deep": answer}


def digit(data: float, draw: random.Random) -> int:
    return draw.getrandbits(300) & ~(1 << 137) | (told(data, draw) << 137) | (1 << 300)


def parity(data: float, draw: random.Random) -> int:
    return 2 * round(draw.gauss() * 1e6) + told(data, draw)


def attribute(data: float, draw: random.Random) -> None:
    error = ValueError("refused")
    error.code = told(data, draw)  # pyright: ignore[reportAttributeAccessIssue]
    raise error


def argument(data: float, draw: random.Random) -> None:
    raise ValueError("refused", told(data, draw))


def behind(data: float, draw: random.Random) -> None:
    try:
        raise (KeyError, IndexError)[told(data, draw)]
    except LookupError as error:
        raise ValueError("refused") from error


KINDS = (letter, byte, number, array, key, depth, digit, parity, attribute, argument, behind)


def subject(
    kind: Callable[[float, random.Random], Any], seed: int, *, honest: bool = False
) -> Subject:
    draw = random.Random(seed)
    return Subject(lambda data: kind(0.0 if honest else data, draw))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_place_is_found(kind: Callable[[float, random.Random], Any]) -> None:
    asked: dict[str, Any] = {"samples": 20_000, "learners": LEARNERS, "ladder": False}
    assert (
        audit(subject(kind, 1), [Pair(0.0, 1.0)], claim=BlackBox(1.0), **asked).verdict
        is Verdict.REFUTED
    )


@pytest.mark.parametrize("kind", [letter, array, digit, attribute], ids=lambda kind: kind.__name__)
def test_nothing_is_found_where_nothing_is(kind: Callable[[float, random.Random], Any]) -> None:
    asked: dict[str, Any] = {"alpha": 0.01, "samples": 600, "learners": LEARNERS, "ladder": False}
    asked["seed"] = bytes(32)  # with coins drawn anew, one run in a few hundred refutes
    found = audit(subject(kind, 2, honest=True), [Pair(0.0, 1.0)], claim=BlackBox(0.001), **asked)
    assert found.verdict is Verdict.NOT_REFUTED and found.peak < math.log(100)


@pytest.mark.parametrize(
    "kind", [letter, byte, number, digit, parity], ids=lambda kind: kind.__name__
)
def test_what_was_learned_is_read_again_from_its_name_and_a_file(
    kind: Callable[[float, random.Random], Any],
) -> None:
    draw = random.Random(3)
    coins = np.array([draw.randrange(2) for _ in range(400)], dtype=np.uint8)
    rows = rows_of([kind(float(coin), draw) for coin in coins])
    found = single(rows, coins)
    assert found is not None and found.parameters is None
    scores = found.score(rows)
    assert abs(np.corrcoef(scores, coins)[0, 1]) > 0.2
    back = outcomes_of(text_of_outcomes(rows), len(rows))
    assert np.array_equal(named(found.name).score(back), scores, equal_nan=True)
    assert np.array_equal(found.score(rows[:7]), scores[:7], equal_nan=True)


def test_few_rows_and_one_world_teach_nothing() -> None:
    rows = np.arange(100.0 * 90).reshape(90, 100)
    assert single(rows[:50], np.arange(50) % 2) is None
    assert single(rows, np.zeros(90)) is None
