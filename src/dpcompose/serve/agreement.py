"""The routes about policies: reservations, quotas, thresholds, and requests that a second person decides."""

from __future__ import annotations

from typing import Annotated

from dpcompose import check
from dpcompose.errors import DomainError, ReservationError
from dpcompose.ledger import (
    Amounts,
    ApprovalRequest,
    Quota,
    Reservation,
    Threshold,
    Tree,
    encode,
    is_at_or_below,
    paths_down_to,
    root_of,
)
from dpcompose.serve.identity import Identity, Role
from dpcompose.serve.request import (
    Answer,
    Caps,
    Delta,
    Key,
    Mechanism,
    Searched,
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
    seconds: Annotated[float, number(most=Reservation.LONGEST)],
    times: Annotated[int, integer(most=10**6)] = 1,
    delta: Delta = None,
) -> Answer:
    """Keep room for so many charges of a mechanism, for a while."""
    name, price = own_key(who, key), service.quote(scope, mechanism, delta).cost.units
    cost = Amounts({currency: units * times for currency, units in price.items()})
    charge = encode(named(mechanism, delta))
    stated = name, charge, times, seconds, cost
    service.ledger.state(Reservation.Reserve(scope, who.actor, *stated, key=f"reserve {name}"))
    return _reservation(service, scope, name).shown(name)


def _reservation(service: Service, scope: str, name: str) -> Reservation:
    """The reservation of that name, also one that has ended.

    Raises:
        ReservationError: There is none in this scope.
    """
    with service.ledger.moment() as moment:
        own = Tree(moment.snapshot, root_of(scope), "").reservation(name)
    if own is None or own.scope != scope:
        raise ReservationError("there is none of that name")
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
        raise DomainError(field, value, "text of at most 5000 characters on one line")
    service.ledger.balance(scope)
    name = value if is_keeper else own_key(who, value)
    _reservation(service, scope, name)
    service.ledger.state(Reservation.Return(scope, who.actor, name))
    return {"ended": name, "used": _reservation(service, scope, name).used.texts()}


@route("POST", Role.KEEPER)
def quota(
    service: Service,
    who: Identity,
    scope: str,
    *,
    actor: Annotated[str, line("NAME@SUBTREE, or * for each.", most=256)],
    caps: Caps,
    period: Annotated[str, line(enum=list(Quota.PERIODS))] = "total",
) -> Answer:
    """Set the most that a person may spend in each period at or below a scope; empty caps take it away."""
    stated = check.line("actor", actor), period, caps, who.subtree
    service.ledger.state(Quota.Set(scope, who.actor, *stated))
    return Quota(scope, *stated).shown()


@route("POST", Role.KEEPER)
def threshold(service: Service, who: Identity, scope: str, *, amounts: Caps) -> Answer:
    """Say above which amounts a charge at or below a scope needs a second person; no amounts take it away."""
    service.ledger.state(Threshold.Set(scope, who.actor, amounts, who.subtree))
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
    name, charge = own_key(who, key), encode(named(mechanism, delta))
    stated = name, who.name, charge, service.quote(scope, mechanism, delta).cost, reason
    service.ledger.state(ApprovalRequest.Ask(scope, who.actor, *stated, key=f"request {name}"))
    return _request(service, scope, name)


def _request(service: Service, scope: str, name: str) -> Answer:
    with service.ledger.moment() as moment:
        own = ApprovalRequest.of(moment.snapshot, root_of(scope), name)
    return {} if own is None else own.shown(name)


@route("POST", Role.KEEPER)
def decide(
    service: Service,
    who: Identity,
    scope: str,
    *,
    request: Annotated[str, line("Its name.")],
    decision: Annotated[str, line(enum=[ApprovalRequest.APPROVED, ApprovalRequest.DECLINED])],
) -> Answer:
    """Approve or decline a request of somebody else, before any data is touched."""
    service.ledger.state(ApprovalRequest.Decide(scope, who.actor, who.name, request, decision))
    return _request(service, scope, request)


@route("GET", *Role)
def requests(service: Service, who: Identity, scope: str) -> Answer:
    """The requests at or below a scope, the newest first; an analyst's own."""
    with service.ledger.moment() as moment:
        moment.balance(scope)
        every = ApprovalRequest.all(moment.snapshot, root_of(scope)).items()
    newest = sorted(every, key=lambda each: each[1].at, reverse=True)[:MOST_SHOWN]
    own = [each for each in newest if _may_see(who, scope, each[1].scope, each[1].actor)]
    return {"requests": [each.shown(name) for name, each in own]}


@route("GET", *Role)
def agreed(service: Service, who: Identity, scope: str) -> Answer:
    """The terms that hold at a scope, and the reservations at or below it; an analyst's own."""
    above = set(paths_down_to(scope))
    with service.ledger.moment() as moment:
        moment.balance(scope)
        tree = Tree(moment.snapshot, root_of(scope), moment.now(root_of(scope)))
        quotas = Quota.all(moment.snapshot, tree.root).values()
        held = tree.reservations.items()
        thresholds = Threshold.all(moment.snapshot, tree.root).items()
    is_analyst = who.role is Role.ANALYST
    theirs = [each for each in quotas if not is_analyst or each.is_about(each.scope, who.actor)]

    def is_near(path: str) -> bool:
        return path in above or is_at_or_below(path, scope)

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
def people(service: Service, who: Identity, scope: str, *, name: Searched = "") -> Answer:
    """Everybody who was ever invited at or below a scope, or one name; by whom and when, the newest first."""
    listed = [token for _, token in service.people.listed(scope) if name in ("", token.name)]
    return {"people": [vars(each) for each in listed[:MOST_SHOWN]]}


def _may_see(who: Identity, scope: str, path: str, actor: str) -> bool:
    return is_at_or_below(path, scope) and (who.role is not Role.ANALYST or actor == who.actor)
