"""The contribution that one unit of privacy may make to a table, and how far it can move a vector of integers."""

from __future__ import annotations

from dataclasses import dataclass

from dpcompose import check
from dpcompose.errors import DomainError

MOST_ROWS = 2**31
LARGEST_CHANGE = 2**53
"""The L1 change of one unit: integers up to here are floats."""


@dataclass(frozen=True)
class Change:
    """How far adding or removing one unit can move a vector of integers, in the norms that noise is made for.

    Args:
        largest: The largest change of one coordinate; >= 1.
        coordinates: How many coordinates can change; >= 1.
        l1: The largest sum of the sizes of the changes.
        l2_squared: The largest sum of their squares.
        box: Whether every coordinate may change by `largest` at once, so that the worst case is one known vector.
    """

    largest: int
    coordinates: int
    l1: int
    l2_squared: int
    box: bool

    @property
    def worst(self) -> tuple[int, ...] | None:
        """The change that dominates all others, one integer a coordinate; None where no single one does."""
        return (self.largest,) * self.coordinates if self.box else None


@dataclass(frozen=True)
class Bounds:
    """The part of one unit's rows that is kept: the bounds are enforced on the table, not hoped for.

    Args:
        rows: Rows of one unit in all.
        groups: Groups in which one unit has rows.
        rows_per_group: Rows of one unit in one group.
    """

    rows: int
    groups: int
    rows_per_group: int

    @classmethod
    def stated(
        cls, rows: object, *, groups: object = None, rows_per_group: object = None
    ) -> Bounds:
        """The bounds as typed; what is left out follows from the number of rows.

        Raises:
            DomainError: If a bound is no integer between 1 and 2^31, or exceeds the number of rows.
        """
        most = _bound("max_rows_per_unit", rows, MOST_ROWS)
        return cls(
            most,
            most if groups is None else _bound("max_groups_per_unit", groups, most),
            most if rows_per_group is None else _bound("max_rows_per_group", rows_per_group, most),
        )

    def within(self, cells: int | None) -> Bounds:
        """The same bounds where there are only so many groups; None for an unknown number."""
        return (
            self
            if cells is None
            else Bounds(self.rows, min(self.groups, max(cells, 1)), self.rows_per_group)
        )

    def change(self, size: int, *, bins: int = 1) -> Change:
        """How far one unit moves the sums over groups of integers of at most that size, one a row.

        With v_i rows in group i: v_i <= rows_per_group, at most `groups` of them, sum v_i <= rows. The sum of squares
        is convex, so it is largest with as many full groups as fit and the rest in one more. Where each group is split
        into bins, the same rows may lie in one bin each or spread over several, which lowers the sum of squares.
        """
        full = min(self.groups, self.rows // self.rows_per_group)
        rest = (
            min(self.rows - full * self.rows_per_group, self.rows_per_group)
            if full < self.groups
            else 0
        )
        l1 = full * self.rows_per_group + rest
        if not size * l1 <= LARGEST_CHANGE:
            raise DomainError(
                "change of one unit",
                size * l1,
                "at most 2^53 grid steps",
                "Take a coarser granularity or fewer rows",
            )
        return Change(
            largest=size * self.rows_per_group,
            coordinates=min(self.groups * bins, l1),
            l1=size * l1,
            l2_squared=size * size * (full * self.rows_per_group**2 + rest**2),
            box=full == self.groups and (bins == 1 or self.rows_per_group == 1),
        )

    @property
    def presence(self) -> Change:
        """How far one unit moves the numbers of distinct units: by 1 in every group in which it has a row."""
        groups = min(self.groups, self.rows)
        return Change(largest=1, coordinates=groups, l1=groups, l2_squared=groups, box=True)


def _bound(name: str, value: object, most: int) -> int:
    number = check.count(name, value)
    if not 1 <= number <= most:
        raise DomainError(name, number, f"an integer between 1 and {most:,}")
    return number
