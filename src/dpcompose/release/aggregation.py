"""The aggregation of a question: its keys, its bins and the fixed-point grid of each column.

Every value that a row can hold has a defined result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

from dpcompose.errors import DomainError
from dpcompose.release.columns import Key
from dpcompose.release.noise import exact
from dpcompose.release.query import Engine, Value, case

MOST_STEPS = 2**40
STEPS = 2**20
TINY = 2.0**-10
LARGEST_END = 10**15


@dataclass(frozen=True)
class FixedPointGrid:
    """A fixed-point grid: numbers from `lower` to `upper` in steps of `granularity`.

    A number x is clamped to [lower, upper] and becomes the integer floor(x / granularity + 1/2), in
    double precision. Every engine rounds division and multiplication by a power of ten or two
    alike, and each operation is monotone, so the result lies between the images of both ends
    whatever the row holds. Infinities are clamped; NULL and NaN are left out.

    Args:
        lower: The lower end; exact.
        upper: The upper end; exact.
        granularity: The step; exact, > 0.
    """

    lower: Fraction
    upper: Fraction
    granularity: Fraction

    @classmethod
    def stated(
        cls, lower: object, upper: object, granularity: object, *, whole: bool, steps: int = STEPS
    ) -> FixedPointGrid:
        """Return the grid over a range, as typed. The default granularity is 1 for integers, else
        it gives at least `steps` steps.

        Raises:
            DomainError: If an end is no number, lower >= upper, or there are more than 2^40 steps.
        """
        least, most = exact("lower", lower), exact("upper", upper)
        if not least < most:
            raise DomainError("upper", upper, f"a number above lower = {lower!r}")
        if not max(abs(least), abs(most)) <= LARGEST_END:
            raise DomainError("upper", upper, "ends of absolute value at most 10^15")
        step = (
            _default(most - least, whole, steps)
            if granularity is None
            else exact("granularity", granularity)
        )
        if not 0 < step <= most - least:
            raise DomainError("granularity", granularity, "a number > 0 and at most upper - lower")
        if not max(abs(least), abs(most)) / step <= MOST_STEPS or float(step) == 0:
            raise DomainError(
                "granularity",
                granularity,
                "at most 2^40 steps from 0 to either end",
                "Take a larger one",
            )
        return cls(least, most, step)

    @cached_property
    def first(self) -> int:
        """The integer that `lower` becomes."""
        return self._image(float(self.lower))

    @cached_property
    def last(self) -> int:
        """The integer that `upper` becomes."""
        return self._image(float(self.upper))

    @cached_property
    def middle(self) -> int:
        """A grid point next to the middle of the range; centering there halves the largest absolute
        value.
        """
        return (self.first + self.last) // 2

    def largest(self, center: int = 0) -> int:
        """The largest absolute value of a step count minus `center`; at least 1."""
        return max(abs(self.first - center), abs(self.last - center), 1)

    def value(self, steps: int | Fraction) -> float:
        """Return the number that a step count stands for, rounded to nearest."""
        return float(steps * self.granularity)

    def image(self, engine: Engine, column: Value) -> Value:
        """Return SQL for the column, clamped and rounded to the grid, as integers: multiples of granularity.

        The result for NULL and NaN is unspecified, but no row raises an error.
        """
        # Every engine orders NaN above all numbers, so clamping makes it the upper end.
        least, most = (engine.constant(float(end)) for end in (self.lower, self.upper))
        clamped = f"GREATEST(LEAST({engine.double_of(column)}, {most}), {least})"
        half, step = engine.constant(0.5), engine.constant(float(self.granularity))
        if self._multiplier is not None:
            steps = f"FLOOR({clamped} * {engine.constant(self._multiplier)} + {half})"
            return engine.cast(steps, "int64")
        # PostgreSQL refuses quotients that underflow, so a number far below one step becomes 0
        # before scaling.
        small = f"ABS({clamped}) < {engine.constant(TINY * float(self.granularity))}"
        seen = case((small, engine.constant(0.0)), other=clamped)
        return engine.cast(f"FLOOR({seen} / {step} + {half})", "int64")

    @cached_property
    def _multiplier(self) -> float | None:
        """1 / granularity where that is an integer, since 0.01 is no double but 100 is; else None."""
        return float(1 / self.granularity) if self.granularity.numerator == 1 else None

    def _image(self, number: float) -> int:
        """Return the step count of a number by the same arithmetic as the engines use."""
        if abs(number) < TINY * float(self.granularity):
            return 0
        scaled = (
            number * self._multiplier
            if self._multiplier is not None
            else number / float(self.granularity)
        )
        return math.floor(scaled + 0.5)


def _default(span: Fraction, whole: bool, steps: int) -> Fraction:
    """Return the default granularity: 1 for integers, else the largest power of two with at least
    `steps` steps.
    """
    if whole:
        return Fraction(1)
    power = math.floor(math.log2(span / steps))
    return Fraction(2) ** power


MOST_BINS = 10_000
MOST_CANDIDATES = 100_000


class Bins(Protocol):
    """Public bins of a column, numbered from 0."""

    @property
    def count(self) -> int:
        """The number of bins."""
        ...

    def index(self, engine: Engine, column: Value) -> Value:
        """Return SQL for the bin of each number; NULL for a number in no bin."""
        ...


@dataclass(frozen=True)
class Edges:
    """Bins [e0, e1), [e1, e2), ..., the last one closed. Numbers outside, NULL and NaN are in no
    bin.

    Args:
        edges: Exact increasing numbers; at least two.
    """

    edges: tuple[Fraction, ...]

    @classmethod
    def stated(cls, edges: Sequence[object]) -> Edges:
        """Return the bins with these typed edges.

        Raises:
            DomainError: If the edges are not increasing numbers, or not between 2 and 10,001.
        """
        found = tuple(exact(f"edges[{position}]", edge) for position, edge in enumerate(edges))
        if not 2 <= len(found) <= MOST_BINS + 1:
            raise DomainError("edges", list(edges), f"between 2 and {MOST_BINS + 1:,} numbers")
        if not all(one < other for one, other in pairwise(found)):
            raise DomainError("edges", list(edges), "increasing numbers")
        return cls(found)

    @property
    def count(self) -> int:
        return len(self.edges) - 1

    def index(self, engine: Engine, column: Value) -> Value:
        value = engine.double_of(column)
        # Engines order NaN above every number.
        edges = [engine.constant(float(edge)) for edge in self.edges]
        outside = f"{value} IS NULL OR {value} < {edges[0]} OR {value} > {edges[-1]}"
        branches = [(f"{value} < {edge}", str(at)) for at, edge in enumerate(edges[1:-1])]
        return engine.cast(case((outside, "NULL"), *branches, other=str(self.count - 1)), "int64")


@dataclass(frozen=True)
class RowNumbers:
    """One bin for each number of rows of a unit: 1, 2, ...; the last bin also holds all larger
    numbers.

    Args:
        count: The number of bins.
    """

    count: int

    def index(self, engine: Engine, column: Value) -> Value:
        return engine.cast(f"LEAST({column}, {self.count}) - 1", "int64")


@dataclass(frozen=True)
class GridPoints:
    """One bin for every point of a grid. A number goes to the nearest point, and numbers outside go
    to the ends.

    Args:
        grid: A grid of at most 100,000 points.
    """

    grid: FixedPointGrid

    def __post_init__(self) -> None:
        if not self.count <= MOST_CANDIDATES:
            domain = (
                f"at most {MOST_CANDIDATES:,} steps between lower and upper, not {self.count - 1:,}"
            )
            raise DomainError(
                "granularity", float(self.grid.granularity), domain, "Take a larger one"
            )

    @property
    def count(self) -> int:
        return self.grid.last - self.grid.first + 1

    def index(self, engine: Engine, column: Value) -> Value:
        number = engine.double_of(column)
        nowhere = f"{number} IS NULL OR {engine.is_nan(number)}"
        place = f"{self.grid.image(engine, column)} - {self.grid.first}"
        return engine.cast(case((nowhere, "NULL"), other=f"({place})"), "int64")


MOST_CELLS = 10**7


@dataclass(frozen=True)
class Term:
    """A sum over rows of (x - center)^power - shift, where x is a column as steps on its grid.

    Args:
        column: The name of the column.
        grid: Its grid.
        center: The integer subtracted from each step count.
        power: 1 or 2.
        shift: The integer subtracted from each power, to center it as well.
    """

    column: str
    grid: FixedPointGrid
    center: int = 0
    power: int = 1
    shift: int = 0

    @property
    def largest(self) -> int:
        """The largest absolute value of one row's summand; at least 1."""
        far = self.grid.largest(self.center)
        if self.power == 1:
            return far
        return max(far * far - self.shift, self.shift, 1)

    def of(self, steps: str) -> str:
        """Return the summand of one row; it fits in 64 bits by the bound on the change of a unit."""
        moved = f"({steps} - {self.center})"
        return moved if self.power == 1 else f"({moved} * {moved} - {self.shift})"


@dataclass(frozen=True)
class Aggregation:
    """The counts and sums that a question needs, and their groups.

    Args:
        by: The grouping columns.
        public: The public groups; None if the groups are private and found in the data.
        bins: The column that splits every group into bins and its bins; None for the column means
            the number of a unit's rows.
        distinct: Whether a unit counts once in a group, whatever the number of its rows.
        terms: Sums of columns or of their squares, on their grids.
        item: The column whose distinct values are counted instead of rows; or None.
        lost: A question: count the units that lose a row of it, and all units; or None.
        fewest: Private groups with fewer units or rows than this are left out.
        measure: What `fewest` counts: 0 for units, 1 for rows.
        among: For each grouping column its public values, where the combinations that occur are
            private.
    """

    by: tuple[str, ...]
    public: tuple[Key, ...] | None
    bins: tuple[str | None, Bins] | None = None
    distinct: bool = False
    terms: tuple[Term, ...] = ()
    item: str | None = None
    lost: Aggregation | None = None
    fewest: int = 1
    measure: int = 0
    among: tuple[tuple[Any, ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.public is None or self.bins is None:
            return
        cells = len(self.public) * self.bins[1].count
        if not cells <= MOST_CELLS:
            raise DomainError(
                "keys",
                len(self.public),
                f"at most {MOST_CELLS:,} cells, keys times bins",
                "Split the question",
            )

    @property
    def groups(self) -> int | None:
        """The number of groups if they are public, else None."""
        return None if self.public is None else len(self.public)

    @property
    def images(self) -> tuple[tuple[str, FixedPointGrid | Bins], ...]:
        """The columns of numbers that are summed or binned, each with its grid or bins."""
        return (*((term.column, term.grid) for term in self.terms), *self.binned)

    @property
    def binned(self) -> tuple[tuple[str, Bins], ...]:
        """The column that splits groups into bins; None if there is none."""
        return () if self.bins is None or self.bins[0] is None else ((self.bins[0], self.bins[1]),)

    @property
    def by_rows(self) -> bool:
        """Whether groups are split by the number of a unit's rows."""
        return self.bins is not None and self.bins[0] is None

    @property
    def counts(self) -> tuple[str, ...]:
        """The names of a group's integers before its sums: units, if groups are private, and rows."""
        return ("rows",) if self.public is not None else ("units", "rows")

    @property
    def width(self) -> int:
        """The number of integers of each group and bin."""
        if self.lost is not None or self.distinct:
            return 1 + (self.lost is not None)
        return len(self.counts) + len(self.terms)
