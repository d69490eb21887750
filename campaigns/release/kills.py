"""kill -9 at any moment of a session never leaves an answer without a charge, or two answers to one
charge.

python -m campaigns.release.kills [KILLS] [SEED]      (1,000 kills: about five minutes)

Each round forks a process that asks questions continuously, some with repeated keys, and writes
every answer to a pipe. It is killed at a random moment: while it opens the ledger or asks its first
question, or after up to eight answers, during the next question or two. Afterwards every answer in
the pipe must have a redeemed charge; a repeated key must give the same numbers; and no key may have
two answers.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import dpcompose.release as release
from dpcompose.account import open_scope
from dpcompose.adaptive import PureFilter
from dpcompose.errors import DPComposeError, SpentError
from dpcompose.ledger import Ledger
from dpcompose.release import sampler

KEYS = 40
OPENING, QUESTION = 0.15, 0.05
"""Seconds: about what it takes to open a session and ask, and twice what a question takes."""


def session(home: Path, ledger: Ledger) -> release.Session:
    table = release.table(home / "people.parquet", unit="person", max_rows_per_unit=3)
    return release.Session(
        table, ledger=ledger, scope="world", actor="ana", answers=home / "answers"
    )


def prepared(home: Path) -> None:
    """A table and a ledger."""
    frame = pa.table(
        {"person": [n % 50 for n in range(300)], "city": ["ab"[n % 2] for n in range(300)]}
    )
    pq.write_table(frame, home / "people.parquet")
    ledger = Ledger.open(home / "ledger.db")
    open_scope(ledger, "world", filter=PureFilter(1000.0), actor="keeper")
    ledger.close()


def ask(found: release.Session, key: str) -> object:
    """The numbers of one request, or the word that it is spent."""
    try:
        answer = found.count(by="city", keys=["a", "b"], spend={"epsilon": "0.01"}, key=key)
    except SpentError:
        return "spent"
    return [row["count"] for row in answer.rows]


def imported() -> None:
    """Import the modules of a session here and not in every child: a child killed among its imports shows nothing."""
    import duckdb  # noqa: F401

    sampler.require()


def child(home: Path, pipe: int, seed: str) -> None:
    """Ask on and on, some keys again, and write down what comes."""
    rng = random.Random(seed)
    ledger = Ledger.open(home / "ledger.db")
    asked = session(home, ledger)
    turn, _, _ = seed.partition(" ")
    while True:
        key = f"key {rng.randrange(KEYS)} of {turn}"
        line = json.dumps([key, ask(asked, key)]) + "\n"
        os.write(pipe, line.encode())


def killed(home: Path, seed: str) -> list[tuple[str, object]]:
    """Return the lines of one process before it was killed; whole lines only, for half a line is no answer."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Later Pythons warn of threads: here the child opens everything anew.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        try:
            os.close(reading)
            child(home, writing, seed)
        finally:
            os._exit(1)
    os.close(writing)
    rng = random.Random(f"wait {seed}")
    lines = rng.choice([0, 0, 1, 2, 3, 5, 8])
    with os.fdopen(reading, "rb") as stream:
        text = b"".join(stream.readline() for _ in range(lines))
        time.sleep(rng.uniform(0, QUESTION if lines else OPENING))
        os.kill(process, signal.SIGKILL)
        text += stream.read()
    os.waitpid(process, 0)
    whole = text[: text.rfind(b"\n") + 1].decode()
    return [tuple(json.loads(line)) for line in whole.splitlines()]


def judged(home: Path, came: list[tuple[str, object]]) -> list[str]:
    """Return the faults of the lines that came out."""
    ledger = Ledger.open(home / "ledger.db")
    ledger.verify()
    entries = list(ledger.entries("world"))
    granted = {entry.key for entry in entries if entry.kind == "granted"}
    redeemed = sum(entry.kind == "redeemed" for entry in entries)
    numbers: dict[str, set[str]] = defaultdict(set)
    for key, answer in came:
        if answer != "spent":
            numbers[key].add(json.dumps(answer))
    wrong = [f"{key}: an answer without a charge" for key in numbers if key not in granted]
    wrong += [
        f"{key}: {len(each)} different answers" for key, each in numbers.items() if len(each) > 1
    ]
    if not len(numbers) <= redeemed <= len(granted):
        wrong.append(f"{len(numbers)} answers, {redeemed} redeemed, {len(granted)} granted")
    asked = session(home, ledger)
    for key, each in numbers.items():
        again = json.dumps(ask(asked, key))
        if again not in each:
            wrong.append(f"{key}: asked again {again}, before {each}")
    ledger.close()
    return wrong


def run(kills: int, seed: int) -> tuple[list[str], int, int]:
    """Return the faults found in so many kills, with the numbers of answers and of spent words that came out."""
    imported()
    wrong: list[str] = []
    answers = spent = 0
    per_home = 50
    for turn in range(0, kills, per_home):
        with tempfile.TemporaryDirectory() as place:
            home = Path(place)
            prepared(home)
            came: list[tuple[str, object]] = []
            for number in range(turn, min(turn + per_home, kills)):
                try:
                    came += killed(home, f"{seed}-{turn} {number}")
                except DPComposeError as error:
                    wrong.append(repr(error))
            wrong += judged(home, came)
            answers += sum(answer != "spent" for _, answer in came)
            spent += sum(answer == "spent" for _, answer in came)
    return wrong, answers, spent


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    began = time.perf_counter()
    wrong, answers, spent = run(kills, seed)
    print(*wrong, sep="\n")
    took = time.perf_counter() - began
    print(
        f"{kills:,} kills, seed {seed}: {answers:,} answers, {spent:,} spent; {len(wrong)} wrong, {took:.0f} s"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
