"""The keys that a mechanism may have in a plan file: how each is read, written and varied."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from dpcompose.errors import DomainError
from dpcompose.guarantee.adjacency import Adjacency

Value = float | int | str | tuple[int, ...] | Adjacency
Response = Literal["increasing", "decreasing"]


@dataclass(frozen=True)
class Key:
    """One key of a `[[mechanism]]` table.

    Args:
        read: Turns the TOML value into the argument of the constructor; raises DomainError on a wrong type.
        write: The TOML text of such an argument; reading it back gives the same argument.
        response: How epsilon responds when the value grows; None where that is not known, so it cannot be varied.
        integer: Whether only integers make sense.
    """

    read: Callable[[str, Any], Value]
    write: Callable[[Any], str] = repr
    response: Response | None = None
    integer: bool = False


def number(name: str, value: Any) -> float:
    """A TOML float or integer as a float; the domain is the constructor's to judge, NaN is nobody's."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DomainError(name, value, "a number")
    try:
        result = float(value)
    except OverflowError:
        raise DomainError(name, value, "a number that a float can hold") from None
    if math.isnan(result):
        raise DomainError(name, value, "a number, not NaN")
    return result


def integer(name: str, value: Any) -> int:
    """A TOML integer; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise DomainError(name, value, "an integer")
    return value


def integers(name: str, value: Any) -> int | tuple[int, ...]:
    """A TOML integer, or an array of them as a tuple."""
    if not isinstance(value, list):
        return integer(name, value)
    items = cast("list[Any]", value)
    if not items or any(isinstance(item, bool) or not isinstance(item, int) for item in items):
        raise DomainError(name, items, "an integer, or an array of integers, one for each coordinate")
    return tuple(items)


def adjacency(name: str, value: Any) -> Adjacency:
    """The adjacency of that name."""
    names = [member.value for member in Adjacency]
    if value not in names:
        raise DomainError(name, value, "one of " + ", ".join(f'"{each}"' for each in names))
    return Adjacency(value)


def label(name: str, value: Any) -> str:
    """A name to show: printable, on one line, at most 100 characters."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= 100 or value != value.strip():
        raise DomainError(name, value, "printable text of 1 to 100 characters, without blanks around it")
    return value


def quoted(text: str) -> str:
    """Text as a TOML string."""
    return json.dumps(text, ensure_ascii=False)


def _array(value: int | tuple[int, ...]) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


# The one list of what a constructor may call its parameters; a test holds it against every constructor.
KEYS: dict[str, Key] = {
    "scale": Key(number, response="decreasing"),
    "sigma": Key(number, response="decreasing"),
    "sensitivity": Key(number, response="increasing"),
    "replace_sensitivity": Key(number, response="increasing"),
    "epsilon": Key(number, response="increasing"),
    "delta": Key(number, response="increasing"),
    "rho": Key(number, response="increasing"),
    "mu": Key(number, response="increasing"),
    "shift": Key(integers, _array),
    "replace": Key(integers, _array),
    "categories": Key(integer),
    "holds_under": Key(adjacency, lambda member: quoted(member.value)),
    "rate": Key(number, response="increasing"),
    "times": Key(integer, response="increasing", integer=True),
    "name": Key(label, quoted),
    "kind": Key(label, quoted),
}
