"""The losses of all parts, gathered once for each question, and the guarantees that add up over them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from dpcompose import check
from dpcompose.composition.part import Pairs, Part, Parts
from dpcompose.errors import UnsupportedError
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, RenyiPromise
from dpcompose.loss import Loss, Pair, Product, least_rho
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, sum_rounded_up, up

MANY = 16
"""From so many parts of a kind on, the kind is asked for the sum of their losses."""
FEW = 64
"""Up to so many different losses, the least rho of each is searched for."""


class Losses(NamedTuple):
    """All losses of a composition under one adjacency.

    Args:
        parts: What is composed.
        adjacency: What one person's data may change.
        pairs: The losses, in one fixed order.
        promises: The parts that have no losses but a promise, with it and their counts.
        by_part: The losses of each part that was asked for its own.
    """

    parts: Parts
    adjacency: Adjacency
    pairs: Pairs
    promises: tuple[tuple[Part, RenyiPromise, int], ...]
    by_part: tuple[tuple[Part, Pairs], ...]

    @property
    def single(self) -> Pair | None:
        """The one pair, if nothing else is composed."""
        return (
            self.pairs[0][0]
            if len(self.pairs) == 1 and self.pairs[0][1] == 1 and not self.promises
            else None
        )

    @property
    def sworn(self) -> list[tuple[RenyiPromise, int]]:
        """The promises with their counts."""
        return [(promise, times) for _, promise, times in self.promises]

    @property
    def samples_attained(self) -> bool:
        """Whether the losses of every part on a sample are attained, where its divergences may be amplified."""
        rows = [(part.unsampled(self.adjacency), pairs) for part, pairs in self.by_part]
        return all(
            pair.attained for inner, pairs in rows if inner and inner.rate < 1 for pair, _ in pairs
        )

    @property
    def largest_finite(self) -> float:
        """Roughly the largest of the losses that are not unbounded."""
        ends = [loss.maximum for pair, _ in self.pairs for loss in _sides(pair)]
        return max([end for end in ends if end < math.inf], default=0.0)

    def one_by_one(self) -> list[tuple[Losses, int]]:
        """The losses of each part, with its count; a part is asked again only where many were summed at once."""
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
        """The sums of the largest finite losses and of the infinite ones' masses, rounded up.

        None if a loss is unbounded, or a part has none.

        Reference: [DworkRoth2014, Theorem 3.16]
        """
        if self.promises:
            return None
        largest: list[tuple[Fraction, int]] = []
        infinite = 0.0
        for pair, times in self.pairs:
            sides = _sides(pair)
            tops = [top for loss in sides if (top := loss.top) is not None]
            if len(tops) < len(sides):
                return None
            largest.append((max(tops), times))
            for loss in sides:
                if not loss.finite():
                    mass = max(
                        [
                            loss.infinite_mass * (1 + loss.infinite_relative_error)
                            + loss.unplaced_mass
                            for loss in sides
                        ]
                    )
                    infinite = up(infinite + up(times * up(up(mass)))) if mass > 0 else infinite
                    break
        return ApproximateDP(sum_rounded_up(largest), delta=min(infinite, 1.0))

    def pure(self) -> float | None:
        """The sum of the largest losses, rounded up; None if one may be infinite.

        Reference: [DworkRoth2014, Corollary 3.15]
        """
        promise = self.approximate()
        return promise.epsilon if promise is not None and promise.delta == 0 else None

    def zcdp(self) -> ConcentratedDP | None:
        """D_order <= rho * order for all orders above 1, outside a mass of delta; None if a part's rho is not known.

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
        """The mu for which the composition is exactly mu-GDP, rounded up; None if a part is not Gaussian.

        Reference: [DongRothSu2022, Corollary 3.3]
        """
        if self.promises or not all(pair.symmetric for pair, _ in self.pairs):
            return None
        reduced = Product(tuple((pair.remove, times) for pair, times in self.pairs)).reduced
        if not reduced:
            return 0.0
        return reduced[0][0].gdp if len(reduced) == 1 and reduced[0][1] == 1 else None


def gathered(parts: Parts, adjacency: Adjacency, *, summed: bool = False) -> Losses:
    """The losses of all parts, and the promises of those without.

    Args:
        parts: What is composed.
        adjacency: What one person's data may change.
        summed: With one pair in place of many, where a kind of part can add them up in floats.

    Raises:
        UnsupportedError: If parts have neither; all of them are named.
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
    """The losses of which the largest counts, in either order."""
    if pair.either_order:
        return tuple(loss for each in pair.attained_parts for loss in _sides(each))
    return (pair.remove,) if pair.remove is pair.add else (pair.remove, pair.add)


def _promise(part: Part, adjacency: Adjacency) -> RenyiPromise:
    promise = part.promise(adjacency)
    if promise is None:
        raise UnsupportedError(part.label, "it states neither a privacy loss nor a Renyi curve")
    return promise


def _refusal(refusals: Sequence[UnsupportedError], adjacency: Adjacency) -> UnsupportedError:
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
    """The parts that are to be asked for their pairs, and the pairs of all others."""
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
    """One fixed order, so that equal compositions have answers equal to the last bit."""
    try:
        return sorted(parts, key=_by_values)
    except (TypeError, ValueError):  # fields that have no order, such as one left at None
        return sorted(parts, key=_by_text)


def _by_values(entry: tuple[Part, int]) -> tuple[str, tuple[object, ...]]:
    part = entry[0]
    return type(part).__qualname__, tuple(part.__dict__.values())


def _by_text(entry: tuple[Part, int]) -> tuple[str, str]:
    part = entry[0]
    return type(part).__qualname__, repr(part.__dict__)
