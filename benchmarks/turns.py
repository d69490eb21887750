"""`python -m benchmarks.turns BEFORE AFTER [--only TEXT] [--rounds 7]`: two trees of this project in one run, in turns.

BEFORE and AFTER are checkouts (`git worktree add ../before COMMIT`). Each lives in a process of its own, limited to one
thread; a case goes to one, then to the other, as often as `--rounds` says. A turn repeats the case for a twentieth
of a second, at least once. Compared are the least processor times, of the process for charges (which have threads),
else of the thread. Mechanisms are built anew in every repetition. The import is timed in new interpreters.

The cases are lines of Python that both trees can run. A case that one of them cannot run is shown as such.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.catalog import SCHEDULES
from benchmarks.measure import ONE_THREAD

SHARE, BLOCK = 0.05, 0.002
PLENTY = 1.05
"""Above this ratio a case is measured once more, with three times as many rounds: most are noise."""

SETUP = """
import warnings
warnings.simplefilter("ignore")
import tempfile, uuid
from pathlib import Path
from dpcompose import *
"""

QUESTIONS = {
    **{
        f"DP-SGD sigma {sigma}, rate {rate:.4g}, {steps} steps, delta {delta}": (
            f"(Gaussian({sigma}).sampled({rate}) * {steps}).epsilon(delta={delta})"
        )
        for sigma, rate, steps in SCHEDULES
        for delta in (1e-5, 1e-10)
    },
    "DP-SGD, delta 1e-100": "(Gaussian(1.0).sampled(.01) * 1000).epsilon(delta=1e-100)",
    "DP-SGD, 10^9 steps": "(Gaussian(1.0).sampled(.001) * 10**9).epsilon(delta=1e-5)",
    "DP-SGD, its delta": "(Gaussian(1.0).sampled(.01) * 1000).delta(epsilon=1.0)",
    "DP-SGD, its delta near 1e-12": "(Gaussian(1.0).sampled(.01) * 1000).delta(epsilon=3.7)",
    "DP-SGD, replaced": "(Gaussian(1.0).sampled(.01) * 1000).epsilon(delta=1e-5, adjacency=Adjacency.REPLACE)",
    "DP-SGD, free": "(Gaussian(1.0).sampled(.01) * 100).epsilon(delta=1e-6, orientation=Orientation.FREE)",
    "DP-SGD, renyi(8)": "(Gaussian(1.0).sampled(.01) * 1000).renyi(8.0)",
    "DP-SGD, renyi(8), free": "(Gaussian(1.0).sampled(.01) * 100).renyi(8.0, orientation=Orientation.FREE)",
    "DP-SGD, three deltas": "[(Gaussian(1.0).sampled(.01) * 1000).delta(epsilon=e) for e in (.5, 1.0, 2.0)]",
    "DP-SGD, compare": "(Gaussian(1.0).sampled(.01) * 1000).compare(delta=1e-6)",
    "10 sampled Gaussian": "(Gaussian(2.0).sampled(.1) * 10).epsilon(delta=1e-5)",
    "200 phases": "compose(*[Gaussian(.8 + i / 200).sampled(.01) * 50 for i in range(200)]).epsilon(delta=1e-6)",
    "1,000 Laplace": "(Laplace(30.0) * 1000).epsilon(delta=1e-6)",
    "1,000 distinct Laplace": "compose(*[Laplace(50 + i / 10) for i in range(1000)]).epsilon(delta=1e-6)",
    "50 distinct Laplace": "compose(*[Laplace(5 + i / 10) for i in range(50)]).epsilon(delta=1e-6)",
    "1,000 distinct Gaussian": "compose(*[Gaussian(50 + i / 10) for i in range(1000)]).epsilon(delta=1e-6)",
    "100 Gaussian": "(Gaussian(10.0) * 100).epsilon(delta=1e-5)",
    "100 BlackBox": "(BlackBox(.1) * 100).epsilon(delta=1e-6)",
    "100 randomized responses": "(RandomizedResponse(.1) * 100).epsilon(delta=1e-6)",
    "mixed plan": (
        "(Gaussian(1.0).sampled(.005) * 1000 + Laplace(20.0) * 10 + BlackBox(.01) * 50 + Gaussian(30.0) * 20)"
        ".epsilon(delta=1e-8)"
    ),
    "discrete Gaussian": "(DiscreteGaussian(10.0) * 100).epsilon(delta=1e-6)",
    "discrete Laplace": "(DiscreteLaplace(10.0) * 100).epsilon(delta=1e-6)",
    "100 Exponential": "(Exponential(.1) * 100).epsilon(delta=1e-6)",
    "2 distinct Exponential": "(Exponential(.1) * 50 + Exponential(.2) * 50).epsilon(delta=1e-6)",
    "sampled Exponential": "(Exponential(.5).sampled(.1) * 100).epsilon(delta=1e-6)",
    "sampled Laplace": "(Laplace(1.0).sampled(.1) * 100).epsilon(delta=1e-6)",
    "sampled randomized response": "(RandomizedResponse(1.0).sampled(.1) * 100).epsilon(delta=1e-6)",
    "Concentrated": "(Concentrated(.02) * 10).epsilon(delta=1e-6)",
    "Concentrated, renyi(8)": "(Concentrated(.02) * 10).renyi(8.0)",
    "Gaussian, renyi(8)": "(Gaussian(1.0) * 1000).renyi(8.0)",
    "Laplace, renyi(8)": "(Laplace(1.0) * 1000).renyi(8.0)",
    "Laplace, pure()": "(Laplace(8.0) * 8).pure()",
    "mixed, pure()": "(Laplace(8.0) * 8 + RandomizedResponse(.1) * 3).pure()",
    "BlackBox, approximate()": "(BlackBox(.1, delta=1e-9) * 8).approximate()",
    "one Laplace at its top": "Laplace(2.0).epsilon(delta=0.0)",
    "one randomized response at its top": "RandomizedResponse(.5).epsilon(delta=0.0)",
    "8 Laplace at their top": "(Laplace(8.0) * 8).epsilon(delta=0.0)",
    "one Laplace": "Laplace(2.0).epsilon(delta=1e-6)",
    "one randomized response": "RandomizedResponse(.5).epsilon(delta=1e-6)",
    "zcdp()": "(Gaussian(10.0) * 100).zcdp()",
    "groups of 3": "(Gaussian(10.0) * 100).group(3).epsilon(delta=1e-6)",
    "risk": "(Laplace(8.0) * 8).risk()",
    "compare, four kinds": (
        "(Gaussian(1.0).sampled(.005) * 1000 + Laplace(20.0) * 10 + BlackBox(.01) * 50).compare(delta=1e-8)"
    ),
    "calibrate sigma": "calibrate(lambda s: Gaussian(s).sampled(.01) * 10**4, epsilon=2.0, delta=1e-5)",
    "calibrate a count": (
        "calibrate(lambda k: Laplace(30.0) * k, epsilon=1.0, delta=1e-6, parameter='increasing', integer=True)"
    ),
}
"""A question: one expression."""

LEDGER = """
from dpcompose.ledger import Ledger
folder = tempfile.TemporaryDirectory(dir=".")
ledger = Ledger.open(WHERE)
for name, caps in (("world", {"epsilon": 10**9, "delta": 1}), ("world/acme", {"epsilon": 10**9}),
                   ("world/acme/sales", {"epsilon": 10**9})):
    ledger.scope(name, caps=caps, actor="keeper")
description = {"mechanism": "Gaussian(30.0) * 5", "adjacency": "add-remove", "version": 1}
cost = {"epsilon": "0.1", "delta": "1e-30"}
def charge():
    return ledger.charge("world/acme/sales", cost=cost, description=description, actor="analyst 17",
                         key=uuid.uuid4().hex)
def redeemed():
    receipt = charge()
    try:
        ledger.redeem(receipt, actor="analyst 17")
    except TypeError:
        ledger.redeem(receipt)
for _ in range(200):
    redeemed()
"""
CHARGES = {
    "charge, SQLite": (LEDGER.replace("WHERE", 'Path(folder.name) / "l.db"'), "charge()"),
    "charge and redeem, SQLite": (
        LEDGER.replace("WHERE", 'Path(folder.name) / "l.db"'),
        "redeemed()",
    ),
    "balance, SQLite": (
        LEDGER.replace("WHERE", 'Path(folder.name) / "l.db"'),
        'ledger.balance("world/acme/sales")',
    ),
    "charge, memory": (LEDGER.replace("WHERE", '"memory:"'), "charge()"),
    "charge and redeem, memory": (LEDGER.replace("WHERE", '"memory:"'), "redeemed()"),
}
"""A charge: what prepares it, and one expression."""


def main() -> None:
    """Measure, print a line a case, and the worst."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    trees = (chosen.before.resolve(), chosen.after.resolve())
    cases = {name: ("", line, "thread") for name, line in QUESTIONS.items()}
    cases |= {name: (setup, line, "process") for name, (setup, line) in CHARGES.items()}
    workers = [_Worker(tree) for tree in trees]
    print(f"{'case':55} {'before':>12} {'after':>12} {'ratio':>7}")
    worst: list[tuple[float, str]] = []
    for name, case in cases.items():
        if chosen.only not in name:
            continue
        before, after = _compared(workers, case, chosen.rounds)
        if isinstance(before, str) or isinstance(after, str):
            print(f"{name:55} {before!s:>12.60} {after!s:>12.60}", flush=True)
            continue
        worst.append((after / before, name))
        print(
            f"{name:55} {before * 1e3:9.4f} ms {after * 1e3:9.4f} ms {after / before:6.3f}x",
            flush=True,
        )
    if chosen.only in "import":
        before, after = (
            min(_import_seconds(tree) for _ in range(3 * chosen.rounds)) for tree in trees
        )
        worst.append((after / before, "import"))
        print(f"{'import':55} {before * 1e3:9.2f} ms {after * 1e3:9.2f} ms {after / before:6.3f}x")
    print(
        "worst:",
        "; ".join(f"{name} {ratio:.3f}x" for ratio, name in sorted(worst, reverse=True)[:8]),
    )


def _compared(
    workers: list[_Worker], case: tuple[str, str, str], rounds: int
) -> tuple[float | str, float | str]:
    before, after = _turns(workers, case, rounds)
    if isinstance(before, str) or isinstance(after, str) or after <= PLENTY * before:
        return before, after
    more = _turns(workers, case, 3 * rounds)
    match more:
        case (float() as again, float() as afterwards):
            return min(before, again), min(after, afterwards)
        case _:
            return more


def _turns(
    workers: list[_Worker], case: tuple[str, str, str], rounds: int
) -> tuple[float | str, float | str]:
    """The least time of each tree, or what it said instead."""
    found: list[list[float]] = [[], []]
    for number in range(rounds):
        for index in (0, 1) if number % 2 == 0 else (1, 0):
            reply = workers[index].ask(case)
            if isinstance(reply, str):
                return ("runs", reply) if index else (reply, "")
            found[index].append(reply)
    return min(found[0]), min(found[1])


class _Worker:
    """A tree in a process of its own."""

    def __init__(self, tree: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(tree),
        )

    def ask(self, case: tuple[str, str, str]) -> float | str:
        """Seconds, or the error."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(case), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def _environment(tree: Path) -> dict[str, str]:
    return {
        **os.environ,
        **ONE_THREAD,
        "PYTHONPATH": f"{tree}/src{os.pathsep}{Path(__file__).parents[1]}",
    }


def _import_seconds(tree: Path) -> float:
    """Processor seconds, of user and system, of `import dpcompose` in a new interpreter."""
    line = "import time; a = time.process_time(); import dpcompose; print(time.process_time() - a)"
    return float(
        subprocess.check_output([sys.executable, "-c", line], env=_environment(tree), text=True)
    )


def _work() -> None:
    """The least seconds of a case's repetitions, for each case of standard input."""
    import gc

    sys.path.pop(0)
    out, sys.stdout = sys.stdout, sys.stderr
    prepared: dict[str, dict[str, object]] = {}
    for request in sys.stdin:
        setup, line, clock = json.loads(request)
        try:
            if setup not in prepared:
                prepared[setup] = {}
                exec(SETUP + setup, prepared[setup])
            run = eval(f"lambda: {line}", prepared[setup])
            run()
            now = time.thread_time if clock == "thread" else time.process_time
            reply: float | str = _least(run, now)
        except Exception as error:
            reply = f"{type(error).__name__}: {error}"[:100]
        gc.collect()
        print(json.dumps(reply), file=out, flush=True)


def _least(run, now) -> float:
    """The least time of a repetition; quick ones are timed many at once, since the clock itself takes a while."""
    began = now()
    run()
    many = max(int(BLOCK / max(now() - began, 1e-7)), 1)
    least, spent = float("inf"), 0.0
    while spent < SHARE:
        began = now()
        for _ in range(many):
            run()
        took = now() - began
        least, spent = min(least, took / many), spent + took
    return least


if __name__ == "__main__":
    _work() if sys.argv[1:] == ["--worker"] else main()
