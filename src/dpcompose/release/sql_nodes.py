"""Nodes of a statement: what they are, what others call the same, and the ends of what they compute."""

# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp, parse_one

from dpcompose.errors import UnsupportedError
from dpcompose.release.sql_syntax import CALLS, PRIVATE, shown


def kind_of(node: Any) -> str:
    """The name of a node's class."""
    return type(node).__name__


def bare(node: Any) -> Any:
    """An item of SELECT without its alias."""
    return node.this if kind_of(node) == "Alias" else node


AGGREGATES = {
    "Count", "Sum", "Avg", "Variance", "VariancePop", "Stddev", "StddevPop", "StddevSamp", "Median", "Min", "Max",
    "Quantile", "WithinGroup", "Filter",
}  # fmt: skip


def is_aggregate(node: Any) -> bool:
    """Whether a node is an aggregate of many rows, or the quotient of two sums, which is one question."""
    if kind_of(node) == "Anonymous":
        return str(node.this).upper() in CALLS - {
            "CLAMP",
            "BIN",
            "AT_MOST",
            "ROWS_PER_UNIT",
            "DATE_PART",
        }
    if kind_of(node) == "Div":
        return all(kind_of(each) == "Sum" for each in (node.this, node.expression))
    return kind_of(node) in AGGREGATES


def aggregates_in(node: Any) -> list[Any]:
    """The aggregates in an expression, outermost ones, those of subqueries left out."""
    if is_aggregate(node):
        return [node]
    if kind_of(node) in ("Subquery", "Select", "Exists"):
        return []
    return [found for each in node.iter_expressions() for found in aggregates_in(each)]


def source_of(node: Any) -> Any:
    """The first table of FROM; None where there is no FROM."""
    start = node.args.get("from_") or node.args.get("from")
    return None if start is None else start.this


def expressions_of(node: Any, part: str) -> list[Any]:
    """The nodes in a part of a SELECT, such as the tables of WITH."""
    held = node.args.get(part) or node.args.get(f"{part}_")
    return [] if held is None else list(held.expressions)


def replaced_by(node: Any, names: Mapping[str, str]) -> Any:
    """An expression with columns in place of the aggregates that are known by their text."""
    if shown(node) in names:
        return exp.column(names[shown(node)])
    found = node.copy()
    for each in list(found.iter_expressions()):
        each.replace(replaced_by(each, names))
    return found


def as_date(node: Any) -> None:
    """A text beside a date is a date."""
    if kind_of(node) == "Literal" and node.args["is_string"]:
        node.replace(exp.cast(node.copy(), "DATE"))


COMPARED = ("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "In", "Between")


def condition_of(node: Any) -> tuple[Any, Any] | None:
    """The condition and the value of CASE WHEN condition THEN value END, which is NULL elsewhere."""
    if (
        kind_of(node) == "Case"
        and node.args.get("default") is None
        and len(node.args["ifs"]) == 1
        and node.this is None
    ):
        return node.args["ifs"][0].this, node.args["ifs"][0].args["true"]
    return None


CONDITIONS = (*COMPARED, "And", "Or", "Not", "Is", "Like")


# What other programs say in other words, and the ends of expressions.


def options_of(text: str, table: Any, root: Any) -> tuple[Mapping[str, Any] | None, Any]:
    """The spend that BigQuery's clause states; it is refused where it does not mean the same.

    Raises:
        UnsupportedError: If it names another unit, has another option, or asks for AVG, which is a mean of means there.
    """
    found = PRIVATE.match(text)
    if found is None:
        return None, root
    stated = {
        name.strip().lower(): value.strip()
        for name, _, value in (part.partition("=") for part in found.group(1).split(","))
    }
    unit = stated.pop("privacy_unit_column", None)
    clause = "sql: OPTIONS of DIFFERENTIAL_PRIVACY"
    if unit is None or (unit.rpartition(".")[2],) != table.unit:
        raise UnsupportedError(
            clause, f"the unit is {', '.join(table.unit)}", f"privacy_unit_column = {table.unit[0]}"
        )
    if not {"epsilon"} <= {*stated} <= {"epsilon", "delta"}:
        raise UnsupportedError(
            clause, "only epsilon, delta and privacy_unit_column mean the same", "Leave others out"
        )
    if any(type(each).__name__ == "Avg" for each in root.walk()):
        raise UnsupportedError(
            "sql: AVG in DIFFERENTIAL_PRIVACY",
            "it is a mean of the persons' means there",
            "SELECT AVG(x) without the clause",
        )
    return stated, root


_SAME = {
    **{each: f"EXTRACT({each.upper()} FROM :this)" for each in ("Year", "Quarter", "Month", "Day")},
    "CountIf": "COUNT(*) FILTER (WHERE :this)",
    "ApproxDistinct": "COUNT(DISTINCT :this)",
    "SafeDivide": ":this / NULLIF(:expression, 0)",
    "Ceil": "-(FLOOR(-(:this)))",
    "CovarPop": "(AVG(:this * :expression) - AVG(:this) * AVG(:expression))",
    "Corr": "((AVG(:this * :expression) - AVG(:this) * AVG(:expression))"
    " / (STDDEV_POP(:this) * STDDEV_POP(:expression)))",
}
"""What other programs call otherwise, by the class of its node, in the words that are read."""


def built(template: str, **parts: Any) -> Any:
    """The expression that a text is, with these in place of its `:names`."""

    def filled(each: Any) -> Any:
        if not isinstance(each, exp.Placeholder):
            return each
        part = parts[each.name].copy()
        return exp.Paren(this=part) if isinstance(part, exp.Binary) else part

    return parse_one(template).transform(filled)


def rewritten(node: Any) -> None:
    """Put the words that are read in place of others that mean the same."""
    kind = kind_of(node)
    if kind in _SAME:
        node.replace(built(_SAME[kind], **node.args))
    elif kind == "ILike" and isinstance(node.expression, exp.Literal):
        low = exp.Literal.string(str(node.expression.this).lower())
        node.replace(built("LOWER(:this) LIKE :low", this=node.this, low=low))
    elif called(node, "DATE_PART") and len(node.expressions) == 2:
        part = str(node.expressions[0].this)
        if part.isalpha():
            node.replace(built(f"EXTRACT({part.upper()} FROM :this)", this=node.expressions[1]))


def called(node: Any, name: str) -> bool:
    """Whether a node calls the function of this name."""
    return kind_of(node) == "Anonymous" and str(node.this).upper() == name


Ends = tuple[Fraction, Fraction]
_PART_ENDS = {
    "QUARTER": (1, 4),
    "MONTH": (1, 12),
    "WEEK": (1, 53),
    "DAY": (1, 31),
    "DOY": (1, 366),
    "DOW": (0, 6),
}


def ends_of(node: Any, of_column: Callable[[Any], Ends | None]) -> Ends | None:
    """The ends of a number, exact, that follow from those of the columns; None where they do not.

    Raises:
        ZeroDivisionError: If a divisor may be 0.
    """

    def hull(parts: Sequence[Any]) -> Ends | None:
        ends = [ends_of(each, of_column) for each in parts if not isinstance(each, exp.Null)]
        if not ends or None in ends:
            return None
        return min(each[0] for each in ends if each), max(each[1] for each in ends if each)

    match kind_of(node):
        case "Column":
            return of_column(node)
        case "Literal" if not node.args["is_string"]:
            number = Decimal(str(node.this))
            exact = Fraction(number) if abs(number.adjusted()) < 100 else None
            return None if exact is None else (exact, exact)
        case "Case" if node.this is None:
            return hull([each.args["true"] for each in node.args["ifs"]] + _listed(node, "default"))
        case "If":
            return hull([node.args["true"], *_listed(node, "false")])
        case "Coalesce":
            return hull([node.this, *node.expressions])
        case "Extract":
            ends = _PART_ENDS.get(str(node.this.this).upper())
            return None if ends is None else (Fraction(ends[0]), Fraction(ends[1]))
        case "Paren" | "Neg" | "Abs" | "Floor" | "Round" | "Cast" | "Sqrt" as kind:
            one = ends_of(node.this, of_column)
            return None if one is None else _of_one(kind, node, *one)
        case "Add" | "Sub" | "Mul" | "Div" as kind:
            one, two = (ends_of(each, of_column) for each in (node.this, node.expression))
            if one is None or two is None:
                return None
            if kind == "Div" and two[0] <= 0 <= two[1]:
                raise ZeroDivisionError
            ends = [_ARITHMETIC[kind](a, b) for a in one for b in two]
            return min(ends), max(ends)
        case _:
            return None


_ARITHMETIC: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.truediv,
}


def _of_one(kind: str, node: Any, low: Fraction, high: Fraction) -> Ends:
    """The ends of a function of one number."""
    match kind:
        case "Neg":
            return -high, -low
        case "Abs":
            return Fraction(0), max(abs(low), abs(high))
        case "Floor":
            return Fraction(low // 1), Fraction(high // 1)
        case "Round":
            (decimals,) = _listed(node, "decimals") or [exp.Literal.number(0)]
            half = Fraction(10) ** -min(int(str(decimals.this)), 100) / 2
            return low - half, high + half
        case "Cast":
            # To nearest, whatever the number of digits.
            return low - 1, high + 1
        case "Sqrt":
            roots = [math.sqrt(max(each, 0)) for each in (low, high)]
            return Fraction(math.nextafter(roots[0], 0)), Fraction(
                math.nextafter(roots[1], math.inf)
            )
        case _:
            return low, high


def _listed(node: Any, part: str) -> list[Any]:
    return [] if node.args.get(part) is None else [node.args[part]]
