"""`dpcompose experiment`, as somebody types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.runner import Ended, invoke

pytestmark = pytest.mark.slow

PLAN = """epsilon = 1.0
[[mechanism]]
kind = "laplace"
scale = 3.0
sensitivity = 1.5
times = 2
[[mechanism]]
kind = "randomized-response"
epsilon = 0.5
rate = 0.5
times = 2
"""


def run(*words: str) -> Ended:
    return invoke(["experiment", *words])


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.mark.parametrize("adversary", ["repeater", "databases", "greedy", "random"])
def test_every_adversary_plays_a_plan(plan: Path, adversary: str) -> None:
    result = run(adversary, str(plan), "--transcripts", "2000", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["adversary"] == adversary
    assert document["rounds"] == 4
    assert document["delta"]["lower"] <= document["delta"]["estimate"] <= document["delta"]["upper"]
    assert document["delta"]["lower"] <= document["certified"]["upper"]
    assert document["sound"] is True
    assert len(document["curve"]["epsilon"]) == len(document["curve"]["certified"]) == 41
    assert sum(document["losses"]["world_0"]) == pytest.approx(1)
    assert {row["theorem"] for row in document["theorems"]} >= {
        "certified composition",
        "basic composition",
    }


def test_the_breaker_needs_no_plan() -> None:
    result = run("breaker", "--transcripts", "20000", "--json")
    document = json.loads(result.stdout)
    assert document["epsilon"] == 1.5
    assert document["exact"]["lower"] <= 0.0634470710684997560374 <= document["exact"]["upper"]
    assert document["exact"]["upper"] - document["exact"]["lower"] < 1e-15
    assert document["certified"]["upper"] > 0.06
    shown = run("breaker", "--transcripts", "2000")
    assert "the natural filter lets both through" in " ".join(shown.stdout.split())


def test_the_same_seed_gives_the_same_document(plan: Path) -> None:
    words = ("random", str(plan), "--transcripts", "3000", "--rounds", "2", "--json")
    first, again, other = (
        run(*words, "--seed", "3"),
        run(*words, "--seed", "3"),
        run(*words, "--seed", "4"),
    )
    assert first.stdout == again.stdout
    assert first.stdout != other.stdout


def test_pictures_are_written(plan: Path, tmp_path: Path) -> None:
    for words in (("repeater", str(plan)), ("breaker",)):
        path = tmp_path / "picture.png"
        result = run(*words, "--transcripts", "1000", "--plot", str(path))
        assert result.exit_code == 0, result.output
        assert path.read_bytes().startswith(b"\x89PNG")
        path.unlink()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("repeater",), "a plan file"),
        (("breaker", "PLAN"), "no plan"),
        (("repeater", "PLAN", "--epsilon", "nan"), "not NaN"),
        (("repeater", "PLAN", "--transcripts", "0"), "transcripts"),
        (("repeater", "PLAN", "--rounds", "0"), "rounds"),
        (("repeater", "PLAN", "--rounds", "20000"), "at most 10000"),
        (("repeater", "PLAN", "--seed", "-1"), "--seed"),
        (("repeater", "PLAN", "--plot", "picture.txt"), ".png"),
        (("repeater", "no.toml"), "no.toml"),
        (("nobody", "PLAN"), "nobody"),
    ],
)
def test_bad_input_is_one_sentence(plan: Path, words: tuple[str, ...], said: str) -> None:
    result = run(*(str(plan) if word == "PLAN" else word for word in words))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('[[mechanism]]\nkind = "concentrated"\nrho = 0.1\n')
    result = run("repeater", str(path))
    assert result.exit_code == 1
    assert "round 1 is refused" in result.stderr
    assert "cannot draw" in result.stderr


@pytest.mark.parametrize("rounds", ["0", "-1"])
def test_no_rounds_are_no_game(plan: Path, rounds: str) -> None:
    """0 was taken for what is left out."""
    for words in (["breaker"], ["repeater", str(plan)]):
        result = run(*words, "--rounds", rounds, "--transcripts", "10")
        assert result.exit_code == 2 and "rounds" in result.stderr
