"""A page as one self-contained HTML file: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from dpcompose.notebook import escaped
from dpcompose.report.layout import Heading, Page, PageTable
from dpcompose.report.picture import Picture
from dpcompose.version import __version__

SHOWN = 10
"""Rows of a table that are shown before the reader asks for all."""
HIDDEN = '<span aria-hidden="true">&nbsp;</span>'


def html(page: Page, *, pictures: Sequence[Picture] = ()) -> str:
    """`page` as an HTML document.

    Args:
        page: The page; all its text is escaped.
        pictures: Its pictures, the first of which stands below the answer.
    """
    facts = "".join(
        f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in page.facts
    )
    figures = [
        f'<figure tabindex="0">{each.svg()}<figcaption>{escaped(each.caption)}</figcaption></figure>'
        for each in pictures
    ]
    body = [
        f'<p class="subject">{escaped(page.title)}</p>\n<h1 class="{page.tone}">{escaped(page.headline)}</h1>',
        f'<p class="meaning">{escaped(page.meaning)}</p>' if page.meaning else "",
        *figures[:1],
        f"<dl>{facts}</dl>" if facts else "",
        *(f'<p class="note">{escaped(note)}</p>' for note in page.notes),
        *(_table(table, number) for number, table in enumerate(page.tables)),
        *figures[1:],
    ]
    if page.following:
        body.append(f'<p class="note">Next: {escaped(page.following)}</p>')
    if page.source:
        body.append(
            f"<details><summary>The plan</summary><pre>{escape(page.source)}</pre></details>"
        )
    return framed(f"{page.title}: {page.headline}", body)


def fragment(page: Page) -> str:
    """`page` as a notebook shows it: the answer, facts and tables in HTML without a style of its own."""
    facts = "".join(
        f"<tr><th>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in page.facts
    )
    parts = [
        f"<p><strong>{escaped(page.headline)}</strong></p>",
        f"<table>{facts}</table>" if facts else "",
    ]
    for table in page.tables:
        titles = "".join(f"<th>{escaped(column.title)}</th>" for column in table.columns)
        pairs = (zip(row, table.columns, strict=True) for row in table.rows[:SHOWN])
        texts = ([_percent(cell) if column.bar else cell for cell, column in row] for row in pairs)
        rows = ("".join(f"<td>{escaped(text)}</td>" for text in row) for row in texts)
        more = len(table.rows) - SHOWN
        parts += [
            f"<table><caption>{escaped(table.title)}</caption><tr>{titles}</tr>",
            *(f"<tr>{row}</tr>" for row in rows),
            f"</table><p>and {more:,} more rows</p>" if more > 0 else "</table>",
        ]
    last = [*page.notes, *([f"Next: {page.following}"] if page.following else [])]
    return "".join([*parts, *(f"<p><small>{escaped(note)}</small></p>" for note in last)])


def framed(title: str, body: list[str]) -> str:
    """Lines of HTML as a document in the style of all pages, its title escaped. The footer, with the date, is on each sheet."""
    style = Path(__file__).with_name("page.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
{chr(10).join(filter(None, body))}
</main>
<footer>Made by dpcompose {__version__} on {datetime.now(UTC):%Y-%m-%d} (UTC).</footer>
</body>
</html>
"""


def _table(table: PageTable, number: int) -> str:
    """A table; what is beyond ten rows is folded."""
    sides = [f' class="{_side(column)}"' for column in table.columns]
    head = "".join(
        f'<th scope="col"{side}>{escaped(column.title) or HIDDEN}</th>'
        for column, side in zip(table.columns, sides, strict=True)
    )
    rows = list(zip(table.rows, table.shares or (None,) * len(table.rows), strict=True))
    labels = [
        f' data-label="{escaped(column.title)}"' if column.title and place else ""
        for place, column in enumerate(table.columns)
    ]
    bars = next((place for place, column in enumerate(table.columns) if column.bar), None)
    lines = [_row(row, length, bars, list(zip(sides, labels, strict=True))) for row, length in rows]
    first, rest = "\n".join(lines[:SHOWN]), "\n".join(lines[SHOWN:])
    box = f"all-{number}"
    fold = f'<input type="checkbox" class="more" id="{box}"> <label for="{box}">Show all {len(lines):,} rows</label>'
    notes = "".join(f'<p class="note">{escaped(note)}</p>' for note in table.notes)
    title = escaped(table.title)
    return (
        f'<section><div class="wide" role="group" tabindex="0" aria-label="{title}">'
        f"<table><caption><h2>{title}</h2></caption>"
        f"<thead><tr>{head}</tr></thead><tbody>\n{first}\n</tbody>"
        + (f'<tbody class="rest">\n{rest}\n</tbody>' if rest else "")
        + f"</table></div>{fold if rest else ''}{notes}</section>"
    )


def _percent(cell: str) -> str:
    """The percent behind a bar of text."""
    return cell.rpartition("]")[2].strip()


def _side(column: Heading) -> str:
    if column.bar:
        return "meter"
    return "right" if column.align == "right" else "wraps" if column.wrap else "fixed"


def _row(
    row: tuple[str, ...], length: float | None, bars: int | None, attributes: list[tuple[str, str]]
) -> str:
    bar = f'<span class="bar" style="width: {100 * length:.1f}%"></span>' if length else ""
    texts = [escaped(cell) for cell in row]
    if bars is None:
        texts[0] += bar
    else:
        texts[bars] = bar + _percent(texts[bars])
    cells = (
        f"<td{side}{label}>{text}</td>"
        for text, (side, label) in zip(texts, attributes, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"
