"""Laplace noise."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

from dpcompose.composition.container import Pairs
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.guarantee.priced import TypedAmounts
from dpcompose.loss.laplace import LaplaceLoss
from dpcompose.mechanism.base import (
    Mechanism,
    alike,
    checked_sensitivities,
    costlier_noise,
    plain,
    quotient,
    rounded,
    sensitivities,
)
from dpcompose.numerics import check


@dataclass(frozen=True, repr=False)
class Laplace(Mechanism):
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

    scale: float
    _: KW_ONLY
    sensitivity: float = 1.0
    replace_sensitivity: float | None = None

    def __post_init__(self) -> None:
        if plain(self.scale, self.sensitivity, self.replace_sensitivity):
            return
        object.__setattr__(self, "scale", check.positive("scale", self.scale))
        one, two = checked_sensitivities(
            self.sensitivity, self.replace_sensitivity, noise=self.scale, noise_name="scale"
        )
        object.__setattr__(self, "sensitivity", one)
        object.__setattr__(self, "replace_sensitivity", two)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Exact, at the costlier reading of each parameter."""
        return TypedAmounts(quotient(self.scale, self.sensitivity, self.replace_sensitivity, adjacency))

    def _costlier(self) -> Laplace:
        read = costlier_noise(self.scale, self.sensitivity, self.replace_sensitivity)
        if read == (self.scale, self.sensitivity, self.replace_sensitivity):
            return self
        return replace(self, scale=read[0], sensitivity=read[1], replace_sensitivity=read[2])

    def pairs(self, adjacency: Adjacency) -> Pairs:
        """One symmetric loss of epsilon = sensitivity / scale."""
        epsilon = sensitivities(self.sensitivity, self.replace_sensitivity, adjacency) / self.scale
        quotient = None if adjacency is Adjacency.REPLACE else (self.sensitivity, self.scale)
        return alike(LaplaceLoss(epsilon, rounded(self.scale), quotient))
