"""Forty analysts, nine registers of one city that share citizens, one ledger file, and kill -9 in the middle.

python -m examples.city.city [--questions 12]

Every analyst is a process of its own. Each chooses its next question from what it was granted so far, charges it,
redeems the receipt, and would draw its answer then. A third of the analysts are killed on the way and started again:
they ask what they asked before, with the same keys, and nothing is charged twice. At the end: the tree, and what Bob is
exposed to, who is in five of the nine registers.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpcompose import Gaussian
from dpcompose.account import Account, Exposure, exposure, open_scope
from dpcompose.adaptive import Odometer
from dpcompose.errors import AlreadyRedeemedError, OverdrawnError
from dpcompose.ledger import Balance, Ledger, Receipt

ANALYSTS = 40
REGISTERS = (
    "energy",
    "health",
    "housing",
    "library",
    "police",
    "schools",
    "tax",
    "transport",
    "water",
)
BOB = tuple(f"city/{name}" for name in ("energy", "health", "housing", "tax", "transport"))
SIGMAS = (10.0, 15.0, 25.0, 40.0)
DELTA = 1e-6


@dataclass(frozen=True)
class Outcome:
    """How it ended.

    Args:
        balances: The tree.
        bob: What Bob is exposed to.
        granted: Charges granted.
        refused: Charges refused.
        killed: Analysts killed.
        entries: Entries verified.
        seconds: How long the analysts took.
    """

    balances: tuple[Balance, ...]
    bob: Exposure
    granted: int
    refused: int
    killed: int
    entries: int
    seconds: float


def run(file: Path, *, questions: int, seed: int = 1) -> Outcome:
    """Open the city, let the analysts ask, kill some, and look at the result."""
    receipts = file.with_suffix(".receipts")
    receipts.touch()
    with Ledger.open(file) as ledger:
        open_city(ledger)
    began = time.perf_counter()
    killed = _ask_all(file, receipts, questions, random.Random(seed))
    seconds = time.perf_counter() - began
    with Ledger.open(file, create=False) as ledger:
        found = ledger.verify()
        _require_all_kept(ledger, receipts)
        kinds = [entry.kind for entry in ledger.entries("city")]
        bob = exposure(ledger, paths=BOB, delta=DELTA)
        counts = kinds.count("granted"), kinds.count("refused")
        return Outcome(ledger.balances("city"), bob, *counts, killed, found.entries, seconds)


def open_city(ledger: Ledger) -> None:
    """A budget for the city, which is what it promises every citizen, and one for each register below it."""
    note = {"unit": "one citizen, with all records in all registers"}
    odometer = Odometer(DELTA)
    open_scope(
        ledger,
        "city",
        epsilon=3,
        delta=DELTA,
        only="zcdp",
        odometer=odometer,
        note=note,
        actor="mayor",
    )
    for name in REGISTERS:
        open_scope(ledger, f"city/{name}", epsilon=1, delta=DELTA, only="zcdp", actor="mayor")


def analyst(file: Path, receipts: Path, number: int, questions: int) -> None:
    """Ask one question after the other; what was granted decides how precise the next one is."""
    name, luck = f"analyst {number}", random.Random(number)
    precision = 0
    with Ledger.open(file, create=False) as ledger:
        accounts = [Account(ledger, scope=f"city/{register}") for register in REGISTERS]
        for question in range(questions):
            account = luck.choice(accounts)
            mechanism = Gaussian(SIGMAS[precision])
            try:
                receipt = account.charge(mechanism, actor=name, key=f"{name}, question {question}")
            except OverdrawnError:
                precision = min(precision + 1, len(SIGMAS) - 1)
                continue
            precision = 0
            _keep(receipts, receipt)
            try:
                ledger.redeem(receipt, actor=name)
            except AlreadyRedeemedError:
                continue  # the answer left before the kill; there is no second one
            # Only here would noise be drawn, and the answer given.


def _ask_all(file: Path, receipts: Path, questions: int, luck: random.Random) -> int:
    """All analysts at once; a third of them killed after a moment, and started again."""
    running = {number: _start(file, receipts, number, questions) for number in range(ANALYSTS)}
    victims = luck.sample(range(ANALYSTS), ANALYSTS // 3)
    while receipts.stat().st_size < 4_000:
        time.sleep(0.01)
    killed = 0
    for number in victims:
        os.kill(running[number], signal.SIGKILL)
        killed += os.waitstatus_to_exitcode(os.waitpid(running[number], 0)[1]) < 0
        running[number] = _start(file, receipts, number, questions)
    for number, process in running.items():
        if os.waitpid(process, 0)[1] != 0:
            raise RuntimeError(f"analyst {number} failed")
    return killed


def _start(file: Path, receipts: Path, number: int, questions: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # later Pythons warn where other threads run
        process = os.fork()
    if process:
        return process
    status = 1
    try:
        analyst(file, receipts, number, questions)
        status = 0
    finally:
        os._exit(status)


def _keep(receipts: Path, receipt: Receipt) -> None:
    handle = os.open(receipts, os.O_WRONLY | os.O_APPEND)
    os.write(handle, f"{receipt.to_json()}\n".encode())
    os.close(handle)


def _require_all_kept(ledger: Ledger, receipts: Path) -> None:
    """Every receipt that an analyst ever saw is in the ledger, and no key has two."""
    granted = {
        entry.sequence: entry.hash for entry in ledger.entries("city") if entry.kind == "granted"
    }
    seen: dict[str, str] = {}
    for line in receipts.read_text(encoding="utf-8").splitlines():
        receipt = Receipt.read(line)
        if (
            granted.get(receipt.sequence) != receipt.hash
            or seen.setdefault(receipt.key, line) != line
        ):
            raise RuntimeError(f"{receipt.key}: the ledger does not have this receipt")


def lines(outcome: Outcome) -> Iterator[str]:
    """Tell the outcome in words."""
    yield f"{ANALYSTS} analysts, {len(REGISTERS)} registers, one file: {outcome.seconds:.1f} s"
    yield f"  {outcome.killed} analysts killed with kill -9 and started again"
    yield f"  {outcome.granted} charges granted, {outcome.refused} refused, none lost, none twice"
    yield f"  {outcome.entries} entries verified: every hash, every decision, every balance"


def main() -> None:
    """Run it and print the tree and Bob's exposure."""
    from dpcompose.report import page, text, tree_page

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=12, help="of each analyst")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(Path(folder) / "city.db", questions=asked.questions)
    for line in lines(outcome):
        print(line)
    print(text(tree_page(outcome.balances, where="The tree")) + text(page(outcome.bob)), end="")


if __name__ == "__main__":
    main()
