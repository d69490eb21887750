"""Default claims and pairs of datasets, for a subject about which nothing else is stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from dpcompose import check
from dpcompose.audit.claim import DELTAS, Pair, points
from dpcompose.audit.feature import table_of
from dpcompose.audit.outcome import TIMEOUT
from dpcompose.audit.subject import Source
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.mechanisms import BlackBox, Concentrated, GaussianDP
from dpcompose.values import Adjacency

MOST = 4.0
"""The largest epsilon of group privacy at which pairs of datasets are searched."""
FAR = 64
"""The largest distance of a pair."""
EXTREMES = (math.nan, math.inf, -math.inf, 1e308, -0.0, 2**53 + 1)
"""Numbers that overflow, cannot be compared, or equal others of different bits."""
MANY_ROWS = 256
"""The number of rows of a large dataset."""
MOST_RECORDS = 8
"""The largest number of user-supplied records that are used."""


def distances(claim: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> tuple[int, ...]:
    """The distances 1, 2, 4, ... at which the claim's group epsilon is at most `MOST`; 1 is always
    included.

    The epsilon is the smallest of the claim's points whose delta is at most 0.1, or at most that of
    the last point.
    """
    found = points(claim, adjacency=adjacency)
    epsilon = min(
        point.epsilon for point in found if point.delta <= max(DELTAS[0], found[-1].delta)
    )
    return tuple(
        1 << power
        for power in range(FAR.bit_length())
        if not power or (1 << power) * epsilon <= MOST
    )


@dataclass(frozen=True)
class Neighbors:
    """Makes pairs of datasets that differ in records under an adjacency.

    Args:
        adjacency: Whether records are added, replaced or zeroed out.
    """

    adjacency: Adjacency

    def pair(
        self, others: Sequence[Any], record: Any, other: Any = None, distance: int = 1
    ) -> Pair:
        """The pair of the other records with `distance` copies of a record, and the same without
        them, or with copies of another record or of None.
        """
        other = other if self.adjacency is Adjacency.REPLACE else None
        left = () if self.adjacency is Adjacency.ADD_REMOVE else (other,) * distance
        return Pair((*others, *(record,) * distance), (*others, *left), distance=distance)

    def of_numbers(self, distance: int, domain: tuple[float, float] | None) -> Iterator[Pair]:
        """Datasets of numbers, from empty ones to several records, with records at the ends of the
        domain; without one, 0 and 1 and some records beyond.
        """
        low, high = domain or (0.0, 1.0)
        added = (high, low, *(() if domain else (100.0,)))
        for others in ((), (low,) * 3, (high,) * 3, (low, (low + high) / 2, high)):
            for record in added if self.adjacency is Adjacency.ADD_REMOVE else (high,):
                yield self.pair(others, record, low, distance)

    def of_extremes(self, domain: tuple[float, float] | None) -> tuple[list[Pair], list[Pair]]:
        """Datasets that differ in one extreme number, in a tie, or in one of many rows: inputs that
        code often mishandles.

        Returns:
            The pairs that every mechanism on numbers must handle, and those to use only if the
            mechanism answers on them.
        """
        low, high = domain or (0.0, 1.0)
        middle = (low + high) / 2
        records = [each for each in EXTREMES if domain is None or low <= each <= high]
        firm = [self.pair((middle,), each, middle) for each in (low + (high - low) / 3, *records)]
        firm += [
            self.pair((middle,) * MANY_ROWS, high, middle),
            self.pair((low, high) * 2, high, low),
        ]
        others = () if domain else ("",) if self.adjacency is Adjacency.ZERO_OUT else ("", None)
        return firm, [self.pair((middle,), each, middle) for each in others]

    def of_records(self, records: Sequence[Any], distance: int) -> Iterator[Pair]:
        """Pairs of datasets from supplied records (at least two if records are replaced): each
        record together with no, one and several others, and with copies of itself.
        """
        for index, record in enumerate(records):
            after = records[(index + 1) % len(records)]
            for others in ((), (after,), records[:3], (record,) * 3):
                yield self.pair(others, record, after, distance)


def drawn_records(records: Any) -> tuple[Any, ...]:
    """Up to `MOST_RECORDS` records from a list, or drawn reproducibly from a Hypothesis strategy.

    Raises:
        DomainError: If there is none, or a strategy is used without hypothesis installed.
    """
    listed = isinstance(records, Sequence) and not isinstance(records, str | bytes)
    chosen = list(cast("Sequence[Any]", records)) if listed else _examples(records)
    if not chosen:
        raise DomainError("records", records, "at least one record, or a Hypothesis strategy")
    return tuple(chosen[:MOST_RECORDS])


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
    records: dict[str, Any] = {}

    def collect(record: Any) -> None:
        records.setdefault(repr(record), record)

    drawing: Any = settings(
        max_examples=4 * MOST_RECORDS, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=[*cast("Any", HealthCheck)],
    )  # fmt: skip
    drawing(given(cast("Any", strategy))(collect))()
    return [*records.values()]


def vectors(length: int, distance: int) -> Iterator[Pair]:
    """Pairs of vectors of answers to `length` queries of sensitivity 1, in which each answer
    differs by at most `distance`.

    The patterns: all up, one up, one against all others, half against half, and all up with the
    last one down.
    """
    step, half, last = float(distance), length // 2, length - 1
    patterns = (
        ((1,) * length, (0,) * length),
        ((1, *(0,) * last), (0,) * length),
        ((0, *(1,) * last), (1, *(0,) * last)),
        ((1,) * half + (0,) * (length - half), (0,) * half + (1,) * (length - half)),
        ((*(1,) * last, 0), (*(0,) * last, 1)),
    )
    for zero, one in patterns if length > 1 else patterns[:2]:
        yield Pair(
            tuple(step * up for up in zero), tuple(step * up for up in one), distance=distance
        )


MOST_QUERIES = 1_000_000
"""The largest number of queries; every call receives a dataset of that many numbers, 8 MB."""


def usual_claim(
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
) -> Composable:
    """The claim with the given epsilon (and delta), rho of zCDP, or mu of Gaussian DP.

    Raises:
        DomainError: If not exactly one of epsilon, rho and mu is given, or the claim holds for
            every mechanism.
    """
    if sum(each is not None for each in (epsilon, rho, mu)) != 1:
        accepted = "one claim: an epsilon (with its delta), a rho, a mu or a plan"
        raise DomainError("claim", epsilon, accepted)
    if rho is not None:
        return Concentrated(rho)
    if mu is not None:
        return GaussianDP(mu)
    assert epsilon is not None
    if not (math.isfinite(epsilon) and delta != 1):
        raise DomainError(
            "epsilon",
            epsilon,
            "a finite epsilon with a delta below 1: else every mechanism keeps it",
        )
    return BlackBox(epsilon, delta=delta)


def usual_pairs(
    subject: Source, claim: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE, most: int = FAR,
    records: Any = None, queries: int = 0, domain: tuple[float, float] | None = None,
) -> tuple[Pair, ...]:  # fmt: skip
    """Default pairs of datasets at several distances, in the first format (list, array, tuple,
    number, ...) that the subject accepts.

    Args:
        subject: The subject; it is called to determine the accepted format.
        claim: The claim, whose epsilon limits the distances.
        adjacency: The neighboring relation of the claim.
        most: The largest distance, at least 1.
        records: The records of datasets, or a Hypothesis strategy for one record; None for numbers
            at 0, 1/2 and 1 and extreme ones.
        queries: If above 0, a dataset is instead the vector of answers to this many queries of
            sensitivity 1.
        domain: The smallest and the largest number allowed as a record; None for any number.

    Raises:
        DomainError: If there is no record, the claim bounds nothing, or a number is outside its
            domain.
    """
    check.count("most", most, least=1)
    if check.count("queries", queries) > MOST_QUERIES:
        raise DomainError("queries", queries, f"an integer from 0 to {MOST_QUERIES:,}")
    if domain is not None and not -math.inf < domain[0] < domain[1] < math.inf:
        raise DomainError("domain", domain, "two finite numbers, the smaller one first")
    neighbors, firm, soft = Neighbors(adjacency), list[Pair](), list[Pair]()
    apart = sorted({1, max(each for each in distances(claim, adjacency=adjacency) if each <= most)})
    if records is not None:
        chosen = drawn_records(records)
        found = [pair for each in apart for pair in neighbors.of_records(chosen, each)]
        forms: Sequence[Form] = FORMS[:3]
    elif queries:
        found, forms = [pair for each in apart for pair in vectors(queries, each)], FORMS[:3]
    else:
        found = [pair for each in apart for pair in neighbors.of_numbers(each, domain)]
        forms, (firm, soft) = FORMS, neighbors.of_extremes(domain)
    form = _form(subject, found[0], forms)
    made = [*_formed(form, found + firm)]
    made += (pair for pair in _formed(form, soft) if not _failures(subject, pair))
    return tuple(pair for pair in made if form is not math.fsum or pair.zero != pair.one)


def _formed(form: Form, pairs: Sequence[Pair]) -> Iterator[Pair]:
    """The pairs converted to a format; those that it cannot represent are left out."""
    for pair in pairs:
        with suppress(TypeError, ValueError, ArithmeticError):
            yield Pair(form(pair.zero), form(pair.one), distance=pair.distance)


def _failures(subject: Source, pair: Pair) -> set[str]:
    """The failures of the subject on the two datasets of a pair; empty if it answers on both."""
    drawn = subject.draw(pair, np.array([0, 1], dtype=np.uint8))
    return {row.failure for row in table_of(drawn).rows if row.failure}


Form = Callable[[Sequence[Any]], Any]
FORMS: tuple[Form, ...] = (
    list,
    np.array,
    tuple,
    math.fsum,
    lambda rows: [round(each) for each in rows],
    lambda rows: [str(each) for each in rows],
    lambda rows: [{"value": each} for each in rows],
)
"""The formats of a dataset of numbers; the first three accept records of any type."""


def _form(subject: Source, pair: Pair, forms: Sequence[Form]) -> Form:
    """The first format in which the subject answers on both datasets; the first of all if none is
    accepted, or it does not answer in time.
    """
    for form in forms:
        with suppress(TypeError, ValueError, ArithmeticError):
            failures = _failures(subject, Pair(form(pair.zero), form(pair.one)))
            if not failures:
                return form
            if TIMEOUT in failures:
                break
    return forms[0]
