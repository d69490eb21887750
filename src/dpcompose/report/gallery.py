"""Pictures of what people ask: of a composition, a plan, a training run and a choice between mechanisms. Axes in, axes out.

Every line is a certified upper end, and the interval below it is shaded; what is infinite or empty is said in words.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dpcompose import check
from dpcompose.composition import Composable, Composition, Profile, epsilon, running_epsilon
from dpcompose.errors import DomainError
from dpcompose.plan import PlanAccount, TrainingHistory
from dpcompose.report.layout import Page, PageTable
from dpcompose.report.number import above, exactly, interval
from dpcompose.report.picture import (
    COLORS,
    INK,
    Picture,
    attacker,
    band,
    figure,
    line,
    message,
    named,
    style,
)
from dpcompose.values import Adjacency, AdjacencyName, Bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 400
"""Of a line, at most."""
MOST_STEPS = 10**6
"""Whose epsilons are found."""
LEVELS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The epsilons of the lines of `plane`."""
SHOWN = 10
"""Mechanisms that have a bar of their own."""


def steps(
    total: Composable,
    *,
    delta: float,
    budget: float | None = None,
    published: float | None = None,
    adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
    axes: Axes | None = None,
) -> Axes:
    """Epsilon after every step of a composition, with the budget as a line and a published value as a mark.

    Args:
        total: A composition, its steps in their order.
        delta: In [0, 1].
        budget: The largest epsilon that is allowed.
        published: The epsilon that was stated for all steps.
        adjacency: What one person's data may change.
        axes: Where to draw; new ones if None.

    Raises:
        DomainError: If a number is outside its domain.
        UnsupportedError: If a part has no sound statement under the adjacency.
        MissingExtraError: If matplotlib is not installed.
    """
    if not isinstance(total, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
        domain = "a mechanism or a composition, whose steps can be told apart"
        raise DomainError("total", total, domain)
    for name, level in (("budget", budget), ("published", published)):
        if level is not None:
            check.nonnegative(name, level)
    if isinstance(total, Composition) and not total.count <= MOST_STEPS:
        domain = f"at most {MOST_STEPS:,} steps"
        raise DomainError("total", total.count, domain, "Draw its first steps")
    result = running_epsilon(total, delta=delta, adjacency=adjacency)
    shown = _spread(len(result))
    bounds = tuple(Bound(result.lower[index], result.upper[index]) for index in shown)
    history = TrainingHistory(tuple(index + 1 for index in shown), bounds, delta, budget)
    return draw_steps(history, _axes(axes), published=published)


def waterfall(account: PlanAccount, *, axes: Axes | None = None) -> Axes:
    """The cost of each mechanism of a plan alone and on top of the others; the line is the total."""
    axes = _axes(axes)
    contributions = sorted(account.contributions, key=lambda each: -each.alone.upper)[:SHOWN]
    question, total = account.question, account.total
    title = f"Contributions at {question.fixed} = {exactly(question.value)}"
    axes.set(xlabel=question.computed, title=title)
    finite = [each for each in contributions if each.alone.upper < math.inf]
    if not finite:
        infinite = f"{question.computed} is infinite for every mechanism"
        message(axes, infinite if contributions else "the plan has no mechanism")
        return style(axes)
    places, alone = range(len(finite)), [each.alone.upper for each in finite]
    axes.barh(places, alone, color=COLORS[4], height=0.7, label="alone")
    saved = [
        (place, total.upper - each.without.lower)
        for place, each in enumerate(finite)
        if each.without is not None and total.upper < math.inf
    ]
    if saved:
        at, lengths = zip(*saved, strict=True)
        axes.barh(at, lengths, color=COLORS[0], height=0.35, label="on top of the others")
    if total.upper < math.inf:
        axes.axvline(total.upper, color=COLORS[1], label=f"total {above(total.upper, 4)}")
    axes.set_yticks(places, [_short(each.entry.name) for each in finite])
    axes.invert_yaxis()
    return style(axes, "lower right")


def privacy_profile(
    profile: Profile | Composable,
    *,
    epsilons: Sequence[float] | None = None,
    adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
    axes: Axes | None = None,
) -> Axes:
    """delta over epsilon, on a logarithmic axis.

    Args:
        profile: Of a composition, `total.profile()`, or a composition or mechanism.
        epsilons: Where to ask, increasing; from 0 to 5 if None.
        adjacency: What one person's data may change; a profile has its own.
        axes: Where to draw; new ones if None.
    """
    chosen = [k / 20 for k in range(101)] if epsilons is None else epsilons
    at = [check.real("epsilon", each) for each in chosen]
    result = _profile(profile, adjacency)(at)
    # A lower end of 0 is nowhere on a logarithmic axis: the shade then reaches far below what is drawn.
    ends = zip(at, result.lower, result.upper, strict=True)
    rows = [(x, max(low, high * 1e-3), high) for x, low, high in ends if high > 0]
    axes = _axes(axes)
    axes.set(yscale="log", xlabel="epsilon", ylabel="delta", title="Privacy profile")
    x, lower, upper = zip(*rows, strict=True) if rows else ((), (), ())
    band(axes, x, lower, upper, "delta is 0 everywhere")
    return style(axes)


def trade_off(
    profile: Profile | Composable,
    *,
    log: bool = False,
    adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
    axes: Axes | None = None,
) -> Axes:
    """The true positive rate of the best test over its false positive rate: no attack is above the line.

    Args:
        profile: Of a composition, `total.profile()`, or a composition or mechanism.
        log: Whether both axes are logarithmic, with the rate 1 in 1,000 named.
        adjacency: What one person's data may change; a profile has its own.
        axes: Where to draw; new ones if None.
    """
    profile = _profile(profile, adjacency)
    rates = [10 ** (k / 20 - 5) for k in range(101)] if log else [k / 100 for k in range(101)]
    found = profile.power(rates)
    axes = _axes(axes)
    attacker(axes, rates, found.lower, found.upper, log=log)
    if log:
        power = profile.power([1e-3]).upper[0]
        axes.plot([1e-3], [power], color=COLORS[1], marker="o")
        words = f" at 1 in 1,000: at most {above(power, 3)}"
        axes.annotate(words, (1e-3, power), color=INK, fontsize=9, va="top")
    return style(axes)


def accuracy(
    mechanism: Callable[[float], Composable],
    scales: Sequence[float],
    *,
    error: Callable[[float], float],
    delta: float = 0.0,
    adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
    axes: Axes | None = None,
) -> Axes:
    """The error of an answer over the epsilon that it costs.

    Args:
        mechanism: The mechanism, or composition, of a noise scale.
        scales: Noise scales, positive.
        error: The error at a scale, such as 1.96 sigma; not certified by this picture.
        delta: In [0, 1].
        adjacency: What one person's data may change.
        axes: Where to draw; new ones if None.
    """
    chosen = _positive("scales", scales)
    found = epsilon([mechanism(scale) for scale in chosen], delta=delta, adjacency=adjacency)
    axes = _axes(axes)
    points = sorted(
        (float(end), error(scale))
        for end, scale in zip(found.upper, chosen, strict=True)
        if 0 < end < math.inf
    )
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="error")
    axes.set(title=f"Error over epsilon, delta = {exactly(delta)}")
    line(axes, points, color=COLORS[0], linewidth=2)
    if not points:
        message(axes, "epsilon is infinite at every scale")
    return style(axes)


def plane(
    mechanism: Callable[[float, float], Composable],
    sigmas: Sequence[float],
    rates: Sequence[float],
    *,
    delta: float,
    adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
    axes: Axes | None = None,
) -> Axes:
    """Lines of equal epsilon over noise and sampling rate (or steps): for planning, drawn between certified points.

    Args:
        mechanism: The composition at a sigma and a rate.
        sigmas: Of the columns, increasing, at least two.
        rates: Of the rows, increasing, at least two; numbers of steps will do.
        delta: In [0, 1].
        adjacency: What one person's data may change.
        axes: Where to draw; new ones if None.
    """
    columns, rows = _positive("sigmas", sigmas), _positive("rates", rates)
    if min(len(columns), len(rows)) < 2:
        raise DomainError(
            "sigmas", sigmas, "at least two sigmas and two rates", "Use accuracy for a single line"
        )
    cells = [mechanism(sigma, rate) for rate in rows for sigma in columns]
    found = epsilon(cells, delta=delta, adjacency=adjacency)
    table = found.upper.reshape(len(rows), len(columns))
    axes = _axes(axes)
    axes.set(xlabel="sigma", ylabel="rate", yscale="log")
    axes.set(title=f"Epsilon at delta = {exactly(delta)}")
    finite = sorted(each for each in found.upper.tolist() if 0 < each < math.inf)
    least, most = (finite[0], finite[-1]) if finite else (0.0, 0.0)
    levels = [each for each in LEVELS if least < each < most]
    if levels:
        lines = axes.contour(columns, rows, table, levels=levels, colors=list(COLORS))
        axes.clabel(lines, fmt="epsilon %g", fontsize=9)
    else:
        most, where = max(found.upper.tolist()), "somewhere" if finite else "everywhere"
        known = f"epsilon is at most {above(most, 3)} everywhere"
        message(axes, known if most < math.inf else f"epsilon is infinite {where}")
    return style(axes)


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
    both = zip(history.steps, history.epsilon, strict=True)
    rows = [(f"{count:,}", *interval(bound)) for count, bound in both]
    at = f"at delta = {exactly(history.delta)}"
    headline = f"epsilon <= {above(last.upper)} {at}" if last else "no step was charged"
    facts = [("holds", history.holds)]
    if history.target is not None:
        facts.insert(0, ("budget", f"epsilon {exactly(history.target)} {at}"))
    table = PageTable.of("Epsilon over steps", (">steps", ">at least", ">at most"), rows)
    return Page("Training", headline, facts=facts, tables=[table])


def _profile(profile: Profile | Composable, adjacency: AdjacencyName) -> Profile:
    return profile if isinstance(profile, Profile) else profile.profile(adjacency=adjacency)


def _axes(axes: Axes | None) -> Axes:
    return figure(7.5).subplots() if axes is None else axes


def _spread(count: int) -> list[int]:
    """At most POINTS of the numbers below `count`, evenly spread, the last one among them."""
    return sorted({round(k * (count - 1) / (POINTS - 1)) for k in range(POINTS if count else 0)})


def _positive(name: str, values: Sequence[float]) -> list[float]:
    found = [check.positive(name, each) for each in values]
    if not found:
        raise DomainError(name, values, "at least one number")
    return found


def _short(name: str) -> str:
    return named(name if len(name) <= 28 else f"{name[:27]}...")
