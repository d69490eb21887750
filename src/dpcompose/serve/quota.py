"""Quotas: the most that a person spends in a period of the calendar, which is no promise of privacy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dpcompose.errors import QuotaError
from dpcompose.ledger import Amount, Amounts, Entry, is_at_or_below
from dpcompose.serve.database import Run

EVERYBODY = "*"
PERIODS = {"day": 10, "month": 7, "year": 4, "total": 0}
"""How much of a recorded time names the period."""


@dataclass(frozen=True)
class Quota:
    """The most that one person may spend at or below a scope in each period, from when it was set.

    Args:
        scope: Where.
        actor: Who; `*` for each person.
        period: day, month or year, in UTC; or total.
        caps: By currency; others are free.
        keeper: The subtree of who set it.
    """

    scope: str
    actor: str
    period: str
    caps: Amounts
    keeper: str

    def is_about(self, scope: str, actor: str) -> bool:
        """Whether a charge counts here."""
        return self.actor in (EVERYBODY, actor) and is_at_or_below(scope, self.scope)

    def used(self, run: Run, actor: str, period: str) -> dict[str, int]:
        """The amounts that a person spent in a period, in units."""
        where = "where scope = ? and quota = ? and actor = ? and period = ?"
        rows = run(
            f"select used from service_quota_used {where}", (self.scope, self.actor, actor, period)
        )
        found = Amounts.read(json.loads(rows[0][0]) if rows else {})
        return {name: found.units.get(name, 0) for name in self.caps}

    def count(self, run: Run, entry: Entry) -> None:
        """A charge was made; its recorded time says in which period."""
        period = self.label(entry.time)
        used, cost = self.used(run, entry.actor, period), entry.cost.units
        text = Amounts({name: units + cost.get(name, 0) for name, units in used.items()}).text
        run(
            "insert into service_quota_used (scope, quota, actor, period, used) values (?, ?, ?, ?, ?)"
            " on conflict (scope, quota, actor, period) do update set used = excluded.used",
            (self.scope, self.actor, entry.actor, period, text),
        )

    def require(self, run: Run, actor: str, cost: Amounts, time: str) -> None:
        """Raise QuotaError unless that much more fits in the period of a time."""
        period = self.label(time)
        used = self.used(run, actor, period)
        for name, cap in self.caps.units.items():
            left, asked = max(cap - used[name], 0), cost.units.get(name, 0)
            if not asked <= left:
                raise QuotaError(
                    self.scope, period, currency=name, asked=Amount(asked), left=Amount(left)
                )

    def label(self, time: str) -> str:
        """The period that a time lies in."""
        return time[: PERIODS[self.period]] or "total"

    def shown(self) -> dict[str, Any]:
        """For an answer."""
        return {
            "scope": self.scope,
            "actor": self.actor,
            "period": self.period,
            "caps": self.caps.texts(),
        }


def quotas_of(run: Run, root: str) -> list[Quota]:
    """All of a tree."""
    wanted = "select scope, actor, period, caps, keeper from service_quota where root = ? order by scope, actor"
    return [
        Quota(scope, actor, period, Amounts.read(json.loads(caps)), keeper)
        for scope, actor, period, caps, keeper in run(wanted, (root,))
    ]


def keep_quota(run: Run, root: str, quota: Quota) -> None:
    """Set it; what was counted under it before stays counted."""
    run(
        "insert into service_quota (scope, actor, root, period, caps, keeper) values (?, ?, ?, ?, ?, ?)"
        " on conflict (scope, actor) do update set period = excluded.period, caps = excluded.caps,"
        " keeper = excluded.keeper",
        (quota.scope, quota.actor, root, quota.period, quota.caps.text, quota.keeper),
    )


def drop_quota(run: Run, quota: Quota) -> None:
    """Take it away, and what was counted under it."""
    for table, column in (("service_quota", "actor"), ("service_quota_used", "quota")):
        run(f"delete from {table} where scope = ? and {column} = ?", (quota.scope, quota.actor))
