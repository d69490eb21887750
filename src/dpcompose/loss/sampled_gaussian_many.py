"""Epsilon or delta of many compositions of sampled Gaussians, both directions, in arrays.

The path of `contour`, row by row: a line is placed, its end and its grid over the noise are proved to be enough, its
nodes are summed, and both ends are read. Rows of one size share arrays, and no sum runs over two of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour.batch import ContourRows
from dpcompose.contour.transform import Line
from dpcompose.loss import sampled_gaussian_plan as plan
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_nodes import moment_bounds, nodes, waves
from dpcompose.loss.sampled_gaussian_plan import Parts, Targets, class_of
from dpcompose.loss.sampled_gaussian_tails import (
    Direction,
    ended,
    log_real_strips,
    log_step_errors,
    log_strips,
    wanted_step,
)
from dpcompose.numerics.elementary import Reals, U, log_sum

_ENTRIES = 1 << 17
"""Entries of an array at once: few enough for the caches of the processor."""
_DEPTH = 36.0
"""-log of what the step of a grid may leave out of all copies."""
_WAVES = np.array([3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 17.0, 20.0, 25.0, 32.0, 40.0, 50.0, 64.0])
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Lines:
    """Lines with the sizes of their arrays: one row of each array for a composition.

    Args:
        order: The real part, shape (m, 1), as are all but the last.
        step: The distance of the nodes.
        outer: A larger order, whose moment bounds the aliases above.
        value: About epsilon.
        sizes: How many far and near waves, and how many points the grid over the noise takes, shape (m, 3); 0 where
            there is no line.
        tails: For each direction the bound on the nodes left out, shape (m, 2).
        strips: `log_strips` of both directions on the line and on the outer order, shape (m, 4 p a).
    """

    order: Reals
    step: Reals
    outer: Reals
    value: Reals
    sizes: Whole
    tails: Reals
    strips: Reals

    def __getitem__(self, chosen: Any) -> Lines:
        return Lines(*(self.__dict__[each.name][chosen] for each in fields(self)))

    @staticmethod
    def joined(several: Sequence[Lines]) -> Lines:
        """All rows."""
        return Lines(*(np.concatenate([one.__dict__[each.name] for one in several]) for each in fields(Lines)))


@dataclass(frozen=True)
class Question:
    """One question: sampled Gaussians with their counts, at least two in all, and a delta or an epsilon.

    Args:
        losses: When the record is removed; when it is added they are those of the reverse.
        number: delta in (0, 1), or epsilon.
    """

    losses: tuple[tuple[SampledGaussianLoss, int], ...]
    number: float

    @property
    def kind(self) -> tuple[int, int]:
        """Questions of one kind share arrays."""
        return len(self.losses), max(loss.ulps for loss, _ in self.losses)


def answered(questions: Sequence[Question], *, for_delta: bool, tolerance: float) -> tuple[Reals, Reals]:
    """The ends of epsilon, or of delta, shape (n,) each; NaN where none is proved here."""
    found = np.full((2, len(questions)), np.nan)
    kinds: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        kinds[question.kind].append(index)
    for (count, ulps), places in sorted(kinds.items()):
        rows = [(loss.noise, loss.rate, float(times)) for place in places for loss, times in questions[place].losses]
        columns = np.array(rows).T[:, :, None]
        number = np.array([[questions[place].number] for place in places])
        nothing = np.full_like(number, np.nan)
        targets = Targets(*((nothing, number) if for_delta else (number, nothing)), tolerance)
        found[:, places] = _answered(Parts(columns[0], columns[1], columns[2], count, ulps), targets)
    return found[0], found[1]


@np.errstate(all="ignore")  # what overflows is not finite in the end, and proves nothing
def _answered(parts: Parts, targets: Targets) -> tuple[Reals, Reals]:
    """The ends of each answer, shape (m,) each; NaN where none is proved here."""
    lower, upper = np.full((2, len(targets.value)), np.nan)
    for here, lines in planned(parts, targets, plan.MOST_NODES):
        some = parts[here]
        contours = [contour_of(lines, each, some.total, at) for at, each in enumerate(part_nodes(some, lines))]
        lower[here], upper[here] = larger(*contours, targets=targets[here], value=lines.value)
    return lower, upper


def planned(parts: Parts, targets: Targets, most_nodes: int) -> Iterator[tuple[Whole, Lines]]:
    """Blocks of compositions with their lines, of one size in a block; compositions without a line are left out."""
    guess, most = plan.first_orders(parts, targets)
    points = class_of(plan.coarse_points(parts, guess, most))
    found: list[tuple[Whole, Lines]] = []
    for chosen in _blocks(points[:, None], plan.ORDERS * points * parts.count):
        size = int(points[chosen[0]])
        if size <= plan.MOST_POINTS:
            some = parts[chosen], targets[chosen]
            grid = plan.coarse_grid(some[0], guess[chosen], most[chosen], size)
            places = plan.placed(*some, grid, guess[chosen], most[chosen])
            found.append((chosen, _lined(some[0], places, grid, most_nodes)))
    if found:
        places, lines = np.concatenate([chosen for chosen, _ in found]), Lines.joined([one for _, one in found])
        costs = (lines.sizes[:, 0] + lines.sizes[:, 1]) * lines.sizes[:, 2] * parts.count
        for chosen in _blocks(lines.sizes, costs):
            if lines.sizes[chosen[0], 0]:
                yield places[chosen], lines[chosen]


def _blocks(classes: Whole, costs: Whole) -> Iterator[Whole]:
    """Places of rows of one class, so many as have about `_ENTRIES` entries."""
    order = np.lexsort(classes.T)
    same = (classes[order][1:] == classes[order][:-1]).all(axis=1)
    for group in np.split(order, np.flatnonzero(~same) + 1):
        if len(group):
            size = max(1, _ENTRIES // max(int(costs[group[0]]), 1))
            yield from (group[at : at + size] for at in range(0, len(group), size))


def _lined(parts: Parts, places: plan.Places, grid: plan.Grid, most_nodes: int) -> Lines:
    """Where the lines end, and how fine the grids over the noise must be."""
    order, outer = parts.spread(places.order), parts.spread(places.outer)
    remove, add = Direction(parts, grid, order + 1), Direction(parts, grid, -order)
    end, tails = ended(remove, add, places)
    wanted = np.ceil(end / places.step)
    known = places.found[:, None] & (wanted <= most_nodes)
    wanted = np.where(known, np.maximum(wanted, 9), 9)
    near = _WAVES[np.searchsorted(_WAVES, np.sqrt(wanted))]
    far = _WAVES[np.searchsorted(_WAVES, wanted / near)]
    reach = parts.spread(far * near * places.step)
    beyond = Direction(parts, grid, outer + 1), Direction(parts, grid, -outer)
    strips = [*log_strips(remove, add, reach), *map(log_real_strips, beyond)]
    above = [strip - log_sum(each.exponent) for strip, each in zip(strips, (remove, add, *beyond), strict=True)]
    depth = _DEPTH + np.log(parts.times)
    step = wanted_step(above, parts.noise, depth)
    low, high = parts.ends(outer)
    points = class_of(((high - low) / step).reshape(-1, parts.count).max(axis=1) + 3)
    known &= (points <= plan.MOST_POINTS)[:, None]
    sizes = np.where(known, np.concatenate([far, near, points[:, None]], axis=1), 0).astype(np.int64)
    rows = len(places.order)
    return Lines(
        order=places.order,
        step=places.step,
        outer=places.outer,
        value=places.value,
        sizes=sizes,
        tails=2 * tails * (1 + 1e-9) / places.step,
        strips=np.concatenate([strip.reshape(rows, -1) for strip in strips], axis=1),
    )


def larger(remove: ContourRows, add: ContourRows, *, targets: Targets, value: Reals) -> tuple[Reals, Reals]:
    """The ends of the larger answer of the two directions, shape (m,) each; `value`: about epsilon, (m, 1)."""
    if targets.for_values:
        ends = [each.ends(targets.value) for each in (remove, add)]
        lower, upper = (np.maximum(one, other)[:, 0] for one, other in zip(*ends, strict=True))
        return np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    mass = targets.mass
    lower, upper = remove.solved(mass, value)
    dominated = (add.ends(lower)[1] <= mass)[:, 0]
    others = np.flatnonzero(~dominated & ~np.isnan(lower[:, 0]))
    if len(others):
        found = add[others].solved(mass[others], np.where(np.isnan(upper), 0.0, upper)[others])
        lower[others] = np.maximum(lower[others], found[0])
        upper[others] = np.maximum(upper[others], found[1])
    return np.maximum(lower[:, 0], 0.0), np.maximum(upper[:, 0], 0.0)


class Nodes(NamedTuple):
    """One copy of each of so many parts, in one direction: log M at the nodes, and a bound on it at the outer order."""

    line: Line
    bound: Reals
    parts: int


def part_nodes(parts: Parts, lines: Lines) -> list[Nodes]:
    """Both directions, from one grid; the lines are of one size."""
    order, outer, step = (parts.spread(each) for each in (lines.order, lines.outer, lines.step))
    far, near, points = lines.sizes[0].tolist()
    grid = parts.gridded(*parts.ends(outer), points)
    strips = np.split(lines.strips, 4, axis=1)
    left_out = [log_step_errors(each.reshape(len(order), -1), parts.noise, grid.step) for each in strips]
    waved, found = waves(grid, step, far, near), list[Nodes]()
    for at, (power, beyond) in enumerate(((order + 1, outer + 1), (-order, -outer))):
        line = nodes(parts, grid, waved, step, power, left_out[at])
        found.append(Nodes(line, moment_bounds(parts, grid, beyond, left_out[at + 2]), parts.count))
    return found


def contour_of(lines: Lines, found: Nodes, total: Callable[[Any], Any], direction: int) -> ContourRows:
    """The lines of compositions: `total` adds up the rows of one copy of each part, each so often as it is there."""
    log, rounding = found.line.log, (4 + found.parts) * U
    return ContourRows(
        order=lines.order,
        step=lines.step,
        log=total(log),
        error=total(found.line.error) * (1 + 1e-12) + rounding * total(np.abs(log)),
        tail=lines.tails[:, direction : direction + 1],
        outer=lines.outer,
        outer_log=total(found.bound) + rounding * total(np.abs(found.bound)),
    )
