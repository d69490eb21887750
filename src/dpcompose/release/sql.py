"""SQL: one SELECT, read into the same questions to the same tables as the methods of Python make."""
# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from operator import and_
from pathlib import PurePath
from typing import Any

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.file import KINDS
from dpcompose.release.question import Question
from dpcompose.release.sql_scalar import (
    ENDS,
    SUMS,
    answer_labels,
    called,
    column_name,
    conjuncts,
    left_joined,
    literal,
    named_table,
    quantile,
    question_of,
    scalar,
)
from dpcompose.release.sql_syntax import number, numbers, parsed, refusal, shown
from dpcompose.release.table import Table

MOST_WHERES = 10
"""Conditions of WHERE that are transformations of their own."""


def questions_of_sql(
    text: str,
    table: Table,
    *,
    tables: Mapping[str, Any] | None = None,
    keys: Sequence[Any] | None = None,
) -> tuple[Question, ...]:
    """The questions that a SELECT asks, one for each aggregate, in order; equal to those that Python would make.

        SELECT clinic, COUNT(*), AVG(CLAMP(minutes, 0, 120)) FROM visits
        WHERE age >= 18 AND clinic IN ('north', 'south') GROUP BY clinic

    Groups are public where `keys` names them, or where WHERE says `column IN (...)` for every grouping column; else
    they are private. Values are clamped by CLAMP(x, lower, upper), or CLAMP(x, lower, upper, granularity); a
    column of which the catalog has the range needs no CLAMP. Private tables are joined on a key that is not the unit by
    `ON a.key = b.key AND AT_MOST(rows of a key here, rows there)`, with `AND ROWS_PER_UNIT(here, there)` if you like.
    A remainder has the sign of the dividend. After a LEFT JOIN the right side's key is read in IS NULL alone.

    Args:
        text: One SELECT, or EXPLAIN and one SELECT.
        table: The table that FROM names.
        tables: Further tables that it may join, by name, besides the public ones of the catalog.
        keys: The groups, as for a question.

    Raises:
        DomainError: If it is no SQL, or a name or a number is outside its domain.
        UnsupportedError: If it has a clause that is not read; the error names it.
    """
    if not isinstance(table, Table):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("table", type(table).__name__, "a table made by release.table(...)")
    if not (tables is None or isinstance(tables, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(
            "tables", type(tables).__name__, "a mapping from names to tables, or None"
        )
    if not (keys is None or (isinstance(keys, Sequence) and not isinstance(keys, (str, bytes)))):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("keys", type(keys).__name__, "a list of keys, or None")
    root, _ = parsed(text)
    return _Reader.of(root, table, tables or {}).questions(keys)


def explains(text: str) -> bool:
    """Whether a SELECT begins with EXPLAIN.

    Raises:
        As `questions_of_sql`.
    """
    return parsed(text)[1]


JOIN_BOUNDS = {"AT_MOST": "at_most", "ROWS_PER_UNIT": "rows_per_unit"}
"""Functions that stand in ON: how many rows a join keeps, as `Table.join` has it."""


@dataclass
class _Reader:
    """One SELECT while it is read: its tables by the names that it gives them, and the columns that it makes."""

    root: Any
    base: Table
    table: Table
    named: Mapping[str, Table]
    computed: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, root: Any, table: Table, tables: Mapping[str, Any]) -> _Reader:
        """The tables of FROM and JOIN, joined."""
        start = root.args.get("from_") or root.args.get("from")
        if start is None:
            raise UnsupportedError(
                "sql: no FROM", "a question is asked of a table", f"FROM {_names(table)[-1]}"
            )
        known = {**table.public_tables, **dict.fromkeys(_names(table), table), **tables}
        alias, first = named_table(start.this, known)
        if first is not table:
            raise DomainError(
                "sql: FROM", alias, f"FROM {_names(table)[-1]}", "Other tables stand in JOIN"
            )
        reader = cls(root, first, first, {alias: first})
        for join in root.args.get("joins") or []:
            reader._join(join, known)
        return reader

    def questions(self, keys: Sequence[Any] | None) -> tuple[Question, ...]:
        grouped = self._grouped()
        where = self.root.args.get("where")
        bins = [name for name, node in grouped.items() if called(node, "BIN")]
        if len(bins) > 1:
            raise UnsupportedError(
                "sql: BIN", "one column is binned", "CASE makes bins of another one"
            )
        keyed = {name: node for name, node in grouped.items() if name not in bins}
        kept, listed = self._split(conjuncts(where.this) if where is not None else [], keyed, keys)
        conditions = [scalar(each, self.named) for each in kept]
        # A few conditions are as many transformations; many are one.
        for each in conditions if len(conditions) <= MOST_WHERES else [reduce(and_, conditions)]:
            self.table = self.table.where(each)
        items = [(each, self._grouping(each, grouped)) for each in self.root.expressions]
        aggregates = [each for each, name in items if name is None]
        by = tuple(self._column(node, name) for name, node in keyed.items())
        options: dict[str, Any] = {"by": by[0] if len(by) == 1 else by, "keys": listed}
        if not by:
            options = {} if listed is None else {"keys": listed}
        if bins:
            found = [self._histogram(grouped[name], aggregates, options) for name in bins]
        else:
            found = [self._question(each, options) for each in aggregates]
        if not found:
            raise UnsupportedError(
                "sql: no aggregate", "rows are never shown", "Ask with COUNT(*), SUM, AVG, ..."
            )
        found = [self._ordered(each, len(found)) for each in found]
        aliases = {name: each.alias for each, name in items if name is not None and each.alias}
        columns = {
            column: aliases.get(name, column) for name, column in zip(keyed, by, strict=True)
        }
        labels = [answer_labels(*each, columns) for each in zip(found, aggregates, strict=True)]
        if self.computed:
            self.table = self.table.mutate(
                **{name: scalar(node, self.named) for name, node in self.computed.items()}
            )
        table = None if self.table is self.base else self.table
        return tuple(
            replace(each, table=table, labels=names)
            for each, names in zip(found, labels, strict=True)
        )

    # FROM, WHERE, GROUP BY

    def _join(self, join: Any, tables: Mapping[str, Any]) -> None:
        side, kind = (
            str(join.args.get("side") or "").lower(),
            str(join.args.get("kind") or "").lower(),
        )
        alias, other = named_table(join.this, tables)
        using, condition = join.args.get("using") or [], join.args.get("on")
        pairs, bounds = [(each.name, each.name) for each in using], dict[str, Any]()
        for each in conjuncts(condition) if condition is not None else []:
            bound = next((name for name in JOIN_BOUNDS if called(each, name)), None)
            if bound is None:
                pairs.append(self._matched(each, alias))
            elif JOIN_BOUNDS[bound] in bounds:
                raise DomainError(f"sql: {bound}", shown(each), "said once in a join")
            else:
                bounds[JOIN_BOUNDS[bound]] = numbers(each, bound)
        if (
            side not in ("", "left")
            or kind not in ("", "inner", "outer")
            or not pairs
            or alias in self.named
        ):
            what = " ".join(each for each in (side.upper(), kind.upper(), "JOIN") if each)
            reason = (
                "rows of the joined table alone belong to nobody"
                if pairs
                else "rows are joined on equal keys"
            )
            raise UnsupportedError(f"sql: {what}", reason, "JOIN or LEFT JOIN ... USING (column)")
        if any(own != theirs for own, theirs in pairs):
            raise UnsupportedError(
                "sql: ON", "a key has one name in both tables", "Rename the column, and use USING"
            )
        on = [own for own, _ in pairs]
        if (
            isinstance(other, Table)
            and set(on) != set(self.table.unit)
            and not isinstance(bounds.get("at_most"), tuple)
        ):
            reason, remedy = (
                "rows of private tables on another key are bounded",
                "ON a.key = b.key AND AT_MOST(a, b)",
            )
            raise UnsupportedError(f"sql: JOIN USING ({', '.join(on)})", reason, remedy)
        rows = other
        if side == "left":
            rows = left_joined(self.root, join, alias, on, other, f"_joined_{len(self.named)}")
        self.table = self.table.join(
            rows, on=on[0] if len(on) == 1 else on, how=side or "inner", **bounds
        )
        self.named = {**self.named, alias: other}

    def _matched(self, node: Any, alias: str) -> tuple[str, str]:
        """The columns of `left.a = right.b`."""
        sides = [node.this, node.expression] if type(node).__name__ == "EQ" else []
        if len(sides) == 2 and all(
            type(each).__name__ == "Column" and each.table for each in sides
        ):
            theirs = [each for each in sides if each.table == alias]
            own = [each for each in sides if each.table in self.named]
            if len(theirs) == len(own) == 1:
                return own[0].name, theirs[0].name
        raise UnsupportedError(
            f"sql: ON {shown(node)}", "rows are joined on equal keys", "ON a.column = b.column"
        )

    def _grouped(self) -> dict[str, Any]:
        """The names of the grouping columns, and their nodes."""
        items = {
            each.alias: each.this
            for each in self.root.expressions
            if type(each).__name__ == "Alias"
        }
        group, found = self.root.args.get("group"), dict[str, Any]()
        there = {column.name for column in self.table.columns}
        for each in group.expressions if group is not None else []:
            node, alias = each, ""
            if type(each).__name__ == "Literal":
                place = number(each, "GROUP BY")
                if not (isinstance(place, int) and 1 <= place <= len(self.root.expressions)):
                    raise DomainError("sql: GROUP BY", place, f"1 to {len(self.root.expressions)}")
                node = self.root.expressions[place - 1]
                node, alias = (
                    (node.this, node.alias) if type(node).__name__ == "Alias" else (node, "")
                )
            elif type(each).__name__ == "Column" and each.name in items and not each.table:
                node, alias = items[each.name], each.name
                if each.name in there and not (
                    type(node).__name__ == "Column" and node.name == each.name
                ):
                    domain = "an alias that is no column: GROUP BY takes the column of that name"
                    raise DomainError(
                        "sql: GROUP BY", each.name, domain, "Give what SELECT makes another name"
                    )
            alias = alias or next((name for name, item in items.items() if item == node), "")
            found[alias or (node.name if type(node).__name__ == "Column" else shown(node))] = node
        return found

    def _grouping(self, node: Any, grouped: Mapping[str, Any]) -> str | None:
        """The grouping column that an item of SELECT is; None for an aggregate."""
        inner = node.this if type(node).__name__ == "Alias" else node
        if type(inner).__name__ == "Column" and inner.name in grouped:
            return inner.name
        name = next((each for each, grouping in grouped.items() if grouping == inner), None)
        if name is None and type(inner).__name__ == "Column":
            raise DomainError("sql: SELECT", shown(inner), "an aggregate, or a column of GROUP BY")
        return name

    def _split(
        self, parts: Sequence[Any], grouped: Mapping[str, Any], keys: Sequence[Any] | None
    ) -> tuple[list[Any], Sequence[Any] | None]:
        """The conditions of WHERE, and the public groups: those of `keys`, or those that WHERE lists."""
        lists: dict[str, Any] = {}
        for each in parts:
            if type(each).__name__ == "In" and keys is None:
                for name, node in grouped.items():
                    if node == each.this and name not in lists:
                        lists[name] = each
        if not grouped or set(lists) != set(grouped):
            return list(parts), keys
        values = [[literal(value, "IN") for value in lists[name].expressions] for name in grouped]
        taken = [id(each) for each in lists.values()]
        listed = values[0] if len(values) == 1 else list(product(*values))
        return [each for each in parts if id(each) not in taken], listed

    # Aggregates

    def _column(self, node: Any, name: str) -> str:
        """The column that a node is, or that it makes under this name."""
        if type(node).__name__ == "Column":
            return column_name(node, self.named)
        taken = {column.name.casefold() for column in self.table.columns}
        if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII) or name.casefold() in taken:
            name = re.sub(r"\W+", "_", f"_{shown(node)}", flags=re.ASCII).lower()[:60].rstrip("_")
        if self.computed.setdefault(name, node) != node:
            raise DomainError("sql: AS", name, "another name; it stands for something else already")
        return name

    def _operand(self, node: Any, name: str, what: str) -> tuple[str, dict[str, Any]]:
        """The column of an aggregate, and the ends of its values."""
        if type(node).__name__ == "Column" and node.name in self.table.ranges:
            return column_name(node, self.named), {}
        if not called(node, "CLAMP"):
            raise DomainError(
                f"sql: {what}",
                shown(node),
                f"{what}(CLAMP({shown(node)}, lower, upper))",
                "Values need ends",
            )
        if len(node.expressions) not in (3, 4):
            raise DomainError(
                f"sql: {what}", shown(node), "CLAMP(x, lower, upper), or with the granularity"
            )
        inner, *ends = node.expressions
        named = zip(
            ("lower", "upper", "granularity"),
            (number(each, "CLAMP") for each in ends),
            strict=False,
        )
        return self._column(inner, name), dict(named)

    def _question(self, node: Any, options: Mapping[str, Any]) -> Question:
        inner, alias = (node.this, node.alias) if type(node).__name__ == "Alias" else (node, "")
        kind = type(inner).__name__
        if kind == "Count":
            return self._count(inner, options)
        if kind in SUMS:
            column, ends = self._operand(inner.this, alias, kind.upper())
            return question_of(SUMS[kind], inner, column=column, **ends, **options)
        if kind == "Div" and all(
            type(each).__name__ == "Sum" for each in (inner.this, inner.expression)
        ):
            return self._ratio(inner, options)
        parts = quantile(inner)
        if kind not in ENDS and parts is None:
            raise refusal(inner, "no aggregate that is a question")
        operand, shares = parts or (inner.this, [])
        column, ends = self._operand(operand, alias, "QUANTILE")
        if ends and "granularity" not in ends:
            raise DomainError(
                "sql: CLAMP", shown(operand), "CLAMP(x, lower, upper, granularity) in a quantile"
            )
        if kind in ENDS:
            return question_of(ENDS[kind], inner, column=column, **ends, **options)
        if len(shares) == 1:
            return question_of("quantile", inner, column=column, q=shares[0], **ends, **options)
        return question_of("quantiles", inner, column=column, qs=shares, **ends, **options)

    def _count(self, node: Any, options: Mapping[str, Any]) -> Question:
        if type(node.this).__name__ == "Star":
            return KINDS["count"](**options)
        if type(node.this).__name__ == "Distinct":
            names = [column_name(each, self.named) for each in node.this.expressions]
            if set(names) == set(self.table.unit):
                return KINDS["units"](**options)
            if len(names) == 1:
                return question_of("distinct", node, column=names[0], **options)
        raise UnsupportedError(
            f"sql: {shown(node)}",
            "no part of the SQL that is read",
            "COUNT(*) with WHERE x IS NOT NULL, or COUNT(DISTINCT column)",
        )

    def _ratio(self, node: Any, options: Mapping[str, Any]) -> Question:
        column, ends = self._operand(node.this.this, "", "SUM")
        per, below = self._operand(node.expression.this, "", "SUM")
        return question_of(
            "ratio",
            node,
            column=column,
            per=per,
            **ends,
            **{f"per_{n}": v for n, v in below.items()},
            **options,
        )

    def _histogram(
        self, node: Any, aggregates: Sequence[Any], options: Mapping[str, Any]
    ) -> Question:
        """GROUP BY BIN(x, e0, e1, ...) with COUNT(*)."""
        counted = [each.this if type(each).__name__ == "Alias" else each for each in aggregates]
        if [shown(each) for each in counted] != ["COUNT(*)"] or len(node.expressions) < 3:
            raise UnsupportedError(
                "sql: BIN", "bins are counted", "SELECT BIN(x, 0, 10, 20), COUNT(*) ... GROUP BY 1"
            )
        inner, *edges = node.expressions
        listed = [number(each, "BIN") for each in edges]
        return question_of(
            "histogram", node, column=self._column(inner, ""), edges=listed, **options
        )

    # ORDER BY, LIMIT

    def _ordered(self, question: Question, number_of_questions: int) -> Question:
        """The most frequent keys, where ORDER BY COUNT(*) DESC LIMIT k asks for them."""
        order, limit = self.root.args.get("order"), self.root.args.get("limit")
        if order is None and limit is None:
            return question
        aliases = {
            each.alias: each.this
            for each in self.root.expressions
            if type(each).__name__ == "Alias"
        }
        items = [] if order is None else order.expressions
        first = items[0].this if len(items) == 1 and items[0].args.get("desc") else None
        if type(first).__name__ == "Column" and first is not None and not first.table:
            first = aliases.get(first.name)
        if (
            first is None
            or shown(first) != "COUNT(*)"
            or limit is None
            or question.kind != "count"
            or number_of_questions != 1
        ):
            remedy = "ORDER BY COUNT(*) DESC LIMIT k, with one COUNT(*); else sort the answer: its numbers are yours"
            raise UnsupportedError(
                "sql: ORDER BY or LIMIT", "the engine's order is private", remedy
            )
        options = {"by": question.by, "keys": question.keys}
        return question_of("top", self.root, number=number(limit.expression, "LIMIT"), **options)


def _names(table: Table) -> list[str]:
    """The names of a table: its own, and that of its file without the end."""
    return [table.name, PurePath(table.name).stem]
