"""Bins of a column: between declared edges, or one for every point of a grid."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

from dpcompose.errors import DomainError
from dpcompose.release.decimals import exact
from dpcompose.release.expression import Expression
from dpcompose.release.grid import Grid

MOST_BINS = 10_000
MOST_CANDIDATES = 100_000


class Bins(Protocol):
    """Public bins, numbered from 0."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    def index(self, column: Expression, *, whole: bool) -> Expression:
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

    def index(self, column: Expression, *, whole: bool) -> Expression:
        import ibis

        numbers = [float(edge) for edge in self.edges]
        value = column if whole else column.cast("float64")
        outside = value.isnull() | (value < numbers[0]) | (value > numbers[-1])
        if not whole:
            outside = outside | value.isnan()
        branches = [(value < edge, position) for position, edge in enumerate(numbers[1:-1])]
        return ibis.cases((outside, ibis.null("int64")), *branches, else_=self.count - 1).cast("int64")


@dataclass(frozen=True)
class Points:
    """One bin for every point of a grid: numbers go to the nearest, those beyond the ends to the ends.

    Args:
        grid: At most 100,000 points.
    """

    grid: Grid

    def __post_init__(self) -> None:
        if not self.count <= MOST_CANDIDATES:
            domain = f"at most {MOST_CANDIDATES:,} steps between lower and upper, not {self.count - 1:,}"
            raise DomainError("granularity", float(self.grid.granularity), domain, "Take a larger one")

    @property
    def count(self) -> int:
        return self.grid.last - self.grid.first + 1

    def index(self, column: Expression, *, whole: bool) -> Expression:
        import ibis

        nowhere = column.isnull() if whole else column.isnull() | column.cast("float64").isnan()
        place = self.grid.image(column, whole=whole) - self.grid.first
        return ibis.cases((nowhere, ibis.null("int64")), else_=place)
