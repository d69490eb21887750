"""The two pictures of an account: epsilon over delta, and how epsilon grows for each theorem.

The one file that touches matplotlib, and only when a picture is drawn.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dpcompose.errors import MissingExtraError
from dpcompose.plan import Curve, Growth
from dpcompose.report.number import exactly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#5a5b5c"
"""The color of text and axes: a tone no curve has, so that an SVG can take the color of the page instead."""
# Okabe and Ito's palette, without the yellow that vanishes on white: told apart by the color-blind, in light and dark.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a6d3b", "#7a68c8")
_DASHES = ("-", "--", "-.", ":")


def save(path: str | Path, *, over_delta: Curve, growth: Growth, asked: float) -> None:
    """Write both pictures side by side to `path`, as PNG.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        OSError: If the file cannot be written.
    """
    figure = _figure(13.0)
    left, right = figure.subplots(1, 2)
    _draw_profile(left, over_delta, asked)
    _draw_growth(right, growth)
    figure.savefig(path, format="png", dpi=130, facecolor="white")


def svgs(*, over_delta: Curve, growth: Growth, asked: float) -> tuple[tuple[str, str], ...]:
    """Captions and SVG elements of both pictures, in the color of the page they are put on."""
    profile, theorems = _figure(7.5), _figure(7.5)
    _draw_profile(profile.subplots(), over_delta, asked)
    _draw_growth(theorems.subplots(), growth)
    return (
        ("The certified epsilon for every delta; the mark is the question that was asked.", _svg(profile)),
        (f"Epsilon at delta = {exactly(growth.delta)} under each theorem; dotted lines are estimates.", _svg(theorems)),
    )


def require() -> None:
    """Raise MissingExtraError unless matplotlib is installed: ask before computing what is to be drawn."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("drawing pictures", "plot")


def _figure(width: float) -> Figure:
    require()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, 4.6), layout="constrained")


def _draw_profile(axes: Axes, curve: Curve, asked: float) -> None:
    points = [(delta, epsilon) for delta, epsilon in curve.points if epsilon < math.inf]
    axes.plot(*_columns(points), color=_COLORS[0], linewidth=2)
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.axvline(asked, color=_INK, linewidth=0.8, linestyle=":")
    axes.set(xlabel="delta", ylabel="epsilon", title="Epsilon over delta")
    if not points:
        _say(axes, "epsilon is infinite at every delta drawn")
    _quiet(axes)


def _draw_growth(axes: Axes, growth: Growth) -> None:
    drawn = 0
    for position, curve in enumerate(growth.curves):
        points = [(stop, epsilon) for stop, epsilon in curve.points if 0 < epsilon < math.inf]
        if points:
            certified, estimate = curve.kind == "certified", curve.kind == "estimate"
            axes.plot(
                *_columns(points),
                color=_COLORS[position % len(_COLORS)],
                linestyle=":" if estimate else "-" if certified else _DASHES[1 + position % 2],
                linewidth=2.6 if certified else 1.5,
                marker="o" if len(points) == 1 else None,
                label=curve.name,
                zorder=3 if certified else 2,
            )
            drawn += 1
    axes.set(xscale="log", yscale="log", xlabel=growth.unit, ylabel="epsilon", title="How epsilon grows")
    if drawn:
        axes.legend(frameon=False, fontsize=8, labelcolor=_INK, loc="upper left")
    else:
        _say(axes, "no theorem gives a finite epsilon here")
    _quiet(axes)


def _columns(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _say(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=_INK)


def _quiet(axes: Axes) -> None:
    axes.grid(True, which="major", color=_INK, alpha=0.2, linewidth=0.6)
    axes.tick_params(which="both", colors=_INK)
    axes.xaxis.label.set_color(_INK)
    axes.yaxis.label.set_color(_INK)
    axes.title.set_color(_INK)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(_INK)


def _svg(figure: Figure) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :].strip().replace(_INK, "currentColor")
