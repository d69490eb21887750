"""Evidence for others: keys announced in the log, proofs of one entry, and proofs that a later log holds an earlier one."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from dpcompose.errors import DomainError, EvidenceError, TamperedError
from dpcompose.ledger.checkpoint import (
    HASH_SIZE,
    Checkpoint,
    ProofError,
    VerifierKey,
    base64_bytes,
    consistency_path,
    inclusion_path,
    key_path,
    leaf_hash,
    read_checkpoints,
    root_from_inclusion,
    root_hash,
    roots_from_consistency,
)
from dpcompose.ledger.entry import Entry
from dpcompose.ledger.ledger import Ledger
from dpcompose.ledger.scope import Kind
from dpcompose.ledger.store import Snapshot
from dpcompose.ledger.text import line_of_text


def announce_key(ledger: Ledger, root: str, key: VerifierKey, *, actor: str) -> str:
    """Record in the log that this key signs its checkpoints; the path of the scope that says so.

    Whoever has a checkpoint by an earlier key, later than this entry, has the new key from the log. The record can be
    made by anybody who can write to the ledger, so it makes a key known and never trusted.

    Raises:
        LedgerError: See `Ledger.scope`.
    """
    path = key_path(root, key)
    ledger.scope(
        path,
        kind=Kind.FILTER,
        description={"note": {"checkpoint_key": key.text}},
        actor=line_of_text("actor", actor),
    )
    return path


def revoke_key(ledger: Ledger, root: str, key: VerifierKey, *, actor: str) -> None:
    """Record in the log that this key signs no more: `verify` takes no checkpoint of later entries by it.

    Raises:
        UnknownScopeError: The key was never announced there.
    """
    path = key_path(root, key)
    ledger.close_scope(path, actor=line_of_text("actor", actor), key=f"close {path}")


INCLUSION, CONSISTENCY = "c2sp.org/tlog-proof@v1", "dpcompose.ledger/consistency@v1"
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})", re.ASCII)


@dataclass(frozen=True)
class Evidence:
    """A proof that holds.

    Args:
        checkpoint: The checkpoint that it is about; of two the later one.
        entry: The entry that is under it; None for a proof about two checkpoints.
        earlier: The checkpoint from which it goes on; None for a proof about an entry.
    """

    checkpoint: Checkpoint
    entry: Entry | None = None
    earlier: Checkpoint | None = None


def inclusion_proof(
    snapshot: Snapshot, sequence: int, checkpoint: Checkpoint, progress: Callable[[], object] = bool
) -> str:
    """The text that shows, to who has the signer's key, that an entry is under the checkpoint.

    Args:
        snapshot: The log.
        sequence: The number of the entry.
        checkpoint: The signed one.
        progress: Called before each entry is read; an error of it ends the proof.

    Raises:
        DomainError: The checkpoint does not reach that entry.
        TamperedError: The log is not the one that was signed.
    """
    if not (type(sequence) is int and 1 <= sequence <= checkpoint.size):
        raise DomainError(
            "entry",
            sequence,
            f"an entry of {checkpoint.root!r} under the checkpoint, 1 to {checkpoint.size}",
        )
    leaves = _leaves(snapshot, checkpoint, progress)
    (record,) = snapshot.records(checkpoint.root, after=sequence - 1, limit=1)
    path = _lines(inclusion_path(leaves, sequence - 1))
    extra = b64encode(record.body.encode()).decode()
    return f"{INCLUSION}\nextra {extra}\nindex {sequence - 1}\n{path}\n{checkpoint.note}"


def consistency_proof(snapshot: Snapshot, earlier: Checkpoint, later: Checkpoint) -> str:
    """The text that shows that nothing under the earlier checkpoint was changed or taken away before the later one.

    Raises:
        DomainError: They are of two top-level scopes, or the first is not the earlier one.
        TamperedError: The log is not the one that was signed.
    """
    if not (earlier.root == later.root and earlier.size <= later.size):
        said = f"{earlier.root} with {earlier.size} entries"
        raise DomainError(
            "earlier",
            said,
            f"an earlier checkpoint of {later.root!r}, of at most {later.size} entries",
        )
    leaves = _leaves(snapshot, later)
    if root_hash(leaves[: earlier.size]) != earlier.root_hash:
        raise _other_log(earlier)
    path = _lines(consistency_path(leaves, earlier.size))
    return f"{CONSISTENCY}\n{path}\n{earlier.note}{later.note}"


def _leaves(
    snapshot: Snapshot, checkpoint: Checkpoint, progress: Callable[[], object] = bool
) -> list[bytes]:
    leaves: list[bytes] = []
    for record in snapshot.records(checkpoint.root, after=0, limit=checkpoint.size):
        progress()
        leaves.append(leaf_hash(record.body))
    if len(leaves) < checkpoint.size or root_hash(leaves) != checkpoint.root_hash:
        raise _other_log(checkpoint)
    return leaves


def _other_log(checkpoint: Checkpoint) -> TamperedError:
    return TamperedError(
        [f"{checkpoint.root}: its first {checkpoint.size} entries are not those that were signed"]
    )


def _lines(hashes: Sequence[bytes]) -> str:
    return "".join(f"{b64encode(each).decode()}\n" for each in hashes)


def check_proof(text: str, keys: Sequence[VerifierKey]) -> Evidence:
    """The evidence in a proof. No ledger is needed, and nothing of the text is believed but what the keys vouch for.

    Args:
        text: As `inclusion_proof` or `consistency_proof` wrote it.
        keys: Those of the signers that are trusted.

    Raises:
        EvidenceError: It shows nothing: a signature is missing or wrong, or the hashes do not fit.
    """
    head, found, notes = text.partition("\n\n")
    kind, *lines = head.split("\n")
    if kind not in (INCLUSION, CONSISTENCY) or not found:
        raise EvidenceError("it is no proof that `dpcompose ledger evidence prove` wrote")
    checkpoints, check = (
        read_checkpoints(notes, keys),
        _included if kind == INCLUSION else _consistent,
    )
    try:
        return check(lines, checkpoints)
    except ProofError as error:
        raise EvidenceError(str(error)) from None


def _included(lines: Sequence[str], checkpoints: Sequence[Checkpoint]) -> Evidence:
    extra, index, *hashes = lines if len(lines) > 1 else ("", "")
    found, (checkpoint, *more) = _INDEX.fullmatch(index), checkpoints
    if more or not extra.startswith("extra ") or found is None:
        raise EvidenceError(
            "the entry, its number and one checkpoint are not there as a proof writes them"
        )
    try:
        body = base64_bytes(extra.removeprefix("extra ")).decode()
        entry = Entry(body, sha256(body.encode()).hexdigest())
        place = entry.root, entry.sequence
    except (ValueError, TamperedError):
        raise EvidenceError("the entry cannot be read") from None
    if place != (checkpoint.root, int(found[1]) + 1) or not place[1] <= checkpoint.size:
        raise EvidenceError("the entry is not the one of that number")
    root = root_from_inclusion(leaf_hash(body), place[1] - 1, checkpoint.size, _hashes(hashes))
    if root != checkpoint.root_hash:
        raise EvidenceError("the entry is not under the root that was signed")
    return Evidence(checkpoint, entry=entry)


def _consistent(lines: Sequence[str], checkpoints: Sequence[Checkpoint]) -> Evidence:
    if len(checkpoints) != 2:
        raise EvidenceError("a proof about two checkpoints holds two, the earlier one first")
    earlier, later = checkpoints
    if earlier.root != later.root or not earlier.size <= later.size:
        raise EvidenceError("the checkpoints are of two top-level scopes, or not in order")
    roots = roots_from_consistency(earlier.root_hash, earlier.size, later.size, _hashes(lines))
    if roots != (earlier.root_hash, later.root_hash):
        raise EvidenceError(
            f"the later checkpoint of {later.root!r} does not go on from the earlier one: a forked log"
        )
    return Evidence(later, earlier=earlier)


def _hashes(lines: Sequence[str]) -> list[bytes]:
    try:
        found = [base64_bytes(line) for line in lines]
    except ValueError:
        found = [b""]
    if any(len(each) != HASH_SIZE for each in found):
        raise EvidenceError("its hashes cannot be read")
    return found
