"""Random adversaries against the certified bounds: `python -m campaigns.experiment [--adversaries N]`.

Adaptive in mechanism, pair and orientation, measured with limits that hold over all of them, all epsilons and both
directions together with probability 1 - 1e-6. Prints how many lower limits are above the certified upper end (none may
be), how near the nearest came, and, as a control, how many are above what is certified for one round less.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from dpcompose import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Orientation, RandomizedResponse
from dpcompose.composition import Composable, one_of
from dpcompose.experiment import Experiment, Greedy, Holds, Query, Wanderer, about_bob

EPSILONS = np.linspace(-1.0, 4.0, 26)
FAILURE = 1e-6
FAMILIES: tuple[tuple[Composable, ...], ...] = (
    (Laplace(2.0),),
    (Gaussian(2.0),),
    (RandomizedResponse(0.8), RandomizedResponse(0.4)),
    (Laplace(2.0), Gaussian(3.0)),
    (Laplace(3.0), RandomizedResponse(0.5), DiscreteLaplace(2.0)),
    (Gaussian(1.0).sampled(0.1),),
    (Laplace(1.0).sampled(0.2), RandomizedResponse(1.0).sampled(0.1)),
    (Gaussian(2.0).sampled(0.5), Laplace(4.0), DiscreteGaussian(3.0)),
)


def game(seed: int) -> tuple[Experiment, tuple[int, int, Orientation]]:
    """An adversary, and what its bound depends on."""
    rng = np.random.default_rng((11, seed))
    place, rounds = int(rng.integers(len(FAMILIES))), int(rng.choice([1, 2, 4, 8]))
    orientation = Orientation.FREE if rng.random() < 0.5 else Orientation.SAME
    family = FAMILIES[place]
    queries = [about_bob(mechanism) for mechanism in family]
    queries += [Query(family[0], ("Alice", "Bob"), ("Alice",), Holds("Bob"))]
    if orientation is Orientation.FREE:
        queries += [query.turned for query in queries]
    greedy = rng.random() < 0.3
    adversary = (
        Greedy(queries, epsilon=float(rng.uniform(0.0, 2.0)))
        if greedy
        else Wanderer(queries, seed=seed, coins=seed % 2 == 1)
    )
    playing = Experiment(adversary, family=family, rounds=rounds, orientation=orientation)
    return playing, (place, rounds, orientation)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--adversaries", type=int, default=500)
    parser.add_argument("--transcripts", type=int, default=1 << 16)
    given = parser.parse_args()
    known: dict[tuple[int, int, Orientation], np.ndarray] = {}
    above = caught = possible = 0
    nearest, start = 0.0, time.monotonic()
    for seed in range(given.adversaries):
        playing, (place, rounds, orientation) = game(seed)
        for number in (rounds, rounds - 1):
            key = (place, number, orientation)
            if key not in known:
                curve = (one_of(*FAMILIES[place]) * number).profile(orientation=orientation, tolerance=1e-6)
                known[key] = curve(EPSILONS).upper
        rng = np.random.default_rng((12, seed))
        found = playing.measure(transcripts=given.transcripts, rng=rng, failure=FAILURE, shares=given.adversaries)
        limits, bound = found.delta(EPSILONS), known[place, rounds, orientation]
        above += bool(np.any(limits.lower > bound))
        if rounds > 1:
            caught += bool(np.any(limits.lower > known[place, rounds - 1, orientation]))
            possible += 1
        tail = np.maximum(-np.expm1(EPSILONS), 0.0)
        shown = bound - tail > 1e-3
        nearest = max(nearest, float(np.max((limits.lower - tail)[shown] / (bound - tail)[shown], initial=0.0)))
        if sys.stderr.isatty() and seed % 50 == 49:
            print(f"{seed + 1} of {given.adversaries}", file=sys.stderr)
    print(f"{given.adversaries} adversaries, {given.transcripts:,} transcripts in each world, {len(EPSILONS)} epsilons")
    print(f"lower limits above the certified upper end: {above} adversaries")
    print(f"nearest: {100 * nearest:.1f} % of what is certified")
    print(f"control, above what is certified for one round less: {caught} of {possible} with several rounds")
    print(f"{time.monotonic() - start:.0f} s")
    sys.exit(above > 0)


if __name__ == "__main__":
    main()
