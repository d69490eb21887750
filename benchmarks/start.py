"""`python -m benchmarks.start`: the processor time of starting up, medians of 20, as multiples of `python -c pass`.

Each line is a new process, and the lines take turns, so that a busy machine slows all of them alike. Exit status 1 if a
median is above its limit.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import ONE_THREAD

ROUNDS = 20
PLAN = """delta = 1e-8
adjacency = "add-remove"

[[mechanism]]
name = "training"
kind = "gaussian"
sigma = 1.0
rate = 0.005
times = 1000

[[mechanism]]
name = "counts"
kind = "laplace"
scale = 20.0
times = 10
"""
SINGLE = 'delta = 1e-6\n[[mechanism]]\nkind = "gaussian"\nsigma = 30.0\ntimes = 5\n'
COMMAND = ["-m", "dpcompose"]
RUNS: dict[str, tuple[list[str], float | None]] = {
    "python -c pass": (["-c", "pass"], None),
    "import numpy, scipy.special": (["-c", "import numpy, scipy.special"], None),
    "import dpcompose": (["-c", "import dpcompose"], 3),
    "dpcompose --version": ([*COMMAND, "--version"], 8),
    "dpcompose ledger show": ([*COMMAND, "ledger", "show"], 25),
    "dpcompose ledger show BUDGET": ([*COMMAND, "ledger", "show", "fresh"], 25),
    "dpcompose ledger show CHARGED": ([*COMMAND, "ledger", "show", "spent"], 25),
    "dpcompose ledger log": ([*COMMAND, "ledger", "log", "city"], 25),
    "dpcompose ledger charge AMOUNTS": (
        [*COMMAND, "ledger", "charge", "city", "--cost", "epsilon=0.001", "--key", "KEY"],
        25,
    ),
    "dpcompose ledger charge PLAN": (
        [*COMMAND, "ledger", "charge", "budget", "single.toml", "--key", "KEY"],
        50,
    ),
    "dpcompose theorem 3.20": (
        [*COMMAND, "theorem", "3.20", "--epsilon", "0.1", "--times", "9", "--slack", "1e-6"],
        50,
    ),
    "dpcompose account plan.toml": ([*COMMAND, "account", "plan.toml"], 50),
}
"""Each line, and the most that it may take, in multiples of the first; KEY is another one in every run."""
SET_UP = [
    "ledger init",
    "ledger scope city --cap epsilon=1000",
    "ledger scope budget --filter concentrated --parameter rho=1000 --parameter delta=0",
    "ledger scope fresh --epsilon 1 --delta 1e-6",
    "ledger scope spent --epsilon 1 --delta 1e-6",
    "ledger charge spent single.toml --key first",
]


def seconds(arguments: list[str], folder: str) -> float:
    """Processor seconds of one process, in user and system mode; its modules are compiled once and for all."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | ONE_THREAD | {"DPCOMPOSE_LEDGER": "ledger.db", "USER": "Ada"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in RUNS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "plan.toml").write_text(PLAN)
        (Path(folder) / "single.toml").write_text(SINGLE)
        for line in SET_UP:
            seconds([*COMMAND, *line.split()], folder)
        for number in range(-1, rounds):
            for name, (arguments, _) in RUNS.items():
                words = [f"key {number}" if word == "KEY" else word for word in arguments]
                times[name].append(seconds(words, folder))
    medians = {name: statistics.median(each[1:]) for name, each in times.items()}
    unit = next(iter(medians.values()))
    late = False
    for name, (_, limit) in RUNS.items():
        multiple = medians[name] / unit
        late |= limit is not None and multiple > limit
        end = "" if limit is None else f"   at most {limit:g}"
        print(f"{name:34} {medians[name]:6.3f} s {multiple:6.1f}{end}")
    sys.exit(int(late))


if __name__ == "__main__":
    main()
