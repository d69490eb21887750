"""The budget of a training guard: a scope of a ledger, with the unredeemed charges of an earlier
attempt.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar, cast

from dpcompose.account import Account, NumericLiteral, Schedule, exact, open_scope
from dpcompose.adaptive import NAMED, Budget, Filter, MenuFilter, OneTheorem
from dpcompose.composition import Composable, compose
from dpcompose.errors import (
    DomainError,
    ScopeExistsError,
    ScopeKindError,
    StoreError,
    UnknownScopeError,
    UnsupportedError,
)
from dpcompose.ledger import Entry, Kind, Ledger, Receipt
from dpcompose.mechanisms import parse, serialize
from dpcompose.values import Adjacency

TYPED = 1 + 1e-12
"""A filter for a target written in decimals satisfies it up to double rounding."""
ORDERS = (1.0, 0.7, 0.45)
"""The Renyi orders of a budget, less 1, as fractions of the best order for much noise, less 1;
lower orders suit less noise.
"""


@dataclass(frozen=True)
class TrainingTarget:
    """The budget that a training guard must satisfy.

    Args:
        epsilon: The largest epsilon, in nats; above 0.
        delta: The largest delta, in (0, 1).
        filter: A filter or a class of filters; None for that of the scope.
        adjacency: The neighboring relation; None for that of the scope.
        kinds: The mechanisms of all possible steps, if they are declared beforehand.
    """

    epsilon: float
    delta: float
    filter: Filter | type[Filter] | OneTheorem | None = None
    adjacency: Adjacency | None = None
    kinds: Sequence[Composable] = ()

    def budget(self, ledger: Ledger, scope: str, actor: str, run: str | None) -> StepBudget:
        """The budget on a scope of a ledger; the scope is opened if it does not exist.

        Args:
            ledger: The ledger.
            scope: The path of the scope.
            actor: Who charges and redeems.
            run: The run whose unredeemed charges are resumed; None for none.

        Raises:
            DomainError: If the scope allows more than the target, or has another filter or
                adjacency.
            ScopeKindError: If the scope is not of kind filter.
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
        """Raise DomainError unless the innermost filter of the account has the requested kind and
        satisfies the target.

        Raises UnsupportedError if the account has no filter.
        """
        found = next((each.filter for each in account.chain[::-1] if each.filter is not None), None)
        if found is None:
            raise UnsupportedError(
                f"a guard of {account.scope!r}", "no filter bounds it", "Open it with a filter"
            )
        wanted = MenuFilter if self.kinds else self.filter
        if wanted not in (None, found, type(found), NAMED.get(found.kind)):
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
    """A filter on Renyi divergences at several orders: the best one for much noise, and lower ones
    for less.
    """
    best = Budget(epsilon, delta, only="renyi").parts[0].order
    return Budget(epsilon, delta, only="renyi", orders=[1 + (best - 1) * share for share in ORDERS])


Answer = TypeVar("Answer")
TRIES = 3
Delta = NumericLiteral | None
Charges = Sequence[tuple[Composable, int]]
"""Mechanisms with counts, in the order of the charges."""


def label_of(mechanism: Composable, delta: Delta) -> str:
    """A text that identifies a mechanism and the delta at which it is charged."""
    return f"{serialize(mechanism)} at {None if delta is None else exact('delta', delta)}"


@dataclass
class StepBudget:
    """The budget of training steps: a scope of a ledger, shared by any number of processes, or one
    in memory.

    Args:
        account: The account on the scope.
        actor: Who charges and redeems.
        run: The run whose unredeemed charges are resumed; None for none.
    """

    account: Account
    actor: str
    run: str | None
    _unredeemed: list[tuple[str, Receipt]] = field(default_factory=list[tuple[str, Receipt]])
    _charges: list[tuple[Composable, int]] = field(default_factory=list[tuple[Composable, int]])
    _mechanisms: dict[str, Composable] = field(default_factory=dict[str, Composable])
    _read: int = 0
    _lock: Any = field(default_factory=Lock, repr=False)

    @property
    def name(self) -> str:
        """The path of the scope."""
        return self.account.scope

    @property
    def parts_people(self) -> bool:
        """Whether the scope is inside a partition, where only one-shot or pure charges are sound."""
        return any(each.scope.kind is Kind.PARTITION for each in self.account.chain)

    def room(self, mechanism: Composable, delta: Delta) -> int:
        """The number of further charges of this mechanism that fit the scope and all of its
        ancestors; at most 10^15.
        """
        most = self.account.room(self.account.price(mechanism, delta=delta))
        own = self.account.chain[-1]
        if most and own.schedule:
            with self.account.ledger.moment() as moment:
                taken = moment.upcoming(own.path).taken
            most = min(most, _scheduled(own.schedule, taken, serialize(mechanism)))
        return most

    def resumable(self, mechanism: Composable, delta: Delta) -> int:
        """The number of charges of this mechanism that an earlier attempt of the run left
        unredeemed.
        """
        label = label_of(mechanism, delta) if self._unredeemed else ""
        return sum(text == label for text, _ in self._unredeemed)

    def charge(
        self, mechanism: Composable, delta: Delta, *, key: str, note: Mapping[str, Any]
    ) -> Receipt:
        """The receipt of an unredeemed charge of an earlier attempt, or else of a new charge.

        Args:
            mechanism: The mechanism of the step.
            delta: The delta at which it is charged, or None.
            key: The idempotency key of a new charge.
            note: A description that the ledger records with a new charge.

        Raises:
            OverdrawnError: If a new charge does not fit the budget.
        """
        if (found := self._resumed(mechanism, delta)) is not None:
            return found

        def charge() -> Receipt:
            return self.account.charge(
                mechanism, actor=self.actor, key=key, delta=delta, description=note
            )

        return _certain(charge)

    def _resumed(self, mechanism: Composable, delta: Delta) -> Receipt | None:
        """The receipt of an unredeemed earlier charge that covers the current price; None if there
        is none.
        """
        if not self._unredeemed:
            return None
        label, price = label_of(mechanism, delta), self.account.price(mechanism, delta=delta)
        with self._lock:
            for place, (text, receipt) in enumerate(self._unredeemed):
                if text == label and all(
                    receipt.cost[name] >= amount for name, amount in price.items()
                ):
                    return self._unredeemed.pop(place)[1]
        return None

    def redeem(self, receipt: Receipt) -> None:
        """Redeem a charge under a random nonce that is not stored, so that another attempt at the
        same receipt is refused.
        """
        nonce = secrets.token_hex(32)
        _certain(lambda: self.account.ledger.redeem(receipt, actor=self.actor, nonce=nonce))

    def __post_init__(self) -> None:
        """Collect the charges that an earlier attempt of the run did not redeem."""
        found: dict[int, tuple[str, Receipt]] = {}
        own = (self.name, self.actor, self.run)
        for entry in self.account.ledger.entries(self.name) if self.run is not None else ():
            said = entry.description
            if entry.kind == Entry.REDEEMED and entry.redeems is not None:
                found.pop(entry.redeems, None)
            elif entry.kind == Entry.GRANTED and (entry.scope, entry.actor, _run_of(said)) == own:
                found[entry.sequence] = (
                    f"{said['mechanism']} at {said.get('delta')}",
                    Receipt.of(entry),
                )
        self._unredeemed = list(found.values())

    def charges(self) -> Charges:
        """All charges of the scope itself, by every process; only new entries are read from the
        ledger.
        """
        with self._lock:
            for entry in self.account.ledger.entries(self.name, after=self._read):
                if entry.kind == Entry.GRANTED and entry.scope == self.name:
                    _append(
                        self._charges,
                        self._mechanism(entry.description.get("mechanism"), entry.sequence),
                    )
                self._read = entry.sequence
            return list(self._charges)

    def _mechanism(self, text: Any, sequence: int) -> Composable:
        if not isinstance(text, str):
            what, reason = (
                f"the epsilon of {self.name!r}",
                f"charge {sequence} names no mechanism to be read back",
            )
            raise UnsupportedError(what, reason, "Read the amounts that were charged")
        if text not in self._mechanisms:
            self._mechanisms[text] = parse(text)
        return self._mechanisms[text]

    def share_left(self) -> float:
        """The unspent fraction of the budget of the innermost filter, in [0, 1]."""
        own = next(each.scope for each in self.account.chain[::-1] if each.filter is not None)
        with self.account.ledger.moment() as moment:
            spent = moment.upcoming(own.path).spent.units
        rest = [
            min(
                (1 - Fraction(spent[name], cap) for name, cap in caps.items() if cap > 0),
                default=Fraction(0),
            )
            for caps in own.within(spent)
        ]
        return float(max(rest, default=0))


def _scheduled(schedule: Schedule, taken: int, text: str | None) -> int:
    """The number of next rounds of a committed schedule that have one mechanism.

    Args:
        schedule: Mechanisms, as text, with their numbers of rounds.
        taken: The number of rounds already taken.
        text: The mechanism, as text.
    """
    found = 0
    for each, times in schedule:
        rest = max(times - taken, 0)
        taken = max(taken - times, 0)
        if rest and each != text:
            break
        found += rest
    return found


def _certain(action: Callable[[], Answer]) -> Answer:
    """Run an idempotent action again, up to `TRIES` times, while a StoreError leaves its effect
    uncertain.
    """
    for _ in range(TRIES - 1):
        try:
            return action()
        except StoreError as error:
            if not error.uncertain:
                raise
    return action()


def _run_of(description: Mapping[str, Any]) -> str | None:
    """The run recorded in the description of a charge; None for charges of other origin."""
    note: Any = description.get("note")
    return (
        cast("dict[str, Any]", note).get("run")
        if isinstance(note, dict) and description.get("mechanism")
        else None
    )


def _append(charges: list[tuple[Composable, int]], mechanism: Composable) -> None:
    """Append a charge to a list with counts; equal neighbors are merged, and a plan is appended as
    its parts.
    """
    for part, times in compose(mechanism).parts:
        if charges and charges[-1][0] == part:
            charges[-1] = part, charges[-1][1] + times
        else:
            charges.append((part, times))
