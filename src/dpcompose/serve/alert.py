"""Alerts: a webhook is called once when most of a budget is spent. No charge waits for it."""

from __future__ import annotations

import json
import logging
import random
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from dpcompose.errors import DomainError, DPComposeError, StoreError
from dpcompose.ledger import Balance, Entry, Ledger, paths_down_to
from dpcompose.serve.database import Database, Run

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger("dpcompose.serve")
LONGEST_WAIT = 3600.0
AT_A_TIME = 1000
_CLAIMED = 60.0
"""Seconds for which one server alone tries to deliver."""


@dataclass(frozen=True)
class Alerts:
    """Follows the log, records each budget that crosses the share, and calls the webhook until it answers.

    A crossing is noted once for a scope, a currency and a period, whichever server sees it; it is told again until the
    webhook answers with 2xx, always with the same `id`.

    Args:
        ledger: Where charges are kept.
        database: Where crossings are noted; several servers share it.
        url: Of the webhook.
        share: Spent part of a budget, in (0, 1].
        client: Another way to the webhook; by default httpx, with a time limit of five seconds.
        every: Seconds between two looks.
    """

    ledger: Ledger
    database: Database
    url: str
    share: float = 0.8
    client: httpx.Client | None = field(default=None, repr=False)
    every: float = 2.0
    _stop: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise DomainError("share", self.share, "above 0, at most 1")
        if not self.url.startswith(("https://", "http://")):
            raise DomainError("url", self.url, "an address that begins with https:// or http://")

    def start(self) -> Thread:
        """Start a thread that looks for crossings; it ends with the program."""
        thread = Thread(target=self._run, name="dpcompose-alerts", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Stop the thread."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self.every):
            try:
                self.look()
            except Exception as error:  # the next look is another chance
                _log.warning(
                    "alerts: %s", error if isinstance(error, StoreError) else type(error).__name__
                )

    def look(self) -> int:
        """Record the crossings since the last call and deliver those still waiting; returns how many were delivered."""
        with self.ledger.moment() as moment:
            roots = moment.snapshot.roots()
        for root in roots:
            while self._noted(root):
                pass
        return self._deliver()

    def _noted(self, root: str) -> bool:
        """Record the crossings of the next entries of a tree; returns whether there were any entries."""
        with self.database.transaction(write=False) as run:
            rows = run("select sequence from service_alert_progress where root = ?", (root,))
        after = rows[0][0] if rows else 0
        with self.ledger.moment() as moment:
            records = list(moment.snapshot.records(root, after=after, limit=AT_A_TIME))
            charged = {record.scope for record in records if record.entry.kind == Entry.GRANTED}
            paths = {path for scope in charged for path in paths_down_to(scope)}
            crossed = [each for path in paths for each in self._crossings(moment.balance(path))]
        if records:
            with self.database.transaction() as run:
                for each in crossed:
                    self._note(run, each)
                run(
                    "insert into service_alert_progress (root, sequence) values (?, ?)"
                    " on conflict (root) do update set sequence = excluded.sequence",
                    (root, records[-1].sequence),
                )
        return bool(records)

    def _crossings(self, balance: Balance) -> list[dict[str, Any]]:
        scope, period = balance.scope, balance.period[0] if balance.period is not None else ""
        return [
            {
                "scope": scope.path,
                "currency": name,
                "period": period,
                "spent": str(balance.spent[name]),
                "of": str(cap),
            }
            for name, cap in scope.caps.items()
            if cap.units
            and name in balance.spent
            and balance.spent[name].fraction >= self.share * cap.fraction
        ]

    def _note(self, run: Run, crossing: dict[str, Any]) -> None:
        identity = json.dumps(
            [crossing["scope"], crossing["currency"], crossing["period"], self.share]
        )
        body = json.dumps({"id": identity, "share": self.share, **crossing}, sort_keys=True)
        run(
            "insert into service_alert (id, body, due, tries, told) values (?, ?, 0, 0, 0) on conflict (id) do nothing",
            (identity, body),
        )

    def _deliver(self) -> int:
        now, told = self.database.now(), 0
        with self.database.transaction(write=False) as run:
            waiting = run(
                "select id, body, tries from service_alert where told = 0 and due <= ? limit 100",
                (now,),
            )
        for identity, body, tries in waiting:
            with self.database.transaction() as run:
                claim = "update service_alert set due = ?, tries = ? where id = ? and tries = ? and told = 0 returning id"
                mine = run(claim, (now + _CLAIMED, tries + 1, identity, tries))
            if not mine or self._stop.is_set():
                continue
            good = self._sent(body)
            wait = min(LONGEST_WAIT, 2.0 ** min(tries, 12)) * random.uniform(0.5, 1.0)
            with self.database.transaction() as run:
                run(
                    "update service_alert set told = ?, due = ? where id = ?",
                    (int(good), now + wait, identity),
                )
            told += good
        return told

    def _sent(self, body: str) -> bool:
        import httpx

        headers = {"content-type": "application/json"}
        try:
            if self.client is not None:
                return self.client.post(self.url, content=body, headers=headers).is_success
            return httpx.post(self.url, content=body, headers=headers, timeout=5.0).is_success
        except (httpx.HTTPError, DPComposeError):
            return False
