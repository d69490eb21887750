"""The pictures of an audit: its wealth, the lower bound, what the best score tells, events tried, and pairs.

All is read from the result: moments, certificate and events. Shades and bars are two standard errors of an estimate;
what is certain but for alpha is said by the lines.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcompose.audit import AuditResult, Verdict
from dpcompose.report.audit import claimed
from dpcompose.report.number import exactly, nearest
from dpcompose.report.picture import COLORS, INK, figure, message, style, svg, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEN = math.log(10)
MEMBERS, EVENTS, PAIRS = 5, 12, 12
"""Features with a line of their own, events and pairs that are shown."""


def save_audit(path: str | Path, result: AuditResult, *, alpha: float) -> None:
    """Write all pictures of an audit on one sheet, as PNG, SVG or PDF.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        OSError: If the file cannot be written.
    """
    drawing = figure(16.0, 9.2)
    panels = drawing.subplots(2, 3).ravel()
    for axes, (_, _, draw) in zip(panels, _PICTURES, strict=False):
        draw(axes, result, alpha)
    panels[-1].set_axis_off()
    write(drawing, path)


def audit_svgs(result: AuditResult, *, alpha: float) -> tuple[tuple[str, str], ...]:
    """Captions and SVG elements of the pictures, for a page."""
    shown: list[tuple[str, str]] = []
    for title, caption, draw in _PICTURES:
        drawing = figure(7.5)
        draw(drawing.subplots(), result, alpha)
        shown.append((caption, svg(drawing, title=title, description=caption)))
    return tuple(shown)


def _wealth(axes: Axes, result: AuditResult, alpha: float) -> None:
    axes.set(xlabel="samples", ylabel="wealth, as a power of 10", title="Wealth")
    if not result.moments:
        message(axes, "nothing was drawn")
        style(axes)
        return
    samples = [moment.samples for moment in result.moments]
    grown: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for moment in result.moments:
        for name, factor in moment.members:
            before = grown[name][-1][1] if grown[name] else 0.0
            grown[name].append((moment.samples, before + factor / TEN))
    first = sorted(grown.items(), key=lambda each: -each[1][-1][1])[:MEMBERS]
    for position, (name, course) in enumerate(each for each in first if len(each[1]) > 1):
        axes.plot(
            *zip(*course, strict=True),
            color=COLORS[2 + position],
            linewidth=0.9,
            label=_short(name),
        )
    wealth = [moment.log_wealth / TEN for moment in result.moments]
    axes.plot(samples, wealth, color=COLORS[0], linewidth=2.4, label="all together")
    axes.axhline(-math.log10(alpha), color=COLORS[1], linestyle="--", label="1 / alpha")
    axes.plot(samples[-1:], wealth[-1:], color=COLORS[0], marker="o")
    word = "refuted" if result.verdict is Verdict.REFUTED else "stopped"
    axes.annotate(
        f"{word} at {result.samples:,} ",
        (samples[-1], wealth[-1]),
        fontsize=9,
        ha="right",
        color=INK,
    )
    low = min(0.0, *wealth)
    axes.set_ylim(low - 1, max(-math.log10(alpha), *wealth) + 1)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="center left")
    _over_samples(axes)


def _bound(axes: Axes, result: AuditResult, alpha: float) -> None:
    del alpha
    axes.set(
        xlabel="samples",
        ylabel="epsilon",
        title=f"The lower bound, at delta = {exactly(result.delta)}",
    )
    least = claimed(result)
    samples, lower = (
        [moment.samples for moment in result.moments],
        [moment.epsilon for moment in result.moments],
    )
    top = 1.25 * max([least, *lower]) or 1.0
    if samples:
        axes.fill_between(
            samples, lower, top, step="post", color=COLORS[0], alpha=0.15, linewidth=0
        )
        axes.step(
            samples, lower, where="post", color=COLORS[0], linewidth=2, label="epsilon is at least"
        )
    axes.axhline(least, color=COLORS[1], linestyle="--", label=f"claimed: {nearest(least)}")
    axes.set_ylim(0, top)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="center left")
    _over_samples(axes)


def _tells(axes: Axes, result: AuditResult, alpha: float) -> None:
    """True over false positives of the score that paid most: cells in the order of their stakes, bound before."""
    del alpha
    axes.set(
        xlabel="false positive rate", ylabel="true positive rate", title="What the best score tells"
    )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    pair, feature, cells = _best(result)
    zero, one = (sum(each[side] for each in cells) for side in (1, 2))
    if not (zero and one):
        message(axes, "nothing was bet")
        style(axes)
        return
    axes.set_title(f"What the best score tells: {_short(feature)}")
    ordered = sorted(cells, key=lambda each: -each[0])
    false = [0.0, *(each / zero for each in accumulate(cell[1] for cell in ordered))]
    true = [0.0, *(each / one for each in accumulate(cell[2] for cell in ordered))]
    errors = [2 * math.sqrt(rate * (1 - rate) / one) for rate in true]
    distance = _distance(result, pair)
    points = next(
        each["points"] for each in _header(result)["claims"] if each["distance"] == distance
    )
    rates = [position / 400 for position in range(401)]
    limits = [_allowed(points, rate) for rate in rates]
    axes.fill_between(rates, limits, 1.0, color=INK, alpha=0.12, linewidth=0)
    axes.plot(rates, limits, color=COLORS[1], linestyle="--", label="the most under the claim")
    low, high = (
        [min(rate + side * error, 1.0) for rate, error in zip(true, errors, strict=True)]
        for side in (-1, 1)
    )
    axes.fill_between(false, low, high, color=COLORS[0], alpha=0.3, linewidth=0)
    axes.plot(false, true, color=COLORS[0], linewidth=1.6, label="the score, an estimate")
    most = [_allowed(points, rate) for rate in false]
    above = [rate > limit for rate, limit in zip(true, most, strict=True)]
    axes.fill_between(false, most, true, where=above, color=COLORS[1], alpha=0.4, linewidth=0)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="lower right")
    style(axes)


def _events(axes: Axes, result: AuditResult, alpha: float) -> None:
    axes.set(
        xlabel="P(S) - e^epsilon Q(S) - delta",
        title=f"Events tried, excluded ones at alpha = {exactly(alpha)}",
    )
    best = sorted(result.tried, key=lambda each: -each.excess)[:EVENTS]
    if not best:
        message(axes, "too few samples of any pair")
        style(axes)
        return
    for excluded, color, label in (
        (False, COLORS[1], "open"),
        (True, COLORS[2], "violation excluded"),
    ):
        at = [(position, each) for position, each in enumerate(best) if each.excluded is excluded]
        if at:
            places, events = zip(*at, strict=True)
            errors = [2 * each.error for each in events]
            axes.errorbar(
                [each.excess for each in events],
                places,
                xerr=errors,
                color=color,
                fmt="o",
                capsize=3,
                label=label,
            )
    axes.axvline(0, color=INK, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(best)), [_short(each.event) for each in best], fontsize=7)
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="lower left")
    style(axes)


def _pairs(axes: Axes, result: AuditResult, alpha: float) -> None:
    del alpha
    axes.set(xlabel="samples", title="Pairs")
    rows, gained, before = defaultdict[int, int](int), defaultdict[int, float](float), (0, 0.0)
    for moment in result.moments:
        rows[moment.pair] += moment.samples - before[0]
        gained[moment.pair] += moment.log_wealth - before[1]
        before = (moment.samples, moment.log_wealth)
    shown = sorted(rows, key=lambda pair: (-rows[pair], -gained[pair]))[:PAIRS]
    if not shown:
        message(axes, "nothing was drawn")
        style(axes)
        return
    axes.barh(range(len(shown)), [rows[pair] for pair in shown], color=COLORS[4])
    for position, pair in enumerate(shown):
        if gained[pair]:
            words = f" {1000 * gained[pair] / rows[pair]:+.3g} a thousand"
            axes.annotate(words, (rows[pair], position), fontsize=8, color=INK, va="center")
    axes.set_yticks(
        range(len(shown)), [f"{pair}, {_distance(result, pair)} apart" for pair in shown]
    )
    axes.set_xlim(0, 1.35 * max(rows.values()))
    axes.invert_yaxis()
    style(axes)


def _over_samples(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.tick_params(axis="x", which="minor", labelbottom=False)
    style(axes)


def _header(result: AuditResult) -> Mapping[str, Any]:
    return (result.certificate or {})["header"]


def _distance(result: AuditResult, pair: int) -> int:
    batches = (result.certificate or {})["batches"]
    return next(each["stakes"]["distance"] for each in batches if each["stakes"]["pair"] == pair)


def _allowed(points: list[Mapping[str, str]], rate: float) -> float:
    """The largest true positive rate at a false positive rate under the claim."""
    limits = 1.0
    for point in points:
        growth, delta = float.fromhex(point["growth"]), float.fromhex(point["delta"])
        limits = min(limits, growth * rate + delta, 1 - (1 - rate - delta) / growth)
    return limits


def _best(result: AuditResult) -> tuple[int, str, list[tuple[float, int, int]]]:
    """The pair and feature whose bets paid most; of each cell its stake and the rows of either coin."""
    paid = defaultdict[tuple[int, str], float](float)
    cells = defaultdict[tuple[int, str], list[tuple[float, int, int]]](list)
    for moment, batch in zip(
        result.moments, (result.certificate or {}).get("batches", ()), strict=False
    ):
        counted = zip(
            batch["stakes"]["members"], batch["counts"]["members"], moment.members, strict=True
        )
        for stakes, counts, (name, factor) in counted:
            paid[moment.pair, name] += factor
            one, zero = (
                [sum(cell) for cell in zip(*stakes[side], strict=True)] for side in ("f", "g")
            )
            score = [float(each - other) for each, other in zip(one, zero, strict=True)]
            cells[moment.pair, name] += zip(score, counts["zero"], counts["one"], strict=True)
    if not paid:
        return 0, "", []
    best = max(paid, key=lambda each: paid[each])
    return *best, cells[best]


def _short(text: str) -> str:
    return text if len(text) <= 44 else text[:42] + "..."


_PICTURES: tuple[tuple[str, str, Callable[[Axes, AuditResult, float], None]], ...] = (
    (
        "Wealth",
        "If the claim is true, wealth ever reaches the dashed line with probability at most alpha.",
        _wealth,
    ),
    ("The lower bound", "The true epsilon is in the shaded part, but for alpha.", _bound),
    (
        "What the best score tells",
        "Estimates, shaded by two standard errors; no mechanism that keeps the claim is truly above its line.",
        _tells,
    ),
    ("Events tried", "Estimates with two standard errors; right of 0 is a violation.", _events),
    (
        "Pairs",
        "Samples of each pair, and what a thousand of them added to the logarithm of the wealth.",
        _pairs,
    ),
)
