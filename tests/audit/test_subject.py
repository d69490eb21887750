"""Everything that an audited call does is part of its outcome, and features read it."""

from __future__ import annotations

import importlib
import math
import os
import random
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcompose.audit import Outcome, Pair, Subject
from dpcompose.audit.feature import features_of
from dpcompose.audit.learned import LEARNERS
from dpcompose.audit.outcome import ENDED, FURTHER, LEAVES, TIMEOUT
from dpcompose.audit.subject import ExhaustedError, Fresh
from dpcompose.errors import DomainError

COINS = np.array([0, 1] * 8, dtype=np.uint8)
WORLDS = Pair((0.0,), (1.0,))


def _one(call: Callable[[Any], Any], **given: Any) -> Outcome:
    subject = Subject(call, **given)
    (outcome,) = subject.draw(WORLDS, COINS[:1]).tolist()
    return outcome if isinstance(outcome, Outcome) else Outcome.of(outcome)


def _raises(data: Any) -> None:
    raise ValueError(f"no {data}")


def _hangs(data: Any) -> None:
    time.sleep(60)


def _stubborn(data: Any) -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            time.sleep(0.01)


def _warns(data: Any) -> float:
    warnings.warn("careful", stacklevel=1)
    return 1.0


def test_what_goes_wrong_is_an_outcome() -> None:
    assert (_one(_raises).failure, _one(_raises).message) == ("ValueError", "no (0.0,)")
    assert _one(_hangs, limit=0.02).failure == TIMEOUT
    assert _one(_stubborn, limit=0.02, fresh=Fresh.PROCESS).failure == TIMEOUT
    assert (" beside warned[0]['text']", "UserWarning: careful") in _one(_warns).texts
    assert (" beside printed", "hello\n") in _one(lambda data: print("hello")).texts
    assert _one(lambda data: sys.exit(3)).failure == "SystemExit"
    assert _one(lambda data: os._exit(3), fresh=Fresh.PROCESS).failure == ENDED


def test_a_fork_does_not_double_the_audit() -> None:
    process = os.getpid()
    assert _one(lambda data: os.fork() * 0.0) == Outcome.of(0.0)
    assert os.getpid() == process


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        3,
        "text",
        "1.5",
        b"",
        None,
        [1, [2.0]],
        {"a": 1},
        {1},
        np.zeros(3),
        object(),
        10**400,
        1j,
    ],
)
def test_every_answer_has_features(value: Any) -> None:
    rows = Subject(lambda data: value).draw(WORLDS, COINS)
    for feature in features_of(rows):
        assert feature.score(rows).shape == (16,)
        assert len(set(feature.score(rows).tolist())) == 1 or np.isnan(feature.score(rows)).all()


def test_gigabytes_are_not_kept() -> None:
    outcome = _one(lambda data: np.zeros(10**7))
    assert len(outcome.paths) <= LEAVES + FURTHER


def test_types_zeros_and_payloads_differ() -> None:
    answers = (0, 0.0, -0.0, False, "0", np.float32(0), math.nan, None, (), [])
    drawn = [Subject(lambda data, each=each: each).draw(WORLDS, COINS[:1]) for each in answers]
    rows = np.concatenate([each.astype(object) for each in drawn])
    (whole,) = (feature for feature in features_of(rows) if feature.name == "the whole answer")
    assert len(set(whole.score(rows).tolist())) == len(rows)


def test_datasets_and_random_states_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pair, before = Pair([0.0], [1.0]), random.getstate()
    subject = Subject(lambda data: data.append(random.seed(1)))
    subject.draw(pair, COINS)
    assert pair == Pair([0.0], [1.0]) and random.getstate() == before
    assert len(subject.notes) == 2


def test_freshness_is_kept() -> None:
    def make() -> Callable[[Any], float]:
        seen: list[Any] = []
        return lambda data: float(len(seen.append(data) or seen))

    assert Subject(make=make).draw(WORLDS, COINS).max() == 16
    assert Subject(make=make, fresh=Fresh.INSTANCE).draw(WORLDS, COINS).max() == 1


def test_samples_are_used_once() -> None:
    source = Subject.samples(np.arange(8.0), np.arange(8.0) + 100)
    assert source.draw(WORLDS, COINS).tolist() == [
        place // 2 + 100 * (place % 2) for place in range(16)
    ]
    with pytest.raises(ExhaustedError):
        source.draw(WORLDS, COINS)


def test_learned_features_judge_each_row_alone() -> None:
    rng = np.random.default_rng(1)
    coins = rng.integers(0, 2, 600).astype(np.uint8)
    rows = rng.normal(size=(600, 3)) + coins[:, None] * [0, 1.0, -1.0]
    for learner in LEARNERS[:2]:
        feature = learner(rows, coins)
        assert feature is not None
        scores = feature.score(rows)
        assert abs(np.corrcoef(scores, coins)[0, 1]) > 0.4
        assert feature.score(rows[:7]).tolist() == pytest.approx(scores[:7].tolist())


def test_bad_subjects_are_refused() -> None:
    for given in (
        {},
        {"call": 3},
        {"call": len, "limit": 0},
        {"call": len, "fresh": Fresh.INSTANCE},
    ):
        with pytest.raises(DomainError):
            Subject(**given)  # pyright: ignore[reportArgumentType]
    for batch in (
        lambda data, n: np.zeros(n + 1),
        lambda data, n: 0,
        lambda data, n: np.zeros((n, 2, 2)),
    ):
        with pytest.raises(DomainError, match="batch"):
            Subject(batch=batch).draw(WORLDS, COINS)


MODULE = """
import numpy as np
GENERATOR = np.random.default_rng({seed})
def told(data):
    return data + GENERATOR.laplace()
class Teller:
    def __call__(self, data):
        return data + GENERATOR.laplace()
teller = Teller()
"""


@pytest.mark.parametrize("name", ["told", "teller"])
@pytest.mark.parametrize("seed, different", [("", 6), ("7", 1)])
def test_a_process_of_its_own_makes_its_generators(
    name: str, seed: str, different: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"noisy_{name}_{different}"
    (tmp_path / f"{module}.py").write_text(MODULE.format(seed=seed))
    monkeypatch.syspath_prepend(tmp_path)
    told = getattr(importlib.import_module(module), name)
    drawn = Subject(told, fresh=Fresh.PROCESS).draw(Pair(0.0, 0.0), np.zeros(6, dtype=np.int8))
    assert len(set(drawn.tolist())) == different


ENDING = """
import os
import numpy as np
GENERATOR = np.random.default_rng()
def told(data):
    noise = GENERATOR.laplace()
    if data:
        os._exit(1)
    return noise
"""


def test_a_worker_that_begins_again_draws_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ending_worker.py").write_text(ENDING)
    monkeypatch.syspath_prepend(tmp_path)
    told = importlib.import_module("ending_worker").told
    drawn = Subject(told, fresh=Fresh.WORKER).draw(
        Pair(0.0, 1.0), np.array([0, 1] * 4, dtype=np.uint8)
    )
    values = [outcome.numbers for outcome in drawn if not outcome.failure]
    assert len(values) == len(set(values)) == 4


HELD = """
import functools, os
import helping_noise
from helping_noise import Teller
def noisy(teller, data):
    return data + teller.generator.laplace()
part = functools.partial(noisy, Teller())
bound = Teller().told
def dies(data):
    if data:
        os._exit(1)
    return helping_noise.GENERATOR.laplace()
"""
HELPING = """
import numpy as np
GENERATOR = np.random.default_rng()
class Teller:
    def __init__(self):
        self.generator = np.random.default_rng()
    def told(self, data):
        return data + self.generator.laplace()
"""


def test_what_a_file_holds_and_imports_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "helping_noise.py").write_text(HELPING)
    (tmp_path / "holding_noise.py").write_text(HELD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    held = importlib.import_module("holding_noise")
    for told in (held.part, held.bound):
        subject = Subject(told, fresh=Fresh.PROCESS)
        assert len(set(subject.draw(Pair(0.0, 0.0), np.zeros(4, dtype=np.uint8)).tolist())) == 4
        assert not subject.notes
    drawn = Subject(held.dies, fresh=Fresh.WORKER).draw(
        Pair(0.0, 1.0), np.array([0, 1] * 4, dtype=np.uint8)
    )
    values = [outcome.numbers for outcome in drawn if not outcome.failure]
    assert len(values) == len(set(values)) == 4


def test_what_cannot_be_made_anew_is_noted() -> None:
    generator = np.random.default_rng()
    subject = Subject(lambda data: data + generator.laplace(), fresh=Fresh.PROCESS)
    subject.draw(Pair(0.0, 0.0), np.zeros(2, dtype=np.uint8))
    assert any("copied, and repeat" in note for note in subject.notes)
