"""The figures that a budget has to reach, row by row: `python -m campaigns.reach [--menus 20] [--against CHECKOUT]`.

What one `Budget` of (1, 1e-6) grants in twelve runs beside each theorem alone at the full delta; menus beside budgets;
what opening a menu of noise, a decision, advice and a charge in memory take, in seconds of the processor. A charge is
compared with one on a filter of zero-concentrated privacy alone in another checkout, such as one of commit aa7d735, in
turns. Exit status 1 if a figure is not reached.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

from campaigns import menus
from dpcompose import (
    BlackBox,
    Concentrated,
    Exponential,
    Gaussian,
    Laplace,
    RandomizedResponse,
)
from dpcompose.adaptive import Budget, Filter, MenuFilter, advise
from dpcompose.adaptive.filter import charged
from dpcompose.composition import Composable
from dpcompose.errors import UnsupportedError
from dpcompose.values import Adjacency

SMALL, LARGE = RandomizedResponse(1 / 64), RandomizedResponse(1 / 8)
RUNS: dict[str, tuple[Sequence[Composable], int]] = {
    "randomized response 1/8": ([LARGE], 8),
    "randomized response 1/64": ([SMALL], 187),
    "20 small, 1 large": ([*[SMALL] * 20, LARGE], 77),
    "three sizes": ([*[SMALL] * 10, *[RandomizedResponse(1 / 16)] * 3, LARGE], 36),
    "Laplace 64": ([Laplace(64.0)], 188),
    "zooming in": ([Laplace(64.0), Laplace(32.0), Laplace(16.0), Laplace(8.0)], 18),
    "Gaussian 50": ([Gaussian(50.0)], 125),
    "Laplace 64, Gaussian 40": ([Laplace(64.0), Gaussian(40.0)], 105),
    "any (1/128, 1e-10)": ([BlackBox(1 / 128, delta=1e-10)], 735),
    "exponential 0.05": ([Exponential(0.05)], 73),
    "DP-SGD": ([Gaussian(2.0).sampled(0.01)], 1478),
    "rho but for delta": ([Concentrated(0.0003, delta=1e-11)], 74),
}
"""What is asked again and again, and how often a `Budget` of (1, 1e-6) has to grant it."""
ONLY = ("pure", "basic", "zcdp", "renyi", "gaussian")
MENU = [Laplace(64.0), Gaussian(40.0)]
PLAN = [(Laplace(64.0), 30), (Gaussian(40.0), 50), (Gaussian(2.0).sampled(0.01), 400)]
CHARGES = """
import sys, time
from dpcompose import Gaussian
from dpcompose.account import open_scope
from dpcompose.adaptive import ConcentratedFilter
from dpcompose.ledger import Ledger
ledger = Ledger.open("memory:")
given = {"epsilon": 1000, "delta": 1e-6} if sys.argv[1] == "budget" else {"filter": ConcentratedFilter(1e6, delta=0.0)}
account, mechanism = open_scope(ledger, "w", actor="Ada", **given), Gaussian(20.0)
for number in range(200):
    account.charge(mechanism, actor="Ada", key=f"first {number}")
begun = time.process_time()
for number in range(4000):
    account.charge(mechanism, actor="Ada", key=str(number))
print(time.process_time() - begun)
"""


def rounds(filter: Filter, run: Sequence[Composable]) -> int:
    """How many charges are granted; 0 without a price."""
    try:
        prices = [filter._exact(each, None, Adjacency.ADD_REMOVE) for each in run]
    except UnsupportedError:
        return 0
    state = filter.start()
    for price in cycle(prices):
        state, decision = charged(state, price)
        if not decision.granted:
            break
    return state.granted


def seconds(action: Callable[[], object]) -> float:
    """What it takes, in seconds of the processor."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def charge_seconds(checkout: Path, kind: str) -> float:
    """What 4,000 charges in memory take, in a process of their own."""
    environment = os.environ | {"PYTHONPATH": f"{checkout}/src"}
    command = [sys.executable, "-c", CHARGES, kind]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def figures(*, number: int, against: Path | None) -> Iterator[tuple[str, str, str, bool]]:
    """Each figure: its name, what was reached and what is wanted, and whether it is."""
    for name, (run, wanted) in RUNS.items():
        reached = rounds(Budget(1, 1e-6), run)
        alone = {only: rounds(Budget(1, 1e-6, only=only), run) for only in ONLY}
        best = max(alone, key=lambda only: alone[only])
        text = f"{reached} (alone {best}: {alone[best]})"
        yield f"granted: {name}", text, f"{wanted}", reached >= wanted
    if number:
        opened, lost, slowest = menus.run(number, seed=9107)
        text = f"{len(lost)} of {opened} below, the slowest in {slowest:.1f} s"
        yield "menus beside budgets", text, "0 below, 10 s", not lost and slowest <= 10
    taken = seconds(lambda: MenuFilter.for_target(MENU, 1, 1e-6))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield (
        "a menu of Laplace 64, Gaussian 40",
        f"{taken:.1f} s, {memory:.0f} MB",
        "10 s, 300 MB",
        (taken <= 10 and memory <= 300),
    )
    budget = Budget(1000, 1e-6)
    states = [budget.step(budget.start(), MENU[1])[0]]

    def decide() -> None:
        for _ in range(2000):
            states[0], _ = budget.step(states[0], MENU[1])

    each = min(seconds(decide) for _ in range(3)) / 2000 * 1000
    yield "a decision", f"{each:.4f} ms", "0.05 ms", each <= 0.05
    taken = seconds(lambda: advise(PLAN, 1, delta=1e-6))
    yield "advice", f"{taken:.1f} s", "10 s", taken <= 10
    if against is not None:
        own = Path(__file__).parents[1]
        pairs = [
            charge_seconds(own, "budget") / charge_seconds(against, "concentrated")
            for _ in range(5)
        ]
        ratio = statistics.median(pairs)
        yield "a charge in memory", f"{ratio:.2f} times", "1.2 times", ratio <= 1.2


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--menus", type=int, default=20)
    parser.add_argument("--against", type=Path)
    options, short = parser.parse_args(), 0
    for name, reached, wanted, is_reached in figures(number=options.menus, against=options.against):
        short += not is_reached
        print(f"{name:36} {reached:36} {wanted:16} {'' if is_reached else 'MISSED'}", flush=True)
    return bool(short)


if __name__ == "__main__":
    sys.exit(main())
