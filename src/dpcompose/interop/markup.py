"""Text of strangers inside our sentences: visible in every character, inert in Markdown, quoted in YAML.

Letters that run from right to left are kept apart from the numbers beside them; characters that a reader cannot see,
and those that turn the order of others, are spelled out.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from dpcompose.errors import DomainError

LONGEST = 10_000
ISOLATED = "\u2068", "\u2069"
"""First strong isolate, and its end: the text between orders itself, and nothing around it."""
_INERT = set(" ,.;'\"-()=+%/?")


def text_of(name: str, value: Any, *, empty: bool = False) -> str:
    """`value` as text that can be published.

    Raises:
        DomainError: If it is no text, empty where it must not be, too long, or not encodable.
    """
    known = isinstance(value, str) and len(value) <= LONGEST and (empty or bool(value.strip()))
    if not known or (
        not value.isascii() and any(unicodedata.category(each) == "Cs" for each in value)
    ):
        raise DomainError(
            name, value, f"text of 1 to {LONGEST:,} characters, without halves of characters"
        )
    return value


def visible(text: str) -> str:
    """`text`, its lines kept, with each character that is not printable spelled out, as in (U+202E)."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(
        "".join(each if each.isprintable() else f"(U+{ord(each):04X})" for each in line)
        for line in lines
    )


def one_line(text: str) -> str:
    """`text` on one line of visible characters, isolated where it has letters that run from right to left."""
    line = visible(" ".join(text.split()))
    turned = any(unicodedata.bidirectional(each) in ("R", "AL", "AN") for each in line)
    return line.join(ISOLATED) if turned else line


def markdown(text: str) -> str:
    """`text` on one line, for the middle of a line of Markdown or a cell of a table: nothing in it is markup."""
    marked = set(string.punctuation) - _INERT
    escaped = "".join(f"&#{ord(each)};" if each in marked else each for each in one_line(text))
    return re.sub(r"(?i)(www)\.", r"\1&#46;", escaped)


def yaml(value: Any, indent: str = "") -> str:
    """Mappings, lists, text and numbers as YAML; text always in double quotes."""
    if isinstance(value, Mapping):
        rows = [f"{key}:{_below(each, indent)}" for key, each in value.items()]  # pyright: ignore
        return "\n".join(f"{indent}{row}" for row in rows)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "\n".join(f"{indent}- {yaml(each)}" for each in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str):
        return '"' + "".join(map(_quoted, value)) + '"'
    # A parser of YAML 1.1 takes 1e-06, without a point, for text.
    number = repr(value)
    return number.replace("e", ".0e") if "e" in number and "." not in number else number


def _below(value: Any, indent: str) -> str:
    nested = isinstance(value, Mapping) or (
        isinstance(value, Sequence) and not isinstance(value, str)
    )
    return "\n" + yaml(value, indent + "  ") if nested else " " + yaml(value)


def _quoted(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "\n":
        return "\\n"
    code = ord(character)
    return character if character.isprintable() and code < 0x10000 else f"\\U{code:08X}"
