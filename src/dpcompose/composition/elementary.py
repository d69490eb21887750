"""What elementary theorems say of a composition: asked where an answer is wide, which is never above them.

Basic composition: where the parts one by one are (epsilon_i, delta_i)-private, all together are so with the sums of
both, whatever was chosen from earlier answers. The parts' own answers are the library's.

Without sampling: the hockey-stick divergence is jointly convex, so that of the mixtures (1 - q) Q + q P and Q (and of
P and (1 - q) P + q Q) is at most q times that of P and Q, plus 1 - q times (1 - e^epsilon)_+, which no divergence is
below. So at every epsilon, in either order, a pair dominates its mixture; and what dominates every round dominates the
composition.

Reference: [DworkRoth2014, Theorem 3.16], [BalleBartheGaboardi2018, Theorem 2], [ZhuDongWang2022, Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from dpcompose.composition.container import Composition, Pairs, Part, compose
from dpcompose.composition.renyi import Curve
from dpcompose.composition.sampling import Sampled
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.numerics.bound import UNIT_ROUNDOFF, Bound, Certificate, down, up
from dpcompose.numerics.exact import sum_rounded_up

_BASIC = Certificate("basic composition of the answers for one mechanism each")
_LARGEST = Certificate("largest losses, added up")
_NOTE = "the upper end is a dominating pair's or an elementary theorem's; the lower end is that of attained losses"
_STEPS = 6
WIDE = 1e-6
"""The relative width from which on an answer is compared with the theorems."""


class Asked(Protocol):
    """A question about a composition."""

    @property
    def curve(self) -> Curve:
        """Its Renyi divergences."""
        ...

    def epsilon(self, delta: float) -> Bound:
        """The largest epsilon(delta) of the directions."""
        ...

    def delta(self, epsilon: float) -> Bound:
        """The largest delta(epsilon) of the directions."""
        ...


@dataclass(frozen=True)
class Elementary:
    """The theorems for one question.

    Args:
        composition: What is asked about.
        pairs: Its losses; None if some part has none.
        adjacency: What one person's data may change.
        ask: The same question about another composition.
    """

    composition: Composition
    pairs: Pairs | None
    adjacency: Adjacency
    ask: Callable[[Composition], Asked]

    @cached_property
    def _whole(self) -> tuple[tuple[Composition, float, int], ...]:
        """The parts without their samples, with the rates; empty if nobody is sampled."""
        found = [(_unsampled(part, self.adjacency), part, times) for part, times in self.composition.parts]
        if all(inner is None for inner, _, _ in found):
            return ()
        mixed = self.adjacency is not Adjacency.REPLACE
        return tuple(
            (inner or _single(part), part.rate if mixed and inner and isinstance(part, Sampled) else 1.0, times)
            for inner, part, times in found
        )

    @cached_property
    def unsampled(self) -> Asked | None:
        """The same question where everybody is in every sample; None if nobody is sampled."""
        return self.ask(compose(*(inner * times for inner, _, times in self._whole))) if self._whole else None

    @cached_property
    def samples(self) -> tuple[tuple[Curve, float, int], ...]:
        """The Renyi curves of the parts without their samples, with the rates; empty if nobody is sampled."""
        return tuple((self.ask(inner).curve, rate, times) for inner, rate, times in self._whole)

    @cached_property
    def _rounds(self) -> tuple[tuple[Asked, int], ...]:
        """The parts one by one; empty where there is only one."""
        parts = self.composition.parts if self.composition.count > 1 else ()
        promised = [part.promise(self.adjacency) is not None for part, _ in parts]
        # The promises of Renyi curves add up at every order, and come last: they take the longest.
        rows = () if all(promised) else sorted(zip(promised, parts, strict=True), key=lambda row: row[0])
        return tuple((self.ask(_single(part)), times) for _, (part, times) in rows)

    def epsilon(self, delta: float, *, known: float) -> list[Bound]:
        """Upper ends for epsilon, those that may be below what is known; the lower ends are 0."""
        # Where there are Renyi curves alone, what is known says what it is without sampling at every order.
        whole = None if self.pairs is None else self.unsampled
        found = [] if whole is None else [_without_sampling(whole.epsilon(delta))]
        share, spent = max(down(delta / max(self.composition.count, 1)), 0.0), 0.0
        for one, times in self._rounds:
            spent = _sum(((spent, 1), (one.epsilon(share).upper, times)))
            if not spent < known:
                break
        else:
            found += [Bound(0.0, spent, _BASIC)] if self._rounds else []
        return [*found, *largest_losses(self.pairs, delta, known=known)]

    def delta(self, epsilon: float) -> list[Bound]:
        """Upper ends for delta at an epsilon >= 0; the lower ends are 0."""
        found = [] if self.unsampled is None else [_without_sampling(self.unsampled.delta(epsilon))]
        if self._rounds:
            found.append(Bound(0.0, self._basic_delta(epsilon), _BASIC))
        return found

    def beyond(self, epsilon: float) -> list[Bound]:
        """The sum of the infinite losses' masses, where the largest finite ones add up to no more than epsilon."""
        stated = None if self.pairs is None else added(self.pairs)
        return [Bound(0.0, stated.delta, _LARGEST)] if stated is not None and stated.epsilon <= epsilon else []

    def _basic_delta(self, epsilon: float) -> float:
        """The sum of the parts' delta: epsilon is split evenly, then so that the parts' delta are about equal."""
        count, numbers = self.composition.count, [times for _, times in self._rounds]
        total = self._spent([epsilon / count for _ in numbers], epsilon)
        for _ in range(_STEPS if len(numbers) > 1 else 0):
            shares = [one.epsilon(total / count).upper for one, _ in self._rounds]
            whole = _sum(zip(shares, numbers, strict=True))
            if not 0 < whole < math.inf:
                break
            better = self._spent([share * (epsilon / whole) for share in shares], epsilon)
            if not better < 0.999 * total:
                break
            total = better
        return total

    def _spent(self, shares: list[float], epsilon: float) -> float:
        """The sum of the parts' delta at these shares of epsilon, each a little less, so that they keep to it."""
        less = [share * (1 - 16 * UNIT_ROUNDOFF) for share in shares]
        rows = list(zip(less, self._rounds, strict=True))
        if not _sum((share, times) for share, (_, times) in rows) <= epsilon:
            return 1.0
        return min(_sum((one.delta(share).upper, times) for share, (one, times) in rows), 1.0)


def largest_losses(pairs: Pairs | None, delta: float, *, known: float) -> list[Bound]:
    """The sum of the largest losses, where it is below what is known and the infinite ones are within delta."""
    stated = None if pairs is None else added(pairs)
    better = stated is not None and stated.delta <= delta and stated.epsilon < known
    return [Bound(0.0, stated.epsilon, _LARGEST)] if stated is not None and better else []


def added(pairs: Pairs) -> ApproximateDP | None:
    """The sums of the largest finite losses and of the infinite ones' masses, rounded up; None if a loss is unbounded.

    Reference: [DworkRoth2014, Theorem 3.16]
    """
    largest: list[tuple[Fraction, int]] = []
    infinite = 0.0
    for pair, times in pairs:
        either = pair.attained_parts if pair.either_order else (pair,)
        losses = [loss for each in either for loss in ((each.remove,) if each.symmetric else (each.remove, each.add))]
        tops = [top for loss in losses if (top := loss.top) is not None]
        if len(tops) < len(losses):
            return None
        largest.append((max(tops), times))
        if not all(loss.finite() for loss in losses):
            mass = max(loss.infinite_mass * (1 + loss.infinite_relative_error) + loss.unplaced_mass for loss in losses)
            infinite = up(infinite + up(times * up(up(mass)))) if mass > 0 else infinite
    return ApproximateDP(sum_rounded_up(largest), delta=min(infinite, 1.0))


def wide(bound: Bound, tolerance: float) -> bool:
    """Whether another theorem may be better; not where no more was asked for."""
    return bound.lower < bound.upper * (1 - (WIDE + 4 * tolerance)) and bound.upper > 1e-320


def least(found: Bound, others: Iterable[Bound]) -> Bound:
    """The answer found, or the least of other upper ends with it; what contradicts its lower end is left out."""
    best = min((found, *(other for other in others if other.upper >= found.lower)), key=lambda bound: bound.upper)
    return found if best is found else apart([found], best)


def apart(lower: Sequence[Bound], upper: Bound) -> Bound:
    """Lower and upper end from different losses, and a certificate that says so."""
    certificate = Certificate(
        upper.certificate.method, upper.certificate.budget, upper.certificate.unit, (*upper.certificate.notes, _NOTE)
    )
    low = max((bound.lower for bound in lower), default=0.0)
    return Bound(min(low, upper.upper), upper.upper, certificate)


def _single(part: Part) -> Composition:
    return Composition(((part, 1),))


def _unsampled(part: Part, adjacency: Adjacency) -> Composition | None:
    return part.unsampled(adjacency) if isinstance(part, Sampled) else None


def _without_sampling(bound: Bound) -> Bound:
    method = f"{bound.certificate.method}, as if nobody were left out of a sample"
    return Bound(0.0, bound.upper, Certificate(method, bound.certificate.budget, bound.certificate.unit))


def _sum(rows: Iterable[tuple[float, int]]) -> float:
    """The numbers, each so many times, added up and rounded up."""
    total = math.fsum(times * number for number, times in rows)
    return up(total * (1 + 4 * UNIT_ROUNDOFF)) if total > 0 else 0.0
