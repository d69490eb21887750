"""The page and the document of one person's exposure: promised and spent, and where each holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dpcompose.account import Exposure
from dpcompose.report.layout import Fact, Page, PageTable, headings
from dpcompose.report.number import above, exactly


def exposure_page(found: Exposure) -> Page:
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
        for name, each in (("promised", found.promised), ("spent", found.spent))
    )
    facts = (
        Fact("present in", ", ".join(found.paths)),
        Fact("delta", exactly(found.delta)),
        Fact("neighbors", _adjacency(found) or "not one for all"),
        *([Fact("window", found.window)] if found.window else []),
        *(Fact("periods", f"{number} of {path}") for path, number in found.periods.items()),
    )
    headline = (
        f"epsilon <= {above(found.promised.epsilon)} is promised at delta = {exactly(found.delta)}"
    )
    if not found.promised.available:
        headline = f"Nothing finite is promised at delta = {exactly(found.delta)}"
    notes = ("Promised: the worst case of all future questions. Spent: charges so far.",)
    return Page(
        "Exposure of one person",
        headline,
        "plain",
        facts,
        (PageTable("At most", columns, rows),),
        notes,
    )


def _adjacency(found: Exposure) -> str | None:
    return None if found.adjacency is None else found.adjacency.value


def exposure_document(found: Exposure) -> dict[str, Any]:
    """The same for programs."""
    return {
        "paths": list(found.paths),
        "delta": found.delta,
        "adjacency": _adjacency(found),
        "window": found.window or None,
        "periods": dict(found.periods),
        "promised": {"available": found.promised.available} | asdict(found.promised),
        "spent": {"available": found.spent.available} | asdict(found.spent),
    }
