"""One budget of (epsilon, delta): it grants a charge while at least one theorem, fixed beforehand, holds for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

from dpcompose import check
from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import (
    LARGEST,
    Amounts,
    Number,
    Total,
    mapping,
    nonnegative,
    probability,
    read,
    written,
)
from dpcompose.adaptive.filter import (
    BEYOND,
    VERSION,
    Filter,
    PriceRule,
    Spending,
    times_within,
)
from dpcompose.adaptive.pricing import Remainder
from dpcompose.adaptive.theorems import (
    BasicFilter,
    ConcentratedFilter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
    Theorem,
    best_order,
)
from dpcompose.errors import DomainError
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, Priced, TypedAmounts
from dpcompose.values import Adjacency, exact, rounded_down, rounded_up

_ZERO = Fraction(0)
DEFAULT_SHARES = {
    "reserve": Fraction(10, 100),
    "zcdp": Fraction(1, 100),
    "gaussian": Fraction(30, 100),
    "renyi": Fraction(59, 100),
}
"""The parts of delta by default: within 8 percent of each theorem at the full delta (`docs/adaptivity.md`)."""
LOWER_ORDER, LOWER_SHARE = 0.65, Fraction(8, 59)
"""By default there is a second, lower Renyi order, for sampled noise: its part of the first one, less 1, and of delta."""
FEW, CUTS = 128, (8, 64, 512)
"""A mechanism that a budget would grant less than `FEW` times is also priced without its rarest losses: cut where their
mass is the reserve divided by one of `CUTS`."""
MOST_ORDERS = 3


THEOREMS: dict[str, type[Theorem]] = {
    "pure": PureFilter,
    "zcdp": ConcentratedFilter,
    "renyi": RenyiFilter,
    "gaussian": GaussianFilter,
}
"""All theorems of a budget, by the name that `only` takes."""


@dataclass(frozen=True)
class Part:
    """One theorem of a budget, for charges without a delta.

    Args:
        theorem: The theorem with its limit.
        delta: Its part of the budget's delta, exact.
    """

    theorem: Theorem
    delta: Fraction

    @classmethod
    def of_target(cls, name: str, epsilon: Fraction, delta: Fraction, order: float | None) -> Self:
        """The part with the largest limit within (epsilon, delta)."""
        if name != "renyi":
            return cls(THEOREMS[name].for_target(epsilon, delta=delta), delta)
        if order is None:
            order = _short_order(epsilon, delta)
        return cls(RenyiFilter.for_target(epsilon, delta=delta, order=order), delta)

    @property
    def name(self) -> str:
        """The key of the theorem in `THEOREMS`."""
        return next(name for name, each in THEOREMS.items() if isinstance(self.theorem, each))

    @property
    def order(self) -> float:
        """The Renyi order; 0 where there is none."""
        return self.theorem.order if isinstance(self.theorem, RenyiFilter) else 0.0

    @cached_property
    def cap(self) -> tuple[str, Fraction]:
        """The name of its currency and the largest sum."""
        ((name, cap), *_) = self.theorem.limits.items()
        return name, cap

    def epsilon(self) -> float:
        """The epsilon that the limit implies at its delta."""
        return self.theorem.epsilon_at(delta=rounded_down(self.delta))

    def description(self) -> dict[str, str]:
        """As plain text, which `described` reads."""
        return {
            "currency": self.name,
            "share": written(self.delta),
            "limit": written(self.theorem.limit),
            "order": written(self.order),
        }

    @classmethod
    def described(cls, stated: Any) -> Self:
        """The part that `description` described."""
        values = dict(mapping(stated))
        if sorted(values) != ["currency", "limit", "order", "share"]:
            raise DomainError("parts", [*values], "parts with currency, share, limit and order")
        name = _one_of("currency", values["currency"], THEOREMS)
        delta, limit = (
            exact(bounded(key, read(key, values[key])))
            for key, bounded in (("share", probability), ("limit", nonnegative))
        )
        order = float(read("order", values["order"]))
        return cls(THEOREMS[name].of_limit(limit, order), delta)


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

    epsilon: float | Fraction
    delta: float | Fraction
    reserve: Fraction
    parts: tuple[Part, ...]
    kind: ClassVar[str] = "budget"

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
        parts: list[Part] = []
        for name, share in divided.items():
            # Without a share of delta only the pure theorem says anything.
            if share > 0 or name == "pure":
                chosen = [(None, Fraction(1))]
                if name == "renyi":
                    chosen = _orders(orders, exact(most), share, single=only is not None)
                parts += [
                    Part.of_target(name, exact(most), share * weight, order)
                    for order, weight in chosen
                ]
        self._set(most, whole, kept, tuple(parts))

    def _set(
        self,
        epsilon: float | Fraction,
        delta: float | Fraction,
        reserve: Fraction,
        parts: tuple[Part, ...],
    ) -> None:
        for name, value in (
            ("epsilon", epsilon), ("delta", delta), ("reserve", reserve), ("parts", parts)
        ):  # fmt: skip
            object.__setattr__(self, name, value)
        if not parts or len({each.cap[0] for each in parts}) < len(parts):
            raise DomainError("parts", parts, "at least one theorem, each with its own currency")
        if not reserve + sum(each.delta for each in parts) <= exact(delta):
            raise DomainError("shares", parts, "shares that are with the reserve at most delta")

    def __repr__(self) -> str:
        names = {each.name for each in self.parts}
        only = "basic" if names == {"pure"} and self.reserve else self.parts[0].name
        named = "" if len(names) > 1 else f", only={only!r}"
        return f"Budget({_short(self.epsilon)}, {_short(self.delta)}{named})"

    @classmethod
    def for_target(
        cls, epsilon: Number, *, delta: Number = 0.0, mechanism_delta: Number = 0.0
    ) -> Self:
        """The budget; `mechanism_delta` is its reserve, if it is above 0."""
        return cls(epsilon, delta, reserve=mechanism_delta or None)

    @cached_property
    def _single(self) -> Filter | None:
        """The theorem's own filter, with the reserve, where it is the only one."""
        if len(self.parts) > 1:
            return None
        part = next(iter(self.parts))
        limit = part.theorem.limit
        if part.name == "zcdp":
            return ConcentratedFilter(limit, delta=self.reserve)
        if self.reserve == 0:
            return part.theorem
        return BasicFilter(limit, delta=self.reserve) if part.name == "pure" else None

    @property
    def limits(self) -> dict[str, Fraction]:
        """With several theorems beyond every sum, but for delta: it is the alternatives that limit."""
        if self._single is not None:
            return self._single.limits
        return {**{each.cap[0]: BEYOND for each in self.parts}, "delta": self.reserve}

    @property
    def alternatives(self) -> tuple[dict[str, Fraction], ...]:
        """The limit of each theorem, with the reserve that is common to all."""
        if self._single is not None:
            return (self._single.limits,)
        return self._alternatives

    @cached_property
    def _alternatives(self) -> tuple[dict[str, Fraction], ...]:
        return tuple(
            {name: cap, "delta": self.reserve} for name, cap in (each.cap for each in self.parts)
        )

    def start(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Spending:
        """The state before any charge, once it is certain that there is a guarantee, and something to spend.

        Raises:
            DomainError: If no theorem grants anything.
        """
        self.guarantee()
        if not any(each.cap[1] > 0 for each in self.parts):
            raise DomainError(
                "epsilon and delta", (self.epsilon, self.delta), "a budget that grants something"
            )
        return super().start(adjacency=adjacency)

    def guarantee(self) -> ApproximateDP:
        """The largest epsilon of the theorems, each at its share; delta is the reserve and all shares.

        Raises:
            DomainError: If a theorem has no finite epsilon at its share.
        """
        return self._guarantee

    @cached_property
    def _guarantee(self) -> ApproximateDP:
        largest = max(each.epsilon() for each in self.parts)
        if not largest <= LARGEST:
            raise DomainError(
                "shares", self.parts, "theorems that promise something at their shares"
            )
        whole = self.reserve + sum(each.delta for each in self.parts)
        return ApproximateDP(largest, delta=rounded_up(whole))

    def _total(self, times: int, delta: float) -> Total:
        return (self._single or super())._total(times, delta)

    def epsilon_of(self, amounts: Amounts, *, delta: float, left: bool = False) -> float | None:
        """Each theorem at its share of delta: the most that one of them leaves, or the least that one counts."""
        if self._single is not None:
            return self._single.epsilon_of(amounts, delta=delta, left=left)
        check.probability("delta", delta)
        check.flag("left", left)
        known = [
            each.theorem.epsilon_of(
                {**mapping(amounts), "delta": _ZERO}, delta=rounded_down(each.delta)
            )
            for each in self.parts
        ]
        return (max if left else min)((each for each in known if each is not None), default=None)

    def promise(self) -> ApproximateDP | None:
        return self.guarantee() if self._single is None else self._single.promise()

    def _charged_delta(self) -> Fraction:
        if self._single is not None:
            return self._single._charged_delta()
        return self.reserve + sum(each.delta for each in self.parts)

    def concentrated(self) -> ConcentratedDP | None:
        return None if self._single is None else self._single.concentrated()

    def divergence(self, order: float) -> float:
        return super().divergence(order) if self._single is None else self._single.divergence(order)

    def typed(self) -> TypedAmounts | None:
        return None if self._single is None else self._single.typed()

    def mu_of(self, times: int) -> float | None:
        return super().mu_of(times) if self._single is None else self._single.mu_of(times)

    @property
    def individual_gaussian(self) -> PriceRule | None:
        return None if self._single is None else self._single.individual_gaussian

    @property
    def individual_laplace(self) -> PriceRule | None:
        return None if self._single is None else self._single.individual_laplace

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        """All prices of one decomposition: of those that are tried, the one that this budget would grant most often.

        Sampled noise has large losses that are rare: they make its divergence useless, and a part of the reserve pays
        for them. Which decomposition it is, depends on the budget, the mechanism and the delta that was named alone.
        """
        if self._single is not None:
            return self._single._price(mechanism, delta, adjacency)
        whole = pricing.remainder(mechanism, delta=delta, adjacency=adjacency)
        prices = [self._amounts(whole, mechanism)]
        if whole.is_divergence_alone and self.reserve and self._times(prices[0]) < FEW:
            prices += [
                self._amounts(
                    pricing.remainder(
                        mechanism, delta=delta, adjacency=adjacency, cut=self.reserve / part
                    ),
                    mechanism,
                )
                for part in CUTS
            ]
        return max(prices, key=self._times)

    def _times(self, price: Sequence[Fraction]) -> int:
        """How often a charge of this price alone would be granted."""
        named = dict(zip(self.limits, price, strict=True))
        return times_within(self.alternatives, dict.fromkeys(named, _ZERO), named)

    def _amounts(self, remainder: Remainder, mechanism: Priced) -> tuple[Fraction, ...]:
        """The amounts of a remainder; where a theorem has none, or more than is ever granted, its limit and one."""
        prices = [each.theorem.amount(remainder) for each in self.parts]
        if not any(price is not None for price in prices):
            reason = "it is neither pure nor has a rho, a Renyi divergence or an (epsilon, delta)"
            raise pricing.refused(mechanism, reason, "Name the delta to be charged: delta=...")
        amounts = [
            cap + 1 if price is None else min(price, cap + 1)
            for price, (_, cap) in zip(prices, (each.cap for each in self.parts), strict=True)
        ]
        return (*amounts, remainder.delta)

    def description(self) -> dict[str, Any]:
        return {
            "filter": self.kind,
            "version": VERSION,
            "epsilon": written(exact(self.epsilon)),
            "delta": written(exact(self.delta)),
            "reserve": written(self.reserve),
            "parts": [each.description() for each in self.parts],
        }

    @classmethod
    def described(cls, stated: Mapping[str, Any]) -> Self:
        named = ["delta", "epsilon", "parts", "reserve"]
        parts = stated.get("parts")
        if sorted(stated, key=str) != named or not isinstance(parts, list | tuple):
            raise DomainError("parameters", [*stated], f"those of a budget: {', '.join(named)}")
        budget = cls.__new__(cls)
        budget._set(
            nonnegative("epsilon", read("epsilon", stated["epsilon"])),
            probability("delta", read("delta", stated["delta"])),
            exact(probability("reserve", read("reserve", stated["reserve"]))),
            tuple(Part.described(each) for each in parts),  # pyright: ignore[reportUnknownVariableType]
        )
        return budget


def _orders(
    stated: Sequence[float | None] | None, epsilon: Fraction, share: Fraction, *, single: bool
) -> list[tuple[float | None, Fraction]]:
    """The Renyi orders of a budget, each with its part of their share."""
    if stated is not None:
        return [(each, Fraction(1, len(stated))) for each in stated]
    if single:
        return [(None, Fraction(1))]
    first = _short_order(epsilon, share * (1 - LOWER_SHARE))
    lower = 1.0 + float(f"{LOWER_ORDER * (first - 1.0):.2g}")
    return [(first, 1 - LOWER_SHARE), (lower, LOWER_SHARE)]


def _short_order(epsilon: Fraction, delta: Fraction) -> float:
    """About the best order for many answers of small loss; to two digits, so that nested budgets often share it."""
    if epsilon == 0:
        return 2.0
    return 1.0 + float(f"{best_order(rounded_down(epsilon), rounded_down(delta)) - 1.0:.2g}")


def _short(value: float | Fraction) -> str:
    """A number as it may have been typed."""
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
        _one_of("only", only, [*THEOREMS, "basic"])
        if shares is not None:
            raise DomainError("shares", shares, "left out beside only, which has all of delta")
        if only == "basic":
            return delta if kept is None else kept, {"pure": _ZERO}
        kept = kept or _ZERO
        if kept and only != "zcdp":
            raise DomainError("reserve", reserve, f"left out: a {only} budget charges no delta")
        return kept, {only: delta - kept}
    if shares is None:
        kept = delta * DEFAULT_SHARES["reserve"] if kept is None else kept
        weights = {name: DEFAULT_SHARES[name] for name in THEOREMS if name != "pure"}
        whole = sum(weights.values(), _ZERO)
        divided = {name: (delta - kept) * weight / whole for name, weight in weights.items()}
        return kept, {"pure": _ZERO, **divided}
    stated: dict[str, Fraction] = {"pure": _ZERO}
    for name, share in mapping(shares).items():
        _one_of("shares", name, [each for each in THEOREMS if each != "pure"])
        stated[name] = exact(probability(f"shares[{name!r}]", share))
    used = sum(stated.values(), _ZERO)
    kept = delta - used if kept is None else kept
    if not kept >= 0 or not kept + used <= delta:
        raise DomainError(
            "shares", dict(shares), f"that are with the reserve at most {float(delta):g}"
        )
    return kept, stated
