"""Filters of (epsilon, delta): epsilons, or their squares, and deltas add up along every path."""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Self

from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import Number, below, nonnegative, probability
from dpcompose.adaptive.filter import Filter, PriceRule
from dpcompose.adaptive.total import Target, Total, curve, least, optimal, sum_of_rho
from dpcompose.errors import DomainError
from dpcompose.guarantee import (
    ApproximateDP,
    ConcentratedDP,
    Priced,
    TypedAmounts,
    homogeneous_epsilon,
    pure_concentrated,
    pure_renyi,
)
from dpcompose.numerics import walk
from dpcompose.values import Adjacency, decimal_context, exact, rounded_down, rounded_up


@dataclass(frozen=True, eq=False)
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
    def for_target(
        cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0
    ) -> Self:
        """The filter of the largest pure E that implies (epsilon, delta): ln((e^epsilon + delta) / (1 - delta))."""
        target = Target.of(epsilon, delta, mechanism_delta)
        target.without_charged_delta("PureFilter")
        most, at = target.floats
        if not 0.0 < at < 1.0 or not 0.0 < most < 700.0:
            return cls(target.epsilon)
        # The profile of randomized response, (e^E - e^epsilon) / (1 + e^E), is the largest of all pure ones.
        point = most + math.log1p(at * math.exp(-most)) - math.log1p(-at)
        point = walk(
            point,
            -4e-16 * point,
            lambda each: homogeneous_epsilon(at, epsilon=each, times=1).upper <= most,
        )
        point = rounded_down(Fraction(point))
        return cls(point if exact(point) > exact(target.epsilon) else target.epsilon)

    @property
    def limits(self) -> dict[str, Fraction]:
        return {"epsilon": exact(self.epsilon)}

    def guarantee(self) -> ApproximateDP:
        """(epsilon, 0)-differential privacy."""
        return ApproximateDP(rounded_up(exact(self.epsilon)))

    def _epsilon_of(self, amounts: Sequence[Fraction], delta: float) -> float:
        return rounded_up(amounts[0])

    def _total(self, times: int, delta: float) -> Total:
        return optimal(self.guarantee(), times, delta=delta)

    def promise(self) -> ApproximateDP:
        return self.guarantee()

    def concentrated(self) -> ConcentratedDP:
        """epsilon tanh(epsilon / 2): tanh grows, so along a path the sum is largest for one charge of everything."""
        return pure_concentrated(self.guarantee().epsilon)

    def divergence(self, order: float) -> float:
        """That of randomized response, of which every such interaction is a post-processing."""
        return pure_renyi(self.guarantee().epsilon, order=order)

    def typed(self) -> TypedAmounts:
        return TypedAmounts(exact(self.epsilon))

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return (pricing.pure(mechanism, adjacency=adjacency),)

    @property
    def individual_laplace(self) -> PriceRule:
        return lambda epsilon: epsilon


@dataclass(frozen=True, eq=False)
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
    def for_target(
        cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0
    ) -> Self:
        """The filter of that epsilon and delta: it needs no slack, so all of delta is for the charges."""
        target = Target.of(epsilon, delta, mechanism_delta)
        return cls(target.epsilon, delta=target.delta)

    @property
    def limits(self) -> dict[str, Fraction]:
        return {"epsilon": exact(self.epsilon), "delta": exact(self.delta)}

    def guarantee(self) -> ApproximateDP:
        """(epsilon, delta)-differential privacy."""
        return ApproximateDP(rounded_up(exact(self.epsilon)), delta=rounded_up(exact(self.delta)))

    def _epsilon_of(self, amounts: Sequence[Fraction], delta: float) -> float:
        return rounded_up(amounts[0])

    def _total(self, times: int, delta: float) -> Total:
        return optimal(self.guarantee(), times, delta=delta)

    def promise(self) -> ApproximateDP:
        return self.guarantee()

    def concentrated(self) -> ConcentratedDP:
        """epsilon tanh(epsilon / 2), but for delta: see `PureFilter`."""
        promise = self.guarantee()
        return ConcentratedDP(pure_concentrated(promise.epsilon).rho, delta=promise.delta)

    def typed(self) -> TypedAmounts:
        return TypedAmounts(exact(self.epsilon), exact(self.delta))

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return pricing.promise(mechanism, delta=delta, adjacency=adjacency)


_DIGITS, _ERROR = 120, Decimal("1e-100")


@dataclass(frozen=True, eq=False)
class AdvancedFilter(Filter):
    """Charges (epsilon squared, delta): the interaction is (epsilon, delta)-DP while the sums stay within the caps.

    The caps are S with sqrt(2 ln(1 / slack) S) + S / 2 = epsilon, that is
    S = (sqrt(2 ln(1 / slack) + 2 epsilon) - sqrt(2 ln(1 / slack)))^2, and delta - slack; both are rounded down. A proof
    that needs no martingale of losses: epsilon^2 / 2 is a rho of every (epsilon, delta)-DP answer but for its delta, so
    the whole is S/2-zCDP but for delta - slack (`ConcentratedFilter`), and S / 2 + sqrt(2 S ln(1 / slack)) is what
    that implies at slack.

    >>> from dpcompose import BlackBox
    >>> float(AdvancedFilter(1.0, delta=1e-6, slack=1e-6).caps["epsilon squared"] / AdvancedFilter(
    ...     1.0, delta=1e-6, slack=1e-6).price(BlackBox(0.01))["epsilon squared"]) > 349
    True

    Args:
        epsilon: The target, in nats; in [0, 1e15].
        delta: The target in total; in [0, 1].
        slack: The part of delta that the theorem uses, in (0, delta]; the remainder is for the charges.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [WhitehouseRamdasRogersWu2023, Theorem 2], [BunSteinke2016, Proposition 1.3]
    """

    epsilon: float | Fraction
    _: KW_ONLY
    delta: float | Fraction
    slack: float | Fraction
    kind: ClassVar[str] = "advanced"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", nonnegative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        slack = probability("slack", self.slack)
        if not 0 < exact(slack) <= exact(self.delta):
            raise DomainError("slack", self.slack, f"above 0 and at most delta = {self.delta!r}")
        object.__setattr__(self, "slack", slack)

    @classmethod
    def for_target(
        cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0
    ) -> Self:
        """The filter of that target; its slack is delta - mechanism_delta, which must be above 0."""
        target = Target.of(epsilon, delta, mechanism_delta)
        if not target.remainder > 0:
            raise DomainError(
                "mechanism_delta", mechanism_delta, f"below the total delta {delta!r}"
            )
        slack = target.delta if target.mechanism_delta == 0 else target.remainder
        return cls(target.epsilon, delta=target.delta, slack=slack)

    @property
    def limits(self) -> dict[str, Fraction]:
        return {"epsilon squared": self._squares, "delta": exact(self.delta) - exact(self.slack)}

    @property
    def _squares(self) -> Fraction:
        """S, rounded down: 2 epsilon / (sqrt(2 ln(1 / slack) + 2 epsilon) + sqrt(2 ln(1 / slack))), squared."""
        epsilon, slack = exact(self.epsilon), exact(self.slack)
        if epsilon == 0:
            return Fraction(0)
        with decimal.localcontext(decimal_context(_DIGITS)):
            twice = 2 * Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
            # Fewer than ten roundings of 1e-119 each, of positive terms; the logarithm's argument errs absolutely.
            logarithm = -(Decimal(slack.numerator) / Decimal(slack.denominator)).ln()
            logarithm = logarithm * (1 + _ERROR) + _ERROR
            root = (2 * logarithm + twice).sqrt() + (2 * logarithm).sqrt()
            return below(Fraction((twice / root) ** 2 * (1 - _ERROR)))

    def guarantee(self) -> ApproximateDP:
        """(epsilon', delta)-differential privacy, epsilon' at most epsilon, by the best conversion of the caps."""
        delta = rounded_up(exact(self.delta))
        return ApproximateDP(self.epsilon_at(delta=delta), delta=delta)

    def _total(self, times: int, delta: float) -> Total:
        rho = self.concentrated()
        stated = ApproximateDP(rounded_up(exact(self.epsilon)), delta=rounded_up(exact(self.delta)))
        found = [sum_of_rho(rho, times, delta=delta), optimal(stated, times, delta=delta)]
        if times > 1:
            points = curve(
                lambda at: rho.epsilon(delta=at),
                times,
                delta=delta,
                omitted=rho.delta,
                least_share=1e-2,
            )
            found.append(points)
        return least(found)

    def promise(self) -> ApproximateDP:
        return self.guarantee()

    def concentrated(self) -> ConcentratedDP:
        squares, delta = self.limits.values()
        return ConcentratedDP(rounded_up(squares / 2), delta=rounded_up(delta))

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        epsilon, charged = pricing.promise(mechanism, delta=delta, adjacency=adjacency)
        return epsilon * epsilon, charged
