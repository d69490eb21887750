"""One budget of (epsilon, delta): it grants a charge while at least one theorem, fixed beforehand, holds for it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Self

from dpcompose import check
from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import (
    LARGEST,
    Amounts,
    Number,
    mapping,
    nonnegative,
    probability,
    read,
    written,
)
from dpcompose.adaptive.filter import BEYOND, VERSION, Filter, Spending, times_within
from dpcompose.adaptive.pricing import Remainder
from dpcompose.adaptive.theorems import THEOREMS, Guarantee, Theorem, best_order
from dpcompose.errors import DomainError
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, Priced
from dpcompose.values import Adjacency, exact, rounded_down, rounded_up

_ZERO = Fraction(0)
DEFAULT_RESERVE = Fraction(10, 100)
DEFAULT_SHARES = {
    "zcdp": Fraction(1, 100),
    "renyi": Fraction(59, 100),
    "gaussian": Fraction(30, 100),
}
"""The parts of delta by default: within 8 percent of each theorem at the full delta (`docs/adaptivity.md`)."""
LOWER_ORDER, LOWER_SHARE = 0.65, Fraction(8, 59)
"""By default there is a second, lower Renyi order, for sampled noise: its part of the first one, less 1, and of delta."""
FEW, CUTS = 128, (8, 64, 512)
"""A mechanism that a budget would grant less than `FEW` times is also priced without its rarest losses: cut where their
mass is the reserve divided by one of `CUTS`."""
MOST_ORDERS = 3
MOST_PRICE = Fraction(10**9)
"""No more is charged where less than that is all of a limit, so that no sum is ever `BEYOND`."""


@dataclass(frozen=True, eq=False, init=False)
class Budget(Filter):
    """A budget of (epsilon, delta) for charges that are chosen from earlier answers, of whatever kind they are.

    Nobody has to choose a theorem: pure epsilons, rho, Renyi divergences and mu squared are all added up, each within a
    limit fixed at opening, and a charge is granted while one of the sums is within its limit. Delta is divided
    beforehand: a reserve r for the deltas of the charges, and a share s_i for each theorem (the pure one needs none).

    *Why it is (epsilon, delta)-DP.* Each charge is one mixture, (1 - d)(P', Q') + d (anything), fixed before its
    answer, and all its prices are those of the same (P', Q'). Give the adversary the coin that says which of the two
    was drawn. At every round both worlds show the coin with the same probability d, and every theorem grants only while
    the sum of the d is at most r along the path: so some coin shows with probability at most E[sum of d] <= r. On the
    paths without one, both worlds' densities carry the same factor, the product of the 1 - d, which is at most 1.
    There let E be an event, and E_i the part of it that ends with theorem i within its limit, i the first such theorem.
    Sums never shrink, every theorem counts every charge, and a charge without a price in its currency takes it beyond
    its limit for ever: so theorem i was within its limit after every round, too. The adversary who stops where
    theorem i would refuse reaches E_i with the same probability in either world, and theorem i holds him to
    P(E_i) - e^epsilon Q(E_i) <= s_i. The sum over all i, and r, is delta. Prices are those of the larger order of
    each pair (`Orientation.FREE`), so the argument holds for adversaries who turn pairs.

    >>> from dpcompose import BlackBox, Gaussian
    >>> budget = Budget(1, 1e-6)
    >>> state, decision = budget.step(budget.start(), Gaussian(10.0))
    >>> state, decision = budget.step(state, BlackBox(0.01, delta=1e-10))
    >>> decision.granted, budget.guarantee().epsilon <= 1.0
    (True, True)

    Args:
        epsilon: In nats; in [0, 1e15]. A float means its shortest decimal.
        delta: In [0, 1]; with 0 only pure mechanisms are granted.
        only: One theorem alone, for whoever must cite it: "pure", "basic", "zcdp", "renyi" or "gaussian". Then all of
            delta is its own, but for the reserve.
        reserve: The part of delta for the deltas of the charges; by default a tenth, with `only` nothing, and all of
            it for "basic".
        shares: The part of delta of each theorem by name, such as {"renyi": 5e-7}; a theorem left out has none.
        orders: The orders of the Renyi divergences, at most three, which share equally; a None among them is the best
            order for many answers of small loss. By default that one and, but for `only`, a lower one.

    Raises:
        DomainError: If an argument is outside its domain, or the budget promises nothing.

    Reference: [RogersRothUllmanVadhan2016], [FeldmanZrnic2021], [WhitehouseRamdasRogersWu2023], [SmithThakurta2022]
    """

    epsilon: float | Fraction | None
    delta: float | Fraction | None
    reserve: Fraction
    parts: tuple[Theorem, ...]

    def __init__(
        self,
        epsilon: Number,
        delta: Number = 0,
        *,
        only: str | None = None,
        reserve: Number | None = None,
        shares: Mapping[str, Number] | None = None,
        orders: Sequence[float | None] | None = None,
    ) -> None:
        most, whole = nonnegative("epsilon", epsilon), probability("delta", delta)
        kept, divided = _divided(exact(whole), only, reserve, shares)
        if orders is not None and not (
            isinstance(orders, list | tuple) and 1 <= len(orders) <= MOST_ORDERS
        ):
            raise DomainError("orders", orders, f"from 1 to {MOST_ORDERS} orders")
        target = exact(most)
        # Without a share of delta only the pure theorem says anything; alone it may have the reserve for itself.
        divided = {
            name: portion for name, portion in divided.items() if portion > 0 or name in _PURE
        }
        if not divided:
            beside = "a delta above the reserve, without which this theorem promises nothing"
            raise DomainError("delta and reserve", (delta, reserve or 0), beside)
        if [*divided] == ["pure"] and kept > 0:
            divided = {"basic": _ZERO}
        alone = len(divided) == 1 and (orders is None or len(orders) == 1)
        parts = [
            THEOREMS[name].of_target(
                target, portion * weight, reserve=kept if alone else _ZERO, order=order
            )
            for name, portion in divided.items()
            for order, weight in (
                _orders(orders, target, portion, single=alone) if name == "renyi" else _NO_ORDER
            )
        ]
        self._set(tuple(parts), kept, most, whole)

    def _set(
        self,
        parts: tuple[Theorem, ...],
        reserve: Fraction,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction | None = None,
    ) -> Self:
        if not parts or len({each.currency for each in parts}) < len(parts):
            raise DomainError("parts", parts, "at least one theorem, each with its own currency")
        used = reserve + sum(each.portion for each in parts)
        if delta is not None and not used <= exact(delta):
            raise DomainError("shares", parts, "shares that are with the reserve at most delta")
        values = {"epsilon": epsilon, "delta": delta, "reserve": reserve, "parts": parts}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        return self

    @classmethod
    def limited(cls, theorem: str, limit: Number, *, delta: Number = 0, order: float = 0.0) -> Self:
        """The budget of one theorem alone with a limit in its own parameter, and not of a target.

        Args:
            theorem: See `only`.
            limit: The largest sum of epsilon, of rho, or of the Renyi divergence of an order; or mu, the root of the
                largest sum of mu squared; in [0, 1e15]. A float means its shortest decimal.
            delta: The largest sum of the deltas of charges, in [0, 1]; 0 but for "basic" and "zcdp".
            order: Of the Renyi divergence; finite, > 1.

        Raises:
            DomainError: If an argument is outside its domain.
        """
        row = THEOREMS[_one_of("theorem", theorem, THEOREMS)]
        if check.real("order", order) != 0 and theorem != "renyi":
            raise DomainError("order", order, f"0: a {theorem} budget has no order")
        part = row(limit, delta, order)  # pyright: ignore[reportArgumentType]
        if not part.charges_delta and not part.reserve == 0:
            raise DomainError("delta", delta, f"0: a {theorem} budget charges no delta")
        return cls.of_theorem(part)

    @classmethod
    def of_theorem(cls, part: Theorem) -> Self:
        """The budget of this theorem alone."""
        return cls.__new__(cls)._set((part,), exact(part.reserve))

    def __repr__(self) -> str:
        part = self.parts[0]
        if self.epsilon is not None:
            alone = len({each.name for each in self.parts}) == 1
            only = f", only={part.name!r}" if alone else ""
            return f"Budget({_short(self.epsilon)}, {_short(self.delta)}{only})"
        delta = f", delta={_short(self.reserve)}" if self.reserve else ""
        order = f", order={part.order!r}" if part.order else ""
        return f"Budget.limited({part.name!r}, {_short(part.limit)}{delta}{order})"

    @property
    def theorem(self) -> Theorem | None:
        return self.parts[0] if len(self.parts) == 1 else None

    @property
    def kind(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The name of the theorem that it has alone, else "budget"."""
        return "budget" if self.theorem is None else self.theorem.kind

    @property
    def limits(self) -> dict[str, Fraction]:
        """With several theorems beyond every sum, but for delta: it is the alternatives that limit."""
        if self.theorem is not None:
            return self.theorem.caps
        return {**{each.currency: BEYOND for each in self.parts}, "delta": self.reserve}

    @cached_property
    def alternatives(self) -> tuple[dict[str, Fraction], ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The limit of each theorem, with the reserve that is common to all."""
        if self.theorem is not None:
            return (self.limits,)
        return tuple({each.currency: each.cap, "delta": self.reserve} for each in self.parts)

    def start(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Spending:
        """The state before any charge, once it is certain that there is a guarantee, and something to spend.

        Raises:
            DomainError: If no theorem grants anything.
        """
        state = super().start(adjacency=adjacency)
        if self.epsilon is not None and not any(each.cap > 0 for each in self.parts):
            raise DomainError(
                "epsilon and delta", (self.epsilon, self.delta), "a budget that grants something"
            )
        return state

    def guarantee(self) -> Guarantee:
        """The largest epsilon of the theorems, each at its share; delta is the reserve and all shares.

        Without a target it is what its one theorem promises.

        Raises:
            DomainError: If a theorem has no finite epsilon at its share.
        """
        return self._guarantee

    @cached_property
    def _guarantee(self) -> Guarantee:
        own = None if self.theorem is None else self.theorem.guarantee()
        if own is not None and (self.epsilon is None or isinstance(own, ApproximateDP)):
            return own
        if isinstance(own, ConcentratedDP):
            omitted = [(self.reserve, own.delta, 1)] if self.reserve else []
            at = pricing.delta_without_rounding(self.reserve + self.parts[0].portion, omitted)
            largest = self.parts[0].epsilon(at)
        else:
            largest = max(each.epsilon(rounded_down(each.portion)) for each in self.parts)
        if not largest <= LARGEST:
            raise DomainError(
                "shares", self.parts, "theorems that promise something at their shares"
            )
        whole = self.reserve + sum(each.portion for each in self.parts)
        return ApproximateDP(largest, delta=rounded_up(whole))

    def _charged_delta(self) -> Fraction:
        if self.theorem is not None:
            return self.theorem.omitted
        return sum((each.portion for each in self.parts), self.reserve)

    def _epsilon_of(
        self, amounts: Amounts, delta: float, *, left: bool, spent: Amounts
    ) -> float | None:
        """Each theorem at its share of delta: the most that one of them leaves, or the least that one counts."""
        # Alone a theorem has all of delta, and counts the deltas that were charged.
        alone = self.theorem is not None
        reserve = amounts.get("delta", _ZERO) if alone and self.parts[0].charges_delta else _ZERO
        known = [
            each.epsilon_of(
                amounts[each.currency],
                delta if alone else rounded_down(each.portion),
                reserve=reserve,
            )
            if amounts[each.currency]
            else 0.0
            for each in self.parts
            if each.currency in amounts
        ]
        known = [each for each in known if not math.isinf(each)]
        return (max if left else min)(known, default=None)

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        """All prices of one decomposition: of those that are tried, the one that this budget would grant most often.

        Sampled noise has large losses that are rare: they make its divergence useless, and a part of the reserve pays
        for them. Which decomposition it is, depends on the budget, the mechanism and the delta that was named alone.
        """
        if self.theorem is not None:
            return self.theorem.price(mechanism, delta, adjacency)
        remainder = partial(pricing.remainder, mechanism, delta=delta, adjacency=adjacency)
        whole = remainder()
        prices = [self._amounts(whole, mechanism)]
        if whole.is_divergence_alone and self.reserve and self._times(prices[0]) < FEW:
            cut = [remainder(cut=self.reserve / part) for part in CUTS]
            prices += [self._amounts(each, mechanism) for each in cut]
        return max(prices, key=self._times)

    def _times(self, price: Sequence[Fraction]) -> int:
        """How often a charge of this price alone would be granted."""
        named = dict(zip(self.limits, price, strict=True))
        return times_within(self.alternatives, dict.fromkeys(named, _ZERO), named)

    def _amounts(self, remainder: Remainder, mechanism: Priced) -> tuple[Fraction, ...]:
        """The amounts of a remainder; where a theorem has none, its limit and one, so that it never grants again."""
        prices = [each.amount(remainder) for each in self.parts]
        if not any(price is not None for price in prices):
            reason = "it is neither pure nor has a rho, a Renyi divergence or an (epsilon, delta)"
            raise pricing.refused(mechanism, reason, "Name the delta to be charged: delta=...")
        priced = zip(prices, [each.cap for each in self.parts], strict=True)
        amounts = [
            cap + 1 if one is None else min(one, max(cap + 1, MOST_PRICE)) for one, cap in priced
        ]
        return (*amounts, remainder.amounts.delta)

    def description(self) -> dict[str, Any]:
        if self.epsilon is None or self.delta is None:
            part = self.parts[0]
            return {"filter": part.kind, "version": VERSION, **part.stated()}
        target = {
            "epsilon": exact(self.epsilon),
            "delta": exact(self.delta),
            "reserve": self.reserve,
        }
        numbers = {name: written(value) for name, value in target.items()}
        parts = [each.described() for each in self.parts]
        return {"filter": "budget", "version": VERSION, **numbers, "parts": parts}

    @classmethod
    def described(cls, stated: Mapping[str, Any]) -> Self:
        """The budget of a target that a description states, whose parts are those of its opening.

        Raises:
            DomainError: If a key is unknown or missing, or a value is outside its domain.
        """
        named, stated = ["delta", "epsilon", "parts", "reserve"], mapping(stated)
        parts = stated.get("parts")
        if sorted({*stated} - {"filter", "version"}, key=str) != named or not isinstance(
            parts, list | tuple
        ):
            raise DomainError("parameters", [*stated], f"those of a budget: {', '.join(named)}")
        reserve = exact(probability("reserve", read("reserve", stated["reserve"])))
        own = reserve if len(parts) == 1 else _ZERO  # pyright: ignore[reportUnknownArgumentType]
        theorems = tuple([_part(each, own) for each in parts])  # pyright: ignore[reportUnknownVariableType]
        epsilon = nonnegative("epsilon", read("epsilon", stated["epsilon"]))
        delta = probability("delta", read("delta", stated["delta"]))
        return cls.__new__(cls)._set(theorems, reserve, epsilon, delta)


def _part(stated: Any, reserve: Fraction) -> Theorem:
    """The part of a budget that a description states."""
    values = dict(mapping(stated))
    if sorted(values) != ["currency", "limit", "order", "share"]:
        raise DomainError("parts", [*values], "parts with currency, share, limit and order")
    name = _one_of("currency", values.pop("currency"), THEOREMS)
    row = THEOREMS["basic" if name == "pure" and reserve else name]
    numbers = {name: read(name, text) for name, text in values.items()}
    portion = exact(probability("share", numbers["share"]))
    return row(
        exact(nonnegative("limit", numbers["limit"])), reserve, float(numbers["order"]), portion
    )


_NO_ORDER = [(0.0, Fraction(1))]
_PURE = ("pure", "basic")


def _orders(
    stated: Sequence[float | None] | None,
    epsilon: Fraction,
    portion: Fraction,
    *,
    single: bool = False,
) -> list[tuple[float, Fraction]]:
    """The Renyi orders of a budget, each with its part of their share."""
    if stated is None and single:
        stated = (None,)
    if stated is not None:
        part = Fraction(1, len(stated))
        return [
            (_short_order(epsilon, portion * part) if each is None else check.order(each), part)
            for each in stated
        ]
    first = _short_order(epsilon, portion * (1 - LOWER_SHARE))
    lower = 1.0 + float(f"{LOWER_ORDER * (first - 1.0):.2g}")
    return [(first, 1 - LOWER_SHARE), (lower, LOWER_SHARE)]


def _short_order(epsilon: Fraction, delta: Fraction) -> float:
    """About the best order for many answers of small loss; to two digits, so that nested budgets often share it."""
    if epsilon == 0:
        return 2.0
    return 1.0 + float(f"{best_order(rounded_down(epsilon), rounded_down(delta)) - 1.0:.2g}")


def _short(value: float | Fraction | None) -> str:
    """A number as it may have been typed."""
    value = 0.0 if value is None else value
    decimal = repr(float(value)).removesuffix(".0")
    return decimal if exact(float(value)) == exact(value) else str(value)


def _one_of(name: str, value: Any, listed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in listed:
        raise DomainError(name, value, f"one of {', '.join(listed)}")
    return value


def _divided(
    delta: Fraction,
    only: str | None,
    reserve: Number | None,
    shares: Mapping[str, Number] | None,
) -> tuple[Fraction, dict[str, Fraction]]:
    """The reserve, and the share of each theorem that the budget has."""
    kept = None if reserve is None else exact(probability("reserve", reserve))
    if kept is not None and not kept <= delta:
        raise DomainError("reserve", reserve, f"at most delta = {float(delta):g}")
    if only is not None:
        _one_of("only", only, THEOREMS)
        if shares is not None:
            raise DomainError("shares", shares, "left out beside only, which has all of delta")
        if kept and only not in ("basic", "zcdp"):
            raise DomainError("reserve", reserve, f"left out: a {only} budget charges no delta")
        if only == "basic":
            return delta if kept is None else kept, {"basic": _ZERO}
        return kept or _ZERO, {only: delta - (kept or _ZERO)}
    stated: dict[str, Fraction] = {}
    if shares is None:
        kept = delta * DEFAULT_RESERVE if kept is None else kept
        left = (delta - kept) / sum(DEFAULT_SHARES.values())
        stated = {name: left * weight for name, weight in DEFAULT_SHARES.items()}
    else:
        for name, portion in mapping(shares).items():
            _one_of("shares", name, DEFAULT_SHARES)
            stated[name] = exact(probability(f"shares[{name!r}]", portion))
    used = sum(stated.values(), _ZERO)
    kept = delta - used if kept is None else kept
    if not 0 <= kept <= delta - used:
        domain = f"that are with the reserve at most {float(delta):g}"
        raise DomainError("shares", dict(shares or {}), domain)
    return kept, {"pure": _ZERO, **stated}
