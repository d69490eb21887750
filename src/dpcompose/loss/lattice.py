"""Epsilon and delta of a composition of noises on lattices of losses: the answer in bounded time where no line is good."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from dpcompose.loss.base import Loss
from dpcompose.loss.lattice_plan import LEAST, UnfitError, planned, rows_of
from dpcompose.loss.lattice_rare import CutGuess, CutSide
from dpcompose.loss.lattice_side import Side
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, met

POINTS = 1 << 14
LOOSE = 1e-4
"""Above this relative width of an answer from lines the losses are put on a lattice."""
_WIDE = 1e-3
"""Above this relative width the rounds are split by the largest loss."""
_FARTHEST = 1e4


@np.errstate(all="ignore")
def epsilon(
    group: Sequence[tuple[Loss, int]], least: float, most: float, *, points: int = POINTS
) -> Bound:
    """An enclosure of the epsilon at every delta between two.

    Args:
        group: The losses, with their counts, such that `fits`.
        least: The smallest delta, > 0.
        most: The largest.
        points: How many points a lattice has.
    """
    log_masses = [
        math.log(each) + side * 4 * UNIT_ROUNDOFF * (1 - math.log(each))
        for each, side in ((most, 1), (least, -1))
    ]
    rows = rows_of(group, log_masses[1])
    plan = planned(rows, log_masses[1], None, points)
    found = (
        Bound(0.0, math.inf)
        if plan is None
        else _enclosed(lambda upper: Side(plan, upper=upper).point(log_masses[upper]), math.inf)
    )
    guess = CutGuess(rows)
    for turn in range(2):
        if found.lower >= (1 - _WIDE) * found.upper:
            break
        x = guess.solve(log_masses[1], found.lower, min(found.upper, _FARTHEST))
        make = partial(CutSide, rows, x, guess.cuts(x)[turn], points)
        found = Bound(*met(found, _enclosed(partial(_point, make, log_masses, found), math.inf)))
    return _certified(found, points)


@np.errstate(all="ignore")
def delta(group: Sequence[tuple[Loss, int]], epsilon: float, *, points: int = POINTS) -> Bound:
    """An enclosure of delta at an epsilon > 0; arguments as in `epsilon`."""
    rough = planned(rows_of(group, LEAST), LEAST, epsilon, points)
    if rough is None:
        return _certified(Bound(0.0, 1.0), points)
    rows, at = rows_of(group, max(rough.log_mass - 5, LEAST)), np.array([epsilon])
    plan = planned(rows, rough.log_mass, epsilon, points)
    found = (
        Bound(0.0, 1.0)
        if plan is None
        else _enclosed(lambda upper: float(Side(plan, upper=upper).profile(at)[0]), 1.0)
    )
    cuts = CutGuess(rows).cuts(epsilon) if found.lower < (1 - _WIDE) * found.upper else ()
    for cut in cuts:
        make = partial(CutSide, rows, epsilon, cut, points)
        found = Bound(*met(found, _enclosed(partial(_mass, make, epsilon), 1.0)))
    return _certified(found, points)


@np.errstate(all="ignore")
def at_most(
    group: Sequence[tuple[Loss, int]], epsilon: float, mass: float, *, points: int = POINTS
) -> bool:
    """Whether an upper end alone proves that delta(epsilon) <= mass; arguments as in `epsilon`."""
    log_mass = math.log(mass)
    plan = planned(rows_of(group, log_mass), log_mass, epsilon, points)
    if plan is None:
        return False
    end = _enclosed(
        lambda upper: (
            float(Side(plan, upper=True).profile(np.array([epsilon]))[0]) if upper else 0.0
        ),
        1.0,
    )
    return end.upper <= mass


def _mass(make: Callable[[bool], CutSide], epsilon: float, upper: bool) -> float:
    return make(upper).mass(epsilon)


def _point(
    make: Callable[[bool], CutSide], log_masses: Sequence[float], enclosure: Bound, upper: bool
) -> float:
    return make(upper).point(log_masses[upper], enclosure.upper if upper else enclosure.lower)


def _enclosed(read: Callable[[bool], float], most: float) -> Bound:
    """The two ends, each from its own side of the lattice; 0 and `most` where a side has no answer."""
    ends = [0.0, most]
    for upper in (False, True):
        try:
            end = read(upper)
        except (UnfitError, OverflowError, ZeroDivisionError, ValueError):
            continue
        if end == end:
            ends[upper] = min(max(end, 0.0), most)
    return Bound(*met(Bound(ends[0], most), Bound(0.0, ends[1])))


def _certified(bound: Bound, points: int) -> Bound:
    return Bound(bound.lower, bound.upper, Certificate(f"lattice of {points} losses"))
