"""The unit, stability, noise and price of questions, stated before they are asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from dpcompose.release.answer import Quote

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
                "question": _asked(quote),
                "table": "; ".join([str(quote.design.plain["table"]), *quote.design.table.steps]),
                "unit": f"{', '.join(quote.design.table.roots[0].unit)}: neighbors differ in all rows of one",
                "stability": _stability(quote),
                "noise": "; ".join(_noise(plain) for plain in _steps(quote)),
                "price": f"{_price(quote.price)} to {self.scope}{'' if quote.fits else ', more than is left'}",
            }
            for quote in self.quotes
        ]

    def __str__(self) -> str:
        return "\n".join(
            f"{name:10} {text}" if name != "question" else text
            for row in self.rows
            for name, text in row.items()
        )


def _asked(quote: Quote) -> str:
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
