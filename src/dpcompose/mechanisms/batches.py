"""Gaussian noise on batches of a fixed size: an epoch of shuffled batches, and one batch drawn
without replacement.
"""

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
    FixedSizeBatch,
    GaussianShift,
    LargestBatch,
    Laws,
    Pair,
    ReplacedGaussian,
    Reversed,
    SampledGaussian,
)
from dpcompose.mechanisms.base import Mechanism, rounded
from dpcompose.mechanisms.gaussian import Gaussian
from dpcompose.mechanisms.parameter import count, declare, noise
from dpcompose.mechanisms.part import Unsampled
from dpcompose.values import Adjacency, down, exact, up

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
    holds_under: ClassVar[Adjacency]
    reach: ClassVar[int]
    """How far one record moves the sum of its batch, at most."""
    remedy: ClassVar[str]

    def laws(self, adjacency: Adjacency) -> Laws:
        self._accept(adjacency)
        return ((self._pair(), 1),)

    @abstractmethod
    def _pair(self) -> Pair:
        """Return the dominating pair, with attained pairs below it."""

    def _accept(self, adjacency: Adjacency) -> None:
        if adjacency is not self.holds_under:
            reason = f"its losses are stated under {self.holds_under.value} and say nothing under {adjacency.value}"
            raise UnsupportedError(repr(self), reason, self.remedy)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return the amounts of the noise without amplification, at the reading of sigma that costs
        more.
        """
        self._accept(adjacency)
        square = (self.reach / min(exact(self.sigma), Fraction(self.sigma))) ** 2
        return TypedAmounts(rho=square / 2, mu_squared=square)

    def sampled_laws(self, rate: float, adjacency: Adjacency) -> Laws:
        reason = "its batches are drawn already, and no pair is known for a sample of them"
        raise UnsupportedError(
            f"{self!r}.sampled({rate!r})", reason, "Gaussian(sigma).sampled(rate) draws each record"
        )


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
    holds_under: ClassVar[Adjacency] = Adjacency.ZERO_OUT
    reach: ClassVar[int] = 1
    remedy: ClassVar[str] = (
        "Ask with adjacency=Adjacency.ZERO_OUT: the number of records, and so the batches, must stay"
    )

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
    holds_under: ClassVar[Adjacency] = Adjacency.REPLACE
    reach: ClassVar[int] = 2
    remedy: ClassVar[str] = (
        "Ask with adjacency=Adjacency.REPLACE: how a batch is drawn depends on the number of records"
    )

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
