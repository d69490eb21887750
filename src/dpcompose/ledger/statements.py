"""Statements: entries that invite and revoke people, and that set, use and end policies of a tree."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Any

from dpcompose.errors import (
    ApprovalError,
    DomainError,
    ReservationError,
    UnknownScopeError,
    UnsupportedError,
)
from dpcompose.ledger.amount import Amounts
from dpcompose.ledger.entry import Entry
from dpcompose.ledger.policies import (
    APPROVED,
    DECLINED,
    ENDED,
    OPEN,
    USED,
    ApprovalRequest,
    Fact,
    Facts,
    Quota,
    Reservation,
    Threshold,
    Tree,
    Use,
    View,
    amounts_of,
    evaluate,
    later,
)
from dpcompose.ledger.requests import Charge, Opening, RequestDecision, decided_before
from dpcompose.ledger.scope import is_at_or_below, root_of, spend
from dpcompose.ledger.text import encode

PEOPLE = "~people"
"""The tree in whose chain people are invited and revoked; a scope without a budget."""
WEEK = 7 * 86400.0
"""Whoever is to stay as the last keeper has a token for so long, or as long as the one that is revoked."""
_OWN = ("path", "actor", "key")


def covers(subtree: str, path: str) -> bool:
    """Whether a path lies in a subtree; the empty one is everything."""
    return not subtree or is_at_or_below(path, subtree)


_LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u043a\u043c\u0442\u043d\u0432"
    "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c5\u03c7\u03b5\u03c4\u03b2\u0131\u01010l1|",
    "aeopcyxijshdqwkmthb" + "aopviku" + "xetbia" + "oiii",
)


def skeleton(name: str) -> str:
    """One text for all spellings of a name that look alike: case, width, and letters of other scripts."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return folded.translate(_LOOKALIKES)


@dataclass(frozen=True)
class Statement:
    """An entry that changes facts, and no balance. Its fields besides these are what it states.

    Args:
        path: The scope that it is about.
        actor: Who states it.
        key: The idempotency key; None: stated again, it is another entry.
    """

    path: str
    actor: str
    key: str | None = field(default=None, kw_only=True)
    redeems = None

    @property
    def stated(self) -> dict[str, Any]:
        """The kind of the statement, and its own fields."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"kind": type(self).__name__} | {
            name: value.texts() if isinstance(value, Amounts) else value
            for name, value in values.items()
            if name not in _OWN
        }

    @staticmethod
    def read(path: str, actor: str, key: str | None, stated: Mapping[str, Any]) -> Statement:
        """The statement that an entry records."""
        values: dict[str, Any] = {name: amounts_of(value) for name, value in stated.items()}
        return STATEMENTS[values.pop("kind")](path, actor, key=key, **values)

    def decide(self, view: View, *, time: str) -> RequestDecision:
        """Decide it; a statement that changes nothing is no entry."""
        content = {"actor": encode(self.actor), "scope": encode(self.path)}
        content |= {} if self.key is None else {"key": encode(self.key)}
        content["statement"] = encode(self.stated)
        root = root_of(self.path)
        head = view.head(root)
        if decided_before(view, self.path, self.key, content) is not None:
            return RequestDecision()
        if view.node(self.path) is None:
            raise UnknownScopeError(self.path)
        tree = Tree(view, root, time)
        facts = self.changes(tree)
        if not facts:
            return RequestDecision()
        entry = Entry.after(head, Entry.STATED, content, time=time)
        return RequestDecision(entry, facts={**tree.expired(), **facts})

    def changes(self, tree: Tree) -> Facts:
        """The facts that it changes; raises LedgerError where it must leave no trace."""
        raise NotImplementedError


@dataclass(frozen=True)
class Reserve(Statement):
    """Keep room for charges of the actor."""

    reservation: str
    charge: str
    times: int
    seconds: float
    cost: Amounts

    def changes(self, tree: Tree) -> Facts:
        if tree.reservation(self.reservation) is not None:  # of an earlier version
            return {}
        own = [each for each in tree.reservations.values() if each.actor == self.actor]
        if not len(own) < Reservation.MOST:
            what = f"one person has at most {Reservation.MOST} at a time. Give one back"
            raise ReservationError(what)
        cost, use = self.cost.units, Use(self.path, self.actor, self.cost.units)
        spend(tree.chain(self.path), cost)
        tree.hold()
        tree.require_room(self.path, cost)
        for quota in tree.about(use):
            held = [each.remaining for each in own if quota.is_about(each.scope, self.actor)]
            total = {n: units + sum(h.get(n, 0) for h in held) for n, units in cost.items()}
            quota.require(tree.view, self.actor, total, tree.time)
        none, until = Amounts(dict.fromkeys(self.cost, 0)), later(tree.time, self.seconds)
        new = Reservation(self.path, self.actor, held=self.cost, used=none, until=until)
        return {(Reservation.kind, self.reservation): new.text}


@dataclass(frozen=True)
class Unreserve(Statement):
    """Give a reservation back; whoever asks may, as the service decided before."""

    reservation: str

    def changes(self, tree: Tree) -> Facts:
        own = tree.reservations.get(self.reservation)
        if own is None:
            return {}
        return {
            (Reservation.kind, self.reservation): None,
            (ENDED, self.reservation): own.text,
        }


def _require_not_above(subtree: str, keeper: str) -> None:
    """Refuse a keeper of a smaller subtree who would change what the keeper of a larger one set."""
    if not covers(subtree, keeper) or (subtree and not keeper):
        what = "a keeper of a larger subtree has set it"
        raise UnsupportedError("changing this", what, "Ask that keeper")


@dataclass(frozen=True)
class SetQuota(Statement):
    """Set the most that a person may spend in each period; empty caps take it away, and what was counted under it."""

    person: str
    period: str
    caps: Amounts
    keeper: str

    def changes(self, tree: Tree) -> Facts:
        new = Quota(self.path, self.person, self.period, self.caps, self.keeper)
        old = Quota.of(tree.view, tree.root, new.name)
        if old is not None:
            _require_not_above(self.keeper, old.keeper)
        if self.caps:
            return {(Quota.kind, new.name): new.text}
        counted = [
            n
            for n in tree.view.facts(tree.root, USED)
            if json.loads(n)[:2] == [self.path, self.person]
        ]
        return {(Quota.kind, new.name): None} | {(USED, name): None for name in counted}


@dataclass(frozen=True)
class SetThreshold(Statement):
    """Set the amounts above which a charge needs a second person; empty ones take it away."""

    amounts: Amounts
    keeper: str

    def changes(self, tree: Tree) -> Facts:
        old = Threshold.of(tree.view, tree.root, self.path)
        if old is not None:
            _require_not_above(self.keeper, old.keeper)
        new = Threshold(self.amounts, self.keeper).text if self.amounts else None
        return {(Threshold.kind, self.path): new}


@dataclass(frozen=True)
class AskApproval(Statement):
    """Ask that a second person approves the charge whose key names the request."""

    request: str
    name: str
    charge: str
    cost: Amounts
    reason: str

    def changes(self, tree: Tree) -> Facts:
        if ApprovalRequest.of(tree.view, tree.root, self.request):  # of an earlier version
            return {}
        requests = ApprovalRequest.all(tree.view, tree.root).values()
        waiting = [r for r in requests if (r.actor, r.state) == (self.actor, OPEN)]
        if not sum(tree.time < each.until for each in waiting) < ApprovalRequest.MOST:
            what = f"{ApprovalRequest.MOST} of your requests are not decided yet. Wait for those"
            raise ApprovalError(self.path, what)
        until = later(tree.time, ApprovalRequest.LASTS)
        stated = self.name, self.charge, self.cost, self.reason
        new = ApprovalRequest(self.path, self.actor, *stated, at=tree.time, until=until)
        return {(ApprovalRequest.kind, self.request): new.text}


@dataclass(frozen=True)
class Decide(Statement):
    """Approve or decline a request of somebody else."""

    name: str
    request: str
    decision: str

    def changes(self, tree: Tree) -> Facts:
        request = ApprovalRequest.of(tree.view, tree.root, self.request)
        if (
            request is None
            or request.scope != self.path
            or self.decision not in (APPROVED, DECLINED)
        ):
            raise ApprovalError(self.path, "there is no such request in this scope")
        if (request.state, request.decided_by) == (self.decision, self.actor):
            return {}
        if request.state != OPEN:
            raise ApprovalError(self.path, f"this request was {request.state} before")
        if not tree.time < request.until:
            raise ApprovalError(self.path, "this request has expired")
        if skeleton(request.name) == skeleton(self.name):
            what = "a second person decides; this request has your name"
            raise ApprovalError(self.path, what)
        until = later(tree.time, ApprovalRequest.LASTS)
        decided = replace(request, state=self.decision, decided_by=self.actor, until=until)
        return {(ApprovalRequest.kind, self.request): decided.text}


KEPT = "kept"
"""The kind of descriptions that a keeper corrected, by scope and name."""


@dataclass(frozen=True)
class Correct(Statement):
    """Correct a description that is kept below a scope."""

    name: str
    description: str

    def changes(self, tree: Tree) -> Facts:
        return {(KEPT, encode([self.path, self.name])): self.description}


@dataclass(frozen=True)
class CountRefusals(Statement):
    """Say how many refusals of a person in an hour are no entries of their own."""

    person: str
    hour: str
    count: int

    def changes(self, tree: Tree) -> Facts:
        return {("refusals", encode([self.person, self.hour])): str(self.count)}


@dataclass(frozen=True)
class Token(Fact):
    """A token, or a subject of an issuer; the digest names the fact.

    Args:
        name: Of the person, as whoever invited wrote it.
        role: What it may do.
        subtree: Where: this scope and all below it; empty for every scope.
        until: When it expires, by the clock of the service.
        at: When it was invited.
        by: Who invited.
        revoked: When it was revoked; empty if it was not.
        revoked_by: Who revoked it.
    """

    kind = "token"
    name: str
    role: str
    subtree: str
    until: str
    at: str
    by: str
    revoked: str = ""
    revoked_by: str = ""

    def is_live(self, time: str) -> bool:
        """Whether it is good at a time."""
        return not self.revoked and time < self.until


CLOCK = "clock"
"""The kind of the fact that says how far the clock of the people had come."""
_TICK = (CLOCK, "")


@dataclass(frozen=True)
class Invite(Statement):
    """Invite a person: a token of that digest is good until a time."""

    digest: str
    name: str
    role: str
    subtree: str
    at: str
    until: str

    def changes(self, tree: Tree) -> Facts:
        tokens = Token.all(tree.view, tree.root)
        old = tokens.get(self.digest)
        if old is not None and old.is_live(self.at):
            what = "it is invited already, and has one role in one subtree"
            raise UnsupportedError("inviting this subject", what, "Revoke that first")
        for each in tokens.values():
            meets = covers(each.subtree, self.subtree) or covers(self.subtree, each.subtree)
            alike = each.name != self.name and skeleton(each.name) == skeleton(self.name)
            if alike and meets and each.is_live(self.at):
                domain = f"a name that does not look like {each.name!r}, who is invited"
                raise DomainError("name", self.name, domain)
        stated = self.name, self.role, self.subtree, self.until
        new = Token(*stated, at=self.at, by=self.actor)
        return {(Token.kind, self.digest): new.text, _TICK: encode(self.at)}


@dataclass(frozen=True)
class Revoke(Statement):
    """Revoke the tokens of a name in a subtree."""

    name: str
    subtree: str
    at: str

    def changes(self, tree: Tree) -> Facts:
        tokens = Token.all(tree.view, tree.root)
        own = {d: t for d, t in tokens.items() if (t.name, t.subtree) == (self.name, self.subtree)}
        if not own:
            domain = f"a name and scope as they were invited, not {self.subtree or 'every scope'}"
            raise DomainError("name", self.name, domain)
        live = {digest: each for digest, each in own.items() if each.is_live(self.at)}
        until = max((t.until for t in live.values() if t.role == "keeper"), default="")
        needed = min(until, later(self.at, WEEK))
        others = (t for digest, t in tokens.items() if digest not in live and t.is_live(self.at))
        keepers = (each for each in others if each.role == "keeper" and each.until >= needed)
        if until and not any(covers(each.subtree, self.subtree) for each in keepers):
            what = "nobody could keep that subtree"
            remedy = "Invite another for a week or longer first"
            raise UnsupportedError("revoking the last keeper", what, remedy)
        if not live:
            return {}
        changes: dict[tuple[str, str], str | None] = {_TICK: encode(self.at)}
        for digest, each in live.items():
            changes[Token.kind, digest] = replace(each, revoked=self.at, revoked_by=self.actor).text
        return changes


@dataclass(frozen=True)
class TrustClock(Statement):
    """Accept a clock that is behind a time that was recorded: tokens that were invited later are revoked."""

    at: str

    def changes(self, tree: Tree) -> Facts:
        tokens, latest = Token.all(tree.view, tree.root), later(self.at, 366 * 86400.0)
        wrong = {d: t for d, t in tokens.items() if t.at > self.at or t.until > latest}
        changes: dict[tuple[str, str], str | None] = {_TICK: encode(self.at)}
        for digest, each in wrong.items():
            changes[Token.kind, digest] = replace(each, revoked=self.at, revoked_by=self.actor).text
        return changes


@dataclass(frozen=True)
class Probe(Statement):
    """Changes nothing, and is never an entry: it waits for a turn as a charge does."""

    def changes(self, tree: Tree) -> Facts:
        return {}


@dataclass(frozen=True)
class Import(Statement):
    """Take over a fact that an earlier version kept in a file of people."""

    fact: str
    name: str
    value: str

    def changes(self, tree: Tree) -> Facts:
        return {(self.fact, self.name): self.value}


STATEMENTS: Mapping[str, Callable[..., Statement]] = {
    each.__name__: each
    for each in (
        Reserve,
        Unreserve,
        SetQuota,
        SetThreshold,
        AskApproval,
        Decide,
        Correct,
        CountRefusals,
        Invite,
        Revoke,
        TrustClock,
        Import,
    )
}


def noted(description: Mapping[str, Any]) -> dict[str, Any]:
    """The note of a description."""
    note: Any = description.get("note")
    return note if isinstance(note, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _shortened(charge: Charge) -> Charge:
    """The charge with the digest of its description in place of it."""
    digest = sha256(charge.description.encode()).hexdigest()
    return replace(charge, description=encode({"digest": digest}))


def _always(path: str, actor: str) -> bool:
    return True


LARGEST_REFUSAL = 1024
"""Bytes of the entry of a refusal; a longer description is replaced by its digest."""


@dataclass(frozen=True)
class EnforcedCharge(Charge):
    """A charge for which the policies of its tree are evaluated.

    Args:
        charge: The mechanism and delta as they were typed, as JSON.
        reservation: The name of the reservation to use, if one is to be used.
        may_record: Whether one more refusal of an actor is an entry.
    """

    charge: str = field(default="{}", kw_only=True)
    reservation: str | None = field(default=None, kw_only=True)
    may_record: Callable[[str, str], bool] = field(default=_always, kw_only=True, compare=False)

    def decide(self, view: View, *, time: str) -> RequestDecision:
        root = root_of(self.path)
        view.head(root)
        earlier = view.keyed(root, self.key)
        if earlier is None:
            named = self.key, self.charge, self.reservation
            note = evaluate(
                Tree(view, root, time), Use(self.path, self.actor, self.cost.units, *named)
            )
        else:  # it is answered as it was, whatever the policies have become
            approved = noted(earlier.description).get("approved")
            note = {} if self.reservation is None else {"reservation": self.reservation}
            note |= {} if approved is None else {"approved": approved}
        charge = self._described(self.description, note)
        if earlier is not None and "digest" in earlier.description:
            return _shortened(charge).decide(view, time=time)
        decision = charge.decide(view, time=time)
        if decision.refusal is None or decision.entry is None:
            return decision
        node, is_long = view.node(self.path), len(decision.entry.body) > LARGEST_REFUSAL
        if is_long and node is not None and node.scope.schedule is None:
            decision, is_long = _shortened(charge).decide(view, time=time), False
        if not is_long and self.may_record(self.path, self.actor):
            return decision
        return RequestDecision(refusal=decision.refusal)

    def _described(self, description: str, note: Mapping[str, Any]) -> Charge:
        if note:
            written = json.loads(description)
            description = encode({**written, "note": {**noted(written), **note}})
        return Charge(self.path, self.cost, description, self.actor, self.key, self.priced)


@dataclass(frozen=True)
class EnforcedOpening(Opening):
    """An opening for which the policies of the scopes above are evaluated, if it charges them."""

    def decide(self, view: View, *, time: str) -> RequestDecision:
        root, above = root_of(self.path), self.path.rpartition("/")[0]
        view.head(root)
        if self.cost and view.node(self.path) is None:
            evaluate(Tree(view, root, time), Use(above, self.actor, self.cost.units))
        return super().decide(view, time=time)
