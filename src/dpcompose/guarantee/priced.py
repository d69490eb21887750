"""The interface of everything that costs privacy, as filters and ledgers use it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dpcompose.values import Adjacency, Bound, Orientation

if TYPE_CHECKING:
    from dpcompose.guarantee.approximate import ApproximateDP
    from dpcompose.guarantee.concentrated import ConcentratedDP


@dataclass(frozen=True)
class TypedAmounts:
    """Statements in amounts that a person typed, exact: a float is its shortest decimal.

    Args:
        epsilon: It is (epsilon, delta)-differentially private; None if no amount says so.
        delta: The delta of its statements.
        rho: It is rho-zero-concentrated, but for delta.
        mu_squared: It is mu-Gaussian differentially private.
    """

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    mu_squared: Fraction | None = None

    def times(self, count: int) -> TypedAmounts:
        """The sums over that many."""

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
    """Prices in every currency: each answer is an upper bound, or None where no finite one holds.

    A charge at one point of a curve asks with `Orientation.FREE`: an adversary may turn every pair inside, and the
    charge is the sum over the members of the larger order. The other answers are such sums under any orientation.

    Every method raises UnsupportedError where the adjacency has no sound statement.
    """

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        """Its statements in typed amounts, exact; None if there is none."""
        ...

    def costlier(self) -> Priced:
        """The same with every typed noise scale, sensitivity, rate and amount at its costlier reading."""
        ...

    def pure(self, *, adjacency: Adjacency = ...) -> float | None:
        """The epsilon of pure differential privacy."""
        ...

    def approximate(self, *, adjacency: Adjacency = ...) -> ApproximateDP | None:
        """An (epsilon, delta) that holds without choosing a delta."""
        ...

    def epsilon(
        self, *, delta: float, adjacency: Adjacency = ..., orientation: Orientation = ...
    ) -> Bound:
        """The epsilon at a delta: a point of the curve, for whoever charges at one."""
        ...

    def renyi(
        self, order: float, *, adjacency: Adjacency = ..., orientation: Orientation = ...
    ) -> Bound:
        """The Renyi divergence of an order above 1, the larger of both directions."""
        ...

    def zcdp(self, *, adjacency: Adjacency = ...) -> ConcentratedDP | None:
        """The zero-concentrated guarantee."""
        ...

    def gdp(self, *, adjacency: Adjacency = ...) -> float | None:
        """The mu of Gaussian differential privacy."""
        ...
