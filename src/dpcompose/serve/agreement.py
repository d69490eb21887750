"""The answers about terms: reservations, quotas, thresholds, and requests that a second person decides."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

from dpcompose import check
from dpcompose.errors import (
    ApprovalError,
    DomainError,
    KeyReusedError,
    ReservationError,
    UnsupportedError,
)
from dpcompose.ledger import (
    Amounts,
    encode,
    is_at_or_below,
    paths_down_to,
    root_of,
    spend,
)
from dpcompose.serve import approval, reservation
from dpcompose.serve.approval import APPROVED, DECLINED, OPEN, ApprovalRequest
from dpcompose.serve.identity import Identity, Role
from dpcompose.serve.quota import PERIODS, Quota, drop_quota, keep_quota
from dpcompose.serve.request import LONGEST_MECHANISM, Answer, Fields, amounts, number, text
from dpcompose.serve.reservation import Reservation
from dpcompose.serve.terms import Terms, Tree, require_room

MOST_TIMES = 10**6
MOST_SHOWN = 1000


@dataclass(frozen=True)
class Agreements:
    """Creates, changes and shows the policies of a tree: reservations, quotas and thresholds.

    Args:
        terms: Those that charges heed.
        priced: The server's price of the mechanism in such fields.
        key: The ledger's key for a key of an actor.
    """

    terms: Terms
    priced: Callable[[str, Fields], Amounts]
    key: Callable[[Identity, str], str]

    @contextmanager
    def _tree(self, scope: str) -> Generator[Tree]:
        now = self.terms.database.now()
        with self.terms.turns.alone(root_of(scope)) as run, self.terms.ledger.moment() as moment:
            moment.balance(scope)
            yield Tree.caught_up(run, moment, root_of(scope), now)

    def reserve(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Keep room for so many charges of a mechanism, for a while."""
        times = fields.get("times", 1)
        if type(times) is not int or not 1 <= times <= MOST_TIMES:
            raise DomainError("times", times, f"an integer from 1 to {MOST_TIMES}")
        seconds = number(fields, "seconds", most=reservation.LONGEST)
        asked = encode({"scope": scope, "times": times, "seconds": seconds} | _named(fields))
        made = self.key(who, text(fields, "key"))
        cost = Amounts(
            {name: units * times for name, units in self.priced(scope, fields).units.items()}
        )
        with self._tree(scope) as tree:
            found = reservation.reservation_named(tree.run, made)
            if found is not None:
                if found.request != asked:
                    raise KeyReusedError(text(fields, "key"), scope)
                return found.shown()
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
                    kept = [each.remaining for each in own if quota.is_about(each.scope, who.actor)]
                    quota.require(tree.run, who.actor, _sum([cost.units, *kept]), tree.time)
            none = Amounts(dict.fromkeys(cost, 0))
            until = tree.now + seconds
            new = Reservation(
                made, scope, who.actor, asked, held=cost, used=none, expires=until, ended=False
            )
            reservation.keep(tree.run, tree.root, new)
            return new.shown()

    def unreserve(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Give a reservation back: an analyst the own one, by its key; a keeper anybody's, by its name."""
        if who.role is Role.KEEPER:
            named = text(fields, "reservation")
        else:
            named = self.key(who, text(fields, "key"))
        with self._tree(scope) as tree:
            found = reservation.reservation_named(tree.run, named)
            own = found is not None and (who.role is Role.KEEPER or found.actor == who.actor)
            if found is None or not own or found.scope != scope:
                raise ReservationError("there is none of that name")
            reservation.end(tree.run, named)
            return {"ended": named, "used": found.used.texts()}

    def quota(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Set the most that a person may spend in each period at or below a scope; empty caps take it away."""
        period, actor = fields.get("period", "total"), check.line("actor", text(fields, "actor"))
        if not (isinstance(period, str) and period in PERIODS):
            raise DomainError("period", period, ", ".join(PERIODS))
        made = Quota(scope, actor, period, amounts(fields, "caps"), who.subtree)
        with self._tree(scope) as tree:
            for each in tree.quotas:
                if (each.scope, each.actor) == (scope, actor):
                    _require_not_above(who, each.keeper)
            if made.caps:
                keep_quota(tree.run, tree.root, made)
            else:
                drop_quota(tree.run, made)
        return made.shown()

    def threshold(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Say above which amounts a charge at or below a scope needs a second person; no amounts take it away."""
        above = amounts(fields, "amounts")
        with self._tree(scope) as tree:
            for (keeper,) in tree.run(
                "select keeper from service_threshold where scope = ?", (scope,)
            ):
                _require_not_above(who, keeper)
            tree.run("delete from service_threshold where scope = ?", (scope,))
            if above:
                values = scope, tree.root, above.text, who.subtree
                tree.run(
                    "insert into service_threshold (scope, root, amounts, keeper) values (?, ?, ?, ?)",
                    values,
                )
        return {"scope": scope, "amounts": above.texts()}

    def request(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Ask that a second person approves the charge that will be asked under this key."""
        made, asked = self.key(who, text(fields, "key")), encode(_named(fields))
        reason, cost = text(fields, "reason"), self.priced(scope, fields)
        with self._tree(scope) as tree:
            found = approval.request_of(tree.run, made)
            if found is None:
                expires = tree.now + approval.LASTS
                said: dict[str, Any] = {
                    "cost": cost,
                    "reason": reason,
                    "state": OPEN,
                    "decided_by": "",
                }
                found = ApprovalRequest(
                    made, scope, who.actor, who.name, asked, expires=expires, **said
                )
                approval.keep(tree.run, tree.root, found, now=tree.now)
            elif (found.charge, found.scope, found.reason) != (asked, scope, reason):
                raise KeyReusedError(text(fields, "key"), scope)
            return found.shown()

    def decide(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Approve or decline a request of somebody else, before any data is touched."""
        decision, named = text(fields, "decision"), text(fields, "request")
        if decision not in (APPROVED, DECLINED):
            raise DomainError("decision", decision, f"{APPROVED} or {DECLINED}")
        with self._tree(scope) as tree:
            found = approval.request_of(tree.run, named)
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

    def requests(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The requests at or below a scope, the newest first; an analyst's own."""
        self.terms.ledger.balance(scope)
        with self.terms.database.transaction(write=False) as run:
            found = approval.requests_of(run, root_of(scope), MOST_SHOWN)
        return {
            "requests": [
                each.shown() for each in found if _may_see(who, scope, each.scope, each.actor)
            ]
        }

    def agreed(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The terms that hold at a scope, and the reservations at or below it; an analyst's own."""
        now, ways = self.terms.database.now(), set(paths_down_to(scope))
        with (
            self.terms.database.transaction(write=False) as run,
            self.terms.ledger.moment() as moment,
        ):
            moment.balance(scope)
            tree = Tree.looked_at(run, moment, root_of(scope), now)
            quotas, kept = tree.quotas, tree.reservations
            thresholds = approval.thresholds_of(run, tree.root)
        theirs = [
            each
            for each in quotas
            if who.role is not Role.ANALYST or each.is_about(each.scope, who.actor)
        ]
        return {
            "reservations": [
                each.shown() for each in kept if _may_see(who, scope, each.scope, each.actor)
            ],
            "quotas": [
                each.shown()
                for each in theirs
                if each.scope in ways or is_at_or_below(each.scope, scope)
            ],
            "thresholds": [
                {"scope": each, "amounts": found.texts()}
                for each, found in thresholds.items()
                if each in ways or is_at_or_below(each, scope)
            ],
        }


def _sum(amounts: Sequence[Mapping[str, int]]) -> Amounts:
    return Amounts({name: sum(each.get(name, 0) for each in amounts) for name in amounts[0]})


def _folded(name: str) -> str:
    """Folds the spellings of a name into one text: letter case, combining marks and full-width letters."""
    return normalize("NFKC", normalize("NFKC", name).casefold())


def _may_see(who: Identity, scope: str, path: str, actor: str) -> bool:
    return is_at_or_below(path, scope) and (who.role is not Role.ANALYST or actor == who.actor)


def _named(fields: Fields) -> dict[str, Any]:
    """The mechanism and delta of a request, as they were written."""
    given = fields.get("delta")
    named = {"mechanism": text(fields, "mechanism", most=LONGEST_MECHANISM)}
    return named | ({} if given is None else {"delta": text(fields, "delta")})


def _require_not_above(who: Identity, keeper: str) -> None:
    """Refuse a keeper of a smaller subtree who would change what the keeper of a larger one set."""
    if who.subtree and not (keeper and who.covers(keeper)):
        raise UnsupportedError(
            "changing this", "a keeper of a larger subtree has set it", "Ask that keeper"
        )
