"""The fields of a request, and a charge with the price that the server computed for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.ledger import Amounts, Entry
from dpcompose.serve.identity import Identity

Fields = Mapping[str, Any]
Answer = dict[str, Any]
LONGEST_MECHANISM = 20_000
_FRACTION = re.compile(r"[0-9]{1,400}/[1-9][0-9]{0,399}", re.ASCII)


@dataclass(frozen=True)
class PricedCharge:
    """A requested charge, and the price that the server computed for it.

    Args:
        who: The identity that asks.
        scope: Where.
        key: The ledger's key.
        cost: The price.
        fields: The mechanism as text, and delta.
        reservation: The name of the reservation to use, if one is to be used.
    """

    who: Identity
    scope: str
    key: str
    cost: Amounts
    fields: Fields
    reservation: str | None = None


def text(fields: Fields, name: str, *, most: int = 5000) -> str:
    """A field that must be there, as text on one line."""
    value = fields.get(name)
    if not (isinstance(value, str) and 0 < len(value) <= most and value.isprintable()):
        raise DomainError(name, value, f"text of at most {most} characters on one line")
    return value


def number(fields: Fields, name: str, *, most: float, default: float | None = None) -> float:
    """A field that is a number above 0."""
    value = fields.get(name, default)
    if type(value) not in (int, float) or not 0 < value <= most:
        raise DomainError(name, value, f"a number above 0, at most {most:g}")
    return value


def amounts(fields: Fields, name: str) -> Amounts:
    """A field of amounts by currency, each a text."""
    value = fields.get(name)
    require_texts(name, value)
    return Amounts.of(value, name=name)


def delta(fields: Fields) -> str | Fraction | None:
    """A delta as it was typed, or as a fraction such as 1/1000, which is how a client writes any number exactly."""
    if fields.get("delta") is None:
        return None
    typed = text(fields, "delta")
    if _FRACTION.fullmatch(typed) is None:
        return typed
    numerator, denominator = typed.split("/")
    return Fraction(int(numerator), int(denominator))


def require_texts(name: str, value: object) -> None:
    """Raise DomainError unless it is a mapping of texts."""
    if not (isinstance(value, dict) and all(isinstance(each, str) for each in value.values())):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        raise DomainError(name, value, "texts by name")


def note_of(entry: Entry) -> dict[str, Any]:
    """The note of an entry."""
    found: Any = entry.description.get("note")
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]
