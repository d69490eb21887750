"""The moment generating function of a sampled Gaussian's privacy loss, by a trapezoid on a shifted line.

With x ~ N(0, 1), r(x) = 1 - q + q e^{mu x - mu^2/2} and r_-(x) = r(-x):
    remove  M(t) = E r^{t+1}        add  M(t) = E r^{-t}        replace  M(t) = E r_-^{t+1} r^{-t}
In the strip |Im x| <= y < pi/mu, with theta = mu y: |r(x + iy)| <= r(x), and |a + b e^{i theta}|^2 = (a+b)^2 - 4 a b
sin^2(theta/2) >= (a+b)^2 cos^2(theta/2) gives |r(x + iy)| >= r(x) cos(theta/2). For t = l + iu, u >= 0, the factor
e^{-u arg} of the complex power is at most 1 on one side of the real line (above for remove, below for the others). So
the integrand on Im x = +-y integrates to at most e^{y^2/2} cos(theta/2)^{-l} M(l) (no cosine for remove, nor for l <
0), and the trapezoid of step h in the middle of the strip between 0 and y misses M(t) by at most M(l) (1 + that
factor) / (e^{pi y / h} - 1). Orders are > 0, or -1/2 (`halfway`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np
from flint import acb, arb, ctx

from oracles.ball import Number, ball
from oracles.gaussian import upper_tail
from oracles.law import exponential_sum, padded


class Direction(Enum):
    """Which of the two distributions is the first of the pair."""

    REMOVE = "remove"
    ADD = "add"
    REPLACE = "replace"


@dataclass(frozen=True)
class SampledGaussian:
    """The Gaussian mechanism of shift `mu` and deviation 1 on a Poisson sample of rate `rate` < 1."""

    rate: Number
    mu: Number
    direction: Direction

    @property
    def outside(self) -> arb:
        return arb(0)

    @property
    def largest(self) -> arb:
        return -(-ball(self.rate)).log1p() if self.direction is Direction.ADD else arb.pos_inf()

    @property
    def steepest(self) -> float:
        return 500 / float(self.mu)

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        logs, values, missed, cut = self.rule(order)
        sums = exponential_sum(logs, values, step, count)
        whole = (sums[0].real.abs_upper() + cut) / (1 - missed)
        return [padded(value, missed * whole + cut) for value in sums]

    def rule(
        self, order: float, *, tallest: float = math.inf
    ) -> tuple[list[acb], list[acb], arb, arb]:
        """Logarithms and values whose exponential sum is M(order + iu), u >= 0, to within `missed` M(order) + `cut`.

        The values have an imaginary part >= 0, so that no term grows with u; the strip is at most `tallest` high.
        """
        bits = ctx.prec * math.log(2)
        height = min(self._height(order, bits), tallest)
        spacing = math.pi * height / (bits + self._growth(order, height))
        pieces = self._pieces(order)
        far = bits + self._growth(order, height / 2)
        left, right = (
            _reach([(log, sign * float(center)) for log, center in pieces], far) for sign in (-1, 1)
        )
        indices = range(-math.ceil(left / spacing), math.ceil(right / spacing) + 1)
        side = 0.5 if self.direction is Direction.REMOVE else -0.5
        h, shift = ball(spacing), ball(height) * side
        scale = h / (2 * arb.pi()).sqrt()
        logs, values, dropped = _thinned(
            *self._integrand(order, [acb(h * j, shift) for j in indices])
        )
        missed = (1 + self._strip(order, ball(height))) / ((arb.pi() * ball(height) / h).exp() - 1)
        ends = self._cut(pieces, -h * indices[0], h * indices[-1])
        cut = self._strip(order, ball(height) / 2) * ends + scale * dropped
        return [log + scale.log() for log in logs], values, missed, cut

    def envelope(self, order: float, frequency: float) -> arb:
        """The integral on Im x = +-theta/mu with e^{-u arg} kept, at the best theta; float sums are padded by 1e-9."""
        best, (masses, rest) = 1.0, _cells(self, order)
        for theta in (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.2, 1.6, 2.0, 2.5, 3.0):
            strip = self._strip(order, ball(theta) / ball(self.mu))
            if not strip < 1e30:
                break
            total = float(np.dot(masses, np.exp(-frequency * _angles(self, order, theta)))) + rest
            best = min(best, float(strip.upper()) * total * (1 + 1e-9))
        return arb(best)

    def _integrand(self, order: float, points: list[acb]) -> tuple[list[acb], list[acb]]:
        """The logarithms of density times weight at t = order, and the loss, which t multiplies."""
        mu, q, tilt = ball(self.mu), ball(self.rate), ball(order)
        half = mu * mu / 2
        logs, values = [], []
        for x in points:
            plus = ((1 - q) + q * (mu * x - half).exp()).log()
            if self.direction is Direction.REPLACE:
                minus = ((1 - q) + q * (-mu * x - half).exp()).log()
                weight, value = minus, minus - plus
            else:
                remove = self.direction is Direction.REMOVE
                weight, value = (plus, plus) if remove else (acb(0), -plus)
            logs.append(-x * x / 2 + weight + tilt * value)
            values.append(value)
        return logs, values

    def _strip(self, order: float, height: arb) -> arb:
        """e^{y^2/2} cos(mu y / 2)^{-order}, without the cosine for remove and at negative orders."""
        growth = (height * height / 2).exp()
        if self._flat(order):
            return growth
        return growth * (ball(self.mu) * height / 2).cos() ** -ball(order)

    def _growth(self, order: float, height: float) -> float:
        raised = (
            0.0 if self._flat(order) else order * math.log(math.cos(float(self.mu) * height / 2))
        )
        return height**2 / 2 - raised

    def _flat(self, order: float) -> bool:
        """Whether no ratio is raised to a negative power: |r(x + iy)| <= r(x) is enough then."""
        return order < 0 or self.direction is Direction.REMOVE

    def _height(self, order: float, bits: float) -> float:
        widest = 0.97 * math.pi / float(self.mu)
        heights = (widest * 1.15**-i for i in range(60))
        return min(heights, key=lambda height: (bits + self._growth(order, height)) / height)

    def _pieces(self, order: float) -> list[tuple[float, arb]]:
        """(log c, m) with density times weight at most sum c n(x - m), n the normal density."""
        mu, q = float(self.mu), float(self.rate)
        power = ball(order) + 1
        if order == -0.5:
            return self._middle_pieces()
        ends = [
            (math.log1p(-q), arb(0)),
            (math.log(q) + (order + 1) * order * mu * mu / 2, power * ball(self.mu)),
        ]
        low = -order * math.log1p(-q)
        if self.direction is Direction.REMOVE:  # convexity: r^p <= 1 - q + q e^{p (mu x - mu^2/2)}
            return ends
        if self.direction is Direction.REPLACE:  # the same mirrored, and r >= 1 - q
            return [(low + log, -center) for log, center in ends]
        return [(low, arb(0))]

    def _middle_pieces(self) -> list[tuple[float, arb]]:
        """The same at order -1/2, where sqrt(a + b) <= sqrt(a) + sqrt(b)."""
        mu, rare, kept = float(self.mu), math.log(self.rate), math.log1p(-self.rate)
        if self.direction is not Direction.REPLACE:
            return [(kept / 2, arb(0)), (rare / 2 - mu * mu / 8, ball(self.mu) / 2)]
        both = (rare + kept) / 2 - mu * mu / 8
        return [
            (math.log1p(float(self.rate) * math.expm1(-mu * mu / 2)), arb(0)),
            (both, ball(self.mu) / 2),
            (both, -ball(self.mu) / 2),
        ]

    def outside_of(self, reach: arb) -> arb:
        """At least the integral of density times weight at order -1/2 outside [-reach, reach], or its trapezoid."""
        return self._cut(self._middle_pieces(), reach, reach)

    def _cut(self, pieces: list[tuple[float, arb]], left: arb, right: arb) -> arb:
        """The integral of the pieces outside [-left, right], which bounds their trapezoid sum outside it too."""
        total = arb(0)
        for (
            log,
            center,
        ) in pieces:  # the logarithms are floats: half a unit covers their rounding many times over
            total += (ball(log) + 0.5).exp() * (
                upper_tail(left + center) + upper_tail(right - center)
            )
        return total


def _thinned(logs: list[acb], values: list[acb]) -> tuple[list[acb], list[acb], arb]:
    """Without the terms under 2^-(prec+20) of the largest, and a bound on their sum at every u >= 0."""
    sizes = [float(log.real.mid()) for log in logs]
    least = max(sizes) - (ctx.prec + 20) * math.log(2)
    kept = [index for index, size in enumerate(sizes) if size >= least]
    dropped = (len(sizes) - len(kept)) * (ball(least) + 1).exp()
    return [logs[index] for index in kept], [values[index] for index in kept], dropped


def _reach(pieces: list[tuple[float, float]], bits: float) -> float:
    """How far the pieces extend to the right before they fall under e^-bits, beyond all their centers."""
    return max(center + math.sqrt(2 * max(log + bits, 1.0)) for log, center in pieces) + 1


@lru_cache(maxsize=64)
def _cells(law: SampledGaussian, order: float) -> tuple[np.ndarray, float]:
    """Upper bounds of the integral of density times weight at t = order on cells, and beyond them, as shares of M."""
    edges, pieces = _edges(law, order), law._pieces(order)
    mu, q = ball(law.mu), ball(law.rate)
    up = {Direction.REMOVE: order + 1.0, Direction.ADD: 0.0, Direction.REPLACE: 0.0}[law.direction]
    down = {Direction.REMOVE: 0.0, Direction.ADD: order, Direction.REPLACE: order}[law.direction]
    mirrored = order + 1.0 if law.direction is Direction.REPLACE else 0.0

    def log_ratio(x: arb) -> arb:
        return ((1 - q) + q * (mu * x - mu * mu / 2).exp()).log()

    masses = []
    for low, high in itertools.pairwise(edges):
        a, b, middle = ball(low), ball(high), (ball(low) + ball(high)) / 2
        chord = (log_ratio(b) - log_ratio(a)) / (b - a)
        value, slope = up * log_ratio(a) - up * chord * a, up * chord
        if mirrored:
            chord = (log_ratio(-b) - log_ratio(-a)) / (b - a)
            value, slope = value + mirrored * (log_ratio(-a) - chord * a), slope + mirrored * chord
        if down:  # log r is convex: its tangent lies below
            grow = q * (mu * middle - mu * mu / 2).exp()
            tangent = mu * grow / (1 - q + grow)
            value, slope = (
                value - down * (log_ratio(middle) - tangent * middle),
                slope - down * tangent,
            )
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
def _angles(law: SampledGaussian, order: float, theta: float) -> np.ndarray:
    """Lower bounds of |Im loss| on the cells, on the line Im x = theta / mu or its mirror image."""
    edges = [ball(edge) for edge in _edges(law, order)]
    mu, q = ball(law.mu), ball(law.rate)
    turn = acb(0, ball(theta)).exp()

    def angle(x: arb) -> arb:
        return ((1 - q) + q * (mu * x - mu * mu / 2).exp() * turn).arg()

    angles = [angle(edge) for edge in edges[:-1]]
    if law.direction is Direction.REPLACE:
        angles = [one + angle(-edge) for one, edge in zip(angles, edges[1:], strict=True)]
    return np.array([float(one.lower()) for one in angles])


@lru_cache(maxsize=64)
def _edges(law: SampledGaussian, order: float) -> list[float]:
    pieces = [(log, float(center)) for log, center in law._pieces(order)]
    left, right = _reach([(log, -center) for log, center in pieces], 60.0), _reach(pieces, 60.0)
    width = min(0.25, 0.3 / (float(law.mu) * math.sqrt(order + 1)))
    count = min(math.ceil((left + right) / width), 2000)
    return [-left + (left + right) * i / count for i in range(count + 1)]
