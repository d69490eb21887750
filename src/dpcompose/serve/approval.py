"""Approval: above a threshold a charge is made only after a second person agreed to exactly that charge."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from dpcompose.errors import ApprovalError
from dpcompose.ledger import Amounts, paths_down_to
from dpcompose.serve.database import Run
from dpcompose.serve.request import PricedCharge

LASTS = 30 * 86400.0
"""Seconds for which a request is open, and after that for which an approval is good."""
MOST = 100
"""Requests that one person has open at a time."""
OPEN, APPROVED, DECLINED = "open", "approved", "declined"
_LAST = ("reason", "state", "decided_by", "expires")
_COLUMNS = f"id, scope, actor, name, asked, cost, {', '.join(_LAST)}"


@dataclass(frozen=True)
class ApprovalRequest:
    """One charge that somebody wants to make.

    Args:
        id: The ledger's key of that charge.
        scope: Where.
        actor: Who wants it.
        name: The same, without the subtree: whoever decides must have another name.
        charge: The requested charge, as JSON.
        cost: The server's price when it was asked; the charge is priced again.
        reason: Why, in words.
        state: open, approved or declined.
        decided_by: Who decided.
        expires: Until when it may be decided, or used.
    """

    id: str
    scope: str
    actor: str
    name: str
    charge: str
    cost: Amounts
    reason: str
    state: str
    decided_by: str
    expires: float

    @classmethod
    def read(cls, row: tuple[Any, ...]) -> ApprovalRequest:
        """The request of a row."""
        last = dict(zip(_LAST, row[6:], strict=True))
        number, scope, actor, name, asked, cost = row[:6]
        return cls(number, scope, actor, name, asked, Amounts.read(json.loads(cost)), **last)

    def shown(self) -> dict[str, Any]:
        """The request as an answer shows it."""
        named = {"request": self.id, "scope": self.scope, "actor": self.actor, "state": self.state}
        fields: dict[str, Any] = json.loads(self.charge)
        return {
            **named,
            "decided_by": self.decided_by,
            "reason": self.reason,
            "cost": self.cost.texts(),
            **fields,
        }


def request_of(run: Run, number: str) -> ApprovalRequest | None:
    """The request for the charge of that key."""
    rows = run(f"select {_COLUMNS} from service_request where id = ?", (number,))
    return ApprovalRequest.read(rows[0]) if rows else None


def keep(run: Run, root: str, request: ApprovalRequest, *, now: float) -> None:
    """Store a new request.

    Raises:
        ApprovalError: This person has too many open ones.
    """
    counted = "select count(*) from service_request where root = ? and actor = ? and state = ? and expires > ?"
    ((waiting,),) = run(counted, (root, request.actor, OPEN, now))
    if not waiting < MOST:
        raise ApprovalError(
            request.scope, f"{MOST} of your requests are not decided yet. Wait for those"
        )
    first = (
        request.id,
        request.scope,
        request.actor,
        request.name,
        request.charge,
        request.cost.text,
        request.reason,
    )
    values = *first, request.state, request.decided_by, request.expires, root, now
    run(
        f"insert into service_request ({_COLUMNS}, root, made) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )


def decide(
    run: Run, request: ApprovalRequest, decision: str, *, by: str, expires: float
) -> ApprovalRequest:
    """The request as it was decided."""
    changed = "update service_request set state = ?, decided_by = ?, expires = ? where id = ?"
    run(changed, (decision, by, expires, request.id))
    return replace(request, state=decision, decided_by=by, expires=expires)


def requests_of(run: Run, root: str, limit: int) -> list[ApprovalRequest]:
    """The requests of a tree, the newest first."""
    wanted = f"select {_COLUMNS} from service_request where root = ? order by made desc, id limit ?"
    return [ApprovalRequest.read(row) for row in run(wanted, (root, limit))]


def thresholds_of(run: Run, root: str) -> dict[str, Amounts]:
    """The thresholds of a tree by scope; each holds at that scope and below it."""
    found = run(
        "select scope, amounts from service_threshold where root = ? order by scope", (root,)
    )
    return {scope: Amounts.read(json.loads(amounts)) for scope, amounts in found}


def _exceeded(run: Run, path: str, cost: Amounts) -> list[str]:
    """The scopes above which a cost needs a second person."""
    above = set(paths_down_to(path))
    return [
        scope
        for scope, amounts in thresholds_of(run, paths_down_to(path)[0]).items()
        if scope in above
        and any(cost.units.get(name, 0) > units for name, units in amounts.units.items())
    ]


def require_no_threshold(run: Run, path: str, cost: Amounts) -> None:
    """Refuse a cost that needs a second person, where none can be asked.

    Raises:
        ApprovalError: It is above a threshold.
    """
    for scope in _exceeded(run, path, cost):
        raise ApprovalError(
            scope,
            "this is above a threshold, and nobody can approve it. Open fewer or smaller slots",
        )


def require_approved(run: Run, charge: PricedCharge, now: float) -> str | None:
    """The name of who approved a charge; None if none of its amounts is above a threshold.

    Raises:
        ApprovalError: It needs an approval, and has none.
    """
    where = _exceeded(run, charge.scope, charge.cost)
    if not where:
        return None
    found = request_of(run, charge.key)
    if found is None:
        said = (
            "this charge is above a threshold. Request approval under the same key, then ask again"
        )
        raise ApprovalError(where[0], said)
    if json.loads(found.charge) != dict(charge.fields) or found.scope != charge.scope:
        raise ApprovalError(
            where[0],
            "another charge was requested under this key. Request this one under a new key",
        )
    if found.state != APPROVED:
        said = "was declined" if found.state == DECLINED else "is not decided yet"
        raise ApprovalError(where[0], f"the request for this charge {said}. Nothing was spent")
    if not now < found.expires:
        raise ApprovalError(where[0], "the approval has expired. Request it again under a new key")
    return found.decided_by
