"""The loss of opposed mixtures of normal distributions, perhaps chosen by a public coin, with its closed profile."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from dpcompose.contour import (
    Cumulants,
    Line,
    TabulatedTransform,
    Transform,
    logarithm_of_excess,
    remembered,
)
from dpcompose.guarantee import gaussian_profile, mills_drop
from dpcompose.loss.base import Loss, alike, blocks, merged
from dpcompose.loss.gaussian_mixture import LEAST_MASS, GaussianMixture, OpposedMixtures
from dpcompose.loss.mixture_quadrature import MixtureQuadrature
from dpcompose.numerics import Reals, U, exp_or_inf
from dpcompose.values import Bound, Certificate, down, up

_CERTIFICATE = Certificate("closed form, a mean of Gaussian profiles")
_FARTHEST, _FAR = 1e60, 30.0
_TOGETHER = 64
"""Rows that share arrays."""
_ENTRIES = 1 << 15
"""Entries of an array of profiles."""


@dataclass(frozen=True, eq=False)
class MixtureSum(TabulatedTransform):
    """The sum over rows of times log M, M = sum of c_k M_k for losses that a coin with public outcome k chooses between.

    Args:
        parts: For each outcome c_k, shape (m, 1), with its relative error, and M_k.
        times: How many copies of each row, shape (m, 1).
        maximum_loss: The largest loss of one copy of each row, rounded up, shape (m, 1).
        minimum_loss: The smallest, rounded down.
    """

    parts: tuple[tuple[Reals, Reals, MixtureQuadrature], ...]
    times: Reals
    maximum_loss: Reals
    minimum_loss: Reals

    @property
    def maximum(self) -> float:
        return float((self.times * self.maximum_loss).sum()) * (1 + (2 + len(self.times)) * U)

    @property
    def minimum(self) -> float:
        return float((self.times * self.minimum_loss).sum()) * (1 + (2 + len(self.times)) * U)

    @property
    def copies(self) -> float:
        return float(self.times.sum())

    @property
    def blow_up(self) -> float:
        """Where w^(t + 1) e^(t (t + 1) m^2 / 2), what a term of P adds to M, grows past 1."""
        least = math.inf
        for share, _, part in self.parts:
            means, weights = part.first.means, part.first.weights * share
            moved = np.maximum(means, 1e-150)
            ends = np.where(means > 0, 1 - 2 * np.log(weights) / (moved * moved), np.inf)
            least = min(least, float(ends.min()))
        return least

    @np.errstate(
        over="ignore", invalid="ignore"
    )  # where a moment overflows the answer is infinite, or NaN
    def curve(self, orders: Reals) -> Cumulants:
        curves = [part.curve(orders) for _, _, part in self.parts]
        log, first, second = curves[0].log_m, curves[0].first, curves[0].second
        if len(curves) > 1:
            shares = np.array([share for share, _, _ in self.parts])
            logs, firsts, seconds = (
                np.array(rows)
                for rows in zip(*((at.log_m, at.first, at.second) for at in curves), strict=True)
            )
            log = np.log1p((shares * np.expm1(logs)).sum(axis=0))
            tilted = shares * np.exp(logs - log)
            first = (tilted * firsts).sum(axis=0)
            second = (tilted * (seconds + firsts * firsts)).sum(axis=0) - first * first
            second = np.maximum(second, 1e-300)
        return Cumulants(*((self.times * each).sum(axis=0) for each in (log, first, second)))

    @np.errstate(over="ignore")
    def line(self, order: float, frequencies: Reals) -> Line:
        one = self._one(order, frequencies)
        size = self.times * np.abs(one.log)
        error = self.times * one.error + (2 + len(size)) * U * size
        return Line((self.times * one.log).sum(axis=0), error.sum(axis=0))

    @remembered
    def _one(self, order: float, frequencies: Reals) -> Line:
        """log M of one copy of each row, shape (m, n)."""
        lines = [part.line(order, frequencies) for _, _, part in self.parts]
        return lines[0] if len(lines) == 1 else self._mixed(lines)

    def _mixed(self, lines: Sequence[Line]) -> Line:
        """log of the mean of the parts: through its distance from 1 unless one of them is large."""
        tops = [
            np.log(share) + line.log[:, :1].real
            for (share, _, _), line in zip(self.parts, lines, strict=True)
        ]
        top = np.maximum.reduce(tops)
        scale = np.where(top > _FAR, top, 0.0)
        real, imaginary, error = (np.zeros(lines[0].log.shape) for _ in range(3))
        for (share, relative, _), line in zip(self.parts, lines, strict=True):
            size = np.minimum(line.log.real - scale, 705.0)
            sine, half = np.sin(line.log.imag), np.sin(line.log.imag / 2)
            modulus = np.exp(size)
            less = np.expm1(size) - 2 * modulus * half * half
            real += share * less
            imaginary += share * modulus * sine
            # From an error of 1 on only the size of M is bounded.
            far = modulus * (1 + np.exp(line.error))
            moved = np.where(line.error < 1, modulus * np.expm1(np.minimum(line.error, 1.0)), far)
            distance = np.hypot(less, modulus * sine)
            rounded = U * (
                24 * distance + 8 * modulus * np.abs(line.log) + (8 * np.abs(scale) * modulus)
            )
            error += share * (moved + rounded + relative * (distance + np.minimum(scale, 1.0)))
        found = logarithm_of_excess(real, imaginary, error)
        return Line(found.log + scale, found.error + 8 * U * scale)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return self._envelope(order, edges, finest=False)

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        return self._envelope(order, edges, finest=True)

    @np.errstate(over="ignore", invalid="ignore")
    def _envelope(self, order: float, edges: Reals, *, finest: bool) -> Reals:
        zero = np.zeros(1)
        whole = self._one(order, zero)
        bounds: list[Reals] = []
        proved = np.ones(whole.error.shape, dtype=bool)
        for share, relative, part in self.parts:
            line = whole if len(self.parts) == 1 else part.line(order, zero)
            proved &= line.error + whole.error < 1e-3
            log = np.where(proved, line.log.real, -np.inf)
            bound = part.log_envelope(order, edges, log - line.error, finest=finest)
            if len(self.parts) > 1:
                bound = bound + np.log(share * (1 + relative)) + log - whole.log.real
            bounds.append(bound)
        if len(bounds) == 1:
            return (self.times * bounds[0]).sum(axis=0)
        error = 4 * whole.error + 16 * U * (1 + np.abs(whole.log.real))
        total = np.log(np.exp(np.array(bounds)).sum(axis=0)) + error
        return (self.times * np.where(proved, total, 0.0)).sum(axis=0)


Row = tuple[Sequence[tuple[float, float, OpposedMixtures]], int, float, float]
"""Of a loss its outcomes, c_k with its relative error and the pair, how many copies, and its largest and smallest."""


def mixture_sum(rows: Sequence[Row]) -> MixtureSum:
    """The transform of losses whose mixtures have equally many terms."""
    times, most, least = np.array([row[1:] for row in rows], dtype=float).T[:, :, None]
    parts = [
        (
            np.array([[share] for share, _, _ in outcome]),
            np.array([[relative] for _, relative, _ in outcome]),
            MixtureQuadrature.of([pair for _, _, pair in outcome], times[:, 0].tolist()),
        )
        for outcome in zip(*(row[0] for row in rows), strict=True)
    ]
    return MixtureSum(tuple(parts), times, most, least)


class OpposedLoss(Loss, ABC):
    """A loss whose moments are those of opposed mixtures; a member may know more of its profile and of its ends."""

    @property
    @abstractmethod
    def mixture(self) -> MixtureLoss:
        """The mixtures."""

    @property
    def unplaced_mass(self) -> float:
        return self.mixture.infinite_error

    def _row(self, times: int) -> Row:
        mixture = self.mixture
        outcomes = [(weight, mixture.share_error, pair) for weight, pair in mixture.parts]
        return outcomes, times, self.maximum, self.minimum

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        """Losses of mixtures with equally many terms and similar means in rows of one transform."""
        found: list[Transform] = []
        for shape, members in alike(group, cls._shape).items():
            members.sort(key=lambda entry: entry[0].mixture.width)
            parts = blocks(members, _TOGETHER if len(shape) == 1 else 1)
            found += [mixture_sum([loss._row(times) for loss, times in part]) for part in parts]
        return found

    def _shape(self) -> tuple[tuple[int, int], ...]:
        """How many terms the mixtures of each pair have."""
        pairs = [pair for _, pair in self.mixture.parts]
        return tuple((len(pair.first.means), len(pair.second.means)) for pair in pairs)

    @classmethod
    def combine(cls, group: Sequence[tuple[Self, int]]) -> Sequence[tuple[Loss, int]]:
        return merged(group)

    @property
    def has_profile(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        return self.profiles([epsilon])[0]

    def profiles(self, epsilons: Sequence[float]) -> list[Bound]:
        return self.mixture.profiles(epsilons)


@dataclass(frozen=True)
class MixtureLoss(OpposedLoss):
    """The loss of (P, Q) for each pair, with probability c_k the k-th: which one it is, the answer tells.

    Args:
        parts: The probabilities c_k, with sum 1, and the pairs.
        share_error: A bound on the relative error of each c_k.
        infinite_error: A mass of unknown place: of terms that are too small for floats.
    """

    parts: tuple[tuple[float, OpposedMixtures], ...]
    share_error: float = 0.0
    infinite_error: float = 0.0

    @property
    def reverse(self) -> MixtureLoss:
        """The loss of (Q, P)."""
        return replace(
            self,
            parts=tuple(
                (share, OpposedMixtures(pair.second, pair.first)) for share, pair in self.parts
            ),
        )

    @property
    def mixture(self) -> MixtureLoss:
        return self

    @property
    def width(self) -> float:
        """The largest mean of the first pair: losses for which it is similar share arrays."""
        _, pair = self.parts[0]
        return max(pair.first.largest, pair.second.largest)

    @property
    def maximum(self) -> float:
        return max(_largest(pair.first, pair.second) for _, pair in self.parts)

    @property
    def minimum(self) -> float:
        return -max(_largest(pair.second, pair.first) for _, pair in self.parts)

    @property
    def zcdp(self) -> float | None:
        """The zCDP parameter of the largest mean against the largest mean of the other side, an upper bound by joint
        convexity."""
        if self.infinite_error > 0:
            return None
        apart = max(pair.first.largest + pair.second.largest for _, pair in self.parts)
        ulps = max(mixture.ulps for _, pair in self.parts for mixture in (pair.first, pair.second))
        return apart * apart / 2 * (1 + 8 * U * (ulps + 2))

    def sampled(self, rate: float, *, remove: bool) -> Loss | None:
        """The mixture of N(0, 1) and P, where the other side is N(0, 1)."""
        ((_, pair), *others) = self.parts
        side, other = (pair.first, pair.second) if remove else (pair.second, pair.first)
        if others or not other.nothing or self.infinite_error > 0:
            return None
        mixed, lost = side.sampled(rate)
        opposed = OpposedMixtures(mixed, other) if remove else OpposedMixtures(other, mixed)
        return MixtureLoss(((1.0, opposed),), infinite_error=lost)

    def profiles(self, epsilons: Sequence[float]) -> list[Bound]:
        """The profile at many epsilons: the mean of those of the pairs. Mass that is left out adds at most itself to
        P(A) or Q(A)."""
        finite = [epsilon for epsilon in epsilons if math.isfinite(epsilon)]
        pairs = [_profiles(pair, finite) for _, pair in self.parts]
        means = {at: self._mean(at, bounds) for at, *bounds in zip(finite, *pairs, strict=True)}
        return [
            means[epsilon] if epsilon in means
            else Bound(0.0, self.infinite_error, _CERTIFICATE) if epsilon > 0
            else Bound(1.0, 1.0, _CERTIFICATE)
            for epsilon in epsilons
        ]  # fmt: skip

    def _mean(self, epsilon: float, bounds: Sequence[Bound]) -> Bound:
        found = [(share, bound) for (share, _), bound in zip(self.parts, bounds, strict=True)]
        error = self.share_error + 8 * U if len(found) > 1 else 0.0
        lower = sum(share * bound.lower for share, bound in found) * (1 - error)
        upper = sum(share * bound.upper for share, bound in found) * (1 + error)
        lost = self.infinite_error
        lower, upper = (
            (down(lower - lost * math.exp(min(epsilon, 700.0))), up(upper + lost))
            if lost
            else (lower, upper)
        )
        return Bound(max(lower, 0.0), min(upper, 1.0), _CERTIFICATE)


def against_noise(
    parts: Iterable[tuple[float, tuple[float, ...], tuple[float, ...], float]],
    share_error: float,
    infinite_error: float,
) -> MixtureLoss:
    """Return the loss of a public choice among mixtures, (share, means, weights, relative error of
    the weights) each, against the noise alone.
    """
    mixtures = [
        (share, GaussianMixture(means, weights, 1, error)) for share, means, weights, error in parts
    ]
    pairs = tuple([(share, OpposedMixtures(one, GaussianMixture())) for share, one in mixtures])
    return MixtureLoss(pairs, share_error, infinite_error)


def _largest(first: GaussianMixture, second: GaussianMixture) -> float:
    """The largest loss of (first, second mirrored), rounded up."""
    if not first.nothing or second.smallest_loss == -math.inf:
        return math.inf
    return -second.smallest_loss * (1 + 8 * U) + 2 * second.weight_error


def _profiles(pair: OpposedMixtures, epsilons: Sequence[float]) -> list[Bound]:
    """Both ends at the means and the weights that make them so: a profile grows with every mean.

    Weights off by a relative w change P(A) and Q(A) by as much: as if epsilon were off by 2 w, and the profile by w.
    """
    spread = U * (2 * max(pair.first.ulps, pair.second.ulps) + 2)
    exact = spread == 2 * U
    weight_error = pair.first.weight_error + pair.second.weight_error
    low, high = (pair, pair) if exact else (pair.scaled(1 - spread), pair.scaled(1 + spread))
    found: list[Bound] = []
    size = max(1, _ENTRIES // (len(pair.first.means) + len(pair.second.means)))
    for at in range(0, len(epsilons), size):
        some = np.array([epsilons[at : at + size]], dtype=float)
        moved = 2 * weight_error + 2 * U * np.abs(some)
        ends = zip(_Level(low, some + moved).lower, _Level(high, some - moved).upper, strict=True)
        found += [
            Bound(
                max(down(lower * (1 - weight_error)), 0.0),
                min(up(upper * (1 + weight_error)) if upper else 0.0, 1.0),
            )
            for lower, upper in ends
        ]
    return found


@dataclass(frozen=True)
class _Level:
    """Where the loss of a pair is epsilon: the profile there is that of the half-line to the right.

    With D_m the Gaussian profile, z_i(x) = m_i x - m_i^2 / 2, and v_j the shares of s at -x, it is
    sum of p_i D_(a_i)(z_i(x)) + r(x) times the sum of v_j D_(b_j)(-z_j(-x)): nothing cancels. It falls with x.

    Args:
        pair: The pair.
        epsilon: Many levels, shape (1, n), as are points.
    """

    pair: OpposedMixtures
    epsilon: Reals

    @property
    def upper(self) -> list[float]:
        """The profile where the loss is at most epsilon."""
        return [
            profile if math.isfinite(x)
            else 0.0 if x > 0
            else -math.expm1(min(epsilon, self._ends[0], 0.0)) * (1 + 8 * U)
            for epsilon, x, profile in self._at(self._proved(-1), 1)
        ]  # fmt: skip

    @property
    def lower(self) -> list[float]:
        """The profile where the loss is at least epsilon."""
        return [
            max(profile, -math.expm1(min(epsilon, 0.0)) * (1 - 8 * U))
            for epsilon, _, profile in self._at(self._proved(1), -1)
        ]

    @cached_property
    def _ends(self) -> tuple[float, float]:
        first, second = self.pair.first, self.pair.second
        low = first.smallest_loss if second.nothing else -math.inf
        high = -second.smallest_loss if first.nothing else math.inf
        return low * (1 + 8 * U), high * (1 + 8 * U)

    def _loss(self, x: Reals) -> tuple[Reals, Reals, Reals]:
        """The privacy loss at the outcomes x, a bound on its error, and its derivative in x."""
        one, two = self.pair.first.rows.at(x), self.pair.second.rows.at(-x)
        loss = one.log - two.log
        return loss, one.error + two.error + U * np.abs(loss), one.slope + two.slope

    @cached_property
    @np.errstate(over="ignore", invalid="ignore")
    def _root(self) -> Reals:
        """About where the loss is epsilon; infinite beyond its ends."""
        inside = (self._ends[0] < self.epsilon) & (self.epsilon < self._ends[1])
        x, going = np.zeros(inside.shape), inside
        low, high = np.full(x.shape, -_FARTHEST), np.full(x.shape, _FARTHEST)
        for _ in range(200):
            loss, error, slope = self._loss(x)
            away = self.epsilon - loss
            going = going & (np.abs(away) > error) & (low < x) & (x < high)
            if not going.any():
                break
            low, high = np.where(away > 0, x, low), np.where(away > 0, high, x)
            step = np.where(slope > 0, away / np.where(slope > 0, slope, 1.0), np.inf)
            moved = x + np.copysign(np.minimum(np.abs(step), 2 + 2 * np.abs(x)), away)
            moved = np.where((low < moved) & (moved < high), moved, (low + high) / 2)
            x = np.where(going, moved, x)
        return np.where(inside, x, np.where(self.epsilon > 0, np.inf, -np.inf))

    @np.errstate(over="ignore")  # what overflows proves nothing
    def _proved(self, side: int) -> Reals:
        """Points at which the loss is proved to be at most (side -1) or at least (side 1) epsilon."""
        left = np.isfinite(self._root)
        found, x = np.where(left, side * np.inf, self._root), np.where(left, self._root, 0.0)
        loss, error, slope = self._loss(x)
        step = 2 * (error + np.abs(loss - self.epsilon)) / np.maximum(slope, 1e-300)
        step, moved = step + 4 * U * np.abs(x), x
        for _ in range(61):
            proved = left & (side * (loss - self.epsilon) >= error) & np.isfinite(error)
            found, moved = np.where(proved, moved, found), x + side * step
            left = left & ~proved & (np.abs(moved) <= _FARTHEST)
            if not left.any():
                break
            (loss, error, _), step = self._loss(np.where(left, moved, x)), 2 * step
        return found

    def _at(self, points: Reals, side: int) -> Iterator[tuple[float, float, float]]:
        """Epsilon, the point and the profile at its level, rounded up (side 1) or down; 0 where the point is infinite."""
        first, second = self.pair.first, self.pair.second
        place = np.where(np.isfinite(points), points, 0.0)
        one, two = first.rows.at(place), second.rows.at(-place)
        levels, others = first.rows.exponents(place)[0].T, -second.rows.exponents(-place)[0].T
        rows = (points[0], one.log[0], one.error[0], two.error[0], levels, others, two.shares[0].T)
        columns = [each.tolist() for each in (self.epsilon[0], *rows)]
        for epsilon, x, *row in zip(*columns, strict=True):
            yield epsilon, x, self._above(x, side, *row) if math.isfinite(x) else 0.0

    def _above(
        self,
        x: float,
        side: int,
        log: float,
        error: float,
        tilt_error: float,
        levels: Sequence[float],
        others: Sequence[float],
        shares: Sequence[float],
    ) -> float:
        """The profile at the level of x, from what holds there."""
        first, second = self.pair.first, self.pair.second
        total, other = _mean(first, first.weights, levels, x, side), 0.0
        relative = U * (16 + len(first.means) + len(second.means))
        if not second.nothing and x < _FAR:
            other = exp_or_inf(log) * _mean(second, shares, others, x, side)
        elif not second.nothing:
            drops, worst = _drops(second, shares, x)
            other = exp_or_inf(log - x * x / 2) / math.sqrt(2 * math.pi) * drops
            relative += worst + U * (4 * abs(log) + 4 * x * x)
        if other > 0:  # of each share too
            moved = 8 * U * second.largest * (abs(x) + second.largest)
            relative += error + 4 * (U * (16 + len(second.means)) + tilt_error + moved)
        least = LEAST_MASS * 4 * (len(first.means) + len(second.means))
        return (total + other) * (1 + side * relative) + side * least


def _drops(mixture: GaussianMixture, shares: Sequence[float], x: float) -> tuple[float, float]:
    """The mean of Mills(x) - Mills(x + m): with the density at x that of the Gaussian profiles, and the worst error."""
    rows = zip(mixture.means, shares, strict=True)
    drops = [(share, *mills_drop(x, width=mean)) for mean, share in rows if mean > 0 and share > 0]
    return math.fsum(share * drop for share, drop, _ in drops), max(
        (error for _, _, error in drops), default=0.0
    )


def _mean(
    mixture: GaussianMixture, weights: Sequence[float], levels: Sequence[float], x: float, side: int
) -> float:
    """The mean of the Gaussian profiles at these levels, each off by a few U of |x| m + m^2."""
    terms: list[float] = []
    for mean, weight, level in zip(mixture.means, weights, levels, strict=True):
        if mean > 0 and weight > 0:
            bound = gaussian_profile(level - side * 4 * U * mean * (abs(x) + mean), mu=mean)
            terms.append(weight * (bound.upper if side > 0 else bound.lower))
    return math.fsum(terms)
