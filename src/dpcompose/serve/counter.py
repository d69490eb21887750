"""The counter: an analyst asks the tables of a catalog, and never sees a row.

*One visible draw.* An ask is one charge under a key; without one the key is a digest of the request, so the same
request is the same charge. The commit that charges also redeems the charge, for the one attempt that then draws: so
there is at most one draw for a charge, ever, whatever dies and when. It is stored before it leaves, and from then on is
the answer of that key. Where the process dies between the commit and the store, the key has "charged, no answer" for
ever, and what was not stored whole is deleted before anything else is drawn. So no answer was chosen among several,
and none is without its charge.

*Nothing but the numbers follows from a row.* Errors before the charge follow from the request, the catalog and the
ledger. The rows are read by a process of their own. After the charge an answer leaves at one of two moments: at
`after`, or at `limit` if the rows were not read by then. A scan that fails or takes longer is told at `limit`, and
closes the scope's tables for everybody until a keeper has looked: that this can be seen is one bit that no epsilon
pays for. So does a process that dies between a charge and its answer: a mark beside the answers, written after the
charge, is there when the tables are next asked. Whoever waits keeps the turn of these tables until the answer leaves,
and where servers share a database, from all of them.

*Several servers over one database* share the turn, the mark of who reads rows, and the answers (`Shared`). They queue for
a lock that the database keeps for each scope. It ends with its server, or with the connection that took it. Whoever
reads rows has left a mark before; so a mark that the next one finds was left by a server that died. An answer becomes
visible in the transaction that deletes the mark of its own attempt. Before that it is stored encrypted, and its key is
in memory only: so whatever the log of the database holds of a transaction that was lost, nothing was chosen.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import monotonic, sleep, time
from typing import Annotated, Any, cast

from dpcompose import errors, release
from dpcompose.account import Account, exact
from dpcompose.adaptive import Budget
from dpcompose.errors import StoreError
from dpcompose.ledger import Ledger, Receipt, SetFact, encode, root_of
from dpcompose.mechanisms import serialize
from dpcompose.serve.identity import OPERATOR, Identity, Role
from dpcompose.serve.queue import still_admitted
from dpcompose.serve.request import Answer, Field, exact_delta, line, number, route
from dpcompose.serve.service import Service

_TABLES = (
    "CREATE TABLE counter_answer (scope TEXT, name TEXT, body TEXT NOT NULL, key TEXT, "
    "stored TIMESTAMPTZ NOT NULL DEFAULT now(), PRIMARY KEY (scope, name))",
    "CREATE INDEX counter_answer_stored ON counter_answer (scope, stored)",
    "CREATE INDEX counter_answer_pending ON counter_answer (scope) WHERE key IS NULL",
)
_MARK = "SELECT body FROM counter_answer WHERE scope = ? AND name = 'reading'"
_NEW = "INSERT INTO counter_answer (scope, name, body) VALUES (?, ?, ?)"
_UNMARK = "DELETE FROM counter_answer WHERE scope = ? AND name = 'reading' AND body = ?"
_SHOW = (
    f"WITH own AS ({_UNMARK} RETURNING scope) UPDATE counter_answer SET key = ? FROM own "
    "WHERE counter_answer.scope = own.scope AND name = ? RETURNING name"
)
_FIND = "SELECT key, body FROM counter_answer WHERE scope = ? AND name = ? AND key IS NOT NULL"
_DELETE = (
    "DELETE FROM counter_answer WHERE scope = ? AND name <> 'reading' "
    "AND (key IS NULL OR stored < now() - make_interval(days => ?))"
)
LONGEST = 36_600
"""Days for which an answer is stored."""


@dataclass(eq=False)
class Shared(release.Shelf):
    """The turn, the mark and the answers of one scope.

    Args:
        store: The store of the ledger, on PostgreSQL.
        scope: The path of the scope.
    """

    store: Any
    scope: str
    _lock: Lock = field(default_factory=Lock)
    _rows: Any = None
    _attempt: str = ""

    def __post_init__(self) -> None:
        with self.store.turn("counter_answer") as rows:
            if rows.row("SELECT to_regclass('counter_answer')") == (None,):
                for statement in _TABLES:
                    rows.run(statement)

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Keep all other servers and threads from what follows; the other methods are for such a block."""
        with self._lock, self.store.turn(f"counter {self.scope}") as self._rows:
            yield

    def exists(self) -> bool:
        """Whether somebody's mark is there; from then on it is one's own."""
        mark = self._rows.row(_MARK, (self.scope,))
        self._attempt = "" if mark is None else mark[0]
        return mark is not None

    def touch(self) -> None:
        """Leave a mark, unless there is one."""
        if not self._attempt:
            self._attempt = secrets.token_hex(16)
            self._rows.run(_NEW, (self.scope, "reading", self._attempt))

    def unlink(self, *, missing_ok: bool = True) -> None:
        """Delete the own mark, by whatever connection there is."""
        if self._attempt:
            with self.store.turn(f"mark {self._attempt}") as rows:
                rows.run(_UNMARK, (self.scope, self._attempt))
            self._attempt = ""

    def turn(self, receipt: Receipt) -> AbstractContextManager[object]:
        """Whoever asks has the turn of the scope already."""
        return nullcontext()

    def read(self, name: str) -> tuple[str, str, str] | None:
        row = self._rows.row(_FIND, (self.scope, name))
        return None if row is None else (*row, self.store.url)

    def write(self, name: str, text: str) -> None:
        self._rows.run(_NEW, (self.scope, name, text))

    def show(self, name: str, key: str) -> None:
        if not self._rows.run(_SHOW, (self.scope, self._attempt, key, name)):
            raise StoreError(self.store.url, "another server has closed these tables", "Ask anew")
        self._attempt = ""

    def delete_unstored(self, days: float) -> None:
        """Delete answers that are too old, and those that never became visible."""
        self._rows.run(_DELETE, (self.scope, int(min(days, LONGEST))))


CONFIDENCE = 0.95
CLOSED = "closed tables"
"""The kind of facts that say why the tables of a scope are closed; empty: a keeper has looked."""
MOST_LETTERS = 20_000


@dataclass
class Desk:
    """The tables of one scope, and the process that reads them.

    Args:
        catalog: The tables.
        answers: The directory in which its answers are kept.
        after: Seconds from the charge to the answer.
        limit: Seconds from the charge in which the rows have to be read.
        memory: Gigabytes for reading them.
        days: For which an answer is stored; after them its key is spent.
        closed: Why nothing is read any more, where the ledger could not record it.
        lock: Of whoever asks here, until the answer leaves.
        quoting: Of whoever is told a price: by tables of the same columns without rows.
    """

    catalog: Any
    answers: Path
    after: float = 1.0
    limit: float = 20.0
    memory: float = 4.0
    days: float = math.inf
    closed: str = "the service ended before an answer was stored: its keeper must look"
    lock: Lock = field(default_factory=Lock)
    quoting: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        if not self.after < self.limit:
            domain = "seconds, after < limit"
            raise errors.DomainError(
                f"{self.scope}: after and limit", (self.after, self.limit), domain
            )
        self.answers.mkdir(mode=0o700, parents=True, exist_ok=True)
        store = self.catalog.ledger.store
        is_database = store.source is not None and Ledger.file_of(store.source) is None
        self.shared = Shared(store, self.scope) if is_database else None
        self.reading = self.shared or self.answers / "reading"
        with self.turn():
            pass
        self.start()
        public = {name: each.opened() for name, each in self.catalog.public.items()}
        self.public: Mapping[str, release.PublicTable] = public
        self.blank: Mapping[str, Any] = self.catalog.without_rows(self.catalog.described, public)

    @property
    def scope(self) -> str:
        """The path of the scope."""
        return self.catalog.scope

    def start(self) -> None:
        """Start the process that reads the rows."""
        worker = release.Worker(dict(self.catalog.tables), self.memory)
        try:
            self.tables: Mapping[str, Any] = worker.tables(self.catalog)
        except errors.DPComposeError:
            worker.close()
            raise
        self.worker = worker

    @contextmanager
    def turn(self) -> Generator[str]:
        """Keep everybody else from the tables; why they are closed, empty if they are not."""
        with self.lock if self.shared is None else self.shared.exclusive():
            is_marked = self.reading.exists()
            if is_marked:
                self.shut(self.closed)
            self.delete_unstored()
            yield self.closed if is_marked and self.reading.exists() else self.reason()

    def shut(self, reason: str) -> None:
        """Close the tables; where the ledger cannot record it now, it is recorded when they are asked again."""
        self.closed = reason
        with suppress(errors.StoreError):
            self.reading.touch()
            self.record(reason, OPERATOR)

    def record(self, reason: str, actor: str) -> None:
        """State in the ledger why the tables are closed, or with no reason that they are open.

        Raises:
            StoreError: If the ledger cannot be reached; then nothing changes here.
        """
        fact = SetFact(self.scope, actor, CLOSED, self.scope, encode(reason))
        self.catalog.ledger.state(fact)
        self.closed = Desk.closed
        self.reading.unlink(missing_ok=True)

    def reason(self) -> str:
        """Why the tables are closed, as the ledger has it; empty if they are not."""
        with self.catalog.ledger.moment() as moment:
            fact = moment.snapshot.fact(root_of(self.scope), CLOSED, self.scope)
        return str(fact or "").strip('"')

    def delete_unstored(self) -> None:
        """Delete answers that are too old, and draws that were not stored whole: nobody was told them, and nobody will be."""
        if self.shared is not None:
            return self.shared.delete_unstored(self.days)
        for each in self.answers.iterdir():
            old = each.suffix == ".json" and each.stat().st_mtime < time() - 86400 * self.days
            if old or each.suffix == ".partial":
                each.unlink(missing_ok=True)
        return None

    def leave(self, charged: float, *, failed: bool) -> None:
        """Wait for the moment at which the answer to a charge leaves."""
        early = not failed and monotonic() < charged + self.after
        sleep(max(charged + (self.after if early else self.limit) - monotonic(), 0.0))


class Payer(Account):
    """The account that an ask is charged to, with the policies of the service, as one identity.

    Args:
        service: Whose ledger is charged.
        who: Who asks.
        desk: Where.
        words: What the entry says besides.
    """

    service: Service
    who: Identity
    desk: Desk
    words: Mapping[str, Any]
    charged: list[float]
    """When it was charged, if it was."""
    may_draw: bool
    """Whether the commit of the charge redeemed it for this ask."""

    def __init__(
        self, service: Service, who: Identity, desk: Desk, words: Mapping[str, Any]
    ) -> None:
        vars(self).update(vars(service.account(desk.scope)), service=service, who=who, desk=desk)
        vars(self).update(words=words, charged=list[float](), may_draw=False)

    def charge(
        self,
        mechanism: Any,
        *,
        actor: str,
        key: str,
        delta: Any = None,
        description: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Charge a mechanism by the service's shared commits; the same commit redeems the receipt, which gives the right to
        draw the answer, unless somebody redeemed it before. The time within which the answer must come begins here.
        """
        fields = {
            "mechanism": serialize(mechanism) or "release",
            "key": key,
            "delta": None if delta is None else str(exact("delta", delta)),
            "description": {**(description or {}), **self.words},
            "reservation": None,
        }
        account, charge = self.service.ledger_charge(self.who, self.quote(mechanism, delta), fields)

        charged = partial(self.service.charge_alone, account)
        try:
            receipt = release.Shelf.attempted(
                f"{charge.path} {charge.key}", lambda nonce: charged(charge.redeemed_by(nonce))
            )
            vars(self).update(may_draw=True)
        except errors.AlreadyRedeemedError:
            receipt = charged(charge)
        self.charged.append(monotonic())
        if self.may_draw:
            self.desk.reading.touch()
        self.desk.worker.until = self.charged[0] + self.desk.limit
        return receipt

    def redeem(self, receipt: Receipt, *, actor: str, nonce: str | None = None) -> None:
        """Say whether this ask may draw: the commit of the charge has decided it."""
        if not self.may_draw:
            raise errors.AlreadyRedeemedError(receipt.scope, receipt.sequence)


@dataclass
class Counter:
    """The desks of a service.

    Args:
        desks: By scope.
    """

    desks: Mapping[str, Desk]

    @classmethod
    def open(
        cls, ledger: Ledger, answers: Path, scopes: Mapping[str, Mapping[str, Any]]
    ) -> Counter:
        """The desks of the scopes of a file, whose catalogs are defined in the ledger unless they are there.

        Args:
            ledger: Where budgets are.
            answers: The directory in which answers are kept, those of each scope in one of its own.
            scopes: For each path `tables` and perhaps `public`, as `release.Catalog.define` takes them; `epsilon`
                and `delta`, for a scope that is to be opened; and `after`, `limit` and `memory`, as `Desk` does.

        Raises:
            DomainError: If a scope says something else, or a table cannot be opened.
        """
        desks: dict[str, Desk] = {}
        for path, stated in scopes.items():
            catalog, folder = _catalog(ledger, path, stated), sha256(path.encode()).hexdigest()[:32]
            numbers = {
                name: read(f"{path}: {name}", stated[name])
                for name, read in _NUMBERS.items()
                if name in stated
            }
            desks[path] = Desk(catalog, answers / folder, **numbers)
        return cls(desks)


_NUMBERS = {
    "after": number(most=600).read,
    "limit": number(most=600).read,
    "memory": number(most=4096).read,
    "days": number(most=36_600).read,
}


def _catalog(ledger: Ledger, path: str, stated: Any) -> Any:
    possible = {"public", "epsilon", "delta", *_NUMBERS}
    own = cast("dict[str, Any]", stated if isinstance(stated, dict) else {})
    if not {"tables"} <= {*own} <= {"tables", *possible} or not isinstance(own["tables"], dict):
        domain = f"a table with tables, and perhaps {', '.join(sorted(possible))}"
        raise errors.DomainError(f"catalog: {path}", [*own], domain)
    tables = cast("dict[str, Any]", own["tables"])
    try:
        catalog = release.Catalog(ledger, path)
    except errors.DPComposeError:
        if "epsilon" not in own:
            raise
        with suppress(errors.ScopeExistsError):  # another server opens it, too
            return release.Catalog.define(
                ledger, path, tables, public=own.get("public"), actor=OPERATOR,
                filter=Budget(own["epsilon"], own.get("delta", 1e-6)),
            )  # fmt: skip
        catalog = release.Catalog(ledger, path)
    remedy = "A scope has one catalog for good; another one needs a scope of its own"
    if {*catalog.tables} != {*tables}:
        raise errors.DomainError(
            f"catalog: {path}", [*tables], f"the tables {[*catalog.tables]}", remedy
        )
    differing = catalog.differing(tables)
    target = Account(ledger, scope=path).chain[-1].target
    if "epsilon" in own and target is not None:
        amounts = {"epsilon": own["epsilon"], "delta": own.get("delta", 1e-6)}
        pairs = zip(amounts.items(), target, strict=True)
        differing += [
            name for (name, typed), text in pairs if exact(name, typed) != exact(name, text)
        ]
    if differing:
        domain = "what the ledger has of it since the scope was opened"
        raise errors.DomainError(f"catalog: {path}", ", ".join(differing), domain, remedy)
    return catalog


def _any(name: str, value: Any) -> Any:
    return value


def _spend(name: str, value: Any) -> Any:
    """Amounts, also those that are written as fractions."""
    if not isinstance(value, dict):
        return value
    amounts = cast("dict[str, Any]", value)
    return {
        each: exact_delta(text) if isinstance(text, str) else text for each, text in amounts.items()
    }


def _statement(name: str, value: Any) -> str:
    """A statement without blanks around it and without a final semicolon, which make no other request."""
    if not (isinstance(value, str) and 0 < len(value) <= MOST_LETTERS):
        raise errors.DomainError(
            name, type(value).__name__, f"one SELECT, of at most {MOST_LETTERS:,} characters"
        )
    return value.strip().rstrip("; \t\r\n")


Statement = Annotated[str | None, Field({"type": "string", "maxLength": MOST_LETTERS}, _statement)]
Listed = Annotated[list[Any] | None, Field({"type": "array"}, _any)]
Spend = Annotated[
    Any,
    Field({"description": 'Amounts by currency, or a part of the budget such as "5%".'}, _spend),
]
TableName = Annotated[str, line("The name of a table in the catalog of the scope.")]
Error = Annotated[float | None, number(most=1e15)]


def served(service: Service, who: Identity) -> list[str]:
    """The scopes with tables that an identity may ask."""
    return [each for each in _desks(service) if who.role is Role.ANALYST and who.covers(each)]


def _desks(service: Service) -> Mapping[str, Desk]:
    return {} if service.counter is None else service.counter.desks


def bars(columns: Sequence[Answer]) -> list[tuple[str, list[float]]]:
    """The rows of an answer as a chart: their names; then in percent of its width 0, the number, and its two ends."""
    number = next((each for each in columns if "low" in each), None)
    if number is None or None in (*number["low"], *number["high"]):
        return []
    least, most = min(0, *number["low"]), max(0, *number["high"])
    names = zip(*(each["cells"] for each in columns if "low" not in each), strict=True)
    texts = (["NULL" if cell is None else str(cell) for cell in each] for each in names)
    titles = [f"{number['name']}: {', '.join(each)}" for each in texts]
    rows = zip(*(number[part] for part in ("cells", "low", "high")), strict=True)
    places = [[100 * (each - least) / (most - least or 1) for each in (0, *row)] for row in rows]
    return list(zip(titles or [number["name"]], places, strict=True))


@route("GET", *Role)
def tables(service: Service, who: Identity, scope: str) -> Answer:
    """The tables that can be asked here: columns, unit, bounds and ranges, nothing that comes from private rows."""
    desk = _desk(service, scope)
    session = _session(Payer(service, who, desk, {}), next(iter(desk.blank.values())))
    whole = {name: str(amount) for name, amount in session.percent("100%").items()}
    return {
        "tables": desk.catalog.described,
        "public": {
            name: {"kinds": own.kinds, "digest": own.digest} for name, own in desk.public.items()
        },
        "budget": whole,
        "closed": desk.reason(),
    }


@route("POST", Role.ANALYST, name="quote", reads=True)
def quoted(
    service: Service, who: Identity, scope: str, *, table: TableName, sql: Statement = None,
    questions: Listed = None, spend: Spend = None, error: Error = None, keys: Listed = None,
) -> Answer:  # fmt: skip
    """The price of a statement or of questions, and the error of the answer; nothing is charged, no row is read."""
    desk = _desk(service, scope)
    session = _session(Payer(service, who, desk, {}), _table(desk.blank, table))
    with desk.quoting:
        if sql is not None:
            found = session.explain(sql, spend=spend, error=error, keys=keys)
        else:
            found = session.explain(_questions(questions), spend=spend)
    return {"words": found.in_words(CONFIDENCE), "questions": found.rows}


@route("POST", Role.ANALYST, reads=True)
def ask(
    service: Service, who: Identity, scope: str, *, table: TableName, sql: Statement = None,
    questions: Listed = None, spend: Spend = None, error: Error = None, keys: Listed = None,
    key: Annotated[str | None, line("The idempotency key; by default that of the request.")] = None,
) -> Answer:  # fmt: skip
    """The answer to a statement or to questions, for one charge; the same request, or key, has the same answer."""
    desk = _desk(service, scope)
    asked = [desk.catalog.version, table, sql, questions, spend, error, keys]
    request = json.dumps(asked, default=str, sort_keys=True)
    named = f"asked {sha256(request.encode()).hexdigest()}" if key is None else f"ask {key}"
    said = {"request": sha256(request.encode()).hexdigest()} | ({} if sql is None else {"sql": sql})
    if release.Explanation.is_requested(sql):
        raise errors.DomainError("sql", "EXPLAIN", "a SELECT; /v1/quote says what one costs")
    with desk.turn() as reason:
        if reason:
            raise errors.ReleaseError(f"{scope}: closed, {reason}. Nothing was charged")
        still_admitted()
        desk.worker.until = monotonic() + desk.limit
        if desk.worker.outdated:  # or a keeper has opened the tables elsewhere
            desk.start()
        desk.worker.until = monotonic() + desk.limit
        payer, failed = Payer(service, who, desk, said), False
        session = _session(payer, _table(desk.tables, table), desk.shared or desk.answers)
        try:
            if sql is None:
                found = session.batch(_questions(questions), spend=spend, key=named)
            else:
                found = session.sql(sql, spend=spend, error=error, keys=keys, key=named)
        except Exception as problem:
            # What the ledger and the store say after a charge follows from no row; anything else may.
            expected = (
                isinstance(problem, errors.LedgerError | errors.ReleaseError) or not payer.charged
            )
            failed = isinstance(problem, errors.EngineError) or not expected
            if isinstance(problem, errors.EngineError):
                desk.worker.close()
            if failed:
                desk.shut("its rows could not be read in time: its keeper must look")
            raise
        finally:
            if payer.charged:
                if payer.may_draw and not failed:
                    with suppress(errors.StoreError):
                        desk.reading.unlink(missing_ok=True)
                desk.leave(payer.charged[0], failed=failed)
    return {**_released(found), "key": named}


@route("POST", Role.KEEPER)
def reopen(service: Service, who: Identity, scope: str) -> Answer:
    """Open the tables of a scope again that were closed because their rows could not be read."""
    desk = _desk(service, scope)
    with desk.turn():
        desk.worker.close()
        desk.start()
        desk.record("", who.actor)
    return {"closed": ""}


def _desk(service: Service, scope: str) -> Desk:
    desks = _desks(service)
    if scope not in desks:
        raise errors.UnsupportedError(
            f"a statement to {scope!r}", "no catalog is served there", "Ask its keeper"
        )
    return desks[scope]


def _table(tables: Mapping[str, Any], name: str) -> Any:
    if name not in tables:
        raise errors.DomainError("table", name, f"one of {', '.join(tables)}")
    return tables[name]


def _session(payer: Payer, table: Any, answers: Path | Shared | None = None) -> Any:
    return release.Session(table, account=payer, actor=payer.who.actor, answers=answers)


def _questions(listed: Any) -> list[Any]:
    if not isinstance(listed, list) or not listed:
        raise errors.DomainError("questions", listed, "a list of questions, or a statement in sql")
    read = release.Session.read_questions(cast("list[object]", listed))
    return [replace(each, spend=_spend("spend", each.spend)) for each in read]


def _released(answer: Any) -> Answer:
    """An answer as JSON holds it: the columns that were asked for, and the answers that they were computed of."""
    shown = cast("tuple[Any, ...]", answer) if isinstance(answer, tuple) else (answer,)
    answers: list[release.Answer] = [part for each in shown for part in each.answers]
    return {
        "tables": [_columns(each) for each in shown],
        "answers": [each.document for each in answers],
        "spends": [each.design.spend.amounts(str) for each in answers],
        "receipt": answers[0].receipt.to_json(),
        "replayed": answers[0].replayed,
    }


def _columns(answer: Any) -> list[Answer]:
    bounded, columns = {*answer.bounded}, list[Answer]()
    for each in answer.columns:
        cells = [str(cell) if isinstance(cell, date) else _finite(cell) for cell in each.cells]
        column: Answer = {"name": each.name, "type": each.type, "cells": cells}
        if each.name in bounded:
            ends = answer.interval_of(each.name, CONFIDENCE)
            column |= {
                name: [_finite(cell) for cell in end]
                for name, end in zip(("low", "high"), ends, strict=True)
            }
        columns.append(column)
    return columns


def _finite(cell: Any) -> Any:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
