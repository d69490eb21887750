"""Scopes, balances and entries as rows, and back."""

from __future__ import annotations

import json
from typing import Any

from dpcompose.errors import TamperedError
from dpcompose.ledger.amount import units_of
from dpcompose.ledger.amounts import Amounts, units_text
from dpcompose.ledger.entry import Entry
from dpcompose.ledger.scope import Kind, Node, Scope, root_of
from dpcompose.ledger.store import Record

Row = tuple[Any, ...]


def scope_row(scope: Scope) -> Row:
    """root, path, kind, caps, slots, description, opened."""
    return scope.root, scope.path, str(scope.kind), scope.caps.text, scope.slots, scope.description_text, scope.opened


def scope_of(row: Row) -> Scope:
    """The scope of such a row."""
    root, path, kind, caps, slots, description, opened = row
    try:
        if root != root_of(path):
            raise ValueError(root)
        return Scope(path, Kind(kind), Amounts(_units(caps)), slots, description, opened)
    except (ValueError, TypeError, AttributeError):
        raise TamperedError([f"the row of scope {path!r} cannot be read"]) from None


def _units(text: Any) -> dict[str, int]:
    """The amounts of a text that `units_text` wrote; another text of the same amounts is not what was written."""
    if not isinstance(text, str):
        raise TypeError(text)
    units = {name: units_of(each) for name, each in json.loads(text).items()}
    if units_text(units) != text:  # such as one that names a currency twice
        raise ValueError(text)
    return units


def balance_row(node: Node) -> Row:
    """spent, taken, closed, root, path."""
    return units_text(node.spent), node.taken, int(node.closed), root_of(node.scope.path), node.scope.path


def node_of(scope: Scope, row: Row | None) -> Node:
    """The scope with its balance: spent, taken, closed."""
    try:
        if row is None:
            raise ValueError(scope.path)
        spent, taken, closed = row
        balance = _units(spent)
        counted = scope.schedule is not None
        if not (type(taken) is int and taken >= 0 and (counted or taken <= (scope.slots or 0))):
            raise ValueError(taken)
        if scope.kind is not Kind.SLOTS and any(balance[name] > cap for name, cap in scope.caps.units.items()):
            raise ValueError(spent)
        return Node(scope, balance, taken, {0: False, 1: True}[closed])
    except (ValueError, TypeError, AttributeError, KeyError):
        raise TamperedError([f"the balance of scope {scope.path!r} is none that a ledger writes"]) from None


def entry_row(record: Record) -> Row:
    """root, sequence, scope, key, redeems, body, hash."""
    return (
        root_of(record.scope),
        record.sequence,
        record.scope,
        record.key,
        record.redeems,
        record.body,
        record.hash,
    )


def entry_of(row: Row | None) -> Entry | None:
    """The entry of a row of body and hash."""
    return None if row is None else Entry(*row)
