"""The losses of several people together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dpcompose import check
from dpcompose.composition.answers import Askable
from dpcompose.composition.comparison import Comparison, group_theorems
from dpcompose.composition.group_loss import group_losses
from dpcompose.composition.losses import gathered
from dpcompose.composition.options import Asking
from dpcompose.composition.part import Composed, GroupLosses, Pairs, Part, Parts
from dpcompose.composition.question import PrivacyQuestion, ask, directed, proved
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ConcentratedDP, RenyiPromise
from dpcompose.loss import Product
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, up

LARGEST = 10**5


@dataclass(frozen=True)
class Group(Askable):
    """A composition asked about `size` people at once: all of them in one world, none in the other, or some in each.

    What holds of one neighbor holds of every step of a path from one world to the other (`composition.group_loss`).
    The answers are those of the composition of the parts' group losses: never more, and for several parts much less,
    than iterating the trade-off function of the whole. Where no closed form is known, both ends come from piecewise
    linear power functions, about four digits apart. `compare` shows the certified epsilon, the geometric sum and the
    book's bound. Build it with `.group(size)`.

    Args:
        composition: What is composed.
        size: The number of people.
    """

    composition: Composed
    size: int
    _parts: Parts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = self.composition.parts
        if self.size > 1:
            parts = tuple((Grouped(part, self.size), times) for part, times in parts)
        object.__setattr__(self, "_parts", parts)

    def _question(self, asking: Asking) -> PrivacyQuestion:
        losses = gathered(self._parts, asking.adjacency, summed=not asking.proof)
        known = self._losses(asking.adjacency)
        alternatives = tuple(
            ((each.pair.remove, each.pair.add, *each.mixed), times) for each, times in known
        )
        question = directed(losses, asking, alternatives if self.size > 1 else None)
        if question.rounds:
            return replace(question, compared=False)
        mixed = self._mixtures(known)
        if asking.proof:
            if not all(each.exact for each, _ in known):
                reason = (
                    "a group without a closed form is enclosed from values of a profile in floats"
                )
                raise UnsupportedError("proof=True", reason, "Ask without proof")
            mixed = proved(mixed, losses)
        return replace(question, dominating=(*question.dominating, *mixed), compared=False)

    def _theorems(self, question: PrivacyQuestion, delta: float) -> tuple[Comparison, ...]:
        one = ask(self.composition.parts, question.asking)
        return group_theorems(question, one, size=self.size, delta=delta)

    def _losses(self, adjacency: Adjacency) -> GroupLosses:
        """The group losses of all parts that have some."""
        found: GroupLosses = ()
        for part, times in self._parts:
            if isinstance(part, Grouped):
                found += tuple(
                    (each, count * times) for each, count in part.losses(adjacency) or ()
                )
        return found

    def _mixtures(self, losses: GroupLosses) -> tuple[Product, ...]:
        """Some members removed, the others added: a product for each number of removed; none if it is all the same."""
        if all(each.symmetric for each, _ in losses):
            return ()
        return tuple(
            Product(tuple((each.mixed[removed - 1], times) for each, times in losses))
            for removed in range(1, self.size)
        )


@dataclass(frozen=True)
class Grouped(Part):
    """A part with the losses of a group for those of one person.

    Args:
        part: What runs.
        size: The number of people.
    """

    part: Part
    size: int
    _known: dict[Adjacency, GroupLosses | None] = field(
        default_factory=dict[Adjacency, "GroupLosses | None"], init=False, repr=False, compare=False
    )
    """The losses, worked out once for each adjacency: they may take seconds."""

    @property
    def label(self) -> str:
        """The name in a report."""
        return f"{self.part.label}, for a group of {self.size}"

    def losses(self, adjacency: Adjacency) -> GroupLosses | None:
        """The losses of the group, however it changes; None if the part is known only by its Renyi curve."""
        if adjacency not in self._known:
            self.part.require_any_size(self.label)
            self.part.require_group(self.size, adjacency)
            found = self.part.group_losses(self.size, adjacency)
            if found is None:
                pairs = self.part.pairs(adjacency)
                found = None if pairs is None else group_losses(pairs, self.size)
            self._known[adjacency] = found
        return self._known[adjacency]

    def pairs(self, adjacency: Adjacency) -> Pairs | None:
        """All of the group removed, and all of it added."""
        found = self.losses(adjacency)
        return None if found is None else tuple((each.pair, times) for each, times in found)

    def promise(self, adjacency: Adjacency) -> RenyiPromise | None:
        """rho times the square of the size, for delta 0."""
        stated = self.part.promise(adjacency)
        if stated is None:
            return None
        if stated.rho is None:
            remedy = "Ask a Concentrated of the rho that bounds the curve, if there is one"
            raise UnsupportedError(
                self.label, "no group guarantee is offered for a Renyi curve", remedy
            )
        if stated.delta > 0:
            reason = "no group guarantee is offered for zero-concentrated privacy with delta > 0"
            raise UnsupportedError(self.label, reason)
        return ConcentratedDP(
            up(stated.rho * self.size**2 * (1 + 2 * UNIT_ROUNDOFF)) if stated.rho else 0.0
        )


def group(composition: Composed, size: int) -> Group:
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
