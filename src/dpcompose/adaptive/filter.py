"""The base of every filter: caps on exact sums of named currencies, a price for a mechanism, a guarantee."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, cast

from dpcompose import check
from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import (
    Amounts,
    Exactly,
    Number,
    Total,
    above,
    below,
    exact_amounts,
    optimal,
)
from dpcompose.adaptive.theorems import OPTIMAL, Guarantee, Theorem, black_box
from dpcompose.attached import Opens
from dpcompose.errors import DomainError, few_digits
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, Priced, TypedAmounts
from dpcompose.mechanisms import Composable, serialize
from dpcompose.pictured import Card
from dpcompose.values import Adjacency, exact

MOST_PRICES = 1024
"""So many prices a filter remembers."""
BEYOND = Fraction(10) ** 36
"""More than a filter's sums ever are: each charge is at most a cap and one."""
_Texts = dict[int, tuple[Composable, str | None]]
VERSION = 2
"""The version of descriptions: in version 1 a float was exactly that double."""


@dataclass(frozen=True)
class Spending(Card):
    """The amounts spent under one filter. They never shrink, and cannot be carried to another filter.

    Args:
        filter: The filter that it was opened with.
        adjacency: The adjacency under which every charge is priced.
        spent: The exact sum of all granted charges, by currency.
        granted: The number of granted charges.
    """

    filter: Filter
    adjacency: Adjacency
    spent: Amounts
    granted: int = 0

    @property
    def left(self) -> dict[str, Fraction]:
        """The amounts that may still be spent, each currency by itself: the most that one alternative leaves."""
        most = dict.fromkeys(self.spent, Fraction(0))
        for caps in self.filter.alternatives:
            if all(self.spent[currency] <= cap for currency, cap in caps.items()):
                most |= {
                    currency: max(cap - self.spent[currency], most[currency])
                    for currency, cap in caps.items()
                }
        return most


@dataclass(frozen=True)
class Decision(Card):
    """The answer to a request: granted, or refused with the first currency that is short.

    Args:
        granted: Whether the mechanism may run.
        price: By currency.
        after: The state after the decision.
        short: The first currency, in the filter's order, of which too little is left; None if granted.
    """

    granted: bool
    price: Amounts
    after: Spending
    short: str | None = None

    @property
    def left(self) -> dict[str, Fraction]:
        """The amounts left after the decision, by currency: a refusal changes nothing."""
        return self.after.left

    @property
    def reason(self) -> str:
        """One sentence."""
        if self.short is None:
            return "granted"
        filter, spent = self.after.filter, self.after.spent
        if len(filter.alternatives) == 1:
            asked = few_digits(self.price[self.short], up=True)
            left = few_digits(self.left[self.short], up=False)
            return f"refused: {self.short} {asked} asked, {left} left"
        percent = filter.in_percent(spent, self.price)
        if percent is None:
            return f"refused: {self.short} is asked, and none is left"
        return f"refused: {percent[0]:g} % of the budget asked, {percent[1]:g} % left"


class Filter(Exactly, Opens, ABC):
    """A budget for an adversary who chooses mechanisms and their parameters from earlier answers.

    Limits on sums of non-negative amounts. A charge is granted if every sum stays within its limit; the price is known
    before the answer. Each charge is a one-shot mechanism with fresh randomness; a composition is one charge, and runs
    to its end. Every price holds for free orientations of all pairs, those inside a composition too
    (`Orientation.FREE`). A mechanism that is refused must not run.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def limits(self) -> dict[str, Fraction]:
        """The exact limit of the sum of each currency; where the theorem's is irrational, rounded down."""

    @property
    def alternatives(self) -> tuple[dict[str, Fraction], ...]:
        """Sets of limits, of some currencies each: a charge is granted if all sums stay within one of them."""
        return (self.limits,)

    @property
    def has_alternatives(self) -> bool:
        """Whether the limits are not all there is."""
        return self.alternatives != (self.limits,)

    @property
    def caps(self) -> dict[str, Fraction]:
        """The limits as money, for a ledger: rounded down to multiples of 1e-40."""
        return {currency: below(limit) for currency, limit in self.limits.items()}

    @abstractmethod
    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        """The exact amounts, in the order of the limits."""

    @property
    def theorem(self) -> Theorem | None:
        """The theorem of a budget of one alone; None where what is promised is one (epsilon, delta)."""
        return None

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole interaction, however long it is and however its parts are chosen."""

    def total(self, times: int, *, delta: float) -> Total:
        """The smallest epsilon found for `times` such budgets, fixed in advance and spent in any order, at `delta`.

        Args:
            times: The number of budgets; an integer from 0 to 10^15.
            delta: The total delta, in [0, 1]; as it is typed: a float is its shortest decimal.

        Raises:
            DomainError: If a number is outside its domain.
        """
        count, named = check.times(times), exact(check.probability("delta", delta))
        at = pricing.delta_without_rounding(named, self.omitted(count))
        if self.theorem is not None:
            return Total(self.theorem.total(count, at), *self.theorem.sums)
        return Total(optimal(cast("ApproximateDP", self.guarantee()), count, delta=at), *OPTIMAL)

    def omitted(self, times: int) -> list[tuple[Fraction, float, int]]:
        """The delta that the guarantee omits, exact and as the guarantee has it, if there is one; see `total`."""
        count, exactly, guarantee = check.times(times), self._charged_delta(), self.guarantee()
        if not exactly or not isinstance(guarantee, ApproximateDP | ConcentratedDP):
            return []
        return [(exactly, guarantee.delta, count)]

    def _charged_delta(self) -> Fraction:
        """The delta of the guarantee's promise, exact; 0 where it has none."""
        return Fraction(0) if self.theorem is None else self.theorem.omitted

    def promise(self) -> ApproximateDP | None:
        """The one (epsilon, delta) of the interaction; None where it has a whole curve."""
        guarantee = self.guarantee()
        return guarantee if isinstance(guarantee, ApproximateDP) else None

    def promised(self, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Composable:
        """The mechanism that is known by what the interaction promises alone: whole budgets compose as it does.

        Reference: [VadhanZhang2023], [Lyu2022]
        """
        if self.theorem is not None:
            return self.theorem.promised(adjacency)
        return black_box(cast("ApproximateDP", self.guarantee()), adjacency)

    def typed(self) -> TypedAmounts | None:
        """The guarantee in typed amounts, exact; None if the caps state something else."""
        return None if self.theorem is None else self.theorem.typed()

    def price(
        self,
        mechanism: Priced,
        *,
        delta: Number | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
    ) -> dict[str, Fraction]:
        """The price of a mechanism in each currency: proved upper bounds, in both directions.

        As money, for a ledger: rounded up to multiples of 1e-40. (`step` adds up the exact amounts.)

        Args:
            mechanism: A mechanism, a composition, or anything else that answers as `guarantee.Priced` does.
            delta: The delta on its curve of (epsilon, delta) at which it is charged; in [0, 1]. Needed by filters that
                charge (epsilon, delta) where the mechanism has no (epsilon, delta) of its own; ignored by the others.
            adjacency: The neighboring relation.

        Raises:
            DomainError: If delta or adjacency is outside its domain.
            UnsupportedError: If no finite price is proved.
        """
        return {
            currency: above(amount)
            for currency, amount in self._exact(mechanism, delta, adjacency).items()
        }

    def epsilon_at(self, *, delta: float) -> float:
        """The epsilon that the guarantee implies at a total delta, by the best conversion; infinite if none."""
        return self.total(1, delta=delta).epsilon

    def epsilon_of(
        self, amounts: Amounts, *, delta: float, left: bool = False, spent: Amounts | None = None
    ) -> float | None:
        """The epsilon at a total delta that these amounts alone allow, for reading; None if there is no such number.

        Args:
            amounts: By currency; others are passed over.
            delta: The total delta, in [0, 1].
            left: Whether they are what is left: of several theorems that is the most that one of them leaves, and
                of what was spent the least that one of them counts.
            spent: Where they are left, what was spent before: what a menu leaves depends on it.
        """
        stated, delta = exact_amounts("amounts", amounts), check.probability("delta", delta)
        check.flag("left", left)
        before = exact_amounts("spent", spent or {})
        found = self._epsilon_of(stated, delta, left=left, spent=before)
        return None if found is None or math.isinf(found) else found

    def _epsilon_of(
        self, amounts: Amounts, delta: float, *, left: bool, spent: Amounts
    ) -> float | None:
        """The same; the arguments are checked."""
        return None

    def used(self, spent: Amounts) -> Fraction | None:
        """The part of the budget that these sums are, under the alternative that counts the least; None if it is all.

        For reading: at most 1 while the sums are within the limits.
        """
        sums = dict.fromkeys(self.limits, Fraction(0)) | exact_amounts("spent", spent)
        parts = [_used(sums, caps) for caps in self.alternatives]
        return min((each for each in parts if each is not None), default=None)

    def in_percent(self, spent: Amounts, price: Amounts) -> tuple[float, float] | None:
        """A price, rounded up, and what is left before it, rounded down, in percent of the whole.

        None where there is none of what is asked.
        """
        before = self.used(spent) or Fraction(0)
        needed = self.used({name: amount + price[name] for name, amount in spent.items()})
        if needed is None:
            return None
        return math.ceil(10**4 * (needed - before)) / 100, math.floor(10**4 * (1 - before)) / 100

    def start(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Spending:
        """The state before any charge, under an adjacency that all charges share, once a guarantee is certain.

        Raises:
            DomainError: If there is none.
        """
        check.member("adjacency", adjacency, Adjacency)
        self.guarantee()
        return Spending(self, adjacency, dict.fromkeys(self.limits, Fraction(0)))

    def step(
        self, state: Spending, mechanism: Priced, *, delta: Number | None = None
    ) -> tuple[Spending, Decision]:
        """Ask for one more mechanism, before it runs: the state after it and the decision.

        Args:
            state: The value that `start` or the last `step` returned.
            mechanism: See `price`.
            delta: See `price`.

        Raises:
            DomainError: If the state belongs to another filter, or delta is outside its domain.
            UnsupportedError: If no finite price is proved; the state still holds.
        """
        if not isinstance(state, Spending) or (state.filter is not self and state.filter != self):  # pyright: ignore[reportUnnecessaryIsInstance]
            remedy = "A budget keeps the filter that it was opened with"
            raise DomainError("state", state, "a state of this filter", remedy)
        return charged(state, self._exact(mechanism, delta, state.adjacency))

    def _exact(self, mechanism: Any, delta: Any, adjacency: Any) -> dict[str, Fraction]:
        """The exact prices; those of the last mechanisms are remembered by their text, which says all of them.

        Never by Python's equality: 1, 1.0 and True are equal to it, and may be priced apart.
        """
        named = pricing.request(mechanism, delta, adjacency)
        if not isinstance(
            mechanism, Composable
        ):  # of others it is not known that they never change
            return dict(zip(self.limits, self._price(mechanism, named, adjacency), strict=True))
        texts, prices = self._remembered
        text_of = texts.get(id(mechanism))
        if text_of is None or text_of[0] is not mechanism:
            if len(texts) >= MOST_PRICES:
                texts.clear()
            texts[id(mechanism)] = text_of = mechanism, serialize(mechanism)
        text = text_of[1]  # not read from `texts` again, which another thread may have cleared
        key = text, named, adjacency
        known = prices.get(key) if text is not None else None
        if known is None:
            known = dict(zip(self.limits, self._price(mechanism, named, adjacency), strict=True))
            if text is not None:
                if len(prices) >= MOST_PRICES:
                    prices.clear()
                prices[key] = known
        return dict(known)

    @cached_property
    def _remembered(self) -> tuple[_Texts, dict[Any, dict[str, Fraction]]]:
        """The texts of mechanisms by their identity, and prices by text, delta and adjacency.

        Of this very filter object, whose parameters never change.
        """
        return {}, {}

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """This filter as plain text values, which `from_description` reads back to an equal filter."""


def _used(spent: Amounts, caps: Amounts) -> Fraction | None:
    """The largest part of a cap that is spent; None where something is spent of nothing."""
    if any(cap == 0 < spent[name] for name, cap in caps.items()):
        return None
    return max((spent[name] / cap for name, cap in caps.items() if cap > 0), default=Fraction(0))


def times_within(
    alternatives: Sequence[Mapping[str, Any]],
    spent: Mapping[str, Any],
    price: Mapping[str, Any],
    *,
    most_free: int = 0,
) -> int:
    """How many charges of a price are still within one of the alternatives; `most_free` where it costs nothing.

    All amounts are of one type, fractions or units.
    """
    most = 0
    for caps in alternatives:
        if all(spent[name] <= cap for name, cap in caps.items()):
            fits = [
                (cap - spent[name]) // price[name] for name, cap in caps.items() if price[name] > 0
            ]
            most = max(most, min(fits, default=most_free))
    return int(most)


def charged(state: Spending, price: Mapping[str, Fraction]) -> tuple[Spending, Decision]:
    """The decision about exact amounts, and the state after it."""
    spent = {currency: state.spent[currency] + amount for currency, amount in price.items()}
    sets = state.filter.alternatives
    if not min(price.values()) >= 0 or not any(
        all(spent[each] <= cap for each, cap in caps.items()) for caps in sets
    ):
        open_sets = [
            caps for caps in sets if all(state.spent[each] <= cap for each, cap in caps.items())
        ] or sets[:1]
        short = next(
            (
                each
                for each, cap in open_sets[-1].items()
                if not 0 <= price[each] <= cap - state.spent[each]
            )
        )
        return state, Decision(False, dict(price), state, short)
    after = Spending(state.filter, state.adjacency, spent, state.granted + 1)
    return after, Decision(True, dict(price), after)
