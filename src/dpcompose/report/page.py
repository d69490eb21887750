"""What every face renders: a page of headlines, tables and notes, without any markup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "good", "bad"]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        title: Its heading.
        align: Numbers to the right, words to the left.
        wrap: Whether its text may be broken into lines.
    """

    title: str
    align: Literal["left", "right"] = "left"
    wrap: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of text under columns.

    Args:
        title: What the table shows.
        columns: Its columns.
        rows: As many cells each as there are columns.
        notes: Sentences below it.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fact:
    """One line of the summary above the tables: what, and how much."""

    name: str
    value: str


@dataclass(frozen=True)
class Page:
    """A report, ready for text or HTML.

    Args:
        title: What was examined.
        headline: The answer in one line.
        tone: How the answer reads: "plain", "good" (within budget) or "bad" (over budget, or nothing certified).
        facts: The lines below the headline.
        tables: The tables, most important first.
        notes: What a reader should know.
        source: The plan as TOML, or empty.
    """

    title: str
    headline: str
    tone: Tone
    facts: tuple[Fact, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    source: str = ""
