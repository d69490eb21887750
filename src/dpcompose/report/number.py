"""Numbers for people: rounded in a stated direction, so that no page shows a smaller loss than was proved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from enum import Enum
from operator import attrgetter
from typing import Any, cast

from dpcompose.values import Bound

MOST = 17
"""Digits that identify a double."""


def above(value: float, digits: int = 6) -> str:
    """`value` rounded up to that many significant digits."""
    return _rounded(value, digits, ROUND_CEILING)


def below(value: float, digits: int = 6) -> str:
    """`value` rounded down to that many significant digits."""
    return _rounded(value, digits, ROUND_FLOOR)


def nearest(value: float, digits: int = 6) -> str:
    """`value` rounded to nearest, for a number that is no bound."""
    return _rounded(value, digits, ROUND_HALF_EVEN)


def exactly(value: float) -> str:
    """The shortest decimal that reads back as this double, for a number that was typed."""
    return "infinite" if value == math.inf else repr(value).removesuffix(".0")


def trimmed(text: str) -> str:
    """A number without the zeros that end its digits after the point."""
    mantissa, mark, exponent = text.partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + mark + exponent


def interval(bound: Bound) -> tuple[str, str]:
    """Both ends rounded outward, with the digits in which they agree and two more."""
    if bound.lower == bound.upper:
        return exactly(bound.lower), exactly(bound.upper)
    digits = digits_of(bound) + 2
    return below(bound.lower, digits), above(bound.upper, digits)


def digits_of(bound: Bound) -> int:
    """The number of certain significant digits of a bound; at least 2, at most 15."""
    size = max(abs(bound.lower), abs(bound.upper))
    if not size < math.inf:
        return 4
    if not bound.width > 0:
        return MOST - 2
    return min(max(math.floor(-math.log10(bound.width / size)), 2), MOST - 2)


def bound_document(bound: Bound) -> dict[str, Any]:
    """Both ends, the width and the certificate."""
    certificate = bound.certificate
    errors = {"unit": certificate.unit, "terms": dict(certificate.budget)}
    rests_on = members(certificate, "method") | {"errors": errors} | members(certificate, "notes")
    return members(bound, "lower upper width") | rests_on


_RECORDS = {
    "Comparison": "theorem=name reference kind epsilon lower note",
    "Contribution": "name=entry.name times=entry.times alone without",
    "ExposureStatement": "available epsilon regime holds theorem failure",
    "Parameter": "name kind=kind.__name__ meaning required",
    "Plan": "source adjacency toml",
    "TheoremCurve": "theorem=name reference points",
    "Tried": "event excess error excluded",
}
"""The members of parts of documents by their class, as `members` reads them."""


def members(subject: Any, names: str) -> dict[str, Any]:
    """These attributes of a result as a document has them, separated by spaces; `kind=scope.kind` is a part's under a name."""
    stated = (each.partition("=") for each in names.split())
    return {name: plain(attrgetter(path or name)(subject)) for name, _, path in stated}


def plain(value: Any) -> Any:
    """A value in the types of JSON: records by their members, enumerations by their values, sequences as lists.

    A method is called, and what has no type of JSON is its text.
    """
    if record := _RECORDS.get(type(value).__name__):
        return members(value, record)
    if type(value).__module__ == "numpy":
        return value.tolist()
    match value:
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case Bound():
            return bound_document(value)
        case list() | tuple():
            return [plain(each) for each in cast("list[Any]", value)]
        case Mapping():
            named = cast("Mapping[str, Any]", value)
            return {name: plain(each) for name, each in named.items()}
        case _ if callable(value):
            return plain(value())
        case _:
            return str(value)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value == 0:
        return "0"
    return _text(Context(prec=digits, rounding=rounding).create_decimal_from_float(value))


def _text(number: Decimal) -> str:
    """Positional where that is short, otherwise with an exponent as in 1.5e-08."""
    exponent = number.adjusted()
    if -5 < exponent < 7:
        return f"{number:f}"
    digits = "".join(str(digit) for digit in number.as_tuple().digits)
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{'-' if number < 0 else ''}{mantissa}e{exponent:+03d}"
