"""Failovers of PostgreSQL through the service: servers and clients stay, the database changes places under them.

python -m campaigns.service.failover [--rounds 200]      (1,000: a night)

Two servers of the service share a primary and its synchronous standby. In each round charges and redemptions are asked
over HTTP, the standby falls behind, commits that wait for it are cancelled (charges, redemptions, the opening of a
scope with a large cap, and the revocation of somebody's token), the primary is killed, the standby takes over, and the
same servers are asked the same again by the same clients. What was acknowledged must be there, a token that was revoked
must open nothing, and nothing may be above a cap, which may be a smaller one now. The controls are the broken stores of
campaigns.ledger.failover.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from campaigns.ledger import failover
from campaigns.ledger.failover import LARGE, SMALL, Pair, pair
from campaigns.ledger.history import HistoryError, replay, require_acknowledged
from campaigns.ledger.processes import in_threads
from campaigns.ledger.work import Diary
from campaigns.service.kills import Servers, serve
from dpcompose import Laplace
from dpcompose.account import open_scope
from dpcompose.adaptive import PureFilter
from dpcompose.errors import (
    LedgerError,
    OverdrawnError,
    ScopeExistsError,
    StoreError,
    TamperedError,
)
from dpcompose.ledger import Ledger, Receipt
from dpcompose.serve import Identities, Identity, RemoteAccount, Role
from dpcompose.serve.service import own_key

COST = Laplace(1.0)
TRIES = 3000


@dataclass
class Client:
    """A client that stays, with a connection to each server of the service."""

    name: str
    who: Identity
    token: str
    ways: list[Any]
    diary: Diary
    draw: random.Random
    cancelled: int = 0

    def _account(self, path: str) -> RemoteAccount:
        way = self.draw.choice(self.ways)
        return RemoteAccount(str(way.base_url), self.token, scope=path, client=way)

    def once(self, path: str, key: str, *, redeems: bool = False) -> bool:
        """Ask once; whether it was answered. What is answered is noted, by the ledger's key."""
        try:
            receipt = self._account(path).charge(COST, key=key)
        except OverdrawnError:
            self.diary.note([own_key(self.who, key), "refused", 0, "", False])
            return True
        except StoreError:
            self.cancelled += 1
            return False
        self.diary.note([receipt.key, "granted", receipt.sequence, receipt.hash, False])
        return not redeems or self._redeem(path, receipt)

    def _redeem(self, path: str, receipt: Receipt) -> bool:
        try:
            self._account(path).redeem(receipt, nonce=receipt.hash)
        except StoreError:
            self.cancelled += 1
            return False
        self.diary.note([receipt.key, "granted", receipt.sequence, receipt.hash, True])
        return True

    def until_answered(self, path: str, key: str, *, redeems: bool = False) -> None:
        """Ask again and again with the same key."""
        for _ in range(TRIES):
            if self.once(path, key, redeems=redeems):
                return
            time.sleep(0.01)
        raise HistoryError(f"{key}: the service does not come back")


@dataclass
class Keeper:
    """Opens scopes, and sees guests in and out; stays like everybody."""

    ledger: Ledger
    people: Identities
    guests: dict[str, str] = field(default_factory=dict[str, str])
    gone: list[str] = field(default_factory=list[str])

    def open_scope(self, path: str, most: int) -> bool:
        """Open a scope; whether it was answered."""
        try:
            open_scope(self.ledger, path, filter=PureFilter(most), actor="keeper")
        except ScopeExistsError:
            return True
        except StoreError:
            return False
        return True

    def invite(self, name: str) -> None:
        """Let a guest in, however often it must be asked."""
        while name not in self.guests:
            with suppress(StoreError):
                self.guests[name] = self.people.invite(name, Role.ANALYST, "world")

    def revoke(self, name: str) -> bool:
        """See a guest out; whether it was answered."""
        with suppress(StoreError):
            self.people.revoke(name, "world")
            self.gone.append(self.guests[name])
            return True
        return False


def require_gone(keeper: Keeper, way: Any) -> None:
    """Nobody whose token was revoked may ask; who could not be answered for now is asked again."""
    for token in keeper.gone:
        account = RemoteAccount(str(way.base_url), token, scope="world/steady", client=way)
        for _ in range(TRIES):
            try:
                account.left()
            except StoreError:
                time.sleep(0.01)
            except LedgerError:
                break
            else:
                raise HistoryError("a token whose revocation was acknowledged is good again")
    keeper.gone.clear()


def one_round(number: int, servers: Pair, keeper: Keeper, clients: list[Client]) -> None:
    """Charges as usual; what no standby confirms; then the other server of the database."""
    path, guest = f"world/{number}", f"guest {number}"
    keeper.invite(guest)
    for client in clients:
        client.until_answered("world/steady", f"{number} before", redeems=True)

    def unconfirmed(client: Client) -> Callable[[], None]:
        def work() -> None:
            for _ in range(2):
                with suppress(LedgerError):  # the scope may not be there
                    client.once(path, f"{number} held")
                client.once("world/steady", f"{number} held, steady", redeems=True)

        return work

    servers.hold()
    with servers.cancelling():
        keeper.open_scope(path, LARGE)
        told = keeper.revoke(guest) or keeper.revoke(guest)
        in_threads([unconfirmed(client) for client in clients])
    servers.change_places()
    while not keeper.open_scope(path, SMALL):
        time.sleep(0.01)
    for client in clients:
        for what in ("held", "after", "later"):
            client.until_answered(path, f"{number} {what}")
        client.until_answered("world/steady", f"{number} held, steady", redeems=True)
    while not told:
        told = keeper.revoke(guest)
    require_gone(keeper, clients[0].ways[0])


@contextmanager
def clients_of(
    service: Servers, keeper: Keeper, folder: Path, count: int
) -> Iterator[list[Client]]:
    """Clients with tokens of their own."""
    import httpx

    ways = [
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0) for port in service.ports
    ]
    made: list[Client] = []
    for number in range(count):
        name = f"client {number}"
        token = keeper.people.invite(name, Role.ANALYST, "world")
        who = Identity(name, Role.ANALYST, "world")
        made.append(Client(name, who, token, ways, Diary(folder / name), random.Random(number)))
    try:
        yield made
    finally:
        for way in ways:
            way.close()


def campaign(folder: Path, *, rounds: int, clients: int = 4, weakness: str = "shipped") -> str:
    """Run it, and say what was found; HistoryError if a promise was broken."""
    began, acknowledged, found = time.perf_counter(), 0, None
    with pair() as servers, WEAKNESSES[weakness](), Ledger.open(servers.url) as ledger:
        keeper = Keeper(ledger, Identities(ledger))
        for path in ("world", "world/steady"):
            open_scope(ledger, path, filter=PureFilter(10**6), actor="keeper")
        service = Servers(servers.url, servers.url, 2, weakness, target=serve_weakly)
        try:
            with clients_of(service, keeper, folder, clients) as asking:
                for number in range(rounds):
                    one_round(number, servers, keeper, asking)
                    if number % 20 == 19 or number + 1 == rounds:
                        found = replay(servers.url)
                        acknowledged = sum(
                            require_acknowledged(found, client.diary.lines()) for client in asking
                        )
                        ledger.verify(ledger.anchor())
                cancelled = sum(client.cancelled for client in asking)
        except TamperedError as error:
            raise HistoryError(str(error)) from error
        finally:
            for place in range(service.count):
                service.kill(place)
    if found is None or not cancelled >= rounds * clients:
        raise HistoryError(
            f"only {cancelled} requests were left open in {rounds} rounds: the campaign attacks nothing"
        )
    return (
        f"{rounds} failovers in {time.perf_counter() - began:.0f} s under 2 servers and {clients} clients that stayed: "
        f"{cancelled} requests left open, {acknowledged} answers acknowledged, none lost; {found.entries} entries "
        f"({found.granted} granted, {found.refused} refused, {found.redeemed} redeemed) replay exactly; no cap "
        "exceeded, no revoked token good again"
    )


def serve_weakly(ledger: str, people: str, port: int, weakness: str) -> None:
    """One server of the service, on a store that may be broken; every refusal is an entry, so that the log has it."""
    with WEAKNESSES[weakness](), patch("dpcompose.serve.service.RECORDED", 10**9):
        serve(ledger, people, port, "")


WEAKNESSES = failover.WEAKNESSES
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
