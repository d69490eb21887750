"""The order of a Renyi divergence."""

from __future__ import annotations

import math

from dpcompose.errors import DomainError
from dpcompose.numerics import check


def order_of(value: object) -> float:
    """`value` as a finite float above 1."""
    number = check.real("order", value)
    if not 1.0 < number < math.inf:
        raise DomainError("order", value, "a finite number > 1")
    return number
