"""Exact sums: many charges of awkward amounts end at the exact rational total.

python -m campaigns.ledger.sums [--memory 10000000] [--durable 100000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from campaigns.ledger.history import HistoryError
from campaigns.ledger.processes import in_threads
from dpcompose.ledger import Ledger

AMOUNTS = (0.1, "1e-30", "3e-40", 0.7, "12.000000000000000000000000000000000000001")
THREADS = 64


def campaign(url: str | Path, *, charges: int, threads: int = 1) -> str:
    """Charge so many times; HistoryError unless the sum is the exact one."""
    with Ledger.open(url) as ledger:
        ledger.scope("world", caps={"epsilon": 10**12}, actor="keeper")

        def work(thread: int) -> None:
            for number in range(thread, charges, threads):
                cost = {"epsilon": AMOUNTS[number % len(AMOUNTS)]}
                ledger.charge("world", cost=cost, actor="client", key=str(number))

        began = time.perf_counter()
        in_threads([lambda thread=thread: work(thread) for thread in range(threads)])
        seconds = time.perf_counter() - began
        spent = ledger.balance("world").spent["epsilon"].fraction
    each = [len(range(place, charges, len(AMOUNTS))) for place in range(len(AMOUNTS))]
    expected = sum(
        count * Fraction(str(amount)) for count, amount in zip(each, AMOUNTS, strict=True)
    )
    if spent != expected:
        raise HistoryError(f"{charges} charges are {spent}, not {expected}")
    return f"{charges} charges in {seconds:.0f} s end at exactly {expected}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memory", type=int, default=10**7)
    parser.add_argument("--durable", type=int, default=10**5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(
            "SQLite:",
            campaign(Path(folder) / "ledger.db", charges=asked.durable, threads=THREADS),
            flush=True,
        )
    print("memory:", campaign("memory:", charges=asked.memory), flush=True)


if __name__ == "__main__":
    main()
