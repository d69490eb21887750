"""Redeeming a receipt: one charge pays for one answer."""

from __future__ import annotations

from dataclasses import dataclass

from dpcompose.errors import AlreadyRedeemedError, ReceiptError
from dpcompose.ledger.decision import Decision, View
from dpcompose.ledger.entry import GRANTED, REDEEMED, Entry
from dpcompose.ledger.receipt import Receipt
from dpcompose.ledger.text import encode


@dataclass(frozen=True)
class Redemption:
    """Redeem `receipt`; a second time is refused."""

    receipt: Receipt

    @property
    def path(self) -> str:
        return self.receipt.scope

    @property
    def key(self) -> None:
        return None

    @property
    def redeems(self) -> int:
        return self.receipt.sequence

    def decide(self, view: View, *, time: str) -> Decision:
        receipt = self.receipt
        entry = view.entry(receipt.root, receipt.sequence)
        if entry is None or entry.kind != GRANTED or Receipt.of(entry) != receipt:
            raise ReceiptError(receipt.scope, receipt.sequence, "this ledger did not give it. Charge first")
        if view.redeemed(receipt.root, receipt.sequence):
            raise AlreadyRedeemedError(receipt.scope, receipt.sequence)
        content = {
            "actor": encode(entry.actor),
            "redeems": str(entry.sequence),
            "scope": encode(entry.scope),
        }
        return Decision(Entry.after(view.head(receipt.root), REDEEMED, content, time=time))
