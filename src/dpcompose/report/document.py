"""Documents that others have in them: a bound and a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcompose.plan import Plan
    from dpcompose.values import Bound


def bound_document(bound: Bound) -> dict[str, Any]:
    """Both ends, the width and the certificate."""
    certificate = bound.certificate
    return {
        "lower": bound.lower,
        "upper": bound.upper,
        "width": bound.width,
        "method": certificate.method,
        "errors": {"unit": certificate.unit, "terms": dict(certificate.budget)},
        "notes": list(certificate.notes),
    }


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as it was understood; `toml` reads back as an equal plan."""
    return {"source": plan.source, "adjacency": plan.adjacency.value, "toml": plan.toml()}
