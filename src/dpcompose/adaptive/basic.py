"""The filter of basic composition: epsilons and deltas add up along every path."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import Number, nonnegative, probability
from dpcompose.adaptive.filter import Filter
from dpcompose.adaptive.total import Target, Total, optimal
from dpcompose.guarantee import Adjacency, ApproximateDP, ConcentratedDP, Priced, TypedAmounts, pure
from dpcompose.numerics.exact import exact, rounded_up


@dataclass(frozen=True)
class BasicFilter(Filter):
    """Charges (epsilon, delta) while both sums stay within the caps: then the interaction is (epsilon, delta)-DP.

    Every (epsilon_i, delta_i)-DP answer is a post-processing of one that shows the world with probability delta_i and
    is (epsilon_i, 0)-DP else. Some answer shows it with probability at most the sum of the deltas along the path; where
    none does, the loss is at most the sum of the epsilons.

    >>> from dpcompose import BlackBox
    >>> BasicFilter(1.0, delta=1e-6).price(BlackBox(0.5, delta=1e-7))["epsilon"]
    Fraction(1, 2)

    Args:
        epsilon: The cap on the sum of the epsilons; in [0, 1e15].
        delta: The cap on the sum of the deltas; in [0, 1].

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [RogersRothUllmanVadhan2016, Lemma 3.5]
    """

    epsilon: float | Fraction
    _: KW_ONLY
    delta: float | Fraction
    kind: ClassVar[str] = "basic"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @classmethod
    def for_target(cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0) -> Self:
        """The filter of that epsilon and delta: it needs no slack, so all of delta is for the charges."""
        target = Target.of(epsilon, delta, mechanism_delta)
        return cls(target.epsilon, delta=target.delta)

    @property
    def limits(self) -> dict[str, Fraction]:
        return {"epsilon": exact(self.epsilon), "delta": exact(self.delta)}

    def guarantee(self) -> ApproximateDP:
        """(epsilon, delta)-differential privacy."""
        return ApproximateDP(rounded_up(exact(self.epsilon)), delta=rounded_up(exact(self.delta)))

    def _total(self, times: int, delta: float) -> Total:
        return optimal(self.guarantee(), times, delta=delta)

    def promise(self) -> ApproximateDP:
        return self.guarantee()

    def concentrated(self) -> ConcentratedDP:
        """epsilon tanh(epsilon / 2), but for delta: see `PureFilter`."""
        promise = self.guarantee()
        return ConcentratedDP(pure.concentrated(promise.epsilon).rho, delta=promise.delta)

    def typed(self) -> TypedAmounts:
        return TypedAmounts(exact(self.epsilon), exact(self.delta))

    def _price(self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency) -> tuple[Fraction, ...]:
        return pricing.promise(mechanism, delta=delta, adjacency=adjacency)
