"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from dpcompose.guarantee import TypedAmounts
from dpcompose.law import LaplaceShift, Laws, alike
from dpcompose.mechanisms.base import ContinuousNoise, rounded
from dpcompose.mechanisms.parameter import declare, noise
from dpcompose.values import Adjacency


@dataclass(frozen=True, repr=False)
class Laplace(ContinuousNoise):
    """A vector plus Laplace noise of density e^(-|x| / scale) / (2 scale) on each coordinate.

    >>> from dpcompose import Laplace
    >>> Laplace(2.0).epsilon(delta=0.0).contains(0.5)
    True

    Args:
        scale: The scale b of the noise; finite, > 0.
        sensitivity: The largest L1 distance of the vectors when a record is added or removed;
            finite, > 0.
        replace_sensitivity: The largest L1 distance when a record is replaced; by default twice the
            sensitivity.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [DworkRoth2014, Theorem 3.6]
    """

    scale: float = field(metadata=declare(noise()))
    noise_name: ClassVar[str] = "scale"
    closed_form = True

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon = sensitivity / scale, exact, with each parameter at the reading that
        costs more.
        """
        return TypedAmounts(self._quotient(adjacency))

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return one symmetric law: a Laplace shift by epsilon = sensitivity / scale."""
        epsilon = self.sensitivity_under(adjacency) / self.scale
        quotient = None if adjacency is Adjacency.REPLACE else (self.sensitivity, self.scale)
        return alike(LaplaceShift(epsilon, rounded(self.scale), quotient))
