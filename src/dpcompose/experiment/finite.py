"""Mechanisms with finitely many answers: randomized response, the worst case of a guarantee, and given atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property

import numpy as np

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.experiment.channel import Between, Channel, Outcome, Reals, World, channel_of
from dpcompose.mechanisms import BlackBox, DominatingPair, RandomizedResponse, Stated
from dpcompose.values import Adjacency

DIGITS = 60
"""Decimal digits of probabilities."""


@dataclass(frozen=True)
class FiniteChannel(Channel):
    """Finitely many answers.

    Args:
        all: The answers with their probabilities.
    """

    all: tuple[Outcome, ...]

    def outcomes(self) -> tuple[Outcome, ...]:
        return self.all

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        rng.random(out=spare)
        edges = self._edges[world]
        if len(edges) == 1:
            # Two answers: 0 or 1, scaled, is faster than a search.
            np.greater_equal(spare, edges[0], out=answers, casting="unsafe")
            low, high = self.all[0].answer, self.all[1].answer
            answers *= high - low
            answers += low
        else:
            np.take(self._answers, np.searchsorted(edges, spare, side="right"), out=answers)

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        if len(self.all) == 2 and np.all(np.isfinite(self._losses)):
            low, high = self.all[0].answer, self.all[1].answer
            slope = (self._losses[1] - self._losses[0]) / (high - low)
            np.subtract(answers, low, out=spare)
            spare *= slope
            spare += self._losses[0]
        else:
            np.take(self._losses, np.searchsorted(self._answers, answers), out=spare)
        losses += spare

    @cached_property
    def _answers(self) -> Reals:
        return np.array([outcome.answer for outcome in self.all])

    @cached_property
    def _losses(self) -> Reals:
        with localcontext(Context(prec=DIGITS)):
            return np.array([_log_ratio(outcome.zero, outcome.one) for outcome in self.all])

    @cached_property
    def _edges(self) -> dict[World, Reals]:
        """The cumulative probabilities but the last."""
        zero = np.cumsum([float(outcome.zero) for outcome in self.all])[:-1]
        one = np.cumsum([float(outcome.one) for outcome in self.all])[:-1]
        return {World.ZERO: zero, World.ONE: one}


def finite(zero: Sequence[Decimal], one: Sequence[Decimal]) -> FiniteChannel:
    """Answers 0, 1, 2, ... with these probabilities; those that neither world gives are left out."""
    both = enumerate(zip(zero, one, strict=True))
    return FiniteChannel(
        tuple(Outcome(float(answer), p, q) for answer, (p, q) in both if p > 0 or q > 0)
    )


def _log_ratio(p: Decimal, q: Decimal) -> float:
    if p == q:
        return 0.0
    return float("inf") if q == 0 else float("-inf") if p == 0 else float((p / q).ln())


@channel_of.register
def _(mechanism: RandomizedResponse, between: Between) -> Channel:
    _require(mechanism, between.adjacency)
    values = (between.zero, between.one)
    for value in values:
        if not (value == int(value) and 0 <= value < mechanism.categories):
            raise DomainError(
                "statistic", value, f"a category from 0 to {mechanism.categories - 1}"
            )
    if not mechanism.categories <= 4096:
        raise UnsupportedError(repr(mechanism), "the experiment draws at most 4096 categories")
    with localcontext(Context(prec=DIGITS)):
        growth = Decimal(mechanism.stated).exp()
        whole = growth + mechanism.categories - 1
        told = [
            [growth / whole if k == value else 1 / whole for k in range(mechanism.categories)]
            for value in values
        ]
    return finite(*told)


@channel_of.register
def _(mechanism: BlackBox, between: Between) -> Channel:
    """The worst mechanism with this promise: it says in which world it is with probability delta."""
    _require(mechanism, between.adjacency)
    with localcontext(Context(prec=DIGITS)):
        delta, growth = Decimal(mechanism.stated.delta), Decimal(mechanism.stated.epsilon).exp()
        more, less = (1 - delta) * growth / (1 + growth), (1 - delta) / (1 + growth)
        if between.zero == between.one:
            return finite([Decimal(1)], [Decimal(1)])
        first, second = [delta, more, less, Decimal(0)], [Decimal(0), less, more, delta]
    return finite(first, second) if between.holder is World.ZERO else finite(second, first)


@channel_of.register
def _(mechanism: DominatingPair, between: Between) -> Channel:
    """The given atoms: with the record those of `upper`. A pair from a profile is drawn as its atoms above."""
    mechanism.pairs(between.adjacency)
    atoms = mechanism.pair.remove.atoms()
    upper, lower = [Decimal(mass) for mass in atoms.upper], [Decimal(mass) for mass in atoms.lower]
    if between.zero == between.one:
        return finite(lower, lower)
    return finite(upper, lower) if between.holder is World.ZERO else finite(lower, upper)


def _require(mechanism: Stated, adjacency: Adjacency) -> None:
    if adjacency is not mechanism.holds_under:
        stated = f"it is stated under {mechanism.holds_under.value}, and the experiment is under {adjacency.value}"
        raise UnsupportedError(repr(mechanism), stated, "State it with holds_under=...")
