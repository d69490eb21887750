"""The result of an audit: a page for people, a document for programs, and a picture of the wealth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpcompose.audit import Found, Verdict
from dpcompose.report import picture
from dpcompose.report.number import exactly, near
from dpcompose.report.page import Fact, Heading, Page, PageTable

SHOWN = 12
BLIND = "A mechanism that knows it is audited, or errs on datasets or events that were not tried, is not found."
_WORDS = {
    Verdict.REFUTED: "REFUTED: if the claim were true, this would have happened with probability at most",
    Verdict.NOT_REFUTED: "NOT REFUTED: no violation was found; nothing is proved of events that were not tried; alpha",
    Verdict.CERTIFIED: "CERTIFIED: the declared law keeps the claim; the code was audited at alpha",
}


def audit_page(found: Found, *, subject: str, claim: str, alpha: float, notes: Sequence[str] = ()) -> Page:
    """The result of an audit, for people.

    Args:
        found: The result.
        subject: The name of the subject.
        claim: The claim.
        alpha: The probability of refuting a true claim.
        notes: Further sentences.
    """
    facts = [
        Fact("subject", subject),
        Fact("claim", claim),
        Fact("samples", f"{found.samples:,}, of either world; fresh in every call: {found.freshness}"),
        Fact("wealth", f"10^{found.log_wealth / math.log(10):.2f}, against 10^{-math.log10(alpha):.2f}"),
        Fact("epsilon", f">= {near(found.epsilon.lower)} at delta = {exactly(found.delta)}, but for alpha"),
        Fact("event", found.event),
    ]
    if found.description:
        facts.append(Fact("description", found.description))
    if found.verdict is not Verdict.REFUTED:
        facts.append(Fact("unseen", f"an isolating event of probability below {near(found.unseen)}"))
    tone = "bad" if found.verdict is Verdict.REFUTED else "plain"
    few = () if found.tried else ("No pair had rows enough to say of single events whether a violation is excluded.",)
    remarks = (*few, *(() if found.verdict is Verdict.REFUTED else (BLIND,)), *notes)
    return Page(
        "The audit",
        f"{_WORDS[found.verdict]} {exactly(alpha)}",
        tone,
        tuple(facts),
        (_tried(found),) if found.tried else (),
        remarks,
    )


def _tried(found: Found) -> PageTable:
    columns = (Heading("event", wrap=True), Heading("excess", "right"), Heading("violation"))
    best = sorted(found.tried, key=lambda each: -each.excess)[:SHOWN]
    rows = tuple((each.event, near(each.excess), "excluded" if each.excluded else "open") for each in best)
    return PageTable("Events tried", columns, rows, ("Excess: an estimate of P(S) - e^epsilon Q(S) - delta.",))


def audit_document(
    found: Found, *, subject: str, claim: str, alpha: float, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The result of an audit, for programs."""
    return {
        "verdict": found.verdict.value,
        "subject": subject,
        "claim": claim,
        "alpha": alpha,
        "samples": found.samples,
        "log_wealth": found.log_wealth,
        "epsilon": {"lower": found.epsilon.lower, "delta": found.delta},
        "event": found.event,
        "description": found.description,
        "unseen": found.unseen,
        "freshness": found.freshness,
        "tried": [{"event": each.event, "excess": each.excess, "excluded": each.excluded} for each in found.tried],
        "notes": list(notes),
    }


def save_audit(path: str | Path, found: Found, *, alpha: float) -> None:
    """Write a picture of the wealth and of the lower bound on epsilon over the samples, as PNG."""
    picture.require()
    drawing = picture.figure(9.6)
    wealth, bound = drawing.subplots(1, 2)
    samples = [moment.samples for moment in found.moments]
    wealth.plot(samples, [moment.log_wealth / math.log(10) for moment in found.moments], label="wealth")
    wealth.axhline(-math.log10(alpha), color="#d55e00", linestyle="--", label="1 / alpha")
    wealth.set(xlabel="samples", ylabel="log10 of the wealth", xscale="log" if samples else "linear")
    bound.step(samples, [moment.epsilon for moment in found.moments], where="post", label="epsilon, from below")
    bound.set(xlabel="samples", ylabel="epsilon", xscale="log" if samples else "linear")
    for axes in (wealth, bound):
        axes.legend()
        picture.style(axes)
    picture.write(drawing, path)
