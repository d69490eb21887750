"""`python -m benchmarks.survey [--share 1/4] [--picture FILE]`: 1,344 compositions of one sampled Gaussian mechanism.

Sigma from 0.3 to 10, rate from 1e-6 to 0.5, 1 to 10^8 steps, delta from 1e-5 to 1e-15: every choice of one of each.
Printed are how many answers are wider than 1e-6 and than 1e-3 of their upper ends, the slowest, and how many are
above an elementary theorem: basic composition of the answers for one step, and everybody sampled.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from dpcompose import Bound, Gaussian

SIGMAS = (0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0, 10.0)
RATES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
STEPS = (1, 10, 100, 1000, 10**4, 10**5, 10**6, 10**8)
DELTAS = (1e-5, 1e-10, 1e-15)
LEAST = 1e-13
"""Where a width of zero is drawn."""


@dataclass(frozen=True)
class Cell:
    """One composition, its answer, and the processor seconds that it took."""

    sigma: float
    rate: float
    steps: int
    delta: float
    answer: Bound
    seconds: float

    @property
    def width(self) -> float:
        """The relative width of epsilon."""
        return self.answer.width / self.answer.upper if self.answer.upper > 0 else 0.0

    @property
    def theorem(self) -> float:
        """The smaller of what basic composition and the composition without sampling say."""
        one = Gaussian(self.sigma).sampled(self.rate).epsilon(delta=self.delta / self.steps)
        everybody = (Gaussian(self.sigma) * self.steps).epsilon(delta=self.delta)
        return min(self.steps * one.upper, everybody.upper)


def survey(share: int = 1, shares: int = 1) -> list[Cell]:
    """Every cell of one share."""
    found: list[Cell] = []
    for sigma, rate, steps, delta in list(product(SIGMAS, RATES, STEPS, DELTAS))[
        share - 1 :: shares
    ]:
        began = time.process_time()
        answer = (Gaussian(sigma).sampled(rate) * steps).epsilon(delta=delta)
        found.append(Cell(sigma, rate, steps, delta, answer, time.process_time() - began))
    return found


def show(cells: list[Cell]) -> None:
    """The counts, and a line for each cell that is wide, slow, or above a theorem."""
    wide = [cell for cell in cells if cell.width > 1e-6]
    above = [cell for cell in cells if cell.answer.upper > cell.theorem * (1 + 1e-9)]
    slowest = max(cells, key=lambda cell: cell.seconds)
    for name, group in (
        ("wide", wide),
        ("above", above),
        ("slow", [cell for cell in cells if cell.seconds > 1]),
    ):
        for cell in group:
            line = f"(Gaussian({cell.sigma}).sampled({cell.rate}) * {cell.steps}).epsilon(delta={cell.delta})"
            print(
                f"{name:6} {line:70} {cell.answer.upper:.6g} {cell.width:.1e} {cell.seconds:.2f} s"
            )
    print(
        f"{len(cells)} cells, {len(wide)} wider than 1e-6, {sum(cell.width > 1e-3 for cell in cells)} wider than 1e-3"
    )
    print(f"slowest {slowest.seconds:.2f} s, all {math.fsum(cell.seconds for cell in cells):.1f} s")
    print(f"{len(above)} above an elementary theorem")


def draw(cells: list[Cell], path: Path) -> None:
    """Width over the expected number of sampled steps, one panel a delta, as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 4.0), layout="constrained")
    for axes, delta in zip(figure.subplots(1, len(DELTAS), sharey=True), DELTAS, strict=True):
        for sigma in SIGMAS:
            chosen = [cell for cell in cells if cell.delta == delta and cell.sigma == sigma]
            widths = [max(cell.width, LEAST) for cell in chosen]
            axes.scatter(
                [cell.rate * cell.steps for cell in chosen], widths, s=9, label=f"sigma {sigma:g}"
            )
        axes.set(xscale="log", yscale="log", title=f"delta {delta:g}", xlabel="rate times steps")
        axes.axhline(1e-6, color="black", linewidth=0.6)
        axes.grid(True, alpha=0.25)
    figure.axes[0].set_ylabel("relative width of epsilon")
    figure.axes[-1].legend(fontsize=7)
    figure.savefig(path, format="png", dpi=110, facecolor="white")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", default="1/1", help="2/4 is the second of four shares")
    parser.add_argument("--picture", type=Path, help="where to draw the widths, as a PNG")
    chosen = parser.parse_args()
    share, shares = map(int, chosen.share.split("/"))
    cells = survey(share, shares)
    show(cells)
    if chosen.picture is not None:
        draw(cells, chosen.picture)


if __name__ == "__main__":
    main()
