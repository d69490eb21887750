"""Scopes: a tree of budgets, what they cap, when they renew, what was spent, and how a cost moves up their chain."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from math import ceil
from typing import Any, Self, cast

from dpcompose.errors import (
    CurrencyError,
    DomainError,
    OverdrawnError,
    UnsupportedError,
    few_digits,
)
from dpcompose.ledger.amount import Amount, Amounts
from dpcompose.ledger.front import Front, Vector, largest, maximal, summed
from dpcompose.pictured import Card

_CALENDAR: Mapping[str, tuple[int, int]] = {
    "year": (12, 0), "quarter": (3, 0), "month": (1, 0), "week": (0, 7 * 86400), "day": (0, 86400)
}  # fmt: skip
_ISO = re.compile(
    r"P(?:(\d{1,5})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,8})H)?(?:(\d{1,10})M)?(?:(\d{1,11})S)?)?",
    re.ASCII,
)
_MONDAY = datetime(1969, 12, 29)
"""Where periods of a fixed length are counted from, so that those of seven days are the weeks of the calendar."""

LONGEST_YEARS = 100
_DOMAIN = "year, quarter, month, week, day, or a duration such as P30D or PT12H: whole months, or whole seconds"


@dataclass(frozen=True)
class Renewal:
    """The length of the periods: in months, or in seconds.

    >>> Renewal.read("quarter").index("2030-05-01T00:00:00.000000Z")
    8121
    >>> Renewal.read("quarter").bounds(8121)
    ('2030-04-01', '2030-07-01')

    Args:
        months: Of the calendar; 0 if the length is fixed.
        seconds: Otherwise, the length.
    """

    months: int
    seconds: int

    @classmethod
    def read(cls, value: Any, *, name: str = "renew") -> Self:
        """The renewal that a text or a `timedelta` means; `name` is told where it means none.

        Raises:
            DomainError: It means none, or one longer than a hundred years.
        """
        if isinstance(value, str) and value in _CALENDAR:
            return cls(*_CALENDAR[value])
        found = cls._of(value, name)
        if not (
            0 < found.months <= 12 * LONGEST_YEARS
            or 0 < found.seconds <= LONGEST_YEARS * 365 * 86400
        ):
            raise DomainError(name, value, f"{_DOMAIN}, of at most {LONGEST_YEARS} years")
        return found

    @classmethod
    def _of(cls, value: Any, name: str) -> Self:
        if isinstance(value, timedelta) and not value.microseconds:
            return cls(0, value.days * 86400 + value.seconds)
        match = _ISO.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise DomainError(name, value, _DOMAIN)
        years, months, *fixed = (int(number or 0) for number in match.groups())
        seconds = sum(
            number * each
            for number, each in zip(fixed, (7 * 86400, 86400, 3600, 60, 1), strict=True)
        )
        if (years or months) and seconds:
            raise DomainError(name, value, _DOMAIN)
        return cls(12 * years + months, seconds)

    @property
    def text(self) -> str:
        """The one way to write it: a word of the calendar, or a duration of ISO 8601."""
        for word, each in _CALENDAR.items():
            if each == (self.months, self.seconds):
                return word
        if self.months:
            return f"P{self.months}M" if self.months % 12 else f"P{self.months // 12}Y"
        return f"P{self.seconds // 86400}D" if self.seconds % 86400 == 0 else f"PT{self.seconds}S"

    @property
    def words(self) -> str:
        """Such as "each year" or "each P30D"."""
        return f"each {self.text}"

    def index(self, time: str) -> int:
        """The number of the period that holds a recorded time; later times have no smaller number.

        Raises:
            ValueError: It is no time.
        """
        if self.months:
            return (int(time[:4]) * 12 + int(time[5:7]) - 1) // self.months
        return _seconds(time[:19]) // self.seconds

    def bounds(self, index: int) -> tuple[str, str]:
        """The first moment of a period, and that of the next."""
        if self.months:
            starts = [divmod((index + step) * self.months, 12) for step in (0, 1)]
            first, last = (f"{year:04}-{month + 1:02}-01" for year, month in starts)
            return first, last
        first, last = (
            (_MONDAY + timedelta(seconds=self.seconds * (index + step))) for step in (0, 1)
        )
        short = 10 if self.seconds % 86400 == 0 else 19
        return first.isoformat()[:short], last.isoformat()[:short]

    def touched(self, window: Renewal | Fraction) -> int:
        """The most periods that a window touches, wherever it lies: of a length, or of so many periods.

        All but the first and the last lie in it whole. A window of months ends on the day of the month on which it
        began, or on the last one if that month has no such day.
        """
        if isinstance(window, Fraction):
            return ceil(window) + 1
        if bool(window.months) == bool(self.months):
            return ceil(Fraction(window.months or window.seconds, self.months or self.seconds)) + 1
        longest = _days(window.months, year=366, month=31) * 86400 or window.seconds
        shortest = _days(self.months, year=365, month=28) * 86400 or self.seconds
        return ceil(Fraction(longest, shortest)) + 1


def _days(months: int, *, year: int, month: int) -> int:
    """The days of so many months in a row, each of them and each twelve of them as long as that, or as short."""
    return months // 12 * year + months % 12 * month


@lru_cache(maxsize=1 << 8)
def _seconds(second: str) -> int:
    """From that Monday on; a text is read once, because many charges share a second with the one before."""
    return (datetime.fromisoformat(second) - _MONDAY) // timedelta(seconds=1)


_NEVER: tuple[Mapping[str, int], ...] = ({"nothing that is charged": -1},)


class Kind(StrEnum):
    """How a scope treats the spending of its children."""

    FILTER = "filter"
    """Charges and children add up, within the caps."""
    SLOTS = "slots"
    """A fixed number of children with the same fixed caps; what they spend stops here."""
    PARTITION = "partition"
    """Children hold disjoint people: what goes up is what a person in one of them may have spent, at most."""


@dataclass(frozen=True)
class Scope:
    """A scope as it was opened; it never changes.

    Args:
        path: Its name, such as `world/acme/sales`.
        kind: What it does with its children's spending.
        caps: The most that may be spent, by currency; for slots, in each of them.
        slots: How many children a scope of kind slots has room for; None for the others.
        description_text: What it is, as JSON; a filter's description goes here.
        opened: The sequence number of the entry that opened it.
    """

    path: str
    kind: Kind
    caps: Amounts
    slots: int | None
    description_text: str
    opened: int

    @property
    def root(self) -> str:
        """The top-level scope above it, or itself."""
        return root_of(self.path)

    @property
    def parent(self) -> str | None:
        """The path of the scope above it; None at the top."""
        return self.path.rpartition("/")[0] or None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def description(self) -> dict[str, Any]:
        """The description, as a fresh mapping."""
        return json.loads(self.description_text)

    @cached_property
    def _budget(self) -> Mapping[str, Any]:
        """The part of its description about its budget."""
        budget: Any = self.description.get("budget")
        return cast("dict[str, Any]", budget) if isinstance(budget, dict) else {}

    @property
    def schedule(self) -> Any:
        """The schedule committed at its opening: texts of mechanisms with counts, in order; None if there is none."""
        return self._budget.get("schedule") or None

    @cached_property
    def renewal(self) -> Renewal | None:
        """How it renews, committed at its opening: each period has the same caps, and a balance of its own.

        Raises:
            DomainError: What it commits to is none that this version knows.
        """
        stated = self._budget.get("renew", "")
        found = Renewal.read(stated) if "renew" in self._budget else None
        if found is not None and found.text != stated:
            raise DomainError("renew", stated, f"{found.text!r}, the one way to write it")
        return found

    @cached_property
    def alternatives(self) -> tuple[Mapping[str, int], ...]:
        """Caps on some of the currencies each, one of which must hold besides the scope's own; empty if none is stated.

        What cannot be read holds for nothing: then nothing can be charged.
        """
        stated = self._budget.get("alternatives")
        if stated is None:
            return ()
        try:
            read = tuple([dict(Amounts.read(each).units) for each in stated])
            return (
                read
                if all(each and each.keys() <= self.caps.keys() for each in read) and read
                else _NEVER
            )
        except (DomainError, TypeError):
            return _NEVER

    @cached_property
    def has_fronts(self) -> bool:
        """Whether a partition tells apart those in different children; without, the largest of each amount counts."""
        return self.kind is Kind.PARTITION and self._budget.get("fronts") is True

    def used(self, spent: Mapping[str, int]) -> Fraction | None:
        """The part of the budget that a balance is, under the alternative that counts the least; None without a cap."""
        # A cap of 0 has no parts: one unit of it is already more than the whole.
        parts = [
            [Fraction(spent.get(name, 0), cap or 1) for name, cap in caps.items()]
            for caps in self.alternatives or (self.caps.units,)
        ]
        return min((max(each) for each in parts if each), default=None)

    def within(self, spent: Mapping[str, int]) -> list[Mapping[str, int]]:
        """Its alternatives that hold of a balance, or its own caps if there are none."""
        return [
            caps for caps in self.alternatives or (self.caps.units,) if _short(caps, spent) is None
        ]

    def room(self, spent: Mapping[str, int], sets: Sequence[Mapping[str, int]]) -> dict[str, int]:
        """The most that a charge of each currency by itself could still ask within one of these sets of caps."""
        most = dict.fromkeys(self.caps.units, 0)
        for caps in sets:
            left = {
                name: min(cap, self.caps.units[name]) - spent[name] for name, cap in caps.items()
            }
            most |= {name: max(units, most[name]) for name, units in left.items()}
        return most

    def committed(self, position: int) -> str | None:
        """The text of the mechanism that the schedule has at a position, from 0; None beyond its end.

        A schedule that cannot be read has no mechanism at any position.
        """
        try:
            for text, times in self.schedule:
                if 0 <= position < times and isinstance(text, str):
                    return text
                position -= times
        except (TypeError, ValueError):
            pass
        return None


def _short(caps: Mapping[str, int], spent: Mapping[str, int]) -> str | None:
    """The first currency of which more is spent than its cap; None if there is none."""
    for name, cap in caps.items():
        if not spent.get(name, 0) <= cap:
            return name
    return None


@dataclass(frozen=True, slots=True)
class AccountNode:
    """A scope and its balance, as the rules see them.

    Args:
        scope: The scope.
        spent: Integers of 1e-40 by currency, for every currency capped in it or above it up to the next slots.
        taken: How many of its slots are taken, or rounds of its schedule; or the number of the period, if it renews.
        closed: Whether it was closed itself.
        parts: The fronts of the children that have several vectors, by name; of a partition its own, without a name.
    """

    scope: Scope
    spent: Mapping[str, int]
    taken: int = 0
    closed: bool = False
    parts: Mapping[str, Front] = field(default_factory=dict[str, Front])

    @property
    def front(self) -> Front:
        """The most that people in it may have spent; `spent` is the largest of each amount."""
        return self.without(None) if self.parts else (self.spent,)

    def without(self, child: AccountNode | None) -> Front:
        """The same, without what they spent in one of its children."""
        parts = dict(self.parts)
        if child is not None and len(child.front) > 1:  # else an earlier period of it is apart
            parts.pop(child.scope.name, None)
        known: list[Vector] = [largest(front) for front in parts.values()]
        known += [] if child is None else [child.spent]
        spent = {
            name: units - sum([each[name] for each in known]) for name, units in self.spent.items()
        }
        return reduce(summed, parts.values(), (spent,))

    def moved(self, child: AccountNode, rise: Mapping[str, int]) -> AccountNode:
        """The node once a child has come to spend what it does now, of each amount so much more than before."""
        parts: dict[str, Front] = {}
        if self.scope.kind is Kind.PARTITION:
            spent = {name: max(units, child.spent[name]) for name, units in self.spent.items()}
            if self.scope.has_fronts:
                front = maximal((*self.front, *child.front), spent)
                parts = {"": front} if len(front) > 1 else {}
        else:
            spent = {name: units + rise[name] for name, units in self.spent.items()}
            if self.parts or child.parts:
                front, own = maximal(child.front, spent), child.scope.name
                parts = {name: each for name, each in self.parts.items() if name != own}
                parts |= {own: front} if len(front) > 1 else {}
        return AccountNode(self.scope, spent, self.taken, self.closed, parts)

    def at(self, time: str) -> AccountNode:
        """The node as a request of that recorded time finds it: with nothing spent, if a period began since."""
        renewal = self.scope.renewal
        if renewal is None or (period := renewal.index(time)) <= self.taken:
            return self
        return AccountNode(self.scope, dict.fromkeys(self.spent, 0), period, self.closed)

    def require_currencies(self, cost: Mapping[str, int]) -> None:
        """Raise CurrencyError unless `cost` names exactly the currencies capped on the chain of this scope."""
        expected = self.spent.keys()
        if cost.keys() == expected:
            return
        name = min(cost.keys() - expected or expected - cost.keys())
        raise CurrencyError(self.scope.path, name, sorted(expected), missing=name in expected)


@dataclass(frozen=True)
class Balance(Card):
    """The amounts spent in a scope, and those left.

    Args:
        scope: The scope.
        spent: Spent, by currency; for a scope of slots, what opening it charged the chain above; for one that renews,
            in the period of the last entry of its tree.
        taken: How many of its slots are taken, or rounds of its schedule; or the number of the period, if it renews.
        closed: Whether it was closed.
        node: As the rules see it.
    """

    scope: Scope
    spent: Amounts
    taken: int
    closed: bool
    node: AccountNode = field(repr=False, compare=False)

    @classmethod
    def of(cls, node: AccountNode) -> Balance:
        """The balance of a node."""
        return cls(node.scope, Amounts(node.spent), node.taken, node.closed, node)

    @property
    def period(self) -> tuple[str, str] | None:
        """Of a scope that renews, the first moment of the period that the amounts belong to, and that of the next."""
        return None if self.scope.renewal is None else self.scope.renewal.bounds(self.taken)

    @property
    def left(self) -> Amounts:
        """The amounts that its own caps leave (`Ledger.available` heeds those above it too); empty for slots."""
        return self.available([self])

    @staticmethod
    def available(chain: Sequence[Balance]) -> Amounts:
        """The most that a charge of the last of these scopes (the root first) could still ask, each currency by itself."""
        return Amounts(available([each.node for each in chain]))

    @property
    def front(self) -> tuple[Amounts, ...]:
        """The most that people in it may have spent: nobody spent more of everything than one of these."""
        return tuple(map(Amounts, self.node.front)) if self.node.parts else (self.spent,)

    @property
    def fullest(self) -> Vector:
        """The amounts that the person spent of whose budget the least is left."""
        return max(self.node.front, key=lambda each: self.scope.used(each) or 0)

    @staticmethod
    def met_by(chain: Sequence[Balance]) -> list[Met]:
        """For each scope, the last first, what those in the last may have spent, with the caps that hold of it."""
        return met_by([each.node for each in chain])

    @staticmethod
    def times_granted(chain: Sequence[Balance], cost: Mapping[str, int], most: int) -> int:
        """How many charges of a cost the last of `chain` grants, where what its people met allows `most`: fewer, where
        the many sums of a partition are put together."""
        nodes = [each.node for each in chain]
        if not any(node.parts for node in nodes):
            return most

        def is_granted(times: int) -> bool:
            with suppress(OverdrawnError):
                spend(nodes, {name: times * units for name, units in cost.items()})
                return True
            return False

        if not most or is_granted(most):
            return most
        granted, refused = 0, most
        while refused - granted > 1:
            middle = (granted + refused) // 2
            granted, refused = (middle, refused) if is_granted(middle) else (granted, middle)
        return granted

    @property
    def in_words(self) -> str:
        """Its path, with what was spent, rounded up, and what its own caps leave, rounded down."""
        if self.scope.alternatives and not self.closed:
            percent = math.ceil(100 * (self.scope.used(self.fullest) or 0))
            return f"{self.scope.path}: {percent} % of the budget spent"
        spent = (
            f"{few_digits(amount, up=True)} of {name} spent" for name, amount in self.spent.items()
        )
        left = (
            f"{few_digits(amount, up=False)} of {name} left" for name, amount in self.left.items()
        )
        return f"{self.scope.path}: {', '.join([*spent, *left]) or 'nothing spent'}{', closed' if self.closed else ''}"


def root_of(path: str) -> str:
    """The top-level scope of a path."""
    return path.partition("/")[0]


def is_at_or_below(path: str, top: str) -> bool:
    """Whether a scope is this one or below it; every scope is below the empty path."""
    return not top or path == top or path.startswith(f"{top}/")


@lru_cache(maxsize=1 << 12)
def paths_down_to(path: str) -> tuple[str, ...]:
    """The path itself and all above it, the root first."""
    parts = path.split("/")
    return tuple("/".join(parts[: depth + 1]) for depth in range(len(parts)))


def charged(
    chain: Sequence[AccountNode], cost: Mapping[str, int], mechanism: Any
) -> tuple[AccountNode, ...]:
    """The nodes that change when the last of `chain` is charged `cost` for what is named `mechanism`; see `spend`.

    Raises:
        UnsupportedError: The scope has a schedule, and that is not next on it.
        OverdrawnError: See `spend`.
    """
    own = chain[-1]
    if own.scope.schedule is None:
        return spend(chain, cost)
    expected = own.scope.committed(own.taken)
    if expected is None or mechanism != expected:
        raise UnsupportedError(
            f"round {own.taken + 1} of the schedule of {own.scope.path!r}",
            f"{mechanism or 'a cost without a mechanism'} was asked, and {expected or 'nothing more'} was committed",
            "Open another scope for what is chosen along the way",
        )
    after = replace(own, taken=own.taken + 1)
    return spend([*chain[:-1], after], cost) or (after,)


def spend(chain: Sequence[AccountNode], cost: Mapping[str, int]) -> tuple[AccountNode, ...]:
    """The nodes whose balance changes when the last of `chain` (the root first) is charged `cost`.

    In a filter a cost adds up and goes on. In a partition the front is that of its children together, or the largest of
    each amount in one opened without fronts. What happens in a slot stops at its scope of slots.

    Raises:
        OverdrawnError: The first scope from the root down where it does not fit.
    """
    own = chain[-1]
    spent = {name: units + cost[name] for name, units in own.spent.items()}
    child = AccountNode(own.scope, spent, own.taken, own.closed, own.parts)
    moved = [(own, child)]
    rise = cost
    for node in chain[-2::-1]:
        if node.scope.kind is Kind.SLOTS:
            break
        child = node.moved(child, rise)
        moved.append((node, child))
        if node.scope.kind is Kind.PARTITION:
            rise = _rise(node.spent, child.spent)
    for before, after in reversed(moved):
        _require_room(before, after, cost)
    return tuple(
        [
            after
            for before, after in moved
            if after.spent != before.spent or after.parts != before.parts
        ]
    )


def _rise(before: Vector, after: Vector) -> Vector:
    return {name: after[name] - units for name, units in before.items()}


def _require_room(before: AccountNode, after: AccountNode, cost: Mapping[str, int]) -> None:
    scope, caps, spent = after.scope, after.scope.caps.units, after.spent
    if scope.kind is Kind.SLOTS:
        return
    name, earlier = _short(caps, spent), before.spent
    if name is None:
        if not scope.alternatives:
            return
        for each in () if after.parts else scope.alternatives:
            if _short(each, spent) is None:
                return
        wrong = [each for each in after.front if not scope.within(each)]
        if not wrong:
            return
        if before.parts or after.parts:  # those who meet this charge have spent so much before it
            earlier = {each: units - cost[each] for each, units in wrong[0].items()}
        spent, caps = wrong[0], (scope.within(earlier) or [dict.fromkeys(caps, 0)])[-1]
        name = _short(caps, spent) or next(iter(caps))
    asked, left = spent[name] - earlier[name], max(caps[name] - earlier[name], 0)
    raise OverdrawnError(scope.path, name, Amount(asked), Amount(left))


Met = list[tuple[Vector, list[Vector]]]


def met_by(chain: Sequence[AccountNode]) -> list[Met]:
    """For each scope, the last of `chain` first, what those in the last one may have spent, and the caps that hold of it.

    A charge of the last one is added to each of these vectors, and must leave it within one of its sets of caps.
    """
    found: list[Met] = []
    front, has_fronts = chain[-1].front, True
    for node, below in zip(chain[::-1], [None, *chain[:0:-1]], strict=True):
        if below is not None and node.scope.kind is Kind.SLOTS:
            break
        if below is not None and node.scope.kind is Kind.PARTITION:
            has_fronts = has_fronts and node.scope.has_fronts
        elif below is not None:
            front = summed(node.without(below), front)
        if has_fronts:
            found.append([(each, node.scope.within(each)) for each in front])
        else:  # the largest of each amount must stay within the same limits
            found.append([(largest(front), node.scope.within(node.spent))])
    return found


def available(chain: Sequence[AccountNode]) -> dict[str, int]:
    """The most that a charge of the last of `chain` (the root first) could still ask, by currency.

    Each currency by itself, all caps of the chain heeded; a currency that nothing caps is left out.
    """
    room: dict[str, int] = {}
    for node, met in zip(chain[::-1], met_by(chain), strict=False):
        if node.scope.kind is not Kind.SLOTS:
            for vector, sets in met:
                own = node.scope.room(vector, sets)
                room |= {name: min(units, room.get(name, units)) for name, units in own.items()}
    return room
