"""The pictures of an account: epsilon over delta, its growth under each theorem, and the gain of an attacker.

This file holds what all pictures share; matplotlib is imported only when one is drawn.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
import math
import re
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dpcompose.errors import MissingExtraError
from dpcompose.files import path_of, replacing
from dpcompose.plan import EpsilonCurve, Growth, PlanRisk
from dpcompose.report.number import above, below, exactly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#5a5b5c"
"""The color of text and axes, which no curve has, so that an SVG can take the color of the page instead."""
# Okabe and Ito's palette for the color-blind, in light and dark, without its yellow, which is invisible on white.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a6d3b", "#7a68c8")
_NO_ATTACK = "No attack is above the line; the shaded rest of the square cannot be reached."
_DASHES = ("-", "--", "-.", ":")


def save_account(
    path: str | Path,
    *,
    over_delta: EpsilonCurve,
    growth: Growth,
    delta: float,
    risk: PlanRisk | None = None,
) -> None:
    """Write the pictures side by side to `path`, as PNG, SVG or PDF.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        DomainError: If `path` is neither text nor a path.
        OSError: If the file cannot be written; a file that was there stays as it was.
    """
    count = 2 if risk is None else 3
    drawing = figure(6.5 * count)
    panels = drawing.subplots(1, count)
    _draw_profile(panels[0], over_delta, delta)
    _draw_growth(panels[1], growth)
    if risk is not None:
        _draw_risk(panels[2], risk)
    write(drawing, path)


def account_svgs(
    *, over_delta: EpsilonCurve, growth: Growth, delta: float, risk: PlanRisk | None = None
) -> tuple[tuple[str, str], ...]:
    """Captions and SVG elements of the pictures, in the color of the page they are put on."""
    profile, theorems = figure(7.5), figure(7.5)
    _draw_profile(profile.subplots(), over_delta, delta)
    _draw_growth(theorems.subplots(), growth)
    attack: tuple[tuple[str, str], ...] = ()
    if risk is not None:
        attacker = figure(7.5)
        _draw_risk(attacker.subplots(), risk)
        attack = (
            shown(
                "What an attacker gains",
                "No attack is above the line; the shaded rest of the square cannot be reached.",
                attacker,
            ),
        )
    return (
        *attack,
        shown(
            "Epsilon over delta",
            "The certified epsilon for every delta; the mark is the question that was asked.",
            profile,
        ),
        shown(
            "How epsilon grows",
            f"Epsilon at delta = {exactly(growth.delta)} under each theorem; dotted lines are estimates.",
            theorems,
        ),
    )


def require_pictures() -> None:
    """Raise MissingExtraError unless matplotlib is installed: ask before computing what is to be drawn."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("drawing pictures", "plot")


def figure(width: float, height: float = 4.6) -> Figure:
    """An empty figure, in inches. Raises as `require` does."""
    require_pictures()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def write(drawing: Figure, path: str | Path) -> None:
    """Write a figure, all of it or nothing: as SVG or PDF if the name ends so, otherwise as PNG, SVG or PDF.

    Raises:
        DomainError: If `path` is neither text nor a path.
        OSError: If the file cannot be written.
    """
    file = path_of("path", path)
    form = file.suffix.lower().removeprefix(".")
    # No date: the same picture is the same file.
    kind = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with replacing(file) as beside:
        drawing.savefig(
            beside,
            format="png" if kind is None else form,
            dpi=130,
            facecolor="white",
            metadata=kind,
        )


def _draw_profile(axes: Axes, curve: EpsilonCurve, delta: float) -> None:
    points = [(delta, epsilon) for delta, epsilon in curve.points if epsilon < math.inf]
    axes.plot(*_columns(points), color=COLORS[0], linewidth=2)
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.axvline(delta, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xlabel="delta", ylabel="epsilon", title="Epsilon over delta")
    if not points:
        message(axes, "epsilon is infinite at every delta drawn")
    style(axes)


def _draw_growth(axes: Axes, growth: Growth) -> None:
    drawn = 0
    for position, curve in enumerate(growth.curves):
        points = [(stop, epsilon) for stop, epsilon in curve.points if 0 < epsilon < math.inf]
        if points:
            certified, estimate = curve.kind == "certified", curve.kind == "estimate"
            axes.plot(
                *_columns(points),
                color=COLORS[position % len(COLORS)],
                linestyle=":" if estimate else "-" if certified else _DASHES[1 + position % 2],
                linewidth=2.6 if certified else 1.5,
                marker="o" if len(points) == 1 else None,
                label=curve.name,
                zorder=3 if certified else 2,
            )
            drawn += 1
    axes.set(
        xscale="log", yscale="log", xlabel=growth.unit, ylabel="epsilon", title="How epsilon grows"
    )
    if drawn:
        axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="upper left")
    else:
        message(axes, "no theorem gives a finite epsilon here")
    style(axes)


def _draw_risk(axes: Axes, result: PlanRisk) -> None:
    rates, most = list(result.rates), [power.upper for power in result.powers]
    least = [power.lower for power in result.powers]
    axes.fill_between(rates, most, 1.0, color=INK, alpha=0.12, linewidth=0)
    axes.fill_between(rates, least, most, color=COLORS[0], alpha=0.35, linewidth=0)
    axes.plot(rates, most, color=COLORS[0], linewidth=2, label="the best test")
    axes.plot(rates, rates, color=INK, linewidth=0.8, linestyle=":", label="guessing blindly")
    shown = result.risk
    axes.plot(
        [shown.false_positive_rate], [shown.true_positive_rate.upper], color=COLORS[1], marker="o"
    )
    axes.set(xscale="log", yscale="log", xlabel="false positive rate", ylabel="true positive rate")
    axes.set(title="What an attacker gains", xlim=(rates[0], 1.0), ylim=(rates[0], 1.0))
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="lower right")
    lines = (
        f"advantage <= {above(shown.advantage.upper, 4)}",
        f"Bayes error >= {below(shown.bayes_error.lower, 4)} at prior {exactly(shown.prior)}",
        f"true positive rate <= {above(shown.true_positive_rate.upper, 4)}"
        f" at false positive rate {exactly(shown.false_positive_rate)}",
        f"reconstruction <= {above(shown.reconstruction.upper, 4)} of a secret guessed with {exactly(shown.prior)}",
    )
    axes.text(
        0.03, 0.96, "\n".join(lines), transform=axes.transAxes, va="top", fontsize=8, color=INK
    )
    style(axes)


def _columns(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def message(axes: Axes, text: str) -> None:
    """Say in the middle why there is no line."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=INK)


def style(axes: Axes) -> Axes:
    """Draw grid, ticks, labels and spines in ink."""
    axes.grid(True, which="major", color=INK, alpha=0.2, linewidth=0.6)
    axes.tick_params(which="both", colors=INK)
    for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
        text.set_color(INK)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(INK)
    return axes


def named(name: str) -> str:
    """A name as a picture shows it, every character for itself: dollars begin no formula, and no bar goes unnamed."""
    return (f" {name}" if name.startswith("_") else name).replace("$", r"\$")


def shown(title: str, caption: str, drawing: Figure) -> tuple[str, str]:
    """A caption and the SVG element of a figure, for a page."""
    return caption, svg(drawing, title=title, description=caption)


def svg(drawing: Figure, *, title: str, description: str) -> str:
    """A figure as an SVG element in the color of its page, named and described for those who do not see it."""
    stream = io.StringIO()
    drawing.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    result = text[text.index("<svg") :].strip().replace(INK, "currentColor")
    said = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    return re.sub(
        r"^<svg([^>]*)>", rf'<svg role="img" aria-label="{escape(title)}"\1>{said}', result, count=1
    )
