"""Reads the rows of one SELECT: its tables, joins, filters, groups and computed columns."""

# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import product
from operator import and_
from pathlib import PurePath
from typing import Any, Self

from sqlglot import exp, parse_one

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.aggregate import per_person
from dpcompose.release.arrow import PublicSource, public
from dpcompose.release.columns import one_of
from dpcompose.release.expression import RowExpression, lit
from dpcompose.release.sql_scalar import (
    column_name,
    columns_of,
    conditions_of,
    conjuncts,
    literal,
    scalar,
)
from dpcompose.release.sql_syntax import (
    COMPARED,
    Ends,
    aggregates_in,
    aliases_of,
    bare,
    built,
    called,
    ends_of,
    expressions_of,
    is_count_of_rows,
    kind_of,
    number,
    refusal,
    shown,
    source_of,
    substituted,
)
from dpcompose.release.table import Table

MOST_WHERES = 10
"""The number of WHERE conditions up to which each becomes a transformation of its own."""

JOIN_BOUNDS = {"AT_MOST": "at_most", "ROWS_PER_UNIT": "rows_per_unit"}
"""Functions in ON that bound a join, with the arguments of `Table.join` that they set."""

_PER_PERSON = {"Count": "count", "Sum": "sum", "Avg": "mean", "Min": "minimum", "Max": "maximum"}


@dataclass
class SelectRows:
    """The reader of one SELECT: its tables by alias, and the columns that it computes."""

    root: Any
    base: Table
    table: Table
    named: Mapping[str, Table]
    computed: dict[str, RowExpression] = field(default_factory=dict[str, RowExpression])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    groups: dict[str, Any] = field(default_factory=dict[str, Any])
    sets: list[list[str]] = field(default_factory=list[list[str]])
    taken: list[Any] = field(default_factory=list[Any])
    filtered: bool = False

    @classmethod
    def of(cls, root: Any, table: Table, tables: Mapping[str, Any]) -> Self:
        """Return the reader of a SELECT, with the tables of FROM and JOIN joined."""
        start = source_of(root)
        for holder in (start, *(each.this for each in root.args.get("joins") or [])):
            if kind_of(holder) == "Table" and kind_of(holder.this) == "Identifier":
                _spell(holder.this, tables)
        alias, first = named_table(start, tables)
        if not isinstance(first, Table):
            raise DomainError(
                "sql: FROM", alias, f"FROM {names_of(table)[-1]}", "JOIN public tables"
            )
        reader = cls(root, table, first, {alias: first})
        for join in root.args.get("joins") or []:
            reader._join(join, tables)
        reader._in_case()
        return reader

    def _in_case(self) -> None:
        """Spell column names as the table does, whatever their case, and remove table qualifiers."""
        names = [each.name for each in self.table.columns]
        nodes = list(self.root.walk(prune=_is_nested))
        for node in nodes:
            if kind_of(node) == "Column" and kind_of(node.this) == "Identifier":
                _spell(node.this, names)
                if node.table and node.table in self.named:
                    column_name(node, self.named)
                    node.set("table", None)
        dates = {each.name for each in self.table.columns if each.kind == "date"}
        for node in nodes:
            parts = list(node.iter_expressions()) if kind_of(node) in COMPARED else []
            if any(kind_of(each) == "Column" and each.name in dates for each in parts):
                for each in parts:
                    if kind_of(each) == "Literal" and each.args["is_string"]:
                        each.replace(exp.cast(each.copy(), "DATE"))

    @property
    def conditions(self) -> list[Any]:
        parts = conditions_of(self.root)
        return [each for each in parts if not any(each is other for other in self.taken)]

    def keep(self, parts: Sequence[Any]) -> None:
        """Keep the rows for which all conditions hold."""
        conditions = [scalar(each, self.named) for each in parts]
        # Few conditions become one transformation each; many are combined into one, as their number
        # is limited.
        for each in conditions if len(conditions) <= MOST_WHERES else [reduce(and_, conditions)]:
            self.table = self.table.where(each)

    def projected(self) -> Table:
        """Return the rows of a SELECT without aggregates, each with its unit."""
        self.keep(self.conditions)
        return self.with_items(self.root.expressions, {})

    def with_items(self, items: Sequence[Any], columns: Mapping[str, Any]) -> Table:
        """Return the table with a column for each SELECT item; `columns` maps aggregates to
        existing columns.
        """
        ranges: dict[str, tuple[str, ...]] = {}
        new: dict[str, RowExpression] = {}
        for item in items:
            inner = bare(item)
            if kind_of(inner) == "Star" or (
                kind_of(inner) == "Column" and kind_of(inner.this) == "Star"
            ):
                continue
            inner = substituted(inner, columns)
            name = item.alias or (inner.name if kind_of(inner) == "Column" else "")
            if kind_of(inner) == "Column" and inner.name == name:
                column_name(inner, self.named)
                self.table.column(name)
                continue
            if not name:
                if kind_of(inner) in ("Literal", "Boolean", "Null"):
                    continue
                raise DomainError(
                    "sql: SELECT", shown(item), "a name: an expression AS name in a subquery"
                )
            ends = self.ends(inner)
            new[name] = scalar(inner, {})
            if ends is not None:
                ranges[name] = tuple(str(each) for each in ends)
        table = self.table.mutate(**new) if new else self.table
        return replace(table, ranges={**table.ranges, **ranges})

    def one_row_a_person(self) -> Table:
        """Return the rows of a SELECT that is grouped by the unit: one row for each person."""
        self.keep(self.conditions)
        having = self.root.args.get("having")
        columns: dict[str, Any] = {}
        aggregates: dict[str, tuple[str, str]] = {}
        for part in [*self.root.expressions, *([having] if having is not None else [])]:
            for each in aggregates_in(bare(part)):
                if shown(each) not in columns:
                    name = f"_of_person_{len(aggregates)}"
                    columns[shown(each)] = exp.column(name)
                    aggregates[name] = self._of_person(each)
        self.table = self.with_computed(self.table)
        self.table = per_person(self.table, aggregates or {"_of_person": ("count", "")})
        self.named = {}
        if having is not None:
            for each in conjuncts(having.this):
                self.table = self.table.where(scalar(substituted(each, columns), {}))
        return self.with_items(self.root.expressions, columns)

    def _of_person(self, node: Any) -> tuple[str, str]:
        kind, inner = kind_of(node), node.this
        if is_count_of_rows(node):
            return "count", ""
        if kind == "Count" and kind_of(inner) == "Distinct" and len(inner.expressions) == 1:
            return "distinct", column_name(inner.expressions[0], self.named)
        if kind not in _PER_PERSON or inner is None or kind_of(inner) == "Distinct":
            reason = (
                "only COUNT, SUM, AVG, MIN and MAX say the same of a person's rows in any order"
            )
            raise UnsupportedError(
                f"sql: {shown(node)[:60]} per person", reason, "Use one of these"
            )
        if called(inner, "CLAMP"):
            column, ends = self.operand(inner, "", kind.upper())
            self.table = replace(
                self.table, ranges={**self.table.ranges, column: (ends["lower"], ends["upper"])}
            )
            return _PER_PERSON[kind], column
        if kind_of(inner) == "Column":
            return _PER_PERSON[kind], column_name(inner, self.named)
        return _PER_PERSON[kind], self.column(inner, "")

    def with_computed(self, table: Table) -> Table:
        """Return a table with the columns that this SELECT computes."""
        return table.mutate(**self.computed) if self.computed else table

    def _join(self, join: Any, tables: Mapping[str, Any]) -> None:
        side, kind = (str(join.args.get(each) or "").lower() for each in ("side", "kind"))
        alias, other = named_table(join.this, tables)
        using, condition = join.args.get("using") or [], join.args.get("on")
        pairs, bounds = [(each.name, each.name) for each in using], dict[str, Any]()
        for each in conjuncts(condition) if condition is not None else []:
            bound = next((name for name in JOIN_BOUNDS if called(each, name)), None)
            if bound is None:
                pairs.append(self._matched(each, alias))
            elif JOIN_BOUNDS[bound] in bounds:
                raise DomainError(f"sql: {bound}", shown(each), "at most one in a join")
            else:
                bounds[JOIN_BOUNDS[bound]] = _numbers(each, bound)
        known = side in ("", "left") and kind in ("", "inner", "outer")
        if not (known and pairs) or alias in self.named:
            what = " ".join(each for each in (side.upper(), kind.upper(), "JOIN") if each)
            alone, unmatched = (
                "rows of the joined table alone belong to nobody",
                "rows are joined on equal keys",
            )
            remedy = "JOIN or LEFT JOIN ... USING (column)"
            raise UnsupportedError(f"sql: {what}", alone if pairs else unmatched, remedy)
        keys = [own for own, theirs in pairs if own == theirs]
        if len(keys) < len(pairs):
            remedy = "Rename the column, and use USING"
            raise UnsupportedError("sql: ON", "keys need the same name", remedy)
        of_unit = not isinstance(other, Table) or set(keys) == set(self.table.unit)
        if not (of_unit or isinstance(bounds.get("at_most"), tuple)):
            reason = "rows of private tables on another key are bounded"
            remedy = "ON a.key = b.key AND AT_MOST(a, b)"
            raise UnsupportedError(f"sql: JOIN USING ({', '.join(keys)})", reason, remedy)
        rows = other
        if side == "left":
            rows = left_joined(self.root, join, alias, keys, other, f"_joined_{len(self.named)}")
        self.table = self.table.join(rows, on=keys, how=side or "inner", **bounds)
        self.named = {**self.named, alias: other}

    def _matched(self, node: Any, alias: str) -> tuple[str, str]:
        """Return the columns of a condition `left.a = right.b`."""
        sides = [node.this, node.expression] if kind_of(node) == "EQ" else []
        tables = [each.table for each in sides if kind_of(each) == "Column"]
        if len(tables) != 2 or alias not in tables or not {*tables} & {*self.named}:
            reason, remedy = "rows are joined on equal keys", "ON a.column = b.column"
            raise UnsupportedError(f"sql: ON {shown(node)}", reason, remedy)
        return sides[0].name, sides[1].name

    def read_groups(self) -> None:
        """Read the columns of GROUP BY as syntax nodes by name, and the grouping sets of a ROLLUP."""
        items = aliases_of(self.root)
        group = self.root.args.get("group")
        there = {column.name for column in self.table.columns}
        nodes, selected = expressions_of(self.root, "group"), self.root.expressions
        plain = [bare(each) for each in selected]
        plain = [each for each in plain if not aggregates_in(each) and kind_of(each) != "Literal"]
        distinct = self.root.args.get("distinct") is not None and len(plain) == len(selected)
        if (group is not None and group.args.get("all")) or (group is None and distinct):
            nodes = [each.copy() for each in plain]
            if distinct:
                self.root.set("distinct", None)
        fixed, rolled = list[str](), list[str]()
        for each in nodes:
            names, inside = (
                (rolled, each.expressions) if kind_of(each) == "Rollup" else (fixed, [each])
            )
            for node in inside:
                name, group_node = self._one_group(node, items, there)
                self.groups[name] = group_node
                names.append(name)
        self.sets = [[*fixed, *rolled[:size]] for size in range(len(rolled), -1, -1)]

    def _one_group(
        self, each: Any, items: Mapping[str, Any], present: Collection[str]
    ) -> tuple[str, Any]:
        node, alias = each, ""
        if kind_of(each) == "Literal":
            place = number(each, "GROUP BY")
            if not (isinstance(place, int) and 1 <= place <= len(self.root.expressions)):
                raise DomainError("sql: GROUP BY", place, f"1 to {len(self.root.expressions)}")
            node = self.root.expressions[place - 1]
            node, alias = (node.this, node.alias) if kind_of(node) == "Alias" else (node, "")
        elif kind_of(each) == "Column" and each.name in items and not each.table:
            node, alias = items[each.name], each.name
            if each.name in present and not (kind_of(node) == "Column" and node.name == each.name):
                if aggregates_in(node):
                    return each.name, each
                domain = "an alias that is no column: GROUP BY takes the column of that name"
                raise DomainError(
                    "sql: GROUP BY",
                    each.name,
                    domain,
                    "Name the expression in SELECT otherwise, with AS",
                )
        if aggregates_in(node):
            raise refusal(aggregates_in(node)[0], "GROUP BY has no aggregate")
        alias = alias or next((name for name, item in items.items() if item == node), "")
        return alias or (node.name if kind_of(node) == "Column" else shown(node)), node

    def split(
        self, parts: Sequence[Any], grouped: Mapping[str, Any], keys: Sequence[Any] | None
    ) -> tuple[list[Any], Sequence[Any] | None]:
        """Return the conditions of WHERE, and the public groups: `keys`, or those that WHERE lists."""
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
        return [each for each in parts if id(each) not in taken], combined(values)

    def column(self, node: Any, name: str) -> str:
        """Return the column that a node names, or compute it under this name."""
        if type(node).__name__ == "Column":
            return column_name(node, self.named)
        taken = {column.name.casefold() for column in self.table.columns}
        if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII) or name.casefold() in taken:
            name = re.sub(r"\W+", "_", f"_{shown(node)}", flags=re.ASCII).lower()[:60].rstrip("_")
        if self.texts.setdefault(name, shown(node)) != shown(node):
            raise DomainError("sql: AS", name, "a new name; this one is in use")
        self.computed[name] = scalar(node, self.named)
        return name

    def ends(self, node: Any) -> Ends | None:
        """Return exact lower and upper bounds of an expression, implied by the known ranges of its
        columns; None if unknown.
        """
        try:
            found = ends_of(node, self._ends_of_column)
        except ZeroDivisionError:
            what, remedy = f"sql: {shown(node)[:60]}", "State a range that leaves 0 out"
            raise UnsupportedError(what, "its divisor may be 0", remedy) from None
        if found is not None and not max(abs(each) for each in found) < 2**62:
            raise DomainError(
                "sql",
                shown(node),
                "values below 2^62 in size",
                "State a range: CLAMP(x, lower, upper)",
            )
        return found

    def _ends_of_column(self, node: Any) -> Ends | None:
        kinds = {each.name: each.kind for each in self.table.columns}
        if kinds.get(node.name) == "boolean":
            return Fraction(0), Fraction(1)
        if node.name not in self.table.ranges or kinds.get(node.name) == "text":
            return None
        low, high = (Fraction(str(each)) for each in self.table.ranges[node.name])
        return low, high

    def operand(self, node: Any, name: str, what: str) -> tuple[str, dict[str, Any]]:
        """Return the column that an aggregate reads, and the lower and upper bound of its values."""
        if kind_of(node) == "Column" and node.name in self.table.ranges:
            return column_name(node, self.named), {}
        if called(node, "CLAMP"):
            if len(node.expressions) not in (3, 4):
                domain = "CLAMP(x, lower, upper), or with the granularity"
                raise DomainError(f"sql: {what}", shown(node), domain)
            inner, *numbers = node.expressions
            ends = (number(each, "CLAMP") for each in numbers)
            stated = zip(("lower", "upper", "granularity"), ends, strict=False)
            return self.column(inner, name), dict(stated)
        if kind_of(node) == "Distinct":
            raise refusal(node)
        is_column = kind_of(node) == "Column"
        if is_column and self.table.column(column_name(node, self.named)).kind == "boolean":
            return node.name, {"lower": 0, "upper": 1}
        ends = None if is_column else self.ends(node)
        if ends is None or not ends[0] < ends[1]:
            domain = f"{what}(CLAMP({shown(node)}, lower, upper))"
            raise DomainError(f"sql: {what}", shown(node), domain, "Its values need a range")
        return self.column(self._clamped(node), name), {"lower": ends[0], "upper": ends[1]}

    def _clamped(self, node: Any) -> Any:
        """Return an expression with its columns clamped to their known ranges; NULL stays NULL."""
        wrapper = exp.Paren(this=node.copy())
        for each in list(wrapper.find_all(exp.Column)):
            if each.name in self.table.ranges and self.table.column(each.name).numeric:
                low, high = (parse_one(str(end)) for end in self.table.ranges[each.name])
                each.replace(built(_CLAMPED, x=each, low=low, high=high))
        return wrapper.this


_CLAMPED = "CASE WHEN :x < :low THEN :low WHEN :x > :high THEN :high ELSE :x END"


def combined(values: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the keys of all groups, from the values of each grouping column."""
    return list(values[0] if len(values) == 1 else product(*values))


def names_of(table: Table) -> list[str]:
    """Return the names of a table: its own, and its file's without the extension."""
    return [table.name, PurePath(table.name).stem]


def _is_nested(node: Any) -> bool:
    """Whether a node begins a SELECT inside another one, which has columns of its own."""
    return kind_of(node) in ("Exists", "Subquery")


def _spell(identifier: Any, names: Collection[str]) -> None:
    """Spell a name as the only one of `names` that differs from it in the case of letters, if any."""
    alike = [each for each in names if each.casefold() == identifier.name.casefold()]
    if identifier.name not in names and len(alike) == 1:
        identifier.set("this", alike[0])


def _numbers(node: Any, name: str) -> int | tuple[Any, ...]:
    """Return the integer arguments of a function; a single one not as a list."""
    found = tuple(number(each, name) for each in node.expressions)
    if not found or not all(type(each) is int for each in found):
        raise DomainError(f"sql: {name}", shown(node), "whole numbers")
    return found[0] if len(found) == 1 else found


def named_table(node: Any, tables: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the alias of a table in FROM or JOIN, and the table."""
    if kind_of(node) != "Table" or kind_of(node.this) != "Identifier":
        raise refusal(node) if kind_of(node) != "Table" else refusal(node.this)
    one_of("sql: FROM", node.name, tables)
    table = tables[node.name]
    return node.alias or node.name, table.opened() if isinstance(table, PublicSource) else table


def left_joined(
    root: Any, join: Any, alias: str, keys: Collection[str], other: Any, marker: str
) -> Any:
    """Return the right side of a LEFT JOIN, with a marker column if the SELECT tests for unmatched
    rows.

    The joined rows have the left side's key. So a test of the right side's key for NULL is replaced
    by a test of the marker, which every row of the right side has. Elsewhere the right side's key
    is refused.
    """
    own, asked = {id(node) for node in join.walk()}, False
    while marker in columns_of(other):
        marker += "_"
    for node in list(root.walk()):
        if kind_of(node) != "Column" or id(node) in own or node.name not in keys:
            continue
        parent = node.parent
        if node.table == alias and kind_of(parent) == "Is" and kind_of(parent.expression) == "Null":
            node.this.set("this", marker)
            node.set("table", None)
            asked = True
        elif node.table == alias or not (node.table or join.args.get("using")):
            reason = f"the key of {alias} is NULL where a row of the left side meets none"
            remedy = f"Write {alias}.{node.name} IS NULL, or {node.name} of the left side with its table before it"
            raise UnsupportedError(f"sql: {shown(node)} after LEFT JOIN {alias}", reason, remedy)
    if not asked or isinstance(other, Table):
        return other.mutate(**{marker: lit(True)}) if asked else other
    import pyarrow as pa

    return public(
        other.frame.append_column(marker, pa.array([True] * other.frame.num_rows, pa.bool_()))
    )
