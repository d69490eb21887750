"""The main loop of an audit: choose a pair, fix the bets, flip the coins, draw, settle, learn;
until the claim is refuted. And its replication, with the bets of a certificate.

A certificate proves that its counts refute the claim, but anybody can make up counts. Fresh draws
from the mechanism expose that. The bets of the certificate come first, unchanged, on new coins and
new outcomes. The first audit stopped when it was decided, and chance determines whether the same
number of new rows suffices. So betting goes on with bets learned from the new rows, until the
wealth reaches 1/alpha or the row limit is reached. All of it is a single wealth process of Theorem
2, so a true claim is refuted with probability at most alpha however long it runs.
"""

from __future__ import annotations

import math
import os
import platform
import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcompose import check
from dpcompose.audit import certificate as written
from dpcompose.audit.arm import Arm, Member
from dpcompose.audit.certificate import BOUND, Chain, Journal
from dpcompose.audit.check import MALFORMED, check as checked
from dpcompose.audit.claim import AuditResult, Moment, Pair, Point, Verdict, certified, points
from dpcompose.audit.feature import SEEN, Feature, Learner, Memory, named
from dpcompose.audit.game import MARGIN, Game, Scripted
from dpcompose.audit.learned import remade
from dpcompose.audit.lower import Ladder, tried_events, unseen
from dpcompose.audit.stakes import Cells, Stakes
from dpcompose.audit.subject import ExhaustedError, Fresh, Source, Subject
from dpcompose.audit.usual import usual_pairs
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.mechanisms import BlackBox
from dpcompose.pictured import Card
from dpcompose.values import Adjacency, Bound


def audit(
    subject: Source,
    pairs: Sequence[Pair] | None = None,
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
    resume: str | Path | None = None,
    progress: Callable[[Moment], None] | None = None,
) -> AuditResult:
    """Test a privacy claim by betting against it, and return the verdict with its certificate.

    Each round, a fair coin selects one dataset of a pair, the mechanism runs on it, and bets fixed
    beforehand guess the coin from the outcome. If the claim is true for these pairs, the verdict is
    `REFUTED` with probability at most alpha. This holds even if pairs, features, bets and the time
    to stop are chosen from earlier outcomes.

    Args:
        subject: The mechanism under audit.
        pairs: Pairs of datasets with their distances; None searches for pairs by `usual_pairs`.
        claim: The privacy claim: a mechanism or composition whose guarantee is tested.
        alpha: The probability of refuting a true claim, in (0, 1).
        samples: The largest number of outcomes (rows) to draw, over both datasets.
        seconds: The time limit. A batch that has begun is completed; the first one has 24 calls.
        adjacency: The neighboring relation of the claim.
        features: Functions that map an outcome to a number, to be bet on; None derives them from
            the first outcomes of each pair.
        learners: Algorithms that fit further features to past outcomes and their coins.
        law: The output distribution that the code is declared to implement; None if it is not
            declared.
        seed: 32 bytes from which the coins are derived, so that their digest can be published
            beforehand; None for a random seed.
        ladder: Whether to compute a lower confidence bound on epsilon as well.
        resume: The path of a journal. The audit is recorded in it, and continues from it if the
            file exists. `samples` then limits all runs together. Outcomes whose batch an
            interruption cut off are discarded before their coins are seen.
        progress: Called with the state after every batch.

    Raises:
        DomainError: If an argument is outside its domain, the claim bounds nothing, or no call
            answers and nearly all fail in the same way.
    """
    alpha, most = check.open_probability("alpha", alpha), check.count("samples", samples, least=1)
    points(claim, adjacency=adjacency)
    pairs = usual_pairs(subject, claim, adjacency=adjacency) if pairs is None else pairs
    curves, coins = _claims(claim, pairs, adjacency), _seed(seed)
    head = written.header(
        subject=subject.name, claim=repr(claim), claims=curves, one_point=isinstance(claim, BlackBox),
        alpha=alpha, seed=coins, pairs=pairs,
        environment={"python": platform.python_version(), "numpy": np.__version__},
    )  # fmt: skip
    journal = Journal(head, coins)
    if resume is not None:
        journal = Journal.opened(resume, head, coins, pairs, named=seed is not None)
    arms = tuple(
        Arm(
            pair, curves[pair.distance], None if features is None else tuple(features), tuple(learners),
            seen=Memory() if features is None else None,
            worth=math.log(len(pairs[: journal.pairs])), bounded=ladder,
        )
        for pair in pairs[: journal.pairs]
        if pair.distance in curves
    )  # fmt: skip
    rungs, chain = (
        Ladder.of(curves[1], alpha, climbed=ladder),
        Chain.opened(journal.seed, journal.header),
    )
    game = Game(arms, chain, -math.log(alpha) + MARGIN, rungs)
    try:
        _restored(game, journal, subject)
        play(game, journal, subject, most=most, ends=time.monotonic() + seconds, progress=progress)
    finally:
        journal.close()
    keeps = None if law is None else certified(law, claim, adjacency=adjacency)
    if game.silent and game.log_wealth < game.goal:
        calls = f"{game.samples:,} calls, none of which answers ({game.silent})"
        accepted = f"a mechanism that answers; nothing was audited: {calls}"
        raise DomainError("subject", subject.name, accepted)
    return _result(game, journal, subject, alpha, keeps)


def _result(
    game: Game, journal: Journal, subject: Source, alpha: float, keeps: bool | None
) -> AuditResult:
    """The result of a finished game; `keeps` is whether the declared law is certified to satisfy
    the claim, None if no law is declared.
    """
    game.ladder.climb(game.arms)
    proof = written.sealed(
        journal.header, journal.seed, game.batches, log_wealth=game.log_wealth, repeated=game.repeated(subject),
    )  # fmt: skip
    refuted = game.log_wealth >= game.goal and bool(checked(written.text_of(proof))["refuted"])
    return AuditResult(
        verdict=Verdict.REFUTED if refuted else Verdict.CERTIFIED if keeps else Verdict.NOT_REFUTED,
        epsilon=Bound(game.ladder.lower, math.inf),
        delta=game.ladder.delta,
        event=game.event,
        description=LAWS[keeps, keeps is True and refuted],
        samples=game.samples,
        log_wealth=game.log_wealth,
        tried=tried_events(game.arms, alpha),
        unseen=min(unseen(arm.rows, alpha, arm.points[-1]) for arm in game.arms),
        certificate=proof,
        moments=tuple(game.moments),
        peak=game.peak,
        unread=tuple(
            f"{name} ({most:,} in one call)" for name, most in sorted(game.unread.items())
        ),
        freshness=subject.fresh.value if isinstance(subject, Subject) else Fresh.CALL.value,
        repeated=refuted and game.repeated(subject),
    )


KEPT = "the declared law keeps the claim"
LAWS: dict[tuple[bool | None, bool], str] = {
    (None, False): "",
    (False, False): "the declared law is not certified to keep the claim",
    (True, True): f"{KEPT}, and the code does not: one of them, or dpcompose, is wrong",
    (True, False): f"{KEPT}; of the law, not of the code that draws from it",
}
"""Remarks on the declared law, by whether it satisfies the claim and the claim is refuted."""


def _restored(game: Game, journal: Journal, subject: Source) -> None:
    """Replay the batches of earlier runs from the journal; DomainError if they belong to another
    audit.
    """
    try:
        for entry in journal.entries:
            game.replay(entry, subject)
        game.lost = journal.lost
    except MALFORMED as error:
        raise DomainError(
            "resume", repr(error), "a journal of an audit with the same arguments"
        ) from None


def play(
    game: Game, journal: Journal, subject: Source, *, most: int, ends: float,
    progress: Callable[[Moment], None] | None = None,
) -> None:  # fmt: skip
    """Run batches until the claim is refuted or a limit is reached.

    In each batch the bets are fixed before the coins are flipped, and each result is written to the
    journal before it is reported.

    Args:
        game: The state of the audit; it is updated.
        journal: Where each batch is recorded.
        subject: The mechanism that draws the outcomes.
        most: The largest total number of rows.
        ends: The deadline, on the clock of `time.monotonic`.
        progress: Called with the state after each batch.
    """
    each = 0.0  # seconds for each row in the last batch
    # An interruption discards the outcomes of the current batch before their coins are used; the
    # verdict at that time is valid.
    with suppress(KeyboardInterrupt, ExhaustedError):
        while (
            game.samples < most
            and game.log_wealth < game.goal
            and (start := time.monotonic()) < ends
        ):
            rows = most - game.samples
            batch = game.bind(
                rows if (ends - start) >= rows * each else max(1, int((ends - start) / each))
            )
            journal.write(BOUND)
            outcomes = subject.draw(game.arms[batch.arm].pair, batch.coins)
            each = (time.monotonic() - start) / len(batch.coins)
            with _undisturbed():
                journal.write(game.pay(batch, outcomes, record=journal.recorded))
            if progress is not None:
                progress(game.moments[-1])


@contextmanager
def _undisturbed() -> Generator[None]:
    """Block Ctrl-C between settling a batch and writing its line to the journal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _seed(seed: bytes | None) -> bytes:
    seed = os.urandom(32) if seed is None else seed
    if not isinstance(seed, bytes) or len(seed) != 32:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("seed", seed, "32 bytes, or None")
    return seed


def _claims(
    claim: Composable, pairs: Sequence[Pair], adjacency: Adjacency
) -> dict[int, tuple[Point, ...]]:
    """The (epsilon, delta) points of the claim at each distance of the pairs, and at distance 1.

    Raises DomainError if no pair is given, or the claim bounds nothing at any of the distances.
    """
    if not pairs or not all(isinstance(pair, Pair) for pair in pairs):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("pairs", pairs, "at least one Pair of datasets")
    distances = sorted({1, *(pair.distance for pair in pairs)})
    curves = {each: points(claim, distance=each, adjacency=adjacency) for each in distances}
    if not any(curves[pair.distance] for pair in pairs):
        accepted = "a distance at which the claim has a finite epsilon and a delta below 1"
        raise DomainError("pairs", distances, accepted)
    return {distance: curve for distance, curve in curves.items() if curve}


TIMES, LEAST = 10, 4096
"""The default row limit: TIMES rows for each row of the certificate, and at least LEAST."""


@dataclass(frozen=True)
class Repeated(Card):
    """The result of betting again on newly drawn outcomes.

    Args:
        log_wealth: Natural logarithm of the final wealth; betting began with a wealth of 1.
        samples: The number of rows (outcomes) drawn and bet on.
        refuted: Whether the wealth reached 1/alpha, which refutes the claim again.
        repeated: Whether this refutation rests on recurring answers of calls that were not
            isolated.
    """

    log_wealth: float
    samples: int
    refuted: bool
    repeated: bool = False


def again(
    certificate: dict[str, Any], subject: Source, pairs: Sequence[Pair] | None = None, *,
    features: Sequence[Feature] = (), samples: int | None = None, seconds: float = math.inf,
) -> Repeated:  # fmt: skip
    """Place the bets of a certificate on newly drawn outcomes, then continue with bets learned from
    them.

    Args:
        certificate: An audit certificate as a dictionary, already validated by `check`.
        subject: The mechanism that draws the new outcomes.
        pairs: The dataset pairs of the audit, in the same order; None takes them from the
            certificate.
        features: User-defined features on which the audit bet. Built-in and learned features are
            restored from the certificate.
        samples: The largest number of rows to draw; None for ten times the rows of the certificate,
            and at least 4,096.
        seconds: The time limit. A batch that has begun is completed.

    Returns:
        The final wealth, the number of rows drawn, and whether they refute the claim again.

    Raises:
        DomainError: If a pair or a feature of the certificate is missing, or `samples` is not an
            integer of at least 1.
    """
    header, ends = certificate["header"], time.monotonic() + seconds
    if pairs is None:
        try:
            pairs = written.pairs_of(header)
        except MALFORMED as error:
            accepted = "pairs of datasets as an audit writes them into a certificate"
            raise DomainError("pairs", repr(error), accepted) from None
        if not pairs:
            accepted = "the pairs of the audit, which this certificate does not contain"
            raise DomainError("pairs", None, accepted)
    most = (
        max(LEAST, TIMES * certificate["samples"])
        if samples is None
        else check.count("samples", samples, least=1)
    )
    claims = {claim["distance"]: tuple(map(_point, claim["points"])) for claim in header["claims"]}
    own = {each.name: each for each in features}
    arms, script = dict[int, Arm](), list[Scripted]()
    for batch in certificate["batches"]:
        stakes = batch["stakes"]
        index: int = stakes["pair"]
        pair = pairs[index] if index < len(pairs) else None
        if pair is None or pair.distance != stakes["distance"]:
            raise DomainError("pairs", index, "the pairs of the audit, in their order")
        if stakes["members"]:
            empty = Arm(pair, claims[pair.distance], (), seen=Memory(), bounded=False)
            arm = arms.setdefault(index, empty)
            members = tuple(_member(each, arm, own) for each in stakes["members"])
            latest = [*(arm.features or ()), *(member.feature for member in members)]
            named_ones = {each.name: each for each in latest if each.memory is None}
            arm.features = tuple(named_ones.values())
            script.append(([*arms].index(index), stakes["rows"], members))
    if not script:
        return Repeated(0.0, 0, refuted=False)
    alpha, seed = float(header["alpha"]), os.urandom(32)
    ladder, goal = Ladder.of(claims[1], alpha, climbed=False), -math.log(alpha)
    game = Game(tuple(arms.values()), Chain.opened(seed, header), goal, ladder, script=script)
    play(game, Journal(header, seed), subject, most=most, ends=ends)
    return Repeated(game.log_wealth, game.samples, game.log_wealth >= goal, game.repeated(subject))


def _point(written: dict[str, str]) -> Point:
    return Point(float.fromhex(written["epsilon"]), float.fromhex(written["delta"]))


def _member(written: dict[str, Any], arm: Arm, own: dict[str, Feature]) -> Member:
    name = written["feature"]
    if "made" in written:
        feature = remade(name, written["made"])
    elif name == SEEN and arm.seen is not None:
        feature = arm.seen.feature
    else:
        feature = own.get(name) or named(name)
    cells = Cells(tuple(float.fromhex(cut) for cut in written["cuts"]))
    f, g = (np.array(written[side], dtype=np.int64) for side in ("f", "g"))
    return Member(feature, cells, written["weight"], Stakes(f, g))
