"""A part of a composition: what it loses, or what is promised of it, under an adjacency. What it is stays unknown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import RenyiPromise
from dpcompose.loss import Loss, Pair, Product, sampled_pair
from dpcompose.values import Adjacency

MOST_TIMES = 10**15
Pairs = tuple[tuple[Pair, int], ...]
"""The losses of a composition: pairs with their counts."""


class Part(ABC):
    """One part, hashable. It names its losses or its promise; everything else has a sound default."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The name in a report."""

    @abstractmethod
    def pairs(self, adjacency: Adjacency) -> Pairs | None:
        """Its losses, a composition of pairs; None if it is known only by its Renyi curve.

        Raises:
            UnsupportedError: Where nothing sound is known.
        """

    def promise(self, adjacency: Adjacency) -> RenyiPromise | None:
        """The Renyi curve of a part without losses; None for all others."""
        return None

    def require_any_size(self, asked: str) -> None:  # noqa: B027 (most hold for every size)
        """Refuse what asks about data sets of several sizes, if the losses hold for one size alone.

        Args:
            asked: What is asked, for the error.
        """

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        """Its losses on a Poisson sample. Raises UnsupportedError where nothing sound is known."""
        raise UnsupportedError(f"{self!r}.sampled({rate!r})", "it has no losses on a sample")

    def unsampled(self, adjacency: Adjacency) -> Unsampled | None:
        """The composition that runs on the sample, if this part is one and dominated by it; else None."""
        return None

    def group_losses(self, size: int, adjacency: Adjacency) -> GroupLosses | None:
        """The losses of a group, where more is known than follows from the losses of one person; else None."""
        return None

    @classmethod
    def summed_pairs(cls, members: Sequence[tuple[Any, int]], adjacency: Adjacency) -> Pairs | None:
        """The losses of many parts of this kind at once, if that is cheaper than to ask each for its own; else None."""
        return None


AnyPart = TypeVar("AnyPart", bound=Part)
Parts = tuple[tuple[Part, int], ...]
"""A multiset of parts: each once, with its count."""


class Composed(Protocol):
    """Whatever consists of parts."""

    @property
    def parts(self) -> Parts:
        """Its parts with their counts."""
        ...


class Unsampled(NamedTuple):
    """A part that can run on a Poisson sample.

    Args:
        parts: A composition that dominates the sampled one.
        rate: The rate by which its Renyi divergences may be amplified; 1 where amplification is not known.
    """

    parts: Parts
    rate: float


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
