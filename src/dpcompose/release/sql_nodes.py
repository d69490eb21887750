"""Nodes of a statement: what they are, what others call the same, and the ends of what they compute."""

# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

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
    from sqlglot import exp

    if shown(node) in names:
        return exp.column(names[shown(node)])
    found = node.copy()
    for each in list(found.iter_expressions()):
        each.replace(replaced_by(each, names))
    return found


def as_date(node: Any) -> None:
    """A text beside a date is a date."""
    from sqlglot import exp

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


CONDITIONS = (
    "EQ",
    "NEQ",
    "LT",
    "LTE",
    "GT",
    "GTE",
    "And",
    "Or",
    "Not",
    "Is",
    "In",
    "Between",
    "Like",
)


def signed(literal: Any) -> Any:
    """A number that is written out, with its sign as a node of its own."""
    from sqlglot import exp

    text = str(literal.this)
    return exp.Neg(this=exp.Literal.number(text[1:])) if text.startswith("-") else literal.copy()


# What other programs say in other words, and the ends of expressions.

_PARTS = ("YEAR", "MONTH", "DAY")


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


def rewritten(node: Any) -> None:
    """Put the words that are read in place of others that mean the same."""
    from sqlglot import exp

    def put(made: Any) -> None:
        node.replace(made)

    kind = type(node).__name__
    if kind == "CountIf":
        put(exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=node.this)))
    elif kind == "ApproxDistinct":
        put(exp.Count(this=exp.Distinct(expressions=[node.this])))
    elif kind == "SafeDivide":
        below = exp.Nullif(this=node.expression, expression=exp.Literal.number(0))
        put(exp.Div(this=node.this, expression=below))
    elif kind == "Ceil":
        put(
            exp.Neg(
                this=exp.Paren(
                    this=exp.Floor(this=exp.Paren(this=exp.Neg(this=exp.Paren(this=node.this))))
                )
            )
        )
    elif kind == "ILike" and type(node.expression).__name__ == "Literal":
        low = exp.Literal.string(str(node.expression.this).lower())
        put(exp.Like(this=exp.Lower(this=node.this), expression=low))
    elif (
        kind == "Anonymous" and str(node.this).upper() == "DATE_PART" and len(node.expressions) == 2
    ):
        part = str(node.expressions[0].this).upper()
        if part in _PARTS:
            put(exp.Extract(this=exp.Var(this=part), expression=node.expressions[1]))
    elif kind in ("CovarPop", "Corr"):
        one, two = node.this, node.expression
        product = exp.Avg(this=exp.Mul(this=one.copy(), expression=two.copy()))
        means = exp.Mul(this=exp.Avg(this=one.copy()), expression=exp.Avg(this=two.copy()))
        together = exp.Paren(this=exp.Sub(this=product, expression=means))
        if kind == "Corr":
            spreads = exp.Mul(
                this=exp.StddevPop(this=one.copy()), expression=exp.StddevPop(this=two.copy())
            )
            together = exp.Paren(this=exp.Div(this=together, expression=exp.Paren(this=spreads)))
        put(together)


Ends = tuple[Fraction, Fraction]


def ends_of(
    node: Any, ranges: Mapping[str, Sequence[Any]], kinds: Mapping[str, str]
) -> Ends | None:
    """The ends of a number, exact, that follow from those of the columns; None where they do not."""
    kind = type(node).__name__

    def read(each: Any) -> Ends | None:
        return ends_of(each, ranges, kinds)

    def hull(parts: Sequence[Any]) -> Ends | None:
        found = [read(each) for each in parts if type(each).__name__ != "Null"]
        known = [each for each in found if each is not None]
        return (
            (min(e[0] for e in known), max(e[1] for e in known))
            if known and len(known) == len(found)
            else None
        )

    if kind == "Column":
        if kinds.get(node.name) == "boolean":
            return Fraction(0), Fraction(1)
        if node.name in ranges and kinds.get(node.name) != "text":
            return Fraction(str(ranges[node.name][0])), Fraction(str(ranges[node.name][1]))
    elif kind == "Literal" and not node.args["is_string"]:
        return Fraction(str(node.this)), Fraction(str(node.this))
    elif kind == "Paren":
        return read(node.this)
    elif kind == "Neg":
        one = read(node.this)
        return None if one is None else (-one[1], -one[0])
    elif kind == "Abs":
        one = read(node.this)
        return None if one is None else (Fraction(0), max(abs(each) for each in one))
    elif kind == "Floor":
        one = read(node.this)
        return None if one is None else (Fraction(one[0] // 1), Fraction(one[1] // 1))
    elif kind in ("Add", "Sub", "Mul", "Div"):
        one, two = read(node.this), read(node.expression)
        if one is None or two is None:
            return None
        if kind == "Add":
            return one[0] + two[0], one[1] + two[1]
        if kind == "Sub":
            return one[0] - two[1], one[1] - two[0]
        if kind == "Div" and two[0] <= 0 <= two[1]:
            raise UnsupportedError(
                f"sql: / by {node.expression.sql()[:60]}",
                "it may be 0",
                "State a range that leaves 0 out",
            )
        found = [a * b if kind == "Mul" else a / b for a in one for b in two]
        return min(found), max(found)
    elif kind == "Case" and node.this is None:
        parts = [each.args["true"] for each in node.args["ifs"]]
        return hull(
            [*parts, *([node.args["default"]] if node.args.get("default") is not None else [])]
        )
    elif kind == "If":
        return hull(
            [
                node.args["true"],
                *([node.args["false"]] if node.args.get("false") is not None else []),
            ]
        )
    elif kind == "Coalesce":
        return hull([node.this, *node.expressions])
    elif kind == "Extract" and str(node.this.this).upper() in ("MONTH", "DAY"):
        return Fraction(1), Fraction(12 if str(node.this.this).upper() == "MONTH" else 31)
    elif kind in ("Month", "Day"):
        return Fraction(1), Fraction(12 if kind == "Month" else 31)
    return None
