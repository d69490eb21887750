"""Tables with one row for each person: aggregates of each unit's own rows, which later questions
may use.

*Stability.* Rows are grouped by the columns of the unit, unchanged, and by nothing else; rows whose
unit is NULL are dropped before. So each new row is a function of one unit's rows, and no other row
depends on them: tables that differ in one unit's rows become tables that differ in that unit's
single row. Its bound is (1, 1, 1). After a keyed join no unit is left, and one row of another table
changes the rows of several persons, so this is refused there.

The aggregates are exact functions of the multiset of a person's rows alone. Sums are of integers
(floats are put on the question's grid first), so the order in which an engine adds does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.aggregate import clamped, is_readable, is_whole, same
from dpcompose.release.aggregation import FixedPointGrid
from dpcompose.release.columns import Bounds
from dpcompose.release.query import Value, case, type_of
from dpcompose.release.spend import exact
from dpcompose.release.table import Table

Ends = tuple[Fraction, Fraction]


def per_person(table: Table, aggregates: Mapping[str, tuple[str, str]]) -> Table:
    """Return the table with one row for each unit.

    Args:
        table: A table with a unit.
        aggregates: Maps each new column to "count", "distinct", "minimum", "maximum", "sum" or
            "mean" and the aggregated column; for a count, "" means all rows.

    Raises:
        DomainError: If there is no such column, or the range of a summed column is unknown.
        UnsupportedError: If the table has no unit, or its engine is not DuckDB.
    """
    if not table.unit or table.engine.name != "DuckDB":
        what = (
            "GROUP BY the person"
            if table.unit
            else "GROUP BY the person after a join on another key"
        )
        reason = (
            "its rows belong to no person"
            if not table.unit
            else f"{table.engine.name} is not asked so yet"
        )
        raise UnsupportedError(f"sql: {what}", reason, f"SELECT COUNT(*) FROM {table.name}")
    ranges: dict[str, tuple[Any, ...]] = {}
    columns: dict[str, Value] = {}
    units = {name: same(table, name) for name in table.unit}
    data = table.data.filter(*(is_readable(table, name) for name in table.unit)).mutate(**units)
    table = replace(table, data=data)
    for name, (function, of) in aggregates.items():
        columns[name], ends = _aggregate(table, function, of)
        if ends is not None:
            ranges[name] = tuple(str(each) for each in ends)
    data = data.group(table.unit, **columns)
    said = ", ".join(f"{name}={function}({of})" for name, (function, of) in aggregates.items())
    weights = {name: max(table.weights.values(), default=1) for name in aggregates}
    return table.changed(
        data,
        f"per person {said}",
        weights=weights,
        bounds=Bounds(1, 1, 1),
        ranges=ranges,
        copies={},
    )


def _aggregate(table: Table, function: str, of: str) -> tuple[Value, Ends | None]:
    """Return SQL for an aggregate of a person's rows, and the lower and upper bound of its values."""
    rows, engine = table.bounds.rows, table.engine
    counted = (Fraction(0), Fraction(rows))
    if function == "count":
        return engine.cast(
            f"LEAST(COUNT({same(table, of) if of else '*'}), {rows})", "int64"
        ), counted
    kind, column = table.column(of).kind, same(table, of)
    if function == "distinct":
        table.column(of).require_key("sql: COUNT(DISTINCT)")
        return engine.cast(f"LEAST(COUNT(DISTINCT {column}), {rows})", "int64"), counted
    stated = table.ranges.get(of) if table.column(of).numeric else None
    ends = None if stated is None else (exact(of, stated[0]), exact(of, stated[1]))
    if function in ("minimum", "maximum"):
        if kind == "float":
            number = engine.double_of(column)
            column = case((f"NOT {engine.is_nan(number)}", number), type="float64")
        return Value(
            f"{'MIN' if function == 'minimum' else 'MAX'}({column})", type_of(column)
        ), ends
    if ends is None:
        raise DomainError(
            f"sql: {function} of {of}", None, f"CLAMP({of}, lower, upper)", "Give it a range"
        )
    whole = is_whole(table, of)
    grid = FixedPointGrid.stated(*ends, None, whole=whole)
    number = engine.cast(column, "int64") if whole else Value(engine.double_of(column), "float64")
    valid = f"{number} IS NOT NULL" + ("" if whole else f" AND NOT {engine.is_nan(number)}")
    steps = engine.cast(case((valid, grid.image(engine, number))), "int64")
    total, some = clamped(table, engine.exact_sum(steps)), f"COUNT({steps}) > 0"
    granularity = engine.constant(float(grid.granularity))
    real = f"{engine.cast(total, 'float64')} * {granularity}"
    if function == "mean":
        mean = f"{real} / {engine.cast(f'COUNT({steps})', 'float64')}"
        return case((some, mean), type="float64"), ends
    low, high = min(ends[0] * rows, ends[0], Fraction(0)), max(ends[1] * rows, ends[1], Fraction(0))
    if grid.granularity == 1:
        inside = engine.cast(f"LEAST(GREATEST({total}, {int(low)}), {int(high)})", "int64")
        return case((some, inside)), (low, high)
    return case((some, real), type="float64"), (low, high)
