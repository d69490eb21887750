"""Ball arithmetic: real and complex numbers known to within a radius that every operation carries along.

This is the one file that imports python-flint (the library Arb), and only when proof is asked for. A ball offers its
own arithmetic and functions (`+`, `exp`, `expm1`, `log1p`, ...); a comparison is true only if it holds for all numbers
in the balls. `crossing` finds where a decreasing function that is known by its brackets falls to a target.

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
    """Makes balls. Load it with `field()`; the working precision is that of the innermost `with field.precision(bits)`.

    Args:
        ball: A real ball from an exact number, or from a middle and a radius.
        disc: A complex ball from its real and imaginary part.
        polynomial: A polynomial with real balls for coefficients, from the constant one on.
    """

    ball: type[Ball]
    disc: type[Disc]
    polynomial: type[Polynomial]
    _matrix: type[acb_mat]
    _context: FlintContext

    def precision(self, bits: int) -> AbstractContextManager[None]:
        """Within this context balls carry that many binary digits."""
        return self._context.workprec(bits)

    @property
    def bits(self) -> int:
        """The working precision in binary digits."""
        return self._context.prec

    def exact(self, value: int | float) -> Ball:
        """The ball of an exact number: a float is that very double."""
        if value in (math.inf, -math.inf):
            return self.ball.pos_inf() if value > 0 else self.ball.neg_inf()
        return self.ball(value)

    @property
    def pi(self) -> Ball:
        """The circle's half circumference."""
        return self.ball.pi()

    def between(self, lower: Ball, upper: Ball) -> Ball:
        """A ball around every number from one to the other."""
        return lower.union(upper)

    def padded(self, value: Disc, error: Ball) -> Disc:
        """`value`, either part of it off by at most `error`."""
        around = error * self.ball(0, 1)
        return value + self.disc(around, around)

    def positive(self, value: Ball) -> Ball:
        """`value`, known not to be negative, without the part of its ball below 0."""
        return value if value >= 0 else value.nonnegative_part()

    def accuracy(self, value: Ball) -> int:
        """How many binary digits of a real ball are right, relative to itself."""
        return value.rel_accuracy_bits()

    def powers(self, first: Disc, ratio: Disc, count: int) -> list[Disc]:
        """first * ratio^j for j < count, each from two of half its degree: step by step radii would grow too much."""
        values = [self.disc(1), ratio]
        for j in range(2, count):
            values.append(values[j // 2] * values[j - j // 2])
        return [first * value for value in values[:count]]

    def power_sum(self, coefficients: Sequence[Disc]) -> Callable[[Disc], Disc]:
        """The polynomial with these coefficients, the constant one first, in blocks as long as there are blocks."""
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
        """The entries of the product of two matrices, row by row."""
        return (self._matrix(left) * self._matrix(right)).entries()

    def up(self, value: Ball) -> float:
        """A float that is not below any number in the ball, the least one as a rule."""
        return -self.down(-value) + 0.0

    def down(self, value: Ball) -> float:
        """A float that is not above any number in the ball, the largest one as a rule."""
        low = value.lower()
        if not low > self.exact(-math.inf):
            return -math.inf
        end = float(low) + 0.0
        while end > -math.inf and not self.exact(end) <= low:
            end = math.nextafter(end, -math.inf)
        return end


def ball_field() -> Field:
    """The field of balls.

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
    """The value is at least the target up to `lower`, at most the target from `upper` on."""

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """Where the function about falls to the target; the finite end if the other one is not."""
        return (self.lower + self.upper) / 2 if self.upper < math.inf else self.lower


def crossing(
    curve: Bracketed, target: Ball, *, guess: float, rate: float, low: float, high: float
) -> Crossing:
    """The crossing in [low, high], as narrow as the brackets allow.

    Args:
        curve: The bracket of the function at a float.
        target: The value that it falls to, > 0.
        guess: Where it roughly does.
        rate: Roughly the relative slope there, > 0.
        low: The lower end that is returned if none is proved.
        high: The upper end that is returned if none is proved; may be infinite.
    """
    seen: dict[float, tuple[Ball, Ball]] = {}

    def at(x: float) -> Point:
        """x, log of the bracket's middle over the target (-inf if that is 0), and the bracket's relative width."""
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
    """Two points, the function above the target at the first and below it at the second, as far as middles can tell."""
    left = right = at(x)
    reach = 4.0 / rate
    step = min(max(1.1 * abs(left[1]) / rate, 4 * math.ulp(x)), reach)
    while left[1] < 0 and left[0] > low:
        left, right, step = at(max(left[0] - step, low)), left, 2 * step
    while right[1] > 0 and right[0] < high and math.isfinite(right[0] + step):
        left, right, step = right, at(min(right[0] + step, high)), 2 * step
    return left, right


def _narrowed(at: Callable[[float], Point], left: Point, right: Point) -> tuple[float, float]:
    """Regula falsi, every third step a bisection: the crossing, and its error in x by the width of the bracket."""
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
