"""The filter of pure differential privacy: epsilons add up along every path."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import Number, nonnegative
from dpcompose.adaptive.filter import Filter, PriceRule
from dpcompose.adaptive.total import Target, Total, optimal
from dpcompose.guarantee import Adjacency, ApproximateDP, ConcentratedDP, Priced, TypedAmounts, pure
from dpcompose.guarantee.optimal import homogeneous_epsilon
from dpcompose.numerics.exact import exact, rounded_down, rounded_up
from dpcompose.numerics.roots import walk


@dataclass(frozen=True)
class PureFilter(Filter):
    """Charges pure epsilons while their sum is at most `epsilon`: then the interaction is (epsilon, 0)-DP.

    Along every transcript the loss is at most the sum of the epsilons, each known before its answer.

    >>> from dpcompose import BlackBox
    >>> state, decision = PureFilter(1.0).step(PureFilter(1.0).start(), BlackBox(0.75))
    >>> decision.granted, PureFilter(1.0).step(state, BlackBox(0.5))[1].short
    (True, 'epsilon')

    Args:
        epsilon: The cap, in nats; in [0, 1e15]. A float means its shortest decimal: three charges of 0.1 fit 0.3.

    Raises:
        DomainError: If epsilon is outside its domain.

    Reference: [RogersRothUllmanVadhan2016]
    """

    epsilon: float | Fraction
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative("epsilon", self.epsilon))

    @classmethod
    def for_target(cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0) -> Self:
        """The filter of the largest pure E that implies (epsilon, delta): ln((e^epsilon + delta) / (1 - delta))."""
        target = Target.of(epsilon, delta, mechanism_delta)
        target.without_charged_delta("PureFilter")
        most, at = target.floats
        if not 0.0 < at < 1.0 or not 0.0 < most < 700.0:
            return cls(target.epsilon)
        # The profile of randomized response, (e^E - e^epsilon) / (1 + e^E), is the largest of all pure ones.
        point = most + math.log1p(at * math.exp(-most)) - math.log1p(-at)
        point = walk(point, -4e-16 * point, lambda each: homogeneous_epsilon(at, epsilon=each, times=1).upper <= most)
        point = rounded_down(Fraction(point))
        return cls(point if exact(point) > exact(target.epsilon) else target.epsilon)

    @property
    def limits(self) -> dict[str, Fraction]:
        return {"epsilon": exact(self.epsilon)}

    def guarantee(self) -> ApproximateDP:
        """(epsilon, 0)-differential privacy."""
        return ApproximateDP(rounded_up(exact(self.epsilon)))

    def _total(self, times: int, delta: float) -> Total:
        return optimal(self.guarantee(), times, delta=delta)

    def promise(self) -> ApproximateDP:
        return self.guarantee()

    def concentrated(self) -> ConcentratedDP:
        """epsilon tanh(epsilon / 2): tanh grows, so along a path the sum is largest for one charge of everything."""
        return pure.concentrated(self.guarantee().epsilon)

    def divergence(self, order: float) -> float:
        """That of randomized response, of which every such interaction is a post-processing."""
        return pure.renyi(self.guarantee().epsilon, order=order)

    def typed(self) -> TypedAmounts:
        return TypedAmounts(exact(self.epsilon))

    def _price(self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency) -> tuple[Fraction, ...]:
        return (pricing.pure(mechanism, adjacency=adjacency),)

    @property
    def individual_laplace(self) -> PriceRule:
        return lambda epsilon: epsilon
