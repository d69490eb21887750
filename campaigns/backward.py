"""Every filter against every adversary, in balls: `python -m campaigns.backward [--games N] [--start N]`.

A random target, a random menu of promises whose losses lie on a lattice, and every filter that has prices for it. What
the filter may grant is turned into a set of counts, and the worst case of that set is found by backward induction
(`oracles.backward`), which shares nothing with the library. Two controls must be caught: the natural filter, which
grants while the composition so far is within the target, and the menu filter with one state too many.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from dpcompose import BlackBox
from dpcompose.adaptive import (
    AdvancedFilter,
    Budget,
    Filter,
    MenuFilter,
)
from dpcompose.errors import DomainError, UnsupportedError
from oracles.backward import Order, State, fixed, promise, worst
from oracles.ball import ball

MOST_STATES = 150


@dataclass(frozen=True)
class Game:
    """A target and a menu.

    Args:
        spacing: Of the lattice.
        members: The steps on the lattice, and the delta, of each member.
        epsilon: The target.
        delta: The target.
    """

    spacing: Fraction
    members: tuple[tuple[int, Fraction], ...]
    epsilon: Fraction
    delta: Fraction

    @classmethod
    def drawn(cls, seed: int) -> Game:
        rng = random.Random(f"backward {seed}")
        spacing = Fraction(1, rng.choice([3, 4, 6, 8]))
        failing = rng.random() < 0.3
        steps = rng.sample([1, 2, 3, 4, 5, 8], rng.choice([1, 2, 2, 3]))
        members = tuple(
            (each, Fraction(1, 10**5) if failing and rng.random() < 0.6 else Fraction(0))
            for each in steps
        )
        epsilon = spacing * rng.randrange(2, 12) + (
            Fraction(rng.randrange(100), 997) if rng.random() < 0.3 else 0
        )
        return cls(spacing, members, epsilon, Fraction(1, rng.choice([20, 100, 1000, 10**5])))

    def mechanisms(self) -> list[BlackBox]:
        made = [(self.spacing * steps, delta) for steps, delta in self.members]
        return [BlackBox(epsilon, delta=delta) for epsilon, delta in made]  # pyright: ignore[reportArgumentType]

    def orders(self) -> list[list[Order]]:
        return [promise(steps, self.spacing, delta) for steps, delta in self.members]

    def budgets(self) -> list[Budget]:
        """One with the shares by default, and one whose reserve, shares and orders are drawn."""
        rng = random.Random(f"shares of {self}")
        weights = [rng.choice([0, 1, 3, 10]) for _ in range(4)]
        whole = max(sum(weights), 1)
        reserve, *shares = [self.delta * each / whole for each in weights]
        named: dict[str, Any] = dict(zip(("zcdp", "renyi", "gaussian"), shares, strict=True))
        orders = (None, 1 + 10 ** rng.uniform(-0.3, 2), 2.0)[: rng.choice([1, 2, 3])]
        drawn = Budget(self.epsilon, self.delta, reserve=reserve, shares=named, orders=orders)
        only = rng.choice(["pure", "basic", "zcdp", "renyi"])
        return [
            Budget(self.epsilon, self.delta),
            drawn,
            Budget(self.epsilon, self.delta, only=only),
        ]

    def failing(self) -> Game:
        """The same with deltas of the members that a reserve holds a few times."""
        rng = random.Random(f"deltas of {self}")
        return replace(
            self,
            members=tuple(
                (steps, self.delta / rng.choice([20, 50, 150]) if rng.random() < 0.5 else delta)
                for steps, delta in self.members
            ),
        )

    def filters(self) -> list[Filter]:
        """All that there are for the target."""
        kept = self.delta / 10
        made: list[Filter] = [
            *self.budgets(),
            Budget(self.epsilon, self.delta, only="pure"),
            Budget(self.epsilon, self.delta, only="basic"),
            AdvancedFilter(self.epsilon, self.delta, self.delta - kept),
            Budget(self.epsilon, self.delta, reserve=kept, only="zcdp"),
            Budget(self.epsilon, self.delta, only="renyi"),
            Budget(self.epsilon, self.delta, shares={"renyi": self.delta}, orders=(2.0, None)),
        ]
        try:
            return [*made, MenuFilter.for_target(self.mechanisms(), self.epsilon, self.delta)]
        except DomainError:
            return made


@dataclass
class Found:
    """What a campaign found."""

    games: int = 0
    filters: int = 0
    above: list[str] = field(default_factory=list[str])
    nearest: float = 0.0
    natural: int = 0
    too_many: int = 0
    too_many_caught: int = 0


def granted_by(filter: Filter, game: Game) -> set[State] | None:
    """All counts that a filter may reach; None if it has no price, or they are too many to walk."""
    try:
        prices = [filter.price(each) for each in game.mechanisms()]
    except UnsupportedError:
        return None
    found, waiting = set[State](), [(0,) * len(prices)]
    while waiting:
        state = waiting.pop()
        spent = {
            name: sum(n * price[name] for n, price in zip(state, prices, strict=True))
            for name in prices[0]
        }
        if state in found or not any(
            all(spent[each] <= cap for each, cap in caps.items()) for caps in filter.alternatives
        ):
            continue
        found.add(state)
        if len(found) > MOST_STATES:
            return None
        waiting += [
            (*state[:place], state[place] + 1, *state[place + 1 :]) for place in range(len(prices))
        ]
    return found


def worst_of(states: set[State], game: Game) -> arb:
    """The worst case of a set of counts."""

    def granted(state: State, place: int) -> bool:
        return (*state[:place], state[place] + 1, *state[place + 1 :]) in states

    return worst(game.orders(), granted, game.epsilon)


def natural(game: Game) -> set[State]:
    """The counts whose composition, fixed in advance, is within the target."""
    found, waiting, orders = set[State](), [(0,) * len(game.members)], game.orders()
    while waiting and len(found) <= MOST_STATES:
        state = waiting.pop()
        if state not in found and fixed(orders, state, game.epsilon) <= ball(game.delta):
            found.add(state)
            waiting += [
                (*state[:place], state[place] + 1, *state[place + 1 :])
                for place in range(len(state))
            ]
    return found


def play(seed: int, found: Found, *, only_budgets: bool = False) -> None:
    """One game, every filter."""
    with ctx.workprec(256):
        game = Game.drawn(seed)
        if only_budgets:
            game = game.failing()
        _play(seed, game, found, game.budgets() if only_budgets else game.filters())


def _play(seed: int, game: Game, found: Found, filters: Sequence[Filter]) -> None:
    found.games += 1
    delta = ball(game.delta)
    for filter in filters:
        states = granted_by(filter, game)
        if states is None:
            continue
        reached = worst_of(states, game)
        found.filters += 1
        found.nearest = max(found.nearest, float(reached / delta))
        if not reached <= delta * (1 + arb(10) ** -20):  # a tie is a ball around delta
            found.above.append(
                f"game {seed}: {filter!r} reaches {float(reached)}, of {float(delta)}"
            )
        if isinstance(filter, MenuFilter) and filter.states:
            _one_too_many(states, game, found)
    if len(game.members) > 1 and worst_of(natural(game), game) > delta:
        found.natural += 1


def _one_too_many(states: set[State], game: Game, found: Found) -> None:
    """Whether the first state that may be added, with the fewest of the others, exceeds the target."""
    most = max(state[0] for state in states if not any(state[1:]))
    found.too_many += 1
    found.too_many_caught += worst_of(
        states | {(most + 1, *[0] * (len(game.members) - 1))}, game
    ) > ball(game.delta)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--budgets", action="store_true", help="budgets alone")
    given, begun, found = parser.parse_args(), time.monotonic(), Found()
    for seed in range(given.start, given.start + given.games):
        play(seed, found, only_budgets=given.budgets)
    print(
        f"{found.games} menus, {found.filters} filters, every adversary, {time.monotonic() - begun:.0f} s"
    )
    print(
        f"above the target: {len(found.above)}; the nearest reached {100 * found.nearest:.4f} % of delta"
    )
    print("\n".join(found.above))
    print(f"controls: the natural filter exceeds {found.natural} targets;", end=" ")
    print(f"a menu filter with one state too many {found.too_many_caught} of {found.too_many}")
    sys.exit(
        bool(found.above) or not found.natural or found.too_many_caught < 0.95 * found.too_many
    )


if __name__ == "__main__":
    main()
