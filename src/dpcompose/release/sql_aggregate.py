"""Aggregates of SQL, and the questions that they are."""
# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

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
    if kind == "Anonymous" and str(node.this).upper() in CALLS - {"CLAMP", "BIN"} and len(node.expressions) > 1:
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
