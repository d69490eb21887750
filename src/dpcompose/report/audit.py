"""The result of an audit: a page for people, and a document for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpcompose.audit import AuditResult, Verdict
from dpcompose.report.layout import Fact, Page, PageTable, headings
from dpcompose.report.number import exactly, members, near

SHOWN = 12
BLIND = "A mechanism that knows it is audited, or errs on datasets or events that were not tried, is not found."
MEMORY = (
    "Answers came again, of calls that are not isolated: a mechanism that rightly answers from memory is audited with"
    " a fresh process for each call."
)
_WORDS = {
    Verdict.REFUTED: "REFUTED: if the claim were true, this would have happened with probability at most",
    Verdict.NOT_REFUTED: "NOT REFUTED: no violation was found; nothing is proved of events that were not tried; alpha",
    Verdict.CERTIFIED: "CERTIFIED: the declared law keeps the claim; the code was audited at alpha",
}


def audit_page(
    found: AuditResult,
    *,
    subject: str = "",
    claim: str = "",
    alpha: float | None = None,
    notes: Sequence[str] = (),
) -> Page:
    """The result of an audit, for people.

    Args:
        found: The result.
        subject: The name of the subject.
        claim: The claim.
        alpha: The probability of refuting a true claim.
        notes: Further sentences.

    What is left out is read from the certificate.
    """
    header = (found.certificate or {}).get("header", {})
    subject, claim = subject or header.get("subject", ""), claim or header.get("claim", "")
    alpha = float(header.get("alpha", "nan")) if alpha is None else alpha
    facts = [
        Fact("subject", subject),
        Fact("claim", claim),
        Fact(
            "samples", f"{found.samples:,}, of either world; fresh in every call: {found.freshness}"
        ),
        Fact(
            "wealth",
            f"10^{found.log_wealth / math.log(10):.2f}, against 10^{-math.log10(alpha):.2f}",
        ),
        Fact("epsilon", bound_in_words(found)),
        Fact("event", found.event),
    ]
    if found.description:
        facts.append(Fact("description", found.description))
    if found.verdict is not Verdict.REFUTED:
        facts.append(
            Fact("unseen", f"an isolating event of probability below {near(found.unseen)}")
        )
    tone = "bad" if found.verdict is Verdict.REFUTED else "plain"
    told = _WORDS[found.verdict].replace(":", " FOR REPEATED CALLS:", 1 if found.repeated else 0)
    few = (
        ()
        if found.tried
        else ("No pair had rows enough to say of single events whether a violation is excluded.",)
    )
    missed = (
        ()
        if found.verdict is Verdict.REFUTED
        else (BLIND, *(f"Not looked at: {each}." for each in found.unread))
    )
    memory = (MEMORY,) if found.repeated else ()
    remarks = (*few, *missed, *memory, *notes)
    return Page(
        "The audit",
        f"{told} {exactly(alpha)}",
        tone,
        tuple(facts),
        (_tried(found),) if found.tried else (),
        remarks,
    )


def _tried(found: AuditResult) -> PageTable:
    columns = headings("~event", ">excess", ">error", "violation")
    best = sorted(found.tried, key=lambda each: -each.excess)[:SHOWN]
    rows = tuple(
        (
            each.event,
            near(each.excess, 3),
            near(each.error, 2),
            "excluded" if each.excluded else "open",
        )
        for each in best
    )
    note = "Excess: an estimate of P(S) - e^epsilon Q(S) - delta; its standard error is beside it."
    return PageTable("Events tried", columns, rows, (note,))


def audit_document(
    found: AuditResult, *, subject: str, claim: str, alpha: float, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The result of an audit, for programs."""
    return {
        **{"verdict": found.verdict.value, "subject": subject, "claim": claim, "alpha": alpha},
        **members(found, "samples log_wealth"),
        "epsilon": {"lower": found.epsilon.lower, "delta": found.delta},
        **members(found, "event description unseen repeated freshness"),
        "tried": [members(each, "event excess error excluded") for each in found.tried],
        "not_looked_at": list(found.unread),
        "notes": list(notes),
    }


def claimed(found: AuditResult) -> float:
    """The epsilon of the claim at the smallest delta of its points."""
    header: dict[str, Any] = (found.certificate or {})["header"]
    points = next(each["points"] for each in header["claims"] if each["distance"] == 1)
    return float.fromhex(min(points, key=lambda point: float.fromhex(point["delta"]))["epsilon"])


def bound_in_words(found: AuditResult) -> str:
    """The lower bound on epsilon, beside the claim."""
    lower, least, at = found.epsilon.lower, claimed(found), f"at delta = {near(found.delta)}"
    bound = f">= {near(lower)} {at}, but for alpha" if lower else f"no lower bound yet {at}"
    if lower > least:
        return f"{bound}: above the claimed {near(least)}"
    if found.verdict is not Verdict.REFUTED:
        return f"{bound}; claimed: {near(least)}"
    return (
        f"{bound}; claimed: {near(least)}, which is refuted: by how much, more samples would tell"
    )
