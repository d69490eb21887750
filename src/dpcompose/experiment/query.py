"""The question of a round: a mechanism of the family, and two adjacent databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from dpcompose import check
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.values import Adjacency

Database = tuple[Hashable, ...]
"""Records, in no order; the null record of `Adjacency.ZERO_OUT` is None."""
Statistic = Callable[[Database], float]


def count(database: Database) -> float:
    """The number of records."""
    return float(len(_database("database", database)))


@dataclass(frozen=True)
class Holds:
    """`value` if the database holds the record, else 0: the statistic of randomized response.

    Args:
        record: The record to look for.
        value: The statistic of a database that holds it.
    """

    record: Hashable
    value: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check.finite("value", self.value))

    def __call__(self, database: Database) -> float:
        return self.value if self.record in database else 0.0


@dataclass(frozen=True)
class Query:
    """The question of one round.

    Args:
        mechanism: One of the family.
        zero: The database of world 0.
        one: The database of world 1.
        statistic: The number that the mechanism answers about, noise aside.
    """

    mechanism: Composable
    zero: Database
    one: Database
    statistic: Statistic = count

    def __post_init__(self) -> None:
        object.__setattr__(self, "zero", _database("zero", self.zero))
        object.__setattr__(self, "one", _database("one", self.one))

    @property
    def turned(self) -> Query:
        """The same question with the databases exchanged."""
        return replace(self, zero=self.one, one=self.zero)


def _database(name: str, given: Any) -> Database:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DomainError(name, given, "the records of a database, such as ('Bob',)")
    return tuple(cast("Iterable[Any]", given))


def queries_of(given: Any) -> tuple[Query, ...]:
    """`given` as the questions of an adversary: at least one Query."""
    found = tuple(cast("Iterable[Any]", given)) if isinstance(given, Iterable) else ()
    if not (found and all(isinstance(each, Query) for each in found)):
        raise DomainError("queries", given, "at least one Query")
    return found


def direction(zero: Database, one: Database, adjacency: Adjacency) -> int | None:
    """1 if the record is in `zero` alone, -1 if in `one` alone, 0 if neither is known; None if not adjacent."""
    left, right = Counter(zero), Counter(one)
    more, less = left - right, right - left
    many = (more.total(), less.total())
    if many == (0, 0):
        return 0
    if adjacency is Adjacency.ADD_REMOVE:
        return {(1, 0): 1, (0, 1): -1}.get(many)
    if many != (1, 1):
        return None
    if adjacency is Adjacency.REPLACE:
        return 0
    return 1 if None in less else -1 if None in more else None
