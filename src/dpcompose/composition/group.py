"""What is lost by several people together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dpcompose.composition import free
from dpcompose.composition.chain import Ways, ways
from dpcompose.composition.container import TOLERANCE, Composable, Composition, Pairs, Part, compose
from dpcompose.composition.numerical import Question, proved, question
from dpcompose.composition.profile import Profile
from dpcompose.composition.risk import Risk, risk
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.loss.product import Product
from dpcompose.numerics import check
from dpcompose.numerics.bound import UNIT_ROUNDOFF, Bound, up

if TYPE_CHECKING:
    from dpcompose.composition.compare import Comparison

LARGEST = 10**5


@runtime_checkable
class KnowsGroups(Protocol):
    """A part that knows more of a group than follows from the losses of one person."""

    def group_ways(self, size: int, adjacency: Adjacency) -> tuple[tuple[Ways, int], ...]:
        """The losses of a group."""
        ...


@dataclass(frozen=True)
class Group:
    """A composition asked about `size` people at once: all of them in one world, none in the other, or some in each.

    What holds of one neighbor holds of every step of a path from one world to the other (`composition.chain`). The
    answers are those of the composition of the parts' group losses: never more, and for several parts much less, than
    iterating the trade-off function of the whole. Where no closed form is known, both ends come from piecewise linear
    power functions, about four digits apart. Build it with `.group(size)`.

    Args:
        composition: What is composed.
        size: The number of people.
    """

    composition: Composition
    size: int

    def epsilon(
        self, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE, orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE, proof: bool = False,
    ) -> Bound:  # fmt: skip
        """The smallest epsilon >= 0 such that no group of this size loses more than (epsilon, delta)."""
        return self._question(adjacency, orientation, tolerance, proof).epsilon(check.probability("delta", delta))

    def delta(
        self, *, epsilon: float, adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME, tolerance: float = TOLERANCE, proof: bool = False,
    ) -> Bound:  # fmt: skip
        """The smallest delta such that no group of this size loses more than (epsilon, delta)."""
        return self._question(adjacency, orientation, tolerance, proof).delta(check.real("epsilon", epsilon))

    def profile(
        self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE, orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE, proof: bool = False,
    ) -> Profile:  # fmt: skip
        """The curve delta(epsilon) of the group, with its trade-off function."""
        return Profile(self._question(adjacency, orientation, tolerance, proof))

    def risk(
        self, *, prior: float = 0.5, false_positive_rate: float = 1e-3, adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME, tolerance: float = TOLERANCE, proof: bool = False,
    ) -> Risk:  # fmt: skip
        """What an attacker gains who tells apart whether the group is in."""
        curve = self.profile(adjacency=adjacency, orientation=orientation, tolerance=tolerance, proof=proof)
        return risk(curve, prior=prior, false_positive_rate=false_positive_rate)

    def compare(
        self, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE, orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE,
    ) -> tuple[Comparison, ...]:  # fmt: skip
        """The certified epsilon, the geometric sum and the book's bound, tightest first."""
        from dpcompose.composition import group_theorems

        tight = self.epsilon(delta=delta, adjacency=adjacency, orientation=orientation, tolerance=tolerance)
        return group_theorems.compare(
            self.composition, tight, size=self.size, delta=delta, adjacency=adjacency, orientation=orientation,
            tolerance=tolerance,
        )  # fmt: skip

    @cached_property
    def _whole(self) -> Composition:
        """The composition of the parts' groups."""
        if self.size == 1:
            return self.composition
        return compose(*(Grouped(part, self.size) * times for part, times in self.composition.parts))

    @cached_property
    def _mixed(self) -> dict[Adjacency, tuple[Product, ...]]:
        return {}

    def _question(self, adjacency: Adjacency, orientation: Orientation, tolerance: float, proof: bool) -> Question:
        asked = question(self._whole, adjacency, orientation, tolerance, proof)
        if orientation is Orientation.FREE:
            turned = (((each.pair.remove, each.pair.add, *each.mixed), times) for each, times in self._ways(adjacency))
            rounds = free.rounds(turned, alone=not asked.promises)
            if rounds and proof:
                raise free.unproved()
            if rounds:
                return replace(asked, above=(free.above(rounds),), rounds=rounds, origin=None)
        if adjacency not in self._mixed:
            self._mixed[adjacency] = self._mixtures(adjacency)
        mixed = self._mixed[adjacency]
        if proof:
            if not all(each.exact for each, _ in self._ways(adjacency)):
                reason = "a group without a closed form is enclosed from values of a profile in floats"
                raise UnsupportedError("proof=True", reason, "Ask without proof")
            mixed = proved(mixed, asked.promises)
        return replace(asked, above=(*asked.above, *mixed), origin=None)

    def _ways(self, adjacency: Adjacency) -> tuple[tuple[Ways, int], ...]:
        """The group losses of all parts that have some."""
        found: list[tuple[Ways, int]] = []
        for part, times in self._whole.parts:
            grouped = part.ways(adjacency) if isinstance(part, Grouped) else None
            found.extend((each, count * times) for each, count in grouped or ())
        return tuple(found)

    def _mixtures(self, adjacency: Adjacency) -> tuple[Product, ...]:
        """Some members removed, the others added: a product for each number of removed; none if it is all the same."""
        found = self._ways(adjacency)
        if all(each.alike for each, _ in found):
            return ()
        return tuple(
            Product(tuple((each.mixed[removed - 1], times) for each, times in found)) for removed in range(1, self.size)
        )


@dataclass(frozen=True)
class Grouped(Composable):
    """A part with the losses of a group for those of one person.

    Args:
        part: What runs.
        size: The number of people.
    """

    part: Part
    size: int

    @property
    def label(self) -> str:
        """What a report calls it."""
        return f"{self.part.label}, for a group of {self.size}"

    @cached_property
    def _known(self) -> dict[Adjacency, tuple[tuple[Ways, int], ...] | None]:
        return {}

    def ways(self, adjacency: Adjacency) -> tuple[tuple[Ways, int], ...] | None:
        """The losses of the group, however it changes; None if the part is known only by its Renyi curve."""
        if adjacency not in self._known:
            pairs = None if isinstance(self.part, KnowsGroups) else self.part.pairs(adjacency)
            found = None if pairs is None else ways(pairs, self.size)
            if isinstance(self.part, KnowsGroups):
                found = self.part.group_ways(self.size, adjacency)
            self._known[adjacency] = found
        return self._known[adjacency]

    def pairs(self, adjacency: Adjacency) -> Pairs | None:
        """All of the group removed, and all of it added."""
        found = self.ways(adjacency)
        return None if found is None else tuple((each.pair, times) for each, times in found)

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        """Refused: the group of a sample is not the sample of a group."""
        reason = "each of a group is sampled by itself"
        raise UnsupportedError(repr(self), reason, "Sample first, then ask for the group")

    def promise(self, adjacency: Adjacency) -> ConcentratedDP | None:
        """rho times the square of the size, for delta 0."""
        stated = self.part.promise(adjacency)
        if stated is None:
            return None
        if stated.delta > 0:
            reason = "no group guarantee is offered for zero-concentrated privacy with delta > 0"
            raise UnsupportedError(self.label, reason)
        return ConcentratedDP(up(stated.rho * self.size**2 * (1 + 2 * UNIT_ROUNDOFF)) if stated.rho else 0.0)


def group(composition: Composition, size: int) -> Group:
    """The composition asked about a group.

    >>> from dpcompose import Gaussian
    >>> (Gaussian(10.0) * 4).group(5).delta(epsilon=1.0).contains(0.12693673750664394)
    True

    Args:
        composition: What is composed.
        size: The number of people, an integer from 1 to 10^5.

    Raises:
        DomainError: If the size is outside its domain.

    Reference: [DongRothSu2022, Theorem 2.14]
    """
    number = check.count("size", size, least=1)
    if not number <= LARGEST:
        raise DomainError("size", size, f"an integer from 1 to {LARGEST}")
    return Group(composition, number)
