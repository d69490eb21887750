"""The usual claims and the usual pairs, for a subject of which no more is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpcompose import check
from dpcompose.audit.pair import Pair
from dpcompose.audit.search import (
    FAR,
    distances,
    drawn_records,
    extremes,
    numbers,
    of_records,
    vectors,
)
from dpcompose.audit.subject import Source
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.mechanism import BlackBox, Concentrated, GaussianDP
from dpcompose.values import Adjacency

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
