"""Histories of Opacus, read without it."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path

import pytest

from dpcompose import Adjacency, Gaussian, compose
from dpcompose.errors import DomainError, PlanError, UnreachableError, UnsupportedError
from dpcompose.interop import opacus
from dpcompose.interop.draws import finding
from dpcompose.interop.imported import import_plan
from dpcompose.interop.opacus import KnownHistory, from_state_dict
from dpcompose.mechanisms import ShuffledEpochs
from dpcompose.plan import PlanQuestion

STEPS = Gaussian(1.5).sampled(0.04) * 2250


@pytest.mark.parametrize("mechanism", ["dpcompose", "prv", "rdp", "gdp"])
def test_every_accountant_of_opacus_writes_the_same_history(mechanism: str) -> None:
    state = json.loads(
        json.dumps({"history": [(1.5, 0.04, 2000), (1.5, 0.04, 250)], "mechanism": mechanism})
    )
    assert from_state_dict(state) == STEPS


def test_a_full_batch_is_not_sampled_and_nothing_costs_nothing() -> None:
    history = [(2.0, 1.0, 3), (1.0, 0.0, 5), (0.0, 0.0, 5), (1.0, 0.5, 0)]
    assert from_state_dict({"history": history, "mechanism": "prv"}) == Gaussian(2.0) * 3
    assert KnownHistory().bound(history, 1e-5) == (Gaussian(2.0) * 3).epsilon(delta=1e-5)
    assert from_state_dict({"history": [], "mechanism": "prv"}) == compose()


def test_without_noise_epsilon_is_infinite() -> None:
    history = [(1.0, 0.01, 100), (0.0, 0.01, 1)]
    assert KnownHistory().bound(history, 1e-5).lower == math.inf
    assert (
        KnownHistory().bound(history, 0.5).lower == 0
        and KnownHistory().bound(history, 0.5).upper == math.inf
    )
    for adjacency in Adjacency:
        found = from_state_dict({"history": history, "mechanism": "rdp"}, adjacency=adjacency)
        assert found.epsilon(delta=1e-5, adjacency=adjacency).upper == math.inf


BAD = [
    (None, "state_dict"),
    ([], "state_dict"),
    ({}, "history"),
    ({"history": []}, "mechanism"),
    ({"history": 3, "mechanism": "prv"}, "history"),
    ({"history": "abc", "mechanism": "prv"}, "history"),
    *(
        ({"history": [entry], "mechanism": "prv"}, "history")
        for entry in [
            (1.0, 0.1),
            "abc",
            (math.nan, 0.1, 1),
            (-1.0, 0.1, 1),
            (math.inf, 0.1, 1),
            (True, 0.1, 1),
            (1.0, math.nan, 1),
            (1.0, 1.5, 1),
            (1.0, -0.1, 1),
            (1.0, 0.1, -1),
            (1.0, 0.1, 1.5),
            (1.0, 0.1, 10**30),
            ("1", 0.1, 1),
        ]
    ),
]


@pytest.mark.parametrize(("state", "named"), BAD)
def test_a_bad_state_is_one_clear_error(state: object, named: str) -> None:
    with pytest.raises(DomainError, match=named):
        from_state_dict(state)


def test_the_state_of_an_unknown_accountant_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="ctd"):
        from_state_dict({"history": [(1.0, 0.1, 1)], "mechanism": "ctd"})


def test_the_least_noise_meets_its_target() -> None:
    for epsilon, delta, rate, steps in [
        (8, 1e-5, 0.04, 2000),
        (0.5, 1e-6, 0.01, 1000),
        (40, 1e-5, 0.02, 5000),
    ]:
        noise = opacus.get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=steps
        )
        found = (Gaussian(noise).sampled(rate) * steps).epsilon(delta=delta)
        assert epsilon * (1 - 1.1e-4) <= found.lower and found.upper <= epsilon
    full = opacus.get_noise_multiplier(
        target_epsilon=1.0, target_delta=1e-5, sample_rate=1.0, epochs=4
    )
    assert (Gaussian(full) * 4).epsilon(delta=1e-5).upper <= 1
    assert (
        opacus.get_noise_multiplier(target_epsilon=1.0, target_delta=1e-5, sample_rate=0.1, steps=0)
        == 0
    )


@pytest.mark.parametrize(
    ("rate", "epochs", "steps"),
    [(1 / 75, 3, 225), (1 / 49, 7, 343), (0.1, 1, 10), (0.3, 1, 4), (1 / 3, 0.5, 2)],
)
def test_epochs_are_rounded_to_the_steps_that_run(rate: float, epochs: float, steps: int) -> None:
    given = {"target_epsilon": 3.0, "target_delta": 1e-5, "sample_rate": rate}
    noise = opacus.get_noise_multiplier(**given, epochs=epochs)  # pyright: ignore[reportArgumentType]
    assert noise == opacus.get_noise_multiplier(**given, steps=steps)
    assert (Gaussian(noise).sampled(rate) * steps).epsilon(delta=1e-5).upper <= 3


def test_a_history_says_under_which_adjacency_it_holds() -> None:
    state = {
        "history": [(1.0, 0.1, 3), (2.0, 1.0, 2), (0.0, 0.0, 1)],
        "mechanism": "dpcompose",
        "adjacency": "zero-out",
    }
    found = from_state_dict(state)
    assert found == Gaussian(1.0).sampled(0.1) * 3 + ShuffledEpochs(2.0, steps=1) * 2
    assert found == from_state_dict(state, adjacency=Adjacency.ZERO_OUT)
    for other in (Adjacency.ADD_REMOVE, Adjacency.REPLACE):
        with pytest.raises(UnsupportedError, match="zero-out"):
            from_state_dict(state, adjacency=other)
        with pytest.raises(UnsupportedError):
            found.epsilon(delta=1e-5, adjacency=other)
    for bad in ("zero_out", None, 3, math.nan, []):
        with pytest.raises(DomainError, match="adjacency"):
            from_state_dict(state | {"adjacency": bad})


GOOD = {"target_epsilon": 1.0, "target_delta": 1e-5, "sample_rate": 0.1, "steps": 10}


@pytest.mark.parametrize(
    "bad",
    [
        {"target_epsilon": 0.0},
        {"target_epsilon": math.nan},
        {"target_delta": 0.0},
        {"target_delta": 1.0},
        {"sample_rate": 0.0},
        {"sample_rate": 1.5},
        {"steps": None},
        {"steps": -1},
        {"epochs": 2},
        {"steps": None, "epochs": math.inf},
    ],
)
def test_a_bad_target_is_one_clear_error(bad: dict) -> None:
    with pytest.raises(DomainError):
        opacus.get_noise_multiplier(**(GOOD | bad))


def test_a_target_out_of_reach_says_so() -> None:
    with pytest.raises(UnreachableError):
        opacus.get_noise_multiplier(
            target_epsilon=1e-12, target_delta=1e-15, sample_rate=1.0, steps=10**9
        )


def test_rates_and_noises_of_the_history_are_never_shared_between_deltas() -> None:
    known, history = KnownHistory(), [(1.0, 0.02, 200)]
    assert known.bound(history, 1e-5).upper < known.bound(history, 1e-7).lower
    history[0] = (1.0, 0.02, 300)
    assert known.bound(history, 1e-5) == KnownHistory().bound(history, 1e-5)
    history[0] = (0.9, 0.02, 300)
    assert known.bound(history, 1e-5) == KnownHistory().bound(history, 1e-5)


def test_a_state_dictionary_becomes_a_plan(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(
        json.dumps({"history": [[1.5, 0.04, 2250]], "mechanism": "rdp"})
    )
    plan = import_plan(
        tmp_path / "run.json", adjacency=Adjacency.ADD_REMOVE, question=PlanQuestion("delta", 1e-5)
    )
    assert plan.toml().split()[-9:] == [
        "sigma",
        "=",
        "1.5",
        "rate",
        "=",
        "0.04",
        "times",
        "=",
        "2250",
    ]
    (tmp_path / "bad.json").write_text(
        json.dumps({"history": [[-1.5, 0.04, 2250]], "mechanism": "rdp"})
    )
    with pytest.raises(PlanError, match="noise_multiplier"):
        import_plan(tmp_path / "bad.json", adjacency=Adjacency.ADD_REMOVE)


def test_an_entry_that_is_changed_in_place_is_read_again() -> None:
    known, history = KnownHistory(), [[1.0, 0.02, 200], [1.1, 0.02, 50], [1.2, 0.02, 5]]
    known.bound(history, 1e-5)
    history[0][2], history[1][0] = 400, 0.9
    assert known.bound(history, 1e-5) == KnownHistory().bound(history, 1e-5)


def test_each_finding_is_used_and_its_sentences_are_whole() -> None:
    folder = Path(opacus.__file__).parent
    source = "".join(file.read_text() for file in folder.glob("*.py"))
    table = tomllib.loads((folder / "findings.toml").read_text())
    names = "epoch sampler left before after draws reason workers rate size counts what asked layer norm noise"
    values = dict.fromkeys(("lower", "upper", "delta"), 1.5) | dict.fromkeys(names.split(), 3)
    for key in table:
        shown = str(finding(key, **values))
        assert f'"{key}"' in source and not {"{", "}"} & {*shown}
