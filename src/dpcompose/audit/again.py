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

from dpcompose import check
from dpcompose.audit.arm import Arm
from dpcompose.audit.audit import play
from dpcompose.audit.certificate import Chain, pairs_of
from dpcompose.audit.claim import Pair, Point
from dpcompose.audit.feature import SEEN, Feature, Memory, named
from dpcompose.audit.game import Game, Scripted
from dpcompose.audit.journal import Journal
from dpcompose.audit.learned import remade
from dpcompose.audit.lower import Ladder
from dpcompose.audit.outcome import Outcomes, Reals
from dpcompose.audit.stakes import Cells, Stakes
from dpcompose.audit.subject import Samples, Source, Subject
from dpcompose.audit.wealth import Member
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
            members = tuple(_member(each, arm, own, subject) for each in stakes["members"])
            arm.features = _without_doubles(arm.features or (), members)
            script.append(([*arms].index(index), stakes["rows"], members))
    if not script:
        return Repeated(0.0, 0, refuted=False)
    alpha, seed = float(header["alpha"]), os.urandom(32)
    ladder, goal = Ladder.of(claims[1], alpha, climbed=False), -math.log(alpha)
    game = Game(tuple(arms.values()), Chain.opened(seed, header), goal, ladder, script=script)
    play(game, Journal(header, seed), subject, most=most, ends=ends)
    return Repeated(game.log_wealth, game.samples, game.log_wealth >= goal, game.repeated(subject))


def _without_doubles(features: Sequence[Feature], members: Sequence[Member]) -> tuple[Feature, ...]:
    """The features of a pair with those of further bets; of one name, the latest."""
    latest = {each.name: each for each in (*features, *(member.feature for member in members))}
    return tuple(each for each in latest.values() if each.memory is None)


def _point(written: dict[str, str]) -> Point:
    return Point(float.fromhex(written["epsilon"]), float.fromhex(written["delta"]))


def _member(written: dict[str, Any], arm: Arm, own: dict[str, Feature], subject: Source) -> Member:
    name = written["feature"]
    if "made" in written:
        feature = remade(name, written["made"])
    elif name == SEEN and arm.seen is not None:
        feature = arm.seen.feature
    else:
        feature = own.get(name) or _restored(name, subject)
    cells = Cells(tuple(float.fromhex(cut) for cut in written["cuts"]))
    f, g = (np.array(written[side], dtype=np.int64) for side in ("f", "g"))
    return Member(feature, cells, written["weight"], Stakes(f, g))


def _restored(name: str, subject: Source) -> Feature:
    """The feature of this name, built in or one that the subject has for its outcomes."""
    if isinstance(subject, Subject | Samples):
        return named(name)

    def score(outcomes: Outcomes) -> Reals:
        features = {each.name: each for each in subject.features(outcomes)}
        return (features.get(name) or named(name)).score(outcomes)

    return Feature(name, score)
