"""The table and the picture of a plan of counting queries."""
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from dpcompose.report.layout import Page, PageTable, headings
from dpcompose.report.number import below, exactly
from dpcompose.report.picture import COLORS, INK, Picture, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpcompose.release import CountingPlan


def counting_page(plan: CountingPlan) -> Page:
    """The numbers of queries, method by method."""
    columns = headings("method", ">queries", "grows like", "error", "reference")
    rows = tuple(
        (row.method, _queries(row.queries), row.growth, _holds(row.accuracy), row.reference)
        for row in plan.rows
    )
    facts = (
        ("units", f"n = {plan.units:,}"),
        (
            "error",
            f"at most {exactly(plan.accuracy)} n, with probability {exactly(plan.confidence)}",
        ),
        (
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


def counting_pictures(plan: CountingPlan, curves: Sequence[Any]) -> tuple[Picture]:
    """The error that each method reaches, over the number of queries."""
    title = f"{plan.units:,} units, epsilon {exactly(plan.epsilon)}, delta {exactly(plan.delta)}"

    def draw(axes: Axes) -> None:
        for color, curve in zip(cycle(COLORS), curves, strict=False):
            points = [(queries, error) for queries, error in curve.points if error < 1]
            if points:
                axes.plot(*zip(*points, strict=True), color=color, label=curve.method)
        axes.axhline(plan.accuracy, color=INK, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="counting queries", title=title)
        axes.set(ylabel="error, as a part of the units")
        style(axes, "best")

    return (Picture("Error over queries", f"{title}; the line is the error wanted.", draw),)


def _queries(number: float) -> str:
    if number < 1e15:
        return f"{math.floor(number):,}"
    return "beyond 1e300" if math.isinf(number) else below(number, 3)


def _holds(accuracy: str) -> str:
    return "for each by itself" if accuracy == "each" else "for all at once"
