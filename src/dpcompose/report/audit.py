"""The result of an audit: a page and pictures for people, and a document for programs."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from dpcompose.audit import AuditResult, Verdict
from dpcompose.report.layout import Page, PageTable
from dpcompose.report.number import exactly, members, nearest
from dpcompose.report.picture import COLORS, INK, Picture, message, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 12
_VIOLATION = {True: "excluded", False: "open"}
BLIND = "A mechanism that knows it is audited, or errs on datasets or events that were not tried, is not found."
FEW = "No pair had rows enough to say of single events whether a violation is excluded."
MEMORY = (
    "Answers came again, of calls that are not isolated: a mechanism that rightly answers from memory is audited with"
    " a fresh process for each call."
)
_WORDS = {
    Verdict.REFUTED: "REFUTED: if the claim were true, this would have happened with probability at most",
    Verdict.NOT_REFUTED: "NOT REFUTED: no violation was found; nothing is proved of events that were not tried; alpha",
    Verdict.CERTIFIED: "CERTIFIED: the declared law keeps the claim; the code was audited at alpha",
}


def audit_page(result: AuditResult, *, notes: Sequence[str] = ()) -> Page:
    """The result of an audit, for people; `notes` are further sentences about the subject."""
    stated, alpha = _header(result), _alpha(result)
    wealth, goal = result.log_wealth / math.log(10), -math.log10(alpha)
    unseen = f"an isolating event of probability below {nearest(result.unseen)}"
    refuted = result.verdict is Verdict.REFUTED
    facts = [
        ("subject", stated["subject"]),
        ("claim", stated["claim"]),
        (
            "samples",
            f"{result.samples:,}, of either world; fresh in every call: {result.freshness}",
        ),
        ("wealth", f"10^{wealth:.2f}, against 10^{goal:.2f}"),
        ("epsilon", bound_in_words(result)),
        ("event", result.event),
        *([("description", result.description)] if result.description else []),
        *([] if refuted else [("unseen", unseen)]),
    ]
    words = _WORDS[result.verdict].replace(":", " FOR REPEATED CALLS:", int(result.repeated))
    remarks = [] if result.tried else [FEW]
    remarks += [] if refuted else [BLIND, *(f"Not looked at: {each}." for each in result.unread)]
    remarks += [MEMORY] if result.repeated else []
    headline, tone = f"{words} {exactly(alpha)}", "bad" if refuted else "plain"
    return Page("The audit", headline, tone, facts, [_tried(result)], [*remarks, *notes])


def _tried(result: AuditResult) -> PageTable:
    rows = [
        (each.event, nearest(each.excess, 3), nearest(each.error, 2), _VIOLATION[each.excluded])
        for each in sorted(result.tried, key=lambda each: -each.excess)[:SHOWN]
    ]
    note = "Excess: an estimate of P(S) - e^epsilon Q(S) - delta; its standard error is beside it."
    return PageTable.of("Events tried", ("~event", ">excess", ">error", "violation"), rows, [note])


def audit_document(result: AuditResult, *, notes: Sequence[str] = ()) -> dict[str, Any]:
    """The result of an audit, for programs."""
    stated = {name: _header(result)[name] for name in ("subject", "claim")}
    return {
        **members(result, "verdict") | stated | {"alpha": _alpha(result)},
        **members(result, "samples log_wealth"),
        "epsilon": members(result, "lower=epsilon.lower delta"),
        **members(result, "event description unseen repeated freshness tried not_looked_at=unread"),
        "notes": list(notes),
    }


def _header(result: AuditResult) -> dict[str, Any]:
    """The part of the certificate that states the subject, the claim and alpha."""
    return (result.certificate or {})["header"]


def _alpha(result: AuditResult) -> float:
    return float(_header(result)["alpha"])


def claimed(result: AuditResult) -> float:
    """The epsilon of the claim at the smallest delta of its points."""
    claims = _header(result)["claims"]
    points = next(each["points"] for each in claims if each["distance"] == 1)
    return float.fromhex(min(points, key=lambda point: float.fromhex(point["delta"]))["epsilon"])


def bound_in_words(result: AuditResult) -> str:
    """The lower bound on epsilon, beside the claim."""
    lower, least, at = result.epsilon.lower, claimed(result), f"at delta = {nearest(result.delta)}"
    bound = f">= {nearest(lower)} {at}, but for alpha" if lower else f"no lower bound yet {at}"
    if lower > least:
        return f"{bound}: above the claimed {nearest(least)}"
    if result.verdict is not Verdict.REFUTED:
        return f"{bound}; claimed: {nearest(least)}"
    return f"{bound}; claimed: {nearest(least)}, which is refuted: by how much, more samples would tell"


def audit_pictures(result: AuditResult) -> tuple[Picture, Picture]:
    """The wealth of the bets, and the true over the false positives of the score that paid most."""
    reached = "wealth ever reaches the dashed line with probability at most alpha."
    above = "no mechanism that keeps the claim is truly above its line."
    worlds = f"Estimates, shaded by two standard errors; {above}"
    return (
        Picture("Wealth", f"If the claim is true, {reached}", partial(_wealth, result)),
        Picture("What the best score tells", worlds, partial(_worlds, result)),
    )


def _wealth(result: AuditResult, axes: Axes) -> None:
    axes.set(xlabel="samples", ylabel="wealth, as a power of 10", title="Wealth")
    if not result.moments:
        message(axes, "nothing was drawn")
        style(axes)
        return
    samples = [moment.samples for moment in result.moments]
    wealth = [moment.log_wealth / math.log(10) for moment in result.moments]
    goal = -math.log10(_alpha(result))
    axes.plot(samples, wealth, color=COLORS[0], linewidth=2.4, label="all bets together")
    axes.axhline(goal, color=COLORS[1], linestyle="--", label="1 / alpha")
    axes.plot(samples[-1:], wealth[-1:], color=COLORS[0], marker="o")
    word = "refuted" if result.verdict is Verdict.REFUTED else "stopped"
    end = f"{word} at {result.samples:,} "
    axes.annotate(end, (samples[-1], wealth[-1]), fontsize=9, ha="right", color=INK)
    axes.set(xscale="log", ylim=(min(0, *wealth) - 1, max(goal, *wealth) + 1))
    axes.tick_params(axis="x", which="minor", labelbottom=False)
    style(axes, "center left")


def _worlds(result: AuditResult, axes: Axes) -> None:
    """True over false positives of the score that paid most: cells in the order of their stakes, bound before."""
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1))
    points, feature, cells = _best(result)
    axes.set_title(f"What the best score tells: {feature[:42]}")
    ordered = [rows for _, rows in sorted(cells, key=lambda each: -each[0])]
    zero, one = (sum(rows[world] for rows in ordered) for world in (0, 1))
    if not (zero and one):
        message(axes, "nothing was bet")
        style(axes)
        return
    false = [each / zero for each in accumulate((rows[0] for rows in ordered), initial=0)]
    true = [each / one for each in accumulate((rows[1] for rows in ordered), initial=0)]
    rates = [step / 400 for step in range(401)]
    limits = [_allowed(points, rate) for rate in rates]
    axes.fill_between(rates, limits, 1.0, color=INK, alpha=0.12, linewidth=0)
    label = "the most under the claim"
    axes.plot(rates, limits, color=COLORS[1], linestyle="--", label=label)
    errors = [2 * math.sqrt(rate * (1 - rate) / one) for rate in true]
    low, high = (
        [min(rate + side * error, 1.0) for rate, error in zip(true, errors, strict=True)]
        for side in (-1, 1)
    )
    axes.fill_between(false, low, high, color=COLORS[0], alpha=0.3, linewidth=0)
    axes.plot(false, true, color=COLORS[0], linewidth=1.6, label="the score, an estimate")
    style(axes, "lower right")


def _allowed(points: Sequence[Mapping[str, str]], rate: float) -> float:
    """The largest true positive rate at a false positive rate under the claim."""
    most = 1.0
    for point in points:
        growth, delta = float.fromhex(point["growth"]), float.fromhex(point["delta"])
        most = min(most, growth * rate + delta, 1 - (1 - rate - delta) / growth)
    return most


def _best(result: AuditResult) -> tuple[Any, str, list[tuple[float, tuple[int, int]]]]:
    """The pair and the feature whose bets paid most: the claim at its distance, the feature's name, and its cells.

    Each cell has its stake, and its rows in the worlds without and with the record.
    """
    certificate: Mapping[str, Any] = result.certificate or {"batches": ()}
    paid = defaultdict[tuple[int, str], float](float)
    cells: dict[tuple[int, str], list[tuple[float, tuple[int, int]]]] = defaultdict(list)
    distances: dict[int, int] = {}
    for moment, batch in zip(result.moments, certificate["batches"], strict=False):
        stakes, counts = batch["stakes"], batch["counts"]["members"]
        distances[moment.pair] = stakes["distance"]
        each = zip(stakes["members"], counts, moment.members, strict=True)
        for staked, counted, (name, factor) in each:
            paid[moment.pair, name] += factor
            f, g = (map(sum, zip(*staked[side], strict=True)) for side in ("f", "g"))
            score = [float(each - other) for each, other in zip(f, g, strict=True)]
            rows = zip(counted["zero"], counted["one"], strict=True)
            cells[moment.pair, name] += zip(score, rows, strict=True)
    if not paid:
        return (), "", []
    pair, name = best = max(paid, key=lambda each: paid[each])
    claims = certificate["header"]["claims"]
    claim = next(each for each in claims if each["distance"] == distances[pair])
    return claim["points"], name, cells[best]
