"""`python -m benchmarks.potential [--epsilon 1] [--delta 1e-6]`: would a Gaussian potential grant more than the union?

A measurement in doubles, no certificate. A potential filter keeps U(s, a), the worst delta that is left to the
adversary, and grants a mechanism from s to s' where E_P U(s', a Q / P) <= U(s, a) for all a and both orders of its
pair. Here U(v, .) is the profile of Gaussian privacy with mu^2 = v, and a reserve r is never spent: the price of a
mechanism is the least x with which the condition holds at every v from r to the whole, so prices add up and are fixed
beforehand. The best reserve is taken of each run, found with hindsight. Printed beside what `Budget` and
`MenuFilter` grant on the runs of docs/adaptivity.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from dpcompose import BlackBox, DiscreteGaussian, Exponential, Gaussian, Laplace
from dpcompose.adaptive import Budget
from dpcompose.composition import Composable
from dpcompose.composition.composition import Sampled
from examples.adaptivity.rounds import MOST, RUNS, Run, granted, menu

Array = NDArray[np.float64]
Losses = tuple[Array, Array]
"""The losses ln P/Q of one order, and their probabilities under P."""


def left(log_ratio: Array, v: float) -> Array:
    """U(v, e^log_ratio): the delta of Gaussian privacy with mu^2 = v."""
    mu = math.sqrt(v)
    return ndtr(-log_ratio / mu + mu / 2) - np.exp(log_ratio + log_ndtr(-log_ratio / mu - mu / 2))


def orders(mechanism: Composable) -> list[Losses]:
    """Both orders of a dominating pair, on a grid."""
    match mechanism:
        case BlackBox(stated=promise) if promise.delta == 0:
            return [two_points(promise.epsilon)]
        case Exponential(stated=epsilon):
            # Of bounded range: the least favorable of them, on a grid of where the range lies.
            return [ranged(epsilon, at) for at in np.linspace(0.05, 0.95, 19)]
        case Laplace():
            return [laplace(mechanism.sensitivity / mechanism.scale)]
        case Gaussian():
            return [gaussian(mechanism.sensitivity / mechanism.sigma)]
        case DiscreteGaussian():
            return [gaussian(1 / mechanism.sigma)]
        case Sampled(base=base, rate=rate):
            inner = base.parts[0][0]
            assert isinstance(inner, Gaussian)
            return sampled(inner.sigma, rate)
        case _:
            raise ValueError(f"{mechanism!r} has no grid here")


def two_points(epsilon: float) -> Losses:
    likely = 1 / (1 + math.exp(-epsilon))
    return np.array([epsilon, -epsilon]), np.array([likely, 1 - likely])


def ranged(epsilon: float, at: float) -> Losses:
    """Losses at * epsilon and (at - 1) * epsilon."""
    high, low = at * epsilon, (at - 1) * epsilon
    likely = math.expm1(-low) / (math.exp(-low) - math.exp(-high))
    return np.array([high, low]), np.array([likely, 1 - likely])


def laplace(shift: float) -> Losses:
    nodes, weights = np.polynomial.legendre.leggauss(40)
    inside, masses = (nodes + 1) * shift / 2, weights * shift / 2
    losses = np.concatenate([[shift, -shift], shift - 2 * inside])
    return losses, np.concatenate([[0.5, math.exp(-shift) / 2], masses * np.exp(-inside) / 2])


def gaussian(mu: float) -> Losses:
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return mu * nodes + mu * mu / 2, weights / weights.sum()


def sampled(sigma: float, rate: float) -> list[Losses]:
    outputs = np.linspace(-12 * sigma, 12 * sigma + 1, 4001)
    without = np.exp(-((outputs / sigma) ** 2) / 2)
    without /= without.sum()
    losses = np.log1p(rate * np.expm1((outputs - 0.5) / sigma**2))
    return [(losses, without * np.exp(losses)), (-losses, without)]


def price(pairs: list[Losses], reserve: float, whole: float) -> float:
    """The least x that is enough from every v between the reserve and the whole; inf where none is."""
    return max(
        needed(losses, v) for losses in pairs for v in np.geomspace(reserve * 1.001, whole, 8)
    )


def needed(losses: Losses, v: float) -> float:
    """The least x with E_P U(v - x, a Q / P) <= U(v, a) on a grid of a."""
    at = np.linspace(-7 * math.sqrt(v), 7 * math.sqrt(v), 300)
    now = left(at, v) * (1 + 1e-7) + 1e-14
    values, masses = losses

    def enough(x: float) -> bool:
        return bool(
            np.all((masses[:, None] * left(at - values[:, None], v - x)).sum(axis=0) <= now)
        )

    second = float(masses @ values**2)
    low, high = 0.5 * second, min(6 * second, 0.999 * v)
    if not (high > low and enough(high)):
        return math.inf
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def most(run: Callable[[], Run], whole: float) -> int | None:
    """How many answers the best reserve grants; None if a mechanism of the run has no price."""
    listed = list(islice(run(), MOST))
    try:
        pairs = {mechanism: orders(mechanism) for mechanism in dict.fromkeys(listed)}
    except ValueError:
        return None
    best = 0
    for part in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4):
        reserve = part * whole
        prices = {mechanism: price(each, reserve, whole) for mechanism, each in pairs.items()}
        spent = np.cumsum([prices[mechanism] for mechanism in listed])
        best = max(best, int(np.searchsorted(spent, whole - reserve, side="right")))
    return best


def table(epsilon: float, delta: float) -> Iterator[str]:
    """The lines of a Markdown table."""
    whole = float(brentq(lambda v: left(np.array([epsilon]), v)[0] - delta, 1e-9, 100.0))
    union = Budget(epsilon, delta)
    yield "| run | Budget | Gaussian potential | Menu |"
    yield "|---|---|---|---|"
    for name, run in RUNS.items():
        found, best = most(run, whole), menu(run(), epsilon=epsilon, delta=delta)
        counts = [
            granted("Budget", union, run(), delta=delta),
            found,
            granted("menu", best, run(), delta=delta),
        ]
        yield f"| {name} | {' | '.join('-' if count is None else str(count) for count in counts)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    options = parser.parse_args()
    for line in table(options.epsilon, options.delta):
        print(line, flush=True)


if __name__ == "__main__":
    main()
