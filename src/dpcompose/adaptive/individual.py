"""Budgets side by side: of curators who do not talk to each other, and of every record in individual accounting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcompose import check
from dpcompose.adaptive.amount import Number, Total, largest, nonnegative, probability
from dpcompose.adaptive.budget import Budget
from dpcompose.adaptive.filter import Filter
from dpcompose.adaptive.theorems import Concentrated, Gaussian, Renyi, Theorem, black_box
from dpcompose.composition import Composition
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import (
    ApproximateDP,
    ConcentratedDP,
    TypedAmounts,
    pure_concentrated,
)
from dpcompose.mechanisms import Concentrated as ConcentratedMechanism
from dpcompose.numerics import Reals
from dpcompose.values import (
    UNIT_ROUNDOFF,
    Adjacency,
    Bound,
    Certificate,
    Orientation,
    exact,
    rounded_down,
)

# Fixed sub-budgets of curators who do not talk to each other, and their total.


_ADDED, _FREE = Adjacency.ADD_REMOVE, Orientation.FREE


@dataclass(frozen=True)
class Curators:
    """`count` budgets, fixed in advance: inside each one a filter, between them no coordination at all.

    An interaction that a filter keeps (epsilon, delta)-DP is an interactive post-processing of one randomized response
    of that (epsilon, delta), drawn beforehand; so any number of them, interleaved at will, compose like their fixed
    guarantees: by the optimal theorem, which holds for no parameters chosen along the way. Sums (of rho, of mu squared,
    of a divergence) hold for the charges inside, each a one-shot mechanism, and are taken where they are smaller.

    It is priced like a mechanism: opening all budgets is one charge to a budget above them.

    >>> curators = Curators(10_000, filter=Budget(1 / 801))
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
    adjacency: Adjacency = _ADDED

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", check.count("count", self.count, least=1, most=10**15))
        check.kind("filter", self.filter, Filter, "a budget, such as Budget(0.1)")
        self.filter.start(adjacency=self.adjacency)

    @classmethod
    def for_target(
        cls,
        count: int,
        epsilon: Number,
        *,
        delta: Number,
        adjacency: Adjacency = _ADDED,
    ) -> Self:
        """The largest equal pure sub-budgets whose total at `delta` is at most `epsilon`.

        Args:
            count: The number of budgets.
            epsilon: The target in total; above 0.
            delta: The delta of the total.
            adjacency: The neighboring relation.

        Raises:
            DomainError: If no size is small enough.
        """
        most = rounded_down(exact(nonnegative("epsilon", epsilon)))
        at = rounded_down(exact(probability("delta", delta)))

        def within(size: float) -> bool:
            return (
                cls(count, filter=Budget(size), adjacency=adjacency).total(delta=at).epsilon <= most
            )

        root = math.sqrt(check.count("count", count, least=1, most=10**15))
        size = largest(within, guess=most / root) if most > 0 else 0.0
        if not size > 0:
            raise DomainError(
                "epsilon", epsilon, "a target that some sub-budgets reach", "Name a larger delta"
            )
        return cls(count, filter=Budget(size), adjacency=adjacency)

    def total(self, *, delta: float) -> Total:
        """The smallest epsilon found for all budgets together, with the theorem that gives it.

        Args:
            delta: The total delta, in [0, 1].
        """
        return self.filter.total(self.count, delta=delta)

    # The answers of `guarantee.Priced`, for a budget above. Filters promise for free orientations of the pairs inside.

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        """The sums of the typed amounts of the budgets, exact."""
        self._mechanism(adjacency)
        one = self.filter.typed()
        return None if one is None else one.times(self.count)

    def costlier(self) -> Self:
        """Itself: its budgets are amounts."""
        return self

    def pure(self, *, adjacency: Adjacency = _ADDED) -> float | None:
        """The sum of the pure epsilons; None unless every budget is pure."""
        return self._mechanism(adjacency).pure(adjacency=adjacency)

    def approximate(self, *, adjacency: Adjacency = _ADDED) -> ApproximateDP | None:
        """The sums of epsilon and delta; None where each budget has a whole curve."""
        promise, composed = self.filter.promise(), self._mechanism(adjacency)
        if promise is not None:
            composed = black_box(promise, adjacency) * self.count
        return composed.approximate(adjacency=adjacency)

    def epsilon(
        self,
        *,
        delta: float,
        adjacency: Adjacency = _ADDED,
        orientation: Orientation = _FREE,
    ) -> Bound:
        """The total at a delta, an upper end; the lower end is 0."""
        self._mechanism(adjacency, orientation)
        found = self.total(delta=delta)
        return Bound(0.0, found.epsilon, Certificate(found.theorem, unit="epsilon"))

    def renyi(
        self,
        order: float,
        *,
        adjacency: Adjacency = _ADDED,
        orientation: Orientation = _FREE,
    ) -> Bound:
        """The sum of the divergences of an order, an upper end."""
        composed = self._mechanism(adjacency, orientation)
        found = composed.renyi(order, adjacency=adjacency, orientation=_FREE)
        return Bound(0.0, found.upper, Certificate("sum of divergences"))

    def zcdp(self, *, adjacency: Adjacency = _ADDED) -> ConcentratedDP | None:
        """The sum of the rho, with the mass that all omit; None where a budget has no rho."""
        promise, composed = self.filter.promise(), self._mechanism(adjacency)
        if promise is not None:
            # What is (epsilon, delta)-DP is (epsilon, 0)-DP but for a mass of delta.
            rho, delta = pure_concentrated(promise.epsilon).rho, promise.delta
            composed = ConcentratedMechanism(rho, delta=delta, holds_under=adjacency) * self.count
        return composed.zcdp(adjacency=adjacency)

    def gdp(self, *, adjacency: Adjacency = _ADDED) -> float | None:
        """The square root of the sum of mu squared; None unless every budget is Gaussian."""
        return self._mechanism(adjacency).gdp(adjacency=adjacency)

    def _mechanism(self, adjacency: Adjacency, orientation: Orientation = _FREE) -> Composition:
        """All budgets together, if they are stated under this adjacency."""
        check.member("orientation", orientation, Orientation)
        if check.member("adjacency", adjacency, Adjacency) is not self.adjacency:
            reason = f"its charges are priced under {self.adjacency.value} and say nothing under {adjacency.value}"
            remedy = f"Open it with adjacency=Adjacency.{adjacency.name}"
            raise UnsupportedError(repr(self), reason, remedy)
        return self.filter.promised(adjacency) * self.count


# Individual accounting: every record has a budget of its own, and pays only for what it contributes.


Units = NDArray[np.int32]
Answer = TypeVar("Answer")

_CHUNK = 1 << 15
_MOST_RECORDS = 10**10
_FINEST = 30


@dataclass(frozen=True, eq=False)
class Records:
    """The amount that every record has spent: as secret as the data. It shows only how many records there are.

    Args:
        spent: In units of the filter, shape (records,).
        filter: The filter that started them; they cannot be carried to another.
    """

    spent: Units = field(repr=False)
    filter: IndividualFilter = field(repr=False)

    def __post_init__(self) -> None:
        self.spent.setflags(write=False)

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self.spent)

    def __repr__(self) -> str:
        return f"<Records of {self.count}>"


@dataclass(frozen=True, eq=False)
class IndividualRound:
    """One round, paid for by every record that takes part. It is never refused: who takes part stays secret.

    Args:
        active: Whether each record takes part, shape (records,): as secret as the data.
    """

    active: NDArray[np.bool_] = field(repr=False)

    def __post_init__(self) -> None:
        self.active.setflags(write=False)

    def answer(self, mechanism: Callable[[NDArray[np.bool_]], Answer]) -> Answer:
        """The answer of the mechanism, run on the records that take part; all others are replaced by nothing.

        Args:
            mechanism: From a mask of records to a noisy answer. It adds its noise whatever the mask is, and never
                divides by the number of records that take part, nor shows it.
        """
        return mechanism(self.active)

    def __repr__(self) -> str:
        return "<Round>"


@dataclass(frozen=True)
class IndividualFilter:
    """A filter for every record: each pays its own price in each round, and drops out, unseen, when it cannot.

    The price of a record is a function of that record and of the query, a bound in both directions for every set of
    other records. Then nothing about the other records depends on whether this one is there, and along every path its
    charges stay within the limit: the filter's guarantee holds for each person, whatever others spent. Rounds are never
    refused: the caller gets no decision, no count and no remainder, and averages are not divided by the number that
    took part. In a ledger the whole limit is charged once, at opening (`budget`).

    Amounts are whole numbers of a unit, prices rounded up, the limit down. A record whose price is not a number >= 0
    takes no part, in silence: an error would depend on the data.

    >>> from dpcompose.adaptive import Budget
    >>> individual = IndividualFilter(Budget.limited("renyi", 1.0, order=8.0))
    >>> records, round = individual.step(individual.start(3), prices=[0.5, 0.75, 2.0])
    >>> int(round.answer(np.count_nonzero)) # a real mechanism adds noise
    2

    Args:
        filter: A budget of one theorem alone that charges no delta: pure, zcdp, renyi or gaussian.
        adjacency: Add-remove or zero-out: a replaced record is two records, each with its own price.

    Raises:
        DomainError: If an argument is outside its domain.
        UnsupportedError: If the filter charges more than one currency, or the adjacency is replace.

    Reference: [FeldmanZrnic2021, Theorem 4.5], [KoskelaTobabenHonkela2023]
    """

    filter: Filter
    _: KW_ONLY
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        accepted = "a budget, such as Budget(1, 1e-6, only='zcdp')"
        check.kind("filter", self.filter, Filter, accepted)
        theorem, what = self.filter.theorem, f"individual accounting with {self.filter!r}"
        if _rate(theorem) is None and (theorem is None or theorem.kind != "pure"):
            reason = "proved for pure, zero-concentrated, Renyi and Gaussian prices only"
            raise UnsupportedError(what, reason, "Use Budget(..., only='zcdp') or only='renyi'")
        if any(limit for limit in list(self.filter.limits.values())[1:]):
            raise UnsupportedError(what, "a delta of its own", "Use delta=0")
        if check.member("adjacency", self.adjacency, Adjacency) is Adjacency.REPLACE:
            what = f"individual accounting under {self.adjacency.value}"
            reason = "a replaced record is two records with different prices"
            remedy = "State it under add-remove, with the price of each record"
            raise UnsupportedError(what, reason, remedy)

    @property
    def unit(self) -> float:
        """The power of two of which the limit has between 2^29 and 2^30, but none below 2^-800.

        Four bytes a record hold the sum.
        """
        return 2.0 ** max(math.frexp(float(self._limit))[1] - _FINEST, -800)

    @property
    def _limit(self) -> Fraction:
        return next(iter(self.filter.limits.values()))

    @property
    def limit(self) -> int:
        """The limit of each record, in whole units, rounded down."""
        return int(self._limit / Fraction(self.unit))

    @property
    def budget(self) -> Curators:
        """The charge to a budget above, once, before the first round: the whole limit."""
        return Curators(1, filter=self.filter, adjacency=self.adjacency)

    def start(self, count: int) -> Records:
        """Records that have spent nothing.

        Args:
            count: Their number, an integer from 0 to 10^10.
        """
        size = check.count("count", count, most=_MOST_RECORDS)
        return Records(np.zeros(size, dtype=np.int32), self)

    def step(self, state: Records, *, prices: Any) -> tuple[Records, IndividualRound]:
        """One round: the state after it, paid, and the round that may now answer. The state before it is unchanged.

        Args:
            state: The value that `start` or the last `step` returned.
            prices: The price of each record in the filter's currency, shape (records,); or one price for all. A float
                means exactly that double (of more than 64 bits it is refused); see `gaussian_prices`.

        Raises:
            DomainError: If the state is another filter's, or the prices are not real numbers, or not as many as
                records: nothing about their values.
        """
        if not isinstance(state, Records) or state.filter != self:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("state", state, "records that `start` of this very filter returned")
        each = _reals(prices)
        if each is None or each.shape not in ((), (state.count,)):
            domain = f"one number, or an array of {state.count} numbers, one for each record"
            raise DomainError("prices", f"<{type(prices).__name__}>", domain)
        each = np.broadcast_to(each, (state.count,))
        spent, active = np.empty_like(state.spent), np.empty(state.count, dtype=np.bool_)
        scale, limit = 1.0 / self.unit, self.limit
        # In pieces that stay in the cache, so that memory is read once and written once.
        with np.errstate(all="ignore"):
            for at in range(0, state.count, _CHUNK):
                piece = slice(at, at + _CHUNK)
                before, price = state.spent[piece], each[piece]
                # Exact unless it underflows: the unit is a power of two.
                asked = np.maximum(np.ceil(price * scale), price > 0.0)
                # NaN, negative prices and those above the limit become one unit too many.
                asked = np.where((price >= 0.0) & (asked <= limit), asked, limit + 1.0).astype(
                    spent.dtype
                )
                fits = np.less_equal(asked, limit - before, out=active[piece])
                np.add(before, asked * fits, out=spent[piece])
        return Records(spent, self), IndividualRound(active)

    def gaussian_prices(self, sensitivity: Any, *, sigma: float) -> Reals:
        """The prices of records whose contributions have these L2 norms, for Gaussian noise of that sigma; rounded up.

        Args:
            sensitivity: The distance by which each record can move the answer, shape (records,); >= 0.
            sigma: The standard deviation of the noise; finite, > 0.

        Raises:
            UnsupportedError: If Gaussian noise has no price under the filter.
        """
        rate = _rate(self.filter.theorem)
        if rate is None:
            raise UnsupportedError(
                "Gaussian noise", "it is not pure", "Use Budget(..., only='zcdp')"
            )
        noise, moved = check.positive("sigma", sigma), _reals(sensitivity)
        if moved is None:
            raise DomainError(
                "sensitivity", f"<{type(sensitivity).__name__}>", "a number, or an array of numbers"
            )
        with np.errstate(all="ignore"):
            prices = np.square(moved / noise) * rate
            above = np.nextafter(prices * (1.0 + 24 * UNIT_ROUNDOFF), np.inf)
            return np.where(moved >= 0.0, np.where(moved == 0.0, 0.0, above), np.inf)


def _rate(theorem: Theorem | None) -> float | None:
    """The price of Gaussian noise of mu squared 1; None where none is proved: its divergence is its rho times the order."""
    match theorem:
        case Concentrated() if theorem.currency == "rho":
            return 0.5
        case Renyi(order=order):
            return order / 2.0
        case Gaussian():
            return 1.0
        case _:
            return None


def _reals(values: Any) -> Reals | None:
    """Numbers as doubles, none of them smaller than it was; None if they are no numbers of at most 64 bits."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        return None
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        return None
    found = array.astype(np.float64, copy=False)
    # From 2^53 on an integer may have been rounded down.
    return (
        found
        if array.dtype.kind == "f"
        else np.where(found < 2.0**53, found, np.nextafter(found, np.inf))
    )
