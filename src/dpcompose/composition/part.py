"""The losses of a part of a composition: the laws that it states, and the losses of the families that they name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Protocol, TypeVar

from dpcompose import check, law as laws, loss
from dpcompose.attached import supply
from dpcompose.contour import Lattice
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.law import Law, Laws
from dpcompose.loss import Loss, Pair, Product, sampled_pair
from dpcompose.mechanisms import Part as Noun
from dpcompose.values import Adjacency, Bound

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
    return getattr(loss, _SIMPLE[kind])


def loss_of(law: Any) -> Any:
    """The loss of a law; a loss is its own."""
    if isinstance(law, Loss):
        return law
    return _made(law) if type(law) in _DIRECT else _kept(law)


def _made(law: Law) -> Any:
    return _family(type(law))(*vars(law).values())


@lru_cache(maxsize=256)
def _kept(law: Law) -> Any:
    """The loss of a law that takes its time."""
    match law:
        case laws.GaussianSum(members=members):
            return loss.gaussian_sum(members, ulps=1)
        case laws.Mixture(parts=parts):
            noise = loss.GaussianMixture()
            rows = tuple(
                (share, loss.OpposedMixtures(loss.GaussianMixture(means, weights, 1, error), noise))
                for share, means, weights, error in parts
            )
            return loss.MixtureLoss(rows, law.share_error, law.infinite_error)
        case laws.Chained(epsilon=epsilon, delta=delta, categories=categories, steps=steps):
            return loss.chained(epsilon, delta=delta, categories=categories, steps=steps)
        case laws.BoundedRangeAttained(epsilon=epsilon, at=at):
            return loss.attained_losses(epsilon)[at][0]
        case laws.ShuffledResponses(epsilon=epsilon, reports=reports):
            return loss.shuffled_responses(epsilon, reports) or loss.TwoPointLoss(0.0)
        case laws.Atoms():
            return loss.AtomicLoss(_table(law))
        case laws.AtomsAbove(epsilons=epsilons, deltas=deltas, moment=moment):
            table = loss.above_values(epsilons, deltas)
            return loss.AtomicLoss(table) if moment is None else loss.AtomsAbove(table, moment)
        case laws.AtomsOfProfile(profile=profile, above=above):
            return loss.AtomicLoss(_atomized(profile)[0 if above else 1])
        case laws.Envelope(laws=several):
            return loss.envelope(tuple([loss_of(each) for each in several]))
        case laws.Reversed(law=inner):
            one = loss_of(inner)
            return one.reverse if isinstance(one, loss.AtomicLoss | loss.MixtureLoss) else one
        case _:
            return _made(law)


def _table(law: laws.Atoms) -> loss.Atoms:
    return loss.Atoms(
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
def _atomized(profile: Callable[[float], Bound]) -> tuple[loss.Atoms, loss.Atoms]:
    """Atoms above a profile and atoms below it; both are taken from one reading."""
    return loss.atomized(lambda epsilons: [profile(each) for each in epsilons], math.inf)


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
