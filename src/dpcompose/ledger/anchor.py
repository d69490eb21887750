"""Anchors: the heads of all chains, to be kept where the ledger's keeper cannot write."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dpcompose.errors import DomainError
from dpcompose.ledger.entry import Head
from dpcompose.ledger.store import Snapshot
from dpcompose.ledger.text import encode

_FORMAT = "dpcompose ledger anchor 1"


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
            document = json.loads(text)
            if document["format"] != _FORMAT:
                raise ValueError(document["format"])
            heads = {
                str(root): Head(int(head["sequence"]), str(head["hash"])) for root, head in document["heads"].items()
            }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DomainError("anchor", text, "the JSON text of an anchor, as `Anchor.to_json` writes it") from None
        return cls(tuple(sorted(heads.items())))

    def to_json(self) -> str:
        """The anchor as one line of JSON."""
        heads = {root: {"sequence": head.sequence, "hash": head.hash} for root, head in self.heads}
        return encode({"format": _FORMAT, "heads": heads})
