"""Piecewise linear power functions of pairs of distributions: composition, mixture and minimum.

The power function of a pair (P, Q) is phi(alpha), the largest P(S) over all tests S with Q(S) <=
alpha. It is 1 minus the trade-off function, concave and increasing. If it is piecewise linear, the
pair (P, Q) is a list of outcomes: a piece of length q and slope a is an outcome of probability q
under Q and a q under P, phi(0) is the probability under P of outcomes impossible under Q, and 1
minus the sum of the lengths is the probability under Q of outcomes impossible under P.

Chaining (`after`), for pairs (P, M) and (M, Q) and any test S: M(S) <= phi_MQ(Q(S)), so P(S) <=
phi_PM(phi_MQ(Q(S))). Nothing better follows from the two functions: with U uniform on [0, 1] under
Q, and under M and P of distribution functions phi_MQ and phi_PM(phi_MQ), the tests [0, alpha]
attain both functions and the composite.

Mixture (`power_mixture`), for P = sum of w_j P_j: P(S) = sum of w_j P_j(S) <= sum of w_j
phi_j(Q(S)); attained where one family of tests is best for all j, as for shifts of noise with a
log-concave density.

Numbers are decimals of at least 100 digits, whose rounding is far below that of the floats of the
arguments and results.

Reference: [DongRothSu2022, Theorem 2.14]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, getcontext, localcontext
from itertools import pairwise

from dpcompose.values import Bound, lower_hull

_DIGITS = 100
_ZERO, _ONE = Decimal(0), Decimal(1)
_SAME, _RESIDUE = Decimal("1e-60"), Decimal("1e-80")
Piece = tuple[Decimal, Decimal]
"""The length of a linear piece in level, and the increase of power over it."""


def _digits() -> Context:
    """A decimal context of 100 digits, or the current one if larger (for masses such as e^-1600)."""
    return Context(prec=max(_DIGITS, getcontext().prec))


@dataclass(frozen=True)
class PowerCurve:
    """The concave, piecewise linear power function of a pair of distributions (P, Q).

    Args:
        start: The power at level 0: the mass under P of outcomes impossible under Q.
        pieces: Pairs (length, gain), the increase of level and of power on each linear piece, by
            falling slope; none of slope 0.
        remainder: The mass under Q of outcomes impossible under P.
    """

    start: Decimal
    pieces: tuple[Piece, ...]
    remainder: Decimal

    @classmethod
    def of_atoms(
        cls, upper: Sequence[float], lower: Sequence[float], *, lost: float = 0.0
    ) -> PowerCurve:
        """The power function of the pair (P, Q) with the masses `upper` of P and `lower` of Q.

        A mass `lost` of each, of unknown outcomes, is added to `start` and `remainder`, as if it
        identified P or Q.
        """
        with localcontext(_digits()):
            masses = [(Decimal(q), Decimal(p)) for p, q in zip(upper, lower, strict=True)]
            finite = [each for each in masses if min(each) > 0]
            finite.sort(key=lambda each: each[1] / each[0], reverse=True)
            start = min(Decimal(lost) + sum((p for q, p in masses if q == 0), _ZERO), _ONE)
            remainder = min(Decimal(lost) + sum((q for q, p in masses if p == 0), _ZERO), _ONE)
            return cls(start, tuple(_capped(start, _merged(finite))), remainder)

    @classmethod
    def of_segments(cls, start: Decimal, pieces: Iterable[Piece], remainder: Decimal) -> PowerCurve:
        """The power function with these fields; neighboring pieces of equal slope are joined."""
        with localcontext(_digits()):
            return cls(start, tuple(_merged(pieces)), remainder)

    def after(self, inner: PowerCurve) -> PowerCurve:
        """The composite self(inner(alpha)): a power function for (P, Q) from (P, M) and (M, Q)."""
        with localcontext(_digits()):
            pieces = list(self._cut(inner))
            shown = [(length, gain) for length, gain in pieces if gain > 0]
            remainder = inner.remainder + sum(
                (length for length, gain in pieces if gain == 0), _ZERO
            )
            return PowerCurve(self._at(inner.start), tuple(_merged(shown)), remainder)

    def repeated(self, times: int) -> PowerCurve:
        """This function composed with itself, `times` factors in all; the identity for 0."""
        result, square = IDENTITY, self
        while times:
            result = square.after(result) if times & 1 else result
            times >>= 1
            square = square.after(square) if times else square
        return result

    @property
    def mirrored(self) -> PowerCurve:
        """The power function of (Q, P), if this is the one of (P, Q)."""
        return PowerCurve(
            self.remainder,
            tuple((gain, length) for length, gain in reversed(self.pieces)),
            self.start,
        )

    def least(self, other: PowerCurve) -> PowerCurve:
        """The smaller of this function and `other` at every level."""
        with localcontext(_digits()):
            pieces = tuple(_merged(_lower_of(self, other)))
            return PowerCurve(
                min(self.start, other.start), pieces, min(self.remainder, other.remainder)
            )

    def thinned(self, most: int, *, above: bool) -> PowerCurve:
        """A power function of about `most` pieces that is >= this one if `above`, else <= this one.

        If `above`, a removed piece is divided between the two remaining neighbors, with the same
        total length and gain; otherwise neighboring pieces are merged.
        """
        stride = -(-len(self.pieces) // max(most, 2))
        if stride < 2:
            return self
        with localcontext(_digits()):
            pieces = _split(self.pieces, stride) if above else _joined(self.pieces, stride)
            return PowerCurve(self.start, tuple(pieces), self.remainder)

    def _at(self, level: Decimal) -> Decimal:
        power = self.start
        for length, gain in self.pieces:
            if level <= length:
                return power + gain * level / length
            power, level = power + gain, level - length
        return power

    def _cut(self, inner: PowerCurve) -> Iterator[Piece]:
        """The pieces of self(inner): those of inner, cut where the power crosses a corner of self.

        Beyond the last corner of self the pieces have gain 0.
        """
        todo = [*reversed(self.pieces)]
        skipped = inner.start
        while todo and skipped > 0:
            length, gain = todo.pop()
            if length > skipped:
                todo.append((length - skipped, gain * (length - skipped) / length))
            skipped -= length
        for inner_length, inner_gain in inner.pieces:
            left = inner_gain
            while left > 0 and todo:
                length, gain = todo.pop()
                step = min(left, length)
                yield step * inner_length / inner_gain, step * gain / length
                left -= step
                if length > step:
                    todo.append((length - step, gain * (length - step) / length))
            if left > 0:
                yield left * inner_length / inner_gain, _ZERO


IDENTITY = PowerCurve(_ZERO, ((_ONE, _ONE),), _ZERO)


def power_mixture(weights: Sequence[Decimal], curves: Sequence[PowerCurve]) -> PowerCurve:
    """The weighted sum of the power functions `curves`, all against the same distribution Q."""
    with localcontext(_digits()):
        start = sum(
            (weight * curve.start for weight, curve in zip(weights, curves, strict=True)), _ZERO
        )
        return PowerCurve(
            start,
            tuple(_merged(_summed(weights, curves))),
            min(curve.remainder for curve in curves),
        )


def enclosing_power(
    epsilons: Sequence[float],
    deltas: Sequence[Bound],
    mirrored: Sequence[Bound],
    limits: tuple[Bound, Bound],
) -> tuple[PowerCurve, PowerCurve]:
    """Power functions above and below every one whose profile lies within bounds at some epsilons.

    In a = e^epsilon the profile H of (P, Q) is convex, and H(1 / a) = 1 - 1 / a + G(a) / a with G
    the profile of (Q, P). The function above comes from the greatest convex function below the
    upper ends, constant after the last. The one below is, between two nodes, the larger of the two
    neighboring chords from an upper to a lower end, extended.

    Args:
        epsilons: The epsilons of the bounds in nats, increasing from 0.
        deltas: Bounds on the profile of (P, Q) at these epsilons.
        mirrored: Bounds on the profile of (Q, P) at the same epsilons.
        limits: Bounds on the limits of both profiles, the probabilities of an infinite loss.
    """
    # Close to a = 0 the profile is 1 - a, up to e^-epsilon delta(epsilon).
    with localcontext(Context(prec=_DIGITS + math.ceil(epsilons[-1]))):
        ratios = [Decimal(epsilon).exp() for epsilon in epsilons]
        x = [_ZERO, *(1 / ratio for ratio in reversed(ratios[1:])), *ratios]
        ends: list[list[Decimal]] = []
        for values, others in (
            ([delta.upper for delta in deltas], [delta.upper for delta in mirrored]),
            ([delta.lower for delta in deltas], [delta.lower for delta in mirrored]),
        ):
            left = [
                1 + (Decimal(other) - 1) / ratio
                for other, ratio in zip(others, ratios, strict=True)
            ]
            ends.append([_ONE, *reversed(left[1:]), *(Decimal(value) for value in values)])
        upper, lower = ends
        underside = list(
            _underside(x, lower, upper, Decimal(limits[0].lower), Decimal(limits[1].lower))
        )
        above, below = _of_profile(list(zip(x, upper, strict=True))), _of_profile(underside)
        return above, PowerCurve(below.start, below.pieces, Decimal(limits[1].lower))


def _of_profile(points: list[Piece]) -> PowerCurve:
    """The power function of a convex profile H with the corners (a, H), from (0, 1); a = e^epsilon.

    The length of a piece is the change of slope at a corner.
    """
    corners = lower_hull(points)
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairwise(corners)]
    lengths = [after - before for before, after in zip(slopes, [*slopes[1:], _ZERO], strict=True)]
    pieces = [
        (length, x * length)
        for (x, _), length in zip(corners[1:], lengths, strict=True)
        if length > 0
    ]
    return PowerCurve(corners[-1][1], tuple(reversed(pieces)), max(slopes[0] + 1, _ZERO))


def _underside(
    x: list[Decimal], lower: list[Decimal], upper: list[Decimal], limit: Decimal, remainder: Decimal
) -> Iterator[Piece]:
    """The corners (a, H) of a function below the profile, from bounds on it at the points `x`.

    The profile is at least `limit`, and its slope at 0 is at least -1 + remainder.
    """
    yield x[0], lower[0]
    for i in range(len(x) - 1):
        left = (lower[i] - upper[i - 1]) / (x[i] - x[i - 1]) if i > 0 else remainder - 1
        right = (upper[i + 2] - lower[i + 1]) / (x[i + 2] - x[i + 1]) if i + 2 < len(x) else _ZERO
        left, right = min(left, _ZERO), min(right, _ZERO)
        if right > left:
            meet = (lower[i + 1] - lower[i] + left * x[i] - right * x[i + 1]) / (left - right)
            if x[i] < meet < x[i + 1]:
                yield meet, max(lower[i] + left * (meet - x[i]), limit)
        yield x[i + 1], max(lower[i + 1], limit)
    last = min((lower[-1] - upper[-2]) / (x[-1] - x[-2]), _ZERO)
    if last < 0 and lower[-1] > limit:
        yield x[-1] + (limit - lower[-1]) / last, limit


def _merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces, with neighbors joined whose slopes are equal up to the rounding of decimals."""
    current: Piece | None = None
    for length, gain in pieces:
        if length <= 0 or gain <= 0:
            continue
        if current is None:
            current = (length, gain)
        elif _alike(current, (length, gain)):
            current = (current[0] + length, current[1] + gain)
        else:
            yield current
            current = (length, gain)
    if current is not None:
        yield current


def _alike(one: Piece, other: Piece) -> bool:
    if one[0] <= _SAME * other[0] and one[1] <= _SAME * other[1]:
        return True
    if other[0] <= _SAME * one[0] and other[1] <= _SAME * one[1]:
        return True
    across = one[1] * other[0]
    return abs(across - other[1] * one[0]) <= _SAME * across


def _capped(start: Decimal, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces up to a power of 1, from the power `start` at level 0."""
    left = _ONE - start
    for length, gain in pieces:
        if left <= 0:
            return
        share = min(left / gain, _ONE)
        yield length * share, gain * share
        left -= gain


def _summed(weights: Sequence[Decimal], curves: Sequence[PowerCurve]) -> Iterator[Piece]:
    """The pieces of the weighted sum of the curves, cut at every corner of every curve."""
    todo = [[*reversed(curve.pieces)] for curve in curves]
    left = max((_ONE - curve.remainder for curve in curves), default=_ZERO)
    # Curves with the same end may differ there by the rounding of the sum of their lengths.
    while any(todo) and left > _RESIDUE:
        step = min(pieces[-1][0] for pieces in todo if pieces)
        left -= step
        total = _ZERO
        for weight, pieces in zip(weights, todo, strict=True):
            if pieces:
                length, gain = pieces.pop()
                share = gain * step / length
                total += weight * share
                if length > step:
                    pieces.append((length - step, gain - share))
        yield step, total


def _lower_of(one: PowerCurve, other: PowerCurve) -> Iterator[Piece]:
    """The pieces of the minimum of both curves, cut at their corners and where they cross."""
    todo, power = [[*reversed(one.pieces)], [*reversed(other.pieces)]], [one.start, other.start]
    left = _ONE - min(one.remainder, other.remainder)
    while any(todo) and left > _RESIDUE:
        step = min(pieces[-1][0] for pieces in todo if pieces)
        slope = [pieces[-1][1] / pieces[-1][0] if pieces else _ZERO for pieces in todo]
        gap, closing = power[1] - power[0], slope[0] - slope[1]
        if closing != 0 and _RESIDUE < gap / closing < step:
            step = gap / closing
        left -= step
        gained = [each * step for each in slope]
        power = [before + more for before, more in zip(power, gained, strict=True)]
        yield step, gained[power.index(min(power))]
        for pieces, more in zip(todo, gained, strict=True):
            if pieces:
                length, gain = pieces.pop()
                if length > step:
                    pieces.append((length - step, gain - more))


def _split(pieces: Sequence[Piece], stride: int) -> Iterator[Piece]:
    kept = [*range(0, len(pieces) - 1, stride), len(pieces) - 1]
    lengths = {index: pieces[index][0] for index in kept}
    slopes = {index: pieces[index][1] / pieces[index][0] for index in kept}
    for first, last in pairwise(kept):
        for length, gain in pieces[first + 1 : last]:
            spread = slopes[first] - slopes[last]
            share = (
                min(max((gain - length * slopes[last]) / spread, _ZERO), length)
                if spread > 0
                else length
            )
            lengths[first] += share
            lengths[last] += length - share
    yield from ((lengths[index], lengths[index] * slopes[index]) for index in kept)


def _joined(pieces: Sequence[Piece], stride: int) -> Iterator[Piece]:
    for first in range(0, len(pieces), stride):
        chunk = pieces[first : first + stride]
        yield sum((length for length, _ in chunk), _ZERO), sum((gain for _, gain in chunk), _ZERO)
