"""A page on the terminal."""

from __future__ import annotations

import os
import sys

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from dpcompose.report import Page, Table

PIPED_WIDTH = 110
"""Columns to fill when standard output is no terminal and COLUMNS does not say."""

_TONES = {"plain": "bold", "good": "bold green", "bad": "bold red"}


def show(page: Page) -> None:
    """Print `page` on standard output; nothing in it is taken for markup."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPED_WIDTH
    Console(width=width, highlight=False).print(_rendered(page))


def _rendered(page: Page) -> Group:
    parts: list[RenderableType] = [Text(page.headline, style=_TONES[page.tone]), _facts(page)]
    for table in page.tables:
        parts += [Text(), Text(table.title, style="bold"), _table(table)]
        parts += [Text(note, style="dim") for note in table.notes]
    parts += [Text("\n" + "\n".join(page.notes))] if page.notes else []
    return Group(*parts)


def _facts(page: Page) -> RichTable:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for fact in page.facts:
        grid.add_row(Text(fact.name), Text(fact.value))
    return grid


def _table(table: Table) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in table.columns:
        shown.add_column(Text(column.title), justify=column.align, overflow="fold", no_wrap=not column.wrap)
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown
