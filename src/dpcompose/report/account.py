"""Pages, documents and pictures of a plan: its account, the gain of an attacker, and a calibration."""
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from dpcompose.composition import Calibration, Comparison, Risk
from dpcompose.plan import (
    EpsilonCurve,
    Growth,
    PlanAccount,
    PlanCalibration,
    PlanEntry,
    PlanRisk,
    TrainingHistory,
    over_delta,
    over_times,
)
from dpcompose.report.gallery import training_pictures
from dpcompose.report.layout import Heading, Page, PageTable, Tone, headings
from dpcompose.report.number import (
    above,
    below,
    digits_of,
    exactly,
    interval,
    members,
    nearest,
    plain,
    trimmed,
)
from dpcompose.report.picture import COLORS, INK, Picture, attacker, band, line, message, style
from dpcompose.values import Adjacency, Bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RATES = (1e-4, 1e-3, 1e-2, 1e-1)
_ATTACKER = (
    "The attacker sees every answer and knows all data but one person's. A secret that is guessed right with "
    "probability p without the answers is reconstructed with at most the true positive rate at p."
)
_UNREACHED = "No attack is above the line; the shaded part above it cannot be reached."
_TONES: dict[bool | None, Tone] = {None: "plain", True: "good", False: "bad"}

_NAMES = {"gaussian", "laplace", "poisson", "skellam", "renyi", "bernoulli"}
_DISTANCES = {"shift", "sensitivity", *(each.name.lower() for each in Adjacency)}
_CHANGES = {
    Adjacency.ADD_REMOVE: "is added or taken out",
    Adjacency.REPLACE: "is replaced",
    Adjacency.ZERO_OUT: "is left out",
}


def account_page(
    account: PlanAccount, *, explain: bool = False, risk: PlanRisk | None = None
) -> Page:
    """The account for people; `explain` adds how the total was certified and what the theorems assume."""
    tables = [_mechanisms(account), _theorems(account, explain)]
    if risk is not None:
        tables.insert(0, _risk_table(risk))
    if explain and account.total.certificate.budget:
        tables.append(_certificate(account))
    headline, tone, plan = _headline(account), _TONES[account.within], account.plan
    facts, notes = _facts(account), _notes(account, explain)
    source, promise = plan.toml(), meaning(account)
    return Page(plan.source, headline, tone, facts, tables, notes, source=source, meaning=promise)


def account_document(account: PlanAccount, *, risk: PlanRisk | None = None) -> dict[str, Any]:
    """The account for programs: every number in full precision, infinite ones as "inf"."""
    return {
        "plan": plain(account.plan),
        "given": {account.question.fixed: account.question.value},
        **members(account, "asked=question.computed total"),
        "budget": account.limit
        if account.limit is None
        else members(account, "epsilon=limit within"),
        "comparison_delta": account.delta if account.comparisons else None,
        **members(account, "comparison=comparisons mechanisms=contributions unbounded"),
        "total_without_unbounded": plain(account.finite),
    } | ({} if risk is None else {"risk": risk_document(risk)})


def _risk_table(result: PlanRisk | Risk) -> PageTable:
    """The success of each attack at best, rounded against the victim, beside that of blind guessing."""
    risk = result.risk if isinstance(result, PlanRisk) else result
    powers = {risk.false_positive_rate: risk.true_positive_rate}
    if isinstance(result, PlanRisk):
        powers = {rate: result.power(rate) for rate in _RATES}
    prior, wrong = exactly(risk.prior), f">= {below(risk.bayes_error.lower)}"
    at_rate, secret = "true positive rate at false positive rate", _at_most(risk.reconstruction)
    rows = [
        (f"{at_rate} {exactly(rate)}", _at_most(power), exactly(rate))
        for rate, power in powers.items()
    ]
    rows += [
        ("advantage: the largest difference of the two rates", _at_most(risk.advantage), "0"),
        (f"Bayes error: the wrong world named, at prior {prior}", wrong, prior),
        (f"reconstruction of a secret with {prior} chance to guess", secret, prior),
    ]
    titles = "~attack", ">at best", ">guessing blindly"
    return PageTable.of("What an attacker gains", titles, rows, [_ATTACKER])


def risk_document(result: PlanRisk) -> dict[str, Any]:
    """The success of attacks as a document for programs: both ends of every number."""
    rates = "prior false_positive_rate true_positive_rate advantage bayes_error reconstruction"
    points = zip(result.rates, result.powers, strict=True)
    curve = [{"false_positive_rate": at} | members(power, "lower upper") for at, power in points]
    return members(result.risk, rates) | {"curve": curve}


def risk_page(result: PlanRisk | Risk) -> Page:
    """The gain of an attacker who sees every answer."""
    risk = result.risk if isinstance(result, PlanRisk) else result
    headline = f"advantage {_at_most(risk.advantage)}"
    return Page("What an attacker gains", headline, tables=[_risk_table(result)])


def calibrated_page(result: Calibration, target: str = "") -> Page:
    """A parameter that meets its target, and what it certifies."""
    (low, high), number = interval(result.bound), result.quantity
    facts = [("target", target)] if target else []
    facts.append(("certified", f"{low} <= {number} <= {high}"))
    facts.append(("method", result.bound.certificate.method))
    if result.neighbor is not None:
        beyond = above(result.neighbor.upper, 12)
        facts.append(("just beyond", f"{number} is only certified to be at most {beyond}"))
    monotone = "Epsilon is not monotone in this parameter: a smaller value may do as well."
    notes = () if result.extreme else (monotone,)
    headline = f"{exactly(result.value)} meets the target"
    return Page("Calibration", headline, "good", facts, notes=notes)


def calibration_page(result: PlanCalibration) -> Page:
    """The value found, and the certified epsilon, or gain of an attacker, that it gives."""
    attack = dict(result.attack)
    target = ", ".join(f"{name.replace('_', ' ')} {exactly(attack[name])}" for name in attack)
    if result.epsilon is not None and result.delta is not None:
        target = f"epsilon <= {exactly(result.epsilon)} at delta = {exactly(result.delta)}"
    which = "keeps to the target"
    if result.calibration.extreme:
        which = f"is the {result.extreme} value"
    headline = f"{result.key} = {exactly(result.value)} {which}"
    title, source = f"Calibration of {result.key}", result.plan.toml()
    page = calibrated_page(result.calibration, target)
    return replace(page, title=title, headline=headline, source=source)


def calibration_document(result: PlanCalibration) -> dict[str, Any]:
    """The calibrated parameter and what it certifies, as a document for programs."""
    number = "gain" if result.attack else "epsilon"
    return {
        **members(result, "key value which=extreme"),
        "target": dict(result.attack) or members(result, "epsilon delta"),
        **members(result, f"{number}=calibration.bound beyond=calibration.neighbor plan"),
    }


def _headline(account: PlanAccount) -> str:
    question, total = account.question, account.total
    most = above(total.upper, min(digits_of(total), 10))
    value = "is infinite" if most == "infinite" else f"<= {most}"
    answer = f"{question.computed} {value} at {question.fixed} = {exactly(question.value)}"
    if account.limit is None:
        return answer
    over = "Over budget" if total.lower > account.limit else "Not certified to be within budget"
    verdict = "Within budget" if account.within else over
    return f"{verdict}: {answer}, budget {exactly(account.limit)}"


def _facts(account: PlanAccount) -> tuple[tuple[str, str], ...]:
    lower, upper = interval(account.total)
    width = above(account.total.width, 2)
    answers = sum(each.entry.times for each in account.contributions)
    return (
        ("certified", f"{lower} <= {account.question.computed} <= {upper}   width {width}"),
        ("method", account.total.certificate.method),
        ("neighbors", account.plan.adjacency.value),
        ("mechanisms", f"{len(account.contributions):,}, run {answers:,} times in all"),
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
    computed = account.question.computed
    several = any(each.without is not None for each in account.contributions)
    titles = ["~mechanism", "~what it is", ">times", f">{computed} alone"]
    columns = headings(*titles, *([f">{computed} without it"] if several else []))
    largest_first = sorted(account.contributions, key=lambda each: -each.alone.upper)
    most = largest_first[0].alone.upper if largest_first else 0.0
    rows: list[tuple[str, ...]] = []
    for each in largest_first:
        entry, alone = each.entry, above(each.alone.upper)
        without = "" if each.without is None else above(each.without.upper)
        row = entry.name, in_words(entry), f"{entry.times:,}", alone, without
        rows.append(row[: len(columns)])
    parts = [_part(each.alone.upper, most) for each in largest_first]
    return PageTable("What each mechanism contributes", columns, rows, shares=parts)


def _part(value: float, most: float) -> float:
    """The length of a bar of text, between 0 and 1; 1 only for the largest number of its table."""
    return 1.0 if value == most else 0.0 if most == math.inf else min(value / most, 0.99)


def _epsilon_of(row: Comparison) -> str:
    return f"about {nearest(row.epsilon)}" if row.kind == "estimate" else above(row.epsilon)


def _theorems(account: PlanAccount, explain: bool) -> PageTable:
    columns = headings("~theorem", ">epsilon", ">", "reference", *(["~note"] if explain else []))
    certified = next((row.epsilon for row in account.comparisons if row.kind == "certified"), 0.0)
    rows: list[tuple[str, ...]] = []
    for each in account.comparisons:
        shown, beside = _epsilon_of(each), each.kind
        if each.kind == "estimate":
            beside = "estimate, no bound"
        elif each.kind != "certified":
            finite = 0 < certified < each.epsilon < math.inf
            excess = each.epsilon / certified - 1 if finite else 0.0
            beside = f"+{100 * excess:.3g} %" if excess >= 5e-5 else ""
        row = each.name, shown, beside, each.reference, each.note
        rows.append(row[: len(columns)])
    return PageTable(f"What each theorem says at delta = {exactly(account.delta)}", columns, rows)


def _certificate(account: PlanAccount) -> PageTable:
    certificate = account.total.certificate
    rows = [(name, above(size, 3)) for name, size in certificate.budget]
    return PageTable.of("Where the width comes from", ("error", f">{certificate.unit}"), rows)


def _at_most(bound: Bound) -> str:
    return f"<= {above(bound.upper)}"


def in_words(entry: PlanEntry) -> str:
    """A mechanism of a plan, numbers to four digits: "discrete Gaussian, sigma 34.85"; the plan has them exactly.

    Distances of 1 and the adjacency are left out: every row would repeat them.
    """
    given = [
        (name.replace("_", " "), value)
        for name, value in entry.parameters
        if not isinstance(value, Adjacency) and not (name in _DISTANCES and value in (1, (1, 1)))
    ]
    rate = () if entry.rate is None else (f"sampled at {_few(entry.rate)}",)
    kind = " ".join(
        word.title() if word in _NAMES else word for word in re.split("[-_ ]", entry.kind)
    )
    return ", ".join((kind, *(f"{name} {_few(value)}" for name, value in given), *rate))


def _few(value: Any) -> str:
    if isinstance(value, int | str):
        return str(value)
    if isinstance(value, float):
        return trimmed(nearest(value, 4))
    entries = cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,))
    if not all(isinstance(each, int | float) for each in entries):
        return "as in the plan"
    return ", ".join([*map(_few, entries[:4]), *["..."][: len(entries) > 4]])


def meaning(account: PlanAccount) -> str:
    """The promise of the answer, in one sentence."""
    question = account.question
    epsilon = account.total.upper if question.computed == "epsilon" else question.value
    delta = account.total.upper if question.computed == "delta" else question.value
    changes = (
        f"If the data of one protected unit, such as a person, {_CHANGES[account.plan.adjacency]}"
    )
    if not (epsilon < math.inf and delta < 1):
        return f"Nothing is promised: {changes[0].lower()}{changes[1:]}, anything may be seen in the answers."
    if epsilon > 700:
        return f"{changes}, almost nothing is promised about how the chance of an outcome changes."
    factor = above(math.nextafter(math.exp(epsilon) * (1 + 1e-12), math.inf), 3)
    shown = above(delta) if question.computed == "delta" else exactly(delta)
    beyond = f", and by at most {shown} beyond that" if delta else ""
    return f"{changes}, the chance of any outcome grows at most by the factor {factor}{beyond}."


def comparison_page(accounts: Sequence[PlanAccount]) -> Page:
    """Several plans that were asked one question: their totals, and the theorems' epsilons side by side."""
    question = accounts[0].question
    order = sorted(accounts, key=lambda each: each.total.upper)
    totals = [
        (each.plan.source, *interval(each.total), each.plan.adjacency.value) for each in order
    ]
    columns = headings("~plan", f">{question.computed} at least", ">at most", "neighbors")
    theorems = {row.name: row.reference for each in order for row in each.comparisons}
    epsilons = [{row.name: _epsilon_of(row) for row in each.comparisons} for each in order]
    rows = [(name, *(each.get(name, "") for each in epsilons), at) for name, at in theorems.items()]
    theorem, reference = headings("~theorem", "reference")
    heads = (theorem, *(Heading(each.plan.source, "right") for each in order), reference)
    delta = exactly(accounts[0].delta)
    title = f"Epsilon of each theorem at delta = {delta}"
    tables = PageTable("Totals", columns, totals), PageTable(title, heads, rows)
    best = order[0]
    at = f"at {question.fixed} = {exactly(question.value)}"
    least = above(best.total.upper)
    headline = f"{best.plan.source} has the least {question.computed} {at}: {least}"
    if len(order) == 1:
        headline = f"{question.computed} <= {least} {at}"
    return Page("Comparison", headline, tables=tables)


def comparison_document(accounts: Sequence[PlanAccount]) -> dict[str, Any]:
    """The comparison of plans as a document for programs, in the order of the plans."""
    whole = [account_document(each) for each in accounts]
    compared = ("plan", "total", "comparison_delta", "comparison")
    plans = [{name: each[name] for name in compared} for each in whole]
    return {name: whole[0][name] for name in ("given", "asked")} | {"plans": plans}


def account_pictures(
    account: PlanAccount,
    *,
    risk: PlanRisk | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Picture, ...]:
    """The gain of an attacker, epsilon over delta and over the steps in the plan's order, with the budget's line, and
    its growth under each theorem; the curves are computed.
    """
    growth = over_times(account, progress=progress)
    curve = over_delta(account, progress=progress)
    plan, delta = account.plan, growth.delta
    target = account.limit if account.question.computed == "epsilon" else None
    runs = [(entry.mechanism, entry.times) for entry in plan.entries]
    steps = TrainingHistory.of(
        runs, delta, adjacency=plan.adjacency, progress=progress, target=target
    )
    mark = "The certified epsilon for every delta; the mark is the question that was asked."
    each = f"Epsilon at delta = {exactly(delta)} under each theorem; dotted lines are estimates."
    pictures = [
        Picture("Epsilon over delta", mark, partial(_draw_profile, curve, delta)),
        *(training_pictures(steps) if len(steps.steps) > 1 else ()),
        Picture("How epsilon grows", each, partial(_draw_growth, growth)),
    ]
    if risk is not None:
        draw = partial(_draw_risk, risk)
        pictures.insert(0, Picture("What an attacker gains", _UNREACHED, draw))
    return tuple(pictures)


def _draw_profile(curve: EpsilonCurve, delta: float, axes: Axes) -> None:
    deltas, epsilons = zip(*curve.points, strict=True)
    band(axes, deltas, curve.lower, epsilons, "epsilon is infinite at every delta drawn")
    axes.axvline(delta, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xscale="log", xlabel="delta", ylabel="epsilon", title="Epsilon over delta")
    axes.invert_xaxis()
    style(axes)


def _draw_growth(growth: Growth, axes: Axes) -> None:
    for position, curve in enumerate(growth.curves):
        points = [(stop, epsilon) for stop, epsilon in curve.points if 0 < epsilon < math.inf]
        dashes = {"certified": "-", "estimate": ":"}.get(curve.kind, ("--", "-.")[position % 2])
        width, above_others = (2.6, 3) if curve.kind == "certified" else (1.5, 2)
        look = {"color": COLORS[position % len(COLORS)], "linestyle": dashes, "linewidth": width}
        line(axes, points, label=curve.name, zorder=above_others, **look)
    if not axes.lines:
        message(axes, "no theorem gives a finite epsilon here")
    axes.set(xscale="log", yscale="log", xlabel=growth.unit, ylabel="epsilon")
    axes.set(title="How epsilon grows")
    style(axes, "upper left")


def _draw_risk(result: PlanRisk, axes: Axes) -> None:
    lower, upper = ([getattr(each, end) for each in result.powers] for end in ("lower", "upper"))
    attacker(axes, result.rates, lower, upper, log=True)
    risk = result.risk
    rate, power = risk.false_positive_rate, risk.true_positive_rate.upper
    axes.plot([rate], [power], color=COLORS[1], marker="o")
    style(axes)
