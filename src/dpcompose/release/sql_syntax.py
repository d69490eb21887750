"""Parses one SELECT to a syntax tree of allowed nodes only, or refuses it by an error that names
the clause.

The table of allowed classes lists the parts that each may have. Everything else is refused,
including subclasses of allowed classes and classes of later sqlglot versions. SQL is only read; no
text of it ever reaches an engine.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import logging
import math
import operator
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.dialects.dialect import Dialect

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.answer import EXPLAIN
from dpcompose.release.expression import by_name

DEEPEST = 100
"""The largest number of nested nodes."""
CHAINS = ("And", "Or")

# Each line: parts that a node may have, then the classes of nodes that may have exactly these.
_ALLOWED = """
expressions from_ joins where group having order limit offset distinct with_: Select
this expression distinct order limit offset with_: Union
expressions: With Rollup Order Distinct Array
this alias: CTE Subquery Table Alias
this: Having Exists CountIf ApproxDistinct Sqrt Ln Exp Ceil DataTypeParam Pi
this expression: Filter ILike Pow Nullif SafeDivide Corr CovarPop WithinGroup
expression: Limit Offset
this expressions: Greatest Least Anonymous Coalesce
this decimals: Round
this: From TableAlias Where Star Paren Boolean Null Var
this side kind using on: Join
expressions all: Group
this desc nulls_first: Ordered
this quoted: Identifier
this table: Column
this is_string: Literal
this big_int: Count
this: Sum Avg Variance VariancePop Stddev StddevPop StddevSamp Median Min Max PercentileCont PercentileDisc
this quantile: Quantile
this expressions query: In
this expression: Left Right Add Sub Mul Mod And Or EQ NEQ GT GTE LT LTE Is StartsWith EndsWith Contains Extract
this expression negate: Like
this expression typed safe: Div
this: Neg Abs Floor Not Lower Upper Length Year Quarter Month Day
this start length: Substring
this unit: DateTrunc
this low high: Between
ifs default: Case
this true false: If
this to: Cast TryCast
this nested expressions: DataType
"""
ALLOWED: Mapping[str, frozenset[str]] = {
    name: frozenset(parts.split())
    for parts, names in (line.split(":") for line in _ALLOWED.strip().splitlines())
    for name in names.split()
}

QUANTILES = {"PERCENTILE", "QUANTILE_CONT", "QUANTILE_DISC"}
CALLS = {"CLAMP", "BIN", "DATE_PART", "AT_MOST", "ROWS_PER_UNIT", *QUANTILES}
"""Functions that sqlglot does not know and parses as `Anonymous` nodes."""

# Classes of nodes that are refused: the clause in SQL, and what to write instead.
_ROWS = "One row could then decide what becomes of the rows of others"
_REFUSED = by_name(f"""
Window WindowSpec | OVER | {_ROWS}. Ask with GROUP BY
Qualify | QUALIFY | {_ROWS}. Filter with WHERE
Select Subquery | a subquery | {_ROWS}. Say it in one SELECT, or give its value as a literal
Exists | EXISTS | {_ROWS}. Join on the unit instead
Union | UNION | Use table.union(other) in Python, for two catalogued tables with the same unit
SetOperation | a set operation | {_ROWS}. Filter with WHERE
Fetch | FETCH | Use ORDER BY COUNT(*) DESC LIMIT k
Limit | LIMIT | Use ORDER BY COUNT(*) DESC LIMIT k, with one COUNT(*)
Distinct | DISTINCT | Use COUNT(DISTINCT column)
Cube | CUBE | Ask for each grouping by itself
GroupingSets | GROUPING SETS | Ask for each grouping by itself
Hint | a hint | Leave it out
Lock | FOR UPDATE | Only SELECT is read
Into | INTO | Only SELECT is read
TableSample | TABLESAMPLE | Noise is drawn when you ask; all rows are asked
Lateral | LATERAL | {_ROWS}. Use columns of the table
UDTF | a table function | Use a table of the catalog
Values | VALUES | Use a table of the catalog
Pivot | PIVOT | Ask with GROUP BY; turn the answer
MatchRecognize | MATCH_RECOGNIZE | {_ROWS}. Ask with GROUP BY
Command | a command | Only SELECT is read
DDL | a definition | Only SELECT is read
DML | a change of the table | Only SELECT is read
Property | a property | Only SELECT is read
AggFunc | an aggregate that is no question
  | Ask with COUNT, SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE, MIN or MAX
Placeholder | a placeholder | Write the value
Parameter | a parameter | Write the value
Collate | COLLATE | Text is compared letter by letter
Rand Randn Uuid | a random function | Noise is drawn when you ask
Cluster | CLUSTER BY | Leave it out
Sort | SORT BY | Sort the answer
Lambda | a lambda | Use the functions of docs/release.md
Bracket | an index | Use the functions of docs/release.md
IntDiv | DIV | Use FLOOR(x / y), which rounds down
Func | a function that is not in the list | Use the functions of docs/release.md
""")


def refusal(node: Any, reason: str = "") -> UnsupportedError:
    """Return the error that refuses a node: it names the SQL clause, and what to write instead."""
    names = [each.__name__ for each in type(node).__mro__]
    clause, remedy = next(
        (_REFUSED[name] for name in names if name in _REFUSED),
        [names[0], "Use the clauses of docs/release.md"],
    )
    named = _name(node)
    shown = clause if named.upper() in clause.upper() else f"{clause} ({named})"
    return UnsupportedError(f"sql: {shown}", reason or "not supported", remedy)


def _name(node: Any) -> str:
    if kind_of(node) in ("Anonymous", "AnonymousAggFunc") and str(node.this).isidentifier():
        return f"{str(node.this)[:40]}()"
    return kind_of(node)


def require_allowed(root: Any) -> None:
    """Refuse a statement with a node, or a part of a node, that the table does not allow.

    Raises:
        UnsupportedError: It names the clause, and what to write instead.
    """
    waiting: list[tuple[Any, int]] = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        kind = kind_of(node)
        parts = ALLOWED.get(kind)
        if parts is None or (kind == "Anonymous" and str(node.this).upper() not in CALLS):
            raise refusal(node)
        if depth > DEEPEST:
            raise UnsupportedError(
                "sql: nesting", f"more than {DEEPEST} levels, or terms of one sum", "Use fewer"
            )
        for name, value in node.args.items():
            if name not in parts and value not in (None, False, []):
                inner = next(_nodes(value), None)
                if inner is not None and kind_of(inner) not in ALLOWED:
                    raise refusal(inner)
                said = (
                    value if isinstance(value, str) else name.strip("_").upper().replace("_", " ")
                )
                raise UnsupportedError(f"sql: {said} in {kind}", "not supported", "Leave it out")
            # Chains of AND or OR count as one level, however the parser nests them.
            for each in _nodes(value):
                waiting.append((each, depth + (kind_of(each) != kind or kind not in CHAINS)))


def _nodes(value: Any) -> Iterator[Any]:
    """Yield the nodes in a part of a node; unknown kinds of values count as nodes, so that they are
    refused.
    """
    for each in value if isinstance(value, list) else [value]:
        if not (each is None or isinstance(each, (str, bool, int)) or kind_of(each) == "DType"):
            yield each


MOST_CHARACTERS, MOST_TOKENS, MOST_BRACKETS = 20_000, 4_000, 20
LARGEST = 2**63


def parsed(text: object) -> Any:
    """Parse a text to a SELECT, perhaps after the word EXPLAIN.

    Its length, words and open brackets are limited before it is parsed. Comments are refused, since
    database systems read some of them differently.

    Raises:
        DomainError: If it is no SQL, or too long.
        UnsupportedError: If it has an unsupported clause.
    """
    if not isinstance(text, str) or not 1 <= len(text) <= MOST_CHARACTERS or "\0" in text:
        shown = len(text) if isinstance(text, str) else type(text).__name__
        raise DomainError("sql", shown, f"one SELECT, of at most {MOST_CHARACTERS:,} characters")
    dialect, select = Dialect.get_or_raise(None), in_one_dialect(EXPLAIN.sub("", text, count=1))
    with _silent():
        try:
            tokens = dialect.tokenize(select)
        except Exception:
            raise _unreadable(text) from None
        _check(select, tokens)
        try:
            statements = dialect.parser().parse(tokens, select)
        except (Exception, RecursionError):
            raise _unreadable(text) from None
    (root,) = (each for each in statements if each is not None)
    if kind_of(root) not in ("Select", "Union"):
        raise refusal(root)
    require_allowed(root)
    return root


def _check(text: str, tokens: Sequence[Any]) -> None:
    """Refuse a text with a comment, several statements, or too many words or brackets."""
    words = [str(token.text).upper() for token in tokens]
    kinds = [token.token_type.name for token in tokens]
    if "HINT" in kinds or any(token.comments for token in tokens):
        what = "a hint" if "HINT" in kinds else "a comment"
        raise UnsupportedError(
            f"sql: {what}", "database systems read it differently", "Leave it out"
        )
    if not words:
        raise _unreadable(text)
    if ("SLASH", "SLASH") in pairwise(kinds):
        raise UnsupportedError(
            "sql: //", "engines round it in different ways", "Use FLOOR(x / y), which rounds down"
        )
    if "SEMICOLON" in kinds[:-1] or kinds == ["SEMICOLON"]:
        raise UnsupportedError(
            "sql: several statements", "one SELECT is read", "Ask for each by itself"
        )
    if len(words) > MOST_TOKENS:
        raise DomainError("sql", len(words), f"at most {MOST_TOKENS:,} words")
    depth = deepest = run = longest = 0
    for kind, word in zip(kinds, words, strict=True):
        depth += (kind in _OPEN or word == "CASE") - (kind in _CLOSE or word == "END")
        run = run + 1 if kind in ("DASH", "NOT", "TILDE", "PLUS", "DISTINCT") else 0
        deepest, longest = max(deepest, depth), max(longest, run)
    if max(deepest, longest) > MOST_BRACKETS:
        raise DomainError(
            "sql: nesting",
            max(deepest, longest),
            f"at most {MOST_BRACKETS} levels",
            "Use a simpler statement",
        )
    if words[0] not in ("SELECT", "WITH"):
        remedy = "Begin with SELECT"
        named = (
            words[0].split()[0][:20]
            if words[0][:1].isascii() and words[0][:1].isalpha()
            else "no SELECT"
        )
        raise UnsupportedError(f"sql: {named}", "only SELECT is read", remedy)


_OPEN, _CLOSE = ("L_PAREN", "L_BRACKET", "L_BRACE"), ("R_PAREN", "R_BRACKET", "R_BRACE")


def _unreadable(text: str) -> DomainError:
    return DomainError(
        "sql",
        text,
        "one SELECT that can be read",
        "Texts stand in '...', names of columns in \"...\"",
    )


@contextmanager
def _silent() -> Generator[None]:
    """Suppress the log of sqlglot."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def number(node: Any, what: str) -> Any:
    """Return a number literal, with or without a sign: an int; a float if that is the same decimal;
    else a decimal.

    Raises:
        DomainError: If it is something else, or does not fit in 64 bits.
    """
    sign, inner = (-1, node.this) if kind_of(node) == "Neg" else (1, node)
    text = "" if kind_of(inner) != "Literal" or inner.args["is_string"] else str(inner.this)
    try:
        exact = sign * Decimal(text)
    except ArithmeticError:
        raise DomainError(f"sql: {what}", shown(node), "a number written out") from None
    if not abs(exact) < LARGEST or len(text) > 40:
        raise DomainError(f"sql: {what}", text[:40], "a number of at most 64 bits")
    if text.isdigit():
        return int(exact)
    return float(exact) if Decimal(repr(float(exact))) == exact else exact


def shown(node: Any) -> str:
    """Return a node as SQL text, for errors and column names."""
    return node.sql()


_TOP = re.compile(r"\s*select\s+top\s+(\d{1,9})\s", re.IGNORECASE)
PRIVATE = re.compile(
    r"\s*select\s+with\s+differential_privacy\s+options\s*\(([^()']*)\)", re.IGNORECASE
)


def in_one_dialect(text: str) -> str:
    """Return the text with TOP as LIMIT, and without BigQuery's privacy clause, which `options_of`
    reads.
    """
    top = _TOP.match(text)
    if top is not None:
        return f"SELECT {text[top.end() :].rstrip().removesuffix(';')} LIMIT {top.group(1)}"
    return PRIVATE.sub("SELECT", text, count=1)


def kind_of(node: Any) -> str:
    """Return the name of a node's class."""
    return type(node).__name__


def bare(node: Any) -> Any:
    """Return a SELECT item without its alias."""
    return node.this if kind_of(node) == "Alias" else node


def aliases_of(select: Any) -> dict[str, Any]:
    """Return the expressions in a SELECT that have a name of their own, by that name."""
    return {each.alias: each.this for each in select.expressions if kind_of(each) == "Alias"}


def substituted(node: Any, parts: Mapping[str, Any], clause: str = "") -> Any:
    """Return an expression with the nodes of `parts` in place of those with the same SQL text; all
    other columns are refused, as part of `clause`, if that is given.
    """
    text = shown(node)
    if text in parts:
        return parts[text].copy()
    if clause and kind_of(node) == "Column":
        raise DomainError(f"sql: {clause}", text, "an aggregate, or a column of GROUP BY")
    result = node.copy()
    for each in list(result.iter_expressions()):
        each.replace(substituted(each, parts, clause))
    return result


AGGREGATES = {
    "Count", "Sum", "Avg", "Variance", "VariancePop", "Stddev", "StddevPop", "StddevSamp", "Median", "Min", "Max",
    "Quantile", "WithinGroup", "Filter",
}  # fmt: skip


def is_aggregate(node: Any) -> bool:
    """Whether a node is an aggregate of many rows, or a quotient of two sums, which is one
    question.
    """
    if kind_of(node) == "Anonymous":
        return str(node.this).upper() in QUANTILES
    if kind_of(node) == "Div":
        return all(kind_of(each) == "Sum" for each in (node.this, node.expression))
    return kind_of(node) in AGGREGATES


def is_count_of_rows(node: Any) -> bool:
    """Whether a node is COUNT(*), or COUNT of a literal."""
    return kind_of(node) == "Count" and kind_of(node.this) in ("NoneType", "Star", "Literal")


def aggregates_in(node: Any) -> list[Any]:
    """Return the outermost aggregates in an expression, without those in subqueries."""
    if is_aggregate(node):
        return [node]
    if kind_of(node) in ("Subquery", "Select", "Exists"):
        return []
    return [found for each in node.iter_expressions() for found in aggregates_in(each)]


def source_of(node: Any) -> Any:
    """Return the first table of FROM; None if there is no FROM."""
    start = node.args.get("from_")
    return None if start is None else start.this


def expressions_of(node: Any, part: str) -> list[Any]:
    """Return the nodes in a part of a SELECT, such as those of GROUP BY or ORDER BY."""
    return [] if node.args.get(part) is None else list(node.args[part].expressions)


COMPARED = ("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "In", "Between")


def condition_of(node: Any) -> tuple[Any, Any] | None:
    """Return condition and value of CASE WHEN condition THEN value END, which is NULL otherwise."""
    if (
        kind_of(node) == "Case"
        and node.args.get("default") is None
        and len(node.args["ifs"]) == 1
        and node.this is None
    ):
        return node.args["ifs"][0].this, node.args["ifs"][0].args["true"]
    return None


CONDITIONS = (*COMPARED, "And", "Or", "Not", "Is", "Like")


# Spellings of other database systems, and bounds of expressions.


def options_of(text: str, table: Any, root: Any) -> Mapping[str, Any] | None:
    """Return the spend that BigQuery's privacy clause states, if the clause has the same meaning
    here.

    Raises:
        UnsupportedError: If it names another unit, has another option, or is used with AVG, which
            in BigQuery is a mean of means.
    """
    found = PRIVATE.match(text)
    if found is None:
        return None
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
    if any(kind_of(each) == "Avg" for each in root.walk()):
        what, reason = (
            "sql: AVG in DIFFERENTIAL_PRIVACY",
            "it is a mean of the persons' means there",
        )
        raise UnsupportedError(what, reason, "SELECT AVG(x) without the clause")
    return stated


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
"""Maps node classes of other database systems' spellings to a template in supported SQL."""


def built(template: str, **parts: Any) -> Any:
    """Parse a template to an expression, with these nodes in place of its `:names`."""

    def filled(each: Any) -> Any:
        if not isinstance(each, exp.Placeholder):
            return each
        part = parts[each.name].copy()
        return exp.Paren(this=part) if isinstance(part, exp.Binary) else part

    return parse_one(template).transform(filled)


def rewritten(node: Any) -> None:
    """Replace spellings of other database systems by supported ones with the same meaning."""
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
    """Return exact lower and upper bounds of a number, implied by the known ranges of its columns;
    None if there are none.

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
    """Return the lower and upper bound of a function of one bounded number."""
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
            # Rounded to nearest for any number of digits.
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
