"""Filters against every adversary who turns pairs: `python -m campaigns.turned [--games N] [--start N]`.

A random filter, adjacency, and menu of mechanisms with finitely many answers: randomized responses, samples, pairs of
atoms, mechanisms with a delta, and compositions of these that are charged as one. The adversary charges what the filter
grants, and orients every pair, also those inside a composition, after the answers so far. The largest delta of all of
them is found by backward induction over the histories; it may not exceed what the filter says. Nothing of the library
is in that number but prices and grants. The control prices compositions for one orientation: it must be caught.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose import Adjacency, BlackBox, Orientation, RandomizedResponse, compose
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    ConcentratedFilter,
    Filter,
    PureFilter,
    RenyiFilter,
)
from dpcompose.composition import Composable
from dpcompose.errors import UnsupportedError
from dpcompose.mechanisms import DominatingPair

Pair = tuple[tuple[float, ...], tuple[float, ...]]
Prices = Mapping[str, Fraction]
DELTAS = (0.001, 0.01, 0.05, 0.2)
MOST_MEMBERS = 4
"""Of all charges on one path: the tree of histories is walked."""


@dataclass(frozen=True)
class Item:
    """A mechanism that may be charged.

    Args:
        mechanism: As the library knows it.
        pairs: The answers of its members, with the record and without it.
        delta: Named in the request; None if none is.
    """

    mechanism: Composable
    pairs: tuple[Pair, ...]
    delta: float | None


def drawn(seed: int) -> tuple[str, Adjacency, list[Item], np.random.Generator]:
    """The kind of a filter, the adjacency and the menu of a random game."""
    rng = np.random.default_rng((23, seed))
    kind = str(rng.choice(["pure", "basic", "basic", "advanced", "concentrated", "renyi"]))
    adjacency = list(Adjacency)[rng.integers(3)]
    menu: list[Item] = []
    for _ in range(int(rng.integers(1, 3))):
        members = [_member(rng, adjacency, kind) for _ in range(int(rng.choice([1, 2, 2, 3])))]
        named = float(rng.choice([0.003, 0.02, 0.1])) if rng.random() < 0.6 else None
        pairs = tuple(pair for _, pair in members)
        menu.append(Item(compose(*[mechanism for mechanism, _ in members]), pairs, named))
    return kind, adjacency, menu, rng


def _member(rng: np.random.Generator, adjacency: Adjacency, kind: str) -> tuple[Composable, Pair]:
    epsilon = round(float(rng.uniform(0.1, 1.2)), 3)
    yes, rate = 1 / (1 + math.exp(-epsilon)), float(rng.choice([0.05, 0.1, 0.3, 0.7]))
    which = int(rng.integers(4))
    if which == 0:
        return RandomizedResponse(epsilon, holds_under=adjacency), ((yes, 1 - yes), (1 - yes, yes))
    if which == 1 and kind not in ("pure", "renyi"):
        lost = float(rng.choice([0.001, 0.01, 0.1]))
        kept = 1 - lost
        pair = (lost, kept * yes, kept * (1 - yes), 0.0), (0.0, kept * (1 - yes), kept * yes, lost)
        return BlackBox(epsilon, delta=lost, holds_under=adjacency), pair
    if which == 2 and adjacency is not Adjacency.REPLACE:
        mixed = rate * yes + (1 - rate) * (1 - yes)
        pair = (mixed, 1 - mixed), (1 - yes, yes)
        return RandomizedResponse(epsilon, holds_under=adjacency).sampled(rate), pair
    upper, lower = (
        tuple(float(each) / 64 for each in rng.multinomial(61, [1 / 3] * 3) + 1) for _ in range(2)
    )
    return DominatingPair.atoms(upper=list(upper), lower=list(lower), adjacency=adjacency), (
        upper,
        lower,
    )


def filter_for(kind: str, prices: list[tuple[Fraction, ...]], rng: np.random.Generator) -> Filter:
    """One that grants a few of these prices, and hardly more."""
    chosen = [prices[place] for place in rng.integers(len(prices), size=int(rng.integers(1, 4)))]
    sums = [sum(each, Fraction(0)) for each in zip(*chosen, strict=True)]
    match kind:
        case "pure":
            return PureFilter(sums[0])
        case "basic":
            return BasicFilter(sums[0], delta=min(sums[1], Fraction(1)))
        case "advanced":
            lost = min(sums[1], Fraction(9, 10))
            cap, slack = math.sqrt(sums[0] * 2), 0.01
            target = math.sqrt(2 * math.log(1 / slack)) * cap + cap * cap
            return AdvancedFilter(Fraction(target), delta=lost + Fraction(slack), slack=slack)
        case "concentrated":
            return ConcentratedFilter(sums[0], delta=min(sums[1], Fraction(1)))
        case _:
            return RenyiFilter(_order(rng), budget=sums[0])


def _order(rng: np.random.Generator) -> float:
    return float(rng.choice([2.0, 4.0, 16.0]))


def asked(
    kind: str, item: Item, adjacency: Adjacency, *, free: bool, order: float
) -> Prices | None:
    """The price of an item; of the control, for one orientation of all its pairs."""
    priced: dict[str, Any] = {
        "pure": PureFilter(9.0),
        "basic": BasicFilter(9.0, delta=1.0),
        "advanced": AdvancedFilter(9.0, delta=1.0, slack=0.01),
        "concentrated": ConcentratedFilter(9.0, delta=1.0),
        "renyi": RenyiFilter(order, budget=9.0),
    }
    try:
        if free or kind not in ("basic", "renyi"):
            return priced[kind].price(item.mechanism, delta=item.delta, adjacency=adjacency)
        if kind == "renyi":
            found = item.mechanism.renyi(order, adjacency=adjacency, orientation=Orientation.SAME)
            return {next(iter(priced[kind].limits)): Fraction(found.upper)}
        if item.delta is None:
            return priced[kind].price(item.mechanism, adjacency=adjacency)
        same = item.mechanism.epsilon(
            delta=item.delta, adjacency=adjacency, orientation=Orientation.SAME
        )
        return (
            {"epsilon": Fraction(same.upper), "delta": Fraction(item.delta)}
            if math.isfinite(same.upper)
            else None
        )
    except UnsupportedError:
        return None


def worst(seed: int, *, free: bool = True) -> float | None:
    """The largest delta of all adversaries over what the filter says, over some deltas; None if nothing is priced."""
    kind, adjacency, menu, rng = drawn(seed)
    order = _order(np.random.default_rng((29, seed)))
    found = [(item, asked(kind, item, adjacency, free=free, order=order)) for item in menu]
    known = [(item.pairs, tuple(price.values())) for item, price in found if price is not None]
    if not known:
        return None
    filter = filter_for(kind, [price for _, price in known], rng)
    if kind == "renyi":
        filter = RenyiFilter(order, budget=filter.limits.popitem()[1])
    limits = tuple(filter.limits.values())
    points = [(delta, filter.epsilon_at(delta=delta)) for delta in (*DELTAS, *_own(filter))]
    points = [(delta, epsilon) for delta, epsilon in points if math.isfinite(epsilon) and delta > 0]
    if not points:
        return None
    ratios = np.exp(np.array([epsilon for _, epsilon in points]))
    reached = _reached([(pairs, price) for pairs, price in known], limits, ratios)
    return max(float(each) / delta for each, (delta, _) in zip(reached, points, strict=True))


def _own(filter: Filter) -> tuple[float, ...]:
    """The delta of its own promise."""
    promise = filter.promise()
    return () if promise is None or not promise.delta else (promise.delta,)


def _reached(
    menu: list[tuple[tuple[Pair, ...], tuple[Fraction, ...]]],
    limits: tuple[Fraction, ...],
    ratios: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Backward induction over charges, answers and orientations: delta at each of the ratios e^epsilon."""

    @cache
    def after(
        left: tuple[Fraction, ...], members: int, waiting: tuple[Pair, ...], p: float, q: float
    ) -> Any:
        best = np.maximum(p - ratios * q, 0.0)
        if waiting:
            one, other = waiting[0]
            for first, second in ((one, other), (other, one)):
                answers = [
                    after(left, members, waiting[1:], _round(p * a), _round(q * b))
                    for a, b in zip(first, second, strict=True)
                    if a or b
                ]
                best = np.maximum(best, np.sum(answers, axis=0))
        else:
            for pairs, price in menu:
                rest = tuple(have - cost for have, cost in zip(left, price, strict=True))
                if min(rest) >= 0 and members >= len(pairs):
                    best = np.maximum(best, after(rest, members - len(pairs), pairs, p, q))
        return best

    return after(limits, MOST_MEMBERS, (), 1.0, 1.0)


def _round(mass: float) -> float:
    """To thirteen digits, so that what is the same is found again."""
    return float(f"{mass:.13e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--games", type=int, default=300)
    parser.add_argument("--start", type=int, default=0)
    given, begun = parser.parse_args(), time.monotonic()
    seeds = range(given.start, given.start + given.games)
    found = [each for each in map(worst, seeds) if each is not None]
    turned = [seed for seed in seeds if drawn(seed)[0] in ("basic", "renyi")]
    control = [each for each in (worst(seed, free=False) for seed in turned) if each is not None]
    above, caught = (sum(each > 1.0 + 1e-9 for each in shares) for shares in (found, control))
    print(f"{len(found)} filters, every adversary, {time.monotonic() - begun:.0f} s")
    print(
        f"delta above what the filter says: {above}; the nearest reached {100.0 * max(found):.4f} % of it"
    )
    print(
        f"control, which prices one orientation: {caught} filters, up to {max(control):.3f} of it"
    )
    sys.exit(above > 0 or caught == 0)


if __name__ == "__main__":
    main()
