"""The usual claims and the usual pairs, for a subject of which no more is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np

from dpcompose import check
from dpcompose.audit.claim import DELTAS, Pair, points
from dpcompose.audit.subject import Source
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.mechanisms import BlackBox, Concentrated, GaussianDP
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

    firm = [pair((middle,), each) for each in (low + (high - low) / 3, *records)]
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


MOST_QUERIES = 1_000_000
"""Answers in one dataset: 8 MB of numbers, which every call is given."""


def usual_claim(
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
) -> Composable:
    """The claim of one parameter, and a delta where it is epsilon.

    Raises:
        DomainError: If not exactly one of epsilon, rho and mu is given, or the claim holds for every mechanism.
    """
    if sum(each is not None for each in (epsilon, rho, mu)) != 1:
        raise DomainError(
            "claim", epsilon, "one claim: an epsilon (with its delta), a rho, a mu or a plan"
        )
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


def arguments_of(claim: Composable) -> dict[str, float] | None:
    """The arguments of `usual_claim` that make a claim; None for one that it does not make."""
    match claim:
        case BlackBox():
            return {"epsilon": claim.stated.epsilon, "delta": claim.stated.delta}
        case Concentrated() if not claim.stated.delta:
            return {"rho": claim.stated.rho}
        case _:
            return None


def usual_pairs(
    subject: Source, claim: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE, most: int = FAR,
    records: Any = None, queries: int = 0, domain: tuple[float, float] | None = None,
) -> tuple[Pair, ...]:  # fmt: skip
    """Search for pairs by the claim's adjacency, a step apart and further, in the first form that the subject takes.

    Args:
        subject: The subject, which is called to see which form it takes.
        claim: The claim, which says how far apart a pair may be.
        adjacency: Its neighboring relation.
        most: The largest distance, at least 1.
        records: What datasets are made of: records, or a Hypothesis strategy for one; None: numbers, at 0, 1/2 and 1
            and far beyond, as floats, integers, texts or rows, whichever the subject takes.
        domain: The least and the largest number that a record may be; no other one is tried. None: any number.
        queries: If above 0, a dataset is the answers of so many queries, each of which a step moves by at most 1.

    Raises:
        DomainError: If there is no record, the claim promises nothing, or a count is outside its domain.
    """
    check.count("most", most, least=1)
    if check.count("queries", queries) > MOST_QUERIES:
        raise DomainError("queries", queries, f"an integer from 0 to {MOST_QUERIES:,}")
    if domain is not None and not -math.inf < domain[0] < domain[1] < math.inf:
        raise DomainError("domain", domain, "two finite numbers, the smaller one first")
    firm, soft = list[Pair](), list[Pair]()
    apart = sorted({1, max(each for each in distances(claim, adjacency=adjacency) if each <= most)})
    if records is not None:
        found = [
            pair
            for each in apart
            for pair in of_records(drawn_records(records), each, adjacency=adjacency)
        ]
        forms: Sequence[Form] = FORMS[:3]
    elif queries:
        found, forms = [pair for each in apart for pair in vectors(queries, each)], FORMS[:3]
    else:
        found = [
            pair for each in apart for pair in numbers(each, adjacency=adjacency, domain=domain)
        ]
        forms = FORMS
        firm, soft = extremes(adjacency, domain)
    form = _form(subject, found[0], forms)
    made = [*_formed(form, found + firm)]
    made += (pair for pair in _formed(form, soft) if _answers(subject, pair))
    return tuple(pair for pair in made if form is not math.fsum or pair.zero != pair.one)


def _formed(form: Form, pairs: Sequence[Pair]) -> Iterator[Pair]:
    """The pairs in a form; those that have none in it are left out."""
    for pair in pairs:
        with suppress(TypeError, ValueError, ArithmeticError):
            yield Pair(form(pair.zero), form(pair.one), distance=pair.distance)


def _answers(subject: Source, pair: Pair) -> bool:
    """Whether a call about each of two datasets ends in an answer."""
    drawn = subject.draw(pair, np.array([0, 1], dtype=np.uint8))
    return drawn.dtype != object or not any(row.raised or row.timeout for row in drawn)


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
"""Forms of a dataset of numbers: the first three take records of any kind."""


def _form(subject: Source, pair: Pair, forms: Sequence[Form]) -> Form:
    """The first form for which a call about either dataset ends in an answer; else the first."""
    for form in forms:
        try:
            if _answers(subject, Pair(form(pair.zero), form(pair.one), distance=pair.distance)):
                return form
        except (TypeError, ValueError, ArithmeticError):
            continue
    return forms[0]
