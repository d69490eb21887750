"""Random allocation: each record takes part in one step of an epoch, or in k of them, drawn at random."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import ClassVar

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import Allocated, GaussianShift, Law, Laws, Pair, SampledGaussian
from dpcompose.mechanisms.base import Mechanism, quotient, rounded
from dpcompose.mechanisms.gaussian import Gaussian
from dpcompose.mechanisms.parameter import count, declare, noise
from dpcompose.mechanisms.part import Unsampled
from dpcompose.values import Adjacency, down

MOST_STEPS = 10**6


@dataclass(frozen=True, repr=False)
class RandomAllocation(Mechanism):
    """An epoch of Gaussian steps, with each record in `selected` random steps, drawn independently;
    repeat it by `* epochs`.

    Each record draws its steps independently and uniformly, so that batches have no fixed size
    ("balls in bins"). Steps may be chosen from earlier answers. Proof: let the record be in one
    step I, and contribute v_i to step i, a vector of norm at most 1 that may depend on earlier
    answers. Let t numbers be normal of variance sigma^2 with mean 0, but mean 1 at I. The answers
    can be computed from them one by one: the i-th number times |v_i| in the direction of v_i, with
    independent noise that supplies the rest of the variance, added to the contributions of the
    others. So the epoch is post-processing of the mixture (N(e_1) + ... + N(e_t)) / t against N(0),
    which one epoch attains; the same holds for further epochs, each with a new draw. A draw of k of
    t steps is a partition of the steps into k blocks of nearly equal size, drawn first, and one
    step of each block: given the partition, the record is in one step of each block, independently,
    so that the product of k allocations dominates.

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

    sigma: float = field(metadata=declare(noise("1e-6", "1e11")))
    _: KW_ONLY
    steps: int = field(metadata=declare(count(MOST_STEPS)))
    selected: int = field(default=1, metadata=declare(count()))
    holds_under: ClassVar[tuple[Adjacency, ...]] = (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.selected <= self.steps:
            domain = f"an integer of at most the {self.steps} steps"
            raise DomainError("selected", self.selected, domain)

    def laws(self, adjacency: Adjacency) -> Laws:
        self._accept(adjacency)
        return _pairs(self.sigma, self.steps, self.selected)

    def _accept(self, adjacency: Adjacency) -> None:
        if adjacency not in self.holds_under:
            reason = "its losses are stated under add-remove and zero-out: no pair is known where a record is replaced"
            remedy = "Take the looser group of two of its add-remove guarantee, or Gaussian(sigma) without amplification"
            raise UnsupportedError(repr(self), reason, remedy)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return the amounts of the record's steps as if they were known, at the reading of sigma
        that costs more.
        """
        self._accept(adjacency)
        square = self.selected * quotient(self.sigma, 1.0, None, Adjacency.ADD_REMOVE) ** 2
        return TypedAmounts(rho=square / 2, mu_squared=square)

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

    def sampled_laws(self, rate: float, adjacency: Adjacency) -> Laws:
        reason = "its records are allocated already, and no pair is known for a sample of them"
        raise UnsupportedError(
            f"{self!r}.sampled({rate!r})", reason, "Gaussian(sigma).sampled(rate) draws each record"
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
