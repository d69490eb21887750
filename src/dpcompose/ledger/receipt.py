"""Receipts: what a granted charge gives back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dpcompose.errors import DomainError, TamperedError
from dpcompose.ledger.amounts import Amounts
from dpcompose.ledger.entry import Entry
from dpcompose.ledger.scope import root_of
from dpcompose.ledger.text import encode, scope_path


@dataclass(frozen=True)
class Receipt:
    """Proof of one charge; it pays for one answer, once redeemed.

    Args:
        scope: The path that was charged.
        sequence: The number of the entry in the chain of the top-level scope.
        key: The idempotency key.
        actor: Who charged.
        cost: The amounts charged.
        time: When the entry was written.
        hash: The hash of the entry.
    """

    scope: str
    sequence: int
    key: str
    actor: str
    cost: Amounts
    time: str
    hash: str

    def __post_init__(self) -> None:
        scope_path(self.scope)
        if not (type(self.sequence) is int and 0 < self.sequence < 2**63):
            raise DomainError("sequence", self.sequence, "the number of an entry, an integer from 1")

    @classmethod
    def of(cls, entry: Entry) -> Receipt:
        """The receipt of a granted charge; the same entry gives the same receipt, byte for byte."""
        if entry.key is None:
            raise TamperedError([f"entry {entry.sequence} of {entry.root} is a charge without a key"])
        return cls(entry.scope, entry.sequence, entry.key, entry.actor, entry.cost, entry.time, entry.hash)

    @classmethod
    def read(cls, text: str) -> Receipt:
        """The receipt that `to_json` wrote.

        Raises:
            DomainError: The text is no receipt.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            fields["cost"] = Amounts.read(fields["cost"])
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DomainError("receipt", text, "the JSON text of a receipt") from None

    @property
    def root(self) -> str:
        """The top-level scope in whose chain the charge stands."""
        return root_of(self.scope)

    def to_json(self) -> str:
        """The receipt as one line of JSON."""
        return encode({name: getattr(self, name) for name in self.__match_args__} | {"cost": self.cost.texts()})
