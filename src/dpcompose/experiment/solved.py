"""The experiment solved exactly: every view with its probability in both worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np

from dpcompose import check
from dpcompose.errors import DomainError, RefusedRoundError, UnsupportedError
from dpcompose.experiment.adversaries import Adversary
from dpcompose.experiment.channel import DIGITS, Outcome, Reals, World, log_ratio
from dpcompose.experiment.round import Groups, Places, Rules, checked, reason_of
from dpcompose.values import Bound, Certificate, down, up


def opened(adversary: Adversary, rng: np.random.Generator | None) -> Any:
    """The adversary's first state.

    Raises:
        RefusedRoundError: If it fails.
    """
    try:
        return adversary.first(rng)
    except Exception as error:
        without = " (it was given no coins)" if rng is None else ""
        raise RefusedRoundError(1, f"{reason_of(error)}{without}") from error


def proposed(
    adversary: Adversary, state: Any, answers: Reals, places: Places, rules: Rules
) -> tuple[Any, Groups | None]:
    """The next state, and the next round of the adversary, checked; None if it stops.

    Raises:
        RefusedRoundError: If it may not, or fails.
    """
    sealed = answers.view()  # the adversary cannot write to it
    sealed.flags.writeable = False
    try:
        state, chosen = adversary.choose(state, sealed)
        return state, None if chosen is None else checked(chosen, places, rules)
    except Exception as error:
        raise RefusedRoundError(len(answers) + 1, reason_of(error)) from error


def answer(
    groups: Groups,
    world: World,
    rng: np.random.Generator,
    answers: Reals,
    loss: Reals,
    spare: Reals,
) -> None:
    """Draw a round's answers into `answers` and add their losses to `loss`; all of shape (transcripts,)."""
    for channel, asking in groups.channels:
        if asking is None:
            channel.draw(rng, world, answers, spare)
            channel.add_loss(answers, loss, spare)
            continue
        count = len(asking)
        drawn, part, room = np.empty(count), loss[asking], spare[:count]
        channel.draw(rng, world, drawn, room)
        channel.add_loss(drawn, part, room)
        answers[asking], loss[asking] = drawn, part
    if groups.stopped is not None:
        answers[groups.stopped] = np.nan


CONTEXT = Context(prec=DIGITS, Emin=-(10**9), Emax=10**9)
LARGEST = 1e8
GUARD = 10
"""Digits granted to rounding: each factor and partial sum errs by a unit of the last digit, and there are few."""
ROUNDING = Decimal(10) ** (GUARD - DIGITS)


@dataclass(frozen=True)
class Solved:
    """The distributions of the view, to 60 digits.

    Probabilities are products of at most k factors of 60 digits: relative errors stay below 10^-50 for any tree that
    can be walked, and so does the error of delta relative to 1 + e^epsilon.

    Args:
        zero: The probability of each view in world 0.
        one: In world 1, same order.
        answers: Shape (rounds, views); NaN where nothing was asked.
    """

    zero: tuple[Decimal, ...]
    one: tuple[Decimal, ...]
    answers: Reals

    def delta(self, epsilon: float) -> Bound:
        """The larger of both directions, to the last digits of a float; epsilon is any real number."""
        point = check.finite("epsilon", epsilon)
        if not abs(point) <= LARGEST:
            raise DomainError("epsilon", point, f"a number from -{LARGEST:g} to {LARGEST:g}")
        with localcontext(CONTEXT):
            orders = (self.zero, self.one), (self.one, self.zero)
            found = max(self._excess(point, *order) for order in orders)
            error = (1 + Decimal(point).exp()) * ROUNDING
            low, high = max(found - error, Decimal(0)), found + error
        made = Certificate("every view of the tree, in 60 digits", unit="absolute")
        return Bound(max(down(float(low)), 0.0), min(up(float(high)), 1.0), made)

    def epsilon(self, delta: float) -> Bound:
        """The smallest epsilon >= 0 at which `delta` is at most this; infinite where no finite one is.

        Newton's method from the left of a convex function made of lines gives a guess; `delta` certifies both sides.

        Raises:
            DomainError: If delta is outside [0, 1].
        """
        asked, made = (
            check.probability("delta", delta),
            Certificate("every view of the tree, in 60 digits"),
        )
        if self.delta(0.0).upper <= asked:
            return Bound(0.0, 0.0, made)
        with localcontext(CONTEXT):
            orders = (self.zero, self.one), (self.one, self.zero)
            guess = max(_root(Decimal(asked), one, other) for one, other in orders)
            never = max(
                sum((p for p, q in zip(*each, strict=True) if q == 0), Decimal(0))
                for each in orders
            )
            if guess == math.inf or 0 < never == Decimal(asked):
                return Bound(math.inf if never > Decimal(asked) + ROUNDING else 0.0, math.inf, made)
        largest = up(up(float(np.max(np.abs(self.loss)))))
        lower, upper, step = down(guess), up(guess), math.ulp(guess)
        while upper < largest and not self.delta(upper).upper <= asked:
            upper, step = upper + step, 10 * step
        step = math.ulp(guess)
        while lower > 0 and not self.delta(lower).lower > asked:
            lower, step = lower - step, 10 * step
        return Bound(max(lower, 0.0), min(upper, largest), made)

    @cached_property
    def loss(self) -> Reals:
        """ln p_0 / p_1 of every view."""
        with localcontext(Context(prec=30)):
            return np.array([*map(log_ratio, self.zero, self.one)])

    @staticmethod
    def _excess(epsilon: float, one: tuple[Decimal, ...], other: tuple[Decimal, ...]) -> Decimal:
        a = Decimal(epsilon).exp()
        return sum(
            (max(p - a * q, Decimal(0)) for p, q in zip(one, other, strict=True)), Decimal(0)
        )


def _root(delta: Decimal, one: tuple[Decimal, ...], other: tuple[Decimal, ...]) -> float:
    """About the smallest epsilon >= 0 where the sum of (p - e^epsilon q)_+ is at most delta."""
    a = Decimal(1)
    while True:
        above = [(p, q) for p, q in zip(one, other, strict=True) if p > a * q]
        excess = sum((p - a * q for p, q in above), Decimal(0)) - delta
        slope = sum((q for _, q in above), Decimal(0))
        if excess <= 0:
            return float(a.ln())
        if slope == 0:
            return math.inf
        after = a + excess / slope
        if after == a:
            return float(a.ln())
        a = after


def walk(adversary: Adversary, rounds: int, rules: Rules, *, leaves: int) -> Solved:
    """All views: in each round the adversary is replayed against every possible history.

    Raises:
        RefusedRoundError: If it asks what it may not, or uses coins.
        UnsupportedError: If a mechanism has infinitely many answers, or there are more views.
    """
    answers = np.empty((0, 1))
    zero, one = [Decimal(1)], [Decimal(1)]
    for number in range(rounds):
        groups = _groups_of(adversary, answers, rules)
        if groups is None:
            break
        outcomes = _outcomes(groups, answers.shape[1])
        sizes = np.array([len(found) for found in outcomes])
        if not int(sizes.sum()) <= leaves:
            raise UnsupportedError(
                f"solving round {number + 1} exactly", f"there are {int(sizes.sum())} views, more than {leaves}",
                "Ask for more with leaves=..., or measure",
            )  # fmt: skip
        with localcontext(CONTEXT):
            zero = [
                p * each.zero for p, found in zip(zero, outcomes, strict=True) for each in found
            ]
            one = [q * each.one for q, found in zip(one, outcomes, strict=True) for each in found]
        last = np.array([each.answer for found in outcomes for each in found])
        answers = np.concatenate([np.repeat(answers, sizes, axis=1), last[None]])
    return Solved(tuple(zero), tuple(one), answers)


def _groups_of(adversary: Adversary, answers: Reals, rules: Rules) -> Groups | None:
    """The round after these histories, by playing them from the start."""
    state = opened(adversary, None)
    groups, places = None, np.zeros(answers.shape[1], dtype=np.intp)
    for number in range(len(answers) + 1):
        state, groups = proposed(adversary, state, answers[:number], places, rules)
        places = places if groups is None else groups.places
    return groups


_NOTHING = (Outcome(float("nan"), Decimal(1), Decimal(1)),)


def _outcomes(groups: Groups, transcripts: int) -> list[tuple[Outcome, ...]]:
    """The possible next answers of each history."""
    found: list[tuple[Outcome, ...]] = [_NOTHING] * transcripts
    for channel, asking in groups.channels:
        outcomes = channel.outcomes()
        if outcomes is None:
            what = f"solving exactly with {channel!r}"
            raise UnsupportedError(what, "it has infinitely many answers", "Measure instead")
        for place in range(transcripts) if asking is None else asking.tolist():
            found[place] = outcomes
    return found
