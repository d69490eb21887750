"""The answers about terms: reservations, quotas, thresholds, and requests that a second person decides."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated
from unicodedata import normalize

from dpcompose import check
from dpcompose.errors import (
    ApprovalError,
    DomainError,
    KeyReusedError,
    ReservationError,
    UnsupportedError,
)
from dpcompose.ledger import Amounts, encode, is_at_or_below, paths_down_to, root_of, spend
from dpcompose.serve import approval, reservation
from dpcompose.serve.approval import APPROVED, DECLINED, OPEN, ApprovalRequest
from dpcompose.serve.identity import Identity, Role
from dpcompose.serve.quota import PERIODS, Quota, drop_quota, keep_quota
from dpcompose.serve.request import (
    Answer,
    Caps,
    Delta,
    Key,
    Mechanism,
    integer,
    line,
    number,
    route,
)
from dpcompose.serve.reservation import Reservation, end, reservation_named
from dpcompose.serve.service import Service, own_key
from dpcompose.serve.terms import Tree, require_room

MOST_SHOWN = 1000


@contextmanager
def _tree(service: Service, scope: str) -> Generator[Tree]:
    terms = service.terms
    now = terms.database.now()
    with terms.turns.alone(root_of(scope)) as run, terms.ledger.moment() as moment:
        moment.balance(scope)
        yield Tree.caught_up(run, moment, root_of(scope), now)


@route("POST", Role.ANALYST)
def reserve(
    service: Service,
    who: Identity,
    scope: str,
    *,
    mechanism: Mechanism,
    key: Key,
    seconds: Annotated[float, number(most=reservation.LONGEST)],
    times: Annotated[int, integer(most=10**6)] = 1,
    delta: Delta = None,
) -> Answer:
    """Keep room for so many charges of a mechanism, for a while."""
    fields = {"scope": scope, "times": times, "seconds": seconds} | _named(mechanism, delta)
    name, asked, price = own_key(who, key), encode(fields), _price(service, scope, mechanism, delta)
    cost = Amounts({name: units * times for name, units in price.units.items()})
    with _tree(service, scope) as tree:
        earlier = reservation_named(tree.run, name)
        if earlier is not None:
            if earlier.request != asked:
                raise KeyReusedError(key, scope)
            return earlier.shown()
        own = [each for each in tree.reservations if each.actor == who.actor]
        if not len(own) < reservation.MOST:
            raise ReservationError(
                f"one person has at most {reservation.MOST} at a time. Give one back"
            )
        spend(tree.chain(scope), cost.units)
        tree.hold(besides=None)
        require_room(tree.chain(scope), cost)
        for quota in tree.quotas:
            if quota.is_about(scope, who.actor):
                held = [each.remaining for each in own if quota.is_about(each.scope, who.actor)]
                quota.require(tree.run, who.actor, _sum([cost.units, *held]), tree.time)
        none = Amounts(dict.fromkeys(cost, 0))
        until = tree.now + seconds
        new = Reservation(
            name, scope, who.actor, asked, held=cost, used=none, expires=until, ended=False
        )
        reservation.keep(tree.run, tree.root, new)
        return new.shown()


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
        raise DomainError(field, value, "text of at most 5000 characters on one line")
    name = value if is_keeper else own_key(who, value)
    with _tree(service, scope) as tree:
        held = reservation_named(tree.run, name)
        if held is None or held.scope != scope or not (is_keeper or held.actor == who.actor):
            raise ReservationError("there is none of that name")
        end(tree.run, name)
        return {"ended": name, "used": held.used.texts()}


@route("POST", Role.KEEPER)
def quota(
    service: Service,
    who: Identity,
    scope: str,
    *,
    actor: Annotated[str, line("NAME@SUBTREE, or * for each.", most=256)],
    caps: Caps,
    period: Annotated[str, line(enum=list(PERIODS))] = "total",
) -> Answer:
    """Set the most that a person may spend in each period at or below a scope; empty caps take it away."""
    new = Quota(scope, check.line("actor", actor), period, caps, who.subtree)
    with _tree(service, scope) as tree:
        for each in tree.quotas:
            if (each.scope, each.actor) == (scope, actor):
                _require_not_above(who, each.keeper)
        if new.caps:
            keep_quota(tree.run, tree.root, new)
        else:
            drop_quota(tree.run, new)
    return new.shown()


@route("POST", Role.KEEPER)
def threshold(service: Service, who: Identity, scope: str, *, amounts: Caps) -> Answer:
    """Say above which amounts a charge at or below a scope needs a second person; no amounts take it away."""
    with _tree(service, scope) as tree:
        for (keeper,) in tree.run("select keeper from service_threshold where scope = ?", (scope,)):
            _require_not_above(who, keeper)
        tree.run("delete from service_threshold where scope = ?", (scope,))
        if amounts:
            values = scope, tree.root, amounts.text, who.subtree
            tree.run(
                "insert into service_threshold (scope, root, amounts, keeper) values (?, ?, ?, ?)",
                values,
            )
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
    name, asked = own_key(who, key), encode(_named(mechanism, delta))
    cost = _price(service, scope, mechanism, delta)
    with _tree(service, scope) as tree:
        earlier = approval.request_of(tree.run, name)
        if earlier is not None:
            if (earlier.charge, earlier.scope, earlier.reason) != (asked, scope, reason):
                raise KeyReusedError(key, scope)
            return earlier.shown()
        new = ApprovalRequest(
            name,
            scope,
            who.actor,
            who.name,
            asked,
            cost=cost,
            reason=reason,
            state=OPEN,
            decided_by="",
            expires=tree.now + approval.LASTS,
        )
        approval.keep(tree.run, tree.root, new, now=tree.now)
        return new.shown()


@route("POST", Role.KEEPER)
def decide(
    service: Service,
    who: Identity,
    scope: str,
    *,
    request: Annotated[str, line("Its name.")],
    decision: Annotated[str, line(enum=[APPROVED, DECLINED])],
) -> Answer:
    """Approve or decline a request of somebody else, before any data is touched."""
    with _tree(service, scope) as tree:
        found = approval.request_of(tree.run, request)
        if found is None or found.scope != scope:
            raise ApprovalError(scope, "there is no such request in this scope")
        if (found.state, found.decided_by) == (decision, who.actor):
            return found.shown()
        if found.state != OPEN:
            raise ApprovalError(scope, f"this request was {found.state} before")
        if not tree.now < found.expires:
            raise ApprovalError(scope, "this request has expired")
        if _folded(found.name) == _folded(who.name):
            raise ApprovalError(scope, "a second person decides; this request has your name")
        return approval.decide(
            tree.run, found, decision, by=who.actor, expires=tree.now + approval.LASTS
        ).shown()


@route("GET", *Role)
def requests(service: Service, who: Identity, scope: str) -> Answer:
    """The requests at or below a scope, the newest first; an analyst's own."""
    service.ledger.balance(scope)
    with service.terms.database.transaction(write=False) as run:
        found = approval.requests_of(run, root_of(scope), MOST_SHOWN)
    return {
        "requests": [each.shown() for each in found if _may_see(who, scope, each.scope, each.actor)]
    }


@route("GET", *Role)
def agreed(service: Service, who: Identity, scope: str) -> Answer:
    """The terms that hold at a scope, and the reservations at or below it; an analyst's own."""
    now, above = service.terms.database.now(), set(paths_down_to(scope))
    with (
        service.terms.database.transaction(write=False) as run,
        service.ledger.moment() as moment,
    ):
        moment.balance(scope)
        tree = Tree.looked_at(run, moment, root_of(scope), now)
        quotas, held = tree.quotas, tree.reservations
        thresholds = approval.thresholds_of(run, tree.root)
    theirs = [
        each
        for each in quotas
        if who.role is not Role.ANALYST or each.is_about(each.scope, who.actor)
    ]
    return {
        "reservations": [
            each.shown() for each in held if _may_see(who, scope, each.scope, each.actor)
        ],
        "quotas": [
            each.shown()
            for each in theirs
            if each.scope in above or is_at_or_below(each.scope, scope)
        ],
        "thresholds": [
            {"scope": each, "amounts": found.texts()}
            for each, found in thresholds.items()
            if each in above or is_at_or_below(each, scope)
        ],
    }


def _price(service: Service, scope: str, mechanism: str, delta: str | None) -> Amounts:
    return service.quote(scope, mechanism, delta).cost


def _sum(amounts: Sequence[Mapping[str, int]]) -> Amounts:
    return Amounts({name: sum(each.get(name, 0) for each in amounts) for name in amounts[0]})


def _folded(name: str) -> str:
    """Folds the spellings of a name into one text: letter case, combining marks and full-width letters."""
    return normalize("NFKC", normalize("NFKC", name).casefold())


def _may_see(who: Identity, scope: str, path: str, actor: str) -> bool:
    return is_at_or_below(path, scope) and (who.role is not Role.ANALYST or actor == who.actor)


def _named(mechanism: str, delta: str | None) -> Answer:
    """The mechanism and delta of a request, as they were written."""
    return {"mechanism": mechanism} | ({} if delta is None else {"delta": delta})


def _require_not_above(who: Identity, keeper: str) -> None:
    """Refuse a keeper of a smaller subtree who would change what the keeper of a larger one set."""
    if who.subtree and not (keeper and who.covers(keeper)):
        raise UnsupportedError(
            "changing this", "a keeper of a larger subtree has set it", "Ask that keeper"
        )
