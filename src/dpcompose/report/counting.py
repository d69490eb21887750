"""The table and the picture of a plan of counting queries."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpcompose.report import picture
from dpcompose.report.layout import Fact, Page, PageTable, headings
from dpcompose.report.number import below, exactly

if TYPE_CHECKING:
    from dpcompose.release import AccuracyCurve, CountingPlan

_STYLES = {
    "coordinated, zCDP": (0, (3, 1, 1, 1, 1, 1)),
    "coordinated": "-.",
    "tight, Gaussian": "-",
    "tight, Laplace": (0, (5, 1)),
    "Theorem 3.20": "--",
    "basic composition": ":",
}


def counting_page(plan: CountingPlan) -> Page:
    """The numbers of queries, method by method."""
    columns = headings("method", ">queries", "grows like", "error", "reference")
    rows = tuple(
        (row.method, _queries(row.queries), row.growth, _holds(row.accuracy), row.reference)
        for row in plan.rows
    )
    facts = (
        Fact("units", f"n = {plan.units:,}"),
        Fact(
            "error",
            f"at most {exactly(plan.accuracy)} n, with probability {exactly(plan.confidence)}",
        ),
        Fact(
            "privacy",
            f"epsilon = {exactly(plan.epsilon)}, delta = {exactly(plan.delta)}, for all answers together",
        ),
    )
    notes = (
        f"Coordinated answering is for units of {plan.domain:,} kinds, and queries known in advance.",
    )
    return Page(
        "",
        "How many counting queries",
        "plain",
        facts,
        (PageTable(f"Queries at an error of {exactly(plan.accuracy)} n", columns, rows),),
        notes,
    )


def save_counting(path: str | Path, plan: CountingPlan, curves: Sequence[AccuracyCurve]) -> None:
    """Write the picture as PNG: the error that each method reaches, over the number of queries.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        DomainError: If `path` is neither text nor a path.
        OSError: If the file cannot be written; a file that was there stays as it was.
    """
    drawing = picture.figure(7.0)
    axes = drawing.subplots()
    for curve in curves:
        points = [(queries, error) for queries, error in curve.points if error < 1]
        if points:
            xs, ys = zip(*points, strict=True)
            axes.plot(
                xs, ys, linestyle=_STYLES.get(curve.method, "-"), label=curve.method, linewidth=1.8
            )
    axes.axhline(plan.accuracy, color=picture.INK, linewidth=0.8)
    title = f"{plan.units:,} units, epsilon {exactly(plan.epsilon)}, delta {exactly(plan.delta)}"
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="counting queries",
        ylabel="error, as a part of the units",
        title=title,
    )
    axes.legend(frameon=False, fontsize=8)
    axes.grid(True, alpha=0.2)
    picture.write(drawing, path)


def _queries(number: float) -> str:
    if number < 1e15:
        return f"{math.floor(number):,}"
    return "beyond 1e300" if math.isinf(number) else below(number, 3)


def _holds(accuracy: str) -> str:
    return "for each by itself" if accuracy == "each" else "for all at once"
