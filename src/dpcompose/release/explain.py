"""The cost of questions and its reasons: the least spend for an error, and the explanation of a question."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, cast

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.numerics import two_digits
from dpcompose.release.answer import Quote
from dpcompose.release.question import Question
from dpcompose.release.table import Table

EXPLAIN = re.compile(r"\s*explain\s+", re.IGNORECASE)
LEAST, DECADES = -9, 12
"""Amounts are searched from 10^-9 up, over so many powers of ten, to three digits."""
_LARGEST = {"epsilon": 100, "rho": 1000}


def explains(text: object) -> bool:
    """Whether a statement begins with EXPLAIN."""
    return isinstance(text, str) and EXPLAIN.match(text) is not None


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
