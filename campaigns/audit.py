"""How often an audit refutes what is correct, stopped at the most favorable moment, and how often what is broken.

    python -m campaigns.audit [--runs 1000] [--samples 100000] [--alpha 0.05] [--only TEXT] [--seed 1] [--share 1/10]
    python -m campaigns.audit --canaries [--runs 400]
    python -m campaigns.audit --again [--runs 25]
    python -m campaigns.audit --speed [--samples 1000000] [--only TEXT]

Correct mechanisms at the exact boundary of their claims: ten that answer with numbers, and others that tell a number
beside a noisy answer (a print, a warning, a log record), or in a part of one that is no plain number (a label of a
table, a slot, what a generator returns). An alarm is a run whose wealth was ever at least 1/alpha.
Per mechanism at most alpha of the runs may end so, plus three standard errors; for every mechanism the control, the
same with its claim a little smaller, must be found more often than that. Exit status 1 otherwise.

`--again` draws anew, as `dpcompose audit check --again` does: of each of five published bugs, 24 in 25 certificates
have to be confirmed, and for its mended twin at most alpha of them, plus three standard errors. `--speed` prints the
processor time of a call, over the audit and the process that it calls, beside a mechanism that costs nothing: on one
pair for several kinds of answers (20 microseconds allowed for a number), and on 24 pairs for a mechanism of 10
microseconds (60 allowed, so that 10^6 samples take a minute).
"""

from __future__ import annotations

import argparse
import logging
import math
import random
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from campaigns.audit_bugs import BUGS, Bug, audited, processor
from dpcompose import BlackBox, Gaussian, GaussianDP, RandomizedResponse
from dpcompose.audit import Learner, Pair, Subject, Transcripts, Verdict, again, audit, usual_pairs
from dpcompose.audit.canary import canaries
from dpcompose.audit.learned import LEARNERS
from dpcompose.audit.subject import Fresh, Source
from dpcompose.composition import Composable
from dpcompose.experiment import Experiment, Holds, Query, Repeater

Draw = Callable[[np.random.Generator, float, int], np.ndarray]
LATTICE = 2.0**30
"""Noise is on a lattice: a real law, whose bits tell nothing."""


def exact(noise: np.ndarray) -> np.ndarray:
    return np.round(noise * LATTICE) / LATTICE


def laplace(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    return data + exact(rng.laplace(size=n))


def gaussian(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    return data + exact(rng.normal(size=n))


def response(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 1 / (1 + math.exp(-1.0)), data, 1 - data)


def geometric(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    rate = -math.expm1(-1.0)
    return data + (rng.geometric(rate, n) - rng.geometric(rate, n)).astype(float)


def leak(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    """A datum is told with probability 0.01, else nothing."""
    return np.where(rng.random(n) < 0.01, data, -1.0)


def truncated(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    return np.clip(geometric(rng, data, n), -2.0, 3.0)


def choice(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    """Four answers, the right one e times as likely as each other one."""
    right = rng.random(n) < math.e / (math.e + 3)
    return np.where(right, data, (data + rng.integers(1, 4, n)) % 4)


def vector(rng: np.random.Generator, data: float, n: int) -> np.ndarray:
    return data + exact(rng.laplace(scale=3.0, size=(n, 3)))


GAUSSIAN = Gaussian(1.0).delta(epsilon=1.0).upper
CASES: dict[str, tuple[Draw, Composable, Composable, int]] = {
    "Laplace": (laplace, BlackBox(1.0), BlackBox(0.8), 1),
    "Gaussian, one point": (
        gaussian,
        BlackBox(1.0, delta=GAUSSIAN),
        BlackBox(1.0, delta=0.8 * GAUSSIAN),
        1,
    ),
    "Gaussian, its curve": (gaussian, Gaussian(1.0), Gaussian(1.3), 1),
    "randomized response": (response, BlackBox(1.0), BlackBox(0.8), 1),
    "geometric": (geometric, BlackBox(1.0), BlackBox(0.8), 1),
    "leak": (leak, BlackBox(0.5, delta=0.01), BlackBox(0.5, delta=0.005), 1),
    "truncated geometric": (truncated, BlackBox(1.0), BlackBox(0.8), 1),
    "one of four": (choice, BlackBox(1.0), BlackBox(0.8), 1),
    "three numbers, 2 apart": (vector, BlackBox(1.0), BlackBox(0.5), 2),
}


def printed(told: int, noise: float) -> float:
    print("clipped", told, "rows")
    return noise


def warned(told: int, noise: float) -> float:
    warnings.warn(f"clipped {told} rows", stacklevel=1)
    return noise


def logged(told: int, noise: float) -> float:
    logging.getLogger("campaign").warning("clipped %d rows", told)
    return noise


def complained(told: int, noise: float) -> float:
    sys.stderr.write(f"clipped {told} rows")
    return noise


def raised(told: int, noise: float) -> float:
    if noise < 0:
        raise ValueError(f"clipped {told} rows")
    return noise


def indexed(told: int, noise: float) -> Any:
    return pd.DataFrame({"sum": [noise]}, index=[f"top {told}"])


def columned(told: int, noise: float) -> Any:
    return pd.DataFrame({"sum": [noise], f"top {told}": ["x"]})


def named(told: int, noise: float) -> Any:
    return pd.Series([noise], name=told)


def categories(told: int, noise: float) -> Any:
    return {"noise": noise, "kind": pd.Categorical(["a"], categories=["a", str(told)])}


class Slots:
    __slots__ = ("noise", "told")

    def __init__(self, told: int, noise: float) -> None:
        self.told, self.noise = told, noise

    def __repr__(self) -> str:
        return "Slots"


async def awaited(told: int, noise: float) -> list[float]:
    return [noise, told]


def returned(told: int, noise: float) -> Generator[float, None, int]:
    yield noise
    return told


def imaginary(told: int, noise: float) -> complex:
    return complex(noise, told)


def keyed(told: int, noise: float) -> dict[Any, float]:
    return {(told if noise > 0 else str(told)): noise}


def late(told: int, noise: float) -> Any:
    return np.array([noise, *[None] * 80, told], dtype=object)


CALLED: dict[str, Callable[[int, float], Any]] = {
    "print": printed, "warning": warned, "log record": logged, "standard error": complained, "exception": raised,
    "index of a table": indexed, "column of a table": columned, "name of a series": named, "category": categories,
    "slot": Slots, "coroutine": awaited, "return of a generator": returned, "imaginary part": imaginary,
    "key": keyed, "late object": late,
}  # fmt: skip
"""How a number is told that has noise enough, beside other noise."""
MOST_CALLED = 1500
"""Rows of a mechanism that is called for each."""


@dataclass(frozen=True)
class Case:
    """One mechanism and a claim."""

    source: Callable[[int], Source]
    pair: Pair
    claim: Composable
    most: int = sys.maxsize
    learners: Sequence[Learner] = ()


def subject(draw: Draw, seed: int) -> Source:
    rng = np.random.default_rng(seed)
    return Subject(draw, batch=lambda data, n: draw(rng, data, n))  # pyright: ignore[reportArgumentType]


def called(tell: Callable[[int, float], Any], seed: int) -> Source:
    rng = np.random.default_rng(seed)
    return Subject(
        lambda data: tell(int(geometric(rng, data, 1)[0]), float(exact(rng.laplace(size=1))[0]))
    )


def memoizing(seed: int) -> Source:
    """A mechanism that stores its answer about each dataset; each call has a new instance."""
    rng = np.random.default_rng(seed)

    def make() -> Callable[[float], float]:
        answers: dict[float, float] = {}
        return lambda data: answers.setdefault(data, float(geometric(rng, data, 1)[0]))

    return Subject(make=make, fresh=Fresh.INSTANCE)


def cases() -> dict[str, tuple[Case, ...]]:
    """Every mechanism with its claim, and with one that is too small."""
    found: dict[str, tuple[Case, ...]] = {}
    for name, (draw, claim, small, distance) in CASES.items():
        pair = Pair(0.0, float(distance), distance=distance)

        def source(seed: int, draw: Draw = draw) -> Source:
            return subject(draw, seed)

        found[name] = Case(source, pair, claim), Case(source, pair, small)
    for name, tell in CALLED.items():

        def told(seed: int, tell: Callable[[int, float], Any] = tell) -> Source:
            return called(tell, seed)

        found[name] = tuple(
            Case(told, Pair(0.0, 1.0), BlackBox(claim), MOST_CALLED, LEARNERS)
            for claim in (1.0, 0.25)
        )
    found["answers from memory"] = tuple(
        Case(memoizing, Pair(0.0, 1.0), BlackBox(claim), MOST_CALLED, LEARNERS)
        for claim in (1.0, 0.25)
    )
    rounds = RandomizedResponse(0.5)
    game = Experiment(
        Repeater(Query(rounds, ("Bob",), (), Holds("Bob"))), family=[rounds], rounds=2
    )
    views = (lambda seed: Transcripts(game, seed=seed)), Transcripts(game).pair
    found["two adaptive rounds"] = Case(*views, BlackBox(0.5) * 2), Case(*views, BlackBox(0.4) * 2)
    return found


def alarms(case: Case, *, runs: Iterable[int], samples: int, alpha: float, seed: int) -> int:
    """The runs whose wealth was ever at least 1/alpha."""
    found = 0
    for run in runs:
        most = min(samples, case.most)
        asked: dict[str, Any] = {
            "claim": case.claim,
            "alpha": alpha,
            "samples": most,
            "ladder": False,
        }
        asked["learners"] = case.learners
        each = audit(case.source(1_000_003 * seed + run), [case.pair], **asked)
        found += each.verdict is Verdict.REFUTED or each.peak >= -math.log(alpha)
    return found


def one_run(runs: int) -> int:
    """Bounds from canaries of Gaussian runs, and of randomized response: their means, and how often one is too high."""
    rng, failed, delta = np.random.default_rng(1), False, 1e-5
    for mu, least, line in ((1.0, 1.65, 1.9), (4.0, 5.2, 7.3)):
        truth, bounds, lines = (
            GaussianDP(mu).epsilon(delta=delta).upper,
            list[float](),
            list[float](),
        )
        for _ in range(runs):
            bits = rng.random(1000) < 0.5
            scores = rng.normal(size=1000) + mu * bits
            found = canaries(scores, bits, claim=GaussianDP(mu), delta=delta)
            bounds.append(found.epsilon.lower)
            lines.append(found.gaussian or 0.0)
        above = sum(each > truth for each in bounds)
        failed |= np.mean(bounds) < least or np.mean(lines) < line or above > 0.05 * runs
        print(
            f"mu {mu}: {np.mean(bounds):.3f} of {truth:.3f}, line {np.mean(lines):.2f}, {above} above"
        )
    above = 0
    for _ in range(runs):
        bits = rng.integers(0, 2, 1000)
        told = np.where(rng.random(1000) < 1 / (1 + math.exp(-0.5)), bits, 1 - bits)
        found = canaries(told + rng.random(1000) / 2, bits, claim=BlackBox(0.5, delta=delta))
        above += found.epsilon.lower > 0.5
    print(f"randomized response: {above} of {runs} above its epsilon")
    return int(failed or above > 0.05 * runs + 3 * math.sqrt(0.0475 * runs))


CONFIRMED = (
    "noisy max tells its value, exponential", "histogram with epsilon as its scale", "Laplace noise in floats",
    "sparse vector without noise of queries (Stoddard et al. 2014)", "keys of the data",
)  # fmt: skip
"""The bugs whose certificates are drawn anew."""
FEW = 600
"""Rows for a twin, whose certificate is not to be confirmed."""


def confirmed(bug: Bug, which: str, *, runs: Iterable[int], alpha: float) -> int:
    """How many certificates against a bug new draws confirm, from the broken code or its twin."""
    count = 0
    for _ in runs:
        found = audited(bug, "broken", seconds=300, samples=100_000, alpha=alpha)
        assert found.certificate is not None and found.verdict is Verdict.REFUTED, bug.name
        call = bug.broken if which == "broken" else bug.twin
        subject = Subject(call, fresh=Fresh.WORKER, label=bug.name)
        most = None if which == "broken" else FEW
        count += again(found.certificate, subject, samples=most).refuted
    return count


def replications(runs: Iterable[int], alpha: float) -> int:
    """Certificates of five bugs at 1e-6 on new draws; and certificates at `alpha` on their twins."""
    listed, failed = [*runs], False
    most = alpha * len(listed) + 3 * math.sqrt(alpha * (1 - alpha) * len(listed))
    for bug in (each for each in BUGS if each.name in CONFIRMED):
        true = confirmed(bug, "broken", runs=listed, alpha=1e-6)
        false = confirmed(bug, "twin", runs=listed, alpha=alpha)
        failed |= true < math.floor(0.96 * len(listed)) or false > most
        print(
            f"{bug.name[:52]:<52} {true} of {len(listed)}, its twin {false} of {len(listed)}",
            flush=True,
        )
    return int(failed)


ANSWERS: dict[str, Callable[[float], Any]] = {
    "float": lambda noise: noise, "integer": lambda noise: int(noise * 8), "text": lambda noise: "ab"[noise > 0.5],
    "pair": lambda noise: (noise, 1), "five numbers": lambda noise: [noise] * 5,
    "mapping": lambda noise: {"a": noise, "b": 1.0},
}  # fmt: skip
PER_CALL, PER_CALL_OF_PAIRS, COSTLY = 20e-6, 60e-6, 10e-6
"""Seconds allowed for a call on one pair and on many, and the cost of the mechanism on many."""


def costly(rows: Sequence[float]) -> float:
    """A mechanism of `COSTLY` processor seconds."""
    ends = time.thread_time() + COSTLY
    while time.thread_time() < ends:
        pass
    return random.random()


def speed(samples: int, only: str) -> int:
    """Processor time of a call, by the kind of its answer, and on many pairs."""
    calls: dict[str, Callable[[Any], Any]] = {
        name: lambda rows, answer=answer: answer(random.random())
        for name, answer in ANSWERS.items()
    }
    calls |= {"24 pairs": costly}
    failed = False
    for name, call in calls.items():
        if only not in name:
            continue
        subject = Subject(call, fresh=Fresh.WORKER, label=name)
        many = name == "24 pairs"
        pairs = usual_pairs(subject, BlackBox(1.0))[:24] if many else [Pair((0.0,), (1.0,))]
        start = processor()
        found = audit(subject, pairs, claim=BlackBox(1.0), samples=samples, learners=LEARNERS)
        del subject
        each = (processor() - start) / found.samples
        failed |= each > (PER_CALL_OF_PAIRS if many else PER_CALL) and name in ("float", "24 pairs")
        print(f"{name:<14} {1e6 * each:5.1f} microseconds a call, {found.samples:,}", flush=True)
    return int(failed)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--share", default="1/1", help="2/10: the second tenth of the runs; counts of shares add up"
    )
    parser.add_argument(
        "--canaries", action="store_true", help="audits of one run in place of these"
    )
    parser.add_argument(
        "--again", action="store_true", help="certificates on new draws in place of these"
    )
    parser.add_argument("--speed", action="store_true", help="processor time of calls")
    options = parser.parse_args()
    if options.canaries:
        return one_run(options.runs)
    if options.speed:
        return speed(options.samples, options.only)
    share, shares = map(int, options.share.split("/"))
    asked_runs = range(share - 1, options.runs, shares)
    if options.again:
        return replications(asked_runs, options.alpha)
    most = options.alpha + 3 * math.sqrt(options.alpha * (1 - options.alpha) / len(asked_runs))
    failed, controls = False, max(10, len(asked_runs) // 50)
    asked: dict[str, Any] = {
        "samples": options.samples,
        "alpha": options.alpha,
        "seed": options.seed,
    }
    for name, (right, small) in cases().items():
        if options.only not in name:
            continue
        start = time.process_time()
        false = alarms(right, runs=asked_runs, **asked)
        caught = alarms(small, runs=range(controls), **asked)
        good = false <= most * len(asked_runs) and caught > 2 * most * controls
        failed |= not good
        seconds = time.process_time() - start
        print(
            f"{name:<24} {false:>4} of {len(asked_runs)}, control {caught:>3} of {controls}, {seconds:.0f} s",
            flush=True,
        )
    print("FAILED" if failed else f"none above {most:.4f}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
