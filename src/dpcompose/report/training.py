"""A training run: epsilon over its steps, as a page and as a picture."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from pathlib import Path

from dpcompose.interop import TrainingHistory
from dpcompose.report import picture
from dpcompose.report.layout import Fact, Page, PageTable, headings
from dpcompose.report.number import above, exactly, interval


def save_training(path: str | Path, history: TrainingHistory) -> None:
    """Write the picture as PNG: both ends of epsilon over the steps, and the most that may be spent.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        DomainError: If `path` is neither text nor a path.
        OSError: If the file cannot be written; a file that was there stays as it was.
    """
    drawing = picture.figure(7.0)
    axes = drawing.subplots()
    points = [
        (n, bound)
        for n, bound in zip(history.steps, history.epsilon, strict=True)
        if bound.upper < math.inf
    ]
    steps = [n for n, _ in points]
    axes.fill_between(
        steps, [bound.lower for _, bound in points], [bound.upper for _, bound in points], alpha=0.3
    )
    axes.plot(steps, [bound.upper for _, bound in points], linewidth=2, label="charged so far")
    axes.axhline(
        history.target, color=picture.INK, linewidth=0.8, linestyle=":", label="the budget"
    )
    axes.set(
        xlabel="steps",
        ylabel="epsilon",
        title=f"Epsilon at delta = {exactly(history.delta)}",
        ylim=(0, None),
    )
    axes.legend(frameon=False, fontsize=8, labelcolor=picture.INK, loc="lower right")
    picture.style(axes)
    picture.write(drawing, path)


def training_page(history: TrainingHistory) -> Page:
    """Epsilon after the steps that were charged, beside the budget."""
    last = history.epsilon[-1] if history.epsilon else None
    rows = tuple(
        (f"{steps:,}", *interval(bound))
        for steps, bound in zip(history.steps, history.epsilon, strict=True)
    )
    at = f"at delta = {exactly(history.delta)}"
    headline = f"epsilon <= {above(last.upper)} {at}" if last else "no step was charged"
    facts = (
        Fact("budget", f"epsilon {exactly(history.target)} {at}"),
        Fact("holds", history.holds),
    )
    table = PageTable("Epsilon over steps", headings(">steps", ">at least", ">at most"), rows)
    return Page("Training", headline, "plain", facts, (table,) if rows else ())
