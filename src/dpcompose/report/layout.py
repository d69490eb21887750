"""A page of headlines, tables and notes, without any markup: text and HTML are made from it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Tone = Literal["plain", "good", "bad"]


@dataclass(frozen=True)
class Heading:
    """The heading of a column, and how the column is set.

    Args:
        title: The text.
        align: Numbers to the right, words to the left.
        wrap: Whether its text may be broken into lines.
        bar: Whether an HTML page has the bars of the rows in place of its text; without any they are in the first.
    """

    title: str
    align: Literal["left", "right"] = "left"
    wrap: bool = False
    bar: bool = False


def headings(*titles: str) -> tuple[Heading, ...]:
    """Columns by their titles: `>` before one sets its numbers to the right, `~` lets its words wrap."""
    return tuple(
        Heading(title.lstrip(">~"), "right" if title[:1] == ">" else "left", title[:1] == "~")
        for title in titles
    )


@dataclass(frozen=True)
class PageTable:
    """Rows of text under columns.

    Args:
        title: Its title.
        columns: Its columns.
        rows: As many cells each as there are columns.
        notes: Sentences below it.
        shares: Of each row the length of its bar in an HTML page, between 0 and 1.
    """

    title: str
    columns: Sequence[Heading]
    rows: Sequence[tuple[str, ...]]
    notes: Sequence[str] = ()
    shares: Sequence[float] = ()

    @classmethod
    def of(
        cls, title: str, titles: Sequence[str], rows: Sequence[tuple[str, ...]], *more: Any
    ) -> PageTable:
        """Rows under the titles that `headings` reads."""
        return cls(title, headings(*titles), rows, *more)


@dataclass(frozen=True)
class Page:
    """The card of a result: its answer, its ends, what it rests on and what to do next; ready for text or HTML.

    Args:
        title: The subject.
        headline: The answer in one line.
        tone: How the answer reads: "plain", "good" (within budget) or "bad" (over budget, or nothing certified).
        facts: The lines below the headline: names and values.
        tables: The tables, most important first; one without rows is left out.
        notes: Remarks for the reader.
        source: The plan as TOML, or empty.
        meaning: What the answer means, in a sentence or two, for an HTML page.
        following: What to do next, in a sentence; empty if nothing has to be done.
    """

    title: str
    headline: str
    tone: Tone = "plain"
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[PageTable] = ()
    notes: Sequence[str] = ()
    source: str = ""
    meaning: str = ""
    following: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(table for table in self.tables if table.rows))


def _datum(cell: str) -> str:
    """The text of a cell as data: without blanks around it, and without commas between thousands."""
    return (
        cell.strip().replace(",", "")
        if re.fullmatch(r"\s*\d{1,3}(,\d{3})+(\.\d+)?\s*", cell)
        else cell.strip()
    )


def csv_text(page: Page) -> str:
    """The tables of a page as CSV, each with its titles, an empty line between them; without any, answer and facts."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if not page.tables:
        writer.writerows([["name", "value"], ["answer", page.headline]])
        writer.writerows(page.facts)
    for number, table in enumerate(page.tables):
        if number:
            text.write("\n")
        kept = [place for place, column in enumerate(table.columns) if not column.bar]
        writer.writerow([table.columns[place].title for place in kept])
        writer.writerows([[_datum(row[place]) for place in kept] for row in table.rows])
    return text.getvalue()
