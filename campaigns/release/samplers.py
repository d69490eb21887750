"""The samplers used by releases have the probabilities that they state.

python -m campaigns.release.samplers [DRAWS]      (10^6 draws each: some minutes, most of them for choices)

For every outcome its frequency is compared with its probability. By Bernstein's inequality all
frequencies are within their margins with probability at least 1 - ALARM if the samplers are exact;
a sampler with larger errors is detected.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpcompose.release import sampler

ALARM = 1e-6
CHUNK = 100_000


@dataclass(frozen=True)
class Sampled:
    """One sampler at one parameter.

    Args:
        draw: So many draws.
        weights: Proportional to the probabilities of the outcomes that are looked at, and of all others in the end.
        first: The first of these outcomes.
    """

    draw: Callable[[int], Sequence[int]]
    weights: Sequence[float]
    first: int


def _laplace(scale: float) -> Sampled:
    reach = math.ceil(40 * scale)
    weights = [math.exp(-abs(x) / scale) for x in range(-reach, reach + 1)]
    return Sampled(
        lambda number: sampler.discrete_laplace([0] * number, scale=scale), weights, -reach
    )


def _gaussian(sigma: float) -> Sampled:
    reach = math.ceil(9 * sigma)
    weights = [math.exp(-x * x / (2 * sigma**2)) for x in range(-reach, reach + 1)]
    return Sampled(
        lambda number: sampler.discrete_gaussian([0] * number, sigma=sigma), weights, -reach
    )


def _choice(scores: Sequence[int], scale: float, *, flips: bool) -> Sampled:
    weights = _flipped(scores, scale) if flips else [math.exp(-score / scale) for score in scores]
    return Sampled(
        lambda number: [
            sampler.least_with_noise(scores, scale=scale, flips=flips) for _ in range(number)
        ],
        weights,
        0,
    )


def _flipped(scores: Sequence[int], scale: float) -> list[float]:
    """The probabilities of permute-and-flip, by all orders of the candidates."""
    coins = [math.exp(-(score - min(scores)) / scale) for score in scores]
    found = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        left = 1 / math.factorial(len(scores))
        for place in order:
            found[place] += left * coins[place]
            left *= 1 - coins[place]
    return found


SAMPLERS = {
    "Laplace, scale 0.7": _laplace(0.7),
    "Laplace, scale 10": _laplace(10.0),
    "Gaussian, sigma 0.6": _gaussian(0.6),
    "Gaussian, sigma 7.3": _gaussian(7.3),
    "choice, scale 2": _choice([0, 1, 3, 8], 2.0, flips=False),
    "choice, scale 0.3": _choice([5, 4, 4, 6, 4], 0.3, flips=False),
    "permute-and-flip, scale 2": _choice([0, 1, 3, 8], 2.0, flips=True),
    "permute-and-flip, scale 0.3": _choice([5, 4, 4, 6, 4], 0.3, flips=True),
}


def worst(sampled: Sampled, draws: int, alarm: float) -> float:
    """The largest deviation of a share from its probability, in units of its margin; above 1 it is no chance."""
    counts: Counter[int] = Counter()
    for begun in range(0, draws, CHUNK):
        counts.update(sampled.draw(min(CHUNK, draws - begun)))
    whole = math.fsum(sampled.weights)
    logarithm = math.log(2 * len(sampled.weights) / alarm)
    found = 0.0
    for place, weight in enumerate(sampled.weights):
        chance = weight / whole
        # Bernstein: |share - p| <= sqrt(2 p (1 - p) L / n) + L / (3 n); tails beyond the weights are below 1e-17.
        margin = math.sqrt(2 * chance * (1 - chance) * logarithm / draws) + logarithm / (3 * draws)
        found = max(found, abs(counts[sampled.first + place] / draws - chance) / margin)
    return found


def main() -> None:
    draws = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6
    bad = False
    for name, sampled in SAMPLERS.items():
        began = time.perf_counter()
        found = worst(sampled, draws, ALARM / len(SAMPLERS))
        bad |= found > 1
        print(
            f"{name:27} {found:.3f} of the margin, {draws:,} draws, {time.perf_counter() - began:.0f} s",
            flush=True,
        )
    print(
        f"false alarm probability at most {ALARM:g}: {'a sampler deviates' if bad else 'all within their margins'}"
    )
    sys.exit(bad)


if __name__ == "__main__":
    main()
