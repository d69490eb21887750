"""A calibrated plan as a page and as a document."""

from __future__ import annotations

import math
from typing import Any

from dpcompose.plan import PlanCalibration
from dpcompose.report.document import bound_document, plan_document
from dpcompose.report.number import above, exactly, interval
from dpcompose.report.page import Fact, Page


def calibration_page(found: PlanCalibration) -> Page:
    """The value found, and the certified epsilon that it gives."""
    low, high = interval(found.found.bound)
    facts = [
        Fact("target", f"epsilon <= {exactly(found.epsilon)} at delta = {exactly(found.delta)}"),
        Fact("certified", f"{low} <= epsilon <= {high}"),
        Fact("method", found.found.bound.certificate.method),
    ]
    if found.found.neighbor is not None:
        beyond = "infinite" if found.found.neighbor.upper == math.inf else above(found.found.neighbor.upper, 12)
        facts.append(Fact("just beyond", f"epsilon is only certified to be at most {beyond}"))
    notes = (
        () if found.found.extreme else ("Epsilon is not monotone in this parameter: a smaller value may do as well.",)
    )
    headline = f"{found.key} = {exactly(found.value)} is the {found.extreme} value"
    if not found.found.extreme:
        headline = f"{found.key} = {exactly(found.value)} keeps to the target"
    title, source = f"Calibration of {found.key}", found.plan.toml()
    return Page(title, headline, "good", tuple(facts), (), notes=notes, source=source)


def calibration_document(found: PlanCalibration) -> dict[str, Any]:
    """The same for a machine."""
    return {
        "key": found.key,
        "value": found.value,
        "which": found.extreme,
        "target": {"epsilon": found.epsilon, "delta": found.delta},
        "epsilon": bound_document(found.found.bound),
        "beyond": None if found.found.neighbor is None else bound_document(found.found.neighbor),
        "plan": plan_document(found.plan),
    }
