"""Who pays for answers: an account, on a ledger that is open here or behind a service."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from dpcompose.composition import Composable
from dpcompose.ledger import Amount, Receipt
from dpcompose.values import Adjacency


class Redeemer(Protocol):
    """Uses up receipts."""

    def redeem(self, receipt: Receipt, *, actor: str, nonce: str) -> None:
        """Use up a receipt before any noise is drawn; see `Ledger.redeem`."""
        ...


class Payer(Redeemer, Protocol):
    """An account as a session needs it; `Account` is one, and so is `RemoteAccount`."""

    @property
    def scope(self) -> str:
        """Its path."""
        ...

    @property
    def adjacency(self) -> Adjacency:
        """Under which every charge is priced."""
        ...

    @property
    def note(self) -> Mapping[str, Any]:
        """The note with which the scope was opened."""
        ...

    def price(self, mechanism: Composable, *, delta: Fraction | None = None) -> dict[str, Amount]:
        """The cost of a mechanism here, by currency."""
        ...

    def left(self) -> dict[str, Amount]:
        """The most that a charge could still ask, each currency by itself."""
        ...

    def room(self, cost: Mapping[str, Amount]) -> int:
        """How many more charges of this cost fit."""
        ...

    def charge(
        self,
        mechanism: Composable,
        *,
        actor: str,
        key: str,
        delta: Fraction | None = None,
        description: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Charge a mechanism, durably, before it runs."""
        ...

    def kept(self, name: str) -> Mapping[str, Any] | None:
        """The description that is kept below the scope under a name."""
        ...

    def keep(self, name: str, description: Mapping[str, Any], *, actor: str) -> None:
        """Keep a description below the scope under a name, unless one is kept there."""
        ...
