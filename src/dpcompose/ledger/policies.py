"""Policies of a tree besides its budgets: reservations, quotas, thresholds and approvals, kept as facts of its chain.

No promise of privacy hangs on them: that no cap is exceeded is decided by the budgets, whatever happens here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from dpcompose import errors
from dpcompose.ledger.amount import Amount, Amounts, encode
from dpcompose.ledger.entry import Fact, Facts, Statement, View, later
from dpcompose.ledger.people import skeleton
from dpcompose.ledger.scope import (
    AccountNode,
    available,
    is_at_or_below,
    paths_down_to,
    root_of,
    spend,
)


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
    ENDED: ClassVar[str] = "ended reservation"
    """The kind of reservations that were given back or have expired."""
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

    @dataclass(frozen=True)
    class Reserve(Statement, stated="Reserve"):
        """Keep room for charges of the actor."""

        reservation: str
        charge: str
        times: int
        seconds: float
        cost: Amounts

        def changes(self, view: View, time: str) -> Facts:
            tree = Tree(view, self.root, time)
            if tree.reservation(self.reservation) is not None:  # of an earlier version
                return {}
            own = [each for each in tree.reservations.values() if each.actor == self.actor]
            if not len(own) < Reservation.MOST:
                what = f"one person has at most {Reservation.MOST} at a time. Give one back"
                raise errors.ReservationError(what)
            cost = self.cost.units
            spend(tree.chain(self.path), cost)
            tree.hold()
            tree.require_room(self.path, cost)
            for quota in tree.about(self.path, self.actor):
                held = [each.remaining for each in own if quota.is_about(each.scope, self.actor)]
                quota.require(view, self.actor, _sum(cost, *held).units, time)
            none, until = Amounts(dict.fromkeys(self.cost, 0)), later(time, self.seconds)
            new = Reservation(self.path, self.actor, held=self.cost, used=none, until=until)
            return {**tree.expired(), (Reservation.kind, self.reservation): new.text}

    @dataclass(frozen=True)
    class Return(Statement, stated="Unreserve"):
        """Give a reservation back; whoever asks may, as the service decided before."""

        reservation: str

        def changes(self, view: View, time: str) -> Facts:
            own = Tree(view, self.root, time).reservations.get(self.reservation)
            return {} if own is None else _ended({self.reservation: own.text})


def _ended(texts: Mapping[str, str]) -> dict[tuple[str, str], str | None]:
    """The facts that end reservations."""
    return {(Reservation.kind, name): None for name in texts} | {
        (Reservation.ENDED, name): text for name, text in texts.items()
    }


def _require_not_above(subtree: str, old: Quota | Threshold | None) -> None:
    """Refuse a keeper of a smaller subtree who would change what the keeper of a larger one set."""
    if old is not None and not is_at_or_below(old.keeper, subtree):
        what = "a keeper of a larger subtree has set it"
        raise errors.UnsupportedError("changing this", what, "Ask that keeper")


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
    USED: ClassVar[str] = "used"
    """The kind of facts that count what was spent under a quota."""
    EVERYBODY: ClassVar[str] = "*"
    PERIODS: ClassVar[Mapping[str, int]] = {"day": 10, "month": 7, "year": 4, "total": 0}
    """How much of a recorded time names the period."""
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
        return self.actor in (self.EVERYBODY, actor) and is_at_or_below(scope, self.scope)

    def used(self, view: View, actor: str, time: str) -> tuple[str, dict[str, int]]:
        """The amounts that a person spent in the period of a time, in units, and the name of that fact."""
        name = encode([self.scope, self.actor, actor, self.label(time)])
        text = view.fact(root_of(self.scope), self.USED, name)
        units: Mapping[str, int] = Amounts.read(json.loads(text)).units if text else {}
        return name, {each: units.get(each, 0) for each in self.caps}

    def require(self, view: View, actor: str, cost: Mapping[str, int], time: str) -> None:
        """Raise QuotaError unless that much more fits in the period of a time."""
        _, used = self.used(view, actor, time)
        for name, cap in self.caps.units.items():
            left, wanted = max(cap - used[name], 0), cost.get(name, 0)
            if not wanted <= left:
                amounts = {"requested": Amount(wanted), "left": Amount(left)}
                raise errors.QuotaError(self.scope, self.label(time), currency=name, **amounts)

    def label(self, time: str) -> str:
        """The period that a time lies in."""
        return time[: self.PERIODS[self.period]] or "total"

    def shown(self) -> dict[str, Any]:
        """For an answer."""
        named = {"scope": self.scope, "actor": self.actor, "period": self.period}
        return {**named, "caps": self.caps.texts()}

    @dataclass(frozen=True)
    class Set(Statement, stated="SetQuota"):
        """Set the most that a person may spend in each period; empty caps take it away, and what was counted under it."""

        person: str
        period: str
        caps: Amounts
        keeper: str

        def changes(self, view: View, time: str) -> Facts:
            root = self.root
            new = Quota(self.path, self.person, self.period, self.caps, self.keeper)
            _require_not_above(self.keeper, Quota.of(view, root, new.name))
            if self.caps:
                return {(Quota.kind, new.name): new.text}
            own = [self.path, self.person]
            counted = [n for n in view.facts(root, Quota.USED) if json.loads(n)[:2] == own]
            return {(Quota.kind, new.name): None} | {(Quota.USED, name): None for name in counted}


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

    @dataclass(frozen=True)
    class Set(Statement, stated="SetThreshold"):
        """Set the amounts above which a charge needs a second person; empty ones take it away."""

        amounts: Amounts
        keeper: str

        def changes(self, view: View, time: str) -> Facts:
            _require_not_above(self.keeper, Threshold.of(view, self.root, self.path))
            new = Threshold(self.amounts, self.keeper).text if self.amounts else None
            return {(Threshold.kind, self.path): new}


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
    OPEN: ClassVar[str] = "open"
    APPROVED: ClassVar[str] = "approved"
    DECLINED: ClassVar[str] = "declined"
    scope: str
    actor: str
    name: str
    charge: str
    cost: Amounts
    reason: str
    at: str
    until: str
    state: str = "open"
    decided_by: str = ""

    def shown(self, name: str) -> dict[str, Any]:
        """The request as an answer shows it."""
        named = {"request": name, "scope": self.scope, "actor": self.actor, "state": self.state}
        decided = {"decided_by": self.decided_by, "reason": self.reason, "cost": self.cost.texts()}
        return {**named, **decided, **json.loads(self.charge)}

    @dataclass(frozen=True)
    class Ask(Statement, stated="AskApproval"):
        """Ask that a second person approves the charge whose key names the request."""

        request: str
        name: str
        charge: str
        cost: Amounts
        reason: str

        def changes(self, view: View, time: str) -> Facts:
            requests = ApprovalRequest.all(view, self.root)
            if self.request in requests:  # of an earlier version
                return {}
            own = [each for each in requests.values() if each.actor == self.actor]
            waiting = [r for r in own if r.state == r.OPEN and time < r.until]
            if not len(waiting) < ApprovalRequest.MOST:
                what = (
                    f"{ApprovalRequest.MOST} of your requests are not decided yet. Wait for those"
                )
                raise errors.ApprovalError(self.path, what)
            until = later(time, ApprovalRequest.LASTS)
            stated = self.name, self.charge, self.cost, self.reason
            new = ApprovalRequest(self.path, self.actor, *stated, at=time, until=until)
            return {(ApprovalRequest.kind, self.request): new.text}

    @dataclass(frozen=True)
    class Decide(Statement, stated="Decide"):
        """Approve or decline a request of somebody else."""

        name: str
        request: str
        decision: str

        def changes(self, view: View, time: str) -> Facts:
            request = ApprovalRequest.of(view, self.root, self.request)
            decisions = ApprovalRequest.APPROVED, ApprovalRequest.DECLINED
            if request is None or request.scope != self.path or self.decision not in decisions:
                raise errors.ApprovalError(self.path, "there is no such request in this scope")
            if (request.state, request.decided_by) == (self.decision, self.actor):
                return {}
            what = ""
            if request.state != request.OPEN:
                what = f"this request was {request.state} before"
            elif not time < request.until:
                what = "this request has expired"
            elif skeleton(request.name) == skeleton(self.name):
                what = "a second person decides; this request has your name"
            if what:
                raise errors.ApprovalError(self.path, what)
            until = later(time, ApprovalRequest.LASTS)
            decided = replace(request, state=self.decision, decided_by=self.actor, until=until)
            return {(ApprovalRequest.kind, self.request): decided.text}


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

    view: View
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
        text = live or self.view.fact(self.root, Reservation.ENDED, name)
        return None if text is None else Reservation.read(text)

    def about(self, path: str, actor: str) -> list[Quota]:
        """The quotas under which a charge counts."""
        quotas = Quota.all(self.view, self.root).values()
        return [each for each in quotas if each.is_about(path, actor)]

    @property
    def has_policies(self) -> bool:
        """Whether anything was reserved, or a quota or threshold was set."""
        kinds = Reservation.kind, Quota.kind, Threshold.kind
        return any(self.view.facts(self.root, kind) for kind in kinds)

    def expired(self) -> dict[tuple[str, str], str | None]:
        """The facts that end the reservations whose time is over."""
        texts = self.view.facts(self.root, Reservation.kind)
        return _ended({name: texts[name] for name in texts.keys() - self.reservations.keys()})

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
            except errors.OverdrawnError:
                continue

    def require_room(self, path: str, cost: Mapping[str, int]) -> None:
        """Raise ReservedError if it does not fit beside what is reserved."""
        try:
            spend(self.chain(path), cost)
        except errors.OverdrawnError as refusal:
            short = refusal.scope, refusal.currency, refusal.requested, refusal.left
            raise errors.ReservedError(*short) from None

    def left(self, paths: Sequence[str]) -> dict[str, Left]:
        """The amounts left in each of these scopes.

        Raises:
            UnknownScopeError: There is no such scope.
        """
        for path in paths:
            if self.view.node(path) is None:
                raise errors.UnknownScopeError(path)
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
        raise errors.ReservationError("there is none of that name")
    if use.reservation not in tree.reservations:
        raise errors.ReservationError(
            "it has ended. Charge without it, or reserve again under a new key"
        )
    if own.scope != use.path:
        where = f"it is one of {own.scope!r}. Charge that scope, or reserve in this one"
        raise errors.ReservationError(where)
    if any(units > own.remaining.get(name, 0) for name, units in use.cost.items()):
        what = "less of it is left than this charge costs. Charge without it, or reserve more"
        raise errors.ReservationError(what)
    return {"reservation": use.reservation}


def _approval(tree: Tree, use: Use) -> Note:
    """A second person approved a charge above a threshold."""
    above = tree.exceeded(use)
    if not above:
        return {}
    if use.key is None:
        what = "this is above a threshold, and nobody can approve it. Open fewer or smaller slots"
        raise errors.ApprovalError(above[0], what)
    request, what = ApprovalRequest.of(tree.view, tree.root, use.key), ""
    if request is None:
        what = (
            "this charge is above a threshold. Request approval under the same key, then ask again"
        )
    elif (request.charge, request.scope) != (use.charge, use.path):
        what = "another charge was requested under this key. Request this one under a new key"
    elif request.state != request.APPROVED:
        state = "was declined" if request.state == request.DECLINED else "is not decided yet"
        what = f"the request for this charge {state}. Nothing was spent"
    elif not tree.time < request.until:
        what = "the approval has expired. Request it again under a new key"
    if what or request is None:
        raise errors.ApprovalError(above[0], what)
    return {"approved": request.decided_by}


def evaluate(tree: Tree, use: Use) -> Note:
    """Evaluate the policies of a tree for a charge; what its entry is to note.

    Raises:
        ReservationError, ApprovalError, QuotaError, ReservedError: A policy refuses it.
    """
    note = _reservation(tree, use)
    node = tree.view.node(use.path)
    if node is None:
        return note  # there is no such scope, as the rules say
    node.require_currencies(use.cost)
    if not tree.has_policies:
        return note
    try:
        spend(tree.chain(use.path), use.cost)
    except errors.OverdrawnError:
        return note  # the budgets refuse it, and record that they did
    note |= _approval(tree, use)
    for quota in tree.about(use.path, use.actor):
        quota.require(tree.view, use.actor, use.cost, tree.time)
    if tree.reservations:  # there is room beside what others reserved
        tree.hold(besides=use.reservation)
        tree.require_room(use.path, use.cost)
    return note


def usage(
    view: View, path: str, actor: str, cost: Mapping[str, int], description: str = "", *, time: str
) -> Facts:
    """The facts that a charge changes: what was spent under quotas, and used of the reservation that its note names."""
    root, facts = root_of(path), dict[tuple[str, str], str | None]()
    reservations, quotas = view.facts(root, Reservation.kind), view.facts(root, Quota.kind)
    if not cost or not (reservations or quotas):
        return facts
    for quota in Tree(view, root, time).about(path, actor):
        name, used = quota.used(view, actor, time)
        facts[Quota.USED, name] = _sum(used, cost).text
    note: Any = json.loads(description).get("note") if '"reservation"' in description else None
    own: Any = note.get("reservation") if isinstance(note, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if isinstance(own, str) and own in reservations:
        facts[Reservation.kind, own] = Reservation.read(reservations[own]).use(cost).text
    return facts
