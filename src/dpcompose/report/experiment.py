"""The page, the document and the pictures of an experiment: the measured delta beside the certified one."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcompose.composition import Composable, Part
from dpcompose.experiment import Summary
from dpcompose.report import picture
from dpcompose.report.layout import Fact, Page, PageTable, headings
from dpcompose.report.number import above, below, exactly, interval, members, nearest, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 9
_WORLDS = "#0072b2", "#d55e00"
_THEOREMS = ("#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a6d3b", "#7a68c8")


def experiment_page(result: Summary, *, adversary: str = "", budget: str = "") -> Page:
    """The experiment for people.

    Args:
        result: The results.
        adversary: The name of the adversary.
        budget: A claim that the experiment refutes, or empty.
    """
    game, limits = result.game, result.at
    adversary = adversary or type(game.adversary).__name__
    low, high = below(float(limits.lower[0]), 4), above(float(limits.upper[0]), 4)
    headline = f"delta at epsilon = {exactly(result.epsilon)}: between {low} and {high}"
    facts = [
        Fact("adversary", f"{adversary}, {game.rounds} round{'s' * (game.rounds != 1)}"),
        Fact("family", "; ".join(dict.fromkeys(_label(each) for each in game.family))),
        Fact("neighbors", f"{game.adjacency.value}, orientation {game.orientation.value}"),
        Fact(
            "measured",
            f"{nearest(float(limits.estimate[0]))} from {result.transcripts:,} transcripts in each world",
        ),
        Fact(
            "certified",
            f"delta <= {above(result.certified.upper)} for every adversary with this family",
        ),
    ]
    if result.exact is not None:
        low, high = interval(result.exact)
        facts.append(
            Fact("exact", f"{low} <= delta <= {high} for this adversary, every view solved")
        )
    notes = [
        "The limits hold for all epsilons and both directions together, "
        f"except with probability {exactly(result.measured.failure)}."
    ]
    notes += [budget] if budget else []
    if not result.sound:
        notes.append(
            "What was measured is above what is certified: a defect, please report it with the seed."
        )
    tone = "plain" if result.sound else "bad"
    return Page(
        "The k-fold experiment",
        headline,
        tone,
        tuple(facts),
        (_curve(result), _promised(result)),
        tuple(notes),
    )


def experiment_document(result: Summary, *, adversary: str, seed: int) -> dict[str, Any]:
    """The experiment for programs: every number in full precision."""
    edges, zero, one = result.measured.histogram()
    return {
        "adversary": adversary,
        "rounds": result.game.rounds,
        "family": [_label(each) for each in result.game.family],
        **members(result.game, "adjacency orientation"),
        **{"transcripts": result.transcripts, "seed": seed, "failure": result.measured.failure},
        "epsilon": result.epsilon,
        "delta": {
            name: ends[0] for name, ends in members(result.at, "lower estimate upper").items()
        },
        **members(result, "certified exact sound"),
        "curve": {
            "epsilon": plain(result.epsilons),
            **members(result.curve, "lower estimate upper"),
            "certified": plain(result.ceiling),
            "exact": plain(result.walked),
        },
        "theorems": [
            {"theorem": each.name} | members(each, "reference points") for each in result.theorems
        ],
        "losses": {"edges": edges.tolist(), "world_0": zero.tolist(), "world_1": one.tolist()},
    }


def save_experiment(
    path: str | Path, result: Summary, *, adversary: str, budget: tuple[float, float] | None = None
) -> None:
    """Write both pictures side by side to `path`, as PNG.

    Args:
        path: The file.
        result: The results.
        adversary: The name of the adversary.
        budget: An (epsilon, delta) that was claimed, drawn as a mark.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        DomainError: If `path` is neither text nor a path.
        OSError: If the file cannot be written; a file that was there stays as it was.
    """
    drawing = picture.figure(15.0, 4.8)
    left, right = drawing.subplots(1, 2)
    _draw_losses(left, result)
    _draw_deltas(right, result, budget)
    title = f"{adversary}, {result.game.rounds} rounds, {result.transcripts:,} transcripts in each world"
    drawing.suptitle(title, color=picture.INK, fontsize=10)
    picture.write(drawing, path)


def _label(mechanism: Composable) -> str:
    return mechanism.label if isinstance(mechanism, Part) else repr(mechanism)


def _curve(result: Summary) -> PageTable:
    exact = [] if result.walked is None else [">exact"]
    titles = ">epsilon", ">delta, at least", ">estimate", ">at most", *exact, ">certified"
    rows: list[tuple[str, ...]] = []
    for place in range(0, len(result.epsilons), (len(result.epsilons) - 1) // (SHOWN - 1)):
        limits = result.curve
        row = [
            exactly(float(result.epsilons[place])), below(float(limits.lower[place]), 4),
            nearest(float(limits.estimate[place]), 4), above(float(limits.upper[place]), 4),
        ]  # fmt: skip
        row += [] if result.walked is None else [above(float(result.walked[place]), 6)]
        rows.append((*row, above(float(result.ceiling[place]), 4)))
    return PageTable("What the adversary tells apart", headings(*titles), tuple(rows))


def _promised(result: Summary) -> PageTable:
    """The epsilon of each theorem at the middle one of its deltas."""
    points = [(each, each.points[len(each.points) // 2]) for each in result.theorems]
    delta = points[0][1][1] if points else 0.0
    rows = sorted(
        ((point[0], each.name, each.reference) for each, point in points if point[1] == delta),
    )
    columns = headings("~theorem", ">epsilon", "reference")
    cells = tuple((name, above(epsilon), reference) for epsilon, name, reference in rows)
    return PageTable(
        f"What the theorems promise of every adversary at delta = {exactly(delta)}", columns, cells
    )


def _draw_losses(axes: Axes, result: Summary) -> None:
    edges, *worlds = result.measured.histogram()
    for shares, color, name in zip(worlds, _WORLDS, ("world 0", "world 1"), strict=True):
        axes.stairs(shares, edges, fill=True, color=color, alpha=0.35, label=name)
        axes.stairs(shares, edges, color=color, linewidth=1.2)
    axes.axvline(result.epsilon, color=picture.INK, linewidth=0.8, linestyle=":")
    axes.set(
        xlabel="ln of the likelihood of world 0 over that of world 1", ylabel="share of transcripts"
    )
    axes.set(title="What the views give away")
    axes.legend(frameon=False, fontsize=8, labelcolor=picture.INK)
    picture.style(axes)


def _draw_deltas(axes: Axes, result: Summary, budget: tuple[float, float] | None) -> None:
    x, limits, floor = result.epsilons.tolist(), result.curve, 0.3 / result.transcripts
    lower, upper = (
        [max(value, floor) for value in ends.tolist()] for ends in (limits.lower, limits.upper)
    )
    label = f"measured, with limits that fail with probability {exactly(result.measured.failure)}"
    axes.fill_between(x, lower, upper, color=_WORLDS[0], alpha=0.3, linewidth=0, label=label)
    axes.plot(x, _visible(limits.estimate.tolist(), floor), color=_WORLDS[0], linewidth=1.2)
    if result.walked is not None:
        walked = _visible(result.walked.tolist(), floor)
        axes.plot(
            x, walked, color="black", linewidth=1.0, linestyle="--", label="this adversary, exact"
        )
    ceiling = _visible(result.ceiling.tolist(), floor)
    axes.plot(x, ceiling, color=_WORLDS[1], linewidth=2.4, label="certified, every adversary")
    for place, theorem in enumerate(
        each for each in result.theorems if each.name != "certified composition"
    ):
        points = [(epsilon, delta) for epsilon, delta in theorem.points if epsilon <= 3 * x[-1]]
        if points:
            color, dash = _THEOREMS[place % len(_THEOREMS)], "-." if place < len(_THEOREMS) else ":"
            mark = "." if len(points) == 1 else None
            epsilons, deltas = zip(*points, strict=True)
            axes.plot(
                epsilons,
                deltas,
                color=color,
                linewidth=1.3,
                linestyle=dash,
                marker=mark,
                label=theorem.name,
            )
    if budget is not None:
        axes.plot(
            *([end] for end in budget),
            color="black",
            marker="x",
            linestyle="none",
            label="the budget claimed",
        )
    axes.axvline(result.epsilon, color=picture.INK, linewidth=0.8, linestyle=":")
    axes.set(
        yscale="log", ylim=(max(floor, min(upper) / 10), 1.3), xlabel="epsilon", ylabel="delta"
    )
    axes.set(title=f"delta over epsilon, asked at {exactly(result.epsilon)}")
    axes.legend(
        frameon=False,
        fontsize=7.5,
        labelcolor=picture.INK,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
    )
    picture.style(axes)


def _visible(values: list[float], floor: float) -> list[float]:
    return [value if value > floor else math.nan for value in values]
