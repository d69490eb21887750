"""The filter of Renyi differential privacy at one fixed order."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import Number, nonnegative
from dpcompose.adaptive.filter import Filter, PriceRule
from dpcompose.adaptive.total import Target, Total, largest
from dpcompose.errors import DomainError
from dpcompose.guarantee import Adjacency, Priced, RenyiDP
from dpcompose.guarantee.renyi import lossless_epsilon
from dpcompose.numerics import check
from dpcompose.numerics.bound import up
from dpcompose.numerics.exact import exact, rounded_down, rounded_up
from dpcompose.numerics.roots import minimum


@dataclass(frozen=True)
class RenyiFilter(Filter):
    """Charges the Renyi divergence of one order: while its sum is at most `budget`, that of the interaction is.

    E[e^((order - 1) L - (order - 1) (sum so far))] never grows, however the mechanisms are chosen; the order is fixed
    beforehand. A rule that goes on while some order is within its budget is not offered: it picks the order by the
    answers.

    >>> from dpcompose import Gaussian
    >>> list(RenyiFilter(8.0, budget=0.5).price(Gaussian(10.0)))
    ['renyi:8']

    Args:
        order: Finite, > 1.
        budget: The cap on the sum of the divergences, in nats; in [0, 1e15].

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [FeldmanZrnic2021, Theorem 4.3]
    """

    order: float
    _: KW_ONLY
    budget: float | Fraction
    kind: ClassVar[str] = "renyi"

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", check.order(self.order))
        object.__setattr__(self, "budget", nonnegative("budget", self.budget))

    @classmethod
    def for_target(
        cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0, order: float | None = None
    ) -> Self:
        """The filter of the largest budget that the best conversion at the order turns into (epsilon, delta).

        Args:
            epsilon: The target, in nats.
            delta: The delta of the target; above 0 unless the budget may be 0.
            mechanism_delta: Only 0: this filter charges no delta.
            order: The order; unless given, the one whose budget pays for the most answers of small loss, whose
                divergence is about rho times the order.
        """
        target = Target.of(epsilon, delta, mechanism_delta)
        target.without_charged_delta("RenyiFilter")
        most, at = target.floats
        chosen = _best_order(most, at) if order is None else check.order(order)
        if most == 0.0 or at == 0.0:
            return cls(chosen, budget=0.0)

        def within(budget: float) -> bool:
            return lossless_epsilon(budget, order=chosen, delta=at) <= most

        found = largest(within, guess=max(_moment_budget(most, at, chosen), 1e-3 * most))
        return cls(chosen, budget=rounded_down(Fraction(found)))

    @property
    def currency(self) -> str:
        """The name of the currency, with the order in it."""
        return f"renyi:{int(self.order) if self.order.is_integer() and self.order < 1e15 else repr(self.order)}"

    @property
    def limits(self) -> dict[str, Fraction]:
        return {self.currency: exact(self.budget)}

    def guarantee(self) -> RenyiDP:
        """The budget at every order up to this one (it grows with it), infinite above; `epsilon_at` is sharper."""
        budget = rounded_up(exact(self.budget))
        return RenyiDP(lambda order: budget if order <= self.order else math.inf)

    def _total(self, times: int, delta: float) -> Total:
        budget = rounded_up(exact(self.budget) * times)
        found = lossless_epsilon(budget, order=self.order, delta=delta)
        return Total(found, "sum of Renyi divergences, converted exactly", "[Asoodeh2021, Section III]")

    def divergence(self, order: float) -> float:
        return self.guarantee()(order)

    def _price(self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency) -> tuple[Fraction, ...]:
        return (pricing.renyi(mechanism, self.order, adjacency=adjacency),)

    @property
    def individual_gaussian(self) -> PriceRule:
        return lambda mu_squared: mu_squared * (self.order / 2.0)

    @property
    def individual_laplace(self) -> PriceRule:
        """The divergence is at most the largest loss, and at most rho times the order."""
        return lambda epsilon: np.minimum(epsilon, self.order * epsilon * np.tanh(epsilon / 2.0))


def _moment_budget(epsilon: float, delta: float, order: float) -> float:
    """About the budget that the best use of one moment turns into (epsilon, delta); negative if there is none."""
    return epsilon + math.log1p(1.0 / (order - 1.0)) + (math.log(delta) + math.log(order)) / (order - 1.0)


def _best_order(epsilon: float, delta: float) -> float:
    """About the order of the largest budget over order."""
    if epsilon == 0.0 or delta == 0.0:
        raise DomainError("epsilon and delta", (epsilon, delta), "both above 0, or an order")

    def shortfall(point: float) -> float:
        order = 1.0 + math.exp(point)
        return -_moment_budget(epsilon, delta, order) / order

    return up(1.0 + math.exp(minimum(shortfall, start=2.0, step=0.5, limit=24.0, steps=40)))
