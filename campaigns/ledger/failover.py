"""A primary and a synchronous standby that change places again and again, under clients that stay.

python -m campaigns.ledger.failover [--rounds 200]

In each round the standby falls behind, commits that wait for it are cancelled (also the opening of a scope with a large
cap), the same is asked again, the primary is killed, the standby takes over, and the old clients go on: what was
acknowledged must be there, and nothing above a cap, which may be a smaller one now. The controls are a store that takes
a cancelled wait for a commit, one that acknowledges a repeated request without waiting, and one that believes a scope
it has seen before: each must lose something or go above a cap.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest.mock import patch

from campaigns.ledger.history import HistoryError, replay, require_acknowledged
from campaigns.ledger.processes import in_threads
from campaigns.ledger.server import Server, place
from campaigns.ledger.work import Diary
from dpcompose.errors import OverdrawnError, ScopeExistsError, StoreError, TamperedError
from dpcompose.ledger import Ledger, Receipt, postgres, tables
from dpcompose.ledger.entry import Head

SETTINGS = ("synchronous_standby_names=*", "max_wal_senders=5", "shared_buffers=16MB")
MEMORY = Path("/dev/shm")  # servers are killed, machines are not: what is written there stays
WAITING = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
LARGE, SMALL = 50, 2


@dataclass
class Pair:
    """Two servers; the first of them is the primary, the second follows it."""

    primary: Server
    standby: Server
    running: dict[Path, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Whichever of them takes writes."""
        homes = ",".join(sorted(str(each.home) for each in (self.primary, self.standby)))
        return f"postgresql://ledger@/postgres?host={homes}&target_session_attrs=read-write"

    def start(self) -> None:
        self.primary.initialize()
        self.running[self.primary.home] = self.primary.start(*SETTINGS)
        self._follow()

    def _follow(self) -> None:
        self.standby.copy_from(self.primary)
        self.running[self.standby.home] = self.standby.start(*SETTINGS)
        while not self.ask(
            self.primary, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        ):
            time.sleep(0.01)

    def ask(self, server: Server, statement: str) -> list[tuple[Any, ...]]:
        """Return a server's answer."""
        import psycopg

        with psycopg.connect(server.url(), autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def hold(self) -> None:
        """From now on the standby gets nothing."""
        for (pid,) in self.ask(self.primary, "SELECT pid FROM pg_stat_replication"):
            os.kill(pid, signal.SIGSTOP)

    def change_places(self) -> None:
        """The primary is lost; the standby takes over, and a new one follows it."""
        self.primary.kill(self.running.pop(self.primary.home))
        self.ask(self.standby, "SELECT pg_promote(true)")
        self.primary, self.standby = self.standby, self.primary
        self._follow()

    @contextmanager
    def cancelling(self) -> Iterator[None]:
        """Cancel every wait for the standby inside the block."""
        done = Event()

        def cancel() -> None:
            while not done.wait(0.01):
                self.ask(self.primary, WAITING)

        thread = Thread(target=cancel)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@contextmanager
def pair() -> Iterator[Pair]:
    """Two servers that run inside the block."""
    folder = MEMORY if MEMORY.is_dir() else None
    with place(folder) as one, place(folder) as other:
        made = Pair(one, other)
        try:
            made.start()
            yield made
        finally:
            for process in made.running.values():
                one.kill(process)


@dataclass
class Client:
    """A client that stays: its ledger was opened before the first failover."""

    name: str
    ledger: Ledger
    diary: Diary
    cancelled: int = 0

    def once(self, path: str, key: str, *, redeems: bool = False) -> bool:
        """Ask once; whether it was answered. What is answered is noted."""
        try:
            receipt = self.ledger.charge(path, cost={"epsilon": 1}, actor=self.name, key=key)
        except OverdrawnError:
            self.diary.note([key, "refused", 0, "", False])
            return True
        except StoreError:
            self.cancelled += 1
            return False
        self.diary.note([key, "granted", receipt.sequence, receipt.hash, False])
        return not redeems or self.redeem(receipt)

    def redeem(self, receipt: Receipt) -> bool:
        """Redeem once, by the attempt that belongs to this receipt; whether it was answered."""
        try:
            self.ledger.redeem(receipt, actor=self.name, nonce=f"{receipt.key:_>64}")
        except StoreError:
            self.cancelled += 1
            return False
        self.diary.note([receipt.key, "granted", receipt.sequence, receipt.hash, True])
        return True

    def until_answered(self, path: str, key: str, *, redeems: bool = False) -> None:
        """Ask again and again with the same key."""
        while not self.once(path, key, redeems=redeems):
            time.sleep(0.01)


def one_round(number: int, servers: Pair, keeper: Ledger, clients: list[Client]) -> None:
    """Charges as usual; charges, an opening and redemptions that no standby confirms; then the other server."""
    path = f"world/{number}"
    for client in clients:
        client.until_answered("world/steady", f"{client.name} {number} before", redeems=True)

    def open_large() -> None:
        with suppress(StoreError):
            keeper.scope(path, caps={"epsilon": LARGE}, actor="keeper")

    def unconfirmed(client: Client) -> Callable[[], None]:
        def work() -> None:
            for _ in range(2):
                client.once(path, f"{client.name} {number} held")
                client.once("world/steady", f"{client.name} {number} held, steady", redeems=True)

        return work

    servers.hold()
    with servers.cancelling():
        open_large()
        in_threads([unconfirmed(client) for client in clients])
    servers.change_places()
    with suppress(ScopeExistsError):
        keeper.scope(path, caps={"epsilon": SMALL}, actor="keeper")
    for client in clients:
        for what in ("held", "after", "later"):
            client.until_answered(path, f"{client.name} {number} {what}")
        client.until_answered("world/steady", f"{client.name} {number} held, steady", redeems=True)


def campaign(folder: Path, *, rounds: int, clients: int = 4, weakness: str = "shipped") -> str:
    """Run it, and say what was found; HistoryError if a promise was broken."""
    began = time.perf_counter()
    with pair() as servers, WEAKNESSES[weakness](), Ledger.open(servers.url) as keeper:
        keeper.scope("world", caps={"epsilon": 10**6}, actor="keeper")
        keeper.scope("world/steady", actor="keeper")
        names = [f"client {number}" for number in range(clients)]
        asking = [Client(name, Ledger.open(servers.url), Diary(folder / name)) for name in names]
        try:
            for number in range(rounds):
                one_round(number, servers, keeper, asking)
                if number % 20 == 19 or number + 1 == rounds:
                    found = replay(servers.url)
                    acknowledged = sum(
                        require_acknowledged(found, client.diary.lines()) for client in asking
                    )
                    keeper.verify(keeper.anchor())
        except TamperedError as error:
            raise HistoryError(str(error)) from error
        finally:
            for client in asking:
                client.ledger.close()
    cancelled = sum(client.cancelled for client in asking)
    if not cancelled >= rounds * clients:
        raise HistoryError(
            f"only {cancelled} requests were left open in {rounds} rounds: the campaign attacks nothing"
        )
    return (
        f"{rounds} failovers in {time.perf_counter() - began:.0f} s under {clients} clients that stayed: {cancelled} "
        f"requests left open, {acknowledged} answers acknowledged, none lost; {found.entries} entries "
        f"({found.granted} granted, {found.refused} refused, {found.redeemed} redeemed) replay exactly; no cap exceeded"
    )


# Stores that are broken on purpose


class _Unconfirmed(postgres._Transaction):
    """Takes every commit that the server does not refuse for a durable one."""

    def _commit(self) -> None:
        self.committing = True
        self.connection.commit()


class _Hasty(postgres._Transaction):
    """Answers what was decided before without waiting for anybody."""

    def commit(self, root: str, requests: Any, known: tables.Cache) -> Any:
        outcomes = [request.decide(tables.LedgerTables(self), time="") for request in requests]
        if all(outcome.entry is None for outcome in outcomes):
            self.connection.rollback()
            return outcomes
        self.connection.rollback()
        return super().commit(root, requests, known)


class _Remembering(tables.LedgerTables):
    """Believes that a scope which was there before is there still, as it was."""

    def forget_before(self, root: str, head: Head) -> None:
        self.cache[root].head = head


WEAKNESSES: dict[str, Callable[[], Any]] = {
    "shipped": lambda: patch.dict({}),
    "unconfirmed": lambda: patch.object(postgres, "_Transaction", _Unconfirmed),
    "hasty": lambda: patch.object(postgres, "_Transaction", _Hasty),
    "remembering": lambda: patch.object(postgres, "LedgerTables", _Remembering),
}
CONTROLS = tuple(name for name in WEAKNESSES if name != "shipped")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in CONTROLS:
            (Path(folder) / name).mkdir()
            try:
                campaign(Path(folder) / name, rounds=1, weakness=name)
                raise SystemExit(f"the control {name} passed: the campaign finds nothing")
            except HistoryError as caught:
                print(f"control ({name}): caught: {caught}", flush=True)
        print(campaign(Path(folder), rounds=asked.rounds), flush=True)


if __name__ == "__main__":
    main()
