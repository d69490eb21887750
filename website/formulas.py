"""Formulas between dollar signs become MathML when the site is built: no script and no fonts.

A code host shows the same text with its own renderer.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

DISPLAYED = r"(?<![\\$])\$\$(?P<formula>[^$]+)\$\$"
INLINE = r"(?<![\\$\w])\$(?P<formula>[^\s$](?:[^$]*[^\s$\\])?)\$(?![\w$])"
PRIORITY = 185
"""After code in backticks, before backslashes and emphasis."""


def mathml(formula: str, *, displayed: bool = False) -> str:
    """A formula in LaTeX as MathML, with its text for readers that do not show MathML."""
    plain = " ".join(formula.split())
    converted = convert(plain, display="block" if displayed else "inline")
    spoken = plain.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return converted.replace("<math ", f'<math alttext="{spoken}" ', 1)


class _Formula(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element | str, int, int]:  # noqa: N802
        displayed = m[0].startswith("$$")
        text = mathml(m["formula"], displayed=displayed)
        text = f'<div class="formula">{text}</div>' if displayed else text
        return self.md.htmlStash.store(text), m.start(0), m.end(0)


class Formulas(Extension):
    """The extension of Python-Markdown, named in mkdocs.yml."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(_Formula(DISPLAYED, md), "displayed formula", PRIORITY + 1)
        md.inlinePatterns.register(_Formula(INLINE, md), "formula", PRIORITY)
