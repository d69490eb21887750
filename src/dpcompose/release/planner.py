"""A statement as private questions, and free SQL over their noisy answers.

What follows the noise is post-processing: it costs nothing, and is computed by a DuckDB of its own that holds the noisy
answers alone, reads no file, and is given no text but that of the checked tree.

*Ends.* A number that is computed of j noisy ones has the interval that follows from theirs, each at level
1 - (1 - c) / j, rounded outward: at least c, by the union bound. A quotient whose denominator may be 0 has no bound.
Where HAVING, LIMIT or DISTINCT choose among n groups, each is taken at level 1 - (1 - c) / n, so that all n intervals
hold at once with probability c, whichever of them are chosen.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.ledger import Receipt
from dpcompose.numerics import two_digits, with_error
from dpcompose.release.answer import Answer, failure_of
from dpcompose.release.arrow import arrow_table, polars_frame, write
from dpcompose.release.question import Question, Values

Interval = tuple[float, float]
UNKNOWN: Interval = (math.nan, math.nan)
ROW = "dpcompose_row"


@dataclass(frozen=True)
class Grouping:
    """The questions that have one grouping, or one of the groupings of a ROLLUP.

    Args:
        keys: The columns of the leaf that are keys, by their places in it; others are NULL.
        questions: The places of its questions in the plan.
    """

    keys: tuple[int, ...]
    questions: tuple[int, ...]


@dataclass(frozen=True)
class Leaf:
    """The noisy answers of one SELECT as a table.

    Args:
        name: What the statement over the answers calls it.
        keys: The types of the key columns k0, k1, ...
        columns: For q0, q1, ... the place of the question within each grouping, the answer's column, and its type.
        groupings: One, or those of a ROLLUP.
    """

    name: str
    keys: tuple[str, ...]
    columns: tuple[tuple[int, str, str], ...]
    groupings: tuple[Grouping, ...]

    def rows(
        self, answers: Sequence[Answer]
    ) -> list[tuple[tuple[Any, ...], Mapping[int, int], Grouping]]:
        """The keys of each row, and for each of its questions the row of the answer."""
        found: list[tuple[tuple[Any, ...], Mapping[int, int], Grouping]] = []
        for grouping in self.groupings:
            rows: dict[tuple[Any, ...], dict[int, int]] = {}
            for place in grouping.questions:
                columns = [each.cells for each in answers[place].columns[: len(grouping.keys)]]
                size = len(answers[place].columns[-1].cells)
                for at, key in enumerate(zip(*columns, strict=True) if columns else [()] * size):
                    rows.setdefault(key, {})[place] = at
            for key, places in rows.items():
                full = dict(zip(grouping.keys, key, strict=True))
                found.append(
                    (tuple(full.get(at) for at in range(len(self.keys))), places, grouping)
                )
        return found

    def table(self, answers: Sequence[Answer] | None) -> Any:
        """The table; without answers, one without rows."""
        rows = [] if answers is None else self.rows(answers)
        cells: list[list[Any]] = [[] for _ in (*self.keys, *self.columns)]
        for key, places, grouping in rows:
            values: list[Any] = []
            for offset, name, _ in self.columns:
                place = grouping.questions[offset]
                at = places.get(place)
                missing = 0 if name in ("count", "units", "distinct") else None
                values.append(
                    missing
                    if at is None or answers is None
                    else _column(answers[place], name).cells[at]
                )
            for column, cell in zip(cells, (*key, *values), strict=True):
                column.append(cell)
        names = [f"k{at}" for at in range(len(self.keys))] + [
            f"q{at}" for at in range(len(self.columns))
        ]
        types = [*self.keys, *(kind for _, _, kind in self.columns)]
        found = [
            (name, kind, column) for name, kind, column in zip(names, types, cells, strict=True)
        ]
        return arrow_table([*found, (ROW, "int64", list(range(len(rows))))])


def _column(answer: Answer, name: str) -> Values:
    return next(each for each in answer.columns if each.name == name)


@dataclass(frozen=True)
class Plan:
    """A statement that was read.

    Args:
        questions: What is asked, for one charge.
        leaves: The tables that their answers make; none where the one answer is what was asked for.
        tree: The statement over these tables.
        names: The columns of the answer.
        ends: For each column the expression of which its ends follow; None where none are known.
        chosen: Whether groups are chosen by their noisy numbers.
        spend: What the statement itself says that it may cost.
    """

    questions: tuple[Question, ...]
    leaves: tuple[Leaf, ...] = ()
    tree: Any = None
    names: tuple[str, ...] = ()
    ends: tuple[Any, ...] | None = None
    chosen: bool = False
    spend: Mapping[str, Any] | None = None

    def require(self) -> None:
        """Refuse, before any charge, what could not be computed of the answers.

        Raises:
            DomainError: If a name or a type does not fit.
        """
        if self.leaves:
            self._computed(None)

    def answer(self, answers: Sequence[Answer]) -> Any:
        """The answer of the statement, from those of its questions; it costs nothing."""
        if not self.leaves:
            return answers[0]
        table, at = self._computed(answers)
        columns = tuple(
            Values(name, _type(column.type), tuple(column.to_pylist()))
            for name, column in zip(self.names, table.columns, strict=True)
        )
        return SelectedAnswer(self, tuple(answers), columns, tuple(at))

    def _computed(self, answers: Sequence[Answer] | None) -> tuple[Any, Sequence[int]]:
        import duckdb

        connection = duckdb.connect(config={"enable_external_access": False})
        try:
            for leaf in self.leaves:
                connection.register(leaf.name, leaf.table(answers))
            connection.execute("SET python_enable_replacements = false")
            connection.execute("SET lock_configuration = true")
            # Sums and quotients of noisy numbers are of doubles, which do not overflow.
            table = connection.sql(self.tree.sql(dialect="duckdb")).to_arrow_table()
        except duckdb.Error as error:
            said = str(error).splitlines()[0]
            raise DomainError(
                "sql", said[:200], "a statement over columns of the answer", _EXAMPLE
            ) from None
        finally:
            connection.close()
        if self.ends is None:
            return table, []
        at = table.column(table.num_columns - 1).to_pylist()
        return table.select(range(table.num_columns - 1)), at


_EXAMPLE = "SELECT COUNT(*) AS n FROM the table"


def _type(kind: Any) -> str:
    """The type of a column, as answers write it."""
    import pyarrow.types as types

    if types.is_decimal(kind):
        return "double"
    if types.is_date(kind):
        return "date32"
    return "double" if types.is_floating(kind) else "int64" if types.is_integer(kind) else str(kind)


@dataclass(frozen=True)
class SelectedAnswer:
    """The answer to a statement, in the shape that was asked for: one table, with its names and their order.

    Args:
        plan: The statement.
        answers: The noisy answers that it was computed of, all released by one charge.
        columns: Its columns.
        places: The row of the leaf of each of its rows, where its ends are known.
    """

    plan: Plan = field(repr=False)
    answers: tuple[Answer, ...] = field(repr=False)
    columns: tuple[Values, ...]
    places: tuple[int, ...] = field(repr=False)

    def __str__(self) -> str:
        """The answer as a table of text, each number with its error."""
        rows = [[each.name for each in self.columns], *self.texts()]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )

    @property
    def table(self) -> Any:
        """The answer as an Arrow table."""
        return arrow_table([(each.name, each.type, _plain(each)) for each in self.columns])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The answer as plain Python values, one mapping a row."""
        return list(self.table.to_pylist())

    @property
    def value(self) -> Any:
        """The one number of an answer that is one number.

        Raises:
            DomainError: If there are several.
        """
        if len(self.columns) != 1 or len(self.columns[0].cells) != 1:
            raise DomainError(
                "value", f"{len(self.columns)} columns", "an answer of one number", "See .table"
            )
        return self.columns[0].cells[0]

    @property
    def receipt(self) -> Receipt:
        """The charge, redeemed by this answer alone."""
        return self.answers[0].receipt

    @property
    def spent(self) -> Mapping[str, Any]:
        """The exact amounts charged, by currency."""
        return self.receipt.cost

    @property
    def replayed(self) -> bool:
        """Whether this is the stored answer of an earlier request with the same key."""
        return self.answers[0].replayed

    def interval_of(
        self, name: str, confidence: float
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Both ends of a column, row by row: each holds the exact number with at least that probability; NaN: unknown.

        They are about the data as they are asked: with rows left out beyond the bounds, and values clamped.

        Raises:
            DomainError: If there is no such column, or the confidence is outside (0, 1).
        """
        names = [each.name for each in self.columns]
        if name not in names:
            raise DomainError("name", name, f"one of {', '.join(names)}")
        failure, ends = failure_of(confidence), self.plan.ends
        expression = None if ends is None else ends[names.index(name)]
        if expression is None:
            unknown = (math.nan,) * len(self.columns[0].cells)
            return unknown, unknown
        (leaf,) = self.plan.leaves
        rows = leaf.rows(self.answers)
        used = {each.name for each in _columns(expression)}
        level = failure / max(len(used), 1) / (max(len(rows), 1) if self.plan.chosen else 1)
        known: dict[int, Any] = {}
        found = [
            _ends(expression, _Row(leaf, self.answers, rows[at], level, known))
            for at in self.places
        ]
        return tuple(low for low, _ in found), tuple(high for _, high in found)

    @property
    def main(self) -> Values:
        """The first column whose ends are known, else the last one."""
        ends = self.plan.ends or ()
        known = [each for each, end in zip(self.columns, ends, strict=False) if end is not None]
        return known[0] if known else self.columns[-1]

    def interval(self, confidence: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Both ends of the column `main`; see `interval_of`."""
        return self.interval_of(self.main.name, confidence)

    @property
    def low(self) -> tuple[float, ...]:
        """The low end of the column `main` with 95 percent confidence, row by row."""
        return self.interval(0.95)[0]

    @property
    def high(self) -> tuple[float, ...]:
        """The high end, as `low`."""
        return self.interval(0.95)[1]

    def texts(self, confidence: float = 0.95) -> list[list[str]]:
        """The rows for people: each number whose ends are known to as many places as its error, and with it."""
        found: list[list[str]] = []
        for column in self.columns:
            low, high = self.interval_of(column.name, confidence)
            errors = [
                max(top - float(cell), float(cell) - bottom)
                if isinstance(cell, int | float)
                else math.nan
                for cell, bottom, top in zip(column.cells, low, high, strict=True)
            ]
            found.append(
                [_said(cell, error) for cell, error in zip(column.cells, errors, strict=True)]
            )
        return [list(row) for row in zip(*found, strict=True)]

    def with_ends(self, confidence: float = 0.95) -> Any:
        """The answer as an Arrow table, with both ends of each column that has some."""
        columns = [(each.name, each.type, _plain(each)) for each in self.columns]
        known = [
            each.name
            for each, end in zip(self.columns, self.plan.ends or (), strict=False)
            if end is not None
        ]
        for name in known:
            low, high = self.interval_of(name, confidence)
            prefix = "" if len(known) == 1 else f"{name}_"
            columns += [(f"{prefix}low", "double", low), (f"{prefix}high", "double", high)]
        return arrow_table(columns)

    def to_pandas(self, confidence: float = 0.95) -> Any:
        """The answer as a pandas data frame, with ends."""
        return self.with_ends(confidence).to_pandas()

    def to_polars(self, confidence: float = 0.95) -> Any:
        """The answer as a polars data frame, with ends."""
        return polars_frame(self.with_ends(confidence))

    def write(self, path: str | Path) -> None:
        """Write the table as CSV or Parquet, by the end of the name."""
        write(self.table, path)

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{escape(each.name)}</th>" for each in self.columns)
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self.texts()[:20]]
        return f"<table><tr>{heads}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _plain(values: Values) -> list[Any]:
    return [
        float(each) if values.type == "double" and each is not None else each
        for each in values.cells
    ]


def _said(cell: Any, error: float) -> str:
    if cell is None or isinstance(cell, bool) or not isinstance(cell, int | float):
        return (
            "NULL" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)
        )
    if not 0 <= error < math.inf:
        return f"{cell:,}" if isinstance(cell, int) else f"{cell:.6g}"
    number, reach = with_error(cell, error)
    return f"{number} ± {reach or two_digits(error)}"


# Ends of what is computed of noisy numbers.


@dataclass(frozen=True)
class _Row:
    """A row of a leaf: the ends of its noisy numbers at one level."""

    leaf: Leaf
    answers: Sequence[Answer]
    row: tuple[tuple[Any, ...], Mapping[int, int], Grouping]
    failure: float
    known: dict[int, Any]

    def __getitem__(self, name: str) -> Interval:
        if name.startswith("k"):
            return _exactly(self.row[0][int(name[1:])])
        offset, column, _ = self.leaf.columns[int(name[1:])]
        place = self.row[2].questions[offset]
        at, answer = self.row[1].get(place), self.answers[place]
        if at is None:
            return UNKNOWN
        if answer.main.name != column:
            return UNKNOWN
        if place not in self.known:
            self.known[place] = answer.question.interval(
                answer.design, self.failure, answer.columns
            )
        low, high = self.known[place]
        return float(low[at]), float(high[at])


def _exactly(cell: Any) -> Interval:
    known = isinstance(cell, int | float) and not isinstance(cell, bool)
    return (float(cell), float(cell)) if known else UNKNOWN


def _columns(expression: Any) -> list[Any]:
    return [
        each
        for each in expression.walk()
        if type(each).__name__ == "Column" and each.name.startswith("q")
    ]


def _ends(node: Any, row: _Row) -> Interval:
    """The ends of an expression; NaN where none are known."""
    kind = type(node).__name__
    if kind == "Column":
        return row[node.name]
    if kind == "Literal" and not node.args["is_string"]:
        number = Fraction(str(node.this))
        return math.nextafter(float(number), -math.inf), math.nextafter(float(number), math.inf)
    if kind == "Paren":
        return _ends(node.this, row)
    if kind == "Cast":
        # To nearest, whatever the number of digits.
        low, high = _ends(node.this, row)
        return _outward(low - 1, high + 1)
    if kind == "Neg":
        low, high = _ends(node.this, row)
        return -high, -low
    if kind in ("Add", "Sub", "Mul", "Div"):
        return _combined(kind, _ends(node.this, row), _ends(node.expression, row))
    if kind == "Round":
        decimals = node.args.get("decimals")
        places = int(str(decimals.this)) if decimals is not None else 0
        low, high = _ends(node.this, row)
        half = 0.5 * 10.0**-places
        return _outward(low - half, high + half)
    if kind == "Sqrt":
        low, high = _ends(node.this, row)
        return (
            _outward(math.sqrt(max(low, 0)), math.sqrt(max(high, 0))) if high == high else UNKNOWN
        )
    return UNKNOWN


def _combined(kind: str, one: Interval, two: Interval) -> Interval:
    if any(math.isnan(end) for end in (*one, *two)):
        return UNKNOWN
    if kind == "Add":
        return _outward(one[0] + two[0], one[1] + two[1])
    if kind == "Sub":
        return _outward(one[0] - two[1], one[1] - two[0])
    if kind == "Div" and two[0] <= 0 <= two[1]:
        return UNKNOWN
    found = [a * b if kind == "Mul" else a / b for a in one for b in two]
    return UNKNOWN if any(math.isnan(each) for each in found) else _outward(min(found), max(found))


def _outward(low: float, high: float) -> Interval:
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
