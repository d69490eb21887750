"""How fast the k-fold experiment plays, and in how much memory: `python -m benchmarks.experiment`.

One process, one thread. Each line: transcripts per second of processor time at k = 32, counted over both worlds, the
median and the best of several runs; and the peak memory of runs of two lengths, which should not differ.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import tracemalloc

import numpy as np

from dpcompose import Gaussian, Laplace, RandomizedResponse
from dpcompose.composition import Composable
from dpcompose.experiment import Experiment, Holds, Query, Repeater, Wanderer

ROUNDS = 32
MECHANISMS: tuple[Composable, ...] = (Laplace(4.0), Gaussian(4.0), RandomizedResponse(0.25))


def games() -> dict[str, Experiment]:
    queries = [Query(mechanism, ("Bob",), (), Holds("Bob")) for mechanism in MECHANISMS]
    found = {
        repr(query.mechanism): Experiment(Repeater(query), family=[query.mechanism], rounds=ROUNDS)
        for query in queries
    }
    found["all three, chosen from the answers"] = Experiment(
        Wanderer(queries, seed=1), family=MECHANISMS, rounds=ROUNDS
    )
    return found


def rate(game: Experiment, transcripts: int, seed: int) -> float:
    """Transcripts per second of processor time, both worlds counted."""
    start = time.process_time()
    game.measure(transcripts=transcripts // 2, rng=np.random.default_rng(seed))
    return transcripts / (time.process_time() - start)


def peak(game: Experiment, transcripts: int) -> int:
    """The peak of traced memory in bytes."""
    tracemalloc.start()
    game.measure(transcripts=transcripts // 2, rng=np.random.default_rng(1))
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return top


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--transcripts", type=int, default=1 << 19)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name, game in games().items():
        rate(game, 1 << 14, 0)
        rates = [rate(game, given.transcripts, run) for run in range(given.runs)]
        memory = [peak(game, given.transcripts // 8), peak(game, given.transcripts)]
        rows.append(
            {"game": name, "rounds": ROUNDS, "transcripts": given.transcripts, "best": max(rates),
             "median": statistics.median(rates), "peak_bytes": memory}
        )  # fmt: skip
        if not given.json:
            middle, best = f"{statistics.median(rates):,.0f}", f"{max(rates):,.0f}"
            short, long = (f"{size / 2**20:.1f} MB" for size in memory)
            print(f"{name:36} k = {ROUNDS}  {middle:>10} transcripts/s, best {best:>10};", end=" ")
            print(f"peak {short} for {given.transcripts // 8:,}, {long} for {given.transcripts:,}")
    if given.json:
        json.dump(rows, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
