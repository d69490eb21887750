"""The integers that a question wants of a table: counts, sums, and the groups and bins that they are of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.release.grid import Bins, FixedPointGrid
from dpcompose.release.table import Key

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

    def of(self, steps: Any) -> Any:
        """The part of one row, an integer of at most 64 bits by the bound on the change of a unit."""
        moved = steps - self.center
        return moved if self.power == 1 else moved * moved - self.shift


@dataclass(frozen=True)
class Aggregation:
    """The counts and sums to take, and their groups.

    Args:
        by: The grouping columns.
        public: The groups, where they are public; None where they are discovered, and private.
        value: The column that is added up, on its grid, and the step count that is taken from each; or None.
        bins: The column that splits every group into bins, or None for the number of a unit's rows; or nothing.
        distinct: Whether a unit counts once in a group, however many rows it has.
        terms: More sums of columns, on their grids, or of their squares.
        item: The column whose distinct values are counted in place of rows; or None.
        lost: The question of which units that lose a row are counted, and all units; or None.
        fewest: Private groups of fewer units, or rows, are left out.
        measure: What those are fewer of: 0 for units, 1 for rows.
        among: For each grouping column the public values that count, where the combinations that occur are private.
    """

    by: tuple[str, ...]
    public: tuple[Key, ...] | None
    value: tuple[str, FixedPointGrid, int] | None = None
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
    def column(self) -> str | None:
        """The one column that is added up, or that splits groups into bins; or None."""
        found = {of[0] for of in (self.value, self.bins) if of is not None} | {
            term.column for term in self.terms
        }
        return found.pop() if len(found) == 1 else None

    @property
    def width(self) -> int:
        """How many integers there are for each group (and bin)."""
        if self.distinct:
            return 1
        return (
            1
            + (self.value is not None)
            + len(self.terms)
            + (self.public is None)
            + (self.lost is not None)
        )
