"""Verifying: every hash, every decision, every balance, and the anchor that was kept elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from dpcompose.errors import DomainError, TamperedError
from dpcompose.ledger.entry import Head
from dpcompose.ledger.replay import DisagreementError, Replay, differences
from dpcompose.ledger.scope import AccountNode
from dpcompose.ledger.store import Snapshot
from dpcompose.ledger.text import each_once, encode

_FORMAT = "dpcompose ledger anchor 1"
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Anchor:
    """The heads of all chains at one moment: the name and the last entry of each top-level scope, in order of names."""

    heads: tuple[tuple[str, Head], ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Anchor:
        """The anchor of this moment."""
        return cls(tuple((root, snapshot.head(root)) for root in snapshot.roots()))

    @classmethod
    def read(cls, text: str) -> Anchor:
        """The anchor that `to_json` wrote.

        Raises:
            DomainError: The text is no anchor.
        """
        try:
            document = json.loads(text, object_pairs_hook=each_once)
            if document["format"] != _FORMAT:
                raise ValueError(document["format"])
            heads = {root: _head(**head) for root, head in document["heads"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DomainError("anchor", text, "the JSON text of an anchor, as `Anchor.to_json` writes it") from None
        return cls(tuple(sorted(heads.items())))

    def to_json(self) -> str:
        """The anchor as one line of JSON."""
        heads = {root: {"sequence": head.sequence, "hash": head.hash} for root, head in self.heads}
        return encode({"format": _FORMAT, "heads": heads})


def _head(sequence: object, hash: object) -> Head:
    """The head of a chain that has at least one entry: another would be found in every ledger, or in none."""
    if not (type(sequence) is int and sequence > 0 and isinstance(hash, str) and _HASH.fullmatch(hash)):
        raise ValueError(sequence, hash)
    return Head(sequence, hash)


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
    expected: dict[str, AccountNode] = {}
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
