"""JSON: one document, every double in full, infinities as strings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from dpcompose.plan import Plan
from dpcompose.values import Bound


def dumps(document: Mapping[str, Any]) -> str:
    """`document` as JSON text; an infinite number becomes "inf" or "-inf", and NaN is a defect."""
    return json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)


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


def _plain(value: Any) -> Any:
    match value:
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case dict():
            return {key: _plain(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_plain(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
