"""The optimal composition of different (epsilon, delta) guarantees (Murtagh, Vadhan), certified."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import binomial
from dpcompose.guarantee.approximate import (
    ApproximateDP,
    mirrored_epsilon,
    remaining_delta,
    with_failures,
)
from dpcompose.numerics import dots, increasing_root, walk
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, down, up

Reals = NDArray[np.float64]
Promises = Iterable[ApproximateDP | tuple[ApproximateDP, int]]
"""Guarantees, or pairs of a guarantee and its number of uses."""

MOST_STATES = 2**20
_LARGEST = 1e290
_CERTIFICATE = Certificate(
    "optimal composition (Murtagh-Vadhan), enumeration", unit="relative delta"
)
_TINY = 5e-324


def heterogeneous_delta(target_epsilon: float, *, promises: Promises) -> Bound:
    """The smallest delta at `target_epsilon` of composed mechanisms with the guarantees `promises`.

    The delta is 1 - prod (1 - delta_i) (1 - sum_S P[S] max(0, 1 - e^(target - L_S))), where S runs
    over the signs of the losses +-epsilon_i, each positive with probability 1 / (1 + e^-epsilon_i),
    and L_S is their sum. Equal epsilons are grouped into binomial distributions, so that a million
    equal guarantees among a few distinct ones stay cheap. Losses are added in twice the working
    precision. Both ends are certified; for a handful of groups the relative width is below 2e-12.

    >>> few = [ApproximateDP(number / 10) for number in (1, 2, 3, 4, 5)]
    >>> heterogeneous_delta(0.7, promises=few).contains(0.09252826376421648)
    True

    Args:
        target_epsilon: In nats; any real number, infinite and negative ones included.
        promises: The guarantees of the mechanisms: each an `ApproximateDP`, or a pair of one and
            its number of uses.

    Raises:
        DomainError: If target_epsilon is not a real number, or an element of `promises` is neither
            of the two.
        UnsupportedError: If there are more than 2^20 combinations of losses (the problem is
            #P-complete), or an epsilon beyond 1e290.

    Reference: [MurtaghVadhan2016, Theorem 1.5]
    """
    target, counted = check.real("target_epsilon", target_epsilon), _counted(promises)
    if any(promise.epsilon == math.inf for promise in counted):
        if target != math.inf:
            return Bound(1.0, 1.0, _CERTIFICATE)
        return with_failures(Bound(0.0, 0.0), _failures(counted), _CERTIFICATE)
    atoms = _atoms(counted)
    failures = _failures(counted)
    if target >= 0.0:
        return with_failures(atoms.delta(target), failures, _CERTIFICATE)
    return mirrored_epsilon(
        target,
        lambda positive: with_failures(atoms.delta(positive), failures, _CERTIFICATE),
        _CERTIFICATE,
    )


def heterogeneous_epsilon(target_delta: float, *, promises: Promises) -> Bound:
    """The smallest epsilon at `target_delta` of composed mechanisms with the guarantees `promises`.

    At least 0; the inverse of `heterogeneous_delta` by Newton's method; then both ends are
    certified. Infinite where target_delta < 1 - prod (1 - delta_i).

    >>> few = [ApproximateDP(number / 10) for number in (1, 2, 3, 4, 5)]
    >>> heterogeneous_epsilon(1e-3, promises=few).contains(1.4836842681808437)
    True

    Args:
        target_delta: In [0, 1].
        promises: The guarantees of the mechanisms: each an `ApproximateDP`, or a pair of one and
            its number of uses.

    Raises:
        DomainError: If target_delta is outside [0, 1], or an element of `promises` is neither of
            the two.
        UnsupportedError: If there are more than 2^20 combinations of losses, or an epsilon beyond
            1e290.

    Reference: [MurtaghVadhan2016, Theorem 1.5]
    """
    target, counted = check.probability("target_delta", target_delta), _counted(promises)
    if target == 1.0 or not counted:
        return Bound(0.0, 0.0, _CERTIFICATE)
    if any(promise.vacuous for promise in counted):
        return Bound(math.inf, math.inf, _CERTIFICATE)
    remaining = remaining_delta(target, _failures(counted))
    if remaining is None:
        return Bound(math.inf, math.inf, _CERTIFICATE)
    atoms = _atoms(counted)
    most = float(atoms.maximum)

    def at_most(candidate: float) -> bool:
        return atoms.delta(candidate).upper <= remaining.lower

    def at_least(candidate: float) -> bool:
        return candidate <= 0.0 or atoms.delta(candidate).lower >= remaining.upper

    if remaining.lower >= 0.0 and at_most(0.0):
        return Bound(0.0, 0.0, _CERTIFICATE)
    if remaining.upper == 0.0:
        return Bound(max(0.0, down(most)), up(most), _CERTIFICATE)
    point, margin = _root(atoms, remaining.upper)
    lower = max(0.0, walk(point, -margin, at_least))
    upper = min(walk(point, margin, at_most), up(most)) if remaining.lower >= 0.0 else math.inf
    return Bound(lower, upper, _CERTIFICATE)


@dataclass(frozen=True)
class _Atoms:
    """A discrete privacy loss: its values `high` + `low`, and their masses with relative `errors`.

    Masses of at most `omitted` in all are left out; each value errs by at most `loss_error`.
    """

    maximum: Fraction
    high: Reals
    low: Reals
    masses: Reals
    errors: Reals
    omitted: float
    loss_error: float

    def shares(self, target: float) -> tuple[Reals, Reals]:
        """The masses of the losses above `target`, and their distances from it, without
        cancellation.
        """
        difference = self.high - target
        # Knuth's exact difference: the part that the subtraction rounded away is added back.
        virtual = difference - self.high
        remainder = (self.high - (difference - virtual)) - (target + virtual)
        distance = difference + (remainder + self.low)
        return np.where(distance > 0.0, self.masses, 0.0), np.maximum(distance, 0.0)

    def delta(self, target: float) -> Bound:
        """E[(1 - e^(target - L))_+], the delta at the epsilon `target` >= 0, with certified ends."""
        if target == math.inf or Fraction(target) >= self.maximum:
            return Bound(0.0, 0.0)
        masses, distance = self.shares(target)
        terms = masses * -np.expm1(-distance)
        total = float(np.sum(terms))
        # Terms err by 12 u, the pairwise sum by 60 u, losses by `loss_error`; underflow costs at
        # most a denormal number per term.
        error = (float(dots(terms, self.errors)) + 72 * UNIT_ROUNDOFF * total) * (1.0 + 1e-9)
        error += self.loss_error * float(np.sum(masses)) * (1.0 + 1e-9) + 8.0 * len(terms) * _TINY
        edge = self.loss_error * float(
            np.sum(self.masses, where=np.abs(self.high - target) <= 2.0 * self.loss_error)
        )
        return Bound(
            max(0.0, down(total - error)), min(1.0, up(total + error + edge + self.omitted))
        )

    def logarithm(self, target: float) -> tuple[float, float]:
        """log delta at the epsilon `target`, and minus its slope; nothing is proved about either."""
        masses, distance = self.shares(target)
        value = float(dots(masses, -np.expm1(-distance)))
        if not value > 0.0:
            return -math.inf, 0.0
        return math.log(value), float(dots(masses, np.exp(-distance))) / value


def _atoms(counted: Counter[ApproximateDP]) -> _Atoms:
    grouped: Counter[float] = Counter()
    for promise, times in counted.items():
        if promise.epsilon > 0.0:
            grouped[promise.epsilon] += times
    maximum = sum((Fraction(epsilon) * times for epsilon, times in grouped.items()), Fraction(0))
    if maximum > _LARGEST:
        raise UnsupportedError(
            "heterogeneous optimal composition", "the epsilons sum to more than 1e290"
        )
    windows = {epsilon: _window(times, epsilon) for epsilon, times in grouped.items()}
    states = math.prod(len(window.masses) for window in windows.values())
    if states > MOST_STATES:
        raise UnsupportedError(
            f"heterogeneous optimal composition of {len(windows)} distinct epsilons",
            f"{states} combinations of losses, more than {MOST_STATES}",
            "Compose numerically instead",
        )
    zero, one = np.zeros(1), np.ones(1)
    atoms = _Atoms(
        maximum=maximum, high=zero, low=zero, masses=one, errors=zero, omitted=0.0, loss_error=0.0
    )
    for epsilon, window in windows.items():
        atoms = _added(atoms, window, epsilon, grouped[epsilon])
    return atoms


def _window(times: int, epsilon: float) -> binomial.Window:
    return binomial.window(
        times, epsilon=epsilon, anchor=binomial.mode(times, epsilon=epsilon), least=0, depth=800.0
    )


def _added(atoms: _Atoms, window: binomial.Window, epsilon: float, times: int) -> _Atoms:
    count = 2.0 * (window.first + np.arange(len(window.masses), dtype=np.float64)) - times
    high, low = _exact_product(count, epsilon)
    size = math.exp(window.scale) * (1.0 + window.fine)
    masses = size * window.masses
    omitted = float(masses[-1]) * binomial.geometric(window.above) + float(
        masses[0]
    ) * binomial.geometric(window.below)
    total, remainder = _exact_sum(atoms.high[:, None], high[None, :])
    remainder = remainder + (atoms.low[:, None] + low[None, :])
    errors = atoms.errors[:, None] + (window.errors + 16 * UNIT_ROUNDOFF)[None, :]
    return _Atoms(
        maximum=atoms.maximum,
        high=total.ravel(),
        low=remainder.ravel(),
        masses=(atoms.masses[:, None] * masses[None, :]).ravel(),
        errors=errors.ravel() * (1.0 + 1e-9),
        omitted=(atoms.omitted + omitted) * (1.0 + 1e-9),
        # Only sums of low parts are rounded: 2^-53 of 2^-53 of the largest loss, twice.
        loss_error=atoms.loss_error
        + 8.0 * UNIT_ROUNDOFF**2 * (float(np.max(np.abs(total))) + times * epsilon),
    )


def _exact_product(count: Reals, factor: float) -> tuple[Reals, Reals]:
    # Dekker: both factors are split into halves of 26 bits, whose products are exact.
    product = count * factor
    wide, narrow = count * 134217729.0, factor * 134217729.0
    count_high, factor_high = wide - (wide - count), narrow - (narrow - factor)
    count_low, factor_low = count - count_high, factor - factor_high
    remainder = count_low * factor_low - (
        ((product - count_high * factor_high) - count_low * factor_high) - count_high * factor_low
    )
    return product, remainder


def _exact_sum(first: Reals, second: Reals) -> tuple[Reals, Reals]:
    # Knuth: the sum and its rounding error, exact.
    total = first + second
    virtual = total - first
    return total, (first - (total - virtual)) + (second - virtual)


def _root(atoms: _Atoms, target: float) -> tuple[float, float]:
    # Uncertified: the epsilon at which the tail equals target > 0, and the width in epsilon that
    # corresponds to its error.
    mean = float(dots(atoms.masses, atoms.high))
    deviation = math.sqrt(max(0.0, float(dots(atoms.masses, (atoms.high - mean) ** 2))))

    def excess(point: float) -> tuple[float, float]:
        logarithm, slope = atoms.logarithm(point)
        return math.log(target) - logarithm, slope

    highest = float(atoms.maximum)
    start = min(max(mean - deviation * float(ndtri(target)), 0.0), highest * (1.0 - 1e-9))
    point = increasing_root(excess, start=start, lower=0.0, upper=highest)
    bound, (_, slope) = atoms.delta(point), atoms.logarithm(point)
    return point, max(0.6 * bound.width / max(bound.upper * slope, _TINY), 2.0 * math.ulp(point))


def _counted(promises: Promises) -> Counter[ApproximateDP]:
    counted: Counter[ApproximateDP] = Counter()
    if not isinstance(promises, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(
            "promises", promises, "an iterable of ApproximateDP, or of pairs (ApproximateDP, times)"
        )
    for item in promises:
        promise, times = _pair(item)
        if times:
            counted[promise] += times
    return counted


def _pair(item: Any) -> tuple[ApproximateDP, int]:
    match item:
        case ApproximateDP():
            return item, 1
        case (ApproximateDP() as promise, times):
            return promise, check.times(times)
        case _:
            raise DomainError(
                "promises", item, "each an ApproximateDP, or a pair (ApproximateDP, times)"
            )


def _failures(counted: Counter[ApproximateDP]) -> tuple[tuple[float, int], ...]:
    return tuple((promise.delta, times) for promise, times in counted.items())
