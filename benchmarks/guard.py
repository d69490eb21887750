"""`python -m benchmarks.guard [--steps 1000]`: what a guarded training step costs, with an empty block.

In memory, charged and redeemed in a new SQLite ledger (on the disk, and in /dev/shm where a sync costs nothing), and
taken from a plan. Medians, in microseconds of the processor and of the wall clock; a busy disk shows in the latter.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from dpcompose.interop.guard import TrainingGuard
from dpcompose.ledger import Ledger

SIGMA, RATE = 20.0, 0.01


def step_cost(guard: TrainingGuard, steps: int) -> str:
    """The medians of so many steps, after one whose price is computed."""
    guard.begin(sigma=SIGMA, rate=RATE)
    found: list[tuple[float, float]] = []
    for _ in range(steps):
        processor, wall = time.process_time(), time.perf_counter()
        with guard.step(sigma=SIGMA, rate=RATE):
            pass
        found.append((time.process_time() - processor, time.perf_counter() - wall))
    processor, wall = (1e6 * statistics.median(each) for each in zip(*found, strict=True))
    return f"{processor:6.0f} us of the processor, {wall:6.0f} us"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1000)
    steps = parser.parse_args().steps
    print(f"{'in memory':28}{step_cost(TrainingGuard(epsilon=8, delta=1e-5), steps)}")
    for folder in (None, "/dev/shm"):
        if folder is not None and not Path(folder).is_dir():
            continue
        with (
            tempfile.TemporaryDirectory(dir=folder) as name,
            Ledger.open(f"{name}/ledger.db") as ledger,
        ):
            guard = TrainingGuard(epsilon=8, delta=1e-5, ledger=ledger, scope="model")
            print(f"{'SQLite, ' + (folder or 'disk'):28}{step_cost(guard, steps)}")
            guard.plan([(SIGMA, RATE, steps + 1)])
            print(f"{'of a plan':28}{step_cost(guard, steps)}")


if __name__ == "__main__":
    main()
