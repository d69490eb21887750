"""Epsilon or delta of many compositions of sampled Gaussians, both directions, in arrays.

The path of `contour`, row by row: a line is placed, its end and its grid over the noise are proved to be enough, its
nodes are summed, and both ends are read. Rows of one size share arrays, and no sum runs over two of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import ArrayRows, ContourRows, Line
from dpcompose.loss import sampled_gaussian_plan as plan
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_nodes import (
    RaisedGrid,
    Waves,
    nodes,
    raised,
    waves,
)
from dpcompose.loss.sampled_gaussian_plan import (
    Heights,
    Integrands,
    Parts,
    Targets,
    class_of,
    ended,
    heights,
)
from dpcompose.numerics import Reals, U, between

_ENTRIES = 1 << 20
"""Entries of an array at once: enough rows that none waits for Python, few enough for memory."""
_DEEPER, _DEEPEST = 3.0, 42.0
"""By how much less than the nodes left out the step of a grid leaves out of all copies; -log of the least."""
_FAR = np.array([3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 16.0, 20.0, 26.0, 32.0, 40.0, 50.0, 64.0])
_NEAR = np.array([4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0])
THIN = 2
"""Every so many nodes prove that adding is the smaller direction: aliases only add to a sum."""
Whole = NDArray[np.int64]
Total = Callable[[Any], Any]


@dataclass(frozen=True)
class Lines(ArrayRows):
    """Lines with the sizes of their arrays: one row of each array for a composition.

    Args:
        order: The real part, shape (m, 1), as are all but the last.
        step: The distance of the nodes.
        outer: A larger order, whose moment bounds the aliases above.
        value: About epsilon.
        sizes: How many far and near waves, and how many points the grid over the noise takes, shape (m, 3); 0 where
            there is no line.
        tails: For each direction the bound on the nodes left out, shape (m, 2).
        side: How far the noise reaches, shape (m, p).
        heights: The columns of `Heights` of each part, shape (m, 5 p).
        bounds: For each direction bounds on log M of one copy of each part at the outer order, shape (m, 2 p).
    """

    order: Reals
    step: Reals
    outer: Reals
    value: Reals
    sizes: Whole
    tails: Reals
    side: Reals
    heights: Reals
    bounds: Reals

    @staticmethod
    def joined(several: Sequence[Lines]) -> Lines:
        """The rows of several sets of lines, as one set."""
        return Lines(
            *(
                np.concatenate([one.__dict__[each.name] for one in several])
                for each in fields(Lines)
            )
        )


@dataclass(frozen=True)
class SampledGaussianQuestion:
    """One question: sampled Gaussians with their counts, at least two in all, and a delta or an epsilon.

    Args:
        losses: When the record is removed; when it is added they are those of the reverse.
        number: delta in (0, 1), or epsilon.
    """

    losses: tuple[tuple[SampledGaussianLoss, int], ...]
    number: float

    @property
    def kind(self) -> tuple[int, int]:
        """A key that questions computed in the same arrays have in common."""
        return len(self.losses), max(loss.ulps for loss, _ in self.losses)


def sampled_gaussian_ends(
    questions: Sequence[SampledGaussianQuestion], *, for_delta: bool, tolerance: float
) -> tuple[Reals, Reals]:
    """The ends of epsilon, or of delta, shape (n,) each; NaN where none is proved here."""
    solved = np.full((2, len(questions)), np.nan)
    kinds: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        kinds[question.kind].append(index)
    for (count, ulps), places in sorted(kinds.items()):
        rows = [
            (loss.noise, loss.rate, float(times))
            for place in places
            for loss, times in questions[place].losses
        ]
        columns = np.array(rows).T[:, :, None]
        number = np.array([[questions[place].number] for place in places])
        nothing = np.full_like(number, np.nan)
        targets = Targets(*((nothing, number) if for_delta else (number, nothing)), tolerance)
        solved[:, places] = _answered(
            Parts(columns[0], columns[1], columns[2], count, ulps), targets
        )
    return solved[0], solved[1]


@np.errstate(all="ignore")  # what overflows is not finite in the end, and proves nothing
def _answered(parts: Parts, targets: Targets) -> tuple[Reals, Reals]:
    """The ends of each answer, shape (m,) each; NaN where this way of computing proves none."""
    lower, upper = np.full((2, len(targets.value)), np.nan)
    for here, lines in planned(parts, targets, plan.MOST_NODES):
        one = Drawn(parts[here], lines)
        remove, add = (
            one.nodes(0).contour(lines, one.parts.total),
            one.nodes(1, THIN).contour(lines, one.parts.total),
        )
        ends = larger(remove, add, one.added, targets=targets[here], value=lines.value)
        lower[here], upper[here] = ends
    return lower, upper


def planned(parts: Parts, targets: Targets, most_nodes: int) -> Iterator[tuple[Whole, Lines]]:
    """Blocks of compositions with their lines, of one size in a block; compositions without a line are left out."""
    guess, most = plan.first_orders(parts, targets)
    points = plan.coarse_points(parts, guess, most)
    solved: list[tuple[Whole, Lines]] = []
    for chosen in _blocks(points[:, None], plan.ORDERS * points * parts.count):
        some = parts[chosen], targets[chosen]
        grid = plan.coarse_grid(some[0], guess[chosen], most[chosen])
        if grid is not None:
            places = plan.placed(*some, grid, guess[chosen], most[chosen])
            solved.append((chosen, _lined(some[0], places, grid, most_nodes)))
    if solved:
        places, lines = (
            np.concatenate([chosen for chosen, _ in solved]),
            Lines.joined([one for _, one in solved]),
        )
        costs = (lines.sizes[:, 0] + lines.sizes[:, 1]) * lines.sizes[:, 2] * parts.count
        for chosen in _blocks(lines.sizes, costs):
            if lines.sizes[chosen[0], 0]:
                yield places[chosen], lines[chosen]


def _blocks(classes: Whole, costs: Whole) -> Iterator[Whole]:
    """The indices of rows of the same class, in blocks of about `_ENTRIES` entries."""
    order = np.lexsort(classes.T)
    same = (classes[order][1:] == classes[order][:-1]).all(axis=1)
    for group in np.split(order, np.flatnonzero(~same) + 1):
        if len(group):
            size = max(1, _ENTRIES // max(int(costs[group[0]]), 1))
            yield from (group[at : at + size] for at in range(0, len(group), size))


def _lined(parts: Parts, places: plan.Placements, grid: plan.Grid, most_nodes: int) -> Lines:
    """Where the lines end, and how fine the grids over the noise must be; `grid` is that for planning."""
    order, outer = parts.spread(places.order), parts.spread(places.outer)
    remove, add = Integrands(parts, grid, order + 1), Integrands(parts, grid, -order)
    end, tails = ended(remove, add, places)
    wanted = np.ceil(end / places.step)
    is_short = places.solved[:, None] & (wanted <= most_nodes)
    wanted = np.where(is_short, np.maximum(wanted, 9), 9)
    within = _NEAR[np.searchsorted(_NEAR, np.minimum(np.sqrt(wanted), _NEAR[-1]))]
    blocks = _FAR[np.searchsorted(_FAR, wanted / within)]
    depth = parts.spread(between(_DEEPER - np.log(places.error), 20.0, _DEEPEST)) + np.log(
        parts.times
    )
    chosen, step = heights(remove, add, parts.spread(blocks * within * places.step), depth)
    side = parts.noise * np.sqrt(2 * (depth + _DEEPER) + np.square(chosen.theta * parts.noise))
    low, high = parts.ends(order, side)
    points = class_of(((high - low) / step).reshape(-1, parts.count).max(axis=1) + 3)[:, None]
    sizes = np.concatenate([blocks, within, points], axis=1)
    bounds = [Integrands(parts, grid, power).log_moment for power in (outer + 1, -outer)]
    rows = len(places.order)
    return Lines(
        order=places.order,
        step=places.step,
        outer=places.outer,
        value=places.value,
        sizes=np.where(is_short & (points <= plan.MOST_POINTS), sizes, 0).astype(np.int64),
        tails=2 * tails * (1 + 1e-9) / places.step,
        side=side.reshape(rows, -1),
        heights=chosen.columns.reshape(rows, -1),
        bounds=np.concatenate([bound.reshape(rows, -1) for bound in bounds], axis=1),
    )


@dataclass(frozen=True)
class Drawn:
    """Lines of one size, with the grids over the noise that both directions share.

    Args:
        parts: The losses.
        lines: Their lines.
    """

    parts: Parts
    lines: Lines

    def added(self, chosen: Whole) -> ContourRows:
        """The whole lines where the record is added, of some of the compositions."""
        some = Drawn(self.parts[chosen], self.lines[chosen])
        return some.nodes(1).contour(some.lines, some.parts.total)

    @cached_property
    def _heights(self) -> Heights:
        return Heights.of(self.lines.heights.reshape(-1, 5))

    @cached_property
    def _step(self) -> Reals:
        return self.parts.spread(self.lines.step)

    @cached_property
    def _order(self) -> Reals:
        return self.parts.spread(self.lines.order)

    @cached_property
    def _grid(self) -> RaisedGrid:
        ends = self.parts.ends(self._order, self.lines.side.reshape(-1, 1))
        return raised(self.parts, *ends, self._heights.theta, int(self.lines.sizes[0, 2]))

    @cached_property
    def _waves(self) -> Waves:
        blocks, within, _ = self.lines.sizes[0].tolist()
        return waves(self._grid, self._step, blocks, within)

    @cached_property
    def _log_step_error(self) -> Reals:
        return self._heights.log_error(self.parts.noise, self._grid.step)

    def nodes(self, direction: int, stride: int = 1) -> Nodes:
        """Every `stride`-th node of one direction: 0 where the record is removed, 1 where it is added."""
        power = -self._order if direction else self._order + 1
        waved, step = self._waves.thinned(stride), self._step * stride
        line = nodes(self.parts, self._grid, waved, step, power, self._log_step_error)
        bound = np.split(self.lines.bounds, 2, axis=1)[direction].reshape(-1, 1)
        return Nodes(line, bound, self.parts.count, direction, stride)


class Nodes(NamedTuple):
    """One copy of each of so many parts, in one direction: log M at the nodes, and a bound on it at the outer order."""

    line: Line
    bound: Reals
    parts: int
    direction: int
    stride: int

    def contour(self, lines: Lines, total: Total) -> ContourRows:
        """The lines of compositions: `total` adds up one copy of each part, each so often as it is there."""
        log, rounding = self.line.log, (4 + self.parts) * U
        return ContourRows(
            order=lines.order,
            step=lines.step * self.stride,
            log=total(log),
            error=total(self.line.error) * (1 + 1e-12) + rounding * total(np.abs(log)),
            tail=lines.tails[:, self.direction : self.direction + 1],
            outer=lines.outer,
            outer_log=total(self.bound) + rounding * total(np.abs(self.bound)),
        )


def larger(
    remove: ContourRows,
    add: ContourRows,
    again: Callable[[Whole], ContourRows],
    *,
    targets: Targets,
    value: Reals,
) -> tuple[Reals, Reals]:
    """The ends of the larger answer of the two directions, shape (m,) each.

    Args:
        remove: The line of one direction.
        add: The line of the other, good for upper ends.
        again: The whole line of the other for some of the compositions.
        targets: The questions.
        value: About epsilon, shape (m, 1).
    """
    lower, upper = (
        remove.ends(targets.value) if targets.for_values else remove.solved(targets.mass, value)
    )
    left = _undominated(add, targets, lower, np.flatnonzero(~np.isnan(lower[:, 0])))
    if len(left):
        whole = again(left)
        others = _undominated(whole, targets[left], lower[left], np.arange(len(left)))
        rows, some = left[others], whole[others]
        start = np.where(np.isnan(upper), 0.0, upper)[rows]
        solved = (
            some.ends(targets.value[rows])
            if targets.for_values
            else some.solved(targets.mass[rows], start)
        )
        lower[rows], upper[rows] = (
            np.maximum(lower[rows], solved[0]),
            np.maximum(upper[rows], solved[1]),
        )
    lower, upper = np.maximum(lower[:, 0], 0.0), np.maximum(upper[:, 0], 0.0)
    return lower, np.minimum(upper, 1.0) if targets.for_values else upper


def _undominated(add: ContourRows, targets: Targets, lower: Reals, rows: Whole) -> Whole:
    """Those rows in which the upper end of the other direction does not prove that direction to be the smaller one."""
    point = targets.value if targets.for_values else lower
    dominated = add.upper(point) <= (lower if targets.for_values else targets.mass)
    return rows[~dominated[rows, 0]]
