"""The page, the document and the pictures of an experiment: the measured delta beside the certified one."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpcompose.composition import Composable, Part
from dpcompose.experiment import Summary
from dpcompose.report.layout import Page, PageTable, headings
from dpcompose.report.number import above, below, exactly, interval, members, nearest, plain
from dpcompose.report.picture import COLORS, INK, Picture, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 9
_DEFECT = "What was measured is above what is certified: a defect, please report it with the seed."


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
    measured = nearest(float(limits.estimate[0]))
    certified = above(result.certified.upper)
    facts = [
        ("adversary", f"{adversary}, {game.rounds} round{'s' * (game.rounds != 1)}"),
        ("family", "; ".join(dict.fromkeys(_label(each) for each in game.family))),
        ("neighbors", f"{game.adjacency.value}, orientation {game.orientation.value}"),
        ("measured", f"{measured} from {result.transcripts:,} transcripts in each world"),
        ("certified", f"delta <= {certified} for every adversary with this family"),
    ]
    if result.exact is not None:
        low, high = interval(result.exact)
        facts.append(("exact", f"{low} <= delta <= {high} for this adversary, every view solved"))
    failure = exactly(result.measured.failure)
    all_hold = "The limits hold for all epsilons and both directions together"
    notes = [f"{all_hold}, except with probability {failure}.", *filter(None, [budget])]
    if not result.sound:
        notes.append(_DEFECT)
    tone, tables = "plain" if result.sound else "bad", (_curve(result), _promised(result))
    return Page("The k-fold experiment", headline, tone, tuple(facts), tables, tuple(notes))


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


def experiment_pictures(
    result: Summary, *, adversary: str = "", budget: tuple[float, float] | None = None
) -> tuple[Picture, Picture]:
    """The losses of the views, and the measured delta beside the certified one.

    Args:
        result: The results.
        adversary: The name of the adversary.
        budget: An (epsilon, delta) that was claimed, drawn as a mark.
    """
    played = f"{result.game.rounds} rounds, {result.transcripts:,} transcripts in each world"
    return (
        Picture(
            "What the views give away",
            f"The losses of the views of {adversary or 'the adversary'}: {played}.",
            lambda axes: _draw_losses(axes, result),
        ),
        Picture(
            "delta over epsilon",
            "The delta that was measured, with its limits, and what is certified of every adversary.",
            lambda axes: _draw_deltas(axes, result, budget),
        ),
    )


def _label(mechanism: Composable) -> str:
    return mechanism.label if isinstance(mechanism, Part) else repr(mechanism)


def _curve(result: Summary) -> PageTable:
    exact = [] if result.walked is None else [">exact"]
    titles = ">epsilon", ">delta, at least", ">estimate", ">at most", *exact, ">certified"
    curves: list[tuple[Any, Callable[[float, int], str], int]] = [
        (result.curve.lower, below, 4), (result.curve.estimate, nearest, 4), (result.curve.upper, above, 4),
        *([] if result.walked is None else [(result.walked, above, 6)]), (result.ceiling, above, 4),
    ]  # fmt: skip
    rows = tuple(
        (
            exactly(float(result.epsilons[at])),
            *(text(float(c[at]), digits) for c, text, digits in curves),
        )
        for at in range(0, len(result.epsilons), (len(result.epsilons) - 1) // (SHOWN - 1))
    )
    return PageTable("What the adversary tells apart", headings(*titles), rows)


def _promised(result: Summary) -> PageTable:
    """The epsilon of each theorem at the middle one of its deltas."""
    points = [(each, each.points[len(each.points) // 2]) for each in result.theorems]
    delta = points[0][1][1] if points else 0.0
    rows = sorted((at[0], each.name, each.reference) for each, at in points if at[1] == delta)
    columns = headings("~theorem", ">epsilon", "reference")
    cells = tuple((name, above(epsilon), reference) for epsilon, name, reference in rows)
    title = f"What the theorems promise of every adversary at delta = {exactly(delta)}"
    return PageTable(title, columns, cells)


def _draw_losses(axes: Axes, result: Summary) -> None:
    edges, *worlds = result.measured.histogram()
    for shares, color, name in zip(worlds, COLORS, ("world 0", "world 1"), strict=False):
        axes.stairs(shares, edges, fill=True, color=color, alpha=0.35, label=name)
        axes.stairs(shares, edges, color=color, linewidth=1.2)
    axes.axvline(result.epsilon, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xlabel="ln of the likelihood of world 0 over that of world 1")
    axes.set(ylabel="part of the transcripts", title="What the views give away")
    style(axes, "best")


def _draw_deltas(axes: Axes, result: Summary, budget: tuple[float, float] | None) -> None:
    x, limits, floor = result.epsilons.tolist(), result.curve, 0.3 / result.transcripts
    lower, upper = (ends.clip(min=floor) for ends in (limits.lower, limits.upper))
    label = f"measured, with limits that fail with probability {exactly(result.measured.failure)}"
    axes.fill_between(x, lower, upper, color=COLORS[0], alpha=0.3, linewidth=0, label=label)
    exact = result.ceiling * math.nan if result.walked is None else result.walked
    curves: list[tuple[Any, str | None, dict[str, Any]]] = [
        (limits.estimate, None, {"color": COLORS[0], "linewidth": 1.2}),
        (exact, "this adversary, exact", {"color": "black", "linewidth": 1.0, "linestyle": "--"}),
        (result.ceiling, "certified, every adversary", {"color": COLORS[1], "linewidth": 2.4}),
    ]
    for values, words, look in curves:
        visible = [value if value > floor else math.nan for value in values.tolist()]
        if not all(map(math.isnan, visible)):
            axes.plot(x, visible, label=words, **look)
    others = [each for each in result.theorems if each.name != "certified composition"]
    for position, theorem in enumerate(others):
        points = [(epsilon, delta) for epsilon, delta in theorem.points if epsilon <= 3 * x[-1]]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                color=COLORS[2 + position % 6],
                linewidth=1.3,
                linestyle="-." if position < 6 else ":",
                marker="." if len(points) == 1 else None,
                label=theorem.name,
            )
    if budget is not None:
        mark: dict[str, Any] = {"color": "black", "marker": "x", "linestyle": "none"}
        axes.plot(*([end] for end in budget), label="the budget claimed", **mark)
    axes.axvline(result.epsilon, color=INK, linewidth=0.8, linestyle=":")
    axes.set(yscale="log", ylim=(max(floor, min(upper) / 10), 1.3))
    axes.set(xlabel="epsilon", ylabel="delta")
    axes.set(title=f"delta over epsilon, asked at {exactly(result.epsilon)}")
    style(axes, "upper left", bbox_to_anchor=(1.01, 1.0))
