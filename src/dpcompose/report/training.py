"""A training run: epsilon over its steps, as a page and as a picture."""
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpcompose.plan import TrainingHistory
from dpcompose.report.layout import Page, PageTable, headings
from dpcompose.report.number import above, exactly, interval
from dpcompose.report.picture import INK, Picture, band, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def training_pictures(history: TrainingHistory) -> tuple[Picture]:
    """Both ends of epsilon over the steps, and the most that may be spent."""
    title = f"Epsilon at delta = {exactly(history.delta)}"

    def draw(axes: Axes) -> None:
        lower, upper = ([getattr(e, end) for e in history.epsilon] for end in ("lower", "upper"))
        band(axes, history.steps, lower, upper, "no step was charged")
        if history.target is not None:
            line: Any = {"color": INK, "linewidth": 0.8, "linestyle": ":", "label": "the budget"}
            axes.axhline(history.target, **line)
        axes.set(xlabel="steps", ylabel="epsilon", title=title, ylim=(0, None))
        style(axes, "lower right")

    budget = "" if history.target is None else "; the dotted line is the budget"
    return (Picture("Epsilon over steps", f"{title}{budget}.", draw),)


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
