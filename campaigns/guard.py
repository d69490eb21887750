"""Training killed between charge and step: `python -m campaigns.guard [--times 1000]`.

Two workers with runs of their own train under one scope. Each is killed with kill -9 at a random place of a step,
nearly always between the charge and the step, and starts again from its last checkpoint, which is some steps old: these
run again. Every step that runs appends a line to a file. Afterwards, for each run:

- redeemed steps are never fewer than executed ones, of each kind: no step ran without a charge of its own;
- what was charged and not redeemed was resumed: no more than one charge of each kind is left over, however many kills;
- the ledger verifies, and the scope was never above its caps.

Controls, each of which must be caught: a guard that redeems after the step, one that takes a step that runs again for
the step that was paid, and one that never resumes.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from campaigns.ledger.processes import fork
from dpcompose.account import Account
from dpcompose.errors import AlreadyRedeemedError
from dpcompose.interop.guard import TrainingGuard
from dpcompose.ledger import Ledger
from dpcompose.ledger.entry import Entry

RUNS = ("worker one", "worker two")
KINDS = ((20.0, 0.01), (25.0, 0.01))
BEFORE_CHARGE, CHARGED, REDEEMED_ALREADY, STEPPED = (
    "before the charge",
    "charged",
    "redeemed",
    "stepped",
)
PLACES = (CHARGED, CHARGED, CHARGED, REDEEMED_ALREADY, REDEEMED_ALREADY, STEPPED, BEFORE_CHARGE)
CHECKPOINT, LONGEST = 3, 5
CONTROLS = ("redeemed after the step", "paid by the number of the step", "never resumed")


class GuardError(Exception):
    """A promise that was broken."""


@dataclass(frozen=True)
class Worker:
    """One run: its files, and where and when it is killed.

    Args:
        folder: Where its files and the ledger are.
        run: Its name.
        steps: In which of its steps it is killed, from 0.
        place: In which place of that step.
        weakness: The control, or nothing.
    """

    folder: Path
    run: str
    steps: int
    place: str
    weakness: str = ""

    def train(self) -> None:
        """Train from the last checkpoint until the kill."""
        lines = os.open(self.folder / f"{self.run}.steps", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        checkpoint = self.folder / f"{self.run}.checkpoint"
        step = int(checkpoint.read_text()) if checkpoint.exists() else 0
        taken = 0

        def reached(place: str) -> None:
            if taken == self.steps and place == self.place:
                os.kill(os.getpid(), signal.SIGKILL)

        with Ledger.open(str(self.folder / "ledger.db")) as ledger, ExitStack() as stack:
            for change in self._changes(reached, lambda: step):
                stack.enter_context(change)
            guard = guarded(ledger, self.run)
            while True:
                sigma, rate = KINDS[step % 2]
                reached(BEFORE_CHARGE)
                with guard.step(sigma=sigma, rate=rate):
                    os.write(lines, b"%d\n" % (step % 2))
                    reached(STEPPED)
                taken, step = taken + 1, step + 1
                if step % CHECKPOINT == 0:
                    partial = checkpoint.with_suffix(".partial")
                    partial.write_text(str(step))
                    partial.replace(checkpoint)

    def _changes(self, reached: Callable[[str], None], step: Callable[[], int]) -> list[Any]:
        """The kills between charge, redemption and step, and what the control breaks."""
        receipt, redeem, whole = TrainingGuard._receipt, TrainingGuard._redeem, TrainingGuard.step
        charge = Account.charge
        late: list[Any] = []

        def numbered(account: Account, mechanism: Any, **options: Any) -> Any:
            same = {"key": f"{self.run}/{step()}", "description": {"run": self.run}}
            return charge(account, mechanism, **(options | same))

        def charged(guard: TrainingGuard, mechanism: Any, delta: Any) -> Any:
            own = receipt(guard, mechanism, delta)
            reached(CHARGED)
            return own

        def redeemed(guard: TrainingGuard, own: Any) -> None:
            if self.weakness == CONTROLS[0]:
                late.append((guard, own))
                return
            try:
                redeem(guard, own)
            except AlreadyRedeemedError:
                if self.weakness != CONTROLS[1]:
                    raise
            reached(REDEEMED_ALREADY)

        @contextmanager
        def stepped(guard: TrainingGuard, **kind: Any) -> Iterator[None]:
            with whole(guard, **kind):
                yield
            while late:
                redeem(*late.pop())

        changes = [
            patch.object(TrainingGuard, "_receipt", charged),
            patch.object(TrainingGuard, "_redeem", redeemed),
        ]
        changes.append(patch.object(TrainingGuard, "step", stepped))
        if self.weakness == CONTROLS[1]:
            changes.append(patch.object(Account, "charge", numbered))
        if self.weakness == CONTROLS[2]:
            changes.append(patch.object(TrainingGuard, "_resumed", lambda *_: None))
        return changes


def guarded(ledger: Ledger, run: str) -> TrainingGuard:
    """The guard of a run, on the scope that all runs share."""
    return TrainingGuard(epsilon=2, delta=1e-6, ledger=ledger, scope="model", run=run)


def campaign(folder: Path, *, times: int, weakness: str = "", seed: int = 18) -> str:
    """Kill that often between charge and step, and say what was found; GuardError if a promise was broken."""
    rng, began = random.Random(seed), time.perf_counter()
    with Ledger.open(str(folder / "ledger.db")) as ledger:
        guarded(ledger, RUNS[0])
    kills: Counter[str] = Counter()
    while kills[CHARGED] + kills[REDEEMED_ALREADY] < times:
        workers = [
            Worker(folder, run, rng.randrange(LONGEST), rng.choice(PLACES), weakness)
            for run in RUNS
        ]
        for worker, child in [(worker, fork(worker.train)) for worker in workers]:
            _, status = os.waitpid(child, 0)
            if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
                raise RuntimeError(f"{worker.run} ended by itself: status {status}")
            kills[worker.place] += 1
        if sum(kills.values()) % 100 < len(RUNS) or weakness:
            _require(folder)
    found = _require(folder)
    with Ledger.open(str(folder / "ledger.db")) as ledger:
        ledger.verify()
    between, seconds = kills[CHARGED] + kills[REDEEMED_ALREADY], time.perf_counter() - began
    return f"{between} kills between charge and step, {kills.total()} in all, in {seconds:.0f} s; {found}"


def _require(folder: Path) -> str:
    """Compare the steps that ran with the entries of the ledger."""
    charged: Counter[tuple[str, str]] = Counter()
    redeemed: Counter[tuple[str, str]] = Counter()
    named: dict[int, tuple[str, str]] = {}
    with Ledger.open(str(folder / "ledger.db")) as ledger:
        for entry in ledger.entries("model"):
            if entry.kind == Entry.GRANTED:
                named[entry.sequence] = (
                    entry.description["note"]["run"],
                    entry.description["mechanism"],
                )
                charged[named[entry.sequence]] += 1
            elif entry.kind == Entry.REDEEMED and entry.redeems is not None:
                redeemed[named[entry.redeems]] += 1
    executed: Counter[tuple[str, str]] = Counter()
    for run in RUNS:
        file = folder / f"{run}.steps"
        for line in file.read_text().split() if file.exists() else ():
            sigma, rate = KINDS[int(line)]
            executed[run, f"Gaussian({sigma}).sampled({rate})"] += 1
    for kind in charged | executed:
        if not redeemed[kind] >= executed[kind]:
            raise GuardError(f"{kind}: {executed[kind]} steps ran, {redeemed[kind]} were redeemed")
        if not charged[kind] - redeemed[kind] <= 1:
            raise GuardError(
                f"{kind}: {charged[kind]} charged, {redeemed[kind]} redeemed: not resumed"
            )
    return (
        f"{executed.total()} steps ran, {redeemed.total()} redeemed, {charged.total()} charged; "
        f"at most one of a kind waits to be resumed"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=1000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for weakness in CONTROLS:
            folder = Path(name) / weakness.replace(" ", "-")
            folder.mkdir()
            try:
                campaign(folder, times=60, weakness=weakness)
            except GuardError as caught:
                print(f"control ({weakness}): caught: {caught}", flush=True)
            else:
                raise SystemExit(f"the control passed: {weakness}")
        print(campaign(Path(name), times=asked.times), flush=True)


if __name__ == "__main__":
    main()
