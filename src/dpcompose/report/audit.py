"""The result of an audit: a page for people, and a document for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpcompose.audit import AuditResult, Verdict
from dpcompose.report.layout import Fact, Page, PageTable, headings
from dpcompose.report.number import exactly, members, nearest

SHOWN = 12
BLIND = "A mechanism that knows it is audited, or errs on datasets or events that were not tried, is not found."
MEMORY = (
    "Answers came again, of calls that are not isolated: a mechanism that rightly answers from memory is audited with"
    " a fresh instance or process for each call."
)
_WORDS = {
    Verdict.REFUTED: "REFUTED: if the claim were true, this would have happened with probability at most",
    Verdict.NOT_REFUTED: "NOT REFUTED: no violation was found; nothing is proved of events that were not tried; alpha",
    Verdict.CERTIFIED: "CERTIFIED: the declared law keeps the claim; the code was audited at alpha",
}


def audit_page(
    result: AuditResult,
    *,
    subject: str = "",
    claim: str = "",
    alpha: float | None = None,
    notes: Sequence[str] = (),
) -> Page:
    """The result of an audit, for people.

    Args:
        result: The result.
        subject: The name of the subject.
        claim: The claim.
        alpha: The probability of refuting a true claim.
        notes: Further sentences.

    What is left out is read from the certificate.
    """
    header = (result.certificate or {}).get("header", {})
    subject, claim = subject or header.get("subject", ""), claim or header.get("claim", "")
    alpha = float(header.get("alpha", "nan")) if alpha is None else alpha
    facts = [
        Fact("subject", subject),
        Fact("claim", claim),
        Fact(
            "samples",
            f"{result.samples:,}, of either world; fresh in every call: {result.freshness}",
        ),
        Fact(
            "wealth",
            f"10^{result.log_wealth / math.log(10):.2f}, against 10^{-math.log10(alpha):.2f}",
        ),
        Fact("epsilon", bound_in_words(result)),
        Fact("event", result.event),
    ]
    if result.description:
        facts.append(Fact("description", result.description))
    if result.verdict is not Verdict.REFUTED:
        facts.append(
            Fact("unseen", f"an isolating event of probability below {nearest(result.unseen)}")
        )
    tone = "bad" if result.verdict is Verdict.REFUTED else "plain"
    told = _WORDS[result.verdict].replace(":", " FOR REPEATED CALLS:", 1 if result.repeated else 0)
    few = (
        ()
        if result.tried
        else ("No pair had rows enough to say of single events whether a violation is excluded.",)
    )
    missed = (
        ()
        if result.verdict is Verdict.REFUTED
        else (BLIND, *(f"Not looked at: {each}." for each in result.unread))
    )
    memory = (MEMORY,) if result.repeated else ()
    remarks = (*few, *missed, *memory, *notes)
    return Page(
        "The audit",
        f"{told} {exactly(alpha)}",
        tone,
        tuple(facts),
        (_tried(result),) if result.tried else (),
        remarks,
    )


def _tried(result: AuditResult) -> PageTable:
    columns = headings("~event", ">excess", ">error", "violation")
    best = sorted(result.tried, key=lambda each: -each.excess)[:SHOWN]
    rows = tuple(
        (
            each.event,
            nearest(each.excess, 3),
            nearest(each.error, 2),
            "excluded" if each.excluded else "open",
        )
        for each in best
    )
    note = "Excess: an estimate of P(S) - e^epsilon Q(S) - delta; its standard error is beside it."
    return PageTable("Events tried", columns, rows, (note,))


def audit_document(
    result: AuditResult, *, subject: str, claim: str, alpha: float, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The result of an audit, for programs."""
    return {
        **{"verdict": result.verdict.value, "subject": subject, "claim": claim, "alpha": alpha},
        **members(result, "samples log_wealth"),
        "epsilon": {"lower": result.epsilon.lower, "delta": result.delta},
        **members(result, "event description unseen repeated freshness"),
        "tried": [members(each, "event excess error excluded") for each in result.tried],
        "not_looked_at": list(result.unread),
        "notes": list(notes),
    }


def claimed(result: AuditResult) -> float:
    """The epsilon of the claim at the smallest delta of its points."""
    header: dict[str, Any] = (result.certificate or {})["header"]
    points = next(each["points"] for each in header["claims"] if each["distance"] == 1)
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
