"""Accuracy first: the least spend at which the noise of an answer stays within a stated error."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.question import Question
from dpcompose.release.table import Table

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
    given = {} if question.spend is None else dict(question.spend)
    if not set(given) <= {"delta"}:
        raise DomainError(
            "spend", given, "nothing but a delta, where an error is asked for: the rest is found"
        )
    if not question.foreseen:
        domain = f"nothing for a {question.kind}, whose error follows from its answer"
        raise DomainError(
            "error", question.error, domain, "Name a spend; the quote says the error for a count"
        )

    def error(place: int) -> float:
        spend = {currency: _amount(place)} | given
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


def _amount(place: int) -> Fraction:
    """The numbers of three digits, in their order."""
    decade, digits = divmod(place, 900)
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
