"""How often a mechanism is used."""

from __future__ import annotations

from dpcompose.errors import DomainError
from dpcompose.numerics import check

MOST = 10**15


def times_of(value: object, *, least: int = 0) -> int:
    """`value` as an integer from `least` to 10^15, which every formula can hold in a float."""
    number = check.count("times", value, least=least)
    if number > MOST:
        raise DomainError("times", value, f"an integer from {least} to 10^15")
    return number
