"""The pictures of an experiment: the losses in both worlds, and the measured delta below the certified one."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from dpcompose.experiment import Summary
from dpcompose.report.number import exactly
from dpcompose.report.picture import INK, figure, style, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORLDS = "#0072b2", "#d55e00"
THEOREMS = ("#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a6d3b", "#7a68c8")


def save(path: str | Path, found: Summary, *, adversary: str, budget: tuple[float, float] | None = None) -> None:
    """Write both pictures side by side to `path`, as PNG.

    Args:
        path: The file.
        found: The results.
        adversary: The name of the adversary.
        budget: An (epsilon, delta) that was claimed, drawn as a mark.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        DomainError: If `path` is neither text nor a path.
        OSError: If the file cannot be written; a file that was there stays as it was.
    """
    drawing = figure(15.0, 4.8)
    left, right = drawing.subplots(1, 2)
    _losses(left, found)
    _curves(right, found, budget)
    title = f"{adversary}, {found.game.rounds} rounds, {found.transcripts:,} transcripts in each world"
    drawing.suptitle(title, color=INK, fontsize=10)
    write(drawing, path)


def _losses(axes: Axes, found: Summary) -> None:
    edges, *worlds = found.measured.histogram()
    for shares, color, name in zip(worlds, WORLDS, ("world 0", "world 1"), strict=True):
        axes.stairs(shares, edges, fill=True, color=color, alpha=0.35, label=name)
        axes.stairs(shares, edges, color=color, linewidth=1.2)
    axes.axvline(found.epsilon, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xlabel="ln of the likelihood of world 0 over that of world 1", ylabel="share of transcripts")
    axes.set(title="What the views give away")
    axes.legend(frameon=False, fontsize=8, labelcolor=INK)
    style(axes)


def _curves(axes: Axes, found: Summary, budget: tuple[float, float] | None) -> None:
    x, limits, floor = found.epsilons.tolist(), found.curve, 0.3 / found.transcripts
    lower, upper = ([max(value, floor) for value in ends.tolist()] for ends in (limits.lower, limits.upper))
    label = f"measured, with limits that fail with probability {exactly(found.measured.failure)}"
    axes.fill_between(x, lower, upper, color=WORLDS[0], alpha=0.3, linewidth=0, label=label)
    axes.plot(x, _visible(limits.estimate.tolist(), floor), color=WORLDS[0], linewidth=1.2)
    if found.walked is not None:
        walked = _visible(found.walked.tolist(), floor)
        axes.plot(x, walked, color="black", linewidth=1.0, linestyle="--", label="this adversary, exact")
    ceiling = _visible(found.ceiling.tolist(), floor)
    axes.plot(x, ceiling, color=WORLDS[1], linewidth=2.4, label="certified, every adversary")
    for place, theorem in enumerate(each for each in found.theorems if each.name != "certified composition"):
        points = [(epsilon, delta) for epsilon, delta in theorem.points if epsilon <= 3 * x[-1]]
        if points:
            color, dash = THEOREMS[place % len(THEOREMS)], "-." if place < len(THEOREMS) else ":"
            mark = "." if len(points) == 1 else None
            epsilons, deltas = zip(*points, strict=True)
            axes.plot(epsilons, deltas, color=color, linewidth=1.3, linestyle=dash, marker=mark, label=theorem.name)
    if budget is not None:
        axes.plot(*([end] for end in budget), color="black", marker="x", linestyle="none", label="the budget claimed")
    axes.axvline(found.epsilon, color=INK, linewidth=0.8, linestyle=":")
    axes.set(yscale="log", ylim=(max(floor, min(upper) / 10), 1.3), xlabel="epsilon", ylabel="delta")
    axes.set(title=f"delta over epsilon, asked at {exactly(found.epsilon)}")
    axes.legend(frameon=False, fontsize=7.5, labelcolor=INK, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    style(axes)


def _visible(values: list[float], floor: float) -> list[float]:
    return [value if value > floor else math.nan for value in values]
