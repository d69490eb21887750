"""`python -m benchmarks.start`: the processor time of starting up, medians of 20 beside `python -c pass`.

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
RUNS: dict[str, tuple[list[str], float | None]] = {
    "python -c pass": (["-c", "pass"], None),
    "import dpcompose": (["-c", "import dpcompose"], 0.12),
    "dpcompose --version": (["-m", "dpcompose", "--version"], 0.25),
    "dpcompose account plan.toml": (["-m", "dpcompose", "account", "plan.toml"], 0.9),
}


def seconds(arguments: list[str], folder: str) -> float:
    """Processor seconds of one process, in user and system mode."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | ONE_THREAD
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
    found: dict[str, list[float]] = {name: [] for name in RUNS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "plan.toml").write_text(PLAN)
        for _ in range(rounds):
            for name, (arguments, _) in RUNS.items():
                found[name].append(seconds(arguments, folder))
    late = False
    for name, (_, limit) in RUNS.items():
        median = statistics.median(found[name])
        late |= limit is not None and median > limit
        print(f"{name:30} {median:6.3f} s" + ("" if limit is None else f"   at most {limit} s"))
    sys.exit(int(late))


if __name__ == "__main__":
    main()
