"""Servers killed at random during charges: each acknowledged charge is in the log exactly once, no budget is exceeded.

    python -m campaigns.service.kills --rounds 1000 [--postgres --servers 2]

Clients charge over HTTP, and ask again with the same key when the service cannot be reached; meanwhile a server is
killed (SIGKILL) and started again. Each round has a budget of its own, which clients try to overdraw. Afterwards the
log says what was charged. Each control breaks a promise on purpose and must be caught.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcompose import Laplace
from dpcompose.account import open_scope
from dpcompose.adaptive import PureFilter
from dpcompose.errors import OverdrawnError, StoreError
from dpcompose.ledger import Ledger, Receipt
from dpcompose.serve import Identities, RemoteAccount, Role, Service, web
from dpcompose.serve.gate import Gate
from dpcompose.serve.web import Call, Outcome

CONTROLS = ("acknowledged without a charge", "charged again with another key")
COST, MOST = Laplace(10.0), 30
"""Of each round: 0.1 of epsilon a charge, and so many charges."""


def serve(ledger: str, people: str, port: int, control: str) -> None:
    """One server, until it is killed."""
    import uvicorn

    from dpcompose.serve.web import application

    kept = Ledger.open(ledger, create=False)
    service = Service(kept, Identities(Ledger.open(people)))
    if control == CONTROLS[0]:
        lost = Ledger.open("memory:")
        for scope in kept.scopes():
            open_scope(lost, scope.path, filter=PureFilter(1e9), actor="keeper")
        service = Service(lost, service.people)
    if control == CONTROLS[1]:
        web.outcomes = _unsure(web.outcomes)
    app = application(service, rate=1e9)
    uvicorn.run(app, port=port, log_level="critical", access_log=False, timeout_keep_alive=1)


def _unsure(made: Callable[..., list[Outcome]]) -> Callable[..., list[Outcome]]:
    """As if every other answer were lost on its way."""

    def lost(gate: Gate, root: str, calls: Sequence[Call]) -> list[Outcome]:
        error = StoreError("city", "the answer is lost", uncertain=True)
        return [each if random.random() < 0.5 else error for each in made(gate, root, calls)]

    return lost


@dataclass
class Servers:
    """Processes that are killed and started again."""

    ledger: str
    people: str
    count: int
    control: str
    target: Callable[[str, str, int, str], None] = serve
    processes: list[Any] = field(default_factory=list[Any])
    ports: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["dpcompose.serve.web", "uvicorn"])
        for place in range(self.count):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.ports.append(free.getsockname()[1])
            self.processes.append(None)
            self.start(place)

    def start(self, place: int) -> None:
        """Start a server, and wait until it listens."""
        asked = (self.ledger, self.people, self.ports[place], self.control)
        self.processes[place] = process = self.context.Process(
            target=self.target, args=asked, daemon=True
        )
        process.start()
        for _ in range(600):
            with (
                suppress(OSError),
                socket.create_connection(("127.0.0.1", self.ports[place]), timeout=1),
            ):
                return
            time.sleep(0.05)
        raise RuntimeError("a server does not start")

    def kill(self, place: int) -> None:
        """Kill a server as a loss of power would."""
        os.kill(self.processes[place].pid, signal.SIGKILL)
        self.processes[place].join()


def client(
    servers: Servers,
    token: str,
    scope: str,
    seed: int,
    told: list[tuple[str, Receipt]],
    stop: threading.Event,
) -> None:
    """Charges until the budget is spent or it is stopped; what was acknowledged is told, by the name of the charge."""
    import httpx

    draw, number = random.Random(seed), 0
    accounts: list[RemoteAccount] = []
    for port in servers.ports:
        url = f"http://127.0.0.1:{port}"
        accounts.append(
            RemoteAccount(url, token, scope=scope, client=httpx.Client(base_url=url, timeout=10.0))
        )
    while not stop.is_set():
        name, tries = f"{scope} {seed} {number}", 0
        number += 1
        while True:
            key = f"{name} {tries}" if servers.control == CONTROLS[1] else name
            tries += 1
            try:
                told.append(
                    (name, draw.choice(accounts).charge(COST, key=key, description={"name": name}))
                )
                break
            except StoreError:
                time.sleep(0.02)
            except OverdrawnError:
                stop.set()
                break
            if tries > 2000:
                raise RuntimeError("the service does not come back")
    for account in accounts:
        assert account.client is not None, "it was given"
        account.client.close()


def problems_of(ledger: Ledger, scope: str, told: list[tuple[str, Receipt]]) -> list[str]:
    """The promises that the log of a scope does not keep."""
    entries = {each.sequence: each for each in ledger.entries(scope)}
    granted = [each for each in entries.values() if each.kind == "granted"]
    found: list[str] = []
    for name, receipt in told:
        entry = entries.get(receipt.sequence)
        if entry is None or (entry.hash, entry.key) != (receipt.hash, receipt.key):
            found.append(f"{name}: acknowledged, and not in the log")
    named = Counter(str(each.description["note"]["name"]) for each in granted)
    found += [f"{name}: {times} times in the log" for name, times in named.items() if times > 1]
    balance = ledger.balance(scope)
    spent = sum(each.cost.units["epsilon"] for each in granted)
    if spent != balance.spent.units["epsilon"] or spent > balance.scope.caps.units["epsilon"]:
        found.append(f"{scope}: the charges of the log are not the balance, or above the budget")
    return found


@contextmanager
def places(postgres: bool, folder: Path) -> Iterator[tuple[str, str]]:
    """Where ledger and people are kept."""
    if not postgres:
        yield str(folder / "city.db"), str(folder / "people.db")
        return
    from campaigns.ledger.server import server

    with server() as running:
        url = running.create("city")
        yield url, url


def run(
    rounds: int,
    *,
    seed: int = 0,
    servers: int = 1,
    clients: int = 8,
    postgres: bool = False,
    control: str = "",
) -> tuple[int, int, list[str]]:
    """Rounds of charges and kills: the acknowledged charges, the kills, and every promise that was not kept."""
    draw, kills, acknowledged = random.Random(seed), 0, 0
    found: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url, people = stack.enter_context(places(postgres, folder))
        ledger = stack.enter_context(Ledger.open(url))
        open_scope(ledger, "city", filter=PureFilter(1e6), actor="keeper")
        for number in range(rounds):
            open_scope(
                ledger, f"city/r{number}", filter=PureFilter(0.1 * MOST + 0.05), actor="keeper"
            )
        known = Identities(Ledger.open(people))
        token = known.invite("Ada", Role.ANALYST, "city")
        known.ledger.close()
        running = Servers(url, people, servers, control)
        try:
            for number in range(rounds):
                scope, stop, told = (
                    f"city/r{number}",
                    threading.Event(),
                    list[tuple[str, Receipt]](),
                )
                threads = [
                    threading.Thread(
                        target=client, args=(running, token, scope, each, told, stop), daemon=True
                    )
                    for each in range(clients)
                ]
                for thread in threads:
                    thread.start()
                time.sleep(draw.uniform(0.0, 0.15))
                place = draw.randrange(servers)
                running.kill(place)
                kills += 1
                running.start(place)
                if control:
                    time.sleep(0.5)
                    stop.set()
                for thread in threads:
                    thread.join(120)
                    if thread.is_alive():
                        found.append(f"{scope}: a client waits for ever")
                acknowledged += len(told)
                found += problems_of(ledger, scope, told)
        finally:
            for place in range(servers):
                running.kill(place)
        ledger.verify()
    return acknowledged, kills, found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--servers", type=int, default=1, help="several need --postgres")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--control", choices=CONTROLS, default="")
    asked = vars(parser.parse_args())
    rounds = asked.pop("rounds")
    acknowledged, kills, found = run(rounds, **asked)
    print(
        f"{rounds} rounds, {kills} kills: {acknowledged} acknowledged; {len(found)} problems {found[:3]}"
    )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
