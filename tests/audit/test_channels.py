"""Side channels of a noisy answer are bet on separately: prints, standard error, each warning, each
log record.
"""

from __future__ import annotations

import logging
import math
import os
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpcompose import BlackBox
from dpcompose.audit import Outcome, Pair, Subject, Verdict, audit
from dpcompose.audit.game import outcomes_of, text_of_outcomes
from dpcompose.audit.learned import LEARNERS
from dpcompose.audit.outcome import Reader, rows_of
from dpcompose.audit.subject import Fresh

PAIR = Pair((), (1.0,))


def noise() -> float:
    return random.expovariate(1.0) - random.expovariate(1.0)


def beside(tell: Callable[[int], Any]) -> Callable[[Any], float]:
    def mechanism(rows: Any) -> float:
        tell(len(rows))
        return noise()

    return mechanism


def stderr(rows: int) -> None:
    sys.stderr.write(f"rows {rows}")


def among_noise(rows: int) -> None:
    print(random.random(), "seconds;", rows, "rows")


def second_warning(rows: int) -> None:
    warnings.warn("always", stacklevel=1)
    warnings.warn(f"clipped {rows} rows", RuntimeWarning, stacklevel=1)


def silenced_logger(rows: int) -> None:
    """A record that no handler prints."""
    logger = logging.getLogger("quiet")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    logger.warning("rows %d", rows)


CHANNELS: dict[str, Callable[[int], Any]] = {
    "print": lambda rows: print("rows", rows),
    "print among noise": among_noise,
    "warning": lambda rows: warnings.warn(f"clipped {rows} rows", stacklevel=1),
    "second warning": second_warning,
    "log": lambda rows: logging.warning("rows %d", rows),
    "log that nobody prints": silenced_logger,
    "standard error": stderr,
}


def heard(value: Any, **beside: Any) -> Outcome:
    reader = Reader.of(value)
    for name, seen in beside.items():
        reader.channel(seen, name)
    return reader.outcome()


@pytest.mark.parametrize("fresh", [Fresh.CALL, Fresh.WORKER])
@pytest.mark.parametrize("tell", CHANNELS.values(), ids=CHANNELS.keys())
def test_a_leak_beside_noise_is_found_as_soon_as_beside_a_constant(
    tell: Callable[[int], Any], fresh: Fresh
) -> None:
    found = audit(
        Subject(beside(tell), fresh=fresh), [PAIR], claim=BlackBox(1.0), samples=150, ladder=False
    )
    assert found.verdict is Verdict.REFUTED


def test_output_below_python_is_apart_by_its_stream() -> None:
    def writes(rows: Any) -> float:
        os.write(1, b"out")
        os.write(2, b"wrong")
        return 0.0

    (outcome,) = (
        Subject(writes, fresh=Fresh.WORKER).draw(PAIR, np.zeros(1, dtype=np.uint8)).tolist()
    )
    assert dict(outcome.texts) == {" beside printed": "out", " beside errors": "wrong"}


def test_a_channel_that_is_rarely_used_is_seen() -> None:
    """None of the first rows uses it, by which features are first chosen."""
    calls = [0]

    def mechanism(rows: Any) -> float:
        calls[0] += 1
        if calls[0] > 30 and calls[0] % 4 == 0:
            print("rows", len(rows))
        return noise()

    found = audit(Subject(mechanism), [PAIR], claim=BlackBox(1.0), samples=1500, ladder=False)
    assert found.verdict is Verdict.REFUTED


@pytest.mark.parametrize("tell", CHANNELS.values(), ids=CHANNELS.keys())
def test_channels_that_tell_nothing_are_no_alarm(tell: Callable[[int], Any]) -> None:
    random.seed(1)
    mechanism = beside(lambda rows: tell(random.randrange(9)))
    found = audit(
        Subject(mechanism),
        [PAIR],
        claim=BlackBox(0.01),
        alpha=1e-3,
        samples=400,
        learners=LEARNERS,
        ladder=False,
        seed=bytes(32),
    )
    assert found.peak < math.log(100)


def test_logging_is_as_it_was() -> None:
    before = logging.getLogRecordFactory()
    Subject(beside(CHANNELS["log"])).draw(PAIR, np.zeros(3, dtype=np.uint8))
    assert logging.getLogRecordFactory() is before


def test_channels_come_back_from_a_journal() -> None:
    rows = rows_of(
        [
            heard(1.0, errors="wrong", logged=("a", "b"), printed="p", warned=("w",)),
            heard(None, warned=("one", "two"), printed="\ud800"),
            heard(2.0, logged=("a",)),
        ]
    )
    assert repr(outcomes_of(text_of_outcomes(rows), 3)) == repr(rows)
