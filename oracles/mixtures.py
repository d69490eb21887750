"""Mixtures of normal distributions with means of opposed signs: the moments of the loss, and one answer alone.

P = sum p_i N(a_i, 1) against Q = sum q_j N(-b_j, 1), means >= 0. With N = N(0, 1), r = dP/dN and s the same of Q
mirrored, M(t) = E_N r(x)^{t+1} s(-x)^{-t}. For 0 <= y (width) < pi, |r(x + iy)| <= r(x) and >= r(x) cos(width y / 2),
because all terms lie in a sector; the arguments of r(x + iy) and of 1 / s(-x - iy) are >= 0 for y >= 0. The trapezoid
rule is that of `oracles.normal`, in the middle of the strip between 0 and y.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from flint import acb, arb, ctx

from oracles.ball import Number, ball
from oracles.gaussian import upper_tail
from oracles.law import exponential_sum, padded
from oracles.normal import _reach, _thinned

Terms = tuple[tuple[Number, Number], ...]
NOTHING: Terms = ((0, 1),)


Point = TypeVar("Point", arb, acb)


def log_ratio(terms: Terms, x: Point) -> Point:
    """log of sum w e^{m x - m^2/2}, continuous in the strip: the first term is taken out."""
    lead = ball(terms[0][0])
    total = x * 0
    for m, w in terms:
        total += ball(w) * ((ball(m) - lead) * x - (ball(m) ** 2 - lead**2) / 2).exp()
    return lead * x - lead * lead / 2 + total.log()


def _slope(terms: Terms, x: arb) -> arb:
    weights = [ball(w) * (ball(m) * x - ball(m) ** 2 / 2).exp() for m, w in terms]
    return sum(w * ball(m) for w, (m, _) in zip(weights, terms, strict=True)) / sum(weights, arb(0))


@dataclass(frozen=True)
class Mixture:
    """The loss of (P, Q): pairs of a mean, increasing, and its weight."""

    first: Terms
    second: Terms = NOTHING

    @property
    def outside(self) -> arb:
        return arb(0)

    @property
    def largest(self) -> arb:
        bounded = self.first == NOTHING and self.second[0][0] == 0
        return -ball(self.second[0][1]).log() if bounded else arb.pos_inf()

    @property
    def steepest(self) -> float:
        return 500 / max(float(self.first[-1][0]), float(self.second[-1][0]))

    @cached_property
    def widths(self) -> tuple[float, float]:
        return tuple(
            float(terms[-1][0]) - float(terms[0][0]) for terms in (self.first, self.second)
        )  # type: ignore[return-value]

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        logs, values, missed, cut = self.rule(order)
        sums = exponential_sum(logs, values, step, count)
        whole = (sums[0].real.abs_upper() + cut) / (1 - missed)
        return [padded(value, missed * whole + cut) for value in sums]

    def rule(self, order: float) -> tuple[list[acb], list[acb], arb, arb]:
        """As `oracles.normal.SampledGaussian.rule`."""
        bits = ctx.prec * math.log(2)
        widest = min(0.97 * math.pi / max(*self.widths, 0.1), 9.0)
        heights = [widest * 1.15**-i for i in range(60)]
        height = min(heights, key=lambda height: (bits + self._growth(order, height)) / height)
        spacing = math.pi * height / (bits + self._growth(order, height))
        pieces, far = self._pieces(order), bits + self._growth(order, height / 2)
        left, right = (
            _reach([(log, sign * float(center)) for log, center in pieces], far) for sign in (-1, 1)
        )
        indices = range(-math.ceil(left / spacing), math.ceil(right / spacing) + 1)
        h, shift = ball(spacing), ball(height) / 2
        scale = h / (2 * arb.pi()).sqrt()
        points = [acb(h * j, shift) for j in indices]
        rows = [(log_ratio(self.first, x), log_ratio(self.second, -x)) for x in points]
        values = [one - two for one, two in rows]
        logs = [
            -x * x / 2 + one + ball(order) * v
            for x, (one, _), v in zip(points, rows, values, strict=True)
        ]
        logs, values, dropped = _thinned(logs, values)
        missed = (1 + self._strip(order, ball(height))) / ((arb.pi() * ball(height) / h).exp() - 1)
        ends = self._cut(pieces, -h * indices[0], h * indices[-1])
        cut = self._strip(order, ball(height) / 2) * ends + scale * dropped
        return [log + scale.log() for log in logs], values, missed, cut

    def envelope(self, order: float, frequency: float) -> arb:
        best, (masses, rest) = 1.0, _cells(self, order)
        for theta in (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.2, 1.6, 2.0, 2.5, 3.0):
            height = theta / max(*self.widths, 1.0)
            strip = self._strip(order, ball(height))
            if not strip < 1e30:
                break
            total = float(np.dot(masses, np.exp(-frequency * _angles(self, order, height)))) + rest
            best = min(best, float(strip.upper()) * total * (1 + 1e-9))
        return arb(best)

    def _strip(self, order: float, height: arb) -> arb:
        return (height * height / 2).exp() * (ball(self.widths[1]) * height / 2).cos() ** -ball(
            order
        )

    def _growth(self, order: float, height: float) -> float:
        return height**2 / 2 - order * math.log(math.cos(self.widths[1] * height / 2))

    def _pieces(self, order: float) -> list[tuple[float, arb]]:
        """(log c, m) with density times weight at most sum c n(x - m): convexity of powers, and of the logarithm."""
        power, lead = order + 1, self.second[0]
        rows = [(float(m), math.log(float(w))) for m, w in self.first]
        pieces = [(log + (power * power - power) * m * m / 2, power * m) for m, log in rows]
        if lead[0] == 0:  # s >= its first weight
            return [
                (log - order * math.log(float(lead[1])), ball(center)) for log, center in pieces
            ]
        mean = sum(float(m) * float(w) for m, w in self.second)
        square = sum(float(m) ** 2 * float(w) for m, w in self.second)
        tilt = order * mean
        return [
            (log + order * square / 2 + tilt * center + tilt * tilt / 2, ball(center + tilt))
            for log, center in pieces
        ]

    def _cut(self, pieces: Sequence[tuple[float, arb]], left: arb, right: arb) -> arb:
        total = arb(0)
        for log, center in pieces:  # floats: half a unit covers their rounding many times over
            total += (ball(log) + 0.5).exp() * (
                upper_tail(left + center) + upper_tail(right - center)
            )
        return total


@dataclass(frozen=True)
class Chosen:
    """One of several mixtures, with these probabilities; the answer tells which."""

    parts: tuple[tuple[Number, Mixture], ...]

    @property
    def outside(self) -> arb:
        return arb(0)

    @property
    def largest(self) -> arb:
        ends = [law.largest for _, law in self.parts]
        return ends[0] if len(ends) == 1 else ends[0].max(ends[1])

    @property
    def steepest(self) -> float:
        return min(law.steepest for _, law in self.parts)

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        rows = [
            [ball(share) * value for value in law.moments(order, step, count)]
            for share, law in self.parts
        ]
        return [sum(column, acb(0)) for column in zip(*rows, strict=True)]

    def envelope(self, order: float, frequency: float) -> arb:
        sizes = [ball(share) * law.moments(order, 0.0, 1)[0].real for share, law in self.parts]
        falling = [law.envelope(order, frequency) for _, law in self.parts]
        return sum((a * b for a, b in zip(sizes, falling, strict=True)), arb(0)) / sum(
            sizes, arb(0)
        )


def capped(
    sigma: float | Fraction, rate: float | Fraction, records: int, batch: int
) -> tuple[Chosen, Chosen]:
    """Both orders of a Poisson sample that is cut to a uniform part of `batch`, by exact sums; 0 < rate < 1."""
    q = Fraction(rate)

    def beyond(least: int, count: int) -> Fraction:
        terms = range(least, count + 1)
        return sum(
            (math.comb(count, j) * q**j * (1 - q) ** (count - j) for j in terms), Fraction(0)
        )

    full = beyond(batch, records - 1)
    displaced = Fraction(batch, records) * beyond(batch + 1, records) / full
    mu = 1 / Fraction(sigma)
    kinds = [(1 - full, ((0, 1 - q), (mu, q))), (full, ((0, 1 - displaced), (2 * mu, displaced)))]
    removed = tuple((share, Mixture(terms)) for share, terms in kinds)
    return Chosen(removed), Chosen(
        tuple((share, Mixture(NOTHING, law.first)) for share, law in removed)
    )


def profile(epsilon: Number, law: Mixture) -> arb:
    """delta of one answer: P(X > x) - e^epsilon Q(X > x) where the loss is epsilon, a maximum over x."""
    level = ball(epsilon)
    low, high = arb(-1), arb(1)

    def loss(x: arb) -> arb:
        return log_ratio(law.first, x) - log_ratio(law.second, -x)

    for _ in range(12):
        low, high = (
            (low if loss(low) < level else 4 * low),
            (high if loss(high) > level else 4 * high),
        )
    if not loss(high) > level:
        return arb(0)
    if not loss(low) < level:
        return (1 - level.exp()).max(arb(0))
    for _ in range(ctx.prec):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle.mid()) < level else (low, middle)
        low, high = low.mid(), high.mid()

    def side(terms: Terms, sign: int, x: arb) -> arb:
        return sum((ball(w) * upper_tail(x - sign * ball(m)) for m, w in terms), arb(0))

    # It falls with the level, which rises with x.
    ends = [side(law.first, 1, x) - loss(x).exp() * side(law.second, -1, x) for x in (low, high)]
    return ends[0].union(ends[1])


@lru_cache(maxsize=64)
def _cells(law: Mixture, order: float) -> tuple[np.ndarray, float]:
    """Upper bounds of the integral of density times weight on cells, and beyond them, as shares of M."""
    edges, pieces, power = _edges(law, order), law._pieces(order), ball(order) + 1
    masses = []
    for low, high in itertools.pairwise(edges):
        a, b, middle = ball(low), ball(high), (ball(low) + ball(high)) / 2
        chord = (log_ratio(law.first, b) - log_ratio(law.first, a)) / (b - a)
        value, slope = power * (log_ratio(law.first, a) - chord * a), power * chord
        tangent = -_slope(law.second, -middle)  # log s is convex: its tangent lies below
        value -= ball(order) * (log_ratio(law.second, -middle) - tangent * middle)
        slope -= ball(order) * tangent
        mass = upper_tail(a - slope) - upper_tail(b - slope)
        if b < slope:
            mass = upper_tail(slope - b) - upper_tail(slope - a)
        masses.append(((value + slope * slope / 2).exp() * mass).abs_upper())
    rest = law._cut(pieces, ball(-edges[0]), ball(edges[-1]))
    whole = law.moments(order, 0.0, 1)[0].real.lower()
    return np.array([float((mass / whole).upper()) for mass in masses]), float(
        (rest / whole).upper()
    )


@lru_cache(maxsize=1024)
def _angles(law: Mixture, order: float, height: float) -> np.ndarray:
    """Lower bounds of |Im loss| on the cells: the argument of r rises with x, that of s(-x) falls."""
    edges, y = _edges(law, order), ball(height)
    found = []
    for low, high in itertools.pairwise(edges):
        angle = log_ratio(law.first, acb(low, y)).imag - log_ratio(law.second, acb(-high, -y)).imag
        found.append(float(angle.lower()))
    return np.array(found)


@lru_cache(maxsize=64)
def _edges(law: Mixture, order: float) -> list[float]:
    pieces = [(log, float(center)) for log, center in law._pieces(order)]
    left, right = _reach([(log, -center) for log, center in pieces], 60.0), _reach(pieces, 60.0)
    width = min(0.25, 0.3 / (max(*law.widths, 0.3) * math.sqrt(order + 1)))
    count = min(math.ceil((left + right) / width), 2000)
    return [-left + (left + right) * i / count for i in range(count + 1)]
