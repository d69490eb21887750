"""`python -m benchmarks.ledger [--entries 1000000] [--runs 5]`: what the ledger promises about speed, measured.

Raw durable commits (one row each, the same settings, the same directory) and charges alternate in one run, so that a
busy disk or machine touches both. An otherwise idle machine is asked for; every figure is a median of the runs.

SQLite's log grows until it holds a thousand pages, and is written over from then on, which a disk syncs about twice as
fast. One writer is timed in both states, raw commits and charges in the same one: a new file, and one in use.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcompose.ledger import Ledger
from dpcompose.ledger.amount import Amounts
from dpcompose.ledger.requests import Charge
from dpcompose.ledger.sqlite import SQLiteStore
from dpcompose.ledger.sqlite_connection import SETTINGS

COST = {"epsilon": "0.1", "delta": "1e-30"}
DESCRIPTION = {"mechanism": "Gaussian(30.0) * 5", "adjacency": "add-remove", "version": 1}
SCOPE = "world/acme/sales"
COMMITS, CHARGES, THREADS, PROCESSES = 400, 400, 64, 8
LOG_PAGES = 1000
"""After so many pages SQLite writes its log over from the start; a raw commit writes one, a charge four to five."""


def charge(ledger: Ledger) -> None:
    """One charge; its key is as random as clients make them, which is the worst case for the index of keys."""
    ledger.charge(
        SCOPE, cost=COST, description=DESCRIPTION, actor="analyst 17", key=uuid.uuid4().hex
    )


def prepared(path: Path) -> Ledger:
    """A ledger of three scopes in a chain."""
    ledger = Ledger.open(path)
    ledger.scope("world", caps={"epsilon": 10**9, "delta": 1}, actor="keeper")
    ledger.scope("world/acme", caps={"epsilon": 10**9}, actor="keeper")
    ledger.scope(SCOPE, caps={"epsilon": 10**9}, actor="keeper")
    return ledger


def timed(work: Callable[[int], object], times: int) -> list[float]:
    """Seconds of each call."""
    found: list[float] = []
    for number in range(times):
        began = time.perf_counter()
        work(number)
        found.append(time.perf_counter() - began)
    return found


@dataclass
class Raw:
    """Commits of one row, with the ledger's settings and nothing else."""

    connection: sqlite3.Connection
    rows: int = 0

    @classmethod
    def at(cls, path: Path) -> Raw:
        connection = sqlite3.connect(path, isolation_level=None)
        for name, wanted in SETTINGS.items():
            connection.execute(f"PRAGMA {name} = {wanted}").fetchall()
        connection.execute("CREATE TABLE raw (number INTEGER PRIMARY KEY, body TEXT)")
        return cls(connection)

    def commit(self, _: int) -> None:
        self.rows += 1
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("INSERT INTO raw VALUES (?, ?)", (self.rows, "x" * 400))
        self.connection.execute("COMMIT")


@dataclass
class Figures:
    """Everything measured, one value a run."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, **found: float) -> None:
        for name, value in found.items():
            self.values.setdefault(name, []).append(value)

    def median(self, name: str) -> float:
        return statistics.median(self.values[name])


def one_run(folder: Path, run: int, figures: Figures) -> None:
    """Raw and ledger, one writer, 64 threads, 8 processes."""
    raw = Raw.at(folder / f"raw-{run}.db")
    ledger = prepared(folder / f"ledger-{run}.db")
    one_writer(raw, ledger, figures, "new")
    timed(raw.commit, LOG_PAGES)
    timed(lambda _: charge(ledger), LOG_PAGES // 4)
    one_writer(raw, ledger, figures, "used")
    shared = _threads(ledger)
    again = timed(raw.commit, COMMITS)
    figures.add(threads_rate=shared, threads_share=shared * statistics.mean(again))
    ledger.close()
    latencies = sorted(_processes(folder / f"ledger-{run}.db", folder))
    p99 = latencies[int(len(latencies) * 0.99)]
    again += timed(raw.commit, COMMITS)
    figures.add(processes_p99=p99, processes_share=p99 / statistics.median(again))
    raw.connection.close()


def one_writer(raw: Raw, ledger: Ledger, figures: Figures, state: str) -> None:
    """Raw commits and charges, in turns of a tenth."""
    commits: list[float] = []
    charges: list[float] = []
    for _ in range(10):
        commits += timed(raw.commit, COMMITS // 10)
        charges += timed(lambda _: charge(ledger), CHARGES // 10)
    found = {
        "raw_rate": 1 / statistics.mean(commits),
        "raw_median": statistics.median(commits),
        "charge_rate": 1 / statistics.mean(charges),
        "charge_median": statistics.median(charges),
        "share": statistics.mean(commits) / statistics.mean(charges),
        "share_of_medians": statistics.median(commits) / statistics.median(charges),
    }
    figures.add(**{f"{state}_{name}": value for name, value in found.items()})


def _threads(ledger: Ledger, each: int = 100) -> float:
    def work() -> None:
        for _ in range(each):
            charge(ledger)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return THREADS * each / (time.perf_counter() - began)


def _processes(path: Path, folder: Path, each: int = 250) -> list[float]:
    """Latencies of charges of all processes together."""
    children: list[int] = []
    for process in range(PROCESSES):
        child = os.fork()
        if child == 0:
            with Ledger.open(path) as ledger:
                charge(ledger)
                found = timed(lambda _: charge(ledger), each)
            (folder / f"latencies-{process}").write_text(json.dumps(found))
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return [
        value
        for process in range(PROCESSES)
        for value in json.loads((folder / f"latencies-{process}").read_text())
    ]


def fill(ledger: Ledger, first: int, stop: int) -> None:
    """Many entries quickly: whole groups, as many threads would send them."""
    store: Any = ledger.store
    assert isinstance(store, SQLiteStore)
    cost, description = (
        Amounts.of(COST),
        json.dumps(DESCRIPTION, sort_keys=True, separators=(",", ":")),
    )
    for start in range(first, stop, 256):
        group = [
            Charge(SCOPE, cost, description, "analyst 17", uuid.uuid4().hex)
            for _ in range(start, min(start + 256, stop))
        ]
        store._commit(group)


def growth(folder: Path, entries: int, figures: Figures, runs: int) -> None:
    """A charge after 10^3 entries and after many; opening; verifying."""
    small, large = prepared(folder / "small.db"), prepared(folder / "large.db")
    fill(small, 0, 1000)
    began = time.perf_counter()
    fill(large, 0, entries)
    figures.add(fill_rate=entries / (time.perf_counter() - began))
    for _ in range(runs):
        times: tuple[list[float], list[float]] = [], []
        for _ in range(20):
            for which, ledger in enumerate((small, large)):
                times[which].extend(timed(lambda _, ledger=ledger: charge(ledger), 50))
        figures.add(small=statistics.median(times[0]), large=statistics.median(times[1]))
        figures.add(growth=statistics.median(times[1]) / statistics.median(times[0]))
        figures.add(growth_of_means=statistics.mean(times[1]) / statistics.mean(times[0]))
    small.close()
    large.close()
    for _ in range(runs):
        began = time.perf_counter()
        ledger = Ledger.open(folder / "large.db", create=False)
        ledger.balance("world")
        figures.add(open=time.perf_counter() - began)
        ledger.close()
    with Ledger.open(folder / "large.db", create=False) as ledger:
        told: list[int] = []
        began = time.perf_counter()
        found = ledger.verify(ledger.anchor(), lambda _what, done, _total: told.append(done))
        figures.add(verify=time.perf_counter() - began, verified=found.entries, progress=len(told))


def report(figures: Figures, entries: int) -> str:
    """A line for each promise."""
    rate, median = figures.median, figures.median
    lines = [
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
    ]
    for state in ("new", "used"):
        lines += [
            f"{state} file, raw commits      {rate(f'{state}_raw_rate'):10.0f} /s   "
            f"median {median(f'{state}_raw_median') * 1e6:.0f} us",
            f"{state} file, charges, 1 writer {rate(f'{state}_charge_rate'):8.0f} /s   "
            f"median {median(f'{state}_charge_median') * 1e6:.0f} us   {rate(f'{state}_share'):.2f} of the raw rate, "
            f"{rate(f'{state}_share_of_medians'):.2f} of medians (promised 0.5)",
        ]
    lines += [
        f"charges, {THREADS} threads        {rate('threads_rate'):10.0f} /s   {rate('threads_share'):.2f} of the raw "
        "rate (promised 1)",
        f"{PROCESSES} writer processes, p99   {median('processes_p99') * 1e3:10.2f} ms   {rate('processes_share'):.1f} "
        "times the raw median (promised 60)",
    ]
    if "growth" in figures.values:
        lines += [
            f"a charge after 10^3 and {entries} entries: {median('small') * 1e6:.0f} and "
            f"{median('large') * 1e6:.0f} us: {median('growth'):.3f} times, "
            f"of means {median('growth_of_means'):.3f} (promised 1.2)",
            f"opening {entries} entries        {median('open'):.3f} s (promised 1)",
            f"verifying {int(median('verified'))} entries      {median('verify'):.1f} s (promised 30), progress told "
            f"{int(median('progress'))} times",
            f"entries written in whole groups {median('fill_rate'):.0f} /s",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--entries", type=int, default=10**6, help="0 leaves growth, opening and verifying out"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to be measured")
    asked = parser.parse_args()
    figures = Figures()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for run in range(asked.runs):
            one_run(Path(folder), run, figures)
        if asked.entries:
            growth(Path(folder), asked.entries, figures, asked.runs)
    print(report(figures, asked.entries))


if __name__ == "__main__":
    main()
