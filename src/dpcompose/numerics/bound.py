"""A number known to lie between two floats, and how it was certified."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.numerics import check

UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class Certificate:
    """How a bound was obtained.

    Args:
        method: The engine or theorem, in words.
        budget: Named contributions to the width, in the unit of the quantity that the method bounds (`unit`).
        unit: The unit of the budget: "delta" or "epsilon", relative or absolute as it says.
        notes: Sentences a reader should know, such as which end comes from a sub-case.
    """

    method: str
    budget: tuple[tuple[str, float], ...] = ()
    unit: str = "relative delta"
    notes: tuple[str, ...] = ()

    @property
    def widest(self) -> str:
        """The name of the largest term of the budget, or the empty string."""
        return max(self.budget, key=lambda term: term[1])[0] if self.budget else ""


EXACT = Certificate("exact")


@dataclass(frozen=True, eq=False)
class Bound:
    """A number that provably satisfies `lower <= truth <= upper`.

    `float(bound)` is the upper end, the safe one for a privacy loss. Two bounds are equal when both ends are.

    >>> Bound(0.25, 0.5).contains(0.3), float(Bound(0.25, 0.5)), Bound(0.25, 0.5).width
    (True, 0.5, 0.25)

    Args:
        lower: The lower end, possibly -inf; never NaN.
        upper: The upper end, possibly inf; never NaN.
        certificate: The method and its error budget.

    Raises:
        DomainError: If an end is NaN or the ends are reversed.
    """

    lower: float
    upper: float
    certificate: Certificate = field(default=EXACT, repr=False)

    def __post_init__(self) -> None:
        if type(self.lower) is float and type(self.upper) is float and self.lower <= self.upper:
            return
        object.__setattr__(self, "lower", check.real("lower", self.lower))
        object.__setattr__(self, "upper", check.real("upper", self.upper))
        if not self.lower <= self.upper:
            raise DomainError("Bound", (self.lower, self.upper), "lower <= upper, neither of them NaN")

    def __float__(self) -> float:
        return self.upper

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Bound) and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    @property
    def width(self) -> float:
        """upper - lower; 0 when both ends are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def contains(self, value: float) -> bool:
        """Whether `value` lies between the ends, ends included; False for NaN."""
        return self.lower <= value <= self.upper


def around(value: float, *, relative: float = 0.0, absolute: float = 0.0, certificate: Certificate = EXACT) -> Bound:
    """The bound `value` -+ (`relative` |value| + `absolute`), its ends rounded outward.

    Args:
        value: The computed number; an infinite one is returned as it is.
        relative: A proved bound on the relative error.
        absolute: A proved bound on the absolute error.
        certificate: How the value was obtained.
    """
    if math.isinf(value):
        return Bound(value, value, certificate)
    error = relative * abs(value) + absolute
    return Bound(down(value - error), up(value + error), certificate)


def down(value: float) -> float:
    """The next float below `value`: undoes one rounding to nearest, downward."""
    return math.nextafter(value, -math.inf)


def up(value: float) -> float:
    """The next float above `value`: undoes one rounding to nearest, upward."""
    return math.nextafter(value, math.inf)
