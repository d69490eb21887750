"""Quadrature for E_Q r^p, r = 1 - q + q e^l, over the loss l of Laplace noise under Q, in rows.

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from dpcompose.contour import WeightedPoints
from dpcompose.numerics import Complexes, Reals, U, log_mixed, minus_log1p, row_sums

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
LEFT = np.array([*_PLACES, *(1 - place for place in reversed(_PLACES))])
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
        """h = log r."""
        return log_mixed(self.loss, self.rate)

    @cached_property
    def share(self) -> Reals:
        """w = q e^l / r, the slope of h."""
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
        turn = np.arctan2(end.share * np.sin(theta), 1 - end.share * (1 - np.cos(theta)))
        spread = np.where(end.share < 0.5, end.share * (1 - end.share), 0.25)
        least = log_mixed(low, rate) + 0.5 * np.log1p(-2 * spread * (1 - np.cos(theta)))
        size = np.maximum(power * end.ratio, power * least) + frequency * turn
        linear = np.log1p((abs(power) + frequency) * rate * (1 + np.exp(high)))
        rule = np.log(1.1 * half) - 2 * len(LEFT) * np.log(_AXES) - np.log1p(-(_AXES**-2.0))
        found = rule + np.logaddexp(size, linear) - (low + self.epsilon[..., None]) / 2
        best = np.where(wide <= _WIDEST, found, np.inf).min(axis=-1)
        top = best.max(axis=-1, keepdims=True)
        return top + np.log(np.exp(best - top).sum(axis=-1, keepdims=True)) + 1e-6


def end_terms(share: Reals) -> Reals:
    """B_k(w) for w of shape (m, 1), shape (m, TERMS): sums of positive terms."""
    table, degree = _bernstein(), np.arange(TERMS)
    up, down = share**degree, (1 - share) ** degree
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
    place: Places, epsilon: Reals, powers: Complexes, top: Reals, *, highest: Reals
) -> EndSeries:
    """The series, times e^-top.

    Args:
        place: Shape (m, 1).
        epsilon: Shape (m, 1).
        powers: p, of one real part, shape (n,).
        top: log of the scale of each row, shape (m, 1).
        highest: log of the largest |e^(p h)| e^-top to the right, shape (m, 1).
    """
    terms, unit = end_terms(place.share), np.exp(-(place.loss + epsilon) / 2) / 4
    inverse = 1 / (powers * place.share)
    modulus = np.abs(inverse)
    value, size = np.zeros_like(inverse), np.zeros_like(modulus)
    for k in range(TERMS - 1, -1, -1):
        value = (value + terms[:, k : k + 1]) * inverse
        size = (size + terms[:, k : k + 1]) * modulus
    raised, angle = np.exp(powers.real * place.ratio - top) * unit, powers.imag * place.ratio
    # A share errs by a few U more than the ratio does of itself, and the term of (p w)^-k by k times that.
    relative = (
        400 * U + 8 * (place.ratio_error + place.error * np.abs(place.loss)) + 2 * U * np.abs(top)
    )
    relative = relative + np.abs(powers) * np.abs(place.ratio) * (place.ratio_error + 4 * U)
    remainder = np.exp(highest) * unit * terms[:, -1:] * modulus**TERMS * (1 + 1e-9)
    return EndSeries(
        raised * value * (np.cos(angle) + 1j * np.sin(angle)), raised * size * relative, remainder
    )
