"""The filter of Whitehouse, Ramdas, Rogers and Wu: advanced composition for adaptively chosen parameters."""

from __future__ import annotations

import decimal
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Self

from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import Number, below, nonnegative, probability
from dpcompose.adaptive.filter import Filter
from dpcompose.adaptive.total import Target, Total, curve, least, optimal, sum_of_rho
from dpcompose.errors import DomainError
from dpcompose.guarantee import Adjacency, ApproximateDP, ConcentratedDP, Priced
from dpcompose.numerics.exact import digits, exact, rounded_up

_DIGITS, _ERROR = 120, Decimal("1e-100")


@dataclass(frozen=True)
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
    def for_target(cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0) -> Self:
        """The filter of that target; its slack is delta - mechanism_delta, which must be above 0."""
        target = Target.of(epsilon, delta, mechanism_delta)
        if not target.remainder > 0:
            raise DomainError("mechanism_delta", mechanism_delta, f"below the total delta {delta!r}")
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
        with decimal.localcontext(digits(_DIGITS)):
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
            points = curve(lambda at: rho.epsilon(delta=at), times, delta=delta, omitted=rho.delta, least_share=1e-2)
            found.append(points)
        return least(found)

    def promise(self) -> ApproximateDP:
        return self.guarantee()

    def concentrated(self) -> ConcentratedDP:
        squares, delta = self.limits.values()
        return ConcentratedDP(rounded_up(squares / 2), delta=rounded_up(delta))

    def _price(self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency) -> tuple[Fraction, ...]:
        epsilon, charged = pricing.promise(mechanism, delta=delta, adjacency=adjacency)
        return epsilon * epsilon, charged
