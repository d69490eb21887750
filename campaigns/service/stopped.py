"""Servers stopped (SIGSTOP) while they hold a turn at a tree, and resumed: one history, and nobody waits longer than 5 s.

    python -m campaigns.service.stopped --rounds 200

Two servers of the service share a PostgreSQL database. In each round clients charge one scope through both, one server
is stopped while its transaction is open and holds the lock of the tree, and a charge through the other server must be
answered within 5 s. Then the first one goes on and is asked at once what is left. Every acknowledged charge must be in
the log once, in the order of real time; no answer may show more left than what was acknowledged before allows; no
budget may be exceeded; and all entries replay on the exact model. The control takes the time limits of the database
away and must be caught.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from campaigns.ledger.history import replay
from campaigns.ledger.server import server
from campaigns.service.kills import COST, Servers, problems_of, serve
from dpcompose.account import open_scope
from dpcompose.adaptive import PureFilter
from dpcompose.errors import OverdrawnError, StoreError
from dpcompose.ledger import Ledger, Receipt, postgres
from dpcompose.serve import Identities, RemoteAccount, Role

LONGEST = 5.0
"""Seconds that a charge may wait for a server that was stopped."""
CONTROLS = ("no time limits",)
TRIES, MOST = 400, 400
"""Attempts to stop a server amid a turn, and charges of 0.1 that a budget has room for."""
HELD = (
    "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE relation = 'balance'::regclass "
    "AND mode = 'RowShareLock' AND state LIKE 'idle in transaction%' "
    "AND state_change < clock_timestamp() - interval '0.04 s'"
)
"""Transactions that took the lock of a tree and whose program has done nothing since."""


def serve_weakly(ledger: str, people: str, port: int, control: str) -> None:
    """One server; by the control, without a limit for those who were stopped."""
    lock = postgres._LOCK  # pyright: ignore[reportPrivateUsage]
    weak = lock.replace(f"'{postgres.STOPPED}'", "'9s'") if control else lock
    with patch.object(postgres, "_LOCK", weak), patch("dpcompose.serve.service.RECORDED", 10**9):
        serve(ledger, people, port, "")


@dataclass
class Asked:
    """What was answered: when it was asked and answered, and the charge."""

    charges: list[tuple[float, float, str, Receipt]] = field(default_factory=list[Any])
    stop: threading.Event = field(default_factory=threading.Event)

    def ask(self, account: RemoteAccount, name: str) -> float:
        """Charge until it is answered; the seconds that took."""
        start = time.monotonic()
        while not self.stop.is_set():
            begun = time.monotonic()
            try:
                receipt = account.charge(COST, key=name, description={"name": name})
            except StoreError:
                time.sleep(0.02)
                continue
            except OverdrawnError:
                self.stop.set()
                break
            self.charges.append((begun, time.monotonic(), name, receipt))
            break
        return time.monotonic() - start

    def keep_asking(
        self, accounts: Sequence[RemoteAccount], name: str, draw: random.Random
    ) -> None:
        """Charge through one server or the other until the budget is spent."""
        number = 0
        while not self.stop.is_set():
            self.ask(draw.choice(accounts), f"{name} {number}")
            number += 1

    def disorder(self) -> list[str]:
        """Charges that were answered before another one was asked, and come after it in the log."""
        found: list[str] = []
        for begun, _, name, receipt in self.charges:
            before = [r.sequence for _, ended, _, r in self.charges if ended < begun]
            if before and receipt.sequence < max(before):
                found.append(f"{name}: entry {receipt.sequence} was asked after {max(before)}")
        return found


def held_by(servers: Servers, place: int, database: Any, draw: random.Random) -> bool:
    """Stop a server while it holds a turn; whether it was caught so."""
    process = servers.processes[place].pid
    for _ in range(TRIES):
        time.sleep(draw.uniform(0.0, 0.01))
        os.kill(process, signal.SIGSTOP)
        time.sleep(0.05)
        (count,) = database.execute(HELD).fetchone()
        database.rollback()
        if count:
            return True
        os.kill(process, signal.SIGCONT)
    return False


def one_round(
    servers: Servers, token: str, scope: str, database: Any, draw: random.Random
) -> tuple[Asked, float, list[str]]:
    """One server stopped amid a turn: what was answered, the longest wait of the other's client, and problems."""
    import httpx

    urls = [f"http://127.0.0.1:{port}" for port in servers.ports]
    clients = [httpx.Client(base_url=url, timeout=10.0) for url in urls]
    accounts = [
        RemoteAccount(url, token, scope=scope, client=each)
        for url, each in zip(urls, clients, strict=True)
    ]
    asked, place, problems = Asked(), draw.randrange(2), list[str]()
    threads = [
        threading.Thread(
            target=asked.keep_asking,
            args=(accounts, f"{scope} {n}", random.Random(draw.random())),
            daemon=True,
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    try:
        if not held_by(servers, place, database, draw):
            return asked, 0.0, ["no turn was held"] if not asked.stop.is_set() else []
        took = asked.ask(accounts[1 - place], f"{scope} beside")
        if took > LONGEST:
            problems.append(f"{scope}: a charge waited {took:.1f} s")
        answered = sum(receipt.cost.units["epsilon"] for *_, receipt in list(asked.charges))
        os.kill(servers.processes[place].pid, signal.SIGCONT)
        with suppress(StoreError):
            left = accounts[place].left()["epsilon"].units
            if left > 10**39 * MOST + 5 * 10**38 - answered:
                problems.append(f"{scope}: a server that resumed shows what was spent before")
        time.sleep(0.1)
    finally:
        os.kill(servers.processes[place].pid, signal.SIGCONT)
        asked.stop.set()
        for thread in threads:
            thread.join(60)
            if thread.is_alive():
                problems.append(f"{scope}: a client waits for ever")
        for each in clients:
            each.close()
    return asked, took, problems + asked.disorder()


def run(rounds: int, *, seed: int = 0, control: str = "") -> tuple[int, int, float, list[str]]:
    """Rounds with a server stopped amid a turn: those rounds, the acknowledged charges, the longest wait, problems."""
    import psycopg

    draw, caught, acknowledged, longest = random.Random(seed), 0, 0, 0.0
    found: list[str] = []
    with server() as running, Ledger.open(url := running.create("city")) as ledger:
        open_scope(ledger, "city", filter=PureFilter(1e6), actor="keeper")
        token = Identities(ledger).invite("Ada", Role.ANALYST, "city")
        servers = Servers(url, url, 2, control, target=serve_weakly)
        try:
            with psycopg.connect(url) as database:
                number = 0
                while caught < rounds and number < 3 * rounds and not (control and found):
                    scope = f"city/r{number}"
                    number += 1
                    budget = PureFilter(0.1 * MOST + 0.05)
                    open_scope(ledger, scope, filter=budget, actor="keeper")
                    asked, took, problems = one_round(servers, token, scope, database, draw)
                    caught += took > 0
                    longest, acknowledged = max(longest, took), acknowledged + len(asked.charges)
                    told = [(name, receipt) for *_, name, receipt in asked.charges]
                    found += problems + problems_of(ledger, scope, told)
        finally:
            for place in range(servers.count):
                with suppress(ProcessLookupError):
                    servers.kill(place)
        ledger.verify()
        replay(url)
    if not caught:
        found.append("no server was stopped while it held a turn: the campaign attacks nothing")
    return caught, acknowledged, longest, found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for control in CONTROLS:
        *_, problems = run(1, seed=asked.seed, control=control)
        print(
            f"control ({control}): {'caught' if problems else 'MISSED'}: {problems[:1]}", flush=True
        )
        if not problems:
            return 1
    caught, acknowledged, longest, found = run(asked.rounds, seed=asked.seed)
    print(
        f"{caught} servers stopped amid a turn and resumed: {acknowledged} acknowledged, longest wait "
        f"{longest:.2f} s; {len(found)} problems {found[:3]}"
    )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
