"""Batches of a fixed size: an epoch of shuffled batches, and one batch drawn without replacement."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

from dpcompose.composition.part import Pairs
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.guarantee.priced import TypedAmounts
from dpcompose.loss.base import Pair
from dpcompose.loss.gaussian import GaussianLoss
from dpcompose.loss.largest_batch import largest_batch
from dpcompose.mechanism.base import Mechanism, rounded, set_fields
from dpcompose.numerics import check
from dpcompose.numerics.exact import exact, smaller_reading

MOST_STEPS = 10**6


@dataclass(frozen=True, repr=False)
class Batches(Mechanism):
    """Gaussian noise on the sums of batches, under the one adjacency that leaves the batches as they are.

    Args:
        sigma: The standard deviation of the noise on the sum of a batch; a record contributes a norm of at most 1.
    """

    sigma: float
    holds_under: ClassVar[Adjacency]
    reach: ClassVar[int]
    """How far one record moves the sum of its batch, at most."""
    remedy: ClassVar[str]

    def __post_init__(self) -> None:
        sigma = check.positive("sigma", self.sigma)
        if not 1e-6 < sigma < 1e11:
            raise DomainError("sigma", sigma, "a number between 1e-6 and 1e11")
        set_fields(self, sigma=sigma)

    def pairs(self, adjacency: Adjacency) -> Pairs:
        self._accept(adjacency)
        return ((self._pair(), 1),)

    @abstractmethod
    def _pair(self) -> Pair:
        """The dominating losses, and attained ones below."""

    def _accept(self, adjacency: Adjacency) -> None:
        if adjacency is not self.holds_under:
            reason = f"its losses are stated under {self.holds_under.value} and say nothing under {adjacency.value}"
            raise UnsupportedError(repr(self), reason, self.remedy)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Those of the noise without amplification, at the costlier reading of sigma."""
        self._accept(adjacency)
        square = (self.reach / min(exact(self.sigma), Fraction(self.sigma))) ** 2
        return TypedAmounts(rho=square / 2, mu_squared=square)

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        reason = "its batches are drawn already, and no pair is known for a sample of them"
        raise UnsupportedError(f"{self!r}.sampled({rate!r})", reason, "Gaussian(sigma).sampled(rate) draws each record")


@dataclass(frozen=True, repr=False)
class ShuffledEpochs(Batches):
    """One epoch over shuffled data, cut into batches, with noise on the sum of each; repeated by `* epochs`.

    Its cost is not known, so that the two ends differ by nature. Upper end: whoever sees the permutation knows the one
    batch of a record, which is Gaussian noise without amplification. Lower end: the better of two attacks, by the sum
    of all batches, and by how large the largest is while all other records contribute the opposite. It is no Poisson
    sample: `Gaussian(sigma).sampled(1 / steps)` may say far less than the attacks get. Under zero-out the slot of the
    record is empty, and the batches stay.

    >>> from dpcompose import Adjacency, ShuffledEpochs
    >>> found = ShuffledEpochs(1.0, steps=100).delta(epsilon=1.0, adjacency=Adjacency.ZERO_OUT)
    >>> 0.0167 < found.lower < 0.01670579607857 and 0.126 < found.upper < 0.127
    True

    Args:
        sigma: The standard deviation of the noise on the sum of a batch; a record contributes a norm of at most 1.
        steps: The number of batches in an epoch; >= 1.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [Chua2024]
    """

    _: KW_ONLY
    steps: int
    holds_under: ClassVar[Adjacency] = Adjacency.ZERO_OUT
    reach: ClassVar[int] = 1
    remedy: ClassVar[str] = (
        "Ask with adjacency=Adjacency.ZERO_OUT: the number of records, and so the batches, must stay"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = check.count("steps", self.steps, least=1)
        if not steps <= MOST_STEPS:
            raise DomainError("steps", steps, f"an integer of at most {MOST_STEPS}")
        set_fields(self, steps=steps)

    def _costlier(self) -> ShuffledEpochs:
        return ShuffledEpochs(smaller_reading(self.sigma), steps=self.steps)

    def _pair(self) -> Pair:
        above = GaussianLoss(1 / self.sigma, rounded(self.sigma))
        if self.steps == 1:
            return Pair(above, above)
        attack = largest_batch(self.sigma, self.steps)
        total = GaussianLoss(1 / (self.sigma * math.sqrt(self.steps)), 4)
        return Pair(above, above, False, (Pair(attack, attack.reverse), Pair(total, total)))
