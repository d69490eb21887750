"""The ledger: what its keeper and its clients call."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Self

from dpcompose import check
from dpcompose.errors import DomainError, DPComposeError, MissingExtraError, UnknownScopeError
from dpcompose.ledger.amount import Amounts, Costs, Description, sayable, scope_path, scope_paths
from dpcompose.ledger.entry import Entry, Outcome, Receipt, Request, RequestDecision, Statement, now
from dpcompose.ledger.evidence import VerifierKey, key_path
from dpcompose.ledger.policies import Left, Tree
from dpcompose.ledger.requests import (
    Charge,
    Closing,
    Opening,
    Redemption,
    attempt_of,
)
from dpcompose.ledger.scope import (
    AccountNode,
    Balance,
    Scope,
    available,
    paths_down_to,
    root_of,
)
from dpcompose.ledger.sqlite_connection import is_of_database, may_write as may_write_file
from dpcompose.ledger.store import Store
from dpcompose.ledger.tables import LedgerTables
from dpcompose.ledger.verification import Anchor, Progress, Replay, Verification, verify
from dpcompose.notebook import MOST, Listed
from dpcompose.pictured import Plot

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):", re.ASCII)
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that a terminal would obey when it shows the name, and halves of pairs, which no file has."""
_DOMAIN = "a file, sqlite:///file, postgresql://user@host/database or memory:"


def open_store(url: str, *, create: bool, restored: bool = False, read_only: bool = False) -> Store:
    """The store at `url`; SQL is imported only now, so that `import dpcompose` stays light."""
    if read_only and (restored or url == "memory:"):
        raise DomainError(
            "read_only",
            read_only,
            "False for a ledger in memory, or one whose head record begins anew",
        )
    path = file_of(url)
    if url == "memory:":
        from dpcompose.ledger.sqlite import MemoryStore

        return MemoryStore()
    if path is not None:
        from dpcompose.ledger.sqlite import SQLiteReader, SQLiteStore

        if read_only:
            return SQLiteReader(path)
        return SQLiteStore(path, create=create, restored=restored)
    try:
        import psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise MissingExtraError("A ledger on PostgreSQL", "postgres") from None
    from dpcompose.ledger.postgres import PostgresReader, PostgresStore

    address = address_of(url)
    return PostgresReader(address) if read_only else PostgresStore(address, create=create)


def file_of(url: str) -> Path | None:
    """The file that is named; None for memory and for a database.

    Raises:
        DomainError: It is no name of a ledger.
    """
    # SQLite would make ":memory:" at the end of a URL a file.
    if not url or _CONTROL.search(url) or url.endswith(":memory:"):
        raise DomainError("url", url, _DOMAIN)
    scheme = match[1] if (match := _SCHEME.match(url)) else ""
    if url == "memory:" or scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return None
    if scheme == "sqlite" and url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return Path(url.removeprefix("sqlite:///"))
    if "://" in url or scheme in ("sqlite", "memory"):
        raise DomainError("url", url, _DOMAIN)
    return Path(url)


def may_write(url: str) -> bool:
    """Whether the ledger at `url` is a file that this process may write, in a folder that it may write."""
    path = file_of(url)
    return path is not None and all(map(may_write_file, (path, path.absolute().parent)))


def address_of(url: str) -> str:
    """The address of a database as its driver reads it."""
    return f"postgresql:{url.partition(':')[2]}"


EVERY = 2**31
"""More scopes than a ledger has."""


@dataclass(frozen=True)
class Moment:
    """The ledger at one moment, as `Ledger.moment` gives it; it ends with its block."""

    snapshot: LedgerTables

    def balance(self, path: str) -> Balance:
        """The amounts spent in a scope, and what its caps leave."""
        return Balance.of(self._node(scope_path(path)))

    def available(self, path: str) -> Amounts:
        """The most that a charge made now could ask here, each currency by itself, the whole chain heeded."""
        return Amounts(
            available([self._node(each).at(now()) for each in paths_down_to(scope_path(path))])
        )

    def upcoming(self, path: str) -> Balance:
        """The balance that a charge made now would find: that of a period which nothing was recorded in yet, too."""
        return Balance.of(self._node(scope_path(path)).at(now()))

    def balances(self, path: str | None = None) -> tuple[Balance, ...]:
        """The balances of a scope and of all below it, sorted by path; of all scopes without `path`."""
        if path is None:
            return tuple(Balance.of(self._in_time(node)) for node in self.snapshot.nodes())
        return tuple(self.some_balances(path))

    def some_balances(
        self, path: str | None, *, after: str = "", limit: int = EVERY
    ) -> list[Balance]:
        """The first balances of a scope and of all below it with paths after one, letter by letter, sorted by path."""
        tops = self.snapshot.roots() if path is None else [self._node(scope_path(path)).scope.path]
        found: list[Balance] = []
        for top in tops:
            # Siblings such as `path-2` lie between `path` and `path/`.
            if after < top and (node := self.snapshot.node(top)) is not None:
                found.append(Balance.of(self._in_time(node)))
            start = max(f"{top}/", f"{after}\1" if after else "")  # no path has such a letter
            nodes = self.snapshot.nodes_between(start, f"{top}0", limit=limit - len(found))
            if start < f"{top}0":
                found += [Balance.of(self._in_time(node)) for node in nodes]
            if len(found) >= limit:
                break
        return found[:limit]

    def scopes(self, path: str | None = None) -> tuple[Scope, ...]:
        """A scope and all below it, sorted by path; all scopes without `path`."""
        return tuple(balance.scope for balance in self.balances(path))

    def entries(self, path: str) -> Iterator[Entry]:
        """The entries of a scope and of all below it, oldest first."""
        top = self._node(scope_path(path)).scope.path
        return (record.entry for record in self.snapshot.records_of(top, below=True))

    def anchor(self) -> Anchor:
        """The heads of all chains; kept elsewhere, they show later whether anything was taken away."""
        return Anchor.of(self.snapshot)

    def now(self, root: str) -> str:
        """The time that an entry of a tree would record now: no earlier than that of the last one."""
        return now(self.last_time(root))

    def last_time(self, root: str) -> str:
        """The recorded time of the last entry of a tree; empty if there is none."""
        return self.snapshot.time(root)

    def left(self, paths: Sequence[str]) -> dict[str, Left]:
        """The amounts that a charge made now could still ask in each of these scopes, reservations left aside."""
        left: dict[str, Left] = {}
        for root in {root_of(path) for path in paths}:
            own = [path for path in paths if root_of(path) == root]
            left |= Tree(self.snapshot, root, self.now(root)).left(own)
        return left

    def _node(self, path: str) -> AccountNode:
        node = self.snapshot.node(path)
        if node is None:
            raise UnknownScopeError(path)
        return self._in_time(node)

    def _in_time(self, node: AccountNode) -> AccountNode:
        """The node in the period of the last entry of its tree, whatever the clock of the reader says."""
        time = "" if node.scope.renewal is None else self.last_time(node.scope.root)
        return node.at(time) if time else node


def _scope(ledger: Ledger, path: str = "") -> tuple[Iterator[Entry], Balance]:
    return ledger.entries(path), ledger.balance(path)


def _tree(ledger: Ledger, path: str | None = None) -> tuple[tuple[Balance, ...]]:
    return (ledger.balances(path),)


PAGE = 1000
TOGETHER = 4096
"""Scopes whose openings are decided at once; a store commits them in parts."""


@dataclass(frozen=True)
class Ledger(Listed):
    """A record of what was spent, on which data, by whom, and what is left. Any number of threads may share it.

    >>> ledger = Ledger.open("memory:")
    >>> scope = ledger.scope("world", caps={"epsilon": 0.3}, actor="Ada")
    >>> receipts = [ledger.charge("world", cost={"epsilon": 0.1}, actor="Ada", key=str(n)) for n in range(3)]
    >>> str(ledger.balance("world").left["epsilon"])
    '0'
    """

    store: Store
    plot = Plot(burn_down=_scope, icicle=_tree)
    file_of = staticmethod(file_of)
    is_of_database = staticmethod(is_of_database)
    may_write = staticmethod(may_write)
    replay = Replay

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        create: bool = True,
        restored: bool = False,
        read_only: bool = False,
    ) -> Ledger:
        """The ledger at `url`: a file, `sqlite:///file`, `postgresql://...`, or `memory:` for one that is not kept.

        Args:
            url: Where it is.
            create: Whether a ledger is made where there is none.
            restored: Whether a file may lack entries that were acknowledged: it was restored, and its keeper knows.
            read_only: Whether nothing is written, neither to it nor beside it: it may be in a folder without the right
                to write, on a read-only mount, on a standby of PostgreSQL, or that of a user who may only select.

        Raises:
            StoreError: It cannot be opened, or not be trusted to keep what it acknowledges.
        """
        if not isinstance(url, (str, Path)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("url", url, "text or a path")
        for name, value in (("create", create), ("restored", restored), ("read_only", read_only)):
            check.flag(name, value)
        return cls(open_store(str(url), create=create, restored=restored, read_only=read_only))

    def scope(
        self,
        path: str,
        *,
        kind: str = "filter",
        caps: Costs | None = None,
        slots: int | None = None,
        cost: Costs | None = None,
        renew: str | timedelta | None = None,
        description: Description = None,
        actor: str,
        key: str | None = None,
    ) -> Scope:
        """Open a scope; the one above it must be open. Repeating it is safe.

        Args:
            path: Its name, such as `world/acme/sales`.
            kind: `filter`: what is spent adds up within the caps. `slots`: a fixed number of children with the same
                fixed caps. `partition`: children hold disjoint people, and the largest of them counts.
            caps: The most that may be spent, by currency; for slots, in each. In a slot: None, or those of the slot.
            slots: How many slots.
            cost: For slots: what opening it charges the chain above, at once and for good.
            renew: When it begins anew, with the same caps and nothing spent: year, quarter, month, week or day of the
                calendar in UTC, or a duration. Its periods add up in the scopes above it.
            description: What it is, in plain values; a filter's description goes here.
            actor: Who opens it.
            key: An idempotency key, if several programs may open it in different words.

        Raises:
            DomainError: A value outside its domain.
            ScopeExistsError: It was opened otherwise before.
            UnknownScopeError: There is no scope above it.
            OverdrawnError: All slots are taken, or the cost does not fit.
            UnsupportedError: It cannot renew, or not otherwise than the scopes above it.
        """
        words: dict[str, Any] = {"slots": slots, "cost": cost, "renew": renew, "key": key}
        words |= {"caps": caps, "description": description, "actor": actor}
        scope = self._decided(Opening.of(path, kind, **words)).scope
        assert scope is not None, "an opening gives a scope"
        return scope

    def open_scopes(
        self,
        paths: Iterable[str],
        *,
        kind: str = "filter",
        caps: Costs | None = None,
        renew: str | timedelta | None = None,
        description: Description = None,
        actor: str,
    ) -> int:
        """Open many scopes alike, in few commits; how many they are. Repeating it is safe.

        Each must be below scopes that are open or stand before it. A refusal ends it, and leaves those open that were
        opened: say it again once its reason is gone.

        Args:
            paths: Their names.
            kind: See `scope`, as for all that follows.
            caps: Of each of them.
            renew: When each begins anew.
            description: Of each of them.
            actor: Who opens them.

        Raises:
            DomainError: A value outside its domain; then none is opened.
            LedgerError: See `scope`.
        """
        alike = Opening.of(
            "all", kind, caps=caps, renew=renew, description=description, actor=actor
        )
        trees: dict[str, list[Request]] = {}
        for path in dict.fromkeys(scope_paths(paths)):
            trees.setdefault(root_of(path), []).append(replace(alike, path=path))
        for openings in trees.values():
            for first in range(0, len(openings), TOGETHER):
                for outcome in self.store.transact(openings[first : first + TOGETHER]):
                    _granted(outcome)
        return sum(map(len, trees.values()))

    def charge(
        self,
        path: str,
        *,
        cost: Costs,
        description: Description = None,
        actor: str,
        key: str,
        priced: Sequence[Scope] = (),
    ) -> Receipt:
        """Charge a scope and all above it, before any noise is drawn. What is returned is durable.

        Args:
            path: A scope of kind filter.
            cost: An amount for every currency capped on its chain; a zero is written, never implied.
            description: What is charged, in plain values.
            actor: Who charges.
            key: The idempotency key, unique below the top-level scope: asked again, the same receipt and no new charge.
            priced: The scopes for which the cost was computed, the highest first and `path` last.

        Raises:
            OverdrawnError: It does not fit; recorded, and no balance is changed.
            UnsupportedError: The scope has a schedule, and the mechanism that is described is not next on it.
            ScopeExistsError: One of the scopes in `priced` was opened otherwise.
            CurrencyError: A currency is missing or unknown.
            KeyReusedError: The key was used for another request.
            UnknownScopeError, ClosedScopeError, ScopeKindError: The scope takes no charges.
            DomainError: A value outside its domain.
            StoreError: It could not be made durable.
        """
        receipt = self._decided(
            Charge.of(path, cost, description, actor=actor, key=key, priced=priced)
        ).receipt
        assert receipt is not None, "a charge gives a receipt"
        return receipt

    def charge_together(self, charges: Sequence[Charge]) -> list[Receipt | DPComposeError]:
        """Charge the scopes of one tree in that order, with one commit: the receipt of each, or its refusal.

        Args:
            charges: As `account.Quote.charge` makes them, all below one top-level scope.

        Raises:
            DomainError: Something else than charges, or charges of several trees.
            StoreError: They could not be made durable.
        """
        asked = list(charges) if isinstance(charges, Sequence) else [charges]  # pyright: ignore[reportUnnecessaryIsInstance]
        for each in asked:
            own = isinstance(each, Charge)  # pyright: ignore[reportUnnecessaryIsInstance]
            if not own or root_of(each.path) != root_of(asked[0].path):
                raise DomainError(
                    "charges", each, "charges of one tree, as `account.Quote.charge` makes them"
                )
        return [_receipt(each) for each in self.store.transact(asked)] if asked else []

    def redeem(self, receipt: Receipt, *, actor: str, nonce: str | None = None) -> None:
        """Use up a receipt, durably, before any noise is drawn: one charge pays for one answer.

        Args:
            receipt: As `charge` returned it.
            actor: Who redeems it; only who charged may.
            nonce: The name of this attempt, such as `secrets.token_hex(32)`, made and kept in the memory of the process
                that draws. After an uncertain failure the same nonce is answered alike, and every other is refused.
                Never write it anywhere: who has it may draw again. Without one there is no asking again.

        Raises:
            AlreadyRedeemedError: It was redeemed before, by another attempt.
            ReceiptError: This ledger did not give it, or gave it to somebody else.
        """
        check.kind("receipt", receipt, Receipt, "a receipt, as `charge` returns it")
        self._decided(Redemption(receipt, check.line("actor", actor), attempt_of(nonce)))

    def close_scope(self, path: str, *, actor: str, key: str) -> None:
        """Close a scope for good: nothing more is charged in it or below it; what was spent stays spent."""
        self._decided(Closing(scope_path(path), check.line("actor", actor), check.line("key", key)))

    def announce_key(self, root: str, key: VerifierKey, *, actor: str) -> str:
        """Record in the log of `root` that a key signs its checkpoints; returns the path of the scope that records it.

        Who trusts a checkpoint that an earlier key signed after this entry reads the new key from the log. Anybody who
        can write to the ledger can write this entry, so it publishes a key and does not make it trusted.

        Raises:
            LedgerError: See `scope`.
        """
        path, note = key_path(root, key), {"checkpoint_key": key.text}
        return self.scope(path, description={"note": note}, actor=actor).path

    def revoke_key(self, root: str, key: VerifierKey, *, actor: str) -> None:
        """Record in the log of `root` that a key signs no more: `verify` refuses its checkpoints of later entries.

        Raises:
            UnknownScopeError: The key was never announced there.
        """
        path = key_path(root, key)
        self.close_scope(path, actor=actor, key=f"close {path}")

    def state(self, *statements: Statement) -> None:
        """Record statements about people or policies in one tree: entries that change no balance.

        Raises:
            LedgerError: One does not hold, or another was recorded under its key.
        """
        for outcome in self.store.transact(statements):
            _granted(outcome)

    @contextmanager
    def moment(self) -> Generator[Moment]:
        """Open a block in which balances, entries and the anchor (the heads of all chains) are read as of one moment."""
        with self.store.snapshot() as snapshot:
            yield Moment(snapshot)

    def balance(self, path: str) -> Balance:
        """The amounts spent in a scope, and what its caps leave."""
        with self.moment() as moment:
            return moment.balance(path)

    def available(self, path: str) -> Amounts:
        """The most that a charge of this scope could still ask, each currency by itself, the whole chain heeded."""
        with self.moment() as moment:
            return moment.available(path)

    def balances(self, path: str | None = None) -> tuple[Balance, ...]:
        """The balances of a scope and of all below it at one moment, sorted by path; of all scopes without `path`."""
        with self.moment() as moment:
            return moment.balances(path)

    def scopes(self, path: str | None = None) -> tuple[Scope, ...]:
        """A scope and all below it, sorted by path; all scopes without `path`."""
        with self.moment() as moment:
            return moment.scopes(path)

    def entries(self, path: str, after: int = 0) -> Iterator[Entry]:
        """The entries of a scope and of all below it, oldest first, with numbers above `after`."""
        if not (type(after) is int and 0 <= after < 2**63):
            raise DomainError("after", sayable(after), "the number of an entry, or 0")
        return self._pages(self.balance(path).scope.path, after)

    def _pages(self, top: str, after: int) -> Iterator[Entry]:
        last = after
        while True:
            with self.store.snapshot() as snapshot:
                page = list(snapshot.records_of(top, below=True, after=last, limit=PAGE))
            if not page:
                return
            yield from (record.entry for record in page)
            last = page[-1].sequence

    def anchor(self) -> Anchor:
        """The heads of all chains; kept elsewhere, they show later whether anything was taken away."""
        with self.moment() as moment:
            return moment.anchor()

    def verify(
        self, anchor: Anchor | None = None, progress: Progress | None = None
    ) -> Verification:
        """Check every hash, decide every entry again, and compare every balance and the anchor.

        Raises:
            TamperedError: Something does not agree; `problems` says what.
        """
        if anchor is not None:
            check.kind(
                "anchor", anchor, Anchor, "an anchor, as `Ledger.anchor` returns it, or None"
            )
        with self.store.snapshot() as snapshot:
            return verify(snapshot, anchor=anchor, progress=progress)

    def close(self) -> None:
        """Let go of files and connections."""
        self.store.close()

    def _in_lines(self) -> tuple[str, list[str]]:
        """The amounts that the first scopes have spent and left."""
        with self.moment() as moment:
            shown = [
                Balance.of(node).in_words for node in islice(moment.snapshot.nodes(), MOST + 1)
            ]
        if len(shown) > MOST:
            shown[MOST - 1 :] = ["and more: see `balances`"]
        return "Ledger", shown or ["no scope is open"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decided(self, request: Request) -> RequestDecision:
        return _granted(self.store.transact([request])[0])


def _granted(outcome: Outcome) -> RequestDecision:
    """The decision; raises what the rules raised, or the refusal."""
    if isinstance(outcome, DPComposeError):
        raise outcome
    if outcome.refusal is not None:
        raise outcome.refusal
    return outcome


def _receipt(outcome: Outcome) -> Receipt | DPComposeError:
    if isinstance(outcome, DPComposeError):
        return outcome
    found = outcome.refusal or outcome.receipt
    assert found is not None, "a charge gives a receipt"
    return found
