"""The pages of the book: its statements, the exercises of its lessons, and the experiment, with the experiment's pictures."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dpcompose.report.layout import Page, PageTable
from dpcompose.report.number import (
    above,
    below,
    exactly,
    interval,
    members,
    nearest,
    plain,
    trimmed,
)
from dpcompose.report.picture import COLORS, INK, Picture, line, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpcompose.book import Lesson, Statement
    from dpcompose.composition import Composable
    from dpcompose.experiment import Summary

SHOWN = 9
_DEFECT = "What was measured is above what is certified: a defect, please report it with the seed."
Values = Mapping[str, Any]
Rows = Sequence[tuple[str, float]]


def evaluation_page(statement: Statement, values: Values | None = None, rows: Rows = ()) -> Page:
    """One statement with its value, rounded in the safe direction, and its caveats."""
    title = f"{statement.number} {statement.title}"
    headline = "; ".join(
        f"{name} = {trimmed(below(value, 15) if name in statement.down else above(value, 15))}"
        for name, value in rows
    )
    given = ", ".join(f"{name} = {value!r}" for name, value in (values or {}).items())
    facts = [("says", statement.says), ("source", statement.reference)]
    if rows:
        facts.insert(1, ("given", given or "nothing"))
    notes = [f"Caveat: {caveat}" for caveat in statement.caveats]
    return Page(title, headline or title, facts=facts, notes=notes)


def evaluation_document(statement: Statement, values: Values, rows: Rows) -> dict[str, Any]:
    """One statement of the book with its value, as a document for programs."""
    return {
        **members(statement, "number title says"),
        "given": dict(values),
        "value": dict(rows),
        **members(statement, "caveats reference"),
    }


def listing_page(statements: Iterable[Statement]) -> Page:
    """All statements, with the options that each takes."""
    rows = [
        (each.number, each.title, " ".join(taken.option for taken in each.parameters))
        for each in statements
    ]
    titles = "number", "~title", "~options"
    table = PageTable.of("Statements of sections 2.3 and 3.5", titles, rows)
    headline = "dpcompose theorem NUMBER OPTIONS evaluates one"
    return Page("The book, executable", headline, tables=[table])


def listing_document(statements: Iterable[Statement]) -> dict[str, Any]:
    """All statements of the book with their options, as a document for programs."""
    return {"statements": [members(each, "number title says parameters") for each in statements]}


def lesson_page(
    lesson: Lesson, answers: Values | None = None, verdicts: Sequence[bool | None] = ()
) -> Page:
    """The exercises of a lesson, each with the verdict on its answer or, if that is wrong, a hint."""
    verdicts = verdicts or [None] * len(lesson.parameters)
    rows = [
        (each.name, each.meaning, {None: "", True: "right"}.get(right, f"Not yet: {each.hint}"))
        for each, right in zip(lesson.parameters, verdicts, strict=True)
    ]
    table = PageTable.of("Exercises", ("", "~question", "~your answer"), rows)
    done, number = sum(map(bool, verdicts)), lesson.number
    headline = f"Lesson {number}, {lesson.title}: {done} of {len(rows)} answers are right"
    following = f"dpcompose exercise {number} --a NUMBER checks an answer"
    following, tone = ("", "good") if done == len(rows) else (following, "plain")
    return Page(f"Lesson {number}", headline, tone, tables=[table], following=following)


def lesson_document(
    lesson: Lesson, answers: Values, verdicts: Sequence[bool | None]
) -> dict[str, Any]:
    """The exercises of a lesson with their verdicts, as a document for programs."""
    rows = zip(lesson.parameters, verdicts, strict=True)
    return members(lesson, "number title") | {
        "answers": dict(answers),
        "exercises": [
            {"letter": each.name, "question": each.meaning, "right": right} for each, right in rows
        ],
    }


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
    tone, tables = "plain" if result.sound else "bad", [_curve(result), _promised(result)]
    return Page("The k-fold experiment", headline, tone, facts, tables, notes)


def experiment_document(result: Summary, *, adversary: str, seed: int) -> dict[str, Any]:
    """The experiment for programs: every number in full precision."""
    edges, zero, one = result.measured.histogram()
    ends = "lower estimate upper"
    return {
        **{"adversary": adversary, "rounds": result.game.rounds},
        "family": [_label(each) for each in result.game.family],
        **members(result.game, "adjacency orientation") | members(result, "transcripts"),
        **{"seed": seed} | members(result, "failure=measured.failure epsilon"),
        "delta": {name: delta for name, (delta,) in members(result.at, ends).items()},
        **members(result, "certified exact sound"),
        "curve": members(result, "epsilon=epsilons")
        | members(result.curve, ends)
        | members(result, "certified=ceiling exact=walked"),
        **members(result, "theorems"),
        "losses": plain({"edges": edges, "world_0": zero, "world_1": one}),
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
    views = f"The losses of the views of {adversary or 'the adversary'}: {played}."
    deltas = (
        "The delta that was measured, with its limits, and what is certified of every adversary."
    )
    return (
        Picture("What the views give away", views, partial(_draw_losses, result)),
        Picture("delta over epsilon", deltas, partial(_draw_deltas, result, budget)),
    )


def _label(mechanism: Composable) -> str:
    from dpcompose.composition import Part

    return mechanism.label if isinstance(mechanism, Part) else repr(mechanism)


def _curve(result: Summary) -> PageTable:
    exact = [] if result.walked is None else [">exact"]
    titles = ">epsilon", ">delta, at least", ">estimate", ">at most", *exact, ">certified"
    curves: list[tuple[Any, Callable[[float, int], str], int]] = [
        (result.curve.lower, below, 4), (result.curve.estimate, nearest, 4), (result.curve.upper, above, 4),
        *([] if result.walked is None else [(result.walked, above, 6)]), (result.ceiling, above, 4),
    ]  # fmt: skip
    shown = range(0, len(result.epsilons), (len(result.epsilons) - 1) // (SHOWN - 1))
    points = [(float(result.epsilons[at]), at) for at in shown]
    rows = [
        (exactly(epsilon), *(text(float(curve[at]), digits) for curve, text, digits in curves))
        for epsilon, at in points
    ]
    return PageTable.of("What the adversary tells apart", titles, rows)


def _promised(result: Summary) -> PageTable:
    """The epsilon of each theorem at the middle one of its deltas."""
    points = [(each, each.points[len(each.points) // 2]) for each in result.theorems]
    delta = points[0][1][1] if points else 0.0
    rows = sorted((at[0], each.name, each.reference) for each, at in points if at[1] == delta)
    cells = [(name, above(epsilon), reference) for epsilon, name, reference in rows]
    title = f"What the theorems promise of every adversary at delta = {exactly(delta)}"
    return PageTable.of(title, ("~theorem", ">epsilon", "reference"), cells)


def _draw_losses(result: Summary, axes: Axes) -> None:
    edges, *worlds = result.measured.histogram()
    for shares, color, name in zip(worlds, COLORS, ("world 0", "world 1"), strict=False):
        axes.stairs(shares, edges, fill=True, color=color, alpha=0.35, label=name)
        axes.stairs(shares, edges, color=color, linewidth=1.2)
    axes.axvline(result.epsilon, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xlabel="ln of the likelihood of world 0 over that of world 1")
    axes.set(ylabel="part of the transcripts", title="What the views give away")
    style(axes, "best")


def _draw_deltas(result: Summary, budget: tuple[float, float] | None, axes: Axes) -> None:
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
        look: dict[str, Any] = {"color": COLORS[2 + position % 6], "linewidth": 1.3}
        # A step: straight lines between the points would be below what the theorem proves.
        look |= {"linestyle": "-." if position < 6 else ":", "drawstyle": "steps-post"}
        line(axes, points, label=theorem.name, **look)
    if budget is not None:
        mark: dict[str, Any] = {"color": "black", "marker": "x", "linestyle": "none"}
        axes.plot(*([end] for end in budget), label="the budget claimed", **mark)
    axes.axvline(result.epsilon, color=INK, linewidth=0.8, linestyle=":")
    axes.set(yscale="log", ylim=(max(floor, min(upper) / 10), 1.3))
    axes.set(xlabel="epsilon", ylabel="delta")
    axes.set(title=f"delta over epsilon, asked at {exactly(result.epsilon)}")
    style(axes, "upper left", bbox_to_anchor=(1.01, 1.0))
