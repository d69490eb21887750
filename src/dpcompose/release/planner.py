"""The plan of a SQL statement: private questions, and arbitrary SQL over their noisy answers.

What follows the noise is post-processing and costs nothing. A separate DuckDB computes it; that
DuckDB holds only the noisy answers, reads no file, and runs only text generated from the checked
syntax tree.

*Intervals.* A number computed from j noisy numbers has the interval implied by theirs, each at
level 1 - (1 - c) / j, rounded outward; by the union bound its level is at least c. A quotient whose
denominator may be 0 has no bound. If HAVING, LIMIT or DISTINCT chooses among n groups, each
interval has level 1 - (1 - c) / n, so that all n hold at once with probability c, whichever are
chosen.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from itertools import islice
from typing import Any, ClassVar

from sqlglot import exp

from dpcompose.errors import DomainError
from dpcompose.ledger import Receipt
from dpcompose.numerics import two_digits, with_error
from dpcompose.release.answer import Answer, AnswerTable, failure_of, text_of
from dpcompose.release.arrow import arrow_table
from dpcompose.release.columns import one_of
from dpcompose.release.question import Interval as Ranges, Question, Values
from dpcompose.release.sql_syntax import Ends, ends_of

ROW = "dpcompose_row"


@dataclass(frozen=True)
class Grouping:
    """The questions of one grouping, or of one grouping set of a ROLLUP.

    Args:
        keys: The positions of the leaf's key columns that this grouping has; the others are NULL.
        questions: The positions of its questions in the plan.
    """

    keys: tuple[int, ...]
    questions: tuple[int, ...]


LeafRow = tuple[tuple[Any, ...], Mapping[int, int], Grouping]
"""A row of a leaf: its keys, its row number in the answer of each of its questions, and its grouping."""


@dataclass(frozen=True)
class Leaf:
    """The noisy answers of one SELECT as a table, a leaf of the statement.

    Args:
        name: Its name in the statement over the answers.
        keys: The types of the key columns k0, k1, ...
        columns: For q0, q1, ...: the position of the question within each grouping, the column of
            its answer, and its type.
        groupings: One grouping, or those of a ROLLUP.
    """

    name: str
    keys: tuple[str, ...]
    columns: tuple[tuple[int, str, str], ...]
    groupings: tuple[Grouping, ...]

    def rows(self, answers: Sequence[Answer]) -> list[LeafRow]:
        """Return its rows."""
        found: list[LeafRow] = []
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
        """Return the answers as one table with a row for each group; for None the same columns
        without rows.
        """
        rows = [] if answers is None else self.rows(answers)
        columns = [
            (f"k{at}", type, [keys[at] for keys, _, _ in rows]) for at, type in enumerate(self.keys)
        ]
        for position, (offset, name, type) in enumerate(self.columns):
            missing = 0 if name in ("count", "units", "distinct") else None
            questions = [grouping.questions[offset] for grouping in self.groupings]
            named = {each: _cells(answers[each], name) for each in questions} if answers else {}
            numbers = [(grouping.questions[offset], places) for _, places, grouping in rows]
            cells = [named[each][at[each]] if each in at else missing for each, at in numbers]
            columns.append((f"q{position}", type, cells))
        return arrow_table([*columns, (ROW, "int64", list(range(len(rows))))])


def _cells(answer: Answer, name: str) -> Sequence[Any]:
    return next(each.cells for each in answer.columns if each.name == name)


@dataclass(frozen=True)
class Plan:
    """A SQL statement that was read.

    Args:
        questions: The private questions, asked for one charge.
        leaves: The tables made of their answers; empty if the one answer is already what was asked
            for.
        tree: The statement over these tables.
        names: The column names of the answer.
        ends: For each column the expression that its confidence interval follows from; None where
            none is known.
        chosen: Whether groups are chosen by their noisy numbers.
        spend: The spend that the statement itself states.
    """

    questions: tuple[Question, ...]
    leaves: tuple[Leaf, ...] = ()
    tree: Any = None
    names: tuple[str, ...] = ()
    ends: tuple[Any, ...] | None = None
    chosen: bool = False
    spend: Mapping[str, Any] | None = None

    def require(self) -> None:
        """Refuse, before any charge, a statement that cannot be computed from the answers.

        Raises:
            DomainError: If a name or a type does not fit.
        """
        if self.leaves:
            self._computed(None)

    def answer(self, answers: Sequence[Answer]) -> Any:
        """Compute the statement's answer from those of its questions, at no cost."""
        if not self.leaves:
            return answers[0]
        table, at = self._computed(answers)
        columns = tuple(map(_values, self.names, table.columns))
        paid, again = answers[0].receipt, answers[0].replayed
        return SelectedAnswer(self, tuple(answers), columns, tuple(at), paid, again)

    def _computed(self, answers: Sequence[Answer] | None) -> tuple[Any, Sequence[int]]:
        import duckdb

        connection = _calculator(os.getpid()).cursor()
        try:
            for leaf in self.leaves:
                connection.register(leaf.name, leaf.table(answers))
            # Sums and quotients of noisy numbers are doubles, which do not overflow.
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


@cache
def _calculator(process: int) -> Any:
    """Return a DuckDB of this process that reads no file and no variable; each statement has a
    connection of its own, whose tables no other sees. Opening one takes 15 times as long as that.
    """
    import duckdb

    fixed = ("enable_external_access", "python_enable_replacements")
    settings: Any = dict.fromkeys(fixed, False) | {"lock_configuration": True, "threads": 1}
    return duckdb.connect(config=settings)


_EXAMPLE = "SELECT COUNT(*) AS n FROM the table"


def _values(name: str, column: Any) -> Values:
    """Return a column in the form of answers, with decimals as doubles."""
    import pyarrow.types as types

    kind = column.type
    if types.is_decimal(kind) or types.is_floating(kind):
        return Values(name, "double", tuple(column.cast("double").to_pylist()))
    type = "int64" if types.is_integer(kind) else "date32" if types.is_date(kind) else str(kind)
    return Values(name, type, tuple(column.to_pylist()))


@dataclass(frozen=True)
class SelectedAnswer(AnswerTable):
    """The answer to a SQL statement: one table with the names and order that the statement states.

    Args:
        plan: The statement.
        answers: The noisy answers it was computed from, all released by one charge.
        columns: Its columns.
        places: For each row its row in the leaf, where intervals are known.
        receipt: The receipt of the charge, redeemed by this answer alone.
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
        """The first column with known intervals, else the last one."""
        return next((each for each in self.columns if each.name in self.bounded), self.columns[-1])

    def interval_of(self, name: str, confidence: float) -> Ranges:
        """Return low and high ends of a column, row by row: each interval holds the exact number
        with at least that probability. NaN: unknown.

        The exact number is that of the bounded table: rows beyond the bounds are left out, and
        values are clamped.

        Raises:
            DomainError: If there is no such column, or the confidence is outside (0, 1).
        """
        names = [each.name for each in self.columns]
        one_of("name", name, names)
        failure, ends = failure_of(confidence), self.plan.ends
        expression = None if ends is None else ends[names.index(name)]
        if expression is None:
            unknown = (math.nan,) * len(self.columns[0].cells)
            return unknown, unknown
        (leaf,) = self.plan.leaves
        rows = leaf.rows(self.answers)
        used = {each.name for each in expression.find_all(exp.Column) if each.name[0] == "q"}
        level = failure / max(len(used), 1) / (max(len(rows), 1) if self.plan.chosen else 1)

        @cache
        def interval(question: int) -> Ranges:
            answer = self.answers[question]
            return answer.question.interval(answer.design, level, answer.columns)

        both = [
            _outward(expression, partial(self._ends, leaf, rows[at], interval))
            for at in self.places
        ]
        return tuple(low for low, _ in both), tuple(high for _, high in both)

    def _ends(
        self, leaf: Leaf, row: LeafRow, interval: Callable[[int], Ranges], column: Any
    ) -> Ends | None:
        """Return the lower and upper bound of the number in a column of a row of a leaf; None if it
        is not noisy or has no finite bound.
        """
        keys, places, grouping = row
        at = int(column.name[1:])
        if column.name[0] == "k":
            exact = isinstance(keys[at], int | float) and not isinstance(keys[at], bool)
            return (Fraction(keys[at]), Fraction(keys[at])) if exact else None
        offset, name, _ = leaf.columns[at]
        question = grouping.questions[offset]
        number = places.get(question)
        if number is None or self.answers[question].main.name != name:
            return None
        low, high = (float(each[number]) for each in interval(question))
        finite = math.isfinite(low) and math.isfinite(high)
        return (Fraction(low), Fraction(high)) if finite else None

    def texts(self, confidence: float = 0.95, *, most: int | None = None) -> list[list[str]]:
        """Return the rows as text; each number with a known interval gets its error and as many
        digits as that supports.
        """
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


def _outward(expression: Any, of_column: Callable[[Any], Ends | None]) -> tuple[float, float]:
    """Return the interval of an expression, rounded outward; NaN where unknown."""
    try:
        ends = ends_of(expression, of_column)
        low, high = (math.nan, math.nan) if ends is None else map(float, ends)
    except (ZeroDivisionError, OverflowError):
        return math.nan, math.nan
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
