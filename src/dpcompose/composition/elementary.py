"""Elementary theorems about a composition. A wide answer is compared with them, and is never above them.

Basic composition: where the parts one by one are (epsilon_i, delta_i)-private, all together are so with the sums of
both, whatever was chosen from earlier answers. The parts' own answers are the library's.

Without sampling: the hockey-stick divergence is jointly convex, so that of the mixtures (1 - q) Q + q P and Q (and of
P and (1 - q) P + q Q) is at most q times that of P and Q, plus 1 - q times (1 - e^epsilon)_+, which no divergence is
below. So at every epsilon, in either order, a pair dominates its mixture; and what dominates every round dominates the
composition, whichever rounds are taken without their sample: all of them, or some.

Total variation: no delta(epsilon) with epsilon >= 0 is above delta(0), the total variation, which is at most the root
of half the Kullback-Leibler divergence (Pinsker), the sum of what every round adds to it, at most. With chi^2 =
e^(D_2) - 1 of a pair (P, Q), that of its mixture (1 - q) Q + q P against Q is q^2 chi^2; in the other order,
q^2 times the integral of (P - Q)^2 / ((1 - q) Q + q P), it is at most q^2 chi^2 / (1 - q). And no Kullback-Leibler
divergence is above log(1 + chi^2).

Reference: [DworkRoth2014, Theorem 3.16], [BalleBartheGaboardi2018, Theorem 2], [ZhuDongWang2022, Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from dpcompose.composition.losses import Losses, gathered
from dpcompose.composition.part import Part, checked_times, merged
from dpcompose.composition.renyi import RenyiCurve, Samples
from dpcompose.mechanisms import Unsampled
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, down, up

_BASIC = Certificate("basic composition of the answers for one mechanism each")
_LARGEST = Certificate("largest losses, added up")
_VARIATION = Certificate("total variation, from the divergence of order 2")
_NOTE = "the upper end is a dominating pair's or an elementary theorem's; the lower end is that of attained losses"
_STEPS = 6
_HOPELESS = 1e4
"""No moment is worse than the exact delta by such a factor."""
WIDE = 1e-6
"""The relative width from which on an answer is compared with the theorems."""


class Asked(Protocol):
    """A question about a composition."""

    @property
    def curve(self) -> RenyiCurve:
        """Its Renyi divergences."""
        ...

    def uncompared(self, number: float, *, for_delta: bool) -> Bound:
        """delta at an epsilon, or epsilon at a delta, compared with no elementary theorem."""
        ...

    def attained_end(self, number: float, least: float, *, for_delta: bool) -> float:
        """The lower end alone of `uncompared`, or `least` if that is larger."""
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
        losses: All losses of what is asked about.
        ask: The same question about other losses.
    """

    losses: Losses
    ask: Callable[[Losses], Asked]

    @cached_property
    def _count(self) -> int:
        return sum(times for _, times in self.losses.parts)

    @cached_property
    def _single(self) -> list[tuple[Losses, int]]:
        """The losses of the parts one by one."""
        return self.losses.one_by_one()

    @cached_property
    def unsampled(self) -> list[Unsampled | None]:
        """The compositions that run on the samples of the parts; empty if nobody is sampled."""
        found = [part.unsampled(self.losses.adjacency) for part, _ in self.losses.parts]
        return [] if all(inner is None for inner in found) else found

    @cached_property
    def _whole(self) -> Asked | None:
        """The same question where everybody is in every sample; None if nobody is sampled."""
        return self.without_samples(self.unsampled) if self.unsampled else None

    def without_samples(self, inners: Sequence[Unsampled | None]) -> Asked:
        """The same question with what runs on the samples in the place of the parts; None leaves a part as it is."""
        entries: list[tuple[Part, int]] = []
        for (part, times), inner in zip(self.losses.parts, inners, strict=True):
            each = ((part, 1),) if inner is None else inner.parts
            entries += [(one, checked_times("times", count * times)) for one, count in each]
        return self.ask(gathered(merged(entries), self.losses.adjacency, summed=True))

    @cached_property
    def samples(self) -> Samples:
        """The Renyi curves of the parts without their samples, with the rates; empty if nobody is sampled."""
        found: list[tuple[RenyiCurve, float, int]] = []
        for (losses, times), inner in zip(
            self._single if self.unsampled else (), self.unsampled, strict=True
        ):
            if inner is None:
                found.append((self.ask(losses).curve, 1.0, times))
            else:
                whole = gathered(inner.parts, self.losses.adjacency, summed=True)
                found.append((self.ask(whole).curve, inner.rate, times))
        return tuple(found)

    @cached_property
    def _apart(self) -> list[tuple[Losses, int]]:
        """The losses of the parts one by one; empty where there is only one, or none has losses."""
        if self._count <= 1 or len(self.losses.promises) == len(self.losses.parts):
            return []
        # The largest losses come first, and soon exceed what is known. The promises of Renyi curves come last: they add
        # up at every order, and take the longest.
        return sorted(self._single, key=lambda row: (bool(row[0].promises), -row[0].largest_finite))

    @cached_property
    def _one_by_one(self) -> list[tuple[Asked, int]]:
        """The same question about each of them."""
        return [(self.ask(losses), times) for losses, times in self._apart]

    @cached_property
    def _variation(self) -> float:
        """At least the total variation, where a part is sampled; else 1."""
        rows = [
            times * _chi_squared(curve.divergence(2.0), rate) for curve, rate, times in self.samples
        ]
        return min(up(math.sqrt(_sum((row, 1) for row in rows) / 2)), 1.0) if rows else 1.0

    def epsilon(self, delta: float, *, known: float) -> list[Bound]:
        """Upper ends for epsilon, those that may be below what is known; the lower ends are 0."""
        if self._variation <= delta:
            return [Bound(0.0, 0.0, _VARIATION)]
        # Where there are Renyi curves alone, what is known says what it is without sampling at every order.
        whole = None if self.losses.promises else self._whole
        if whole is not None and hopeless(whole, known, delta):
            whole = None
        found = [] if whole is None else [without_sampling(whole.epsilon(delta))]
        share, rows, spent = (
            max(down(delta / max(self._count, 1)), 0.0),
            list[tuple[float, int]](),
            0.0,
        )
        for losses, times in self._apart:
            rows.append((self.ask(losses).epsilon(share).upper, times))
            spent += rows[-1][0] * times  # roughly; the exact sum is taken once
            if not spent * (1 - 1e-9) < known:
                break
        else:
            found += [Bound(0.0, _sum(rows), _BASIC)] if rows else []
        return [*found, *largest_losses(self.losses, delta, known=known)]

    def delta(self, epsilon: float, *, known: float) -> list[Bound]:
        """Upper ends for delta at an epsilon >= 0, those that may be below what is known; the lower ends are 0."""
        whole = self._whole
        if whole is not None and hopeless(whole, epsilon, known):
            whole = None
        found = [Bound(0.0, self._variation, _VARIATION)] if self._variation < known else []
        found += [] if whole is None else [without_sampling(whole.delta(epsilon))]
        if self._one_by_one:
            found.append(Bound(0.0, self._basic_delta(epsilon), _BASIC))
        return found

    def beyond(self, epsilon: float) -> list[Bound]:
        """The sum of the infinite losses' masses, where the largest finite ones add up to no more than epsilon."""
        stated = self.losses.approximate()
        return (
            [Bound(0.0, stated.delta, _LARGEST)]
            if stated is not None and stated.epsilon <= epsilon
            else []
        )

    def _basic_delta(self, epsilon: float) -> float:
        """The sum of the parts' delta: epsilon is split evenly, then so that the parts' delta are about equal."""
        count, numbers = self._count, [times for _, times in self._one_by_one]
        total = self._spent([epsilon / count for _ in numbers], epsilon)
        for _ in range(_STEPS if len(numbers) > 1 else 0):
            shares = [one.epsilon(total / count).upper for one, _ in self._one_by_one]
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
        rows = list(zip(less, self._one_by_one, strict=True))
        if not _sum((share, times) for share, (_, times) in rows) <= epsilon:
            return 1.0
        return min(_sum((one.delta(share).upper, times) for share, (one, times) in rows), 1.0)


def largest_losses(losses: Losses, delta: float, *, known: float) -> list[Bound]:
    """The sum of the largest losses, where it is below what is known and the infinite ones are within delta."""
    stated = losses.approximate()
    better = stated is not None and stated.delta <= delta and stated.epsilon < known
    return [Bound(0.0, stated.epsilon, _LARGEST)] if stated is not None and better else []


def wide(bound: Bound, tolerance: float) -> bool:
    """Whether another theorem may be better; not where no more was asked for."""
    return bound.lower < bound.upper * (1 - (WIDE + 4 * tolerance)) and bound.upper > 1e-320


def least(found: Bound, others: Iterable[Bound]) -> Bound:
    """The answer found, or the least of other upper ends with it; what contradicts its lower end is left out."""
    best = min(
        (found, *(other for other in others if other.upper >= found.lower)),
        key=lambda bound: bound.upper,
    )
    return found if best is found else apart([found], best)


def greatest(bounds: Sequence[Bound]) -> Bound:
    """The maximum of numbers known by their bounds."""
    if len(bounds) == 1:
        return bounds[0]
    leader = max(bounds, key=lambda bound: (bound.upper, bound.lower))
    return Bound(max([bound.lower for bound in bounds]), leader.upper, leader.certificate)


def apart(lower: Sequence[Bound], upper: Bound) -> Bound:
    """Lower and upper end from different losses, and a certificate that says so."""
    certificate = Certificate(
        upper.certificate.method,
        upper.certificate.budget,
        upper.certificate.unit,
        (*upper.certificate.notes, _NOTE),
    )
    low = max((bound.lower for bound in lower), default=0.0)
    return Bound(min(low, upper.upper), upper.upper, certificate)


def hopeless(question: Asked, epsilon: float, delta: float) -> bool:
    """Whether the moments of a question say that its answer is far above this point."""
    return question.curve.hopeless(epsilon, _HOPELESS * delta, attained=False)


def without_sampling(bound: Bound) -> Bound:
    """The upper end of a question in which samples are left out."""
    method = f"{bound.certificate.method}, as if nobody were left out of a sample"
    return Bound(
        0.0, bound.upper, Certificate(method, bound.certificate.budget, bound.certificate.unit)
    )


def _chi_squared(divergence: float, rate: float) -> float:
    """log(1 + chi^2) on a Poisson sample, the larger of both orders, from the divergence of order 2; rounded up."""
    if rate == 1 or not divergence < 700:
        return divergence
    return math.log1p(rate * rate / (1 - rate) * math.expm1(divergence)) * (1 + 64 * UNIT_ROUNDOFF)


def _sum(rows: Iterable[tuple[float, int]]) -> float:
    """The numbers, each so many times, added up and rounded up."""
    total = math.fsum(times * number for number, times in rows)
    return up(total * (1 + 4 * UNIT_ROUNDOFF)) if total > 0 else 0.0
