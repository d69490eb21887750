"""Finite distributions, read exactly: a float means exactly that double, and nothing is normalized.

This is Dwork and Roth's probability simplex (Definition 2.1) over a finite set.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dpcompose.errors import DomainError
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate

# Rational numbers around logarithms and exponentials, and the ratio e^epsilon among them.
#
# Everything else is exact: a result is rounded outward once, at its end. The `exp` and `ln` of Python's decimals are
# correctly rounded, so that the two neighbors of their result enclose the truth.


ENCLOSED = Certificate(
    "exact rational arithmetic; exp and log enclosed in decimal intervals", unit="absolute"
)
RATIONAL = Certificate("exact rational arithmetic")
_DIGITS = (40, 80, 160, 320, 640)
# An upper bound on e^-3000; smaller numbers are enclosed between 0 and this.
_VANISHING = Fraction(1, 10**1000)
Ends = tuple[Fraction, Fraction]
"""The lower and the upper end of an interval of rational numbers."""


@dataclass(frozen=True, eq=False)
class Exact(Bound):
    """A bound on a known rational number `value`; its ends are the floats around it.

    Args:
        value: The rational number.
    """

    value: Fraction = Fraction(0)

    @classmethod
    def of(cls, value: Fraction) -> Exact:
        """The Exact bound whose ends are the floats next to the rational number `value`."""
        return cls(_floor(value), _ceiling(value), RATIONAL, value)


def narrowed(enclosure: Callable[[int], Ends]) -> Bound:
    """The `Bound` of neighboring floats around the number that `enclosure` encloses.

    `enclosure` is called with more and more digits until both of its ends lie between neighboring
    floats.
    """
    bound = Bound(-math.inf, math.inf)
    for digits in _DIGITS:
        lower, upper = enclosure(digits)
        bound = Bound(_floor(lower), _ceiling(upper), ENCLOSED)
        if math.nextafter(bound.lower, math.inf) >= bound.upper:
            break
    return bound


def logarithm(value: Fraction, digits: int) -> Ends:
    """Rational numbers around the natural logarithm of `value` > 0, to so many digits; exactly 0 at
    1.
    """
    return _enclosed(Context.ln, value, digits) if value != 1 else (Fraction(0), Fraction(0))


def exponential(value: Fraction, digits: int) -> Ends:
    """Rational numbers around e^value, to so many digits; exactly 1 at 0."""
    if value < -3000:
        return Fraction(0), _VANISHING
    return _enclosed(Context.exp, value, digits) if value != 0 else (Fraction(1), Fraction(1))


def _enclosed(
    function: Callable[[Context, Decimal], Decimal], value: Fraction, digits: int
) -> Ends:
    """Rational numbers around an increasing function of decimals that rounds to nearest."""
    ends: list[Fraction] = []
    for rounding, beyond in (
        (ROUND_FLOOR, Context.next_minus),
        (ROUND_CEILING, Context.next_plus),
    ):
        context = Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
        rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        nearest = function(context, rounded)
        # Only the logarithm of 1 is zero; it is returned exactly, since the decimals next to 0 have
        # 10^18 digits as fractions.
        ends.append(Fraction(beyond(context, nearest) if nearest else 0))
    return ends[0], ends[1]


def log_bound(value: Fraction) -> Bound:
    """The natural logarithm of a rational number >= 0, enclosed; -inf at 0, and exactly 0 at 1."""
    if value == 0:
        return Bound(-math.inf, -math.inf)
    return narrowed(lambda digits: logarithm(value, digits))


def exact_ratio(value: Any, *, least: int = 0) -> Fraction:
    """`value` as a rational ratio e^epsilon >= `least`; raises DomainError otherwise."""
    return within("ratio", value, f"a finite ratio e^epsilon >= {least}", least=least)


def one_of(epsilon: Any, ratio: Any) -> None:
    """Raise DomainError unless exactly one of `epsilon` and `ratio` is not None."""
    if (epsilon is None) == (ratio is None):
        raise DomainError("epsilon, ratio", (epsilon, ratio), "exactly one of the two")


def floor_ratio(epsilon: Rational | None, ratio: Rational | None) -> Fraction:
    """`ratio`, or a rational number in [1, e^epsilon] within a relative 1e-58 of e^epsilon.

    Raises:
        DomainError: Unless exactly one of both is passed, and epsilon is in [0, 1e6] or ratio >= 1.
    """
    one_of(epsilon, ratio)
    if epsilon is None:
        return exact_ratio(ratio, least=1)
    power = within("epsilon", epsilon, "a number in [0, 1e6]", most=10**6)
    # For a tiny epsilon the enclosure of e^epsilon starts below 1.
    return max(exponential(power, 60)[0], Fraction(1))


def _floor(value: Fraction) -> float:
    return -_ceiling(-value) or 0.0  # the result is never -0.0


def _ceiling(value: Fraction) -> float:
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    return number if number >= value else math.nextafter(number, math.inf)


Finite: TypeAlias = Mapping[Any, Any] | Sequence[Any] | NDArray[Any]
"""A mapping from outcomes to masses, or masses in order, whose outcomes are then 0, 1, 2, ..."""
Rational: TypeAlias = int | float | Fraction | Decimal
"""A number taken exactly as it is."""

_MASS = "a mass: a finite number >= 0"
FLOAT_TOLERANCE = 4 * UNIT_ROUNDOFF
MOST_DIGITS = 10_000
"""The most digits of a decimal: 1e999999999 is short to write and too long to compute with."""


@dataclass(frozen=True, eq=False)
class Distribution(Mapping[Any, Fraction]):
    """A distribution over finitely many outcomes: a read-only mapping outcome -> exact mass.

    >>> Distribution({"yes": Fraction(3, 4), "no": Fraction(1, 4)})["yes"]
    Fraction(3, 4)

    Args:
        finite: A mapping outcome -> mass, or masses in order (outcomes 0, 1, 2, ...). Masses are
            int, Fraction, Decimal or float, each taken exactly as it is. Exact masses sum to 1; if
            one of the n masses is a float, the sum may differ from 1 by 4 n 2^-53; it is not
            normalized.
        name: The name that an error calls the distribution by.

    Raises:
        DomainError: If a mass is negative, NaN, infinite or not a number (the error names it), or
            the sum is not 1.
    """

    finite: InitVar[Finite]
    name: InitVar[str] = "distribution"
    masses: Mapping[Any, Fraction] = field(init=False)
    length: int | None = field(init=False, repr=False)

    def __post_init__(self, finite: Finite, name: str) -> None:
        labelled = _labelled(name, finite)
        masses = {
            outcome: within(f"{name}[{outcome!r}]", mass, _MASS)
            for outcome, mass in labelled.items()
        }
        rounded = any(
            not isinstance(mass, numbers.Rational | Decimal) for mass in labelled.values()
        )
        total = sum(masses.values(), Fraction(0))
        if not abs(total - 1) <= (Fraction(FLOAT_TOLERANCE) * len(masses) if rounded else 0):
            domain = (
                f"1 within {len(masses)} * 2**-51 (masses given as floats)"
                if rounded
                else "exactly 1 (exact masses)"
            )
            raise DomainError(
                f"sum of {name}", _readable(total), domain, "Nothing is normalized silently"
            )
        object.__setattr__(self, "masses", MappingProxyType(masses))
        object.__setattr__(self, "length", None if isinstance(finite, Mapping) else len(masses))

    @classmethod
    def read(cls, name: str, finite: Any) -> Distribution:
        """The Distribution that `finite` is, or describes by its masses; errors call it `name`."""
        return finite if isinstance(finite, Distribution) else cls(finite, name)

    def rearranged(self, masses: Mapping[Any, Fraction]) -> Distribution:
        """A distribution with other masses of the same total, which is not checked."""
        moved = object.__new__(Distribution)
        object.__setattr__(moved, "masses", MappingProxyType(dict(masses)))
        object.__setattr__(moved, "length", self.length)
        assert moved.total == self.total, "mass was lost"
        return moved

    def __getitem__(self, outcome: Any) -> Fraction:
        return self.masses[outcome]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.masses)

    def __len__(self) -> int:
        return len(self.masses)

    def __hash__(self) -> int:
        return hash(frozenset(self.masses.items()))

    @property
    def total(self) -> Fraction:
        """The sum of the masses: 1, or within 4 n 2^-53 of it if one of n masses was a float."""
        return sum(self.masses.values(), Fraction(0))


@dataclass(frozen=True)
class Coupled:
    """The masses of two distributions on the union of their supports.

    Args:
        outcomes: The outcomes of the first distribution, then those of the second alone.
        first: The masses of the first distribution, in the order of `outcomes`.
        second: The masses of the second distribution, in the same order.
    """

    outcomes: tuple[Any, ...]
    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]

    @property
    def masses(self) -> list[tuple[Fraction, Fraction]]:
        """The pairs (Y(x), Z(x)) of the masses of each outcome x."""
        return list(zip(self.first, self.second, strict=True))


def coupled(first: Any, second: Any) -> Coupled:
    """The masses of the finite distributions `first` and `second` on the union of their supports.

    Raises:
        DomainError: If either is not a distribution; or if one is a sequence of masses and the
            other has a different length, or an outcome that is not an index of the sequence.
    """
    left, right = Distribution.read("first", first), Distribution.read("second", second)
    for name, one, other in (("second", left, right), ("first", right, left)):
        for outcome in other:
            if one.length is not None and not (
                isinstance(outcome, int) and 0 <= outcome < one.length
            ):
                domain = f"an outcome among the positions 0 to {one.length - 1} of the other distribution"
                raise DomainError(
                    f"outcome of {name}", outcome, domain, "Pass both as mappings outcome -> mass"
                )
    outcomes = (*left, *(outcome for outcome in right if outcome not in left))
    nothing = Fraction(0)
    return Coupled(
        outcomes,
        tuple(left.get(outcome, nothing) for outcome in outcomes),
        tuple(right.get(outcome, nothing) for outcome in outcomes),
    )


def exact(name: str, value: Any, domain: str = "a finite real number") -> Fraction:
    """`value` as an exact rational number.

    Raises DomainError with the text `domain` for a bool and anything that is not a finite real
    number.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        raise DomainError(name, value, domain)
    if (
        isinstance(value, Decimal)
        and value.is_finite()
        and value
        and not abs(value.adjusted()) <= MOST_DIGITS
    ):
        raise DomainError(
            name, value, f"{domain}, of at most {MOST_DIGITS} digits before or after the point"
        )
    try:
        return Fraction(*_integer_ratio(value))
    except (ValueError, OverflowError):  # NaN and the infinities
        raise DomainError(name, value, domain) from None


def within(
    name: str, value: Any, domain: str, *, least: int = 0, most: float = math.inf
) -> Fraction:
    """`value` as an exact rational number between `least` and `most`.

    Raises DomainError with the text `domain`, which calls it `name`, otherwise.
    """
    number = exact(name, value, domain)
    if not least <= number <= most:
        raise DomainError(name, value, domain)
    return number


def exact_probability(name: str, value: Any) -> Fraction:
    """`value` as an exact rational number in [0, 1]."""
    return within(name, value, "a number in [0, 1]", most=1)


def _integer_ratio(value: Any) -> tuple[int, int]:
    return (int(value), 1) if isinstance(value, numbers.Integral) else value.as_integer_ratio()


def _labelled(name: str, finite: Any) -> dict[Any, Any]:
    if isinstance(finite, Mapping):
        return dict(cast(Mapping[Any, Any], finite))
    if isinstance(finite, np.ndarray):
        shape = cast(NDArray[Any], finite).shape
        if len(shape) != 1:
            raise DomainError(f"shape of {name}", shape, "one dimension")
    if isinstance(finite, str | bytes) or not isinstance(finite, Sequence | np.ndarray):
        raise DomainError(
            name, finite, "a mapping outcome -> mass, or a sequence or array of masses"
        )
    return dict(enumerate(cast(Iterable[Any], finite)))


def _readable(total: Fraction) -> float | Fraction:
    return total if total.denominator < 10**12 else float(total)
