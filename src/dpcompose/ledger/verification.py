"""Verifying: every hash, every decision, every balance, and the anchor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpcompose.errors import TamperedError
from dpcompose.ledger.anchor import Anchor
from dpcompose.ledger.entry import Head
from dpcompose.ledger.replay import DisagreementError, Replay, differences
from dpcompose.ledger.scope import Node
from dpcompose.ledger.store import Snapshot

Progress = Callable[[str, int, int], None]
"""Told what is being done, after how many of how many steps."""

STEP = 10_000


@dataclass(frozen=True)
class Verification:
    """A ledger that agrees with itself.

    Args:
        entries: How many entries were followed.
        scopes: How many scopes have the balance that their entries give.
        anchor: The heads that were reached; keep them elsewhere.
        anchored: Whether an earlier anchor was given, and found again.
    """

    entries: int
    scopes: int
    anchor: Anchor
    anchored: bool


def verify(snapshot: Snapshot, *, anchor: Anchor | None, progress: Progress | None) -> Verification:
    """Follow every entry; raise TamperedError with everything that disagrees."""
    try:
        return _verified(snapshot, anchor, progress)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A value of another type where text or a number was written: only a change from outside puts it there.
        raise TamperedError([f"a stored value cannot be read ({type(error).__name__}: {error})"]) from error


def _verified(snapshot: Snapshot, anchor: Anchor | None, progress: Progress | None) -> Verification:
    problems = list(snapshot.damage())
    total = sum(snapshot.count(root) for root in snapshot.roots())
    expected: dict[str, Node] = {}
    heads: list[tuple[str, Head]] = []
    done = 0
    for root in snapshot.roots():
        wanted = {} if anchor is None else dict(anchor.heads)
        replay, found = _followed(snapshot, root, wanted.get(root), progress, done, total)
        problems += found
        expected |= replay.balances
        heads.append((root, replay.last))
        done += replay.last.sequence
    if not problems:
        problems += differences(expected, snapshot.nodes())
    if anchor is not None:
        missing = {root for root, _ in anchor.heads} - {root for root, _ in heads}
        problems += [f"{root}: gone, though the anchor has it" for root in sorted(missing)]
    if problems:
        raise TamperedError(problems)
    return Verification(done, len(expected), Anchor(tuple(heads)), anchor is not None)


def _followed(
    snapshot: Snapshot, root: str, wanted: Head | None, progress: Progress | None, done: int, total: int
) -> tuple[Replay, list[str]]:
    """The chain of one top-level scope, and what is wrong with it, up to the first thing."""
    replay = Replay(root)
    for record in snapshot.records(root, after=0, limit=None):
        if progress is not None and replay.last.sequence % STEP == 0:
            progress(f"verifying {root}", done + replay.last.sequence, total)
        try:
            replay.follow(record)
        except DisagreementError as disagreement:
            return replay, [f"{root}: entry {record.sequence} {disagreement}"]
        if wanted is not None and wanted.sequence == record.sequence and wanted.hash != record.hash:
            return replay, [f"{root}: entry {record.sequence} is not the one that the anchor has"]
    if wanted is not None and replay.last.sequence < wanted.sequence:
        return replay, [f"{root}: ends at entry {replay.last.sequence}, the anchor has {wanted.sequence}"]
    return replay, []
