"""The account on a scope: prices mechanisms under its filters and charges them, before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

from dpcompose.account import pricing
from dpcompose.account.scope import Budgeted, adjacency_of, chain, plain
from dpcompose.account.typed import Typed, exact
from dpcompose.account.wording import written
from dpcompose.adaptive import Odometer, PureFilter
from dpcompose.composition.container import Composable
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import Adjacency, Priced
from dpcompose.ledger import Amount, Ledger, Receipt
from dpcompose.ledger.scope import paths_down_to

VERSION = 1


@dataclass(frozen=True)
class Account:
    """A scope of a ledger, charged with mechanisms.

    >>> from dpcompose import Gaussian
    >>> from dpcompose.account import open_scope
    >>> from dpcompose.adaptive import ConcentratedFilter
    >>> ledger = Ledger.open("memory:")
    >>> account = open_scope(ledger, "world", filter=ConcentratedFilter, epsilon=1, delta=1e-6, actor="Ada")
    >>> receipt = account.charge(Gaussian(20.0), actor="Ada", key="mean age")
    >>> float(receipt.cost["rho"].fraction) <= 0.00125 * (1 + 1e-14)
    True

    Args:
        ledger: Where.
        scope: Its path.

    Raises:
        UnknownScopeError: If there is no such scope.
        UnsupportedError: If a scope on the chain caps amounts and names no filter.
    """

    ledger: Ledger
    _: KW_ONLY
    scope: str

    def __post_init__(self) -> None:
        _ = self.chain

    @cached_property
    def chain(self) -> list[Budgeted]:
        """The scope and those above it that its charges reach, the highest first; a charge checks that they are."""
        return chain(self.ledger, self.scope)

    @cached_property
    def adjacency(self) -> Adjacency:
        """Under which every charge is priced."""
        return adjacency_of(self.chain, Adjacency.ADD_REMOVE)

    def price(self, mechanism: Priced, *, delta: Typed | None = None) -> dict[str, Amount]:
        """What a mechanism would cost here, by currency: the largest of the prices of all filters on the chain.

        Args:
            mechanism: A mechanism, a composition, or whatever else answers as `guarantee.Priced` does.
            delta: Where on its curve it is charged to filters of (epsilon, delta); a float is its shortest decimal.

        Raises:
            UnsupportedError: If a filter on the chain has no price for it.
            DomainError: If delta is outside its domain.
        """
        return self._cost(self.chain, mechanism, delta)

    def left(self) -> dict[str, Amount]:
        """The most that a charge could still ask, each currency by itself, the whole chain heeded."""
        return dict(self.ledger.available(self.scope))

    def charge(
        self,
        mechanism: Priced,
        *,
        actor: str,
        key: str,
        delta: Typed | None = None,
        description: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Charge a mechanism, durably, before it runs. Redeem the receipt, then draw.

        Args:
            mechanism: A one-shot mechanism with fresh randomness; a composition is one charge and runs to its end.
            actor: Who asks.
            key: The idempotency key: asked again, the same receipt.
            delta: See `price`.
            description: Anything else to keep with it, in plain values.

        Raises:
            UnsupportedError: If a filter on the chain has no price for it, or it is not next on a committed schedule.
            OverdrawnError: If it does not fit; no balance is changed.
            LedgerError: See `Ledger.charge`.
        """
        found = self.chain
        amounts = self._cost(found, mechanism, delta)
        said = self._described(mechanism, delta)
        note = plain("description", description)
        if note:
            said["note"] = note
        priced = [each.scope for each in found]
        return self.ledger.charge(self.scope, cost=amounts, description=said, actor=actor, key=key, priced=priced)

    def _cost(self, found: list[Budgeted], mechanism: Priced, delta: Typed | None) -> dict[str, Amount]:
        if not any(each.filter is not None for each in found):
            raise UnsupportedError(
                f"a charge of {self.scope!r}",
                "no filter bounds it, there or above",
                "Open a scope with a filter below it",
            )
        return pricing.cost(found, mechanism, delta=delta, adjacency=self.adjacency)

    def _described(self, mechanism: Priced, delta: Typed | None) -> dict[str, Any]:
        """What the entry says of it: its text, and what an odometer and the sum along the path will need."""
        text = written(mechanism) if isinstance(mechanism, Composable) else None
        said: dict[str, Any] = {"version": VERSION, "mechanism": text, "adjacency": self.adjacency.value}
        if text is None:
            said["opaque"] = repr(mechanism)[:200]
        if delta is not None:
            said["delta"] = str(exact("delta", delta))
        pure = _or_none(lambda: PureFilter(0.0).price(mechanism, adjacency=self.adjacency)["epsilon"])
        if pure is not None:
            said["pure"] = str(Amount.up(pure))
        odometer = self._odometer
        if odometer is not None:
            named = None if delta is None else exact("delta", delta)
            added = _or_none(lambda: odometer.mileage(mechanism, delta=named, adjacency=self.adjacency))
            if added is not None:
                said["mileage"] = added.description()
        return said

    @cached_property
    def _odometer(self) -> Odometer | None:
        """The nearest odometer at the scope or above it, slots and partitions passed."""
        for path in paths_down_to(self.scope)[::-1]:
            found = Budgeted.of(self.ledger.balance(path).scope)
            if found.odometer is not None:
                return found.odometer
        return None


def _or_none(question: Any) -> Any:
    try:
        return question()
    except (UnsupportedError, DomainError):
        return None
