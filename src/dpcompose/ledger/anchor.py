"""Anchors: the heads of all chains, to be kept where the ledger's keeper cannot write."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from dpcompose.errors import DomainError
from dpcompose.ledger.entry import Head
from dpcompose.ledger.store import Snapshot
from dpcompose.ledger.text import each_once, encode

_FORMAT = "dpcompose ledger anchor 1"
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Anchor:
    """What was there: for each top-level scope, in order, its name and the head of its chain."""

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
