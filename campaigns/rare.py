"""Sampled Gaussians, including rare sampling, compared with ball arithmetic.

    python -m campaigns.rare --cells 2000 --share 1/4

Each cell is one sampled Gaussian mechanism, or in one of eight cells two different ones, with
parameters like those of `benchmarks.survey`: sigma from 0.3 to 10, rate from 1e-6 to 0.5, 1 to 10^8
steps, delta from 1e-5 to 1e-15, each between the survey's values. The library computes epsilon; at
both ends of the answer delta is enclosed on the line Re t = -1/2 (oracles/halfway.py), for a single
step in closed form, and on lines to the right of 0 where that line needs too many nodes:
delta(lower) >= delta >= delta(upper). Output: the number of proved cells, and the cells that are
  OUTSIDE   the library is wrong, or an oracle is
  OPEN      a ball is too wide to decide
  WIDE      the answer is wider than 1e-6 of itself
`--shift X` moves both ends by a relative X: a control, which must be detected. Exit status 1 if a
cell is outside.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass
from random import Random

from flint import arb

from campaigns.names import NAMES
from dpcompose import Bound
from oracles import contour, halfway, sampled, short
from oracles.ball import ratio
from oracles.contour import Parts
from oracles.normal import Direction, SampledGaussian

WIDE = 1e-6
FEW = 100
"""Up to so many steps a line in floats, of a million nodes, is tried last."""
BITS = (50, 90)
FARTHEST = 300.0
"""Above this epsilon, the line at -1/2 takes more digits than one to the right of 0 takes nodes."""
VERDICTS = ("inside", "open", "outside")


@dataclass(frozen=True)
class Cell:
    """A composition of (sigma, rate, steps), and the delta at which it is asked."""

    rows: tuple[tuple[float, float, int], ...]
    delta: float

    @property
    def code(self) -> str:
        """The composition as a line of Python."""
        parts = (
            f"Gaussian({sigma!r}).sampled({rate!r}) * {steps}" for sigma, rate, steps in self.rows
        )
        return f"compose({', '.join(parts)})"

    def answer(self) -> Bound:
        """What the library says."""
        return eval(self.code, NAMES).epsilon(delta=self.delta)

    def parts(self, direction: Direction) -> Parts:
        """The losses of one order."""
        return tuple(
            (SampledGaussian(rate, ratio(1, sigma), direction), steps)
            for sigma, rate, steps in self.rows
        )


def drawn(number: int, seed: int) -> Cell:
    """The cell of that number."""
    rng = Random(f"{seed} rare {number}")
    kinds = 2 if number % 8 == 7 else 1
    rows = tuple(
        (
            10 ** rng.uniform(math.log10(0.3), 1),
            10 ** rng.uniform(-6, math.log10(0.5)),
            int(10 ** rng.uniform(0, 8)),
        )
        for _ in range(kinds)
    )
    return Cell(rows, 10 ** -rng.uniform(5, 15))


def verdict(cell: Cell, answer: Bound) -> str:
    """Whether epsilon(delta) is proved to be inside: delta(lower) >= delta and delta(upper) <= delta."""
    found: list[str] = []
    if answer.lower > 0:
        found.append(_compared(cell, answer.lower, 1, (Direction.REMOVE, Direction.ADD)))
    if answer.upper < math.inf:
        both = [
            _compared(cell, answer.upper, -1, (direction,))
            for direction in (Direction.REMOVE, Direction.ADD)
        ]
        found += both
    return max(found, key=VERDICTS.index, default="inside")


def _compared(cell: Cell, end: float, sign: int, directions: tuple[Direction, ...]) -> str:
    """Whether sign (delta(end) - delta) >= 0 in one of the directions: `outside` if in none."""
    shown: list[str] = []
    for direction in directions:
        found = "open"
        for bits in BITS:
            value = _truth(cell, end, direction, bits)
            gap = sign * (value - arb(cell.delta))
            found = "inside" if gap >= 0 else "outside" if gap < 0 else "open"
            if found != "open" or value.rel_accuracy_bits() < bits / 2:
                break  # told, or more digits would take too many nodes
        if found == "inside":
            return found
        shown.append(found)
    return "open" if "open" in shown else "outside"


def _truth(cell: Cell, epsilon: float, direction: Direction, bits: int) -> arb:
    """A ball around delta(epsilon) of one order, by the first oracle that is narrow."""
    if len(cell.rows) == 1 and cell.rows[0][2] == 1:
        sigma, rate, _ = cell.rows[0]
        closed = sampled.remove if direction is Direction.REMOVE else sampled.add
        return closed(epsilon, rate, sampled.gaussian(ratio(1, sigma)))
    if epsilon > FARTHEST:
        return contour.delta(epsilon, cell.parts(direction))
    ours, theirs = (cell.parts(each) for each in (Direction.REMOVE, Direction.ADD))
    line = halfway.around(epsilon, ours, theirs, bits=bits, goal=cell.delta)
    value = line.delta(epsilon) if direction is Direction.REMOVE else line.reverse(epsilon)
    if abs(value - arb(cell.delta)) > 0 or value.rel_accuracy_bits() >= 0.8 * bits:
        return value
    value = value.intersection(contour.delta(epsilon, cell.parts(direction), nodes=4000))
    if len(cell.rows) == 1 and cell.rows[0][2] <= FEW and value.rel_accuracy_bits() < 0.8 * bits:
        ((sigma, rate, steps),) = cell.rows
        law = SampledGaussian(rate, ratio(1, sigma), direction)
        value = value.intersection(short.delta(epsilon, law, times=steps))
    return value


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=200, help="of all shares together")
    parser.add_argument("--share", default="1/1", help="2/4 is the second of four shares")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--shift", type=float, default=0.0, help="move both ends by this share of themselves"
    )
    options = parser.parse_args()
    share, shares = map(int, options.share.split("/"))
    counts: Counter[str] = Counter()
    for number in range(share - 1, options.cells, shares):
        counts += examined(drawn(number, options.seed), options.shift)
    print(
        ", ".join(
            f"{counts[kind]} {kind}"
            for kind in ("cells", "proved", "open", "outside", "wide", "zero")
        )
    )
    return 1 if counts["outside"] else 0


def examined(cell: Cell, shift: float = 0.0) -> Counter[str]:
    """One cell, counted, and printed if there is something to be seen."""
    answer, started = cell.answer(), time.process_time()
    answer = Bound(answer.lower * (1 + shift), answer.upper * (1 + shift))
    found = verdict(cell, answer)
    counts = Counter(
        {"cells": 1, "proved" if found == "inside" else found: 1, "zero": answer.upper == 0}
    )
    wide = answer.width > WIDE * answer.upper
    counts["wide"] += wide
    for kind, applies in ((found, found != "inside"), ("wide", wide)):
        if applies:
            seconds = time.process_time() - started
            text = (
                f"{cell.code}.epsilon(delta={cell.delta!r}): [{answer.lower!r}, {answer.upper!r}]"
            )
            print(f"{kind.upper()} {text}  {seconds:.1f} s", flush=True)
    return counts


if __name__ == "__main__":
    sys.exit(main())
