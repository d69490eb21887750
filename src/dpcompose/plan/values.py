"""The values of a plan file: how each kind of TOML value is read, and written."""

from __future__ import annotations

import inspect
import json
import math
from typing import Any, cast

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.mechanisms import Participation
from dpcompose.values import Adjacency


def number(name: str, value: Any) -> float:
    """A TOML float or integer as a float; the constructor checks the domain, and NaN is refused here."""
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


def truth(name: str, value: Any) -> bool:
    """A TOML boolean."""
    return check.flag(name, value)


def integers(name: str, value: Any) -> int | tuple[int, ...]:
    """A TOML integer, or an array of them as a tuple."""
    if not isinstance(value, list):
        return integer(name, value)
    items = cast("list[Any]", value)
    if not items or any(isinstance(item, bool) or not isinstance(item, int) for item in items):
        raise DomainError(
            name, items, "an integer, or an array of integers, one for each coordinate"
        )
    return tuple(items)


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """A TOML array of numbers."""
    if not isinstance(value, list) or not value:
        raise DomainError(name, value, "an array of numbers")
    return tuple(number(f"{name}[{at}]", each) for at, each in enumerate(cast("list[Any]", value)))


def rows(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    """A TOML array of arrays of numbers."""
    given = cast("list[Any]", value) if isinstance(value, list) else []
    if not given or not all(isinstance(row, list) for row in given):
        raise DomainError(name, value, "an array of rows, each an array of numbers")
    return tuple(
        tuple(number(f"{name}[{at}]", entry) for entry in row) for at, row in enumerate(given)
    )


def participation(name: str, value: Any) -> Participation:
    """A TOML table of the arguments of `Participation`."""
    known = inspect.signature(Participation).parameters
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": value}
    if not given.keys() <= known.keys():
        raise DomainError(
            name, value, f"a table with keys of {', '.join(known)}, such as {{ most = 1 }}"
        )
    return Participation(**given)


def adjacency(name: str, value: Any) -> Adjacency:
    """The adjacency of that name."""
    names = [member.value for member in Adjacency]
    if value not in names:
        raise DomainError(name, value, "one of " + ", ".join(f'"{each}"' for each in names))
    return Adjacency(value)


def label(name: str, value: Any) -> str:
    """A name to show: printable, on one line, at most 100 characters."""
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or not 0 < len(value) <= 100
        or value != value.strip()
    ):
        raise DomainError(
            name, value, "printable text of 1 to 100 characters, without blanks around it"
        )
    return value


def quoted(text: str) -> str:
    """Text as a TOML string."""
    return json.dumps(text, ensure_ascii=False)


def array_text(value: int | tuple[float, ...]) -> str:
    """A number, or an array of numbers, as TOML."""
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def table_text(value: Participation) -> str:
    """A participation as a TOML table."""
    given = {"separation": value.separation, "most": value.most, "fixed": value.fixed}
    written = [f"{name} = {json.dumps(each)}" for name, each in given.items() if each is not None]
    return f"{{ {', '.join(written)} }}"
