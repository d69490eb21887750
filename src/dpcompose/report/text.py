"""A page as lines of text: on the terminal, and where a result is printed. A plain table imports nothing more."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from dpcompose.errors import printable
from dpcompose.report.layout import Heading, Page, PageTable

PIPED_WIDTH = 110
"""Columns to fill when standard output is no terminal and COLUMNS is not set."""
NARROW = 80
"""Columns below which rows become blocks."""
_CODES = {"bold": ["1"], "dim": ["2"], "good": ["1", "32"], "bad": ["1", "31"], "plain": ["1"]}
_WORD = re.compile(r"\s*\S+\s*")


def text(shown: Page | PageTable) -> str:
    """A page, or one table, as lines for standard output. Its text is never markup, and no number is cut."""
    piped = not (sys.stdout.isatty() or os.environ.get("COLUMNS"))
    width = PIPED_WIDTH if piped else shutil.get_terminal_size((NARROW, 25)).columns
    if isinstance(shown, Page):
        return "".join(f"{line}\n" for line in _lines(shown, width))
    notes = (line for note in shown.notes for line in _text(note, width))
    return "".join(f"{line}\n" for line in (*_table(shown, width), *notes))


def _lines(page: Page, width: int) -> Iterator[str]:
    facts = [(printable(name), printable(value)) for name, value in page.facts]
    columns = [Heading("", wrap=False), Heading("", wrap=True)]
    grid = _grid(columns, facts, width, "  ", "dim") if facts and width >= NARROW else None
    yield from _text(page.headline, width, page.tone)
    yield from _block(facts, width) if grid is None else chain(*grid)
    for table in page.tables:
        yield ""
        yield from _text(table.title, width, "bold")
        yield from _table(table, width)
        for note in table.notes:
            yield from _text(note, width, "dim")
    if page.notes:
        yield ""
    for note in page.notes:
        yield from _text(note, width)
    if page.following:
        yield from _text(f"Next: {page.following}", width)


def _table(table: PageTable, width: int) -> Iterator[str]:
    titles = [column.title for column in table.columns]
    rows = [[printable(cell) for cell in row] for row in table.rows]
    grid = None if width < NARROW else _grid(table.columns, [titles, *rows], width, "   ")
    if grid is None:
        for row in rows:
            yield from _block(list(zip(titles, row, strict=True)), width)
            yield ""
        return
    rule = "\u2500" if "utf" in (sys.stdout.encoding or "").lower() else "-"
    yield from (_styled(line, "bold") for line in grid[0])
    yield rule * max(map(_cells, chain(*grid)))
    yield from chain(*grid[1:])


def _grid(
    columns: Sequence[Heading], rows: Sequence[Sequence[str]], width: int, gap: str, style: str = ""
) -> list[list[str]] | None:
    """The lines of each row, its cells wrapped and under each other, the first of them in a style.

    The widest columns of those that wrap are narrowed. None if a word, or a cell that is kept whole, has no room.
    """
    cells = list(zip(columns, zip(*rows, strict=True), strict=False))
    words = ((text.split() if column.wrap else [text] for text in texts) for column, texts in cells)
    room = width - len(gap) * (len(columns) - 1)
    if sum(max(map(_cells, chain(*each)), default=0) for each in words) > room:
        return None
    widths = [max(map(_cells, texts)) for _, texts in cells]
    able = [index for index, column in enumerate(columns) if column.wrap]
    for _ in range(sum(widths) - room):
        widest = max(able, key=widths.__getitem__, default=0)
        widths[widest] -= widest in able and widths[widest] > 1
    return [list(_lined(columns, row, widths, gap, style)) for row in rows]


def _lined(
    columns: Sequence[Heading], row: Sequence[str], widths: Sequence[int], gap: str, style: str
) -> Iterator[str]:
    sized = list(zip(row, widths, columns, strict=True))
    cells = (
        _wrapped(cell, size, fold=True) if column.wrap else [cell] for cell, size, column in sized
    )
    for parts in zip_longest(*cells, fillvalue=""):
        first, *others = map(_padded, parts, widths, columns)
        yield gap.join([_styled(first, style), *others])


def _padded(text: str, width: int, column: Heading) -> str:
    text = text.rstrip() if column.align == "right" else text
    blanks = " " * (width - _cells(text))
    return blanks + text if column.align == "right" else text + blanks


def _wrapped(text: str, width: int, *, fold: bool) -> Iterator[str]:
    """The text in lines, broken between words; with `fold`, a word is broken that is longer than a line."""
    line = ""
    for each in _WORD.findall(text):
        word = str(each)
        if line and _cells(line) + _cells(word.rstrip()) > width:
            yield line.rstrip()
            line = ""
        while fold and _cells(word.rstrip()) > width:
            cut = next(n for n in range(len(word), 0, -1) if n == 1 or _cells(word[:n]) <= width)
            yield word[:cut]
            word = word[cut:]
        line += word
    yield line.rstrip()


def _text(text: str, width: int, style: str = "") -> Iterator[str]:
    for line in _wrapped(printable(text), width, fold=False):
        yield _styled(line, style)


def _block(pairs: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """One pair after the other, broken between words; pairs with an empty value are left out."""
    for name, value in pairs:
        if value:
            first, *more = _wrapped(f"{name}  {value}", width - 2, fold=False)
            yield _styled(first[: len(name)], "dim") + first[len(name) :]
            yield from (f"  {line}" for line in more)


def _styled(text: str, style: str) -> str:
    """The text with the codes of a style, on a terminal that has them."""
    if not (style and text and sys.stdout.isatty()) or os.environ.get("TERM") in (
        "dumb",
        "unknown",
    ):
        return text
    codes = _CODES[style][: 1 if os.environ.get("NO_COLOR") else None]
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m"


def _cells(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
