"""The privacy guarantees of a mechanism or composition, in the form that privacy filters and
ledgers read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dpcompose.values import Adjacency, Bound, Orientation

if TYPE_CHECKING:
    from dpcompose.guarantee.approximate import ApproximateDP
    from dpcompose.guarantee.renyi import ConcentratedDP


@dataclass(frozen=True)
class TypedAmounts:
    """Privacy guarantees in exact fractions; each float parameter stands for its shortest decimal.

    So Laplace noise of scale 10 has epsilon exactly 1/10. A missing guarantee is None.

    Args:
        epsilon: The epsilon of (epsilon, delta)-DP, in nats.
        delta: The delta of all the guarantees.
        rho: The rho of zCDP up to delta.
        mu_squared: The square of the mu of Gaussian DP.
    """

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    mu_squared: Fraction | None = None

    @classmethod
    def gaussian(cls, mu_squared: Fraction) -> TypedAmounts:
        """The exact amounts of mu-Gaussian differential privacy, for the square of mu."""
        return cls(rho=mu_squared / 2, mu_squared=mu_squared)

    def times(self, count: int) -> TypedAmounts:
        """The guarantees of `count` independent runs: every amount multiplied by `count`."""

        def sum_of(one: Fraction | None) -> Fraction | None:
            return None if one is None else one * count

        return TypedAmounts(
            sum_of(self.epsilon), self.delta * count, sum_of(self.rho), sum_of(self.mu_squared)
        )

    def __add__(self, other: TypedAmounts) -> TypedAmounts:
        def both(one: Fraction | None, two: Fraction | None) -> Fraction | None:
            return None if one is None or two is None else one + two

        return TypedAmounts(
            both(self.epsilon, other.epsilon),
            self.delta + other.delta,
            both(self.rho, other.rho),
            both(self.mu_squared, other.mu_squared),
        )


@runtime_checkable
class Priced(Protocol):
    """An object whose privacy cost can be stated in several units: epsilon, rho, a Renyi curve, mu.

    Every method returns an upper bound on one measure of privacy loss, or None if it has no finite
    bound.

    The curves `epsilon` and `renyi` depend on the orientation of the pairs inside a composition. A
    filter or ledger passes `Orientation.FREE`, under which an adversary may choose the order of
    every pair, so that the costs of the parts add up. The other bounds hold under every
    orientation.

    Every method raises UnsupportedError if no guarantee is known under the adjacency.
    """

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        """The exact guarantees under `adjacency`, floats read as decimals; None if none is exact."""
        ...

    def costlier(self) -> Priced:
        """A copy with every noise scale, sensitivity, rate and amount as double or decimal,
        whichever is less private.

        A float stands either for its exact double or for its shortest decimal.
        """
        ...

    def pure(self, *, adjacency: Adjacency = ...) -> float | None:
        """The epsilon of pure differential privacy under `adjacency`, in nats."""
        ...

    def approximate(self, *, adjacency: Adjacency = ...) -> ApproximateDP | None:
        """An (epsilon, delta) guarantee under `adjacency` whose delta is the mechanism's own."""
        ...

    def epsilon(
        self, *, delta: float, adjacency: Adjacency = ..., orientation: Orientation = ...
    ) -> Bound:
        """The smallest epsilon at `delta` under `adjacency`, in nats: a point of the privacy curve."""
        ...

    def renyi(
        self, order: float, *, adjacency: Adjacency = ..., orientation: Orientation = ...
    ) -> Bound:
        """The Renyi divergence of an order above 1, in nats: the larger of both directions."""
        ...

    def zcdp(self, *, adjacency: Adjacency = ...) -> ConcentratedDP | None:
        """The zero-concentrated guarantee under `adjacency`."""
        ...

    def gdp(self, *, adjacency: Adjacency = ...) -> float | None:
        """The mu of Gaussian differential privacy under `adjacency`."""
        ...
