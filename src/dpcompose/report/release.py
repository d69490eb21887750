"""The page and the document of released answers, and of quotes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpcompose.numerics import two_digits
from dpcompose.report.layout import Heading, Page, PageTable, headings
from dpcompose.report.ledger import at_least, at_most, listed
from dpcompose.report.number import members

if TYPE_CHECKING:
    from dpcompose.release import Answer, Quote

MOST_ROWS = 40


def release_page(
    answers: Sequence[Answer],
    *,
    confidence: float = 0.95,
    left: Mapping[str, Any] | None = None,
    title: str = "",
    width: int = 24,
) -> Page:
    """Answers for people: each number with the error of its noise, and a bar with that error."""
    receipt = answers[0].receipt
    spent = listed(receipt.cost, at_least)
    again = "  (stored: the same key was asked before)" if answers[0].replayed else ""
    facts = (
        ("charged", f"{spent} to {receipt.scope}, entry {receipt.sequence}{again}"),
        *([] if left is None else [("left", listed(left, at_most))]),
        ("key", receipt.key),
    )
    tables = tuple(_table(answer, confidence, width) for answer in answers)
    notes = (
        f"Errors are those of the noise, with probability {confidence:g} for each number by itself. Numbers are "
        "rounded to the last digit of their errors; --json and --out have all of their digits.",
    )
    headline = f"{len(answers)} answer{'s' * (len(answers) != 1)}"
    return Page(title, headline, "plain", facts, tables, notes)


def release_document(
    answers: Sequence[Answer], *, confidence: float, left: Mapping[str, Any]
) -> dict[str, Any]:
    """Answers for programs."""
    receipt = answers[0].receipt
    return {
        "charged": {name: str(amount) for name, amount in receipt.cost.items()},
        "left": {name: str(amount) for name, amount in left.items()},
        "receipt": members(receipt, "scope sequence key hash"),
        "replayed": answers[0].replayed,
        "answers": [_document(answer, confidence) for answer in answers],
    }


def quote_page(
    quotes: Sequence[Quote], *, confidence: float = 0.95, left: Mapping[str, Any] | None = None
) -> Page:
    """A page for quotes: the price of each question, the error of its answer, its sensitivity, and whether it fits."""
    columns = headings("question", "~price", ">error", "fits")
    rows = tuple(_quoted(quote, confidence) for quote in quotes)
    facts = (("left", listed(quotes[0].left if left is None else left, at_most)),)
    fit = all(quote.fits for quote in quotes)
    headline = (
        "Nothing was charged"
        if fit
        else "Not all of this fits in what is left; nothing was charged"
    )
    notes = (
        f"Errors hold with probability {confidence:g} for each number by itself.",
        quotes[0].bias,
    )
    said = ("question", "unit", "stability", "noise")
    reasons = tuple(tuple(row[name] for name in said) for row in _explained(quotes))
    reasoned = PageTable(
        "Explained", tuple(Heading(name, wrap=name != "question") for name in said), reasons
    )
    return Page(
        "",
        headline,
        "plain" if fit else "bad",
        facts,
        (PageTable("Quotes", columns, rows), reasoned),
        notes,
    )


def quote_document(
    quotes: Sequence[Quote], *, confidence: float, left: Mapping[str, Any]
) -> dict[str, Any]:
    """Quotes for programs; where the error follows from the answer, as that of a mean from its count, it is null."""
    return {
        "left": {name: str(amount) for name, amount in left.items()},
        "quotes": [
            {
                "question": quote.question.kind,
                "price": {name: str(amount) for name, amount in quote.price.items()},
                "fits": quote.fits,
                "error": {"confidence": confidence, "at most": _error(quote, confidence)},
                **{name: row[name] for name in ("unit", "stability", "noise")},
            }
            for quote, row in zip(quotes, _explained(quotes), strict=True)
        ],
    }


def _explained(quotes: Sequence[Quote]) -> list[dict[str, str]]:
    from dpcompose.release import Explanation

    return Explanation(tuple(quotes), "").rows


def _quoted(quote: Quote, confidence: float) -> tuple[str, ...]:
    price = listed(quote.price, at_least)
    error = _error(quote, confidence)
    unit = " ranks" if quote.question.in_ranks else ""
    shown = "follows from the answer" if error is None else f"{two_digits(error)}{unit}"
    return quote.question.kind, price, shown, "yes" if quote.fits else "no"


def _error(quote: Quote, confidence: float) -> float | None:
    return quote.expected_error(confidence) if quote.question.foreseen else None


def _table(answer: Answer, confidence: float, width: int) -> PageTable:
    if answer.selected:
        # A statement's answer has its errors beside its numbers.
        head = [Heading(each.name, "right") for each in answer.columns]
        texts = [tuple(row) for row in answer.texts(confidence, most=MOST_ROWS)]
        return PageTable("", tuple(head), tuple(texts), _hidden(answer, len(texts)))
    by = list(answer.design.aggregation.by)
    cells, errors = answer.main.cells, answer.expected_error(confidence)
    each = errors if isinstance(errors, tuple) else (errors,) * len(cells)
    barred = not answer.question.in_ranks and len(cells) > 1 and max(each) < math.inf
    head = [Heading(name, wrap=True) for name in by]
    head += [Heading(values.name, "right") for values in answer.columns[len(by) :]]
    head += [Heading("error", "right"), *([Heading("")] if barred else [])]
    rows = [tuple(row) for row in answer.texts(confidence, most=MOST_ROWS)]
    if barred:
        rows = [(*row, bar) for row, bar in zip(rows, _bars(cells, each, width), strict=False)]
    return PageTable(answer.question.kind, tuple(head), tuple(rows), _hidden(answer, len(rows)))


def _hidden(answer: Answer, shown: int) -> tuple[str, ...]:
    hidden = len(answer.main.cells) - shown
    return (f"{hidden:,} more rows: --out writes them all",) if hidden else ()


def _bars(cells: Sequence[float], errors: Sequence[float], width: int) -> list[str]:
    """A bar for each number, dashed within its error; empty where the number may be 0 or less."""
    most = max((cell + error for cell, error in zip(cells, errors, strict=True)), default=0) or 1
    bars: list[str] = []
    for cell, error in zip(cells, errors, strict=True):
        low, high = (max(round(width * value / most), 0) for value in (cell - error, cell + error))
        bars.append("█" * low + "░" * (high - low))
    return bars


def _document(answer: Answer, confidence: float) -> dict[str, Any]:
    errors = answer.expected_error(confidence)
    return {
        "question": answer.question.kind,
        "columns": {
            values.name: [_plain(cell) for cell in values.cells] for values in answer.columns
        },
        "error": {
            "confidence": confidence,
            "at most": list(errors) if isinstance(errors, tuple) else errors,
        },
    }


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, (bool, int, float, str)) else str(cell)
