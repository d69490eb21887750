"""What an attacker gains, as a table and as a document: every promise rounded against the attacker's victim."""

from __future__ import annotations

from typing import Any

from dpcompose.plan import PlanRisk
from dpcompose.report.document import bound_document
from dpcompose.report.number import above, below, exactly
from dpcompose.report.page import Column, Table

SHOWN = (1e-4, 1e-3, 1e-2, 1e-1)
NOTE = (
    "The attacker sees every answer and knows all data but one person's. A secret that is guessed right with "
    "probability p without the answers is reconstructed with at most the true positive rate at p."
)


def risk_table(found: PlanRisk) -> Table:
    """One row for each thing an attacker may try, and what blind guessing achieves."""
    risk, prior = found.risk, exactly(found.risk.prior)
    rows = [
        (f"true positive rate at false positive rate {exactly(rate)}", _most(found.power(rate).upper), exactly(rate))
        for rate in SHOWN
    ]
    rows += [
        ("advantage: the largest difference of the two rates", _most(risk.advantage.upper), "0"),
        (f"Bayes error: the wrong world named, at prior {prior}", f">= {below(risk.bayes_error.lower)}", prior),
        (f"reconstruction of a secret with {prior} chance to guess", _most(risk.reconstruction.upper), prior),
    ]
    columns = (Column("attack", wrap=True), Column("at best", "right"), Column("guessing blindly", "right"))
    return Table("What an attacker gains", columns, tuple(rows), (NOTE,))


def risk_document(found: PlanRisk) -> dict[str, Any]:
    """The same for programs: both ends of every number."""
    risk = found.risk
    return {
        "prior": risk.prior,
        "false_positive_rate": risk.false_positive_rate,
        "true_positive_rate": bound_document(risk.true_positive_rate),
        "advantage": bound_document(risk.advantage),
        "bayes_error": bound_document(risk.bayes_error),
        "reconstruction": bound_document(risk.reconstruction),
        "curve": [
            {"false_positive_rate": rate, "lower": power.lower, "upper": power.upper}
            for rate, power in zip(found.rates, found.powers, strict=True)
        ],
    }


def _most(value: float) -> str:
    return f"<= {above(value)}"
