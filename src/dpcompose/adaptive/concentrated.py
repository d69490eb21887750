"""The filter of zero-concentrated differential privacy: rho and the deltas add up along every path."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import Number, nonnegative, probability
from dpcompose.adaptive.filter import Filter, PriceRule
from dpcompose.adaptive.total import Target, Total, curve, largest, least, sum_of_rho
from dpcompose.guarantee import Adjacency, ConcentratedDP, Priced, TypedAmounts
from dpcompose.numerics.exact import exact, rounded_down, rounded_up


@dataclass(frozen=True)
class ConcentratedFilter(Filter):
    """Charges rho and delta while both sums stay within the caps: then the interaction is rho-zCDP but for delta.

    An answer that is rho_i-zCDP but for delta_i is a mixture: with probability delta_i it is anything, else it is of
    two distributions whose divergence of every order a is at most a rho_i. On the paths where nothing came from the
    first part, both worlds' densities carry the same factor prod (1 - delta_i) >= 1 - delta, which cancels in the loss,
    and E[e^(a L)] grows by at most e^(a (a + 1) rho_i) a round: at the end D_a <= a rho, however the rho_i were chosen.
    A mechanism without a known rho is charged the sharp epsilon tanh(epsilon / 2) of its (epsilon, delta).

    >>> from dpcompose import Gaussian
    >>> float(ConcentratedFilter(0.5, delta=0.0).price(Gaussian(10.0))["rho"]) <= 0.005 * (1 + 1e-14)
    True

    Args:
        rho: The cap on the sum of the rho; in [0, 1e15].
        delta: The cap on the sum of the deltas of the charges; in [0, 1].

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [WhitehouseRamdasRogersWu2023, Theorem 1], [FeldmanZrnic2021]
    """

    rho: float | Fraction
    _: KW_ONLY
    delta: float | Fraction
    kind: ClassVar[str] = "concentrated"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", nonnegative("rho", self.rho))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @classmethod
    def for_target(cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0) -> Self:
        """The filter of the largest rho that the best conversion turns into (epsilon, delta), rounded down."""
        target = Target.of(epsilon, delta, mechanism_delta)
        most, at = target.floats
        omitted = rounded_up(exact(target.mechanism_delta))

        def within(rho: float) -> bool:
            return ConcentratedDP(rho, delta=omitted).epsilon(delta=at) <= most

        guess = max(min(most, most * most), at * at)
        found = 0.0 if most == 0.0 or target.remainder <= 0 else largest(within, guess=guess)
        return cls(rounded_down(Fraction(found)), delta=target.mechanism_delta)

    @property
    def limits(self) -> dict[str, Fraction]:
        return {"rho": exact(self.rho), "delta": exact(self.delta)}

    def guarantee(self) -> ConcentratedDP:
        """rho-zero-concentrated differential privacy, but for a mass of delta."""
        return ConcentratedDP(rounded_up(exact(self.rho)), delta=rounded_up(exact(self.delta)))

    def _total(self, times: int, delta: float) -> Total:
        promise = self.guarantee()
        sums = sum_of_rho(promise, times, delta=delta)
        if times < 2:
            return sums
        omitted = promise.delta
        points = curve(lambda at: promise.epsilon(delta=at), times, delta=delta, omitted=omitted, least_share=1e-2)
        return least((sums, points))

    def concentrated(self) -> ConcentratedDP:
        return self.guarantee()

    def typed(self) -> TypedAmounts:
        return TypedAmounts(delta=exact(self.delta), rho=exact(self.rho))

    def _price(self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency) -> tuple[Fraction, ...]:
        return pricing.rho(mechanism, delta=delta, adjacency=adjacency)

    @property
    def individual_gaussian(self) -> PriceRule:
        return lambda mu_squared: mu_squared / 2.0

    @property
    def individual_laplace(self) -> PriceRule:
        return lambda epsilon: epsilon * np.tanh(epsilon / 2.0)
