"""Redeeming a charge: where the ledger could not tell whether it did, the same attempt is made again."""

from __future__ import annotations

import os
import secrets

from dpcompose.errors import AlreadyRedeemedError, StoreError
from dpcompose.ledger import Ledger, Receipt

TURNS = 3
"""How often one question asks a ledger that cannot tell."""
_UNTOLD: dict[tuple[int, str], str] = {}
"""The names of attempts that ended without a word, by process and receipt: never written, and never given to two."""


def redeemed(ledger: Ledger, receipt: Receipt, *, actor: str) -> None:
    """Redeem a receipt, so that who returns from here, and nobody else, draws for it.

    An attempt whose end is not known keeps its name, and who asks next in this process makes the same one again:
    nothing was drawn for it. A name belongs to one attempt at a time, and to one process, however often that is forked.

    Raises:
        AlreadyRedeemedError: It was redeemed by another attempt.
        StoreError: The ledger could not be asked, or could not tell; asked again with the same key, it may.
    """
    place = (os.getpid(), receipt.to_json())
    nonce = _UNTOLD.pop(place, None) or secrets.token_hex(32)
    try:
        for _ in range(TURNS - 1):
            try:
                return ledger.redeem(receipt, actor=actor, nonce=nonce)
            except StoreError as error:
                if not error.uncertain:
                    raise
        return ledger.redeem(receipt, actor=actor, nonce=nonce)
    except AlreadyRedeemedError:
        raise
    except BaseException:
        _UNTOLD[place] = nonce
        raise
