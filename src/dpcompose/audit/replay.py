"""Theorem 8a: a mechanism is run on one dataset and recorded, and run on the other with the outputs it had.

The description is what the calls say: that these primitives, with these sensitivities, are all that the answer depends
on, and that their composition keeps the claim. If the two runs make other calls, if an input moves further than was
declared, or if the answer differs though every output was the same, the description is refuted, without statistics. It
is the description that is refuted: a mechanism may be private for a reason that it does not tell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpcompose import check
from dpcompose.audit.calling import Calls, Dataset
from dpcompose.audit.claim import Point, certified, points
from dpcompose.audit.model import Modelled, model
from dpcompose.audit.outcome import Outcome
from dpcompose.audit.pair import Pair
from dpcompose.audit.primitives import Call, Primitives
from dpcompose.audit.verdict import Verdict
from dpcompose.composition import Composable, compose
from dpcompose.errors import DomainError
from dpcompose.values import Adjacency

Recorded = Callable[[Any, Primitives], Any]
RUNS = 3
"""Transcripts of each pair and order."""
ROUNDED = 1e-9
"""An input that is further than declared, by a smaller part than this, is so by rounding: that leaves it open."""


@dataclass(frozen=True)
class Replayed:
    """The answer of replay about a description.

    Args:
        verdict: REFUTED or CERTIFIED, of the description; NOT_REFUTED where it stays open.
        reason: Why.
        law: The composition of what is declared; None where runs declare different things.
        calls: The calls of one run, in words.
        pairs: The pairs that were run.
    """

    verdict: Verdict
    reason: str
    law: Composable | None
    calls: tuple[str, ...]
    pairs: int


@dataclass(frozen=True)
class _Run:
    answer: Outcome
    calls: tuple[Call, ...]
    differs: str


@dataclass
class _Player:
    mechanism: Recorded
    limit: float
    notes: set[str] = field(default_factory=set[str])

    def run(self, data: Any, forced: Sequence[Call] | None = None) -> _Run:
        """One run, recorded or forced."""
        noise = Primitives(forced)
        calls = Calls(self.limit, False, self.notes)
        with calls.open():
            answer = calls.outcome(lambda given: self.mechanism(given, noise), Dataset(data))
        differs = noise.differs
        if not differs and forced is not None and len(noise.calls) < len(forced):
            differs = f"it stops after {len(noise.calls)} calls, and made {len(forced)} before"
        return _Run(answer, tuple(noise.calls), differs)


def replay(
    mechanism: Recorded, pairs: Sequence[Pair], *, claim: Composable, adjacency: Adjacency = Adjacency.ADD_REMOVE,
    runs: int = RUNS, limit: float = 1.0,
) -> Replayed:  # fmt: skip
    """Hold a mechanism to the description that its own calls give of it.

    >>> from dpcompose import BlackBox
    >>> from dpcompose.audit import Pair
    >>> def total(rows, noise):
    ...     return noise.laplace(sum(rows), scale=1.0, sensitivity=1.0)
    >>> replay(total, [Pair((1.0,), ())], claim=BlackBox(1.0)).verdict
    <Verdict.CERTIFIED: 'certified'>
    >>> replay(total, [Pair((3.0,), ())], claim=BlackBox(1.0)).reason
    'an input of Laplace noise of scale 1, sensitivity 1 (l1) moves by 3, pair 1'

    Args:
        mechanism: A function of a dataset and of `Primitives`, by which it draws.
        pairs: Pairs of datasets, each at its distance.
        claim: The claim.
        adjacency: The neighboring relation of the claim.
        runs: Transcripts of each pair and order, at least 1.
        limit: The seconds that one run may take.

    Raises:
        DomainError: If an argument is outside its domain, or the claim promises nothing.
    """
    check.count("runs", runs, least=1)
    asked = points(claim, adjacency=adjacency)
    if not callable(mechanism):
        raise DomainError("mechanism", mechanism, "a function of a dataset and of Primitives")
    if not pairs or not all(isinstance(pair, Pair) for pair in pairs):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("pairs", pairs, "at least one Pair of datasets")
    player, transcripts, open_reason = _Player(mechanism, limit), list[tuple[Call, ...]](), ""
    for number, pair in enumerate(pairs, 1):
        for turned, _ in itertools.product((False, True), range(runs)):
            zero, one = (pair.one, pair.zero) if turned else (pair.zero, pair.one)
            recorded = player.run(zero)
            reason, refutes = _compared(player, recorded, zero, one, pair.distance)
            if refutes:
                return _result(
                    Verdict.REFUTED, f"{reason}, pair {number}", [recorded.calls], len(pairs)
                )
            open_reason = open_reason or (f"{reason}, pair {number}" if reason else "")
            transcripts.append(recorded.calls)
    for calls in {tuple(call.described for call in each): each for each in transcripts}.values():
        reason = _above(calls, asked, adjacency)
        if reason:
            return _result(Verdict.REFUTED, reason, [calls], len(pairs))
    found = _result(Verdict.NOT_REFUTED, open_reason, transcripts, len(pairs))
    if found.law is None or open_reason:
        return found
    if certified(found.law, claim, adjacency=adjacency):
        reason = f"on {len(pairs)} pairs these calls are all, and their composition keeps the claim"
        return replace(found, verdict=Verdict.CERTIFIED, reason=reason)
    return replace(found, reason="these calls are all; that they keep the claim is not certified")


def _above(calls: Sequence[Call], claim: Sequence[Point], adjacency: Adjacency) -> str:
    """Where the composition of calls is certainly above the claim; empty if nowhere."""
    if not calls:
        return ""
    law = compose(*(call.mechanism for call in calls))
    for point in claim:
        least = law.delta(epsilon=point.epsilon, adjacency=adjacency).lower
        if least > point.delta * (1 + ROUNDED) + 1e-15:
            words = f"its calls compose to delta >= {least:.3g} at epsilon {point.epsilon:g}"
            return f"{words}, above the claim's {point.delta:.3g}"
    return ""


def _compared(
    player: _Player, recorded: _Run, zero: Any, one: Any, distance: int
) -> tuple[str, bool]:
    """The fault of a run, and whether that refutes the description."""
    forced, same = player.run(one, recorded.calls), player.run(zero, recorded.calls)
    if same.differs:
        return f"its calls depend on more than its data and their outputs: {same.differs}", True
    if forced.differs:
        return f"its calls depend on the data: {forced.differs}", True
    for before, after in zip(recorded.calls, forced.calls, strict=True):
        moved, most = before.norm.distance(before.input, after.input), before.sensitivity * distance
        if before.norm.distance(before.input, before.input) > 0 or moved > most * (1 + ROUNDED):
            return f"an input of {before.words} moves by {moved:g}", True
        if moved > most:
            return (
                f"an input of {before.words} moves by {moved!r}, a rounding further than declared",
                False,
            )
    if _seen(same.answer) != _seen(recorded.answer):
        return "it draws randomness that is no call: its answers cannot be compared", False
    if _seen(forced.answer) != _seen(recorded.answer):
        return "its answer depends on the data beyond its calls", True
    return ("a run took too long", False) if recorded.answer.timeout else ("", False)


def _seen(answer: Outcome) -> str:
    """An answer as text, NaN and -0.0 included."""
    return repr(answer)


def _result(
    verdict: Verdict, reason: str, transcripts: Sequence[tuple[Call, ...]], pairs: int
) -> Replayed:
    described = {tuple(call.described for call in calls) for calls in transcripts}
    first = transcripts[0]
    law = compose(*(call.mechanism for call in first)) if len(described) == 1 and first else None
    if law is None and verdict is Verdict.NOT_REFUTED and not reason:
        reason = "its calls depend on earlier answers" if first else "it makes no call"
    return Replayed(verdict, reason, law, tuple(call.words for call in first), pairs)


def residuals(
    mechanism: Recorded, data: Any, *, runs: int, limit: float = 1.0
) -> dict[str, tuple[Call, np.ndarray]]:
    """output - input of every primitive that adds noise, by its name, over so many runs."""
    player, found = _Player(mechanism, limit), dict[str, list[Call]]()
    for _ in range(check.count("runs", runs, least=1)):
        for call in player.run(data).calls:
            if call.law is not None:
                found.setdefault(call.law.name, []).append(call)
    return {name: (calls[0], np.concatenate([*_moved(calls)])) for name, calls in found.items()}


def _moved(calls: Sequence[Call]) -> Iterator[np.ndarray]:
    for call in calls:
        before, after = (
            np.asarray(each, dtype=np.float64).reshape(-1) for each in (call.input, call.output)
        )
        yield after - before if before.shape == after.shape else np.full(1, math.nan)


def modelled(
    mechanism: Recorded, data: Any, *, runs: int, alpha: float = 1e-6
) -> tuple[Modelled, ...]:
    """Whether the noise of every primitive has the law that it states: all together at alpha.

    Args:
        mechanism: A function of a dataset and of `Primitives`.
        data: A dataset.
        runs: How often it is run.
        alpha: The probability of refuting a true law, for all of them together.
    """
    drawn = residuals(mechanism, data, runs=runs)
    alpha = check.open_probability("alpha", alpha) / max(1, len(drawn))
    return tuple(
        model(noise, call.law, alpha=alpha)
        for call, noise in drawn.values()
        if call.law is not None
    )
