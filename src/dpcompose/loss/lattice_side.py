"""One side of a composition of noises on a lattice of losses, in bounded time.

A pair (P, Q) of measures has the profile h(a) = integral of (dP - a dQ)_+. That of two independent pairs is
h(a) = E_R[h_1(a dS / dR)]: whatever is pointwise above h_1 stays above after composition, and below it below, whatever
the total masses. So each round is replaced by two pairs of measures on a lattice of losses, one above and one below.

Above: a cell with masses p and q, whose losses lie between two points, is split between them so that p and q are kept.
It is the largest profile that the cell may have. [Doroshenko2022]

Below: `below`. An atom heavier than the rest has a point of its own, the offset of the lattice, and a part whose
sum is hardly wider than a step is one atom, its P and Q masses added up, or is left out.

Errors: a factor of the masses of a round is one of the profile, and a relative error of P alone also moves the losses;
both are kept apart and added up over all rounds. Circular transforms, cut tails and rounding change the masses of the
sum, tilted by its order t, by at most so much in total; as (1 - e^(x - l))_+ e^(-t (l - x)) is at most
t^t / (t + 1)^(t + 1), this is an error of delta, added above and subtracted below. A transform of n = 2^k masses of
sum m errs by at most 8 k U m at each place, since each of them is multiplied by at most k rounded roots of one.

Many copies: a table is raised to as high a power as its lattice holds, and then has its lattice doubled.

Reference: [Doroshenko2022]; Ghazi, Kamath, Kumar and Manurangsi, Faster Privacy Accounting via Evolving
Discretization, ICML 2022 (arXiv:2207.04381)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import kernel_peak
from dpcompose.loss.lattice_below import Groups
from dpcompose.loss.lattice_noise import Cells
from dpcompose.loss.lattice_plan import (
    AWAY,
    DEPTH,
    LatticePlan,
    Rounds,
    UnfitError,
    smallest,
)
from dpcompose.numerics import Complexes, Reals, U

_NARROW = 4.0
"""A sum with a standard deviation of so few steps is one atom below."""
_HEAVY = 0.2
"""The tilted mass of an atom with a point of its own."""
_NEAR = 2
"""So many steps from the offset on, masses may count as one atom with it."""
_SLACK = 1e-9
"""So many steps a loss of a cell may lie beside a point."""
_LONGEST = 8
_TINY = 1e-290


class Masses(NamedTuple):
    """Masses under the tilted P on a lattice: mass[n] belongs to the loss offset + (base + n) step."""

    mass: Reals
    base: int
    step: float
    offset: float

    @property
    def losses(self) -> Reals:
        """The losses of the masses."""
        return self.offset + (self.base + np.arange(len(self.mass))) * self.step

    def moments(self, orders: Reals) -> Reals:
        """log of the sum of mass * e^(order * loss)."""
        kept = np.flatnonzero(self.mass > 0)
        if not len(kept):
            raise UnfitError
        exponent = orders[:, None] * self.losses[kept]
        top = exponent.max(axis=1)
        return top + np.log(np.exp(exponent - top[:, None]) @ self.mass[kept])

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        losses, total = self.losses, float(self.mass.sum())
        away = losses - float(self.mass @ losses) / total
        found = math.sqrt(float(self.mass @ (away * away)) / total) if total > 0 else 0.0
        return max(found, 1e-3 * self.step)


class Points(NamedTuple):
    """The points of one round: offset + n step, n from first to last.

    Args:
        log_m: log of what the tilted masses are divided by.
        offset: The loss of point 0.
        step: The distance of two.
        first: The number of the first.
        last: The number of the last.
        moved: How far a loss of a cell may be from what is computed.
    """

    log_m: float
    offset: float
    step: float
    first: int
    last: int
    moved: float


@dataclass
class Spent:
    """The masses that are left out, and the errors of all rounds.

    Args:
        tilted: log of 1 and the tilted mass that is left out, where the tables have mass 1.
        plain: The P mass that is left out.
        shift: How far losses count as moved.
        log_scale: log of what the tilted masses are divided by.
        log_growth: log of the factor by which doubling lattices makes masses larger.
        rounds: How many rounds there are.
    """

    tilted: float = 0.0
    plain: float = 0.0
    shift: float = 0.0
    log_scale: float = 0.0
    log_growth: float = 0.0
    rounds: float = 0.0

    def omit(self, mass: float, copies: int) -> None:
        """Note that so much tilted mass is left out of each of so many factors."""
        self.tilted += copies * math.log1p(mass)


class Side:
    """A composition on one lattice that dominates the true one, or that the true one dominates.

    Args:
        plan: Where.
        upper: Whether it is above.
    """

    def __init__(self, plan: LatticePlan, *, upper: bool) -> None:
        self.plan, self.upper, self.order = plan, upper, plan.order
        self.spent = Spent()
        parts = [entry for row in plan.rows for entry in self._rounds(row)]
        if not parts:
            raise UnfitError
        self._read(*self._sum(parts, 1))

    def _rounds(self, row: Rounds) -> list[tuple[Masses, int]]:
        """The rounds of one noise on the lattice of the sum: tables, each so many times.

        Below, those whose sum is hardly wider than a step may be left out, unless some outcomes are left out: the others
        alone are then no probabilities, and dropping them could make the profile larger.
        """
        variance = row.times * float(row.coarse.moments(np.array([self.order]))[2, 0])
        if self.upper or not math.sqrt(variance) < _NARROW * self.plan.step:
            return self._row(row, alone=False)
        before = replace(self.spent)
        try:
            found = self._row(row, alone=True)
            scale = self.spent.log_scale - before.log_scale
            if row.cut < math.inf or math.log(float(found[0][0].mass[0])) + scale > 0:
                return found
        except UnfitError:
            if row.cut < math.inf:
                raise
        self.spent = before
        return []

    def _row(self, row: Rounds, *, alone: bool) -> list[tuple[Masses, int]]:
        """All copies of one round: tables on the lattice of the sum with their counts, or with `alone` one atom that
        stands for all."""
        plan, spent, order = self.plan, self.spent, self.order
        log_m, _, variance = (float(each[0]) for each in row.coarse.moments(np.array([order])))
        if not (variance > 0 and math.isfinite(log_m)):
            raise UnfitError
        deviation = math.sqrt(variance)
        (low, high), levels = plan.reach(row), plan.levels(row, plan.step)
        step = math.ldexp(plan.step, -levels)
        table, left = self._first(row, log_m, step, (low, high))
        whole = float(table.mass.sum())
        if not whole > 0:
            raise UnfitError
        table, left = table._replace(mass=table.mass / whole), left / whole
        spent.log_scale += row.times * (log_m + math.log(whole))
        spent.rounds += row.times
        stop = levels
        if alone:  # where the sum still is so wide that rounding it hardly matters
            wanted = _NARROW * plan.step / (deviation * math.sqrt(row.times))
            stop = max(0, levels - max(0, math.floor(math.log2(max(wanted, 1.0)))))
            stop = min(levels, max(stop - 4, 0))
        count, rest = row.times, list[tuple[Masses, int]]()
        for _ in range(stop):
            if count > 1:
                power = self._power(table, count)
                count, odd = divmod(count, power)
                if odd:
                    rest = [*rest, (table, odd)]
                    rest = [(self._sum(rest, 1)[0], 1)] if len(rest) > 1 or odd > 1 else rest
                if power > 1:
                    table, _ = self._sum([(table, power)], count)
            table = self._doubled(table, count)
            rest = [(self._doubled(each, 1), times) for each, times in rest]
        spent.omit(left, row.times)
        found = [(table, count), *rest]
        if not alone:
            return found
        return [(self._atom(self._sum(found, 1)[0] if count > 1 or rest else table), 1)]

    def _first(
        self, row: Rounds, log_m: float, step: float, ends: tuple[float, float]
    ) -> tuple[Masses, float]:
        """One copy of a round on its lattice, and the tilted mass that was left out."""
        spent, order, noise = self.spent, self.order, row.above if self.upper else row.below
        offset = row.coarse.heaviest(order, max(step, self.plan.step))
        first = math.floor((ends[0] - offset) / step) - 1
        last = math.ceil((ends[1] - offset) / step) + 1
        if last - first > _LONGEST * self.plan.points:
            raise UnfitError
        losses = offset + np.arange(4 * first, 4 * last + 1) * (step / 4)
        # Beyond either end, cells so narrow that their tilted masses are known.
        beyond = np.arange(1, 400) * (0.25 / order)
        losses = np.concatenate([losses[0] - beyond[::-1], losses, losses[-1] + beyond])
        losses = losses if noise.remove else -losses[::-1]
        low, high = row.coarse.ends
        inside = noise.loss(np.array([low, high]))
        extra = noise.location(losses[(losses > inside[0]) & (losses < inside[1])])
        extra = np.append(extra[(extra > low) & (extra < high)], min(max(row.cut, low), high))
        places = np.unique(np.concatenate([row.coarse.places, extra]))
        cells = noise.cells(places)[noise.under(places, row.cut)]
        # A loss is good to 64 U of itself, and to its weight times the error of m x.
        rounds = 64 + 8 * noise.scale * (max(abs(low), abs(high)) + noise.scale)
        largest = max(abs(ends[0]), abs(ends[1])) + step
        moved = 2 * U * rounds * largest + _SLACK * step
        make = self._above if self.upper else self._below
        table, outside, shift = make(cells, Points(log_m, offset, step, first, last, moved))
        spent.shift += row.times * shift
        spent.plain += 2 * row.times * math.exp(row.log_tail)
        return table, self._left_out(outside, log_m, row)

    def _left_out(self, cells: Cells, log_m: float, row: Rounds) -> float:
        """The tilted mass of cells that are left out. Cells in which P itself has next to no mass are not in it: their
        mass is spent instead."""
        log_mass = np.log(np.maximum(cells.dominated, 1e-320))
        free = log_mass < self.plan.log_mass - DEPTH - math.log(row.times) - 5
        self.spent.plain += row.times * float(cells.dominated[free].sum())
        return float(np.exp((log_mass + self.order * cells.high)[~free] - log_m).sum())

    def _above(self, cells: Cells, grid: Points) -> tuple[Masses, Cells, float]:
        """The round from above: the outcomes of every cell are split between the points on both sides of it."""
        log_m, offset, step, first, last, moved = grid
        low = np.floor((cells.low - offset) / step + _SLACK)
        high = np.maximum(np.ceil((cells.high - offset) / step - _SLACK), low)
        kept = (low >= first) & (high <= last)
        outside, cells = cells[~kept], cells[kept]
        low, high = low[kept], high[kept]
        below, above = offset + low * step - moved, offset + high * step + moved
        at, to = low.astype(np.int64), high.astype(np.int64)
        # Where Q has next to no mass, or none that a float holds, all of P's goes to the larger loss.
        one = (low == high) | (cells.mass < _TINY)
        share = cells.above(below) * np.exp(-below) / np.expm1(above - below)
        share = np.clip(np.where(one, cells.mass, share), 0.0, None)
        rest = np.where(one, 0.0, np.maximum(cells.mass - share, 0.0))
        upper = np.where(one, cells.dominated, share * np.exp(above))
        tilts = [np.exp(self.order * (offset + each * step) - log_m) for each in (at, to)]
        found, count = np.zeros(last - first + 1), last - first + 1
        digits = 4 * U * (16 + self.order * np.abs(cells.high) + abs(log_m) + np.abs(above))
        swollen = 1 + 4 * cells.error + digits
        found += np.bincount(at - first, rest * np.exp(below) * tilts[0] * swollen, count)
        found += np.bincount(to - first, upper * tilts[1] * swollen, count)
        together = np.bincount(to - first, minlength=count) + np.bincount(
            at - first, minlength=count
        )
        shift = moved + _split_error(cells, together[to - first])
        return Masses(found * (1 + 2 * together * U), first, step, offset), outside, shift

    def _below(self, cells: Cells, grid: Points) -> tuple[Masses, Cells, float]:
        """The round from below: outcomes are merged into groups around the points, by the quarter of a step in which
        they lie."""
        log_m, offset, step, first, last, moved = grid
        offset = self._centered(cells, grid)
        quarter = np.floor(((cells.low + cells.high) / 2 - offset) / (step / 4) + 1e-9)
        kept = (quarter >= 4 * first) & (quarter < 4 * last)
        outside, cells, quarter = cells[~kept], cells[kept], quarter[kept].astype(np.int64)
        order, count = self.order, last - first + 1
        digits = 4 * U * (16 + order * np.abs(cells.high) + abs(log_m) + np.abs(cells.low))
        shrunk = 1 - 4 * cells.error - digits
        own = np.zeros(count)
        heavy = (quarter >= -2) & (quarter < 2)
        weight = float((cells.dominated[heavy]).sum()) * math.exp(order * offset - log_m)
        if weight > _HEAVY and first < 0 < last:
            mass, excess = float(cells.mass[heavy].sum()), float(cells.excess[heavy].sum())
            exact = math.log1p(excess / mass)
            offset = exact - 4 * U * abs(exact) if abs(exact - offset) < 0.01 * step else offset
            shrink = float(shrunk[heavy].min()) * (1 - 4 * U * len(cells.mass))
            at = -first if excess >= math.expm1(offset) * mass else -first - 1
            place = offset + (at + first) * step
            own[at] = (mass + excess) * math.exp(order * place - log_m) * shrink
            cells, quarter, shrunk = cells[~heavy], quarter[~heavy], shrunk[~heavy]
            middle = -first
        else:
            middle = 0
        at = quarter // 4
        points_at = offset + at * step
        scaled = np.exp(order * points_at - log_m) * shrunk
        place, size = quarter - 4 * first, 4 * (count - 1)
        weights = cells.mass * np.exp(points_at) * scaled, cells.above(points_at) * scaled
        mass, excess = (np.bincount(place, each, size).astype(float) for each in weights)
        together = np.bincount(place, minlength=size)
        for a, b in ((0, middle), (middle, count - 1)):
            if a < b:
                rows = slice(4 * a, 4 * b)
                groups = Groups(
                    np.zeros(b - a + 1), mass[rows].reshape(-1, 4), excess[rows].reshape(-1, 4)
                )
                own[a : b + 1] += groups.below(step, order)
        near = together.reshape(-1, 4).sum(axis=1)
        near = np.append(near, 0) + np.append(0, near)
        relative = 8 * together[place] * U * (np.abs(points_at) + step)
        shift = moved + _split_error(cells, together[place]) + 2 * float(relative.max(initial=0.0))
        rounding = (2 * near + 64) * U
        return Masses(np.maximum(own, 0.0) * (1 - rounding), first, step, offset), outside, shift

    def _centered(self, cells: Cells, grid: Points) -> float:
        """The offset of the lattice, moved to the mean loss of the outcomes next to it if these are heavy."""
        offset, width = grid.offset, grid.step / 2
        for _ in range(20):
            middle = (cells.low + cells.high) / 2 - offset
            heavy = (middle >= -width) & (middle < width)
            weight = float((cells.dominated[heavy]).sum())
            if not weight * math.exp(self.order * offset - grid.log_m) > _HEAVY:
                break
            found = math.log1p(float(cells.excess[heavy].sum()) / float(cells.mass[heavy].sum()))
            moved, offset = abs(found - offset), found
            if moved < 1e-3 * grid.step:
                break
        return offset

    def _power(self, table: Masses, count: int) -> int:
        """The largest power of two, at most `count`, that the lattice holds."""
        away = AWAY / table.deviation
        high, low = table.moments(away), table.moments(-away)
        power = 1
        while 2 * power <= count:
            depth = DEPTH + math.log(count / power)
            ends = [smallest((4 * power * each + depth) / away) for each in (high, low)]
            if not (ends[0] + ends[1]) / table.step < 0.95 * self.plan.points:
                break
            power *= 2
        return power

    def _sum(self, entries: list[tuple[Masses, int]], copies: int) -> tuple[Masses, float]:
        """The sum of tables, each taken so many times, and a bound on the error of each mass; of the sum there will be
        several copies."""
        widest = max(entries, key=lambda entry: entry[1] * entry[0].deviation ** 2)
        away = AWAY / (widest[0].deviation * math.sqrt(widest[1]))
        high, low = (
            np.sum([times * table.moments(side * away) for table, times in entries], axis=0)
            for side in (1, -1)
        )
        depth = DEPTH + math.log(copies)
        ends = -(smallest((low + depth) / away)), (smallest((high + depth) / away))
        table, entry = self._convolved(entries, entries[0][0].step, ends)
        self.spent.omit(2.1 * math.exp(-depth) + entry * len(table.mass), copies)
        if not self.upper:  # nothing is lost below but what is left out, and noise is no mass
            kept = np.flatnonzero(table.mass > 1e3 * entry)
            if not len(kept):
                raise UnfitError
            a, b = int(kept[0]), int(kept[-1]) + 1
            mass = np.where(table.mass > 1e3 * entry, table.mass, 0.0)[a:b]
            table = table._replace(mass=mass, base=table.base + a)
        return table, entry

    def _convolved(
        self, entries: list[tuple[Masses, int]], step: float, ends: tuple[float, float]
    ) -> tuple[Masses, float]:
        """The circular sum over the points from one end to the other, and the error of each mass."""
        if not ends[0] < ends[1] < math.inf:
            raise UnfitError
        base = sum(times * table.base for table, times in entries)
        offset = math.fsum(times * table.offset for table, times in entries)
        exponent = max(4, math.ceil(math.log2((ends[1] - ends[0]) / step + 4)))
        size, rounded = 1 << exponent, 8 * exponent * U
        if size > 4 * self.plan.points:
            raise UnfitError
        start = math.floor((ends[0] - offset) / step) - 1
        product, log_size, relative = np.ones(size // 2 + 1, dtype=np.complex128), 0.0, 0.0
        for table, times in entries:
            mass = table.mass
            if len(mass) > size:
                mass = np.append(mass, np.zeros(-len(mass) % size)).reshape(-1, size).sum(axis=0)
            found, whole = np.fft.rfft(mass, size), float(mass.sum())
            modulus = np.abs(found) + rounded * whole
            product = product * (found**times if times < 64 else _power_of(found, times))
            log_size = log_size + times * np.log(modulus)
            relative = relative + times * (rounded * whole / modulus + 8 * U)
        sizes = np.exp(log_size)
        twice = np.full(len(sizes), 2.0)
        twice[0] = twice[-1] = 1.0
        entry = float((twice * sizes * (1.1 * relative + rounded)).sum() / size)
        mass = np.roll(np.fft.irfft(product, size), -((start - base) % size))
        if not math.isfinite(entry):
            raise UnfitError
        return Masses(np.maximum(mass, 0.0), start, step, offset), entry

    def _doubled(self, table: Masses, copies: int) -> Masses:
        """The table on a lattice of twice the step."""
        mass, base, step, order = table.mass, table.base, table.step, self.order
        if base % 2:
            mass, base = np.append(0.0, mass), base - 1
        if len(mass) % 2 == 0:
            mass = np.append(mass, 0.0)
        even, odd = mass[::2].copy(), mass[1::2]
        if self.upper:
            share = 1 / (math.exp(step) + 1)
            even[:-1] += odd * (share * math.exp(-order * step))
            even[1:] += odd * ((1 - share) * math.exp(order * step))
            growth = math.log(float(even.sum()) / float(mass.sum()))
            self.spent.log_growth += copies * max(growth + 64 * U, 0.0)
            return Masses(even * (1 + 16 * U), base // 2, 2 * step, table.offset)
        between = (odd * math.exp(-(order + 1) * step))[:, None]
        excess = (odd * (math.exp(-order * step) * -math.expm1(-step)))[:, None]
        middle, found, offset = -(base // 2), np.zeros(len(even)), table.offset
        near = slice(max(-base - _NEAR, 0), max(-base + _NEAR + 1, 0))
        around = slice(max(-base - 4 * _NEAR, 0), max(-base + 4 * _NEAR + 1, 0))
        weight, whole = (float(mass[each].sum()) for each in (near, around))
        if weight > max(_HEAVY * float(mass.sum()), 0.9 * whole) and 0 < middle < len(even) - 1:
            # What is next to the offset becomes an atom, and that the offset.
            rest = mass.copy()
            rest[near] = 0.0
            losses = step * (base + np.arange(len(mass)))[near]
            q = mass[near] * np.exp(-(order + 1) * losses)
            q, excess = float(q.sum()), float((q * np.expm1(losses)).sum())
            rounding = 64 * U * q * _NEAR * step
            moved = min(math.log1p((excess - rounding) / q), 0.0)
            offset += moved
            found[middle] = (q + excess) * math.exp(order * moved)
            even, odd = rest[::2] * math.exp(order * moved), rest[1::2] * math.exp(order * moved)
            between = (odd * math.exp(-(order + 1) * step))[:, None]
            excesses = (odd * (math.exp(-order * step) * -math.expm1(-step)))[:, None]
            parts = Groups(even, between, excesses)
            right = parts[middle : len(odd)]
            left = Groups(np.append(even[:middle], 0.0), between[:middle], excesses[:middle])
            found[: middle + 1] += left.below(2 * step, order)
            found[middle:] += right.below(2 * step, order)
        else:
            found = Groups(even, between, excess).below(2 * step, order)
        return Masses(found * (1 - 64 * U), base // 2, 2 * step, offset)

    def _atom(self, table: Masses) -> Masses:
        """One atom with the masses of P and Q of the whole table."""
        losses, order = table.losses, self.order
        at = float(losses[int(table.mass.argmax())])
        p = float((table.mass * np.exp(-order * (losses - at))).sum())
        q = float((table.mass * np.exp(-(order + 1) * (losses - at))).sum())
        excess = float(
            (table.mass * np.exp(-(order + 1) * (losses - at)) * np.expm1(losses - at)).sum()
        )
        rounding = 8 * U * len(losses)
        inner = excess - rounding * float(
            (
                table.mass * np.exp(-(order + 1) * (losses - at)) * np.abs(np.expm1(losses - at))
            ).sum()
        )
        loss = (
            at + math.log1p(inner / (q * (1 + rounding)))
            if inner < 0
            else at + math.log1p(inner * (1 - rounding) / q)
        )
        mass = p * math.exp(order * (loss - at)) * (1 - 2 * rounding)
        return Masses(np.array([mass]), 0, self.plan.step, loss)

    def _read(self, table: Masses, entry: float) -> None:
        """log of delta at the points around the answer."""
        plan, spent, order = self.plan, self.spent, self.order
        losses, step = table.losses, table.step
        at = float(np.clip(plan.point, losses[0], losses[-1]))
        # Q's mass above each point, in units of e^(-(t + 1) loss), and its integral over e^loss from there on.
        rate = math.exp(-(order + 1) * step)
        above = _faded(np.append(table.mass[1:], 0.0) * rate, rate)
        area = _faded(above * math.expm1(step), math.exp(-order * step))
        digits = (
            8 * U * (spent.rounds + len(table.mass) + order * abs(at) + abs(spent.log_scale) + 64)
        )
        grown = math.exp(spent.log_growth)  # one too large for floats is no answer
        error = math.expm1(spent.tilted) * grown * float(np.exp(kernel_peak(np.array([order]))[0]))
        error += grown * entry * (1 / (order * (order + 1) * step) + 2)
        log_error = spent.log_scale - order * losses + math.log(error + 1e-300)
        level = np.log(area) + spent.log_scale - order * losses
        if self.upper:
            level = np.logaddexp(level + 2 * digits, log_error + 1e-9)
            self.level = np.logaddexp(level, math.log(spent.plain + 1e-320) + 1e-9)
        else:
            left = -np.expm1(np.minimum(log_error + 1e-9 - level + 2 * digits, 0.0))
            self.level = np.where(area > 0, level - 2 * digits + np.log(left), -np.inf)
        self.losses, self.shift = losses, spent.shift + 16 * U * (abs(at) + abs(table.offset))

    def point(self, log_mass: float) -> float:
        """The end of epsilon at e^log_mass; infinite, or negative, if there is none."""
        level, losses = self.level, self.losses
        if self.upper:
            below = np.flatnonzero(level <= log_mass)
            if not len(below):
                return math.inf
            to = max(int(below[0]), 1)
            if level[0] <= log_mass:
                return float(losses[0]) + self.shift
            return self._between(to - 1, log_mass) + self.shift
        above = np.flatnonzero(level >= log_mass)
        if not len(above) or int(above[-1]) == len(level) - 1:
            return -math.inf
        return self._between(int(above[-1]), log_mass) - self.shift

    def _between(self, at: int, log_mass: float) -> float:
        """Where log delta is e^log_mass between two points of the lattice, delta being a line in e^loss between them."""
        one, two = (math.exp(min(float(self.level[at + k]) - log_mass, 700.0)) for k in (0, 1))
        share = min(max((one - 1) / (one - two), 0.0), 1.0) if one > two else 1.0 * self.upper
        side = 1 + 1e-12 if self.upper else 1 - 1e-12
        return float(self.losses[at]) + math.log1p(
            min(share * side, 1.0) * math.expm1(float(self.losses[at + 1] - self.losses[at]))
        )

    def profile(self, values: Reals) -> Reals:
        """One end of delta at each value of epsilon: the upper or the lower one, by the side."""
        x, losses = values - self.shift if self.upper else values + self.shift, self.losses
        at = np.clip(np.searchsorted(losses, x, side="right") - 1, 0, len(losses) - 2)
        share = np.expm1(x - losses[at]) / np.expm1(losses[at + 1] - losses[at])
        one, two = (np.exp(np.minimum(self.level[at + k], 0.0)) for k in (0, 1))
        found = one + (two - one) * np.clip(share, 0.0, 1.0)
        if self.upper:
            # To the right of the lattice there is only what was left out.
            fallen = np.exp(self.level[-1] - self.order * (x - losses[-1])) + self.spent.plain
            found = np.where(x > losses[-1], np.minimum(fallen, found), found)
            return np.where(x < losses[0], 1.0, found * (1 + 1e-12))
        return np.where(x >= losses[-1], 0.0, found * (1 - 1e-12))


def _faded(numbers: Reals, rate: float) -> Reals:
    """The sums of rate^j times the number j places to the right."""
    found, far = numbers.copy(), 1
    while far < len(found) and rate > 0:
        found[:-far] = found[:-far] + rate * found[far:]
        rate, far = rate * rate, 2 * far
    return found


def _split_error(cells: Cells, together: NDArray[np.intp]) -> float:
    """A bound on how much losses are moved because the excesses of cells are not exact, summed over all copies."""
    least = np.maximum(np.minimum(cells.mass, cells.dominated), 1e-300)
    relative = (4 * cells.error + 8 * together * U) * np.minimum(cells.size / least, 1.0)
    return 2 * float(relative.max(initial=0.0))


def _power_of(numbers: Complexes, times: int) -> Complexes:
    """Each number to the power `times`; 0 stays 0."""
    return np.exp(times * np.log(np.where(numbers == 0, 1e-300, numbers)))
