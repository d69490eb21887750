"""The parts that all pictures share: frame, colors, files, and the curves that more than one result has.

A result names its pictures as `Picture`s; they become panels of one file, or SVG elements of a page. matplotlib is
imported only when one is drawn.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcompose.errors import MissingExtraError
from dpcompose.files import path_of, replacing
from dpcompose.notebook import written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter

INK = "#5a5b5c"
"""The color of text and axes, which no curve has, so that an SVG can take the color of the page instead."""
# Okabe and Ito's palette for the color-blind, in light and dark, without its yellow, which is invisible on white.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a6d3b", "#7a68c8")


@dataclass(frozen=True)
class Picture:
    """A picture of a result.

    Args:
        title: Its name, for those who do not see it.
        caption: A sentence below it.
        draw: Draws it on axes.
    """

    title: str
    caption: str
    draw: Callable[[Axes], object]

    def svg(self) -> str:
        """The picture as an SVG element in the color of its page, named and described."""
        drawing, stream = figure(7.5), io.StringIO()
        self.draw(drawing.subplots())
        drawing.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
        text = stream.getvalue()
        element = text[text.index("<svg") :].strip().replace(INK, "currentColor")
        named = f"<title>{escape(self.title)}</title><desc>{escape(self.caption)}</desc>"
        start = rf'<svg role="img" aria-label="{escape(self.title)}"\1>{named}'
        return re.sub(r"^<svg([^>]*)>", start, element, count=1)


def require_pictures() -> None:
    """Raise MissingExtraError unless matplotlib is installed: ask before computing what is to be drawn."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("drawing pictures", "plot")


def figure(width: float, height: float = 4.6) -> Figure:
    """An empty figure, in inches. Raises as `require_pictures` does."""
    require_pictures()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def write(path: str | Path, pictures: Sequence[Picture]) -> None:
    """Write pictures beside each other, all or nothing: as SVG or PDF if the name ends so, otherwise as PNG.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        DomainError: If `path` is neither text nor a path.
        OSError: If the file cannot be written; a file that was there stays as it was.
    """
    file = path_of("path", path)
    columns = min(len(pictures), 3)
    rows = math.ceil(len(pictures) / columns)
    drawing = figure(6.5 * columns, 4.6 * rows)
    panels = drawing.subplots(rows, columns, squeeze=False).ravel()
    for axes, picture in zip_longest(panels, pictures):
        if picture is None:
            axes.set_axis_off()
        else:
            picture.draw(axes)
    form = file.suffix.lower().removeprefix(".")
    # No date: the same picture is the same file.
    kind = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    form = "png" if kind is None else form
    with replacing(file) as beside:
        drawing.savefig(beside, format=form, dpi=130, facecolor="white", metadata=kind)


def band(
    axes: Axes, at: Sequence[float], lower: Any, upper: Any, empty: str = "epsilon is infinite"
) -> None:
    """Upper ends as a line, and what lies between both ends shaded; a sentence where no upper end is finite."""
    finite = [index for index in range(len(at)) if upper[index] < math.inf]
    if not finite:
        message(axes, empty)
        return
    x, least, most = ([float(each[index]) for index in finite] for each in (at, lower, upper))
    axes.fill_between(x, least, most, color=COLORS[0], alpha=0.3, linewidth=0)
    line(axes, list(zip(x, most, strict=True)), color=COLORS[0], linewidth=2)


def line(axes: Axes, points: Sequence[tuple[float, float]], **look: Any) -> None:
    """A line through points; one alone is a dot, and of none there is nothing."""
    if points:
        marker = "o" if len(points) == 1 else None
        axes.plot(*zip(*points, strict=True), marker=marker, **look)


def attacker(axes: Axes, rates: Sequence[float], lower: Any, upper: Any, *, log: bool) -> None:
    """The true positive rate of the best test over its false positive rate; what is above it cannot be reached."""
    band(axes, rates, lower, upper)
    axes.fill_between(rates, upper, 1.0, color=INK, alpha=0.12, linewidth=0)
    axes.plot(rates, rates, color=INK, linewidth=0.8, linestyle=":")
    axes.annotate("guessing blindly", (0.3, 0.3), color=INK, fontsize=9, va="top")
    axes.set(
        xlabel="false positive rate", ylabel="true positive rate", title="What an attacker gains"
    )
    scale, least = ("log", rates[0]) if log else ("linear", 0.0)
    axes.set(xscale=scale, yscale=scale, xlim=(least, 1), ylim=(least, 1))


def message(axes: Axes, text: str) -> None:
    """Say in the middle why there is no line."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=INK)


def style(axes: Axes, legend: str = "", **settings: Any) -> Axes:
    """Draw grid, ticks, labels and spines in ink, and a legend at that place if anything is labelled."""
    if legend and axes.get_legend_handles_labels()[0]:
        plain: dict[str, Any] = {"frameon": False, "fontsize": 9, "labelcolor": INK}
        axes.legend(**(plain | {"loc": legend} | settings))
    axes.grid(True, which="major", color=INK, alpha=0.2, linewidth=0.6)
    axes.tick_params(which="both", colors=INK)
    for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
        text.set(color=INK, text=written(text.get_text()))
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(_log_ticks())
            axis.set_minor_formatter(_log_ticks())
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(INK)
    return axes


def _log_ticks() -> Formatter:
    """Ticks of a logarithmic axis as people write them: 0.5, 20 and 1000, and powers of ten beyond."""
    from matplotlib.ticker import LogFormatterMathtext

    class Ticks(LogFormatterMathtext):
        def __call__(self, x: float, pos: int | None = None) -> str:
            power = super().__call__(x, pos)
            return f"{x:g}" if power and 1e-3 <= x < 1e5 else power

    return Ticks()


def named(name: str) -> str:
    """A name as a picture shows it, every character for itself: dollars begin no formula, and no bar goes unnamed."""
    return (f" {name}" if name.startswith("_") else name).replace("$", r"\$")
