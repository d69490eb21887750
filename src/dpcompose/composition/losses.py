"""The losses of all parts, gathered once for each question, and the guarantees that add up over them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

from dpcompose import check, law as laws, loss as families
from dpcompose.attached import supply
from dpcompose.contour import Lattice
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, RenyiPromise
from dpcompose.law import Law, Laws
from dpcompose.loss import Loss, Pair, Product, least_rho, sampled_pair
from dpcompose.mechanisms import Part as Noun
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, Bound, sum_rounded_up, up

# The losses of a part of a composition: the laws that it states, and the losses of the families that they name.


MOST_TIMES = 10**15
Pairs = tuple[tuple[Pair, int], ...]
"""The losses of a composition: pairs with their counts."""
_SIMPLE: dict[type[Law], str] = {
    laws.GaussianShift: "GaussianLoss",
    laws.LaplaceShift: "LaplaceLoss",
    laws.DiscreteLaplaceShift: "discrete_laplace",
    laws.DiscreteGaussianShift: "DiscreteGaussianLoss",
    laws.SkellamShift: "skellam",
    laws.SampledGaussian: "SampledGaussianLoss",
    laws.ReplacedGaussian: "ReplacedGaussianLoss",
    laws.FixedSizeBatch: "FixedSizeSampleLoss",
    laws.Allocated: "AllocationLoss",
    laws.LargestBatch: "largest_batch",
    laws.TwoPoint: "TwoPointLoss",
    laws.BoundedRange: "BoundedRangeLoss",
    laws.Shuffled: "ShuffledReportsLoss",
    laws.Response: "ResponseLaw",
    laws.Encoding: "EncodingLaw",
}
"""The laws whose parameters are those of a family of the room `loss`, with its name there."""
_KEPT: set[type[Law]] = {laws.Allocated, laws.FixedSizeBatch, laws.LargestBatch, laws.Shuffled}
"""Those among them whose losses are kept from question to question: they hold tables."""
_DIRECT = _SIMPLE.keys() - _KEPT


@cache
def _family(kind: type[Law]) -> Callable[..., Any]:
    """The family of a simple law, read from its file when it is first asked for."""
    return getattr(families, _SIMPLE[kind])


def loss_of(law: Any) -> Any:
    """The loss of a law; a loss is its own."""
    if isinstance(law, Loss):
        return law
    return _constructed(law) if type(law) in _DIRECT else _cached(law)


def _constructed(law: Law) -> Any:
    return _family(type(law))(*vars(law).values())


@lru_cache(maxsize=256)
def _cached(law: Law) -> Any:
    """The loss of a law that takes its time."""
    match law:
        case laws.GaussianSum(members=members):
            return families.gaussian_sum(members, ulps=1)
        case laws.Mixture(parts=parts):
            noise = families.GaussianMixture()
            rows = tuple(
                (
                    share,
                    families.OpposedMixtures(
                        families.GaussianMixture(means, weights, 1, error), noise
                    ),
                )
                for share, means, weights, error in parts
            )
            return families.MixtureLoss(rows, law.share_error, law.infinite_error)
        case laws.Chained(epsilon=epsilon, delta=delta, categories=categories, steps=steps):
            return families.chained(epsilon, delta=delta, categories=categories, steps=steps)
        case laws.BoundedRangeAttained(epsilon=epsilon, at=at):
            return families.attained_losses(epsilon)[at][0]
        case laws.ShuffledResponses(epsilon=epsilon, reports=reports):
            return families.shuffled_responses(epsilon, reports) or families.TwoPointLoss(0.0)
        case laws.Atoms():
            return families.AtomicLoss(_table(law))
        case laws.AtomsAbove(epsilons=epsilons, deltas=deltas, moment=moment):
            table = families.above_values(epsilons, deltas)
            return (
                families.AtomicLoss(table) if moment is None else families.AtomsAbove(table, moment)
            )
        case laws.AtomsOfProfile(profile=profile, above=above):
            return families.AtomicLoss(_atomized(profile)[0 if above else 1])
        case laws.Envelope(laws=several):
            return families.envelope(tuple([loss_of(each) for each in several]))
        case laws.Reversed(law=inner):
            one = loss_of(inner)
            return (
                one.reverse if isinstance(one, families.AtomicLoss | families.MixtureLoss) else one
            )
        case _:
            return _constructed(law)


def _table(law: laws.Atoms) -> families.Atoms:
    return families.Atoms(
        law.upper,
        law.lower,
        law.log_ratio,
        None if law.lattice is None else Lattice(*law.lattice),
        law.relative_error,
        law.omitted_mass,
        law=None if law.formula is None else loss_of(law.formula),
        log_ratio_relative_error=law.log_ratio_relative_error,
    )


@lru_cache(maxsize=1)
def _atomized(profile: Callable[[float], Bound]) -> tuple[families.Atoms, families.Atoms]:
    """Atoms above a profile and atoms below it; both are taken from one reading."""
    return families.atomized(lambda epsilons: [profile(each) for each in epsilons], math.inf)


@supply(Law)
class _Answered(Law):
    """The member of a law that is supplied by this room."""

    def loss(self) -> Any:
        """The privacy loss of this law, with its moments and its profile."""
        return loss_of(self)


def answered(stated: Laws) -> Pairs:
    """The losses of the laws."""
    return tuple([(_pair(pair), times) for pair, times in stated])


def _pair(pair: laws.Pair) -> Pair:
    remove = loss_of(pair.remove)
    add = remove if pair.add is pair.remove else loss_of(pair.add)
    inside = tuple([_pair(each) for each in pair.attained_parts])
    return Pair(remove, add, pair.attained, inside, pair.tight_alone, pair.either_order)


@supply(Noun)
class Part(Noun):
    """One part, hashable: its losses follow from the laws that it states."""

    def pairs(self, adjacency: Adjacency) -> Pairs | None:
        """Its losses, a composition of pairs; None if it is known only by its Renyi curve.

        Raises:
            UnsupportedError: Where nothing sound is known.
        """
        stated = self.laws(adjacency)
        return None if stated is None else answered(stated)

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        """Its losses on a Poisson sample. Raises UnsupportedError where nothing sound is known."""
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
        """The losses of a group, where more is known than follows from the losses of one person; else None."""
        return None

    @classmethod
    def summed_pairs(cls, members: Sequence[tuple[Any, int]], adjacency: Adjacency) -> Pairs | None:
        """The losses of many parts of this kind at once, if that is cheaper than to ask each for its own; else None."""
        stated = cls.summed_laws(members, adjacency)
        return None if stated is None else answered(stated)


AnyPart = TypeVar("AnyPart", bound=Part)
Parts = tuple[tuple[Part, int], ...]
"""A multiset of parts: each once, with its count."""


class Composed(Protocol):
    """Whatever consists of parts."""

    @property
    def parts(self) -> Parts:
        """Its parts with their counts."""
        ...


@dataclass(frozen=True)
class GroupLoss:
    """The losses of a group, however it changes.

    Args:
        pair: All members removed, and all added.
        mixed: Dominating losses where 1, 2, ..., size - 1 members are removed and the others added.
        exact: Whether they follow from the losses of one person by arithmetic alone, not from values of a profile.
    """

    pair: Pair
    mixed: tuple[Loss, ...]
    exact: bool

    @property
    def symmetric(self) -> bool:
        """Whether it does not matter who is removed and who is added."""
        return self.pair.symmetric and all(loss == self.pair.remove for loss in self.mixed)


GroupLosses = tuple[tuple[GroupLoss, int], ...]


def merged(entries: Iterable[tuple[AnyPart, int]]) -> tuple[tuple[AnyPart, int], ...]:
    """The multiset of the entries: equal parts joined, in order of first appearance.

    Raises:
        DomainError: If a count is above 10^15.
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
    """A count of at most 10^15: every integer up to there is a float, and so are the sums that count with it."""
    if type(value) is int and 0 <= value <= MOST_TIMES:
        return value
    times = check.count(name, value)
    if not times <= MOST_TIMES:
        raise DomainError(name, times, "an integer of at most 10^15")
    return times


def pair_on_sample(pairs: Pairs, rate: float) -> Pair:
    """The pair of a composition on one Poisson sample, from its losses: those of samples of every size."""
    remove = Product(tuple((pair.remove, times) for pair, times in pairs))
    add = Product(tuple((pair.add, times) for pair, times in pairs))
    return sampled_pair(remove, add, rate, attained=all(pair.attained for pair, _ in pairs))


def composed_on_sample(parts: Parts, rate: float, adjacency: Adjacency) -> Pair:
    """The pair of parts that run on one Poisson sample.

    Raises:
        UnsupportedError: If a part has no losses.
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
    def promised(self) -> list[tuple[RenyiPromise, int]]:
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
