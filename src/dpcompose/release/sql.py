"""Reads a SQL statement into the same questions to the same tables as the Python methods make."""

# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp, parse_one

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.aggregate import per_person
from dpcompose.release.counts import Count, Top
from dpcompose.release.expression import col
from dpcompose.release.planner import ROW, Grouping, Leaf, Plan
from dpcompose.release.question import Question
from dpcompose.release.sql_aggregate import NO_VALUE, Aggregates
from dpcompose.release.sql_rows import names_of
from dpcompose.release.sql_scalar import conditions_of
from dpcompose.release.sql_syntax import (
    aggregates_in,
    aliases_of,
    bare,
    called,
    expressions_of,
    kind_of,
    number,
    options_of,
    parsed,
    refusal,
    rewritten,
    shown,
    source_of,
    substituted,
)
from dpcompose.release.table import Table


def questions_of_sql(
    text: str,
    table: Table,
    *,
    tables: Mapping[str, Any] | None = None,
    keys: Sequence[Any] | None = None,
) -> tuple[Question, ...]:
    """Return the questions that a SELECT asks, one for each aggregate, in order; equal to those
    made in Python.

        SELECT clinic, COUNT(*), AVG(CLAMP(minutes, 0, 120)) FROM visits
        WHERE age >= 18 AND clinic IN ('north', 'south') GROUP BY clinic

    Groups are public if `keys` names them, or if WHERE says `column IN (...)` for every grouping
    column; else they are private. CLAMP(x, lower, upper) or CLAMP(x, lower, upper, granularity)
    clamps values; a column with a range in the catalog needs no CLAMP. Private tables are joined on
    a key other than the unit by `ON a.key = b.key AND AT_MOST(rows of a key here, rows there)`,
    optionally with `AND ROWS_PER_UNIT(here, there)`. A remainder has the sign of the dividend.
    After a LEFT JOIN the right side's key may occur in IS NULL only.

    Args:
        text: One SELECT, or EXPLAIN and one SELECT.
        table: The table that FROM names.
        tables: Further tables for joins, by name, besides the catalog's public ones.
        keys: The groups, as for a question.

    Raises:
        DomainError: If it is no SQL, or a name or a number is outside its domain.
        UnsupportedError: If it has an unsupported clause; the error names it.
    """
    if not isinstance(table, Table):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("table", type(table).__name__, "a table made by release.table(...)")
    return planned(text, table, tables=tables, keys=keys).questions


def planned(
    text: str,
    table: Table,
    *,
    tables: Mapping[str, Any] | None = None,
    keys: Sequence[Any] | None = None,
) -> Plan:
    """Return the private questions of a statement and the computation over their noisy answers; see
    `questions_of_sql`.
    """
    if not (tables is None or isinstance(tables, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(
            "tables", type(tables).__name__, "a mapping from names to tables, or None"
        )
    if not (keys is None or (isinstance(keys, Sequence) and not isinstance(keys, (str, bytes)))):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("keys", type(keys).__name__, "a list of keys, or None")
    known = {**table.public_tables, **dict.fromkeys(names_of(table), table), **(tables or {})}
    try:
        root = parsed(text)
        stated = options_of(text, table, root)
        plan = _Statement(table, known, keys).plan(root)
    except UnsupportedError as error:
        raise _with_example(error, table) from None
    plan.require()
    return replace(plan, spend=stated)


def _with_example(error: UnsupportedError, table: Table) -> UnsupportedError:
    """Return the error with an example statement appended that runs on this table."""
    name = names_of(table)[-1]
    shown_name = name if re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII) else f'"{name}"'
    remedy = f"{error.remedy}. This runs: SELECT COUNT(*) FROM {shown_name}"
    return UnsupportedError(error.what, error.reason, remedy.removeprefix(". "))


_PLAIN = {"count", "units", "distinct", "sum", "quantile", "minimum", "maximum"}
"""Questions whose answers have one column besides their keys."""


_ONE_TABLE = {"histogram", "quantiles"}
"""Questions whose answers have several rows for each group."""


class _Statement:
    """The reader of a statement: decides which SELECTs are private, and which compute with noisy
    answers.
    """

    def __init__(self, base: Table, tables: Mapping[str, Any], keys: Sequence[Any] | None) -> None:
        self.base, self.known, self.keys = base, dict(tables), keys
        self.released: set[str] = set()
        self.questions: list[Question] = []
        self.leaves: list[Leaf] = []
        self.plain = False

    def plan(self, root: Any) -> Plan:
        """Return the plan of a whole statement."""
        for node in list(root.walk()):
            rewritten(node)
        root = self._computed(root, top=True)
        if self.plain and len(self.questions) == 1:
            return Plan(tuple(self.questions))
        if any(each.kind in _ONE_TABLE for each in self.questions):
            raise UnsupportedError(
                "sql: BIN or PERCENTILE", "it has several rows for each group", "Ask for it alone"
            )
        for node in root.walk():
            if kind_of(node) == "Table" and node.name not in {
                *self.released,
                *(each.name for each in self.leaves),
            }:
                raise UnsupportedError(
                    f"sql: {node.name} in a subquery", "its rows are private", "Ask with JOIN or IN"
                )
        items = root.selects
        names = tuple(each.alias_or_name for each in items)
        ends: tuple[Any, ...] | None = None
        start = source_of(root) if kind_of(root) == "Select" else None
        alone = len(self.leaves) == 1 and not root.args.get("distinct")
        if alone and start is not None and start.name == self.leaves[0].name:
            ends = tuple(bare(each).copy() if _noisy(bare(each)) else None for each in items)
            root.append("expressions", exp.column(ROW))
        chosen = bool(root.args.get("where") or root.args.get("limit") or root.args.get("offset"))
        return Plan(tuple(self.questions), tuple(self.leaves), root, names, ends, chosen)

    # Find the private SELECTs

    def _computed(self, node: Any, *, top: bool = False) -> Any:
        """Return a SELECT or UNION over noisy numbers, with every private SELECT in it replaced by
        a leaf.
        """
        for each in expressions_of(node, "with_"):
            private = self._private(each.this)
            if private is None:
                each.set("this", self._computed(each.this))
                self.released.add(each.alias)
            else:
                self.known[each.alias] = private
                each.pop()
        if not expressions_of(node, "with_"):
            node.set("with_", None)
        parts = {"Union": ("this", "expression"), "Subquery": ("this",)}.get(kind_of(node), ())
        for part in parts:
            node.set(part, self._computed(node.args[part]))
        if parts:
            return node
        if kind_of(node) != "Select":
            raise refusal(node)
        start = source_of(node)
        if start is None:
            if aggregates_in(node) or not self.leaves:
                raise UnsupportedError(
                    "sql: no FROM", "a question needs a table", f"FROM {names_of(self.base)[-1]}"
                )
            return node
        if start.name in self.released:
            return node
        if kind_of(start) == "Subquery" and self._private(start.this.copy()) is None:
            if start.this.args.get("distinct") is not None:
                raise UnsupportedError(
                    "sql: DISTINCT in a subquery",
                    "rows are never shown",
                    "Use COUNT(DISTINCT column)",
                )
            start.set("this", self._computed(start.this))
            self.released.add(start.alias)
            for each in node.args.get("joins") or []:
                raise refusal(each)
            return node
        return self._leaf(node, top)

    def _private(self, node: Any) -> Table | None:
        """Return the private rows that a SELECT makes, as a table of the same unit; None if it
        makes noisy numbers.
        """
        if kind_of(node) != "Select":
            return None
        start = source_of(node)
        if start is None or start.name in self.released:
            return None
        if kind_of(start) == "Subquery" and self._private(start.this.copy()) is None:
            return None
        reader = self._reader(node)
        grouped = reader.groups.values()
        if grouped or any(aggregates_in(bare(each)) for each in node.expressions):
            columns = [each.name if kind_of(each) == "Column" else "" for each in grouped]
            per_person = grouped and sorted(columns) == sorted(reader.table.unit)
            return reader.one_row_a_person() if per_person else None
        clauses = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET", "having": "HAVING"}
        for part, clause in clauses.items():
            if node.args.get(part) is not None:
                reason = "which rows are in it follows from the rows of others"
                raise UnsupportedError(f"sql: {clause} in a subquery", reason, "Filter with WHERE")
        return reader.projected()

    def _reader(self, node: Any) -> Aggregates:
        """Return the reader of a SELECT, with subqueries in FROM and JOIN as named tables."""
        known = dict(self.known)
        for holder in (node.args["from_"], *(node.args.get("joins") or [])):
            inner = holder.this
            if kind_of(inner) == "Subquery":
                private = self._private(inner.this)
                if private is None or not inner.alias:
                    reason = "its rows are noisy numbers" if private is None else "it has no name"
                    raise UnsupportedError(
                        "sql: a subquery in FROM",
                        reason,
                        "FROM (SELECT ...) AS q, of rows of persons",
                    )
                known[inner.alias] = private
                holder.set("this", exp.to_table(inner.alias))
        reader = Aggregates.of(node, self.base, known)
        for each in conditions_of(node):
            self._semi_joined(reader, each)
        reader.read_groups()
        return reader

    def _semi_joined(self, reader: Aggregates, node: Any) -> None:
        """Apply EXISTS and IN with a subquery on the unit as a join with one row for each person of
        the other table.
        """
        inner, none = (node.this, True) if kind_of(node) == "Not" else (node, False)
        while kind_of(inner) == "Paren":
            inner = inner.this
        is_in = kind_of(inner) == "In" and inner.args.get("query") is not None
        if len(reader.table.unit) != 1 or not (is_in or kind_of(inner) == "Exists"):
            return
        (unit,) = reader.table.unit
        what = f"sql: {'IN' if is_in else 'EXISTS'} with a subquery"
        select = _of_units(inner, unit) if is_in else _existing(inner.this, unit, reader.named)
        if select is None:
            remedy = f"Use {unit} IN (SELECT {unit} FROM ...)"
            raise UnsupportedError(what, "it is not about the same person", remedy)
        table = self._private(select)
        if table is None:
            raise UnsupportedError(what, "its rows are noisy numbers", "Leave GROUP BY out")
        marker = f"_there_{len(reader.named)}"
        other = per_person(table, {marker: ("count", "")})
        names = [each.name for each in reader.table.columns]
        reader.table = reader.table.join(other, on=unit, how="left" if none else "inner")
        if none:
            reader.table = reader.table.where(col(marker).is_null())
        reader.table = reader.table.select(*names)
        reader.named = {**reader.named, marker: other}
        reader.taken.append(node)

    # A SELECT with noisy numbers

    def _top(self, node: Any, question: Question) -> Question | None:
        """Return the question for the most frequent groups, if ORDER BY COUNT(*) DESC LIMIT k asks
        for exactly that.
        """
        items, limit = expressions_of(node, "order"), node.args.get("limit")
        first = items[0].this if len(items) == 1 and items[0].args.get("desc") else None
        if kind_of(first) == "Column" and first is not None and not first.table:
            first = aliases_of(node).get(first.name)
        others = any(node.args.get(part) for part in ("having", "offset", "distinct"))
        if first is None or limit is None or others or shown(first) != "COUNT(*)":
            return None
        if question.kind != "count" or not question.by:
            return None
        most = number(limit.expression, "LIMIT")
        return Top(number=most, by=question.by, keys=question.keys, table=question.table)

    def _leaf(self, node: Any, top: bool) -> Any:
        """Add a private SELECT with aggregates as a leaf with its questions, in every grouping;
        return the SELECT over their answers that replaces it.
        """
        reader = self._reader(node)
        groups, names = reader.groups, list(reader.groups)
        items = [bare(each) for each in node.expressions]
        aggregates = _aggregates_of(node, items, groups)
        node.set("group", None)
        wanted = [*map(shown, groups.values()), *aggregates]
        simple = top and [shown(each) for each in items] == wanted
        frequent = simple and self._top(node, Count(by="x")) is not None
        first, name = len(self.questions), f"dpcompose_leaf{len(self.leaves)}"
        columns: list[tuple[int, str, str]] = []
        groupings: list[Grouping] = []
        types, shapes = dict[str, str](), dict[str, Any]()
        for chosen in reader.sets:
            asked, of_keys = reader.questions_of(chosen, aggregates, self.keys, frequent=frequent)
            types |= of_keys
            places = tuple(range(len(self.questions), len(self.questions) + len(asked)))
            self.questions += [question for question, _, _ in asked]
            groupings.append(Grouping(tuple(names.index(each) for each in chosen), places))
            if len(groupings) > 1:
                continue
            for offset, (text, (_, answered, shape)) in enumerate(
                zip(aggregates, asked, strict=True)
            ):
                own = [f"q{len(columns) + place}" for place in range(len(answered))]
                shapes[text] = parse_one(shape.format(*own))
                columns += [(offset, each, kind) for each, kind in answered]
        key_types = tuple(types[each] for each in names)
        self.leaves.append(Leaf(name, key_types, tuple(columns), tuple(groupings)))
        if simple and len(self.questions) == first + 1:
            self._keep_plain(reader, self.questions[-1], frequent=frequent)
        asked = zip(aggregates, self.questions[first:], strict=False)
        headings = {text: each.heading for text, each in asked}
        headings |= {shown(each): own for own, each in groups.items()}
        keys = {shown(each): _key(at, types[own]) for at, (own, each) in enumerate(groups.items())}
        self._rewrite(node, name, keys | shapes, headings)
        return node

    def _keep_plain(self, reader: Aggregates, question: Question, *, frequent: bool) -> None:
        """Use the answer itself, without SQL over it, if it already has the requested shape."""
        node, parts = reader.root, ("having", "order", "limit", "offset", "distinct")
        known = question.keys is not None or "string" not in self.leaves[-1].keys
        shaped = question.kind in _ONE_TABLE or (question.kind in _PLAIN and known)
        whole = shaped and not any(node.args.get(each) for each in parts)
        keys = node.expressions[: len(reader.groups)]
        named = all(kind_of(each) in ("Alias", "Column") or called(each, "BIN") for each in keys)
        best = self._top(node, question) if frequent else question if whole else None
        if named and best is not None:
            labels = reader.labels(best)
            self.questions[-1], self.plain = replace(best, labels=labels), True

    def _rewrite(
        self, node: Any, leaf: str, parts: Mapping[str, Any], headings: Mapping[str, str]
    ) -> None:
        """Turn the SELECT into one over the columns of its leaf, with the names of the answer."""
        taken: dict[str, int] = {}
        selected: list[Any] = []
        for item in node.expressions:
            text = shown(bare(item))
            name = item.alias if kind_of(item) == "Alias" else headings.get(text, text.lower()[:60])
            if item.alias and name in taken:
                raise DomainError("sql: AS", name, "a name that no other column of the answer has")
            taken[name] = taken.get(name, 0) + 1
            name = name if taken[name] == 1 else f"{name}_{taken[name]}"
            selected.append(exp.alias_(substituted(bare(item), parts, "SELECT"), name, quoted=True))
        names = {
            shown(exp.column(name, quoted=quoted)): exp.column(name, quoted=True)
            for name in aliases_of(node)
            for quoted in (False, True)
        }
        for each in expressions_of(node, "order"):
            each.set("this", substituted(each.this, names | dict(parts), "ORDER BY"))
            each.set("nulls_first", False)
        having = node.args.get("having")
        if having is not None:
            having = exp.Where(this=substituted(having.this, names | dict(parts), "HAVING"))
        new = {"expressions": selected, "from_": exp.From(this=exp.to_table(leaf)), "where": having}
        for part, value in (new | {"having": None, "joins": None}).items():
            node.set(part, value)


def _of_units(node: Any, unit: str) -> Any:
    """Return the SELECT in `unit IN (SELECT ...)`; None if the condition is about something else."""
    select = node.args["query"].this
    both = [node.this, *(bare(each) for each in select.expressions)]
    fits = len(both) == 2 and all(kind_of(each) == "Column" and each.name == unit for each in both)
    return select if fits else None


def _existing(select: Any, unit: str, outer: Collection[str]) -> Any:
    """Return the SELECT of units for which matching rows EXIST, if the subquery is matched on the
    unit; else None.
    """
    parts = conditions_of(select)
    sides = {
        at: (each.this, each.expression) for at, each in enumerate(parts) if kind_of(each) == "EQ"
    }
    equal = [
        at
        for at, both in sides.items()
        if all(kind_of(each) == "Column" and each.name == unit for each in both)
    ]
    if not equal or len({each.table in outer for each in sides[equal[0]]}) != 2:
        return None
    others = [each.copy() for at, each in enumerate(parts) if at != equal[0]]
    select = select.copy()
    select.set("where", exp.Where(this=exp.and_(*others)) if others else None)
    select.set("expressions", [exp.column(unit)])
    return select


def _aggregates_of(node: Any, items: Sequence[Any], grouped: Mapping[str, Any]) -> dict[str, Any]:
    """Return the aggregates of a SELECT by their SQL text; COUNT(*) if it has only groups.

    Raises:
        UnsupportedError: If it would show rows.
    """
    shows = any(
        kind_of(part) == "Star" and kind_of(part.parent) != "Count"
        for each in items
        for part in each.walk()
    )
    parts = [*items, *(node.args[part] for part in ("having", "order") if node.args.get(part))]
    found: dict[str, Any] = {}
    for each in (each for part in parts for each in aggregates_in(part)):
        found.setdefault(shown(each), each)
    alone = not grouped and any(kind_of(each) == "Column" for each in items)
    if shows or alone or not (found or grouped):
        remedy = "Ask with COUNT(*), SUM, AVG, ..."
        raise UnsupportedError("sql: no aggregate", "rows are never shown", remedy)
    return found or {"COUNT(*)": exp.Count(this=exp.Star())}


def _noisy(node: Any) -> bool:
    """Whether an expression over a leaf uses its noisy numbers."""
    return any(kind_of(each) == "Column" and each.name.startswith("q") for each in node.walk())


def _key(at: int, type: str) -> Any:
    """Return the key column of a leaf, with NULL for the group without a value."""
    column = exp.column(f"k{at}")
    return (
        exp.Nullif(this=column, expression=exp.Literal.string(NO_VALUE))
        if type == "string"
        else column
    )
