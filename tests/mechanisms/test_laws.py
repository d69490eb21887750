"""The laws that mechanisms state: plain data, and the losses computed from them."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from dpcompose import Adjacency, Gaussian, compose, law
from dpcompose.composition import Sampled
from dpcompose.loss import AtomicLoss, Loss, Pair
from dpcompose.loss.atomize import LAST_EPSILON
from dpcompose.loss.gaussian_mixture import LEAST_WEIGHT
from dpcompose.mechanisms import DominatingPair
from dpcompose.mechanisms.base import Mechanism
from dpcompose.values import UNIT_ROUNDOFF
from tests.laws.members import MEMBERS, Member

STATED: dict[type[law.Law], law.Law] = {
    type(each): each
    for each in (
        law.GaussianShift(0.5, 0),
        law.GaussianSum(((0.5, 2), (0.25, 3))),
        law.LaplaceShift(0.5, 1, (1.0, 2.0)),
        law.DiscreteLaplaceShift(2.0, 3),
        law.DiscreteGaussianShift(2.0, 3),
        law.SkellamShift(4.0, 1),
        law.SampledGaussian(2.0, 0.1, True, 1),
        law.ReplacedGaussian(2.0, 0.1),
        law.FixedSizeBatch(2.0, 0.1, 0.1),
        law.Allocated(1.0, 10, True),
        law.LargestBatch(1.0, 10),
        law.Mixture(((1.0, (0.0, 0.5), (0.5, 0.5), 0.0),)),
        law.TwoPoint(0.5, 1e-6),
        law.BoundedRange(0.5),
        law.BoundedRangeAttained(0.5, 2),
        law.Shuffled(1.0, 100),
        law.ShuffledResponses(1.0, 100),
        law.Chained(0.5, 0.0, 3, 2),
        law.Atoms((0.75, 0.25), (0.25, 0.75)),
        law.AtomsOfParts(((law.Pair(law.TwoPoint(0.5), law.TwoPoint(0.5)), 2),)),
        law.AtomsAbove((0.0, 1.0), (0.3, 0.0)),
        law.Reversed(law.Atoms((0.7, 0.3), (0.4, 0.6))),
        law.Envelope((law.TwoPoint(0.5), law.TwoPoint(0.25))),
    )
}


@pytest.mark.parametrize("stated", STATED.values(), ids=lambda each: type(each).__name__)
def test_every_law_has_a_loss_and_is_plain_data(stated: law.Law) -> None:
    assert isinstance(stated.loss(), Loss)
    again = pickle.loads(pickle.dumps(stated))
    assert again == stated and hash(again) == hash(stated) and type(stated).__name__ in repr(stated)
    assert again.loss() == stated.loss()


def test_no_law_is_left_out() -> None:
    # Formulas are parts of atoms, and a profile is a function: both have tests of their own.
    others = {law.Response, law.Encoding, law.AtomsOfProfile}
    assert {*law.Law.__subclasses__()} == {*STATED} | others


def test_laws_of_different_families_are_different() -> None:
    assert law.GaussianShift(1.0, 0) != law.TwoPoint(1.0, 0)
    assert law.GaussianShift(1.0, 0).loss() != law.TwoPoint(1.0, 0).loss()


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_the_losses_of_a_mechanism_are_those_of_its_laws(member: Member) -> None:
    (part, _), *_ = compose(member.build(0.3, 1)).parts
    if isinstance(part, Sampled):
        part = part.base.parts[0][0]
    for adjacency in Adjacency:
        try:
            stated = part.laws(adjacency)
        except Exception as refusal:
            with pytest.raises(type(refusal)):
                part.pairs(adjacency)
            continue
        pairs = part.pairs(adjacency)
        if stated is None or pairs is None:
            assert stated is pairs is None
            continue
        assert [times for _, times in stated] == [times for _, times in pairs]
        for (one, _), (pair, _) in zip(stated, pairs, strict=True):
            assert isinstance(pair, Pair) and isinstance(pair.remove, Loss)
            assert one[2] == pair.attained and len(one[3]) == len(pair.attained_parts)
            assert one[4:] == pair[4:] and one.symmetric <= pair.symmetric


def test_constants_of_the_losses_are_the_same() -> None:
    assert (law.LEAST_WEIGHT, law.LAST_EPSILON) == (LEAST_WEIGHT, LAST_EPSILON)


@dataclass(frozen=True, repr=False)
class TruncatedGeometric(Mechanism):
    """Two-sided geometric noise on the integers 0, ..., n, cut at the ends: the values 0 and 1 in the place of a count.

    Args:
        step: The loss of one step, in nats.
        largest: n, at least 2.
    """

    step: float
    largest: int

    def _masses(self, value: int) -> tuple[float, ...]:
        fall = math.exp(-self.step)
        ends = [fall ** abs(end - value) / (1 + fall) for end in (0, self.largest)]
        inside = [
            (1 - fall) / (1 + fall) * fall ** abs(at - value) for at in range(1, self.largest)
        ]
        return ends[0], *inside, ends[1]

    def laws(self, adjacency: Adjacency) -> law.Laws:
        """The outcomes, one by one: the counts 0 and 1."""
        atoms = law.Atoms(self._masses(0), self._masses(1), relative_error=64 * UNIT_ROUNDOFF)
        return ((law.Pair(atoms, atoms.reverse), 1),)


def test_a_new_mechanism_is_one_class_with_its_outcomes() -> None:
    one = TruncatedGeometric(0.5, 8)
    table = DominatingPair.atoms(
        upper=one._masses(0), lower=one._masses(1), adjacency=Adjacency.ADD_REMOVE
    )
    answer, other = (one * 10).epsilon(delta=1e-6), (table * 10).epsilon(delta=1e-6)
    assert max(answer.lower, other.lower) <= min(answer.upper, other.upper) <= 5.0
    whole = compose(one * 3, Gaussian(4.0)).sampled(0.1)
    assert 0 < whole.epsilon(delta=1e-6).lower <= whole.epsilon(delta=1e-6).upper < 2
    assert one.group(2).delta(epsilon=0.5).upper < 0.5 and repr(one) == "TruncatedGeometric(0.5, 8)"
    pairs: Any = one.pairs(Adjacency.ADD_REMOVE)
    ((pair, _),) = pairs
    assert isinstance(pair.remove, AtomicLoss) and pair.add == pair.remove.reverse
