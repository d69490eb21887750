"""The experiment solved exactly: every view with its probability in both worlds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from dpcompose import check
from dpcompose.errors import DomainError, RefusedRoundError, UnsupportedError
from dpcompose.experiment.adversaries import Adversary
from dpcompose.experiment.channel import DIGITS, Outcome, Reals, World, log_ratio
from dpcompose.experiment.round import Groups, Rules, checked, reason_of
from dpcompose.values import Bound, Certificate, down, up

Read = TypeVar("Read")


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


def chosen(
    adversary: Adversary, state: Any, answers: Reals, read: Callable[[Any], Read]
) -> tuple[Any, Read | None]:
    """The next state of an adversary, and what `read` makes of its next round; None if it stops.

    Raises:
        RefusedRoundError: If either fails.
    """
    sealed = answers.view()  # the adversary cannot write to it
    sealed.flags.writeable = False
    try:
        state, proposal = adversary.choose(state, sealed)
        return state, None if proposal is None else read(proposal)
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
            growth, none = Decimal(point).exp(), Decimal(0)
            found = max(
                sum((max(p - growth * q, none) for p, q in zip(*order, strict=True)), none)
                for order in orders
            )
            error = (1 + growth) * ROUNDING
            low, high = max(found - error, Decimal(0)), found + error
        made = Certificate("every view of the tree, in 60 digits", unit="absolute")
        return Bound(max(down(float(low)), 0.0), min(up(float(high)), 1.0), made)

    def epsilon(self, delta: float) -> Bound:
        """The smallest epsilon >= 0 at which `delta` is at most this; infinite where no finite one is.

        Raises:
            DomainError: If delta is outside [0, 1].
        """
        level = Decimal(check.probability("delta", delta))
        with localcontext(CONTEXT):
            orders = (self.zero, self.one), (self.one, self.zero)
            low = max(_largest_loss(level + ROUNDING, *order) for order in orders) - ROUNDING
            high = max(_largest_loss(level - ROUNDING, *order) for order in orders) + ROUNDING
        most = float(np.max(np.abs(self.loss)))
        lower = max(down(float(low)), 0.0) if low.is_finite() else math.inf
        upper = min(up(float(high)), up(up(most))) if high > ROUNDING else 0.0
        return Bound(lower, upper, Certificate("every view of the tree, in 60 digits"))

    @cached_property
    def loss(self) -> Reals:
        """ln p_0 / p_1 of every view."""
        with localcontext(Context(prec=30)):
            return np.array([*map(log_ratio, self.zero, self.one)])


def _largest_loss(delta: Decimal, one: tuple[Decimal, ...], other: tuple[Decimal, ...]) -> Decimal:
    """About the largest ln of (P(E) - delta) / Q(E) over all events E, at least 0; infinite where some Q(E) is 0.

    It is the smallest epsilon >= 0 with P(E) <= e^epsilon Q(E) + delta for all E; the best event has the views of the
    largest ratios.
    """
    ratios = [(p / q if q else Decimal("inf"), p, q) for p, q in zip(one, other, strict=True) if p]
    above, best = -delta, Decimal(1)
    below = Decimal(0)
    for ratio, p, q in sorted(ratios, reverse=True):
        above, below = above + p, below + q
        if above > 0 and ratio.is_infinite():
            return ratio
        if above > 0:
            best = max(best, above / below)
    return best.ln()


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
        read = partial(checked, places=places, rules=rules)
        state, groups = chosen(adversary, state, answers[:number], read)
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
