"""An answer to an analyst: its values with its error and the receipt of its charge, or a quote of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from itertools import islice, repeat
from pathlib import Path
from typing import Any, ClassVar

from dpcompose import check
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.ledger import Receipt
from dpcompose.numerics import plain, two_digits, with_error
from dpcompose.pictured import Card
from dpcompose.release.arrow import arrow_table, polars_frame, write
from dpcompose.release.design import Design, Released
from dpcompose.release.question import Interval, Question, Values, key_columns


class AnswerTable(Card, ABC):
    """An answer as a table: released numbers beside their keys, with the ends of those whose error is known."""

    columns: tuple[Values, ...]
    selected: ClassVar[bool] = False
    """Whether its texts have their errors beside their numbers, not in a column of their own."""

    @property
    @abstractmethod
    def main(self) -> Values:
        """The column that the errors and the ends are about."""

    @property
    @abstractmethod
    def bounded(self) -> Sequence[str]:
        """The columns whose ends are known."""

    @abstractmethod
    def interval_of(self, name: str, confidence: float) -> Interval:
        """Both ends of a column, row by row: each holds the exact number with at least that probability; NaN: unknown."""

    @property
    @abstractmethod
    def paid(self) -> Receipt:
        """The charge, redeemed by this answer alone."""

    @property
    def table(self) -> Any:
        """The answer as an Arrow table: keys first; `.to_pandas()` makes a data frame of it."""
        return arrow_table([(each.name, each.type, each.cells) for each in self.columns])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The answer as plain Python values, one mapping a row."""
        names = [each.name for each in self.columns]
        rows = zip(*(each.cells for each in self.columns), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    @property
    def value(self) -> Any:
        """The one number of an answer that is one number.

        Raises:
            DomainError: If the answer has several rows.
        """
        cells = self.main.cells
        if len(cells) != 1:
            raise DomainError("value", f"{len(cells)} rows", "an answer of one row", "See .table")
        return cells[0]

    @property
    def spent(self) -> Mapping[str, Any]:
        """The exact amounts charged, by currency; for a batch, those of all of it."""
        return self.paid.cost

    @property
    def low(self) -> tuple[float, ...]:
        """The low end of the column `main`, row by row, with 95 percent confidence; NaN where none is known."""
        return self.interval(0.95)[0]

    @property
    def high(self) -> tuple[float, ...]:
        """The high end, as `low`."""
        return self.interval(0.95)[1]

    def interval(self, confidence: float) -> Interval:
        """Both ends of the column `main`, row by row: each holds the exact number with that probability.

        For counts and sums they are the released number and its expected error to either side; for means, ratios and
        shares an interval that fails with exactly the probability stated, to the steps of the noise; for variances one
        that fails with at most it. For quantiles nothing is known of it: NaN. Clamping and left-out rows are not in it.

        Args:
            confidence: In (0, 1).

        Raises:
            DomainError: If the confidence is outside (0, 1).
        """
        return self.interval_of(self.main.name, confidence)

    def with_ends(self, confidence: float = 0.95) -> Any:
        """The answer as an Arrow table, with the columns `low` and `high`; with the column's name before, for several.

        Args:
            confidence: In (0, 1), of each row by itself.

        Raises:
            DomainError: If the confidence is outside (0, 1).
        """
        columns = [(each.name, each.type, each.cells) for each in self.columns]
        taken = {each.name for each in self.columns}
        for name in self.bounded:
            prefix = "" if len(self.bounded) == 1 else f"{name}_"
            for end, cells in zip(("low", "high"), self.interval_of(name, confidence), strict=True):
                title = f"{prefix}{end}"
                columns.append((f"{title}_" if title in taken else title, "double", cells))
        return arrow_table(columns)

    def to_pandas(self, confidence: float = 0.95) -> Any:
        """The answer as a pandas data frame, with its ends; see `with_ends`."""
        return self.with_ends(confidence).to_pandas()

    def to_polars(self, confidence: float = 0.95) -> Any:
        """The answer as a polars data frame, with its ends; see `with_ends`.

        Raises:
            DomainError: If the confidence is outside (0, 1).
            MissingExtraError: If polars is not installed.
        """
        return polars_frame(self.with_ends(confidence))

    def write(self, path: str | Path) -> None:
        """Write the table as CSV or Parquet, by the end of the name.

        Raises:
            DomainError: If the name ends otherwise, or the file cannot be written.
        """
        write(self.table, path)


@dataclass(frozen=True)
class Answer(AnswerTable):
    """One answer, released.

    Args:
        question: What was asked.
        columns: The released numbers beside their keys.
        receipt: The charge, redeemed by this answer alone.
        replayed: Whether this is the stored answer of an earlier request with the same key.
    """

    question: Question
    columns: tuple[Values, ...]
    receipt: Receipt
    replayed: bool = False
    design: Design = field(repr=False, kw_only=True)

    @property
    def paid(self) -> Receipt:
        return self.receipt

    @property
    def bounded(self) -> Sequence[str]:
        return (self.main.name,)

    @property
    def main(self) -> Values:
        """The released column that the errors and the ends are about."""
        return self.columns[len(self.design.aggregation.by) + self.question.error_column]

    def texts(self, confidence: float = 0.95, *, most: int | None = None) -> list[list[str]]:
        """The rows for people: the number of `main` to as many places as its error, and last the error, to two digits.

        An error of ranks says nothing of places: its number is as it was released.

        Args:
            confidence: In (0, 1), of each row by itself.
            most: At most so many rows; by default all.

        Raises:
            DomainError: If the confidence is outside (0, 1), or `most` is no count.
        """
        most = None if most is None else min(check.count("most", most), self.table.num_rows)
        found, column = self.expected_error(confidence), self.columns.index(self.main)
        errors, ranked = (
            found if isinstance(found, tuple) else repeat(found),
            self.question.in_ranks,
        )
        rows, texts = zip(*(each.cells for each in self.columns), strict=True), list[list[str]]()
        for row, error in islice(zip(rows, errors, strict=False), most):
            number, reach = with_error(row[column], error)
            cells = [
                number if at == column and not ranked else text_of(cell)
                for at, cell in enumerate(row)
            ]
            texts.append([*cells, f"(rank ± {two_digits(error)})" if ranked else f"± {reach}"])
        return texts

    def interval_of(self, name: str, confidence: float) -> Interval:
        return self.question.interval(self.design, failure_of(confidence), self.columns)

    def plot(self, *, axes: Any = None, confidence: float = 0.95) -> Any:
        """A bar for each row of the column `main`, with its interval; returns the matplotlib axes.

        Args:
            axes: Where to draw; by default a new picture.
            confidence: In (0, 1).

        Raises:
            DomainError: If the confidence is outside (0, 1).
        """
        if axes is not None and "matplotlib" not in {
            each.__module__.split(".")[0] for each in type(axes).__mro__
        }:
            raise DomainError("axes", axes, "matplotlib axes, or None")
        low, high = self.interval(confidence)
        before = len(self.design.aggregation.by)
        shown = self.main
        series = self.to_pandas(confidence).iloc[:, before + self.question.error_column]
        # Bins and shares of a question stand beside the number; a row alone has no name.
        named = [
            each.cells
            for each in self.columns[: before + 2]
            if each is not shown and len(shown.cells) > 1
        ]
        labels = [", ".join(str(cell) for cell in row) for row in zip(*named, strict=True)] or [
            ""
        ] * len(shown.cells)
        series.index = labels
        ends = [
            [max(cell - end, 0.0) for cell, end in zip(shown.cells, low, strict=True)],
            [max(end - cell, 0.0) for cell, end in zip(shown.cells, high, strict=True)],
        ]
        drawn = series.plot.barh(ax=axes, xerr=ends, xlabel=shown.name)
        drawn.invert_yaxis()
        return drawn

    def expected_error(self, confidence: float) -> float | tuple[float, ...]:
        """How far the noise is from 0 at most with that probability, for each released number by itself.

        For counts, sums and histograms the exact quantile of the noise. For a mean a bound, one for each row, that
        follows from the released count. For a quantile a bound in rows. Clamping and left-out rows are not in it.

        Args:
            confidence: In (0, 1).

        Raises:
            DomainError: If the confidence is outside (0, 1).
        """
        return self.question.errors(self.design, failure_of(confidence), self.columns)


def text_of(cell: Any) -> str:
    """A cell for people."""
    if cell is None or isinstance(cell, bool):
        return "NULL" if cell is None else str(cell).lower()
    return plain(cell) if isinstance(cell, (int, float)) else str(cell)


def answered(design: Design, question: Question, drawn: Released, receipt: Receipt) -> Answer:
    """The answer of a design that was drawn."""
    drawn = question.ordered(drawn)
    released = question.columns(design, drawn)
    keys = key_columns(design.table, design.aggregation.by, drawn.keys)
    times = len(released[0].cells) // len(drawn.keys) if drawn.keys else 1
    spread = tuple(Values(each.name, each.type, _repeated(each.cells, times)) for each in keys)
    return Answer(
        question, (*spread, *_renamed(released, design.aggregation.by)), receipt, design=design
    )


def written(answers: Sequence[Answer]) -> list[object]:
    """Answers as plain values that JSON holds."""
    return [[_document(values) for values in answer.columns] for answer in answers]


def stored(
    documents: Sequence[Any],
    designs: Sequence[Design],
    questions: Sequence[Question],
    receipt: Receipt,
) -> tuple[Answer, ...]:
    """The answers that `written` wrote."""
    return tuple(
        Answer(
            question,
            tuple(_values(each) for each in document),
            receipt,
            replayed=True,
            design=design,
        )
        for document, design, question in zip(documents, designs, questions, strict=True)
    )


def labeled(answer: Answer) -> Answer:
    """The answer with its columns under the names that its question has for them; others give way."""
    labels, columns = answer.question.labels, list[Values]()
    for each in answer.columns:
        name = labels.get(each.name, each.name)
        while each.name not in labels and name in labels.values():
            name += "_"
        columns.append(replace(each, name=name))
    return replace(answer, columns=tuple(columns))


def failure_of(confidence: float) -> float:
    """1 - confidence, which is > 0: next to 1 the digits that matter are those of the failure probability."""
    return 1 - check.open_probability("confidence", confidence)


def _repeated(cells: tuple[Any, ...], times: int) -> tuple[Any, ...]:
    return tuple(cell for cell in cells for _ in range(times))


def _renamed(released: Sequence[Values], by: Sequence[str]) -> tuple[Values, ...]:
    """A released column whose name is already that of a key gets an underscore."""
    return tuple(
        Values(f"{each.name}_" if each.name in by else each.name, each.type, each.cells)
        for each in released
    )


def _document(values: Values) -> dict[str, object]:
    return {
        "name": values.name,
        "type": values.type,
        "cells": [_plain(cell) for cell in values.cells],
    }


def _plain(cell: Any) -> Any:
    return cell.isoformat() if isinstance(cell, date) else cell


def _values(document: Mapping[str, Any]) -> Values:
    cells = document["cells"]
    if document["type"] == "date32":
        cells = [None if cell is None else date.fromisoformat(cell) for cell in cells]
    return Values(document["name"], document["type"], tuple(cells))


BIAS = "Clamping and left-out rows move the answer too; by how much depends on the data, so it is not quoted."
REPLACED = " The budget holds for replacing a unit, which changes two: the price of a spend of epsilon 1 is about 2."


@dataclass(frozen=True)
class Quote(Card):
    """The price of a question in the currencies of a scope, and the error of its noise.

    Args:
        question: What would be asked.
        price: What it would cost, by currency; exact.
        mechanism: What would be charged, and would run.
        fits: Whether it fits in what is left now.
        bias: What is not in the error, and why the price is not the spend, where it is not.
        left: What is left now, by currency.
    """

    question: Question
    price: Mapping[str, Any]
    mechanism: Composable
    fits: bool
    bias: str = BIAS
    left: Mapping[str, Any] = field(default_factory=dict[str, Any])
    design: Design = field(repr=False, kw_only=True)

    def expected_error(self, confidence: float, *, count: int | None = None) -> float:
        """How far the noise is from 0 at most with that probability, as `Answer.expected_error` says.

        Args:
            confidence: In (0, 1).
            count: For a mean, the number of rows that the answer would state; its error is a function of it.

        Raises:
            DomainError: If the confidence is outside (0, 1), or a mean is quoted without a count.
        """
        failure = 1 - check.open_probability("confidence", confidence)
        needed = not self.question.foreseen and self.question.kind != "synthetic data"
        rows = (check.count("count", count, least=1),) if needed or count is not None else ()
        found = self.question.errors(self.design, failure, (Values("count", "int64", rows),))
        return found[0] if isinstance(found, tuple) else found

    @property
    def times(self) -> int:
        """How many questions of this price fit in what is left, if each is charged this price."""
        return max(int(self._part), 0)

    def error_of_the_rest(self, confidence: float, *, count: int | None = None) -> float:
        """The expected error if all that is left were spent on this question, by prices that grow with the spend.

        A price in rho or of Gaussian noise within an epsilon grows otherwise: there it is an estimate.

        Args:
            confidence: In (0, 1).
            count: As for `expected_error`.

        Raises:
            DomainError: As `expected_error`, or if nothing is left.
        """
        if not self._part > 0:
            raise DomainError("left", dict(self.left), "something left to spend")
        spend, most = self.design.spend, {"epsilon": 100, "rho": 1000}
        amount = min(spend.amount * self._part, Fraction(most[spend.currency]))
        named = {spend.currency: amount} | ({"delta": spend.delta} if spend.delta else {})
        design = self.question.bought(named).design(self.design.table)
        return replace(self, design=design).expected_error(confidence, count=count)

    @property
    def _part(self) -> Fraction:
        """The rest as a multiple of the price."""
        parts = [
            self.left[name].fraction / price.fraction
            for name, price in self.price.items()
            if price.fraction
        ]
        return min(parts, default=Fraction(0))
