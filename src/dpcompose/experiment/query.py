"""The question of a round: a mechanism of the family, and two adjacent databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from dpcompose import check
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.experiment.channel import reach_of
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
    def exchanged(self) -> Query:
        """The same question with the databases exchanged."""
        return replace(self, zero=self.one, one=self.zero)


def _database(name: str, records: Any) -> Database:
    if isinstance(records, str) or not isinstance(records, Iterable):
        raise DomainError(name, records, "the records of a database, such as ('Bob',)")
    return tuple(cast("Iterable[Any]", records))


def queries_of(queries: Any) -> tuple[Query, ...]:
    """`queries` as the questions of an adversary: at least one Query."""
    found = tuple(cast("Iterable[Any]", queries)) if isinstance(queries, Iterable) else ()
    if not (found and all(isinstance(each, Query) for each in found)):
        raise DomainError("queries", queries, "at least one Query")
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


# The question about Bob with the largest loss that a mechanism allows.


_OTHER: dict[Adjacency, Database] = {
    Adjacency.ADD_REMOVE: (),
    Adjacency.REPLACE: ("Eve",),
    Adjacency.ZERO_OUT: (None,),
}


def about_bob(mechanism: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Query:
    """The question whether Bob is in the database: he is in world 0, and the values differ by the whole sensitivity.

    >>> from dpcompose import Laplace
    >>> query = about_bob(Laplace(1.0, sensitivity=2.0))
    >>> query.statistic(query.zero), query.statistic(query.one)
    (2.0, 0.0)

    Args:
        mechanism: The mechanism that answers.
        adjacency: The neighboring relation.

    Raises:
        DomainError: If the one is no mechanism, or the other no Adjacency.
        UnsupportedError: If the mechanism has several coordinates.
    """
    if not isinstance(mechanism, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("mechanism", mechanism, "a mechanism, such as Laplace(2.0)")
    other = _OTHER[check.member("adjacency", adjacency, Adjacency)]
    return Query(mechanism, ("Bob",), other, Holds("Bob", reach_of(mechanism, adjacency)))
