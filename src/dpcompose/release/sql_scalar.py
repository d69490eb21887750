"""Reads SQL scalars: columns, literals, and functions of one row."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial, reduce
from typing import Any

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.arrow import PublicTable
from dpcompose.release.columns import one_of
from dpcompose.release.expression import RowExpression, call, case, col, lit
from dpcompose.release.function import PARTS
from dpcompose.release.sql_syntax import CHAINS, kind_of, number, refusal, shown


def column_name(node: Any, named: Mapping[str, Any]) -> str:
    """Return the column that a node names.

    Raises:
        DomainError: If it is no column, or belongs to a table that FROM does not name.
    """
    if kind_of(node) != "Column" or kind_of(node.this) != "Identifier":
        raise DomainError("sql", shown(node), "the name of a column")
    if node.table:
        one_of("sql: table", node.table, named)
        one_of("sql: column", node.name, columns_of(named[node.table]))
    return node.name


def columns_of(table: Any) -> list[str]:
    """Return the names of the columns of a private or public table."""
    return (
        list(table.kinds)
        if isinstance(table, PublicTable)
        else [each.name for each in table.columns]
    )


def conjuncts(node: Any, connected: str = "And") -> list[Any]:
    """Return the conditions connected by AND, or by another operator."""
    waiting, found = [node], list[Any]()
    while waiting:
        each = waiting.pop()
        if kind_of(each) == connected:
            waiting += [each.expression, each.this]
        elif kind_of(each) == "Paren" and kind_of(each.this) in (connected, "Paren"):
            waiting.append(each.this)
        else:
            found.append(each)
    return found


def conditions_of(select: Any) -> list[Any]:
    """Return the conditions of WHERE that all must hold."""
    where = select.args.get("where")
    return [] if where is None else conjuncts(where.this)


def literal(node: Any, what: str) -> Any:
    """Return the value of a literal: a number, a text, a truth value, a date or NULL.

    Raises:
        DomainError: If it is something else.
    """
    kind = kind_of(node)
    if kind == "Null":
        return None
    if kind == "Boolean":
        return bool(node.this)
    if kind == "Literal" and node.args["is_string"]:
        return str(node.this)
    if kind == "Cast" and node.to.this.name == "DATE" and kind_of(node.this) == "Literal":
        try:
            return date.fromisoformat(str(node.this.this))
        except ValueError:
            raise DomainError(
                f"sql: {what}", shown(node), "a date such as DATE '2026-01-31'"
            ) from None
    return number(node, what)


def _constant(node: Any, what: str) -> Any:
    """Return a literal other than NULL; a decimal as the nearest float."""
    value = literal(node, what)
    if value is None:
        raise UnsupportedError("sql: NULL as a value", "nothing is equal to NULL", "Use x IS NULL")
    return float(value) if isinstance(value, Decimal) else value


def scalar(node: Any, named: Mapping[str, Any]) -> RowExpression:
    """Translate a SQL expression to a Python one; its functions are those of `release.function`.

    Raises:
        UnsupportedError: If it uses a function that is not in that list.
        DomainError: If a name or a number is outside its domain.
    """
    kind = kind_of(node)
    if kind == "Column":
        return col(column_name(node, named))
    if kind in ("Literal", "Boolean", "Null") or (
        kind == "Cast" and kind_of(node.this) == "Literal"
    ):
        return lit(_constant(node, "a value"))
    if kind == "Neg" and kind_of(node.this) == "Literal":
        return lit(_constant(node, "a value"))
    if kind == "Paren":
        return scalar(node.this, named)
    if kind in CHAINS:
        # A loop instead of recursion: the parser nests long chains as deep as they are long.
        return reduce(_CALLS[kind], (scalar(each, named) for each in conjuncts(node, kind)))
    if kind in _CALLS:
        parts = [
            node.args[part] for part in ("this", "expression") if node.args.get(part) is not None
        ]
        return _CALLS[kind](*(scalar(each, named) for each in parts))
    return _special(node, lambda each: scalar(each, named))


_CALLS: Mapping[str, Callable[..., Any]] = {
    "Neg": operator.neg,
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.truediv,
    "Mod": RowExpression.remainder,
    "And": operator.and_,
    "Or": operator.or_,
    "Not": operator.invert,
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
    **{name: partial(call, name.lower()) for name in ("Abs", "Floor", "Lower", "Upper", "Length")},
}
_TYPES = {
    "DOUBLE": "float",
    "FLOAT": "float",
    "INT": "integer",
    "BIGINT": "integer",
    "TEXT": "text",
    "VARCHAR": "text",
}


def _special(node: Any, read: Callable[[Any], RowExpression]) -> RowExpression:
    """Translate functions whose arguments are constants, lists or branches."""
    match kind_of(node):
        case "Is" if kind_of(node.expression) == "Null":
            return read(node.this).is_null()
        case "Is" if kind_of(node.expression) == "Boolean":
            wanted = bool(node.expression.this)
            truth = read(node.this).fill_null(not wanted)
            return truth if wanted else ~truth
        case "In":
            return read(node.this).is_in([_constant(each, "IN") for each in node.expressions])
        case "Between":
            return read(node.this).between(read(node.args["low"]), read(node.args["high"]))
        case "Coalesce":
            found = read(node.this)
            for each in node.expressions:
                found = found.fill_null(read(each))
            return found
        case "Case" if node.args.get("default") is not None:
            branches = [(read(each.this), read(each.args["true"])) for each in node.args["ifs"]]
            return case(*branches, else_=read(node.args["default"]))
        case "If" if node.args.get("false") is not None:
            return case((read(node.this), read(node.args["true"])), else_=read(node.args["false"]))
        case "StartsWith" | "EndsWith" | "Contains":
            method = {
                "S": RowExpression.starts_with,
                "E": RowExpression.ends_with,
                "C": RowExpression.contains,
            }
            return method[kind_of(node)[0]](read(node.this), literal(node.expression, "a text"))
        case "Like":
            found = _like(read(node.this), literal(node.expression, "LIKE"))
            return ~found if node.args.get("negate") else found
        case "Extract" if str(node.this.this).upper() in PARTS:
            return call(PARTS[str(node.this.this).upper()], read(node.expression))
        case "DateTrunc" if str(node.args["unit"].this).upper() == "DAY":
            return read(node.this)
        case "DateTrunc":
            return read(node.this).truncate(str(node.args["unit"].this).lower())
        case "Substring" | "Left" | "Right" as kind:
            written = [node.args.get(part) for part in ("start", "length", "expression")]
            places = [number(each, kind.upper()) for each in written if each is not None]
            made = {"Left": partial(read(node.this).substring, 1), "Right": read(node.this).right}
            return made.get(kind, read(node.this).substring)(*places)
        case "Cast" | "TryCast" if node.to.this.name == "DATE":
            return read(node.this).date()
        case "Cast" | "TryCast" if node.to.this.name in _TYPES:
            return read(node.this).cast(_TYPES[node.to.this.name])
        case "Case" | "If":
            raise UnsupportedError("sql: CASE without ELSE", "other rows have no value", "Add ELSE")
        case _:
            raise refusal(node, f"{shown(node)[:60]} is no function of one row that is in the list")


def _like(text: RowExpression, pattern: object) -> RowExpression:
    """Translate LIKE for patterns with % at the ends only."""
    inner = pattern.strip("%") if isinstance(pattern, str) else ""
    if isinstance(pattern, str) and inner and not set(inner) & set("%_\\"):
        ways = {
            inner: text.__eq__,
            f"{inner}%": text.starts_with,
            f"%{inner}": text.ends_with,
            f"%{inner}%": text.contains,
        }
        if pattern in ways:
            return ways[pattern](inner)
    raise UnsupportedError("sql: LIKE", "only % at the ends is read", "Use 'a%', '%a' or '%a%'")
