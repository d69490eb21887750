"""Laplace noise."""

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
    """The value plus Laplace noise of density e^(-|x| / scale) / (2 scale) on each coordinate.

    >>> from dpcompose import Laplace
    >>> Laplace(2.0).epsilon(delta=0.0).contains(0.5)
    True

    Args:
        scale: The scale b of the noise; finite, > 0.
        sensitivity: The L1 distance that adding or removing one record can make; finite, > 0.
        replace_sensitivity: The L1 distance that replacing one can make, if better than twice that.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [DworkRoth2014, Theorem 3.6]
    """

    scale: float = field(metadata=declare(noise()))
    noise_name: ClassVar[str] = "scale"
    closed_form = True

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Exact, at the costlier reading of each parameter."""
        return TypedAmounts(self._quotient(adjacency))

    def laws(self, adjacency: Adjacency) -> Laws:
        """One symmetric loss of epsilon = sensitivity / scale."""
        epsilon = self.sensitivity_under(adjacency) / self.scale
        quotient = None if adjacency is Adjacency.REPLACE else (self.sensitivity, self.scale)
        return alike(LaplaceShift(epsilon, rounded(self.scale), quotient))
