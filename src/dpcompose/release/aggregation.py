"""The aggregation of a question: its keys, bins, and the fixed-point grid of a column.

Everything that a row can hold has a defined result.
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
from dpcompose.release.query import Engine, Value, case
from dpcompose.release.spend import exact

MOST_STEPS = 2**40
STEPS = 2**20
TINY = 2.0**-10
LARGEST_END = 10**15


@dataclass(frozen=True)
class FixedPointGrid:
    """Numbers from `lower` to `upper` in steps of `granularity`.

    A number x is clamped to [lower, upper] and becomes floor(x / granularity + 1/2), in double precision: division and
    multiplication by a power of ten or two are rounded alike by every engine, and all of it is monotone, so the result
    lies between the images of both ends whatever the row holds. Infinities are clamped; NULL and NaN are left out.

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
        """The grid as typed; without a granularity, steps of 1 for integers, else at least so many in the range.

        Raises:
            DomainError: If an end is no number, lower >= upper, or there are more than 2^40 steps.
        """
        least, most = exact("lower", lower), exact("upper", upper)
        if not least < most:
            raise DomainError("upper", upper, f"a number above lower = {lower!r}")
        if not max(abs(least), abs(most)) <= LARGEST_END:
            raise DomainError("upper", upper, "ends of a size of at most 10^15")
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
        """The image of `lower`."""
        return self._image(float(self.lower))

    @cached_property
    def last(self) -> int:
        """The image of `upper`."""
        return self._image(float(self.upper))

    @cached_property
    def middle(self) -> int:
        """A grid point next to the middle: centered on it, a number is half as large at most."""
        return (self.first + self.last) // 2

    def largest(self, center: int = 0) -> int:
        """The largest size of a step count, less `center`; at least 1."""
        return max(abs(self.first - center), abs(self.last - center), 1)

    def value(self, steps: int | Fraction) -> float:
        """The number that so many steps stand for, to nearest."""
        return float(steps * self.granularity)

    def image(self, engine: Engine, column: Value, *, whole: bool) -> Value:
        """The column as step counts. What is made of NULL and NaN is not said; but no row makes an error."""
        if (
            whole
            and self.granularity == 1
            and self.lower.denominator == self.upper.denominator == 1
        ):
            least, most = int(self.lower), int(self.upper)
            ends = (f"{column} < {least}", str(least)), (f"{column} > {most}", str(most))
            return engine.cast(case(*ends, other=column), "int64")
        # Every engine takes NaN for the largest number: clamped, it is the upper end.
        least, most = (engine.constant(float(end)) for end in (self.lower, self.upper))
        clamped = f"GREATEST(LEAST({engine.double_of(column)}, {most}), {least})"
        half, step = engine.constant(0.5), engine.constant(float(self.granularity))
        if self._multiplier is not None:
            steps = f"FLOOR({clamped} * {engine.constant(self._multiplier)} + {half})"
            return engine.cast(steps, "int64")
        # PostgreSQL refuses quotients that underflow: what is far below a step is 0 before it is scaled.
        small = f"ABS({clamped}) < {engine.constant(TINY * float(self.granularity))}"
        seen = case((small, engine.constant(0.0)), other=clamped)
        return engine.cast(f"FLOOR({seen} / {step} + {half})", "int64")

    @cached_property
    def _multiplier(self) -> float | None:
        """1 / granularity where that is an integer: 0.01 is no double, 100 is one."""
        return float(1 / self.granularity) if self.granularity.numerator == 1 else None

    def _image(self, number: float) -> int:
        """The same arithmetic as the engines'."""
        if abs(number) < TINY * float(self.granularity):
            return 0
        scaled = (
            number * self._multiplier
            if self._multiplier is not None
            else number / float(self.granularity)
        )
        return math.floor(scaled + 0.5)


def _default(span: Fraction, whole: bool, steps: int) -> Fraction:
    """1 for integers; else the largest power of two with at least so many steps in the range."""
    if whole:
        return Fraction(1)
    power = math.floor(math.log2(span / steps))
    return Fraction(2) ** power


MOST_BINS = 10_000
MOST_CANDIDATES = 100_000


class Bins(Protocol):
    """Public bins, numbered from 0."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    def index(self, engine: Engine, column: Value, *, whole: bool) -> Value:
        """The bin of each number, NULL for what lies in none."""
        ...


@dataclass(frozen=True)
class Edges:
    """Bins [e0, e1), [e1, e2), ..., the last one closed; what lies outside, NULL and NaN are in none.

    Args:
        edges: Exact, increasing; at least two.
    """

    edges: tuple[Fraction, ...]

    @classmethod
    def stated(cls, edges: Sequence[object]) -> Edges:
        """The edges as typed.

        Raises:
            DomainError: If they are not increasing numbers, between 2 and 10,001 of them.
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

    def index(self, engine: Engine, column: Value, *, whole: bool) -> Value:
        value = column if whole else engine.double_of(column)
        # NaN is above every number.
        edges = [engine.constant(float(edge)) for edge in self.edges]
        outside = f"{value} IS NULL OR {value} < {edges[0]} OR {value} > {edges[-1]}"
        branches = [(f"{value} < {edge}", str(at)) for at, edge in enumerate(edges[1:-1])]
        return engine.cast(case((outside, "NULL"), *branches, other=str(self.count - 1)), "int64")


@dataclass(frozen=True)
class RowNumbers:
    """One bin for every number of rows of a unit: 1, 2, ..., the last one for all that is not below it.

    Args:
        count: How many bins.
    """

    count: int

    def index(self, engine: Engine, column: Value, *, whole: bool) -> Value:
        return engine.cast(f"LEAST({column}, {self.count}) - 1", "int64")


@dataclass(frozen=True)
class GridPoints:
    """One bin for every point of a grid: numbers go to the nearest, those beyond the ends to the ends.

    Args:
        grid: At most 100,000 points.
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

    def index(self, engine: Engine, column: Value, *, whole: bool) -> Value:
        number = engine.double_of(column)
        nowhere = f"{column} IS NULL" if whole else f"{number} IS NULL OR {engine.is_nan(number)}"
        place = f"{self.grid.image(engine, column, whole=whole)} - {self.grid.first}"
        return engine.cast(case((nowhere, "NULL"), other=f"({place})"), "int64")


MOST_CELLS = 10**7


@dataclass(frozen=True)
class Term:
    """A sum over rows: of (x - center)^power - shift, x the steps of a column on its grid.

    Args:
        column: Its name.
        grid: Its grid.
        center: What is taken from each step count.
        power: 1 or 2.
        shift: What is taken from each power, to center it too.
    """

    column: str
    grid: FixedPointGrid
    center: int = 0
    power: int = 1
    shift: int = 0

    @property
    def largest(self) -> int:
        """The largest size of what one row adds, at least 1."""
        far = self.grid.largest(self.center)
        if self.power == 1:
            return far
        return max(far * far - self.shift, self.shift, 1)

    def of(self, steps: str) -> str:
        """The part of one row, an integer of at most 64 bits by the bound on the change of a unit."""
        moved = f"({steps} - {self.center})"
        return moved if self.power == 1 else f"({moved} * {moved} - {self.shift})"


@dataclass(frozen=True)
class Aggregation:
    """The counts and sums to take, and their groups.

    Args:
        by: The grouping columns.
        public: The groups, where they are public; None where they are discovered, and private.
        bins: The column that splits every group into bins, or None for the number of a unit's rows; or nothing.
        distinct: Whether a unit counts once in a group, however many rows it has.
        terms: Sums of columns, on their grids, or of their squares.
        item: The column whose distinct values are counted in place of rows; or None.
        lost: The question of which units that lose a row are counted, and all units; or None.
        fewest: Private groups of fewer units, or rows, are left out.
        measure: What those are fewer of: 0 for units, 1 for rows.
        among: For each grouping column the public values that count, where the combinations that occur are private.
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
                "Ask in parts",
            )

    @property
    def groups(self) -> int | None:
        """How many groups there are, where they are public."""
        return None if self.public is None else len(self.public)

    @property
    def images(self) -> tuple[tuple[str, FixedPointGrid | Bins], ...]:
        """The grids and bins of columns of numbers, which are added up or split groups."""
        return (*((term.column, term.grid) for term in self.terms), *self.binned)

    @property
    def binned(self) -> tuple[tuple[str, Bins], ...]:
        """The column that splits groups into bins, if one does."""
        return () if self.bins is None or self.bins[0] is None else ((self.bins[0], self.bins[1]),)

    @property
    def by_rows(self) -> bool:
        """Whether groups are split by the number of a unit's rows."""
        return self.bins is not None and self.bins[0] is None

    @property
    def counts(self) -> tuple[str, ...]:
        """The integers of a group before its sums: its units, if it is private, and its rows."""
        return ("rows",) if self.public is not None else ("units", "rows")

    @property
    def width(self) -> int:
        """How many integers there are for each group (and bin)."""
        if self.lost is not None or self.distinct:
            return 1 + (self.lost is not None)
        return len(self.counts) + len(self.terms)
