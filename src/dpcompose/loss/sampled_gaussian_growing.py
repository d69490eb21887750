"""Epsilon of a growing history of sampled Gaussians: a line is drawn, and every further step adds its rows to it.

A line that is drawn for the first steps serves those that come after: log M of what is added is one more term at each
node, and what is left out beyond the last node falls with every factor |M| <= M(order). A line is drawn anew where the
cost of the steps has grown by a factor. Where that is follows from the steps alone, and sums run in their order, so
that an answer is the same to the last bit whether or not a shorter history was asked before. The answers after many
steps of one phase are rows of the same arrays: whoever asks after each step has the next ones computed ahead.

A line is placed for losses of a table, each with the next smaller noise, and for the largest cost that it will serve:
many losses are placed as few, and the searches for a noise that ask about many place few lines. What a line leaves out
is proved for each loss by itself. Moments of the losses of the table bound those of the losses: more noise is a
mechanism on the output, which lowers every moment of either direction.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import ArrayRows, ContourRows, Line
from dpcompose.loss import sampled_gaussian_plan as plan
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_many import larger
from dpcompose.loss.sampled_gaussian_nodes import nodes, raised, waves
from dpcompose.loss.sampled_gaussian_plan import Heights, Integrands, Parts, Targets, class_of
from dpcompose.numerics import Complexes, Reals, U

FARTHER, FARTHER_OF_MANY, MANY, MOST_PARTS = 1.08, 1.35, 16, 2048
"""By what factor the cost grows until another line is drawn: of few phases, and of many, whose lines cost more."""
ANCHORS, MOMENTS = 8, 64
"""Noises of the table in an octave, for placing lines and for moments."""
_MOST_NODES, _DEPTH = 4000, 37.0
_DEEP = np.full((1, 1), _DEPTH)
_RAISED, _ABOVE, _HIGHEST = 0.8, 1.4, 2.8
"""How high a raised line is over s, and at most over s^2; its strip above it over that; both together at most."""
_ENDS = [1.25**each for each in range(-1, 26)]
"""Multiples of the frequency at which a line of Gaussian losses would end, tried in turn."""
_RARE, _THETAS = 3.0, (0.15, 0.4, 0.8)
"""From this multiple on losses are not alike, and these shifts over s^2 are tried."""
_SHARE = 1e-6
"""How much of its height may be left out of the smaller direction, for which little is to be proved."""
_TIMES = 1e4
"""For so many copies bounds on moments are fine enough."""
_TOGETHER = 32
"""Losses that are summed at once, so few that their arrays stay in the cache of a processor."""
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

    @cached_property
    def powers(self) -> Reals:
        """The exponents p with E r^p = M(order), r the likelihood ratio with the record, E without it.

        First for the loss of removing it, then of adding it: shape (2, 1), for a frame of one line.
        """
        return np.concatenate([self.order + 1, -self.order])

    def start(self, log: Reals) -> Reals:
        """About epsilon where log M at the order of the line has another value, as if both grew with the number of
        steps of one Gaussian."""
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
    def of(line: Line, outer: Reals, times: Reals) -> Sums:
        """Of some losses, each so often as `times` says, shape (p, 1).

        Args:
            line: log M of one copy of each, first those of the record removed, shape (2 p, n).
            outer: Bounds on it at the outer order, shape (2 p, 1).
            times: How many copies there are of each, shape (p, 1).
        """
        bounds = np.concatenate([line.error, np.abs(line.log), outer, np.abs(outer)], axis=1)
        log, bounds = (
            np.add.reduce(times * each.reshape(2, len(times), -1), axis=1)[None]
            for each in (line.log, bounds)
        )
        return Sums(log, bounds)

    def plus(self, other: Sums, times: Reals | int = 1) -> Sums:
        """These sums and `times` copies of another; for several numbers of copies, of shape (k, 1, 1), one row for
        each."""
        return Sums(self.log + times * other.log, self.bounds + times * other.bounds)

    def contour(self, lines: Frame, direction: int, terms: int) -> ContourRows:
        """The contour of one direction; `terms` says how many terms were added, which bounds the rounding."""
        rounding, count = (4 + terms) * U, self.log.shape[2]
        bounds = self.bounds[:, direction]
        error, size, outer = bounds[:, :count], bounds[:, count:-2], bounds[:, -2:]
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
        level: The level that the line serves; it was drawn for the first steps of it.
        phase: The first phase that is not wholly in the sums.
        taken: How many of its steps are.
        lines: The line; None if none is short enough.
        sums: What was added up.
        terms: How many terms that took.
        rows: One copy of each loss; None where it takes too many points.
    """

    level: _NoiseLevel
    phase: int
    taken: int
    lines: Frame | None = None
    sums: Sums | None = None
    terms: int = 0
    rows: dict[SampledGaussianLoss, Sums | None] = field(
        default_factory=dict[SampledGaussianLoss, Sums | None]
    )

    def copy(self, lines: Frame, loss: SampledGaussianLoss) -> Sums | None:
        """One copy of a loss at the nodes of the line; None if it takes too many points."""
        if loss not in self.rows:
            self.rows[loss] = _sums(lines, [(loss, 1)])
        return self.rows[loss]


class _Ends(NamedTuple):
    """The ends of epsilon after `first` steps of the last phase, and after each of the next ones; `phases` says how
    many phases the history had."""

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
    _before: list[_Spent] = field(default_factory=lambda: [_Spent()])
    """What all phases before each one cost."""

    def epsilon(self, phases: Phases) -> tuple[float, float]:
        """The ends of epsilon; NaN if it is not proved here.

        Args:
            phases: The losses when the record is removed, with the number of steps, at least 1, one after the other:
                those of the last question, and more.
        """
        loss, times = phases[-1]
        grows = self._answers.phases == len(phases)
        if not (grows and 0 <= times - self._answers.first < len(self._answers.lower)):
            level = self._level(phases)
            count = min(_AHEAD, self._served(phases, level)) if grows else 1
            lower, upper = self._epsilons([*phases[:-1], (loss, times + count - 1)], level, count)
            self._answers = _Ends(len(phases), times, lower.tolist(), upper.tolist())
        at = times - self._answers.first
        return self._answers.lower[at], self._answers.upper[at]

    def running(self, phases: Phases) -> Iterator[tuple[int, Reals, Reals]]:
        """How many steps were taken before, and the ends of epsilon after each of the next, shape (k,)."""
        before = 0
        for at, (loss, steps) in enumerate(phases):
            first = 0
            while first < steps:
                begun = [*phases[:at], (loss, first + 1)]
                level = self._level(begun)
                last = min(steps, first + self._served(begun, level))
                ends = self._epsilons([*phases[:at], (loss, last)], level, last - first)
                yield before + first, *ends
                first = last
            before += steps

    def _level(self, phases: Phases) -> _NoiseLevel:
        """The level of a history."""
        before = self._before
        for loss, times in phases[len(before) - 1 : -1]:
            before.append(before[-1].plus(loss, times))
        return before[len(phases) - 1].plus(*phases[-1]).level(_factor(phases))

    def _served(self, phases: Phases, level: _NoiseLevel) -> int:
        """How many steps, beginning with the last one, belong to its level and fit into one array."""
        (loss, times), history = phases[-1], self._history
        if history is None or history.lines is None or history.level != level:
            return 1  # another line is needed first
        most = max(1, _ENTRIES // int(history.lines.sizes.prod()))
        further = range(times + 1, times + most)
        return 1 + self._before[len(phases) - 1].first(loss, further, level.most)

    @np.errstate(all="ignore")  # what overflows is not finite in the end, and proves nothing
    def _epsilons(self, phases: Phases, level: _NoiseLevel, count: int) -> tuple[Reals, Reals]:
        """The ends of epsilon after each of the last `count` steps, which all belong to the last phase and to one line;
        shape (count,)."""
        if self._history is None or self._history.level != level:
            self._history = self._drawn(phases, level)
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
        lines = lines if count == 1 else lines[np.zeros(count, dtype=int)]
        return _larger(lines, sums, terms, self._targets(count))

    def _targets(self, count: int) -> Targets:
        mass = np.full((count, 1), self.delta)
        return Targets(mass, np.full_like(mass, np.nan), self.tolerance)

    def _drawn(self, phases: Phases, level: _NoiseLevel) -> _History:
        """The line for a level of cost, drawn for the first steps of the history that reach the level."""
        before, counts, at = self._before, Counter[SampledGaussianLoss](), 0
        while at < len(phases) - 1 and not before[at + 1].reaches(level):
            counts[phases[at][0]] += phases[at][1]
            at += 1
        loss, times = phases[at]
        taken = 1 + before[at].first(loss, range(1, times), level.least)
        counts[loss] += taken
        history = _History(level, at, taken, terms=len(counts))
        if len(counts) > MOST_PARTS:
            return history
        planned = defaultdict[tuple[float, float], float](float)
        for each, times in counts.items():
            planned[_smaller_noise(each.noise), each.rate] += times
        # As if all that is left of the level went to the costliest loss: orders then suit what is to come.
        worst = max(counts, key=_cost)
        left = level.most - before[at].plus(loss, taken).cost
        planned[_smaller_noise(worst.noise), worst.rate] += left / _cost(worst)
        places = tuple((*each, times) for each, times in planned.items())
        placed = _placed(places, self.delta, self.tolerance / 4)
        lines = None if placed is None else _ended(placed, list(counts.items()))
        copy = None if lines is None else history.copy(lines, loss)
        if lines is None or copy is None:
            return history
        times = counts.pop(loss)
        sums, others = copy.plus(copy, times - 1), list(counts.items())
        for start in range(0, len(others), _TOGETHER):
            some = _sums(lines, others[start : start + _TOGETHER])
            if some is None:
                return history
            sums = sums.plus(some)
        history.sums, history.lines = sums, lines
        if others:
            lower, _ = _larger(lines, sums, history.terms, self._targets(1))
            value = np.where(lower > 0, lower, lines.value)
            history.lines = replace(lines, value=value, log=sums.log[:, 0, :1].real)
        return history


class _NoiseLevel(NamedTuple):
    """Which histories share a line: those whose cost is in [least, most), and whose least noise is the same one of a
    table."""

    least: float
    most: float
    noise: float


class _Spent(NamedTuple):
    """The cost of some steps, and their least noise."""

    cost: float = 0.0
    noise: float = math.inf

    def plus(self, loss: SampledGaussianLoss, times: int) -> _Spent:
        """The cost and the least noise with so many more steps of a loss."""
        return _Spent(self.cost + times * _cost(loss), min(self.noise, loss.noise))

    def first(self, loss: SampledGaussianLoss, steps: range, cost: float) -> int:
        """How many of the numbers `steps` of further steps leave the cost below a level; these numbers increase."""
        return bisect(steps, False, key=lambda times: self.plus(loss, times).cost >= cost)

    def level(self, factor: float) -> _NoiseLevel:
        """The level of this cost, where the bounds of levels are the powers of a factor."""
        at = math.floor(math.log(self.cost, factor))
        at += (factor ** (at + 1) <= self.cost) - (factor**at > self.cost)
        return _NoiseLevel(factor**at, factor ** (at + 1), _smaller_noise(self.noise))

    def reaches(self, level: _NoiseLevel) -> bool:
        """Whether the steps cost enough for a level, or for a later one."""
        return self.cost >= level.least and _smaller_noise(self.noise) <= level.noise


def _factor(phases: Phases) -> float:
    return FARTHER_OF_MANY if len(phases) > MANY else FARTHER


@lru_cache(maxsize=1 << 12)
def _cost(loss: SampledGaussianLoss) -> float:
    """About what one step costs: log M of order 1, the same for all losses whose noise has the same next smaller one in
    the table."""
    exponent = min(_smaller_noise(loss.noise) ** -2, 700.0)
    return max(math.log1p(loss.rate**2 * math.expm1(exponent)), 1e-300)


def _smaller_noise(noise: float, noises: int = ANCHORS) -> float:
    """The largest noise of a table that is at most this one; the table has `noises` in every octave."""
    return min(noise, 2.0 ** (math.floor(math.log2(noise) * noises) / noises))


def _larger(lines: Frame, sums: Sums, terms: int, targets: Targets) -> tuple[Reals, Reals]:
    """The ends of epsilon, shape (m,) each."""
    remove, add = (sums.contour(lines, direction, terms) for direction in (0, 1))
    value = lines.start(sums.log[:, 0, :1].real)
    return larger(remove, add, add.__getitem__, targets=targets, value=value)


class _Placed(NamedTuple):
    """Where the line of some losses stands.

    Args:
        lines: The line, but for its end.
        end: The frequency at which that of Gaussian losses ends, shape (1, 1).
        wanted: For each direction how much may be left out, shape (2, 1).
    """

    lines: Frame
    end: Reals
    wanted: Reals


@lru_cache(maxsize=256)
def _placed(
    losses: tuple[tuple[float, float, float], ...], delta: float, tolerance: float
) -> _Placed | None:
    """Where the line of losses stands, each a noise, a rate and how often; None if that takes too many points.

    It proves nothing. That it is remembered pays in the searches of `benchmarks.adapters` and `benchmarks.interop`.
    """
    parts = Parts(*np.array(losses).T[:, :, None], count=len(losses), ulps=0)
    targets = Targets(np.full((1, 1), delta), np.full((1, 1), np.nan), tolerance)
    guess, most = plan.first_orders(parts, targets)
    grid = plan.coarse_grid(parts, guess, most)
    if grid is None:
        return None
    places = plan.placed(parts, targets, grid, guess, most)
    if not places.solved[0]:
        return None
    lines = Frame(
        order=places.order,
        step=places.step,
        outer=places.outer,
        value=places.value,
        log=places.log_m,
        tails=np.full((1, 2), np.inf),
        sizes=np.zeros((1, 2), np.int64),
    )
    end = np.sqrt(2 * (np.maximum(-np.log(places.error), 1.0) + 1.0) / places.variance)
    small = np.maximum(places.error, _SHARE * places.height)
    return _Placed(lines, end, np.concatenate([2 * math.pi * places.error, small]))


def _rows(losses: Phases, copies: int) -> Parts:
    """Losses with their numbers of copies, as the parts of `copies` equal compositions."""
    rows = [(loss.noise, loss.rate, times) for loss, times in losses] * copies
    ulps = max(loss.ulps for loss, _ in losses)
    return Parts(*np.array(rows).T[:, :, None], count=len(losses), ulps=ulps)


def _integrands(losses: Phases, lines: Frame) -> Integrands | None:
    """The integrands of some losses at the order of a line, first with the record removed and then with it added; None
    if they take too many points."""
    parts, outer = _rows(losses, 2), np.repeat(lines.outer, 2, axis=0)
    grid = plan.coarse_grid(parts, outer, outer)
    return None if grid is None else Integrands(parts, grid, parts.spread(lines.powers))


@lru_cache(maxsize=1 << 10)
def _tabled(
    noise: float, rate: float, ulps: int, order: float, outer: float
) -> tuple[float, ...] | None:
    """Bounds and a grid for all losses with about this noise; None if they take too many points.

    Returns:
        The logarithms of bounds on M of one loss at two orders, each with the record removed and then added; the ends
        of a grid over the noise that suits all losses with this next smaller noise in the table, and its points.
    """
    columns, outers = (
        (np.full((4, 1), each) for each in (noise, rate, _TIMES)),
        np.full((4, 1), outer),
    )
    parts = Parts(*columns, count=1, ulps=ulps)
    grid = plan.coarse_grid(parts, outers, outers)
    if grid is None:
        return None
    powers = np.array([[order + 1], [-order], [outer + 1], [-outer]])
    moments = Integrands(parts, grid, powers).log_moment[:, 0].tolist()
    heights, one = Heights.of(np.array([_raised(noise, order, moments)])), parts[:1]
    side = noise * 2 ** (1 / MOMENTS) * np.sqrt(2 * (_DEPTH + 3) + (heights.theta * noise) ** 2)
    left, right = (float(end[0, 0]) for end in one.ends(np.full((1, 1), order), side))
    points = class_of((right - left) / heights.step(one.noise, _DEEP) + 3)
    return (*moments, left, right, float(points[0, 0]))


def _sums(lines: Frame, losses: Phases) -> Sums | None:
    """The sum of log M of some losses at the nodes of a line, each as often as it occurs; None if that takes too many
    points."""
    order, outer = float(lines.order[0, 0]), float(lines.outer[0, 0])
    rows = list[tuple[float, ...]]()
    for loss, _ in losses:
        known = _tabled(_smaller_noise(loss.noise, MOMENTS), loss.rate, loss.ulps, order, outer)
        if known is None or known[-1] > plan.MOST_POINTS:
            return None
        rows.append((*_raised(loss.noise, order, known), *known))
    copies = 1 if len(losses) == 1 else 2  # one grid serves both directions of a loss
    columns, parts = np.array(rows * copies), _rows(losses, copies)
    heights, points = Heights.of(columns[:, :5]), int(max(row[-1] for row in rows))
    grid = raised(parts, columns[:, -3:-2], columns[:, -2:-1], heights.theta, points)
    waved = waves(grid, lines.step, *lines.sizes[0].tolist())
    powers = np.repeat(lines.powers, len(losses), axis=0)
    log_error = heights.log_error(parts.noise, grid.step)
    line = nodes(parts, grid, waved, lines.step, powers, log_error)
    bounds = columns[: len(losses), 7:9].T.reshape(-1, 1)
    return Sums.of(line, bounds, parts.times[: len(losses)])


def _raised(noise: float, order: float, moments: Sequence[float]) -> tuple[float, ...]:
    """The columns of `Heights` of a raised line whose strip goes down to the real one.

    Args:
        noise: Its noise.
        order: The order.
        moments: log of bounds on M there, when removing and when adding.
    """
    theta = _RAISED / max(noise, 1.0)
    above = min(_ABOVE * theta, _HIGHEST - theta)
    edges = [
        (angle * noise) ** 2 / 2
        + max(
            np.logaddexp(moments[0], 0.0),
            np.logaddexp(moments[1] - order * math.log(math.cos(angle / 2)), 0.0),
        )
        for angle in (0.0, theta + above)
    ]
    return theta, theta, above, *edges


def _ended(placed: _Placed, losses: Phases) -> Frame | None:
    """The line with its end, and a proof of how much it leaves out; None if it is too long."""
    integrands, step = _integrands(losses, placed.lines), placed.lines.step
    for multiple in _ENDS:
        count = multiple * float(placed.end[0, 0]) / float(step[0, 0])
        if integrands is None or not count <= _MOST_NODES:
            return None
        within = 4 * math.ceil(math.sqrt(count) / 4)
        blocks = max(math.ceil(count / within), 3)
        edge = np.repeat(step * (blocks * within), 2, axis=0)
        envelope = integrands.log_envelope(edge, () if multiple <= _RARE else _THETAS)
        tails = np.exp(envelope) * (1 / edge + step / edge**2)
        if np.all(tails <= placed.wanted):
            sizes = np.array([[blocks, within]])
            return replace(placed.lines, tails=2 * (1 + 1e-9) * tails.T / step, sizes=sizes)
    return None
