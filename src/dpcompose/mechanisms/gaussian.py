"""The Gaussian mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from dpcompose.guarantee import TypedAmounts
from dpcompose.law import (
    GaussianShift,
    GaussianSum,
    Laws,
    Pair,
    ReplacedGaussian,
    SampledGaussian,
    alike,
)
from dpcompose.mechanisms.base import ContinuousNoise, rounded
from dpcompose.mechanisms.parameter import declare, noise
from dpcompose.values import Adjacency


@dataclass(frozen=True, repr=False)
class Gaussian(ContinuousNoise):
    """A vector plus Gaussian noise N(0, sigma^2) on each coordinate.

    >>> from dpcompose import Gaussian
    >>> Gaussian(2.0, sensitivity=2.0).delta(epsilon=1.0).contains(0.12693673750664394)
    True

    Args:
        sigma: The standard deviation of the noise; finite, > 0.
        sensitivity: The largest L2 distance of the vectors when a record is added or removed;
            finite, > 0.
        replace_sensitivity: The largest L2 distance when a record is replaced; by default twice the
            sensitivity. Not used on a Poisson sample.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [BalleWang2018, Theorem 8]
    """

    sigma: float = field(metadata=declare(noise()))
    noise_name: ClassVar[str] = "sigma"
    closed_form = True

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return rho = mu^2 / 2 and mu^2 for mu = sensitivity / sigma, exact, with each parameter
        at the reading that costs more.
        """
        square = self._quotient(adjacency) ** 2
        return TypedAmounts(rho=square / 2, mu_squared=square)

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return one symmetric law: a Gaussian shift by mu = sensitivity / sigma."""
        return alike(GaussianShift(self._mu(adjacency), rounded(self.sigma)))

    def _mu(self, adjacency: Adjacency) -> float:
        return self.sensitivity_under(adjacency) / self.sigma

    @classmethod
    def summed_laws(cls, members: Sequence[tuple[Self, int]], adjacency: Adjacency) -> Laws | None:
        """Return one symmetric law for all members together; None if a subclass has laws of its
        own.
        """
        if (cls.laws, cls.pairs) != (Gaussian.laws, Gaussian.pairs):
            return None
        return alike(GaussianSum(tuple([(each._mu(adjacency), times) for each, times in members])))

    def sampled_laws(self, rate: float, adjacency: Adjacency) -> Laws:
        """Return the law on a Poisson sample with rate q = `rate`.

        Under replacement it is (1 - q) N(0) + q N(-D) against (1 - q) N(0) + q N(D), with D the
        add-remove sensitivity.
        """
        noise = self.sigma / self.sensitivity
        if adjacency is Adjacency.REPLACE:
            return alike(ReplacedGaussian(noise, rate))
        ulps = rounded(self.sensitivity)
        return (
            (
                Pair(
                    SampledGaussian(noise, rate, True, ulps),
                    SampledGaussian(noise, rate, False, ulps),
                ),
                1,
            ),
        )
