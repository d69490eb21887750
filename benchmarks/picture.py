"""Time and excess of every system at every case, as a PNG."""

from __future__ import annotations

import math
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.systems import OURS, TITLES
from benchmarks.table import Run
from benchmarks.verdict import judge, truth

# Okabe and Ito's palette: told apart by the color-blind.
COLORS = dict(
    zip(TITLES, ("#0072b2", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"), strict=True)
)
LEAST = 1e-13
"""Where an excess of zero is drawn."""


def draw(run: Run, path: Path) -> None:
    """Seconds on the left; on the right how far the claimed value is from the truth, crosses where it lies below."""
    count = len(run.results)
    figure = Figure(figsize=(13.0, 1.6 + 0.19 * count), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for name in (name for name in TITLES if any(name in row for _, row in run.results)):
        _times(left, run, name)
        _excesses(right, run, name)
    left.set_yticks(
        range(count),
        [f"{case.name}, delta {case.delta:.3g}" for case, _ in run.results],
        fontsize=7,
    )
    left.set(xscale="log", xlabel="seconds (median)", title="Time")
    right.set(
        xscale="log",
        xlabel="relative distance from the truth",
        title="Tightness: dots above, crosses below the truth",
    )
    left.invert_yaxis()
    for axes in (left, right):
        axes.grid(True, alpha=0.25, linewidth=0.6)
    figure.legend(loc="outside upper center", ncols=len(TITLES), frameon=False, fontsize=9)
    figure.savefig(path, format="png", dpi=110, facecolor="white")


def _times(axes: Axes, run: Run, name: str) -> None:
    points = [
        (row[name].time, place)
        for place, (_, row) in enumerate(run.results)
        if name in row and row[name].seconds
    ]
    _scatter(axes, points, name, marker="o", label=TITLES[name])


def _excesses(axes: Axes, run: Run, name: str) -> None:
    """Ours is at least its own width."""
    above: list[tuple[float, int]] = []
    below: list[tuple[float, int]] = []
    for place, (case, row) in enumerate(run.results):
        known = truth(case, row[OURS])
        if known is None or name not in row or row[name].failure:
            continue
        verdict = judge(row[name].upper, known, lower=row[name].lower)
        # Nobody's distance is known better than the truth is.
        distance = max(
            abs(verdict.excess),
            known.upper / known.lower - 1,
            row[name].width if name == OURS else 0.0,
        )
        if math.isfinite(distance):
            (below if verdict.unsound else above).append((max(distance, LEAST), place))
    _scatter(axes, above, name, marker="o")
    _scatter(axes, below, name, marker="x")


def _scatter(
    axes: Axes, points: list[tuple[float, int]], name: str, *, marker: str, label: str | None = None
) -> None:
    size = 34 if name == OURS else 22
    axes.scatter(
        [x for x, _ in points],
        [y for _, y in points],
        s=size,
        color=COLORS[name],
        marker=marker,
        label=label,
    )
