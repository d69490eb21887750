"""Docstrings as the reference shows them: what every call does alike, and what a base says already, is said once.

Examples get a fence: without one, Markdown would read `>>>` as three quotations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).+)*", re.MULTILINE)
DOMAIN = re.compile(r"^    DomainError: .*\n?(?:^ {6,}.*\n?)*", re.MULTILINE)
"""What an argument outside its domain raises: the page of dpcompose says it for every call."""
NOTHING_RAISED = re.compile(r"\n*^Raises:\n(?=\n|\Z)", re.MULTILINE)


def fenced(docstring: str) -> str:
    """The docstring with a fence around each example, which ends at an empty line."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", docstring)


def shortened(docstring: str) -> str:
    """The docstring without the errors of arguments outside their domain."""
    return NOTHING_RAISED.sub("\n", DOMAIN.sub("", docstring))


def overrides(member: griffe.Object) -> bool:
    """Whether a base of its class in this package has a member of this name, which says what it does."""
    holder = member.parent
    return isinstance(holder, griffe.Class) and any(
        member.name in base.members for base in holder.mro()
    )


class Doctests(griffe.Extension):
    """Fences examples and leaves out what is said elsewhere, in every docstring that the reference shows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object once it is loaded."""
        if obj.docstring is not None and "```" not in obj.docstring.value:
            obj.docstring.value = fenced(shortened(obj.docstring.value))

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called once all of a package is loaded: members that override have no entry of their own."""
        for each in _classes(pkg):
            for member in each.members.values():
                if isinstance(member, griffe.Function | griffe.Attribute) and overrides(member):
                    member.docstring = None


def _classes(module: griffe.Module) -> Iterator[griffe.Class]:
    for member in module.members.values():
        if isinstance(member, griffe.Module):
            yield from _classes(member)
        elif isinstance(member, griffe.Class):
            yield member
