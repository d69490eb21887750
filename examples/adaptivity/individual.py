"""How long one round of individual accounting takes.

    python -m examples.adaptivity.individual [--records 10000000] [--rounds 9]

prints the time of each round, the first apart: it is the only one that takes new memory from the system.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from dpcompose.adaptive import Budget, IndividualFilter


def rounds(records: int, count: int) -> list[float]:
    """The seconds of each round, prices given."""
    individual = IndividualFilter(Budget(1.0, 1e-6, only="renyi"))
    prices = np.random.default_rng(1).uniform(0.0, 0.1, records)
    state, found = individual.start(records), list[float]()
    for _ in range(count):
        began = time.perf_counter()
        state, _ = individual.step(state, prices=prices)
        found.append(time.perf_counter() - began)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    first, *rest = rounds(options.records, options.rounds)
    print(
        f"{options.records} records: first round {first:.3f} s, then median {statistics.median(rest):.3f} s,",
        end=" ",
    )
    print(f"slowest {max(rest):.3f} s")


if __name__ == "__main__":
    main()
