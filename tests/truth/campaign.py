"""Random compositions: is the truth inside every interval that the library certifies?

    PYTHONPATH=src:tests python -m truth.campaign --compositions 300 --seed 1 [--family sgd] [--processes 2] [--proof]

draws that many compositions of every family (truth/families.py) and asks each for epsilon(delta), delta from 0.5 to
1e-300, and for delta(epsilon), epsilon also negative, 0 and next to the largest loss, at tolerances down to 1e-12. An
answer is *inside* if ball arithmetic proves lower <= truth <= upper, *outside* if it proves the opposite, *open* if
its ball is too wide to tell, *vacuous* if it says nothing (an infinite upper epsilon, delta between 0 and 1), and
*refused* or *failed* if there was none. One line for every family; everything that is not inside is printed with the
line of Python that repeats it. Exit status 1 if anything was outside or failed.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random

from flint import arb

import dpcompose
from truth import subject
from truth.families import FAMILIES

ADJACENCY = dict.fromkeys(("replaced", "replaced_sgd"), dpcompose.Adjacency.REPLACE)


@dataclass(frozen=True)
class Outcome:
    """One answer: a verdict, the line that repeats it, and the relative width of the answer."""

    family: str
    verdict: str
    line: str
    width: float
    seconds: float


def examine(family: str, seed: int, *, proof: bool = False) -> list[Outcome]:
    """The composition number `seed` of a family, asked twice."""
    rng = Random(f"{family} {seed}")
    parts = FAMILIES[family](rng)
    adjacency = ADJACENCY.get(family, dpcompose.Adjacency.ADD_REMOVE)
    composition = eval(subject.code(parts), vars(dpcompose))
    delta, tolerance = _delta(rng), rng.choice([1e-6, 1e-9, 1e-9, 1e-12])
    options: dict[str, object] = {"tolerance": tolerance, "adjacency": adjacency, "proof": proof}
    first, bound = _asked(family, composition, parts, options, delta=delta)
    epsilon = _epsilon(rng, parts, bound)
    second, _ = _asked(family, composition, parts, options, epsilon=epsilon)
    return [first, second]


def _delta(rng: Random) -> float:
    exponent = rng.choice([rng.uniform(0.3, 12), rng.uniform(0.3, 12), rng.uniform(12, 100), rng.uniform(100, 300)])
    return 10**-exponent


def _epsilon(rng: Random, parts: subject.Parts, bound: dpcompose.Bound | None) -> float:
    scale = bound.upper if bound is not None and 0 < bound.upper < math.inf else 1.0
    largest = subject.largest(parts)
    if rng.random() < 0.15 and largest < math.inf:
        return largest * (1 - 10 ** rng.uniform(-16, -1))
    return rng.choice(
        [scale, scale * rng.uniform(0.3, 1.1), scale * rng.uniform(0, 1), 0.0, -scale * rng.uniform(0, 0.5)]
    )


def _asked(
    family: str,
    composition: dpcompose.Composition,
    parts: subject.Parts,
    options: dict[str, object],
    **question: float,
) -> tuple[Outcome, dpcompose.Bound | None]:
    ((name, value),) = question.items()
    asked = ("epsilon", "delta")[name == "epsilon"]
    shown = ", ".join(f"{key}={each}" for key, each in options.items())
    line, start = f"{subject.code(parts)}.{asked}({name}={value!r}, {shown})", time.perf_counter()
    try:
        answer = getattr(composition, asked)(**question, **options)
    except dpcompose.UnsupportedError as error:
        return Outcome(family, "refused", f"{line}  # {error}", math.inf, 0.0), None
    except Exception as error:  # whatever it is, it is what the campaign looks for
        return Outcome(family, "failed", f"{line}  # {type(error).__name__}: {error}", math.inf, 0.0), None
    seconds = time.perf_counter() - start
    verdict, shown = (epsilon_verdict if asked == "epsilon" else delta_verdict)(answer, value, parts)
    width = (
        answer.width / abs(answer.upper) if answer.upper and answer.width < math.inf else (1.0 if answer.width else 0.0)
    )
    return Outcome(family, verdict, f"{line}  # [{answer.lower!r}, {answer.upper!r}], {shown}", width, seconds), answer


def delta_verdict(answer: dpcompose.Bound, epsilon: float, parts: subject.Parts) -> tuple[str, str]:
    """Whether the truth at `epsilon` is inside the answer."""
    truth = subject.delta(epsilon, parts)
    shown = f"truth {truth.str(20)}"
    if truth < answer.lower or truth > answer.upper:
        return "outside", shown
    proved = (answer.lower <= 0 or answer.lower <= truth) and (answer.upper >= 1 or truth <= answer.upper)
    empty = answer.lower <= 0 and answer.upper >= 1 and truth < 0.5
    return ("vacuous" if empty else "inside" if proved else "open"), shown


def epsilon_verdict(answer: dpcompose.Bound, delta: float, parts: subject.Parts) -> tuple[str, str]:
    """lower <= epsilon(delta) where delta(lower) >= delta, and epsilon(delta) <= upper where delta(upper) <= delta."""
    goal, verdicts, shown = arb(delta), ["inside"], []
    for end, sign in ((answer.lower, 1), (answer.upper, -1)):
        if sign > 0 and end <= 0:
            continue
        if end == math.inf:
            outside = subject.infinity(parts)
            verdicts.append(
                "inside" if outside > goal else "outside" if sign > 0 else "vacuous" if outside < goal else "open"
            )
            shown.append(f"delta(inf) = {outside.str(20)}")
            continue
        truth = subject.delta(end, parts)
        shown.append(f"delta({end!r}) = {truth.str(20)}")
        verdicts.append("inside" if sign * (truth - goal) >= 0 else "outside" if sign * (truth - goal) < 0 else "open")
    return max(verdicts, key=("inside", "vacuous", "open", "outside").index), "truth " + ", ".join(shown)


def run(families: Iterable[str], seeds: Iterable[int], *, processes: int = 1, proof: bool = False) -> Iterator[Outcome]:
    """Every outcome, family by family."""
    jobs = [(family, seed) for family in families for seed in seeds]
    one = partial(examine, proof=proof)
    if processes == 1:
        for family, seed in jobs:
            yield from one(family, seed)
        return
    with ProcessPoolExecutor(processes) as pool:
        for outcomes in pool.map(one, *zip(*jobs, strict=True), chunksize=5):
            yield from outcomes


def report(outcomes: Iterable[Outcome]) -> Counter[str]:
    """Print everything that is not inside, then a line for the family; return the count of each verdict."""
    table: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        table[outcome.family].append(outcome)
        if outcome.verdict not in ("inside", "refused"):
            print(f"{outcome.verdict.upper()} {outcome.family}: {outcome.line}", flush=True)
    total: Counter[str] = Counter()
    for family, rows in table.items():
        count = Counter(row.verdict for row in rows)
        total += count
        widths = sorted(row.width for row in rows)
        times = sorted(row.seconds for row in rows)
        print(
            f"{family:18} answers {len(rows):5}  "
            + "  ".join(f"{verdict} {count[verdict]}" for verdict in sorted(count))
            + f"  width median {widths[len(rows) // 2]:.1e} p95 {widths[len(rows) * 95 // 100]:.1e}"
            + f"  ms median {1e3 * times[len(rows) // 2]:.1f} p95 {1e3 * times[len(rows) * 95 // 100]:.1f}"
        )
    return total


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compositions", type=int, default=50, help="for each family")
    parser.add_argument("--seed", type=int, default=1, help="the number of the first composition")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="default: all of them")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--proof", action="store_true", help="ask the library for its answer in ball arithmetic")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.compositions)
    print(f"seeds {seeds.start} to {seeds.stop - 1}")
    total: Counter[str] = Counter()
    for family in options.family or FAMILIES:
        total += report(run([family], seeds, processes=options.processes, proof=options.proof))
    print(f"total {sum(total.values())}: " + ", ".join(f"{verdict} {number}" for verdict, number in total.items()))
    return 1 if total["outside"] + total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
