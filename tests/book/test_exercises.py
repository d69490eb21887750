"""The lessons: right answers are computed here, and the pages have the same exercises as the
command.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from dpcompose.book import LESSONS
from tests.cli.runner import invoke

PAGES = Path(__file__).parents[2] / "docs" / "lessons"
# By hand, from the formulas of the book, with three digits.
ROOT = math.sqrt(200 * math.log(1e6))
BY_HAND: dict[int, dict[str, float]] = {
    1: {
        "a": 0.3 + 0.2, "b": 0.3, "c": math.log(3), "d": 4 * 0.1,
        "e": 1e-6 * (1 + math.exp(0.5) + math.e), "f": 1000 * math.exp(-0.1),
    },
    2: {
        "a": 25 / 10, "b": 1e-6 + 2e-6, "c": 1 - 0.9**3, "d": math.log(3), "e": math.log(2), "f": math.inf,
    },
    3: {
        "a": math.log(4 / 3) / 2, "b": math.log(2), "c": 1 / 4, "d": 1 / 2 - 3 / 8, "e": 0.34,
        "f": math.tanh(1 / 2), "g": 100 * 0.005 + 3 * 10 * 0.1,
    },
    4: {
        "a": 4 / 9 - 2 / 9, "b": 4 / 9 - 2 / 9, "c": math.log(2), "d": 4 / 5,
        "e": 2 * math.log(3 / 2), "f": 2 * math.log(2),
    },
    5: {
        "a": ROOT * 0.1 + 10 * math.expm1(0.1), "b": 100 * 1e-8 + 1e-6, "c": 29,
        "d": ROOT * 0.1 + 10 * math.tanh(0.05), "e": 0.45 / ROOT, "f": 0.0165,
        "g": 45 / ROOT * math.expm1(0.45 / ROOT),
    },
    6: {
        "a": 10_000 / 801, "b": 800 / 801 + 10_000 / 801 * math.expm1(1 / 801), "c": 812.32, "d": 2 * 800,
        "e": 1000**2 / (8 * math.log(1e6)), "f": 100**2, "g": 100,
    },
}  # fmt: skip
WRONG: dict[int, dict[str, tuple[float, ...]]] = {
    1: {"b": (0.6,), "c": (0.75, math.nan), "d": (0.2,), "e": (3 * math.e * 1e-6,), "f": (900.0,)},
    2: {"a": (0.5,), "c": (0.3,), "d": (math.log(4), math.log(2)), "f": (math.log(2), 1e9, math.nan)},
    3: {"a": (0.1308,), "c": (0.5,), "e": (0.5, 0.29, 0.376, -1.0, math.nan, math.inf), "f": (math.e - 1,), "g": (0.5,)},
    4: {"b": (0.0, 4 / 9), "c": (2 * math.log(2), 0.0), "d": (3 / 4, 2 / 3), "e": (math.log(4),), "f": (2 * math.log(3 / 2),)},
    5: {"b": (1e-6,), "c": (28.0, 30.0), "f": (0.0128, 0.0166, 0.00856, math.nan), "g": (0.45,)},
    6: {"a": (1.0143,), "b": (1.0,), "c": (801.0, 800.0), "f": (100.0,), "g": (10.0, 1e4)},
}  # fmt: skip


@pytest.mark.parametrize("number", LESSONS)
def test_answers_by_hand_are_right(number: int) -> None:
    lesson, by_hand = LESSONS[number], BY_HAND[number]
    assert [each.name for each in lesson.parameters] == list(by_hand)
    assert lesson.checked(by_hand) == (True,) * len(by_hand)
    few = {name: float(f"{value:.3g}") for name, value in by_hand.items()}
    assert lesson.checked(few) == (True,) * len(by_hand), "three digits are enough"
    assert lesson.checked({}) == (None,) * len(by_hand)


@pytest.mark.parametrize("number", LESSONS)
def test_wrong_answers_are_not(number: int) -> None:
    names = [each.name for each in LESSONS[number].parameters]
    for name, answers in WRONG[number].items():
        for answer in answers:
            assert LESSONS[number].checked({name: answer})[names.index(name)] is False, (
                name,
                answer,
            )
    off = {name: value * 1.02 for name, value in BY_HAND[number].items() if value < math.inf}
    off.pop({3: "e", 5: "f"}.get(number, ""), None)
    assert True not in LESSONS[number].checked(off)


def test_more_than_one_witness_is_right() -> None:
    answers = (0.3, 0.31, float(Fraction(1, 3)), 0.375)
    assert all(LESSONS[3].checked({"e": answer})[4] for answer in answers)


@pytest.mark.parametrize("number", LESSONS)
def test_the_pages_ask_what_the_command_asks(number: int) -> None:
    exercise = re.compile(r"^- \*\*(\w)\*\* (.+)$", re.MULTILINE)
    english = (PAGES / f"{number}.md").read_text("utf-8")
    chinese = (PAGES / f"{number}.zh.md").read_text("utf-8")
    questions = [(each.name, each.meaning) for each in LESSONS[number].parameters]
    assert exercise.findall(english) == questions
    assert [letter for letter, _ in exercise.findall(chinese)] == [each for each, _ in questions]
    digits = re.compile(r"\d+(?:[.,]\d+)*")
    for (_, asked), (letter, translated) in zip(questions, exercise.findall(chinese), strict=True):
        assert set(digits.findall(translated)) - {"25"} <= set(digits.findall(asked)) | {"0.3"}, (
            letter
        )


def test_the_command_checks_answers() -> None:
    ended = invoke(["exercise", "3", "--c", "1/4", "--b", "2", "--json"])
    document = json.loads(ended.stdout)
    assert ended.exit_code == 1 and document["answers"] == {"c": 0.25, "b": 2.0}
    assert [each["right"] for each in document["exercises"]] == [None, False, True] + [None] * 4
    shown = invoke(["exercise", "3", "--c", "0.25"])
    assert shown.exit_code == 0 and "1 of 7 answers are right" in shown.stdout
    whole = [word for name, value in BY_HAND[2].items() for word in (f"--{name}", repr(value))]
    done = invoke(["exercise", "2", *whole])
    assert done.exit_code == 0 and "6 of 6" in done.stdout and "Next:" not in done.stdout
    for line in (["7"], ["0"], ["x"], [], ["1", "--z", "1"], ["1", "--a", "half"], ["1", "--a"]):
        assert invoke(["exercise", *line]).exit_code == 2, line
