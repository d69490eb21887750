"""The filters of one theorem: (epsilon, delta), rho, a Renyi divergence or mu squared adds up along every path."""

from __future__ import annotations

import decimal
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpcompose import check
from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import (
    LARGEST,
    Number,
    Target,
    Total,
    below,
    largest,
    least,
    nonnegative,
    optimal,
    probability,
    totals_of_rho,
)
from dpcompose.adaptive.filter import Filter, PriceRule, Reals
from dpcompose.adaptive.pricing import Remainder
from dpcompose.errors import DomainError
from dpcompose.guarantee import (
    ApproximateDP,
    ConcentratedDP,
    GaussianTradeoff,
    Priced,
    RenyiDP,
    TypedAmounts,
    gaussian_epsilon,
    gaussian_mu,
    homogeneous_epsilon,
    lossless_epsilon,
    pure_concentrated,
    pure_renyi,
)
from dpcompose.numerics import minimum, walk
from dpcompose.values import (
    UNIT_ROUNDOFF,
    Adjacency,
    decimal_context,
    exact,
    rounded_down,
    rounded_up,
    up,
)


class Theorem(Filter):
    """A filter that limits one sum: a part of `Budget`."""

    parameter: ClassVar[str]
    """The name of the parameter that is the limit."""

    @property
    def limit(self) -> Fraction:
        """The limit, exact."""
        return exact(getattr(self, self.parameter))

    @classmethod
    def of_limit(cls, limit: float | Fraction, order: float) -> Self:
        """The theorem with this limit; the order is that of a Renyi divergence."""
        return cls(**{cls.parameter: limit})

    @abstractmethod
    def amount(self, remainder: Remainder) -> Fraction | None:
        """The amount of a charge without its delta; None if the theorem says nothing about it."""


@dataclass(frozen=True, eq=False)
class PureFilter(Theorem):
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
    parameter: ClassVar[str] = "epsilon"

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

    def amount(self, remainder: Remainder) -> Fraction | None:
        return remainder.epsilon

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
        optimum = optimal(stated, times, delta=delta)
        return least([*totals_of_rho(rho, times, delta=delta), optimum])

    def concentrated(self) -> ConcentratedDP:
        squares, delta = self.limits.values()
        return ConcentratedDP(rounded_up(squares / 2), delta=rounded_up(delta))

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        epsilon, charged = pricing.promise(mechanism, delta=delta, adjacency=adjacency)
        return epsilon * epsilon, charged


@dataclass(frozen=True, eq=False)
class ConcentratedFilter(Theorem):
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
    parameter: ClassVar[str] = "rho"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", nonnegative("rho", self.rho))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @classmethod
    def for_target(
        cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0
    ) -> Self:
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

    def _epsilon_of(self, amounts: Sequence[Fraction], delta: float) -> float:
        return ConcentratedFilter(amounts[0], delta=amounts[1]).epsilon_at(delta=delta)

    def _total(self, times: int, delta: float) -> Total:
        return least(totals_of_rho(self.guarantee(), times, delta=delta))

    def concentrated(self) -> ConcentratedDP:
        return self.guarantee()

    def typed(self) -> TypedAmounts:
        return TypedAmounts(delta=exact(self.delta), rho=exact(self.rho))

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return pricing.rho(mechanism, delta=delta, adjacency=adjacency)

    @classmethod
    def of_limit(cls, limit: float | Fraction, order: float) -> Self:
        return cls(limit, delta=0)

    def amount(self, remainder: Remainder) -> Fraction | None:
        return remainder.rho

    @property
    def individual_gaussian(self) -> PriceRule:
        return lambda mu_squared: mu_squared / 2.0

    @property
    def individual_laplace(self) -> PriceRule:
        return _mean_of_laplace


@dataclass(frozen=True, eq=False)
class RenyiFilter(Theorem):
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
    parameter: ClassVar[str] = "budget"

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", check.order(self.order))
        object.__setattr__(self, "budget", nonnegative("budget", self.budget))

    @classmethod
    def for_target(
        cls,
        epsilon: Number,
        *,
        delta: Number = 0.0,
        mechanism_delta: Number = 0.0,
        order: float | None = None,
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
        chosen = best_order(most, at) if order is None else check.order(order)
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

    def _epsilon_of(self, amounts: Sequence[Fraction], delta: float) -> float:
        return RenyiFilter(self.order, budget=amounts[0]).epsilon_at(delta=delta)

    def _total(self, times: int, delta: float) -> Total:
        budget = rounded_up(exact(self.budget) * times)
        found = lossless_epsilon(budget, order=self.order, delta=delta)
        return Total(
            found, "sum of Renyi divergences, converted exactly", "[Asoodeh2021, Section III]"
        )

    def divergence(self, order: float) -> float:
        return self.guarantee()(order)

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return (pricing.renyi(mechanism, self.order, adjacency=adjacency),)

    @classmethod
    def of_limit(cls, limit: float | Fraction, order: float) -> Self:
        return cls(order, budget=limit)

    def amount(self, remainder: Remainder) -> Fraction | None:
        return remainder.divergence(self.order)

    @property
    def individual_gaussian(self) -> PriceRule:
        return lambda mu_squared: mu_squared * (self.order / 2.0)

    @property
    def individual_laplace(self) -> PriceRule:
        """The divergence is at most the largest loss, and at most rho times the order."""
        return lambda epsilon: np.minimum(epsilon, self.order * _mean_of_laplace(epsilon))


def _mean_of_laplace(epsilon: Reals) -> Reals:
    """The rho of Laplace noise, epsilon - 1 + e^-epsilon, rounded up; see `LaplaceLoss.zcdp`."""
    least = epsilon + np.expm1(-epsilon) + 4 * UNIT_ROUNDOFF * epsilon
    return np.minimum(least, epsilon * np.tanh(epsilon / 2.0)) * (1 + 16 * UNIT_ROUNDOFF)


def _moment_budget(epsilon: float, delta: float, order: float) -> float:
    """About the budget that the best use of one moment turns into (epsilon, delta); negative if there is none."""
    return (
        epsilon
        + math.log1p(1.0 / (order - 1.0))
        + (math.log(delta) + math.log(order)) / (order - 1.0)
    )


def best_order(epsilon: float, delta: float) -> float:
    """About the order of the largest budget over order."""
    if epsilon == 0.0 or delta == 0.0:
        raise DomainError("epsilon and delta", (epsilon, delta), "both above 0, or an order")

    def shortfall(point: float) -> float:
        order = 1.0 + math.exp(point)
        return -_moment_budget(epsilon, delta, order) / order

    return up(1.0 + math.exp(minimum(shortfall, start=2.0, step=0.5, limit=24.0, steps=40)))


@dataclass(frozen=True, eq=False)
class GaussianFilter(Theorem):
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
    parameter: ClassVar[str] = "mu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", nonnegative("mu", self.mu))

    @classmethod
    def for_target(
        cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0
    ) -> Self:
        """The filter of the largest mu that implies (epsilon, delta), rounded down."""
        target = Target.of(epsilon, delta, mechanism_delta)
        target.without_charged_delta("GaussianFilter")
        most, at = target.floats
        found, step = (
            cls(rounded_down(Fraction(min(gaussian_mu(most, delta=at).lower, LARGEST)))),
            2.0**-52,
        )
        # The curve and its inverse are rounded apart: what is read back stays within the target, too.
        while float(found.mu) > 0 and found.epsilon_at(delta=at) > most:
            found, step = cls(float(found.mu) * (1 - step)), 2 * step
        return found

    @property
    def limits(self) -> dict[str, Fraction]:
        return {"mu squared": exact(self.mu) ** 2}

    def guarantee(self) -> GaussianTradeoff:
        """mu-Gaussian differential privacy."""
        return GaussianTradeoff(rounded_up(exact(self.mu)))

    def _epsilon_of(self, amounts: Sequence[Fraction], delta: float) -> float:
        return GaussianFilter(_root(amounts[0])).epsilon_at(delta=delta)

    def _total(self, times: int, delta: float) -> Total:
        mu = self.mu_of(times)
        return Total(
            gaussian_epsilon(delta, mu=mu).upper,
            "sum of mu squared",
            "[DongRothSu2022, Corollary 3.3]",
        )

    def concentrated(self) -> ConcentratedDP:
        """mu squared / 2."""
        return ConcentratedDP(rounded_up(exact(self.mu) ** 2 / 2))

    def mu_of(self, times: int) -> float:
        return _root(exact(self.mu) ** 2 * check.times(times))

    def typed(self) -> TypedAmounts:
        square = exact(self.mu) ** 2
        return TypedAmounts(rho=square / 2, mu_squared=square)

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return (pricing.mu_squared(mechanism, adjacency=adjacency),)

    def amount(self, remainder: Remainder) -> Fraction | None:
        return remainder.mu_squared

    @property
    def individual_gaussian(self) -> PriceRule:
        return lambda mu_squared: mu_squared


def _root(square: Fraction) -> float:
    """The square root, rounded up."""
    root = rounded_up(square) ** 0.5
    while Fraction(root) ** 2 < square:
        root = up(root)
    return root
