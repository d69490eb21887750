"""How often the interval of an answer contains the exact number, over many draws on several data
sets.

python -m campaigns.release.coverage [DRAWS] [QUESTION ...]      (10,000 draws: some minutes)

Data sets have means close to the middle of the range or to an end, or few rows; each question is
asked with Laplace and with Gaussian noise. The exact integers are aggregated once; every draw uses
the code of a real answer.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import dpcompose.release as release
from dpcompose.release.aggregate import exact
from dpcompose.release.design import Released

CONFIDENCE = 0.95
Rows = Sequence[tuple[int, float, float]]


def _people(units: int, value: Any) -> Rows:
    rng = random.Random(7)
    return [(unit, value(rng), rng.uniform(1, 9)) for unit in range(units)]


SETS: Mapping[str, Rows] = {
    "incomes, near the lower end": _people(2000, lambda rng: min(rng.lognormvariate(2, 1), 100.0)),
    "ages, in the middle": _people(5000, lambda rng: min(max(rng.gauss(45, 20), 0.0), 100.0)),
    "marks, few rows": _people(150, lambda rng: float(rng.randint(60, 100))),
}
SPENDS: Mapping[str, Mapping[str, Any]] = {"Laplace": {"epsilon": 1}, "Gaussian": {"rho": 0.5}}
_ENDS: dict[str, Any] = {"lower": 0, "upper": 100}
QUESTIONS: Mapping[str, release.Question] = {
    "mean": release.Mean("amount", **_ENDS),
    "variance": release.Variance("amount", **_ENDS),
    "ratio": release.Ratio("amount", per="other", **_ENDS, per_lower=0, per_upper=10),
    "sum": release.Sum("amount", **_ENDS, granularity=1),
    "left out": release.LeftOut(release.Count()),
}


def covered(
    question: release.Question, rows: Rows, spend: Mapping[str, Any], draws: int
) -> tuple[float, float]:
    """The share of draws whose interval holds the exact number, and the mean width."""
    names = ("person", "amount", "other")
    frame = pa.table(
        dict(zip(names, (list(cells) for cells in zip(*rows, strict=True)), strict=True))
    )
    table = release.table(frame, unit="person", max_rows_per_unit=1)
    design = question.design(table, spend)
    found = exact(table, design.aggregation)
    table.close()
    ((), bins) = next(iter(found.items()))
    truth = Released(((),), tuple(((bins[0][measure],),) for measure in design.measures))
    true = question.columns(design, truth)[0].cells[0]
    hits, width = 0, 0.0
    for _ in range(draws):
        columns = question.columns(design, design.draw(found))
        (low,), (high,) = question.interval(design, 1 - CONFIDENCE, columns)
        hits += low - 1e-9 <= true <= high + 1e-9
        width += (high - low) / draws
    return hits / draws, width


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    outside = False
    for name in sys.argv[2:] or QUESTIONS:
        for label, rows in SETS.items():
            for noise, spend in SPENDS.items():
                began = time.process_time()
                share, width = covered(QUESTIONS[name], rows, spend, draws)
                outside |= share < CONFIDENCE - 4 * (CONFIDENCE * (1 - CONFIDENCE) / draws) ** 0.5
                outside |= name == "mean" and not share <= 0.97
                took = time.process_time() - began
                print(
                    f"{name:9} {label:28} {noise:8} {share:.4f}  width {width:.4g}  {took:.0f} s",
                    flush=True,
                )
    print("outside what is stated" if outside else "all as stated")
    sys.exit(outside)


if __name__ == "__main__":
    main()
