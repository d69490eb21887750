"""The filter of Gaussian differential privacy: the squares of mu add up along every path."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import LARGEST, Number, nonnegative
from dpcompose.adaptive.filter import Filter, PriceRule
from dpcompose.adaptive.total import Target, Total
from dpcompose.guarantee import Adjacency, ConcentratedDP, GaussianTradeoff, Priced, TypedAmounts, gaussian
from dpcompose.numerics import check
from dpcompose.numerics.bound import up
from dpcompose.numerics.exact import exact, rounded_down, rounded_up


@dataclass(frozen=True)
class GaussianFilter(Filter):
    """Charges mu squared while the sum is at most `mu` squared: then the interaction is mu-GDP, without any loss.

    A mu_i-GDP answer is a post-processing of the distance that a Brownian motion, whose drift is the world, goes during
    a time of mu_i squared. Adaptively chosen times cut one path of length mu squared into pieces, and the end of the
    path is a sufficient statistic for the drift. Gaussian noise that is not sampled, and `GaussianDP`, have a price;
    the discrete Gaussian, which is not GDP, has none.

    >>> from dpcompose import GaussianDP
    >>> GaussianFilter(1.0).step(GaussianFilter(1.0).start(), GaussianDP(0.5))[1].granted
    True

    Args:
        mu: In [0, 1e15].

    Raises:
        DomainError: If mu is outside its domain.

    Reference: [SmithThakurta2022], [KoskelaTobabenHonkela2023]
    """

    mu: float | Fraction
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", nonnegative("mu", self.mu))

    @classmethod
    def for_target(cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0) -> Self:
        """The filter of the largest mu that implies (epsilon, delta), rounded down."""
        target = Target.of(epsilon, delta, mechanism_delta)
        target.without_charged_delta("GaussianFilter")
        most, at = target.floats
        return cls(rounded_down(Fraction(min(gaussian.mu_for(most, delta=at).lower, LARGEST))))

    @property
    def limits(self) -> dict[str, Fraction]:
        return {"mu squared": exact(self.mu) ** 2}

    def guarantee(self) -> GaussianTradeoff:
        """mu-Gaussian differential privacy."""
        return GaussianTradeoff(rounded_up(exact(self.mu)))

    def _total(self, times: int, delta: float) -> Total:
        mu = self.mu_of(times)
        return Total(gaussian.epsilon(delta, mu=mu).upper, "sum of mu squared", "[DongRothSu2022, Corollary 3.3]")

    def concentrated(self) -> ConcentratedDP:
        """mu squared / 2."""
        return ConcentratedDP(rounded_up(exact(self.mu) ** 2 / 2))

    def mu_of(self, times: int) -> float:
        return _root(exact(self.mu) ** 2 * check.times(times))

    def typed(self) -> TypedAmounts:
        square = exact(self.mu) ** 2
        return TypedAmounts(rho=square / 2, mu_squared=square)

    def _price(self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency) -> tuple[Fraction, ...]:
        return (pricing.mu_squared(mechanism, adjacency=adjacency),)

    @property
    def individual_gaussian(self) -> PriceRule:
        return lambda mu_squared: mu_squared


def _root(square: Fraction) -> float:
    """The square root, rounded up."""
    root = rounded_up(square) ** 0.5
    while Fraction(root) ** 2 < square:
        root = up(root)
    return root
