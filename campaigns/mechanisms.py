"""Mechanisms compared with independent programs: `python -m campaigns.mechanisms [--cases 500]
[--seed 1] [--only NAME]`.

Every family draws mechanisms with random parameters and, for most of them, random neighboring data.
The output distributions of both are computed without the library: by enumerating orders, subsets,
patterns or histograms, by quadrature, in exact fractions or in balls. No upper end may be below the
cost of such a pair, and no lower end above what any pair can have. As a control the same cases are
computed for mechanisms that are wrongly stated as more private (`CONTROL`, or one of `CONTROLS`):
every family must detect that. Exit status 1 after a violation, or if a control was not detected.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from random import Random
from typing import NamedTuple

import numpy as np
from flint import arb, ctx
from scipy.special import ndtr

import dpcompose as dp
from dpcompose import Adjacency, Bound
from oracles import atoms, fixed_size, lattices, patterns, renyi, shuffles
from oracles.noisy_max import NODES, WEIGHTS, Noise, permute_and_flip, winning

Array = np.ndarray
ADD_REMOVE, REPLACE, ZERO_OUT = Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.ZERO_OUT
CONTROL, CONTROLS = 1.6, {"AboveThreshold": 3.0}
ERROR = 2e-11
"""What quadratures in floats may be off by."""


class Check(NamedTuple):
    """An answer, what some pair of neighbors has, and what none exceeds."""

    text: str
    answer: Bound
    least: float = -math.inf
    most: float = math.inf

    @property
    def violated(self) -> bool:
        """Whether an end is on the wrong side."""
        return not (self.answer.lower <= self.most and self.least <= self.answer.upper)


Family = Callable[[Random, float], Iterator[Check]]


def hockey(p: Array, q: Array, epsilon: float) -> float:
    """The larger hockey-stick divergence of both orders, less the error of the masses."""
    grow = math.exp(epsilon)
    return (
        max(float(np.maximum(one - grow * other, 0).sum()) for one, other in ((p, q), (q, p)))
        - ERROR
    )


def several(p: Array, times: int) -> Array:
    """The masses of so many independent answers."""
    found = np.ones(1)
    for _ in range(times):
        found = np.multiply.outer(found, p).ravel()
    return found


def profile(
    text: str, one: dp.Composition, neighbors: tuple[Array, Array], epsilons: Sequence[float], *, times: int = 1,
    adjacency: Adjacency = ADD_REMOVE,
) -> Iterator[Check]:  # fmt: skip
    """delta of so many rounds at each epsilon, against the masses of two neighbors."""
    p, q = (several(np.asarray(each, dtype=float), times) for each in neighbors)
    for epsilon in epsilons:
        found = (one * times).delta(epsilon=epsilon, adjacency=adjacency)
        yield Check(f"({text} * {times}).delta(epsilon={epsilon!r})", found, hockey(p, q, epsilon))


def spread(rng: Random, low: float, high: float) -> float:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))), 4)


def permute_and_flips(rng: Random, control: float) -> Iterator[Check]:
    epsilon, monotone, number = spread(rng, 0.1, 5), rng.random() < 0.5, rng.choice([2, 2, 3, 4, 5])
    before = [Fraction(rng.randint(-16, 16), 8) for _ in range(number)]
    moves = [Fraction(rng.choice([0, 8, 8, 8, rng.randint(0, 8)]), 8) for _ in range(number)]
    signs = [1] * number if monotone else [rng.choice([-1, 1]) for _ in range(number)]
    after = [score + sign * move for score, sign, move in zip(before, signs, moves, strict=True)]
    rate = Fraction(epsilon) / (1 if monotone else 2)
    p, q = (
        np.array([float(each) for each in permute_and_flip(scores, rate)])
        for scores in (before, after)
    )
    one = dp.mechanisms.PermuteAndFlip(epsilon / control, monotone=monotone) * 1
    levels = [0.0, rng.uniform(0, epsilon)]
    yield from profile(repr(one), one, (p, q), levels, times=rng.choice([1, 1, 2, 3]))
    # Two candidates attain Laplace's profile at every epsilon, and a single answer is exact.
    truth = -math.expm1((levels[1] - epsilon) / 2)
    yield Check(
        f"{one!r} at {levels[1]}", one.delta(epsilon=levels[1]), truth - 1e-14, truth + 1e-14
    )


def noisy_maxima(rng: Random, control: float) -> Iterator[Check]:
    kind, scale, number = (
        rng.choice(["laplace", "exponential", "gumbel"]),
        spread(rng, 0.3, 20),
        rng.choice([2, 2, 3, 4]),
    )
    before = [rng.gauss(0, scale) for _ in range(number)]
    after = [score + rng.choice([-1, 1, rng.uniform(-1, 1)]) for score in before]
    noises = [Noise(kind, scale)] * number
    one = dp.mechanisms.NoisyMax(scale * control, noise=kind) * 1
    neighbors = winning(before, noises), winning(after, noises)
    yield from profile(
        repr(one), one, neighbors, [0.0, rng.uniform(0, 2 / scale)], times=rng.choice([1, 2])
    )


def sparse_vectors(rng: Random, control: float) -> Iterator[Check]:
    """All strings of answers, by quadrature over the noise of the threshold."""
    epsilon, positives, monotone = spread(rng, 0.2, 4), rng.choice([1, 1, 2]), rng.random() < 0.3
    asked, worst = rng.randint(1, 6), rng.random() < 0.4
    before = [rng.uniform(-2, 2) for _ in range(asked)]
    after = [
        each + (rng.choice([0, 1]) if monotone else rng.choice([-1, 1, rng.uniform(-1, 1)]))
        for each in before
    ]
    if worst and not monotone:  # all move one way but for the last
        after = [each + 1 for each in before[:-1]] + [before[-1] - 1]
    count = positives if monotone else 2 * positives
    first = epsilon / (1 + count ** (2 / 3))
    threshold, answer = Noise("laplace", 1 / first), Noise("laplace", count / (epsilon - first))
    masses = tuple(
        np.array(_strings(each, positives, threshold, answer)) for each in (before, after)
    )
    one = (
        dp.mechanisms.AboveThreshold(epsilon / control, positives=positives, monotone=monotone) * 1
    )
    yield from profile(repr(one), one, (masses[0], masses[1]), [0.0, rng.uniform(0, epsilon)])


def _strings(values: list[float], positives: int, threshold: Noise, answer: Noise) -> list[float]:
    reach = 40 * threshold.scale
    kinks = np.unique([-reach, *values, 0.0, reach])
    panels = max(answer.scale, threshold.scale)
    edges = np.unique(
        np.concatenate([np.linspace(a, b, 2 + int((b - a) / panels)) for a, b in pairwise(kinks)])
    )
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    place = (middle[:, None] + half[:, None] * NODES).ravel()
    weight = (half[:, None] * WEIGHTS).ravel() * threshold.law(place)[0]
    below = [answer.law(place - value)[1] for value in values]
    found: list[float] = []
    for string in product((False, True), repeat=len(values)):
        cut = [at for at, above in enumerate(string) if above][positives - 1 : positives]
        if cut and any(string[cut[0] + 1 :]):
            continue  # it ended there
        terms = weight
        for above, low in list(zip(string, below, strict=True))[: cut[0] + 1 if cut else None]:
            terms = terms * ((1 - low) if above else low)
        found.append(float(terms.sum()))
    return found


def votes(rng: Random, control: float) -> Iterator[Check]:
    """One teacher's vote moves from a class to another."""
    sigma, number = spread(rng, 0.5, 30), rng.choice([2, 3, 4])
    before = [round(rng.gauss(0, sigma)) for _ in range(number)]
    source, target = rng.sample(range(number), 2)
    after = [count - (at == source) + (at == target) for at, count in enumerate(before)]
    x = np.linspace(-9, 9, 721)
    weight = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])

    def wins(counts: list[int]) -> Array:
        lower = [[ndtr(x + (own - other) / sigma) for other in counts] for own in counts]
        found = [
            weight * np.prod([row[j] for j in range(number) if j != i], axis=0)
            for i, row in enumerate(lower)
        ]
        return np.array([each.sum() for each in found])

    one = dp.mechanisms.NoisyArgmax(sigma * control) * 1
    levels = [0.0, rng.uniform(0, 1 / sigma)]
    yield from profile(
        repr(one), one, (wins(before), wins(after)), levels, times=rng.choice([1, 2, 3])
    )
    binary = dp.GaussianDP(2 / (math.sqrt(2) * sigma)).delta(epsilon=levels[1])
    yield Check(repr(one), one.delta(epsilon=levels[1]), binary.lower, math.inf)


def staircases(rng: Random, control: float) -> Iterator[Check]:
    epsilon, gamma = spread(rng, 0.2, 4), rng.choice([None, round(rng.random(), 3)])
    one, level = dp.mechanisms.Staircase(epsilon / control, gamma=gamma), rng.uniform(0, epsilon)
    shift = Fraction(rng.randint(1, 16), 16)
    truth = _areas(level, shuffles.staircase(epsilon, gamma, shift=shift))
    found = one.delta(epsilon=level)
    yield Check(f"{one!r} at {level!r}, shift {shift}", found, float(truth.lower()), math.inf)
    worst = _areas(level, shuffles.staircase(epsilon, gamma, shift=1))
    yield Check(
        f"{one!r} at {level!r}",
        found,
        float(worst.lower()) * (1 - 1e-12),
        float(worst.upper()) * (1 + 1e-12),
    )


def _areas(level: float, pair: atoms.Pair) -> arb:
    """The sum of the positive parts of p - e^level q, of pieces that may be many."""
    with ctx.workprec(200):
        grow = arb(level).exp()
        return sum((max(p - grow * q, arb(0)) for p, q in pair()), arb(0))


def encodings(rng: Random, control: float) -> Iterator[Check]:
    epsilon, keep, times = (
        spread(rng, 0.2, 4),
        rng.choice([0.5, round(rng.uniform(0.3, 0.9), 3)]),
        rng.randint(1, 4),
    )
    flip, weaker = (
        keep / (keep + (1 - keep) * math.exp(each)) for each in (epsilon, epsilon / control)
    )
    one, level = (
        dp.mechanisms.UnaryEncoding(keep, flip=weaker) * times,
        rng.uniform(0, epsilon * times),
    )
    truth = atoms.delta(level, ((shuffles.encoding(keep, flip), times),))
    found = one.delta(epsilon=level, adjacency=REPLACE)
    yield Check(
        f"{one!r} at {level!r}",
        found,
        float(truth.lower()) * (1 - 1e-12),
        float(truth.upper()) + 1e-15,
    )


def shuffled(rng: Random, control: float) -> Iterator[Check]:
    """Shuffled bits have the number of ones; the clones are above them."""
    epsilon, reports = spread(rng, 0.2, 4), rng.randint(2, 12)
    one, level = (
        dp.mechanisms.ShuffledReports(epsilon / control, reports=reports),
        rng.uniform(0, epsilon / 2),
    )
    truth = 1 / (1 + math.exp(-epsilon))
    others, ones = np.ones(1), rng.randint(0, reports - 1)
    for at in range(reports - 1):
        p = truth if at < ones else 1 - truth
        others = np.convolve(others, [1 - p, p])
    p, q = (np.convolve(others, pair) for pair in ([1 - truth, truth], [truth, 1 - truth]))
    found = one.delta(epsilon=level, adjacency=REPLACE)
    clones = atoms.delta(level, ((shuffles.clones(epsilon, reports), 1),))
    yield Check(
        f"{one!r} at {level!r}, {ones} ones",
        found,
        hockey(p, q, level),
        float(clones.upper()) * (1 + 1e-12),
    )
    yield Check(f"{one!r} at {level!r}, clones", found, float(clones.lower()) * (1 - 1e-12))


def skellams(rng: Random, control: float) -> Iterator[Check]:
    variance, shift, times = spread(rng, 0.5, 40), rng.choice([1, 1, 2]), rng.choice([1, 1, 2])
    one, level = dp.mechanisms.Skellam(variance * control, shift=shift) * times, rng.uniform(0, 1.5)
    truth = atoms.delta(level, ((lattices.skellam(variance, shift), times),))
    found = one.delta(epsilon=level)
    yield Check(
        f"{one!r} at {level!r}", found, float(truth.lower()) - 1e-15, float(truth.upper()) + 1e-15
    )


def client_noise(rng: Random, control: float) -> Iterator[Check]:
    """The sum of a few discrete Gaussians, by convolution."""
    sigma, clients, shift = spread(rng, 0.5, 2), rng.randint(1, 5), rng.randint(1, 3)
    x = np.arange(-60, 61)
    each = np.exp(-x * x / (2 * sigma * sigma))
    total = np.ones(1)
    for _ in range(clients):
        total = np.convolve(total, each / each.sum())
    one = (
        dp.mechanisms.distributed_discrete_gaussian(
            sigma * control, clients=clients, norm=float(shift), dimension=1
        )
        * 1
    )
    order = spread(rng, 1.1, 8)
    p, q = total[shift:], total[:-shift]
    kept = (p > 1e-250) & (q > 1e-250)
    terms = np.exp(order * np.log(p[kept]) + (1 - order) * np.log(q[kept]))
    divergence = math.log(float(terms.sum())) / (order - 1)
    yield Check(f"{one!r}.renyi({order})", one.renyi(order), divergence * (1 - 1e-9))
    padded = np.append(total, np.zeros(shift)), np.append(np.zeros(shift), total)
    yield from profile(repr(one), one, padded, [rng.uniform(0, 2)])


def selections(rng: Random, control: float) -> Iterator[Check]:
    """The best of runs on a few outcomes, with scores in a random order or in that of the likelihood ratio."""
    kinds = rng.randint(2, 5)
    p, q = (_dyadic(rng, kinds) for _ in range(2))
    q = [(a + b) / 2 for a, b in zip(p, q, strict=True)] if rng.random() < 0.7 else q
    if rng.random() < 0.5:
        order = sorted(range(kinds), key=lambda at: p[at] / q[at])
        p, q = [p[at] for at in order], [q[at] for at in order]
    tries, shape = rng.choice([1.0, 2.0, 5.0, spread(rng, 1, 30)]), rng.choice([1.0, math.inf])

    def best(masses: list[float]) -> Array:
        reached = np.append(0.0, np.cumsum(masses))
        reached[-1] = 1.0
        if shape == math.inf:
            made = np.exp(tries * (reached - 1))
            return np.append(np.diff(made), made[0])
        gamma = 1 / tries
        return np.diff(gamma * reached / (1 - (1 - gamma) * reached))

    base = dp.mechanisms.DominatingPair.atoms(upper=p, lower=q, adjacency=ADD_REMOVE)
    neighbors = best(p), best(q)
    fewer = max(tries / control**3, 1.0 if shape < math.inf else 1e-3)
    one = dp.mechanisms.PrivateSelection(base, tries=fewer, shape=shape) * 1
    text = f"PrivateSelection({p}, {q}, tries={fewer}, shape={shape})"
    yield from profile(text, one, neighbors, [0.0, rng.uniform(0, 1), rng.uniform(0, 4)])
    order = spread(rng, 1.2, 20)
    a, b = neighbors
    moment = max(float(np.sum(x**order * y ** (1 - order))) for x, y in ((a, b), (b, a)))
    yield Check(
        f"{text}.renyi({order})",
        one.renyi(order),
        math.log(moment) / (order - 1) * (1 - 1e-9) - ERROR,
    )


def _dyadic(rng: Random, kinds: int) -> list[float]:
    cuts = sorted(rng.sample(range(1, 1024), kinds - 1))
    return [(b - a) / 1024 for a, b in pairwise([0, *cuts, 1024])]


def matrices(rng: Random, control: float) -> Iterator[Check]:
    steps, signed = rng.randint(1, 12), rng.random() < 0.4
    bands = rng.randint(1, steps)
    strategy = [
        [_entry(rng, i - j, signed) if 0 <= i - j < bands else 0.0 for j in range(steps)]
        for i in range(steps)
    ]
    if rng.random() < 0.3:
        column = sorted((rng.randint(0, 64) / 64 + (k == 0) for k in range(steps)), reverse=True)
        strategy = [[column[i - j] if j <= i else 0.0 for j in range(steps)] for i in range(steps)]
    gap, most, fixed = rng.randint(1, steps + 1), rng.choice([None, 1, 2, 3]), rng.random() < 0.2
    most = None if fixed else most
    truth = patterns.sensitivity_squared(strategy, gap, most, fixed)
    participation = dp.mechanisms.Participation(separation=gap, most=most, fixed=fixed)
    found = dp.mechanisms.MatrixMechanism(
        strategy, sigma=1.0, participation=participation
    ).sensitivity_squared
    told = Bound(found.lower / control, found.upper / control)
    largest = math.nextafter(float(truth.equal if truth.exact else truth.sizes), math.inf)
    yield Check(
        f"{strategy}, {participation}", told, math.nextafter(float(truth.equal), 0), largest
    )
    if truth.exact:
        yield Check(
            "exact where all products are",
            Bound(told.upper, told.upper),
            -math.inf,
            largest * (1 + 1e-12),
        )


def _entry(rng: Random, place: int, signed: bool) -> float:
    size = rng.randint(1, 64) / 64
    return size if place == 0 or not signed else rng.choice([-1, 1]) * size


def trees(rng: Random, control: float) -> Iterator[Check]:
    steps, fixed = rng.randint(1, 13), rng.random() < 0.2
    gap, most = rng.randint(1, steps + 1), None if fixed else rng.choice([None, 1, 2, 3, 4])
    restart = rng.choice([None, None, rng.randint(1, steps + 1)])
    truth = patterns.tree_sensitivity_squared(steps, gap, most, fixed=fixed, restart=restart)
    participation = dp.mechanisms.Participation(separation=gap, most=most, fixed=fixed)
    made = dp.mechanisms.TreeAggregation(
        1.0, steps=steps, participation=participation, restart=restart
    )
    found = made.sensitivity_squared
    yield Check(repr(made), Bound(found.lower / control, found.upper / control), truth, truth)


def epochs(rng: Random, control: float) -> Iterator[Check]:
    """Four records of random values in two batches, by all orders, on a grid of sets: whatever they say is a test."""
    sigma, steps = spread(rng, 0.4, 4), 2
    others = [rng.choice([-1.0, 0.0, 1.0, -1.0]) for _ in range(3)]
    own = rng.choice([1.0, 1.0, rng.uniform(-1, 1)])
    times = rng.choice([1, 1, 2])
    edges = np.concatenate(
        [[-np.inf], np.linspace(-2 - 3 * sigma, 2 + 3 * sigma, 60 if times == 1 else 12), [np.inf]]
    )

    def masses(value: float) -> Array:
        total = np.zeros((len(edges) - 1) ** 2)
        orders = list(permutations([value, *others]))
        for order in orders:
            cells = [
                np.diff(ndtr((edges - mean) / sigma))
                for mean in (order[0] + order[1], order[2] + order[3])
            ]
            total += np.outer(*cells).ravel() / len(orders)
        return total

    one = dp.mechanisms.ShuffledEpochs(sigma * control**2, steps=steps) * 1
    levels = [0.0, rng.uniform(0, 2 / sigma)]
    pair = masses(own), masses(0.0)
    yield from profile(repr(one), one, pair, levels, times=times, adjacency=ZERO_OUT)


def samples(rng: Random, control: float) -> Iterator[Check]:
    """A few records of random values, by all batches, on a grid of sets; the dominating loss by convolution."""
    sigma, records = spread(rng, 0.5, 4), rng.randint(2, 6)
    batch, times = rng.randint(1, records - 1), rng.choice([1, 2, 3])
    others = [rng.choice([-1.0, 1.0, 1.0, rng.uniform(-1, 1)]) for _ in range(records - 1)]
    new, old = rng.choice([(1.0, -1.0), (1.0, -1.0), (1.0, 0.0), (rng.uniform(-1, 1), -1.0)])
    reach = batch + 3 * sigma
    edges = np.concatenate(
        [[-np.inf], np.linspace(-reach, reach, [300, 120, 36][times - 1]), [np.inf]]
    )

    def masses(value: float) -> Array:
        sums = [sum(chosen) for chosen in combinations([value, *others], batch)]
        return np.mean([np.diff(ndtr((edges - total) / sigma)) for total in sums], axis=0)

    one = dp.mechanisms.FixedSizeSample(sigma * control, records=records, batch=batch) * 1
    level = rng.uniform(0, 2 / sigma)
    yield from profile(
        repr(one), one, (masses(new), masses(old)), [0.0, level], times=times, adjacency=REPLACE
    )
    if sigma > 0.8:
        low, high = fixed_size.deltas(sigma, batch / records, times=times, epsilon=level)
        found = (one * times).delta(epsilon=level, adjacency=REPLACE)
        yield Check(
            f"({one!r} * {times}) at {level}, the dominating loss", found, low - 1e-11, high + 1e-11
        )


def curves(rng: Random, control: float) -> Iterator[Check]:
    """Two outcomes have this curve, in balls; among answers of randomized response they are enumerated."""
    p, q = (rng.randint(1, 63) / 64 for _ in range(2))
    q = (p + q) / 2
    orders = sorted({spread(rng, 1.05, 60) for _ in range(rng.randint(1, 20))})
    values = [renyi.two_point(p, q, order) / control**2 for order in orders]
    times, more, epsilon = rng.randint(1, 3), rng.randint(0, 3), spread(rng, 0.1, 2)
    known = dp.mechanisms.RenyiCurve(values, orders=orders, holds_under=ADD_REMOVE) * times
    whole = known + dp.RandomizedResponse(epsilon) * more
    level = rng.uniform(0, 2)

    def points() -> atoms.Points:
        return [(atoms.ball(p), atoms.ball(q)), (1 - atoms.ball(p), 1 - atoms.ball(q))]

    rest = ((atoms.promise(epsilon), more),) if more else ()
    least = max(
        float(atoms.delta(level, ((pair, times), *rest)).lower())
        for pair in (points, atoms.swapped(points))
    )
    yield Check(
        f"({whole!r}).delta(epsilon={level!r})", whole.delta(epsilon=level), least * (1 - 1e-14)
    )


FAMILIES: dict[str, Family] = {
    "PermuteAndFlip": permute_and_flips,
    "NoisyMax": noisy_maxima,
    "AboveThreshold": sparse_vectors,
    "NoisyArgmax": votes,
    "PrivateSelection": selections,
    "Staircase": staircases,
    "UnaryEncoding": encodings,
    "ShuffledReports": shuffled,
    "Skellam": skellams,
    "distributed_discrete_gaussian": client_noise,
    "MatrixMechanism": matrices,
    "TreeAggregation": trees,
    "ShuffledEpochs": epochs,
    "FixedSizeSample": samples,
    "RenyiCurve": curves,
}


class Result(NamedTuple):
    """How many cases and checks there were, those that were violated, and how many violations the control had."""

    cases: int
    checks: int
    violated: list[Check]
    caught: int


def run(name: str, *, cases: int, seed: int, controls: int, until: float = math.inf) -> Result:
    """So many cases of a family, and so many again with a mechanism that is said to be more private."""
    checks, violated, done = 0, list[Check](), 0
    for at in range(cases):
        if time.monotonic() > until:
            break
        found = list(FAMILIES[name](Random(f"{seed} {name} {at}"), 1.0))
        checks, done = checks + len(found), done + 1
        violated += [check for check in found if check.violated]
    caught, factor = 0, CONTROLS.get(name, CONTROL)
    for at in range(controls):
        caught += any(
            check.violated for check in FAMILIES[name](Random(f"{seed} {name} {at}"), factor)
        )
    return Result(done, checks, violated, caught)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=500, help="of every family")
    parser.add_argument("--controls", type=int, default=60, help="of every family")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(FAMILIES), action="append", help="may be repeated")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many")
    given = parser.parse_args()
    until, status = time.monotonic() + 60 * given.minutes, 0
    for name in given.only or FAMILIES:
        start = time.process_time()
        found = run(name, cases=given.cases, seed=given.seed, controls=given.controls, until=until)
        for check in found.violated:
            print(
                f"VIOLATED {name}: {check.text}: {check.answer} against [{check.least!r}, {check.most!r}]"
            )
        seconds = time.process_time() - start
        row = f"{name}: {found.cases} cases, {found.checks} checks, {len(found.violated)} violated"
        print(
            f"{row}; control caught in {found.caught} of {given.controls}; {seconds:.0f} s",
            flush=True,
        )
        status |= bool(found.violated) or not found.caught
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
