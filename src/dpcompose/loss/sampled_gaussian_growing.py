"""Epsilon of a growing history of sampled Gaussians: a line is drawn, and every further step adds its rows to it.

A line that is drawn for the first s steps serves all that come after: log M of what is added is one more term at each
node, and what is left out beyond the last node falls with every factor |M| <= M(order). A line is drawn anew where the
number of steps has grown by `FARTHER`. Where that is follows from the steps alone, and sums run in the order of the
steps, so that an answer is the same to the last bit whether or not a shorter history was asked before. The answers after
many steps of one phase are rows of the same arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np

from dpcompose.contour import ContourRows
from dpcompose.loss import sampled_gaussian_plan as plan
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_many import (
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

FARTHER, MOST_PARTS = 1.08, 2048
_MOST_NODES, _DEPTH = 4000, 45.0
_ENTRIES = 1 << 16
"""Values of log M that are held at once."""
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

    def plus(self, other: Row, times: Reals | int) -> Row:
        """So many copies of another more; of several numbers, shape (k, 1), one row for each."""
        return Row(
            self.log + times * other.log,
            self.error + times * other.error,
            self.size + times * other.size,
            self.outer + times * other.outer,
            self.outer_size + times * other.outer_size,
        )

    def cut(self, rows: slice) -> Row:
        """Some of the lines."""
        return Row(
            self.log[rows],
            self.error[rows],
            self.size[rows],
            self.outer[rows],
            self.outer_size[rows],
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
class _History:
    """A line, and the sums over all steps before the last phase.

    Args:
        start: How many steps the line was drawn for.
        phase: The first phase that is not wholly in the sums.
        taken: How many of its steps are.
        lines: The line; None if none is short enough.
        sums: What was added up.
        terms: How many terms that took.
        rows: One copy of each loss; None where it takes too many points.
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
    _history: _History | None = None
    _ahead: dict[int, _History] = field(default_factory=dict[int, "_History"])

    def epsilon(self, phases: Phases) -> tuple[float, float]:
        """The ends of epsilon; NaN if it is not proved here.

        Args:
            phases: The losses when the record is removed, with the number of steps, at least 1, one after the other:
                those of the last question, and more.
        """
        lower, upper = self._epsilons(phases, 1)
        return float(lower[0]), float(upper[0])

    def running(self, phases: Phases) -> Iterator[tuple[int, Reals, Reals]]:
        """How many steps were taken before, and the ends of epsilon after each of the next, shape (k,)."""
        before = 0
        for at, (loss, steps) in enumerate(phases):
            starts = [_start(before + steps)]
            while starts[0] > before + 1 and (start := _start(starts[0] - 1)) > before:
                starts.insert(0, start)
            self._ahead = self._drawn(phases, [start for start in starts if start > before])
            first = 0
            while first < steps:
                least = _start(before + first + 1)
                last = min(steps, max(_following(least), before + first + 2) - before - 1)
                last = min(last, first + self._block(least))
                shorter = [*phases[:at], (loss, last)]
                yield before + first, *self._epsilons(shorter, last - first)
                first = last
            before += steps

    def _block(self, start: int) -> int:
        """How many rows are read at once from the line at hand; one where another line is needed first."""
        if self._history is None or self._history.start != start or self._history.lines is None:
            return 1
        blocks, within, _ = self._history.lines.sizes[0].tolist()
        return max(1, _ENTRIES // (blocks * within))

    @np.errstate(all="ignore")  # what overflows is not finite in the end, and proves nothing
    def _epsilons(self, phases: Phases, count: int) -> tuple[Reals, Reals]:
        """The ends after each of the last `count` steps, all of the last phase and of one line, shape (count,)."""
        start = _start(sum(times for _, times in phases))
        if self._history is None or self._history.start != start:
            history = self._ahead.get(start) or self._drawn(phases, [start])[start]
            self._history = history
        history = self._history
        lines, sums, terms = history.lines, history.sums, history.terms
        unproved = np.full((2, count), np.nan)
        if lines is None or sums is None:
            return unproved[0], unproved[1]
        for at in range(history.phase, len(phases)):
            loss, times = phases[at]
            if at > history.phase:
                history.phase, history.taken, history.sums, history.terms = at, 0, sums, terms
            steps = (
                times - np.arange(count, dtype=float)[::-1, None]
                if at == len(phases) - 1
                else times
            )
            if np.any(steps > history.taken):
                if loss not in history.rows:
                    history.rows[loss] = _added(lines, loss)
                row = history.rows[loss]
                if row is None:
                    return unproved[0], unproved[1]
                sums, terms = _plus(sums, row, steps - history.taken), terms + 1
        same = np.zeros(count, dtype=int)
        many, targets = lines[same], self._targets[same]
        remove, add = (each.contour(many, at, terms) for at, each in enumerate(sums))
        return larger(remove, add, add.__getitem__, targets=targets, value=many.value)

    @property
    def _targets(self) -> Targets:
        return Targets(np.full((1, 1), self.delta), np.full((1, 1), np.nan), self.tolerance)

    @np.errstate(all="ignore")
    def _drawn(self, phases: Phases, starts: Sequence[int]) -> dict[int, _History]:
        """Lines for the first steps, of several numbers that end in one phase."""
        phase, before, counts = 0, 0, Counter[SampledGaussianLoss]()
        while starts and before + phases[phase][1] < starts[0]:
            counts[phases[phase][0]] += phases[phase][1]
            before, phase = before + phases[phase][1], phase + 1
        last = phases[phase][0]
        counts[last] += 0
        histories = [_History(start, phase, start - before) for start in starts]
        if starts and len(counts) <= MOST_PARTS:
            columns = np.array(
                [
                    (loss.noise, loss.rate, times + (start - before if loss == last else 0))
                    for start in starts
                    for loss, times in counts.items()
                ],
                dtype=float,
            )
            ulps = max(loss.ulps for loss in counts)
            parts = Parts(
                *(columns[:, at : at + 1] for at in range(3)), count=len(counts), ulps=ulps
            )
            targets = self._targets[np.zeros(len(starts), dtype=int)]
            for places, lines in planned(parts, targets, _MOST_NODES):
                self._fill(histories, places.tolist(), parts[places], lines)
        return {history.start: history for history in histories}

    def _fill(
        self, histories: list[_History], places: list[int], parts: Parts, lines: Lines
    ) -> None:
        """Give lines, and sums over their steps, to the histories at these places."""
        drawn = Drawn(parts, lines)
        nodes = drawn.nodes(0), drawn.nodes(1)
        single = replace(parts, times=np.ones_like(parts.times))
        sums, ones = _rows(nodes, parts), _rows(nodes, single)
        for row, place in enumerate(places):
            history, own = histories[place], slice(row, row + 1)
            history.lines, history.terms = lines[own], parts.count
            history.sums = sums[0].cut(own), sums[1].cut(own)
            if parts.count == 1:
                loss = SampledGaussianLoss(
                    float(parts.noise[row, 0]), float(parts.rate[row, 0]), True, parts.ulps
                )
                history.rows[loss] = ones[0].cut(own), ones[1].cut(own)


def _following(start: int) -> int:
    """The number of steps from which on another line is drawn."""
    return max(start + 1, int(start * FARTHER))


def _start(steps: int) -> int:
    """How many of so many steps the line is drawn for."""
    start = 1
    while (after := _following(start)) <= steps:
        start = after
    return start


def _rows(nodes: tuple[Nodes, Nodes], parts: Parts) -> Both:
    return Row.of(nodes[0], parts), Row.of(nodes[1], parts)


def _plus(sums: Both, row: Both, times: Reals | int) -> Both:
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
    blocks, within, _ = lines.sizes[0].tolist()
    line = Spread(lines.order, lines.outer, blocks * within * lines.step)
    drawing = gridded(one, grid, line, np.full((1, 1), _DEPTH))
    if not drawing.is_short[0]:
        return None
    sizes = np.array([[blocks, within, drawing.points[0]]])
    bounds = np.concatenate(drawing.bounds, axis=1)
    own = replace(lines, sizes=sizes, side=drawing.side, heights=drawing.heights, bounds=bounds)
    drawn = Drawn(one, own)
    return _rows((drawn.nodes(0), drawn.nodes(1)), one)
