"""Servers, workers and databases killed while a statement is answered: one visible draw for each charge.

    python -m campaigns.service.answers --rounds 300 [--http] [--postgres [--servers 2]]

Each round asks one statement under one key, kills (SIGKILL) a server at a step or at a random moment, or the process
that reads the rows, or PostgreSQL; starts it again, lets the keeper look, and asks twice more under the same key, each
time another server if there are several. Without `--http` the handlers of the service are asked over a pipe. Noise is
so large that a draw is found by its digits in any file, those of the database included. Each control breaks one promise
on purpose and must be caught.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import queue
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dpcompose.adaptive import PureFilter
from dpcompose.errors import DPComposeError, StoreError
from dpcompose.ledger import Entry, Ledger
from dpcompose.release import Catalog
from dpcompose.serve import Identities, Identity, Role, Service

CONTROLS = (
    "answered without a charge",
    "charged again",
    "drawn again",
    "draws are written in plain",
    "not closed by a death",
)
STEPS = ("charge", "redeem", "scan", "draw", "keep", "leave")
EVERY = [f"{when} {step}" for step in STEPS for when in ("before", "after")] + ["half kept"]
VISITS, LARGEST, EPSILON = 40, 10**12, 0.01
TEXT = "SELECT SUM(minutes) AS n FROM visits"
SCALE, EXACT = LARGEST / EPSILON, VISITS * (VISITS - 1) // 2
WHO = Identity("Ben", Role.ANALYST, "clinic")
PATIENCE = 120.0


def stated(folder: Path) -> dict[str, Any]:
    """The scope, as a file of catalogs says it."""
    table = {"source": str(folder / "visits.csv"), "unit": "person", "max_rows_per_unit": 1}
    table |= {"schema": {"minutes": "int64"}, "ranges": {"minutes": [0, LARGEST]}}
    return {"after": 100.0, "limit": 120.0, "tables": {"visits": table}}


def defined(ledger: Ledger, folder: Path) -> None:
    """Open the scope with its catalog."""
    tables = stated(folder)["tables"]
    Catalog.define(ledger, "clinic", tables, filter=PureFilter(1e6), actor="keeper")


class Forked:
    """A process that reads rows, forked, since a new interpreter takes a second to start."""

    returncode: int | None = None

    def __init__(self, pipe: Connection) -> None:
        from dpcompose.release.worker import answer

        self.pid = os.fork()
        if not self.pid:
            os.dup2(pipe.fileno(), 3)
            os.closerange(4, 4096)
            with suppress(BaseException):
                answer(3)
            os._exit(0)

    def kill(self) -> None:
        """End it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Bury it."""
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self.returncode = 0


def serve(ledger_url: str, folder: str, control: str, port: int, pipe: Connection) -> None:
    """One server, until it is killed; with a port over HTTP."""
    from dpcompose.ledger import postgres
    from dpcompose.release import aggregate, answers, design, worker
    from dpcompose.serve import counter, service as services

    worker._started = Forked  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    home = Path(folder)
    ledger = Ledger.open(ledger_url, create=False)
    if control == CONTROLS[0]:
        ledger = Ledger.open("memory:")
        defined(ledger, home)
    counter.Desk.leave = lambda *_, **__: None  # answers leave at once
    _break(control, answers, counter, services)
    desks = counter.Counter.open(ledger, home / "answers", {"clinic": stated(home)})
    desk = desks.desks["clinic"]
    reason = desk.reason()
    desk.record("", "keeper")
    people = Identities(Ledger.open(ledger_url)) if port else Identities(Ledger.open("memory:"))
    service = Service(ledger, people, None, desks)
    owners = {
        "charge": (Service, "charge_all"),
        "redeem": (counter.Payer, "redeem"),
        "scan": (aggregate.Scans, "exact"),
        "draw": (design.Design, "draw"),
        "keep": (counter.Shared if desk.shared else answers.InDirectory, "keep"),
        "leave": (counter.Desk, "leave"),
    }
    step: list[str] = [""]
    _log_draws(design.Design, home.parent / "draws")
    for name, (owner, method) in owners.items():
        _kill_at(owner, method, name, step)
    _kill_at(Path, "replace", "half kept", step)
    _kill_at(postgres.PostgresRows, "run", "half kept", step, statement=counter._SHOW)
    if port:
        _listen(service, port)
    pipe.send((reason, desk.worker.process.pid))
    turn = threading.Lock()

    def answered(number: int, fields: dict[str, Any]) -> None:
        outcome = _outcome(service, fields)
        with turn, suppress(OSError):
            pipe.send((number, outcome))

    while True:
        number, step[0], fields = pipe.recv()
        if fields is not None:
            threading.Thread(target=answered, args=(number, fields), daemon=True).start()


def _listen(service: Service, port: int) -> None:
    """Answer over HTTP, in a thread."""
    import uvicorn

    from dpcompose.serve.web import application

    options: Any = {"port": port, "log_level": "critical", "access_log": False}
    server = uvicorn.Server(uvicorn.Config(application(service, rate=1e9), **options))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)


def _break(control: str, answers: Any, counter: Any, services: Any) -> None:
    """Break a promise."""
    match control:
        case "charged again":
            services.own_key = lambda who, key: f"{key} {random.random()}"  # pyright: ignore
        case "drawn again":
            counter.Payer.redeem = lambda *_, **__: None
        case "draws are written in plain":
            counter.Desk.delete_unstored = lambda _: None
            answers._hidden = lambda text, *_: text
        case "not closed by a death":
            counter.Desk.shut = lambda *_: None
        case _:
            pass


def _log_draws(kind: Any, file: Path) -> None:
    drawn = kind.draw

    def draw(self: Any, exact: Any) -> Any:
        found = drawn(self, exact)
        with file.open("a") as log:
            log.write(f"{found.released[0][0][0]}\n")
        return found

    kind.draw = draw


def _kill_at(
    owner: Any, method: str, name: str, step: list[str], *, statement: str | None = None
) -> None:
    real = getattr(owner, method)

    def run(*values: Any, **more: Any) -> Any:
        if statement is not None and values[1] != statement:
            return real(*values, **more)
        if step[0] in (f"before {name}", name):
            os.kill(os.getpid(), signal.SIGKILL)
        found = real(*values, **more)
        if step[0] == f"after {name}":
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, method, run)


def _outcome(service: Service, fields: dict[str, Any]) -> tuple[str, Any]:
    from dpcompose.serve.request import ROUTES

    try:
        found = ROUTES["ask"].answer(service, WHO, "clinic", fields)
    except DPComposeError as error:
        return type(error).__name__, None
    except Exception as error:
        return "defect", repr(error)
    return "answer", found["tables"][0][0]["cells"][0]


@dataclass
class Server:
    """A process that answers and is killed and started again."""

    url: str
    folder: Path
    control: str
    port: int = 0
    number: int = 0
    reason: str = ""
    outcomes: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    def __post_init__(self) -> None:
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(
            [
                "dpcompose.serve.counter",
                "dpcompose.release.worker",
                "duckdb",
                "pyarrow.csv",
                "opendp",
            ]
        )
        self.start()

    def start(self) -> None:
        """Start it, and hear why its tables were closed."""
        self.pipe, theirs = self.context.Pipe()
        arguments = (self.url, str(self.folder), self.control, self.port, theirs)
        self.process = self.context.Process(target=serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        if not self.pipe.poll(PATIENCE):
            raise RuntimeError("a server does not start")
        self.reason, self.worker = self.pipe.recv()

    def kill(self) -> None:
        """Kill it as a loss of power would, unless it is gone."""
        self.process.kill()
        self.process.join()

    def send(self, key: str, step: str = "") -> None:
        """Ask under a key; at that step the server kills itself."""
        self.number += 1
        self.pipe.send((self.number, step, _fields(key)))

    def receive(self, seconds: float = PATIENCE) -> bool:
        """Whether an outcome arrives in time."""
        with suppress(EOFError, OSError):
            if self.pipe.poll(seconds):
                self.outcomes.append(self.pipe.recv()[1])
                return True
        return False


def _fields(key: str) -> dict[str, Any]:
    return {"table": "visits", "sql": TEXT, "key": key, "spend": {"epsilon": str(EPSILON)}}


@dataclass
class OverHTTP(Server):
    """The same, asked over HTTP.

    Args:
        token: Of the analyst.
    """

    token: str = ""

    def start(self) -> None:
        """Start it; what it was asked before is no longer waited for."""
        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        self.told: queue.Queue[tuple[str, Any] | None] = queue.Queue()
        super().start()

    def send(self, key: str, step: str = "") -> None:
        """Ask under a key; at that step the server kills itself."""
        with suppress(OSError):
            self.pipe.send((0, step, None))
        threading.Thread(target=self._post, args=(self.told, _fields(key)), daemon=True).start()

    def _post(self, told: queue.Queue[tuple[str, Any] | None], fields: dict[str, Any]) -> None:
        import httpx

        url, headers = (
            f"http://127.0.0.1:{self.port}/v1/ask",
            {"authorization": f"Bearer {self.token}"},
        )
        try:
            found = httpx.post(
                url, json={"scope": "clinic", **fields}, headers=headers, timeout=PATIENCE
            )
            answer = found.json()
        except (httpx.HTTPError, ValueError):
            told.put(None)
            return
        if found.status_code == 200:
            told.put(("answer", answer["tables"][0][0]["cells"][0]))
        elif found.status_code == 500:
            told.put(("defect", found.text))
        else:
            told.put((answer.get("error", str(found.status_code)), None))

    def receive(self, seconds: float = PATIENCE) -> bool:
        """Whether an outcome arrives in time."""
        with suppress(queue.Empty):
            outcome = self.told.get(timeout=seconds)
            self.outcomes += [] if outcome is None else [outcome]
            return outcome is not None
        return False


@dataclass
class Report:
    """What was seen.

    Args:
        kills: By what was killed.
        visible: The answers that somebody was told, one for each key.
        spent: Keys that are charged and have no answer.
        closed: Deaths by which the tables were closed.
        problems: Promises that were not kept.
        draws: Where each draw is written for us, before it is stored.
    """

    kills: Counter[str] = field(default_factory=Counter[str])
    visible: list[float] = field(default_factory=list[float])
    spent: int = 0
    closed: int = 0
    problems: list[str] = field(default_factory=list[str])
    draws: Path = Path("draws")

    @property
    def chi_square(self) -> float:
        """Of ten equally likely ranges of the law of one draw; above 27.9 for one correct law in a thousand."""
        ranges = Counter(min(int(10 * _below((each - EXACT) / SCALE)), 9) for each in self.visible)
        mean = len(self.visible) / 10
        return sum((ranges[at] - mean) ** 2 / mean for at in range(10)) if mean else 0.0


def _below(noise: float) -> float:
    return math.exp(noise) / 2 if noise < 0 else 1 - math.exp(-noise) / 2


@contextmanager
def ledgers(postgres: bool, folder: Path) -> Iterator[tuple[str, Any, Path]]:
    """Where the ledger is; what kills the database and starts it again; and where all files are."""
    if not postgres:
        yield str(folder / "city.db"), None, folder
        return
    from campaigns.ledger.server import place

    with place() as database:
        database.initialize()
        running = [database.start()]

        def killed() -> None:
            database.kill(running[0])
            running[0] = database.start()

        url = database.create("city")
        try:
            yield url, killed, database.home
        finally:
            database.stop(running[0])


def run(
    rounds: int,
    *,
    seed: int = 0,
    postgres: bool = False,
    http: bool = False,
    servers: int = 1,
    control: str = "",
    steps: Sequence[str] = EVERY,
    moments: bool = True,
) -> Report:
    """Rounds of one key each; steps in their order, and, between them, kills at random moments."""
    draw, report = random.Random(seed), Report()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "service"
        folder.mkdir()
        report.draws = folder.parent / "draws"
        rows = [f"p{each},{each}" for each in range(VISITS)]
        (folder / "visits.csv").write_text("\n".join(["person,minutes", *rows]))
        url, database, files = stack.enter_context(ledgers(postgres, folder))
        ledger = stack.enter_context(Ledger.open(url))
        defined(ledger, folder)
        token = Identities(ledger).invite("Ben", Role.ANALYST, "clinic") if http else ""
        kind: Any = partial(OverHTTP, token=token) if http else Server
        several = [kind(url, folder, control) for _ in range(servers)]
        length, sequence = 1.0, len(_entries(ledger))
        victims = ["server", "server", "worker", *(["database"] if database else [])]
        try:
            for number in range(rounds):
                server, other = several[number % servers], several[(number + 1) % servers]
                at_step = not moments or number % 2 == 0
                step = steps[number // (1 + moments) % len(steps)] if at_step else ""
                victim = "server" if step else draw.choice(victims)
                for each in several:
                    each.outcomes.clear()
                began = time.monotonic()
                server.send(f"k{number}", step)
                if not step:
                    other.send(f"k{number}")  # and somebody else of the same name at the same time
                    server.receive(draw.uniform(0, 1.2 * length))
                    _kill(victim, server, database)
                elif server.receive():
                    report.problems.append(f"{step}: nothing was killed")
                wanted = 2 if other is server else 1
                while not step and victim != "server" and len(server.outcomes) < wanted:
                    if not server.receive():
                        break
                report.kills[step or victim] += 1
                seen = False
                if other is not server:
                    if step:  # the other one sees the death first
                        other.send(f"k{number}")
                    seen = other.receive() and other.outcomes[-1][0] == "ReleaseError"
                server.kill()
                server.start()
                closed = seen or bool(server.reason)
                report.closed += closed
                if seen:
                    other.kill()
                    other.start()
                for each in (server, other):
                    began = time.monotonic()
                    _ask_again(each, f"k{number}")
                    length = 0.7 * length + 0.3 * (time.monotonic() - began)
                name = f"{number} {step or victim}"
                outcomes = list(server.outcomes)
                if other is not server:
                    outcomes = [*other.outcomes[:-1], *outcomes, *other.outcomes[-1:]]
                sequence = _judge(report, name, outcomes, closed, ledger, files, sequence)
        finally:
            for each in several:
                each.kill()
        ledger.verify()
    return report


def _ask_again(server: Server, key: str) -> None:
    """Ask as a client does: again where the database was away, whose connections are new then."""
    for _ in range(4):
        server.send(key)
        server.receive()
        if not (server.outcomes and server.outcomes[-1][0] == "StoreError"):
            return
        server.outcomes.pop()


def _kill(victim: str, server: Server, database: Any) -> None:
    if victim == "database":
        database()
    elif victim == "worker":
        with suppress(ProcessLookupError):
            os.kill(server.worker, signal.SIGKILL)
    else:
        server.kill()


DURING = {"before redeem", "after redeem", "before scan", "after scan", "before draw", "after draw"}
DURING |= {"before keep", "half kept"}
"""Steps between a charge and its answer: a death there closes the tables."""


def _judge(
    report: Report,
    name: str,
    outcomes: Sequence[tuple[str, Any]],
    closed: bool,
    ledger: Ledger,
    files: Path,
    sequence: int,
) -> int:
    """Note the promises that one round did not keep; the number of the last entry."""
    problems = list[str]()
    visible = {value for kind, value in outcomes if kind == "answer"}
    problems += [f"{kind} {value}" for kind, value in outcomes if kind == "defect"]
    new = [each for each in _entries(ledger) if each.sequence > sequence]
    kinds = Counter(each.kind for each in new)
    if len(visible) > 1:
        problems.append(f"{len(visible)} draws are visible")
    if visible and not (kinds["granted"] == kinds["redeemed"] == 1):
        problems.append(f"an answer with {kinds['granted']} charges")
    if kinds["granted"] != 1 or kinds["redeemed"] > 1:
        problems.append(f"{kinds['granted']} charges, {kinds['redeemed']} redemptions")
    if len(outcomes) < 2 or outcomes[-1] != outcomes[-2]:
        problems.append(f"asked again: {outcomes}")
    if outcomes and outcomes[-1][0] not in ("answer", "SpentError"):
        problems.append(f"in the end {outcomes[-1][0]}")
    if name.split(" ", 1)[1] in DURING and not closed:
        problems.append("the tables were not closed")
    log = report.draws
    drawn = log.read_text().split() if log.exists() else []
    log.unlink(missing_ok=True)
    if len(drawn) > 1:
        problems.append(f"{len(drawn)} draws")
    if not visible:
        report.spent += 1
        problems += [f"an unstored draw in {each.name}" for each in _holding(files, drawn)]
    report.visible += visible
    report.problems += [f"{name}: {each}" for each in problems]
    return max((each.sequence for each in new), default=sequence)


def _entries(ledger: Ledger) -> list[Entry]:
    """The entries, by a connection that was made after the last death of the database."""
    for _ in range(8):
        with suppress(StoreError):
            return list(ledger.entries("clinic"))
    return list(ledger.entries("clinic"))


def _holding(folder: Path, drawn: Sequence[str]) -> list[Path]:
    """The files in which the digits of a draw are, as they are or in hexadecimal."""
    digits = [each for text in drawn for each in (text.encode(), text.encode().hex().encode())]
    files = [each for each in folder.rglob("*") if each.is_file()]
    return [each for each in files if any(form in each.read_bytes() for form in digits)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--control", choices=CONTROLS, default="")
    asked = vars(parser.parse_args())
    rounds = asked.pop("rounds")
    report = run(rounds, **asked)
    print(f"{rounds} rounds, kills {dict(report.kills)}")
    print(
        f"{len(report.visible)} visible answers, chi-square {report.chi_square:.1f} on 9 degrees;"
    )
    print(f"{report.spent} charges without an answer, {report.closed} deaths closed the tables")
    print(f"{len(report.problems)} problems {report.problems[:5]}")
    return bool(report.problems)


if __name__ == "__main__":
    sys.exit(main())
