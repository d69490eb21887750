"""An answer to an analyst: its values with its error and the receipt of its charge, or a quote of both.

What questions cost, and why: the least spend for an error, and the explanation of a question.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import islice, repeat
from pathlib import Path
from typing import Any, ClassVar, cast

from dpcompose import check
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Receipt
from dpcompose.numerics import plain, two_digits, with_error
from dpcompose.pictured import Card
from dpcompose.release.arrow import arrow_table, polars_frame, write
from dpcompose.release.design import Design, Released
from dpcompose.release.question import Interval, Question, Values, key_columns
from dpcompose.release.table import Table


class AnswerTable(Card, ABC):
    """An answer as a table: released numbers beside their keys, with the ends of those whose error is known."""

    columns: tuple[Values, ...]
    receipt: Receipt
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
        return self.receipt.cost

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
    def answers(self) -> tuple[Answer]:
        """The answers that it was computed of: itself."""
        return (self,)

    @property
    def document(self) -> list[object]:
        """Its columns as plain values that JSON holds."""
        return [
            {"name": each.name, "type": each.type, "cells": [_plain(cell) for cell in each.cells]}
            for each in self.columns
        ]

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


def stored(
    documents: Sequence[Any],
    designs: Sequence[Design],
    questions: Sequence[Question],
    receipt: Receipt,
) -> tuple[Answer, ...]:
    """The answers whose documents these are."""
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
        named = replace(spend, amount=amount).amounts()
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


EXPLAIN = re.compile(r"\s*explain\s+", re.IGNORECASE)
LEAST, DECADES = -9, 12
"""Amounts are searched from 10^-9 up, over so many powers of ten, to three digits."""
_LARGEST = {"epsilon": 100, "rho": 1000}


def spend_within(question: Question, table: Table, currency: str) -> Mapping[str, Any] | None:
    """The least spend, to three digits, with which the question's error holds; None if none of that currency does.

    Raises:
        DomainError: If the error, the confidence or what is spent beside it is outside its domain, or the question's
            error is known only with its answer.
    """
    most = check.positive("error", question.error)
    failure = 1 - check.open_probability("confidence", question.confidence)
    given = dict(cast("Mapping[str, Any]", question.spend or {}))
    if not set(given) <= {"delta"}:
        raise DomainError(
            "spend", given, "nothing but a delta, where an error is asked for: the rest is found"
        )
    if not question.foreseen:
        domain = f"nothing for a {question.kind}, whose error follows from its answer"
        raise DomainError(
            "error", question.error, domain, "Name a spend; the quote says the error for a count"
        )

    def error(index: int) -> float:
        spend = {currency: _amount(index)} | given
        found = question.errors(question.bought(spend).design(table), failure, ())
        return cast("float", found)

    low, high = 0, 900 * DECADES
    while _amount(high) > _LARGEST[currency]:
        high -= 900
    if not error(high) <= most:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= most else (middle + 1, high)
    return {currency: _amount(low)} | given


def _amount(index: int) -> Fraction:
    """The numbers of three digits, in their order."""
    decade, digits = divmod(index, 900)
    return (100 + digits) * Fraction(10) ** (LEAST + decade - 2)


def cheapest(question: Question, table: Table, price: Any) -> Question:
    """The question with the spend found for its error: in epsilon or in rho, whichever has the smaller price.

    Raises:
        DomainError: If no spend is enough, or as `spend_within`.
    """
    found: list[tuple[Any, Question]] = []
    for currency in _LARGEST:
        try:
            spend = spend_within(question, table, currency)
            if spend is None:
                continue
            asked = question.bought(spend)
            found.append((price(asked), asked))
        except UnsupportedError:
            continue
    if not found:
        raise DomainError(
            "error", question.error, "an error that some spend reaches here", "Ask for a larger one"
        )
    return min(found, key=lambda each: each[0])[1]


_SIX = Context(prec=6, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Explanation:
    """Effects and costs of questions, from the schema, the bounds and the ledger alone.

    Nothing is charged, and no row is looked at. `str()` gives it as text.

    Args:
        quotes: One for each question, with its design.
        scope: The scope that would be charged.
    """

    quotes: tuple[Quote, ...]
    scope: str

    @staticmethod
    def is_requested(text: object) -> bool:
        """Whether a statement begins with EXPLAIN."""
        return isinstance(text, str) and EXPLAIN.match(text) is not None

    @property
    def rows(self) -> list[dict[str, str]]:
        """One mapping for each question: question, table, unit, stability, noise, price."""
        return [
            {
                "question": _question_text(quote),
                "table": "; ".join([str(quote.design.plain["table"]), *quote.design.table.steps]),
                "unit": f"{', '.join(quote.design.table.roots[0].unit)}: neighbors differ in all rows of one",
                "stability": _stability(quote),
                "noise": "; ".join(_noise(plain) for plain in _steps(quote)),
                "price": f"{_price(quote.price)} to {self.scope}{'' if quote.fits else ', more than is left'}",
            }
            for quote in self.quotes
        ]

    def in_words(self, confidence: float) -> str:
        """One line for whoever decides: the price, the error of each number, and what is left before it."""
        errors = list[str]()
        for quote in self.quotes:
            known = quote.question.foreseen
            reach = (
                f"± {two_digits(quote.expected_error(confidence))}"
                if known
                else "± as its answer says"
            )
            errors.append(
                f"{quote.question.kind} {reach}{' in rank' if quote.question.in_ranks else ''}"
            )
        whole = {
            name: sum((each.price[name].fraction for each in self.quotes), Fraction(0))
            for name in self.quotes[0].price
        }
        main = next((name for name in ("epsilon", "rho") if whole.get(name)), "")
        share = (
            whole[main] / self.quotes[0].left[main].fraction
            if main and self.quotes[0].left[main].fraction
            else None
        )
        part = (
            "more than is left"
            if share is None or share > 1
            else f"{two_digits(float(100 * share))} % of what is left"
        )
        return f"Price: {main} {_rounded(whole.get(main, 0))}, {part}; {', '.join(errors)} at {100 * confidence:g} %"

    def __str__(self) -> str:
        return "\n".join(
            f"{name:10} {text}" if name != "question" else text
            for row in self.rows
            for name, text in row.items()
        )


def _question_text(quote: Quote) -> str:
    aggregation = quote.design.aggregation
    if aggregation.among is not None:
        keys = f"{math.prod(len(values) for values in aggregation.among):,} public cells"
    else:
        keys = (
            "private keys"
            if aggregation.public is None
            else f"{len(aggregation.public):,} public keys"
        )
    return quote.question.kind + (
        f" by {', '.join(aggregation.by)}, {keys}" if aggregation.by else ""
    )


def _stability(quote: Quote) -> str:
    bounds = quote.design.table.bounds.within(quote.design.aggregation.groups)
    if not quote.design.table.unit:
        return f"rows belong to no unit after a join on another key; one unit moves at most {bounds.rows:,} of them"
    kept = f"of one unit at most {bounds.rows:,} rows are kept, in at most {bounds.groups:,} groups"
    return f"{kept}, {bounds.rows_per_group:,} in each"


def _steps(quote: Quote) -> list[dict[str, object]]:
    threshold = quote.design.threshold
    return [step.plain() for step in quote.design.steps] + (
        [] if threshold is None else [threshold.plain()]
    )


def _noise(plain: Mapping[str, Any]) -> str:
    """One step in words, with how far one unit moves the exact numbers that it takes."""
    names = {"scale": "scale", "sigma": "sigma", "threshold": "keys out from"}
    size = ", ".join(
        f"{word} {_rounded(plain[name])}" for name, word in names.items() if name in plain
    )
    moves = {"l1": "L1", "l2 squared": "L2 squared", "change": "a score"}
    change = ", ".join(f"{word} {plain[name]:,}" for name, word in moves.items() if name in plain)
    return f"{plain.get('noise', plain.get('selection', 'steps'))}, {size}; one unit moves {change}"


def _price(price: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {_rounded(amount.fraction)}" for name, amount in price.items() if amount.fraction
    )


def _rounded(value: Any) -> str:
    """A number with six digits, rounded up."""
    exact = Fraction(str(value)) if not isinstance(value, Fraction) else value
    return f"{_SIX.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize():g}"
