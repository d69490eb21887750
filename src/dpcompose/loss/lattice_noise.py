"""One round of noise in cells: the masses of both neighbors and the losses between two places.

The noise is N(0, 1) against N(m, 1), or Laplace noise of scale 1 / m around 0 against 1, on a Poisson sample or not. With
Q the distribution without the record, P the one with it, a cell holds Q's mass q and the excess P - Q, which a sample
multiplies by the rate: so neither cancels, however rare the sample is.

A Gaussian cell is summed by five nodes of Gauss and Legendre. A cell [x - w, x + w] with w (|x| + m) <= 0.1 and
w <= 0.02: on the ellipse of Bernstein with parameter 60 the density is at most 80 times the one in the cell, so that the
rule errs by at most 64 / 15 * 80 * 60^-10 / (1 - 60^-2) < 6e-16 of it.

Reference: [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcompose.numerics import Reals, U, log_mixed

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
_WIDEST, _STEEPEST = 0.04, 0.2
"""The widest cell, and the largest product of its width and |x| + m."""


class Cells(NamedTuple):
    """Outcomes of one round; all arrays of shape (n,).

    Args:
        mass: Q's mass q.
        dominated: P's mass p.
        excess: p - q.
        low: The smallest loss ln(p / q) in the cell.
        high: The largest.
        error: The relative error of q and p, and of the excess relative to `size`.
        size: At least |p - q|, and what it was added up from.
    """

    mass: Reals
    dominated: Reals
    excess: Reals
    low: Reals
    high: Reals
    error: Reals
    size: Reals

    def __getitem__(self, chosen: Any) -> Cells:  # type: ignore[override]
        return Cells(*(each[chosen] for each in tuple(self)))

    @property
    def reverse(self) -> Cells:
        """The same outcomes for the pair in the other order."""
        ends = -self.high, -self.low
        return Cells(self.dominated, self.mass, -self.excess, *ends, self.error, self.size)

    def above(self, loss: Reals) -> Reals:
        """p - e^loss q, without the cancellation of p and q where they are alike."""
        near = self.excess - np.expm1(loss) * self.mass
        return np.where(np.abs(loss) < 1, near, self.dominated - np.exp(loss) * self.mass)


@dataclass(frozen=True)
class Noise:
    """The noise of one round.

    Args:
        scale: m, the distance of the means in units of the noise, > 0.
        rate: The sampling rate, in (0, 1].
        remove: Whether the loss is that of (with the record, without it).
        gaussian: Whether the noise is normal; else it is Laplace's.
        ulps: How many units of roundoff m may be off.
    """

    scale: float
    rate: float
    remove: bool
    gaussian: bool
    ulps: int

    def moved(self, side: int) -> Noise:
        """The noise at the end of its stated interval of m: the largest m (side 1) or the smallest (side -1)."""
        return replace(self, scale=self.scale * (1 + side * 2 * U * (self.ulps + 1)))

    def loss(self, x: Reals) -> Reals:
        """The loss at a place with the record against without it, which rises."""
        m = self.scale
        plain = m * (x - m / 2) if self.gaussian else m * (2 * x - 1)
        return plain if self.rate == 1 else log_mixed(plain, self.rate)

    def location(self, loss: Reals) -> Reals:
        """About the place at which the loss has a given value."""
        plain = loss
        if self.rate < 1:
            few = np.log1p(np.expm1(np.minimum(loss, 600.0)) / self.rate)
            plain = np.where(loss > 600, loss - math.log(self.rate), few)
        return (
            plain / self.scale + self.scale / 2 if self.gaussian else (plain / self.scale + 1) / 2
        )

    def reach(self, log_tail: float) -> tuple[float, float]:
        """The places beyond which either distribution has at most e^log_tail of its mass."""
        far = math.sqrt(2 * max(-log_tail, 1.0)) + 1
        return (-far, self.scale + far) if self.gaussian else (0.0, 1.0)

    def places(self, low: float, high: float) -> Reals:
        """Places so close that cells between them are narrow enough."""
        if not self.gaussian:
            return np.linspace(low, high, 129)
        x = np.linspace(low, high, 1 << 11)
        dense = np.maximum(1 / _WIDEST, (np.abs(x) + self.scale + 0.1) / _STEEPEST)
        count = np.append(0.0, np.cumsum(np.maximum(dense[1:], dense[:-1]) * np.diff(x)))
        most = float(count[-1])
        found: Reals = np.interp(np.linspace(0.0, most, math.ceil(most) + 1), count, x)
        return found

    def under(self, places: Reals, cut: float) -> NDArray[np.bool_]:
        """Of the cells between these places, those that are not above a cut; the cut is one of the places, or infinite."""
        inner = places[1:] <= cut
        return inner if self.gaussian else np.append(inner, [True, cut >= 1.0])

    def cells(self, places: Reals) -> Cells:
        """The cells between increasing places; those of Laplace noise with all that is beyond 0 and 1."""
        found = self._normal(places) if self.gaussian else self._laplace(places)
        return found if self.remove else found.reverse

    def _normal(self, places: Reals) -> Cells:
        m, half = self.scale, np.diff(places)[:, None] / 2
        x = places[:-1, None] + half * (1 + _NODES)
        plain = m * (x - m / 2)
        density, away = np.exp(-x * x / 2), x - m
        near, moved = np.abs(plain) < 1, np.exp(-away * away / 2)
        excess = np.where(near, density * np.expm1(np.where(near, plain, 0.0)), moved - density)
        weight = half * (_WEIGHTS / math.sqrt(2 * math.pi))
        mass, size = (density * weight).sum(axis=1), (np.abs(excess) * weight).sum(axis=1)
        far = np.maximum(np.abs(places[:-1]), np.abs(places[1:]))
        size = self.rate * (size + 0.2 * mass * np.minimum(m * (far + m), 1.0))
        loss = np.maximum.accumulate(self.loss(places))
        error = 2e-15 + U * (16 + 4 * far * far + 4 * m * (far + m))
        dominated = (1 - self.rate) * mass + self.rate * (moved * weight).sum(axis=1)
        excess = self.rate * (excess * weight).sum(axis=1)
        masses = mass, dominated, excess
        return Cells(*masses, loss[:-1], loss[1:], error, size)

    def _laplace(self, places: Reals) -> Cells:
        m = self.scale
        low, high = places[:-1], places[1:]
        mass = -0.5 * np.exp(-m * low) * np.expm1(-m * (high - low))
        middle, half = m * ((low + high) / 2 - 0.5), m * (high - low) / 2
        excess = self.rate * 2 * math.exp(-m / 2) * np.sinh(middle) * np.sinh(half)
        ends = self.loss(np.array([0.0, 1.0]))
        loss = np.clip(np.maximum.accumulate(self.loss(places)), *ends)
        away, least = self.rate * 0.5 * math.expm1(-m), 0.5 * math.exp(-m)
        moved = 0.5 * np.exp(m * (low - 1)) * np.expm1(m * (high - low))
        moved, mass = np.append(moved, [least, 0.5]), np.append(mass, [0.5, least])
        dominated = (1 - self.rate) * mass + self.rate * moved
        excess = np.append(excess, [away, -away])
        size = np.abs(excess) + self.rate * mass * min(m, 1.0) * 0.1
        error = np.full(len(mass), 4e-15 + 8 * U * m)
        low, high = np.concatenate([loss[:-1], ends]), np.concatenate([loss[1:], ends])
        masses = mass, dominated, excess
        return Cells(*masses, low, high, error, size)


class Coarse:
    """A round in few cells, to plan with: no number of it is relied on.

    Args:
        noise: The noise.
        log_tail: log of the mass that may be left out at either end.
    """

    def __init__(self, noise: Noise, log_tail: float) -> None:
        self.ends = noise.reach(log_tail)
        self.places = noise.places(*self.ends)
        cells = noise.cells(self.places)
        self.mass, self.loss = cells.dominated, (cells.low + cells.high) / 2
        self.log_mass = np.log(np.maximum(self.mass, 1e-320))

    def up_to(self, loss: float) -> Coarse:
        """The same cells without those whose loss is above a limit."""
        found, kept = copy(self), self.loss <= loss
        found.mass, found.log_mass, found.loss = (
            each[kept] for each in (self.mass, self.log_mass, self.loss)
        )
        return found

    def moments(self, orders: Reals) -> Reals:
        """K and its first two derivatives at each order, shape (3, n)."""
        exponent = self.log_mass + orders[:, None] * self.loss
        top = exponent.max(axis=1)
        tilted = np.exp(exponent - top[:, None])
        total = tilted.sum(axis=1)
        mean = tilted @ self.loss / total
        square = np.einsum("ij,ij->i", tilted, np.square(self.loss - mean[:, None])) / total
        return np.stack([top + np.log(total), mean, square])

    def heaviest(self, order: float, width: float) -> float:
        """The mean loss of the window of that width with the largest tilted mass."""
        ranked = np.argsort(self.loss)
        log_mass, loss = self.log_mass[ranked], self.loss[ranked]
        exponent = log_mass + order * loss
        summed = np.concatenate([[0.0], np.cumsum(np.exp(exponent - exponent.max()))])
        q = np.exp(log_mass - loss)
        excess = np.exp(log_mass) * -np.expm1(-loss)
        ends = np.searchsorted(loss, loss + width, side="right")
        middle = float(loss[int((summed[ends] - summed[:-1]).argmax())]) + width / 2
        for _ in range(30):
            low, high = np.searchsorted(loss, [middle - width / 2, middle + width / 2])
            total = float(q[low:high].sum())
            if not total > 0:
                break
            moved = math.log1p(float(excess[low:high].sum()) / total)
            moved, middle = abs(moved - middle), moved
            if moved < 1e-9 * width:
                break
        return middle
