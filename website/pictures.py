"""The pictures of docs/book.md and docs/gallery.md, as SVG in docs/pictures.

    python -m website.pictures

Every curve is made of certified upper ends; a lower end is drawn where it says what cannot be better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpcompose import book
from dpcompose.book.theorems import SLACK

PLACE = Path(__file__).parents[1] / "docs" / "pictures"
BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"


def example_3_7() -> Figure:
    """Both readings of "except with probability e^-32", over what each of the 10,000 databases may spend."""
    odds = range(690, 861, 5)
    found = [book.example_3_7(1 / each) for each in odds]
    figure = Figure(figsize=(10.0, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2)
    for values, color, name, place in (
        ([each.theorem_3_20 for each in found], ORANGE, "Theorem 3.20", (750, 1.14)),
        (
            [each.theorem_3_20_tight for each in found],
            PINK,
            "with the tight mean loss",
            (750, 1.115),
        ),
        ([each.optimum for each in found], BLUE, "the optimum", (700, 0.95)),
    ):
        left.plot(odds, values, color=color)
        left.text(*place, name, color=color, fontsize=9)
    left.set_title("(1, e$^{-32}$)-differential privacy", fontsize=10)
    left.set_ylabel("total epsilon at delta = e$^{-32}$")
    for values, color, name, place in (
        ([each.loss_above_1 / SLACK for each in found], BLUE, "everyone: at most", (775, 6.0)),
        (
            [each.loss_above_1_response / SLACK for each in found],
            GREEN,
            "randomized response",
            (700, 0.15),
        ),
    ):
        right.plot(odds, values, color=color)
        right.text(*place, name, color=color, fontsize=9)
    right.set_title("the loss exceeds 1 with probability e$^{-32}$ at most", fontsize=10)
    right.set(yscale="log", ylabel="P[loss > 1], in units of e$^{-32}$")
    for axes in (left, right):
        _frame(axes, [700, 750, 801, 850])
        axes.set_xlabel("each database spends one part in ...")
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.axvline(801, color="black", linewidth=0.8, linestyle=":")
    return figure


def theorem_3_20() -> Figure:
    """The sum grows as k, the theorem and the optimum as the square root of k."""
    times = sorted({round(10 ** (power / 40)) for power in range(161)})
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    axes = figure.subplots()
    for values, color, name, up in (
        ([book.basic([(0.01, 0.0)] * k).epsilon for k in times], ORANGE, "the sum: k", 1.3),
        (
            [book.advanced(0.01, times=k, slack=1e-6).epsilon for k in times],
            PINK,
            "Theorem 3.20",
            1.0,
        ),
        (
            [book.optimal(0.01, times=k, total_delta=1e-6).epsilon for k in times],
            BLUE,
            "the optimum",
            0.72,
        ),
    ):
        axes.plot(times, values, color=color)
        axes.text(11_500, values[-1] * up, name, color=color, fontsize=9, clip_on=False)
    _frame(axes, [1, 10, 28, 100, 1000, 10_000])
    axes.set(xscale="log", yscale="log", xlim=(1, 40_000), ylabel="total epsilon at delta = 1e-6")
    axes.set_xlabel("k, the number of mechanisms of epsilon 0.01")
    axes.set_xticks([1, 10, 28, 100, 1000, 10_000], ["1", "10", "28", "100", "1,000", "10,000"])
    axes.minorticks_off()
    return figure


def _frame(axes: Axes, ticks: list[int]) -> None:
    axes.set_xticks(ticks)
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def gallery(page: str) -> Iterator[tuple[str, Figure]]:
    """Name and figure of each picture of docs/gallery.md, drawn by the code above it."""
    namespace: dict[str, Any] = {}
    for code, name in re.findall(
        r"^```python\n(.*?)^```\n\n!\[[^\]]*\]\(pictures/(.*?)\.svg\)$", page, re.M | re.S
    ):
        exec(code, namespace)
        yield name, namespace["axes"].figure


def main() -> None:
    """Write all pictures: the same bytes each time, but for the day in the picture of a ledger."""
    PLACE.mkdir(exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "dpcompose", "svg.fonttype": "path"}):
        shown = gallery((PLACE.parent / "gallery.md").read_text("utf-8"))
        for name, figure in (
            ("example-3-7", example_3_7()),
            ("theorem-3-20", theorem_3_20()),
            *shown,
        ):
            figure.savefig(PLACE / f"{name}.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
