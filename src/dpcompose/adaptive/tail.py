"""A mechanism without its rarest losses: what is left has a smaller divergence, and the rest is a mass of delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpcompose.adaptive.worst_case import bounded, rounds
from dpcompose.errors import UnsupportedError
from dpcompose.mechanisms import parse
from dpcompose.numerics import Reals, U
from dpcompose.values import Adjacency, rounded_down

Tail = tuple[Reals, Reals, float]


@lru_cache(maxsize=64)
def tails(text: str, adjacency: Adjacency) -> tuple[Tail, ...]:
    """Masses, losses and the mass without a loss of a pair that dominates a mechanism in each order; () if none does."""
    try:
        found = rounds(parse(text), adjacency)
    except UnsupportedError:
        return ()
    if len(found) != 1 or found[0][1] != 1:
        return ()
    return tuple(bounded(atoms) for atoms in found[0][0])


def without(tails: tuple[Tail, ...], cut: Fraction) -> Callable[[float], Fraction | None] | None:
    """The Renyi divergences of whatever these pairs dominate, once the largest losses are left to a mass of `cut`.

    Let E be the outcomes of a pair (P, Q) but those of the largest losses, at least 0, of a mass of at most d under P,
    hence under Q. With P' = P given E, and Q' likewise, P is (1 - d) P' + d (anything), since P(E) >= 1 - d, and so is
    Q. Then D_a(P', Q') = ln(sum over E of P^a Q^(1 - a) P(E)^-a Q(E)^(a - 1)) / (a - 1), which is at most that without
    the last two factors, plus a / (a - 1) ln(1 / (1 - d)). What the pair dominates is a post-processing of it
    (Blackwell's theorem), and so are both parts. Both orders are decomposed apart: a theorem holds for one of them at a time.
    """
    rare = rounded_down(cut)
    listed: list[tuple[Reals, Reals]] = []
    for masses, losses, infinite in tails:
        above = (np.cumsum(masses[::-1])[::-1] + infinite) * (1 + (len(masses) + 2) * U)
        inside = above > rare
        if not infinite <= rare or not np.any(inside) or not np.all(losses[~inside] >= 0):
            return None
        listed.append((masses[inside], losses[inside]))
    if not listed:
        return None
    missing = -math.log1p(-rare) * (1 + 8 * U)

    def divergence(order: float) -> Fraction | None:
        most = max(_log_moment(order - 1.0, *each) for each in listed)
        found = (max(most, 0.0) + order * missing) / (order - 1.0) * (1 + 8 * U)
        return Fraction(found) if math.isfinite(found) else None

    return divergence


def _log_moment(power: float, masses: Reals, losses: Reals) -> float:
    """The logarithm of the sum of masses e^(power losses), rounded up."""
    powers = power * losses
    top = float(np.max(powers))
    error = (len(masses) + 16 + 4 * (float(np.max(np.abs(powers))) + abs(top))) * U
    return (math.log(float(np.sum(masses * np.exp(powers - top)))) + error) + top * (1 + 2 * U)
