"""Elementary theorems that give upper bounds for a composition; wide numerical bounds are compared
with them.

Basic composition: if each part is (epsilon_i, delta_i)-private, the composition is private with the
sums of both, also under adaptive choice. The bounds of the single parts are computed by this
library.

Without sampling: the hockey-stick divergence is jointly convex, so that of the mixtures (1 - q) Q +
q P and Q (and of P and (1 - q) P + q Q) is at most q times that of P and Q, plus 1 - q times (1 -
e^epsilon)_+, which no divergence is below. So at every epsilon, in either order, a pair dominates
its mixture. Pairs that dominate in every round dominate the composition, so any subset of the parts
may be replaced by their unsampled versions.

Total variation: no delta(epsilon) with epsilon >= 0 exceeds delta(0), the total variation, which is
at most the root of half the Kullback-Leibler divergence (Pinsker); the latter is at most the sum
over the rounds. With chi^2 = e^(D_2) - 1 of a pair (P, Q), that of its mixture (1 - q) Q + q P
against Q is q^2 chi^2; in the other order, q^2 times the integral of (P - Q)^2 / ((1 - q) Q + q P),
it is at most q^2 chi^2 / (1 - q). And no Kullback-Leibler divergence exceeds log(1 + chi^2).

Reference: [DworkRoth2014, Theorem 3.16], [BalleBartheGaboardi2018, Theorem 2], [ZhuDongWang2022,
Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from dpcompose.composition.directions import apart, least, wide
from dpcompose.composition.losses import Losses, Part, Parts, checked_times, gathered, merged
from dpcompose.composition.renyi import RenyiCurve, Samples
from dpcompose.loss import Readings, loose
from dpcompose.mechanisms import Unsampled
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, down, up

_BASIC = Certificate("basic composition of the answers for one mechanism each")
_LARGEST = Certificate("largest losses, added up")
_VARIATION = Certificate("total variation, from the divergence of order 2")
_LEAST_NORMAL = 2.0**-1022
_STEPS = 6
WORTH = 2.5e-5
"""Wider bounds are compared with the sum of the bounds of the single parts."""
_HOPELESS = 1e4
"""A delta from moments exceeds the exact delta by less than this factor."""


class ComparableQuestion(Protocol):
    """The methods of a question about a composition that the elementary theorems use."""

    @property
    def curve(self) -> RenyiCurve:
        """The bounds on the Renyi divergences of the composition."""
        ...

    def uncompared(
        self, number: float, readings: Readings | None = None, *, for_delta: bool
    ) -> Bound:
        """Return bounds on delta at epsilon = `number` (`for_delta`) or on epsilon at delta =
        `number`, without elementary theorems.
        """
        ...

    def attained_end(
        self, number: float, least: float, readings: Readings, *, for_delta: bool
    ) -> float:
        """Return the lower end of `uncompared`, or `least` if that is larger."""
        ...

    def epsilon(self, delta: float) -> Bound:
        """Return bounds on epsilon at `delta`, the larger of both directions, in nats."""
        ...

    def delta(self, epsilon: float) -> Bound:
        """Return bounds on delta at `epsilon`, the larger of both directions."""
        ...


@dataclass(frozen=True)
class Elementary:
    """The elementary theorems for one composition.

    Args:
        losses: The losses of the composition.
        ask: Returns the question about other losses under the same options.
    """

    losses: Losses
    ask: Callable[[Losses], ComparableQuestion]

    @cached_property
    def _count(self) -> int:
        return sum(times for _, times in self.losses.parts)

    @cached_property
    def _single(self) -> list[tuple[Losses, int]]:
        """The losses of each part separately, with its count."""
        return self.losses.one_by_one()

    @cached_property
    def unsampled(self) -> list[Unsampled | None]:
        """For each part its composition without the sample, None if it has no sample; empty if no
        part has one.
        """
        found = [part.unsampled(self.losses.adjacency) for part, _ in self.losses.parts]
        return [] if all(inner is None for inner in found) else found

    @cached_property
    def _whole(self) -> ComparableQuestion | None:
        """The question about the composition with every sample replaced by the full data; None if
        no part is sampled.
        """
        return self.without_samples(self.unsampled) if self.unsampled else None

    def without_samples(self, inners: Sequence[Unsampled | None]) -> ComparableQuestion:
        """Return the question in which each part is replaced by its entry of `inners`; None leaves
        the part unchanged.
        """
        entries: list[tuple[Part, int]] = []
        for (part, times), inner in zip(self.losses.parts, inners, strict=True):
            each = ((part, 1),) if inner is None else inner.parts
            entries += [(one, checked_times("times", count * times)) for one, count in each]
        return self.ask(gathered(merged(entries), self.losses.adjacency, summed=True))

    @cached_property
    def samples(self) -> Samples:
        """The Renyi curves of the parts without their samples, with sampling rates and counts;
        empty if no part is sampled.
        """
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
        """The losses of each part separately, largest first; empty if there is one part, or none
        has losses.
        """
        if self._count <= 1 or len(self.losses.promises) == len(self.losses.parts):
            return []
        # The largest losses come first, since their sum soon exceeds the known bound. Parts that
        # only state a Renyi curve come last, since their bounds take the longest.
        return sorted(self._single, key=lambda row: (bool(row[0].promises), -row[0].largest_finite))

    @cached_property
    def _one_by_one(self) -> list[tuple[ComparableQuestion, int]]:
        """The `PrivacyQuestion` about each part separately, with its count."""
        return [(self.ask(losses), times) for losses, times in self._apart]

    @cached_property
    def _variation(self) -> float:
        """An upper bound on the total variation distance where a part is sampled; else 1."""
        rows = [
            times * _chi_squared(curve.divergence(2.0), rate) for curve, rate, times in self.samples
        ]
        return min(up(math.sqrt(_sum((row, 1) for row in rows) / 2)), 1.0) if rows else 1.0

    def epsilon(self, delta: float, bound: Bound) -> list[Bound]:
        """Return upper bounds on epsilon at `delta` that may be below that of `bound`, in nats;
        their lower ends are 0.
        """
        upper = bound.upper
        if self._variation <= delta:
            return [Bound(0.0, 0.0, _VARIATION)]
        # If the composition only has Renyi curves, its own bound already covers every order without
        # sampling.
        whole = None if self.losses.promises else self._whole
        if whole is not None and hopeless(whole, upper, delta):
            whole = None
        found = [] if whole is None else [without_sampling(whole.epsilon(delta))]
        share, rows, spent = (
            max(down(delta / max(self._count, 1)), 0.0),
            list[tuple[float, int]](),
            0.0,
        )
        for losses, times in self._apart if wide(bound, WORTH) else ():
            rows.append((self.ask(losses).epsilon(share).upper, times))
            spent += rows[-1][0] * times  # A rough sum first; the exact one is computed once.
            if not spent * (1 - 1e-9) < upper:
                break
        else:
            found += [Bound(0.0, _sum(rows), _BASIC)] if rows else []
        return [*found, *largest_losses(self.losses, delta, upper=upper)]

    def delta(self, epsilon: float, bound: Bound) -> list[Bound]:
        """Return upper bounds on delta at `epsilon` >= 0 that may be below that of `bound`; their
        lower ends are 0.
        """
        upper = bound.upper
        whole = self._whole
        if whole is not None and hopeless(whole, epsilon, upper):
            whole = None
        found = [Bound(0.0, self._variation, _VARIATION)] if self._variation < upper else []
        found += [] if whole is None else [without_sampling(whole.delta(epsilon))]
        if wide(bound, WORTH) and self._one_by_one:
            found.append(Bound(0.0, self._basic_delta(epsilon), _BASIC))
        return found

    def beyond(self, epsilon: float) -> list[Bound]:
        """Return the sum of the probabilities of infinite losses as a bound on delta, if all finite
        losses sum to at most `epsilon`.
        """
        stated = self.losses.approximate()
        return (
            [Bound(0.0, stated.delta, _LARGEST)]
            if stated is not None and stated.epsilon <= epsilon
            else []
        )

    def _basic_delta(self, epsilon: float) -> float:
        """Return an upper bound on delta by basic composition.

        `epsilon` is split among the parts evenly, then so that the parts' deltas are about equal.
        """
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
        """Return the sum of the parts' deltas if `epsilon` is divided among them in these
        fractions, each rounded down so that the sum stays within it.
        """
        less = [share * (1 - 16 * UNIT_ROUNDOFF) for share in shares]
        rows = list(zip(less, self._one_by_one, strict=True))
        if not _sum((share, times) for share, (_, times) in rows) <= epsilon:
            return 1.0
        return min(_sum((one.delta(share).upper, times) for share, (one, times) in rows), 1.0)


def largest_losses(losses: Losses, delta: float, *, upper: float) -> list[Bound]:
    """Return the sum of the largest losses as a bound on epsilon, if it is below `upper` and
    infinite losses have mass at most `delta`.
    """
    stated = losses.approximate()
    better = stated is not None and stated.delta <= delta and stated.epsilon < upper
    return [Bound(0.0, stated.epsilon, _LARGEST)] if stated is not None and better else []


def hopeless(question: ComparableQuestion, epsilon: float, delta: float) -> bool:
    """Return whether moments show, without certification, that delta at `epsilon` is far above
    `delta`.
    """
    return question.curve.hopeless(epsilon, _HOPELESS * delta, attained=False)


def without_sampling(bound: Bound) -> Bound:
    """Return a bound for sampled mechanisms from one that ignores the sampling: its upper end, and
    0 as the lower end.

    The certificate says that the full data was assumed instead of the sample.
    """
    method = f"{bound.certificate.method}, as if nobody were left out of a sample"
    return Bound(
        0.0, bound.upper, Certificate(method, bound.certificate.budget, bound.certificate.unit)
    )


def _chi_squared(divergence: float, rate: float) -> float:
    """Return log(1 + chi^2) on a Poisson sample, the larger of both orders, rounded up, from the
    Renyi divergence of order 2.
    """
    if rate == 1 or not divergence < 700:
        return divergence
    # Multiplied so that only what is below the normal floats is lost, which is then added.
    product = rate * (rate / (1 - rate) * math.expm1(divergence)) + _LEAST_NORMAL
    return math.log1p(product) * (1 + 64 * UNIT_ROUNDOFF)


def _sum(rows: Iterable[tuple[float, int]]) -> float:
    """Return the sum of number * count over the rows, rounded up; at least 0."""
    total = math.fsum(times * number for number, times in rows)
    return up(total * (1 + 4 * UNIT_ROUNDOFF)) if total > 0 else 0.0


# Narrows a wide bound by means of single parts: lower ends from the parts that attain most, upper
# ends with a few parts unsampled.
#
# One part, often a cheap one, may make the numerical evaluation of the whole wide.
#
# Lower end: dropping the answers of some parts is post-processing. Mechanisms and neighbors that
# attain a delta for some of the parts attain at least that for the whole, together with any
# mechanisms for the other parts. So delta(epsilon) and epsilon(delta) of the whole are at least
# those of any subset of its parts.
#
# Upper end: an unsampled part dominates the sampled one, and pairs that dominate in every round
# dominate the composition, so any subset of the samples may be dropped.
#
# Reference: [ZhuDongWang2022, Theorem 10]


_MOST_BLOCKS = 8
"""More parts than this are grouped into blocks of about equal size."""
_SHARE = 2.0**-10
"""The share of delta for the parts beside the most expensive ones."""
_APART = 2
"""If the ends differ by this factor, samples are dropped even if the bound cannot be narrow."""
_CLOSE_ENOUGH = 0.5
"""Where a lattice serves and the ends are so close, relatively, parts are read from lines alone."""


@dataclass(frozen=True)
class PartByPart:
    """Narrows a wide bound on epsilon or delta by evaluating parts of the composition separately.

    Args:
        theorems: The elementary theorems of the composition.
        number: The epsilon if `for_delta`, else the delta.
        tolerance: The wanted relative width of epsilon.
        for_delta: Whether delta is bounded at an epsilon; if False, epsilon at a delta.
        only_lines: Whether several parts, and unsampled ones, are left as they are where their
            lines are poor, because the whole is evaluated otherwise too.
    """

    theorems: Elementary
    number: float
    tolerance: float
    for_delta: bool
    only_lines: bool

    def narrower(self, bound: Bound, most: float) -> Bound:
        """Return `bound` with each end improved where single parts give a better one.

        Args:
            bound: The wide bound.
            most: An upper end of what the attained losses of all parts give; infinite if the bound
                itself uses them.
        """
        # If one mechanism attains more alone than in the composition, the attained losses do not
        # give the whole truth.
        pairs = self.theorems.losses.pairs
        alone = any(times == 1 and (pair.tight_alone or pair.either_order) for pair, times in pairs)
        most = bound.upper if alone else min(bound.upper, most)
        lower, best = self._attained(bound.lower, most, lines=not loose(bound, _CLOSE_ENOUGH))
        if (
            bound.lower < lower <= bound.upper
        ):  # lower ends that contradict the upper end are ignored
            bound = apart([Bound(lower, math.inf)], bound)
        far = bound.upper > _APART * bound.lower
        if far and best and self.only_lines and not self.for_delta:
            bound = least(bound, [self._one_after_the_other(best, bound.upper)])
            far = bound.upper > _APART * bound.lower
        if far or (most >= bound.upper and not self.only_lines):
            return self._unsampled(bound)
        return bound

    def _one_after_the_other(self, best: Parts, upper: float) -> Bound:
        """Return what basic composition says of the parts `best` with nearly all of delta, and the
        other parts with the rest; infinite where the others alone cost at least `upper`.

        Of a product of two pairs, delta at the sum of their epsilons is at most the sum of their
        deltas.
        """
        others = list(self.theorems.losses.parts)
        for part in best:
            others.remove(part)
        masses = (self.number * _SHARE, down(self.number * (1 - _SHARE)))
        total = 0.0
        for parts, mass in zip((tuple(others), best), masses, strict=True):
            question = self.theorems.ask(
                gathered(parts, self.theorems.losses.adjacency, summed=True)
            )
            answer = question.uncompared(mass, Readings(of_part=True), for_delta=False)
            total = up(total + answer.upper)
            if total >= upper:
                return Bound(0.0, math.inf)
        return Bound(0.0, total, Certificate("basic composition of two answers"))

    def _attained(self, lower: float, most: float, *, lines: bool) -> tuple[float, Parts]:
        """Return the largest lower end of several blocks, and the parts that attain it: each alone,
        then the best together with each of the others in turn.
        """
        blocks = (
            self._blocks()
            if len(self.theorems.losses.parts) > 1 and self._apart(lower, most)
            else ()
        )
        best = blocks[0] if blocks else ()
        for block in blocks:
            if (more := self._lower(block, lower, only_lines=lines and self.only_lines)) > lower:
                lower, best = more, block
        for block in blocks:
            if not self._apart(lower, most) or len(best) + len(block) >= len(
                self.theorems.losses.parts
            ):
                break
            if block[0] in best:
                continue
            if (more := self._lower(best + block, lower, only_lines=self.only_lines)) > lower:
                lower, best = more, best + block
        return lower, best

    def _apart(self, lower: float, upper: float) -> bool:
        return wide(Bound(min(lower, upper), upper), self.tolerance)

    def _lower(self, parts: Parts, least: float, *, only_lines: bool = False) -> float:
        question = self.theorems.ask(gathered(parts, self.theorems.losses.adjacency, summed=True))
        readings = Readings(only_lines=only_lines, of_part=True)
        return question.attained_end(self.number, least, readings, for_delta=self.for_delta)

    def _blocks(self) -> list[Parts]:
        """Return the parts one by one, largest loss first; if there are many, in blocks of similar
        size.
        """
        parts = self.theorems.losses.parts
        curves = [
            (self.theorems.ask(losses).curve, times)
            for losses, times in self.theorems.losses.one_by_one()
        ]
        sizes = [times * curve.divergence(2.0) for curve, times in curves]
        ordered = [
            parts[at]
            for at in sorted(range(len(parts)), key=lambda at: (-sizes[at], repr(parts[at][0])))
        ]
        count = min(len(parts), _MOST_BLOCKS)
        return [
            tuple(ordered[len(parts) * at // count : len(parts) * (at + 1) // count])
            for at in range(count)
        ]

    def _unsampled(self, bound: Bound) -> Bound:
        """Return the bound with the cheapest parts unsampled: as few as are needed for a good
        numerical evaluation.

        The theorem with all parts unsampled is applied elsewhere.
        """
        inners = self.theorems.unsampled
        rows = zip(inners, self.theorems.samples, strict=True)
        costs = [
            math.inf if inner is None else times * curve.divergence(2.0)
            for inner, (curve, _, times) in rows
        ]
        order = sorted(range(len(costs)), key=costs.__getitem__)
        low, high = 0, sum(inner is not None for inner in inners)
        if high < 2:
            return bound
        whole = self.theorems.ask(self.theorems.losses)
        while high - low > 1 and wide(bound, self.tolerance):
            middle = (low + high) // 2
            chosen = order[:middle]
            question = self.theorems.without_samples(
                [each if at in chosen else None for at, each in enumerate(inners)]
            )
            point = (self.number, bound.upper) if self.for_delta else (bound.upper, self.number)
            # If large losses are rare, moments exceed delta by so much that they do not predict the
            # bound.
            if hopeless(question, *point) and not hopeless(whole, *point):
                high = middle
                continue
            readings = Readings(only_lines=self.only_lines)
            answer = question.uncompared(self.number, readings, for_delta=self.for_delta)
            low, high = (middle, high) if wide(answer, self.tolerance) else (low, middle)
            bound = least(bound, [without_sampling(answer)])
        return bound
