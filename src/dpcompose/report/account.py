"""Pages, documents and pictures of a plan: its account, the gain of an attacker, and a calibration."""
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dpcompose.composition import Calibration, Comparison, Risk
from dpcompose.plan import (
    Contribution,
    EpsilonCurve,
    Growth,
    Plan,
    PlanAccount,
    PlanCalibration,
    PlanRisk,
    over_delta,
    over_times,
)
from dpcompose.report.layout import Fact, Heading, Page, PageTable, Tone, headings
from dpcompose.report.number import (
    above,
    below,
    digits_of,
    exactly,
    interval,
    members,
    nearest,
    plain,
)
from dpcompose.report.picture import COLORS, INK, Picture, attacker, band, message, style
from dpcompose.report.words import answer, in_words, meaning, tolerance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RATES = (1e-4, 1e-3, 1e-2, 1e-1)
_ATTACKER = (
    "The attacker sees every answer and knows all data but one person's. A secret that is guessed right with "
    "probability p without the answers is reconstructed with at most the true positive rate at p."
)
_UNREACHED = "No attack is above the line; the shaded part above it cannot be reached."
_TONES: dict[bool | None, Tone] = {None: "plain", True: "good", False: "bad"}


def account_page(
    account: PlanAccount, *, explain: bool = False, risk: PlanRisk | None = None
) -> Page:
    """The account for people; `explain` adds how the total was certified and what the theorems assume."""
    tables = [_mechanisms(account), _theorems(account, explain)]
    if risk is not None:
        tables.insert(0, risk_table(risk))
    if explain and account.total.certificate.budget:
        tables.append(_certificate(account))
    return Page(
        title=account.plan.source,
        headline=_headline(account),
        tone=_TONES[account.within],
        facts=_facts(account),
        tables=tuple(table for table in tables if table.rows),
        notes=_notes(account, explain),
        source=account.plan.toml(),
        answer=answer(account),
        meaning=meaning(account),
    )


def account_document(account: PlanAccount, *, risk: PlanRisk | None = None) -> dict[str, Any]:
    """The account for programs: every number in full precision, infinite ones as "inf"."""
    return {
        "plan": plan_document(account.plan),
        "given": {account.question.fixed: account.question.value},
        "asked": account.question.computed,
        "total": plain(account.total),
        "budget": None
        if account.limit is None
        else {"epsilon": account.limit, "within": account.within},
        "comparison_delta": account.delta if account.comparisons else None,
        "comparison": [_compared(each) for each in account.comparisons],
        "mechanisms": [_shared(contribution) for contribution in account.contributions],
        "unbounded": list(account.unbounded),
        "total_without_unbounded": plain(account.finite),
    } | ({} if risk is None else {"risk": risk_document(risk)})


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as it was understood; `toml` reads back as an equal plan."""
    return {"source": plan.source, "adjacency": plan.adjacency.value, "toml": plan.toml()}


def risk_table(result: PlanRisk) -> PageTable:
    """The success of each attack at best, rounded against the victim, beside that of blind guessing."""
    risk = result.risk
    rows = [
        (
            f"true positive rate at false positive rate {exactly(rate)}",
            _at_most(result.power(rate).upper),
            exactly(rate),
        )
        for rate in _RATES
    ]
    return _risks((*rows, *_odds(risk)))


def _odds(risk: Risk) -> tuple[tuple[str, str, str], ...]:
    prior = exactly(risk.prior)
    return (
        ("advantage: the largest difference of the two rates", _at_most(risk.advantage.upper), "0"),
        (
            f"Bayes error: the wrong world named, at prior {prior}",
            f">= {below(risk.bayes_error.lower)}",
            prior,
        ),
        (
            f"reconstruction of a secret with {prior} chance to guess",
            _at_most(risk.reconstruction.upper),
            prior,
        ),
    )


def _risks(rows: tuple[tuple[str, str, str], ...]) -> PageTable:
    columns = headings("~attack", ">at best", ">guessing blindly")
    return PageTable("What an attacker gains", columns, rows, (_ATTACKER,))


def risk_document(result: PlanRisk) -> dict[str, Any]:
    """The same for programs: both ends of every number."""
    rates = "prior false_positive_rate true_positive_rate advantage bayes_error reconstruction"
    return members(result.risk, rates) | {
        "curve": [
            {"false_positive_rate": rate, "lower": power.lower, "upper": power.upper}
            for rate, power in zip(result.rates, result.powers, strict=True)
        ],
    }


def risk_page(result: PlanRisk) -> Page:
    """The gain of an attacker against a plan."""
    return _attacked(result.risk, (risk_table(result),))


def attack_page(risk: Risk) -> Page:
    """The gain of an attacker who sees every answer."""
    rate = f"true positive rate at false positive rate {exactly(risk.false_positive_rate)}"
    first = (rate, _at_most(risk.true_positive_rate.upper), exactly(risk.false_positive_rate))
    return _attacked(risk, (_risks((first, *_odds(risk))),))


def _attacked(risk: Risk, tables: tuple[PageTable, ...]) -> Page:
    headline = f"advantage {_at_most(risk.advantage.upper)}"
    return Page("What an attacker gains", headline, "plain", (), tables)


def calibrated_page(result: Calibration) -> Page:
    """A parameter that meets its target, and what it certifies."""
    low, high = interval(result.bound)
    beyond = result.neighbor and above(result.neighbor.upper, 12)
    facts = [Fact("certified", f"{low} to {high}"), Fact("method", result.bound.certificate.method)]
    facts += [Fact("just beyond", f"at most {beyond}")] if beyond else []
    headline = f"{exactly(result.value)} meets the target"
    following = "run with this value: a neighboring one is not certified to meet the target"
    return Page("Calibration", headline, "good", tuple(facts), (), following=following)


def calibration_page(result: PlanCalibration) -> Page:
    """The value found, and the certified epsilon, or gain of an attacker, that it gives."""
    low, high = interval(result.calibration.bound)
    number = "epsilon"
    target = ", ".join(
        f"{name.replace('_', ' ')} {exactly(value)}" for name, value in result.attack
    )
    if result.epsilon is not None and result.delta is not None:
        target = f"epsilon <= {exactly(result.epsilon)} at delta = {exactly(result.delta)}"
    else:
        named = result.attack[0][0].replace("_", " ")
        number = "chance of a right guess" if "bayes_error" in dict(result.attack) else named
    facts = [
        Fact("target", target),
        Fact("certified", f"{low} <= {number} <= {high}"),
        Fact("method", result.calibration.bound.certificate.method),
    ]
    if result.calibration.neighbor is not None:
        beyond = (
            "infinite"
            if result.calibration.neighbor.upper == math.inf
            else above(result.calibration.neighbor.upper, 12)
        )
        facts.append(Fact("just beyond", f"{number} is only certified to be at most {beyond}"))
    notes = (
        ()
        if result.calibration.extreme
        else ("Epsilon is not monotone in this parameter: a smaller value may do as well.",)
    )
    headline = f"{result.key} = {exactly(result.value)} is the {result.extreme} value"
    if not result.calibration.extreme:
        headline = f"{result.key} = {exactly(result.value)} keeps to the target"
    title, source = f"Calibration of {result.key}", result.plan.toml()
    return Page(title, headline, "good", tuple(facts), (), notes=notes, source=source)


def calibration_document(result: PlanCalibration) -> dict[str, Any]:
    """The same for a machine."""
    return {
        "key": result.key,
        "value": result.value,
        "which": result.extreme,
        "target": dict(result.attack) or {"epsilon": result.epsilon, "delta": result.delta},
        "gain" if result.attack else "epsilon": plain(result.calibration.bound),
        "beyond": plain(result.calibration.neighbor),
        "plan": plan_document(result.plan),
    }


def _headline(account: PlanAccount) -> str:
    asked, given = account.question.computed, account.question.fixed
    at = f"at {given} = {exactly(account.question.value)}"
    total = above(account.total.upper, min(digits_of(account.total), 10))
    answer = f"{asked} is infinite" if total == "infinite" else f"{asked} <= {total}"
    if account.limit is None:
        return f"{answer} {at}"
    return f"{_verdict(account)}: {answer} {at}, budget {exactly(account.limit)}"


def _verdict(account: PlanAccount) -> str:
    if account.within:
        return "Within budget"
    over = account.limit is not None and account.total.lower > account.limit
    return "Over budget" if over else "Not certified to be within budget"


def _facts(account: PlanAccount) -> tuple[Fact, ...]:
    lower, upper = interval(account.total)
    answers = sum(contribution.entry.times for contribution in account.contributions)
    return (
        Fact(
            "certified",
            f"{lower} <= {account.question.computed} <= {upper}   width {above(account.total.width, 2)}",
            tolerance(account),
        ),
        Fact("method", account.total.certificate.method),
        Fact("neighbors", account.plan.adjacency.value),
        Fact("mechanisms", f"{len(account.contributions):,}, run {answers:,} times in all"),
    )


def _notes(account: PlanAccount, explain: bool) -> tuple[str, ...]:
    notes: list[str] = []
    asked = account.question.computed
    if account.unbounded:
        notes.append(
            f"Nothing useful is known at this {account.question.fixed} of: {', '.join(account.unbounded)}."
        )
    if account.finite is not None:
        notes.append(f"Without these, {asked} <= {above(account.finite.upper, 10)}.")
    notes.extend(account.total.certificate.notes)
    if explain:
        notes.append(
            "The interval contains the supremum over all mechanisms with these guarantees and all adversaries, "
            "float round-off included; the upper end is the promise, the lower shows that no accountant can do better."
        )
    return tuple(notes)


def _mechanisms(account: PlanAccount) -> PageTable:
    asked = account.question.computed
    several = any(contribution.without is not None for contribution in account.contributions)
    titles = ["~mechanism", "~what it is", ">times", f">{asked} alone"]
    columns = headings(*titles, *([f">{asked} without it"] if several else []))
    largest_first = sorted(
        account.contributions, key=lambda contribution: -contribution.alone.upper
    )
    rows = tuple(_contribution_row(contribution, several) for contribution in largest_first)
    most = max((contribution.alone.upper for contribution in account.contributions), default=0.0)
    parts = tuple(_part(contribution.alone.upper, most) for contribution in largest_first)
    return PageTable("What each mechanism contributes", columns, rows, shares=parts)


def _part(value: float, most: float) -> float:
    """The length of a bar, between 0 and 1; full only for the largest."""
    return 1.0 if value == most else 0.0 if most == math.inf else min(value / most, 0.99)


def _contribution_row(contribution: Contribution, several: bool) -> tuple[str, ...]:
    row = (
        contribution.entry.name,
        in_words(contribution.entry),
        f"{contribution.entry.times:,}",
        above(contribution.alone.upper),
    )
    if not several:
        return row
    return (*row, "" if contribution.without is None else above(contribution.without.upper))


def _theorems(account: PlanAccount, explain: bool) -> PageTable:
    columns = headings("~theorem", ">epsilon", ">", "reference", *(["~note"] if explain else []))
    certified = next(
        (each.epsilon for each in account.comparisons if each.kind == "certified"), 0.0
    )
    rows = tuple(_theorem_row(each, certified, explain) for each in account.comparisons)
    return PageTable(f"What each theorem says at delta = {exactly(account.delta)}", columns, rows)


def _theorem_row(each: Comparison, certified: float, explain: bool) -> tuple[str, ...]:
    estimate = each.kind == "estimate"
    shown = f"about {nearest(each.epsilon)}" if estimate else above(each.epsilon)
    excess = (
        each.epsilon / certified - 1
        if 0 < certified < each.epsilon < float("inf") and not estimate
        else 0.0
    )
    contribution = (
        "estimate, no bound"
        if estimate
        else each.kind
        if each.kind == "certified"
        else _excess(excess)
    )
    row = (each.name, shown, contribution, each.reference)
    return (*row, each.note) if explain else row


def _excess(excess: float) -> str:
    return f"+{100 * excess:.3g} %" if excess >= 5e-5 else ""


def _certificate(account: PlanAccount) -> PageTable:
    certificate = account.total.certificate
    rows = tuple((name, above(size, 3)) for name, size in certificate.budget)
    return PageTable("Where the width comes from", headings("error", f">{certificate.unit}"), rows)


def _compared(each: Comparison) -> dict[str, Any]:
    return {"theorem": each.name} | members(each, "reference kind epsilon lower note")


def _shared(contribution: Contribution) -> dict[str, Any]:
    return members(contribution.entry, "name times") | members(contribution, "alone without")


def _at_most(value: float) -> str:
    return f"<= {above(value)}"


def comparison_page(accounts: Sequence[PlanAccount]) -> Page:
    """Several plans that were asked one question: their totals, and the theorems' epsilons side by side."""
    question = accounts[0].question
    order = sorted(accounts, key=lambda each: each.total.upper)
    totals = tuple(
        (each.plan.source, *interval(each.total), each.plan.adjacency.value) for each in order
    )
    columns = headings("~plan", f">{question.computed} at least", ">at most", "neighbors")
    theorems = {row.name: row.reference for each in order for row in each.comparisons}
    epsilons = [{row.name: above(row.epsilon) for row in each.comparisons} for each in order]
    rows = tuple(
        (name, *(each.get(name, "") for each in epsilons), reference)
        for name, reference in theorems.items()
    )
    theorem, reference = headings("~theorem", "reference")
    heads = (theorem, *(Heading(each.plan.source, "right") for each in order), reference)
    delta = exactly(accounts[0].delta)
    tables = (
        PageTable("Totals", columns, totals),
        PageTable(f"Epsilon of each theorem at delta = {delta}", heads, rows),
    )
    best = order[0]
    at = f"at {question.fixed} = {exactly(question.value)}"
    headline = (
        f"{best.plan.source} has the least {question.computed} {at}: {above(best.total.upper)}"
    )
    if len(order) == 1:
        headline = f"{question.computed} <= {above(best.total.upper)} {at}"
    return Page("Comparison", headline, "plain", (), tuple(table for table in tables if table.rows))


def comparison_document(accounts: Sequence[PlanAccount]) -> dict[str, Any]:
    """The same for programs, in the order of the plans."""
    question = accounts[0].question
    return {
        "given": {question.fixed: question.value},
        "asked": question.computed,
        "plans": [
            {
                "plan": plan_document(each.plan),
                "total": plain(each.total),
                "comparison_delta": each.delta if each.comparisons else None,
                "comparison": [_compared(row) for row in each.comparisons],
            }
            for each in accounts
        ],
    }


def account_pictures(
    account: PlanAccount,
    *,
    risk: PlanRisk | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Picture, ...]:
    """What an attacker gains, epsilon over delta, and how it grows under each theorem; the curves are computed."""
    growth = over_times(account, progress=progress)
    curve = over_delta(account, progress=progress)
    attack = Picture("What an attacker gains", _UNREACHED, lambda axes: _draw_risk(axes, risk))
    return (
        *([] if risk is None else [attack]),
        Picture(
            "Epsilon over delta",
            "The certified epsilon for every delta; the mark is the question that was asked.",
            lambda axes: _draw_profile(axes, curve, growth.delta),
        ),
        Picture(
            "How epsilon grows",
            f"Epsilon at delta = {exactly(growth.delta)} under each theorem; dotted lines are estimates.",
            lambda axes: _draw_growth(axes, growth),
        ),
    )


def _draw_profile(axes: Axes, curve: EpsilonCurve, delta: float) -> None:
    deltas, epsilons = zip(*curve.points, strict=True)
    band(axes, deltas, curve.lower, epsilons, "epsilon is infinite at every delta drawn")
    axes.axvline(delta, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xscale="log", xlabel="delta", ylabel="epsilon", title="Epsilon over delta")
    axes.invert_xaxis()
    style(axes)


def _draw_growth(axes: Axes, growth: Growth) -> None:
    drawn = 0
    for position, curve in enumerate(growth.curves):
        points = [(stop, epsilon) for stop, epsilon in curve.points if 0 < epsilon < math.inf]
        if points:
            certified, estimate = curve.kind == "certified", curve.kind == "estimate"
            axes.plot(
                *zip(*points, strict=True),
                color=COLORS[position % len(COLORS)],
                linestyle=":" if estimate else "-" if certified else ("--", "-.")[position % 2],
                linewidth=2.6 if certified else 1.5,
                marker="o" if len(points) == 1 else None,
                label=curve.name,
                zorder=3 if certified else 2,
            )
            drawn += 1
    if not drawn:
        message(axes, "no theorem gives a finite epsilon here")
    axes.set(xscale="log", yscale="log", xlabel=growth.unit, ylabel="epsilon")
    axes.set(title="How epsilon grows")
    style(axes, "upper left")


def _draw_risk(axes: Axes, result: PlanRisk) -> None:
    lower, upper = ([getattr(each, end) for each in result.powers] for end in ("lower", "upper"))
    attacker(axes, result.rates, lower, upper, log=True)
    risk = result.risk
    rate, power = risk.false_positive_rate, risk.true_positive_rate.upper
    axes.plot([rate], [power], color=COLORS[1], marker="o")
    style(axes)
