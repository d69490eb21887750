"""Checkpoints that a keeper signed and published: the service shows them, and proofs under them. It has no key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpcompose.errors import DomainError, EvidenceError, StoreError, UnsupportedError
from dpcompose.ledger import (
    Checkpoint,
    Evidence,
    Moment,
    VerifierKey,
    is_at_or_below,
    root_of,
)
from dpcompose.serve.queue import heed


@dataclass(frozen=True)
class Published:
    """The file that `dpcompose ledger evidence checkpoint` writes, and the keys that sign it.

    Args:
        file: Read anew for each question, so that a keeper replaces it at any time.
        keys: Public ones.
    """

    file: Path
    keys: Sequence[VerifierKey]

    @property
    def signed(self) -> float:
        """When it was written, in seconds since 1970.

        Raises:
            StoreError: There is none.
        """
        try:
            return self.file.stat().st_mtime
        except OSError:
            raise StoreError("checkpoints", "their file cannot be read") from None

    def checkpoint(self, root: str) -> Checkpoint:
        """The largest checkpoint of a tree.

        Raises:
            UnsupportedError: There is none that a trusted key signed.
        """
        try:
            found = Checkpoint.read_all(self.file.read_text("utf-8"), self.keys)
        except (OSError, EvidenceError, UnicodeDecodeError):
            found = ()
        own = [each for each in found if each.root == root]
        if not own:
            raise UnsupportedError(
                "a proof", "no signed checkpoint of this tree is published", "Ask its keeper"
            )
        return max(own, key=lambda each: each.size)

    def proof(self, moment: Moment, scope: str, entry: int) -> str:
        """The proof that an entry at or below a scope is under the checkpoint of its tree.

        Raises:
            DomainError: There is no such entry there.
        """
        root = root_of(scope)
        for record in moment.snapshot.records(root, after=entry - 1, limit=1):
            if record.sequence == entry and is_at_or_below(record.scope, scope):
                return Evidence.prove_inclusion(moment.snapshot, entry, self.checkpoint(root), heed)
        raise DomainError("entry", entry, f"the number of an entry of {scope!r}")
