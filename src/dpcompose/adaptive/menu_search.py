"""A large set of counts for a menu: what a menu filter may grant within a target.

Any set that passes is sound, since its worst case is certified (`worst_case`); these are only ways to find a large one.
Few states are listed: what a `Budget` of the same target grants, and those whose composition, fixed in advance, is
within a part of delta, the largest part for which the worst case stays within delta; then states are added one row
after the other while it does. Many states are weighed: the weight of a member is the part of the whole that one of it
takes when it is alone. The work is bounded: what was certified until then is what is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, product

from dpcompose.adaptive.amount import Amounts
from dpcompose.adaptive.worst_case import Lattice, Member, WorstCase
from dpcompose.errors import UnsupportedError
from dpcompose.numerics import Reals

State = tuple[int, ...]
MOST_WORK, MOST_KEPT, MOST_TOTAL, MOST_ALONE = 5e9, 1.5e7, 2048, 5000
MOST_LISTED, MOST_COUNT = 4096, 10**6
Inside = Callable[[State], bool]
"""Whether a budget grants these counts."""


@dataclass
class Allowance:
    """The multiplications that a search may still make."""

    left: float = MOST_WORK

    def spend(self, work: float) -> bool:
        """Whether so many are left; then they are taken."""
        if not work <= self.left:
            return False
        self.left -= work
        return True


def alone(case: WorstCase, delta: float, allowance: Allowance) -> list[int]:
    """How often each member may be granted if no other is.

    Raises:
        UnsupportedError: If that alone is too much work.
    """
    found = [
        largest_total(WorstCase(case.lattice, (member,)), (1,), delta, allowance)
        for member in case.members
    ]
    if None in found:
        reason = "its members are so small beside the target that their worst case takes too long"
        remedy = "Open a Budget of the same target, which needs no menu, or declare larger members"
        raise UnsupportedError(f"a menu of {len(found)} members", reason, remedy)
    return [each for each in found if each is not None]


def largest_total(
    case: WorstCase, weights: Sequence[int], delta: float, allowance: Allowance
) -> int | None:
    """The largest sum of weights whose worst case is within delta; None if that is too much work."""
    if max(weights) * len(case.lattice.points) > MOST_KEPT:
        return None
    values = case.linear(weights)
    for total in count():
        if not allowance.spend(case.work):
            return None
        if not case.lattice.value(next(values)) <= delta or total > MOST_ALONE:
            return total - 1
    return 0


def weighed(
    case: WorstCase,
    counts: Sequence[int],
    delta: float,
    directions: Sequence[Sequence[float]],
    allowance: Allowance,
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Weights and the largest sum of them, for members that may be granted so often when they are alone.

    By the counts, in proportion to other prices, and by the variances of the losses, while there is work left.
    """
    squares = [member.square for member in case.members]
    parts = [[max(counts) / each for each in counts]]
    parts += [[each / min(prices) for each in prices] for prices in (*directions, squares)]
    most = max(MOST_TOTAL // max(counts), 1)
    for weights in dict.fromkeys(_rounded(each, most) for each in parts):
        total = largest_total(case, weights, delta, allowance)
        if total is not None:
            yield weights, total


def _rounded(shares: Sequence[float], most: int) -> tuple[int, ...]:
    """Integers close to shares of at least 1, times a scale of at most `most`."""
    scaled = [tuple(round(scale * each) for each in shares) for scale in range(1, most + 1)]

    def spread(weights: tuple[int, ...]) -> float:
        ratios = [weight / each for weight, each in zip(weights, shares, strict=True)]
        return round(max(ratios) / min(ratios), 2)

    return min(scaled, key=spread)


def few(case: WorstCase, counts: Sequence[int], allowance: Allowance) -> bool:
    """Whether states may be listed, for members that may be granted so often when they are alone."""
    first, *others = sorted(counts, reverse=True)
    rows = math.prod(each + 1 for each in others) / math.factorial(len(others))
    states = rows * (first + 1) / len(counts)
    return 16 * states * case.work <= allowance.left


def listed(
    case: WorstCase, counts: Sequence[int], delta: float, inside: Inside, allowance: Allowance
) -> list[State]:
    """The largest states of a large set whose worst case is within delta, with all that are inside a budget.

    Empty if these alone are above delta, by rounding.
    """
    order = sorted(range(len(counts)), key=lambda index: -counts[index])

    def back(state: State) -> State:
        return tuple(state[order.index(index)] for index in range(len(order)))

    ordered = WorstCase(case.lattice, tuple(case.members[index] for index in order))
    base = reached(len(order), lambda state: inside(back(state))) or {(0,) * len(order)}
    return [back(state) for state in _largest(ordered, base, delta, allowance)]


def reached(members: int, inside: Inside, *, limit: float = math.inf) -> set[State] | None:
    """All states inside a down-closed set; None if they are more than the limit."""
    found, waiting = set[State](), [(0,) * members]
    while waiting:
        state = waiting.pop()
        if len(found) > limit:
            return None
        if state not in found and inside(state):
            found.add(state)
            waiting += [
                (*state[:index], state[index] + 1, *state[index + 1 :]) for index in range(members)
            ]
    return found


def holds(
    alternatives: Sequence[Amounts], prices: Sequence[Amounts], counts: Sequence[int]
) -> bool:
    """Whether these counts of mechanisms of such prices are within one of the alternatives."""
    return any(
        all(
            sum(n * price[name] for n, price in zip(counts, prices, strict=True)) <= cap
            for name, cap in caps.items()
        )
        for caps in alternatives
    )


def is_inside(
    alternatives: Sequence[Amounts], prices: Sequence[Amounts], weights: Sequence[int], total: int
) -> bool:
    """Whether all that these alternatives grant is within a sum of weights."""
    granted = reached(
        len(prices), lambda each: holds(alternatives, prices, each), limit=MOST_LISTED
    )
    if granted is not None:
        return all(
            sum(n * weight for n, weight in zip(each, weights, strict=True)) <= total
            for each in granted
        )
    for caps in alternatives:
        # No sum of weights below a plane is above that at its best corner.
        corners = [
            max(
                weight / price[name] * cap if price[name] else Fraction(MOST_COUNT**3)
                for price, weight in zip(prices, weights, strict=True)
            )
            for name, cap in caps.items()
        ]
        if not min(corners) < total + 1:
            return False
    return True


Within = Callable[[Collection[State]], bool]


def _largest(case: WorstCase, base: set[State], delta: float, allowance: Allowance) -> list[State]:
    """The largest states of a large set that holds the base; the first member has the most of them."""

    def within(states: Collection[State]) -> bool:
        """Whether the worst case of a down-closed set is within delta; False once the work is done."""
        return allowance.spend(len(states) * case.work) and case.of(list(states)) <= delta

    if not within(base):
        return []
    values = _fixed_in_advance(case, delta)
    levels = sorted(set(values.values()))
    low, high, found = 0, len(levels), base
    while high - low > 1:
        middle = (low + high) // 2
        inside = base.union(state for state, value in values.items() if value <= levels[middle])
        inside = set(closed(inside))
        low, high, found = (middle, high, inside) if within(inside) else (low, middle, found)
    rows = len({state[1:] for state in found})
    if not rows * len(found) * case.work * 2 > allowance.left:
        found = _grown(found, within)
    return maximal(found)


def _grown(inside: set[State], within: Within) -> set[State]:
    """With more states: first in the row where they are the largest part, then in the others, the last first.

    A row is the states that differ in the count of the first member alone.
    """
    rows = sorted({state[1:] for state in inside}, reverse=True)

    def filled(row: State, states: set[State]) -> set[State]:
        while True:
            state = (_end(row, states) + 1, *row)
            if not _is_next(state, states) or not within({*states, state}):
                return states
            states = states | {state}

    grown = {row: filled(row, inside) for row in rows}
    first = max(rows, key=lambda row: (_end(row, grown[row]) + 1) / (_end(row, inside) + 1))
    found = grown[first]
    for row in rows:
        found = filled(row, found)
    return found


def _fixed_in_advance(case: WorstCase, delta: float) -> dict[State, float]:
    """delta of every composition within delta, its members in one fixed order."""
    found: dict[State, float] = {}

    def walk(state: State, values: Reals, members: Sequence[Member], lattice: Lattice) -> None:
        if not members:
            found[state] = lattice.value(values)
            return
        for times in count():
            if not lattice.value(values) <= delta:
                return
            walk((*state, times), values, members[1:], lattice)
            values = members[0](values)

    walk((), case.lattice.stopped, case.members, case.lattice)
    return found


def _end(row: State, states: set[State]) -> int:
    """The largest count of the first member in a row."""
    return max(state[0] for state in states if state[1:] == row)


def _is_next(state: State, inside: set[State]) -> bool:
    """Whether all states just below this one are inside."""
    below = [(*state[:i], each - 1, *state[i + 1 :]) for i, each in enumerate(state) if each]
    return inside.issuperset(below)


def closed(states: Iterable[State]) -> list[State]:
    """All states below some of these."""
    found: set[State] = set()
    for state in maximal(states):
        found.update(product(*[range(each + 1) for each in state]))
    return sorted(found)


def maximal(states: Iterable[State]) -> list[State]:
    """The states that are below no other."""
    largest: dict[State, int] = {}
    for first, *row in states:
        largest[tuple(row)] = max(first, largest.get(tuple(row), -1))
    ends = [(first, *row) for row, first in largest.items()]
    below = [
        state
        for state in ends
        if not any(
            other != state and all(a <= b for a, b in zip(state, other, strict=True))
            for other in ends
        )
    ]
    return sorted(below, reverse=True)
