"""The usual claims and the usual pairs, for a subject of which no more is said."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcompose.audit.pair import Pair
from dpcompose.audit.search import distances, numbers
from dpcompose.audit.subject import Subject
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.mechanism import BlackBox, Concentrated, GaussianDP


def usual_claim(
    *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None, mu: float | None = None
) -> Composable:
    """The claim of one parameter, and a delta where it is epsilon.

    Raises:
        DomainError: If not exactly one of epsilon, rho and mu is given, or the claim holds for every mechanism.
    """
    if sum(each is not None for each in (epsilon, rho, mu)) != 1:
        raise DomainError("claim", epsilon, "one claim: an epsilon (with its delta), a rho, a mu or a plan")
    if rho is not None:
        return Concentrated(rho)
    if mu is not None:
        return GaussianDP(mu)
    assert epsilon is not None
    if not (math.isfinite(epsilon) and delta != 1):
        raise DomainError("epsilon", epsilon, "a finite epsilon with a delta below 1: else every mechanism keeps it")
    return BlackBox(epsilon, delta=delta)


def usual_pairs(subject: Subject, claim: Composable, *, most: int) -> tuple[Pair, ...]:
    """Datasets of numbers, one record apart and further, in the first form that the subject takes.

    Args:
        subject: The subject, which is called to see which form it takes: list, array, tuple or number.
        claim: The claim, which says how far apart a pair may be.
        most: The largest distance.
    """
    coins = np.array([0, 1], dtype=np.uint8)
    form: Any = list
    for tried in (list, np.array, tuple, math.fsum):
        drawn = subject.draw(Pair(tried((0.0, 1.0)), tried((1.0,))), coins)
        if drawn.dtype != object or not any(row.raised for row in drawn):
            form = tried
            break
    return tuple(
        Pair(form(pair.zero), form(pair.one), distance=pair.distance)
        for apart in sorted({1, max(apart for apart in distances(claim) if apart <= max(most, 1))})
        for pair in numbers(apart, adjacency=Adjacency.ADD_REMOVE)
        if not (form is math.fsum and math.fsum(pair.zero) == math.fsum(pair.one))
    )
