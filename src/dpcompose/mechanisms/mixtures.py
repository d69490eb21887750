"""Gaussian noise on a sum that a record moves by a random amount: mixtures, and Poisson batches of
capped size.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import Any, cast

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import (
    LEAST_WEIGHT,
    GaussianShift,
    Laws,
    Mixture,
    Pair,
    Reversed,
    SampledGaussian,
    alike,
)
from dpcompose.mechanisms.base import Mechanism, quotient, rounded
from dpcompose.mechanisms.batches import MOST_RECORDS
from dpcompose.mechanisms.noise import Gaussian
from dpcompose.mechanisms.parameter import Parameter, count, declare, noise
from dpcompose.mechanisms.part import Unsampled
from dpcompose.numerics import U, at_least
from dpcompose.values import Adjacency, Bound, down

MOST_SHIFTS = 1024
_SEEN = 1e-250
_OFF = 1e-12
"""The sum of the weights may differ from 1 by this much; its effect is included in every bound."""


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """Return a nonempty sequence of numbers as a tuple of floats; raises a DomainError if it is
    none.
    """
    if (
        isinstance(value, str | bytes)
        or not isinstance(value, Iterable)
        or isinstance(value, dict | set)
    ):
        raise DomainError(name, value, "a list of numbers")
    given = list(cast("Iterable[Any]", value))
    found = tuple(check.finite(f"{name}[{at}]", each) for at, each in enumerate(given))
    if not 0 < len(found) <= MOST_SHIFTS:
        raise DomainError(name, value, f"a list of 1 to {MOST_SHIFTS} numbers")
    return found


def _positive_rate(name: str, value: Any) -> float:
    rate = check.probability(name, value)
    if not rate > 0:
        remedy = "A rate of 0 releases nothing about anybody"
        raise DomainError(name, rate, "a number in (0, 1]", remedy)
    return rate


_SHIFTS = Parameter("numbers", _numbers, reading="larger")
_WEIGHTS = Parameter("numbers", _numbers)
_RATE = Parameter("rate", _positive_rate, "unordered", "larger", 1.0)


@dataclass(frozen=True, repr=False)
class _Mixture(Mechanism):
    """Gaussian noise on a sum that a record moves by a random amount."""

    sigma: float = field(metadata=declare(noise("1e-6", "1e11")))

    @property
    @abstractmethod
    def _reach(self) -> float:
        """The largest amount by which the record can move the sum."""

    def unsampled(self, adjacency: Adjacency) -> Unsampled | None:
        """Return the noise with the record's largest shift; it dominates, as hockey-stick
        divergences are jointly convex.
        """
        if not 1e-12 < self._reach / self.sigma < 1e6:
            return None
        return Unsampled(((Gaussian(self.sigma, sensitivity=self._reach), 1),), 1.0)


@dataclass(frozen=True, repr=False)
class MixtureOfGaussians(_Mixture):
    """A sum plus Gaussian noise, where a record moves the sum by a random vector: of norm at most
    c_i with probability w_i, whatever the vectors of the other records are.

    The worst case is that all vectors have one direction: the sum of w_i N(c_i, sigma^2) with the
    record against N(0, sigma^2) without it. The vectors of a group add up. A user with m examples,
    each in the batch with probability q, has shifts 0, ..., m and binomial weights; with per-user
    clipping to C examples the shifts are min(j, C). `Gaussian(sigma).sampled(q).group(m)` bounds
    the first case for every change of a group.

    >>> from dpcompose.mechanisms import MixtureOfGaussians
    >>> user = MixtureOfGaussians(1.5, shifts=(0, 1, 3), weights=(0.5, 0.3, 0.2))
    >>> user.delta(epsilon=0.7).contains(0.10138118942761450558)
    True
    >>> (user * 2).delta(epsilon=1.0).contains(0.148151037200105)
    True

    Args:
        sigma: The standard deviation of the noise.
        shifts: The largest norms c_i of what the record adds to the sum, each >= 0.
        weights: The probabilities w_i of the shifts, with sum 1.

    Raises:
        DomainError: If a number is outside its domain, or the weights do not sum to 1.

    Reference: [Ganesh2024]
    """

    _: KW_ONLY
    shifts: tuple[float, ...] = field(metadata=declare(_SHIFTS))
    weights: tuple[float, ...] = field(metadata=declare(_WEIGHTS))
    covered = (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT)
    elsewhere = "Ask under add-remove or zero-out, or for a group of two"

    def __post_init__(self) -> None:
        super().__post_init__()
        shifts, weights = self.shifts, self.weights
        if len(shifts) != len(weights):
            raise DomainError(
                "weights", weights, f"as many numbers as there are shifts, {len(shifts)}"
            )
        for at, shift in enumerate(shifts):
            check.nonnegative(
                f"shifts[{at}]", shift, "Give the norms: the worst case is all in one direction"
            )
            if not shift / self.sigma < 1e6:
                raise DomainError(
                    f"shifts[{at}]", shift, f"less than 1e6 times sigma, {self.sigma!r}"
                )
        for at, weight in enumerate(weights):
            check.probability(f"weights[{at}]", weight)
        if not abs(math.fsum(weights) - 1) <= _OFF:
            raise DomainError(
                "weights", weights, f"probabilities with sum 1, not {math.fsum(weights)!r}"
            )

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the attained laws of both orders."""
        self._accept(adjacency)
        return mixture_pairs(self.sigma, self.shifts, self.weights)

    @property
    def _reach(self) -> float:
        return max(
            shift for shift, weight in zip(self.shifts, self.weights, strict=True) if weight > 0
        )

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return the exact privacy amounts of the largest shift, with each parameter as double or
        decimal, whichever costs more.
        """
        self._accept(adjacency)
        return TypedAmounts.gaussian(quotient(self.sigma, self._reach) ** 2)


@dataclass(frozen=True, repr=False)
class TruncatedPoisson(_Mixture):
    """The sum over a Poisson sample plus Gaussian noise, where a sample larger than `batch` is cut
    to a random subset of that size.

    If the other records fill the batch, a record moves the sum by at most 2, else by at most 1. The
    upper end is the mixture of both cases, of which it may be public which one it is; the lower end
    is that of data in which all other records contribute nothing. A group changes the number of
    records by more than one, and raises an UnsupportedError.

    >>> from dpcompose.mechanisms import TruncatedPoisson
    >>> capped = TruncatedPoisson(1.2, rate=0.3, records=20, batch=6).delta(epsilon=0.8)
    >>> capped.lower < 0.028585423568325233 <= capped.upper < 0.0285854235684
    True

    Args:
        sigma: The standard deviation of the noise on the sum of a batch; a record contributes a
            vector of norm at most 1.
        rate: The probability that a record is drawn, in (0, 1].
        records: The number of records, including the one that is added or removed; >= 1.
        batch: The largest number of records in a batch; from 1 to `records`.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [ZhuDongWang2022, Theorem 11]
    """

    # Proof. The number of other records drawn does not depend on the record, so that it may be
    # public whether they fill the batch. If they do not, this is a sampled Gaussian. If they do,
    # the batch is a uniform subset of them of size `batch` - 1 and one more record: with
    # probability q' the record that is added or removed, otherwise another one. So it moves the sum
    # by at most 2. On average q' is `batch` / `records` P[Bin(`records`, `rate`) > `batch`] /
    # P[Bin(`records` - 1, `rate`) >= `batch`].

    _: KW_ONLY
    rate: float = field(metadata=declare(_RATE))
    records: int = field(metadata=declare(count(MOST_RECORDS)))
    batch: int = field(metadata=declare(count()))
    covered = (Adjacency.ADD_REMOVE,)
    elsewhere = "Ask with adjacency=Adjacency.ADD_REMOVE"
    not_sampled = (
        "its batches are samples already, and no pair is known for a sample of them",
        "Give the product of the rates as rate",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.batch <= self.records:
            domain = f"an integer of at most the {self.records} records"
            raise DomainError("batch", self.batch, domain)

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return dominating laws in both orders, with attained ones below."""
        self._accept(adjacency)
        if self.batch == self.records:
            return _plain(self.sigma, self.rate)
        return ((_capped(self.sigma, self.rate, self.records, self.batch), 1),)

    @property
    def _reach(self) -> float:
        """The largest amount by which a record moves the sum: 2 where it may displace another one,
        else 1.
        """
        return 1.0 if self.batch == self.records else 2.0

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return the exact privacy amounts of the noise without amplification by sampling."""
        self._accept(adjacency)
        return TypedAmounts.gaussian(quotient(self.sigma, self._reach) ** 2)

    def require_any_size(self, question: str) -> None:
        """Raise an UnsupportedError: with fewer records, one is drawn into a full batch more often.

        Args:
            question: The name of the question, for the error.
        """
        if self.batch < self.records:
            reason = f"the losses of {self!r} hold for {self.records} records, and not for fewer"
            raise UnsupportedError(
                question,
                reason,
                "Gaussian(sigma / 2), without amplification, bounds it at every size",
            )


def _both(law: Mixture, *, attained: bool, attained_parts: tuple[Pair, ...] = ()) -> Pair:
    return Pair(law, Reversed(law), attained, attained_parts)


def _plain(sigma: float, rate: float) -> Laws:
    """Return the laws of one record drawn with probability `rate`, without a cap."""
    if rate == 1:
        return alike(GaussianShift(1 / sigma, rounded(sigma)))
    remove, add = (SampledGaussian(sigma, rate, side) for side in (True, False))
    return ((Pair(remove, add), 1),)


@lru_cache(maxsize=256)
def mixture_pairs(sigma: float, shifts: tuple[float, ...], weights: tuple[float, ...]) -> Laws:
    """Return the laws of a mixture, in a simpler family where one fits; equal shifts are joined,
    weights of 0 dropped.

    Args:
        sigma: The standard deviation of the noise.
        shifts: The norms of what a record adds, >= 0.
        weights: The probabilities of the shifts.
    """
    joined: dict[float, list[float]] = defaultdict(list)
    for shift, weight in zip(shifts, weights, strict=True):
        if weight >= LEAST_WEIGHT:
            joined[shift].append(weight)
    means = sorted(joined)
    total = [math.fsum(joined[shift]) for shift in means]
    lost = math.fsum(weight for weight in weights if weight < LEAST_WEIGHT) * 2
    if means == [0.0] and not lost:
        return ()
    if len(means) == 1 and not lost:
        return alike(GaussianShift(means[0] / sigma, rounded(sigma)))
    if len(means) == 2 and means[0] == 0 and total[1] < 1 and not lost:
        noise = sigma / means[1]
        remove, add = (
            SampledGaussian(noise, total[1], side, rounded(means[1])) for side in (True, False)
        )
        return ((Pair(remove, add), 1),)
    error = abs(math.fsum(weights) - 1) + 4 * U
    choice = 1.0, tuple(mean / sigma for mean in means), tuple(total), error
    law = Mixture((choice,), infinite_error=lost)
    # A shift may be omitted without effect on positive losses if a smaller one has much more
    # weight.
    seen = min(
        (mean for mean, weight in zip(means, total, strict=True) if weight >= _SEEN),
        default=math.inf,
    )
    unseen = (
        shift for shift, weight in zip(shifts, weights, strict=True) if 0 < weight < LEAST_WEIGHT
    )
    return ((_both(law, attained=seen <= min(unseen, default=math.inf)), 1),)


@lru_cache(maxsize=64)
def _capped(sigma: float, rate: float, records: int, batch: int) -> Pair:
    """Return the pair of the public mixture of two cases: the other records leave room in the
    batch, or fill it.
    """
    full, room = at_least(batch, times=records - 1, rate=rate)
    above, _ = at_least(batch + 1, times=records, rate=rate)
    share = batch / records
    displaced = share * above.upper / full.lower if full.lower > LEAST_WEIGHT else 1.0
    moved = _relative(above) + _relative(full) + 8 * U
    parts: list[tuple[float, tuple[float, ...], tuple[float, ...], float]] = []
    kinds = ((room.upper, rate, 1.0, 0.0), (full.upper, min(displaced, 1.0), 2.0, moved))
    for probability, weight, reach, error in kinds:
        if probability >= LEAST_WEIGHT:
            # The error of the weight of N(0, 1) is at most that of the other weight.
            spread = error * max(1.0, weight / (1 - weight)) + 4 * U if weight < 1 else 0.0
            means, weights = (
                ((0.0, reach / sigma), (1 - weight, weight))
                if weight < 1
                else ((reach / sigma,), (1.0,))
            )
            parts.append((probability, means, weights, spread))
    error = max(_relative(room), _relative(full)) if len(parts) == 2 else 0.0
    if len(parts) == 1:
        parts[0] = (1.0, *parts[0][1:])
    lost = 0.0 if len(parts) == 2 or min(full.upper, room.upper) == 0 else 2 * LEAST_WEIGHT
    law = Mixture(tuple(parts), share_error=error + 4 * U, infinite_error=lost)
    inside = min(down(room.lower * rate + share * above.lower * (1 - 8 * U)), down(1.0))
    attained = _plain(sigma, inside)[0][0] if inside > 0 else None
    return _both(law, attained=False, attained_parts=(attained,) if attained is not None else ())


def _relative(bound: Bound) -> float:
    return (bound.upper - bound.lower) / bound.lower if bound.lower > 0 else 0.0
