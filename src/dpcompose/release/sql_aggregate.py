"""Aggregates of SQL, and the questions that they are."""
# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.release.file import KINDS
from dpcompose.release.question import Question
from dpcompose.release.sql_nodes import CALLS, refusal
from dpcompose.release.sql_syntax import number

_SPREADS = {
    "Variance": "variance",
    "VariancePop": "variance",
    "Stddev": "standard deviation",
    "StddevPop": "standard deviation",
    "StddevSamp": "standard deviation",
}
ENDS = {"Min": "minimum", "Max": "maximum"}
SUMS = {"Sum": "sum", "Avg": "mean", **_SPREADS}


_COLUMNS = {
    "top": "count",
    "histogram": "count",
    "quantiles": "quantile",
    "standard deviation": "standard_deviation",
}
"""The column of an answer that an aggregate is, where it is not called as the question."""


def quantile(node: Any) -> tuple[Any, list[Any]] | None:
    """The operand of a quantile and its shares; None if it is none."""
    kind = type(node).__name__
    if kind == "Median":
        return node.this, [0.5]
    if kind == "Quantile":
        shares = node.args["quantile"]
        listed = shares.expressions if type(shares).__name__ == "Array" else [shares]
        return node.this, [number(each, "QUANTILE") for each in listed]
    if kind == "WithinGroup" and type(node.this).__name__ in ("PercentileCont", "PercentileDisc"):
        ordered = node.expression.expressions if type(node.expression).__name__ == "Order" else []
        if len(ordered) == 1 and not ordered[0].args.get("desc"):
            return ordered[0].this, [number(node.this.this, "PERCENTILE_CONT")]
    if (
        kind == "Anonymous"
        and str(node.this).upper() in CALLS - {"CLAMP", "BIN"}
        and len(node.expressions) > 1
    ):
        return node.expressions[0], [number(each, "QUANTILE") for each in node.expressions[1:]]
    return None


def made(kind: str, node: Any, **arguments: Any) -> Question:
    """The question of a kind.

    Raises:
        UnsupportedError: If there is no such question.
    """
    if kind not in KINDS:
        raise refusal(node, f"there is no question of kind {kind}")
    question: Any = KINDS[kind]
    return question(**arguments)


def called(node: Any, name: str) -> bool:
    """Whether a node calls the function of this name."""
    return type(node).__name__ == "Anonymous" and str(node.this).upper() == name


def answer_labels(question: Question, node: Any, keys: Mapping[str, str]) -> dict[str, str]:
    """The names of an answer's columns in SELECT: those of its keys, and the alias of the aggregate.

    Raises:
        DomainError: If two of them are the same.
    """
    own = _COLUMNS.get(question.kind, question.kind)
    own = f"{own}_" if own in keys else own
    found = {**keys} | ({own: node.alias} if node.alias else {})
    if len({*found.values()}) < len(found):
        raise DomainError("sql: AS", node.alias, "a name that no other column of the answer has")
    return found
