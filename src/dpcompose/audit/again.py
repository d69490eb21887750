"""Replication of a refutation: the bets of a certificate are placed again on newly drawn outcomes.

A certificate proves that its counts refute the claim, but anybody can make up counts. Fresh draws
from the mechanism expose that.

The bets of the certificate come first, unchanged, on new coins and new outcomes. The first audit
stopped when it was decided, and chance determines whether the same number of new rows suffices. So
betting goes on with bets learned from the new rows, until the wealth reaches 1/alpha or the row
limit is reached. All of it is a single wealth process of Theorem 2, so a true claim is refuted with
probability at most alpha however long it runs.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose import check
from dpcompose.audit.arm import Arm
from dpcompose.audit.audit import play
from dpcompose.audit.certificate import Chain, pairs_of
from dpcompose.audit.claim import Pair, Point
from dpcompose.audit.feature import Feature, named, seen_before
from dpcompose.audit.game import Game
from dpcompose.audit.journal import Journal
from dpcompose.audit.learned import remade
from dpcompose.audit.lower import Ladder
from dpcompose.audit.outcome import Outcomes
from dpcompose.audit.stakes import Cells, Stakes
from dpcompose.audit.subject import Source
from dpcompose.audit.tried import Converse
from dpcompose.audit.wealth import Member, step
from dpcompose.errors import DomainError

TIMES, LEAST = 10, 4096
"""The default row limit: TIMES rows for each row of the certificate, and at least LEAST."""


@dataclass(frozen=True)
class Repeated:
    """The result of betting again on newly drawn outcomes.

    Args:
        log_wealth: Natural logarithm of the final wealth; betting began with a wealth of 1.
        samples: The number of rows (outcomes) drawn and bet on.
        refuted: Whether the wealth reached 1/alpha, which refutes the claim again.
    """

    log_wealth: float
    samples: int
    refuted: bool


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
            pairs = pairs_of(header)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DomainError(
                "pairs", repr(error), "pairs of datasets as an audit writes them into a certificate"
            ) from None
        if not pairs:
            raise DomainError(
                "pairs", None, "the pairs of the audit, which this certificate does not contain"
            )
    most = (
        max(LEAST, TIMES * certificate["samples"])
        if samples is None
        else check.count("samples", samples, least=1)
    )
    claims = {claim["distance"]: tuple(map(_point, claim["points"])) for claim in header["claims"]}
    alpha, seed = float(header["alpha"]), os.urandom(32)

    chain, goal, wealth, used = Chain.opened(seed, header), -math.log(alpha), 0.0, 0
    drawn: dict[int, list[tuple[Outcomes, NDArray[np.uint8]]]] = {}
    bet_on: dict[int, dict[str, Feature]] = {}
    seen: dict[int, Feature] = {}
    for batch in certificate["batches"]:
        bound = batch["stakes"]
        if not bound["members"] or wealth >= goal or used >= most or time.monotonic() >= ends:
            continue
        place: int = bound["pair"]
        if not place < len(pairs) or pairs[place].distance != bound["distance"]:
            raise DomainError("pairs", place, "the pairs of the audit, in their order")
        coins = chain.coins(bound, min(bound["rows"], most - used))
        rows = subject.draw(pairs[place], coins)
        memory = seen.setdefault(place, seen_before())
        known = {each.name: each for each in (*subject.features(rows), *features, memory)}
        members = [_member(each, known) for each in bound["members"]]
        places = [member.cells.index(member.feature.score(rows)) for member in members]
        paid = step(wealth, members, claims[bound["distance"]], coins, places, goal)
        wealth, used, chain = paid.log_wealth, used + paid.rows, chain.after(bound, paid.rows)
        drawn.setdefault(place, []).append((rows[: paid.rows], coins[: paid.rows]))
        if memory.memory is not None:
            memory.memory.learn(rows[: paid.rows], coins[: paid.rows])
        bet_on.setdefault(place, {}).update(
            {member.feature.name: member.feature for member in members}
        )
    if not drawn or wealth >= goal:
        return Repeated(wealth, used, wealth >= goal)
    arms = tuple(
        _taught(pairs[place], claims, tuple(bet_on[place].values()), drawn[place])
        for place in drawn
    )
    ladder, converse = Ladder.of(arms, claims[1], alpha, climbed=False), tuple(map(Converse, arms))
    game = Game(arms, chain, goal, ladder, converse, log_wealth=wealth, samples=used)
    play(game, Journal(header, seed), subject, most=most, ends=ends)
    return Repeated(game.log_wealth, game.samples, game.log_wealth >= goal)


def _taught(
    pair: Pair, claims: dict[int, tuple[Point, ...]], features: tuple[Feature, ...],
    drawn: Sequence[tuple[Outcomes, NDArray[np.uint8]]],
) -> Arm:  # fmt: skip
    """The past of one pair: the new rows, from which later bets on the certificate's features are
    set.
    """
    own = tuple(each for each in features if each.memory is None)
    arm = Arm(pair, claims[pair.distance], own, seen=seen_before() if own != features else None)
    for rows, coins in drawn:
        arm.learn(rows, coins)
    return arm


def _point(written: dict[str, str]) -> Point:
    return Point(float.fromhex(written["epsilon"]), float.fromhex(written["delta"]))


def _member(written: dict[str, Any], features: dict[str, Feature]) -> Member:
    name = written["feature"]
    feature = (
        remade(name, written["made"]) if "made" in written else features.get(name) or named(name)
    )
    cells = Cells(tuple(float.fromhex(cut) for cut in written["cuts"]))
    f, g = (np.array(written[side], dtype=np.int64) for side in ("f", "g"))
    return Member(feature, cells, written["weight"], Stakes(f, g))
