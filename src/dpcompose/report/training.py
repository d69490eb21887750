"""A training run: epsilon over its steps, as a page and as a picture."""
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dpcompose.plan import TrainingHistory
from dpcompose.report.layout import Page, PageTable, headings
from dpcompose.report.number import above, exactly, interval
from dpcompose.report.picture import COLORS, INK, Picture, band, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def training_pictures(history: TrainingHistory) -> tuple[Picture]:
    """Both ends of epsilon over the steps, and the most that may be spent."""
    title = f"Epsilon at delta = {exactly(history.delta)}"

    budget = "" if history.target is None else "; the dashed line is the budget"
    return (Picture("Epsilon over steps", f"{title}{budget}.", partial(draw_steps, history)),)


def draw_steps(history: TrainingHistory, axes: Axes, *, published: float | None = None) -> Axes:
    """Both ends of epsilon over the steps, the budget as a line and a published epsilon as a mark."""
    lower, upper = ([getattr(each, end) for each in history.epsilon] for end in ("lower", "upper"))
    empty = "epsilon is infinite" if history.steps else "no step is taken: epsilon is 0"
    band(axes, history.steps, lower, upper, empty)
    look: dict[str, Any] = {"fontsize": 9, "va": "bottom"}
    if history.target is not None:
        axes.axhline(history.target, color=COLORS[1], linewidth=1, linestyle="--")
        label = f"budget {exactly(history.target)}"
        axes.annotate(label, (1, history.target), color=COLORS[1], **look)
    if published is not None:
        end = max(history.steps, default=0), published
        axes.plot(*([each] for each in end), color=COLORS[2], marker="D")
        axes.annotate(f"published {exactly(published)} ", end, color=INK, ha="right", **look)
    title = f"Epsilon over steps, delta = {exactly(history.delta)}"
    axes.set(xlabel="steps", ylabel="epsilon", title=title)
    axes.set_ylim(bottom=0)
    return style(axes)


def training_page(history: TrainingHistory) -> Page:
    """Epsilon after the steps that were charged, beside the budget."""
    last = history.epsilon[-1] if history.epsilon else None
    rows = tuple(
        (f"{steps:,}", *interval(bound))
        for steps, bound in zip(history.steps, history.epsilon, strict=True)
    )
    at = f"at delta = {exactly(history.delta)}"
    headline = f"epsilon <= {above(last.upper)} {at}" if last else "no step was charged"
    facts = (("holds", history.holds),)
    if history.target is not None:
        facts = (("budget", f"epsilon {exactly(history.target)} {at}"), *facts)
    table = PageTable("Epsilon over steps", headings(">steps", ">at least", ">at most"), rows)
    return Page("Training", headline, "plain", facts, (table,) if rows else ())
