"""Random compositions by several lines each: do all intervals that must contain the same truth intersect?

    PYTHONPATH=src:tests python -m truth.tilts --compositions 6000 --seed 1 [--family sgd] [--processes 2]

Any vertical line certifies the same number, so lines at 0.93, 0.97, 1 and 1.03 of the saddle point, with other nodes,
other aliases and other roundings, are four independent answers to one question. Each composition of truth/families.py
is asked for delta(epsilon), at epsilons as in `truth.campaign`, and for epsilon(delta), whose two ends are then judged
by the four lines. Two answers that do not meet are a proof that one of them is wrong: they are printed with the line of
Python that repeats them, and the exit status is 1. What has no line (a closed form, a finite sum, an enumeration) is
counted as such.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from random import Random

import numpy as np

import dpcompose
from dpcompose.composition import numerical
from dpcompose.loss.product import Product
from dpcompose.numerics import saddle
from dpcompose.numerics.contour import relative_value
from dpcompose.numerics.drawing import draw
from dpcompose.numerics.invert import Reading
from dpcompose.numerics.transform import Transform
from truth import campaign, subject
from truth.families import FAMILIES

TILTS = (0.93, 0.97, 1.0, 1.03)
BUDGET = 20_000


@dataclass(frozen=True)
class Meeting:
    """One composition: how many intervals were compared, and what did not meet."""

    family: str
    compared: int
    apart: tuple[str, ...]


@np.errstate(all="ignore")
def tilted(transform: Transform, x: float, tilt: float, tolerance: float) -> Reading | None:
    """g(x) from a line at `tilt` times the saddle point; None where there is no line."""
    order = saddle.short(saddle.for_value(transform, x) * tilt, bits=24)
    log_m, _, variance = transform.cumulants(order)
    if not (math.isfinite(log_m) and variance > 0 and x < transform.maximum):
        return None
    log_mass = min(log_m - order * x + math.log(relative_value(variance, order)), 0.0)
    contour = draw(transform, order=order, x=x, log_mass=log_mass, tolerance=tolerance, budget=BUDGET)
    bracket = contour.bracket(x)
    lower, upper = max(bracket.lower, 0.0), min(bracket.upper, 1.0)
    return Reading(min(lower, upper), upper, contour, bracket)


def lines(product: Product, epsilon: float, tolerance: float) -> list[dpcompose.Bound]:
    """delta(epsilon) of one direction by every line; empty where the product needs none."""
    if not product.reduced or product.single is not None or product.infinite.lower == 1 or epsilon < -40:
        return []
    readings = [tilted(product.transform, epsilon, tilt, tolerance) for tilt in TILTS]
    return [product._clipped(epsilon, tolerance, reading) for reading in readings if reading is not None]


def examine(family: str, seed: int) -> Meeting:
    """The composition number `seed` of a family."""
    rng = Random(f"tilts {family} {seed}")
    parts = FAMILIES[family](rng)
    adjacency = campaign.ADJACENCY.get(family, dpcompose.Adjacency.ADD_REMOVE)
    composition = eval(subject.code(parts), vars(dpcompose))
    delta, tolerance = campaign._delta(rng), rng.choice([1e-6, 1e-9, 1e-9, 1e-12])
    options = {"adjacency": adjacency, "tolerance": tolerance}
    try:
        answer = composition.epsilon(delta=delta, **options)
    except dpcompose.UnsupportedError:
        return Meeting(family, 0, ())
    epsilon = campaign._epsilon(rng, parts, answer)
    question = numerical.question(composition, adjacency, dpcompose.Orientation.SAME, tolerance, False)
    shown, apart, compared = f"{subject.code(parts)} {options}", [], 0
    found = composition.delta(epsilon=epsilon, **options)
    for place, low, high in (
        (epsilon, found.lower, found.upper),
        (answer.upper, -math.inf, delta),  # delta(upper end) <= delta
        (answer.lower, delta if answer.lower > 0 else -math.inf, math.inf),  # delta(lower end) >= delta
    ):
        if not math.isfinite(place):
            continue
        rows = [lines(product, place, tolerance) for product in question.above]
        compared += sum(map(len, rows))
        for row in rows:
            if row and max(bound.lower for bound in row) > min(bound.upper for bound in row):
                apart.append(f"{shown} at {place!r}: {[(bound.lower, bound.upper) for bound in row]}")
        if question.attained and all(rows):
            least = max(bound.lower for row in rows for bound in row)
            most = max(min(bound.upper for bound in row) for row in rows)
            if least > high or most < low:
                apart.append(f"{shown} at {place!r}: [{low!r}, {high!r}] against [{least!r}, {most!r}]")
    return Meeting(family, compared, tuple(apart))


def run(families: Iterable[str], seeds: Iterable[int], *, processes: int = 1) -> Iterator[Meeting]:
    """Every meeting, family by family."""
    jobs = [(family, seed) for family in families for seed in seeds]
    if processes == 1:
        yield from (examine(family, seed) for family, seed in jobs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(examine, *zip(*jobs, strict=True), chunksize=20)


def report(meetings: Iterable[Meeting]) -> tuple[int, int, int]:
    """Print what is apart and a line for each family; return how many compositions, intervals and contradictions."""
    total, without, compared = Counter[str](), Counter[str](), Counter[str]()
    apart = 0
    for meeting in meetings:
        total[meeting.family] += 1
        compared[meeting.family] += meeting.compared
        without[meeting.family] += not meeting.compared
        for line in meeting.apart:
            apart += 1
            print(f"APART {meeting.family}: {line}", flush=True)
    for family, number in total.items():
        line = f"compositions {number:6}  without a line {without[family]:6}  intervals {compared[family]:7}"
        print(f"{family:18} {line}")
    return sum(total.values()), sum(compared.values()), apart


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compositions", type=int, default=100, help="for each family")
    parser.add_argument("--seed", type=int, default=1, help="the number of the first composition")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="default: all of them")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.compositions)
    print(f"seeds {seeds.start} to {seeds.stop - 1}")
    compositions = compared = apart = 0
    for family in options.family or FAMILIES:
        counts = report(run([family], seeds, processes=options.processes))
        compositions, compared, apart = compositions + counts[0], compared + counts[1], apart + counts[2]
    print(f"total: {compositions} compositions, {compared} intervals, {apart} that do not meet")
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
