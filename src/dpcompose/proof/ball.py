"""Ball arithmetic: real and complex numbers with an error radius that every operation propagates.

Only this file imports python-flint (the library Arb), and only when a proof is requested. Balls
have their own arithmetic and functions (`+`, `exp`, `expm1`, `log1p`, ...); a comparison is true
only if it holds for all numbers in the balls. `crossing` encloses the point where a decreasing
function with certified values reaches a target.

Reference: [Johansson2017, Section 2]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dpcompose.errors import MissingExtraError

if TYPE_CHECKING:
    from flint import acb, acb_mat, arb, arb_poly
    from flint.flint_base.flint_context import FlintContext

    Ball: TypeAlias = arb
    Disc: TypeAlias = acb
    Polynomial: TypeAlias = arb_poly
else:
    Ball = Disc = Polynomial = object


@dataclass(frozen=True)
class Field:
    """Constructs balls at the working precision of the innermost `with field.precision(bits)`. Get
    it from `ball_field()`.

    Args:
        ball: Makes a real ball from an exact number, or from a midpoint and a radius.
        disc: Makes a complex ball from its real and imaginary part.
        polynomial: Makes a polynomial from real balls as coefficients, the constant one first.
    """

    ball: type[Ball]
    disc: type[Disc]
    polynomial: type[Polynomial]
    _matrix: type[acb_mat]
    _context: FlintContext

    def precision(self, bits: int) -> AbstractContextManager[None]:
        """Return a context in which balls have this many binary digits."""
        return self._context.workprec(bits)

    @property
    def bits(self) -> int:
        """The working precision in binary digits."""
        return self._context.prec

    def exact(self, value: int | float) -> Ball:
        """Return the ball of an exact number; a float stands for exactly that double."""
        if value in (math.inf, -math.inf):
            return self.ball.pos_inf() if value > 0 else self.ball.neg_inf()
        return self.ball(value)

    @property
    def pi(self) -> Ball:
        """The number pi."""
        return self.ball.pi()

    def between(self, lower: Ball, upper: Ball) -> Ball:
        """Return a ball that contains all numbers between these two."""
        return lower.union(upper)

    def padded(self, value: Disc, error: Ball) -> Disc:
        """Return `value` with both its real and its imaginary part widened by `error`."""
        around = error * self.ball(0, 1)
        return value + self.disc(around, around)

    def positive(self, value: Ball) -> Ball:
        """Return `value`, which is known to be nonnegative, without the part of its ball below 0."""
        return value if value >= 0 else value.nonnegative_part()

    def accuracy(self, value: Ball) -> int:
        """Return the number of correct binary digits of a real ball, relative to its size."""
        return value.rel_accuracy_bits()

    def powers(self, first: Disc, ratio: Disc, count: int) -> list[Disc]:
        """Return first * ratio^j for j < count, each power as a product of two of half its degree,
        which keeps radii small.
        """
        values = [self.disc(1), ratio]
        for j in range(2, count):
            values.append(values[j // 2] * values[j - j // 2])
        return [first * value for value in values[:count]]

    def power_sum(self, coefficients: Sequence[Disc]) -> Callable[[Disc], Disc]:
        """Return the polynomial with these coefficients, the constant one first; it is evaluated
        blockwise as a matrix product.
        """
        columns = math.isqrt(max(len(coefficients) - 1, 0)) + 1
        rows = [
            list(coefficients[at : at + columns]) for at in range(0, len(coefficients), columns)
        ]
        rows[-1] += [self.disc(0)] * (columns - len(rows[-1]))
        blocks = self._matrix(rows)

        def value(x: Disc) -> Disc:
            within = self.powers(self.disc(1), x, columns + 1)
            across = self.powers(self.disc(1), within[-1], len(rows))
            return (
                self._matrix([across]) * (blocks * self._matrix([[power] for power in within[:-1]]))
            )[0, 0]

        return value

    def products(
        self, left: Sequence[Sequence[Disc]], right: Sequence[Sequence[Disc]]
    ) -> list[Disc]:
        """Return the entries of the product of two matrices, row by row."""
        return (self._matrix(left) * self._matrix(right)).entries()

    def up(self, value: Ball) -> float:
        """Return a float that is at least every number in the ball, usually the smallest such
        float.
        """
        return -self.down(-value) + 0.0

    def down(self, value: Ball) -> float:
        """Return a float that is at most every number in the ball, usually the largest such float."""
        low = value.lower()
        if not low > self.exact(-math.inf):
            return -math.inf
        end = float(low) + 0.0
        while end > -math.inf and not self.exact(end) <= low:
            end = math.nextafter(end, -math.inf)
        return end


def ball_field() -> Field:
    """Return the field of balls.

    Raises:
        MissingExtraError: If python-flint is not installed.
    """
    try:
        from flint import acb, acb_mat, arb, arb_poly, ctx
    except ImportError:
        raise MissingExtraError("proof=True", "proof") from None
    return Field(arb, acb, arb_poly, acb_mat, ctx)


Bracketed = Callable[[float], tuple[Ball, Ball]]
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Crossing:
    """Bounds on the crossing point: the function is at least the target up to `lower`, and at most
    the target from `upper` on.
    """

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """The midpoint, an estimate of the crossing point; the finite end if the other one is
        infinite.
        """
        return (self.lower + self.upper) / 2 if self.upper < math.inf else self.lower


def crossing(
    curve: Bracketed, target: Ball, *, guess: float, rate: float, low: float, high: float
) -> Crossing:
    """Return bounds on the point in [low, high] where a decreasing function reaches the target, as
    narrow as its values allow.

    Args:
        curve: Returns certified bounds on the function at a float.
        target: The value that the function reaches, > 0.
        guess: An estimate of the crossing point.
        rate: An estimate of the relative slope there, > 0.
        low: The lower end that is returned if none is proved.
        high: The upper end that is returned if none is proved; may be infinite.
    """
    seen: dict[float, tuple[Ball, Ball]] = {}

    def at(x: float) -> Point:
        """Return x, the logarithm of the bounds' midpoint over the target (-inf if that is 0), and
        the relative width of the bounds.
        """
        if x not in seen:
            seen[x] = curve(x)
        least, most = seen[x]
        middle = (least + most) / 2
        if not middle.mid() > 0:
            return x, -math.inf, math.inf
        return (
            x,
            float((middle / target).log().mid()),
            float(((most - least) / (2 * middle.mid())).upper()),
        )

    left, right = _around(at, min(max(guess, low), high), rate, low, high)
    middle, error = _narrowed(at, left, right)
    offset = max(math.ulp(middle), error)

    def proved() -> tuple[float, float]:
        lower = max((x for x, (least, _) in seen.items() if least >= target), default=low)
        upper = min((x for x, (_, most) in seen.items() if most <= target), default=high)
        return lower, upper

    for _ in range(80):
        lower, upper = proved()
        if middle - offset <= lower and middle + offset >= upper:
            break
        for point, open_end in (
            (middle - offset, middle - offset > lower),
            (middle + offset, middle + offset < upper),
        ):
            if open_end:
                at(point)
        offset *= 1.6
    lower, upper = proved()
    return Crossing(max(lower, low), min(upper, high))


def _around(
    at: Callable[[float], Point], x: float, rate: float, low: float, high: float
) -> tuple[Point, Point]:
    """Return two points with the function above the target at the first and below it at the second,
    judged by midpoints.
    """
    left = right = at(x)
    reach = 4.0 / rate
    step = min(max(1.1 * abs(left[1]) / rate, 4 * math.ulp(x)), reach)
    while left[1] < 0 and left[0] > low:
        left, right, step = at(max(left[0] - step, low)), left, 2 * step
    while right[1] > 0 and right[0] < high and math.isfinite(right[0] + step):
        left, right, step = right, at(min(right[0] + step, high)), 2 * step
    return left, right


def _narrowed(at: Callable[[float], Point], left: Point, right: Point) -> tuple[float, float]:
    """Return the crossing point by regula falsi with every third step a bisection, and its error
    from the width of the bounds.
    """
    for turn in range(120):
        (a, above, _), (b, below, _) = left, right
        if not (above > 0 > below and b - a > 2 * math.ulp(a)):
            break
        x = a + (b - a) * (
            above / (above - below) if turn % 3 < 2 and math.isfinite(below) else 0.5
        )
        x = x if a < x < b else (a + b) / 2
        if not a < x < b:
            break
        middle = at(x)
        if abs(middle[1]) <= 0.02 * middle[2] and math.isfinite(below):
            return x, middle[2] * (b - a) / (above - below)
        left, right = (middle, right) if middle[1] > 0 else (left, middle)
    return (left[0] if left[1] > 0 else right[0]), max(right[0] - left[0], 0.0)
