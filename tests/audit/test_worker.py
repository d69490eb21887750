"""Calls in a separate process: whatever they do is part of the outcome, and datasets that a subject
accepts are found.
"""

from __future__ import annotations

import os
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcompose import Adjacency, BlackBox
from dpcompose.audit import Outcome, Pair, Subject, Verdict, audit
from dpcompose.audit.outcome import ENDED, TIMEOUT, rows_of
from dpcompose.audit.subject import Fresh
from dpcompose.audit.usual import usual_pairs
from dpcompose.errors import DomainError

COINS = np.array([0, 1, 0, 1], dtype=np.uint8)
_calls: list[int] = []


def drawn(call: Any, limit: float = 0.2, coins: np.ndarray = COINS) -> list[Outcome]:
    subject = Subject(call, fresh=Fresh.WORKER, limit=limit)
    rows = subject.draw(Pair(0, 1), coins)
    return rows_of(rows.tolist()).tolist()


def ends_in_one(world: int) -> float:
    if world:
        os._exit(0)
    return 1.0


def hangs_in_c(world: int) -> float:
    return float(sum(range(10**12)) if world else 1)


def counts(world: int) -> float:
    _calls.append(world)
    return float(len(_calls))


def writes(world: int) -> float:
    os.write(1, b"below")
    print("above")
    return 0.0


def test_a_call_that_ends_its_process_is_an_outcome() -> None:
    assert [each.failure for each in drawn(ends_in_one)] == [
        "",
        "process ended",
        "",
        "process ended",
    ]


def test_a_hang_in_c_code_is_ended() -> None:
    assert [each.failure for each in drawn(hangs_in_c, 0.1, COINS[:3])] == ["", TIMEOUT, ""]


def test_its_memory_is_kept_and_not_the_audits() -> None:
    subject = Subject(counts, fresh=Fresh.WORKER)
    assert [*subject.draw(Pair(0, 1), COINS), *subject.draw(Pair(0, 2), COINS)] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
    ]
    assert _calls == []


def test_output_below_python_is_seen() -> None:
    assert {each.texts for each in drawn(writes)} == {((" beside printed", "above\nbelow"),)}


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, MemoryError])
def test_every_exception_is_an_outcome(raised: type[BaseException]) -> None:
    def call(world: int) -> float:
        raise raised("no")

    assert {each.failure for each in drawn(call)} == {raised.__name__}


def test_a_fork_does_not_answer_twice() -> None:
    def call(world: int) -> float:
        os.fork()
        return 1.0

    assert drawn(call) == [Outcome.of(1.0)] * 4


def test_a_generator_is_read() -> None:
    found = audit(
        Subject(lambda rows: (each for each in rows)),
        [Pair((), (1.0,))],
        claim=BlackBox(1.0),
        samples=400,
    )
    assert found.verdict is Verdict.REFUTED


def test_datasets_that_cannot_be_sent_are_an_error() -> None:
    with pytest.raises(DomainError, match="pairs"):
        Subject(len, fresh=Fresh.WORKER).draw(Pair(lambda: 0, 1), COINS)


def test_what_always_fails_is_told() -> None:
    subject = Subject(lambda rows: rows.missing, fresh=Fresh.WORKER)
    with pytest.raises(DomainError, match="nothing was audited: 24 calls"):
        audit(subject, [Pair(0, 1)], claim=BlackBox(1.0), samples=24)
    assert any("all calls of a batch raised AttributeError" in note for note in subject.notes)


def file_of_outcomes() -> int:
    """Of the process that a mechanism is called in: its frames tell."""
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_name != "_serve":
        assert frame.f_back is not None
        frame = frame.f_back
    return frame.f_locals["self"]._lines


class Bomb:
    """What a process would write so that whoever unpickles it runs a command."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("fresh", [Fresh.WORKER, Fresh.PROCESS])
def test_what_a_process_writes_is_read_as_data(fresh: Fresh, tmp_path: Path) -> None:
    """A mechanism writes a pickle into the file from which the audit reads outcomes."""

    def call(world: int) -> float:
        text = pickle.dumps(Bomb(str(tmp_path / f"ran in {os.getpid()}")))
        os.write(file_of_outcomes(), text + b"\n")
        os._exit(0)

    rows = Subject(call, fresh=fresh, limit=0.5).draw(Pair(0, 1), COINS[:2]).tolist()
    assert [row.failure for row in rows] == [ENDED] * 2 and not [*tmp_path.iterdir()]


FORGED = [
    b"",
    b"[",
    b"\xff",
    b"{}",
    b'{"value": 1}',
    b'{"notes": 3}',
    b'["kind", 3, "00"]',
    b"[" * 100_000,
    b'"zz"',
]


@pytest.mark.parametrize("text", FORGED, ids=range(len(FORGED)))
def test_forged_answers_are_a_process_that_ended(text: bytes) -> None:
    def call(world: int) -> float:
        os.write(file_of_outcomes(), text + b"\n")
        return 0.0

    assert {row.failure for row in drawn(call, coins=COINS[:2])} == {ENDED}


def test_an_alarm_waits_for_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slowly_imported.py").write_text("import time; time.sleep(0.3); whole = True")
    monkeypatch.syspath_prepend(tmp_path)

    def call(world: int) -> float:
        import slowly_imported  # pyright: ignore[reportMissingImports]

        return float(slowly_imported.whole)

    monkeypatch.delitem(sys.modules, "slowly_imported", raising=False)
    drawn_here = Subject(call, limit=0.05).draw(Pair(0, 1), COINS)
    assert rows_of(drawn_here.tolist()).tolist()[1:] == [Outcome.of(1.0)] * 3


def leak(rows: Any) -> float:
    return len(rows) + random.expovariate(1.0)


def words(rows: list[str]) -> float:
    return sum(len(row) for row in rows) + random.expovariate(1.0) - random.expovariate(1.0)


def test_pairs_are_searched_where_none_are_given() -> None:
    found = audit(Subject(leak), claim=BlackBox(1.0), samples=4000)
    assert found.verdict is Verdict.REFUTED
    texts = usual_pairs(Subject(words), BlackBox(1.0))
    assert all(isinstance(row, str) for pair in texts for row in pair.one)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("records", [None, [(1, "a"), (2, "b")]])
def test_searched_pairs_are_as_far_apart_as_they_say(adjacency: Adjacency, records: Any) -> None:
    found = usual_pairs(
        Subject(lambda rows: 0.0), BlackBox(0.5), adjacency=adjacency, records=records
    )
    assert {pair.distance for pair in found} == {1, 8}
    for pair in found:
        zero, one = list(pair.zero), list(pair.one)
        if adjacency is Adjacency.ADD_REMOVE:
            assert abs(len(zero) - len(one)) == pair.distance
        else:
            assert sum(a != b for a, b in zip(zero, one, strict=True)) == pair.distance


def test_records_of_a_strategy() -> None:
    strategies = pytest.importorskip("hypothesis.strategies")
    found = usual_pairs(
        Subject(lambda rows: 0.0), BlackBox(1.0), records=strategies.text(max_size=3), most=1
    )
    assert len(found) >= 8 and found == usual_pairs(
        Subject(lambda rows: 0.0), BlackBox(1.0), records=strategies.text(max_size=3), most=1
    )
    for wrong in (3, [], "abc"):
        with pytest.raises(DomainError, match="records"):
            usual_pairs(Subject(lambda rows: 0.0), BlackBox(1.0), records=wrong)


def test_answers_of_queries() -> None:
    found = usual_pairs(Subject(lambda rows: 0.0), BlackBox(0.5), queries=3)
    assert all(
        max(abs(a - b) for a, b in zip(pair.zero, pair.one, strict=True)) <= pair.distance
        for pair in found
    )


@pytest.mark.parametrize(
    "given", [{"most": 0}, {"most": -1}, {"queries": -1}, {"queries": 100_000_000}], ids=str
)
def test_counts_of_usual_pairs_outside_their_domain(given: Any) -> None:
    with pytest.raises(DomainError, match="an integer"):
        usual_pairs(Subject(lambda rows: 0.0), BlackBox(0.5), **given)


@pytest.mark.parametrize("fresh", [Fresh.CALL, Fresh.WORKER])
@pytest.mark.parametrize("call", [lambda world: random.gauss(world, 1.0), np.random.normal])
def test_noise_of_the_global_generators_never_comes_again(call: Any, fresh: Fresh) -> None:
    subject = Subject(call, fresh=fresh)
    coins = np.tile(COINS, 12)
    noise = [subject.draw(Pair(0, 1), coins) - coins for _ in range(4)]
    assert len(np.unique(np.round(noise, 9))) == 4 * len(coins)


def test_text_that_is_no_unicode_is_an_answer() -> None:
    def call(world: int) -> Any:
        error = ValueError("\ud801")
        error.__dict__["\ud802"] = 1
        raise error

    assert [row.texts for row in drawn(lambda world: "\ud800")] == [(("", r"\ud800"),)] * 4
    assert [(row.failure, row.message) for row in drawn(call)] == [("ValueError", r"\ud801")] * 4
