"""The functions that an expression may use, and how engines are asked for them: one table.

Each one is total by itself, and alike on DuckDB, PostgreSQL and Spark: whatever a row holds, no engine raises an error.
Guards are values, not branches: an operation that could fail is given other operands, so that it cannot fail even where
an engine evaluates it for rows that a condition leaves out. Floats are finite: NaN and what is above 1e150 in size are
NULL, what is below 1e-150 is 0, so products and quotients of two neither overflow nor underflow.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.columns import UnitTable
from dpcompose.release.expression import (
    FARTHEST,
    LARGEST,
    UNITS,
    ColumnName,
    FunctionCall,
    LiteralValue,
    RowExpression,
)
from dpcompose.release.query import Engine, Value, case

MOST_WEIGHT = 5_000
PARTS = {
    "YEAR": ("year", 0),
    "QUARTER": ("quarter", 0),
    "MONTH": ("month", 0),
    "WEEK": ("week", 0),
    "DAY": ("day", 0),
    "DOY": ("day_of_year", 0),
    "DOW": ("day_of_week", 1),
}
"""Parts of a date by their words in EXTRACT: the function, and how much more Spark counts."""
NUMBERS = ("integer", "float")
TYPES = {
    "integer": "int64",
    "float": "float64",
    "text": "string",
    "boolean": "boolean",
    "date": "date",
}
_KINDS = {type: kind for kind, type in TYPES.items()}


@dataclass(frozen=True)
class Compiled:
    """An expression in the engine's terms.

    Args:
        value: Its SQL, by the columns of the rows.
        kind: "integer", "float", "text", "boolean", "date" or "timestamp".
        weight: How often columns occur in it.
    """

    value: Value
    kind: str
    weight: int


def compiled(expression: RowExpression, rows: UnitTable) -> Compiled:
    """The expression for these rows. Its value for a row follows from that row alone.

    By induction: a column is one of the row, a constant of none, and every function of `FUNCTIONS` is a function of
    the values of its arguments.

    Raises:
        DomainError: If there is no such column, or a function is applied to something else than it takes.
        UnsupportedError: If a column's type or a function is not known here, or the expression is too large.
    """
    match expression:
        case ColumnName(name):
            return _loaded(name, rows)
        case LiteralValue(value):
            constant = rows.data.engine.constant(value)
            return Compiled(constant, _KINDS[constant.type], 1)
        case FunctionCall(name, arguments) if name in FUNCTIONS:
            function = FUNCTIONS[name]
            values = [compiled(each, rows) for each in arguments]
            weight = 1 + function.copies * sum(each.weight for each in values)
            if not weight <= MOST_WEIGHT:
                reason = "engines would take long to read it"
                raise UnsupportedError(
                    f"an expression with so many parts ({name})", reason, "Say it in fewer steps"
                )
            kinds = tuple(each.kind for each in values)
            kind = function.gives(kinds)
            if kind is None:
                raise DomainError(name, ", ".join(kinds), function.takes)
            for each, ends in zip(arguments[1:], function.constants, strict=False):
                _require_constant(name, each, *ends)
            words = function.says(rows.data.engine, [each.value for each in values])
            return Compiled(Value(words, TYPES[kind]), kind, weight)
        case _:
            raise UnsupportedError(
                f"{type(expression).__name__} in an expression",
                "only functions of one row are known to be sound",
                "Use release.col, release.lit, release.case and their methods",
            )


def _loaded(name: str, rows: UnitTable) -> Compiled:
    """A column as one of the kinds above; values that other engines cannot hold are NULL."""
    column = rows.column(name, "col")
    raw, weight, engine = rows.data[name], rows.weights.get(name, 1), rows.data.engine
    match column.kind:
        case "boolean":
            return Compiled(raw, "boolean", weight)
        case "integer" if column.type == "uint64":
            fits = case((f"{raw} <= {2**63 - 1}", raw))
            return Compiled(engine.cast(fits, "int64"), "integer", 2 * weight)
        case "integer":
            whole = raw if column.type == "int64" else engine.cast(raw, "int64")
            return Compiled(whole, "integer", weight)
        case "float":
            return Compiled(_finite(engine, engine.double_of(raw)), "float", 3 * weight)
        case "decimal":
            return Compiled(_finite(engine, engine.as_double(raw)), "float", 3 * weight)
        case "text":
            text = case((engine.readable(raw), engine.binary_collation(raw)), type="string")
            return Compiled(text, "text", 2 * weight)
        case "date":
            return Compiled(_dated(engine, raw), "date", 2 * weight)
        case _ if is_plain_timestamp(column.type):
            return Compiled(Value(raw, "timestamp"), "timestamp", weight)
        case _:
            reason = "its values are not alike on all engines"
            raise UnsupportedError(
                f"the column {name!r} of type {column.type} in an expression", reason
            )


def is_plain_timestamp(type: str) -> bool:
    """Whether a type is that of timestamps without a time zone."""
    return type.startswith("timestamp") and "'" not in type


def _finite(engine: Engine, number: str) -> Value:
    """NaN compares as larger than every number on all three engines, so it is in neither range."""
    ends = [engine.constant(each) for each in (-1 / LARGEST, 1 / LARGEST, -LARGEST, LARGEST)]
    zero = f"{number} BETWEEN {ends[0]} AND {ends[1]}", engine.constant(0.0)
    return case(zero, (f"{number} BETWEEN {ends[2]} AND {ends[3]}", number), type="float64")


def _dated(engine: Engine, value: str) -> Value:
    ends = engine.constant(date.min), engine.constant(date.max)
    return case((f"{value} BETWEEN {ends[0]} AND {ends[1]}", value), type="date")


Kinds = tuple[str, ...]
Says = Callable[[Engine, Sequence[Value]], str]


@dataclass(frozen=True)
class Function:
    """One function of the table.

    Args:
        takes: What it takes, for errors.
        gives: The kind of its value for the kinds of its arguments; None if it does not take them.
        says: Its SQL, from the engine and its arguments.
        copies: How often an argument occurs in it, at most.
        constants: The ends of the constants that its further arguments are, 0 left out below the first end above it;
            none where these may be any values.
    """

    takes: str
    gives: Callable[[Kinds], str | None]
    says: Says
    copies: int = 1
    constants: Sequence[tuple[int, int]] = ()


def _number_of(kinds: Kinds) -> str | None:
    if not all(kind in NUMBERS for kind in kinds):
        return None
    return "float" if "float" in kinds else "integer"


def _alike(kinds: Kinds) -> str | None:
    """The common kind, if there is one; a timestamp is none."""
    same = kinds[0] if len(set(kinds)) == 1 and kinds[0] in TYPES else None
    return same or _number_of(kinds)


def _only(kind: str, gives: str) -> Callable[[Kinds], str | None]:
    return lambda kinds: gives if all(each == kind for each in kinds) else None


def _compared(kinds: Kinds) -> str | None:
    return "boolean" if _alike(kinds) else None


def _ordered(kinds: Kinds) -> str | None:
    return _compared(kinds) if "boolean" not in kinds else None


def _measured(kinds: Kinds) -> str | None:
    return "float" if _number_of(kinds) else None


def _case_of(kinds: Kinds) -> str | None:
    return _alike((*kinds[1:-1:2], kinds[-1])) if set(kinds[:-1:2]) == {"boolean"} else None


def _conditions(kinds: Kinds) -> str | None:
    return "boolean" if len(kinds) > 1 and set(kinds) == {"boolean"} else None


def _require_constant(name: str, argument: RowExpression, least: int, most: int) -> None:
    match argument:
        case LiteralValue(value) if least <= value <= most and (value != 0 or least == 0):
            return
        case _:
            domain = f"a constant from {least:,} to {most:,}" + (", not 0" if least < 0 else "")
            raise DomainError(name, argument.text, domain)


def _common(engine: Engine, values: Sequence[Value]) -> list[str]:
    """The values as their common kind."""
    floats = any(each.type == "float64" for each in values)
    return [engine.double_of(each) if floats else each for each in values]


def _words(template: str, **others: str) -> Says:
    """SQL around the arguments: {0}, {1}, or {all} between commas; `others` are those of engines that differ."""

    def says(engine: Engine, values: Sequence[Value]) -> str:
        common = _common(engine, values)
        return others.get(engine.name, template).format(*common, all=", ".join(common[1:]))

    return says


def _cast(kind: str, template: str = "{0}") -> Says:
    return lambda engine, values: engine.cast(template.format(*values), TYPES[kind])


def _arithmetic(sign: str) -> Function:
    """Integers beyond 2^62 in size are NULL: where a result is none, the operation is done on 0 and 0."""

    def says(engine: Engine, values: Sequence[Value]) -> str:
        one, two = values
        floats = f" {sign} ".join(map(engine.double_of, values))
        if "float64" in (one.type, two.type):
            return _finite(engine, f"({floats})")
        ends = engine.constant(-(2.0**62)), engine.constant(2.0**62)
        fits = f"({floats}) BETWEEN {ends[0]} AND {ends[1]}"
        zero = engine.constant(0)
        one, two = (case((fits, each), other=zero) for each in values)
        return case((fits, f"({one} {sign} {two})"))

    return Function("two numbers", _number_of, says, copies=4)


def _divide(engine: Engine, values: Sequence[Value]) -> str:
    """x / 0 is NULL."""
    one, two = map(engine.double_of, values)
    return _finite(engine, f"({one} / NULLIF({two}, {engine.constant(0.0)}))")


def _remainder(least: int, template: str) -> Function:
    """A function of an integer and the size of a constant one that is not 0; engines' % has the sign of the former."""

    def says(engine: Engine, values: Sequence[Value]) -> str:
        return template.format(values[0], f"ABS({values[1]})")

    ends = [(least, 2**31)]
    return Function("an integer and a constant", _only("integer", "integer"), says, constants=ends)


def _less(engine: Engine, values: Sequence[Value]) -> str:
    one, two = _common(engine, values)
    if values[0].type == "string":
        one, two = engine.by_code_point(one), engine.by_code_point(two)
    return f"({one} < {two})"


def _abs(engine: Engine, values: Sequence[Value]) -> str:
    """The size of -2^63 is NULL."""
    (value,) = values
    if value.type == "float64":
        return f"ABS({value})"
    return f"ABS({case((f'{value} >= {engine.constant(-(2**63) + 1)}', value))})"


def _floor(engine: Engine, values: Sequence[Value]) -> str:
    (value,) = values
    if value.type == "int64":
        return value
    ends = engine.constant(-(2.0**53)), engine.constant(2.0**53)
    return engine.cast(
        f"FLOOR({case((f'{value} BETWEEN {ends[0]} AND {ends[1]}', value))})", "int64"
    )


def _case(engine: Engine, values: Sequence[Value]) -> str:
    *results, other = _common(engine, [*values[1:-1:2], values[-1]])
    return case(*zip(values[:-1:2], results, strict=True), other=other)


def _connected(word: str) -> Function:
    return Function(
        "conditions", _conditions, lambda engine, values: f"({f' {word} '.join(values)})"
    )


def _of_one(kind: str, gives: str, says: Says, copies: int = 1) -> Function:
    return Function(
        f"{'an' if kind == 'integer' else 'a'} {kind}", _only(kind, gives), says, copies
    )


def _of_texts(template: str, **others: str) -> Function:
    says = _words(template, **others)
    return Function("a text and a constant text", _only("text", "boolean"), says)


def _part(word: str, less: int = 0) -> Function:
    """A part of a date; on Spark days of the week are counted from 1."""
    template = f"EXTRACT({word} FROM {{0}})"
    return _of_one(
        "date",
        "integer",
        lambda engine, values: engine.cast(
            f"({template.format(*values)} - {less if engine.name == 'Spark' else 0})", "int64"
        ),
    )


def _first_day(unit: str) -> Function:
    """The first day of the part of time in which a date lies; a week begins on Monday."""
    timed = f"CAST(DATE_TRUNC('{unit}', CAST({{0}} AS TIMESTAMP)) AS DATE)"
    return _of_one("date", "date", _words(timed))


def _of_places(takes: str, template: str, *ends: tuple[int, int]) -> Function:
    """A part of a text by its places, which are constants: what lies beyond its end is empty."""

    def says(engine: Engine, values: Sequence[Value]) -> str:
        return template.format(values[0], *(engine.cast(each, "int32") for each in values[1:]))

    expected = ("text", *("integer" for _ in ends))
    return Function(
        takes, lambda kinds: "text" if kinds == expected else None, says, constants=ends
    )


_LETTERS = f"'{string.ascii_uppercase}', '{string.ascii_lowercase}'"
_CAPITALS = f"'{string.ascii_lowercase}', '{string.ascii_uppercase}'"
FUNCTIONS: Mapping[str, Function] = {
    "add": _arithmetic("+"),
    "subtract": _arithmetic("-"),
    "multiply": _arithmetic("*"),
    "divide": Function("two numbers", _measured, _divide, copies=3),
    "modulo": _remainder(1, "(({0} % {1} + {1}) % {1})"),
    "remainder": _remainder(-(2**31), "({0} % {1})"),
    "abs": Function("a number", _number_of, _abs, copies=2),
    "floor": Function(
        "a number", lambda kinds: "integer" if _number_of(kinds) else None, _floor, copies=2
    ),
    "equal": Function("two values of one kind", _compared, _words("({0} = {1})")),
    "less": Function("two numbers, texts or dates", _ordered, _less),
    "is_in": Function("values of one kind", _compared, _words("({0} IN ({all}))")),
    "and": _connected("AND"),
    "or": _connected("OR"),
    "not": _of_one("boolean", "boolean", _words("(NOT {0})")),
    "is_null": Function("a value", _compared, _words("({0} IS NULL)")),
    "fill_null": Function("two values of one kind", _alike, _words("COALESCE({0}, {1})")),
    "case": Function("conditions, and values of one kind", _case_of, _case),
    "lower": _of_one("text", "text", _words(f"TRANSLATE({{0}}, {_LETTERS})")),
    "upper": _of_one("text", "text", _words(f"TRANSLATE({{0}}, {_CAPITALS})")),
    "length": _of_one("text", "integer", _cast("integer", "LENGTH({0})")),
    "starts_with": _of_texts("STARTS_WITH({0}, {1})", Spark="STARTSWITH({0}, {1})"),
    "ends_with": _of_texts(
        "ENDS_WITH({0}, {1})",
        PostgreSQL="(RIGHT({0}, LENGTH({1})) = {1})",
        Spark="ENDSWITH({0}, {1})",
    ),
    "contains": _of_texts("CONTAINS({0}, {1})", PostgreSQL="(STRPOS({0}, {1}) > 0)"),
    "substring": _of_places(
        "a text and two constants", "SUBSTRING({0}, {1}, {2})", (1, FARTHEST), (0, FARTHEST)
    ),
    "right": _of_places("a text and a constant", "RIGHT({0}, {1})", (0, FARTHEST)),
    **{name: _part(word, less) for word, (name, less) in PARTS.items()},
    **{f"first_of_{unit}": _first_day(unit) for unit in UNITS},
    "date": _of_one(
        "timestamp",
        "date",
        lambda engine, values: _dated(engine, engine.cast(values[0], "date")),
        copies=2,
    ),
    "as_float": Function("a number", _measured, lambda engine, values: engine.double_of(values[0])),
    "as_integer": _of_one(
        "boolean", "integer", _cast("integer", "CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END"), 2
    ),
    "as_text": _of_one("integer", "text", _cast("text")),
}
"""All of them; a name that is not here has no meaning."""
