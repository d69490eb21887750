"""The sensitivity of a strategy and of a tree, by every pattern of participation, in exact fractions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple


class Squared(NamedTuple):
    """Squared sensitivities.

    Args:
        equal: The largest where all contributions are equal.
        sizes: The largest sum of the sizes of the products of columns.
        exact: Whether no product of compatible columns is negative, so that `equal` is the truth.
    """

    equal: Fraction
    sizes: Fraction
    exact: bool


def patterns(
    steps: int, gap: int, most: int | None, fixed: bool = False
) -> Iterator[tuple[int, ...]]:
    """Every pattern of at least one step."""
    if fixed:
        yield from (tuple(range(slot, steps, gap)) for slot in range(min(gap, steps)))
        return
    stack: list[tuple[int, ...]] = [(first,) for first in range(steps)]
    while stack:
        pattern = stack.pop()
        yield pattern
        if most is None or len(pattern) < most:
            stack.extend((*pattern, later) for later in range(pattern[-1] + gap, steps))


def sensitivity_squared(
    strategy: Sequence[Sequence[float]], gap: int, most: int | None, fixed: bool
) -> Squared:
    """By every pattern."""
    rows = [[Fraction(entry) for entry in row] for row in strategy]
    steps = len(rows)
    gram = [
        [sum((row[i] * row[j] for row in rows), Fraction(0)) for j in range(steps)]
        for i in range(steps)
    ]
    equal, sizes, exact = Fraction(0), Fraction(0), True
    for pattern in patterns(steps, gap, most, fixed):
        products = [gram[i][j] for i in pattern for j in pattern]
        equal, sizes = (
            max(equal, sum(products, Fraction(0))),
            max(sizes, sum(map(abs, products), Fraction(0))),
        )
        exact &= min(products) >= 0
    return Squared(equal, sizes, exact)


def complete_nodes(steps: int, restart: int | None = None) -> list[range]:
    """The steps below each complete node of a binary tree over the steps, begun anew every `restart` steps."""
    nodes: list[range] = []
    for first in range(0, steps, restart or steps):
        end = min(first + (restart or steps), steps)
        size = 1
        while size <= end - first:
            nodes += [range(at, at + size) for at in range(first, end - size + 1, size)]
            size *= 2
    return nodes


def tree_sensitivity_squared(
    steps: int, gap: int, most: int | None, *, fixed: bool = False, restart: int | None = None
) -> int:
    """The largest sum over complete nodes of the square of how many steps of a pattern lie below, by every pattern."""
    nodes = complete_nodes(steps, restart)
    return max(
        sum(sum(step in node for step in pattern) ** 2 for node in nodes)
        for pattern in patterns(steps, gap, most, fixed)
    )
