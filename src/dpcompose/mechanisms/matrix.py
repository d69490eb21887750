"""Correlated Gaussian noise: a matrix mechanism, tree aggregation, and their sensitivity to one record."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, reduce
from operator import add
from typing import Any

import numpy as np

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import GaussianShift, Laws, Pair, alike, bounded_by
from dpcompose.mechanisms.base import Mechanism
from dpcompose.mechanisms.composable import Composable
from dpcompose.mechanisms.noise import Gaussian
from dpcompose.mechanisms.parameter import Parameter, count, declare, noise
from dpcompose.mechanisms.participation import Participation, chained, enumerated, through
from dpcompose.numerics import Reals, U
from dpcompose.values import Adjacency, Bound, Certificate, down, exact, up

MOST_STEPS = 4096
SHOWN_STEPS = 16
ALIKE = 1e-10
FINEST = 20


@dataclass(frozen=True)
class Strategy:
    """A square lower triangular matrix of floats with a nonzero diagonal, with one row for each
    step.

    Args:
        steps: The number of rows.
        content: The entries as bytes of doubles, row by row.
    """

    steps: int
    content: bytes

    def __repr__(self) -> str:
        return (
            repr(self.matrix.tolist())
            if self.steps <= SHOWN_STEPS
            else f"<strategy of {self.steps} steps>"
        )

    @property
    def matrix(self) -> Reals:
        """The entries as a read-only array, shape (steps, steps)."""
        return np.frombuffer(self.content).reshape(self.steps, self.steps)

    @property
    def bands(self) -> int:
        """The number of diagonals, counted from the main one, that contain all nonzero entries."""
        rows, columns = np.nonzero(self.matrix)
        return int((rows - columns).max()) + 1

    @classmethod
    def of(cls, rows: Any) -> Strategy:
        """Return the strategy with these rows of numbers; a strategy is returned unchanged.

        Raises:
            DomainError: If `rows` is no such matrix, or an entry is outside its domain.
        """
        if isinstance(rows, Strategy):
            return rows
        shape = "rows of finite numbers, lower triangular, square, without a zero on the diagonal"
        try:
            found = np.asarray(rows)
            matrix = (
                np.ascontiguousarray(found, dtype=float) + 0.0
                if found.dtype.kind in "iufO"
                else np.zeros(0)
            )
        except (TypeError, ValueError, OverflowError):
            raise DomainError("strategy", rows, shape) from None
        if matrix.ndim != 2 or not 0 < len(matrix) == len(matrix.T):
            raise DomainError("strategy", rows, shape)
        if not len(matrix) <= MOST_STEPS:
            raise DomainError("strategy", f"{len(matrix)} rows", f"at most {MOST_STEPS} rows")
        sizes = np.abs(matrix)
        if not np.all((sizes == 0) | ((sizes > 1e-100) & (sizes < 1e100))):
            raise DomainError(
                "strategy", rows, f"{shape}, each 0 or between 1e-100 and 1e100 in size"
            )
        if np.any(np.triu(sizes, 1) > 0) or not np.all(np.diag(sizes) > 0):
            remedy = "Give the encoder, which multiplies the steps, not its inverse or the decoder"
            raise DomainError("strategy", rows, shape, remedy)
        return cls(len(matrix), matrix.tobytes())


def _participation(name: str, value: Any) -> Participation:
    remedy = "Participation.single(), .epochs(3, steps_per_epoch=100) or .separated(100, most=3)"
    return check.kind(name, value, Participation, "a Participation", remedy)


_STRATEGY = Parameter("rows", lambda _, value: Strategy.of(value))
_PARTICIPATION = Parameter("participation", _participation)


@dataclass(frozen=True, init=False, repr=False)
class CorrelatedNoise(Mechanism):
    """Correlated Gaussian noise on a run of steps; a subclass states the sensitivity to one record.

    Every subclass releases y_t = a_t + z_t, step after step, where z_t is independent noise N(0,
    sigma^2 I) and the contribution of one record to a_t depends on earlier outputs: it chooses
    vectors, each of norm at most 1, adaptively. For any choice, the squared norms of what it adds
    sum to at most the squared sensitivity. So the run is an adaptive sequence of Gaussian
    mechanisms whose mu^2 sum to at most that over sigma^2, and is mu-Gaussian differentially
    private [SmithThakurta2022]. A record that always adds the same vector in the costliest pattern
    attains it. A replaced record may add the opposite vectors, which doubles mu.
    """

    sigma: float = field(metadata=declare(noise()))
    participation: Participation = field(metadata=declare(_PARTICIPATION))
    not_sampled = (
        "one sample for the whole run does not cover a record that is drawn anew in each step",
        "Use MatrixMechanism(...).sampled_cyclically(rate) where the strategy has few bands",
    )

    @property
    @abstractmethod
    def sensitivity_squared(self) -> Bound:
        """Bounds on the square of the largest L2 distance that one record can make, over all
        patterns of its steps.
        """

    @property
    def sensitivity(self) -> Bound:
        """Bounds on the largest L2 distance that one record can make."""
        square = self.sensitivity_squared
        return Bound(_root(square.lower, down), _root(square.upper, up), square.certificate)

    def _require_sensitivity(self, sigma: object) -> None:
        """Raise a DomainError unless the ratio of sensitivity to `sigma` is in the domain of the
        Gaussian loss.
        """
        mu = self.sensitivity.upper / self.sigma
        if not 1e-12 < mu < 1e6:
            raise DomainError(
                "sigma", sigma, f"sensitivity / sigma between 1e-12 and 1e6, not {mu!r}"
            )

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return one symmetric Gaussian law; attained unless the ends of the sensitivity differ by
        more than roundings.
        """
        ends = self.sensitivity
        factor = (2 if adjacency is Adjacency.REPLACE else 1) / self.sigma
        middle = ends.lower + (ends.upper - ends.lower) / 2
        if ends.width <= ALIKE * middle:
            loss = GaussianShift(middle * factor, math.ceil(ends.width / (2 * middle * U)) + 4)
            return alike(loss)
        above, below = GaussianShift(ends.upper * factor, 4), GaussianShift(ends.lower * factor, 4)
        return bounded_by(above, Pair(below, below))

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return the exact privacy amounts at the upper end of the sensitivity with sigma as double
        or decimal, whichever costs more.
        """
        noise = min(exact(self.sigma), Fraction(self.sigma))
        square = (
            Fraction(self.sensitivity_squared.upper)
            / noise**2
            * (4 if adjacency is Adjacency.REPLACE else 1)
        )
        return TypedAmounts.gaussian(square)


@dataclass(frozen=True, init=False, repr=False)
class MatrixMechanism(CorrelatedNoise):
    """The steps x of a run, encoded by a lower triangular matrix C, plus noise: C x + z with z ~
    N(0, sigma^2 I).

    A record contributes a vector of norm at most 1 to each step that it takes part in; decoding the
    output is post-processing. Under add-remove, the steps of the other records must not move when a
    record leaves: assign slots by a hash or by a fixed schedule. If they move, state the guarantee
    under zero-out. If the noise is generated by a matrix, the strategy is its inverse: the matrix
    that multiplies the steps.

    The sensitivity is exact up to rounding, which its ends enclose, in these cases: a single
    participation, at most as many bands as the separation, Toeplitz matrices with coefficients that
    do not grow, fixed slots, and few steps, if no two compatible columns have a negative product.
    Otherwise its two ends differ; its certificate states the method.

    >>> from dpcompose.mechanisms import MatrixMechanism, Participation
    >>> bands = [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    >>> twice = MatrixMechanism(bands, sigma=2.0, participation=Participation.separated(2, most=2))
    >>> twice.sensitivity_squared  # the columns of steps 0 and 2
    Bound(lower=3.0, upper=3.0)
    >>> twice.delta(epsilon=1.0).contains(0.08254210148559592)
    True

    Args:
        strategy: The matrix C as rows of numbers, lower triangular with a nonzero diagonal; at most
            4096 rows.
        sigma: The standard deviation of the noise; finite, > 0.
        participation: The patterns of steps in which one record may take part.

    Raises:
        DomainError: If the matrix is not of this form, or a number is outside its domain.

    Reference: [Choquette2023]
    """

    strategy: Strategy = field(metadata=declare(_STRATEGY))

    def __init__(self, strategy: Any, *, sigma: float, participation: Participation) -> None:
        self._state(strategy=strategy, participation=participation, sigma=sigma)
        self._require_sensitivity(sigma)

    @property
    def sensitivity_squared(self) -> Bound:
        return _sensitivity_squared(self.strategy, self.participation)

    def sampled_cyclically(self, rate: float) -> Composable:
        """Return the run in which each record belongs to one of b = separation groups, and step i
        draws from group i mod b.

        The group of a record must not depend on the data; each record of the group is drawn with
        probability `rate`. With at most b bands the columns of a record share no row: given the
        past, each of its participations is a fresh sampled Gaussian, evaluated with the largest
        column norm at that position, rounded up.

        Args:
            rate: The probability with which a record is drawn, in (0, 1].

        Raises:
            UnsupportedError: If there are more bands than groups, or the participation allows a
                record fewer steps than its group has.

        Reference: [Choquette2023]
        """
        steps, groups = self.strategy.steps, self.participation.separation
        if not self.strategy.bands <= groups:
            reason = f"with {self.strategy.bands} bands and {groups} groups, the columns of one record overlap"
            raise UnsupportedError(
                "sampled_cyclically",
                reason,
                "Take as many groups as there are bands: separation=...",
            )
        turns = -(-steps // groups)
        if self.participation.times(steps) < turns:
            reason = f"a sample may draw a record in each of its {turns} turns, more than the participation allows"
            raise UnsupportedError(
                "sampled_cyclically", reason, "Leave `most` out of the participation"
            )
        squares = np.square(self.strategy.matrix).sum(axis=0)
        error = 0.0 if _exact(self.strategy.matrix, 1) else (steps + 4) * U
        largest = [
            float(squares[first : first + groups].max()) for first in range(0, steps, groups)
        ]
        norms = [_root(each * (1 + error), up) for each in largest]
        return reduce(
            add, [Gaussian(self.sigma, sensitivity=norm).sampled(rate) * 1 for norm in norms]
        )


@lru_cache(maxsize=8)
def _sensitivity_squared(strategy: Strategy, participation: Participation) -> Bound:
    """Return bounds on the largest sum of <c_i, c_j> <u_i, u_j> over the pairs of a pattern and
    contributions u of norm at most 1.

    With no negative product of compatible columns all u are equal, and the truth is the squared
    norm of the sum of the columns of the costliest pattern. Otherwise the absolute products give an
    upper end, and u_i = +-u a lower one.

    - Toeplitz, coefficients that do not grow and are >= 0: the product of columns i < j falls with
      j - i at a fixed j, and with j at a fixed j - i. So the leftmost pattern is the costliest
      [KalininLampert2024].
    - At most as many bands as the separation: compatible columns are orthogonal, and the sum of
      squares is a chain.

    A product of n terms errs by n units of roundoff, a sum over a pattern of k by 2 k more.
    """
    matrix, gap, most = (
        strategy.matrix,
        participation.separation,
        participation.times(strategy.steps),
    )
    steps = len(matrix)
    units = 0 if _exact(matrix, most) else steps + 2 * most + 16
    positive, first = bool(matrix.min() >= 0), matrix[:, 0]
    if most == 1:
        return _ends(float(np.square(matrix).sum(axis=0).max()), units, "the largest column")
    if participation.fixed and positive:
        padded = np.pad(matrix, ((0, 0), (0, most * gap - steps)))
        slots = padded.reshape(steps, most, gap).sum(axis=1)
        return _ends(
            float(np.square(slots).sum(axis=0).max()), units, "the costliest slot of an epoch"
        )
    if not participation.fixed and strategy.bands <= gap:
        value, _ = chained(np.square(matrix).sum(axis=0), gap, most)
        return _ends(value, units, "orthogonal columns, the costliest chain of them")
    if (
        not participation.fixed
        and np.array_equal(matrix[1:, 1:], matrix[:-1, :-1])
        and _falling(first)
    ):
        value = float(np.square(matrix[:, : most * gap : gap].sum(axis=1)).sum())
        return _ends(value, units, "a Toeplitz matrix that does not grow, the leftmost pattern")
    gram = matrix.T @ matrix
    signed = gram
    if not positive:
        norms = np.sqrt(np.diag(gram))
        gram = np.abs(gram) + (np.outer(norms, norms) * ((steps + 2) * U) if units else 0.0)
    if participation.fixed:
        slots = [range(slot, steps, gap) for slot in range(min(gap, steps))]
        sums = [float(gram[np.ix_(slot, slot)].sum()) for slot in slots]
        value, pattern, method = (
            max(sums),
            slots[int(np.argmax(sums))],
            "the costliest slot of an epoch",
        )
    elif found := enumerated(gram, gap, most):
        (value, pattern), method = found, "the costliest of all patterns"
    else:
        rows = through(gram, gap, most)
        value, pattern = chained(rows, gap, most)
        units, method = steps + 2 * most + 16, "the costliest chain of upper bounds of the rows"
        leftmost = range(0, most * gap, gap)
        pattern = max((pattern, leftmost), key=lambda each: float(signed[np.ix_(each, each)].sum()))
        positive = False
    above = _ends(value, units, method)
    return (
        above
        if positive
        else Bound(
            min(_attained(matrix[:, list(pattern)]), above.upper), above.upper, above.certificate
        )
    )


def _attained(columns: Reals) -> float:
    """Return a lower bound, found by local search, on the largest squared norm of the sum of the columns over all choices
    of their signs.
    """
    gram = columns.T @ columns
    units = 0 if _exact(columns, columns.shape[1]) else sum(columns.shape) + 8
    lost = units * U * math.sqrt(float(np.square(np.abs(columns).sum(axis=1)).sum()))
    best, signs = 0.0, np.ones(len(gram))
    for turn in range(8):
        found = float(np.square(columns @ signs).sum())
        if units:
            found = max(math.sqrt(found) * (1 - units * U) - lost, 0.0) ** 2 * (1 - 4 * U)
        best = max(best, found)
        signs = np.where((gram[0] if turn == 3 else gram @ signs) < 0, -1.0, 1.0)
    return best


def _falling(coefficients: Reals) -> bool:
    """Return whether the coefficients of a Toeplitz matrix are nonnegative and do not grow."""
    return bool(np.all(np.diff(coefficients) <= 0) and coefficients[-1] >= 0)


def _exact(matrix: Reals, most: int) -> bool:
    """Return whether no product, and no sum over a pattern of `most` columns, is rounded: all are
    small multiples of a 2^-m.
    """
    for places in range(FINEST):
        scaled = matrix * 2.0**places
        if np.array_equal(scaled, np.rint(scaled)):
            return bool((most * np.abs(scaled).max()) ** 2 * len(matrix) < 2.0**52)
    return False


def _ends(value: float, units: int, method: str) -> Bound:
    """Return a bound around `value` with an error of `units` units of roundoff and `method` as
    certificate.
    """
    error = 2 * units * U * value
    return Bound(
        value - error,
        value + error,
        Certificate(method, (("rounding", error),), "squared sensitivity"),
    )


def _root(square: float, rounded: Callable[[float], float]) -> float:
    """Return the square root, rounded by `rounded`; unrounded where it is exact."""
    root = math.sqrt(square)
    return root if Fraction(root) ** 2 == Fraction(square) else rounded(root)


MOST_LEAVES = 10**6
MOST_WORK = 3 * 10**9
_STEPS = count(MOST_LEAVES)


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
