"""A filter for a menu that is declared beforehand: what it grants is a set of counts, or a sum of weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice, product
from operator import add, le
from typing import Any, ClassVar, Self, Unpack

from dpcompose import check
from dpcompose.adaptive import menu_search, pricing
from dpcompose.adaptive.amount import (
    Amounts,
    Number,
    nonnegative,
    probability,
    read,
    sequence,
    target,
    written,
)
from dpcompose.adaptive.budget import Budget
from dpcompose.adaptive.filter import BEYOND, VERSION, Filter, Spending, times_within
from dpcompose.adaptive.menu_search import MOST_COUNT, MOST_LISTED
from dpcompose.adaptive.worst_case import FINE, WorstCase, rounds, worst_case
from dpcompose.composition import Composable, Composition, Options, compose, gathered
from dpcompose.errors import DomainError, DPComposeError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, Priced
from dpcompose.loss import TwoPointLoss
from dpcompose.mechanisms import parse, serialize
from dpcompose.numerics import largest
from dpcompose.values import Adjacency, Orientation, exact, rounded_down, rounded_up, up

MOST_MEMBERS, MOST_ALONE_WORK = 16, 1.2e10
MOST_READING = 4e8
"""The most multiplications of a reading: about a second."""
_ZERO = Fraction(0)
_NO_GAIN = "Only what is declared counts: leave it out"


@dataclass(frozen=True, eq=False)
class MenuFilter(Filter):
    """Grants members of a menu while their counts are below one of the listed ones, or their weights within a total.

    The guarantee is the worst case over every adversary, by backward induction over what may still be granted
    (`worst_case`): whatever is asked, in whichever order of each pair, and wherever the adversary stops. With one
    member it is also that of so many, fixed in advance, for free orientations: whoever stops early ignores the
    remaining answers. So stopping adaptively is free. A charge counts as the cheapest member that it equals, or that
    is a promise which it keeps.

    >>> from dpcompose import BlackBox
    >>> budget = MenuFilter.for_target([BlackBox(1 / 64), BlackBox(1 / 8)], 1.0, 1e-6)
    >>> state, decision = budget.step(budget.start(), BlackBox(0.1))
    >>> [int(decision.left[name]) for name in budget.limits]
    [170, 7]

    Args:
        menu: Different mechanisms; at most 16.
        epsilon: Of the guarantee, in nats.
        delta: Of the guarantee: the worst case is at most this.
        states: The largest counts that may be reached, one for each member; or else:
        weights: The weight of each member, and
        total: the largest sum of weights that may be reached.
        budget: Besides or instead, a budget as which the members are granted, too: a charge is granted while either
            has granted all charges. Its delta and the worst case are together at most delta (`Budget` has the proof).
            Mechanisms that are not on the menu are then granted as the budget grants them.
        adjacency: What one person's data may change.
        orientation: FREE, or SAME for a menu of one member: one world then contains the person's record at every
            charge, as under any fixed data, and the worst case is that of so many, fixed in advance.

    Raises:
        DomainError: If an argument is outside its domain, or does not suit the menu.

    Reference: [ZhuDongWang2022, Theorem 10]
    """

    menu: tuple[Composition, ...]
    _: KW_ONLY
    epsilon: float | Fraction
    delta: float | Fraction
    states: tuple[tuple[int, ...], ...] = ()
    weights: tuple[int, ...] = ()
    total_weight: int = 0
    budget: Budget | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    orientation: Orientation = Orientation.FREE
    kind: ClassVar[str] = "menu"

    def __post_init__(self) -> None:
        check.member("adjacency", self.adjacency, Adjacency)
        menu = _menu(self.menu, self.adjacency)
        check.member("orientation", self.orientation, Orientation)
        if self.orientation is Orientation.SAME and len(menu) > 1:
            raise DomainError("orientation", self.orientation, "FREE for more than one member")
        object.__setattr__(self, "menu", menu)
        object.__setattr__(self, "epsilon", nonnegative("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        weights = _counts("weights", [self.weights], len(menu))
        states = _counts("states", self.states, len(menu))
        if bool(states) == bool(self.weights or self.budget):
            domain = "the largest counts of each member, or () where weights or a budget is given"
            remedy = "Give states alone, or else weights, a budget or both"
            raise DomainError("states", self.states, domain, remedy)
        if self.weights and not min(weights[0]) > 0:
            raise DomainError("weights", self.weights, "a positive weight for each member")
        object.__setattr__(self, "weights", weights[0] if self.weights else ())
        object.__setattr__(self, "states", tuple(menu_search.maximal(states)))
        object.__setattr__(self, "total_weight", _count("total_weight", self.total_weight))

    @classmethod
    def for_target(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls,
        menu: Sequence[Composable],
        epsilon: Number,
        delta: Number,
        *,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        work: float = menu_search.MOST_WORK,
    ) -> Self:
        """A large set of counts of a menu within (epsilon, delta), at least what a `Budget` of them grants its members.

        Where the members are so small that their worst case takes too long, it is what the budget grants.

        Args:
            menu: The mechanisms that may be asked; with few states these are listed, else weighed.
            epsilon: The target, in nats; above 0.
            delta: The target, in (0, 1).
            adjacency: What one person's data may change.
            work: The most multiplications that several members may take; 1e9 take one to four seconds.

        Raises:
            DomainError: If an argument is outside its domain, or no member fits the target even once.
            UnsupportedError: If one of several members has no pair of distributions, or takes too long and is granted
                by no budget.
        """
        check.member("adjacency", adjacency, Adjacency)
        members, most, at = _menu(menu, adjacency), *target(epsilon, delta)
        common: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
        budget = Budget(epsilon, delta)
        prices = [_priced(budget, member, adjacency) for member in members]
        start = dict.fromkeys(budget.limits, Fraction(0))
        granted = [times_within(budget.alternatives, start, each) for each in prices]
        if len(members) == 1:
            found = 0
            if not _is_symmetric(members[0], adjacency):
                with suppress(
                    UnsupportedError
                ):  # too much work: what is fixed for free orientations holds
                    case = worst_case(members, adjacency, most, at)
                    (found,) = menu_search.alone(case, at, menu_search.Allowance(MOST_ALONE_WORK))
            free = Orientation.FREE
            found = found or _fixed(members[0], most, at, adjacency=adjacency, orientation=free)
            if found < granted[0]:
                return cls(members, budget=budget, **common)
            _require_some(members, [found], epsilon, delta)
            return cls(members, weights=(1,), total_weight=found, **common)
        for member in members:
            rounds(member, adjacency)
        try:
            case, allowance = worst_case(members, adjacency, most, at), menu_search.Allowance(work)
            counts = menu_search.alone(case, at, allowance)
        except UnsupportedError:
            # Too much work to grant more than a budget does.
            if min(granted) > 0:
                return cls(members, budget=budget, **common)
            raise
        _require_some(members, counts, epsilon, delta)

        def inside(state: Sequence[int]) -> bool:
            return menu_search.holds(budget.alternatives, prices, state)

        if menu_search.few(case, counts, allowance):
            states = menu_search.listed(case, counts, at, inside, allowance)
            if states:
                return cls(members, states=tuple(states), **common)
        directions = [
            [float(price[name]) for price in prices]
            for caps in budget.alternatives
            for name in caps
            if name != "delta" and all(0 < price[name] <= caps[name] for price in prices)
        ]
        # Beside counts a budget without delta costs nothing; one with a reserve would.
        pure, others = (Budget(epsilon), budget.alternatives[1:])
        if any(price["delta"] > 0 for price in prices):
            pure, others = None, budget.alternatives
        for weights, total in menu_search.weighed(case, counts, at, directions, allowance):
            if menu_search.is_inside(others, prices, weights, total):
                return cls(members, weights=weights, total_weight=total, budget=pure, **common)
        return cls(members, budget=budget, **common)

    @classmethod
    def for_kind(
        cls,
        mechanism: Composable,
        epsilon: Number,
        delta: Number,
        *,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
    ) -> Self:
        """As many of one mechanism as fit (epsilon, delta), and others as a `Budget` of a twentieth of delta grants them.

        Raises:
            As `for_target`.
        """
        (member,), (most, at) = _menu([mechanism], adjacency), target(epsilon, delta)
        part = exact(probability("delta", delta)) / 20
        budget, left = Budget(epsilon, part), (at - rounded_up(part)) * (1 - 1e-12)
        options: dict[str, Any] = {"adjacency": adjacency, "orientation": Orientation.SAME}
        found = _fixed(member, most, left, **options)
        _require_some([member], [found], epsilon, delta)
        options |= {"epsilon": epsilon, "delta": delta, "budget": budget}
        return cls((member,), weights=(1,), total_weight=found, **options)

    @property
    def limits(self) -> dict[str, Fraction]:
        """The most of each member, whatever the others are; or the sum of weights; beside a budget beyond every sum."""
        if self.budget is not None:
            names = ["weight", *self.budget.limits] if self.weights else [*self.budget.limits]
            return dict.fromkeys(names, BEYOND)
        sets = self.alternatives
        return {name: max(caps[name] for caps in sets) for name in sets[0]}

    @cached_property
    def alternatives(self) -> tuple[dict[str, Fraction], ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The listed counts, or the sum of weights, and those of the budget."""
        counted = [{"weight": Fraction(self.total_weight)}] if self.weights else []
        counted += [
            {f"member {index}": Fraction(each) for index, each in enumerate(state, 1)}
            for state in self.states
        ]
        return (*counted, *(() if self.budget is None else self.budget.alternatives))

    def start(self, *, adjacency: Adjacency | None = None) -> Spending:
        """The state before any charge, once it is certain that the guarantee holds; under the adjacency of the menu."""
        state = super().start(adjacency=self.adjacency if adjacency is None else adjacency)
        self._same_adjacency(state.adjacency)
        return state

    def left(self, state: Spending) -> tuple[int, ...]:
        """How many more of each member would be granted, if it were the only one from now on."""
        prices = [self._exact(each, None, self.adjacency) for each in self.menu]
        return tuple(times_within(self.alternatives, state.spent, price) for price in prices)

    def guarantee(self) -> ApproximateDP:
        """(epsilon, delta)-differential privacy.

        Raises:
            DomainError: If the worst case of the counts is not within delta.
        """
        epsilon = rounded_up(exact(self.epsilon))
        beside = None if self.budget is None else self.budget.promise()
        if beside is not None and not beside.epsilon <= epsilon:
            raise DomainError("budget", self.budget, f"one of epsilon at most {self.epsilon}")
        if not self.worst <= rounded_up(exact(self.delta)):
            name = "weights" if self.weights else "states"
            raise DomainError(
                name, self.states or (self.weights, self.total_weight),
                f"a set whose worst case, {self.worst:.6g}, is at most delta = {float(self.delta):g}", "Use for_target",
            )  # fmt: skip
        return ApproximateDP(rounded_up(exact(self.epsilon)), delta=rounded_up(exact(self.delta)))

    @cached_property
    def worst(self) -> float:
        """The delta at epsilon that the worst adversary reaches, rounded up, and that of the budget."""
        counted = self._worst_counted if self.weights or self.states else 0.0
        beside = None if self.budget is None else self.budget.promise()
        lost = 0.0 if beside is None else beside.delta
        return counted if lost == 0.0 else lost if counted == 0.0 else up(counted + lost)

    @property
    def _worst_counted(self) -> float:
        epsilon = rounded_down(exact(self.epsilon))
        if len(self.menu) == 1:
            largest = self.total_weight // self.weights[0] if self.weights else self.states[0][0]
            member, delta = self.menu[0], self.delta
            options: dict[str, Any] = {"adjacency": self.adjacency, "orientation": self.orientation}
            known = (member * largest).delta(epsilon=epsilon, **options).upper
            fixed = self.orientation is Orientation.SAME or _is_symmetric(member, self.adjacency)
            if fixed or known <= delta < _worst(self, FINE[0]):
                return known
        return min(_worst(self, fine) for fine in FINE[: 1 + (_worst(self, FINE[0]) > self.delta)])

    def _charged_delta(self) -> Fraction:
        return exact(self.delta)

    def _epsilon_of(
        self, amounts: Amounts, delta: float, *, left: bool, spent: Amounts
    ) -> float | None:
        """The worst case of what is granted within these counts, and what the budget says of them."""
        readings = [self._epsilon_of_counts(amounts, delta, spent if left else None)]
        if readings[0] is not None and delta >= self.delta:
            readings[0] = min(readings[0], rounded_up(exact(self.epsilon)))
        if self.budget is not None:
            readings.append(self.budget.epsilon_of(amounts, delta=delta, left=left, spent=spent))
        known = [each for each in readings if each is not None and each < math.inf]
        return (max if left else min)(known, default=None)

    def _epsilon_of_counts(
        self, amounts: Amounts, delta: float, spent: Amounts | None
    ) -> float | None:
        """The worst case of counts up to these, and where they are left, of those that are still granted together.

        None if it is too much work for a reading.
        """
        if not self.weights and not self.states:
            return None
        epsilon, at = rounded_down(exact(self.epsilon)), rounded_down(exact(self.delta))
        names = [*self.alternatives[0]]
        counts = [int(amounts.get(name, _ZERO)) for name in names]
        if not any(counts):
            return 0.0
        if len(self.menu) == 1:
            times = counts[0] // (self.weights or (1,))[0]
            options: dict[str, Any] = {"adjacency": self.adjacency, "orientation": self.orientation}
            return (self.menu[0] * times).epsilon(delta=delta, **options).upper
        size = counts[0] if self.weights else math.prod(each + 1 for each in counts)
        case = worst_case(self.menu, self.adjacency, epsilon, at)
        if not case.work * size <= MOST_READING:
            return None
        if self.weights:
            return case.epsilon(next(islice(case.linear(self.weights), counts[0], None)), delta)
        states = [*product(*[range(each + 1) for each in counts])]
        if spent is not None:
            # Of those that are still granted together, each sum is below some of the listed counts.
            before = [int(spent.get(name, _ZERO)) for name in names]
            sums = {each: [*map(add, before, each)] for each in states}
            states = [
                each
                for each in states
                if any(all(map(le, sums[each], most)) for most in self.states)
            ]
        return case.epsilon(case.curve(states), delta)

    def _same_adjacency(self, adjacency: Adjacency) -> None:
        if adjacency is not self.adjacency:
            raise DomainError("adjacency", adjacency, f"{self.adjacency}, that of the menu")

    def _price(
        self, mechanism: Priced, delta: Fraction | None, adjacency: Adjacency
    ) -> tuple[Fraction, ...]:
        self._same_adjacency(adjacency)
        places = [
            index
            for index, member in enumerate(self.menu)
            if _is_below(mechanism, member, adjacency)
        ]
        weight = self._weight(mechanism, places) if self.weights else None
        if not places and weight is None and self.budget is None:
            reason = "it is not on the menu, nor below a promise that is"
            raise pricing.refused(mechanism, reason, "Charge what was declared")
        if self.states:
            most = list(self.limits.values())
            # A member counts as itself: the sets contain what a budget grants its members.
            charged = max(places, key=lambda index: (_is(mechanism, self.menu[index]), most[index]))
            return tuple(Fraction(index == charged) for index in range(len(self.menu)))
        counted = [self.total_weight + 1 if weight is None else weight] if self.weights else []
        prices = {} if self.budget is None else _priced(self.budget, mechanism, adjacency)
        return (*map(Fraction, counted), *prices.values())

    def _weight(self, mechanism: Priced, places: Sequence[int]) -> int | None:
        """The smallest weight of these members; without any, the sum over its parts, if all of them are members."""
        if places:
            return min(self.weights[index] for index in places)
        parts = compose(mechanism).parts if isinstance(mechanism, Composable) else ()
        members = [compose(part) for part, _ in parts]
        if not members or not all(each in self.menu for each in members):
            return None
        return sum(
            self.weights[self.menu.index(each)] * times
            for each, (_, times) in zip(members, parts, strict=True)
        )

    def description(self) -> dict[str, Any]:
        texts = [serialize(member) for member in self.menu]
        if None in texts:
            index = texts.index(None)
            raise UnsupportedError(
                f"a description with {self.menu[index]!r}", "it cannot be written down and read back",
                "Use a mechanism with a call that makes it",
            )  # fmt: skip
        return {
            "filter": self.kind, "version": VERSION, "menu": texts, "epsilon": written(self.epsilon),
            "delta": written(self.delta), "states": [list(state) for state in self.states],
            "weights": list(self.weights), "total_weight": self.total_weight, "adjacency": self.adjacency.value,
        } | (
            ({} if self.budget is None else {"budget": self.budget.description()})
            | ({} if self.orientation is Orientation.FREE else {"orientation": self.orientation.value})
        )  # fmt: skip

    @classmethod
    def described(cls, stated: Mapping[str, Any]) -> Self:
        known = ["adjacency", "delta", "epsilon", "menu", "states", "total_weight", "weights"]
        if sorted({*stated} - {"budget", "orientation"}) != known:
            raise DomainError(
                "parameters", list(stated), f"those of a menu filter: {', '.join(known)}"
            )
        values = dict(stated)
        values["menu"] = [parse(text) for text in sequence("menu", values["menu"])]
        values |= {name: read(name, values[name]) for name in ("epsilon", "delta")}
        for name, kind in (("adjacency", Adjacency), ("orientation", Orientation)):
            if name in values:
                values[name] = check.named(name, values[name], kind)
        if values.get("budget") is not None:
            values["budget"] = Budget.described(values["budget"])
        return cls(**values)


def _priced(budget: Budget, member: Priced, adjacency: Adjacency) -> dict[str, Fraction]:
    """Its prices in a budget; beyond all caps where the budget has none."""
    prices = pricing.unless_refused(lambda: budget._exact(member, None, adjacency))  # pyright: ignore[reportPrivateUsage]
    return prices or {name: cap + 1 for name, cap in budget.limits.items()}


@lru_cache(maxsize=64)
def _worst(filter: MenuFilter, fine: float) -> float:
    """The worst case by backward induction."""
    epsilon, delta = rounded_down(exact(filter.epsilon)), rounded_down(exact(filter.delta))
    case: WorstCase = worst_case(filter.menu, filter.adjacency, epsilon, delta, fine)
    if filter.states:
        return case.of(menu_search.closed(filter.states))
    return case.lattice.value(next(islice(case.linear(filter.weights), filter.total_weight, None)))


_MOST_ASKED = 36
"""Questions for epsilon until the answer is settled; a third of them by a power of the number, the others halve."""


def _is_symmetric(member: Composition, adjacency: Adjacency) -> bool:
    losses = gathered(member.parts, adjacency)
    return all(pair.symmetric for pair, _ in losses.pairs)


def _fixed(member: Composition, epsilon: float, delta: float, **options: Unpack[Options]) -> int:
    """How many fit if they are fixed in advance, at most 10^6.

    It is found by epsilon at `delta`, which grows like a power of the number, and settled by delta at `epsilon`, which is
    slow where it is far below `delta`.
    """

    def within(times: float) -> bool:
        return (member * int(times)).delta(epsilon=epsilon, **options).upper <= delta

    low, high, guess, known, power = 0, MOST_COUNT + 1, 1, None, 0.5
    for asked in range(_MOST_ASKED):
        if high - low == 1:
            break
        spent = (member * guess).epsilon(delta=delta, **options).upper
        low, high = (guess, high) if spent <= epsilon else (low, guess)
        target = math.sqrt(max(low, 1) * high)
        if 0 < spent < math.inf and asked < _MOST_ASKED // 3:
            place = math.log(guess), math.log(spent)
            if known is not None:
                power = (place[1] - known[1]) / (place[0] - known[0])
                power = min(max(power, 0.3), 1.5)
            known, more = place, math.log(max(epsilon / spent, 1e-300)) / power
            target = guess * math.exp(min(more, 40.0))
        guess = int(min(max(target, low + 1), high - 1))
    high, width = low + 1, 1
    while low and not within(low):
        low, high, width = max(low - width, 0), low, 2 * width
    while high <= MOST_COUNT and within(high):
        low, high, width = high, min(high + width, MOST_COUNT + 1), 2 * width
    return int(largest(within, low=low, high=high, middle=lambda low, high: (low + high) // 2))


def _is(mechanism: Priced, member: Composition) -> bool:
    return isinstance(mechanism, Composable) and compose(mechanism) == member


def _is_below(mechanism: Priced, member: Composition, adjacency: Adjacency) -> bool:
    """Whether it is that member, or keeps the promise that the member is."""
    if _is(mechanism, member):
        return True
    # A member whose pair is the worst of all that keep its (epsilon, delta) stands for them.
    single, typed = gathered(member.parts, adjacency).single, member.typed(adjacency=adjacency)
    if single is None or not isinstance(single.remove, TwoPointLoss) or single.remove.times > 1:
        return False
    if typed is None or typed.epsilon is None:
        return False
    with suppress(DPComposeError):
        epsilon, _ = pricing.promise(mechanism, delta=typed.delta, adjacency=adjacency)
        return epsilon <= typed.epsilon
    return False


def _menu(menu: Any, adjacency: Adjacency) -> tuple[Composition, ...]:
    """The members, checked."""
    listed = sequence("menu", menu)
    if not 1 <= len(listed) <= MOST_MEMBERS:
        raise DomainError(
            "menu",
            f"{len(listed)} members",
            f"from 1 to {MOST_MEMBERS}",
            "Declare fewer, larger ones",
        )
    accepted = "mechanisms and compositions alone"
    members = tuple([compose(check.kind("menu", each, Composable, accepted)) for each in listed])
    for index, member in enumerate(members):
        if member in members[:index]:
            raise DomainError("menu", member, "different mechanisms; it is there twice", _NO_GAIN)
        losses = gathered(member.parts, adjacency)
        sides = [loss for pair, _ in losses.pairs for loss in (pair.remove, pair.add)]
        if not losses.promises and all(
            loss.maximum <= 0 and loss.infinite_mass == 0 for loss in sides
        ):
            raise DomainError(
                "menu", member, "mechanisms of epsilon above 0; it tells nothing", _NO_GAIN
            )
        if any(loss.infinite_mass >= 1 for loss in sides):
            raise DomainError("menu", member, "mechanisms whose loss may be finite", _NO_GAIN)
    return members


def _require_some(
    menu: Sequence[Composition], counts: Sequence[int], epsilon: Number, delta: Number
) -> None:
    """Refuse a target that some member does not fit once."""
    for member, times in zip(menu, counts, strict=True):
        if not times > 0:
            domain = f"a target that {member!r:.80} fits at least once"
            raise DomainError(
                "epsilon and delta",
                (epsilon, delta),
                domain,
                "Take smaller members, or a larger target",
            )


def _counts(name: str, rows: Any, members: int) -> list[tuple[int, ...]]:
    """The rows, checked: each says how often every member of the menu was charged. Empty rows are left out."""
    listed = [sequence(name, row) for row in sequence(name, rows)]
    if not len(listed) <= MOST_LISTED or any(len(row) not in (0, members) for row in listed):
        raise DomainError(name, rows, f"lists of {members} counts, one for each member of the menu")
    return [tuple([_count(name, each) for each in row]) for row in listed if row]


def _count(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MOST_COUNT:
        raise DomainError(name, value, f"integers from 0 to {MOST_COUNT}")
    return value
