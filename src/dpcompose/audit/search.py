"""The search for pairs: patterns of changes to a database of numbers, at several distances.

Theorem 6: a pair k apart is a legitimate pair for the claim's group of k, and shows relative errors of epsilon where k
epsilon is about 2. Distances 1, 2, 4, ... are arms of the audit, up to k epsilon = 4; no arm costs a logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

from dpcompose.audit.claim import DELTAS, points
from dpcompose.audit.pair import Pair
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.values import Adjacency

MOST = 4.0
"""The largest epsilon of a group that is searched."""
FAR = 64
"""The largest distance."""
EXTREMES = (math.nan, math.inf, -math.inf, 1e308, -0.0, 2**53 + 1)
"""Numbers that overflow, compare with nothing, or are equal to others and not the same."""
MANY_ROWS = 256
"""Rows of a large dataset."""
MOST_RECORDS = 8
"""Records that are tried."""


def distances(claim: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> tuple[int, ...]:
    """1, 2, 4, ... while the group's epsilon is at most `MOST`, at a delta that is not large."""
    found = points(claim, adjacency=adjacency)
    epsilon = min(
        point.epsilon for point in found if point.delta <= max(DELTAS[0], found[-1].delta)
    )
    return tuple(
        1 << power
        for power in range(FAR.bit_length())
        if not power or (1 << power) * epsilon <= MOST
    )


def numbers(
    distance: int, *, adjacency: Adjacency, domain: tuple[float, float] | None = None
) -> Iterator[Pair]:
    """Databases of numbers so far apart: from none, to many records, at the ends of their domain and beyond.

    Args:
        distance: The number of records that differ, each by one step.
        adjacency: Replacing changes a record; else it is there or not.
        domain: The least and the largest record; None: 0 and 1, and there are records beyond.
    """
    low, high = domain or (0.0, 1.0)
    middle = (low + high) / 2
    beyond = () if domain else (100.0,)
    for others in ((), (low,) * 3, (high,) * 3, (low, middle, high)):
        if adjacency is Adjacency.REPLACE:
            yield Pair(
                (*others, *(high,) * distance), (*others, *(low,) * distance), distance=distance
            )
        elif adjacency is Adjacency.ADD_REMOVE:
            for record in (high, low, *beyond):
                yield Pair((*others, *(record,) * distance), others, distance=distance)
        else:
            yield Pair(
                (*others, *(high,) * distance), (*others, *(None,) * distance), distance=distance
            )


def extremes(
    adjacency: Adjacency, domain: tuple[float, float] | None = None
) -> tuple[list[Pair], list[Pair]]:
    """Databases that differ in a record at the edges of numbers, a tie, or one of many rows: where code goes wrong.

    Args:
        adjacency: Replacing changes a record, zeroing out makes it None; else it is there or not.
        domain: The least and the largest record; None: it is not stated, and every number is one.

    Returns:
        Those that every mechanism of numbers has to stand, and those that only one that answers about them has to.
    """
    low, high = domain or (0.0, 1.0)
    middle = (low + high) / 2
    records = [each for each in EXTREMES if domain is None or low <= each <= high]

    def pair(others: tuple[Any, ...], record: Any, other: Any = middle) -> Pair:
        if adjacency is Adjacency.ADD_REMOVE:
            return Pair((*others, record), others)
        return Pair((*others, record), (*others, other if adjacency is Adjacency.REPLACE else None))

    firm = [pair((middle,), each) for each in records]
    firm += [pair((middle,) * MANY_ROWS, high), pair((low, high) * 2, high, low)]
    others = ("",) if adjacency is Adjacency.ZERO_OUT else ("", None)
    return firm, [] if domain else [pair((middle,), each) for each in others]


def of_records(
    records: Sequence[Any], distance: int, *, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> Iterator[Pair]:
    """Databases of given records so far apart: each record added to none, to one, to some and to copies of itself.

    Args:
        records: At least one record; two where one is replaced by another.
        distance: The number of records that differ, each by one step.
        adjacency: Replacing changes a record, zeroing out makes it None; else it is there or not.
    """
    for place, record in enumerate(records):
        after = records[(place + 1) % len(records)]
        for others in ((), (after,), tuple(records[:3]), (record,) * 3):
            if adjacency is Adjacency.ADD_REMOVE:
                yield Pair((*others, *(record,) * distance), others, distance=distance)
            else:
                other = after if adjacency is Adjacency.REPLACE else None
                yield Pair(
                    (*others, *(record,) * distance),
                    (*others, *(other,) * distance),
                    distance=distance,
                )


def drawn_records(records: Any) -> tuple[Any, ...]:
    """Records that are given, or drawn from a Hypothesis strategy, always the same ones.

    Raises:
        DomainError: If there is none.
    """
    if isinstance(records, Sequence) and not isinstance(records, str | bytes):
        found = list(cast("Sequence[Any]", records))
    else:
        found = _examples(records)
    if not found:
        raise DomainError("records", records, "at least one record, or a Hypothesis strategy")
    return tuple(found[:MOST_RECORDS])


def _examples(strategy: Any) -> list[Any]:
    try:
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis.strategies import SearchStrategy
    except ImportError:
        raise DomainError(
            "records", strategy, "a list of records; for strategies, install hypothesis"
        ) from None
    if not isinstance(strategy, SearchStrategy):
        raise DomainError("records", strategy, "a list of records, or a Hypothesis strategy")
    found: list[Any] = []

    def kept(record: Any) -> None:
        if not any(repr(record) == repr(each) for each in found):
            found.append(record)

    asked: Any = settings(
        max_examples=4 * MOST_RECORDS, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=[*cast("Any", HealthCheck)],
    )  # fmt: skip
    asked(given(cast("Any", strategy))(kept))()
    return found


def vectors(length: int, distance: int) -> Iterator[Pair]:
    """Answers of so many queries of sensitivity 1, each moved by the distance: the usual patterns.

    All up, one up, one against all others, half against half, and all up with the last one down.
    """
    step, flat = float(distance), (0.0,) * length
    half = length // 2
    yield Pair((step,) * length, flat, distance=distance)
    yield Pair((step, *flat[1:]), flat, distance=distance)
    if length > 1:
        yield Pair((0.0, *(step,) * (length - 1)), (step, *flat[1:]), distance=distance)
        yield Pair(
            (step,) * half + (0.0,) * (length - half),
            (0.0,) * half + (step,) * (length - half),
            distance=distance,
        )
        yield Pair((*(step,) * (length - 1), 0.0), (*flat[1:], step), distance=distance)
