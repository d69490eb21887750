"""Epsilon after every step of a schedule of sampled Gaussians: neighboring steps share a line, whose nodes add up.

A line that is drawn for k steps serves k' > k steps of the same phase, as long as it is narrow enough: log M of a
phase is as often there as it has steps, and what is left out beyond the last node falls with every further step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import ContourRows
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_many import THIN, Drawn, Lines, larger, planned
from dpcompose.loss.sampled_gaussian_plan import Parts, Targets
from dpcompose.numerics import Reals

MOST_PHASES = 64
_FARTHER, _MOST_NODES = 1.08, 4000
_ENTRIES = 1 << 16
Phases = Sequence[tuple[SampledGaussianLoss, int]]


def running_sampled_gaussian(
    phases: Phases, delta: float, tolerance: float
) -> Iterator[tuple[int, Reals, Reals]]:
    """How many steps were taken before, and the ends of epsilon after each of the next, shape (k,); NaN if unproved.

    Args:
        phases: The losses when the record is removed, with the number of steps, one after the other.
        delta: In (0, 1).
        tolerance: Wanted relative width.
    """
    before = 0
    for last, (_, steps) in enumerate(phases):
        starts = _starts(before, steps)
        earlier = np.array(
            [[loss.noise, loss.rate, times] for loss, times in phases[: last + 1]], dtype=float
        )
        columns = np.tile(earlier, (len(starts), 1))
        columns[last :: last + 1, 2] = starts - before + 1
        ulps = max(loss.ulps for loss, _ in phases[: last + 1])
        parts = Parts(*(columns[:, at : at + 1] for at in range(3)), count=last + 1, ulps=ulps)
        ends = np.append(starts[1:], before + steps)
        one = np.full((len(starts), 1), delta)
        targets = Targets(one, np.full_like(one, np.nan), tolerance)
        for places, lines in _lines(parts, targets):
            for row, place in enumerate(places.tolist()):
                line, some = lines[np.array([row])], parts[np.array([place])]
                for first, lower, upper in _read(
                    some, line, targets[np.array([place])], int(ends[place]) - before
                ):
                    yield before + first, lower, upper
        before += steps


def _starts(before: int, steps: int) -> Reals:
    """The steps, counted from 0, at which a new line is drawn."""
    found, at = [before], before
    while (at := max(at + 1, math.ceil((at + 1) * _FARTHER) - 1)) < before + steps:
        found.append(at)
    return np.array(found)


@np.errstate(all="ignore")  # what overflows is not finite in the end, and proves nothing
def _lines(parts: Parts, targets: Targets) -> list[tuple[NDArray[np.int64], Lines]]:
    return list(planned(parts, targets, _MOST_NODES))


@np.errstate(all="ignore")
def _read(parts: Parts, line: Lines, target: Targets, end: int) -> list[tuple[int, Reals, Reals]]:
    """The ends of epsilon at all steps of the last part from those that are there up to `end`, in blocks."""
    one, (far, near, _) = Drawn(parts, line), line.sizes[0].tolist()
    remove, add, whole = one.nodes(0), one.nodes(1, THIN), cache(partial(one.nodes, 1))
    earlier, start, size = (
        parts.times[:-1],
        int(parts.times[-1, 0]) - 1,
        max(1, _ENTRIES // (far * near)),
    )
    blocks: list[tuple[int, Reals, Reals]] = []
    for first in range(start, end, size):
        steps = np.arange(first + 1.0, min(first + size, end) + 1.0)[:, None]
        same = np.zeros(len(steps), dtype=int)
        many, total = line[same], partial(_total, earlier, steps)

        def again(
            others: NDArray[np.int64], many: Lines = many, steps: Reals = steps
        ) -> ContourRows:
            return whole().contour(many[others], partial(_total, earlier, steps[others]))

        ends = larger(
            remove.contour(many, total),
            add.contour(many, total),
            again,
            targets=target[same],
            value=many.value,
        )
        blocks.append((first, *ends))
    return blocks


def _total(earlier: Reals, steps: Reals, rows: Any) -> Any:
    """So many copies of each earlier row, and `steps` of the last one, shape (k, n)."""
    total = steps * rows[-1:]
    for times, row in zip(earlier, rows[:-1], strict=True):
        total = total + times * row
    return total
