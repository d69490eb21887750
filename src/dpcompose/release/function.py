"""The table of functions that an expression may use, with their SQL in each engine.

Each function is total by itself and has the same value on DuckDB, PostgreSQL and Spark: no row
makes an engine raise an error. Guards change operands instead of branching: an operation that could
fail gets harmless operands, so that it cannot fail even where an engine evaluates it for rows that
a condition excludes. Floats are finite: NaN and absolute values above 1e150 are NULL, and those
below 1e-150 are 0, so products and quotients of two neither overflow nor underflow.
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
from dpcompose.release.query import KIND_TYPES, Engine, Value, case

MOST_WEIGHT = 5_000
_PLAIN_PARTS = {name.upper(): name for name in ("year", "quarter", "month", "week", "day")}
PARTS = {**_PLAIN_PARTS, "DOY": "day_of_year", "DOW": "day_of_week"}
"""The functions for parts of a date, by keyword of EXTRACT."""
NUMBERS = ("integer", "float")
_KINDS = {type: kind for kind, type in KIND_TYPES.items()}


@dataclass(frozen=True)
class Compiled:
    """An expression compiled to SQL of one engine.

    Args:
        value: The SQL, in terms of the columns of the rows.
        kind: "integer", "float", "text", "boolean", "date" or "timestamp".
        weight: How often columns occur in it.
    """

    value: Value
    kind: str
    weight: int


def compiled(expression: RowExpression, rows: UnitTable) -> Compiled:
    """Compile the expression for these rows. Its value for a row depends on that row alone.

    Proof by induction: a column belongs to the row, a constant to none, and every function in
    `FUNCTIONS` is a function of the values of its arguments.

    Raises:
        DomainError: If there is no such column, or a function does not accept its arguments' kinds.
        UnsupportedError: If a column's type or a function is unknown, or the expression is too
            large.
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
                    f"an expression with so many parts ({name})", reason, "Use fewer functions"
                )
            kinds = tuple(each.kind for each in values)
            kind = function.gives(kinds)
            if kind is None:
                raise DomainError(name, ", ".join(kinds), function.takes)
            for each, ends in zip(arguments[1:], function.constants, strict=False):
                _require_constant(name, each, *ends)
            words = function.says(rows.data.engine, [each.value for each in values])
            return Compiled(Value(words, KIND_TYPES[kind]), kind, weight)
        case _:
            raise UnsupportedError(
                f"{type(expression).__name__} in an expression",
                "only functions of one row are known to be sound",
                "Use release.col, release.lit, release.case and their methods",
            )


def _loaded(name: str, rows: UnitTable) -> Compiled:
    """Return a column as one of the kinds of `Compiled`; values that other engines cannot hold
    become NULL.
    """
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
    """Whether a type is a timestamp without a time zone."""
    return type.startswith("timestamp") and "'" not in type


def _finite(engine: Engine, number: str) -> Value:
    """Return SQL for a float with NaN and huge values as NULL; NaN compares as larger than every
    number on all three engines, so it is outside both ranges.
    """
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
        takes: The arguments that it accepts, in words for errors.
        gives: Maps the kinds of its arguments to the kind of its value; None if it does not accept
            them.
        says: Returns its SQL for an engine and arguments.
        copies: How often an argument occurs in that SQL, at most.
        constants: The ranges of further arguments that must be constants; 0 is excluded unless it is
            the lower end. Empty if they may be any values.
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
    """Return the common kind of these kinds; None if there is none or it is a timestamp."""
    same = kinds[0] if len(set(kinds)) == 1 and kinds[0] in KIND_TYPES else None
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
    """Convert the values to their common kind."""
    floats = any(each.type == "float64" for each in values)
    return [engine.double_of(each) if floats else each for each in values]


def _words(template: str, **others: str) -> Says:
    """Return a function that fills a SQL template: {0}, {1}, or {all} separated by commas; `others`
    are templates of engines that differ.
    """

    def says(engine: Engine, values: Sequence[Value]) -> str:
        common = _common(engine, values)
        return others.get(engine.name, template).format(*common, all=", ".join(common[1:]))

    return says


def _cast(kind: str, template: str = "{0}") -> Says:
    return lambda engine, values: engine.cast(template.format(*values), KIND_TYPES[kind])


def _arithmetic(sign: str) -> Function:
    """Return the function for +, - or *. An integer result beyond 2^62 in absolute value is NULL;
    the operation is then done on 0 and 0.
    """

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
    """Return SQL for x / y, where x / 0 is NULL."""
    return _finite(engine, engine.quotient(*map(engine.double_of, values)))


def _remainder(least: int, template: str) -> Function:
    """Return the function for a remainder: of an integer by the absolute value of a nonzero
    constant; an engine's % has the sign of the dividend.
    """

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
    """Return SQL for the absolute value, which is NULL for -2^63, since the result does not fit in
    64 bits.
    """
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


def _part(word: str) -> Function:
    """Return the function for a part of a date; Spark counts days of the week from 1."""

    def says(engine: Engine, values: Sequence[Value]) -> str:
        excess = 1 if engine.name == "Spark" and word == "DOW" else 0
        return engine.cast(f"(EXTRACT({word} FROM {values[0]}) - {excess})", "int64")

    return _of_one("date", "integer", says)


def _first_day(unit: str) -> Function:
    """Return the function for the first day of the year, quarter, month or week of a date; weeks
    begin on Monday.
    """
    timed = f"CAST(DATE_TRUNC('{unit}', CAST({{0}} AS TIMESTAMP)) AS DATE)"
    return _of_one("date", "date", _words(timed))


def _of_places(takes: str, template: str, *ends: tuple[int, int]) -> Function:
    """Return the function for a part of a text at constant positions; beyond the end of the text it
    is empty.
    """

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
    **{name: _part(word) for word, name in PARTS.items()},
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
"""All functions by name; expressions can call no others."""
