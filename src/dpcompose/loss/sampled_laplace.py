"""The losses of Laplace noise on a Poisson sample, (1 - q) Q + q P against Q in both orders, and their sums.

Quadrature for E_Q r^p, r = 1 - q + q e^l, over the loss l of Laplace noise under Q, in rows.

Q has atoms of 1/2 at -epsilon and of e^-epsilon / 2 at epsilon, and the density e^(-(l + epsilon) / 2) / 4 between.

Panels. On a panel of half-width H an n-point rule of Gauss and Legendre errs by at most 4.1 S H rho^(-2n) / (1 -
rho^-2) for a function that is at most S in modulus on the ellipse of half axes H (rho +- 1 / rho) / 2: its
coefficients in Chebyshev's polynomials are at most 2 S rho^-k, the rule is exact below degree 2n and on odd ones, and
the rule and the integral of a polynomial of even degree k are at most 2 and 2 / (k^2 - 1) in size. On the ellipse, with
x <= R and |Im l| <= theta < pi / 2, and w the share q e^x / r(x) at R, |r| <= r(R) and
|arg r| <= atan2(w sin theta, 1 - w + w cos theta); and |r|^2 >= r(x)^2 (1 - 2 v (1 - v) (1 - cos theta)), v the share
at x.

Ends. With y = log r the density under Q is f(y), f = e^(-(l + epsilon) / 2) / (4 w), w = q e^l / r. Its derivatives
alternate in sign: |f^(k)| = f B_k(w) / w^k with B_0 = 1, B_(k+1) = (1/2 + (k + 1) (1 - w)) B_k - w (1 - w) B_k', whose
coefficients in powers of w and 1 - w are positive. Integration by parts gives the integral of e^(p y) f between two
places as the difference of e^(p y) f / p times the sum over k < K of B_k (p w)^-k, up to |p|^-K times the largest
e^(Re p y) times |f^(K-1)| at the left place, because f^(K) has one sign.

Reference: [ZhuDongWang2022, Theorem 11]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import (
    Cumulants,
    Line,
    TabulatedTransform,
    Transform,
    WeightedPoints,
    blockwise,
    careful_nodes,
    logarithm_of_excess,
)
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss, alike, blocks, bounds_of_rows
from dpcompose.loss.lattice_noise import Noise
from dpcompose.loss.product import Product
from dpcompose.loss.sampled import Enclosed, SampledLoss
from dpcompose.numerics import (
    Complexes,
    Reals,
    U,
    exponential_sums,
    log_mixed,
    minus_log1p,
    row_sums,
    row_tops,
)
from dpcompose.proof import Ends, Field
from dpcompose.values import Bound

# Of the 24-point rule of Gauss and Legendre on [0, 1]: the points below the middle and their weights.
_PLACES = (
    0.00240639000148932, 0.012635722014345251, 0.030862723998633622, 0.056792236497799485, 0.08999900701304854,
    0.12993790421072282, 0.17595317403151223, 0.22728926430558022, 0.2831032461869774, 0.3424786601519183,
    0.40444056626319186, 0.4679715535686972,
)  # fmt: skip
_WEIGHTS = (
    0.0061706148999936, 0.014265694314466832, 0.022138719408709904, 0.02964929245771839, 0.03667324070554015,
    0.04309508076597664, 0.04880932605205694, 0.05372213505798282, 0.0577528340268628, 0.060835236463901696,
    0.06291872817341415, 0.06396909767337608,
)  # fmt: skip
LEFT = np.array([*_PLACES, *(1 - location for location in reversed(_PLACES))])
RIGHT, WEIGHT = LEFT[::-1], np.array([*_WEIGHTS, *reversed(_WEIGHTS)])
_AXES = np.array([1.6, 2.2, 3.0, 4.5, 7.0, 12.0])
"""The parameters of the ellipses that are tried."""
_WIDEST = 1.5
"""The largest imaginary part on them."""
TERMS = 24
"""Of the series at an end."""
TURNS, LENGTH = 20.0, 2.0
"""A panel has as much of |p| log r, or of l, at most."""


@cache
def _bernstein() -> Reals:
    """The coefficients of B_k in w^j (1 - w)^(k - j), shape (TERMS, TERMS); zero beyond j = k."""
    rows: list[list[float]] = []
    row = [1.0]
    for k in range(TERMS):
        rows.append(row + [0.0] * (TERMS - len(row)))
        # With v = 1 - w: w v B' is (j v - (k - j) w) times the term w^j v^(k - j), and 1/2 is (w + v) / 2.
        following = [0.0] * (k + 2)
        for j, each in enumerate(row):
            following[j] += (k + 1.5 - j) * each
            following[j + 1] += (k - j + 0.5) * each
        row = following
    return np.array(rows)


@dataclass(frozen=True, eq=False)
class Places:
    """Losses l of Laplace noise, those of each row good to `error` of themselves, and what a sample makes of them.

    Args:
        loss: l, shape (m, k).
        rate: q, shape (m, 1).
        error: How far l may be off, relative.
    """

    loss: Reals
    rate: Reals
    error: float

    @cached_property
    def ratio(self) -> Reals:
        """h = log r, where r = 1 - q + q e^l is the likelihood ratio of a sample with rate q at the loss l."""
        return log_mixed(self.loss, self.rate)

    @cached_property
    def slope(self) -> Reals:
        """w = q e^l / r, the derivative of h(l) = log(1 - q + q e^l)."""
        return self.rate * np.exp(self.loss) / (1 + self.rate * np.expm1(self.loss))

    @cached_property
    def rise(self) -> Reals:
        """y = r - 1."""
        return self.rate * np.expm1(self.loss)

    @cached_property
    def ratio_error(self) -> Reals:
        """Relative to h: |l e^l / (e^l - 1)| <= 1 + max(l, 0), and y / ((1 + y) log(1 + y)) <= 1 / min(1 + y, 1)."""
        rise_error = 24 * U + self.error * (1 + np.maximum(self.loss, 0.0))
        return rise_error / np.minimum(1 + self.rise, 1.0) + 24 * U


def divided(cost: Callable[[Reals], Reals], start: Reals, stop: Reals) -> Reals:
    """Edges from start to stop, shape (m, 1) each, of as few panels as cost at most 1 each; roughly, in all rows."""
    low = cost(start)
    total = cost(stop) - low
    count = max(1, int(np.ceil(float(total.max()))))
    target = low + total * (np.arange(1, count) / count)
    left, right = start + 0 * target, stop + 0 * target
    for _ in range(20):
        middle = (left + right) / 2
        below = cost(middle) < target
        left, right = np.where(below, middle, left), np.where(below, right, middle)
    return np.concatenate([start, left, stop], axis=1)


@dataclass(frozen=True, eq=False)
class LaplaceRule:
    """Points for the losses from -epsilon up to `top`, and the atoms.

    Args:
        epsilon: The largest loss, shape (m, 1).
        rate: q, shape (m, 1).
        error: How far epsilon may be off, relative.
        edges: Of the panels, from -epsilon to `top`, shape (m, k); 0 is among them if it lies between.
    """

    epsilon: Reals
    rate: Reals
    error: float
    edges: Reals

    @cached_property
    def points(self) -> WeightedPoints:
        """The atom at -epsilon, the points, and the atom at epsilon."""
        start, stop = self.edges[:, :-1, None], self.edges[:, 1:, None]
        # Both edges of a panel have one sign: the sum is good to a few units of itself.
        loss = (start * RIGHT + stop * LEFT).reshape(len(start), -1)
        weight = ((stop - start) * (WEIGHT / 4)).reshape(len(start), -1) * np.exp(
            -(loss + self.epsilon) / 2
        )
        far, half = np.exp(-self.epsilon) / 2, np.full_like(self.epsilon, 0.5)
        at = Places(
            np.concatenate([-self.epsilon, loss, self.epsilon], axis=1),
            self.rate,
            self.error + 6 * U,
        )
        weight = np.maximum(np.concatenate([half, weight, far], axis=1), 1e-300)
        # A third of what the deficit y - log(1 + y) errs by: 192 U, and of y at most 2 / min(1 + y, 1).
        weight_error = (
            80 * U + self.epsilon * (16 * U + 2 * self.error) + 2 * self.error + at.ratio_error
        )
        return WeightedPoints(
            np.log(weight),
            at.ratio,
            weight * minus_log1p(at.rise),
            weight_error,
            at.ratio_error + 0 * weight,
        )

    def omitted(self, power: float, frequency: float) -> Reals:
        """log of a bound on the error of the panels for r^p - 1 - p y, or r^p, up to that frequency, shape (m, 1)."""
        middle, half = (
            (self.edges[:, 1:] + self.edges[:, :-1]) / 2,
            (self.edges[:, 1:] - self.edges[:, :-1]) / 2,
        )
        middle, half, rate = (
            middle[..., None],
            np.maximum(half, 1e-300)[..., None],
            self.rate[..., None],
        )
        wide, high = half * (_AXES - 1 / _AXES) / 2, middle + half * (_AXES + 1 / _AXES) / 2
        low, theta = 2 * middle - high, np.minimum(wide, _WIDEST)
        end = Places(high, rate, 0.0)
        turn = np.arctan2(end.slope * np.sin(theta), 1 - end.slope * (1 - np.cos(theta)))
        spread = np.where(end.slope < 0.5, end.slope * (1 - end.slope), 0.25)
        least = log_mixed(low, rate) + 0.5 * np.log1p(-2 * spread * (1 - np.cos(theta)))
        size = np.maximum(power * end.ratio, power * least) + frequency * turn
        linear = np.log1p((abs(power) + frequency) * rate * (1 + np.exp(high)))
        rule = np.log(1.1 * half) - 2 * len(LEFT) * np.log(_AXES) - np.log1p(-(_AXES**-2.0))
        found = rule + np.logaddexp(size, linear) - (low + self.epsilon[..., None]) / 2
        best = np.where(wide <= _WIDEST, found, np.inf).min(axis=-1)
        top = best.max(axis=-1, keepdims=True)
        return top + np.log(np.exp(best - top).sum(axis=-1, keepdims=True)) + 1e-6


def end_terms(slope: Reals) -> Reals:
    """B_k(w) for w of shape (m, 1), shape (m, TERMS): sums of positive terms."""
    table, degree = _bernstein(), np.arange(TERMS)
    up, down = slope**degree, (1 - slope) ** degree
    return np.concatenate(
        [
            row_sums(table[k, : k + 1] * up[:, : k + 1] * down[:, k::-1][:, : k + 1])
            for k in range(TERMS)
        ],
        axis=1,
    )


class EndSeries(NamedTuple):
    """The series at one place of each row, all times the same scale.

    Args:
        value: The sum of its terms.
        error: A bound on its rounding.
        remainder: A bound on what it leaves out, if it stands for all that lies to the right.
    """

    value: Complexes
    error: Reals
    remainder: Reals


def end_series(
    location: Places, epsilon: Reals, powers: Complexes, top: Reals, *, highest: Reals
) -> EndSeries:
    """The series, times e^-top.

    Args:
        place: Shape (m, 1).
        epsilon: Shape (m, 1).
        powers: p, of one real part, shape (n,).
        top: log of the scale of each row, shape (m, 1).
        highest: log of the largest |e^(p h)| e^-top to the right, shape (m, 1).
    """
    terms, unit = end_terms(location.slope), np.exp(-(location.loss + epsilon) / 2) / 4
    inverse = 1 / (powers * location.slope)
    modulus = np.abs(inverse)
    value, size = np.zeros_like(inverse), np.zeros_like(modulus)
    for k in range(TERMS - 1, -1, -1):
        value = (value + terms[:, k : k + 1]) * inverse
        size = (size + terms[:, k : k + 1]) * modulus
    raised, angle = np.exp(powers.real * location.ratio - top) * unit, powers.imag * location.ratio
    # A share errs by a few U more than the ratio does of itself, and the term of (p w)^-k by k times that.
    relative = (
        400 * U
        + 8 * (location.ratio_error + location.error * np.abs(location.loss))
        + 2 * U * np.abs(top)
    )
    relative = relative + np.abs(powers) * np.abs(location.ratio) * (location.ratio_error + 4 * U)
    remainder = np.exp(highest) * unit * terms[:, -1:] * modulus**TERMS * (1 + 1e-9)
    return EndSeries(
        raised * value * (np.cos(angle) + 1j * np.sin(angle)), raised * size * relative, remainder
    )


Integers = NDArray[np.integer[Any]]
_TURNED, _FAR = 100.0, 64.0
"""From so much of |p| log r on, and for |p| w beyond this, the density to the right is a series at its ends."""
_ENTRIES, _FEW_ROWS, _ALIKE = 1 << 18, 8, 32
"""Values of M of single rows, or of terms of a table, that are held at once; rows whose bounds are taken at once."""
_WIDE = 16.0
"""Blocks of frequencies that are wider than this over the range of a loss are left to the bound on the density."""


@dataclass(frozen=True, eq=False)
class SampledLaplaceSum(TabulatedTransform):
    """M = E_Q r^(t + 1), or E_Q r^-t when the record is added, multiplied over rows.

    Args:
        epsilon: The largest loss without sampling, shape (m, 1).
        rate: The sampling rates, shape (m, 1).
        times: How many copies of each, shape (m, 1).
        ulps: How many units of roundoff an epsilon may be off.
        remove: Whether the losses are those of (with the record, without it).
    """

    epsilon: Reals
    rate: Reals
    times: Reals
    ulps: int
    remove: bool

    @property
    def _sign(self) -> float:
        return 1.0 if self.remove else -1.0

    def _power(self, order: float) -> float:
        return order + 1 if self.remove else -order

    @property
    def _error(self) -> float:
        return 2 * self.ulps * U

    @cached_property
    def _ends(self) -> tuple[Places, Places]:
        """The places of the smallest and of the largest loss of each row, which are atoms."""
        low, high = (Places(side * self.epsilon, self.rate, self._error) for side in (-1, 1))
        return low, high

    @cached_property
    def _span(self) -> Reals:
        """By how much log r differs from one atom to the other, shape (m, 1)."""
        low, high = self._ends
        return high.ratio - low.ratio

    @property
    def maximum(self) -> float:
        return self._edge(self._ends[1] if self.remove else self._ends[0])

    @property
    def minimum(self) -> float:
        return -self._edge(self._ends[0] if self.remove else self._ends[1])

    def _edge(self, end: Places) -> float:
        return math.fsum((self.times * np.abs(end.ratio) * (1 + end.ratio_error)).ravel()) * (
            1 + 4 * U
        )

    @property
    def copies(self) -> float:
        return float(self.times.sum())

    def curve(self, orders: Reals) -> Cumulants:
        powers = orders + 1 if self.remove else -orders
        far = float(np.abs(powers).max())
        end = self._ends[1 if powers[-1] > 0 else 0].ratio

        def cost(loss: Reals, rows: Integers) -> Reals:
            # Panels grow in proportion to their distance from the end on which r^p is largest.
            depth = np.log1p(far * np.abs(Places(loss, self.rate[rows], 0.0).ratio - end[rows]))
            return loss / LENGTH - 2 * math.copysign(1.0, powers[-1]) * depth

        found = np.zeros((3, len(orders)))
        for at in range(0, len(self.epsilon), _ALIKE):
            rows = self._all[at : at + _ALIKE]
            points = self._rule(rows, partial(cost, rows=rows), self.epsilon[rows]).points
            one = points.curve(
                np.broadcast_to(powers, (len(points.ratio), len(powers))), sign=self._sign
            )
            found += [
                (self.times[rows] * part).sum(axis=0) for part in (one.log_m, one.first, one.second)
            ]
        return Cumulants(found[0], found[1], found[2])

    def _rule(self, rows: Integers, cost: Callable[[Reals], Reals], top: Reals) -> LaplaceRule:
        """Panels up to `top`, each on one side of 0."""
        epsilon = self.epsilon[rows]
        middle = np.minimum(top, 0.0)
        edges = divided(cost, -epsilon, middle)
        if np.any(top > 0):
            edges = np.concatenate([edges, divided(cost, middle, top)[:, 1:]], axis=1)
        return LaplaceRule(epsilon, self.rate[rows], self._error, edges)

    def line(self, order: float, frequencies: Reals) -> Line:
        log, error = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
        size: Reals = np.hypot(self._power(order), frequencies)
        start, least = 0, 2 * TURNS / float(np.max(self._span))
        while start < len(size):
            stop = int(np.searchsorted(size, max(2 * float(size[start]), least), side="right"))
            stop = min(stop, start + max(_ENTRIES // len(self.epsilon), 64))
            here = slice(start, stop)
            one = self._rows(
                self._all, order, frequencies[here], float(size[start]), float(size[stop - 1])
            )
            modulus = self.times * np.abs(one.log)
            log[here] = (self.times * one.log).sum(axis=0)
            error[here] = (self.times * one.error + (3 + len(modulus)) * U * modulus).sum(axis=0)
            start = stop
        return Line(log, error)

    @cached_property
    def _all(self) -> Integers:
        return np.arange(len(self.epsilon))

    def _rows(
        self, chosen: Integers, order: float, frequencies: Reals, least: float, most: float
    ) -> Line:
        """log M of one copy of each row asked, for powers of moduli from `least` to `most`."""
        far = (
            (most * self._span[chosen] > _TURNED) & (least * self._ends[1].slope[chosen] > _FAR)
        )[:, 0]
        log = np.empty((len(far), len(frequencies)), dtype=np.complex128)
        error = np.empty(log.shape)
        for rows, method in (
            (np.flatnonzero(~far), self._by_points),
            (np.flatnonzero(far), self._by_ends),
        ):
            if len(rows):
                one = method(chosen[rows], order, frequencies, least, most)
                log[rows], error[rows] = one.log, one.error
        return Line(log, error)

    def _by_points(
        self, rows: Integers, order: float, frequencies: Reals, least: float, most: float
    ) -> Line:
        power = self._power(order)
        rule = self._rule(rows, self._cost(rows, most), self.epsilon[rows])
        points = rule.points
        top = np.maximum(row_tops(points.log_weight + power * points.ratio), 0.0)
        omitted = np.exp(np.minimum(rule.omitted(power, float(frequencies[-1])) - top, 700.0))
        careful = careful_nodes(float(self.times.max()))
        return points.line(power, frequencies, sign=self._sign, omitted=omitted, careful=careful)

    def _by_ends(
        self, rows: Integers, order: float, frequencies: Reals, least: float, most: float
    ) -> Line:
        """The integral where the density oscillates often: a series at the right end, less one at a place to the left
        of which it does not."""
        power, epsilon, rate = self._power(order), self.epsilon[rows], self.rate[rows]
        slope = np.minimum(_FAR / least, 0.999)
        location = np.clip(
            np.log(slope / (1 - slope)) + np.log1p(-rate) - np.log(rate), -epsilon, epsilon
        )
        rule = self._rule(rows, self._cost(rows, most), location)
        points = rule.points
        top = row_tops(points.log_weight + power * points.ratio)
        powers = power + 1j * self._sign * frequencies
        ends = [Places(each, rate, self._error) for each in (epsilon, location)]
        highest = np.maximum(*[power * end.ratio for end in ends]) - top
        one, two = (end_series(end, epsilon, powers, top, highest=highest) for end in ends)
        value, error, known = _plain_sum(points, power, self._sign * frequencies, top)
        value = value + (one.value - two.value)
        error = error + np.exp(np.minimum(rule.omitted(power, float(frequencies[-1])) - top, 700.0))
        error += one.error + two.error + two.remainder
        found = logarithm_of_excess(value.real - 1, value.imag, error)
        return Line(
            found.log + top, np.where(known, found.error + 4 * U * (1 + np.abs(top)), np.inf)
        )

    def _cost(self, rows: Integers, most: float) -> Callable[[Reals], Reals]:
        rate = self.rate[rows]
        return lambda loss: most / TURNS * Places(loss, rate, 0.0).ratio + loss / LENGTH

    def limsup(self, order: float) -> float:
        low, high, _ = self._tilted(order)
        return math.exp(float((self.times * np.log(np.minimum(low + high, 1.0))).sum()))

    def _tilted(self, order: float) -> tuple[Reals, Reals, Reals]:
        """Upper bounds, relative to M(order): the atoms, and what over u bounds the density, all of shape (m, 1).

        The density of log r times e^(Re p log r) falls first and then rises, so its variation is at most the sum of its
        values at both ends, and its transform at most twice that over u.
        """
        power, epsilon = self._power(order), self.epsilon
        line = self._rows(self._all, order, np.zeros(1), abs(power), abs(power))
        parts: list[Reals] = []
        for end, mass in zip(self._ends, (0.5, np.exp(-epsilon) / 2), strict=True):
            raised = power * end.ratio
            size = np.exp(np.minimum(raised - line.floor, 700.0))
            size = size * (1 + 16 * U * (4 + np.abs(raised)) + 2 * np.abs(raised) * end.ratio_error)
            parts += [mass * size, np.exp(-(end.loss + epsilon) / 2) / (2 * end.slope) * size]
        return parts[0], parts[2], (parts[1] + parts[3]) * (1 + 1e-9)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        low, high, density = self._tilted(order)
        bounds = np.log(np.minimum((low + high + density / edges) * (1 + 1e-9), 1.0))
        for at in range(0, len(self.epsilon), _ALIKE):
            rows = self._all[at : at + _ALIKE]
            bounds[rows] = np.minimum(bounds[rows], self._blockwise(rows, order, edges))
        return (self.times * bounds).sum(axis=0)

    def _blockwise(self, rows: Integers, order: float, edges: Reals) -> Reals:
        """Bounds on log |phi| of each row between neighboring edges, from its values at the edges; 0 where edges are
        too far apart for that."""
        span, power = self._span[rows], self._power(order)
        wide = np.flatnonzero(np.diff(edges, append=math.inf) * float(span.max()) > _WIDE)
        near = edges[: int(wide[0]) + 1]
        bounds = np.zeros((len(rows), len(edges)))
        if len(near) > 1:
            frequencies = np.append(0.0, near)
            line = self._rows(
                rows, order, frequencies, abs(power), math.hypot(power, float(near[-1]))
            )
            magnitude = np.exp(np.minimum((line.log.real + line.error)[:, 1:] - line.floor, 0.0))
            bounds[:, : len(near)] = blockwise(magnitude, np.square(span) / 4 * (1 + 1e-9), near)
        return bounds

    def log_bounds(self, order: float) -> Iterator[Callable[[Reals], Reals]]:
        """|phi| of a few rows at a time: that of the two atoms, and the bound on the density."""
        low, high, density = self._tilted(order)
        turn_error = (
            2 * (self._ends[0].ratio_error + self._ends[1].ratio_error) * self._span
            + 4 * U * self._span
        )

        def bound(*rows_and_u: Reals) -> Reals:
            low, high, density, span, turn_error, times, u = rows_and_u
            cosine = np.cos(span * u) + turn_error * u + 16 * U
            atoms = np.sqrt(low * low + high * high + 2 * low * high * np.minimum(cosine, 1.0))
            with np.errstate(divide="ignore"):
                size = atoms * (1 + 1e-9) + density / u
            return (times * np.log(np.minimum(size, 1.0))).sum(axis=0)

        rows = low, high, density, self._span, turn_error, self.times
        return bounds_of_rows(bound, rows, len(low) // _FEW_ROWS)


def _plain_sum(
    points: WeightedPoints, power: float, turns: Reals, top: Reals
) -> tuple[Complexes, Reals, Any]:
    """The sum of w r^p e^-top at p = power + i turns, shape (m, n), its error, and where that holds.

    An exponent off by d at most 1 puts its term off by a factor of at most 1 + 3 d. Of an angle only the ratio errs.
    """
    size, exponent = np.abs(points.ratio), points.log_weight + power * points.ratio
    tilted = np.exp(exponent - top)
    rounded = (
        4 * exponent.shape[-1]
        + 120
        + 2 * (np.abs(points.log_weight) + abs(power) * size + np.abs(top))
    )
    relative = U * rounded + points.weight_error + abs(power) * size * points.ratio_error
    slanting, far = size * (points.ratio_error + 16 * U), np.abs(turns)
    error = 3 * (row_sums(tilted * relative) + far * row_sums(tilted * slanting))
    known = row_tops(relative) + far * row_tops(slanting) <= 1
    value = exponential_sums(far, tilted, math.copysign(1.0, turns[-1]) * 1j * points.ratio)
    return value, error, known


LARGEST_EPSILON, LARGEST_RATE = 16.0, 0.99
"""Beyond these the density between the atoms takes too many points."""
_TOGETHER = 128
"""Losses that share arrays."""


@dataclass(frozen=True)
class SampledLaplaceLoss(Loss):
    """log(1 - q + q e^l), or -log(1 - q + q e^-l), of the loss l of Laplace noise.

    Args:
        base: The loss without sampling, which has atoms at -epsilon and epsilon and a density between.
        epsilon: The largest loss of the base.
        ulps: How many units of roundoff epsilon may be off.
        rate: q, in (0, `LARGEST_RATE`].
        remove: Whether the loss is that of (with the record, without it).
    """

    base: Loss
    epsilon: float
    ulps: int
    rate: float
    remove: bool

    @cached_property
    def _alone(self) -> tuple[SampledLoss, SampledLoss]:
        """The same loss by its own profile; where it is composed with others, atoms that dominate it and atoms that it
        dominates."""
        base = Enclosed(Product(((self.base, 1),)))
        return SampledLoss(base, self.rate, self.remove, True), SampledLoss(
            base, self.rate, self.remove, False
        )

    @property
    def in_other_order(self) -> SampledLaplaceLoss:
        return replace(self, remove=not self.remove)

    @property
    def additive_noise(self) -> Noise | None:
        base = self.base.additive_noise
        return base and replace(base, rate=self.rate, remove=self.remove, ulps=self.ulps)

    @property
    def maximum(self) -> float:
        return self._alone[0].maximum

    @property
    def minimum(self) -> float:
        return self.transform(1).minimum

    @property
    def largest(self) -> Bound:
        return self._alone[0].largest

    @property
    def has_profile(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        return self._alone[0].profile(epsilon)

    def inverse(self, delta: float) -> Bound | None:
        return self._alone[0].inverse(delta)

    def enclosing(self) -> tuple[Atoms, Atoms]:
        above, below = self._alone
        return above.atoms(), below.atoms()

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        """Losses of one direction in rows of one transform, those of similar size together."""
        found: list[Transform] = []
        rows = sorted(group, key=lambda entry: (not entry[0].remove, entry[0].maximum))
        for remove, side in alike(rows, lambda loss: loss.remove).items():
            for part in blocks(side, _TOGETHER):
                columns = np.array(
                    [(loss.epsilon, loss.rate, times) for loss, times in part], dtype=float
                )
                ulps = max(loss.ulps for loss, _ in part)
                found.append(
                    SampledLaplaceSum(columns[:, :1], columns[:, 1:2], columns[:, 2:], ulps, remove)
                )
        return found

    def ball(self, field: Field) -> Ends:
        """The loss in ball arithmetic: enclosed by atoms from below and atoms from above."""
        above, below = (AtomicLoss(atoms).ball(field) for atoms in self.enclosing())
        return Ends(below.below, above.above)
