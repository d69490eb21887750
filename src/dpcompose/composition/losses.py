"""The privacy losses of all parts of a composition, collected once per question, and the guarantees
that add over parts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeVar

from dpcompose import check, law as laws
from dpcompose.attached import supply
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, RenyiPromise
from dpcompose.law import Laws
from dpcompose.loss import Loss, Pair, Product, least_rho, loss_of, sampled_pair
from dpcompose.mechanisms import Part as Noun
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, sum_rounded_up, up

# The losses of a part: evaluated from the laws that the mechanism states


MOST_TIMES = 10**15
Pairs = tuple[tuple[Pair, int], ...]
"""The losses of a composition: pairs with their counts."""


def answered(stated: Laws) -> Pairs:
    """Return the privacy losses that the laws describe, with their counts."""
    return tuple([(_pair(pair), times) for pair, times in stated])


def _pair(pair: laws.Pair) -> Pair:
    """Return the pair with each law replaced by its privacy loss."""
    remove = loss_of(pair.remove)
    add = remove if pair.add is pair.remove else loss_of(pair.add)
    inside = tuple([_pair(each) for each in pair.attained_parts])
    return Pair(remove, add, pair.attained, inside, pair.tight_alone, pair.either_order)


@supply(Noun)
class Part(Noun):
    """The methods of a mechanism that compute its privacy losses from the laws that it states."""

    def pairs(self, adjacency: Adjacency) -> Pairs | None:
        """Return the losses under `adjacency`, a composition of pairs; None if the part only states
        a Renyi curve.

        Raises:
            UnsupportedError: If no sound losses are known under the adjacency.
        """
        stated = self.laws(adjacency)
        return None if stated is None else answered(stated)

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        """Return the losses on a Poisson sample with rate `rate`.

        Raises:
            UnsupportedError: If no sound losses on a sample are known under the adjacency.
        """
        stated = self.sampled_laws(rate, adjacency)
        if stated is not None:
            return answered(stated)
        pairs = self.pairs(adjacency)
        if pairs is None:
            raise UnsupportedError(
                f"{self!r}.sampled({rate!r})",
                "a mechanism known only by its Renyi curve has no pair to mix on a sample",
                "Use the mechanism itself, or GaussianDP(mu) if it is Gaussian",
            )
        return ((pair_on_sample(pairs, rate), 1),)

    def group_losses(self, size: int, adjacency: Adjacency) -> GroupLosses | None:
        """Return the losses of a group of `size` if they are tighter than those derived from one
        person's; else None.
        """
        return None

    @classmethod
    def summed_pairs(cls, members: Sequence[tuple[Any, int]], adjacency: Adjacency) -> Pairs | None:
        """Return the losses of many parts of this class as fewer pairs, if that is cheaper than one
        pair for each; else None.
        """
        stated = cls.summed_laws(members, adjacency)
        return None if stated is None else answered(stated)


AnyPart = TypeVar("AnyPart", bound=Part)
Parts = tuple[tuple[Part, int], ...]
"""A multiset of parts: each once, with its count."""


class Composed(Protocol):
    """An object with parts, such as a composition."""

    @property
    def parts(self) -> Parts:
        """The parts with their counts."""
        ...


@dataclass(frozen=True)
class GroupLoss:
    """The losses of a group of people under one mechanism.

    Args:
        pair: The loss when all members are removed, and the one when all are added.
        mixed: Dominating losses when 1, 2, ..., size - 1 members are removed and the others added.
        exact: Whether the losses follow from those of one person by arithmetic; False if from
            values of a profile.
    """

    pair: Pair
    mixed: tuple[Loss, ...]
    exact: bool

    @property
    def symmetric(self) -> bool:
        """Whether the loss is the same for every number of removed members."""
        return self.pair.symmetric and all(loss == self.pair.remove for loss in self.mixed)


GroupLosses = tuple[tuple[GroupLoss, int], ...]


def merged(entries: Iterable[tuple[AnyPart, int]]) -> tuple[tuple[AnyPart, int], ...]:
    """Return the entries with the counts of equal parts added, in order of first appearance.

    Raises:
        DomainError: If a count exceeds 10^15.
    """
    counts: dict[AnyPart, int] = {}
    for part, times in entries:
        if not times:
            continue
        known = len(counts)
        earlier = counts.setdefault(
            part, times
        )  # one hash where a lookup and an assignment take two
        if len(counts) == known:
            counts[part] = checked_times("times", earlier + times)
        elif times > 1:
            checked_times("times", times)
    return tuple(counts.items())


def checked_times(name: str, value: object) -> int:
    """Return `value` as a count from 0 to 10^15, up to which every integer and every sum over
    counts is exact in a float.
    """
    if type(value) is int and 0 <= value <= MOST_TIMES:
        return value
    times = check.count(name, value)
    if not times <= MOST_TIMES:
        raise DomainError(name, times, "an integer of at most 10^15")
    return times


def pair_on_sample(pairs: Pairs, rate: float) -> Pair:
    """Return the dominating pair of a composition on one Poisson sample with rate `rate`, valid for
    samples of every size.
    """
    remove = Product(tuple((pair.remove, times) for pair, times in pairs))
    add = Product(tuple((pair.add, times) for pair, times in pairs))
    return sampled_pair(remove, add, rate, attained=all(pair.attained for pair, _ in pairs))


def composed_on_sample(parts: Parts, rate: float, adjacency: Adjacency) -> Pair:
    """Return the dominating pair of parts that run on one Poisson sample.

    Args:
        parts: The mechanisms on the sample, with their counts.
        rate: The sampling rate.
        adjacency: The adjacency of the losses.

    Raises:
        UnsupportedError: If a part only states a Renyi curve.
    """
    entries: list[tuple[Pair, int]] = []
    for part, times in parts:
        pairs = part.pairs(adjacency)
        if pairs is None:
            reason = "a part known only by its Renyi curve has no pair to mix on a sample"
            raise UnsupportedError(f"{part!r}.sampled", reason)
        entries.extend((pair, count * times) for pair, count in pairs)
    return pair_on_sample(tuple(entries), rate)


MANY = 16
"""Above this number of parts of one class, the class is asked to add their losses."""
FEW = 64
"""Up to this number of different losses, the least rho of each is searched for."""


class Losses(NamedTuple):
    """The losses of all parts of a composition under one adjacency.

    Args:
        parts: The parts with their counts.
        adjacency: The adjacency of the losses.
        pairs: The losses with their counts, in a fixed order.
        promises: The parts that state a Renyi curve instead of losses, with the curve and their
            counts.
        by_part: Each part whose losses were computed separately, with these losses.
    """

    parts: Parts
    adjacency: Adjacency
    pairs: Pairs
    promises: tuple[tuple[Part, RenyiPromise, int], ...]
    by_part: tuple[tuple[Part, Pairs], ...]

    @property
    def single(self) -> Pair | None:
        """The only pair, if nothing else is composed; else None."""
        return (
            self.pairs[0][0]
            if len(self.pairs) == 1 and self.pairs[0][1] == 1 and not self.promises
            else None
        )

    @property
    def promised(self) -> list[tuple[RenyiPromise, int]]:
        """The stated Renyi curves with their counts."""
        return [(promise, times) for _, promise, times in self.promises]

    @property
    def samples_attained(self) -> bool:
        """Whether every loss on a sample, whose Renyi divergences could be amplified, is attained
        by a mechanism.
        """
        rows = [(part.unsampled(self.adjacency), pairs) for part, pairs in self.by_part]
        return all(
            pair.attained for inner, pairs in rows if inner and inner.rate < 1 for pair, _ in pairs
        )

    @property
    def largest_finite(self) -> float:
        """The largest loss among those that are bounded, in nats, without certification."""
        ends = [loss.maximum for pair, _ in self.pairs for loss in _sides(pair)]
        return max([end for end in ends if end < math.inf], default=0.0)

    def one_by_one(self) -> list[tuple[Losses, int]]:
        """Return the losses of each part by itself, with its count."""
        known = {
            id(part): Losses(((part, 1),), self.adjacency, pairs, (), ())
            for part, pairs in self.by_part
        }
        for part, promise, _ in self.promises:
            known[id(part)] = Losses(((part, 1),), self.adjacency, (), ((part, promise, 1),), ())
        return [
            (known.get(id(part)) or gathered(((part, 1),), self.adjacency), times)
            for part, times in self.parts
        ]

    def approximate(self) -> ApproximateDP | None:
        """Return the (epsilon, delta) of basic composition, rounded up: the largest finite losses
        and the infinite masses added.

        None if a finite loss is unbounded or a part has no losses.

        Reference: [DworkRoth2014, Theorem 3.16]
        """
        if self.promises:
            return None
        largest: list[tuple[Fraction, int]] = []
        infinite = Fraction(0)
        for pair, times in self.pairs:
            sides = _sides(pair)
            tops = [top for loss in sides if (top := loss.top) is not None]
            if len(tops) < len(sides):
                return None
            largest.append((max(tops), times))
            if not all(loss.finite() for loss in sides):
                # Exact, so that parts whose deltas add up to the one that is asked have an epsilon.
                infinite += times * max(
                    Fraction(loss.infinite_mass) * (1 + Fraction(loss.infinite_relative_error))
                    + Fraction(loss.unplaced_mass)
                    for loss in sides
                )
        infinite = min(infinite, Fraction(1))
        delta = float(infinite)
        return ApproximateDP(
            sum_rounded_up(largest), delta=delta if delta >= infinite else up(delta)
        )

    def pure(self) -> float | None:
        """Return the sum of the largest losses in nats, rounded up; None if a loss may be infinite.

        Reference: [DworkRoth2014, Corollary 3.15]
        """
        promise = self.approximate()
        return promise.epsilon if promise is not None and promise.delta == 0 else None

    def zcdp(self) -> ConcentratedDP | None:
        """Return rho and delta of zero-concentrated privacy: D_a <= rho a for all orders a > 1
        outside a mass of delta. None if a part's rho is unknown.

        Reference: [BunSteinke2016, Lemma 2.3]
        """
        terms: list[float] = []
        searched = len(self.pairs) <= FEW
        for pair, times in self.pairs:
            remove, add = (
                least_rho(loss) if searched else loss.zcdp for loss in (pair.remove, pair.add)
            )
            if remove is None or add is None:
                return None
            terms.append(times * max(remove, add))
        remaining = 0.0
        for _, promise, times in self.promises:
            if promise.rho is None:
                return None
            terms.append(times * promise.rho)
            remaining += times * math.log1p(-promise.delta) if promise.delta < 1 else -math.inf
        return ConcentratedDP(
            up(math.fsum(terms) * (1 + 4 * UNIT_ROUNDOFF)) if terms else 0.0,
            delta=min(up(-math.expm1(remaining) * (1 + 16 * UNIT_ROUNDOFF)), 1.0)
            if remaining
            else 0.0,
        )

    def gdp(self) -> float | None:
        """Return the mu such that the composition is exactly mu-Gaussian private, rounded up; None
        if a part is not Gaussian.

        Reference: [DongRothSu2022, Corollary 3.3]
        """
        if self.promises or not all(pair.symmetric for pair, _ in self.pairs):
            return None
        reduced = Product(tuple((pair.remove, times) for pair, times in self.pairs)).reduced
        if not reduced:
            return 0.0
        return reduced[0][0].gdp if len(reduced) == 1 and reduced[0][1] == 1 else None


def gathered(parts: Parts, adjacency: Adjacency, *, summed: bool = False) -> Losses:
    """Return the losses of all parts, and the Renyi curves of parts that state one.

    Args:
        parts: The parts with their counts.
        adjacency: The adjacency of the losses.
        summed: Whether many parts of one class may be replaced by a single pair, where the class
            can add them in floats.

    Raises:
        UnsupportedError: If parts have neither losses nor a Renyi curve; the error names all of
            them.
    """
    check.member("adjacency", adjacency, Adjacency)
    asked, pairs = _summed(parts, adjacency) if summed and len(parts) >= MANY else (parts, [])
    promises: list[tuple[Part, RenyiPromise, int]] = []
    by_part: list[tuple[Part, Pairs]] = []
    refusals: list[UnsupportedError] = []
    for part, times in _ordered(asked) if len(asked) > 1 else asked:
        try:
            found = part.pairs(adjacency)
            if found is None:
                promises.append((part, _promise(part, adjacency), times))
                continue
        except UnsupportedError as refusal:
            refusals.append(refusal)
            continue
        by_part.append((part, found))
        for pair, count in found:
            pairs.append((pair, count * times))
    if refusals:
        raise _refusal(refusals, adjacency)
    return Losses(parts, adjacency, tuple(pairs), tuple(promises), tuple(by_part))


def _sides(pair: Pair) -> tuple[Loss, ...]:
    """Return the losses of both orders that determine the largest loss."""
    if pair.either_order:
        return tuple(loss for each in pair.attained_parts for loss in _sides(each))
    return (pair.remove,) if pair.remove is pair.add else (pair.remove, pair.add)


def _promise(part: Part, adjacency: Adjacency) -> RenyiPromise:
    """Return the Renyi curve that a part without losses states."""
    promise = part.promise(adjacency)
    if promise is None:
        raise UnsupportedError(part.label, "it states neither a privacy loss nor a Renyi curve")
    return promise


def _refusal(refusals: Sequence[UnsupportedError], adjacency: Adjacency) -> UnsupportedError:
    """Return one error that names all parts without sound losses."""
    if len(refusals) == 1:
        return refusals[0]
    more = "" if len(refusals) <= 5 else f"; and {len(refusals) - 5} more"
    what = "; ".join(str(refusal) for refusal in refusals[:5]) + more
    return UnsupportedError(
        f"adjacency {adjacency.value}",
        f"{len(refusals)} parts have no sound statement under it: {what}",
    )


def _summed(
    parts: Parts, adjacency: Adjacency
) -> tuple[Sequence[tuple[Part, int]], list[tuple[Pair, int]]]:
    """Return the parts whose pairs must be computed one by one, and the summed pairs of all other
    parts.
    """
    kinds: dict[type[Part], list[tuple[Part, int]]] = defaultdict(list)
    for entry in parts:
        kinds[type(entry[0])].append(entry)
    asked: list[tuple[Part, int]] = []
    pairs: list[tuple[Pair, int]] = []
    for kind in sorted(kinds, key=lambda kind: kind.__qualname__):
        members = kinds[kind]
        found = kind.summed_pairs(members, adjacency) if len(members) >= MANY else None
        if found is None:
            asked.extend(members)
        else:
            pairs.extend(found)
    return asked, pairs


def _ordered(parts: Sequence[tuple[Part, int]]) -> Sequence[tuple[Part, int]]:
    """Return the parts in an order fixed by their classes and parameters, so that equal
    compositions have bitwise equal answers.
    """
    try:
        return sorted(parts, key=_by_values)
    except (TypeError, ValueError):  # fields without an order, such as None
        return sorted(parts, key=_by_text)


def _by_values(entry: tuple[Part, int]) -> tuple[str, tuple[object, ...]]:
    part = entry[0]
    return type(part).__qualname__, tuple(part.__dict__.values())


def _by_text(entry: tuple[Part, int]) -> tuple[str, str]:
    part = entry[0]
    return type(part).__qualname__, repr(part.__dict__)
