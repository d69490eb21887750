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
from itertools import islice
from typing import Any, ClassVar

from sqlglot import exp

from dpcompose.errors import DomainError
from dpcompose.ledger import Receipt
from dpcompose.numerics import two_digits, with_error
from dpcompose.release.answer import Answer, AnswerTable, failure_of, text_of
from dpcompose.release.arrow import arrow_table
from dpcompose.release.question import Interval as Ranges, Question, Values
from dpcompose.release.sql_syntax import Ends, ends_of

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
        """The answers as one table, a row for each group; with `answers` None a table of the same columns without rows."""
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
        columns = tuple(map(_values, self.names, table.columns))
        paid, again = answers[0].receipt, answers[0].replayed
        return SelectedAnswer(self, tuple(answers), columns, tuple(at), paid, again)

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


def _values(name: str, column: Any) -> Values:
    """A column as answers write it: decimals as doubles."""
    import pyarrow.types as types

    kind = column.type
    if types.is_decimal(kind) or types.is_floating(kind):
        return Values(name, "double", tuple(column.cast("double").to_pylist()))
    type = "int64" if types.is_integer(kind) else "date32" if types.is_date(kind) else str(kind)
    return Values(name, type, tuple(column.to_pylist()))


@dataclass(frozen=True)
class SelectedAnswer(AnswerTable):
    """The answer to a statement, in the shape that was asked for: one table, with its names and their order.

    Args:
        plan: The statement.
        answers: The noisy answers that it was computed of, all released by one charge.
        columns: Its columns.
        places: The row of the leaf of each of its rows, where its ends are known.
        receipt: The charge, redeemed by this answer alone.
        replayed: Whether this is the stored answer of an earlier request with the same key.
    """

    plan: Plan = field(repr=False)
    answers: tuple[Answer, ...] = field(repr=False)
    columns: tuple[Values, ...]
    places: tuple[int, ...] = field(repr=False)
    receipt: Receipt = field(repr=False)
    replayed: bool = field(repr=False)
    selected: ClassVar[bool] = True

    @property
    def bounded(self) -> Sequence[str]:
        ends = self.plan.ends or ()
        return [each.name for each, end in zip(self.columns, ends, strict=False) if end is not None]

    @property
    def main(self) -> Values:
        """The first column whose ends are known, else the last one."""
        return next((each for each in self.columns if each.name in self.bounded), self.columns[-1])

    def interval_of(self, name: str, confidence: float) -> Ranges:
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
        used = {each.name for each in expression.find_all(exp.Column) if each.name[0] == "q"}
        level = failure / max(len(used), 1) / (max(len(rows), 1) if self.plan.chosen else 1)
        intervals: dict[int, Any] = {}
        both = [
            _outward(expression, _Row(leaf, self.answers, rows[at], level, intervals))
            for at in self.places
        ]
        return tuple(low for low, _ in both), tuple(high for _, high in both)

    def texts(self, confidence: float = 0.95, *, most: int | None = None) -> list[list[str]]:
        """The rows for people: each number whose ends are known to as many places as its error, and with it."""
        columns: list[list[str]] = []
        for column in self.columns:
            both = zip(*self.interval_of(column.name, confidence), strict=True)
            cells = islice(zip(column.cells, both, strict=True), most)
            columns.append([_with_error(cell, low, high) for cell, (low, high) in cells])
        return [list(row) for row in zip(*columns, strict=True)]


def _with_error(cell: Any, low: float, high: float) -> str:
    numeric = isinstance(cell, int | float) and not isinstance(cell, bool)
    error = max(high - cell, cell - low) if numeric else math.nan
    if not 0 <= error < math.inf:
        return text_of(cell)
    number, reach = with_error(cell, error)
    return f"{number} ± {reach or two_digits(error)}"


@dataclass(frozen=True)
class _Row:
    """A row of a leaf: the ends of its noisy numbers at one level."""

    leaf: Leaf
    answers: Sequence[Answer]
    row: tuple[tuple[Any, ...], Mapping[int, int], Grouping]
    failure: float
    intervals: dict[int, Any]

    def ends(self, column: Any) -> Ends | None:
        """The lower and upper bound of this row in a column; None if the column has no noisy number, or no finite bound."""
        at = int(column.name[1:])
        if column.name[0] == "k":
            cell = self.row[0][at]
            exact = isinstance(cell, int | float) and not isinstance(cell, bool)
            return (Fraction(cell), Fraction(cell)) if exact else None
        offset, name, _ = self.leaf.columns[at]
        question = self.row[2].questions[offset]
        number, answer = self.row[1].get(question), self.answers[question]
        if number is None or answer.main.name != name:
            return None
        if question not in self.intervals:
            self.intervals[question] = answer.question.interval(
                answer.design, self.failure, answer.columns
            )
        low, high = (float(each[number]) for each in self.intervals[question])
        finite = math.isfinite(low) and math.isfinite(high)
        return (Fraction(low), Fraction(high)) if finite else None


def _outward(expression: Any, row: _Row) -> tuple[float, float]:
    """The ends of an expression, rounded outward; NaN where none are known."""
    try:
        ends = ends_of(expression, row.ends)
        low, high = (math.nan, math.nan) if ends is None else map(float, ends)
    except (ZeroDivisionError, OverflowError):
        return math.nan, math.nan
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
