"""Epsilon of a growing history of sampled Gaussians: a line is drawn, and every further step adds its rows to it.

A line that is drawn for the first s steps serves all that come after: log M of what is added is one more term at each
node, and what is left out beyond the last node falls with every factor |M| <= M(order). A line is drawn anew where the
number of steps has grown by `FARTHER`. Where that is follows from the steps alone, and sums run in the order of the
steps, so that an answer is the same to the last bit whether or not a shorter history was asked before. The answers after
many steps of one phase are rows of the same arrays: whoever asks after each step has the next ones computed ahead.

The line of one loss alone is placed for its anchor, the next smaller noise of a table, and for the most steps that it
will serve, which are the largest epsilons: the searches for a noise that ask about many place few lines. What a line
leaves out is proved for each loss by itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import ArrayRows, ContourRows, Line
from dpcompose.loss import sampled_gaussian_plan as plan
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_grid import strip_sums
from dpcompose.loss.sampled_gaussian_many import Drawn, Lines, Nodes, larger, planned
from dpcompose.loss.sampled_gaussian_nodes import nodes, raised, waves
from dpcompose.loss.sampled_gaussian_plan import Heights, Integrands, Parts, Targets, class_of
from dpcompose.numerics import Complexes, Reals, U

FARTHER, FARTHER_OF_MANY, MANY, MOST_PARTS = 1.08, 1.35, 16, 2048
"""By what factor steps grow until another line is drawn: of few phases, and of many, whose lines cost more."""
ANCHORS = 8
"""Noises of the table in an octave."""
_MOST_NODES, _DEPTH = 4000, 45.0
_DEEP = np.full((1, 1), _DEPTH)
_SHORT, _ANGLE = 64, 1.7
"""Up to how many nodes the real line is tried, and the half-width of the strip around it, over s^2."""
_RAISED, _ABOVE, _HIGHEST = 1.2, 1.4, 2.8
"""How high a raised line is over s, and at most over s^2; its strip above it over that; both together at most."""
_ENDS = (1.6, 2.4, 4.0, 8.0, 20.0, 60.0)
"""Multiples of the frequency at which a line of Gaussian losses would end, tried in turn."""
_RARE, _THETAS = 3.0, (0.15, 0.4, 0.8)
"""From this multiple on losses are not alike, and these shifts over s^2 are tried."""
_SHARE = 1e-6
"""How much of its height may be left out of the smaller direction, for which little is to be proved."""
_TOGETHER = 16
"""Losses of a line that are summed at once."""
_ENTRIES = 1 << 16
"""Values of log M that are held at once."""
_AHEAD = 64
"""After so many steps epsilon is computed at once where a phase grows from question to question."""
Phases = Sequence[tuple[SampledGaussianLoss, int]]


@dataclass(frozen=True)
class Frame(ArrayRows):
    """Lines, and where a point of the epsilon of some steps on them was; a row for each line.

    Args:
        order: The real part, shape (m, 1), as are the next four.
        step: The distance of the nodes.
        outer: A larger order, whose moment bounds the aliases above.
        value: About an epsilon.
        log: log M at the order, for the steps whose epsilon that is.
        tails: For each direction the bound on the nodes left out, shape (m, 2).
        sizes: How many far and near waves, whose products are the nodes, shape (m, 2).
    """

    order: Reals
    step: Reals
    outer: Reals
    value: Reals
    log: Reals
    tails: Reals
    sizes: NDArray[np.int64]

    def start(self, log: Reals) -> Reals:
        """About epsilon where log M at the order is another, as if both grew with the number of Gaussian steps."""
        moved = 2 * self.log / self.order * (np.sqrt(log / self.log) - 1)
        return self.value + np.where(np.isfinite(moved), moved, 0.0)


class Sums(NamedTuple):
    """Sums of log M on a line, of the record removed and added.

    Args:
        log: At the n nodes, shape (k, 2, n), a row for each number of steps.
        bounds: Bounds on their errors, their sizes, a bound at the outer order and its size, shape (k, 2, 2 n + 2).
    """

    log: Complexes
    bounds: Reals

    @staticmethod
    def of(line: Line, outer: Reals) -> Sums:
        """One term: log M in both directions, shape (2, n), and bounds at the outer order, shape (2, 1)."""
        columns = [line.error, np.abs(line.log), outer, np.abs(outer)]
        return Sums(line.log[None], np.concatenate(columns, axis=1)[None])

    @staticmethod
    def joined(remove: Nodes, add: Nodes, parts: Parts) -> Sums:
        """The sums over the parts."""
        total = cast("Callable[[Any], Any]", parts.total)
        log, error, size, outer, outer_size = (
            np.concatenate([total(row) for row in rows])
            for rows in zip(
                *(
                    (
                        each.line.log,
                        each.line.error,
                        np.abs(each.line.log),
                        each.bound,
                        np.abs(each.bound),
                    )
                    for each in (remove, add)
                ),
                strict=True,
            )
        )
        return Sums(log[None], np.concatenate([error, size, outer, outer_size], axis=1)[None])

    def plus(self, other: Sums, times: Reals | int = 1) -> Sums:
        """So many copies of another more; of several numbers, shape (k, 1, 1), one row for each."""
        return Sums(self.log + times * other.log, self.bounds + times * other.bounds)

    def contour(self, lines: Frame, direction: int, terms: int) -> ContourRows:
        """The line of one direction; `terms`: how many were added up."""
        rounding, nodes = (4 + terms) * U, self.log.shape[2]
        bounds = self.bounds[:, direction]
        error, size, outer = bounds[:, :nodes], bounds[:, nodes:-2], bounds[:, -2:]
        return ContourRows(
            order=lines.order,
            step=lines.step,
            log=self.log[:, direction],
            error=error * (1 + 1e-12 + rounding) + rounding * size,
            tail=lines.tails[:, direction : direction + 1],
            outer=lines.outer,
            outer_log=outer[:, :1] + rounding * outer[:, 1:],
        )


@dataclass
class _History:
    """A line, and the sums over all steps before the last phase.

    Args:
        serves: The numbers of steps that the line serves; it was drawn for the first.
        phase: The first phase that is not wholly in the sums.
        taken: How many of its steps are.
        lines: The line; None if none is short enough.
        sums: What was added up.
        terms: How many terms that took.
        rows: One copy of each loss; None where it takes too many points.
    """

    serves: range
    phase: int
    taken: int
    lines: Frame | None = None
    sums: Sums | None = None
    terms: int = 0
    rows: dict[SampledGaussianLoss, Sums | None] = field(
        default_factory=dict[SampledGaussianLoss, Sums | None]
    )
    moments: dict[SampledGaussianLoss, Integrands | None] = field(
        default_factory=dict[SampledGaussianLoss, Integrands | None]
    )

    def copy(self, lines: Frame, loss: SampledGaussianLoss) -> Sums | None:
        """One copy of a loss at the nodes of the line; None if it takes too many points.

        Where the line of the sum over the noise is raised, moments of the loss with the noise of the table bound those
        of the loss: more noise, a mechanism on the output, lowers every moment of either direction.
        """
        if loss not in self.rows:
            own = _OnLine(lines, loss, 1)
            anchor = own if own.is_short else _OnLine(lines, _table_loss(loss), 1)
            if anchor.loss not in self.moments:
                self.moments[anchor.loss] = anchor.integrands
            self.rows[loss] = own.copy(self.moments[anchor.loss])
        return self.rows[loss]


class _Ends(NamedTuple):
    """The ends of epsilon after `first` and the next steps of one of the phases, the last of so many."""

    phases: int = 0
    first: int = 0
    lower: Sequence[float] = ()
    upper: Sequence[float] = ()


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
    _answers: _Ends = field(default_factory=_Ends)

    def epsilon(self, phases: Phases, steps: int) -> tuple[float, float]:
        """The ends of epsilon; NaN if it is not proved here.

        Args:
            phases: The losses when the record is removed, with the number of steps, at least 1, one after the other:
                those of the last question, and more.
            steps: The number of all steps.
        """
        loss, times = phases[-1]
        grows = self._answers.phases == len(phases)
        if not (grows and 0 <= times - self._answers.first < len(self._answers.lower)):
            serves, count = _serving(steps, len(phases)), 1
            if grows:
                count = min(_AHEAD, self._served(serves, steps) - steps)
            longer = [*phases[:-1], (loss, times + count - 1)]
            lower, upper = self._epsilons(longer, serves, count)
            self._answers = _Ends(len(phases), times, lower.tolist(), upper.tolist())
        at = times - self._answers.first
        return self._answers.lower[at], self._answers.upper[at]

    def running(self, phases: Phases) -> Iterator[tuple[int, Reals, Reals]]:
        """How many steps were taken before, and the ends of epsilon after each of the next, shape (k,)."""
        before = 0
        for at, (loss, steps) in enumerate(phases):
            first = 0
            while first < steps:
                serves = _serving(before + first + 1, at + 1)
                last = min(steps, self._served(serves, before + first + 1) - before - 1)
                ends = self._epsilons([*phases[:at], (loss, last)], serves, last - first)
                yield before + first, *ends
                first = last
            before += steps

    def _served(self, serves: range, steps: int) -> int:
        """The number of steps from which on the line that serves some steps no longer does, or not in the same arrays."""
        history = self._history
        if history is None or history.lines is None or history.serves != serves:
            return steps + 1  # another line is needed first
        return min(serves.stop, steps + max(1, _ENTRIES // int(history.lines.sizes.prod())))

    @np.errstate(all="ignore")  # what overflows is not finite in the end, and proves nothing
    def _epsilons(self, phases: Phases, serves: range, count: int) -> tuple[Reals, Reals]:
        """The ends after each of the last `count` steps, all of the last phase and of one line, shape (count,)."""
        if self._history is None or self._history.serves != serves:
            self._history = self._drawn(phases, serves)
        history = self._history
        lines, sums, terms = history.lines, history.sums, history.terms
        unproved = np.full((2, count), np.nan)
        if lines is None or sums is None:
            return unproved[0], unproved[1]
        for at in range(history.phase, len(phases)):
            loss, times = phases[at]
            if at > history.phase:
                history.phase, history.taken, history.sums, history.terms = at, 0, sums, terms
            is_last = at == len(phases) - 1
            steps = times - np.arange(count if is_last else 1, dtype=float)[::-1, None, None]
            if steps[-1] > history.taken:
                row = history.copy(lines, loss)
                if row is None:
                    return unproved[0], unproved[1]
                sums, terms = sums.plus(row, steps - history.taken), terms + 1
        same = np.zeros(count, dtype=int)
        return _larger(lines[same], sums, terms, self._targets[same])

    @property
    def _targets(self) -> Targets:
        return Targets(np.full((1, 1), self.delta), np.full((1, 1), np.nan), self.tolerance)

    def _drawn(self, phases: Phases, serves: range) -> _History:
        """A line for the first of the steps that it is to serve."""
        at, before, start, counts = 0, 0, serves.start, Counter[SampledGaussianLoss]()
        while before + phases[at][1] < start:
            counts[phases[at][0]] += phases[at][1]
            before, at = before + phases[at][1], at + 1
        counts[phases[at][0]] += start - before
        history = _History(serves, at, start - before, terms=len(counts))
        if len(counts) == 1:
            self._draw_alone(history, phases[at][0])
        elif len(counts) <= MOST_PARTS:
            self._draw_several(history, counts)
        return history

    def _draw_alone(self, history: _History, loss: SampledGaussianLoss) -> None:
        """Draw the line of one loss."""
        start, most = history.serves.start, history.serves.stop
        noise = _table_loss(loss).noise
        anchor = _anchored(noise, loss.rate, most, self.delta, self.tolerance / 4)
        if anchor is None:
            return
        copies = _OnLine(anchor.lines, loss, start)
        lines = copies.ended(anchor)
        copy = None if lines is None else replace(copies, lines=lines).copy(copies.integrands)
        if copy is not None:
            history.rows[loss], history.lines = copy, lines
            history.sums = copy.plus(copy, start - 1)

    def _draw_several(self, history: _History, counts: Counter[SampledGaussianLoss]) -> None:
        """Draw the line of several losses, all planned together."""
        columns = np.array([(loss.noise, loss.rate, times) for loss, times in counts.items()]).T
        ulps = max(loss.ulps for loss in counts)
        parts = Parts(*columns[:, :, None], count=len(counts), ulps=ulps)
        for _, lines in planned(parts, self._targets, _MOST_NODES):
            history.sums = reduce(Sums.plus, _sums_of_parts(parts, lines))
            frame = Frame(
                lines.order, lines.step, lines.outer, lines.value,
                log=history.sums.log[:, 0, :1].real, tails=lines.tails, sizes=lines.sizes[:, :2],
            )  # fmt: skip
            lower, _ = _larger(frame, history.sums, history.terms, self._targets)
            history.lines = replace(frame, value=np.where(lower > 0, lower, lines.value))


def _sums_of_parts(parts: Parts, lines: Lines) -> Iterator[Sums]:
    """The sums over some of the parts at a time, so few that their arrays stay in the cache of a processor."""
    sides, heights = lines.side.reshape(-1, 1), lines.heights.reshape(-1, 5)
    bounds = lines.bounds.reshape(2, -1)
    for start in range(0, parts.count, _TOGETHER):
        some = slice(start, start + _TOGETHER)
        noise, rate, times = parts.noise[some], parts.rate[some], parts.times[some]
        few = Parts(noise, rate, times, count=len(noise), ulps=parts.ulps)
        own = {"side": sides[some], "heights": heights[some], "bounds": bounds[:, some]}
        drawn = Drawn(
            few, replace(lines, **{name: each.reshape(1, -1) for name, each in own.items()})
        )
        yield Sums.joined(drawn.nodes(0), drawn.nodes(1), few)


def _table_loss(loss: SampledGaussianLoss) -> SampledGaussianLoss:
    """The loss with the next smaller noise of the table."""
    noise = 2.0 ** (math.floor(math.log2(loss.noise) * ANCHORS) / ANCHORS)
    return replace(loss, noise=min(noise, loss.noise))


def _serving(steps: int, phases: int) -> range:
    """The numbers of steps, that of a history among them, that share a line."""
    factor = FARTHER_OF_MANY if phases > MANY else FARTHER
    start, following = 1, 2
    while following <= steps:
        start, following = following, max(following + 1, int(following * factor))
    return range(start, following)


def _larger(lines: Frame, sums: Sums, terms: int, targets: Targets) -> tuple[Reals, Reals]:
    """The ends of epsilon, shape (m,) each."""
    remove, add = (sums.contour(lines, direction, terms) for direction in (0, 1))
    value = lines.start(sums.log[:, 0, :1].real)
    return larger(remove, add, add.__getitem__, targets=targets, value=value)


class _Anchor(NamedTuple):
    """Where the lines of a loss and of those with a little more noise stand.

    Args:
        lines: The line, but for its end.
        end: The frequency at which that of Gaussian losses ends, shape (1, 1).
        wanted: For each direction how much may be left out, shape (1, 2).
    """

    lines: Frame
    end: Reals
    wanted: Reals


@lru_cache(maxsize=256)
def _anchored(
    noise: float, rate: float, times: int, delta: float, tolerance: float
) -> _Anchor | None:
    """Where the line of so many copies stands; None if that takes too many points. It proves nothing.

    That it is remembered pays in the searches of `benchmarks.adapters` and `benchmarks.interop`.
    """
    columns = (np.array([[float(each)]]) for each in (noise, rate, times))
    parts = Parts(*columns, count=1, ulps=0)
    targets = Targets(np.full((1, 1), delta), np.full((1, 1), np.nan), tolerance)
    guess, most = plan.first_orders(parts, targets)
    points = int(class_of(plan.coarse_points(parts, guess, most))[0])
    if points > plan.MOST_POINTS:
        return None
    grid = plan.coarse_grid(parts, guess, most, points)
    places = plan.placed(parts, targets, grid, guess, most)
    if not places.solved[0]:
        return None
    lines = Frame(
        places.order, places.step, places.outer, places.value, log=places.log_m,
        tails=np.full((1, 2), np.inf), sizes=np.zeros((1, 2), np.int64),
    )  # fmt: skip
    end = np.sqrt(2 * (np.maximum(-np.log(places.error), 1.0) + 1.0) / places.variance)
    small = np.maximum(places.error, _SHARE * places.height)
    return _Anchor(lines, end, np.concatenate([2 * math.pi * places.error, small], axis=1))


@dataclass(frozen=True)
class _OnLine:
    """Copies of one loss at the nodes of a line.

    Both directions, at the order and at the outer one, are rows of the same arrays, with one grid for all.

    Args:
        lines: The line.
        loss: The loss.
        times: The number of copies for which `tails` holds.
    """

    lines: Frame
    loss: SampledGaussianLoss
    times: int

    @cached_property
    def _parts(self) -> Parts:
        columns = (self.loss.noise, self.loss.rate, float(self.times))
        return Parts(*(np.array([[each]]) for each in columns), count=1, ulps=self.loss.ulps)

    @property
    def is_short(self) -> bool:
        """Whether the sum over the noise may run on the real line."""
        return bool(self.lines.sizes.prod() <= _SHORT)

    @cached_property
    def integrands(self) -> Integrands | None:
        """At the order when removing and when adding, and at the outer one; None if that takes too many points."""
        order, outer = self.lines.order, self.lines.outer
        points = int(class_of(plan.coarse_points(self._parts, outer, outer))[0])
        if points > plan.MOST_POINTS:
            return None
        powers = np.concatenate([order + 1, -order, outer + 1, -outer])
        return Integrands(self._parts, plan.coarse_grid(self._parts, outer, outer, points), powers)

    def copy(self, integrands: Integrands | None) -> Sums | None:
        """One copy at the nodes of the line; None if it takes too many points.

        Args:
            integrands: Those of this loss, or, if the line is not short, of the same one with less noise.
        """
        if integrands is None:
            return None
        noise, (blocks, within) = self._parts.noise, self.lines.sizes[0].tolist()
        heights = self._heights(integrands)
        side = noise * np.sqrt(2 * (_DEPTH + 3) + np.square(heights.theta * noise))
        left, right = self._parts.ends(self.lines.order, side)
        points = int(class_of((right - left) / heights.step(noise, _DEEP) + 3)[0, 0])
        if points > plan.MOST_POINTS:
            return None
        grid = raised(self._parts, left, right, heights.theta, points)
        waved = waves(grid, self.lines.step, blocks, within)
        step, powers = np.repeat(self.lines.step, 2, axis=0), integrands.power[:2]
        log_error = heights.log_error(noise, grid.step)
        line = nodes(self._parts, grid, waved, step, powers, log_error)
        return Sums.of(line, integrands.log_moment[2:])

    def _heights(self, integrands: Integrands) -> Heights:
        """The line of the sum over the noise: the real one, or a raised one whose strip goes down to the real one."""
        noise, moments = self.loss.noise, integrands.log_moment
        own = replace(integrands, parts=self._parts)

        def strip(edge: Reals, total: Reals) -> Reals:
            """log of a bound on what is integrated along an edge, in both directions."""
            return own.log_strip(edge, total)[:2].max(axis=0, keepdims=True)

        theta, zero = np.array([[_RAISED / max(noise, 1.0)]]), np.zeros((1, 1))
        above = np.minimum(_ABOVE * theta, _HIGHEST - theta)
        raised = Heights(theta, theta, above, strip(zero, moments), strip(theta + above, moments))
        if not self.is_short:
            return raised
        angle = np.array([[_ANGLE * min(1.0, 100.0 / noise)]])
        reach = self.lines.step * self.lines.sizes.prod()
        sums = strip_sums(integrands.weight, integrands.lifted, reach, angle)
        real = Heights(zero, angle, angle, strip(angle, sums), strip(angle, moments))
        # On the real line rounding errors are smaller, and points cost little.
        steps = (each.step(self._parts.noise, _DEEP) for each in (real, raised))
        return real if 2 * next(steps) > next(steps) else raised

    def ended(self, anchor: _Anchor) -> Frame | None:
        """The line with its end, and a proof of how much it leaves out; None if it is too long."""
        integrands, step = self.integrands, self.lines.step
        for multiple in _ENDS:
            nodes = multiple * float(anchor.end[0, 0]) / float(step[0, 0])
            if integrands is None or not nodes <= _MOST_NODES:
                return None
            within = 4 * math.ceil(math.sqrt(nodes) / 4)
            blocks = max(math.ceil(nodes / within), 3)
            edge = np.repeat(step * (blocks * within), 4, axis=0)
            envelope = integrands.log_envelope(edge, () if multiple <= _RARE else _THETAS)
            tails = (np.exp(envelope) * (1 / edge + step / edge**2))[:2].T
            if np.all(tails <= anchor.wanted):
                sizes = np.array([[blocks, within]])
                return replace(self.lines, tails=2 * (1 + 1e-9) * tails / step, sizes=sizes)
        return None
