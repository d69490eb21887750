"""Poisson sampling: one sample shared by everything inside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dpcompose.composition.chain import Ways, joint_rate, sampled_ways
from dpcompose.composition.container import Composable, Composition, Pairs
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.loss.base import Pair
from dpcompose.loss.product import Product
from dpcompose.loss.sampled import sampled_pair
from dpcompose.numerics import check
from dpcompose.numerics.exact import larger_reading


@dataclass(frozen=True)
class Sampled(Composable):
    """A composition run on one Poisson sample: with the record, the mixture of its outputs with and without it.

    Args:
        base: What runs on the sample.
        rate: The probability that a record is in the sample, in (0, 1).
    """

    base: Composition
    rate: float

    def __repr__(self) -> str:
        inner = repr(self.base)
        return f"({inner}).sampled({self.rate!r})" if self.base.count > 1 else f"{inner}.sampled({self.rate!r})"

    @property
    def label(self) -> str:
        """What a report calls it."""
        inner = self.base.parts[0][0].label if self.base.count == 1 else self.base.label
        return f"{inner}, sampled at {self.rate:g}"

    def pairs(self, adjacency: Adjacency) -> Pairs:
        """The mixture against the part without the record, both orders; for replacing, what the part inside knows."""
        if self.base.count == 1:
            return self.base.parts[0][0].sampled_pairs(self.rate, adjacency)
        if adjacency is Adjacency.REPLACE:
            raise UnsupportedError(
                repr(self), "no sound pair is known for a sampled composition when a record is replaced"
            )
        return ((sampled_composition(self.base, self.rate, adjacency), 1),)

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        """Two samples in a row are one of the product of the rates."""
        return Sampled(self.base, self.rate * rate).pairs(adjacency)

    def group_ways(self, size: int, adjacency: Adjacency) -> tuple[tuple[Ways, int], ...]:
        """The losses of a group: how many of it are in the sample is binomial."""
        together = Sampled(self.base, joint_rate(self.rate, size))
        own, joint = partial(self.pairs, adjacency), partial(together.pairs, adjacency)
        return sampled_ways(self.base, self.rate, size, adjacency, own=own, joint=joint)

    def costlier(self) -> Composable:
        return sampled(self.base.costlier(), min(larger_reading(self.rate), 1.0))

    def unsampled(self, adjacency: Adjacency) -> Composition | None:
        """What runs on the sample; None for replacing, where that says less than twice the add-remove sensitivity."""
        if adjacency is not Adjacency.REPLACE:
            return self.base
        one, two = (self.base.gdp(adjacency=each) for each in (Adjacency.ADD_REMOVE, adjacency))
        return self.base if one and two and two >= 2 * one else None

    def promise(self, adjacency: Adjacency) -> ConcentratedDP | None:
        """None: what is known of a sample is its losses."""
        return None


def sampled(composition: Composition, rate: float) -> Composable:
    """`composition` on one Poisson sample; itself at rate 1, and a sample of a sample has the product of the rates."""
    rate = check.probability("rate", rate)
    if not rate > 0:
        raise DomainError("rate", rate, "a number in (0, 1]", "A rate of 0 releases nothing about anybody")
    if rate == 1 or not composition.parts:
        return composition
    if composition.count == 1 and isinstance(composition.parts[0][0], Sampled):
        inner = composition.parts[0][0]
        if not inner.rate * rate > 0:
            raise DomainError("rate", rate, f"a rate whose product with the earlier one, {inner.rate!r}, is above 0")
        return Sampled(inner.base, inner.rate * rate)
    return Sampled(composition, rate)


def sampled_composition(base: Composition, rate: float, adjacency: Adjacency) -> Pair:
    """The pair of several parts that share one sample."""
    entries: list[tuple[Pair, int]] = []
    for part, times in base.parts:
        pairs = part.pairs(adjacency)
        if pairs is None:
            raise UnsupportedError(
                f"{part!r}.sampled", "a part known only by its Renyi curve has no pair to mix on a sample"
            )
        entries.extend((pair, count * times) for pair, count in pairs)
    remove = Product(tuple((pair.remove, times) for pair, times in entries))
    add = Product(tuple((pair.add, times) for pair, times in entries))
    attained = all(pair.attained for pair, _ in entries)
    return sampled_pair(remove, add, rate, attained=attained)
