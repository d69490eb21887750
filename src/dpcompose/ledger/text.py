"""Text that may be written into a ledger: paths, names, keys, descriptions."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, cast

from dpcompose import check
from dpcompose.errors import DomainError

LONGEST_PATH = 512
MOST_BYTES = 1000
"""Of a path in UTF-8: two of them, or one and a key, fit a row of PostgreSQL's index."""

MOST_LEVELS = 16
LONGEST_DESCRIPTION = 64 * 1024
DEEPEST = 32
_PUNCTUATION = set("-_.@+=:~,#")
_CURRENCY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._:+/()-]{0,62}[A-Za-z0-9)])?", re.ASCII)
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*", re.ASCII)

encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""The one way to write JSON here: sorted names, no blanks, ASCII; equal values have equal texts."""


def scope_path(value: object) -> str:
    """`value` as the path of a scope, such as `world/acme/sales`.

    Raises:
        DomainError: Not text, too long or too deep, an empty or odd part, or not in Unicode's form NFC.
    """
    domain = "a path such as world/acme/sales: parts of visible letters, digits and -_.@+=:~,# with / between them"
    if not (isinstance(value, str) and 0 < len(value) <= LONGEST_PATH):
        raise DomainError("path", value, f"{domain}, at most {LONGEST_PATH} characters")
    parts = value.split("/")
    if not len(parts) <= MOST_LEVELS:
        raise DomainError("path", value, f"at most {MOST_LEVELS} levels")
    if _PLAIN_PATH.fullmatch(value):
        return value
    if not all(_is_part(part) for part in parts):
        raise DomainError("path", value, domain)
    if not len(value.encode()) <= MOST_BYTES:
        raise DomainError("path", value, f"{domain}, at most {MOST_BYTES} bytes in UTF-8")
    if not unicodedata.is_normalized("NFC", value):
        raise DomainError(
            "path",
            value,
            "a path in Unicode's normal form NFC",
            "unicodedata.normalize('NFC', path)",
        )
    return value


def scope_paths(paths: Iterable[str]) -> list[str]:
    """Each of them as `scope_path` reads it; one text alone is no list of paths."""
    if isinstance(paths, str) or not isinstance(paths, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("paths", paths, "a list of paths, such as ['world/acme', 'world/city']")
    return [scope_path(path) for path in paths]


def _is_part(part: str) -> bool:
    allowed = all(
        letter in _PUNCTUATION or unicodedata.category(letter)[0] in "LMN" for letter in part
    )
    return bool(part) and part not in (".", "..") and allowed and not check.UNSEEN.search(part)


def currency_name(value: object) -> str:
    """`value` as the name of a currency, such as `epsilon` or `renyi:1.5`."""
    if not (isinstance(value, str) and value != "slots" and _CURRENCY.fullmatch(value)):
        domain = "a name such as epsilon or renyi:1.5, at most 64 characters, not the word slots"
        raise DomainError("currency", value, domain)
    return value


def description_text(value: Mapping[str, Any] | None) -> str:
    """`value` as JSON: names are text, values are text, numbers, booleans, None, lists and mappings of these.

    Raises:
        DomainError: Anything else in it, NaN or infinite numbers, or more than 64 KiB of text.
    """
    if value is None:
        return "{}"
    check.kind("description", value, Mapping, "a mapping of plain values")
    text = encode(_plain(value, DEEPEST))
    if not len(text) <= LONGEST_DESCRIPTION:
        raise DomainError(
            "description", f"{len(text)} bytes of JSON", f"at most {LONGEST_DESCRIPTION} bytes"
        )
    return text


def _plain(value: object, depth: int) -> object:
    if value is None or type(value) is bool:
        return value
    if isinstance(value, str):
        return _unicode(value)
    if not depth > 0:
        raise DomainError("description", "...", f"at most {DEEPEST} levels")
    match value:
        case int():
            if not -(10**300) < value < 10**300:
                raise DomainError(
                    "description", "a very long integer", "integers of at most 300 digits"
                )
            return int(value)
        case float():
            if not -float("inf") < value < float("inf"):
                raise DomainError(
                    "description", value, "finite numbers", "write the text 'inf' if it is meant"
                )
            return float(value)
        case Mapping():
            entries = cast(Mapping[object, object], value)
            for name in entries:
                if not isinstance(name, str):
                    raise DomainError("description", name, "names of text")
            return {
                _unicode(cast(str, name)): _plain(each, depth - 1) for name, each in entries.items()
            }
        case list() | tuple():
            return [_plain(each, depth - 1) for each in cast(list[object], value)]
        case _:
            raise DomainError(
                "description", value, "plain values: text, numbers, booleans, None, lists, mappings"
            )


def _unicode(value: str) -> str:
    """`value`, unless it holds halves of surrogate pairs: JSON would join them, and read something else."""
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise DomainError("description", value, "text of Unicode, without lone surrogates")
    return value
