"""The theorems of a budget: a pure epsilon, a rho, a Renyi divergence or a mu squared adds up along every path."""

from __future__ import annotations

import decimal
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

from dpcompose import check
from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import (
    LARGEST,
    Exactly,
    below,
    largest,
    nonnegative,
    optimal,
    probability,
    written,
)
from dpcompose.adaptive.pricing import Remainder
from dpcompose.errors import DomainError
from dpcompose.guarantee import (
    ApproximateDP,
    ConcentratedDP,
    Priced,
    RenyiDP,
    TypedAmounts,
    lossless_epsilon,
)
from dpcompose.mechanisms import (
    BlackBox,
    Concentrated as ConcentratedMechanism,
    GaussianDP,
    RenyiCurve,
)
from dpcompose.numerics import minimum, walk
from dpcompose.values import (
    UNIT_ROUNDOFF,
    Adjacency,
    Orientation,
    decimal_context,
    exact,
    rounded_down,
    rounded_up,
    up,
)

if TYPE_CHECKING:
    from dpcompose.composition import Composable
    from dpcompose.guarantee import GaussianTradeoff

Guarantee: TypeAlias = "ApproximateDP | ConcentratedDP | RenyiDP | GaussianTradeoff"
_ZERO = Fraction(0)
OPTIMAL = "optimal composition", "[KairouzOhViswanath2015, Theorem 3.3]"


@dataclass(frozen=True, eq=False)
class Theorem(Exactly, ABC):
    """A limit on the sum of one amount, and what an interaction promises whose charges stay within it.

    Args:
        limit: In [0, 1e15], in the theorem's own parameter. A float means its shortest decimal.
        reserve: The limit on the sum of the deltas of charges, in [0, 1]; 0 for a theorem that charges none.
        order: The order of a Renyi divergence; 0 for the others.
        portion: Beside other theorems, its part of the budget's delta.
    """

    limit: float | Fraction
    reserve: float | Fraction = 0
    order: float = 0.0
    portion: Fraction = _ZERO
    name: ClassVar[str]
    """The name that `only` takes."""
    kind: ClassVar[str]
    """The name of a filter of this theorem alone, in a ledger."""
    parameters: ClassVar[tuple[str, ...]]
    """The names of `limit`, and of reserve or order, in the description of such a filter."""
    currency: ClassVar[str]
    measure: ClassVar[str] = ""
    """The name of its amount among typed ones, if it has one."""
    sums: ClassVar[tuple[str, str]]
    """The theorem by which such budgets add up, and its source."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", nonnegative(self.parameters[0], self.limit))
        object.__setattr__(self, "reserve", probability("delta", self.reserve))

    @classmethod
    @abstractmethod
    def most(cls, epsilon: float, delta: float, order: float) -> float:
        """The largest limit that implies (epsilon, delta), both rounded down, rounded down."""

    @classmethod
    def of_target(
        cls, epsilon: Fraction, portion: Fraction, *, reserve: Fraction = _ZERO, order: float = 0.0
    ) -> Self:
        """The theorem with the largest limit within epsilon, at its share of delta."""
        limit = cls.most(rounded_down(epsilon), rounded_down(portion), order)
        return cls(limit, reserve, order, portion)

    @property
    def charges_delta(self) -> bool:
        """Whether charges may have a delta, which is added up beside the limit."""
        return "delta" in self.parameters

    @property
    def cap(self) -> Fraction:
        """The largest sum, exact."""
        return exact(self.limit)

    @property
    def caps(self) -> dict[str, Fraction]:
        """The largest sums of a budget of this theorem alone, by currency."""
        own = {self.currency: self.cap}
        return own | {"delta": exact(self.reserve)} if self.charges_delta else own

    @property
    def omitted(self) -> Fraction:
        """The delta of what is promised, exact."""
        return exact(self.reserve)

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The promise of the interaction, for a budget of this theorem alone."""

    @abstractmethod
    def price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        """The exact amounts of a charge, in the order of `caps`."""

    def amount(self, remainder: Remainder) -> Fraction | None:
        """The amount of a charge without its delta; None if the theorem says nothing about it."""
        return getattr(remainder.amounts, self.measure)

    @abstractmethod
    def promised(self, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Composable:
        """The mechanism that is known by what the interaction promises alone."""

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """The smallest epsilon of the interaction at a delta, by the conversion that limits for targets are searched with."""

    def total(self, times: int, delta: float) -> float:
        """The smallest epsilon of so many such budgets at a total delta."""
        if times == 1:
            return self.epsilon(delta)
        composed = self.promised() * times
        return composed.epsilon(delta=delta, orientation=Orientation.FREE).upper

    def epsilon_of(self, spent: Fraction, delta: float, *, reserve: Fraction = _ZERO) -> float:
        """The epsilon at a delta that this sum allows."""
        return replace(self, limit=self.limit_of(spent), reserve=reserve).epsilon(delta)

    def limit_of(self, spent: Fraction) -> float | Fraction:
        """The limit of this sum, rounded up."""
        return spent

    def typed(self) -> TypedAmounts | None:
        """The guarantee in typed amounts, exact; None if it is something else."""
        return None

    def stated(self) -> dict[str, str]:
        """The parameters of a filter that uses this theorem and no other, by name, as text."""
        values = {"delta": self.reserve, "order": self.order}
        return {name: written(values.get(name, self.limit)) for name in self.parameters}

    def described(self) -> dict[str, str]:
        """This part of a budget as text."""
        limit = written(exact(self.limit))
        numbers = {"share": written(self.portion), "limit": limit, "order": written(self.order)}
        return {"currency": self.name, **numbers}


@dataclass(frozen=True, eq=False)
class Pure(Theorem):
    """The sum of pure epsilons is at most `limit`: then the interaction is (limit, 0)-DP.

    Along every transcript the loss is at most the sum of the epsilons, each known before its answer.

    Reference: [RogersRothUllmanVadhan2016]
    """

    name = kind = "pure"
    parameters = ("epsilon",)
    currency = measure = "epsilon"
    sums = OPTIMAL

    @classmethod
    def most(cls, epsilon: float, delta: float, order: float) -> float:
        """ln((e^epsilon + delta) / (1 - delta)): the profile of randomized response is the largest of all pure ones."""
        if not 0.0 < delta < 1.0 or not 0.0 < epsilon < 700.0:
            return epsilon
        from dpcompose.guarantee import homogeneous_epsilon  # it needs numpy

        def within(size: float) -> bool:
            return homogeneous_epsilon(delta, epsilon=size, times=1).upper <= epsilon

        point = epsilon + math.log1p(delta * math.exp(-epsilon)) - math.log1p(-delta)
        return rounded_down(Fraction(walk(point, -4e-16 * point, within)))

    @classmethod
    def of_target(
        cls, epsilon: Fraction, portion: Fraction, *, reserve: Fraction = _ZERO, order: float = 0.0
    ) -> Self:
        """Of epsilon itself, exactly, at least."""
        found = exact(cls.most(rounded_down(epsilon), rounded_down(portion), order))
        return cls(max(found, epsilon), reserve, order, portion)

    def guarantee(self) -> ApproximateDP:
        return ApproximateDP(rounded_up(exact(self.limit)), delta=rounded_up(exact(self.reserve)))

    def promised(self, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Composable:
        return black_box(self.guarantee(), adjacency)

    def epsilon(self, delta: float) -> float:
        return self.total(1, delta)

    def total(self, times: int, delta: float) -> float:
        return optimal(self.guarantee(), times, delta=delta)

    def epsilon_of(self, spent: Fraction, delta: float, *, reserve: Fraction = _ZERO) -> float:
        return rounded_up(spent)

    def typed(self) -> TypedAmounts:
        return TypedAmounts(exact(self.limit), exact(self.reserve))

    def price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return (pricing.pure(mechanism, adjacency=adjacency),)


@dataclass(frozen=True, eq=False)
class Basic(Pure):
    """The sums of (epsilon, delta) are at most `limit` and `reserve`: then the interaction is (limit, reserve)-DP.

    Every (epsilon_i, delta_i)-DP answer is a post-processing of one that shows the world with probability delta_i and
    is (epsilon_i, 0)-DP else. Some answer shows it with probability at most the sum of the deltas along the path; where
    none does, the loss is at most the sum of the epsilons.

    Reference: [RogersRothUllmanVadhan2016, Lemma 3.5]
    """

    name = kind = "basic"
    parameters = ("epsilon", "delta")

    def price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return pricing.promise(mechanism, delta=delta, adjacency=adjacency)


@dataclass(frozen=True, eq=False)
class Concentrated(Theorem):
    """The sum of rho is at most `limit`, that of the deltas at most `reserve`: the whole is limit-zCDP but for that.

    An answer that is rho_i-zCDP but for delta_i is a mixture: with probability delta_i it is anything, else it is of
    two distributions whose divergence of every order a is at most a rho_i. On the paths where nothing came from the
    first part, both worlds' densities carry the same factor prod (1 - delta_i) >= 1 - delta, which cancels in the loss,
    and E[e^(a L)] grows by at most e^(a (a + 1) rho_i) a round: at the end D_a <= a rho, however the rho_i were chosen.
    A mechanism without a known rho is charged the sharp epsilon tanh(epsilon / 2) of its (epsilon, delta).

    Reference: [WhitehouseRamdasRogersWu2023, Theorem 1], [FeldmanZrnic2021]
    """

    name = "zcdp"
    kind = "concentrated"
    parameters = ("rho", "delta")
    currency = measure = "rho"
    sums = "sum of rho", "[WhitehouseRamdasRogersWu2023, Theorem 1]"

    @classmethod
    def most(cls, epsilon: float, delta: float, order: float) -> float:
        def within(rho: float) -> bool:
            return ConcentratedDP(rho).epsilon(delta=delta) <= epsilon

        guess = max(min(epsilon, epsilon * epsilon), delta * delta)
        found = 0.0 if epsilon == 0.0 or delta == 0.0 else largest(within, guess=guess)
        return rounded_down(Fraction(found))

    @property
    def rho(self) -> Fraction:
        """The largest sum of rho."""
        return exact(self.limit)

    def guarantee(self) -> Guarantee:
        return ConcentratedDP(rounded_up(self.rho), delta=rounded_up(exact(self.reserve)))

    def promised(self, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Composable:
        rho, delta = rounded_up(self.rho), rounded_up(exact(self.reserve))
        if rho == 0:
            return BlackBox(0.0, delta=delta, holds_under=adjacency)
        return ConcentratedMechanism(rho, delta=delta, holds_under=adjacency)

    def epsilon(self, delta: float) -> float:
        omitted = rounded_up(exact(self.reserve))
        return ConcentratedDP(rounded_up(self.rho), delta=omitted).epsilon(delta=delta)

    def typed(self) -> TypedAmounts | None:
        return TypedAmounts(delta=exact(self.reserve), rho=exact(self.limit))

    def price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return pricing.rho(mechanism, delta=delta, adjacency=adjacency)


@dataclass(frozen=True, eq=False)
class Advanced(Concentrated):
    """The sums of epsilon squared and delta: half of the first is a rho, but for the second. Of old ledgers alone.

    epsilon^2 / 2 is a rho of every (epsilon, delta)-DP answer but for its delta. For a target of (epsilon, delta) with
    a slack, `limit` is S with sqrt(2 ln(1 / slack) S) + S / 2 = epsilon, which is what S / 2 implies at the slack.

    Reference: [WhitehouseRamdasRogersWu2023, Theorem 2], [BunSteinke2016, Proposition 1.3]
    """

    name = kind = "advanced"
    currency = "epsilon squared"

    @property
    def omitted(self) -> Fraction:
        return exact(self.reserve) + self.portion

    def stated(self) -> dict[str, str]:
        stated = {"squares": self.limit, "delta": self.omitted, "slack": self.portion}
        return {name: written(value) for name, value in stated.items()}

    def guarantee(self) -> ApproximateDP:
        """By the best conversion, at the whole delta."""
        whole = rounded_up(self.omitted)
        return ApproximateDP(self.epsilon(whole), delta=whole)

    @property
    def rho(self) -> Fraction:
        """Half of the sum."""
        return exact(self.limit) / 2

    def typed(self) -> TypedAmounts | None:
        return None

    def price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        epsilon, charged = pricing.promise(mechanism, delta=delta, adjacency=adjacency)
        return epsilon * epsilon, charged

    @classmethod
    def of_slack(
        cls, epsilon: float | Fraction, delta: float | Fraction, slack: float | Fraction
    ) -> Self:
        """S, rounded down: 2 epsilon / (sqrt(2 ln(1 / slack) + 2 epsilon) + sqrt(2 ln(1 / slack))), squared."""
        most = exact(nonnegative("epsilon", epsilon))
        kept, used = exact(probability("delta", delta)), exact(probability("slack", slack))
        if not 0 < used <= kept:
            raise DomainError("slack", slack, f"above 0 and at most delta = {delta!r}")
        squares = _ZERO
        if most > 0:
            with decimal.localcontext(decimal_context(_DIGITS)):
                twice = 2 * Decimal(most.numerator) / Decimal(most.denominator)
                # Fewer than ten roundings of 1e-119 each, of positive terms; the logarithm's argument errs absolutely.
                logarithm = -(Decimal(used.numerator) / Decimal(used.denominator)).ln()
                logarithm = logarithm * (1 + _ERROR) + _ERROR
                root = (2 * logarithm + twice).sqrt() + (2 * logarithm).sqrt()
                squares = below(Fraction((twice / root) ** 2 * (1 - _ERROR)))
        return cls(squares, kept - used, portion=used)


_DIGITS, _ERROR = 120, Decimal("1e-100")


@dataclass(frozen=True, eq=False)
class Renyi(Theorem):
    """The sum of the Renyi divergences of one order is at most `limit`: then that of the interaction is.

    E[e^((order - 1) L - (order - 1) (sum so far))] never grows, however the mechanisms are chosen; the order is fixed
    beforehand. A rule that goes on while some order is within its budget is not offered: it picks the order by the
    answers.

    Reference: [FeldmanZrnic2021, Theorem 4.3]
    """

    name = kind = "renyi"
    parameters = ("order", "budget")
    sums = "sum of Renyi divergences, converted exactly", "[Asoodeh2021, Section III]"

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", check.order(self.order))
        object.__setattr__(self, "limit", nonnegative("budget", self.limit))

    @classmethod
    def most(cls, epsilon: float, delta: float, order: float) -> float:
        if epsilon == 0.0 or delta == 0.0:
            return 0.0

        def within(budget: float) -> bool:
            return lossless_epsilon(budget, order=order, delta=delta) <= epsilon

        guess = max(_moment_budget(epsilon, delta, order), 1e-3 * epsilon)
        return rounded_down(Fraction(largest(within, guess=guess)))

    @property
    def currency(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The name of the currency, with the order in it."""
        short = self.order.is_integer() and self.order < 1e15
        return f"renyi:{int(self.order) if short else repr(self.order)}"

    def guarantee(self) -> RenyiDP:
        """The limit at every order up to this one (it grows with it), infinite above; `total` is sharper."""
        limit = rounded_up(exact(self.limit))
        return RenyiDP(lambda order: limit if order <= self.order else math.inf)

    def promised(self, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Composable:
        if self.limit == 0:
            return BlackBox(0.0, holds_under=adjacency)
        limit = rounded_up(exact(self.limit))
        return RenyiCurve([limit], orders=[self.order], holds_under=adjacency)

    def epsilon(self, delta: float) -> float:
        return lossless_epsilon(rounded_up(exact(self.limit)), order=self.order, delta=delta)

    def price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return (pricing.renyi(mechanism, self.order, adjacency=adjacency),)

    def amount(self, remainder: Remainder) -> Fraction | None:
        return remainder.divergence(self.order)


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
class Gaussian(Theorem):
    """The sum of mu squared is at most `limit` squared: then the interaction is limit-GDP, without any loss.

    A mu_i-GDP answer is a post-processing of the distance that a Brownian motion, whose drift is the world, goes during
    a time of mu_i squared. Adaptively chosen times cut one path of length mu squared into pieces, and the end of the
    path is a sufficient statistic for the drift. Gaussian noise that is not sampled, and `GaussianDP`, have a price;
    the discrete Gaussian, which is not GDP, has none.

    Reference: [SmithThakurta2022], [KoskelaTobabenHonkela2023]
    """

    name = kind = "gaussian"
    parameters = ("mu",)
    currency, measure = "mu squared", "mu_squared"
    sums = "sum of mu squared", "[DongRothSu2022, Corollary 3.3]"

    @classmethod
    def most(cls, epsilon: float, delta: float, order: float) -> float:
        from dpcompose.guarantee import gaussian_mu  # it needs scipy

        found = rounded_down(Fraction(min(gaussian_mu(epsilon, delta=delta).lower, LARGEST)))
        step = 2.0**-52
        # The curve and its inverse are rounded apart: what is read back stays within the target, too.
        while found > 0 and cls(found).epsilon(delta) > epsilon:
            found, step = found * (1 - step), 2 * step
        return found

    @property
    def cap(self) -> Fraction:
        return exact(self.limit) ** 2

    def limit_of(self, spent: Fraction) -> float:
        root = rounded_up(spent) ** 0.5
        while Fraction(root) ** 2 < spent:
            root = up(root)
        return root

    def epsilon_of(self, spent: Fraction, delta: float, *, reserve: Fraction = _ZERO) -> float:
        """From two tails of the normal distribution, if that is exact enough: the curve needs scipy."""
        quick = _epsilon_of_tails(self.limit_of(spent), delta)
        return super().epsilon_of(spent, delta, reserve=reserve) if quick is None else quick

    def guarantee(self) -> GaussianTradeoff:
        from dpcompose.guarantee import GaussianTradeoff  # it needs scipy

        return GaussianTradeoff(self.mu)

    @property
    def mu(self) -> float:
        """The largest mu, rounded up."""
        return rounded_up(exact(self.limit))

    def promised(self, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Composable:
        if self.mu < MOST_MU:
            return GaussianDP(max(self.mu, LEAST_MU) if self.mu else 0.0, holds_under=adjacency)
        return ConcentratedMechanism(rounded_up(self.cap / 2), holds_under=adjacency)

    def epsilon(self, delta: float) -> float:
        from dpcompose.guarantee import gaussian_epsilon  # it needs scipy

        return gaussian_epsilon(delta, mu=self.mu).upper

    def typed(self) -> TypedAmounts:
        return TypedAmounts(rho=self.cap / 2, mu_squared=self.cap)

    def price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        return (pricing.mu_squared(mechanism, adjacency=adjacency),)


def _epsilon_of_tails(mu: float, delta: float) -> float | None:
    """The epsilon of mu-GDP at a delta, from above by a relative 1e-12 at most; None if that takes more than tails.

    delta(epsilon) is the tail at epsilon / mu - mu / 2, less e^epsilon times that at epsilon / mu + mu / 2. Sixteen
    units of roundoff are allowed to `math.erfc` and `math.exp` each. A point below `size` errs by four units of `size`,
    and the logarithm of a tail changes by at most 1 + size where its point does by 1: Mills' ratio is never below
    1 / (1 + x), and never below 1 where x < 0.
    """
    if not (0.0 < mu < 10.0 and 1e-100 < delta < 0.5):  # so that no tail is subnormal
        return None

    def ends(epsilon: float) -> tuple[float, float]:
        points = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
        near, far = (math.erfc(point * math.sqrt(0.5)) / 2.0 for point in points)
        far *= math.exp(epsilon)
        size = epsilon / mu + mu
        error = (near + far) * (48 + 4 * size * (1 + size)) * UNIT_ROUNDOFF
        return near - far - error, near - far + error

    low, high = 0.0, mu * mu / 2.0 + mu * math.sqrt(-2.0 * math.log(delta))
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if ends(middle)[1] <= delta else (middle, high)
    is_close = ends(high)[1] <= delta < ends(high * (1.0 - 1e-12))[0]
    return high if is_close else None


LEAST_MU, MOST_MU = 1e-12, 1e6
"""The ends of the domain of `GaussianDP`; 0 is in it, too."""


def black_box(promise: ApproximateDP, adjacency: Adjacency) -> BlackBox:
    """The mechanism of which nothing but that promise is known."""
    return BlackBox(promise.epsilon, delta=promise.delta, holds_under=adjacency)


THEOREMS: dict[str, type[Theorem]] = {
    each.name: each for each in (Pure, Basic, Concentrated, Renyi, Gaussian)
}
"""All theorems of a budget, by the name that `only` takes."""
KINDS: dict[str, type[Theorem]] = {each.kind: each for each in (*THEOREMS.values(), Advanced)}
"""All theorems by the name of a filter of that theorem alone, in a ledger."""
