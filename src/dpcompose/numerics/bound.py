"""A number known to lie between two floats, and how it was certified."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

from dpcompose.errors import DomainError, UnsupportedError
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

    `float(bound)` is the upper end, the safe one for a privacy loss. Two bounds are equal when both ends are. `format`
    and `round` give the upper end rounded up. A comparison is True or False where it holds for the truth, wherever that
    lies between the ends, and an error where that is not known.

    >>> Bound(0.25, 0.5).contains(0.3), float(Bound(0.25, 0.5)), Bound(0.25, 0.5).width
    (True, 0.5, 0.25)
    >>> f"{Bound(0.2, 0.30001):.2f}", round(Bound(0.2, 0.30001), 3), Bound(0.25, 0.5) <= 1
    ('0.31', 0.301, True)

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

    def __format__(self, form: str) -> str:
        """The upper end rounded up as `form` says; ends that are equal as the shortest decimal that reads back."""
        if not form:
            return str(self)
        if not math.isfinite(self.upper):
            return format(self.upper, form)
        with localcontext(rounding=ROUND_CEILING):
            return format(Decimal(repr(self.upper)) if self.lower == self.upper else Decimal(self.upper), form)

    def __round__(self, digits: int = 0) -> float:
        """The upper end, rounded up to that many decimals."""
        return float(format(self, f".{check.count('digits', digits, least=0)}f"))

    def __lt__(self, other: Bound | float | Fraction) -> bool:
        low, high = _ends(other)
        return self._known("<", other, self.upper < low, self.lower >= high)

    def __le__(self, other: Bound | float | Fraction) -> bool:
        low, high = _ends(other)
        return self._known("<=", other, self.upper <= low, self.lower > high)

    def __gt__(self, other: Bound | float | Fraction) -> bool:
        low, high = _ends(other)
        return self._known(">", other, self.lower > high, self.upper <= low)

    def __ge__(self, other: Bound | float | Fraction) -> bool:
        low, high = _ends(other)
        return self._known(">=", other, self.lower >= high, self.upper < low)

    def _known(self, sign: str, other: Any, surely: bool, never: bool) -> bool:
        if surely or never:
            return surely
        reason = "the truth may lie on either side"
        remedy = "Compare .lower or .upper, or ask again with a smaller tolerance"
        raise UnsupportedError(f"{self!r} {sign} {other!r}", reason, remedy)

    def to_dict(self) -> dict[str, Any]:
        """Both ends and the method, ready for JSON: an infinite end is "inf" or "-inf"."""
        ends = {"lower": self.lower, "upper": self.upper}
        finite = {name: end if math.isfinite(end) else str(end) for name, end in ends.items()}
        return {**finite, "method": self.certificate.method}

    def _repr_html_(self) -> str:
        """For a notebook: both ends, and how they were found."""
        return f"<code>{html.escape(repr(self))}</code> <small>{html.escape(self.certificate.method)}</small>"

    @property
    def width(self) -> float:
        """upper - lower; 0 when both ends are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def contains(self, value: float) -> bool:
        """Whether `value` lies between the ends, ends included; False for NaN."""
        return self.lower <= value <= self.upper


def _ends(other: object) -> tuple[float | Fraction, float | Fraction]:
    """The ends of a bound, or a number twice."""
    if isinstance(other, Bound):
        return other.lower, other.upper
    number = other if isinstance(other, Fraction) else check.real("other", other)
    return number, number


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
