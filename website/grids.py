"""Certified values on grids, for the pages of docs/play, as docs/assets/grids.js.

    python -m website.grids

A page looks up the next point at which the truth can only be larger: more mechanisms, a larger epsilon, less delta; for
a lower end, the next at which it can only be smaller. A browser reads what is typed as the nearest double, so every
point is computed one double beyond its label. Values are rounded up to five digits, lower ends down.
"""

from __future__ import annotations

import json
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path

from dpcompose import book
from dpcompose.book.theorems import SLACK
from dpcompose.guarantee.optimal import homogeneous_epsilon

PLACE = Path(__file__).parents[1] / "docs" / "assets" / "grids.js"
START = "window.dpcomposeGrids = "
STEPS = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
FEW = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80]
TIMES = [
    *FEW,
    100,
    101,
    *(int(each * 10**power) for power in (2, 3, 4) for each in STEPS if each * 10**power > 100),
    100_000,
]
EPSILONS = [*(float(f"{each}e{power}") for power in range(-4, 0) for each in STEPS), 1.0]
# The last but one is just below e^-32.
DELTAS = [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12, 1.2664e-14, 1e-15]
ODDS = list(range(690, 861))
UP, DOWN = Context(prec=5, rounding=ROUND_CEILING), Context(prec=5, rounding=ROUND_FLOOR)


def above(value: float) -> float:
    """Five digits, rounded up."""
    return float(UP.plus(Decimal(value)))


def below(value: float) -> float:
    """Five digits, rounded down."""
    return float(DOWN.plus(Decimal(value)))


def optimum(times: int, epsilon: float, delta: float) -> float:
    """The least total epsilon, for whatever a browser reads as these numbers."""
    wider, less = math.nextafter(epsilon, math.inf), math.nextafter(delta, 0.0)
    return above(homogeneous_epsilon(less, epsilon=wider, times=times).upper)


def bob(odds: int) -> list[float]:
    """Example 3.7 at one part in `odds`: total epsilon, P[loss > 1] and, from below, that of randomized response."""
    found = book.example_3_7(math.nextafter(1 / odds, 1.0))
    response = book.example_3_7(math.nextafter(1 / odds, 0.0)).loss_above_1_response
    return [
        above(found.optimum),
        above(found.loss_above_1 / SLACK * (1 + 1e-12)),
        below(response / SLACK * (1 - 1e-12)),
    ]


def mean(epsilon: float) -> list[float]:
    """Lemma 3.18: what is printed, and what is true."""
    found = book.kl_bound(math.nextafter(epsilon, math.inf))
    return [above(found.book), above(found.tight)]


def grids() -> dict[str, object]:
    """Everything the pages look up."""
    return {
        "times": TIMES,
        "epsilons": EPSILONS,
        "deltas": DELTAS,
        "odds": ODDS,
        "optimum": [
            [[optimum(k, each, delta) for delta in DELTAS] for each in EPSILONS] for k in TIMES
        ],
        "bob": [bob(each) for each in ODDS],
        "mean": [mean(each) for each in EPSILONS],
    }


def main() -> None:
    """Write the file: the same bytes each time."""
    PLACE.write_text(START + json.dumps(grids(), separators=(",", ":")) + ";\n", "utf-8")


if __name__ == "__main__":
    main()
