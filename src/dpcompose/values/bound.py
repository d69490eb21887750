"""A number with certified lower and upper ends, and the method that certified it."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError

UNIT_ROUNDOFF = 2.0**-53
DOUBLE_DIGITS = 17


@dataclass(frozen=True)
class Certificate:
    """The method that produced a bound, with its error budget.

    Args:
        method: The name of the numerical method or theorem.
        budget: Named contributions to the width of the bound, in `unit`.
        unit: The unit of the budget, such as "relative delta" or "epsilon".
        notes: Remarks, such as that one end comes from a special case.
    """

    method: str
    budget: tuple[tuple[str, float], ...] = ()
    unit: str = "relative delta"
    notes: tuple[str, ...] = ()

    @property
    def widest(self) -> str:
        """The name of the largest term of the error budget; empty if the budget is."""
        return max(self.budget, key=lambda term: term[1])[0] if self.budget else ""


EXACT = Certificate("exact")


@dataclass(frozen=True, eq=False)
class Bound:
    """A number with `lower <= number <= upper`, proved.

    `float(bound)` is the upper end, the safe one for a privacy loss. Two bounds are equal when both
    ends are. `format` and `round` give the upper end rounded up (`"%.1f" % bound` formats the
    float, to the nearest). A comparison is True or False if it has that value for every number
    between the ends; otherwise it raises UnsupportedError.

    >>> Bound(0.25, 0.5).contains(0.3), float(Bound(0.25, 0.5)), Bound(0.25, 0.5).width
    (True, 0.5, 0.25)
    >>> f"{Bound(0.2, 0.30001):.2f}", round(Bound(0.2, 0.30001), 3), Bound(0.25, 0.5) <= 1
    ('0.31', 0.301, True)

    Args:
        lower: The lower end, possibly -inf; never NaN.
        upper: The upper end, possibly inf; never NaN.
        certificate: The method of proof and its error budget.

    Raises:
        DomainError: If an end is NaN or the ends are reversed.
    """

    lower: float
    upper: float
    certificate: Certificate = field(default=EXACT, repr=False)

    def __post_init__(self) -> None:
        if type(self.lower) is float and type(self.upper) is float and self.lower <= self.upper:
            return
        object.__setattr__(self, "lower", _outward("lower", self.lower, -math.inf))
        object.__setattr__(self, "upper", _outward("upper", self.upper, math.inf))
        if not self.lower <= self.upper:
            raise DomainError(
                "Bound", (self.lower, self.upper), "lower <= upper, neither of them NaN"
            )

    def __float__(self) -> float:
        return self.upper

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Bound) and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __format__(self, form: str) -> str:
        """The upper end, rounded up to the digits of the format specification `form`.

        For equal ends and no specification, the shortest decimal of up to 17 digits that parses to
        that float.
        """
        if not form:
            return str(self)
        if not math.isfinite(self.upper):
            return format(self.upper, form)
        form = form[:-1] + ".6" + form[-1] if form[-1] in "eEfFgG%" and "." not in form else form
        with localcontext(rounding=ROUND_CEILING):
            shortest = format(Decimal(repr(self.upper)), form)
            plain = (
                self.lower == self.upper
                and sum(letter.isdigit() for letter in shortest) <= DOUBLE_DIGITS
            )
            return shortest if plain else format(Decimal(self.upper), form)

    def __round__(self, digits: int = 0) -> float:
        """The upper end, rounded up to `digits` decimals; to tens, hundreds, ... if that is
        negative.
        """
        places = check.integer("digits", digits)
        if places >= 0 or not math.isfinite(self.upper):
            return float(format(self, f".{max(places, 0)}f"))
        return float(math.ceil(Fraction(self.upper) / 10**-places) * 10**-places)

    def __lt__(self, other: Bound | float | Fraction | Decimal) -> bool:
        low, high = _ends(other)
        return self._comparison("<", other, self.upper < low, self.lower >= high)

    def __le__(self, other: Bound | float | Fraction | Decimal) -> bool:
        low, high = _ends(other)
        return self._comparison("<=", other, self.upper <= low, self.lower > high)

    def __gt__(self, other: Bound | float | Fraction | Decimal) -> bool:
        low, high = _ends(other)
        return self._comparison(">", other, self.lower > high, self.upper <= low)

    def __ge__(self, other: Bound | float | Fraction | Decimal) -> bool:
        low, high = _ends(other)
        return self._comparison(">=", other, self.lower >= high, self.upper < low)

    def _comparison(self, sign: str, other: Any, surely: bool, never: bool) -> bool:
        if surely or never:
            return surely
        reason = "the truth may lie on either side"
        remedy = "Compare .lower or .upper, or ask again with a smaller tolerance"
        raise UnsupportedError(f"{self!r} {sign} {other!r}", reason, remedy)

    def to_dict(self) -> dict[str, Any]:
        """Both ends and the method in JSON types; an infinite end is the string "inf" or "-inf"."""
        ends = {"lower": self.lower, "upper": self.upper}
        finite = {name: end if math.isfinite(end) else str(end) for name, end in ends.items()}
        return {**finite, "method": self.certificate.method}

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: both ends and the certificate."""
        return f"<code>{html.escape(repr(self))}</code> <small>{html.escape(self.certificate.method)}</small>"

    @property
    def width(self) -> float:
        """upper - lower; 0 when both ends are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def contains(self, value: float) -> bool:
        """Whether `value` lies between the ends, ends included; False for NaN."""
        return self.lower <= value <= self.upper


def _ends(other: object) -> tuple[float | Fraction, float | Fraction]:
    """The (lower, upper) ends of a bound; for a number, that number as both."""
    if isinstance(other, Bound):
        return other.lower, other.upper
    if isinstance(other, Decimal) and other.is_finite():
        other = Fraction(other)
    if isinstance(other, Fraction | int) and not isinstance(other, bool):
        return other, other
    number = check.real("other", other)
    return number, number


def _outward(name: str, end: Any, beyond: float) -> float:
    """The end `end` as a float, rounded in the direction of `beyond` if it lies between two floats.

    Raises DomainError, which calls it `name`, if it is not a real number.

    Raises DomainError, which calls it `name`, if it is not a real number.
    """
    found = check.real(name, end)
    inside = (
        isinstance(end, int | Fraction)
        and math.isfinite(found)
        and (end - Fraction(found)) * beyond > 0
    )
    return math.nextafter(found, beyond) if inside else found


def met(one: Any, other: Any) -> tuple[float, float]:
    """The ends of the intersection of two enclosures of one number, which have `lower` and `upper`;
    of their hull if it is empty, since one of the two is then wrong.
    """
    lower, upper = max(one.lower, other.lower), min(one.upper, other.upper)
    if lower > upper:
        return min(one.lower, other.lower), max(one.upper, other.upper)
    return lower, upper


def around(
    value: float, *, relative: float = 0.0, absolute: float = 0.0, certificate: Certificate = EXACT
) -> Bound:
    """The bound `value` -+ (`relative` |value| + `absolute`), its ends rounded outward.

    Args:
        value: The computed number; an infinite one is returned as it is.
        relative: A proved bound on the relative error.
        absolute: A proved bound on the absolute error.
        certificate: The method that gave the value and its errors.
    """
    if math.isinf(value):
        return Bound(value, value, certificate)
    error = relative * abs(value) + absolute
    return Bound(down(value - error), up(value + error), certificate)


def down(value: float) -> float:
    """The next float below `value`: a lower bound on a result that was rounded to nearest."""
    return math.nextafter(value, -math.inf)


def up(value: float) -> float:
    """The next float above `value`: an upper bound on a result that was rounded to nearest."""
    return math.nextafter(value, math.inf)
