"""What kinds of columns there are, and which values can be keys of them."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from dpcompose.errors import DomainError

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind, and how its type is written.

    Args:
        name: As the engine has it.
        kind: "integer", "float", "decimal", "text", "boolean", "date" or "other".
        type: The type as ibis writes it.
    """

    name: str
    kind: str
    type: str

    @property
    def numeric(self) -> bool:
        """Whether it can be summed."""
        return self.kind in ("integer", "float", "decimal", "boolean")

    @property
    def groups(self) -> bool:
        """Whether its values can be keys: equality must mean the same everywhere, which it does not for floats."""
        return self.kind in _READERS

    @property
    def identifies(self) -> bool:
        """Whether it can name a unit of privacy."""
        return self.groups or self.kind in ("decimal", "identifier")

    def key(self, name: str, value: Any) -> Any:
        """`value` as a key of this column; None stands for NULL.

        Raises:
            DomainError: If it cannot be a value of the column.
        """
        if value is None:
            return None
        read, domain = _READERS[self.kind]
        found = read(value)
        if found is None:
            raise DomainError(name, value, f"{domain}, as the column {self.name!r} holds")
        return found


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        return None
    number = int(value)
    return number if -(2**63) <= number < 2**63 else None


def _text(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > 10_000:
        return None
    try:
        # Half a surrogate pair is no text in UTF-8.
        value.encode()
    except UnicodeEncodeError:
        return None
    return value if "\0" not in value else None


def _date(value: Any) -> date | None:
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "integer": (_integer, "a 64-bit integer"),
    "text": (_text, "a text"),
    "boolean": (_boolean, "True or False"),
    "date": (_date, "a date"),
}


def sorting(key: Key) -> tuple[tuple[bool, Any], ...]:
    """What sorts keys of one table: text by code point, NULL last."""
    return tuple((value is None, 0 if value is None else value) for value in key)
