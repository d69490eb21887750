"""A page as one self-contained HTML file: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from html import escape

from dpcompose.report.page import Page, PageTable

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #5c6570; --rule: #d5dae0; --tint: #f4f6f8;
        --good: #1a7f37; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e6e9ec; --soft: #9aa4af; --rule: #363c43; --tint: #1d2125;
          --good: #56d364; --bad: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 62rem; background: var(--paper); color: var(--ink);
       font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.05rem; font-weight: 600; color: var(--soft); margin: 0; overflow-wrap: anywhere; }
.answer { font-size: 1.7rem; font-weight: 650; line-height: 1.25; margin: .25rem 0 1rem; overflow-wrap: anywhere; }
.good { color: var(--good); } .bad { color: var(--bad); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 0 0 2rem; }
dt { color: var(--soft); } dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 2px solid var(--rule); }
th, td { padding: .35rem .75rem .35rem 0; vertical-align: top; }
td { border-bottom: 1px solid var(--rule); overflow-wrap: anywhere; }
.right { text-align: right; white-space: nowrap; padding-left: .75rem; }
figure { margin: 1rem 0 2rem; } figure svg { width: 100%; height: auto; max-width: 46rem; display: block; }
figcaption, .note { color: var(--soft); font-size: .92rem; }
pre { background: var(--tint); padding: 1rem; overflow-x: auto; border-radius: .4rem; font-size: .88rem; }
summary { cursor: pointer; color: var(--soft); } footer { margin-top: 3rem; color: var(--soft); font-size: .88rem; }
"""


def html(page: Page, *, pictures: tuple[tuple[str, str], ...] = (), producer: str = "dpcompose") -> str:
    """`page` as an HTML document.

    Args:
        page: The page; all its text is escaped.
        pictures: Captions with SVG elements that dpcompose drew, shown as they are.
        producer: The text of the footer.
    """
    facts = "".join(f"<dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}</dd>" for fact in page.facts)
    body = [
        f'<h1>{escape(page.title)}</h1>\n<p class="answer {page.tone}">{escape(page.headline)}</p>\n<dl>{facts}</dl>',
        *(f'<p class="note">{escape(note)}</p>' for note in page.notes),
        *(_table(table) for table in page.tables),
        *(f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" for caption, svg in pictures),
    ]
    if page.source:
        body.append(f"<details><summary>The plan</summary><pre>{escape(page.source)}</pre></details>")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(page.title)}: {escape(page.headline)}</title>
<style>{_STYLE}</style>
</head>
<body>
{chr(10).join(body)}
<footer>{escape(producer)}</footer>
</body>
</html>
"""


def _table(table: PageTable) -> str:
    sides = [' class="right"' if column.align == "right" else "" for column in table.columns]
    head = "".join(
        f'<th scope="col"{side}>{escape(column.title)}</th>' for column, side in zip(table.columns, sides, strict=True)
    )
    rows = "\n".join(
        "<tr>" + "".join(f"<td{side}>{escape(cell)}</td>" for cell, side in zip(row, sides, strict=True)) + "</tr>"
        for row in table.rows
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return (
        f'<section><h2>{escape(table.title)}</h2><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{rows}\n</tbody></table></div>{notes}</section>"
    )
