"""How many answers each budget grants for one target, on the same adaptive runs.

    python -m examples.adaptivity.rounds [--epsilon 1] [--delta 1e-6]

prints the tables of docs/adaptivity.md. A run is a rule that chooses the next mechanism from the last answer; answers
are drawn once, from a fixed seed, so that every budget sees the same run. A run ends at the first refusal.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Collection, Iterator
from functools import cache
from itertools import islice

from dpcompose import BlackBox, DiscreteGaussian, Exponential, Gaussian, Laplace, compose
from dpcompose.adaptive import (
    Budget,
    Filter,
    MenuFilter,
)
from dpcompose.composition import Composable
from dpcompose.errors import UnsupportedError

MOST = 20_000
Run = Iterator[Composable]


def always(mechanism: Composable) -> Callable[[], Run]:
    """The same mechanism again and again: the simplest run there is."""

    def run() -> Run:
        while True:
            yield mechanism

    return run


def zooming() -> Run:
    """Halves the noise after every yes, starts again after a no: an analyst on the trail of something."""
    draws, size = random.Random(1), 1.0
    while True:
        yield Laplace(128.0 / size)
        size = min(2.0 * size, 8.0) if draws.random() < 0.5 else 1.0


def mixed() -> Run:
    """Counts, means and choices as they come, most of them small."""
    draws = random.Random(2)
    kinds = (
        Laplace(100.0),
        Gaussian(100.0),
        Exponential(0.02),
        DiscreteGaussian(80.0),
        Gaussian(50.0),
    )
    while True:
        yield draws.choice(kinds)


RUNS: dict[str, Callable[[], Run]] = {
    "any mechanism of epsilon 1/8": always(BlackBox(1 / 8)),
    "any mechanism of epsilon 1/128": always(BlackBox(1 / 128)),
    "any (1/128, 1e-10) mechanism": always(BlackBox(1 / 128, delta=1e-10)),
    "Laplace noise, zooming in": zooming,
    "Gaussian noise, sigma 50": always(Gaussian(50.0)),
    "Exponential mechanism, 0.05": always(Exponential(0.05)),
    "counts, means and choices": mixed,
    "DP-SGD steps, sigma 2, rate 0.01": always(Gaussian(2.0).sampled(0.01)),
}


def budgets(epsilon: float, delta: float) -> dict[str, Filter]:
    """Those that know nothing of the run; a tenth of delta is kept for charges where one theorem alone charges any."""
    kept = delta / 10
    made: dict[str, Filter] = {"Budget": Budget(epsilon, delta)}
    for only in ("pure", "basic", "zcdp", "renyi", "gaussian"):
        made[only] = Budget(epsilon, delta, only=only, reserve=kept if only == "zcdp" else None)
    return made


def menu(run: Run, *, epsilon: float, delta: float) -> MenuFilter:
    """A menu of what the run may ask, declared beforehand."""
    return MenuFilter.for_target(list(dict.fromkeys(islice(run, MOST))), epsilon, delta)


def granted(name: str, filter: Filter, run: Run, *, delta: float) -> int | None:
    """How many answers before the first refusal; None if the filter cannot price them."""
    state = filter.start()
    named = cache(lambda mechanism: delta_of(name, mechanism, delta))
    for mechanism in islice(run, MOST):
        try:
            after, decision = filter.step(state, mechanism, delta=named(mechanism))
        except UnsupportedError:
            return None
        if not decision.granted:
            return state.granted
        state = after
    return MOST


def delta_of(name: str, mechanism: Composable, delta: float) -> float | None:
    """The delta named for a mechanism that has a whole curve: the thousandth part of the total."""
    priced_as_promise = name in ("basic", "zcdp")
    return delta / 1000 if priced_as_promise and mechanism.approximate() is None else None


def fixed(run: Run, *, epsilon: float, delta: float) -> int:
    """How many answers of the same run fit if all of it had been fixed in advance: no filter, a limit for them all."""
    listed = list(islice(run, MOST))

    def fits(count: int) -> bool:
        whole = compose(*listed[:count])
        rho = whole.zcdp()
        best = min(
            whole.epsilon(delta=delta, tolerance=1e-6).upper,
            rho.epsilon(delta=delta) if rho else float("inf"),
        )
        return best <= epsilon

    low, high = 0, 1
    while high < MOST and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def table(epsilon: float, delta: float, *, runs: Collection[str] = RUNS) -> Iterator[str]:
    """The lines of a Markdown table: one run a line, one budget a column."""
    made = budgets(epsilon, delta)
    yield f"| run | {' | '.join(made)} | Menu | fixed in advance |"
    yield f"|---|{'---|' * (len(made) + 2)}"
    for name, run in ((name, RUNS[name]) for name in runs):
        every = {**made, "menu": menu(run(), epsilon=epsilon, delta=delta)}
        counts = [granted(kind, each, run(), delta=delta) for kind, each in every.items()]
        cells = ["-" if count is None else str(count) for count in counts]
        yield f"| {name} | {' | '.join(cells)} | {fixed(run(), epsilon=epsilon, delta=delta)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    options = parser.parse_args()
    for line in table(options.epsilon, options.delta):
        print(line, flush=True)


if __name__ == "__main__":
    main()
