"""The routes about policies: reservations, quotas, thresholds, and requests that a second person decides; and people and
policies that an earlier version kept in a file or database of their own, taken over into the ledger.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Set
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from dpcompose import check, errors, ledger
from dpcompose.serve.identity import OPERATOR, Identity, Role
from dpcompose.serve.request import (
    Answer,
    Caps,
    Delta,
    Key,
    Mechanism,
    Text,
    integer,
    line,
    number,
    route,
)
from dpcompose.serve.service import Service, named, own_key

MOST_SHOWN = 1000


@route("POST", Role.ANALYST)
def reserve(
    service: Service,
    who: Identity,
    scope: str,
    *,
    mechanism: Mechanism,
    key: Key,
    seconds: Annotated[float, number(most=ledger.Reservation.LONGEST)],
    times: Annotated[int, integer(most=10**6)] = 1,
    delta: Delta = None,
) -> Answer:
    """Keep room for so many charges of a mechanism, for a while."""
    name, price = own_key(who, key), service.quote(scope, mechanism, delta).cost.units
    cost = ledger.Amounts({currency: units * times for currency, units in price.items()})
    charge = ledger.encode(named(mechanism, delta))
    stated = name, charge, times, seconds, cost
    service.ledger.state(
        ledger.Reservation.Reserve(scope, who.actor, *stated, key=f"reserve {name}")
    )
    return _reservation(service, scope, name).shown(name)


def _reservation(service: Service, scope: str, name: str) -> ledger.Reservation:
    """The reservation of that name, also one that has ended.

    Raises:
        ReservationError: There is none in this scope.
    """
    with service.ledger.moment() as moment:
        own = ledger.Tree(moment.snapshot, ledger.root_of(scope), "").reservation(name)
    if own is None or own.scope != scope:
        raise errors.ReservationError("there is none of that name")
    return own


@route("POST", Role.KEEPER, Role.ANALYST)
def unreserve(
    service: Service,
    who: Identity,
    scope: str,
    *,
    key: Annotated[str | None, line("For analysts: the key, one's own.")] = None,
    reservation: Annotated[str | None, line("For keepers: its name.")] = None,
) -> Answer:
    """Give a reservation back: an analyst the own one, by its key; a keeper anybody's, by its name."""
    is_keeper = who.role is Role.KEEPER
    field, value = ("reservation", reservation) if is_keeper else ("key", key)
    if value is None:
        raise errors.DomainError(field, value, "text of at most 5000 characters on one line")
    service.ledger.balance(scope)
    name = value if is_keeper else own_key(who, value)
    _reservation(service, scope, name)
    service.ledger.state(ledger.Reservation.Return(scope, who.actor, name))
    return {"ended": name, "used": _reservation(service, scope, name).used.texts()}


@route("POST", Role.KEEPER)
def quota(
    service: Service,
    who: Identity,
    scope: str,
    *,
    actor: Annotated[str, line("NAME@SUBTREE, or * for each.", most=256)],
    caps: Caps,
    period: Annotated[str, line(enum=list(ledger.Quota.PERIODS))] = "total",
) -> Answer:
    """Set the most that a person may spend in each period at or below a scope; empty caps take it away."""
    stated = check.line("actor", actor), period, caps, who.subtree
    service.ledger.state(ledger.Quota.Set(scope, who.actor, *stated))
    return ledger.Quota(scope, *stated).shown()


@route("POST", Role.KEEPER)
def threshold(service: Service, who: Identity, scope: str, *, amounts: Caps) -> Answer:
    """Say above which amounts a charge at or below a scope needs a second person; no amounts take it away."""
    service.ledger.state(ledger.Threshold.Set(scope, who.actor, amounts, who.subtree))
    return {"scope": scope, "amounts": amounts.texts()}


@route("POST", Role.ANALYST)
def request(
    service: Service,
    who: Identity,
    scope: str,
    *,
    mechanism: Mechanism,
    key: Key,
    reason: Annotated[str, line("Why, in words.")],
    delta: Delta = None,
) -> Answer:
    """Ask that a second person approves the charge that will be asked under this key."""
    name, charge = own_key(who, key), ledger.encode(named(mechanism, delta))
    stated = name, who.name, charge, service.quote(scope, mechanism, delta).cost, reason
    service.ledger.state(
        ledger.ApprovalRequest.Ask(scope, who.actor, *stated, key=f"request {name}")
    )
    return _request(service, scope, name)


def _request(service: Service, scope: str, name: str) -> Answer:
    with service.ledger.moment() as moment:
        own = ledger.ApprovalRequest.of(moment.snapshot, ledger.root_of(scope), name)
    return {} if own is None else own.shown(name)


@route("POST", Role.KEEPER)
def decide(
    service: Service,
    who: Identity,
    scope: str,
    *,
    request: Annotated[str, line("Its name.")],
    decision: Annotated[
        str, line(enum=[ledger.ApprovalRequest.APPROVED, ledger.ApprovalRequest.DECLINED])
    ],
) -> Answer:
    """Approve or decline a request of somebody else, before any data is touched."""
    service.ledger.state(
        ledger.ApprovalRequest.Decide(scope, who.actor, who.name, request, decision)
    )
    return _request(service, scope, request)


@route("GET", *Role)
def requests(service: Service, who: Identity, scope: str) -> Answer:
    """The requests at or below a scope, the newest first; an analyst's own."""
    with service.ledger.moment() as moment:
        moment.balance(scope)
        every = ledger.ApprovalRequest.all(moment.snapshot, ledger.root_of(scope)).items()
    newest = sorted(every, key=lambda each: each[1].at, reverse=True)[:MOST_SHOWN]
    own = [each for each in newest if _may_see(who, scope, each[1].scope, each[1].actor)]
    return {"requests": [each.shown(name) for name, each in own]}


@route("GET", *Role)
def agreed(service: Service, who: Identity, scope: str) -> Answer:
    """The terms that hold at a scope, and the reservations at or below it; an analyst's own."""
    above = set(ledger.paths_down_to(scope))
    with service.ledger.moment() as moment:
        moment.balance(scope)
        tree = ledger.Tree(
            moment.snapshot, ledger.root_of(scope), moment.now(ledger.root_of(scope))
        )
        quotas = ledger.Quota.all(moment.snapshot, tree.root).values()
        held = tree.reservations.items()
        thresholds = ledger.Threshold.all(moment.snapshot, tree.root).items()
    is_analyst = who.role is Role.ANALYST
    theirs = [each for each in quotas if not is_analyst or each.is_about(each.scope, who.actor)]

    def is_near(path: str) -> bool:
        return path in above or ledger.is_at_or_below(path, scope)

    return {
        "reservations": [
            each.shown(name) for name, each in held if _may_see(who, scope, each.scope, each.actor)
        ],
        "quotas": [each.shown() for each in theirs if is_near(each.scope)],
        "thresholds": [
            {"scope": path, "amounts": each.amounts.texts()}
            for path, each in thresholds
            if is_near(path)
        ],
    }


@route("GET", Role.KEEPER, Role.AUDITOR)
def people(service: Service, who: Identity, scope: str, *, name: Text = "") -> Answer:
    """Everybody who was ever invited at or below a scope, or one name; by whom and when, the newest first."""
    listed = [token for _, token in service.people.listed(scope) if name in ("", token.name)]
    return {"people": [vars(each) for each in listed[:MOST_SHOWN]]}


def _may_see(who: Identity, scope: str, path: str, actor: str) -> bool:
    return ledger.is_at_or_below(path, scope) and (
        who.role is not Role.ANALYST or actor == who.actor
    )


_POSTGRES_TABLES = (
    "(select tablename as name from pg_tables where schemaname = current_schema()) own"
)
_EPOCH = "1970-01-01T00:00:00.000000Z"


def take_over(target: ledger.Ledger, source: str | Path) -> int:
    """Record everything in a file of people, or in the tables beside a ledger on PostgreSQL; returns how many facts.

    Taken over again it is not recorded twice. A file is renamed afterwards: `people.db.imported` is the backup.

    Raises:
        errors.StoreError: It cannot be read.
    """
    path, is_file = Path(source), not str(source).startswith("postgres")
    try:
        with closing(_connect(source, is_file=is_file)) as connection:
            names = "sqlite_master where type = 'table'" if is_file else _POSTGRES_TABLES
            tables = {n for (n,) in connection.execute(f"select name from {names}").fetchall()}
            is_earlier = is_file or "service_token" in tables
            facts = list(_facts(connection, tables)) if is_earlier else []
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("sqlite3", "psycopg"):
            raise
        remedy = "Name a file of people of an earlier version"
        raise errors.StoreError(
            path.name if is_file else "PostgreSQL", str(error), remedy
        ) from None
    _record(target, facts)
    if is_file:
        path.rename(path.with_name(f"{path.name}.imported"))
    return len(facts)


def _connect(source: str | Path, *, is_file: bool) -> Any:
    """A connection of either driver, for queries alone."""
    if is_file:
        return sqlite3.connect(f"{Path(source).resolve().as_uri()}?mode=ro", uri=True)
    import psycopg

    return psycopg.connect(f"postgresql:{str(source).partition(':')[2]}")


def _record(target: ledger.Ledger, facts: list[tuple[str, str, str, str]]) -> None:
    roots = {root for root, *_ in facts}
    if ledger.PEOPLE in roots:
        target.scope(ledger.PEOPLE, actor=OPERATOR)
    for root in sorted(roots):
        statements = [
            ledger.SetFact(root, OPERATOR, kind, name, text, key=_key(kind, name))
            for top, kind, name, text in facts
            if top == root
        ]
        target.state(*statements)


def _key(kind: str, name: str) -> str:
    return f"import-{sha256(ledger.encode([kind, name]).encode()).hexdigest()}"


def _facts(connection: Any, tables: Set[str]) -> Iterator[tuple[str, str, str, str]]:
    """Top-level scope, kind, name and text of each."""

    def rows(table: str, columns: str) -> list[tuple[Any, ...]]:
        return connection.execute(f"select {columns} from service_{table}").fetchall()

    issued = dict(rows("issued", "digest, issued")) if "service_issued" in tables else {}
    people = rows("token", "digest, name, role, subtree, expires, revoked")
    for digest, name, role, subtree, expires, revoked in people:
        at, gone = _time(issued.get(digest, 0.0)), OPERATOR if revoked else ""
        token = ledger.Token(name, role, subtree, until=_time(expires), at=at, by=OPERATOR)
        text = ledger.encode(vars(token) | {"revoked": at if revoked else "", "revoked_by": gone})
        yield ledger.PEOPLE, ledger.Token.kind, digest, text
    held = rows("reservation", "root, id, scope, actor, held, used, expires, ended")
    for root, name, scope, actor, kept, used, expires, ended in held:
        named = scope, actor, _amounts(kept), _amounts(used), _time(expires)
        kind = ledger.Reservation.ENDED if ended else ledger.Reservation.kind
        yield root, kind, name, ledger.Reservation(*named).text
    quotas = rows("quota", "root, scope, actor, period, caps, keeper")
    for root, scope, actor, period, caps, keeper in quotas:
        quota = ledger.Quota(scope, actor, period, _amounts(caps), keeper)
        yield root, ledger.Quota.kind, quota.name, quota.text
    for *name, used in rows("quota_used", "scope, quota, actor, period, used"):
        yield ledger.root_of(name[0]), ledger.Quota.USED, ledger.encode(name), _amounts(used).text
    for root, scope, amounts, keeper in rows("threshold", "root, scope, amounts, keeper"):
        yield root, ledger.Threshold.kind, scope, ledger.Threshold(_amounts(amounts), keeper).text
    columns = "root, id, scope, actor, name, asked, cost, reason, made, expires, state, decided_by"
    names = ("scope", "actor", "name", "charge", "cost", "reason", "at", "until", "state")
    for root, name, *fields in rows("request", columns):
        stated: dict[str, Any] = dict(zip((*names, "decided_by"), fields, strict=True))
        stated["cost"] = _amounts(stated["cost"])
        stated |= {each: _time(stated[each]) for each in ("at", "until")}
        yield root, ledger.ApprovalRequest.kind, name, ledger.ApprovalRequest(**stated).text


def _amounts(text: str) -> ledger.Amounts:
    return ledger.Amounts.read(json.loads(text))


def _time(seconds: float) -> str:
    return ledger.later(_EPOCH, seconds)
