"""Texts of results as HTML: escaped, and formulas as people write them."""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

MOST = 10
"""Lines that are shown; the others are counted."""
_SIGNS = {"<=": "\N{LESS-THAN OR EQUAL TO}", ">=": "\N{GREATER-THAN OR EQUAL TO}"}
_LETTERS = {"epsilon": "\N{GREEK SMALL LETTER EPSILON}", "delta": "\N{GREEK SMALL LETTER DELTA}"}
_POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e(?:(-)0*(\d+)|\+(?=\d\d)0*(\d+))(?!\w|\.\w)")
"""Powers with a sign, as Python writes them, so that a name such as 1e5 stays as it is."""
_NAMED = re.compile(r"\b(epsilon|delta)(?= (?:<=|>=|=) )")
_SIGN = re.compile(r"(?<![<>=])[<>]=(?!=)")
_RAISED = str.maketrans(
    "0123456789-",
    "\N{SUPERSCRIPT ZERO}\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b",
)


def written(text: str) -> str:
    """Formulas as people write them: "epsilon <= 1.5 at delta = 1e-08" with Greek letters, signs and raised powers."""
    named = _NAMED.sub(lambda match: _LETTERS[match[1]], text)
    signed = _SIGN.sub(lambda match: _SIGNS[match[0]], named)
    return _POWER.sub(_raised, signed)


def escaped(text: str) -> str:
    """A text of a page as HTML, its formulas as people write them."""
    return html.escape(written(text))


class Listed(ABC):
    """A value that shows itself as a headline and rows below it: printed, and in a notebook."""

    @abstractmethod
    def _in_lines(self) -> tuple[str, Sequence[str]]:
        """The headline and the rows."""

    def __str__(self) -> str:
        headline, rows = self._in_lines()
        return "\n".join([headline, *_first(rows)])

    def _repr_html_(self) -> str:
        return lines(*self._in_lines())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def lines(headline: str, rows: Sequence[str] = ()) -> str:
    """A headline and rows below it, as HTML in which every character stands for itself."""
    shown = (f"<small>{escaped(row)}</small>" for row in _first(rows))
    return "<br>".join([f"<code>{escaped(headline)}</code>", *shown])


def _first(rows: Sequence[str]) -> list[str]:
    return [*rows[:MOST], *([f"and {len(rows) - MOST:,} more"] if len(rows) > MOST else [])]


def _raised(match: re.Match[str]) -> str:
    digits, sign, *powers = match.groups(default="")
    ten = "10" + (sign + "".join(powers)).translate(_RAISED)
    return ten if digits == "1" else f"{digits} \N{MULTIPLICATION SIGN} {ten}"
