"""Checkpoints: the Merkle root of a chain at one size, signed by the keeper.

A checkpoint is a signed note of three lines, as transparency logs write them (https://c2sp.org/tlog-checkpoint): the
origin (the signer's name and the top-level scope), the number of entries, and the root.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from dpcompose.errors import DomainError, EvidenceError
from dpcompose.ledger.merkle import HASH_SIZE, Frontier, leaf_hash
from dpcompose.ledger.scope import root_of
from dpcompose.ledger.signed_note import SigningKey, VerifierKey, base64_bytes, opened_note
from dpcompose.ledger.store import Snapshot
from dpcompose.ledger.text import scope_path

_NOTES = re.compile(r"(?:[^\n]+\n){3,}\n(?:\u2014 [^\n]*\n)+")
_NUMBER = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True)
class Checkpoint:
    """A signed root.

    Args:
        root: The top-level scope.
        size: How many of its entries are under the root.
        root_hash: 32 bytes.
        signer: The key that signed.
        note: The whole, as text.
    """

    root: str
    size: int
    root_hash: bytes
    signer: VerifierKey
    note: str

    @classmethod
    def sign(cls, snapshot: Snapshot, root: str, key: SigningKey) -> Checkpoint:
        """A checkpoint of all entries of one top-level scope, now.

        Raises:
            DomainError: The scope is no top-level one, or has no entries.
        """
        scope_path(root)
        tree = Frontier()
        for record in snapshot.records(root, after=0, limit=None):
            tree.add(leaf_hash(record.body))
        if not tree.size:
            raise DomainError(
                "scope",
                root,
                f"one of the top-level scopes: {', '.join(snapshot.roots()) or 'none'}",
            )
        text = f"{key.name}/{root}\n{tree.size}\n{b64encode(tree.root).decode()}\n"
        return cls(root, tree.size, tree.root, key.verifier, key.sign(text))

    @classmethod
    def read(cls, note: str, keys: Sequence[VerifierKey]) -> Checkpoint:
        """The checkpoint that one of these keys signed.

        Raises:
            EvidenceError: None of them did, or it is no checkpoint.
        """
        text, signer = opened_note(note, keys)
        origin, size, encoded, *_ = (*text.split("\n"), "", "", "")
        try:
            root_hash, root = (
                base64_bytes(encoded),
                scope_path(origin.removeprefix(f"{signer.name}/")),
            )
        except ValueError:
            root_hash, root = b"", ""
        own = origin == f"{signer.name}/{root}" and root_of(root) == root
        if not (own and _NUMBER.fullmatch(size) and len(root_hash) == HASH_SIZE):
            raise EvidenceError(
                f"what {signer.name!r} signed is no checkpoint of a top-level scope"
            )
        return cls(root, int(size), root_hash, signer, note)


def read_checkpoints(text: str, keys: Sequence[VerifierKey]) -> tuple[Checkpoint, ...]:
    """The checkpoints of a text, one after the other.

    Raises:
        EvidenceError: It is something else, or one of them is signed by none of these keys.
    """
    notes = _NOTES.findall(text)
    if not notes or _NOTES.sub("", text).strip():
        raise EvidenceError("it holds something else than checkpoints")
    return tuple(Checkpoint.read(note, keys) for note in notes)


def key_path(root: str, key: VerifierKey) -> str:
    """The scope that announces a key: `world/key-0a1b2c3d`, opened to announce and closed to revoke."""
    return f"{root}/key-{key.id.hex()}"
