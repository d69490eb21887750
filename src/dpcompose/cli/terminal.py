"""A page on the terminal."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from dpcompose.cli.streams import stdout
from dpcompose.errors import printable
from dpcompose.report import Page, PageTable

PIPED_WIDTH = 110
"""Columns to fill when standard output is no terminal and COLUMNS is not set."""
NARROW = 80
"""Columns below which rows become blocks."""

_RULE = " -- ".join(["    \n    \n", "\n    " * 5 + "\n"])
"""The rules of a table where the terminal has no UTF-8."""
_TONES = {"plain": "bold", "good": "bold green", "bad": "bold red"}


def show(page: Page) -> None:
    """Print `page` on standard output. Its text is never markup, and no number is cut."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPED_WIDTH
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=sys.stdout.isatty(), width=width, highlight=False)
    for part in _parts(page, console):
        console.print(part, crop=False)
    stdout(shown.getvalue())


def _parts(page: Page, console: Console) -> list[RenderableType]:
    narrow = console.width < NARROW
    facts = [(fact.name, fact.value) for fact in page.facts]
    columns = [[name for name, _ in facts], [value for _, value in facts]]
    aside = not narrow and _fits(columns, [True, False], console, gap=2)
    parts: list[RenderableType] = [
        _text(page.headline, _TONES[page.tone]),
        _facts(facts) if aside else _block(facts, console.width),
    ]
    for table in page.tables:
        parts += [Text(), _text(table.title, "bold")]
        titles = [column.title for column in table.columns]
        columns = list(zip(titles, *table.rows, strict=True))
        if narrow or not _fits(
            columns, [not column.wrap for column in table.columns], console, gap=3
        ):
            blocks = (
                _block(list(zip(titles, row, strict=True)), console.width) for row in table.rows
            )
            parts += [each for block in blocks for each in (block, Text())]
        else:
            parts.append(_table(table))
        parts += [_text(note, "dim") for note in table.notes]
    return [*parts, *([Text()] if page.notes else []), *map(_text, page.notes)]


def _fits(
    columns: Sequence[Sequence[str]], whole: Sequence[bool], console: Console, *, gap: int
) -> bool:
    """Whether every word has room in its column, and every cell in a column that is kept whole."""
    needed = 0
    for cells, kept in zip(columns, whole, strict=True):
        words = cells if kept else [word for cell in cells for word in cell.split()]
        needed += max((cell_len(printable(word)) for word in words), default=0)
    return needed + gap * (len(columns) - 1) <= console.width


def _text(text: str, style: str = "") -> Text:
    # Lines break between words, never inside one.
    return Text(printable(text), style=style, overflow="ignore")


def _block(pairs: list[tuple[str, str]], width: int) -> RenderableType:
    """One pair after the other, broken between words; pairs with an empty value are left out."""
    return Group(
        *(_pair(printable(name), printable(value), width) for name, value in pairs if value)
    )


def _pair(name: str, value: str, width: int) -> Text:
    lines = textwrap.wrap(
        f"{name}  {value}",
        width,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    said = Text("\n".join(lines), overflow="ignore")
    said.stylize("dim", 0, len(name))
    return said


def _facts(facts: list[tuple[str, str]]) -> RichTable:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(printable(name)), Text(printable(value)))
    return grid


def _table(table: PageTable) -> RichTable:
    plain = "utf" not in (sys.stdout.encoding or "").lower()
    shown = RichTable(
        box=box.Box(_RULE, ascii=True) if plain else box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    for column in table.columns:
        shown.add_column(
            Text(column.title), justify=column.align, overflow="fold", no_wrap=not column.wrap
        )
    for row in table.rows:
        shown.add_row(*(Text(printable(cell)) for cell in row))
    return shown
