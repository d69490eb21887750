"""Many clients at once, and a network that fails: what they were told is one history, in the order in which they were.

    python -m campaigns.service.load [--clients 200] [--charges 100000] [--trees 1] [--partitions 0]
        [--postgres] [--servers 1]

Clients charge over HTTP and ask what is left, with the same key again when they hear nothing; budgets end before the
charges do. With --partitions, so many times nothing comes through between clients and service, or, with --postgres,
between service and database, in one direction or both, and then every connection is cut. Afterwards every charge that
was acknowledged is in the log once, and the history of each tree is linearizable: the log gives each charge and each
answer its place, and no answer that came before another was asked has a later place. Waiting times are printed beside
those of bare commits on the same disk or database. Each control breaks a promise on purpose and must be caught.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from campaigns.service.kills import CONTROLS as OF_KILLS, Servers, serve
from campaigns.service.network import Proxy
from dpcompose.account import open_scope
from dpcompose.adaptive import PureFilter
from dpcompose.ledger import Amount, Ledger, Receipt
from dpcompose.serve import Identities, Identity, Role, Service
from dpcompose.serve.gate import ROUTES, Answer

STALE = "what is left is told late"
CONTROLS = (OF_KILLS[0], STALE)
MECHANISM, UNITS = "Laplace(1000.0)", Amount.of("0.001").units
PATIENCE = 3.0
"""Seconds after which a client asks again."""


@dataclass(frozen=True)
class Answered:
    """What a client was told of a tree, and between which times.

    Args:
        place: (number of charges, 0) for the charge that made it so many, (number, 1) for an answer that says so.
    """

    place: tuple[int, int]
    start: float
    end: float
    what: str


def disorder(answers: Sequence[Answered]) -> list[str]:
    """The answers that came before another was asked that has an earlier place."""
    found: list[str] = []
    latest: Answered | None = None
    for _, same in itertools.groupby(
        sorted(answers, key=lambda each: each.place), lambda each: each.place
    ):
        here = list(same)
        found += [
            f"{each.what} came before {latest.what} was asked"
            for each in here
            if latest and each.end < latest.start
        ]
        latest = max([*here, *([latest] if latest else [])], key=lambda each: each.start)
    return found


@dataclass
class Told:
    """Everything that clients were told of one tree."""

    charges: dict[str, tuple[Receipt, float, float]] = field(default_factory=dict[str, Any])
    refused: list[tuple[float, float]] = field(default_factory=list[Any])
    left: list[tuple[int, float, float]] = field(default_factory=list[Any])


def stale(ledger: str, people: str, port: int, control: str) -> None:
    """A server; by the control, one that tells what was left a while ago."""
    if control == STALE:
        ROUTES["left"] = replace(ROUTES["left"], handler=_late)
    serve(ledger, people, port, control)


_seen: dict[str, tuple[float, Answer]] = {}


def _late(service: Service, who: Identity, scope: str) -> Answer:
    if scope not in _seen or time.monotonic() > _seen[scope][0] + 0.5:
        _seen[scope] = time.monotonic(), service.left(who, scope)
    return _seen[scope][1]


@dataclass
class Client:
    """One connection, which is made anew when it fails."""

    ports: Sequence[int]
    token: str
    draw: random.Random
    connection: http.client.HTTPConnection | None = None

    def ask(
        self, method: str, path: str, fields: dict[str, str] | None = None
    ) -> tuple[int, Any, float, float]:
        """The status, the answer, and the times of the first question and the last answer; asked until one comes."""
        start = time.perf_counter()
        while True:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(
                    "127.0.0.1", self.draw.choice(self.ports), timeout=PATIENCE
                )
            if method == "GET":
                start = time.perf_counter()
            try:
                headers = {"authorization": f"Bearer {self.token}"}
                self.connection.request(
                    method, path, json.dumps(fields) if fields else None, headers
                )
                response = self.connection.getresponse()
                answer = json.loads(response.read())
                if response.status not in (429, 503):
                    return response.status, answer, start, time.perf_counter()
            except (OSError, http.client.HTTPException, ValueError):
                self.connection.close()
                self.connection = None
            time.sleep(0.02)


def work(
    client: Client, numbers: Iterator[int], told: dict[str, Told], problems: list[str]
) -> None:
    """Charge until the numbers end; after every tenth charge, ask what is left."""
    trees = list(told)
    for number in numbers:
        tree = trees[number % len(trees)]
        asked = {"scope": tree, "mechanism": MECHANISM, "key": f"charge {number}"}
        status, answer, *times = client.ask("POST", "/v1/charge", asked)
        if status == 200:
            told[tree].charges[asked["key"]] = Receipt.read(answer["receipt"]), times[0], times[1]
        elif status == 409 and answer["error"] == "OverdrawnError":
            told[tree].refused.append((times[0], times[1]))
        else:
            problems.append(f"charge {number}: {status} {answer}")
        if number % 10 == 0:
            _, answer, *times = client.ask("GET", f"/v1/left?scope={tree}")
            told[tree].left.append((Amount.of(answer["left"]["epsilon"]).units, times[0], times[1]))
    if client.connection is not None:
        client.connection.close()


def problems_of(ledger: Ledger, tree: str, told: Told) -> list[str]:
    """The promises that the log of a tree does not keep."""
    granted = [each for each in ledger.entries(tree) if each.kind == "granted"]
    places = {each.hash: (place + 1, 0) for place, each in enumerate(granted)}
    cap, found = ledger.balance(tree).scope.caps.units["epsilon"], list[str]()
    most = cap // UNITS
    answers: list[Answered] = []
    for key, (receipt, start, end) in told.charges.items():
        if receipt.hash not in places:
            found.append(f"{tree} {key}: acknowledged, and not in the log")
            continue
        answers.append(Answered(places[receipt.hash], start, end, key))
    names = Counter(each.key for each in granted)
    found += [
        f"{tree}: {name} is there {times} times" for name, times in names.items() if times > 1
    ]
    if len(granted) > most or len(granted) != len(told.charges):
        found.append(
            f"{tree}: {len(granted)} charges, {len(told.charges)} acknowledged, {most} fit"
        )
    for left, start, end in told.left:
        number, rest = divmod(cap - left, UNITS)
        if rest:
            found.append(f"{tree}: what is left is told wrongly")
        answers.append(Answered((number, 1), start, end, f"an answer after {number}"))
    answers += [Answered((most, 1), start, end, "a refusal") for start, end in told.refused]
    return found + disorder(answers)[:5]


def bare(folder: Path, url: str, count: int = 400) -> list[float]:
    """Seconds of commits of one row, without anything of ours."""
    took: list[float] = []
    with ExitStack() as stack:
        if url.startswith("postgresql"):
            import psycopg

            connection: Any = stack.enter_context(psycopg.connect(url))
            connection.execute("create table bare (body text)")
            connection.commit()
        else:
            connection = sqlite3.connect(folder / "bare.db")
            stack.callback(connection.close)
            connection.executescript(
                "pragma journal_mode=wal; pragma synchronous=full; create table bare (body text)"
            )
        for number in range(count):
            start = time.perf_counter()
            connection.execute(f"insert into bare values ('{number} {'x' * 600}')")
            connection.commit()
            took.append(time.perf_counter() - start)
    return took


@contextmanager
def places(
    postgres: bool, folder: Path, partitioned: bool
) -> Iterator[tuple[str, str, list[Proxy]]]:
    """Where the ledger is, where servers find it, and the network between them."""
    if not postgres:
        yield str(folder / "city.db"), str(folder / "city.db"), []
        return
    from campaigns.ledger.server import server

    with server() as running:
        url = running.create("city")
        if not partitioned:
            yield url, url, []
            return
        with closing(
            Proxy(f"{running.home}/.s.PGSQL.5432", at=str(folder / ".s.PGSQL.5432"))
        ) as proxy:
            yield url, f"postgresql://ledger@/city?host={folder}", [proxy]


@dataclass
class Run:
    """What a run found."""

    granted: int = 0
    refused: int = 0
    answers: int = 0
    cuts: int = 0
    seconds: float = 0.0
    waits: list[float] = field(default_factory=list[float])
    bare: list[float] = field(default_factory=list[float])
    problems: list[str] = field(default_factory=list[str])


def run(
    charges: int,
    *,
    clients: int = 200,
    trees: int = 1,
    partitions: int = 0,
    servers: int = 1,
    postgres: bool = False,
    control: str = "",
    seed: int = 0,
) -> Run:
    """Charges of many clients, and every promise that was not kept."""
    draw, found = random.Random(seed), Run()
    told = {f"tree{number}": Told() for number in range(trees)}
    numbers = iter(range(charges))  # each of its steps is one of C's: no number goes to two
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url, served, network = stack.enter_context(places(postgres, folder, bool(partitions)))
        ledger = stack.enter_context(Ledger.open(url))
        fit = max(1, int(0.95 * charges / trees))
        for tree in told:
            open_scope(ledger, tree, filter=PureFilter(Fraction(2 * fit + 1, 2000)), actor="keeper")
        people = url if postgres else str(folder / "people.db")
        known = Identities(Ledger.open(people))
        token = known.invite("Ada", Role.ANALYST, "")
        known.ledger.close()
        found.bare = bare(folder, url)
        running = Servers(served, served if postgres else people, servers, control, target=stale)
        if partitions:
            network += [stack.enter_context(closing(Proxy(port))) for port in running.ports]
        ports = [each.port for each in network if each.port] or running.ports
        each_client = [
            Client(ports, token, random.Random(f"{seed} {number}")) for number in range(clients)
        ]
        threads = [
            threading.Thread(target=work, args=(client, numbers, told, found.problems), daemon=True)
            for client in each_client
        ]
        try:
            start = time.perf_counter()
            for thread in threads:
                thread.start()
            for _ in range(partitions):
                time.sleep(draw.uniform(0.05, 0.3))
                draw.choice(network).partition(draw)
            for thread in threads:
                thread.join(600)
                if thread.is_alive():
                    found.problems.append("a client waits for ever")
            found.seconds = time.perf_counter() - start
        finally:
            for place in range(servers):
                running.kill(place)
        for tree, each in told.items():
            found.problems += problems_of(ledger, tree, each)
            found.granted, found.refused = (
                found.granted + len(each.charges),
                found.refused + len(each.refused),
            )
            found.answers += len(each.left)
            found.waits += [end - start for _, start, end in each.charges.values()]
        found.cuts = sum(each.cuts for each in network)
        ledger.verify()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--charges", type=int, default=100_000)
    parser.add_argument("--trees", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=0)
    parser.add_argument("--servers", type=int, default=1, help="several need --postgres")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--control", choices=CONTROLS, default="")
    asked = vars(parser.parse_args())
    found = run(asked.pop("charges"), **asked)
    print(
        f"{found.granted} charges, {found.refused} refused, {found.answers} answers, {found.cuts} partitions, "
        f"{found.seconds:.0f} s, {found.granted / found.seconds:.0f} charges/s"
    )
    for name, took in (("a charge", found.waits), ("a bare commit", found.bare)):
        cuts = statistics.quantiles(took, n=100)
        print(f"{name:14} p50 {1e3 * cuts[49]:8.1f} ms, p99 {1e3 * cuts[98]:8.1f} ms")
    print(f"{len(found.problems)} problems {found.problems[:3]}")
    return bool(found.problems)


if __name__ == "__main__":
    sys.exit(main())
