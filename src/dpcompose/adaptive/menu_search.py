"""A large set of counts for a menu: what a menu filter may grant within a target.

Any set that passes is sound, since its worst case is certified (`worst_case`); these are only ways to find a large one.
Few states are listed: those whose composition, fixed in advance, is within a part of delta, the largest part for which
the worst case stays within delta; then states are added one row after the other while it does. For many states the
counts are weighed: the weight of a member is the part of the whole that one of it takes when it is alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import count, product

from dpcompose.adaptive.worst_case import Lattice, Member, WorstCase
from dpcompose.numerics import Reals

State = tuple[int, ...]
MOST_WORK, MOST_ROWS, MOST_TOTAL, MOST_ALONE = 2e8, 64, 2048, 5000


def alone(case: WorstCase, delta: float) -> list[int]:
    """How often each member may be granted if no other is."""
    return [
        largest_total(WorstCase(case.lattice, (member,)), (1,), delta) for member in case.members
    ]


def largest_total(case: WorstCase, weights: Sequence[int], delta: float) -> int:
    """The largest sum of weights whose worst case is within delta."""
    for total, value in zip(count(), case.linear(weights), strict=False):
        if not value <= delta or total > MOST_ALONE:
            return total - 1
    return 0


def weighed(case: WorstCase, counts: Sequence[int], delta: float) -> tuple[tuple[int, ...], int]:
    """Weights and the largest sum of them, for members that may be granted so often when they are alone.

    By the counts, or by the variances of the losses: those with which all members in turn are granted most often.
    """
    squares = [member.square for member in case.members]
    ways = [max(counts) / each for each in counts], [each / min(squares) for each in squares]
    most = max(MOST_TOTAL // max(counts), 1)
    found = [
        (weights, largest_total(case, weights, delta))
        for weights in (_rounded(way, most) for way in ways)
    ]
    return max(found, key=lambda each: each[1] / sum(each[0]))


def _rounded(shares: Sequence[float], most: int) -> tuple[int, ...]:
    """Integers close to shares of at least 1, times a scale of at most `most`."""
    scaled = [tuple(round(scale * each) for each in shares) for scale in range(1, most + 1)]

    def spread(weights: tuple[int, ...]) -> float:
        ratios = [weight / each for weight, each in zip(weights, shares, strict=True)]
        return round(max(ratios) / min(ratios), 2)

    return min(scaled, key=spread)


def few(case: WorstCase, counts: Sequence[int]) -> bool:
    """Whether states may be listed, for members that may be granted so often when they are alone."""
    first, *others = sorted(counts, reverse=True)
    rows = math.prod(each + 1 for each in others) / math.factorial(len(others))
    states = rows * (first + 1) / len(counts)
    return rows <= MOST_ROWS and states * case.work <= MOST_WORK


def listed(case: WorstCase, counts: Sequence[int], delta: float) -> list[State]:
    """The largest states of a large set whose worst case is within delta."""
    places = _smallest_first(counts)
    states = _listed(WorstCase(case.lattice, tuple(case.members[place] for place in places)), delta)
    return [tuple(state[places.index(place)] for place in range(len(places))) for state in states]


def _smallest_first(counts: Sequence[int]) -> list[int]:
    """The places of the members, those that may be granted most often first."""
    return sorted(range(len(counts)), key=lambda place: -counts[place])


def _listed(case: WorstCase, delta: float) -> list[State]:
    """The same of members in the order of rows: the first has the most states."""
    values = _fixed_in_advance(case, delta)
    levels = sorted(set(values.values()))
    low, high = 0, len(levels)
    while high - low > 1:
        middle = (low + high) // 2
        inside = [state for state, value in values.items() if value <= levels[middle]]
        low, high = (middle, high) if case.of(closed(inside)) <= delta else (low, middle)
    found = closed(state for state, value in values.items() if value <= levels[low])
    return maximal(_grown(case, set(found), delta))


def _fixed_in_advance(case: WorstCase, delta: float) -> dict[State, float]:
    """delta of every composition within delta, its members in one fixed order."""
    found: dict[State, float] = {}

    def walk(state: State, values: Reals, members: Sequence[Member], lattice: Lattice) -> None:
        if not lattice.value(values) <= delta:
            return
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


def _grown(case: WorstCase, inside: set[State], delta: float) -> set[State]:
    """With more states: as many as go in the row where they are the largest share, then in the others, the last first.

    A row is the states that differ in the count of the first member alone.
    """
    rows = sorted({state[1:] for state in inside}, reverse=True)

    def filled(row: State, states: set[State]) -> set[State]:
        while True:
            state = (_end(row, states) + 1, *row)
            if state not in _next(states) or not case.of((*states, state)) <= delta:
                return states
            states = states | {state}

    ways = {row: filled(row, inside) for row in rows}
    first = max(rows, key=lambda row: (_end(row, ways[row]) + 1) / (_end(row, inside) + 1))
    found = ways[first]
    for row in rows:
        found = filled(row, found)
    return found


def _end(row: State, states: set[State]) -> int:
    """The largest count of the first member in a row."""
    return max(state[0] for state in states if state[1:] == row)


def _next(inside: set[State]) -> list[State]:
    """States that are not inside, while all below them are."""
    near = {
        (*state[:place], state[place] + 1, *state[place + 1 :])
        for state in inside
        for place in range(len(state))
    }
    return sorted(
        state
        for state in near - inside
        if all(
            (*state[:i], state[i] - 1, *state[i + 1 :]) in inside
            for i in range(len(state))
            if state[i]
        )
    )


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
