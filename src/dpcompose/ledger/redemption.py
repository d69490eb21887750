"""Redeeming a receipt: one charge pays for one answer."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from dpcompose.errors import AlreadyRedeemedError, DomainError, ReceiptError
from dpcompose.ledger.decision import Decision, View
from dpcompose.ledger.entry import GRANTED, REDEEMED, Entry
from dpcompose.ledger.receipt import Receipt
from dpcompose.ledger.text import encode


@dataclass(frozen=True)
class Redemption:
    """Redeem `receipt`; a second time is refused, unless it is the same attempt, asked again.

    Args:
        receipt: What to redeem.
        actor: Who redeems it: only who charged may.
        attempt: The digest of the nonce that names the attempt, if it has one. The nonce stays with whoever draws: the
            digest lets nobody else redeem.
    """

    receipt: Receipt
    actor: str
    attempt: str | None = None

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
        if self.actor != entry.actor:
            raise ReceiptError(receipt.scope, receipt.sequence, "somebody else charged it. Who charged may redeem it")
        content = {
            "actor": encode(self.actor),
            "redeems": str(entry.sequence),
            "scope": encode(entry.scope),
        }
        if self.attempt is not None:
            content["attempt"] = encode(self.attempt)
        earlier = view.redemption(receipt.root, receipt.sequence)
        if earlier is not None and self.attempt is not None and earlier.holds(content):
            return Decision()
        if earlier is not None:
            raise AlreadyRedeemedError(receipt.scope, receipt.sequence)
        return Decision(Entry.after(view.head(receipt.root), REDEEMED, content, time=time))


def attempt_of(nonce: str | None) -> str | None:
    """What the ledger keeps of a nonce.

    Raises:
        DomainError: It could be guessed; it is not repeated.
    """
    if nonce is None:
        return None
    if not (isinstance(nonce, str) and 32 <= len(nonce) <= 256 and nonce.isascii()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("nonce", "(not shown)", "32 to 256 ASCII characters, such as secrets.token_hex(32)")
    return sha256(nonce.encode()).hexdigest()
