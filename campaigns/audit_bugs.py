"""Published bugs of differentially private code, each with a corrected twin, audited with default
settings.

    python -m campaigns.audit_bugs [--seconds 60] [--samples 1000000] [--only TEXT] [--twins]

Each bug has its citation and the smallest code that has it. A bug must be refuted within the time;
with `--twins` the corrected code is audited as long, and must not be. Exit status 1 if fewer than
nine in ten bugs are refuted, or any twin is.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcompose import Adjacency, BlackBox, Gaussian
from dpcompose.audit import AuditResult, Pair, Subject, Verdict, audit
from dpcompose.audit.learned import LEARNERS
from dpcompose.audit.subject import Fresh
from dpcompose.audit.usual import usual_pairs
from dpcompose.composition import Composable

Rows = Sequence[float]
Call = Callable[[Any], Any]
RNG = np.random.default_rng()
LATTICE = 2.0**20


def fine(number: float) -> float:
    return round(number * LATTICE) / LATTICE


def lap(scale: float) -> float:
    """Laplace noise on a lattice."""
    return fine(RNG.laplace(scale=scale))


def normal(scale: float) -> float:
    return fine(RNG.normal(scale=scale))


def clamped(rows: Rows) -> float:
    """A sum of records in [0, 1]: what is no number counts as none."""
    return fine(math.fsum(min(1.0, max(0.0, row)) for row in rows if row == row))


def noisy_max(noise: Callable[[], float], *, value: bool) -> Call:
    def call(answers: Rows) -> float:
        noisy = [answer + noise() for answer in answers]
        return max(noisy) if value else float(np.argmax(noisy))

    return call


def exponential() -> float:
    return fine(RNG.exponential(2.0))


def sparse_vector(
    threshold: float, query: float, most: int, *, tells: bool = False, renewed: bool = False
) -> Call:
    """Above-threshold answers about queries of sensitivity 1, the threshold 0."""

    def call(answers: Rows) -> list[float]:
        level, told, above = lap(threshold), list[float](), 0
        for answer in answers:
            noisy = answer + (lap(query) if query else 0.0)
            if noisy < level:
                told.append(-1.0)
                continue
            told.append(noisy if tells else 1.0)
            above += 1
            if above >= most:
                break
            level = lap(threshold) if renewed else level
        return told

    return call


def histogram(scale: float) -> Call:
    return lambda counts: [count + lap(scale) for count in counts]


def float_noise(draw: Callable[[], float]) -> Call:
    return lambda rows: clamped(rows) + draw()


def slow_sampler(*, padded: bool) -> Call:
    """A geometric sampler whose number of tries is its noise."""

    def call(rows: Rows) -> int:
        noise = int(np.clip(RNG.geometric(0.63) - RNG.geometric(0.63), -6, 6))
        ends = time.perf_counter() + 1e-4 * (6 if padded else 7 + noise)
        while time.perf_counter() < ends:
            pass
        return len(rows) + noise

    return call


def wrapping(dtype: Any) -> Call:
    """A sum of integers of 0 to 100 in so many bits, noise for 100."""

    def call(rows: Rows) -> float:
        whole = np.array([int(min(100, max(0, row))) if row == row else 0 for row in rows])
        total = int(whole.astype(dtype).sum(dtype=dtype)) if len(rows) else 0
        return float(total + int(RNG.geometric(0.01) - RNG.geometric(0.01)))

    return call


def on_grid(*, rounded: bool) -> Call:
    """Noise on multiples of 1/16, added to a sum that is on the grid or is not."""

    def call(rows: Rows) -> float:
        total = clamped(rows)
        steps = int(RNG.geometric(0.03) - RNG.geometric(0.03))
        return (round(total * 16) / 16 if rounded else total) + steps / 16

    return call


def own_range(*, private: bool) -> Call:
    """A histogram over four bins between the least and the largest record, or between 0 and 1."""

    def call(rows: Rows) -> list[float]:
        known = [row for row in rows if row == row and abs(row) < 1e300]
        low, high = (0.0, 1.0) if private or not known else (min(known), max(known))
        width = (high - low) / 4 or 1.0
        bins = Counter(min(3, max(0, int((row - low) / width))) for row in known)
        edges = [] if private else [low, high]
        return [*edges, *(bins[each] + lap(1.0) for each in range(4))]

    return call


def sgd(*, divided: float) -> Call:
    """A mean of clipped gradients of a batch of 8; the noise is for the sum, and divided by so much."""
    return lambda rows: fine(clamped(rows) / 8) + normal(2.0 / divided / 8)


def batches(rate: float, *, fixed: bool) -> Call:
    """Four steps; each record is in the first batch, or in each with probability 1/4."""

    def call(rows: Rows) -> list[float]:
        steps = list[float]()
        for step in range(4):
            taken = [row for row in rows if ((step == 0) if fixed else RNG.random() < rate)]
            steps.append(clamped(taken) + normal(1.0))
        return steps

    return call


def tuned(*, runs: int) -> Call:
    """The best of several private runs, claimed at the cost of one."""
    return lambda rows: max(clamped(rows) + lap(1.0) for _ in range(runs))


def seeded(seed: Callable[[], int | None]) -> Call:
    def call(rows: Rows) -> float:
        return clamped(rows) + fine(np.random.default_rng(seed()).laplace())

    return call


def gaussian(scale: float) -> Call:
    return lambda rows: clamped(rows) + normal(scale)


def by_keys(*, public: bool, least: float = 0.0, true: bool = False) -> Call:
    """Counts by key; of the keys in the data alone, perhaps of those with enough records."""

    def call(rows: Rows) -> dict[str, float]:
        counts = Counter(str(int(min(3, max(0, row)))) for row in rows if row == row)
        keys = [str(each) for each in range(4)] if public else sorted(counts)
        noisy = {key: counts[key] + lap(1.0) for key in keys}
        return {
            key: count
            for key, count in noisy.items()
            if public or (counts[key] if true else count) >= least
        }

    return call


def contributions(*, bounded: bool) -> Call:
    """A count of rows, claimed for users with any number of rows; a dataset is the rows of each user."""
    return lambda users: float(sum(min(1, rows) if bounded else rows for rows in users)) + lap(1.0)


def spending(*, clean: bool) -> Call:
    """A query that spends of the budget only where it meets a record, and tells what is left."""

    def call(rows: Rows) -> list[float]:
        spent = 1.0 if clean or any(row == 1 for row in rows) else 0.0
        return [clamped(rows) + lap(1.0), 10.0 - spent]

    return call


def delaying(*, clean: bool) -> Call:
    def call(rows: Rows) -> float:
        ends = time.perf_counter() + (2e-3 if clean or any(row == 1 for row in rows) else 0)
        while time.perf_counter() < ends:
            pass
        return clamped(rows) + lap(1.0)

    return call


def median(*, local: bool) -> Call:
    """The median of records in [0, 1] with noise for its local or for its global sensitivity."""

    def call(rows: Rows) -> float:
        known = [*sorted(min(1.0, max(0.0, row)) for row in rows if row == row)]
        known = [0.0, 0.0, *known, 1.0, 1.0]
        middle = len(known) // 2
        spread = max(known[middle + 1] - known[middle], known[middle] - known[middle - 1])
        return known[middle] + (lap(spread) if local and spread else 0.0 if local else lap(1.0))

    return call


def bounded(*, redrawn: bool) -> Call:
    """A count in [0, 10]: noise is drawn again until it lies there, or the answer is cut."""

    def call(rows: Rows) -> float:
        total = min(10.0, len(rows))
        while not 0 <= (noisy := total + lap(1.0)) <= 10 and redrawn:
            pass
        return min(10.0, max(0.0, noisy))

    return call


def daily(*, renewed: bool) -> Call:
    """Four reports of one value, each with the whole budget, or with a quarter of it."""
    return lambda rows: [clamped(rows) + lap(1.0 if renewed else 4.0) for _ in range(4)]


def cut_noise(*, cut: bool) -> Call:
    def call(rows: Rows) -> float:
        noise = lap(1.0)
        while cut and abs(noise) > 4:
            noise = lap(1.0)
        return clamped(rows) + noise

    return call


def mean(*, private: bool) -> Call:
    def call(rows: Rows) -> float:
        total = clamped(rows) + lap(2.0)
        return total / max(1.0, len(rows) + lap(2.0)) if private else total / len(rows)

    return call


def squares(*, scale: float) -> Call:
    """A sum of squares of records in [-1/2, 1], with noise for the square of one of the bounds."""
    return lambda rows: (
        fine(math.fsum(min(1.0, max(-0.5, row)) ** 2 for row in rows if row == row)) + lap(scale)
    )


def bounded_by(*, private: bool) -> Call:
    """A sum whose noise is for the range of the records, or for [0, 1]."""

    def call(rows: Rows) -> float:
        known = [min(1.0, max(0.0, row)) for row in rows if row == row]
        width = 1.0 if private or not known else max(known) - min(known)
        return clamped(rows) + (lap(width) if width else 0.0)

    return call


def averaged(*, private: bool) -> Call:
    """A noisy sum of clipped gradients, divided by the number of records or by a public one."""
    return lambda rows: (clamped(rows) + normal(2.0)) / (8 if private else max(1, len(rows)))


@dataclass(frozen=True)
class Bug:
    """A published bug.

    Args:
        name: The bug.
        reference: Where it was published.
        broken: The code.
        twin: The mended code.
        claim: The claim of both.
        pairs: Pairs; None: the usual ones.
        options: Of `usual_pairs`.
        timed: Whether the time is looked at.
        slow: Whether it needs more than some seconds.
    """

    name: str
    reference: str
    broken: Call
    twin: Call
    claim: Composable = field(default_factory=lambda: BlackBox(1.0))
    pairs: tuple[Pair, ...] | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    timed: bool = False
    slow: bool = False


STATDP = "Ding, Wang, Wang, Zhang, Kifer: Detecting Violations of Differential Privacy, CCS 2018"
SVT = "Lyu, Su, Li: Understanding the Sparse Vector Technique, VLDB 2017"
JIN = (
    "Jin, McMurtry, Rubinstein, Ohrimenko: Are We There Yet? Timing and Floating-Point Attacks on Differential Privacy"
    " Systems, S&P 2022"
)
WILSON = "Wilson et al.: Differentially Private SQL with Bounded User Contribution, PoPETs 2020"
FIRE = "Haeberlen, Pierce, Narayan: Differential Privacy Under Fire, USENIX Security 2011"
RANDOM = "Garfinkel, Leclerc: Randomness Concerns When Deploying Differential Privacy, WPES 2020"
USERS = (Pair((1, 1, 3), (1, 1)), Pair((1,) * 5 + (50,), (1,) * 5))
ANSWERS = {"queries": 5}
CURVE = Gaussian(1.0).sampled(0.25) * 4
BUGS = (
    Bug("noisy max tells its value, Laplace", STATDP, noisy_max(lambda: lap(2.0), value=True),
        noisy_max(lambda: lap(2.0), value=False), options=ANSWERS),
    Bug("noisy max tells its value, exponential", STATDP, noisy_max(exponential, value=True),
        noisy_max(exponential, value=False), options=ANSWERS),
    Bug("histogram with epsilon as its scale", STATDP, histogram(0.5), histogram(10.0),
        BlackBox(0.5), options=ANSWERS),
    Bug("sparse vector without noise of queries (Stoddard et al. 2014)", f"{STATDP}; {SVT}, Algorithm 5",
        sparse_vector(2.0, 0.0, 99), sparse_vector(2.0, 4.0, 1), options=ANSWERS),
    Bug("sparse vector without a limit (Chen et al. 2015)", f"{STATDP}; {SVT}, Algorithm 6",
        sparse_vector(2.0, 2.0, 99), sparse_vector(2.0, 4.0, 1), options={"queries": 10}),
    Bug("sparse vector, noise for one answer (Lee, Clifton 2014)", f"{STATDP}; {SVT}, Algorithm 4",
        sparse_vector(4.0, 4 / 3, 3), sparse_vector(2.0, 12.0, 3), options={"queries": 8}, slow=True),
    Bug("sparse vector tells the answer above (Roth 2011)", f"{STATDP}; {SVT}, Algorithm 3",
        sparse_vector(2.0, 2.0, 1, tells=True), sparse_vector(2.0, 4.0, 1), options={"queries": 8}, slow=True),
    Bug("generalized private threshold testing", "Chen, Machanavajjhala: On the Privacy Properties of Variants on the"
        " Sparse Vector Technique, 2015", sparse_vector(4.0, 4 / 3, 99), sparse_vector(2.0, 4.0, 1),
        options={"queries": 10}),
    Bug("Laplace noise in floats", "Mironov: On Significance of the Least Significant Bits for Differential Privacy,"
        " CCS 2012; IBM/differential-privacy-library, issue 19",
        float_noise(RNG.laplace), float_noise(lambda: lap(1.0))),
    Bug("Gaussian noise in floats", JIN, float_noise(RNG.normal), float_noise(lambda: normal(1.0)), Gaussian(1.0)),
    Bug("time of a discrete sampler", JIN, slow_sampler(padded=False), slow_sampler(padded=True), timed=True),
    Bug("a sum that wraps", "Casacuberta, Shoemate, Vadhan, Wagaman: Widespread Underestimation of Sensitivity in"
        " Differentially Private Libraries and How to Fix It, CCS 2022; google/differential-privacy, issue 126",
        wrapping(np.int8), wrapping(np.int64), BlackBox(1.01),
        (Pair((100.0, 100.0), (100.0,)), Pair((100.0, 20.0, 50.0), (100.0, 20.0)))),
    Bug("noise on a coarser grid than the answer", "Haney, Desfontaines, Hartman, Shrestha, Hay: Precision-Based Attacks"
        " and Interval Refining, arXiv 2207.13793; opendp/opendp, issue 414",
        on_grid(rounded=False), on_grid(rounded=True), BlackBox(0.6)),
    Bug("ranges of the data", "Stadler, Oprisanu, Troncoso: Synthetic Data - Anonymisation Groundhog Day, USENIX"
        " Security 2022", own_range(private=False), own_range(private=True)),
    Bug("noise divided by the size of a batch", "Tramer, Terzis, Steinke, Song, Jagielski, Carlini: Debugging"
        " Differential Privacy: A Case Study for Privacy Auditing, arXiv 2202.12219",
        sgd(divided=8), sgd(divided=1), Gaussian(2.0)),
    Bug("fixed batches at the price of sampled ones", "Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha, Zhang: How"
        " Private are DP-SGD Implementations?, ICML 2024; meta-pytorch/opacus, issue 80",
        batches(0.25, fixed=True), batches(0.25, fixed=False), CURVE),
    Bug("the best of many runs at the price of one", "Papernot, Steinke: Hyperparameter Tuning with Renyi Differential"
        " Privacy, ICLR 2022", tuned(runs=12), tuned(runs=1)),
    Bug("a constant seed", RANDOM, seeded(lambda: 7), seeded(lambda: None)),
    Bug("a generator of few states", RANDOM, seeded(lambda: int.from_bytes(os.urandom(2), "little")),
        seeded(lambda: None), slow=True),
    Bug("the classical Gaussian scale at a large epsilon", "Balle, Wang: Improving the Gaussian Mechanism, ICML 2018",
        gaussian(math.sqrt(2 * math.log(1.25 / 0.01)) / 9), gaussian(0.5), BlackBox(9.0, delta=0.01)),
    Bug("keys of the data", WILSON, by_keys(public=False, least=-math.inf), by_keys(public=True)),
    Bug("a threshold on true counts", "Korolova, Kenthapadi, Mishra, Ntoulas: Releasing Search Queries and Clicks"
        " Privately, WWW 2009", by_keys(public=False, least=1, true=True), by_keys(public=True)),
    Bug("contributions without a bound", WILSON, contributions(bounded=False), contributions(bounded=True),
        pairs=USERS),
    Bug("a budget that is spent by the data", FIRE, spending(clean=False), spending(clean=True)),
    Bug("a delay for one record", FIRE, delaying(clean=False), delaying(clean=True), timed=True),
    Bug("noise by local sensitivity", "Nissim, Raskhodnikova, Smith: Smooth Sensitivity and Sampling, STOC 2007",
        median(local=True), median(local=False)),
    Bug("noise drawn again until it is in bounds", "Holohan, Antonatos, Braghin, Mac Aonghusa: The Bounded Laplace"
        " Mechanism in Differential Privacy, 2020", bounded(redrawn=True), bounded(redrawn=False)),
    Bug("a budget that is renewed", "Tang, Korolova, Bai, Wang, Wang: Privacy Loss in Apple's Implementation of"
        " Differential Privacy, 2017", daily(renewed=True), daily(renewed=False)),
    Bug("noise with cut tails at delta 0", "Geng, Ding, Guo, Kumar: Tight Analysis of Privacy and Utility Tradeoff in"
        " Approximate Differential Privacy, AISTATS 2020", cut_noise(cut=True), cut_noise(cut=False)),
    Bug("sensitivity by the lower bound alone", "IBM/differential-privacy-library, issue 105 (linear regression)",
        squares(scale=0.25), squares(scale=1.0)),
    Bug("bounds of the data", "IBM/differential-privacy-library, issue 20",
        bounded_by(private=False), bounded_by(private=True)),
    Bug("a mean by the true size of a batch", "meta-pytorch/opacus, issue 571 (expected_batch_size)",
        averaged(private=False), averaged(private=True), Gaussian(2.0)),
    Bug("an exception for no records", "Kifer, Messing, Roth, Thakurta, Zhang: Guidelines for Implementing and Auditing"
        " Differentially Private Systems, arXiv 2002.04049", mean(private=False), mean(private=True)),
)  # fmt: skip


def audited(
    bug: Bug, which: str, *, seconds: float, samples: int, alpha: float = 1e-6
) -> AuditResult:
    """By the defaults of the command line: calls in another process, usual pairs and all learners."""
    call = bug.broken if which == "broken" else bug.twin
    subject = Subject(call, fresh=Fresh.WORKER, timed=bug.timed, label=bug.name)
    pairs = bug.pairs or usual_pairs(
        subject, bug.claim, adjacency=Adjacency.ADD_REMOVE, most=16, **bug.options
    )
    return audit(
        subject, pairs, claim=bug.claim, alpha=alpha, samples=samples, seconds=seconds,
        learners=LEARNERS, ladder=False,
    )  # fmt: skip


def processor() -> float:
    """Processor seconds of this process and of those that it has ended."""
    gc.collect()  # a subject and its process hold each other, and only ended processes are counted
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(each.ru_utime + each.ru_stime for each in map(resource.getrusage, kinds))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--twins", action="store_true")
    options = parser.parse_args()
    chosen = [bug for bug in BUGS if options.only in bug.name]
    refuted, alarms = 0, 0
    for bug in chosen:
        for which in ("broken", "twin") if options.twins else ("broken",):
            began, spent = time.monotonic(), processor()
            found = audited(bug, which, seconds=options.seconds, samples=options.samples)
            bad = found.verdict is Verdict.REFUTED
            refuted += bad and which == "broken"
            alarms += bad and which == "twin"
            words = f"{found.samples:>9,} {time.monotonic() - began:5.1f} s"
            words += f", {processor() - spent:5.1f} of processors"
            print(
                f"{bug.name[:52]:<52} {which:6} {found.verdict.value:12} {words}  {found.event}",
                flush=True,
            )
    print(f"{refuted} of {len(chosen)} bugs refuted, {alarms} twins refuted")
    return int(10 * refuted < 9 * len(chosen) or alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
