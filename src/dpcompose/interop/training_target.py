"""The budget that a training guard is asked to keep: opened, or found and held against what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dpcompose.account import Account, open_scope
from dpcompose.adaptive import Budget, Filter, MenuFilter
from dpcompose.composition import Composable
from dpcompose.errors import (
    DomainError,
    ScopeExistsError,
    ScopeKindError,
    UnknownScopeError,
    UnsupportedError,
)
from dpcompose.interop.step_budget import StepBudget
from dpcompose.ledger import Kind, Ledger
from dpcompose.values import Adjacency

TYPED = 1 + 1e-12
"""A filter for a typed target keeps it up to the rounding of a double."""
ORDERS = (1.0, 0.7, 0.45)
"""Of the best order for much noise, less 1: the parts that less noise needs."""


@dataclass(frozen=True)
class TrainingTarget:
    """The budget that a guard is asked to keep.

    Args:
        epsilon: In nats, above 0.
        delta: In (0, 1).
        filter: A filter, a class of filters, or None for that of the scope.
        adjacency: Likewise.
        kinds: Everything that may be asked, if that is declared beforehand.
    """

    epsilon: float
    delta: float
    filter: Filter | type[Filter] | None = None
    adjacency: Adjacency | None = None
    kinds: Sequence[Composable] = ()

    def budget(self, ledger: Ledger, scope: str, actor: str, run: str | None) -> StepBudget:
        """The budget on a scope, opened unless it is there.

        Raises:
            DomainError: If the scope promises less, or was opened with another filter or adjacency.
        """
        try:
            account = Account(ledger, scope=scope)
        except UnknownScopeError:
            try:
                account = self._opened(ledger, scope, actor)
            except ScopeExistsError:
                account = Account(ledger, scope=scope)  # another worker was first
        kind = account.chain[-1].scope.kind
        if kind is not Kind.FILTER:
            raise ScopeKindError(scope, kind, "Take a scope of kind filter, such as one below it")
        self._require(account)
        return StepBudget(account, actor, run)

    def _opened(self, ledger: Ledger, scope: str, actor: str) -> Account:
        adjacency = self.adjacency or Adjacency.ADD_REMOVE
        if self.kinds:
            budget = MenuFilter.for_target(
                self.kinds, self.epsilon, self.delta, adjacency=adjacency
            )
        else:
            budget = any_order(self.epsilon, self.delta) if self.filter is None else self.filter
        target: dict[str, Any] = (
            {} if isinstance(budget, Filter) else {"epsilon": self.epsilon, "delta": self.delta}
        )
        account = open_scope(
            ledger, scope, filter=budget, adjacency=adjacency, actor=actor, **target
        )
        self._require(account)
        return account

    def _require(self, account: Account) -> None:
        """The nearest filter must be the one that was asked for, and promise what was asked for."""
        found = next((each.filter for each in account.chain[::-1] if each.filter is not None), None)
        if found is None:
            raise UnsupportedError(
                f"a guard of {account.scope!r}", "no filter bounds it", "Open it with a filter"
            )
        wanted = MenuFilter if self.kinds else self.filter
        if wanted not in (None, found, type(found)):
            raise DomainError(
                "filter", wanted, f"that of the scope, {type(found).__name__}, or None"
            )
        if self.adjacency not in (None, account.adjacency):
            raise DomainError(
                "adjacency",
                self.adjacency,
                f"{account.adjacency}, that of the scope {account.scope!r}",
            )
        promised = found.epsilon_at(delta=min(self.delta * TYPED, 1.0))
        if not promised <= self.epsilon * TYPED:
            raise DomainError(
                "epsilon", self.epsilon, f"at least what the scope {account.scope!r} may spend: {promised:.6g} at delta"
                f" {self.delta:.6g}", "State that, or open a scope with a smaller budget",
            )  # fmt: skip


@lru_cache(maxsize=16)
def any_order(epsilon: float, delta: float) -> Budget:
    """Renyi divergences of several orders: the best one for much noise, and lower ones for less."""
    best = Budget(epsilon, delta, only="renyi").parts[0].order
    return Budget(epsilon, delta, only="renyi", orders=[1 + (best - 1) * share for share in ORDERS])
