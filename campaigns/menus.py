"""Random menus: none grants less than a `Budget` of the same target does, and none takes long to open.

    python -m campaigns.menus --menus 300 --seed 1

Menus of one to four unlike members (promises with and without delta, randomized response, Laplace and Gaussian noise,
sampled or not) at random targets. Every state that the budget grants must be granted by the menu: all of them where
they are few, else the last ones on random rays. Times are of the processor. Exit status 1 if one is not.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction

from dpcompose import BlackBox, Gaussian, Laplace, RandomizedResponse
from dpcompose.adaptive import Budget, Filter, MenuFilter
from dpcompose.adaptive.menu_search import reached
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, UnsupportedError

State = tuple[int, ...]
FEW, RAYS = 4000, 20


def member(rng: random.Random) -> Composable:
    """A small mechanism of any kind that a menu may have."""

    def number(low: float, high: float) -> float:
        return round(10 ** rng.uniform(low, high), 3)

    kinds: list[Callable[[], Composable]] = [
        lambda: BlackBox(number(-2, -0.3), delta=rng.choice([0, 1e-6, 1e-7, 1e-8])),
        lambda: RandomizedResponse(number(-2, 0)),
        lambda: RandomizedResponse(number(-1, 0)).sampled(rng.choice([0.1, 0.01, 0.5])),
        lambda: Laplace(number(0, 2)),
        lambda: Gaussian(number(0.3, 2)),
        lambda: Gaussian(number(0, 1)).sampled(rng.choice([0.1, 0.01, 0.001])),
        lambda: Laplace(number(0, 1)).sampled(rng.choice([0.1, 0.01])),
    ]
    return rng.choice(kinds)()


def granting(filter: Filter, menu: Sequence[Composable]) -> Callable[[Sequence[int]], bool]:
    """Whether the filter grants these counts of the members, in any order."""
    prices = [filter.price(each) for each in menu]

    def inside(state: Sequence[int]) -> bool:
        return any(
            all(
                sum((n * price[name] for n, price in zip(state, prices, strict=True)), Fraction(0))
                <= cap
                for name, cap in caps.items()
            )
            for caps in filter.alternatives
        )

    return inside


def states(inside: Callable[[Sequence[int]], bool], members: int, rng: random.Random) -> set[State]:
    """All states of a down-closed set, or the last ones on random rays where they are many."""
    few = reached(members, inside, limit=FEW)
    if few is not None:
        return few
    ends = set[State]()
    for _ in range(RAYS):
        ray = [rng.random() for _ in range(members)]

        def at(factor: float, ray: Sequence[float] = ray) -> State:
            return tuple(int(factor * each) for each in ray)

        low, high = 0.0, 1.0
        while inside(at(high)):
            high *= 2
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if inside(at(middle)) else (low, middle)
        ends.add(at(low))
    return ends


def run(menus: int, *, seed: int = 0) -> tuple[int, list[str], float]:
    """How many menus opened, those that grant less than their budget, and the seconds of the slowest opening."""
    rng, opened, found, slowest = random.Random(seed), 0, list[str](), 0.0
    for _ in range(menus):
        menu = [member(rng) for _ in range(rng.randint(1, 4))]
        epsilon, delta = rng.choice([0.3, 0.5, 1, 1.5, 3]), rng.choice([1e-4, 1e-5, 1e-6, 1e-8])
        begun = time.process_time()
        try:
            filter = MenuFilter.for_target(menu, epsilon, delta)
            budget = granting(Budget(epsilon, delta), menu)
        except (DomainError, UnsupportedError):
            continue
        slowest, opened = max(slowest, time.process_time() - begun), opened + 1
        granted = granting(filter, menu)
        lost = [state for state in states(budget, len(menu), rng) if not granted(state)]
        found += [f"{menu} at ({epsilon}, {delta}): {lost[:2]}"] if lost else []
    return opened, found, slowest


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--menus", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    opened, found, slowest = run(asked.menus, seed=asked.seed)
    print(
        f"{asked.menus} menus, {opened} opened, the slowest in {slowest:.1f} s; {len(found)} below their budget"
    )
    print("\n".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
