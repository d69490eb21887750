"""A composition in one order: the sum of independent losses, its profile and the inverse of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from dpcompose.contour import (
    LineReading,
    Transform,
    TransformSum,
    at_most as _at_most,
    point_of,
    value_at,
    values_at,
    walk_to_proof,
)
from dpcompose.loss import lattice, rare
from dpcompose.loss.atomic import MOST_STATES, enumerated, states
from dpcompose.loss.base import Loss, by_family
from dpcompose.loss.lattice_plan import fits
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, down, met, sum_rounded_up, up

Group = tuple[tuple[Loss, int], ...]

_COARSE = 1e-6
"""The share of delta that rounding may add before an answer says that it did."""
_WIDE, _MOST_ROWS = 1e-7, 8
"""Above this relative width, and with so many different losses at most, rare ones are looked at by themselves."""
_FAINT, _FAINT_WIDE = 1e-50, 1e-3
"""Below this delta answers of more than this relative width are not split by their largest loss, unless all are alike."""
_ROUNDED = (
    "Rounding is the widest term: in Python, proof=True takes as many digits as needed and may narrow this.",
)


@dataclass(frozen=True)
class _Pool:
    """The losses of one family with their counts, and transforms whose sum is that of their composition."""

    members: list[tuple[Loss, int]]
    terms: Sequence[Transform]


class Readings:
    """The readings behind the answers of several products at one point: a question owns one for each point.

    Args:
        only_lines: Whether an answer that no line makes narrow may stay wide, because the whole that it is a part of is
            put on a lattice.
        of_part: Whether they are those of a part of what is asked: then one search for a cut is enough.
    """

    attained: float = math.inf
    """The upper end of what attained losses answer, where that is another question; infinite if it was not asked."""

    def __init__(self, *, only_lines: bool = False, of_part: bool = False) -> None:
        self.only_lines, self.of_part = only_lines, of_part
        self._found: dict[int, tuple[Product, LineReading]] = {}

    def note(self, product: Product, reading: LineReading) -> None:
        """Remember what was read from the line of a product."""
        self._found[id(product)] = product, reading

    def of(self, product: Product | None) -> LineReading | None:
        """The result that was read from the line of a product; None if none was."""
        answer = self._found.get(id(product))
        return None if answer is None else answer[1]

    def order(self, product: Product) -> float | None:
        """The order of the contour on which a product was read; None if it was read otherwise."""
        reading = self.of(product)
        return None if reading is None or reading.contour is None else reading.contour.order


@dataclass(frozen=True)
class Product:
    """The sum of the given losses, each so many times, all independent.

    Args:
        group: Losses with their counts, in any order.
        other: The same pairs in the other order, whose transforms are shared and whose readings are used again.
    """

    group: Group
    other: Product | None = field(default=None, compare=False, repr=False)

    @cached_property
    def reduced(self) -> Group:
        """The same sum, each family merged as far as it can be; an enumeration where the states are few."""
        families = by_family(entry for entry in self.group if entry[1] > 0)
        merged = [
            entry for family, members in families.items() for entry in family.combine(members)
        ]
        if len(merged) == 1 and merged[0][1] == 1 and merged[0][0].has_profile:
            return tuple(merged)
        merged = [(loss.composed, times) for loss, times in merged]
        few = merged and states(merged) <= MOST_STATES
        return ((enumerated(merged), 1),) if few else tuple(merged)

    @cached_property
    def single(self) -> Loss | None:
        """The one loss with a closed profile that the sum amounts to, if it does."""
        if len(self.reduced) == 1 and self.reduced[0][1] == 1 and self.reduced[0][0].has_profile:
            return self.reduced[0][0]
        return None

    @cached_property
    def infinite(self) -> Bound:
        """Bounds on P[L = inf]; mass whose loss is unknown is in the upper one only."""
        if all(family.finite() for family in {type(loss) for loss, _ in self.reduced}):
            return Bound(0.0, 0.0)
        low = high = 0.0
        for loss, times in self.reduced:
            mass, relative_error = loss.infinite_mass, loss.infinite_relative_error
            low += times * math.log1p(-mass * (1 - relative_error)) if mass < 1 else -math.inf
            worst = mass * (1 + relative_error) + loss.unplaced_mass if mass < 1 else 1.0
            high += times * math.log1p(-worst) if worst < 1 else -math.inf
        rounding = 16 * UNIT_ROUNDOFF * (1 + len(self.reduced))
        return Bound(
            max(0.0, -math.expm1(low) * (1 - rounding)),
            min(-math.expm1(high) * (1 + rounding), 1.0) if high < 0 else 0.0,
        )

    @cached_property
    def transform(self) -> Transform:
        """The finite part of the sum, normalized."""
        terms = [term for family in self._pools.values() for term in family.terms]
        return terms[0] if len(terms) == 1 else TransformSum(tuple(terms))

    @cached_property
    def _pools(self) -> dict[type[Loss], _Pool]:
        """The terms of the transform, by the family of losses that made them."""
        families = by_family(self.reduced)
        others = {} if self.other is None else self.other._pools
        return {
            family: _pooled(family, members, others.get(family))
            for family, members in families.items()
        }

    @cached_property
    def extremes(self) -> Bound:
        """The largest finite value of the sum."""
        ends = [(times, loss.largest) for loss, times in self.reduced]
        if len(ends) == 1 and ends[0][0] == 1:
            return ends[0][1]
        low = math.fsum(times * end.lower for times, end in ends)
        high = math.fsum(times * end.upper for times, end in ends)
        rounding = 4 * UNIT_ROUNDOFF
        return (
            Bound(low - rounding * abs(low), high + rounding * abs(high))
            if math.isfinite(high)
            else Bound(low, high)
        )

    @property
    def _largest(self) -> float:
        """The sum of the largest finite losses, exact and then rounded up; infinite where one of them is not known."""
        tops = [(loss.top, times) for loss, times in self.group]
        known = [(top, times) for top, times in tops if top is not None]
        return sum_rounded_up(known) if len(known) == len(tops) else math.inf

    @property
    def roughly_largest(self) -> float:
        """About the largest finite value, without a look at every loss."""
        return self.transform.maximum if self.single is None else self.single.maximum

    def delta(self, epsilon: float, *, tolerance: float, readings: Readings | None = None) -> Bound:
        """E[(1 - e^(epsilon - L))_+], never outside [max(0, 1 - e^epsilon), 1]. `readings`: where to note a reading."""
        return _clipped(epsilon, self._delta(epsilon, tolerance, None, readings))

    def deltas(self, epsilons: Sequence[float], *, tolerance: float) -> list[Bound]:
        """`delta` at many epsilons in increasing order, sharing lines between neighbors."""
        if self.single is not None:
            closed = zip(epsilons, self.single.profiles(epsilons), strict=True)
            return [_clipped(epsilon, bound) for epsilon, bound in closed]
        known = not self.reduced or self.infinite.upper == 1.0
        inside = [] if known else [epsilon for epsilon in epsilons if epsilon >= -40]
        readings = values_at(self.transform, inside, tolerance=tolerance) if inside else iter(())
        found: list[Bound] = []
        for epsilon in epsilons:  # one reading at a time: each holds a line
            reading = next(readings, None) if epsilon >= -40 else None
            found.append(_clipped(epsilon, self._delta(epsilon, tolerance, reading, None)))
        return found

    def _delta(
        self,
        epsilon: float,
        tolerance: float,
        reading: LineReading | None,
        readings: Readings | None,
    ) -> Bound:
        if epsilon < -40:
            return Bound(0.0, 1.0, Certificate("1 - e^epsilon <= delta <= 1"))
        if not self.reduced:
            exact = max(-math.expm1(min(epsilon, 0.0)), 0.0)
            return Bound(
                max(down(exact), 0.0),
                min(up(exact), 1.0) if exact > 0 else 0.0,
                Certificate("nothing composed"),
            )
        if self.single is not None:
            return _closed_at(self.single.profile, epsilon)
        if self.infinite.upper == 1.0:
            return Bound(self.infinite.lower, 1.0, Certificate("probability of an infinite loss"))
        closely = epsilon > 0 and self.on_lattice
        if reading is None:
            loosest = self._loosest if epsilon > 0 else math.inf
            reading = value_at(self.transform, epsilon, tolerance=tolerance, loosest=loosest)
        answer = self._with_infinite(self._noted(reading, readings))
        if closely and readings is not None and readings.only_lines:
            return answer
        if closely and loose(answer, lattice.LOOSE):
            answer = _met(answer, lattice.delta(self.reduced, epsilon))
            if reading.refused and loose(answer, POOR):
                reading = value_at(self.transform, epsilon, tolerance=tolerance)
                answer = _met(self._with_infinite(reading), answer)
        near = 0 < epsilon < rare.FARTHEST
        rows = self._rare(answer, answer.upper, tolerance, readings) if near else None
        return (
            answer
            if rows is None
            else rare.delta(
                rows, epsilon, answer, tolerance=tolerance, other_losses=self._other_losses
            )
        )

    def _with_infinite(self, reading: LineReading) -> Bound:
        """Delta of the whole from that of the finite part."""
        low, high = self.infinite.lower, self.infinite.upper
        rounding = 4 * UNIT_ROUNDOFF
        lower = low + (1 - low) * reading.lower * (1 - rounding)
        upper = high + (1 - high) * reading.upper * (1 + rounding)
        return Bound(
            max(down(lower), 0.0), min(up(upper) if upper > 0 else 0.0, 1.0), _certificate(reading)
        )

    def epsilon(self, delta: float, *, tolerance: float, readings: Readings | None = None) -> Bound:
        """The smallest epsilon >= 0 at which `delta` is not exceeded. `readings`: where to note a reading."""
        if not self.reduced or delta >= 1:
            return Bound(0.0, 0.0, Certificate("nothing composed" if delta < 1 else "delta is 1"))
        if self.single is not None:
            closed = self.single.inverse(delta)
            if closed is not None:
                bounded = delta == 0 and closed.upper < math.inf
                upper = min(closed.upper, self._largest) if bounded else closed.upper
                return Bound(min(closed.lower, upper), upper, _closed(closed.certificate))
        rounding = 4 * UNIT_ROUNDOFF
        low = _remaining(delta, self.infinite.upper) * (1 - rounding)
        high = _remaining(delta, self.infinite.lower) * (1 + rounding)
        if high < 0:
            return Bound(math.inf, math.inf, Certificate("the infinite loss alone exceeds delta"))
        if high == 0:
            lower, largest = max(self.extremes.lower, 0.0), max(self.extremes.upper, 0.0)
            upper = math.inf if low < 0 else min(self._largest, largest)
            return Bound(min(lower, upper), upper, Certificate("largest loss"))
        if self.single is not None:
            answer = self._inverted(delta, self.extremes)
            # The walk may have ended at the largest loss; a rounding may be an infinite one.
            known = answer.upper == math.inf
            proved = known or _closed_at(self.single.profile, answer.upper).upper <= delta
            return (
                answer
                if low >= 0 or proved
                else Bound(max(answer.lower, 0.0), math.inf, answer.certificate)
            )
        if low <= 0:
            reading = point_of(self.transform, high, high, tolerance=tolerance)
            return Bound(
                max(reading.lower, 0.0),
                math.inf if low < 0 else max(self.extremes.upper, 0.0),
                _certificate(reading),
            )
        if self._below_in_total_variation(low):
            return Bound(0.0, 0.0, Certificate("total variation, by Pinsker's inequality"))
        found = point_of(self.transform, low, high, tolerance=tolerance, loosest=self._loosest)
        answer = self._within_extremes(self._noted(found, readings))
        if self.on_lattice and readings is not None and readings.only_lines:
            return answer
        by_lines = answer
        if self.on_lattice and loose(answer, lattice.LOOSE):
            answer = _met(answer, lattice.epsilon(self.reduced, low, high))
            if (found.refused or found.lower == -math.inf) and loose(answer, POOR):
                found = point_of(self.transform, low, high, tolerance=tolerance)
                by_lines = self._within_extremes(found)
                answer = _met(by_lines, answer)
        near = answer.lower < rare.FARTHEST
        rows = self._rare(answer, delta, tolerance, readings) if near else None
        if rows is None:
            return answer
        cut = partial(
            rare.epsilon, rows, low, high, tolerance=tolerance, other_losses=self._other_losses
        )
        narrower = cut(answer)
        # Where the losses are cut depends on where the search begins.
        is_whole = readings is None or not readings.of_part
        again = is_whole and answer is not by_lines and loose(narrower, POOR)
        return _met(cut(by_lines), narrower) if again else narrower

    def _below_in_total_variation(self, delta: float) -> bool:
        """Whether the square of delta(0), at most half of the Renyi divergence of order 2, is below that of `delta`."""
        most = 2 * delta * delta * (1 - 8 * UNIT_ROUNDOFF)
        near = delta > 1e-150 and self.infinite.upper == 0 and self.transform.scale < most
        return near and self.transform.moment_bound(1.0) <= most

    def _within_extremes(self, reading: LineReading) -> Bound:
        """Epsilon from a reading: no smaller than 0, and no larger than the largest loss."""
        upper = (
            min(reading.upper, self.extremes.upper)
            if self._near_the_top(reading.upper)
            else reading.upper
        )
        return Bound(max(reading.lower, 0.0), max(upper, 0.0), _certificate(reading))

    @property
    def _loosest(self) -> float:
        """The relative width from which on an answer from a line is checked by a lattice; infinite if no lattice fits."""
        return lattice.LOOSE if self.on_lattice else math.inf

    @cached_property
    def on_lattice(self) -> bool:
        """Whether the losses are put on a lattice where lines give a wide answer."""
        return fits(self.reduced)

    def _rare(
        self, answer: Bound, delta: float, tolerance: float, readings: Readings | None
    ) -> rare.Rows | None:
        """The sampled Gaussian losses of this sum, where rare, large ones may have made an answer wide.

        Finite losses that are known in both orders may stand beside them. At the least deltas many large losses add up,
        and where they are not alike no split has narrowed an answer that a lattice leaves wide.
        """
        wide = answer.upper - answer.lower > max(tolerance, _WIDE) * answer.upper
        is_part = readings is not None and readings.of_part
        many = delta < _FAINT and loose(answer, _FAINT_WIDE) and (is_part or len(self.reduced) > 1)
        if not wide or many or len(self.reduced) > _MOST_ROWS:
            return None
        rows = [
            (loss, times)
            for loss, times in self.reduced
            if isinstance(loss, SampledGaussianLoss) and loss.remove
        ]
        known = all(loss.finite() and loss.in_other_order is not None for loss, _ in self._others)
        return (
            rows if rows and known and len(rows) + len(self._others) == len(self.reduced) else None
        )

    @cached_property
    def _others(self) -> Group:
        """The losses that are none of sampled Gaussian noise."""
        return tuple(
            (loss, times)
            for loss, times in self.reduced
            if not isinstance(loss, SampledGaussianLoss)
        )

    @cached_property
    def _other_losses(self) -> rare.OtherLosses | None:
        """The sum of the other losses, in both orders; None if there is none."""
        if not self._others:
            return None
        backward = [(loss.in_other_order or loss, times) for loss, times in self._others]
        pools = [pool for family, pool in self._pools.items() if family is not SampledGaussianLoss]
        terms = [term for pool in pools for term in pool.terms]
        return rare.OtherLosses(TransformSum(tuple(terms)), Product(tuple(backward)).transform)

    def _near_the_top(self, epsilon: float) -> bool:
        """Whether epsilon is so close to the largest loss that its exact value, for which every loss is looked at, may
        matter."""
        return not epsilon < 0.999 * self.transform.maximum

    def _noted(self, reading: LineReading, readings: Readings | None) -> LineReading:
        if readings is not None:
            readings.note(self, reading)
        return reading

    def at_most(self, epsilon: float, delta: float, *, readings: Readings | None = None) -> bool:
        """Whether an upper end alone, to a percent, proves delta(epsilon) <= delta: cheaper than a two-sided answer.

        `readings`: those at this point, of which the other order's is tried first.
        """
        if not self.reduced or not math.isfinite(epsilon):
            return False
        if self.single is not None:
            return _closed_at(self.single.profile, epsilon).upper <= delta
        low = _remaining(delta, self.infinite.upper) * (1 - 4 * UNIT_ROUNDOFF)
        if self._near_the_top(epsilon) and epsilon >= self.extremes.upper:
            return low >= 0
        reverse = None if readings is None else readings.of(self.other)
        if not low > 0:
            return False
        by_lines = reverse is not None and not loose(reverse, lattice.LOOSE)
        if (
            self.on_lattice
            and not by_lines
            and epsilon > 0
            and lattice.at_most(self.reduced, epsilon, low)
        ):
            return True
        return _at_most(self.transform, epsilon, low, reverse=reverse, loosest=self._loosest)

    def _inverted(self, delta: float, largest: Bound) -> Bound:
        """The inverse of a closed profile: a root of its middle, then a walk outward until either end is proved."""
        assert self.single is not None
        profile, end = self.single.profile, largest.upper
        if _closed_at(profile, 0.0).upper <= delta:
            return Bound(0.0, 0.0, Certificate("exact profile"))

        from scipy.optimize import brentq  # A tenth of a second, which few questions need.

        def excess(epsilon: float) -> float:
            bound = _closed_at(profile, epsilon)
            middle = (bound.lower + bound.upper) / 2
            return math.log(middle / delta) if middle > 0 else -800.0

        right = end if math.isfinite(end) else 1.0
        while not math.isfinite(end) and excess(right) > 0 and right < 1e300:
            right *= 2
        if excess(0.0) > 0 > excess(right):
            point = float(
                brentq(excess, 0.0, right, xtol=1e-300, rtol=1e-14, maxiter=200, disp=False)
            )
        else:
            point = 0.0 if excess(0.0) <= 0 else right
        step = 1e-14 * max(point, 1e-300)
        upper = walk_to_proof(
            lambda epsilon: _closed_at(profile, epsilon).upper <= delta,
            point,
            step,
            end,
            growth=4.0,
        )
        lower = -walk_to_proof(
            lambda epsilon: _closed_at(profile, -epsilon).lower >= delta,
            -point,
            step,
            0.0,
            growth=4.0,
        )
        return Bound(
            min(max(0.0, lower), upper), upper, Certificate("exact profile", unit="epsilon")
        )


POOR = 1e-2
"""Above this relative width of an answer of a lattice, lines are smoothed as much as they need."""


def loose(bound: Bound | LineReading, most: float) -> bool:
    """Whether the ends are apart by more than that share of the upper one."""
    return bound.lower < (1 - most) * bound.upper


def _met(answer: Bound, other: Bound) -> Bound:
    """The intersection of two enclosures: the first itself, if the second does not narrow it."""
    found = Bound(*met(answer, other), other.certificate)
    return answer if found == answer else found


def _closed_at(profile: Callable[[float], Bound | None], epsilon: float) -> Bound:
    bound = profile(epsilon)
    assert bound is not None
    return bound


def _clipped(epsilon: float, bound: Bound) -> Bound:
    """The bound on a delta, within [max(0, 1 - e^epsilon), 1]."""
    floor = max(down(-math.expm1(epsilon)), 0.0) if epsilon < 0 else 0.0
    upper = min(bound.upper, 1.0)
    lower = min(max(bound.lower, floor), upper)
    return Bound(lower, upper, _closed(bound.certificate))


def _remaining(delta: float, infinite: float) -> float:
    """(delta - infinite) / (1 - infinite): what is left of delta for the finite part; negative if nothing is."""
    return (delta - infinite) / (1 - infinite) if infinite < 1 else -1.0


def _closed(certificate: Certificate) -> Certificate:
    return certificate if certificate.method != "exact" else Certificate("closed form")


def _certificate(reading: LineReading) -> Certificate:
    """The error budget of a reading, relative to delta."""
    if reading.contour is None or reading.bracket is None:
        return Certificate("no line: one moment, or the largest loss")
    bracket, whole = reading.bracket, max(reading.bracket.upper, 5e-324)
    sources = zip(bracket._fields[2:], bracket[2:], strict=True)
    terms = tuple((source, width / whole) for source, width in sources)
    coarse = (
        bracket.rounding > _COARSE * whole
        and bracket.rounding >= max(share for _, share in terms) * whole
    )
    return Certificate(
        f"{reading.contour.name}, {reading.contour.nodes} nodes",
        terms,
        notes=_ROUNDED if coarse else (),
    )


def _pooled(family: type[Loss], members: list[tuple[Loss, int]], other: _Pool | None) -> _Pool:
    """The transforms of the losses of a family: those already made for the other order, or their reverse, where these
    are the same."""
    if other is not None and other.members == members:
        return other
    if (
        other is not None
        and [(loss.shared_reverse, times) for loss, times in other.members] == members
    ):
        found = [term.reverse for term in other.terms]
        terms = [term for term in found if term is not None]
        if len(terms) == len(found):
            return _Pool(members, terms)
    return _Pool(members, family.pool(members))
