"""Keys asked again: one receipt, one answer, whatever failed in between.

python -m campaigns.ledger.keys [--retries 10000]

A client charges, redeems, and is killed at every step of that; its key is asked again by processes, threads and
reopened ledgers. Every retry gets the receipt byte for byte, at most one of them may draw an answer.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

from campaigns.ledger.history import HistoryError, replay
from campaigns.ledger.processes import fork, in_threads, kill
from dpcompose.errors import AlreadyRedeemedError
from dpcompose.ledger import Ledger, Receipt


def campaign(url: str, folder: Path, *, retries: int, seed: int = 8) -> str:
    """Retry so many times; HistoryError if a retry gets another receipt, or a second answer is drawn."""
    rng, began = random.Random(seed), time.perf_counter()
    with Ledger.open(url) as ledger:
        ledger.scope("world", caps={"epsilon": 1000}, actor="keeper")
    told, answers = folder / "receipts", folder / "answers"
    keys, asked, kills = [f"question {number}" for number in range(20)], 0, 0
    while asked < retries:
        key = rng.choice(keys)
        child = fork(lambda key=key, rng=rng: _client(url, key, told, answers, rng.random() < 0.5))
        if rng.random() < 0.3:
            time.sleep(rng.random() * 0.02)
            kills += 1
            kill(child)
        elif os.waitpid(child, 0)[1] != 0:
            raise HistoryError("a client failed by itself")
        asked += 20
    _require_one_receipt_each(told)
    drawn = answers.read_text().splitlines()
    if len(drawn) != len(set(drawn)):
        raise HistoryError("a second answer was drawn for one charge")
    found = replay(url)
    if found.granted > len(keys):
        raise HistoryError("a key was charged twice")
    seconds = time.perf_counter() - began
    return (
        f"{asked} retries of {len(keys)} keys in {seconds:.0f} s, {kills} kills: {found.granted} charges, "
        f"{len(drawn)} answers, every receipt the same to the byte"
    )


def _client(url: str, key: str, told: Path, answers: Path, wants_answer: bool) -> None:
    with Ledger.open(url) as ledger:
        in_threads([lambda: _retry(ledger, key, told) for _ in range(20)])
        receipt = _retry(ledger, key, told)
        if wants_answer:
            try:
                ledger.redeem(Receipt.read(receipt.to_json()), actor="client")
            except AlreadyRedeemedError:
                return
            _append(answers, f"{key}\n")


def _retry(ledger: Ledger, key: str, told: Path) -> Receipt:
    receipt = ledger.charge(
        "world", cost={"epsilon": "0.1"}, actor="client", key=key, description={"ask": key}
    )
    _append(told, receipt.to_json() + "\n")
    return receipt


def _append(path: Path, line: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, line.encode())
    os.close(handle)


def _require_one_receipt_each(told: Path) -> None:
    seen: dict[str, str] = {}
    for line in told.read_text().splitlines():
        key = Receipt.read(line).key
        if seen.setdefault(key, line) != line:
            raise HistoryError(f"{key}: two receipts")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--retries", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(campaign(f"{folder}/ledger.db", Path(folder), retries=asked.retries), flush=True)


if __name__ == "__main__":
    main()
