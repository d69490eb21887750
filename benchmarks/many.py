"""`python -m benchmarks.many [--publish]`: many questions in one call, a peer beside where it is installed.

Seconds of the processor for the whole call; the peer is asked a few of the same questions one by one, in turns with
ours. `--publish` replaces the table in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.case import Case, Part
from benchmarks.measure import ROOT, Worker
from benchmarks.systems import REFERENCE, TITLES
from dpcompose import Adjacency, Composition, Gaussian, Laplace, calibrate, delta, epsilon
from dpcompose.composition import running_epsilon
from dpcompose.values import Bounds

DELTA, ROUNDS, ASKED = 1e-5, 3, 3
START, END = "<!-- many: begin -->\n", "<!-- many: end -->\n"
Setting = tuple[float, float, int]


@dataclass(frozen=True)
class Table:
    """A call: its name, what it asks, and a few of the same questions for a peer."""

    name: str
    call: Callable[[], Bounds | np.ndarray]
    asked: Sequence[Setting] = ()


def settings(count: int, *, shared: bool) -> list[Setting]:
    """sigma, rate and steps of DP-SGD: all distinct, or a grid of them."""
    if shared:
        side = round(count ** (1 / 3) + 0.5)
        steps = np.rint(np.geomspace(500, 20_000, side)).astype(int)
        grid = itertools.product(
            np.linspace(0.8, 3.0, side), np.geomspace(0.003, 0.05, side), steps
        )
        return [
            (float(sigma), float(rate), int(times))
            for sigma, rate, times in itertools.islice(grid, count)
        ]
    rng = np.random.default_rng(1)
    sigma, rate = rng.uniform(0.8, 3.0, count), rng.uniform(0.005, 0.02, count)
    return list(
        zip(sigma.tolist(), rate.tolist(), rng.integers(1000, 10_000, count).tolist(), strict=True)
    )


def spread(count: int, *, least_rate: float = 1e-3) -> list[Setting]:
    """sigma 0.6 to 4, rates up to 0.1, 100 to 10^5 steps, each log-uniform."""
    rng = np.random.default_rng(2)
    low, high = np.log([0.6, least_rate, 100.0]), np.log([4.0, 0.1, 1e5])
    drawn = np.exp(rng.uniform(low, high, (count, 3)))
    return [(float(sigma), float(rate), round(times)) for sigma, rate, times in drawn.tolist()]


def lattice() -> list[Setting]:
    """20 sigmas by 25 rates by 20 numbers of steps."""
    steps = np.rint(np.geomspace(100, 1e5, 20)).astype(int).tolist()
    return list(
        itertools.product(
            np.linspace(0.6, 4.0, 20).tolist(), np.geomspace(1e-3, 0.1, 25).tolist(), steps
        )
    )


def composed(setting: Setting) -> Composition:
    """So many steps of a sampled Gaussian."""
    sigma, rate, times = setting
    return Gaussian(sigma).sampled(rate) * times


def wider() -> Iterator[Table]:
    """Questions that are not those of the first tables."""
    runs = [composed(each) for each in spread(10_000)]
    yield Table(
        "10^4 over sigma 0.6 to 4, rate 0.001 to 0.1, 100 to 10^5 steps",
        lambda: epsilon(runs, delta=DELTA),
    )
    rarer = [composed(each) for each in spread(10_000, least_rate=5e-4)]
    yield Table("the same, rates from 0.0005", lambda: epsilon(rarer, delta=DELTA))
    cells = [composed(each) for each in lattice()]
    yield Table(
        "a lattice of 20 x 25 x 20 over the same ranges", lambda: epsilon(cells, delta=DELTA)
    )
    small = 10.0 ** -np.resize(np.arange(5.0, 11.0), 2000)
    yield Table(
        "2,000 of the first, delta 1e-5 to 1e-10", lambda: epsilon(runs[:2000], delta=small)
    )
    one = [composed((1.1, 0.01, 2000))] * 10_000
    yield Table(
        "one run at 10^4 deltas", lambda: epsilon(one, delta=np.geomspace(1e-10, 1e-2, 10_000))
    )
    yield Table(
        "one run at 10^4 epsilons", lambda: delta(one, epsilon=np.linspace(0.1, 6.0, 10_000))
    )
    drawn = spread(4000)
    phases = [
        composed(first) + composed(second)
        for first, second in zip(drawn[::2], drawn[1::2], strict=True)
    ]
    yield Table("2,000 of two phases", lambda: epsilon(phases, delta=DELTA))
    single = [composed((sigma, rate, 1)) for sigma, rate, _ in spread(2000)]
    yield Table("2,000 of one step", lambda: epsilon(single, delta=DELTA))
    full = [Gaussian(10 * sigma) * times for sigma, _, times in spread(2000)]
    yield Table("2,000 of full batches", lambda: epsilon(full, delta=DELTA))
    yield Table(
        "200 with one record replaced",
        lambda: epsilon(runs[:200], delta=DELTA, adjacency=Adjacency.REPLACE),
    )
    mixed = [run + Laplace(20.0) * 3 for run in runs[:200]]
    yield Table("200 with three Laplace answers each", lambda: epsilon(mixed, delta=DELTA))


def tables() -> Iterator[Table]:
    """What is measured."""
    for name, shared in (
        ("10^4 distinct DP-SGD runs", False),
        ("a grid of 10^4 over sigma, rate and steps", True),
    ):
        asked = settings(10_000, shared=shared)
        runs = [composed(each) for each in asked]
        yield Table(
            name,
            lambda runs=runs: epsilon(runs, delta=DELTA),
            asked[:: len(asked) // ASKED][:ASKED],
        )
    yield Table(
        "epsilon at each of 10^5 steps",
        lambda: running_epsilon(composed((1.1, 0.004, 100_000)), delta=DELTA),
    )
    yield from wider()
    families = [
        lambda sigma, rate=rate: composed((sigma, rate, 5000))
        for rate in np.linspace(0.005, 0.02, 1000)
    ]
    yield Table(
        "10^3 calibrations of sigma",
        lambda: calibrate(families, epsilon=2.0, delta=DELTA, bracket=(0.3, 30)).value,
    )


def measured(table: Table, peer: Worker | None) -> str:
    """A row of the table."""
    seconds, others, width, count = [], [], "", 0
    for turn in range(ROUNDS):
        start = time.process_time()
        found = table.call()
        seconds.append(time.process_time() - start)
        count = len(found)
        if isinstance(found, Bounds):
            width = f"{(found.width / np.maximum(found.upper, 1e-3)).max():.1e}"
        if peer is not None and turn < len(table.asked):
            sigma, rate, times = table.asked[turn]
            case = Case("many", "none", (Part("gaussian", sigma, times, rate),), DELTA)
            said = peer.ask(case, share=0.01, patience=60.0)
            others += (said or {}).get("seconds", [])
    each = median(seconds) / count
    ratio = f"{median(others) / each:,.0f}x" if others else ""
    return f"| {table.name} | {median(seconds):.2f} s | {each * 1e3:.3f} ms | {width} | {ratio} |\n"


def main() -> None:
    """Measure and print; write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--publish", action="store_true", help="replace the table in docs/benchmarks.md"
    )
    parser.add_argument(
        "--peers", type=Path, default=ROOT / ".venv/peers/bin/python", help="Python of the peers"
    )
    chosen = parser.parse_args()
    peer = Worker(REFERENCE, chosen.peers) if chosen.peers.exists() else None
    beside = f"{TITLES[REFERENCE]}, one question, where installed"
    text = f"| one call | all | each | widest | {beside} |\n|---|---|---|---|---|\n"
    for table in tables():
        text += measured(table, peer)
        print(text.splitlines()[-1], flush=True)
    if peer is not None:
        peer.end()
    if chosen.publish:
        page = ROOT / "docs" / "benchmarks.md"
        before, rest = page.read_text().split(START)
        page.write_text(before + START + text + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
