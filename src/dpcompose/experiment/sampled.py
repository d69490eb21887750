"""A mechanism on a Poisson sample: the differing record is in it or not, and the others are held fixed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext

import numpy as np

from dpcompose.composition import Sampled
from dpcompose.errors import UnsupportedError
from dpcompose.experiment.channel import Between, Channel, Outcome, Reals, World, channel_of
from dpcompose.experiment.finite import DIGITS, FiniteChannel
from dpcompose.numerics import log_mixed
from dpcompose.values import Adjacency


@dataclass(frozen=True)
class SampledChannel(Channel):
    """The channel of a sample: in the world with the record, a mixture of the answers with and without it.

    Args:
        base: The mechanism that runs on the sample, between the same two values.
        rate: The probability that the record is in the sample.
        holder: The world whose database holds the record.
    """

    base: Channel
    rate: float
    holder: World

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        without = World.ONE if self.holder is World.ZERO else World.ZERO
        self.base.draw(rng, without, answers, spare)
        if world is not self.holder:
            return
        rng.random(out=spare)
        inside = np.flatnonzero(spare < self.rate)
        found, more = np.empty(len(inside)), np.empty(len(inside))
        self.base.draw(rng, world, found, more)
        answers[inside] = found

    @property
    def error(self) -> float:
        return self.base.error

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """ln(1 - q + q e^loss), or minus that of minus the loss."""
        sign = 1.0 if self.holder is World.ZERO else -1.0
        one = np.zeros(len(answers))
        self.base.add_loss(answers, one, spare)
        one *= sign
        losses += sign * log_mixed(one, self.rate)


@channel_of.register
def _(mechanism: Sampled, between: Between) -> Channel:
    if between.adjacency is Adjacency.REPLACE:
        raise UnsupportedError(
            repr(mechanism), "the experiment samples under add-remove and zero-out"
        )
    if mechanism.base.count != 1:
        raise UnsupportedError(repr(mechanism), "the experiment samples one mechanism at a time")
    base = channel_of(mechanism.base.parts[0][0], between)
    outcomes = base.outcomes()
    if outcomes is None:
        return SampledChannel(base, mechanism.rate, between.holder)
    return _mixed(outcomes, mechanism.rate, between.holder)


def _mixed(outcomes: tuple[Outcome, ...], rate: float, holder: World) -> FiniteChannel:
    with localcontext(Context(prec=DIGITS)):
        q = Decimal(rate)
        mixed = tuple(
            Outcome(each.answer, q * each.zero + (1 - q) * each.one, each.one)
            if holder is World.ZERO
            else Outcome(each.answer, each.zero, q * each.one + (1 - q) * each.zero)
            for each in outcomes
        )
    return FiniteChannel(mixed)
