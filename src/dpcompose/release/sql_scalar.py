"""Scalars of SQL: columns, literals, and functions of one row."""
# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.release.sql_syntax import number, shown


def column_name(node: Any, named: Mapping[str, Any]) -> str:
    """The column that a node names.

    Raises:
        DomainError: If it is no column, or of a table that FROM does not name.
    """
    if type(node).__name__ != "Column" or type(node.this).__name__ != "Identifier":
        raise DomainError("sql", shown(node), "the name of a column")
    if node.table:
        if node.table not in named:
            raise DomainError("sql: table", node.table, f"one of {', '.join(named)}")
        named[node.table].column(node.name)
    return node.name


def conjuncts(node: Any) -> list[Any]:
    """The conditions that all have to hold: those that AND connects."""
    waiting, found = [node], list[Any]()
    while waiting:
        each = waiting.pop()
        if type(each).__name__ == "And":
            waiting += [each.expression, each.this]
        elif type(each).__name__ == "Paren" and type(each.this).__name__ in ("And", "Paren"):
            waiting.append(each.this)
        else:
            found.append(each)
    return found


def literal(node: Any, what: str) -> Any:
    """A value written out: a number, a text, a truth value, a date or NULL.

    Raises:
        DomainError: If it is something else.
    """
    kind = type(node).__name__
    if kind == "Null":
        return None
    if kind == "Boolean":
        return bool(node.this)
    if kind == "Literal" and node.args["is_string"]:
        return str(node.this)
    if kind == "Cast" and node.to.this.name == "DATE" and type(node.this).__name__ == "Literal":
        try:
            return date.fromisoformat(str(node.this.this))
        except ValueError:
            raise DomainError(f"sql: {what}", shown(node), "a date such as DATE '2026-01-31'") from None
    return number(node, what)
