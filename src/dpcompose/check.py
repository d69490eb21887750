"""Guards on arguments: each returns the checked value or raises a DomainError. Conditions are
positive so that NaN fails.
"""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
from collections.abc import Iterable
from enum import Enum
from typing import Any, TypeVar, cast

from dpcompose.errors import DomainError

Kind = TypeVar("Kind")
Member = TypeVar("Member", bound=Enum)
_MOST_TIMES = 10**15
_LONGEST_LINE = 256
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"  # ignored by default
    "\u2800\ufffc\U00013441\U00013442\U00016fe4\U0001d159]"  # and blank in most fonts
)
"""Characters that are neither control nor format characters and yet are invisible: with them, two names look alike."""

_PLAIN_LINE = re.compile(r"[A-Za-z0-9 ._:@+/=#,~-]*", re.ASCII)


def real(name: str, value: Any) -> float:
    """Return `value` as a float; raises a DomainError unless it is a real number, not a bool and
    not NaN.
    """
    if type(value) is float and value == value:  # nearly always, and much faster to tell
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise DomainError(name, value, "a real number")
    try:
        number = float(value)
    except OverflowError:
        raise DomainError(name, value, "a number that a float can hold") from None
    if not (number <= math.inf and number >= -math.inf):
        raise DomainError(name, value, "a real number, not NaN")
    if number == 0 and value != 0:
        raise DomainError(
            name, value, "0, or a number of at least 5e-324 in size, the least positive double"
        )
    return number


def finite(name: str, value: Any) -> float:
    """Return `value` as a finite float; raises a DomainError if it is none."""
    number = real(name, value)
    if not -math.inf < number < math.inf:
        raise DomainError(name, value, "a finite number")
    return number


def positive(name: str, value: Any, remedy: str = "") -> float:
    """Return `value` as a finite float above 0; raises a DomainError, with `remedy`, if it is
    none.
    """
    number = real(name, value)
    if not 0.0 < number < math.inf:
        raise DomainError(name, value, "a finite number > 0", remedy)
    return number


def nonnegative(name: str, value: Any, remedy: str = "") -> float:
    """Return `value` as a finite float of at least 0; raises a DomainError, with `remedy`, if it is
    none.
    """
    number = real(name, value)
    if not 0.0 <= number < math.inf:
        raise DomainError(name, value, "a finite number >= 0", remedy)
    return number + 0.0


def probability(name: str, value: Any, remedy: str = "") -> float:
    """Return `value` as a float in [0, 1]; raises a DomainError, with `remedy`, if it is none."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise DomainError(name, value, "a number in [0, 1]", remedy)
    return number + 0.0


def open_probability(name: str, value: Any) -> float:
    """Return `value` as a float in (0, 1); raises a DomainError if it is none."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise DomainError(name, value, "a number in (0, 1)")
    return number


def count(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """Return `value` as an integer from `least` to `most`; raises a DomainError if it is none, or a
    bool.
    """
    highest = math.inf if most is None else most
    if type(value) is int and least <= value <= highest:  # nearly always, and much faster to tell
        return value
    is_integer = not isinstance(value, bool) and isinstance(value, numbers.Integral)
    if not (is_integer and least <= int(value)):
        raise DomainError(name, value, f"an integer >= {least}")
    if int(value) > highest:
        raise DomainError(name, value, f"an integer from {least} to {most}")
    return int(value)


def times(value: Any, *, least: int = 0, name: str = "times") -> int:
    """Return `value` as the number of runs of a mechanism, from `least` to 10^15; raises a
    DomainError if it is none.

    Up to 10^15 every integer is exact in a float.
    """
    number = count(name, value, least=least)
    if number > _MOST_TIMES:
        raise DomainError(name, value, f"an integer from {least} to 10^15")
    return number


def order(value: Any) -> float:
    """Return `value` as the order of a Renyi divergence, a finite float above 1; raises a
    DomainError if it is none.
    """
    number = real("order", value)
    if not 1.0 < number < math.inf:
        raise DomainError("order", value, "a finite number > 1")
    return number


def integer(name: str, value: Any) -> int:
    """Return `value` as an integer of either sign; raises a DomainError if it is none, or a
    bool.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise DomainError(name, value, "an integer")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False; raises a DomainError otherwise, also for 0 and 1."""
    if not isinstance(value, bool):
        raise DomainError(name, value, "True or False")
    return value


def line(name: str, value: Any) -> str:
    """`value` as one line of visible text, such as a key or an actor.

    Raises:
        DomainError: Not text, empty, too long, with characters that do not show, or not in Unicode's form NFC.
    """
    domain = f"one line of visible text, 1 to {_LONGEST_LINE} characters"
    if not (isinstance(value, str) and 0 < len(value) <= _LONGEST_LINE):
        raise DomainError(name, value, domain)
    if not (_PLAIN_LINE.fullmatch(value) or _is_visible(value)):
        raise DomainError(
            name, value, f"{domain}, without control or formatting characters and odd blanks"
        )
    if value != value.strip():
        raise DomainError(name, value, f"{domain}, without blanks at its ends")
    if not unicodedata.is_normalized("NFC", value):
        raise DomainError(
            name,
            value,
            f"{domain}, in Unicode's normal form NFC",
            "unicodedata.normalize('NFC', text)",
        )
    return value


def _is_visible(text: str) -> bool:
    """Whether every character shows, and every blank is a plain one."""
    shown = all(letter == " " or unicodedata.category(letter)[0] not in "CZ" for letter in text)
    return shown and not UNSEEN.search(text)


def progress(value: Any) -> None:
    """Raise a DomainError unless `value`, a progress callback, is callable or None."""
    if not (value is None or callable(value)):
        raise DomainError(
            "progress",
            value,
            "None, or a function of two numbers: how many are done, and how many there are",
        )


def kind(name: str, value: Any, of: type[Kind], accepted: str, remedy: str = "") -> Kind:
    """Return `value` if it is an instance of the class `of`; else raise a DomainError with
    `accepted` and `remedy`.
    """
    if not isinstance(value, of):
        raise DomainError(name, value, accepted, remedy)
    return value


def several(name: str, values: Any, of: type[Kind], accepted: str) -> tuple[Kind, ...]:
    """Return `values` as a tuple if they are at least one instance of the class `of`; else raise a
    DomainError with `accepted`.
    """
    listed = tuple(cast("Iterable[Any]", values)) if isinstance(values, Iterable) else ()
    if not (listed and all(isinstance(each, of) for each in listed)):
        raise DomainError(name, values, accepted)
    return listed


def member(name: str, value: Any, of: type[Member]) -> Member:
    """Return `value` if it is a member of the enumeration `of`, such as `Adjacency`; else raise a
    DomainError.
    """
    if not isinstance(value, of):
        raise DomainError(
            name, value, f"{of.__name__}.{next(iter(of)).name}, or another {of.__name__}"
        )
    return value


def named(name: str, value: Any, of: type[Member]) -> Member:
    """Return the member of the enumeration `of` that `value` is or names, such as "add-remove";
    else raise a DomainError.
    """
    if isinstance(value, of):
        return value
    for each in of:
        if isinstance(value, str) and value == each.value:
            return each
    raise DomainError(
        name,
        value,
        f"one of {', '.join(repr(each.value) for each in of)}, or the member of {of.__name__}",
    )
