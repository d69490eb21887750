"""Terms of a tree besides its budgets: reservations, what a person may spend in a period, what a second one approves.

No promise of privacy hangs on them: that no cap is exceeded is the ledger's, whatever happens here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

from dpcompose.errors import OverdrawnError, ReservedError, StoreError
from dpcompose.ledger import (
    AccountNode,
    Amounts,
    Entry,
    Ledger,
    Moment,
    Receipt,
    available,
    now,
    paths_down_to,
    root_of,
    spend,
)
from dpcompose.serve.approval import require_approved, require_no_threshold
from dpcompose.serve.database import Database, Run
from dpcompose.serve.identity import Identity
from dpcompose.serve.quota import Quota, quotas_of
from dpcompose.serve.request import PricedCharge, note_of
from dpcompose.serve.reservation import Reservation, end_expired, reservations_of, reserved_again

_TERMS = " union all ".join(
    f"select 1 from service_{name} where root = ?{more}"
    for name, more in (("reservation", " and ended = 0"), ("quota", ""), ("threshold", ""))
)


@dataclass(eq=False)
class Turns:
    """Per-tree locks: charges without policies share the lock; charges and changes under a policy hold it exclusively.

    Args:
        database: Its locks hold for every server.
    """

    database: Database
    _mine: dict[str, Lock] = field(default_factory=dict[str, Lock])

    @contextmanager
    def alone(self, root: str, *, shared: bool = False) -> Generator[Run]:
        """A transaction under the exclusive lock of a tree; with a shared one, other servers may share it."""
        with self._mine.setdefault(root, Lock()), self.database.locked(root, shared=shared) as run:
            yield run

    @contextmanager
    def plain(self, root: str) -> Generator[bool]:
        """The shared lock of a tree; yields whether the tree has no policies, which stays so inside the block."""
        with self.alone(root, shared=True) as run:
            yield not run(f"select 1 from ({_TERMS}) as terms limit 1", (root, root, root))


_log = logging.getLogger("dpcompose.serve")


@dataclass
class Tree:
    """The policies and balances of a tree, while its lock is held.

    Args:
        run: Its transaction.
        moment: The ledger.
        root: The top-level scope.
        now: The time of the service.
    """

    run: Run
    moment: Moment
    root: str
    now: float
    _nodes: dict[str, AccountNode] = field(default_factory=dict[str, AccountNode])

    @cached_property
    def reservations(self) -> list[Reservation]:
        """The reservations that have not ended."""
        return reservations_of(self.run, self.root, self.now)

    @cached_property
    def quotas(self) -> list[Quota]:
        """All quotas of the tree."""
        return quotas_of(self.run, self.root)

    @cached_property
    def time(self) -> str:
        """The time that a charge made now would record: no earlier than that of the last entry."""
        head = self.moment.snapshot.head(self.root).sequence
        last = [
            record.entry.time
            for record in self.moment.snapshot.records(self.root, after=head - 1, limit=1)
        ]
        return now(max(last, default=""))

    @classmethod
    def caught_up(cls, run: Run, moment: Moment, root: str, now: float) -> Tree:
        """The tree after every charge of the ledger was counted and recorded."""
        found = cls(run, moment, root, now)
        found._catch_up()
        end_expired(run, root, now)
        return found

    @classmethod
    def looked_at(cls, run: Run, moment: Moment, root: str, now: float) -> Tree:
        """The tree after every charge was counted in its reservations; nothing is written."""
        found = cls(run, moment, root, now)
        if found.reservations:
            found._count_charges(found._counted, keep=False)
        return found

    def _catch_up(self) -> None:
        """Count the charges since the last counted entry, from the ledger, which alone says what was charged."""
        head = self.moment.snapshot.head(self.root).sequence
        if not (self.reservations or self.quotas):  # whatever is agreed on later counts from here
            self.run(
                "insert into service_progress (root, sequence) values (?, ?)"
                " on conflict (root) do update set sequence = excluded.sequence",
                (self.root, head),
            )
            return
        after = self._counted
        last = self._count_charges(after, keep=True)
        if last > after:
            self.run("update service_progress set sequence = ? where root = ?", (last, self.root))

    @property
    def _counted(self) -> int:
        """The last entry that was counted."""
        rows = self.run("select sequence from service_progress where root = ?", (self.root,))
        return rows[0][0] if rows else 0

    def _count_charges(self, after: int, *, keep: bool) -> int:
        last = after
        for record in self.moment.snapshot.records(self.root, after=after, limit=None):
            last = record.sequence
            # Slots are charged when they are opened.
            if not ('"kind":"granted"' in record.body or '"slots":' in record.body):
                continue
            entry = record.entry
            if entry.kind == Entry.GRANTED or (entry.kind == Entry.OPENED and entry.cost):
                self._count(entry, keep=keep)
        return last

    def _count(self, entry: Entry, *, keep: bool) -> None:
        for quota in self.quotas if keep else ():
            if quota.is_about(entry.scope, entry.actor):
                quota.count(self.run, entry)
        used = note_of(entry).get("reservation") if entry.kind == Entry.GRANTED else None
        for each in self.reservations:
            if each.id == used:
                each.use(entry.cost)
                if keep:
                    each.keep_used(self.run)

    def chain(self, path: str) -> list[AccountNode]:
        """The nodes down to a scope, with what is reserved and still to come counted as spent."""
        found = [
            self._nodes.get(each) or self.moment.snapshot.node(each) for each in paths_down_to(path)
        ]
        return [each.at(self.time) for each in found if each is not None]

    def hold(self, *, besides: str | None) -> None:
        """Count as spent what every other reservation may still use, as far as the budgets have room for it."""
        self._nodes.clear()
        for each in self.reservations:
            chain = self.chain(each.scope)
            if each.id == besides or any(node.closed for node in chain):
                continue
            room = available(chain)
            rest = {
                name: min(units, room.get(name, units)) for name, units in each.remaining.items()
            }
            try:
                self._nodes |= {node.scope.path: node for node in spend(chain, rest)}
            except OverdrawnError:
                continue

    def left(self, paths: Sequence[str]) -> dict[str, Left]:
        """The amounts left in each of these scopes."""
        for path in paths:
            self.moment.balance(path)
        before = {path: self.chain(path)[-1].spent for path in paths}
        self.hold(besides=None)
        found: dict[str, Left] = {}
        for path in paths:
            chain = self.chain(path)
            reserved = {name: units - before[path][name] for name, units in chain[-1].spent.items()}
            found[path] = Left(Amounts(available(chain)), reserved)
        return found


@dataclass(frozen=True)
class Left:
    """The amounts left in a scope beside those reserved.

    Args:
        amounts: The most that a charge without a reservation could ask, each currency by itself.
        reserved: The units that reservations may still use here, by currency.
    """

    amounts: Amounts
    reserved: Mapping[str, int]


@dataclass(frozen=True)
class Terms:
    """Evaluates the policies of a tree before the ledger is charged.

    Args:
        ledger: Where charges are kept.
        database: Where terms are kept.
    """

    ledger: Ledger
    database: Database

    @cached_property
    def turns(self) -> Turns:
        """The per-tree locks."""
        return Turns(self.database)

    def charged(self, charge: PricedCharge, commit: Callable[[dict[str, Any]], Receipt]) -> Receipt:
        """Commit a charge, if the policies allow it; `commit` receives the fields to note in the entry.

        A charge that is in the ledger already is answered as it was, whatever the terms have become.
        """
        root = root_of(charge.scope)
        now, receipt = self.database.now(), None
        try:
            with self.turns.alone(root) as run:
                with self.ledger.moment() as moment:
                    noted = self._admitted(run, moment, charge, now)
                receipt = commit(noted)
        except StoreError as error:
            if receipt is None:
                raise
            _log.error("a charge stands, and what it used is counted later: %s", error)
        return receipt

    def _admitted(
        self, run: Run, moment: Moment, charge: PricedCharge, now: float
    ) -> dict[str, Any]:
        root = root_of(charge.scope)
        named = {} if charge.reservation is None else {"reservation": charge.reservation}
        earlier = moment.snapshot.keyed(root, charge.key)
        if earlier is not None:
            approved = note_of(earlier).get("approved")
            return named if approved is None else {**named, "approved": approved}
        tree = Tree.caught_up(run, moment, root, now)
        if charge.reservation is not None:
            reserved_again(run, charge.reservation, now).require(charge)
        chain = tree.chain(charge.scope)
        chain[-1].require_currencies(charge.cost.units)
        try:
            spend(chain, charge.cost.units)
        except OverdrawnError:
            return named  # the ledger refuses it, and keeps that it did
        approved = require_approved(tree.run, charge, tree.now)
        for quota in tree.quotas:
            if quota.is_about(charge.scope, charge.who.actor):
                quota.require(tree.run, charge.who.actor, charge.cost, tree.time)
        tree.hold(besides=charge.reservation)
        require_room(tree.chain(charge.scope), charge.cost)
        return named if approved is None else {**named, "approved": approved}

    def opened(self, who: Identity, path: str, cost: Amounts, commit: Callable[[], object]) -> None:
        """Open a scope whose opening charges the scopes above it, if their policies allow it.

        Raises:
            ApprovalError, QuotaError, ReservedError: They do not.
        """
        root, above, now = root_of(path), path.rpartition("/")[0], self.database.now()
        with self.turns.alone(root) as run:
            with self.ledger.moment() as moment:
                if moment.snapshot.node(path) is None:
                    self._may_open(Tree.caught_up(run, moment, root, now), who, above, cost)
            commit()

    @staticmethod
    def _may_open(tree: Tree, who: Identity, above: str, cost: Amounts) -> None:
        try:
            spend(tree.chain(above), cost.units)
        except OverdrawnError:
            return  # the ledger refuses it
        require_no_threshold(tree.run, above, cost)
        for quota in tree.quotas:
            if quota.is_about(above, who.actor):
                quota.require(tree.run, who.actor, cost, tree.time)
        tree.hold(besides=None)
        require_room(tree.chain(above), cost)

    def left(self, paths: Sequence[str]) -> dict[str, Left]:
        """The amounts left now in each of these scopes, for an answer and for a page alike."""
        now, found = self.database.now(), dict[str, Left]()
        with self.database.transaction(write=False) as run, self.ledger.moment() as moment:
            for root in {root_of(path) for path in paths}:
                tree = Tree.looked_at(run, moment, root, now)
                found |= tree.left([path for path in paths if root_of(path) == root])
        return found


def require_room(chain: list[AccountNode], cost: Amounts) -> None:
    """Raise ReservedError if it does not fit beside what is reserved."""
    try:
        spend(chain, cost.units)
    except OverdrawnError as refusal:
        raise ReservedError(refusal.scope, refusal.currency, refusal.asked, refusal.left) from None
