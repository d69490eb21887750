"""Mixtures of normal distributions with weights of every size, against an independent computation
in ball arithmetic.

    python -m campaigns.mixtures --cases 5000 --seed 1

Each case draws two to six shifts, some nearly equal, tiny or huge, in any order, with weights from
1 to 1e-285, and asks for epsilon, and for delta close to it, at 0, at negative and at random
epsilons. A single run is compared with its profile in balls. For many runs, in both directions, the
truth is at least what a threshold test achieves (whether any answer is beyond a point, by exact
powers of two tails), and at most the count times the profile at epsilon divided by the count. Some
cases with two or three shifts ask about a group of two, whose moves add up.
Output: BAD, an interval that does not contain the truth; FAILED, an exception; and the number of
comparisons. Exit status 1 after either.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from fractions import Fraction
from itertools import product
from random import Random

from flint import arb, ctx

from dpcompose.mechanisms import MixtureOfGaussians
from oracles.ball import ball
from oracles.gaussian import upper_tail
from oracles.mixtures import NOTHING, Mixture, Terms, profile

LEAST = 1e-285
Drawn = tuple[float, list[float], list[float]]
Exact = tuple[tuple[Fraction, Fraction], ...]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for number in range(options.cases):
        counts += examined(Random(f"{options.seed} {number}"))
    print(dict(counts))
    return 1 if counts["bad"] or counts["failed"] else 0


def examined(rng: Random) -> Counter[str]:
    """One mixture, a few times, and its answers."""
    sigma, shifts, weights = drawn(rng)
    times = 1 if rng.random() < 0.6 else int(10 ** rng.uniform(0.3, 9))
    delta = 10 ** -rng.choice([rng.uniform(0.1, 12), rng.uniform(12, 100), rng.uniform(100, 280)])
    if rng.random() < 0.3:
        delta = min(min(weights) * 10 ** rng.uniform(-3, 3) * times, 0.9)
    size = rng.choice([1, 1, 2]) if len(shifts) <= 3 else 1
    text = f"(MixtureOfGaussians({sigma!r}, shifts={shifts!r}, weights={weights!r}) * {times}).group({size})"
    counts = Counter(mixtures=1)
    try:
        one = MixtureOfGaussians(sigma, shifts=tuple(shifts), weights=tuple(weights)) * times
        many = one.group(size) if size > 1 else one
        asked = many.epsilon(delta=delta)
        near = asked.upper * rng.uniform(0.2, 1.2) if asked.upper < math.inf else 5.0
        epsilon = rng.choice([1.0, -0.3, 0.0, rng.uniform(0, 50), near, 10 ** rng.uniform(-8, 4)])
        answer = many.delta(epsilon=epsilon)
    except Exception as error:  # whatever it is, it is what the campaign looks for
        print(f"FAILED {text} at delta {delta!r}: {type(error).__name__}: {error}", flush=True)
        return counts + Counter(failed=1)
    claims = [
        (epsilon, answer.lower, answer.upper),
        (asked.upper, 0.0, delta),
        (asked.lower, delta, 1.0),
    ]
    for place, low, high in claims:
        if not math.isfinite(place) or (place == 0 and low == delta):
            continue
        least, most = truth(place, exact(sigma, shifts, weights), times, size)
        counts["held"] += 1
        if high < least * (1 - 1e-12) - 1e-322 or low > most * (1 + 1e-12):
            print(
                f"BAD {text} at {place!r}: [{low!r}, {high!r}], truth in [{least!r}, {most!r}]",
                flush=True,
            )
            counts["bad"] += 1
    return counts


def drawn(rng: Random) -> Drawn:
    """Noise, shifts and weights, none of them below the least that is represented."""
    while True:
        count, sigma = (
            rng.randint(2, 6),
            10 ** rng.choice([0.0, rng.uniform(-2, 2), rng.uniform(-5.5, 10)]),
        )
        far = sigma * 10 ** rng.choice(
            [rng.uniform(-1, 1.5), rng.uniform(-4, 1), rng.uniform(-8, 5.5)]
        )
        shifts = [
            far
            * rng.choice(
                [1, 1 + 2.0 ** -rng.randint(1, 50), rng.uniform(0, 1), 10 ** -rng.uniform(0, 10)]
            )
            for _ in range(count)
        ]
        shifts[0] *= rng.random() < 0.3
        reach = rng.choice([285.0, 285.0, 20.0, 0.5])
        weights = [10 ** -rng.uniform(0, reach) for _ in range(count)]
        if reach > 1:
            heavy = rng.choice([0, rng.randrange(count)])
            weights[heavy] = max(1 - (math.fsum(weights) - weights[heavy]), weights[heavy])
        whole = math.fsum(weights)
        weights = [weight / whole for weight in weights]
        if min(weights) >= LEAST and max(shifts) < 9e5 * sigma:
            return sigma, shifts, weights


def exact(sigma: float, shifts: list[float], weights: list[float]) -> Exact:
    """Means in units of the noise, increasing, with weights of sum 1: the heaviest is what the others leave."""
    masses = [Fraction(weight) for weight in weights]
    masses[masses.index(max(masses))] += 1 - sum(masses)
    joined: dict[Fraction, Fraction] = {}
    for shift, mass in zip(shifts, masses, strict=True):
        mean = Fraction(shift) / Fraction(sigma)
        joined[mean] = joined.get(mean, Fraction(0)) + mass
    return tuple(sorted(joined.items()))


def together(terms: Exact, size: int) -> Terms:
    """The moves of that many members, added up."""
    if not size:
        return NOTHING
    found: dict[Fraction, Fraction] = {}
    for moves in product(terms, repeat=size):
        reached = sum((mean for mean, _ in moves), Fraction(0))
        mass = math.prod((weight for _, weight in moves), start=Fraction(1))
        found[reached] = found.get(reached, Fraction(0)) + mass
    return tuple(sorted(found.items()))


def truth(epsilon: float, one: Exact, times: int, size: int) -> tuple[float, float]:
    """Two ends around delta(epsilon)."""
    groups = [together(one, number) for number in range(size + 1)]
    terms = groups[size]
    with ctx.workprec(1500):
        laws = [Mixture(groups[removed], groups[size - removed]) for removed in range(size + 1)]
        if times == 1:
            found = [profile(epsilon, law) for law in laws]
            return max(float(each.lower()) for each in found), max(
                float(each.upper()) for each in found
            )
        shared = [profile(epsilon / times, law) for law in laws] if epsilon > 0 else []
    most = max((times * float(each.upper()) for each in shared), default=1.0)
    with ctx.workprec(500):
        return float(some_test(epsilon, terms, times).lower()), most


def some_test(epsilon: float, terms: Terms, times: int) -> arb:
    """The largest P(A) - e^epsilon Q(A) for A: some answer, or none, is beyond one of a few points."""
    best, growth, far = arb(0), ball(epsilon).exp(), float(terms[-1][0])
    for share in range(1, 14):
        point = ball(far * share / 10 + (share - 5) * 0.7)
        with_it = sum(
            (ball(weight) * upper_tail(point - ball(mean)) for mean, weight in terms), arb(0)
        )
        none = [(-tail).log1p() * times for tail in (with_it, upper_tail(point))]
        best = best.max(-none[0].expm1() + growth * none[1].expm1()).max(
            none[1].exp() - growth * none[0].exp()
        )
    return best


if __name__ == "__main__":
    sys.exit(main())
