"""Epsilon of sampled Gaussians to which more are added: a line is kept, and every further step adds its rows to it.

A line that is drawn for the first s steps serves all that come after: log M of what is added is one more term at each
node, and what is left out beyond the last node falls with every factor |M| <= M(order). A line is drawn anew where the
number of steps has grown by `FARTHER`. Where that is follows from the steps alone, and sums run in the order of the
steps, so that an answer is the same to the last bit whether or not a shorter history was asked before.

Epsilon after every step of a schedule of sampled Gaussians: neighboring steps share a line, whose nodes add up.

A line that is drawn for k steps serves k' > k steps of the same phase, as long as it is narrow enough: log M of a
phase is as often there as it has steps, and what is left out beyond the last node falls with every further step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import ContourRows
from dpcompose.loss import sampled_gaussian_plan as plan
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_many import (
    THIN,
    Drawn,
    Lines,
    Nodes,
    Spread,
    gridded,
    larger,
    planned,
)
from dpcompose.loss.sampled_gaussian_plan import Parts, Targets, class_of
from dpcompose.numerics import Complexes, Reals, U

FARTHER, MOST_PARTS = 1.5, 2048
_MOST_NODES, _DEPTH = 4000, 45.0
Phases = Sequence[tuple[SampledGaussianLoss, int]]


class Row(NamedTuple):
    """Sums of log M at the nodes of a line, with bounds on their errors, their sizes, and bounds at the outer order."""

    log: Complexes
    error: Reals
    size: Reals
    outer: Reals
    outer_size: Reals

    @staticmethod
    def of(nodes: Nodes, parts: Parts) -> Row:
        """The sums over the parts."""
        log, total = nodes.line.log, cast("Callable[[Any], Any]", parts.total)
        return Row(
            total(log),
            total(nodes.line.error),
            total(np.abs(log)),
            total(nodes.bound),
            total(np.abs(nodes.bound)),
        )

    def plus(self, other: Row, times: int) -> Row:
        """So many copies of another more."""
        return Row(
            self.log + times * other.log,
            self.error + times * other.error,
            self.size + times * other.size,
            self.outer + times * other.outer,
            self.outer_size + times * other.outer_size,
        )

    def contour(self, lines: Lines, direction: int, terms: int) -> ContourRows:
        """The line of one direction; `terms`: how many were added up."""
        rounding = (4 + terms) * U
        return ContourRows(
            order=lines.order,
            step=lines.step,
            log=self.log,
            error=self.error * (1 + 1e-12 + rounding) + rounding * self.size,
            tail=lines.tails[:, direction : direction + 1],
            outer=lines.outer,
            outer_log=self.outer + rounding * self.outer_size,
        )


Both = tuple[Row, Row]
"""Of the record removed, and of the record added."""


@dataclass
class _Kept:
    """A line, and the sums over all steps before the last phase.

    Args:
        start: How many steps the line was drawn for.
        phase: The first phase that is not wholly in the sums.
        taken: How many of its steps are.
        lines: The line; None if none is short enough.
        sums: What was added up.
        terms: How many terms that took.
        rows: One copy of each loss.
    """

    start: int
    phase: int
    taken: int
    lines: Lines | None = None
    sums: Both | None = None
    terms: int = 0
    rows: dict[SampledGaussianLoss, Both | None] = field(
        default_factory=dict[SampledGaussianLoss, Both | None]
    )


@dataclass
class Growing:
    """A history of sampled Gaussians that grows from question to question.

    Args:
        delta: In (0, 1).
        tolerance: Wanted relative width.
    """

    delta: float
    tolerance: float
    _kept: _Kept | None = None

    def epsilon(self, phases: Phases) -> tuple[float, float]:
        """The ends of epsilon; NaN if it is not proved here.

        Args:
            phases: The losses when the record is removed, with the number of steps, at least 1, one after the other:
                those of the last question, and more.
        """
        start = _start(sum(times for _, times in phases))
        with np.errstate(
            all="ignore"
        ):  # what overflows is not finite in the end, and proves nothing
            if self._kept is None or self._kept.start != start:
                self._kept = self._drawn(phases, start)
            return self._read(self._kept, phases)

    @property
    def _targets(self) -> Targets:
        return Targets(np.full((1, 1), self.delta), np.full((1, 1), np.nan), self.tolerance)

    def _drawn(self, phases: Phases, start: int) -> _Kept:
        """A line for the first steps."""
        counts: dict[SampledGaussianLoss, int] = {}
        phase, left = 0, start
        while left > phases[phase][1]:
            loss, times = phases[phase]
            counts[loss] = counts.get(loss, 0) + times
            phase, left = phase + 1, left - times
        counts[phases[phase][0]] = counts.get(phases[phase][0], 0) + left
        kept = _Kept(start, phase, left)
        if len(counts) > MOST_PARTS:
            return kept
        columns = np.array(
            [[loss.noise, loss.rate, times] for loss, times in counts.items()], dtype=float
        )
        ulps = max(loss.ulps for loss in counts)
        parts = Parts(*(columns[:, at : at + 1] for at in range(3)), count=len(counts), ulps=ulps)
        for _, lines in planned(parts, self._targets, _MOST_NODES):
            kept.lines, kept.terms = lines, len(counts)
            nodes = _nodes(parts, lines)
            kept.sums = _rows(nodes, parts)
            if len(counts) == 1:
                kept.rows[phases[0][0]] = _rows(nodes, replace(parts, times=np.ones((1, 1))))
        return kept

    def _read(self, kept: _Kept, phases: Phases) -> tuple[float, float]:
        lines, sums, terms = kept.lines, kept.sums, kept.terms
        if lines is None or sums is None:
            return math.nan, math.nan
        for at in range(kept.phase, len(phases)):
            loss, times = phases[at]
            if at > kept.phase:
                kept.phase, kept.taken, kept.sums, kept.terms = at, 0, sums, terms
            if times > kept.taken:
                if loss not in kept.rows:
                    kept.rows[loss] = _added(lines, loss)
                row = kept.rows[loss]
                if row is None:
                    return math.nan, math.nan
                sums, terms = _plus(sums, row, times - kept.taken), terms + 1
        remove, add = (each.contour(lines, at, terms) for at, each in enumerate(sums))
        lower, upper = larger(
            remove, add, add.__getitem__, targets=self._targets, value=lines.value
        )
        return float(lower[0]), float(upper[0])


def _start(steps: int) -> int:
    """How many of so many steps the line is drawn for."""
    start = 1
    while (after := max(start + 1, int(start * FARTHER))) <= steps:
        start = after
    return start


def _nodes(parts: Parts, lines: Lines) -> tuple[Nodes, Nodes]:
    drawn = Drawn(parts, lines)
    return drawn.nodes(0), drawn.nodes(1)


def _rows(nodes: tuple[Nodes, Nodes], parts: Parts) -> Both:
    return Row.of(nodes[0], parts), Row.of(nodes[1], parts)


def _plus(sums: Both, row: Both, times: int) -> Both:
    return sums[0].plus(row[0], times), sums[1].plus(row[1], times)


def _added(lines: Lines, loss: SampledGaussianLoss) -> Both | None:
    """One copy of a loss at the nodes of a line that is there; None if that takes too many points."""
    one = Parts(
        *(np.array([[number]]) for number in (loss.noise, loss.rate, 1.0)), count=1, ulps=loss.ulps
    )
    points = int(class_of(plan.coarse_points(one, lines.outer, lines.outer))[0])
    if points > plan.MOST_POINTS:
        return None
    grid = plan.coarse_grid(one, lines.outer, lines.outer, points)
    far, near, _ = lines.sizes[0].tolist()
    line = Spread(lines.order, lines.outer, far * near * lines.step)
    drawing = gridded(one, grid, line, np.full((1, 1), _DEPTH))
    if not drawing.known[0]:
        return None
    sizes = np.array([[far, near, drawing.points[0]]])
    bounds = np.concatenate(drawing.bounds, axis=1)
    own = replace(lines, sizes=sizes, side=drawing.side, heights=drawing.heights, bounds=bounds)
    return _rows(_nodes(one, own), one)


MOST_PHASES = 64
_FARTHER, _MOST_RUNNING_NODES = 1.08, 4000
_ENTRIES = 1 << 16


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
    return list(planned(parts, targets, _MOST_RUNNING_NODES))


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
