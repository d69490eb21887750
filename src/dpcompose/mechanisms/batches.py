"""Batches that are not Poisson samples: shuffled epochs, samples of fixed size, random allocation."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import (
    Allocated,
    FixedSizeBatch,
    GaussianShift,
    LargestBatch,
    Law,
    Laws,
    Pair,
    ReplacedGaussian,
    Reversed,
    SampledGaussian,
)
from dpcompose.mechanisms.base import Mechanism, quotient, rounded
from dpcompose.mechanisms.noise import Gaussian
from dpcompose.mechanisms.parameter import count, declare, noise
from dpcompose.mechanisms.part import Unsampled
from dpcompose.values import Adjacency, down, up

MOST_STEPS, MOST_RECORDS = 10**6, 10**12


@dataclass(frozen=True, repr=False)
class Batches(Mechanism):
    """Gaussian noise on the sums of batches, under the one adjacency that does not change how
    batches are drawn.

    Args:
        sigma: The standard deviation of the noise on the sum of a batch; a record contributes a
            vector of norm at most 1.
    """

    sigma: float = field(metadata=declare(noise("1e-6", "1e11")))
    reach: ClassVar[int]
    """The largest distance by which one record moves the sum of its batch."""
    not_sampled = (
        "its batches are drawn already, and no pair is known for a sample of them",
        "Gaussian(sigma).sampled(rate) draws each record",
    )

    def laws(self, adjacency: Adjacency) -> Laws:
        self._accept(adjacency)
        return ((self._pair(), 1),)

    @abstractmethod
    def _pair(self) -> Pair:
        """Return the dominating pair, with attained pairs below it."""

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return the exact privacy amounts of the noise without amplification by sampling, with
        sigma as double or decimal, whichever costs more.
        """
        self._accept(adjacency)
        return TypedAmounts.gaussian(quotient(self.sigma, self.reach) ** 2)


@dataclass(frozen=True, repr=False)
class ShuffledEpochs(Batches):
    """One epoch over shuffled data, cut into `steps` batches, with Gaussian noise on the sum of
    each; repeat it by `* epochs`.

    Its exact cost is not known, so that the two ends of a bound differ by more than numerical
    error. Upper end: someone who sees the permutation knows the one batch of a record, which has
    Gaussian noise without amplification. Lower end: the better of two attacks, by the sum of all
    batches, and by the size of the largest batch while all other records contribute the opposite. A
    shuffled batch is no Poisson sample: `Gaussian(sigma).sampled(1 / steps)` may state far less
    than the attacks achieve. Under zero-out the record is replaced by an empty one, and all batches
    are unchanged.

    >>> from dpcompose import Adjacency
    >>> from dpcompose.mechanisms import ShuffledEpochs
    >>> found = ShuffledEpochs(1.0, steps=100).delta(epsilon=1.0, adjacency=Adjacency.ZERO_OUT)
    >>> 0.0167 < found.lower < 0.01670579607857 and 0.126 < found.upper < 0.127
    True

    Args:
        sigma: The standard deviation of the noise on the sum of a batch; a record contributes a
            vector of norm at most 1.
        steps: The number of batches in an epoch; >= 1.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [Chua2024]
    """

    _: KW_ONLY
    steps: int = field(metadata=declare(count(MOST_STEPS)))
    covered = (Adjacency.ZERO_OUT,)
    reach = 1
    elsewhere = "Ask with adjacency=Adjacency.ZERO_OUT: the number of records, and so the batches, must stay"

    def _pair(self) -> Pair:
        above = GaussianShift(1 / self.sigma, rounded(self.sigma))
        if self.steps == 1:
            return Pair(above, above)
        attack = LargestBatch(self.sigma, self.steps)
        total = GaussianShift(1 / (self.sigma * math.sqrt(self.steps)), 4)
        return Pair(above, above, False, (Pair(attack, Reversed(attack)), Pair(total, total)))


@dataclass(frozen=True, repr=False)
class FixedSizeSample(Batches):
    """The sum over one batch of fixed size, drawn without replacement, plus Gaussian noise;
    composed runs draw new batches.

    The neighbor relation replaces a record: adding or removing one would change how the batch is
    drawn. The bound on one run is exact, by an attained pair at every epsilon; the bound on several
    has its upper end from a dominating pair and its lower end from attained ones.

    >>> from dpcompose import Adjacency
    >>> from dpcompose.mechanisms import FixedSizeSample
    >>> one = FixedSizeSample(2.0, records=1000, batch=100)
    >>> one.delta(epsilon=0.5, adjacency=Adjacency.REPLACE).contains(0.0020325369203403577)
    True

    Args:
        sigma: The standard deviation of the noise on the sum of a batch; a record contributes a
            vector of norm at most 1.
        records: The number of records; >= 1.
        batch: The number of records in a batch, from 1 to `records`.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [BalleBartheGaboardi2018, Theorem 2]
    """

    _: KW_ONLY
    records: int = field(metadata=declare(count(MOST_RECORDS)))
    batch: int = field(metadata=declare(count()))
    covered = (Adjacency.REPLACE,)
    reach = 2
    elsewhere = "Ask with adjacency=Adjacency.REPLACE: how a batch is drawn depends on the number of records"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.batch <= self.records:
            domain = f"an integer of at most the {self.records} records"
            raise DomainError("batch", self.batch, domain)

    def unsampled(self, adjacency: Adjacency) -> Unsampled:
        """Return the noise with the record in every batch; it dominates, as hockey-stick
        divergences are jointly convex.
        """
        return Unsampled(((Gaussian(self.sigma), 1),), 1.0)

    def _pair(self) -> Pair:
        if self.batch == self.records:
            alone = GaussianShift(2 / self.sigma, rounded(self.sigma))
            return Pair(alone, alone)
        return _fixed_size_pair(self.sigma, self.records, self.batch)


@lru_cache(maxsize=64)
def _fixed_size_pair(sigma: float, records: int, batch: int) -> Pair:
    """Return the dominating pair, with two attained pairs.

    In one the last other record equals the new one, in the other it contributes nothing.
    """
    rate = batch / records
    exactly = Fraction(rate) == Fraction(batch, records)
    low, high = (rate, rate) if exactly else (down(rate), up(rate))
    loss = FixedSizeBatch(sigma, low, high)
    sampled = Pair(SampledGaussian(sigma / 2, low, True), SampledGaussian(sigma / 2, low, False))
    opposed = ReplacedGaussian(sigma, low)
    return Pair(loss, loss, False, (sampled, Pair(opposed, opposed)), tight_alone=True)


@dataclass(frozen=True, repr=False)
class RandomAllocation(Mechanism):
    """An epoch of Gaussian steps, with each record in `selected` random steps, drawn independently;
    repeat it by `* epochs`.

    Each record draws its steps independently and uniformly, so that batches have no fixed size
    ("balls in bins"). Steps may be chosen from earlier answers.

    >>> from dpcompose.mechanisms import RandomAllocation
    >>> RandomAllocation(1.0, steps=100).delta(epsilon=0.5).contains(4.408908033863041618e-5)
    True

    Args:
        sigma: The standard deviation of the noise of a step; a record contributes a vector of norm
            at most 1.
        steps: The number of steps in an epoch; >= 1.
        selected: The number of steps in which a record takes part, from 1 to `steps`. Above 1, the
            ends of a bound differ by more than numerical error.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [FeldmanShenfeld2025], [Chua2025]
    """

    # Proof. Let the record be in one step I, and contribute v_i to step i, a vector of norm at most
    # 1 that may depend on earlier answers. Let t numbers be normal of variance sigma^2 with mean 0,
    # but mean 1 at I. The answers can be computed from them one by one: the i-th number times |v_i|
    # in the direction of v_i, with independent noise that supplies the rest of the variance, added
    # to the contributions of the others. So the epoch is post-processing of the mixture (N(e_1) +
    # ... + N(e_t)) / t against N(0), which one epoch attains; the same holds for further epochs,
    # each with a new draw. A draw of k of t steps is a partition of the steps into k blocks of
    # nearly equal size, drawn first, and one step of each block: given the partition, the record is
    # in one step of each block, independently, so that the product of k allocations dominates.

    sigma: float = field(metadata=declare(noise("1e-6", "1e11")))
    _: KW_ONLY
    steps: int = field(metadata=declare(count(MOST_STEPS)))
    selected: int = field(default=1, metadata=declare(count()))
    covered = (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT)
    elsewhere = "Take the looser group of two of its add-remove guarantee, or Gaussian(sigma) without amplification"
    not_sampled = (
        "its records are allocated already, and no pair is known for a sample of them",
        "Gaussian(sigma).sampled(rate) draws each record",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.selected <= self.steps:
            domain = f"an integer of at most the {self.steps} steps"
            raise DomainError("selected", self.selected, domain)

    def laws(self, adjacency: Adjacency) -> Laws:
        self._accept(adjacency)
        return _pairs(self.sigma, self.steps, self.selected)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return the exact privacy amounts of the record's steps as if these were known, with sigma
        as double or decimal, whichever costs more.
        """
        self._accept(adjacency)
        square = self.selected * quotient(self.sigma, 1.0) ** 2
        return TypedAmounts.gaussian(square)

    def unsampled(self, adjacency: Adjacency) -> Unsampled:
        """Return the record's steps as if they were known; they dominate, as hockey-stick
        divergences are jointly convex.
        """
        return Unsampled(((Gaussian(self.sigma), self.selected),), 1.0)

    def require_group(self, size: int, adjacency: Adjacency) -> None:
        self._accept(adjacency)
        reason = "no pair is known for several people, who draw their steps one by one"
        raise UnsupportedError(
            f"{self!r}, for a group of {size}",
            reason,
            "(Gaussian(sigma) * selected).group(size), without amplification, is an upper bound",
        )


@lru_cache(maxsize=64)
def _pairs(sigma: float, steps: int, selected: int) -> Laws:
    """Return one pair for each block of steps; if there are several, with attained pairs: the sum
    of all steps, and the first step.
    """
    short, longer = divmod(steps, selected)
    if selected == 1:
        return ((_block(sigma, steps, attained=True), 1),)
    if short == 1 and not longer:
        return ((_block(sigma, 1, attained=True), selected),)
    rate = down(selected / steps)
    first = Pair(SampledGaussian(sigma, rate, True), SampledGaussian(sigma, rate, False))
    total = _total(sigma, steps, selected)
    known = _block(sigma, short, attained=False)._replace(
        attained_parts=(Pair(total, total), first)
    )
    rest = [(_block(sigma, short, attained=False), selected - longer - 1)]
    rest.append((_block(sigma, short + 1, attained=False), longer))
    return ((known, 1), *((pair, times) for pair, times in rest if times))


def _total(sigma: float, steps: int, size: int) -> GaussianShift:
    """Return the loss of the sum of all steps, which moves by `size`; mu is rounded down."""
    return GaussianShift(down(size / (sigma * math.sqrt(steps)) * (1 - 1e-15)), 0)


def _block(sigma: float, steps: int, *, attained: bool) -> Pair:
    """Return the pair of one random step of a block of `steps`."""
    if steps == 1:
        alone: Law = GaussianShift(1 / sigma, rounded(sigma))
        return Pair(alone, alone, attained)
    return Pair(Allocated(sigma, steps, True), Allocated(sigma, steps, False), attained)
