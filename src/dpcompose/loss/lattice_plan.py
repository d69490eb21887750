"""Where a composition of noises is put on a lattice of losses, and how its order is found.

No number here is relied on, but for the places beyond which each row has so little mass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpcompose.loss.base import Loss
from dpcompose.loss.lattice_noise import Coarse, Noise
from dpcompose.numerics import Reals

DEPTH = 30.0
"""-log of what every cut leaves out."""
AWAY = 2.0 ** np.arange(-14.0, 5.0)
"""Distances of orders, in units of the inverse deviation, at which tails are bounded."""
_FINE = 256
"""A round's standard deviation in steps of its own lattice, where that holds it."""
LEAST = -700.0
"""log of the least delta."""
_MOST_PARTS = 12
_STEEPEST = 40.0
"""The largest distance of two means, in units of the noise."""


class UnfitError(Exception):
    """Raised if the lattice cannot give an answer."""


class Rounds(NamedTuple):
    """Rounds of one noise: as large as it may be, and as small; cells hold all but e^log_tail at either end.

    Outcomes above the place `cut` are left out.
    """

    above: Noise
    below: Noise
    times: int
    log_tail: float
    coarse: Coarse
    cut: float = math.inf

    def up_to(self, loss: float) -> Rounds:
        """The rounds without losses above a limit; in the other order, where these losses are small, with all of them."""
        if not self.above.remove or float(self.coarse.loss.max()) <= loss:
            return self
        return self._replace(
            coarse=self.coarse.up_to(loss), cut=float(self.above.location(np.array([loss]))[0])
        )


def fits(group: Sequence[tuple[Loss, int]]) -> bool:
    """Whether there are few losses, each of noise that a lattice may hold."""
    if not 0 < len(group) <= _MOST_PARTS:
        return False
    noises = [loss.additive_noise for loss, _ in group]
    return all(noise is not None and 0 < noise.scale <= _STEEPEST for noise in noises)


def rows_of(group: Sequence[tuple[Loss, int]], log_mass: float) -> list[Rounds]:
    """The rounds of a composition, for a question about the tail that has the mass e^log_mass."""
    found: list[Rounds] = []
    for loss, times in group:
        noise = loss.additive_noise
        assert noise is not None
        tail = log_mass - DEPTH - math.log(times)
        above, below = noise.moved(1), noise.moved(-1)
        found.append(Rounds(above, below, times, tail, Coarse(above, tail)))
    return found


@dataclass(frozen=True)
class LatticePlan:
    """Where the sum is tilted, and the lattice that holds it.

    Args:
        rows: The rounds.
        order: The tilt t, of few digits.
        ends: Beyond them the sum has a tilted mass of about e^-`DEPTH` each.
        point: About the answer, an epsilon.
        log_mass: About log delta.
        points: How many points a lattice has.
    """

    rows: list[Rounds]
    order: float
    ends: tuple[float, float]
    point: float
    log_mass: float
    points: int

    @cached_property
    def step(self) -> float:
        """The distance of the points of the sum's lattice: such that the two atoms of a Laplace loss can both be points
        of the lattice of one of its rounds."""
        step = float(np.float32((self.ends[1] - self.ends[0]) / (0.9 * self.points)))
        atoms = [row for row in self.rows if not row.above.gaussian]
        if not atoms:
            return step
        widest = max(atoms, key=lambda row: row.times * row.above.scale**2)
        ends = widest.above.loss(np.array([0.0, 1.0]))
        span = float(ends[1] - ends[0])
        finer = 2.0 ** self.levels(widest, step)
        return span / max(math.floor(span / step * finer), 1) * finer

    def reach(self, row: Rounds) -> tuple[float, float]:
        """Where one round has nearly all of its tilted mass."""
        log_m, _, variance = (float(each[0]) for each in row.coarse.moments(np.array([self.order])))
        if not (variance > 0 and math.isfinite(log_m)):
            raise UnfitError
        depth, away = DEPTH + math.log(row.times), AWAY / math.sqrt(variance)
        high = smallest((row.coarse.moments(self.order + away)[0] - log_m + depth) / away)
        low = -smallest((row.coarse.moments(self.order - away)[0] - log_m + depth) / away)
        if not low < high < math.inf:
            raise UnfitError
        return low, high

    def levels(self, row: Rounds, step: float) -> int:
        """How often the lattice of a round is halved from that of the sum."""
        low, high = self.reach(row)
        deviation = math.sqrt(float(row.coarse.moments(np.array([self.order]))[2, 0]))
        finer = min(_FINE * step / deviation, 0.8 * self.points * step / (high - low))
        return max(0, math.floor(math.log2(finer)))


def total(rows: Sequence[Rounds], orders: Reals) -> Reals:
    """K of the sum and its first two derivatives, shape (3, n)."""
    found: Reals = np.sum([row.times * row.coarse.moments(orders) for row in rows], axis=0)
    return found


def _spaced(low: float, high: float, count: int) -> Reals:
    """Numbers from one to another, each larger than the one before by the same factor."""
    return low * (high / low) ** np.linspace(0.0, 1.0, count)


def planned(
    rows: list[Rounds], log_mass: float, value: float | None, points: int
) -> LatticePlan | None:
    """The plan for epsilon at e^log_mass, or for delta at `value`; None if the moments are beyond floats."""
    rough = math.sqrt(float(total(rows, np.zeros(1))[2, 0]))
    if not 1e-150 < rough < math.inf:
        return None
    orders = np.append([3e-7, 3e-5], _spaced(3e-3, 3e3, 61)) / rough
    best, level = 0.0, np.zeros(0)
    for _ in range(3):
        log_m, _, variance = total(rows, orders)
        spread = variance + 1 / orders**2 + 1 / (orders + 1) ** 2
        level = log_m - np.log(orders) - np.log1p(orders) - 0.5 * np.log(2 * math.pi * spread)
        level = (level - log_mass) / orders if value is None else level - orders * value
        level = np.where(np.isfinite(level), level, np.inf)
        at = int(level.argmin())
        best = float(orders[at])
        ends = [float(orders[each]) for each in (max(at - 1, 0), min(at + 1, len(orders) - 1))]
        orders = _spaced(ends[0], ends[1], 9)
    order, found = float(np.float32(best)), float(level.min())
    if not math.isfinite(found):
        return None
    log_m, _, variance = (float(each[0]) for each in total(rows, np.array([order])))
    if not 1e-300 < variance < math.inf:
        return None
    away = AWAY / math.sqrt(variance)
    high = smallest((total(rows, order + away)[0] - log_m + DEPTH) / away)
    low = -smallest((total(rows, order - away)[0] - log_m + DEPTH) / away)
    if not low < high < math.inf:
        return None
    point, mass = (found, log_mass) if value is None else (value, min(found, 0.0))
    return LatticePlan(rows, order, (low, high), point, mass, points)


def smallest(numbers: Reals) -> float:
    """The smallest of the values that are not NaN; infinity if all are."""
    return float(np.fmin.reduce(numbers, initial=math.inf))
