"""The functions that an expression may use, and how engines are asked for them.

Each one is total by itself, and alike on DuckDB, PostgreSQL and Spark: whatever a row holds, no engine raises an error.
Guards are values, not branches: an operation that could fail is given other operands, so that it cannot fail even where
an engine evaluates it for rows that a condition leaves out. Floats are finite: NaN and what is above 1e150 in size are
NULL, what is below 1e-150 is 0, so products and quotients of two neither overflow nor underflow.
"""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportUnknownLambdaType=false

from __future__ import annotations

import operator
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Protocol

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.engines import Engine, Expression
from dpcompose.release.expression import (
    LARGEST,
    ColumnName,
    FunctionCall,
    LiteralValue,
    RowExpression,
)

MOST_WEIGHT = 5_000
NUMBERS = ("integer", "float")
TYPES = {
    "integer": "int64",
    "float": "float64",
    "text": "string",
    "boolean": "boolean",
    "date": "date",
}


class TypedColumn(Protocol):
    """A column with its kind."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def kind(self) -> str:
        """The kind of its values."""
        ...

    @property
    def type(self) -> str:
        """Its type as ibis writes it."""
        ...


@dataclass(frozen=True)
class Rows:
    """The rows that expressions are compiled for.

    Args:
        data: As an ibis table.
        columns: Its columns.
        engine: The engine that holds them.
        weights: How often a column's own columns occur in it, for columns that were computed.
    """

    data: Expression
    columns: Sequence[TypedColumn]
    engine: Engine
    weights: Mapping[str, int]


@dataclass(frozen=True)
class Compiled:
    """An expression in the engine's terms.

    Args:
        value: The ibis expression.
        kind: "integer", "float", "text", "boolean", "date" or "timestamp".
        weight: How often columns occur in it.
    """

    value: Expression
    kind: str
    weight: int


def compiled(expression: RowExpression, rows: Rows) -> Compiled:
    """The expression for these rows. Its value for a row follows from that row alone.

    By induction: a column is one of the row, a constant of none, and every function of `FUNCTIONS` is a function of
    the values of its arguments.

    Raises:
        DomainError: If there is no such column, or a function is given something else than it takes.
        UnsupportedError: If a column's type or a function is not known here, or the expression is too large.
    """
    match expression:
        case ColumnName(name):
            return _loaded(name, rows)
        case LiteralValue(value):
            kind = _kind_of(value)
            import ibis

            return Compiled(ibis.literal(value, TYPES[kind]), kind, 1)
        case FunctionCall(name, arguments) if name in FUNCTIONS:
            function = FUNCTIONS[name]
            given = [compiled(each, rows) for each in arguments]
            weight = 1 + function.copies * sum(each.weight for each in given)
            if not weight <= MOST_WEIGHT:
                reason = "engines would take long to read it"
                raise UnsupportedError(
                    f"an expression with so many parts ({name})", reason, "Say it in fewer steps"
                )
            kinds = tuple(each.kind for each in given)
            kind = function.gives(kinds)
            if kind is None:
                raise DomainError(name, ", ".join(kinds), function.takes)
            return Compiled(function.says(rows.engine, given, arguments), kind, weight)
        case _:
            raise UnsupportedError(
                f"{type(expression).__name__} in an expression",
                "only functions of one row are known to be sound",
                "Use release.col, release.lit, release.case and their methods",
            )


def _kind_of(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "float"
        case str():
            return "text"
        case _:
            return "date"


def _loaded(name: str, rows: Rows) -> Compiled:
    """A column as one of the kinds above; values that other engines cannot hold are NULL."""
    import ibis

    column = next((each for each in rows.columns if each.name == name), None)
    if column is None:
        raise DomainError("col", name, f"one of {', '.join(each.name for each in rows.columns)}")
    raw, weight = rows.data[name], rows.weights.get(name, 1)
    match column.kind:
        case "boolean":
            return Compiled(raw, "boolean", weight)
        case "integer" if column.type == "uint64":
            fits = raw <= ibis.literal(2**63 - 1, "uint64")
            return Compiled(
                ibis.cases((fits, raw), else_=ibis.null("uint64")).cast("int64"),
                "integer",
                2 * weight,
            )
        case "integer":
            return Compiled(raw.cast("int64"), "integer", weight)
        case "float" | "decimal":
            number = rows.engine.as_double(raw) if column.kind == "decimal" else raw.cast("float64")
            return Compiled(_finite(number), "float", 3 * weight)
        case "text":
            text = rows.engine.binary_collation(raw)
            known = ibis.cases((rows.engine.readable(raw), text), else_=ibis.null("string"))
            return Compiled(known, "text", 2 * weight)
        case "date":
            return Compiled(_dated(raw), "date", 2 * weight)
        case _ if raw.type().is_timestamp() and raw.type().timezone is None:
            return Compiled(raw, "timestamp", weight)
        case _:
            reason = "its values are not alike on all engines"
            raise UnsupportedError(
                f"the column {name!r} of type {column.type} in an expression", reason
            )


def _finite(number: Expression) -> Expression:
    """NaN compares as larger than every number on all three engines, so it is in neither range."""
    import ibis

    tiny = 1 / LARGEST
    inside = (number.between(-LARGEST, LARGEST), number)
    zero = (number.between(-tiny, tiny), ibis.literal(0.0, "float64"))
    return ibis.cases(zero, inside, else_=ibis.null("float64"))


def _dated(value: Expression) -> Expression:
    import ibis

    inside = value.between(ibis.literal(date.min), ibis.literal(date.max))
    return ibis.cases((inside, value), else_=ibis.null("date"))


@dataclass(frozen=True)
class Function:
    """One function of the list.

    Args:
        takes: What it takes, for errors.
        gives: The kind of its value for the kinds of its arguments; None if it does not take them.
        says: The ibis expression, from the engine, the arguments and how they were written.
        copies: How often an argument occurs in it, at most.
    """

    takes: str
    gives: Callable[[tuple[str, ...]], str | None]
    says: Callable[[Engine, Sequence[Compiled], Sequence[RowExpression]], Expression]
    copies: int = 1


def _number_of(kinds: tuple[str, ...]) -> str | None:
    if not all(kind in NUMBERS for kind in kinds):
        return None
    return "float" if "float" in kinds else "integer"


def _alike(kinds: tuple[str, ...]) -> str | None:
    """The common kind, if there is one; a timestamp is none."""
    same = kinds[0] if len(set(kinds)) == 1 and kinds[0] in TYPES else None
    return same or _number_of(kinds)


def _only(kind: str, gives: str) -> Callable[[tuple[str, ...]], str | None]:
    return lambda kinds: gives if all(each == kind for each in kinds) else None


def _as(kind: str | None, arguments: Compiled) -> Expression:
    return (
        arguments.value.cast("float64")
        if kind == "float" and arguments.kind == "integer"
        else arguments.value
    )


def _common(arguments: Sequence[Compiled]) -> list[Expression]:
    """The arguments as their common kind."""
    kind = _alike(tuple(each.kind for each in arguments))
    return [_as(kind, each) for each in arguments]


def _arithmetic(of: Callable[[Any, Any], Any]) -> Function:
    """Integers beyond 2^62 in size are NULL: where a result is none, the operation is given 0 and 0."""

    def says(
        engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
    ) -> Expression:
        import ibis

        one, two = arguments
        floats = [each.value.cast("float64") for each in arguments]
        if "float" in (one.kind, two.kind):
            return _finite(of(*floats))
        fits = of(*floats).between(-(2.0**62), 2.0**62)
        zero = ibis.literal(0, "int64")
        found = of(fits.ifelse(one.value, zero), fits.ifelse(two.value, zero))
        return ibis.cases((fits, found), else_=ibis.null("int64"))

    return Function("two numbers", _number_of, says, copies=4)


def _divide(
    engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
) -> Expression:
    """x / 0 is NULL."""
    one, two = (each.value.cast("float64") for each in arguments)
    return _finite(one / two.nullif(0.0))


def _by_constant(name: str, least: int, of: Callable[[Any, Any], Any]) -> Function:
    """A function of an integer and the size of a constant one that is not 0; engines' % has the sign of the former."""

    def says(
        engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
    ) -> Expression:
        import ibis

        match written[1]:
            case LiteralValue(value) if least <= value <= 2**31 and value != 0:
                return of(arguments[0].value, ibis.literal(abs(value), "int64"))
            case _:
                raise DomainError(
                    name, written[1].text, f"a constant from {least:,} to 2^31 that is not 0"
                )

    return Function("an integer and a constant", _only("integer", "integer"), says)


def _less(
    engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
) -> Expression:
    one, two = _common(arguments)
    if arguments[0].kind == "text":
        one, two = engine.by_code_point(one), engine.by_code_point(two)
    return one < two


def _in_brackets(arguments: Sequence[Compiled]) -> list[Compiled]:
    """Conditions to be compared: SQL reads NOT x IS NULL as NOT (x IS NULL), and x IN (y) IS NULL not at all."""
    import ibis

    return [
        replace(each, value=ibis.coalesce(each.value)) if each.kind == "boolean" else each
        for each in arguments
    ]


def _equal(
    engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
) -> Expression:
    one, two = _common(_in_brackets(arguments))
    return one == two


def _is_null(
    engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
) -> Expression:
    return _in_brackets(arguments)[0].value.isnull()


def _is_in(
    engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
) -> Expression:
    value, *others = _common(_in_brackets(arguments))
    return value.isin(others)


def _abs(
    engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
) -> Expression:
    """The size of -2^63 is NULL."""
    import ibis

    (value,) = (each.value for each in arguments)
    if arguments[0].kind == "float":
        return value.abs()
    least = ibis.literal(-(2**63) + 1, "int64")
    found: Any = ibis.cases((value >= least, value), else_=ibis.null("int64"))
    return found.abs()


def _floor(
    engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
) -> Expression:
    import ibis

    if arguments[0].kind == "integer":
        return arguments[0].value
    value = arguments[0].value
    inside: Any = ibis.cases(
        (value.between(-(2.0**53), 2.0**53), value), else_=ibis.null("float64")
    )
    return inside.floor().cast("int64")


def _one_or_zero(truth: Expression) -> Expression:
    import ibis

    return ibis.cases((truth, 1), (~truth, 0), else_=None).cast("int64")


def _case(
    engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
) -> Expression:
    import ibis

    values = _common([*arguments[1:-1:2], arguments[-1]])
    conditions = [each.value for each in arguments[:-1:2]]
    return ibis.cases(*zip(conditions, values[:-1], strict=True), else_=values[-1])


def _case_of(kinds: tuple[str, ...]) -> str | None:
    return _alike((*kinds[1:-1:2], kinds[-1])) if set(kinds[:-1:2]) == {"boolean"} else None


def _compared(kinds: tuple[str, ...]) -> str | None:
    return "boolean" if _alike(kinds) else None


def _ordered(kinds: tuple[str, ...]) -> str | None:
    return _compared(kinds) if "boolean" not in kinds else None


def _of_one(kind: str, gives: str, says: Callable[[Any], Any], copies: int = 1) -> Function:
    return Function(
        f"{'an' if kind == 'integer' else 'a'} {kind}",
        _only(kind, gives),
        lambda engine, given, written: says(given[0].value),
        copies,
    )


def _of_texts(says: Callable[[Any, Any], Any]) -> Function:
    return Function(
        "a text and a constant text",
        _only("text", "boolean"),
        lambda engine, given, written: says(given[0].value, given[1].value),
    )


def _measured(kinds: tuple[str, ...]) -> str | None:
    return "float" if _number_of(kinds) else None


def _of_common(says: Callable[..., Any]) -> Callable[..., Any]:
    return lambda engine, given, written: says(*_common(given))


def _conditions(kinds: tuple[str, ...]) -> str | None:
    return "boolean" if len(kinds) > 1 and set(kinds) == {"boolean"} else None


def _connected(says: Callable[..., Any]) -> Callable[..., Any]:
    """Conditions in halves of halves, so that engines read a long chain as one of few levels."""

    def halved(
        engine: Engine, arguments: Sequence[Compiled], written: Sequence[RowExpression]
    ) -> Expression:
        if len(arguments) == 1:
            return arguments[0].value
        middle = (len(arguments) + 1) // 2
        return says(halved(engine, arguments[:middle], ()), halved(engine, arguments[middle:], ()))

    return halved


FUNCTIONS: Mapping[str, Function] = {
    "add": _arithmetic(operator.add),
    "subtract": _arithmetic(operator.sub),
    "multiply": _arithmetic(operator.mul),
    "divide": Function("two numbers", _measured, _divide, copies=3),
    "modulo": _by_constant("modulo", 1, lambda number, by: (number % by + by) % by),
    "remainder": _by_constant("remainder", -(2**31), operator.mod),
    "abs": Function("a number", _number_of, _abs, copies=2),
    "floor": Function(
        "a number", lambda kinds: "integer" if _number_of(kinds) else None, _floor, copies=2
    ),
    "equal": Function("two values of one kind", _compared, _equal),
    "less": Function("two numbers, texts or dates", _ordered, _less),
    "is_in": Function("values of one kind", _compared, _is_in),
    "and": Function("conditions", _conditions, _connected(operator.and_)),
    "or": Function("conditions", _conditions, _connected(operator.or_)),
    "not": _of_one("boolean", "boolean", operator.invert),
    "is_null": Function("a value", _compared, _is_null),
    "fill_null": Function(
        "two values of one kind", _alike, _of_common(lambda one, two: one.fill_null(two))
    ),
    "case": Function("conditions, and values of one kind", _case_of, _case),
    "lower": _of_one(
        "text", "text", lambda x: x.translate(string.ascii_uppercase, string.ascii_lowercase)
    ),
    "upper": _of_one(
        "text", "text", lambda x: x.translate(string.ascii_lowercase, string.ascii_uppercase)
    ),
    "length": _of_one("text", "integer", lambda text: text.length().cast("int64")),
    "starts_with": _of_texts(lambda text, part: text.startswith(part)),
    "ends_with": _of_texts(lambda text, part: text.endswith(part)),
    "contains": _of_texts(lambda text, part: text.contains(part)),
    "year": _of_one("date", "integer", lambda day: day.year().cast("int64")),
    "month": _of_one("date", "integer", lambda day: day.month().cast("int64")),
    "day": _of_one("date", "integer", lambda day: day.day().cast("int64")),
    "date": _of_one("timestamp", "date", lambda at: _dated(at.date()), copies=2),
    "as_float": Function(
        "a number", _measured, lambda engine, given, written: given[0].value.cast("float64")
    ),
    "as_integer": _of_one("boolean", "integer", _one_or_zero, copies=2),
    "as_text": _of_one("integer", "text", lambda number: number.cast("string")),
}
"""All of them; a name that is not here has no meaning."""
