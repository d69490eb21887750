"""docs/assets/play.js by what its pages show: numbers are read as they were meant, and no bound is drawn too high."""

# ruff: noqa: RUF001 (Chinese punctuation)
from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ASSETS = Path(__file__).parents[2] / "docs" / "assets"
NODE = shutil.which("node")
REQUIRED = "site" in os.environ.get("DPCOMPOSE_REQUIRE", "").split(",")
pytestmark = pytest.mark.skipif(NODE is None and not REQUIRED, reason="node is not installed")
Points = list[tuple[float, float]]
READ = {
    "0,1": "0.1", "0,001": "0.001", "0,01": "0.01", "0,125": "0.125", ",5": "0.5", "0.1": "0.1", " 1 ": "1",
    "1/801": "0.00124844", "1/0,2e1": "0.5", "e^-2": "0.135335", "e^-0,5": "0.606531", "1e-3": "0.001",
}  # fmt: skip
UNCLEAR = ["1,000", "1,000,000", "0,1,2", "1.000,5", "1,000/2", "", "1/2/3", "1/", "x", "0\uff0c1"]


def played(page: str, *typed: Mapping[str, Any], lang: str = "en") -> list[dict[str, Any]]:
    """What a page shows for each set of typed fields."""
    command = [
        NODE or "node",
        str(Path(__file__).parent / "played.js"),
        str(ASSETS),
        page,
        json.dumps(typed),
        lang,
    ]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def curves(shown: dict[str, Any]) -> dict[str, Points]:
    """The corners and points that are drawn, by the name of the curve; y grows downward."""
    found: dict[str, Points] = {}
    for name, color in shown["names"]:
        points: Points = [(x, y) for fill, x, y in shown["circles"] if fill == color]
        for stroke, path in shown["paths"]:
            if stroke == color:
                for step, numbers in re.findall(r"([MLHV])([-0-9.,e]+)", path):
                    values = [float(each) for each in numbers.split(",")]
                    x = values[0] if step in "MLH" else points[-1][0]
                    y = values[-1] if step in "MLV" else points[-1][1]
                    points.append((x, y))
        found[name] = points
    return found


def at(line: Points, x: float) -> float:
    """The height of a line between its corners."""
    if x == line[0][0]:
        return line[0][1]
    (x0, y0), (x1, y1) = next(each for each in pairwise(line) if each[0][0] < x <= each[1][0])
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x < x1 else y1


def test_a_number_is_read_as_it_is_written() -> None:
    for shown, (text, value) in zip(
        played("3.20", *({"k": "1", "epsilon": text} for text in READ)), READ.items(), strict=True
    ):
        assert {row[0]: row[1] for row in shown["rows"]}["the sum, Corollary 3.15"] == value, text


def test_a_decimal_comma_gives_the_certified_value_of_its_number() -> None:
    comma, point = played("3.20", {"epsilon": "0,1"}, {"epsilon": "0.1"})
    assert comma == point and comma["rows"][0][1] == "≤ 4.7746"


def test_what_may_be_two_numbers_is_refused() -> None:
    for text, shown in zip(
        UNCLEAR, played("3.20", *({"epsilon": text} for text in UNCLEAR)), strict=True
    ):
        assert (
            not shown["rows"]
            and "epsilon of each: a number above 0, at most 1" in shown["words"][0]
        ), text
        assert ("without a comma" in shown["words"][0]) == ("," in text)
    unclear, clear = played("3.20", {"k": "10,000"}, {"k": "10000"})
    assert not unclear["rows"] and clear["rows"]


@pytest.mark.parametrize(
    ("page", "least", "above"),
    [
        ("3.20", "the least", ("the sum", "Theorem 3.20")),
        ("3.16", "least, delta 10⁻⁶ more", ("the sum",)),
        ("2.2", "k composed, delta 10⁻⁶", ("group of k",)),
    ],
)
def test_the_least_is_drawn_above_nothing_that_it_is_the_least_of(
    page: str, least: str, above: tuple[str, ...]
) -> None:
    typed = [("0.1", "1e-6"), ("0.01", "0.5"), ("1", "1e-15"), ("0.11", "2e-7"), ("1e-9", "3e-8")]
    for shown in played(page, *({"epsilon": epsilon, "delta": delta} for epsilon, delta in typed)):
        drawn = curves(shown)
        assert len(drawn[least]) > 5
        for x, y in drawn[least]:
            for name in above:
                assert y >= at(drawn[name], x) - 1e-9, (name, x)
        assert len({x for x, _ in drawn[least]}) == len(
            drawn[least]
        )  # k is a whole number: none lies between two


def test_a_picture_of_another_point_than_the_one_typed_says_so() -> None:
    plain, moved, beyond = played(
        "3.20", {}, {"epsilon": "0.11", "delta": "2e-7"}, {"delta": "1e-16"}
    )
    assert not plain["words"]
    assert moved["words"] == [
        "The picture is that of epsilon = 0.125 and delta = 10⁻⁸, the next on the grid."
    ]
    assert not curves(beyond).get("the least") and curves(beyond)["the sum"] and not beyond["words"]


def test_a_chinese_page_speaks_chinese_and_reads_the_same_numbers() -> None:
    pages = ("2.2", "3.16", "3.18", "3.20", "3.21")
    for page in (*pages, "3.7"):
        typed = {"odds": "801"} if page == "3.7" else {"epsilon": "0,1"}
        (english,), (chinese,) = played(page, typed), played(page, typed, lang="zh")
        numbers = [[row[1] for row in shown["rows"]] for shown in (english, chinese)]
        assert numbers[0] == numbers[1] and len(numbers[0]) > 1
        words = " ".join(cell for row in chinese["rows"] for cell in row)
        words += " ".join([*chinese["words"], *(name for name, _ in chinese["names"])])
        assert re.sub(r"[^a-z]+", " ", words).split(), words
        left = set(re.findall(r"[A-Za-z]{2,}", words)) - {"epsilon", "delta", "tanh", "loss"}
        assert not left, (page, left)
    (wrong,) = played("3.20", {"epsilon": "1,000"}, lang="zh")
    assert "每个的 epsilon" in wrong["words"][0] and "不带逗号" in wrong["words"][0]
    (fraction,) = played("3.20", {"k": "1", "epsilon": "1/801"}, lang="zh")
    assert {row[0]: row[1] for row in fraction["rows"]}["求和，推论 3.15"] == "0.00124844"


def test_the_experiment_is_played_with_buttons() -> None:
    ten = {"k": "25", "epsilon": "0.2", "press": ["Ask ten"]}
    played_out = {**ten, "press": ["Ask ten", "Ask ten", "Ask ten", "Guess: Bob is in"]}
    begun, asked, again, swapped, done = played(
        "experiment", {"k": "25", "epsilon": "0.2"}, ten, ten,
        {**ten, "press": ["Ask it with the worlds swapped"]}, played_out,
    )  # fmt: skip
    assert not begun["bars"] and asked == again, "the same number gives the same coins"
    rows = {row[0]: row[1:] for row in asked["rows"]}
    assert rows["databases asked"][0] == "10 / 25" and len(asked["bars"]) == 10
    yes = rows["their last answers"][0].split().count("yes")
    loss = float(rows["loss of your view"][0])
    assert loss == pytest.approx(0.2 * (2 * yes - 10), abs=1e-6)
    probable = float(rows["Bob is in, as probable as"][0].removesuffix(" %"))
    assert probable == pytest.approx(100 / (1 + math.exp(-loss)), abs=0.06)
    (answer,) = (row[1] for row in swapped["rows"] if row[0] == "their last answers")
    (loss,) = (float(row[1]) for row in swapped["rows"] if row[0] == "loss of your view")
    assert loss == (-0.2 if answer == "yes" else 0.2), "a yes speaks for world 1 there"
    assert len(done["bars"]) == 25
    verdict = next(row for row in done["rows"] if row[0] == "your guess")
    assert (verdict[1] == "right") == verdict[2].endswith("world 0")


def test_the_games_of_the_experiment_keep_to_the_theorems() -> None:
    typed = {"k": "100", "epsilon": "0.1", "delta": "0.1"}
    for press in ("1000 games in world 0", "1000 games that stop above Theorem 3.20"):
        (shown,) = played("experiment", {**typed, "press": [press]})
        rows = {row[0]: row[1:] for row in shown["rows"]}
        above, of = rows["games with a loss above Theorem 3.20"][0].split(" / ")
        assert of == "1000" and 0 < int(above) <= 100, "seldom, but more seldom than delta'"
        measured, error = map(float, rows["delta at the least epsilon, measured"][0].split(" ± "))
        assert 0.05 < measured <= 0.1 + 2 * error
        counts = shown["bars"]
        assert len(counts) == 43 and max(height for *_, height in counts) == pytest.approx(255)


def test_a_chinese_reader_plays_in_chinese() -> None:
    typed = {"press": ["问十个", "猜：Bob 在", "在世界 0 里玩 1000 局"]}
    (shown,) = played("experiment", typed, lang="zh")
    words = " ".join([*shown["buttons"], *(name for name, _ in shown["names"])])
    words += " ".join(cell for row in shown["rows"] for cell in row)
    assert not set(re.findall(r"[A-Za-z]{2,}", words)) - {"epsilon", "delta", "Bob"}, words
    assert len(shown["buttons"]) == 8


def test_the_script_of_the_site_has_at_most_600_lines() -> None:
    written = [each for each in ASSETS.glob("*.js") if each.name != "grids.js"]
    assert sum(len(each.read_text("utf-8").splitlines()) for each in written) <= 600


def test_numbers_are_written_as_people_write_them() -> None:
    (shown,) = played("3.20", {"epsilon": "0.1", "delta": "1e-8"})
    words = " ".join(cell for row in shown["rows"] for cell in row)
    assert "delta = 10⁻⁸" in words and "≤ " in words
    assert not re.search(r"[<>]=|\de-\d", words)
