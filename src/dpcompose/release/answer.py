"""Answers to questions, quotes of their price and error, and explanations of why they cost what
they do.

An `Answer` has values, their error and the receipt of the charge. A `Quote` states price and error
beforehand. This file also finds the least spend that reaches a wanted error.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
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
from dpcompose.pictured import Card, Plot
from dpcompose.release.arrow import arrow_table, polars_frame, write
from dpcompose.release.design import Design, Released
from dpcompose.release.question import Interval, Question, Values, key_columns
from dpcompose.release.table import Table
from dpcompose.values import Adjacency


class AnswerTable(Card, ABC):
    """An answer as a table: released numbers beside their keys, with confidence intervals where the
    error is known.
    """

    columns: tuple[Values, ...]
    receipt: Receipt
    selected: ClassVar[bool] = False
    """Whether `texts` shows errors beside their numbers instead of in a separate column."""

    @property
    @abstractmethod
    def main(self) -> Values:
        """The column that the errors and the intervals describe."""

    @property
    @abstractmethod
    def bounded(self) -> Sequence[str]:
        """The columns whose intervals are known."""

    @abstractmethod
    def interval_of(self, name: str, confidence: float) -> Interval:
        """Return the low and the high end for each row of a column. Each interval holds the number
        without noise with at least the probability `confidence`; ends that are not known are NaN.
        """

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
        """The number of an answer that is a single number.

        Raises:
            DomainError: If the answer has several rows.
        """
        cells = self.main.cells
        if len(cells) != 1:
            raise DomainError("value", f"{len(cells)} rows", "an answer of one row", "See .table")
        return cells[0]

    @property
    def spent(self) -> Mapping[str, Any]:
        """The exact amounts charged, by currency; for a batch, those of the whole batch."""
        return self.receipt.cost

    @property
    def low(self) -> tuple[float, ...]:
        """The low end of the column `main`, row by row, with 95 percent confidence; NaN where
        unknown.
        """
        return self.interval(0.95)[0]

    @property
    def high(self) -> tuple[float, ...]:
        """The high end of the column `main`, as `low`."""
        return self.interval(0.95)[1]

    def interval(self, confidence: float) -> Interval:
        """Low and high ends of the column `main`, row by row: each interval holds the exact number
        with that probability.

        For counts and sums they are the released number minus and plus its expected error. For
        means, ratios and shares the interval fails with exactly the stated probability, up to steps
        of the noise; for variances with at most it. For quantiles nothing is known: NaN. Clamping
        and rows left out by bounds are not included.

        Args:
            confidence: In (0, 1).

        Raises:
            DomainError: If the confidence is outside (0, 1).
        """
        return self.interval_of(self.main.name, confidence)

    def with_ends(self, confidence: float = 0.95) -> Any:
        """The answer as an Arrow table with the columns `low` and `high`; with several main columns
        each name is a prefix.

        Args:
            confidence: In (0, 1), for each row separately.

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
        """Write the table as CSV or Parquet; the end of the file name decides.

        Raises:
            DomainError: If the name has another ending, or the file cannot be written.
        """
        write(self.table, path)


@dataclass(frozen=True)
class Answer(AnswerTable):
    """One released answer.

    Args:
        question: The question that was asked.
        columns: The released numbers beside their keys.
        receipt: The receipt of the charge, redeemed by this answer alone.
        replayed: Whether this is the stored answer of an earlier request with the same key.
    """

    question: Question
    columns: tuple[Values, ...]
    receipt: Receipt
    replayed: bool = False
    design: Design = field(repr=False, kw_only=True)

    @property
    def answers(self) -> tuple[Answer]:
        """The answers from which this one was computed: itself."""
        return (self,)

    @property
    def document(self) -> list[object]:
        """The columns as plain values for JSON."""
        return _documented(self.columns)

    @property
    def bounded(self) -> Sequence[str]:
        return (self.main.name,)

    @property
    def main(self) -> Values:
        """The released column that the errors and the intervals describe."""
        return self.columns[len(self.design.aggregation.by) + self.question.error_column]

    def texts(self, confidence: float = 0.95, *, most: int | None = None) -> list[list[str]]:
        """The rows as text: the number of `main` with as many digits as its error supports, and
        last the error, to two digits.

        An error in ranks does not limit digits; such a number is shown as released.

        Args:
            confidence: In (0, 1), for each row separately.
            most: The largest number of rows; by default all.

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
        """Draw a bar for each row of the column `main`, with its interval; return the matplotlib
        axes.

        Args:
            axes: Where to draw; by default a new figure.
            confidence: In (0, 1).

        Raises:
            DomainError: If the confidence is outside (0, 1).
        """
        origins = {each.__module__.split(".")[0] for each in type(axes).__mro__}
        if axes is not None and "matplotlib" not in origins:
            raise DomainError("axes", axes, "matplotlib axes, or None")
        (picture,) = Plot.find("pictures")(self, confidence=confidence)
        return picture.draw(axes)

    def expected_error(self, confidence: float) -> float | tuple[float, ...]:
        """The noise of each released number is at most this far from 0 with that probability, each
        separately.

        For counts, sums and histograms this is the exact quantile of the noise. For a mean it is a
        bound for each row that follows from the released count. For a quantile it is a bound in
        rows. Clamping and rows left out by bounds are not included.

        Args:
            confidence: In (0, 1).

        Raises:
            DomainError: If the confidence is outside (0, 1).
        """
        return self.question.errors(self.design, failure_of(confidence), self.columns)


def text_of(cell: Any) -> str:
    """Return the text of a cell for people."""
    if cell is None or isinstance(cell, bool):
        return "NULL" if cell is None else str(cell).lower()
    return plain(cell) if isinstance(cell, (int, float)) else str(cell)


def answered(design: Design, question: Question, drawn: Released) -> list[object]:
    """Return the answer of a design from its drawn values, as plain values.

    A released column that has the name of a key gets an underscore.
    """
    drawn, by = question.ordered(drawn), design.aggregation.by
    released = [
        replace(each, name=f"{each.name}_" if each.name in by else each.name)
        for each in question.columns(design, drawn)
    ]
    times = len(released[0].cells) // len(drawn.keys) if drawn.keys else 1
    keys = [
        replace(each, cells=tuple(cell for cell in each.cells for _ in range(times)))
        for each in key_columns(design.table, by, drawn.keys)
    ]
    return _documented([*keys, *released])


def stored(
    documents: Sequence[Any], designs: Sequence[Design], questions: Sequence[Question],
    receipt: Receipt, *, replayed: bool = True,
) -> tuple[Answer, ...]:  # fmt: skip
    """Return the answers that were stored as these documents."""
    return tuple(
        Answer(question, tuple(map(_values, document)), receipt, replayed, design=design)
        for document, design, question in zip(documents, designs, questions, strict=True)
    )


def labeled(answer: Answer) -> Answer:
    """Rename the answer's columns to the labels of its question; other columns of the same name get
    an underscore.
    """
    labels, columns = answer.question.labels, list[Values]()
    for each in answer.columns:
        name = labels.get(each.name, each.name)
        while each.name not in labels and name in labels.values():
            name += "_"
        columns.append(replace(each, name=name))
    return replace(answer, columns=tuple(columns))


def failure_of(confidence: float) -> float:
    """Return 1 - confidence, which is > 0. Near confidence 1 only the failure probability has
    enough digits.
    """
    return 1 - check.open_probability("confidence", confidence)


def _documented(columns: Sequence[Values]) -> list[object]:
    """Return columns as plain values, which `_values` reads."""
    return [
        {
            "name": each.name,
            "type": each.type,
            "cells": [cell.isoformat() if isinstance(cell, date) else cell for cell in each.cells],
        }
        for each in columns
    ]


def _values(document: Mapping[str, Any]) -> Values:
    cells = document["cells"]
    if document["type"] == "date32":
        cells = [None if cell is None else date.fromisoformat(cell) for cell in cells]
    return Values(document["name"], document["type"], tuple(cells))


_BIAS = "Clamping and left-out rows move the answer too; by how much depends on the data, so it is not quoted."
_REPLACED = " The budget holds for replacing a unit, which changes two: the price of a spend of epsilon 1 is about 2."


def bias_under(adjacency: Adjacency) -> str:
    """Return what the error of a quote does not include, for a budget under this adjacency."""
    return _BIAS + (_REPLACED if adjacency is Adjacency.REPLACE else "")


@dataclass(frozen=True)
class Quote(Card):
    """The price of a question in the currencies of a scope, and the error of its noise.

    Args:
        question: The question that would be asked.
        price: The exact amount that it would cost, by currency.
        mechanism: The mechanism that would be charged and would run.
        fits: Whether the price fits in what is left now.
        bias: What the error does not include, and why the price differs from the spend, if it does.
        left: What is left now, by currency.
    """

    question: Question
    price: Mapping[str, Any]
    mechanism: Composable
    fits: bool
    bias: str = _BIAS
    left: Mapping[str, Any] = field(default_factory=dict[str, Any])
    design: Design = field(repr=False, kw_only=True)

    def expected_error(self, confidence: float, *, count: int | None = None) -> float:
        """The noise is at most this far from 0 with that probability, as in
        `Answer.expected_error`.

        Args:
            confidence: In (0, 1).
            count: For a mean, the number of rows that the answer would state; the error depends on
                it.

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
        """How many charges of this price fit in what is left."""
        return max(int(self._part), 0)

    def error_of_the_rest(self, confidence: float, *, count: int | None = None) -> float:
        """The expected error if everything left were spent on this question, for prices
        proportional to the spend.

        A price in rho, or of Gaussian noise in epsilon, is not proportional: there it is an
        estimate.

        Args:
            confidence: In (0, 1).
            count: As for `expected_error`.

        Raises:
            DomainError: As `expected_error`, or if nothing is left.
        """
        if not self._part > 0:
            raise DomainError("left", dict(self.left), "something left to spend")
        spend = self.design.spend
        amount = min(spend.amount * self._part, Fraction(_LARGEST[spend.currency]))
        named = replace(spend, amount=amount).amounts()
        design = self.question.bought(named).design(self.design.table)
        return replace(self, design=design).expected_error(confidence, count=count)

    @property
    def _part(self) -> Fraction:
        """The remaining budget as a multiple of the price; the smallest over the currencies."""
        parts = [
            self.left[name].fraction / price.fraction
            for name, price in self.price.items()
            if price.fraction
        ]
        return min(parts, default=Fraction(0))


EXPLAIN = re.compile(r"\s*explain\s+", re.IGNORECASE)
LEAST, DECADES = -9, 12
"""Amounts are searched from 10^LEAST up over DECADES powers of ten, to three digits."""
_LARGEST = {"epsilon": 100, "rho": 1000}


def spend_within(question: Question, table: Table, currency: str) -> Mapping[str, Any] | None:
    """Return the least spend, to three digits, that reaches the question's error; None if no amount
    of that currency does.

    Raises:
        DomainError: If the error, the confidence or the other part of the spend is outside its
            domain, or the question's error is known only with its answer.
    """
    most = check.positive("error", question.error)
    failure = 1 - check.open_probability("confidence", question.confidence)
    given = dict(cast("Mapping[str, Any]", question.spend or {}))
    if not set(given) <= {"delta"}:
        raise DomainError(
            "spend", given, "only a delta: with error= the epsilon or rho is computed"
        )
    if not question.foreseen:
        domain = f"nothing for a {question.kind}, whose error follows from its answer"
        raise DomainError(
            "error", question.error, domain, "Name a spend; a quote states the error for a count"
        )

    def error(index: int) -> float:
        spend = {currency: _amount(index)} | given
        found = question.errors(question.bought(spend).design(table), failure, ())
        return cast("float", found)

    high = 900 * DECADES
    while _amount(high) > _LARGEST[currency]:
        high -= 900
    if not error(high) <= most:
        return None
    least = bisect_left(range(high), True, key=lambda index: error(index) <= most)
    return {currency: _amount(least)} | given


def _amount(index: int) -> Fraction:
    """Return the number at this index among those with three significant digits, from 10^LEAST upward."""
    decade, digits = divmod(index, 900)
    return (100 + digits) * Fraction(10) ** (LEAST + decade - 2)


def cheapest(question: Question, table: Table, price: Any) -> Question:
    """Return the question with the least spend that reaches its error, in epsilon or rho, whichever
    has the smaller price.

    Raises:
        DomainError: If no spend is enough, or as in `spend_within`.
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
            "error", question.error, "an error that some spend can reach", "Allow a larger error"
        )
    return min(found, key=lambda each: each[0])[1]


_SIX = Context(prec=6, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Explanation(Card):
    """The effects and costs of questions, derived from schema, bounds and ledger alone.

    Nothing is charged, and no row is read. `str()` gives it as text.

    Args:
        quotes: One quote for each question.
        scope: The scope that would be charged.
    """

    quotes: tuple[Quote, ...]
    scope: str

    @staticmethod
    def is_requested(text: object) -> bool:
        """Whether a SQL statement begins with EXPLAIN."""
        return isinstance(text, str) and EXPLAIN.match(text) is not None

    @property
    def rows(self) -> list[dict[str, str]]:
        """One mapping for each question: question, table, unit, stability, noise, price."""
        return [self._row(quote) for quote in self.quotes]

    def _row(self, quote: Quote) -> dict[str, str]:
        design, fitting = quote.design, "" if quote.fits else ", more than is left"
        steps = [*design.steps, *([] if design.threshold is None else [design.threshold])]
        return {
            "question": _question_text(quote),
            "table": "; ".join([design.table.name, *design.table.steps]),
            "unit": f"{', '.join(design.table.roots[0].unit)}: neighbors differ in all rows of one",
            "stability": _stability(quote),
            "noise": "; ".join(_noise(step.plain()) for step in steps),
            "price": f"{_price(quote.price)} to {self.scope}{fitting}",
        }

    def in_words(self, confidence: float) -> str:
        """Return one line for a decision maker: the price, the error of each number, and what is
        left before the charge.
        """
        errors = list[str]()
        for quote in self.quotes:
            question, reach = quote.question, "as its answer says"
            if question.foreseen:
                reach = two_digits(quote.expected_error(confidence))
            errors.append(f"{question.kind} ± {reach}{' in rank' if question.in_ranks else ''}")
        whole = {
            name: sum((each.price[name].fraction for each in self.quotes), Fraction(0))
            for name in self.quotes[0].price
        }
        main = next((name for name in ("epsilon", "rho") if whole.get(name)), "")
        left, part = self.quotes[0].left[main].fraction if main else 0, "more than is left"
        if 0 < whole.get(main, 0) <= left:
            part = f"{two_digits(float(100 * whole[main] / left))} % of what is left"
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


def _noise(plain: Mapping[str, Any]) -> str:
    """Describe one step of a mechanism in words, with how far one unit moves its exact input."""
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
    """Return a number with six significant digits, rounded up."""
    exact = Fraction(str(value)) if not isinstance(value, Fraction) else value
    return f"{_SIX.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize():g}"
