"""Partitions against every person: `python -m campaigns.fronts [--trees N] [--start N]`.

A random tree of budgets with alternatives (menus, budgets of several theorems), partitions, children, slots and
schedules, some opened after charges. Every person is tried: one child of each partition. A charge must be granted if,
and only if, what each of them has then met below every budget above it is within one of its sets of limits; how many
more of it fit is counted the same way; and what `exposure` says was spent may not be below the worst person's sum.
Nothing of the library is in these sums but prices and limits. Then the same with three sums kept instead of 64, so that
nearly all are put together: what fits may be refused there, but nothing is granted that does not fit, and the room says
what a charge does. The controls let every partition be judged by itself, as if nobody were in two of them, and keep the
first of the sums that are put together: they must be caught.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any
from unittest.mock import patch

from dpcompose import BlackBox, Gaussian
from dpcompose.account import Account, exposure, open_partition, open_scope, open_slots, take_slot
from dpcompose.adaptive import Budget, Filter, MenuFilter, known_pure
from dpcompose.errors import DPComposeError, OverdrawnError
from dpcompose.ledger import Kind, Ledger
from dpcompose.ledger.front import MOST_VECTORS, Front, maximal

SMALL, MIDDLE, LARGE = BlackBox(0.02), BlackBox(0.05), BlackBox(0.08)
MENUS = (
    ((SMALL, MIDDLE), ((16, 0), (12, 2), (8, 4), (4, 6), (0, 8))),
    ((SMALL, LARGE), ((14, 0), (7, 2), (3, 6))),
    ((SMALL, MIDDLE, LARGE), ((12, 0, 0), (4, 6, 0), (2, 2, 2), (0, 0, 6))),
)
MOST_PERSONS, STEPS, FEW = 300, 60, 3
ADA: dict[str, Any] = {"actor": "Ada"}


@cache
def filters() -> list[tuple[Filter, tuple[Any, ...]]]:
    """Budgets, and what is asked of them."""
    menus: list[tuple[Filter, tuple[Any, ...]]] = [
        (MenuFilter(members, epsilon=1, delta=1e-6, states=states), members)  # type: ignore[arg-type]
        for members, states in MENUS
    ]
    asked = (BlackBox(0.15), BlackBox(0.4), Gaussian(8.0), Gaussian(20.0))
    return [*menus, (Budget(1, 1e-6), asked), (Budget(0.6, 1e-5), (*asked, BlackBox(0.05)))]


@dataclass
class Tree:
    """What was opened and granted below one budget.

    Args:
        draw: Where chance comes from.
        ledger: Where it is.
        kinds: The kind of each scope, by path.
        spent: What was charged, by path, in units; the opening of slots is charged to them.
        pure: The sum of the epsilons of what was charged, by path.
    """

    draw: random.Random
    ledger: Ledger
    kinds: dict[str, Kind] = field(default_factory=dict)
    spent: dict[str, list[Mapping[str, int]]] = field(default_factory=dict)
    pure: dict[str, Fraction] = field(default_factory=dict)

    def persons(self) -> Iterator[dict[str, str]]:
        """Everybody: a child of each partition that has one."""
        below = {
            path: [each for each in self.kinds if each.rpartition("/")[0] == path]
            for path, kind in self.kinds.items()
            if kind is Kind.PARTITION
        }
        parting = {path: own for path, own in below.items() if own}
        for chosen in itertools.product(*parting.values()):
            yield dict(zip(parting, chosen, strict=True))

    def meets(self, person: dict[str, str], path: str) -> bool:
        """Whether what is charged in a scope is about a person."""
        above = [path[:place] for place, letter in enumerate(path) if letter == "/"]
        ways = zip(above, [*above[1:], path], strict=True)
        return all(person.get(parent, child) == child for parent, child in ways)

    def reaches(self, path: str, top: str) -> bool:
        """Whether what is charged in a scope counts in one above it, or in itself."""
        if path != top and not path.startswith(f"{top}/"):
            return False
        between = [path[:n] for n in range(len(top), len(path)) if path[n] == "/"]
        return not any(self.kinds[each] is Kind.SLOTS for each in between)

    def sums(self, person: dict[str, str], top: str) -> dict[str, int]:
        """What a person met in a scope and below it."""
        total = dict.fromkeys(self.ledger.balance(top).spent, 0)
        for path, costs in self.spent.items():
            if self.reaches(path, top) and self.meets(person, path):
                for cost in costs:
                    total = {name: units + cost[name] for name, units in total.items()}
        return total

    def fits(self, path: str, cost: Mapping[str, int], most: int) -> int:
        """How many charges are within the limits of every budget above, for every person; at most so many."""
        persons = list(self.persons())
        tops = [path[:n] for n in range(len(path)) if path[n] == "/"] + [path]
        for top in (each for each in tops if self.reaches(path, each)):
            scope = self.ledger.balance(top).scope
            sets = scope.alternatives or (scope.caps.units,)
            if not scope.caps:
                continue
            for person in persons:
                times = most if self.meets(person, path) else 0
                total = self.sums(person, top)
                while times and not any(
                    all(total[name] + times * cost[name] <= cap for name, cap in caps.items())
                    for caps in sets
                ):
                    times -= 1
                most = min(most, times) if self.meets(person, path) else most
        return most


def grown(seed: int, *, kept: int = MOST_VECTORS) -> Iterator[str]:
    """Grow a tree; what was decided otherwise than by trying every person, in words.

    Args:
        seed: Of the draws.
        kept: How many sums are kept apart; with fewer than the library keeps, what fits may be refused.
    """
    with patch("dpcompose.ledger.front.MOST_VECTORS", kept):
        yield from _grown(seed, exact=kept == MOST_VECTORS)


def _grown(seed: int, *, exact: bool) -> Iterator[str]:
    draw = random.Random(seed)
    tree = Tree(draw, Ledger.open("memory:"))
    filter, asked = draw.choice(filters())
    open_scope(tree.ledger, "w", filter=None, **ADA)
    open_scope(tree.ledger, "w/b", filter=filter, **ADA)
    tree.kinds |= {"w": Kind.FILTER, "w/b": Kind.FILTER}
    for number in range(STEPS):
        if draw.random() < (0.8 if number < 10 else 0.12):
            _opened(tree, f"n{number}", filter, asked)
            continue
        path = draw.choice([path for path, kind in tree.kinds.items() if kind is Kind.FILTER][1:])
        yield from _charged(tree, path, draw.choice(asked), str(number), exact=exact)
    yield from _exposed(tree)
    tree.ledger.verify()


def _opened(tree: Tree, name: str, filter: Filter, asked: tuple[Any, ...]) -> None:
    draw, ledger = tree.draw, tree.ledger
    open_ones = [path for path in tree.kinds if path != "w" and path.count("/") < 5]
    parting = [path for path, kind in tree.kinds.items() if kind is Kind.PARTITION]
    parent = draw.choice([*open_ones, *parting, *parting, "w/b"])
    path, above = f"{parent}/{name}", tree.kinds[parent]
    with suppress(DPComposeError):  # full slots, slots under a menu, a schedule without a budget
        if above is Kind.SLOTS:
            take_slot(ledger, path, **ADA)
            kind = Kind.FILTER
        elif draw.random() < 0.5 and above is not Kind.PARTITION:
            open_partition(ledger, path, filter=filter if draw.random() < 0.15 else None, **ADA)
            kind = Kind.PARTITION
        elif draw.random() < 0.1:
            open_slots(ledger, path, slots=2, filter=Budget(0.1, 0, only="pure"), **ADA)
            kind = Kind.SLOTS
            tree.spent[path] = [ledger.balance(path).spent.units]
        else:
            own = filter if draw.random() < 0.15 else None
            schedule = [(draw.choice(asked), 2)] if own is not None and draw.random() < 0.5 else []
            open_scope(ledger, path, filter=own, schedule=schedule, **ADA)
            kind = Kind.FILTER
        tree.kinds[path] = kind
        if sum(1 for _ in tree.persons()) > MOST_PERSONS:
            del tree.kinds[path]  # nothing more happens there


def _charged(tree: Tree, path: str, mechanism: Any, key: str, *, exact: bool) -> Iterator[str]:
    account = Account(tree.ledger, scope=path)
    schedule = account.chain[-1].schedule
    if schedule:
        mechanism = account.chain[-1].committed(1)[0][0]
    try:
        cost = account.price(mechanism)
    except DPComposeError:
        return
    units = {name: amount.units for name, amount in cost.items()}
    expected, room = tree.fits(path, units, 12), account.room(cost)
    if min(room, 12) > expected or (exact and room < expected):
        yield f"room for {room} of {mechanism} in {path}, and {expected} fit"
    try:
        account.charge(mechanism, key=key, **ADA)
        granted = True
    except OverdrawnError:
        granted = False
    except DPComposeError:  # the end of a schedule
        return
    if granted is not (room > 0) or granted > expected:
        decided = "granted" if granted else "refused"
        yield f"{mechanism} in {path} was {decided}, there was room for {room}, and {expected} fit"
    if granted:
        tree.spent.setdefault(path, []).append(units)
        pure = known_pure(mechanism, adjacency=account.adjacency)
        known = tree.pure.get(path, Fraction(0))
        tree.pure[path] = known + Fraction(pure or 10**6)


def _exposed(tree: Tree) -> Iterator[str]:
    """Whether `exposure` says less than a person's sum, of those who met pure mechanisms alone."""
    spent = exposure(tree.ledger, paths=["w"], delta=1e-6).spent
    if not spent.available or sum(tree.pure.values(), Fraction(0)) >= 10**6:
        return
    worst = max(
        sum((pure for path, pure in tree.pure.items() if tree.meets(person, path)), Fraction(0))
        for person in tree.persons()
    )
    if Fraction(spent.epsilon) < worst:
        yield f"exposure says {spent.epsilon}, and somebody met {float(worst)}"


def apart(add: Callable[[Front, Front], Front], fronts: Iterable[Front], own: Front) -> Front:
    """The defect: what was spent in each partition by itself, as if nobody were in two of them."""
    return maximal([each for front in fronts for each in add(own, front)] or own, own[0])


def first(amounts: Iterable[int]) -> int:
    """The defect: the first amount in the place of the largest."""
    return next(iter(amounts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    seeds = range(options.start, options.start + options.trees)
    wrong = {seed: found for seed in seeds if (found := list(grown(seed)))}
    for seed, found in wrong.items():
        print(f"tree {seed}: {found[0]}", flush=True)
    few = {seed: found for seed in seeds if (found := list(grown(seed, kept=FEW)))}
    for seed, found in few.items():
        print(f"tree {seed}, {FEW} sums kept: {found[0]}", flush=True)
    with patch("dpcompose.ledger.scope.reduce", apart):
        caught = [seed for seed in seeds[:200] if list(grown(seed))]
    with patch("dpcompose.ledger.front.max", first, create=True):
        below = [seed for seed in seeds[:200] if list(grown(seed, kept=FEW))]
    print(f"{len(seeds)} trees, every person: {len(wrong)} with another decision")
    print(f"the same with {FEW} sums kept: {len(few)} with a charge that does not fit")
    tried = len(seeds[:200])
    print(f"control, which judges each partition by itself: {len(caught)} of {tried} caught")
    print(f"control, which keeps the first of several sums: {len(below)} of {tried} caught")
    return 1 if wrong or few or not caught or not below else 0


if __name__ == "__main__":
    sys.exit(main())
