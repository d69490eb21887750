"""Callers who leave, never end or never begin: whoever else charges is answered, and the service stays small.

    python -m campaigns.service.strangers --rounds 200
    python -m campaigns.service.strangers --seconds 60 [--connections 100]

A server in a process of its own takes tokens of an issuer that does not answer. In each round one of these is drawn:
requests that take long and are abandoned, headers without an end, connections that stay half open, tokens with a name
of no key. After each an analyst charges the same tree and must be answered, headers must be refused and half-open
connections closed, each within a time limit. In the end the server has few files open and has grown by little, and the
log holds each acknowledged charge once. Each control takes one limit away and must be caught.

With --seconds a stranger, an analyst and an auditor, each alone, ask what costs most over many connections for so long,
half of the time without waiting for the answer; the server has one core, they and the clients have another. Printed are
the times of another tenant's charges before, meanwhile, and from a second after they left, with the largest memory of
the server and its processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import random
import re
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote

from campaigns.service.kills import problems_of
from dpcompose import Laplace
from dpcompose.account import charge_together, open_scope
from dpcompose.ledger import Checkpoint, Ledger, Receipt, SigningKey, VerifierKey
from dpcompose.serve import Identities, Published, Role, Service

CONTROLS = (
    "headers without an end",
    "connections without an end",
    "work without a turn",
    "an issuer asked in a batch",
)
PATIENCE, TIME = 1.0, 10.0
"""Seconds that the server waits for a request, and that anything here may take."""
MEMORY, FILES = 150_000, 150
"""Kilobytes by which the server may grow, and files that it may have open: pipes to prices, and those of threads."""
LONG = " + ".join(f"Gaussian({5 + at / 7}).sampled(0.01)" for at in range(60))
COST = Laplace(1000.0)


def serve(ledger: str, people: str, port: int, control: str, *signed: str) -> None:
    """The server; by a control, without one of its limits; with a file of checkpoints and their key, on one core."""
    from dpcompose.serve import listening
    from dpcompose.serve.gate import Gate
    from dpcompose.serve.issuer import Issuer
    from dpcompose.serve.web import application

    logging.disable()
    listening.PATIENCE = 3600.0 if control == CONTROLS[1] else PATIENCE
    if control == CONTROLS[0]:
        listening.LARGEST_HEAD = 1 << 40
    if control == CONTROLS[2]:
        mock.patch.object(Service, "takes_long", _never).start()
        mock.patch("dpcompose.serve.service.computed", _here).start()
    if control == CONTROLS[3]:
        mock.patch.object(Gate, "is_foreign", _never).start()
    issuer = Issuer("https://login.example/city", "budgets", read=_silent)
    service = Service(Ledger.open(ledger, create=False), Identities(Ledger.open(people), issuer))
    if signed:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        published = Published(Path(signed[0]), [VerifierKey.read(signed[1])])
        service = Service(service.ledger, Identities(service.people.ledger), published)
    rate = 200.0 if signed else 1e9
    listening.run(application(service, rate=rate), host="127.0.0.1", port=port)


def _never(*_: object) -> bool:
    return False


def _here(account: Any, mechanism: str, delta: Any) -> Any:
    """A price that takes long, on whichever machine, in a thread of the server."""
    time.sleep(2 * TIME)
    from dpcompose.mechanisms.text import parse

    quote = account.quote(parse(mechanism), delta)
    return 1.0, quote.cost, quote.description


def _silent(url: str) -> bytes:
    time.sleep(2 * TIME)
    raise OSError(url)


class Attack:
    """Connections to one server, as somebody who means no good."""

    def __init__(
        self, port: int, draw: random.Random, tokens: dict[Role, str], process: int
    ) -> None:
        self.port, self.draw, self.tokens, self.process = port, draw, tokens, process
        self.attacks: list[Callable[[], str]] = [
            self.abandoned,
            self.headers,
            self.half_open,
            self.unknown_key,
        ]

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIME)

    def sent(self, method: str, path: str, token: str, fields: Any = None) -> socket.socket:
        body = "" if fields is None else json.dumps(fields)
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncookie: dpcompose={token}\r\n"
        client = self.connected()
        client.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
        return client

    def abandoned(self) -> str:
        """Requests that take long, left at once."""
        for _ in range(150):  # more than the server has threads
            method, path, role = self.draw.choice(
                [
                    ("POST", "/v1/price", Role.ANALYST),
                    ("POST", "/v1/charge", Role.ANALYST),
                    ("GET", "/v1/verify?scope=city", Role.AUDITOR),
                    ("GET", "/v1/entries?scope=city", Role.AUDITOR),
                    ("GET", "/?scope=city", Role.AUDITOR),
                ]
            )
            fields = {
                "scope": "city",
                "mechanism": LONG,
                "delta": "1e-7",
                "key": str(self.draw.random()),
            }
            self.sent(method, path, self.tokens[role], fields if method == "POST" else None).close()
        return ""

    def headers(self) -> str:
        """Headers, a path, trailers or nothing, without an end."""
        start, more = self.draw.choice(
            [
                (b"GET / HTTP/1.1\r\n", b"x: " + b"y" * 1000 + b"\r\n"),
                (b"GET / HTTP/1.1\r\nx: ", b"y" * 1000),
                (b"GET /", b"y" * 1000),
                (b"", b"\r\n" * 500),
                (
                    b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nx: ",
                    b"y" * 1000,
                ),
            ]
        )
        with self.connected() as client, suppress(ConnectionError):
            client.sendall(start)
            for _ in range(10_000):
                client.sendall(more)
            return f"ten megabytes after {start!r} were taken"
        return ""

    def half_open(self) -> str:
        """Connections whose request does not end."""
        start = self.draw.choice(
            [b"", b"GET / HT", b"POST /login HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\ntok"]
        )
        with ExitStack() as stack:
            clients = [stack.enter_context(self.connected()) for _ in range(20)]
            with suppress(ConnectionError):
                for client in clients:
                    client.sendall(start)
            for client in clients:
                try:
                    with suppress(ConnectionError):
                        while client.recv(65536):
                            pass
                except TimeoutError:
                    return f"a connection with {start!r} stays open"
        return ""

    def unknown_key(self) -> str:
        """Tokens that name no key, of nobody."""
        header = "eyJhbGciOiJSUzI1NiIsImtpZCI6Im5vYm9keSJ9"  # RS256, nobody
        for _ in range(self.draw.randrange(1, 10)):
            fields = {"scope": "city", "mechanism": "Laplace(1000.0)", "key": "k"}
            self.sent("POST", "/v1/charge", f"{header}.e30.x", fields).close()
        return ""

    def charged(self, key: str) -> Receipt | None:
        """A charge of an analyst who has nothing to do with that; its receipt, or None if there was no answer."""
        fields = {
            "scope": "city",
            "mechanism": "Laplace(1000.0)",
            "key": key,
            "description": {"name": key},
        }
        try:
            with self.sent("POST", "/v1/charge", self.tokens[Role.KEEPER], fields) as client:
                answer = _answered(client)
        except OSError:
            return None
        return (
            Receipt.read(json.loads(answer.partition(b"\r\n\r\n")[2])["receipt"])
            if b" 200 " in answer
            else None
        )

    def size(self) -> tuple[int, int]:
        """Kilobytes of the server, and its open files."""
        status = Path(f"/proc/{self.process}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]), len(
            os.listdir(f"/proc/{self.process}/fd")
        )


def _answered(client: socket.socket) -> bytes:
    """The head and the whole body of one answer, which may come in several pieces."""
    answer = b""
    while piece := client.recv(65536):
        answer += piece
        head, end, body = answer.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        if end and length is not None and len(body) >= int(length[1]):
            break
    return answer


@contextmanager
def serving(ledger: str, people: str, control: str, *signed: str) -> Iterator[tuple[int, int]]:
    """A server; its port and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(ledger, people, port, control, *signed)
    )
    process.start()
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield port, process.pid or 0
    finally:
        process.kill()
        process.join()


def run(rounds: int, *, seed: int = 0, control: str = "") -> tuple[Counter[str], list[str]]:
    """Rounds of attacks: how often each was drawn, and every promise that was not kept. A control ends at the first."""
    draw, counts, found = random.Random(seed), Counter[str](), list[str]()
    told: list[tuple[str, Receipt]] = []
    with tempfile.TemporaryDirectory() as folder:
        url, file = f"{folder}/city.db", f"{folder}/people.db"
        with Ledger.open(url) as ledger:
            account = open_scope(
                ledger, "city", epsilon=1000, delta="1e-3", only="basic", actor="keeper"
            )
            for number in range(200):
                account.charge(
                    COST, actor="Eve", key=f"{number}", description={"name": f"{number}"}
                )
            people = Identities(Ledger.open(file))
            invited = {Role.ANALYST: "Eve", Role.AUDITOR: "Cleo"}
            tokens = {role: people.invite(name, role, "city") for role, name in invited.items()}
            tokens[Role.KEEPER] = people.invite("Ada", Role.ANALYST, "city")  # who only charges
            people.ledger.close()
            with serving(url, file, control) as (port, process):
                attack = Attack(port, draw, tokens, process)
                before = attack.size()[0] if attack.charged("first") else 0
                for number in range(rounds):
                    one = (
                        attack.attacks[number]
                        if number < len(attack.attacks)
                        else draw.choice(attack.attacks)
                    )
                    one = attack.attacks[_CAUGHT_BY[control]] if control else one
                    counts[one.__name__] += 1
                    problem, receipt = one(), attack.charged(f"round {number}")
                    found += [problem] if problem else []
                    if receipt is None:
                        found.append(f"after {one.__name__} a charge was not answered")
                    else:
                        told.append((f"round {number}", receipt))
                    if control and found:
                        return counts, found
                time.sleep(2 * PATIENCE)
                grown, files = attack.size()
                if grown - before > MEMORY or files > FILES:
                    found.append(
                        f"the server grew by {grown - before} kB and has {files} files open"
                    )
            found += problems_of(ledger, "city", told)
    return counts, found


TREE, CHARGED = 4000, 8
"""Entries of the tree that is asked for, and clients of the other tenant, who charge one after the other."""
HALF_OPEN = b"POST /v1/charge HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{"


def request(method: str, path: str, token: str, **fields: Any) -> bytes:
    """A request as it is sent; the token is also that of the pages."""
    body = json.dumps(fields) if method == "POST" else ""
    head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncookie: dpcompose={token}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


def crowd(port: int, who: str, token: str, connections: int, seconds: float) -> None:
    """A process of one caller with so many connections, for so long."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    asyncio.run(_crowd(port, who, token, connections, seconds))


async def _crowd(port: int, who: str, token: str, connections: int, seconds: float) -> None:
    draw, end = random.Random(who), time.monotonic() + seconds

    def drawn() -> bytes:
        fields = {"scope": "city", "mechanism": LONG, "delta": "1e-7", "key": f"{draw.random()}"}
        simple = {
            **fields,
            "mechanism": f"Laplace({draw.randrange(10**6, 10**7)}.0)",
            "delta": None,
        }
        entry = draw.randrange(1, TREE)
        return draw.choice(
            {
                "stranger": [
                    request("POST", "/v1/charge", f"{draw.random()}", **simple),
                    request("GET", "/?scope=city", f"{draw.random()}"),
                    HALF_OPEN,
                ],
                "analyst": [
                    *(
                        request("POST", f"/v1/{each}", token, **fields)
                        for each in ("price", "charge")
                    ),
                    request("POST", "/v1/charge", token, **simple),
                    request("GET", "/v1/history?scope=city", token),
                    request("GET", f"/?scope=city&mechanism={quote(LONG)}", token),
                ],
                "auditor": [
                    request("GET", "/v1/verify?scope=city", token),
                    request("GET", "/v1/entries?scope=city&words=nowhere", token),
                    request("GET", f"/v1/proof?scope=city&entry={entry}", token),
                    request("GET", "/v1/balances?scope=city", token),
                    request("GET", "/?words=nowhere", token),
                ],
            }[who]
        )

    async def ask() -> None:
        while time.monotonic() < end:
            with suppress(OSError, TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(drawn())
                if draw.random() < 0.5:
                    async with asyncio.timeout(max(end - time.monotonic(), 0.01)):
                        await reader.read(65536)
                writer.close()
            await asyncio.sleep(0.01)

    await asyncio.gather(*(ask() for _ in range(connections)))


def charges(port: int, token: str, name: str, seconds: float) -> list[float]:
    """The seconds that each charge of another tenant took; clients on the core of the attackers charge for so long."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    async def client(number: int) -> list[float]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        taken, end = list[float](), time.monotonic() + seconds
        while time.monotonic() < end:
            fields = {"scope": "other", "mechanism": "Laplace(1000.0)"}
            begun = time.monotonic()
            writer.write(
                request("POST", "/v1/charge", token, key=f"{name} {number} {begun}", **fields)
            )
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
            assert b" 200 " in head, head
            taken.append(time.monotonic() - begun)
            await asyncio.sleep(0.02)
        writer.close()
        return taken

    async def every() -> list[float]:
        every = await asyncio.gather(*map(client, range(CHARGED)))
        return [each for own in every for each in own]

    return asyncio.run(every())


def memory(process: int) -> int:
    """Kilobytes of a process and of those below it, each page counted once."""
    below = Path(f"/proc/{process}/task").glob("*/children")
    total = sum(memory(int(each)) for file in below for each in file.read_text().split())
    with suppress(OSError):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        total += int(text.partition("\nPss:")[2].split()[0])
    return total


def worked(process: int) -> float:
    """Seconds of the processor that a process has used, those below it left out."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(times: list[float]) -> float:
    """The 99th percentile, in milliseconds."""
    return sorted(times)[len(times) * 99 // 100] * 1e3


def crowds(connections: int, seconds: float) -> list[str]:
    """Each caller alone; what was measured is printed, and every promise that was not kept returned."""
    from concurrent.futures import ProcessPoolExecutor

    found: list[str] = []
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(2, context) as pool:
        url, file = f"{folder}/city.db", f"{folder}/people.db"
        with Ledger.open(url) as ledger:
            for path in ("city", "other"):
                account = open_scope(
                    ledger, path, epsilon=10**6, delta="1e-3", only="basic", actor="keeper"
                )
                own = [
                    account.quote(COST, None).charge(actor="Eve", key=f"{number}", description={})
                    for number in range(TREE if path == "city" else 0)
                ]
                charge_together([(account, each) for each in own]) if own else None
            key = SigningKey.generate("campaign.example")
            with ledger.moment() as moment:
                note = Checkpoint.sign(moment.snapshot, "city", key).note
            Path(folder, "signed").write_text(note, "utf-8")
        with Ledger.open(file) as kept:
            people = Identities(kept)
            tokens = {
                "stranger": "",
                "analyst": people.invite("Eve", Role.ANALYST, "city"),
                "auditor": people.invite("Cleo", Role.AUDITOR, "city"),
            }
            ada = people.invite("Ada", Role.ANALYST, "other")
        signed = f"{folder}/signed", key.verifier.text
        with serving(url, file, "", *signed) as (port, process):
            own = port, ada
            charges(*own, "warm", 1.0)
            for who, token in tokens.items():
                before = pool.submit(charges, *own, f"{who} before", seconds / 2).result()
                attack = pool.submit(crowd, port, who, token, connections, seconds)
                start, largest = worked(process), 0
                meanwhile = pool.submit(charges, *own, who, seconds)
                while not meanwhile.done():
                    largest = max(largest, memory(process))
                    time.sleep(0.2)
                share = (worked(process) - start) / seconds
                attack.result()
                time.sleep(1.0)
                after = pool.submit(charges, *own, f"{who} after", seconds / 4).result()
                times = [percentile(each) for each in (before, meanwhile.result(), after)]
                words = (
                    "p99 of {} charges {:.0f} ms before, of {} {:.0f} meanwhile, of {} {:.0f} after"
                )
                counts = map(len, (before, meanwhile.result(), after))
                shown = [each for pair in zip(counts, times, strict=True) for each in pair]
                size = f"{largest / 1e3:.0f} MB, the server works {share:.0%} of the time"
                print(f"{who}: {words.format(*shown)}; {size}", flush=True)
                if times[1] > min(5 * times[0], 250) or largest > 300_000:
                    found.append(f"{who}: {times[1]:.0f} ms, {largest} kB")
    return found


_CAUGHT_BY = {CONTROLS[0]: 1, CONTROLS[1]: 2, CONTROLS[2]: 0, CONTROLS[3]: 3}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--connections", type=int, default=100)
    asked = parser.parse_args()
    if asked.seconds:
        return bool(crowds(asked.connections, asked.seconds))
    counts, problems = run(asked.rounds, seed=asked.seed)
    print(
        f"{asked.rounds} rounds: {dict(counts)}; {len(problems)} problems {problems[:3]}",
        flush=True,
    )
    for control in CONTROLS:
        caught = run(3, seed=asked.seed, control=control)[1]
        print(f"control, {control}: {caught[0] if caught else 'NOT CAUGHT'}", flush=True)
        problems += [] if caught else [control]
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
