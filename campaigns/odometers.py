"""Every odometer against every adversary, in balls: `python -m campaigns.odometers [--games N] [--start N]`.

A random odometer and a random menu of promises whose losses lie on a lattice. The reading is fixed by how often each
was asked, so the probability that the loss is ever above it is a backward induction (`oracles.backward.ever`), the
largest over every adversary, exactly. The control reads a normal quantile at each time, as if there were only one.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from flint import arb, ctx

from dpcompose import BlackBox
from dpcompose.adaptive import Line, Mileage, Mixture, Odometer
from oracles.backward import State, ever, promise
from oracles.ball import ball

ROUNDS = 14
ONE_TIME = 1.645
"""The normal quantile at 0.05."""


@dataclass(frozen=True)
class Ride:
    """An odometer and a menu.

    Args:
        odometer: The odometer.
        spacing: Of the lattice.
        members: The steps on the lattice, and the delta, of each member.
        rounds: The most answers.
    """

    odometer: Odometer
    spacing: Fraction
    members: tuple[tuple[int, Fraction], ...]
    rounds: int = ROUNDS

    @classmethod
    def drawn(cls, seed: int) -> Ride:
        rng = random.Random(f"odometers {seed}")
        delta, kept = rng.choice([0.5, 0.2, 0.05, 0.01]), 0.0
        steps = rng.sample([1, 2, 3, 4, 6], rng.choice([1, 2, 2]))
        failing = rng.random() < 0.4
        members = tuple(
            (each, Fraction(delta / 1000) if failing and rng.random() < 0.7 else Fraction(0))
            for each in steps
        )
        if failing:
            kept = delta / 2
        boundary = rng.choice([Line, Mixture])(10 ** rng.uniform(-2, 1))
        spacing = Fraction(1, rng.choice([2, 4, 8, 16]))
        return cls(Odometer(delta, boundary=boundary, mechanism_delta=kept), spacing, members)

    def reached(self, *, one_time: bool = False) -> arb:
        """The largest probability that the loss is ever above the reading."""
        mileages = [
            self.odometer.mileage(BlackBox(self.spacing * steps, delta=delta))  # pyright: ignore[reportArgumentType]
            for steps, delta in self.members
        ]

        @cache
        def reading(state: State) -> Fraction:
            spent = sum(
                (each for each, count in zip(mileages, state, strict=True) for _ in range(count)),
                Mileage(),
            )
            rho = float(spent.rho)
            found = (
                rho + ONE_TIME * (2 * rho) ** 0.5 if one_time else self.odometer.read(spent).epsilon
            )
            return Fraction(found)

        def above(state: State, key: State) -> bool:
            return key[0] * self.spacing > reading(state)

        menu = [promise(steps, self.spacing, delta) for steps, delta in self.members]
        return ever(menu, above, self.rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", type=int, default=300)
    parser.add_argument("--start", type=int, default=0)
    given, begun, above, nearest, caught = parser.parse_args(), time.monotonic(), 0, 0.0, 0
    with ctx.workprec(256):
        for seed in range(given.start, given.start + given.games):
            ride = Ride.drawn(seed)
            share = ride.reached() / ball(Fraction(ride.odometer.delta))
            nearest = max(nearest, float(share))
            if not share <= 1:
                above += 1
                print(
                    f"game {seed}: {ride.odometer!r} is exceeded with {float(share)} of its delta"
                )
            if ride.odometer.delta <= 0.05:
                caught += ride.reached(one_time=True) > ball(Fraction(1, 20))
    print(f"{given.games} odometers, every adversary, {time.monotonic() - begun:.0f} s")
    print(f"above delta: {above}; the nearest reached {100 * nearest:.2f} % of delta")
    print(f"control: a quantile at one time is exceeded too often in {caught} games")
    sys.exit(bool(above) or not caught)


if __name__ == "__main__":
    main()
