"""A few lines of escaped text, as a notebook shows a value."""

from __future__ import annotations

import html
from collections.abc import Sequence

MOST = 10
"""Lines that are shown; the others are counted."""


def lines(headline: str, rows: Sequence[str] = ()) -> str:
    """A headline and rows below it, as HTML in which every character stands for itself."""
    shown = [*rows[:MOST], *([f"and {len(rows) - MOST:,} more"] if len(rows) > MOST else [])]
    texts = [
        f"<code>{html.escape(headline)}</code>",
        *(f"<small>{html.escape(row)}</small>" for row in shown),
    ]
    return "<br>".join(texts)
