"""Budgets that are spent together: `python -m campaigns.together [--processes N] [--individual N] [--curators N]`.

Two processes charge each of N random budgets of one ledger, each until it is refused: together they are granted what
one filter grants. N random filters for records are charged random prices: what every record pays, added up as
fractions, stays within its limit, and nobody drops out who could pay. N adversaries spend the budgets of several
curators, in whichever order the answers suggest: solved exactly, none reaches more than the total of the budgets.
Controls: records whose filter forgets the rounds before, and the total of one curator fewer; both must be caught.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpcompose import BlackBox, Gaussian, Laplace, RandomizedResponse
from dpcompose.account import Account, open_scope
from dpcompose.adaptive import Budget, Curators, IndividualFilter
from dpcompose.composition import Composable
from dpcompose.errors import OverdrawnError
from dpcompose.ledger import Ledger
from dpcompose.mechanisms import parse

ACTORS = "Ada", "Grace"


def mechanism(rng: random.Random, budget: Budget) -> Composable:
    """A mechanism that a budget grants a few dozen times."""
    size = float(budget.epsilon or 0) / rng.uniform(8, 40)
    return rng.choice(
        [
            Laplace(1 / size),
            RandomizedResponse(size),
            Gaussian(4 / size),
            BlackBox(size, delta=float(budget.delta or 0) / 400),
        ]
    )


def charge(url: str, plan: Path, who: str) -> None:
    """Charge every scope of a plan until it is refused, once all who take part are here, and print how often."""
    Path(f"{plan}.{who}").touch()
    while not all(os.path.exists(f"{plan}.{each}") for each in ACTORS):
        time.sleep(0.01)
    ledger = Ledger.open(url)
    for line in plan.read_text().splitlines():
        scope, text = line.split("\t")
        account, asked, number = Account(ledger, scope=scope), parse(text), 0
        try:
            while True:
                account.charge(asked, actor=who, key=f"{who} {number}")
                number += 1
        except OverdrawnError:
            print(scope, number, flush=True)


def processes(budgets: int) -> int:
    """Two processes and one budget: how many budgets granted another sum than one filter does."""
    rng, granted, lines = random.Random(4), dict[str, int](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(f"{folder}/ledger.db", create=True)
        for number in range(budgets):
            epsilon = float(f"{10 ** rng.uniform(-0.5, 0.7):.3g}")
            budget = Budget(epsilon, float(f"{10 ** rng.uniform(-9, -3):.2g}"))
            asked, scope, state = mechanism(rng, budget), f"s{number}", budget.start()
            open_scope(ledger, scope, filter=budget, actor="keeper")
            while (step := budget.step(state, asked))[1].granted:
                state = step[0]
            granted[scope] = state.granted
            lines.append(f"{scope}\t{asked!r}")
        plan = Path(folder, "plan")
        plan.write_text("\n".join(lines))
        command = [sys.executable, "-m", "campaigns.together", "--charge"]
        running = [
            subprocess.Popen(
                [*command, f"{folder}/ledger.db", str(plan), who], stdout=subprocess.PIPE, text=True
            )
            for who in ACTORS
        ]
        counts = [
            {line.split()[0]: int(line.split()[1]) for line in each.communicate()[0].splitlines()}
            for each in running
        ]
    wrong = [
        each for each in granted if sum(count.get(each, -1) for count in counts) != granted[each]
    ]
    shared = sum(min(count.get(each, 0) for count in counts) > 0 for each in granted)
    print(
        f"{budgets} budgets, {sum(granted.values())} charges, {shared} budgets charged by both; {len(wrong)} with"
        f" another sum {wrong[:3]}"
    )
    return len(wrong)


def individual(filters: int) -> int:
    """Filters for records: how many let a record pay above its limit, or drop out while it could pay."""
    rng, wrong, caught = np.random.default_rng(5), 0, 0
    for number in range(filters):
        name = ("pure", "zcdp", "renyi", "gaussian")[number % 4]
        limit = float(f"{10 ** rng.uniform(-3, 3):.3g}")
        filter = Budget.limited(name, limit, order=8.0 if name == "renyi" else 0.0)
        person, count = IndividualFilter(filter), 40
        whole = next(iter(filter.limits.values()))
        records, paid, forgotten = person.start(count), [Fraction(0)] * count, np.zeros(count)
        for _ in range(30):
            prices = float(whole) * rng.choice([0.01, 0.1, 0.5, 1.0]) * rng.random(count)
            # Some spend all that is left, as far as a double can say it.
            prices = np.where(
                rng.random(count) < 0.2, [float(whole - each) for each in paid], prices
            )
            _, again = person.step(person.start(count), prices=prices)
            forgotten += np.where(again.answer(lambda mask: mask), prices, 0.0)
            records, round = person.step(records, prices=prices)
            active = round.answer(lambda mask: mask)
            for index in range(count):
                after = paid[index] + Fraction(prices[index])
                # A unit is a part in 2^29 of the limit, and each price is rounded up to one.
                fits = after + 31 * whole / 2**29 <= whole
                wrong += bool(active[index]) and after > whole
                wrong += not active[index] and fits
                paid[index] = after if active[index] else paid[index]
        caught += bool(np.any(forgotten > float(whole) * (1 + 1e-9)))
    print(
        f"{filters} filters of 40 records and 30 rounds; {wrong} records treated wrongly; control: {caught} caught"
    )
    return wrong + (not caught)


def _leaves(rng: np.random.Generator, left: list[float], rounds: int) -> list[tuple[float, float]]:
    """The leaves of a random adversary's tree, probability and loss; the last rounds spend all of each budget."""
    if rounds == 0:
        return [(1.0, 0.0)]
    last = rounds <= len(left)
    curator = rounds - 1 if last else int(rng.integers(len(left)))
    size = left[curator] * (1.0 if last else rng.uniform() ** 2)
    after = [amount - size * (each == curator) for each, amount in enumerate(left)]
    more = 1 / (1 + math.exp(-size))
    answers = ((more, size), (1 - more, -size))
    return [
        (chance * p, step + loss)
        for chance, step in answers
        for p, loss in _leaves(rng, after, rounds - 1)
    ]


def curators(games: int) -> int:
    """Curators who do not talk: how many adversaries reach more than the total of their budgets."""
    rng, wrong, largest, caught = np.random.default_rng(6), 0, 0.0, 0
    for _ in range(games):
        count, epsilon = int(rng.integers(2, 5)), float(f"{rng.uniform(0.1, 1.5):.3g}")
        total = Curators(count, filter=Budget(epsilon))
        leaves = _leaves(rng, [epsilon] * count, count + 4)
        for delta in (1e-4, 1e-3, 1e-2):
            end = total.total(delta=delta).epsilon
            reached = sum(p * max(0.0, -math.expm1(end - loss)) for p, loss in leaves)
            wrong += reached > delta * (1 + 1e-9)
            largest = max(largest, reached / delta)
            fewer = Curators(count - 1, filter=Budget(epsilon)).total(delta=delta).epsilon
            above = sum(p * max(0.0, -math.expm1(fewer - loss)) for p, loss in leaves)
            caught += above > delta * (1 + 1e-9)
    print(
        f"{games} adversaries of 2 to 4 curators; {wrong} above the total, at most {largest:.6f} of it; control:"
        f" {caught} caught"
    )
    return wrong + (not caught)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--individual", type=int, default=1000)
    parser.add_argument("--curators", type=int, default=1000)
    parser.add_argument(
        "--charge", nargs=3, help="used by itself: the ledger, the plan and an actor"
    )
    options = parser.parse_args()
    if options.charge:
        charge(options.charge[0], Path(options.charge[1]), options.charge[2])
        return 0
    wrong = processes(options.processes) + individual(options.individual)
    return bool(wrong + curators(options.curators))


if __name__ == "__main__":
    sys.exit(main())
