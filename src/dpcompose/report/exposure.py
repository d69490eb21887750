"""The page and the document of one person's exposure: promised and spent, and where each holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dpcompose.account import Exposure
from dpcompose.report.layout import Page, PageTable, headings
from dpcompose.report.number import above, exactly, trimmed


def exposure_page(result: Exposure) -> Page:
    """The page with both numbers."""
    columns = headings("", ">epsilon at most", ">but with probability", "regime", "~holds")
    rows = tuple(
        (
            name,
            above(each.epsilon),
            above(each.failure) if each.failure else "",
            each.regime,
            " ".join(filter(None, (each.holds, each.theorem))),
        )
        for name, each in (("promised", result.promised), ("spent", result.spent))
    )
    facts = (
        ("present in", ", ".join(result.paths)),
        ("delta", exactly(result.delta)),
        ("neighbors", _adjacency(result) or "not one for all"),
        *([("window", result.window)] if result.window else []),
        *(("periods", f"{number} of {path}") for path, number in result.periods.items()),
    )
    promised = trimmed(above(result.promised.epsilon))
    headline = f"epsilon <= {promised} is promised at delta = {exactly(result.delta)}"
    if not result.promised.available:
        headline = f"Nothing finite is promised at delta = {exactly(result.delta)}"
    notes = ("Promised: the worst case of all future questions. Spent: charges so far.",)
    return Page(
        "Exposure of one person",
        headline,
        "plain",
        facts,
        (PageTable("At most", columns, rows),),
        notes,
    )


def _adjacency(result: Exposure) -> str | None:
    return None if result.adjacency is None else result.adjacency.value


def exposure_document(result: Exposure) -> dict[str, Any]:
    """The same for programs."""
    return {
        "paths": list(result.paths),
        "delta": result.delta,
        "adjacency": _adjacency(result),
        "window": result.window or None,
        "periods": dict(result.periods),
        "promised": {"available": result.promised.available} | asdict(result.promised),
        "spent": {"available": result.spent.available} | asdict(result.spent),
    }
