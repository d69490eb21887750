"""What one person is exposed to: what is promised and what is spent, each with where it holds."""

from __future__ import annotations

from typing import Any

from dpcompose.account import Exposure, Statement
from dpcompose.report.number import above, exactly
from dpcompose.report.page import Column, Fact, Page, Table


def exposure_page(found: Exposure) -> Page:
    """Both numbers, labelled."""
    columns = (
        Column(""), Column("epsilon at most", "right"), Column("but with probability", "right"), Column("regime"),
        Column("holds", wrap=True),
    )  # fmt: skip
    rows = tuple(
        (name, above(said.epsilon), _failure(said), said.regime, " ".join(filter(None, (said.holds, said.theorem))))
        for name, said in (("promised", found.promised), ("spent", found.spent))
    )
    facts = (
        Fact("present in", ", ".join(found.paths)),
        Fact("delta", exactly(found.delta)),
        Fact("neighbors", _adjacency(found) or "not one for all"),
    )
    headline = f"epsilon <= {above(found.promised.epsilon)} is promised at delta = {exactly(found.delta)}"
    if not found.promised.available:
        headline = f"Nothing finite is promised at delta = {exactly(found.delta)}"
    notes = ("Promised holds whatever is asked from now on; spent is about what was charged so far.",)
    return Page("Exposure of one person", headline, "plain", facts, (Table("At most", columns, rows),), notes)


def _adjacency(found: Exposure) -> str | None:
    return None if found.adjacency is None else found.adjacency.value


def _failure(said: Statement) -> str:
    """With which probability the loss of an odometer is larger: it replaces the delta."""
    return above(said.failure) if said.failure else ""


def exposure_document(found: Exposure) -> dict[str, Any]:
    """The same for programs."""
    return {
        "paths": list(found.paths),
        "delta": found.delta,
        "adjacency": _adjacency(found),
        "promised": _statement(found.promised),
        "spent": _statement(found.spent),
    }


def _statement(said: Statement) -> dict[str, Any]:
    return {
        "available": said.available,
        "epsilon": said.epsilon,
        "regime": said.regime,
        "holds": said.holds,
        "theorem": said.theorem,
        "failure": said.failure,
    }
