"""The keys that sign checkpoints, announced and revoked in the log itself by scopes that cap nothing."""

from __future__ import annotations

from dpcompose.ledger.checkpoint import key_path
from dpcompose.ledger.ledger import Ledger
from dpcompose.ledger.scope import Kind
from dpcompose.ledger.signed_note import VerifierKey
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
