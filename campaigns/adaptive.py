"""Adversaries that choose every charge from the answers so far and spend all they can, solved exactly.

An adversary is a random binary tree. At each node it asks for a two-answer mechanism, preceded, where the filter
charges a delta, by a coin that shows the world with that probability; the last round spends what is left. Millions
of nodes are walked at once: arrays of shape (adversaries, 2^round). What is left is kept in floats, a hair below.

    python -m campaigns.adaptive --adversaries 100000
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    ConcentratedFilter,
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
)
from dpcompose.guarantee import gaussian, renyi

Reals = NDArray[np.float64]
HAIR, LARGEST = 1e-13, 20.0
LEVELS = (0.1, 0.3, 0.6, 0.8, 1.0, 1.2)


@dataclass(frozen=True)
class Walk:
    """The leaves of all trees: what each adversary sees where no coin showed the world.

    Args:
        probability: Under world 1, of the answers, times that of no coin having shown the world.
        loss: The log likelihood ratio of the leaf.
        shown: The probability, for each adversary, that some coin showed the world.
    """

    probability: Reals
    loss: Reals
    shown: Reals

    def delta(self, epsilon: float) -> Reals:
        """delta(epsilon) of each adversary, the larger of both orders."""
        there = np.sum(self.probability * -np.expm1(np.minimum(epsilon - self.loss, 0.0)), axis=1)
        other = self.probability * np.exp(-self.loss)
        back = np.sum(other * -np.expm1(np.minimum(epsilon + self.loss, 0.0)), axis=1)
        return self.shown + np.maximum(there, back)

    def divergence(self, order: float) -> Reals:
        """The Renyi divergence of an order of each adversary, the larger of both orders; without coins."""
        there = np.sum(self.probability * np.exp((order - 1.0) * self.loss), axis=1)
        back = np.sum(self.probability * np.exp(-order * self.loss), axis=1)
        return np.log(np.maximum(there, back)) / (order - 1.0)


Cost = Callable[[Reals], Reals]
"""The price of a round of size epsilon (or mu) in the first currency; increasing."""


def pure_renyi(order: float) -> Cost:
    def cost(epsilon: Reals) -> Reals:
        return np.log(np.cosh((order - 0.5) * epsilon) / np.cosh(epsilon / 2.0)) / (order - 1.0)

    return cost


def cost_of(filter: Any) -> Cost:
    costs: dict[str, Cost] = {
        "pure": lambda epsilon: epsilon,
        "basic": lambda epsilon: epsilon,
        "advanced": np.square,
        "concentrated": lambda epsilon: epsilon * np.tanh(epsilon / 2.0),
        "renyi": pure_renyi(filter.theorem.order or 2.0),
        "gaussian": np.square,
    }
    return costs[filter.kind]


def largest(cost: Cost, left: Reals) -> Reals:
    """The largest size within what is left, by bisection, a hair below."""
    low, high = np.zeros_like(left), np.full_like(left, LARGEST)
    for _ in range(60):
        middle = (low + high) / 2.0
        fits = cost(middle) <= left
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def walk(
    filter: Filter,
    limits: Mapping[str, float],
    *,
    adversaries: int,
    rounds: int,
    rng: np.random.Generator,
) -> Walk:
    """All trees at once, under the limits given (those of the filter, or others)."""
    currencies = list(limits)
    cost, with_coins = cost_of(filter), "delta" in limits
    left = np.full((adversaries, 1), limits[currencies[0]] * (1 - HAIR))
    coins = np.full((adversaries, 1), limits.get("delta", 0.0) * (1 - HAIR))
    logarithm, loss = np.zeros((adversaries, 1)), np.zeros((adversaries, 1))
    # Some adversaries favor few large rounds, some many small ones, some a coin on one side only.
    taste = rng.uniform(0.0, 1.0, (adversaries, 1)) ** 2
    for round in range(rounds):
        last = round == rounds - 1
        shape = left.shape
        share = np.ones(shape) if last else rng.uniform(0, 1, shape) ** (0.3 + 3 * taste)
        share = np.where(rng.uniform(0, 1, shape) < 0.1, rng.integers(0, 2, shape), share)
        size = largest(cost, left * np.maximum(share, float(last)))
        left = np.maximum(left - cost(size) * (1 + HAIR), 0.0)
        toss = np.zeros(shape)
        if with_coins:
            toss = coins if last else coins * np.where(rng.uniform(0, 1, shape) < 0.3, share, 0.0)
            coins = np.maximum(coins - toss, 0.0)
        one, other = answers(filter, size, rng)
        orientation = np.where(rng.uniform(0, 1, shape) < 0.5, 1.0, -1.0) if round % 2 else 1.0
        ratio = [(np.log(p) - np.log(q)) * orientation for p, q in zip(one, other, strict=True)]
        seen = [np.where(orientation > 0, p, q) for p, q in zip(one, other, strict=True)]
        quiet = np.log1p(-np.minimum(toss, 1.0 - 1e-12))
        logarithm = np.concatenate([logarithm + quiet + np.log(each) for each in seen], axis=1)
        loss = np.concatenate([loss + each for each in ratio], axis=1)
        left, coins = np.concatenate([left] * 2, axis=1), np.concatenate([coins] * 2, axis=1)
    probability = np.exp(logarithm)
    return Walk(probability, loss, 1.0 - np.sum(probability, axis=1))


def answers(
    filter: Filter, size: Reals, rng: np.random.Generator
) -> tuple[tuple[Reals, Reals], tuple[Reals, Reals]]:
    """P(yes), P(no) in both worlds: randomized response, or, for mu, whether Gaussian noise is above a threshold."""
    if filter.kind == "gaussian":
        threshold = ndtri(rng.uniform(0.02, 0.98, size.shape))
        near, far = threshold - size / 2, threshold + size / 2
        return (ndtr(-near), ndtr(near)), (ndtr(-far), ndtr(far))
    high, low = 1.0 / (1.0 + np.exp(-size)), 1.0 / (1.0 + np.exp(size))
    return (high, low), (low, high)


def excess(filter: Filter, seen: Walk) -> Reals:
    """By how much each adversary got more than the guarantee, relative to it; at most about 0 if it holds."""
    if filter.theorem is not None and filter.kind == "renyi":
        return seen.divergence(filter.theorem.order) / float(filter.theorem.limit) - 1.0
    pairs = promises(filter)
    return np.max(
        [(seen.delta(epsilon) - delta) / max(delta, 1e-3) for epsilon, delta in pairs], axis=0
    )


@cache
def promises(filter: Filter) -> list[tuple[float, float]]:
    """Points (epsilon, delta) of the guarantee."""
    points = [scale * _reference(filter) for scale in LEVELS]
    found = [(epsilon, promised(filter, epsilon)) for epsilon in points]
    return [(epsilon, delta) for epsilon, delta in found if delta is not None]


def _reference(filter: Any) -> float:
    """An epsilon to look at, and at multiples of it."""
    if filter.kind in ("concentrated", "gaussian"):
        return float(filter.epsilon_at(delta=float(filter.limits.get("delta", 0.0)) + 1e-2))
    return float(filter.guarantee().epsilon)


def promised(filter: Any, epsilon: float) -> float | None:
    """The delta that the filter promises at an epsilon; None where it says nothing."""
    match filter.kind:
        case "gaussian":
            return gaussian.gaussian_profile(epsilon, mu=float(filter.theorem.limit)).upper
        case "concentrated":
            # The rest keeps the promise: d + (1 - d) delta.
            rest = renyi.concentrated_delta(
                renyi.ConcentratedDP(float(filter.theorem.limit)), epsilon=epsilon
            )
            lost = float(filter.theorem.reserve)
            return lost + (1 - lost) * rest
        case _:
            stated = filter.guarantee()
            return stated.delta if epsilon >= stated.epsilon * (1 - 1e-12) else None


FILTERS: list[Filter] = [
    PureFilter(1.5),
    BasicFilter(1.5, delta=0.05),
    AdvancedFilter(1.5, delta=0.05, slack=0.03),
    AdvancedFilter(4.0, delta=0.3, slack=0.25),
    ConcentratedFilter(0.4, delta=0.02),
    ConcentratedFilter(0.05, delta=0.0),
    RenyiFilter(3.0, budget=0.8),
    RenyiFilter(12.0, budget=0.8),
    GaussianFilter(1.0),
]


def limits_of(filter: Filter) -> dict[str, float]:
    return {currency: float(limit) for currency, limit in filter.limits.items()}


def campaign(
    filter: Filter, *, adversaries: int, rounds: int, seed: int, chunk: int = 4000
) -> float:
    """The largest excess over the guarantee, relative to it."""
    rng, worst = np.random.default_rng(seed), -math.inf
    for start in range(0, adversaries, chunk):
        seen = walk(
            filter,
            limits_of(filter),
            adversaries=min(chunk, adversaries - start),
            rounds=rounds,
            rng=rng,
        )
        worst = max(worst, float(np.max(excess(filter, seen))))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--adversaries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for filter in FILTERS:
        began = time.perf_counter()
        worst = campaign(
            filter, adversaries=options.adversaries, rounds=options.rounds, seed=options.seed
        )
        spent = time.perf_counter() - began
        verdict = "within" if worst <= 1e-9 else "ABOVE ITS GUARANTEE"
        print(
            f"{filter!r}: {options.adversaries} adversaries, {verdict}, reached {1 + worst:.6f} of it, {spent:.1f} s"
        )


if __name__ == "__main__":
    main()
