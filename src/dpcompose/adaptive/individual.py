"""Individual accounting: every record has a budget of its own, and pays only for what it contributes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcompose import check
from dpcompose.adaptive.curators import Curators
from dpcompose.adaptive.filter import Filter, PriceRule, Reals
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.values import UNIT_ROUNDOFF, Adjacency

Units = NDArray[np.int32 | np.int64]
Answer = TypeVar("Answer")

_CHUNK = 1 << 15
_MOST = 1 << 52
_MOST_RECORDS = 10**10
_FINEST, _NARROW = 30, 1 << 31


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
    """One round, paid for by every record that takes part; it always answers, and shows nothing.

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


Round = IndividualRound


@dataclass(frozen=True)
class IndividualFilter:
    """A filter for every record: each pays its own price in each round, and drops out, unseen, when it cannot.

    The price of a record is a function of that record and of the query, a bound in both directions for every set of
    other records. Then nothing about the other records depends on whether this one is there, and along every path its
    charges stay within the limit: the filter's guarantee holds for each person, whatever others spent. Rounds are never
    refused: the caller gets no decision, no count and no remainder, and averages are not divided by the number that
    took part. In a ledger the whole limit is charged once, at opening (`budget`).

    Amounts are whole numbers of `unit`, prices rounded up, the limit down. A record whose price is not a number >= 0
    takes no part, in silence: an error would depend on the data.

    >>> from dpcompose.adaptive import RenyiFilter
    >>> individual = IndividualFilter(RenyiFilter(8.0, budget=1.0))
    >>> records, round = individual.step(individual.start(3), prices=[0.5, 0.75, 2.0])
    >>> int(round.answer(np.count_nonzero)) # a real mechanism adds noise
    2

    Args:
        filter: `PureFilter`, `ConcentratedFilter` with delta 0, `RenyiFilter` or `GaussianFilter`.
        unit: A power of two; by default the finest with which the limit has at most 2^30 units,
            of which four bytes a record hold the sum.
        adjacency: Add-remove or zero-out: a replaced record is two records, each with its own price.

    Raises:
        DomainError: If an argument is outside its domain.
        UnsupportedError: If the filter charges more than one currency, or the adjacency is replace.

    Reference: [FeldmanZrnic2021, Theorem 4.5], [KoskelaTobabenHonkela2023]
    """

    filter: Filter
    _: KW_ONLY
    unit: float | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        if not isinstance(self.filter, Filter):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "filter", self.filter, "a filter, such as ConcentratedFilter(1.0, delta=0.0)"
            )
        if self.filter.individual_gaussian is None and self.filter.individual_laplace is None:
            raise UnsupportedError(
                f"individual accounting with {self.filter!r}",
                "proved for pure, zero-concentrated, Renyi and Gaussian prices only",
                "Use a ConcentratedFilter with delta=0, or a RenyiFilter",
            )
        if any(limit for limit in list(self.filter.limits.values())[1:]):
            raise UnsupportedError(
                f"individual accounting with {self.filter!r}", "a delta of its own", "Use delta=0"
            )
        if check.member("adjacency", self.adjacency, Adjacency) is Adjacency.REPLACE:
            raise UnsupportedError(
                f"individual accounting under {self.adjacency.value}",
                "a replaced record is two records with different prices",
                "State it under add-remove, with the price of each record",
            )
        object.__setattr__(
            self, "unit", _finest(self._limit) if self.unit is None else _power_of_two(self.unit)
        )
        if not self._limit / Fraction(self._unit) < _MOST:
            raise DomainError("unit", self.unit, "at least 2^-52 of the limit")

    @property
    def _unit(self) -> float:
        return 1.0 if self.unit is None else self.unit

    @property
    def _limit(self) -> Fraction:
        return next(iter(self.filter.limits.values()))

    @property
    def limit(self) -> int:
        """The limit of each record, in whole units, rounded down."""
        return int(self._limit / Fraction(self._unit))

    @property
    def budget(self) -> Curators:
        """The charge to a budget above, once, before the first round: the whole limit."""
        return Curators(1, filter=self.filter, adjacency=self.adjacency)

    def start(self, count: int) -> Records:
        """Records that have spent nothing.

        Args:
            count: Their number, an integer from 0 to 10^10.
        """
        kind = np.int32 if self.limit + 1 < _NARROW else np.int64
        if not check.count("count", count) <= _MOST_RECORDS:
            raise DomainError("count", count, f"an integer from 0 to {_MOST_RECORDS}")
        return Records(np.zeros(count, dtype=kind), self)

    def step(self, state: Records, *, prices: Any) -> tuple[Records, IndividualRound]:
        """One round: the state after it, paid, and the round that may now answer. The state before it is unchanged.

        Args:
            state: The value that `start` or the last `step` returned.
            prices: The price of each record in the filter's currency, shape (records,); or one price for all. A float
                means exactly that double (of more than 64 bits it is refused); see `gaussian_prices` and
                `laplace_prices`.

        Raises:
            DomainError: If the state is another filter's, or the prices are not real numbers, or not as many as
                records: nothing about their values.
        """
        if not isinstance(state, Records) or state.filter != self:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("state", state, "records that `start` of this very filter returned")
        each = _prices(prices, state.count)
        spent, active = np.empty_like(state.spent), np.empty(state.count, dtype=np.bool_)
        scale, limit = 1.0 / self._unit, self.limit
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
        rule = self.filter.individual_gaussian
        if rule is None:
            raise UnsupportedError(
                "Gaussian noise", "it is not pure", "Use a ConcentratedFilter with delta=0"
            )
        return _raised(
            lambda ratio: rule(np.square(ratio)), sensitivity, check.positive("sigma", sigma)
        )

    def laplace_prices(self, sensitivity: Any, *, scale: float) -> Reals:
        """The prices of records whose contributions have these L1 norms, for Laplace noise of that scale; rounded up.

        Args:
            sensitivity: The distance by which each record can move the answer, shape (records,); >= 0.
            scale: The scale of the noise; finite, > 0.

        Raises:
            UnsupportedError: Under a GaussianFilter.
        """
        rule = self.filter.individual_laplace
        if rule is None:
            raise UnsupportedError(
                "Laplace noise", "it is not Gaussian", "Use a ConcentratedFilter with delta=0"
            )
        return _raised(rule, sensitivity, check.positive("scale", scale))


def _prices(prices: Any, count: int) -> Reals:
    each = _reals(prices)
    if each is None or each.shape not in ((), (count,)):
        raise DomainError(
            "prices", f"<{type(prices).__name__}>", f"one number, or an array of {count} numbers"
        )
    return np.broadcast_to(each, (count,))


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


def _raised(rule: PriceRule, sensitivity: Any, noise: float) -> Reals:
    """The price of each sensitivity / noise, rounded up; infinite for anything that is no number >= 0."""
    moved = _reals(sensitivity)
    if moved is None:
        raise DomainError(
            "sensitivity", f"<{type(sensitivity).__name__}>", "a number, or an array of numbers"
        )
    with np.errstate(all="ignore"):
        prices = rule(moved / noise)
        prices = np.where(
            moved == 0.0, 0.0, np.nextafter(prices * (1.0 + 24 * UNIT_ROUNDOFF), np.inf)
        )
        return np.where(moved >= 0.0, prices, np.inf)


def _finest(limit: Fraction) -> float:
    """The power of two of which the limit has between 2^29 and 2^30, but none below 2^-800."""
    return 2.0 ** max(math.frexp(float(limit))[1] - _FINEST, -800)


def _power_of_two(value: float) -> float:
    unit = check.positive("unit", value)
    if not (math.frexp(unit)[0] == 0.5 and 1e-250 < unit < 1e250):
        raise DomainError("unit", value, "a power of two between 1e-250 and 1e250")
    return unit
