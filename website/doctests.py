"""Examples of docstrings as code: without a fence, Markdown would read `>>>` as three quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).+)*", re.MULTILINE)


def fenced(docstring: str) -> str:
    """The docstring with a fence around each example, which ends at an empty line."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", docstring)


class Doctests(griffe.Extension):
    """Fences the examples of every docstring that the reference shows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object once it is loaded."""
        if obj.docstring is not None and "```" not in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)
