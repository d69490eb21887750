"""Pages and documents of released answers, of quotes, and of a plan of counting queries with its picture."""
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from dpcompose.numerics import two_digits
from dpcompose.report.layout import Heading, Page, PageTable
from dpcompose.report.ledger import at_least, at_most, listed
from dpcompose.report.number import below, exactly, members, plain
from dpcompose.report.picture import COLORS, INK, Picture, figure, line, named, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpcompose.release import Answer, CountingPlan, Quote

MOST_ROWS = 40
WIDTH = 24
"""Of the longest bar, in cells of a terminal."""


def release_page(
    answers: Sequence[Answer],
    *,
    confidence: float = 0.95,
    left: Mapping[str, Any] | None = None,
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
    tables = tuple(_table(answer, confidence) for answer in answers)
    notes = (
        f"Errors are those of the noise, with probability {confidence:g} for each number by itself. Numbers are "
        "rounded to the last digit of their errors; --json and --out have all of their digits.",
    )
    headline = f"{len(answers)} answer{'s' * (len(answers) != 1)}"
    return Page("", headline, facts=facts, tables=tables, notes=notes)


def release_document(
    answers: Sequence[Answer], *, confidence: float, left: Mapping[str, Any]
) -> dict[str, Any]:
    """Answers for programs."""
    receipt = answers[0].receipt
    return {
        "charged": plain(receipt.cost),
        "left": plain(left),
        "receipt": members(receipt, "scope sequence key hash"),
        "replayed": answers[0].replayed,
        "answers": [_document(answer, confidence) for answer in answers],
    }


def quote_page(
    quotes: Sequence[Quote], *, confidence: float = 0.95, left: Mapping[str, Any] | None = None
) -> Page:
    """A page for quotes: the price of each question, the error of its answer, its sensitivity, and whether it fits."""
    rows = [_quoted(quote, confidence) for quote in quotes]
    facts = [("left", listed(quotes[0].left if left is None else left, at_most))]
    headline, tone = "Nothing was charged", "plain"
    if not all(quote.fits for quote in quotes):
        headline, tone = "Not all of this fits in what is left; nothing was charged", "bad"
    each = f"Errors hold with probability {confidence:g} for each number by itself."
    said = ("question", "unit", "stability", "noise")
    reasons = [tuple(row[name] for name in said) for row in _explained(quotes)]
    explained = PageTable.of("Explained", ("question", "~unit", "~stability", "~noise"), reasons)
    tables = PageTable.of("Quotes", ("question", "~price", ">error", "fits"), rows), explained
    return Page("", headline, tone, facts, tables, [each, quotes[0].bias])


def quote_document(
    quotes: Sequence[Quote], *, confidence: float, left: Mapping[str, Any]
) -> dict[str, Any]:
    """Quotes for programs; where the error follows from the answer, as that of a mean from its count, it is null."""
    return {
        "left": plain(left),
        "quotes": [
            {
                **members(quote, "question=question.kind price fits"),
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


def _table(answer: Answer, confidence: float) -> PageTable:
    if answer.selected:
        # A statement's answer has its errors beside its numbers.
        head = [Heading(each.name, "right") for each in answer.columns]
        texts = [tuple(row) for row in answer.texts(confidence, most=MOST_ROWS)]
        return PageTable("", head, texts, _hidden(answer, len(texts)))
    by = list(answer.design.aggregation.by)
    cells, errors = answer.main.cells, answer.expected_error(confidence)
    each = errors if isinstance(errors, tuple) else (errors,) * len(cells)
    barred = not answer.question.in_ranks and len(cells) > 1 and max(each) < math.inf
    head = [Heading(name, wrap=True) for name in by]
    head += [Heading(values.name, "right") for values in answer.columns[len(by) :]]
    head += [Heading("error", "right"), *([Heading("")] if barred else [])]
    rows = [tuple(row) for row in answer.texts(confidence, most=MOST_ROWS)]
    if barred:
        rows = [(*row, bar) for row, bar in zip(rows, _bars(cells, each), strict=False)]
    return PageTable(answer.question.kind, head, tuple(rows), _hidden(answer, len(rows)))


def _hidden(answer: Answer, shown: int) -> tuple[str, ...]:
    hidden = len(answer.main.cells) - shown
    return (f"{hidden:,} more rows: --out writes them all",) if hidden else ()


def _bars(cells: Sequence[float], errors: Sequence[float]) -> list[str]:
    """A bar for each number, dashed within its error; empty where the number may be 0 or less."""
    most = max((cell + error for cell, error in zip(cells, errors, strict=True)), default=0) or 1
    bars: list[str] = []
    for cell, error in zip(cells, errors, strict=True):
        low, high = (max(round(WIDTH * value / most), 0) for value in (cell - error, cell + error))
        bars.append("█" * low + "░" * (high - low))
    return bars


def _document(answer: Answer, confidence: float) -> dict[str, Any]:
    error = {"confidence": confidence, "at most": plain(answer.expected_error(confidence))}
    columns = {values.name: plain(values.cells) for values in answer.columns}
    return {"question": answer.question.kind, "columns": columns, "error": error}


def answer_pictures(answer: Answer, *, confidence: float = 0.95) -> tuple[Picture]:
    """A bar for each row of an answer, with its interval."""
    low, high = answer.interval(confidence)
    before, cells = len(answer.design.aggregation.by), answer.main.cells
    values = answer.columns[before + answer.question.error_column].cells
    # Bins and fractions are labeled beside the number; an answer of one row has no label.
    labels = [each.cells for each in answer.columns[: before + 2] if each is not answer.main]
    texts = [", ".join(map(str, row)) for row in zip(*labels, strict=True)]
    shown = texts if texts and len(cells) > 1 else [""] * len(cells)
    ends = [
        [max(cell - least, 0.0), max(most - cell, 0.0)]
        for cell, least, most in zip(cells, low, high, strict=True)
    ]

    def draw(axes: Axes | None) -> Axes:
        axes = axes or figure(7.5).subplots()
        look: dict[str, Any] = {"color": COLORS[0], "ecolor": INK, "height": 0.6}
        axes.barh(range(len(cells)), values, xerr=list(zip(*ends, strict=True)), **look)
        axes.set_yticks(range(len(cells)), list(map(named, shown)))
        axes.set(xlabel=answer.main.name)
        axes.invert_yaxis()
        return style(axes)

    caption = f"Each number with its interval, which holds with probability {exactly(confidence)}."
    return (Picture(answer.question.kind, caption, draw),)


def counting_page(plan: CountingPlan) -> Page:
    """The numbers of queries, method by method."""
    titles = "method", ">queries", "grows like", "error", "reference"
    rows = [
        (row.method, _queries(row.queries), row.growth, _holds(row.accuracy), row.reference)
        for row in plan.rows
    ]
    error, total = f"{exactly(plan.accuracy)} n", f"epsilon = {exactly(plan.epsilon)}"
    facts = [
        ("units", f"n = {plan.units:,}"),
        ("error", f"at most {error}, with probability {exactly(plan.confidence)}"),
        ("privacy", f"{total}, delta = {exactly(plan.delta)}, for all answers together"),
    ]
    units = f"Coordinated answering is for units of {plan.domain:,} kinds"
    tables = [PageTable.of(f"Queries at an error of {error}", titles, rows)]
    notes = [f"{units}, and queries known in advance."]
    return Page("", "How many counting queries", facts=facts, tables=tables, notes=notes)


def counting_pictures(plan: CountingPlan, curves: Sequence[Any]) -> tuple[Picture]:
    """The error that each method reaches, over the number of queries."""
    title = f"{plan.units:,} units, epsilon {exactly(plan.epsilon)}, delta {exactly(plan.delta)}"

    def draw(axes: Axes) -> None:
        for color, curve in zip(cycle(COLORS), curves, strict=False):
            points = [(queries, error) for queries, error in curve.points if error < 1]
            line(axes, points, color=color, label=curve.method)
        axes.axhline(plan.accuracy, color=INK, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="counting queries", title=title)
        axes.set(ylabel="error, as a part of the units")
        style(axes, "best")

    return (Picture("Error over queries", f"{title}; the line is the error wanted.", draw),)


def _queries(number: float) -> str:
    if number < 1e15:
        return f"{math.floor(number):,}"
    return "beyond 1e300" if math.isinf(number) else below(number, 3)


def _holds(accuracy: str) -> str:
    return "for each by itself" if accuracy == "each" else "for all at once"
