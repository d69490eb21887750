"""The service beside the ledger it keeps: charges with one client and with many, and the pages of a large ledger.

    python -m benchmarks.serve [--postgres] [--servers 1] [--seconds 3] [--runs 3] [--folder DIRECTORY]
    python -m benchmarks.serve pages [--scopes 100000] [--entries 1000000] [--folder DIRECTORY]

A service in a process of its own is charged over HTTP, in turns with charges of the same ledger's other file in this
process: one client, then 64. A charge is `Account.charge` of a mechanism, with a key of its own, on the disk of the
directory. Targets: with one client the service makes at least half the charges of a direct one; with 64 clients at
least as many as one direct client. Direct with 64 threads is reported beside them, and of each the median and the 99th
percentile of what a caller waits. Several servers share one PostgreSQL database; callers are dealt out to them.

`pages` fills a ledger as `benchmarks.ledger_scale` does, and prints the milliseconds of every page.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.ledger_scale import fill
from dpcompose import Gaussian
from dpcompose.account import Account, open_scope
from dpcompose.ledger import Ledger
from dpcompose.serve import Identities, Role

MANY, MECHANISM = 64, "Gaussian(1000000.0)"


class Caller:
    """A connection that stays open, with little work of its own: the service is what is timed."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f"HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"

    def charge(self) -> None:
        """One charge, with a key of its own."""
        fields = {"scope": "city/health", "mechanism": MECHANISM, "key": uuid.uuid4().hex}
        self._asked("POST /v1/charge", json.dumps(fields))

    def page(self, path: str) -> bytes:
        """A page of the dashboard."""
        return self._asked(f"GET {path}", "")

    def _asked(self, line: str, body: str) -> bytes:
        cookie = f"cookie: dpcompose={self.head.rpartition(' ')[2].strip()}\r\n"
        head = f"{line} {self.head}{cookie}content-length: {len(body)}\r\n\r\n"
        self.connection.sendall((head + body).encode())
        found = self._received()
        while b"\r\n\r\n" not in found:
            found += self._received()
        answer, _, rest = found.partition(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise SystemExit(f"{line}: {answer[:40]!r} {rest[:200]!r}")
        length = int(answer.lower().partition(b"content-length:")[2].split()[0])
        while len(rest) < length:
            rest += self._received()
        return rest

    def _received(self) -> bytes:
        found = self.connection.recv(1 << 20)
        if not found:
            raise SystemExit("the service closed a connection")
        return found


@contextmanager
def serving(ledger: str) -> Iterator[int]:
    """A service in a process of its own; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dpcompose", "serve", "--ledger", ledger]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--rate", "1e9"], stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def rate(work: list[Callable[[], object]], seconds: float) -> tuple[float, list[float]]:
    """Calls a second, each of the works in a thread of its own, and the seconds that each call took."""
    took, stop = [list[float]() for _ in work], time.perf_counter() + seconds

    def repeat(place: int) -> None:
        while (start := time.perf_counter()) < stop:
            work[place]()
            took[place].append(time.perf_counter() - start)

    began = time.perf_counter()
    threads = [threading.Thread(target=repeat, args=(place,)) for place in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    calls = [each for place in took for each in place]
    return len(calls) / (time.perf_counter() - began), calls


def prepared(url: str) -> Ledger:
    ledger = Ledger.open(url)
    for path in ("city", "city/health"):
        open_scope(ledger, path, epsilon=10, delta="1e-6", only="zcdp", actor="keeper")
    return ledger


def charges(direct: str, served: str, *, servers: int, seconds: float, runs: int) -> None:
    """Rates in turns, and the ratios of their medians."""
    found: dict[str, list[float]] = {}
    waits: dict[str, list[float]] = {}
    prepared(served).close()
    with Ledger.open(served) as ledger:
        token = Identities(ledger).invite("Ada", Role.ANALYST, "city")
    with prepared(direct) as ledger, ExitStack() as running:
        ports = [running.enter_context(serving(served)) for _ in range(servers)]
        account, mechanism = Account(ledger, scope="city/health"), Gaussian(1_000_000.0)

        def called(count: int) -> list[Callable[[], object]]:
            return [Caller(ports[place % servers], token).charge for place in range(count)]

        def charge() -> None:
            account.charge(mechanism, actor="Ada", key=uuid.uuid4().hex)

        turns: dict[str, Callable[[], list[Callable[[], object]]]] = {
            "direct, 1 client": lambda: [charge],
            "service, 1 client": lambda: called(1),
            f"service, {MANY} clients": lambda: called(MANY),
            f"direct, {MANY} clients": lambda: [charge] * MANY,
        }
        for run in range(runs + 1):
            for name, work in turns.items():
                at, took = rate(work(), seconds if run else 0.5)
                found.setdefault(name, []).extend([at] if run else [])
                waits.setdefault(name, []).extend(took if run else [])
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    for name, at in medians.items():
        half, rare = (1e3 * statistics.quantiles(waits[name], n=100)[place] for place in (49, 98))
        share = at / medians["direct, 1 client"]
        print(
            f"{name:24} {at:7.0f} charges/s {share:6.2f} of direct, p50 {half:7.1f} ms p99 {rare:7.1f} ms",
            flush=True,
        )


def pages(folder: Path, *, scopes: int, entries: int) -> None:
    """Milliseconds by the clock of each page, as a client waits for it."""
    url = str(folder / "l.db")
    people = Identities(Ledger.open(url))
    with Ledger.open(url) as ledger:
        began = time.monotonic()
        fill(ledger, scopes, entries)
        print(f"filled in {time.monotonic() - began:.0f} s", flush=True)
    with serving(url) as port:
        for role in Role:
            for subtree in ("world", "world/d1", "world/d1/s1"):
                caller = Caller(port, people.invite("Ada", role, subtree))
                for path in ("/", "/?scope=world/d1/s1", "/?words=Ada"):
                    caller.page(path)
                    times: list[float] = []
                    for _ in range(5):
                        began = time.perf_counter()
                        size = len(caller.page(path))
                        times.append(time.perf_counter() - began)
                    took = statistics.median(times) * 1e3
                    print(
                        f"{role:8} of {subtree:12} {path:22} {took:9.1f} ms {size:9} bytes",
                        flush=True,
                    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("charges", "pages"), default="charges")
    parser.add_argument(
        "--postgres", action="store_true", help="on two databases of a server of our own"
    )
    parser.add_argument("--servers", type=int, default=1, help="with --postgres")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scopes", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--folder")
    asked = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=asked.folder)))
        if asked.what == "pages":
            pages(folder, scopes=asked.scopes, entries=asked.entries)
            return
        direct, served = (str(folder / f"{name}.db") for name in ("direct", "served"))
        if asked.postgres:
            from campaigns.ledger.server import server

            running = stack.enter_context(server())
            direct, served = running.create("direct"), running.create("served")
        charges(direct, served, servers=asked.servers, seconds=asked.seconds, runs=asked.runs)


if __name__ == "__main__":
    main()
