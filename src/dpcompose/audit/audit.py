"""The loop of an audit: choose a pair, set stakes, toss coins, draw, pay, learn; until the claim is refuted."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit import certificate as written
from dpcompose.audit.arm import Arm
from dpcompose.audit.cells import Cells
from dpcompose.audit.check import check as checked
from dpcompose.audit.claim import Point, certified, points
from dpcompose.audit.coin import Chain
from dpcompose.audit.feature import Feature, Learner
from dpcompose.audit.lower import Ladder
from dpcompose.audit.outcome import Outcomes
from dpcompose.audit.pair import Pair
from dpcompose.audit.subject import ExhaustedError, Fresh, Source, Subject
from dpcompose.audit.tried import Converse, unseen
from dpcompose.audit.verdict import Found, Moment, Tried, Verdict
from dpcompose.audit.wealth import Member, Paid, step
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.mechanism import BlackBox
from dpcompose.numerics import check
from dpcompose.numerics.bound import Bound

EXPLORED = 16
"""One batch in so many is of a pair in its turn, whatever is known of it."""
MARGIN = 1e-6
"""The loop adds logarithms in floats; the certificate's wealth is rounded down."""


@dataclass(frozen=True)
class Batch:
    """A batch whose stakes are bound, and whose coins are tossed.

    Args:
        arm: The place of the pair.
        members: The bets.
        stakes: The bets as they are bound.
        coins: The coins, of which nothing was known before.
    """

    arm: int
    members: tuple[Member, ...]
    stakes: dict[str, Any]
    coins: NDArray[np.uint8]


@dataclass
class Game:
    """The state of an audit: its arms, its chain of coins, and its wealth.

    Args:
        arms: The pairs, with their past.
        chain: The chain.
        goal: ln of the wealth at which the claim is refuted.
    """

    arms: tuple[Arm, ...]
    chain: Chain
    goal: float
    log_wealth: float = 0.0
    peak: float = 0.0
    samples: int = 0
    batches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def bind(self, most: int) -> Batch:
        """Choose a pair and stakes from the past, bind them, and toss the coins."""
        turn = len(self.batches)
        if turn % EXPLORED == EXPLORED - 1:
            place = turn // EXPLORED % len(self.arms)
        else:
            place = max(range(len(self.arms)), key=lambda each: self.arms[each].promise)
        arm = self.arms[place]
        rows, members = min(arm.next_rows, most), tuple(arm.members())
        stakes = written.stakes(pair=place, distance=arm.pair.distance, rows=rows, members=members)
        return Batch(place, members, stakes, self.chain.coins(stakes, rows))

    def pay(self, batch: Batch, outcomes: Outcomes) -> Paid:
        """Pay the batch, and let its arm learn from it."""
        arm = self.arms[batch.arm]
        places = [member.cells.place(member.feature.score(outcomes)) for member in batch.members]
        paid = step(self.log_wealth, batch.members, arm.points, batch.coins, places, self.goal)
        counts = written.counts(paid)
        self.chain = self.chain.after(batch.stakes, counts)
        self.batches.append({"stakes": batch.stakes, "counts": counts, "chain": self.chain.link.hex()})
        self.log_wealth, self.peak = paid.log_wealth, max(self.peak, paid.peak)
        self.samples += paid.rows
        arm.learn(outcomes[: paid.rows], batch.coins[: paid.rows])
        return paid


def audit(
    subject: Source,
    pairs: Sequence[Pair],
    *,
    claim: Composable,
    alpha: float = 1e-6,
    samples: int = 1_000_000,
    seconds: float = math.inf,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    features: Sequence[Feature] | None = None,
    learners: Sequence[Learner] = (),
    law: Composable | None = None,
    seed: bytes | None = None,
    ladder: bool = True,
    progress: Callable[[Moment], None] | None = None,
) -> Found:
    """Audit a claim by betting against it on fair coins.

    If the claim is true for these pairs, the verdict is `REFUTED` with probability at most alpha, whatever is chosen
    from the past: pairs, features, stakes, and when to stop.

    Args:
        subject: What answers.
        pairs: Pairs of datasets, each at its distance.
        claim: The claim.
        alpha: The probability of refuting a true claim, in (0, 1).
        samples: The most rows, of either world.
        seconds: The longest time.
        adjacency: The neighboring relation of the claim.
        features: What is read from an outcome; None: what the first outcomes suggest.
        learners: Makers of further features.
        law: The declared law of the subject, where it is known.
        seed: 32 bytes for the coins, to be announced by their digest; None: from the system.
        ladder: Whether to look for the lower bound on epsilon too.
        progress: Told the state after every batch.

    Raises:
        DomainError: If an argument is outside its domain, or the claim promises nothing.
    """
    alpha, most = check.open_probability("alpha", alpha), check.count("samples", samples, least=1)
    curves = _claims(claim, pairs, adjacency)
    seed = _seed(seed)
    head = _header(subject, claim, curves, alpha, seed)
    arms = tuple(
        Arm(pair, curves[pair.distance], None if features is None else tuple(features), tuple(learners))
        for pair in pairs
        if pair.distance in curves
    )
    game = Game(arms, Chain.opened(seed, head), -math.log(alpha) + MARGIN)
    rungs, converse = Ladder.of(curves[1], alpha, climbed=ladder), [Converse(arm) for arm in arms]
    moments: list[Moment] = []
    ends = time.monotonic() + seconds
    # Of an interruption the rows in flight are lost before their coins are looked at; the verdict at that time stands.
    with suppress(KeyboardInterrupt, ExhaustedError):
        while game.samples < most and game.log_wealth < game.goal and time.monotonic() < ends:
            batch = game.bind(most - game.samples)
            arm, events = arms[batch.arm], converse[batch.arm]
            rungs.bind(arm)
            events.bind()
            outcomes = subject.draw(arm.pair, batch.coins)
            arm.features = arm.features or subject.features(outcomes)
            rungs.pay(outcomes, batch.coins)
            events.pay(outcomes, batch.coins)
            paid = game.pay(batch, outcomes)
            moments.append(_moment(game, batch, paid, rungs.lower))
            if progress is not None:
                progress(moments[-1])
    proof = written.sealed(head, seed, game.batches, samples=game.samples, log_wealth=game.log_wealth)
    refuted = game.log_wealth >= game.goal and bool(checked(written.text_of(proof))["refuted"])
    return Found(
        verdict=_verdict(refuted, law, claim, adjacency),
        epsilon=Bound(rungs.lower, math.inf),
        delta=rungs.delta,
        event=_event(game),
        samples=game.samples,
        log_wealth=game.log_wealth,
        tried=_tried(converse, alpha),
        unseen=min(unseen(arm.rows, alpha, arm.points[-1]) for arm in arms),
        certificate=proof,
        moments=tuple(moments),
        peak=game.peak,
        freshness=subject.fresh.value if isinstance(subject, Subject) else Fresh.CALL.value,
    )


def _tried(converse: Sequence[Converse], alpha: float) -> tuple[Tried, ...]:
    number = sum(len(each.events) for each in converse)
    return tuple(tried for each in converse for tried in each.excluded(alpha, number))


def _moment(game: Game, batch: Batch, paid: Paid, lower: float) -> Moment:
    factors = tuple((each.feature.name, own) for each, own in zip(batch.members, paid.factors, strict=True))
    return Moment(game.samples, game.log_wealth, lower, batch.arm, factors)


def _seed(seed: bytes | None) -> bytes:
    seed = os.urandom(32) if seed is None else seed
    if not isinstance(seed, bytes) or len(seed) != 32:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("seed", seed, "32 bytes, or None")
    return seed


def _header(
    subject: Source, claim: Composable, curves: dict[int, tuple[Point, ...]], alpha: float, seed: bytes
) -> dict[str, Any]:
    environment = {"python": platform.python_version(), "numpy": np.__version__}
    asked: dict[str, Any] = {
        "subject": subject.name,
        "claim": repr(claim),
        "claims": curves,
        "environment": environment,
    }
    return written.header(**asked, one_point=isinstance(claim, BlackBox), alpha=alpha, seed=seed)


def _claims(claim: Composable, pairs: Sequence[Pair], adjacency: Adjacency) -> dict[int, tuple[Point, ...]]:
    """The points of the claim at every distance of the pairs, and at 1."""
    if not pairs or not all(isinstance(pair, Pair) for pair in pairs):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("pairs", pairs, "at least one Pair of datasets")
    distances = sorted({1, *(pair.distance for pair in pairs)})
    found = {each: points(claim, distance=each, adjacency=adjacency) for each in distances}
    if not any(found[pair.distance] for pair in pairs):
        raise DomainError("pairs", distances, "a distance at which the claim says anything")
    return {distance: each for distance, each in found.items() if each}


def _verdict(refuted: bool, law: Composable | None, claim: Composable, adjacency: Adjacency) -> Verdict:
    if refuted:
        return Verdict.REFUTED
    if law is not None and certified(law, claim, adjacency=adjacency):
        return Verdict.CERTIFIED
    return Verdict.NOT_REFUTED


def _event(game: Game) -> str:
    """The cell with the largest stake of the heaviest member in the last batch with any."""
    for batch in reversed(game.batches):
        members = batch["stakes"]["members"]
        if members:
            heaviest = max(members, key=lambda member: member["weight"])
            world = max((0, 1), key=lambda coin: np.max(heaviest["g" if coin == 0 else "f"]))
            stakes = np.max(np.array(heaviest["f" if world else "g"]), axis=0)
            cells = Cells(tuple(float.fromhex(cut) for cut in heaviest["cuts"]))
            place = int(np.argmax(stakes))
            return f"{heaviest['feature']} {cells.words(place)}: too likely in world {world}"
    return "no event"
