"""Fixed sub-budgets of curators who do not talk to each other, and their total."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Self

from dpcompose import check
from dpcompose.adaptive.amount import Number, rounded
from dpcompose.adaptive.filter import Decision, Filter, Spending
from dpcompose.adaptive.theorems import PureFilter
from dpcompose.adaptive.total import Target, Total, largest
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, Priced, TypedAmounts
from dpcompose.values import Adjacency, Bound, Certificate, Orientation

_FREE = Orientation.FREE


@dataclass(frozen=True)
class Curators:
    """`count` budgets, fixed in advance: inside each one a filter, between them no coordination at all.

    An interaction that a filter keeps (epsilon, delta)-DP is an interactive post-processing of one randomized response
    of that (epsilon, delta), drawn beforehand; so any number of them, interleaved at will, compose like their fixed
    guarantees: by the optimal theorem, which holds for no parameters chosen along the way. Sums (of rho, of mu squared,
    of a divergence) hold for the charges inside, each a one-shot mechanism, and are taken where they are smaller.

    It is priced like a mechanism: opening all budgets is one charge to a budget above them.

    >>> curators = Curators(10_000, filter=PureFilter(1 / 801))
    >>> round(curators.total(delta=math.exp(-32)).epsilon, 6)
    0.890468

    Args:
        count: The number of budgets; an integer from 1 to 10^15.
        filter: The filter that each of them opens.
        adjacency: The neighboring relation, the same in every budget.

    Raises:
        DomainError: If an argument is not what is expected.

    Reference: [VadhanZhang2023], [Lyu2022], [KairouzOhViswanath2015, Theorem 3.3]
    """

    count: int
    _: KW_ONLY
    filter: Filter
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", _count(self.count))
        if not isinstance(self.filter, Filter):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("filter", self.filter, "a filter, such as PureFilter(0.1)")
        self.filter.start(adjacency=self.adjacency)

    @classmethod
    def for_target(
        cls,
        count: int,
        epsilon: Number,
        *,
        delta: Number,
        sized: Callable[[float], Filter] = PureFilter,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
    ) -> Self:
        """The largest equal sub-budgets whose total at `delta` is at most `epsilon`.

        Args:
            count: The number of budgets.
            epsilon: The target in total; above 0.
            delta: The delta of the total; above 0 unless the sub-budgets are pure.
            sized: From a size to the filter of one budget, larger for larger sizes.
            adjacency: The neighboring relation.

        Raises:
            DomainError: If no size is small enough.
        """
        most, at = Target.of(epsilon, delta, 0.0).floats
        if not callable(sized):
            raise DomainError("sized", sized, "from a size to a filter, such as PureFilter")

        def within(size: float) -> bool:
            return (
                cls(count, filter=sized(size), adjacency=adjacency).total(delta=at).epsilon <= most
            )

        size = largest(within, guess=most / math.sqrt(_count(count))) if most > 0 else 0.0
        if not size > 0:
            raise DomainError(
                "epsilon", epsilon, "a target that some sub-budgets reach", "Name a larger delta"
            )
        return cls(count, filter=sized(size), adjacency=adjacency)

    def total(self, *, delta: float) -> Total:
        """The smallest epsilon found for all budgets together, with the theorem that gives it.

        Args:
            delta: The total delta, in [0, 1].
        """
        return self.filter.total(self.count, delta=delta)

    def start(self) -> Spendings:
        """The state before any charge."""
        return Spendings(self)

    def step(
        self, state: Spendings, mechanism: Priced, *, curator: int, delta: Number | None = None
    ) -> tuple[Spendings, Decision]:
        """Ask one curator for one more mechanism, whatever the others do.

        Args:
            state: The value that `start` or the last `step` returned.
            mechanism: See `Filter.price`.
            curator: The number of the curator, from 0.
            delta: See `Filter.price`.
        """
        if not isinstance(state, Spendings) or state.curators != self:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("state", state, "a state of these curators")
        after, decision = self.filter.step(state.of(curator), mechanism, delta=delta)
        return Spendings(
            self, {**state.touched, curator: after}
        ) if decision.granted else state, decision

    # The answers of `guarantee.Priced`, for a budget above. Filters promise for free orientations of the pairs inside.

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        """The sums of the typed amounts of the budgets, exact."""
        self._stated(adjacency)
        one = self.filter.typed()
        return None if one is None else one.times(self.count)

    def costlier(self) -> Self:
        """Itself: its budgets are amounts."""
        return self

    def pure(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float | None:
        """The sum of the pure epsilons; None unless every budget is pure."""
        self._stated(adjacency)
        promise = self.filter.promise()
        return (
            rounded(promise.epsilon, self.count)
            if promise is not None and promise.delta == 0
            else None
        )

    def approximate(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> ApproximateDP | None:
        """The sums of epsilon and delta; None where each budget has a whole curve."""
        self._stated(adjacency)
        promise = self.filter.promise()
        if promise is None:
            return None
        return ApproximateDP(
            rounded(promise.epsilon, self.count), delta=min(rounded(promise.delta, self.count), 1.0)
        )

    def epsilon(
        self,
        *,
        delta: float,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = _FREE,
    ) -> Bound:
        """The total at a delta, an upper end; the lower end is 0."""
        self._stated(adjacency, orientation)
        found = self.total(delta=delta)
        return Bound(0.0, found.epsilon, Certificate(found.theorem, unit="epsilon"))

    def renyi(
        self,
        order: float,
        *,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = _FREE,
    ) -> Bound:
        """The sum of the divergences of an order, an upper end."""
        self._stated(adjacency, orientation)
        one = self.filter.divergence(order)
        return Bound(
            0.0,
            math.inf if math.isinf(one) else rounded(one, self.count),
            Certificate("sum of divergences"),
        )

    def zcdp(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> ConcentratedDP | None:
        """The sum of the rho, with the mass that all omit; None where a budget has no rho."""
        self._stated(adjacency)
        one = self.filter.concentrated()
        if one is None:
            return None
        return ConcentratedDP(
            rounded(one.rho, self.count), delta=min(rounded(one.delta, self.count), 1.0)
        )

    def gdp(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float | None:
        """The square root of the sum of mu squared; None unless every budget is Gaussian."""
        self._stated(adjacency)
        return self.filter.mu_of(self.count)

    def _stated(self, adjacency: Adjacency, orientation: Orientation = _FREE) -> None:
        check.member("orientation", orientation, Orientation)
        if check.member("adjacency", adjacency, Adjacency) is not self.adjacency:
            raise UnsupportedError(
                repr(self),
                f"its charges are priced under {self.adjacency.value} and say nothing under {adjacency.value}",
                f"Open it with adjacency=Adjacency.{adjacency.name}",
            )


def _count(value: int) -> int:
    if not (number := check.count("count", value, least=1)) <= 10**15:
        raise DomainError("count", value, "an integer from 1 to 10^15")
    return number


@dataclass(frozen=True)
class Spendings:
    """The spending of each curator; those who spent nothing are not listed.

    Args:
        curators: The curators.
        touched: The spending by the number of the curator.
    """

    curators: Curators
    touched: Mapping[int, Spending] = field(default_factory=dict[int, Spending])

    def of(self, curator: int) -> Spending:
        """The spending of one curator."""
        if not check.count("curator", curator) < self.curators.count:
            raise DomainError("curator", curator, f"an integer below {self.curators.count}")
        start = self.curators.filter.start(adjacency=self.curators.adjacency)
        return self.touched.get(curator, start)
