"""How many samples an audit needs, beside a fixed-sample test.

    python -m benchmarks.audit --seeds 11 [--only TEXT]

Every row is a broken mechanism and its claim. Printed: the median of the samples, of either world, with which
`dpcompose.audit` refutes it at alpha 1e-6 (it searches all features, and stops by itself); the smallest number with
which the fixed-sample test refutes it in half of its runs; and their ratio. The fixed-sample test is in the style of
DP-Sniper [BichselSteffenBogunovicVechev2021]: half of the samples choose one of 200 half lines of the feature that is
right for the mechanism, which it is told, or one value; the other half gives Clopper-Pearson limits, at alpha / 2 each.
It is told its own best number of samples, from a grid of ratio 1.25.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from dpcompose import BlackBox
from dpcompose.audit import Feature, Pair, Subject, Transcripts, Verdict, audit
from dpcompose.audit.subject import Source
from dpcompose.experiment import Experiment, NaturalFilterBreaker

ALPHA = 1e-6
Draw = Callable[[np.random.Generator, float, int], np.ndarray]


@dataclass(frozen=True)
class Row:
    """A broken mechanism.

    Args:
        name: Its name, with the claim.
        claim: The claim, at distance 1.
        draw: From a generator, a dataset and n to n answers.
        distance: Of the two worlds, 0 and `distance`.
        hint: The feature that is right for it, for the fixed-sample test.
        target: The samples of the design's table.
        most: The most samples.
    """

    name: str
    claim: BlackBox
    draw: Draw
    target: int
    distance: int = 1
    hint: Callable[[np.ndarray], np.ndarray] = lambda rows: rows
    most: int = 2_000_000


def laplace(scale: float) -> Draw:
    return lambda rng, data, n: data + exact(rng.laplace(scale=scale, size=n))


def exact(noise: np.ndarray) -> np.ndarray:
    """Noise on a lattice so fine that it stands for the real law, and whose bits tell nothing of the datum."""
    return np.round(noise * 2.0**40) / 2.0**40


def leak(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    rows = data + exact(rng.laplace(size=n))
    rows[rng.random(n) < 1e-4] = data
    return rows


def floats(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    """Noise that is added to the datum in floats: its last bits tell the datum."""
    uniform = rng.random(n) - 0.5
    return data - 10 * np.sign(uniform) * np.log1p(-2 * np.abs(uniform))


def sparse_vector(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    """Sparse vector without noise on the queries, all answered: half of 20 queries move up, half of them down."""
    threshold = rng.laplace(scale=2 / 0.1, size=(n, 1))
    queries = np.concatenate([np.full(10, data), np.full(10, 1 - data)])
    return (queries[None, :] >= threshold).astype(float)


def noisy_max(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    """The largest of five noisy queries, all of which move together."""
    return np.max(data + exact(rng.laplace(scale=2 / 0.1, size=(n, 5))), axis=1)


def grid(rows: np.ndarray) -> np.ndarray:
    """The exponent of the lowest bit that is set: of which power of 2 the answer is a multiple."""
    mantissa, exponent = np.frexp(rows)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1).astype(float))
    return np.where(rows == 0, 99.0, exponent - 53 + lowest)


BITS = Feature("lowest bit", grid)
ROWS = (
    Row("Laplace, scale 2 times too small, epsilon 1", BlackBox(1.0), laplace(0.5), 648),
    Row("Laplace, scale 2 times too small, epsilon 0.1", BlackBox(0.1), laplace(5.0), 20_858),
    Row("Laplace, scale 1.1 times too small, epsilon 1", BlackBox(1.0), laplace(1 / 1.1), 39_153),
    Row("the same, epsilon 0.1, 20 apart", BlackBox(0.1), laplace(10 / 1.1), 27_506, distance=20),
    Row("Laplace in floats, epsilon 0.1", BlackBox(0.1), floats, 1_997, hint=grid),
    Row("leak with probability 1e-4, claim (1, 1e-5)", BlackBox(1.0, delta=1e-5), leak, 610_226, most=6_000_000),
    Row("sparse vector without query noise, epsilon 0.1", BlackBox(0.1), sparse_vector, 1_490,
        hint=lambda rows: rows[:, 0] - rows[:, -1]),
    Row("noisy max and its value, epsilon 0.1, 20 apart", BlackBox(0.1), noisy_max, 2_316, distance=20),
)  # fmt: skip


def subject(row: Row, seed: int) -> Subject:
    rng = np.random.default_rng(seed)
    return Subject(row.draw, batch=lambda data, n: row.draw(rng, data, n))  # pyright: ignore[reportArgumentType]


def anytime(source: Source, claim: BlackBox, pair: Pair, *, most: int) -> int:
    """The samples until the claim is refuted."""
    found = audit(source, [pair], claim=claim, alpha=ALPHA, samples=most, ladder=False)
    return found.samples if found.verdict is Verdict.REFUTED else sys.maxsize


def fixed(row: Row, total: int, seed: int) -> bool:
    """Whether the fixed-sample test refutes with so many samples."""
    rng, each = np.random.default_rng((seed, total)), total // 4
    zero, one = (
        [row.hint(row.draw(rng, data, each)) for _ in range(2)]
        for data in (0.0, float(row.distance))
    )
    epsilon = row.claim.stated.epsilon * row.distance
    growth, delta = math.exp(epsilon), row.claim.stated.delta
    past = np.concatenate([zero[0], one[0]])
    cuts = np.unique(np.quantile(past, np.linspace(0, 1, 202)[1:-1], method="lower"))
    values, times = np.unique(past, return_counts=True)
    events = [(cut, side) for cut in cuts for side in ("<=", ">=")]
    events += [(value, "==") for value in values[times > 1][np.argsort(-times[times > 1])][:40]]
    best = max(
        ((event, turned) for event in events for turned in (False, True)),
        key=lambda each: _excess(each, zero[0], one[0], growth),
    )
    hits = [_inside(best[0], rows[1]).sum() for rows in ((zero, one) if best[1] else (one, zero))]
    lower = beta.ppf(ALPHA / 2, hits[0], each - hits[0] + 1) if hits[0] else 0.0
    upper = beta.ppf(1 - ALPHA / 2, hits[1] + 1, each - hits[1]) if hits[1] < each else 1.0
    return bool(lower > growth * upper + delta)


def _inside(event: tuple[float, str], rows: np.ndarray) -> np.ndarray:
    return {"<=": np.less_equal, ">=": np.greater_equal, "==": np.equal}[event[1]](rows, event[0])


def _excess(
    choice: tuple[tuple[float, str], bool], zero: np.ndarray, one: np.ndarray, growth: float
) -> float:
    """How many standard deviations the event is beyond the claim."""
    p, q = (
        np.mean(_inside(choice[0], rows)) for rows in ((zero, one) if choice[1] else (one, zero))
    )
    return float(
        (p - growth * q) / math.sqrt((p + growth**2 * q + 1e-12) / len(zero) + 1 / len(zero) ** 2)
    )


def fewest(row: Row, runs: int) -> int:
    """The smallest number of samples with which the fixed-sample test refutes in half of the runs."""
    size = max(400, row.target // 4)
    while size < 4 * row.most:
        if sum(fixed(row, size, seed) for seed in range(runs)) * 2 >= runs:
            return size
        size = int(size * 1.25)
    return sys.maxsize


def breaker(seeds: int) -> list[int]:
    """Its samples."""
    adversary = NaturalFilterBreaker()
    game = Experiment(adversary, family=[query.mechanism for query in adversary.queries], rounds=2)
    views = (Transcripts(game, seed=seed) for seed in range(seeds))
    claim = BlackBox(1.5, delta=0.05)
    return [anytime(each, claim, each.pair, most=2_000_000) for each in views]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=11)
    parser.add_argument(
        "--breakers", type=int, default=20, help="runs of the breaker of natural filters"
    )
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(f"{'mechanism':<50} {'audit':>9} {'table':>9} {'fixed':>9} {'ratio':>6} {'seconds':>8}")
    for row in ROWS:
        if options.only not in row.name:
            continue
        start = time.process_time()
        pair = Pair(0.0, float(row.distance), distance=row.distance)
        middle = int(
            statistics.median(
                anytime(subject(row, seed), row.claim, pair, most=row.most)
                for seed in range(options.seeds)
            )
        )
        seconds = (time.process_time() - start) / options.seeds
        test = fewest(row, options.seeds)
        print(
            f"{row.name:<50} {middle:>9} {row.target:>9} {test:>9} {test / middle:>6.1f} {seconds:>8.2f}",
            flush=True,
        )
    if options.only in "breaker of natural filters":
        found = sorted(breaker(options.breakers))
        refuted, middle = sum(each < sys.maxsize for each in found), found[len(found) // 2]
        print(
            f"breaker of natural filters: {refuted} of {len(found)} refuted, median {middle}, last {found[-1]}"
        )


if __name__ == "__main__":
    main()
