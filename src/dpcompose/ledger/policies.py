"""Policies of a tree besides its budgets: reservations, quotas, thresholds and approvals, kept as facts of its chain.

No promise of privacy hangs on them: that no cap is exceeded is decided by the budgets, whatever happens here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol, Self

from dpcompose.errors import (
    ApprovalError,
    OverdrawnError,
    QuotaError,
    ReservationError,
    ReservedError,
    UnknownScopeError,
)
from dpcompose.ledger.amount import Amount, Amounts
from dpcompose.ledger.entry import Entry, Head
from dpcompose.ledger.scope import (
    AccountNode,
    available,
    is_at_or_below,
    paths_down_to,
    root_of,
    spend,
)
from dpcompose.ledger.text import encode

Facts = Mapping[tuple[str, str], str | None]
"""JSON texts by kind and name, in one tree; None where a fact ends."""


class Stored(Protocol):
    """The scopes and facts of a store at one moment."""

    def node(self, path: str) -> AccountNode | None:
        """The scope of that path with its balance."""
        ...

    def keyed(self, root: str, key: str) -> Entry | None:
        """The entry of that idempotency key below a top-level scope."""
        ...

    def head(self, root: str) -> Head:
        """The last entry below a top-level scope."""
        ...

    def fact(self, root: str, kind: str, name: str) -> str | None:
        """The fact of that kind and name in a tree, as JSON."""
        ...

    def facts(self, root: str, kind: str) -> Mapping[str, str]:
        """All facts of a kind in a tree, by name, as JSON."""
        ...


class View(Stored, Protocol):
    """The questions that rules may ask of a store; answers belong to one moment."""

    def entry(self, root: str, sequence: int) -> Entry | None:
        """The entry of that number."""
        ...

    def redemption(self, root: str, sequence: int) -> Entry | None:
        """The entry that redeems the charge of that number."""
        ...

    def time(self, root: str) -> str:
        """The recorded time of the last entry of a tree; empty if there is none. Asked after `head`."""
        ...


def later(time: str, seconds: float) -> str:
    """The time so many seconds after a recorded one, in the same form."""
    moment = datetime.fromisoformat(time) + timedelta(seconds=seconds)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


@dataclass(frozen=True)
class Fact:
    """A fact of a tree, stored as JSON under its kind and a name; fields are text, numbers, and amounts."""

    kind: ClassVar[str]

    @property
    def text(self) -> str:
        """The fact as JSON."""
        values = vars(self).items()
        return encode({name: v.texts() if isinstance(v, Amounts) else v for name, v in values})

    @classmethod
    def read(cls, text: str) -> Self:
        """The fact of a text that `text` wrote."""
        return _read(cls, text)

    @classmethod
    def of(cls, view: Stored, root: str, name: str) -> Self | None:
        """The fact of that name in a tree."""
        text = view.fact(root, cls.kind, name)
        return None if text is None else cls.read(text)

    @classmethod
    def all(cls, view: Stored, root: str) -> dict[str, Self]:
        """Those of a tree, by name, sorted."""
        return {name: cls.read(text) for name, text in sorted(view.facts(root, cls.kind).items())}


def amounts_of(value: Any) -> Any:
    """The amounts of a mapping; any other value as it is."""
    return Amounts.read(value) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownArgumentType]


@lru_cache(maxsize=4096)
def _read(kind: Any, text: str) -> Any:
    values: dict[str, Any] = json.loads(text)
    return kind(**{n: amounts_of(v) for n, v in values.items()})


def _sum(first: Mapping[str, int], *others: Mapping[str, int]) -> Amounts:
    return Amounts({n: units + sum(o.get(n, 0) for o in others) for n, units in first.items()})


@dataclass(frozen=True)
class Reservation(Fact):
    """Room for charges of one person in one scope. Nothing is charged, and nothing is drawn.

    Args:
        scope: Where.
        actor: Whose.
        held: The amounts kept.
        used: What its charges have used of them.
        until: When it ends; what was committed by then stays committed, and nothing is committed later.
    """

    kind = "reservation"
    LONGEST: ClassVar[float] = 90 * 86400.0
    MOST: ClassVar[int] = 100
    """Reservations that one person has at a time."""
    scope: str
    actor: str
    held: Amounts
    used: Amounts
    until: str

    @property
    def remaining(self) -> dict[str, int]:
        """The amounts that it still keeps, in units."""
        used = self.used.units
        return {name: max(units - used[name], 0) for name, units in self.held.units.items()}

    def use(self, cost: Mapping[str, int]) -> Reservation:
        """The reservation after one of its charges."""
        return replace(self, used=_sum(self.used.units, cost))

    def shown(self, name: str) -> dict[str, Any]:
        """The reservation of that name for an answer."""
        until = f"{self.until[:19]}+00:00"
        named = {"scope": self.scope, "actor": self.actor, "until": until, "reservation": name}
        return {**named, "held": self.held.texts(), "used": self.used.texts()}


ENDED = "ended reservation"
"""The kind of reservations that were given back or have expired."""
USED = "used"
"""The kind of facts that count what was spent under a quota."""
EVERYBODY = "*"
PERIODS = {"day": 10, "month": 7, "year": 4, "total": 0}
"""How much of a recorded time names the period."""


@dataclass(frozen=True)
class Quota(Fact):
    """The most that one person may spend at or below a scope in each period, from when it was set.

    Args:
        scope: Where.
        actor: Who; `*` for each person.
        period: day, month or year, in UTC; or total.
        caps: By currency; others are free.
        keeper: The subtree of who set it.
    """

    kind = "quota"
    scope: str
    actor: str
    period: str
    caps: Amounts
    keeper: str

    @property
    def name(self) -> str:
        """The name of the fact."""
        return encode([self.scope, self.actor])

    def is_about(self, scope: str, actor: str) -> bool:
        """Whether a charge counts here."""
        return self.actor in (EVERYBODY, actor) and is_at_or_below(scope, self.scope)

    def used(self, view: Stored, actor: str, time: str) -> tuple[str, dict[str, int]]:
        """The amounts that a person spent in the period of a time, in units, and the name of that fact."""
        name = encode([self.scope, self.actor, actor, self.label(time)])
        text = view.fact(root_of(self.scope), USED, name)
        units: Mapping[str, int] = Amounts.read(json.loads(text)).units if text else {}
        return name, {each: units.get(each, 0) for each in self.caps}

    def require(self, view: Stored, actor: str, cost: Mapping[str, int], time: str) -> None:
        """Raise QuotaError unless that much more fits in the period of a time."""
        _, used = self.used(view, actor, time)
        for name, cap in self.caps.units.items():
            left, wanted = max(cap - used[name], 0), cost.get(name, 0)
            if not wanted <= left:
                amounts = {"asked": Amount(wanted), "left": Amount(left)}
                raise QuotaError(self.scope, self.label(time), currency=name, **amounts)

    def label(self, time: str) -> str:
        """The period that a time lies in."""
        return time[: PERIODS[self.period]] or "total"

    def shown(self) -> dict[str, Any]:
        """For an answer."""
        named = {"scope": self.scope, "actor": self.actor, "period": self.period}
        return {**named, "caps": self.caps.texts()}


@dataclass(frozen=True)
class Threshold(Fact):
    """Amounts above which a charge at or below a scope, whose path names the fact, needs a second person.

    Args:
        amounts: By currency.
        keeper: The subtree of who set it.
    """

    kind = "threshold"
    amounts: Amounts
    keeper: str


OPEN, APPROVED, DECLINED = "open", "approved", "declined"


@dataclass(frozen=True)
class ApprovalRequest(Fact):
    """One charge that somebody wants to make; its name is the ledger's key of that charge.

    Args:
        scope: Where.
        actor: Who wants it.
        name: The same, without the subtree: whoever decides must have another name.
        charge: The mechanism and delta of the charge, as JSON.
        cost: The server's price when it was requested; the charge is priced again.
        reason: Why, in words.
        at: When it was requested.
        until: Until when it may be decided, or used.
        state: open, approved or declined.
        decided_by: Who decided.
    """

    kind = "request"
    LASTS: ClassVar[float] = 30 * 86400.0
    """Seconds for which a request is open, and after that for which an approval is good."""
    MOST: ClassVar[int] = 100
    """Requests that one person has open at a time."""
    scope: str
    actor: str
    name: str
    charge: str
    cost: Amounts
    reason: str
    at: str
    until: str
    state: str = OPEN
    decided_by: str = ""

    def shown(self, name: str) -> dict[str, Any]:
        """The request as an answer shows it."""
        named = {"request": name, "scope": self.scope, "actor": self.actor, "state": self.state}
        decided = {"decided_by": self.decided_by, "reason": self.reason, "cost": self.cost.texts()}
        return {**named, **decided, **json.loads(self.charge)}


@dataclass(frozen=True)
class Use:
    """A charge, or an opening that charges, as policies see it.

    Args:
        path: The scope that is charged.
        actor: Who charges.
        cost: The price, in units.
        key: The ledger's key of the charge; None where nobody can approve it.
        charge: The mechanism and delta, as JSON.
        reservation: The name of the reservation to use, if one is to be used.
    """

    path: str
    actor: str
    cost: Mapping[str, int]
    key: str | None = None
    charge: str = "{}"
    reservation: str | None = None


@dataclass
class Tree:
    """The policies and balances of a tree at one moment.

    Args:
        view: The store.
        root: The top-level scope.
        time: The recorded time of what is decided.
    """

    view: Stored
    root: str
    time: str
    _nodes: dict[str, AccountNode] = field(default_factory=dict[str, AccountNode])

    @cached_property
    def reservations(self) -> dict[str, Reservation]:
        """The reservations that have not ended, by name."""
        found = Reservation.all(self.view, self.root)
        return {name: each for name, each in found.items() if self.time < each.until}

    def reservation(self, name: str) -> Reservation | None:
        """The reservation of that name, also one that has ended."""
        live = self.view.fact(self.root, Reservation.kind, name)
        text = live or self.view.fact(self.root, ENDED, name)
        return None if text is None else Reservation.read(text)

    @cached_property
    def quotas(self) -> list[Quota]:
        """All quotas."""
        return list(Quota.all(self.view, self.root).values())

    def about(self, use: Use) -> list[Quota]:
        """The quotas under which a charge counts."""
        return [each for each in self.quotas if each.is_about(use.path, use.actor)]

    def expired(self) -> dict[tuple[str, str], str | None]:
        """The facts that end the reservations whose time is over."""
        texts = self.view.facts(self.root, Reservation.kind)
        over = {name: texts[name] for name in texts.keys() - self.reservations.keys()}
        return {(Reservation.kind, name): None for name in over} | {
            (ENDED, name): text for name, text in over.items()
        }

    def chain(self, path: str) -> list[AccountNode]:
        """The nodes down to a scope, with what is reserved and still to come counted as spent."""
        nodes = [self._nodes.get(each) or self.view.node(each) for each in paths_down_to(path)]
        return [each.at(self.time) for each in nodes if each is not None]

    def hold(self, *, besides: str | None = None) -> None:
        """Count as spent what every other reservation may still use, as far as the budgets have room for it."""
        self._nodes.clear()
        for name, each in self.reservations.items():
            chain = self.chain(each.scope)
            if name == besides or any(node.closed for node in chain):
                continue
            room = available(chain)
            held = {n: min(units, room.get(n, units)) for n, units in each.remaining.items()}
            try:
                self._nodes |= {node.scope.path: node for node in spend(chain, held)}
            except OverdrawnError:
                continue

    def require_room(self, path: str, cost: Mapping[str, int]) -> None:
        """Raise ReservedError if it does not fit beside what is reserved."""
        try:
            spend(self.chain(path), cost)
        except OverdrawnError as refusal:
            short = refusal.scope, refusal.currency, refusal.asked, refusal.left
            raise ReservedError(*short) from None

    def left(self, paths: Sequence[str]) -> dict[str, Left]:
        """The amounts left in each of these scopes.

        Raises:
            UnknownScopeError: There is no such scope.
        """
        for path in paths:
            if self.view.node(path) is None:
                raise UnknownScopeError(path)
        before = {path: self.chain(path)[-1].spent for path in paths}
        self.hold()
        left: dict[str, Left] = {}
        for path in paths:
            chain = self.chain(path)
            reserved = {name: units - before[path][name] for name, units in chain[-1].spent.items()}
            left[path] = Left(Amounts(available(chain)), reserved)
        return left

    def exceeded(self, use: Use) -> list[str]:
        """The scopes above whose thresholds a cost needs a second person."""
        thresholds, above = Threshold.all(self.view, self.root), paths_down_to(use.path)
        return [
            scope
            for scope in above
            if scope in thresholds
            and any(use.cost.get(n, 0) > u for n, u in thresholds[scope].amounts.units.items())
        ]


@dataclass(frozen=True)
class Left:
    """The amounts left in a scope beside those reserved.

    Args:
        amounts: The most that a charge without a reservation could ask, each currency by itself.
        reserved: The units that reservations may still use here, by currency.
    """

    amounts: Amounts
    reserved: Mapping[str, int]


Note = dict[str, Any]


def _reservation(tree: Tree, use: Use) -> Note:
    """The reservation that a charge uses is of that person, in that scope, and has room for it."""
    if use.reservation is None:
        return {}
    own = tree.reservation(use.reservation)
    if own is None or own.actor != use.actor:
        raise ReservationError("there is none of that name")
    if use.reservation not in tree.reservations:
        raise ReservationError("it has ended. Charge without it, or reserve again under a new key")
    if own.scope != use.path:
        where = f"it is one of {own.scope!r}. Charge that scope, or reserve in this one"
        raise ReservationError(where)
    if any(units > own.remaining.get(name, 0) for name, units in use.cost.items()):
        what = "less of it is left than this charge costs. Charge without it, or reserve more"
        raise ReservationError(what)
    return {"reservation": use.reservation}


def _approval(tree: Tree, use: Use) -> Note:
    """A second person approved a charge above a threshold."""
    above = tree.exceeded(use)
    if not above:
        return {}
    if use.key is None:
        what = "this is above a threshold, and nobody can approve it. Open fewer or smaller slots"
        raise ApprovalError(above[0], what)
    request, what = ApprovalRequest.of(tree.view, tree.root, use.key), ""
    if request is None:
        what = (
            "this charge is above a threshold. Request approval under the same key, then ask again"
        )
    elif (request.charge, request.scope) != (use.charge, use.path):
        what = "another charge was requested under this key. Request this one under a new key"
    elif request.state != APPROVED:
        state = "was declined" if request.state == DECLINED else "is not decided yet"
        what = f"the request for this charge {state}. Nothing was spent"
    elif not tree.time < request.until:
        what = "the approval has expired. Request it again under a new key"
    if what or request is None:
        raise ApprovalError(above[0], what)
    return {"approved": request.decided_by}


def _quota(tree: Tree, use: Use) -> Note:
    """The person's quotas have room."""
    for quota in tree.about(use):
        quota.require(tree.view, use.actor, use.cost, tree.time)
    return {}


def _room(tree: Tree, use: Use) -> Note:
    """There is room beside what others reserved."""
    if tree.reservations:
        tree.hold(besides=use.reservation)
        tree.require_room(use.path, use.cost)
    return {}


POLICIES: tuple[Callable[[Tree, Use], Note], ...] = (_approval, _quota, _room)
"""Each raises where it refuses, and returns what the entry is to note."""


def evaluate(tree: Tree, use: Use) -> Note:
    """Evaluate the policies of a tree for a charge; what its entry is to note.

    Raises:
        ReservationError, ApprovalError, QuotaError, ReservedError: A policy refuses it.
    """
    note = _reservation(tree, use)
    chain = tree.chain(use.path)
    if not chain or chain[-1].scope.path != use.path:
        return note  # there is no such scope, as the rules say
    chain[-1].require_currencies(use.cost)
    try:
        spend(chain, use.cost)
    except OverdrawnError:
        return note  # the budgets refuse it, and record that they did
    for policy in POLICIES:
        note |= policy(tree, use)
    return note


def usage(view: Stored, use: Use, time: str) -> Facts:
    """The facts that a charge changes: what was spent under quotas, and used of its reservation."""
    tree, facts = Tree(view, root_of(use.path), time), dict[tuple[str, str], str | None]()
    if not use.cost:
        return facts
    for quota in tree.about(use):
        name, used = quota.used(view, use.actor, time)
        facts[USED, name] = _sum(used, use.cost).text
    own = None if use.reservation is None else Reservation.of(view, tree.root, use.reservation)
    if own is not None and use.reservation is not None:
        facts[Reservation.kind, use.reservation] = own.use(use.cost).text
    return facts
