"""Translates the aggregates of one SELECT to private questions, and to expressions over their noisy
answers.
"""

# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release import statistics
from dpcompose.release.arrow import ARROW_TYPES
from dpcompose.release.counts import Count, Distinct, Histogram, Units
from dpcompose.release.expression import case, col
from dpcompose.release.question import Question
from dpcompose.release.sql_rows import SelectRows, combined
from dpcompose.release.sql_scalar import column_name, scalar
from dpcompose.release.sql_syntax import (
    CONDITIONS,
    QUANTILES,
    aliases_of,
    built,
    called,
    condition_of,
    is_count_of_rows,
    kind_of,
    number,
    refusal,
    shown,
)
from dpcompose.release.table import Table

ITSELF = "{0}"
NO_VALUE = "\x1a no value"
"""The key of the private group of rows without a value; the answer shows it as NULL."""

AskedAggregate = tuple[Question, list[tuple[str, str]], str]
"""A question, the columns of its answer with types, and an expression template over them."""


SUMS: Mapping[str, Callable[..., Question]] = {
    "Sum": statistics.Sum,
    "Avg": statistics.Mean,
    **dict.fromkeys(("Variance", "VariancePop"), statistics.Variance),
    **dict.fromkeys(("Stddev", "StddevPop", "StddevSamp"), statistics.StandardDeviation),
}
ENDS: Mapping[str, Callable[..., Question]] = {"Min": statistics.Minimum, "Max": statistics.Maximum}


def quantile(node: Any) -> tuple[Any, list[Any]] | None:
    """Return the operand and the fractions of a quantile; None if the node is no quantile."""
    kind = kind_of(node)
    if kind == "Median":
        return node.this, [0.5]
    if kind == "Quantile":
        shares = node.args["quantile"]
        listed = shares.expressions if kind_of(shares) == "Array" else [shares]
        return node.this, [number(each, "QUANTILE") for each in listed]
    if kind == "WithinGroup" and kind_of(node.this) in ("PercentileCont", "PercentileDisc"):
        ordered = node.expression.expressions if kind_of(node.expression) == "Order" else []
        if len(ordered) == 1 and not ordered[0].args.get("desc"):
            return ordered[0].this, [number(node.this.this, "PERCENTILE_CONT")]
    if kind == "Anonymous" and str(node.this).upper() in QUANTILES and len(node.expressions) > 1:
        return node.expressions[0], [number(each, "QUANTILE") for each in node.expressions[1:]]
    return None


@dataclass
class Aggregates(SelectRows):
    """A SELECT whose aggregates are read as questions."""

    def questions_of(
        self,
        chosen: Sequence[str],
        aggregates: Mapping[str, Any],
        keys: Sequence[Any] | None,
        *,
        frequent: bool,
    ) -> tuple[list[AskedAggregate], dict[str, str]]:
        """Return the questions of one grouping, in the order of the aggregates, each with how the
        aggregate is computed from its answer; and the types of the grouping columns.

        A question for the most frequent groups leaves out rows without a value.
        """
        bins = [name for name in chosen if called(self.groups[name], "BIN")]
        if len(bins) > 1:
            raise UnsupportedError(
                "sql: BIN", "only one column can be binned", "Use CASE for a second one"
            )
        keyed = {name: self.groups[name] for name in chosen if name not in bins}
        conditions, listed = self.split(self.conditions, keyed, keys)
        if not self.filtered:
            self.keep(conditions)
            self.filtered = True
        by = tuple(self.column(node, name) for name, node in keyed.items())
        if listed is None and by and all(_declared(self.table, name) for name in by):
            listed = combined([list(self.table.ranges[name]) for name in by])
        several = any(len((quantile(each) or ("", ()))[1]) > 1 for each in aggregates.values())
        if listed is None and not (bins or several or frequent):
            by = tuple(self._or_null(name) for name in by)
        options: dict[str, Any] = {"by": by[0] if len(by) == 1 else by} if by else {}
        if listed is not None:
            options["keys"] = listed
        questions = [
            self._histogram(self.groups[bins[0]], node, options)
            if bins
            else self._question(node, options)
            for node in aggregates.values()
        ]
        table = self.with_computed(self.table)
        types = {
            name: ARROW_TYPES.get(table.column(column).kind, "double")
            for name, column in zip(keyed, by, strict=True)
        }
        default = None if table is self.base else table
        return [
            (
                replace(
                    each, table=default if each.table is None else self.with_computed(each.table)
                ),
                columns,
                shape,
            )
            for each, columns, shape in questions
        ], types | dict.fromkeys(bins, "double")

    def labels(self, question: Question) -> dict[str, str]:
        """Return the names of a plain answer's columns: the aliases of the keys and of the
        aggregate.

        Raises:
            DomainError: If two of them are the same.
        """
        aliases = {shown(each): name for name, each in aliases_of(self.root).items()}
        by = [question.by] if isinstance(question.by, str) else list(question.by)
        keyed = [each for each in self.groups.values() if not called(each, "BIN")]
        names = {
            column: aliases.get(shown(each), column) for each, column in zip(keyed, by, strict=True)
        }
        alias, own = self.root.expressions[-1].alias, question.heading
        if alias:
            names[f"{own}_" if own in names else own] = alias
        if len({*names.values()}) < len(names):
            raise DomainError("sql: AS", alias, "a name that no other column of the answer has")
        return names

    def _or_null(self, name: str) -> str:
        """Return a column of private groups in which rows without a value form a group of their
        own, as in SQL.
        """
        if name in self.computed or self.table.column(name).kind != "text":
            return name
        made = f"{name}_or_null"[-60:]
        self.computed[made] = col(name).fill_null(NO_VALUE)
        return made

    def _question(self, node: Any, options: Mapping[str, Any]) -> AskedAggregate:
        """Return the question of an aggregate, and how its answer yields the aggregate."""
        kind = kind_of(node)
        if kind == "Filter":
            return self._filtered(node.this, node.expression.this, options)
        alias = node.parent.alias if kind_of(node.parent) == "Alias" else ""
        if kind == "Count":
            return self._count(node, options)
        if kind in SUMS:
            inner = node.this
            condition = condition_of(inner)
            if condition is not None:
                return self._filtered(type(node)(this=condition[1]), condition[0], options)
            truth = kind_of(inner) in CONDITIONS
            if truth and kind == "Sum":
                return self._indicator(inner, options)
            column, ends = self.operand(inner, alias, kind.upper())
            question = SUMS[kind](column=column, **ends, **options)
            answered = [(question.heading, "double")]
            if kind in ("Variance", "Stddev", "StddevSamp"):
                # The sample variance is the variance times n / (n - 1), with the noisy n.
                shape = (
                    "({0} * {1} / ({1} - 1))"
                    if kind == "Variance"
                    else "({0} * SQRT({1} / ({1} - 1)))"
                )
                return question, [*answered, ("count", "double")], shape
            return _itself(question)
        if kind == "Div":
            return _itself(self._ratio(node, options))
        parts = quantile(node)
        if kind not in ENDS and parts is None:
            raise refusal(node, "no aggregate that is a question")
        operand, shares = parts or (node.this, [])
        column, ends = self.operand(operand, alias, "QUANTILE")
        if called(operand, "CLAMP") and "granularity" not in ends:
            raise DomainError(
                "sql: CLAMP", shown(operand), "CLAMP(x, lower, upper, granularity) in a quantile"
            )
        if column in self.table.unit:
            raise UnsupportedError(
                f"sql: {shown(node)}", "its values identify persons", "Ask for another column"
            )
        if kind in ENDS:
            question = ENDS[kind](column=column, **ends, **options)
        elif len(shares) == 1:
            question = statistics.Quantile(column=column, q=shares[0], **ends, **options)
        else:
            question = statistics.Quantiles(column=column, qs=shares, **ends, **options)
        return _itself(question)

    def _filtered(self, node: Any, condition: Any, options: Mapping[str, Any]) -> AskedAggregate:
        """Return the question of an aggregate with FILTER; the groups are those of all rows."""
        kind, inner = kind_of(node), node.this
        if is_count_of_rows(node):
            return self._indicator(condition, options)
        if kind == "Count" and kind_of(inner) != "Distinct":
            some = built(":c AND NOT (:x IS NULL)", c=exp.Paren(this=condition), x=inner)
            return self._indicator(some, options)
        if kind == "Sum":
            chosen = built("SUM(CASE WHEN :c THEN :x ELSE 0 END)", c=condition, x=inner)
            return self._question(chosen, options)
        question, answered, shape = self._question(node, options)
        own = self.table if question.table is None else question.table
        return replace(question, table=own.where(scalar(condition, self.named))), answered, shape

    def _indicator(self, condition: Any, options: Mapping[str, Any]) -> AskedAggregate:
        """Return the count of rows that satisfy a condition as a sum of ones, so that groups
        without such rows are released too.
        """
        name = f"_if_{len(self.texts)}"
        name = next(
            (each for each, text in self.texts.items() if text == f"if {shown(condition)}"), name
        )
        self.texts[name] = f"if {shown(condition)}"
        self.computed[name] = case((scalar(condition, self.named), 1), else_=0)
        return _itself(statistics.Sum(column=name, lower=0, upper=1, **options))

    def _count(self, node: Any, options: Mapping[str, Any]) -> AskedAggregate:
        inner = node.this
        if is_count_of_rows(node):
            return _itself(Count(**options), "int64")
        if kind_of(inner) == "Distinct":
            names = [column_name(each, self.named) for each in inner.expressions]
            if set(names) == set(self.table.unit):
                return _itself(Units(**options), "int64")
            if len(names) == 1:
                return _itself(Distinct(column=names[0], **options), "int64")
            raise UnsupportedError(
                f"sql: {shown(node)}",
                "several columns are not counted together",
                "Use COUNT(DISTINCT column)",
            )
        if kind_of(inner) == "Column" and column_name(inner, self.named) in self.table.unit:
            return _itself(Count(**options), "int64")
        condition = condition_of(inner)
        if condition is not None:
            return self._filtered(exp.Count(this=condition[1]), condition[0], options)
        if kind_of(inner) == "Column":
            self.table.column(inner.name)
        return self._indicator(built("NOT (:x IS NULL)", x=inner), options)

    def _ratio(self, node: Any, options: Mapping[str, Any]) -> Question:
        column, ends = self.operand(node.this.this, "", "SUM")
        per, below = self.operand(node.expression.this, "", "SUM")
        return statistics.Ratio(
            column=column,
            per=per,
            **ends,
            **{f"per_{n}": v for n, v in below.items()},
            **options,
        )

    def _histogram(self, node: Any, aggregate: Any, options: Mapping[str, Any]) -> AskedAggregate:
        """Return the question of GROUP BY BIN(x, e0, e1, ...) with COUNT(*)."""
        if shown(aggregate) != "COUNT(*)" or len(node.expressions) < 3:
            raise UnsupportedError(
                "sql: BIN", "bins need COUNT", "SELECT BIN(x, 0, 10, 20), COUNT(*) ... GROUP BY 1"
            )
        inner, *edges = node.expressions
        listed = [number(each, "BIN") for each in edges]
        return _itself(Histogram(column=self.column(inner, ""), edges=listed, **options), "int64")


def _itself(question: Question, type: str = "double") -> AskedAggregate:
    """Return a question whose only number is the aggregate itself."""
    return question, [(question.heading, type)], ITSELF


def _declared(table: Table, name: str) -> bool:
    """Whether the keeper declared the values of a text column."""
    return name in table.ranges and table.column(name).kind == "text"
