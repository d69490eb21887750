"""`dpcompose adaptive advise`: what is advised is what the filters grant, and no mistake ends in a traceback."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import dpcompose.adaptive.advice as advice
from dpcompose import BlackBox, Gaussian, Laplace
from dpcompose.adaptive import FilterAdvice, advise
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from tests.cli.runner import invoke

PLAN = """delta = 1e-6
[[mechanism]]
kind = "laplace"
scale = 64.0
times = 60
[[mechanism]]
kind = "black-box"
epsilon = 0.02
name = "rest"
times = 20
[[mechanism]]
kind = "gaussian"
sigma = 1.0
times = 0
"""
WORK: list[list[tuple[Composable, int]]] = [
    [(Laplace(20.0), 30), (BlackBox(0.05), 10)],
    [(Gaussian(30.0), 20)],
    [(BlackBox(0.25), 2)],
    [(Gaussian(60.0), 20), (BlackBox(0.01, delta=1e-10), 20)],
]


@pytest.mark.parametrize("work", WORK, ids=str)
def test_each_filter_grants_what_is_advised_and_no_more(work: list[tuple[Composable, int]]) -> None:
    found = advise(work, 1.0, delta=1e-6)
    assert [each.work for each in found] == sorted(
        (each.work or Fraction(0) for each in found), reverse=True
    )
    for each in found:
        for (mechanism, _), count in zip(work, each.alone, strict=False):
            assert count is not None
            assert granted(each, [mechanism] * (count + 1)) == count
        if each.work is not None and each.filter is not None:
            whole = [mechanism for mechanism, times in work for _ in range(times * int(each.work))]
            assert granted(each, whole) == len(whole)


def test_what_is_not_priced_in_time_is_refused_and_an_error_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An allocation among 10^5 steps was priced for minutes."""
    reached, done, own = Event(), Event(), advice._best  # pyright: ignore[reportPrivateUsage]

    def slow(kind: str, *more: Any) -> FilterAdvice:
        if kind == "basic":
            reached.set()
            done.wait()
        return own(kind, *more)

    monkeypatch.setattr(advice, "_best", slow)
    monkeypatch.setattr(time, "process_time", lambda: advice.SECONDS * reached.is_set())
    rows = {each.kind: each for each in advise([(Laplace(20.0), 30)], 1.0, delta=1e-6)}
    done.set()
    assert sorted(rows) == sorted(advice.KINDS)
    assert rows["zcdp"].filter is not None and rows["zcdp"].refusal == ""
    for kind in ("basic", "budget", "menu"):
        assert rows[kind].filter is None and "not priced within" in rows[kind].refusal

    def failing(*asked: Any) -> FilterAdvice:
        raise OSError("no budget today")

    monkeypatch.setattr(advice, "_best", failing)
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    with pytest.raises(OSError, match="no budget today"):
        advise([(Laplace(20.0), 30)], 1.0, delta=1e-6)


def granted(advice: FilterAdvice, asked: list[Composable]) -> int:
    assert advice.filter is not None
    state = advice.filter.start()
    for mechanism in asked:
        state, decision = advice.filter.step(state, mechanism, delta=advice.delta)
        if not decision.granted:
            break
    return state.granted


@pytest.fixture
def plan(tmp_path: Path) -> str:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return str(path)


def test_a_table_and_one_document(plan: str) -> None:
    result = invoke(["adaptive", "advise", plan, "--epsilon", "1"])
    assert result.exit_code == 0, result.output
    assert all(
        word in result.stdout
        for word in ("Open the menu", "laplace", "rest", "zcdp", "No gaussian")
    )
    document = json.loads(invoke(["adaptive", "advise", plan, "--epsilon", "1", "--json"]).stdout)
    assert document["target"] == {"delta": 1e-6, "epsilon": 1.0}
    assert [set(each["alone"]) for each in document["filters"]][:2] == [{"laplace", "rest"}] * 2
    assert len(document["filters"]) == 7


def test_work_that_is_known_by_its_rho_alone(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('delta = 1e-6\n[[mechanism]]\nkind = "concentrated"\nrho = 0.001\ntimes = 5\n')
    result = invoke(["adaptive", "advise", str(path), "--epsilon", "1"])
    assert result.exit_code == 0 and "menu" in result.stdout, result.output


@pytest.mark.parametrize(
    ("words", "part"),
    [([], "--epsilon"), (["--epsilon", "0"], "above 0"), (["--epsilon", "nan"], "epsilon"),
     (["--epsilon", "1", "--delta", "0"], "(0, 1)"), (["--epsilon", "1", "--delta", "2"], "delta")],
)  # fmt: skip
def test_bad_targets_are_one_sentence(plan: str, words: list[str], part: str) -> None:
    result = invoke(["adaptive", "advise", plan, *words])
    assert (result.exit_code, part in result.stderr) == (2, True), result.output


def test_no_work_and_no_target_for_it() -> None:
    with pytest.raises(DomainError, match="at least one mechanism"):
        advise([(Laplace(1.0), 0)], 1.0, delta=1e-6)
    best = advise([(BlackBox(10.0), 1)], 1.0, delta=1e-6)[0]
    assert best.work is not None and best.work < 1
