"""Keys announced in the log, and proofs: that an entry is in a signed log, and that a later log extends an earlier one."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from dpcompose import check
from dpcompose.errors import DomainError, EvidenceError, TamperedError
from dpcompose.ledger.checkpoint import Checkpoint, TiledTree, VerifierKey, base64_bytes, key_path
from dpcompose.ledger.entry import Entry
from dpcompose.ledger.ledger import Ledger
from dpcompose.ledger.merkle import (
    HASH_SIZE,
    ProofError,
    consistency_ranges,
    inclusion_ranges,
    leaf_hash,
    root_from_inclusion,
    roots_from_consistency,
)
from dpcompose.ledger.scope import Kind
from dpcompose.ledger.tables import LedgerTables

INCLUSION, CONSISTENCY = "c2sp.org/tlog-proof@v1", "dpcompose.ledger/consistency@v1"
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})", re.ASCII)


@dataclass(frozen=True)
class Evidence:
    """The facts that a valid proof shows.

    Args:
        checkpoint: The checkpoint that the proof is about; of two, the later one.
        entry: The entry that the checkpoint covers; None for a proof about two checkpoints.
        earlier: The checkpoint that `checkpoint` extends; None for a proof about an entry.
    """

    checkpoint: Checkpoint
    entry: Entry | None = None
    earlier: Checkpoint | None = None

    @staticmethod
    def announce_key(ledger: Ledger, root: str, key: VerifierKey, *, actor: str) -> str:
        """Record in the log of `root` that a key signs its checkpoints; returns the path of the scope that records it.

        Who trusts a checkpoint that an earlier key signed after this entry reads the new key from the log. Anybody who
        can write to the ledger can write this entry, so it publishes a key and does not make it trusted.

        Raises:
            LedgerError: See `Ledger.scope`.
        """
        path = key_path(root, key)
        ledger.scope(
            path,
            kind=Kind.FILTER,
            description={"note": {"checkpoint_key": key.text}},
            actor=check.line("actor", actor),
        )
        return path

    @staticmethod
    def revoke_key(ledger: Ledger, root: str, key: VerifierKey, *, actor: str) -> None:
        """Record in the log of `root` that a key signs no more: `verify` refuses its checkpoints of later entries.

        Raises:
            UnknownScopeError: The key was never announced there.
        """
        path = key_path(root, key)
        ledger.close_scope(path, actor=check.line("actor", actor), key=f"close {path}")

    @staticmethod
    def prove_inclusion(snapshot: LedgerTables, sequence: int, checkpoint: Checkpoint) -> str:
        """The text that shows, to who has the signer's key, that an entry is under the checkpoint.

        Args:
            snapshot: The log.
            sequence: The number of the entry.
            checkpoint: The signed one.

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
        tree = _tree(snapshot, checkpoint)
        (record,) = snapshot.records(checkpoint.root, after=sequence - 1, limit=1)
        path = tree.hashes(inclusion_ranges(sequence - 1, 0, checkpoint.size))
        leaf = leaf_hash(record.body)
        if root_from_inclusion(leaf, sequence - 1, checkpoint.size, path) != checkpoint.root_hash:
            raise _other_log(checkpoint)  # the entry, or a tile, is not what was signed
        extra = b64encode(record.body.encode()).decode()
        return (
            f"{INCLUSION}\nextra {extra}\nindex {sequence - 1}\n{_lines(path)}\n{checkpoint.note}"
        )

    @staticmethod
    def prove_consistency(snapshot: LedgerTables, earlier: Checkpoint, later: Checkpoint) -> str:
        """The text that shows that nothing under the earlier checkpoint was changed or taken away before the later one.

        Raises:
            DomainError: They are of two top-level scopes, or the first is not the earlier one.
            TamperedError: The log is not the one that was signed.
        """
        if not (earlier.root == later.root and earlier.size <= later.size):
            checkpoint = f"{earlier.root} with {earlier.size} entries"
            raise DomainError(
                "earlier",
                checkpoint,
                f"an earlier checkpoint of {later.root!r}, of at most {later.size} entries",
            )
        tree = _tree(snapshot, later)
        if tree.hashes([(0, earlier.size)]) != [earlier.root_hash]:
            raise _other_log(earlier)
        path = _lines(tree.hashes(consistency_ranges(earlier.size, 0, later.size)))
        return f"{CONSISTENCY}\n{path}\n{earlier.note}{later.note}"

    @classmethod
    def read(cls, text: str, keys: Sequence[VerifierKey]) -> Evidence:
        """The evidence in a proof. It needs no ledger, and trusts nothing in the text but what one of the keys signed.

        Args:
            text: As `prove_inclusion` or `prove_consistency` wrote it.
            keys: Those of the signers that are trusted.

        Raises:
            EvidenceError: The proof does not hold: a signature is missing or wrong, or the hashes do not fit.
        """
        head, separator, notes = text.partition("\n\n")
        kind, *lines = head.split("\n")
        if kind not in (INCLUSION, CONSISTENCY) or not separator:
            raise EvidenceError("it is no proof that `dpcompose ledger evidence prove` wrote")
        checkpoints, checked = (
            Checkpoint.read_all(notes, keys),
            _included if kind == INCLUSION else _consistent,
        )
        try:
            return checked(lines, checkpoints)
        except ProofError as error:
            raise EvidenceError(str(error)) from None


def _tree(snapshot: LedgerTables, checkpoint: Checkpoint) -> TiledTree:
    tree, size = TiledTree(snapshot, checkpoint.root), checkpoint.size
    whole = snapshot.head(checkpoint.root).sequence >= size
    if not (whole and tree.hashes([(0, size)]) == [checkpoint.root_hash]):
        raise _other_log(checkpoint)
    return tree


def _other_log(checkpoint: Checkpoint) -> TamperedError:
    return TamperedError(
        [f"{checkpoint.root}: its first {checkpoint.size} entries are not those that were signed"]
    )


def _lines(hashes: Sequence[bytes]) -> str:
    return "".join(f"{b64encode(each).decode()}\n" for each in hashes)


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
        position = entry.root, entry.sequence
    except (ValueError, TamperedError):
        raise EvidenceError("the entry cannot be read") from None
    if position != (checkpoint.root, int(found[1]) + 1) or not position[1] <= checkpoint.size:
        raise EvidenceError("the entry is not the one of that number")
    root = root_from_inclusion(leaf_hash(body), position[1] - 1, checkpoint.size, _hashes(hashes))
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
