"""The promise to one person, against every adversary: `python -m campaigns.exposure [--trees N] [--share 1/4]`.

A random ledger and delta. The adversary opens budgets, each in one of several sizes, records that they are open,
charges them with randomized response or with a mechanism that shows the world with some probability, and chooses every
step from the answers so far; at the end of each of its paths it reads the promise for all scopes that it opened for the
person. Of all adversaries who read at most E wherever they end, the best one's delta(E) is found by backward induction
over the histories and the loss so far, which lies on a lattice: it may not exceed delta. Nothing of the library is in
that number but which charges are granted and what is promised. The control reads the promises of ledgers in which the
same openings came first, as if their order did not matter: it must be caught.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from dpcompose import BlackBox, RandomizedResponse
from dpcompose.account import (
    Account,
    exposure,
    fix_budgets,
    open_partition,
    open_scope,
    open_slots,
    take_slot,
)
from dpcompose.adaptive import BasicFilter, ConcentratedFilter, Filter, PureFilter
from dpcompose.errors import DPComposeError
from dpcompose.ledger import Amount, Ledger
from dpcompose.ledger.ledger import Store
from dpcompose.ledger.sqlite import MemoryStore

ADA: dict[str, Any] = {"actor": "Ada"}
Step = tuple[Any, ...]
History = tuple[Step, ...]
MOST_CHARGES, MOST_HISTORIES = 3, 400
ROOM = 1.0 + 1e-12
"""A charge's price is rounded up: a cap has a little more."""


@dataclass(frozen=True)
class Game:
    """The moves that an adversary has.

    Args:
        delta: Of every promise.
        unit: Losses are multiples of it.
        roots: The top-level scope of each budget.
        sizes: For each budget, the filters that it may be opened with, and the charge that each is for: how many units
            randomized response loses, or the probability with which the world is shown.
        below: Where charges fall: in the scope itself, in a child, in a slot, in a child of a partition.
        prices: What was asked before, by path and size of the charge.
        ledgers: What was played before, by history.
    """

    delta: float
    unit: float
    roots: dict[str, str]
    sizes: dict[str, list[tuple[Filter, int | float]]]
    below: dict[str, str]
    prices: dict[tuple[str, int | float], dict[str, Amount]] = field(default_factory=dict)
    ledgers: dict[History, Ledger | None] = field(default_factory=dict)


def drawn(seed: int) -> Game:
    """A random game; the sizes of the second budget promise the same together with the first."""
    rng = np.random.default_rng((19, seed))
    unit, delta = float(rng.uniform(0.1, 0.6)), float(rng.uniform(0.01, 0.15))
    first, second = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    both = _epsilon([first, second], unit, delta)
    alone = _profile([first], unit, both)
    shown = max((delta - alone) / (1.0 - alone), 0.0) * (1.0 - 1e-12)
    sizes: dict[str, list[tuple[Filter, int | float]]] = {
        "a": [(_filter(first * unit, rng), first)],
        "b": [(_filter(second * unit, rng), second), (BasicFilter(0.0, delta=shown * ROOM), shown)],
    }
    if rng.random() < 0.3:
        sizes["c"] = [(_filter(unit, rng), 1)]
    names = list(sizes)
    apart = rng.random() < 0.4
    roots = {name: f"root{place if apart else 0}" for place, name in enumerate(names)}
    below = {
        name: str(rng.choice(["itself", "child", "slot", "ward"], p=[0.55, 0.15, 0.15, 0.15]))
        for name in names
    }
    return Game(delta, unit, roots, sizes, below)


def _filter(epsilon: float, rng: np.random.Generator) -> Filter:
    """A filter that grants one randomized response of that epsilon, and hardly more."""
    kind = int(rng.integers(3))
    if kind == 0:
        return PureFilter(epsilon * ROOM)
    if kind == 1:
        return BasicFilter(epsilon * ROOM, delta=0.0)
    return ConcentratedFilter(epsilon * math.tanh(epsilon / 2.0) * ROOM, delta=0.0)


def _profile(sizes: list[int], unit: float, epsilon: float) -> float:
    """delta(epsilon) of randomized responses that are fixed in advance."""
    masses = {0: 1.0}
    for size in sizes:
        yes = 1.0 / (1.0 + math.exp(-size * unit))
        after: dict[int, float] = {}
        for loss, mass in masses.items():
            for step, share in ((size, yes), (-size, 1.0 - yes)):
                after[loss + step] = after.get(loss + step, 0.0) + mass * share
        masses = after
    return sum(mass * max(-math.expm1(epsilon - loss * unit), 0.0) for loss, mass in masses.items())


def _epsilon(sizes: list[int], unit: float, delta: float) -> float:
    low, high = 0.0, sum(sizes) * unit
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _profile(sizes, unit, middle) > delta else (low, middle)
    return high


def played(game: Game, history: History) -> float | None:
    """Return the promise at the end of a history; infinite if there is none, None if its last step is refused."""
    ledger = _after(game, history)
    if ledger is None:
        return None
    opened = _opened(game, history)
    if not opened:
        return math.inf
    promised = exposure(ledger, paths=opened, delta=game.delta).promised
    return promised.epsilon if promised.available else math.inf


def _opened(game: Game, history: History) -> list[str]:
    return [f"{game.roots[name]}/{name}" for what, name, *_ in history if what == "open"]


def _after(game: Game, history: History) -> Ledger | None:
    """The ledger at the end of a history: that of its beginning, copied, and one step; None if a step is refused."""
    if history not in game.ledgers:
        game.ledgers[history] = _stepped(game, history) if history else _empty(game)
    return game.ledgers[history]


def _empty(game: Game) -> Ledger:
    ledger = Ledger.open("memory:")
    for root in sorted(set(game.roots.values())):
        open_scope(ledger, root, filter=None, **ADA)
    return ledger


def _stepped(game: Game, history: History) -> Ledger | None:
    before = _after(game, history[:-1])
    if before is None:
        return None
    ledger = Ledger(_copied(before.store))
    what, name, *rest = history[-1]
    try:
        if what == "open":
            open_scope(
                ledger, f"{game.roots[name]}/{name}", filter=game.sizes[name][rest[0]][0], **ADA
            )
        elif what == "fix":
            fix_budgets(ledger, paths=_opened(game, history), **ADA)
        else:
            _charge(ledger, game, name, game.sizes[name][rest[0]][1], len(history))
    except DPComposeError:
        return None
    return ledger


def _copied(store: Store) -> MemoryStore:
    """Another store in memory, with the same entries."""
    copy = MemoryStore()
    assert isinstance(store, MemoryStore)
    with store.snapshot():
        store._connection.backup(copy._connection)
    return copy


def _charge(ledger: Ledger, game: Game, name: str, size: int | float, number: int) -> None:
    """Where the person is: in the scope, or somewhere below it."""
    path, below = f"{game.roots[name]}/{name}", game.below[name]
    mechanism = (
        RandomizedResponse(size * game.unit) if isinstance(size, int) else BlackBox(0.0, delta=size)
    )
    if below == "slot":
        inside = (
            PureFilter(size * game.unit) if isinstance(size, int) else BasicFilter(0.0, delta=size)
        )
        open_slots(ledger, f"{path}/slots{number}", slots=1, filter=inside, **ADA)
        path = take_slot(ledger, f"{path}/slots{number}/bob", **ADA).scope
    elif below == "ward":
        open_partition(ledger, f"{path}/wards", **ADA)
        path = open_scope(ledger, f"{path}/wards/north", filter=None, **ADA).scope
    elif below == "child":
        path = open_scope(ledger, f"{path}/child", filter=None, **ADA).scope
    prices = game.prices
    if (path, size) not in prices:
        prices[path, size] = Account(ledger, scope=path).price(mechanism)
    ledger.charge(path, cost=prices[path, size], key=f"charge {number}", **ADA)


def openings_first(history: History) -> History:
    """The same history, as if nothing had been charged before the last budget was open."""
    opened = [step for step in history if step[0] == "open"]
    names = {step[1] for step in opened}
    return (
        *opened,
        *((("fix", ""),) if len(names) > 1 else ()),
        *(step for step in history if step[0] == "charge"),
    )


def continuations(game: Game, history: History) -> list[Step]:
    """The steps that may be next; openings that follow each other are in one order, for it makes no difference."""
    opened = {step[1]: step[2] for step in history if step[0] == "open"}
    charges = sum(step[0] == "charge" for step in history)
    last = history[-1][1] if history and history[-1][0] == "open" else ""
    found: list[Step] = [
        ("open", name, place)
        for name, sizes in game.sizes.items()
        for place in range(len(sizes))
        if name not in opened and name > last
    ]
    if charges < MOST_CHARGES:
        found += [("charge", name, place) for name, place in opened.items()]
    apart = len({game.roots[name] for name in opened}) > 1
    if apart and charges == 0 and history[-1][0] == "open":
        found.append(("fix", ""))
    return found


def worst(game: Game, promises: Callable[[History], float | None]) -> float:
    """The largest delta(E) / delta of all adversaries who read at most E, over all E that can be read."""
    following: dict[History, list[History]] = {}
    waiting: list[History] = [()]
    while waiting and len(following) < MOST_HISTORIES:
        history = waiting.pop(0)
        after = [(*history, step) for step in continuations(game, history)]
        following[history] = [each for each in after if promises(each) is not None]
        waiting += following[history]
    readings = {history: promises(history) for history in following}
    found = 0.0
    for epsilon in sorted(
        {each for each in readings.values() if each is not None and each < math.inf}
    ):
        found = max(found, _best(game, following, readings, epsilon) / game.delta)
    return found


def _best(
    game: Game,
    following: dict[History, list[History]],
    readings: dict[History, float | None],
    epsilon: float,
) -> float:
    """Backward induction: the most of delta(epsilon) that is reached from a history and a loss."""

    @cache
    def reached(history: History, loss: int | None) -> float:
        reading = readings.get(history)
        best = -math.inf
        if reading is not None and reading <= epsilon:
            best = 1.0 if loss is None else max(-math.expm1(epsilon - loss * game.unit), 0.0)
        for after in following.get(history, ()):
            if after[-1][0] != "charge":
                best = max(best, reached(after, loss))
                continue
            size = game.sizes[after[-1][1]][after[-1][2]][1]
            if loss is None:
                best = max(best, reached(after, None))
            elif isinstance(size, int):
                yes = 1.0 / (1.0 + math.exp(-size * game.unit))
                best = max(
                    best,
                    yes * reached(after, loss + size) + (1.0 - yes) * reached(after, loss - size),
                )
            else:
                rest = (1.0 - size) * reached(after, loss)
                best = max(best, rest + size * reached(after, None) if size else rest)
        return best

    return reached((), 0)


def trees(seeds: Sequence[int], *, begun: float | None = None) -> tuple[list[float], list[float]]:
    """The share of delta that the best adversary reaches, in the ledger and in the control, for each tree.

    Args:
        seeds: Of the trees.
        begun: If given, progress is printed with the seconds since then.
    """
    found: list[float] = []
    control: list[float] = []
    for seed in seeds:
        game = drawn(seed)
        read = cache(lambda history, game=game: played(game, history))
        found.append(worst(game, read))
        control.append(worst(game, cache(lambda history, read=read: read(openings_first(history)))))
        if begun is not None and len(found) % 25 == 0:
            said = f"{len(found)} of {len(seeds)} trees, {time.monotonic() - begun:.0f} s, at most {max(found):.6f}"
            print(said, file=sys.stderr, flush=True)
    return found, control


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--share", default="1/1", help="2/4 plays the second of four equal parts")
    given, begun = parser.parse_args(), time.monotonic()
    part, parts = (int(each) for each in given.share.split("/"))
    seeds = range(given.start, given.start + given.trees)[part - 1 :: parts]
    found, control = trees(seeds, begun=begun)
    above, caught = (
        sum(each > 1.0 + 1e-9 for each in found),
        sum(each > 1.0 + 1e-9 for each in control),
    )
    print(f"{len(seeds)} trees, every adversary, {time.monotonic() - begun:.0f} s")
    print(
        f"delta above what is promised: {above} trees; the nearest reached {100.0 * max(found):.4f} % of it"
    )
    print(
        f"control, which forgets the order of openings and charges: {caught} trees, up to {max(control):.3f} of it"
    )
    sys.exit(above > 0 or caught == 0)


if __name__ == "__main__":
    main()
