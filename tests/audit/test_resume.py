"""An interrupted audit continues from its journal with the same result, and its certificate is
verified.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcompose import BlackBox
from dpcompose.audit import Moment, Outcome, Pair, Subject, Verdict, again, audit, check
from dpcompose.audit.certificate import text_of
from dpcompose.audit.check import MALFORMED
from dpcompose.audit.feature import features_of, named
from dpcompose.audit.game import outcomes_of, text_of_outcomes
from dpcompose.audit.learned import LEARNERS, remade
from dpcompose.audit.outcome import (
    TIMEOUT,
    rows_of,
)
from dpcompose.errors import DomainError

PAIRS = [Pair(0.0, 1.0), Pair(0.0, 2.0, distance=2)]


def subject(seed: int, scale: float = 0.8) -> Subject:
    rng = np.random.default_rng(seed)
    return Subject(
        batch=lambda data, n: data + rng.laplace(scale=scale, size=(n, 2)), label="pair of numbers"
    )


def asked(path: Path | None = None, samples: int = 900, claim: float = 2.0) -> dict[str, Any]:
    return {
        "claim": BlackBox(claim),
        "seed": bytes(range(32)),
        "samples": samples,
        "learners": LEARNERS,
        "resume": path,
    }


class Stop:
    """Interrupts after so many batches."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def __call__(self, moment: Moment) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kept", [1 << 18, 200])
def test_an_interrupted_audit_is_the_uninterrupted_one(
    tmp_path: Path, kept: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr("dpcompose.audit.arm.KEPT", kept)
    monkeypatch.setattr("dpcompose.audit.arm.AFTER", 150)
    whole = audit(subject(3), PAIRS, **asked())
    mechanism, path = subject(3), tmp_path / "audit.journal"
    stops = [1, 2, 20, 1000]
    for stop in stops:
        found = audit(mechanism, PAIRS, **asked(path), progress=Stop(stop))
    assert (
        found.certificate == whole.certificate
        and found.tried == whole.tried
        and found.samples == whole.samples
    )
    assert (
        found.epsilon == whole.epsilon
        and found.moments == whole.moments
        and found.peak == whole.peak
    )
    assert check(text_of(found.certificate))["samples"] == found.samples  # pyright: ignore[reportArgumentType]


def test_a_refutation_is_resumed_and_stands(tmp_path: Path) -> None:
    path, broken = tmp_path / "audit.journal", subject(4, 0.3)
    first = audit(broken, PAIRS, **asked(path, claim=1.0), progress=Stop(5))
    assert first.verdict is Verdict.NOT_REFUTED
    found, same = (audit(broken, PAIRS, **asked(path, claim=1.0)) for _ in range(2))
    assert found.verdict is Verdict.REFUTED and same.certificate == found.certificate


@pytest.fixture(name="journal")
def _journal(tmp_path: Path) -> Path:
    path = tmp_path / "audit.journal"
    audit(subject(5), PAIRS, **asked(path, samples=300))
    return path


def test_a_line_that_was_not_written_whole_is_the_batch_in_flight(journal: Path) -> None:
    text = journal.read_bytes()
    journal.write_bytes(text[:-100])
    found = audit(subject(6), PAIRS, **asked(journal, samples=600))
    lost = [batch["stakes"].get("lost", 0) for batch in (found.certificate or {})["batches"]]
    assert sum(lost) == 1
    assert found.samples == 600 and check(text_of(found.certificate or {}))["samples"] == 600


@pytest.mark.parametrize(
    "damage",
    [
        "byte",
        "line",
        "order",
        "empty line",
        "header",
        "not text",
        "another digest",
        "evidence",
        "bound",
    ],
)
def test_a_damaged_journal_is_one_error(journal: Path, damage: str) -> None:
    lines = journal.read_bytes().split(b"\n")
    match damage:
        case "byte":
            lines[4] = lines[4].replace(b'"rows":', b'"rows":1', 1)
        case "line":
            del lines[4]
        case "order":
            lines[4], lines[6] = lines[6], lines[4]
        case "empty line":
            lines.insert(2, b"")
        case "header":
            lines[0] = lines[0][:-40]
        case "not text":
            lines = [b"\xff\x00\xfe", b""]
        case "evidence":
            place = max(at for at, line in enumerate(lines) if b'"evidence":' in line)
            head, _, tail = lines[place].partition(b'"evidence":')
            lines[place] = (
                head + b'"evidence":' + re.sub(rb"0x1\.[0-9a-f]+p", b"0x1.0p", tail, count=1)
            )
        case "bound":
            at = next(at for at, line in enumerate(lines[:-2], 1) if line.startswith(b'{"bound"'))
            lines[at - 1], lines[at] = lines[at], lines[at - 1]
        case _:
            text, _, digest = lines[4].partition(b" ")
            entry = json.loads(text)
            entry["learned"]["outcomes"]["packed"] = "AAAA"
            lines[4] = json.dumps(entry, separators=(",", ":")).encode() + b" " + digest
    journal.write_bytes(b"\n".join(lines))
    with pytest.raises(DomainError, match="resume"):
        audit(subject(6), PAIRS, **asked(journal, samples=600))


@pytest.mark.parametrize("other", [{"claim": BlackBox(3.0)}, {"alpha": 0.1}, {"seed": bytes(32)}])
def test_a_journal_of_another_audit_is_one_error(journal: Path, other: dict[str, Any]) -> None:
    with pytest.raises(DomainError):
        audit(subject(6), PAIRS, **asked(journal, samples=900) | other)
    with pytest.raises(DomainError, match="pairs"):
        audit(subject(6), PAIRS[::-1], **asked(journal))


def test_drawn_samples_are_not_used_twice(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(1), tmp_path / "audit.journal"
    zero, one = rng.laplace(size=4000), rng.laplace(size=4000) + 1
    whole = audit(Subject.samples(zero, one), PAIRS[:1], **asked(claim=1.0))
    audit(Subject.samples(zero, one), PAIRS[:1], **asked(path, claim=1.0), progress=Stop(9))
    assert (
        audit(Subject.samples(zero, one), PAIRS[:1], **asked(path, claim=1.0)).certificate
        == whole.certificate
    )


def test_outcomes_come_back_to_the_last_bit() -> None:
    odd = [
        1.5,
        float("nan"),
        None,
        "text",
        {"a": [1, -0.0]},
        np.arange(3),
        Outcome.of(failure="Error", message="no"),
        Outcome.of(failure=TIMEOUT),
    ]
    for rows in (
        rows_of(odd),
        np.arange(6.0).reshape(3, 2),
        np.array([True, False]),
        np.array(["a", "b"]),
    ):
        back = outcomes_of(text_of_outcomes(rows), len(rows))
        texts = [
            [
                repr(each)
                for each in (rows if rows.dtype.kind in "fbO" else rows_of(rows.tolist())).tolist()
            ]
        ]
        assert texts == [[repr(each) for each in back.tolist()]] and text_of_outcomes(
            back
        ) == text_of_outcomes(rows)


@pytest.mark.parametrize("row", [None, {"value": None}, ["float", [], "00"], 3, [""] * 8, "zz"])
def test_an_outcome_of_another_form_is_no_outcome(row: Any) -> None:
    packed = base64.b64encode(zlib.compress(json.dumps([row]).encode())).decode()
    with pytest.raises(MALFORMED):
        outcomes_of({"packed": packed}, 1)


def test_features_are_made_again_from_what_a_certificate_says() -> None:
    rng = np.random.default_rng(2)
    coins = (np.arange(600) % 2).astype(np.uint8)
    plain = coins[:, None] + rng.laplace(size=(600, 3))
    nested = rows_of(
        [{"a": float(row[0]), "b": [float(row[1])]} if row[0] > 0 else "none" for row in plain]
    )
    for rows in (plain, nested):
        for each in features_of(rows):
            assert np.array_equal(named(each.name).score(rows), each.score(rows), equal_nan=True)
        for learner in LEARNERS[:2]:
            learned = learner(rows, coins)
            assert learned is not None and learned.parameters is not None
            same = remade(learned.name, json.loads(json.dumps(learned.parameters)))
            assert np.array_equal(same.score(rows), learned.score(rows))


def test_learned_features_are_bet_again() -> None:
    """The difference of two answers with a common noise: no place alone tells it."""

    def batch(data: float, n: int) -> np.ndarray:
        noise = rng.laplace(scale=8, size=(n, 1))
        return noise + rng.laplace(scale=0.4, size=(n, 3)) + data * np.array([1.0, 0.0, -1.0])

    rng, pairs = np.random.default_rng(3), [Pair(0.0, 1.0)]
    found = audit(
        Subject(batch=batch, label="common"),
        pairs,
        claim=BlackBox(1.0),
        learners=LEARNERS,
        features=(),
        samples=8000,
        seed=bytes(32),
    )
    assert found.verdict is Verdict.REFUTED and found.certificate is not None
    assert again(found.certificate, Subject(batch=batch, label="common"), pairs).log_wealth > 3
