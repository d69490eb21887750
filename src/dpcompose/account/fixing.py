"""Budgets of several trees, fixed together: each tree records, before its first charge, that the others' are open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from dpcompose.account import promised
from dpcompose.account.scope import described
from dpcompose.account.tree import RECORD, Tree, trees_of
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Kind, Ledger
from dpcompose.ledger.text import line_of_text


def fix_budgets(ledger: Ledger, *, paths: Sequence[str], actor: str) -> tuple[str, ...]:
    """Record in every tree of `paths` that the budgets of the others are open, before anything is charged.

    What one person is promised by budgets in several top-level scopes (`exposure`) holds if all of them were fixed
    before the first answer, and entries of different trees have no order but by what they record. So each tree gets one
    scope that caps nothing, charges nothing, and holds the hashes of the entries that opened the others' budgets. Open
    all budgets first, then call this, then charge. In one tree nothing needs to be recorded.

    Args:
        ledger: Where.
        paths: All scopes that hold the person.
        actor: Who records it.

    Returns:
        The paths of the scopes that hold the records.

    Raises:
        UnsupportedError: If a tree was charged before, if something about the person has no budget, or if a top-level
            scope holds slots, each of whose children is one of them.
        DomainError, LedgerError: See `exposure` and `Ledger.scope`.
    """
    line_of_text("actor", actor)
    tops: list[tuple[Tree, list[Tree]]] = []
    with ledger.moment() as moment:
        trees = trees_of(moment, paths)
    for tree in trees:
        found = promised.tops_of(tree)
        if isinstance(found, str):
            raise UnsupportedError(f"fixing the budgets of {list(paths)!r}", found)
        tops.append((tree, found))
    missing: list[tuple[str, dict[str, Any]]] = []
    for tree, _ in tops if len(tops) > 1 else ():
        others = {top.budget.path: top.hash for other, found in tops if other is not tree for top in found}
        if not tree.records_before_charges(others.values()):
            missing.append(_record(tree, others))
    for path, said in missing:
        ledger.scope(path, kind=Kind.FILTER, description=said, actor=actor)
    return tuple(path for path, _ in missing)


def _record(tree: Tree, others: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """The path and the description of the scope that records them."""
    root = tree.budget
    if tree.first < math.inf:
        reason = f"entry {tree.first} charged it, and what is opened after an answer may be chosen by it"
        raise UnsupportedError(f"fixing the budgets with {root.path!r}", reason, "Open other scopes")
    if tree.kind is Kind.SLOTS:
        reason = "each of its children is a slot, and none may hold a record"
        raise UnsupportedError(f"fixing the budgets with {root.path!r}", reason, "Open the slots below another scope")
    if root.adjacency is None:
        raise DomainError("paths", root.path, "scopes that were opened with account.open_scope")
    name = sha256("".join(sorted(others.values())).encode()).hexdigest()[:16]
    return f"{root.path}/fixed-{name}", described(None, root.adjacency, None, (), None) | {RECORD: others}
