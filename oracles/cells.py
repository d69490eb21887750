"""Privacy losses in floats: the masses that both distributions of a pair put between two losses.

A mass with a density comes from the nearer tail. Its error is 64 + 16 |log tail| units of roundoff of that tail: the
special functions err by a few, and where rounding moves an edge by a few units of itself in the noise, at z deviations,
log tail moves by z^2 = 2 |log tail| of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import ndtr

Array = np.ndarray
Tails = tuple[Array, Array, Array, Array]
TailsAt = Callable[[Array], Tails]
Masses = tuple[Array, Array, Array, Array]

U = 2.0**-53
ROUNDED = 2.0**14 * U  # a tail of 1e-320


class Cells(Protocol):
    """One loss log(P / Q)."""

    @property
    def anchor(self) -> float:
        """A loss that a grid should hit."""
        ...

    @property
    def spacing(self) -> float:
        """That of the lattice, or of what else a grid should hit besides the anchor; 0 if there is none."""
        ...

    def above(self, loss: float) -> float:
        """P[L >= loss]."""
        ...

    def below(self, loss: float) -> float:
        """P[L < loss]."""
        ...

    def roughly(self, losses: Array) -> tuple[Array, Array]:
        """Both at many losses, to a millionth: these decide where to look, and bound nothing."""
        ...

    def masses(self, edges: Array) -> Masses:
        """P and Q mass of the cells [edge, next edge), and bounds on the errors of either."""
        ...


@dataclass(frozen=True, eq=False)
class Smooth:
    """By its tails P[L >= l], P[L < l], Q[L >= l], Q[L < l] at an array of losses."""

    tails: TailsAt
    anchor: float = 0.0
    spacing: float = 0.0

    def above(self, loss: float) -> float:
        return float(self._at(np.array([loss]))[0][0])

    def below(self, loss: float) -> float:
        return float(self._at(np.array([loss]))[1][0])

    def roughly(self, losses: Array) -> tuple[Array, Array]:
        return self._at(losses)[:2]

    def masses(self, edges: Array) -> Masses:
        above, below, q_above, q_below = self._at(edges)
        (p, p_error), (q, q_error) = _between(above, below), _between(q_above, q_below)
        return p, q, p_error, q_error

    def _at(self, losses: Array) -> Tails:
        with np.errstate(all="ignore"):
            return self.tails(losses)


def _between(above: Array, below: Array) -> tuple[Array, Array]:
    right = below[1:] > above[:-1]
    mass = np.where(right, above[:-1] - above[1:], below[1:] - below[:-1])
    return np.maximum(mass, 0.0), rounded(np.where(right, above[:-1], below[1:]))


def rounded(tail: Array) -> Array:
    """The error of a tail, and of a difference of it and a smaller one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(tail > 0, tail * U * (64 - 16 * np.log(tail)), 0.0)


@dataclass(frozen=True, eq=False)
class Listed:
    """By its finite losses, increasing, and their P masses, each good to `error` of itself."""

    losses: Array
    upper: Array
    error: float
    spacing: float
    anchor: float

    def above(self, loss: float) -> float:
        return float(self.upper[self.losses >= loss].sum())

    def below(self, loss: float) -> float:
        return float(self.upper[self.losses < loss].sum())

    def roughly(self, losses: Array) -> tuple[Array, Array]:
        at = np.searchsorted(self.losses, losses, side="left")
        rising, falling = self._sums
        return falling[at], rising[at]

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """The mass below each loss and below infinity, and that of the rest."""
        rising, falling = np.zeros(len(self.upper) + 1), np.zeros(len(self.upper) + 1)
        rising[1:], falling[:-1] = np.cumsum(self.upper), np.cumsum(self.upper[::-1])[::-1]
        return rising, falling

    def masses(self, edges: Array) -> Masses:
        at = np.searchsorted(edges, self.losses, side="right") - 1
        inside = (at >= 0) & (at < len(edges) - 1)
        at, losses, upper = at[inside], self.losses[inside], self.upper[inside]
        p = np.bincount(at, upper, len(edges) - 1)
        with np.errstate(over="ignore"):
            # With mass at infinity the finite part of P is scaled up, and the masses of Q with it, beyond 1.
            q = np.bincount(at, np.minimum(upper * np.exp(-losses), 1e300), len(edges) - 1)
        reach = float(np.abs(losses).max(initial=0.0))
        tiny = (
            np.bincount(at, minlength=len(edges) - 1) * 1e-323
        )  # below the normal floats no error is relative
        return p, q, p * self.error + tiny, q * (self.error + U * (8 + 8 * reach)) + tiny


def gaussian(mu: float) -> TailsAt:
    """The loss N(mu^2/2, mu^2)."""

    def tails(loss: Array) -> Tails:
        p, q = (loss - mu * mu / 2) / mu, (loss + mu * mu / 2) / mu
        return ndtr(-p), ndtr(p), ndtr(-q), ndtr(q)

    return tails


def laplace(bound: float) -> TailsAt:
    """Atoms 1/2 at `bound` and e^-bound / 2 at -bound, density e^{(l - bound)/2} / 4."""

    def tails(loss: Array) -> Tails:
        inside = np.clip(loss, -bound, bound)
        p, q = np.exp((inside - bound) / 2) / 2, np.exp(-(inside + bound) / 2) / 2
        below, above = np.where(loss > -bound, p, 0.0), np.where(loss <= bound, q, 0.0)
        first, last = loss <= -bound, loss > bound
        return (
            np.where(last, 0.0, np.where(first, 1.0, 1 - p)),
            np.where(last, 1.0, below),
            np.where(first, 1.0, above),
            np.where(last, 1.0, np.where(first, 0.0, 1 - q)),
        )

    return tails


def bounded_range(bound: float) -> TailsAt:
    """Density e^{(l - bound)/2} / (2 (1 - e^-bound)) between -+bound."""

    def tails(loss: Array) -> Tails:
        x, whole = np.clip(loss, -bound, bound), -math.expm1(-bound)
        return (
            -np.expm1((x - bound) / 2) / whole,
            math.exp(-bound) * np.expm1((x + bound) / 2) / whole,
            math.exp(-bound) * np.expm1((bound - x) / 2) / whole,
            -np.expm1(-(x + bound) / 2) / whole,
        )

    return tails


def sampled(base: TailsAt, rate: float, *, remove: bool) -> TailsAt:
    """((1 - q) Q + q P, Q) if `remove`, else (P, (1 - q) P + q Q), for the pair (P, Q) of `base`."""

    def tails(loss: Array) -> Tails:
        sign = 1 if remove else -1
        inner = sign * _before(sign * loss, rate)
        above, below, q_above, q_below = base(inner)
        mixed = [
            (1 - rate) * far + rate * near for far, near in ((q_above, above), (q_below, below))
        ]
        if remove:
            return mixed[0], mixed[1], q_above, q_below
        mixed = [
            (1 - rate) * near + rate * far for far, near in ((q_above, above), (q_below, below))
        ]
        return above, below, mixed[0], mixed[1]

    return tails


def _before(loss: Array, rate: float) -> Array:
    """log(1 + (e^loss - 1) / rate), -inf where there is no such loss: e^loss may be above all floats."""
    odds = np.expm1(np.minimum(loss, 30.0)) / rate
    lifted = loss - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(loss, 30.0)))
    inner = np.where(odds > -1, np.log1p(np.maximum(odds, -1.0)), -np.inf)
    return np.where(loss > 30, lifted, inner)


def replaced_gaussian(rate: float, mu: float) -> TailsAt:
    """(1 - q) N(0) + q N(-mu) against (1 - q) N(0) + q N(mu): the loss falls with the output."""

    def tails(loss: Array) -> Tails:
        half, size = loss / 2, np.abs(loss) / 2
        log_odds = math.log((1 - rate) / rate) + mu * mu / 2
        # The logarithm of odds sinh(size), which may be above all floats.
        log_sine = log_odds + size + np.log(-np.expm1(-2 * size) / 2)
        turned = np.where(
            log_sine > 300, log_sine + math.log(2), np.arcsinh(np.exp(np.minimum(log_sine, 300.0)))
        )
        point = (-np.copysign(turned, half) - half) / mu
        return (
            (1 - rate) * ndtr(point) + rate * ndtr(point + mu),
            (1 - rate) * ndtr(-point) + rate * ndtr(-point - mu),
            (1 - rate) * ndtr(point) + rate * ndtr(point - mu),
            (1 - rate) * ndtr(-point) + rate * ndtr(mu - point),
        )

    return tails
