"""A page as one self-contained HTML file: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dpcompose.notebook import escaped
from dpcompose.report.layout import Heading, Page, PageTable
from dpcompose.report.picture import Picture

SHOWN = 10
"""Rows of a table that are shown before the reader asks for all."""
HIDDEN = '<span aria-hidden="true">&nbsp;</span>'
_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #5c6570; --rule: #d5dae0; --tint: #f4f6f8;
        --good: #1a7f37; --bad: #b3261e; --bar: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e6e9ec; --soft: #9aa4af; --rule: #363c43; --tint: #1d2125;
          --good: #56d364; --bad: #ff7b72; --bar: #56b4e9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 62rem; background: var(--paper); color: var(--ink);
       font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; font-weight: 650; line-height: 1.25; margin: .25rem 0 1rem; }
h1, p, dd, td, caption, pre, figcaption { overflow-wrap: break-word; }
.subject { color: var(--soft); margin: 0; } .meaning { font-size: 1.1rem; max-width: 44rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .15rem 1.25rem; margin: 0 0 2rem; }
dt { color: var(--soft); } dd { margin: 0; font-variant-numeric: tabular-nums; }
h2 { font-size: 1.1rem; margin: 0; color: var(--ink); } section { margin: 2.25rem 0; }
a { color: inherit; } :focus-visible { outline: 3px solid var(--bar); outline-offset: 2px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .5rem; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 2px solid var(--rule); }
th, td { padding: .35rem .75rem .35rem 0; vertical-align: top; }
td { border-bottom: 1px solid var(--rule); }
.right { text-align: right; white-space: nowrap; padding-left: .75rem; }
.fixed { white-space: nowrap; } .meter { width: 9rem; }
.bar { display: block; height: .4rem; margin-top: .25rem; background: var(--bar); }
@media screen { section:not(:has(.more:checked)) .rest { display: none; } }
figure { margin: 1rem 0 2rem; } figure svg { width: 100%; height: auto; max-width: 46rem; display: block; }
figcaption, .note { color: var(--soft); font-size: .92rem; }
pre { background: var(--tint); padding: 1rem; white-space: pre-wrap; border-radius: .4rem; font-size: .88rem; }
summary, label { cursor: pointer; color: var(--soft); }
footer { margin-top: 3rem; color: var(--soft); font-size: .88rem; }
@media screen and (max-width: 40rem) {
  body { padding: 1rem .9rem 3rem; } h1 { font-size: 1.35rem; } dl { display: block; } dd { margin-bottom: .5rem; }
  table, caption, tbody, tr, td { display: block; width: 100%; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tr { border-bottom: 1px solid var(--rule); padding: .4rem 0; } td { border: 0; padding: .05rem 0; }
  td:empty { display: none; } .right, .fixed { text-align: left; white-space: normal; padding-left: 0; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); } }
@media print {
  :root { --paper: #fff; --ink: #000; --soft: #444; --rule: #bbb; --tint: #fff; color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 10pt; } .wide { overflow: visible; }
  thead { display: table-header-group; } tr, figure, .bar { break-inside: avoid; } h1, caption { break-after: avoid; }
  .more, .more + label { display: none; }
  .bar { print-color-adjust: exact; } details::details-content { content-visibility: visible; display: block; } }
"""


def html(page: Page, *, pictures: Sequence[Picture] = (), producer: str = "dpcompose") -> str:
    """`page` as an HTML document.

    Args:
        page: The page; all its text is escaped.
        pictures: Its pictures, the first of which stands below the answer.
        producer: The text of the footer.
    """
    facts = "".join(
        f"<dt>{escaped(fact.name)}</dt><dd>{escaped(fact.words or fact.value)}</dd>"
        for fact in page.facts
    )
    answer = page.answer or page.headline
    figures = [
        f"<figure>{each.svg()}<figcaption>{escaped(each.caption)}</figcaption></figure>"
        for each in pictures
    ]
    body = [
        f'<p class="subject">{escaped(page.title)}</p>\n<h1 class="{page.tone}">{escaped(answer)}</h1>',
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
    return _framed(f"{page.title}: {answer}", body, producer)


def fragment(page: Page) -> str:
    """`page` as a notebook shows it: the answer, facts and tables in HTML without a style of its own."""
    facts = "".join(
        f"<tr><th>{escaped(each.name)}</th><td>{escaped(each.words or each.value)}</td></tr>"
        for each in page.facts
    )
    parts = [
        f"<p><strong>{escaped(page.answer or page.headline)}</strong></p>",
        f"<table>{facts}</table>" if facts else "",
    ]
    for table in page.tables:
        titles = "".join(f"<th>{escaped(column.title)}</th>" for column in table.columns)
        bars = [column.bar for column in table.columns]
        rows = (
            "".join(
                f"<td>{escaped(_percent(cell) if bar else cell)}</td>"
                for cell, bar in zip(row, bars, strict=True)
            )
            for row in table.rows[:SHOWN]
        )
        more = len(table.rows) - SHOWN
        parts += [
            f"<table><caption>{escaped(table.title)}</caption><tr>{titles}</tr>",
            *(f"<tr>{row}</tr>" for row in rows),
            f"</table><p>and {more:,} more rows</p>" if more > 0 else "</table>",
        ]
    last = [*page.notes, *([f"Next: {page.following}"] if page.following else [])]
    return "".join([*parts, *(f"<p><small>{escaped(note)}</small></p>" for note in last)])


def contents(
    title: str, links: tuple[tuple[str, str, str], ...], *, producer: str = "dpcompose"
) -> str:
    """A page that leads to others.

    Args:
        title: Its heading.
        links: Of each page its address, its title, and what it shows.
        producer: The text of the footer.
    """
    sections = (
        f'<section><h2><a href="{escape(address)}">{escaped(name)}</a></h2><p>{escaped(shown)}</p></section>'
        for address, name, shown in links
    )
    return _framed(title, [f"<h1>{escaped(title)}</h1>", *sections], producer)


def _framed(title: str, body: list[str], producer: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
{chr(10).join(filter(None, body))}
</main>
<footer>{escaped(producer)}</footer>
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
