"""Tree aggregation: the prefix sums of a run, with independent noise on each node of a binary tree
over its steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from dpcompose.errors import DomainError
from dpcompose.mechanisms.matrix import CorrelatedNoise
from dpcompose.mechanisms.parameter import count, declare
from dpcompose.mechanisms.participation import Participation
from dpcompose.numerics import Reals
from dpcompose.values import Bound, Certificate

MOST_STEPS = 10**6
MOST_WORK = 3 * 10**9
_STEPS = count(MOST_STEPS)


@dataclass(frozen=True, init=False, repr=False)
class TreeAggregation(CorrelatedNoise):
    """The sum of the steps below each complete node of a binary tree, plus noise N(0, sigma^2 I) on
    each.

    A node of height h covers 2^h steps that begin at a multiple of 2^h; it is released once all of
    them are complete. A node cut by the end of the run or by a restart is not released. Every
    prefix sum is a sum of released nodes. A record contributes a vector of norm at most 1 to each
    step that it takes part in; the largest squared distance, over all patterns of its steps, is a
    sum of squared counts, and is computed exactly. Under add-remove, the steps of the other records
    must not move when a record leaves: assign slots by a hash or by a fixed schedule. If they move,
    state the guarantee under zero-out.

    >>> from dpcompose.mechanisms import Participation, TreeAggregation
    >>> tree = TreeAggregation(10.0, steps=13, participation=Participation.separated(3, most=4))
    >>> tree.sensitivity_squared
    Bound(lower=23.0, upper=23.0)
    >>> tree.delta(epsilon=1.0).contains(0.005207839841730264)
    True

    Args:
        sigma: The standard deviation of the noise on each node; finite, > 0.
        steps: The number of steps, the leaves of the tree; >= 1.
        participation: The patterns of steps in which one record may take part.
        restart: The number of steps after which a new tree begins; None for one tree.

    Raises:
        DomainError: If a number is outside its domain, or the search over patterns is too costly.

    Reference: [KairouzMcMahanSong2021]
    """

    steps: int = field(metadata=declare(_STEPS))
    restart: int | None = field(default=None, metadata=declare(_STEPS.optional()))

    def __init__(
        self, sigma: float, *, steps: int, participation: Participation, restart: int | None = None
    ) -> None:
        self._state(steps=steps, restart=restart, participation=participation, sigma=sigma)
        self._require_sensitivity(sigma)

    @property
    def sensitivity_squared(self) -> Bound:
        square = float(
            _costliest(self.steps, min(self.restart or self.steps, self.steps), self.participation)
        )
        return Bound(square, square, Certificate("exact, over all patterns of the tree"))


@lru_cache(maxsize=256)
def _costliest(steps: int, restart: int, participation: Participation) -> int:
    """Return the largest sum, over patterns, of the squared numbers of a pattern's steps below the
    complete nodes.

    The complete nodes are those of a row of full blocks. The state at the end of a block is the
    number of steps taken and the number of idle steps since, up to separation - 1; a block appended
    to another also has the idle steps at its front. Blocks of one size are equal, and two of half
    the size form the next one.
    """
    gap, most = participation.separation, participation.times(steps)
    if participation.fixed:
        return _slotted(gap, steps, restart)
    if most == 1:
        return restart.bit_length()
    heights = [*_heights(steps, restart)]
    largest = max(heights) - 1
    counts = min(most, (2**largest - 1) // gap + 1 if largest > 0 else 1)
    if not counts**2 * gap**3 + len(heights) * most * counts * gap**2 <= MOST_WORK:
        remedy = "Give fixed slots by Participation.epochs, or restart the tree sooner"
        raise DomainError(
            "participation",
            participation,
            f"a separation that {steps} steps can be searched with",
            remedy,
        )
    blocks = _blocks(max([largest, *heights[1:]]), gap, most)
    row = np.zeros((1, gap))
    for height in heights:
        known = height < len(blocks)
        row = (
            _behind(row, blocks[height], 2**height, most)
            if known
            else _leading(blocks, height, gap, most)
        )
    return int(row[:, 0].max())


def _leading(blocks: list[Reals], height: int, gap: int, most: int) -> Reals:
    """Return the row of the first block, of a height that no other block has."""
    row = _behind(np.zeros((1, gap)), blocks[height - 1], 2 ** (height - 1), most)
    row = _behind(row, blocks[height - 1], 2 ** (height - 1), most)
    return row + np.square(np.arange(len(row)))[:, None]


def _heights(steps: int, restart: int) -> Iterator[int]:
    """Return the heights of the largest complete blocks, from the first step on."""
    for first in range(0, steps, restart):
        length = min(restart, steps - first)
        yield from (
            height for height in range(length.bit_length() - 1, -1, -1) if length >> height & 1
        )


def _blocks(largest: int, gap: int, most: int) -> list[Reals]:
    """Return for each height the largest sum within a block: [steps taken, idle in front, idle at
    the end], -inf if impossible.

    Idle means at least that many steps, up to gap - 1. A single step costs its height + 1 at any
    position.
    """
    idle = np.arange(gap)
    blocks: list[Reals] = []
    for height in range(largest + 1):
        size = 2**height
        counts = min(most, (size - 1) // gap + 1)
        block = np.full((counts + 1, gap, gap), -np.inf)
        block[0] = np.where(np.maximum(idle[:, None], idle) <= size, 0.0, -np.inf)
        block[1] = np.where(idle[:, None] + idle < size, height + 1.0, -np.inf)
        if counts > 1:
            half = blocks[-1]
            for one in range(min(len(half), counts + 1)):
                rest = half[: counts + 1 - one]
                found = block[one : one + len(rest)]
                for after in range(gap):
                    both = half[one, :, after][None, :, None] + rest[:, gap - 1 - after, None, :]
                    np.maximum(
                        found,
                        both + np.square(np.arange(one, one + len(rest)))[:, None, None],
                        out=found,
                    )
        blocks.append(block)
    return blocks


def _behind(row: Reals, block: Reals, size: int, most: int) -> Reals:
    """Return the row [steps taken, idle at the end] with a block appended; with no steps taken
    before, its front is free.
    """
    gap: int = row.shape[1]
    counts = min(most, len(row) + len(block) - 2)
    found = np.full((counts + 1, gap), -np.inf)
    idle = np.maximum(np.arange(gap) - size, 0)
    found[: len(row)] = row[:, idle]
    for taken in range(1, len(block)):
        after: Reals = block[taken, ::-1]
        whole = np.max(row[:, :, None] + after, axis=1)
        kept = whole[: counts + 1 - taken]
        found[taken : taken + len(kept)] = np.maximum(found[taken : taken + len(kept)], kept)
    return found


def _slotted(gap: int, steps: int, restart: int) -> int:
    """Return the largest sum over patterns that take the same slot of every epoch of `gap`
    steps.
    """
    at = np.arange(steps)
    tree, within = np.divmod(at, restart)
    ends = np.minimum(restart, steps - tree * restart)
    totals = np.zeros(min(gap, steps))
    for height in range(restart.bit_length()):
        first = within >> height << height
        complete = first + 2**height <= ends
        nodes, counts = np.unique(
            (at % gap * steps + tree * restart + first)[complete], return_counts=True
        )
        totals += np.bincount(nodes // steps, np.square(counts), minlength=len(totals))
    return int(totals.max())
