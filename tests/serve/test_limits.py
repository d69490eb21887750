"""One caller holds nobody else back: long work, endless headers, connections that say nothing, an issuer that is away."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import httpx
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
import uvicorn

from dpcompose import Gaussian
from dpcompose.ledger.verification import Replay
from dpcompose.serve import Role, Service, listening
from dpcompose.serve.issuer import FRESH, STALE
from dpcompose.serve.listening import JoinedAnswers
from dpcompose.serve.web import application
from tests.serve.conftest import Town
from tests.serve.test_issuer import RSA, Office, encoded
from tests.serve.test_issuer import token as issued

HEAD = b"GET /style.css HTTP/1.1\r\nhost: x\r\n"
LONG = {"mechanism": " + ".join(f"Gaussian({5 + at / 7}).sampled(0.01)" for at in range(60)), "delta": "1e-7"}
"""Half a minute of work, and more."""


@contextmanager
def serving(app: Any) -> Iterator[int]:
    """An application behind the protocol of the service; its port."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, http=JoinedAnswers, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = server.force_exit = True
    thread.join(10)


def connected(port: int, sent: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=10)
    client.sendall(sent)
    return client


def received(client: socket.socket) -> bytes:
    """Everything until the service closes the connection."""
    found = b""
    with suppress(ConnectionError):
        while piece := client.recv(65536):
            found += piece
    return found


def asking(method: str, path: str, token: str, **fields: Any) -> bytes:
    body = json.dumps(fields) if fields else ""
    return f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


def status(client: socket.socket) -> int:
    return int(client.recv(65536).split()[1])


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (HEAD, b"x: " + b"y" * 1000 + b"\r\n"),
        (HEAD + b"x: ", b"y" * 1000),
        (b"GET /", b"y" * 1000),
        (b"", b"\r\n" * 500),
        (HEAD + b"\r\n" + HEAD, b"x: " + b"y" * 1000 + b"\r\n"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nx: ", b"y" * 1000),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n1;x=", b"y" * 1000),
    ],
    ids=["lines", "a line", "a path", "empty lines", "a second request", "trailers", "an extension"],
)
def test_headers_have_an_end(town: Town, start: bytes, more: bytes):
    with serving(town.app) as port, connected(port, start) as client:
        sent = 0
        with suppress(ConnectionError):
            while sent < 10_000_000:
                client.sendall(more)
                sent += len(more)
        assert sent < 10_000_000


def test_headers_that_are_too_long_are_refused(town: Town):
    with serving(town.app) as port:
        with connected(port, HEAD + b"x: " + b"y" * 32_768) as client:
            assert received(client).startswith(b"HTTP/1.1 431 ")
        with connected(port, HEAD + b"x: " + b"y" * 30_000 + b"\r\n\r\n") as client:
            assert status(client) == 200
        body = b"%x\r\n" % 60_000 + b"y" * 60_000 + b"\r\n" + b"1\r\ny\r\n" * 5000 + b"0\r\n\r\n"
        head = b"POST /login HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        with connected(port, head + body) as client:  # much of a body, and little else
            assert status(client) == 401


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        HEAD,
        b"POST /login HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\ntok",
        HEAD + b"\r\n" + HEAD,
    ],
    ids=["nothing", "half a head", "half a body", "half a second head"],
)
def test_half_open_connections_are_closed(town: Town, monkeypatch: pytest.MonkeyPatch, sent: bytes):
    monkeypatch.setattr(listening, "PATIENCE", 0.3, raising=False)
    with serving(town.app) as port, connected(port, sent) as client:
        received(client)


def test_drops_keep_no_connection_open(town: Town, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening, "PATIENCE", 0.3, raising=False)
    with serving(town.app) as port, connected(port) as client, pytest.raises(ConnectionError):
        for _ in range(100):
            client.sendall(b"\r\n")
            time.sleep(0.05)


def test_whoever_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening, "PATIENCE", 0.3, raising=False)
    ended = threading.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        sending = asyncio.create_task(_send_on(send))
        while (await receive())["type"] != "http.disconnect":
            pass
        sending.cancel()
        ended.set()

    with serving(endless) as port, connected(port, HEAD + b"\r\n"):
        assert ended.wait(10)


async def _send_on(send: Any) -> None:
    while True:
        await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})


def test_of_too_many_connections_those_without_a_request_are_closed(town: Town, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening, "most_connections", lambda: 8, raising=False)
    with serving(town.app) as port, ExitStack() as stack:
        half = [stack.enter_context(connected(port, HEAD)) for _ in range(30)]
        assert status(stack.enter_context(connected(port, HEAD + b"\r\n"))) == 200
        for client in half[:20]:
            assert received(client) == b""


class Followed:
    """Entries that are followed by verifications, each for a while."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.most, self.all, follow = 0, 0, 0, Replay.follow

        def slow(replay: Any, record: Any) -> None:
            self.now, self.all = self.now + 1, self.all + 1
            self.most = max(self.most, self.now)
            time.sleep(0.01)
            self.now -= 1
            follow(replay, record)

        monkeypatch.setattr(Replay, "follow", slow)


@pytest.mark.parametrize("asked", ["", "&after=0"])
def test_verifications_have_their_turn_and_end_with_who_asked(town: Town, monkeypatch: pytest.MonkeyPatch, asked: str):
    account = town.account(scope="city")
    for number in range(100):
        account.charge(Gaussian(1000.0), key=str(number))
    followed, auditor = Followed(monkeypatch), town.tokens[Role.AUDITOR]
    sent = asking("GET", f"/v1/verify?scope=city{asked}", auditor)
    with serving(town.app) as port:
        for _ in range(10):
            connected(port, sent).close()
        charge = asking("POST", "/v1/charge", account.token, scope="city", mechanism="Gaussian(1000.0)", key="k")
        with connected(port, charge) as client:
            assert status(client) == 200
        with connected(port, sent) as client:  # once those are ended
            assert status(client) == 200
        assert followed.most == 1 and followed.all < 300


def test_many_at_once_are_told_to_wait(town: Town, monkeypatch: pytest.MonkeyPatch):
    for number in range(50):
        town.account(scope="city").charge(Gaussian(1000.0), key=str(number))
    followed = Followed(monkeypatch)
    with serving(town.app) as port, ExitStack() as stack:
        sent = asking("GET", "/v1/verify?scope=city", town.tokens[Role.AUDITOR])
        clients = [stack.enter_context(connected(port, sent)) for _ in range(10)]
        answers = [client.recv(65536) for client in clients]
    refused = [each for each in answers if each.startswith(b"HTTP/1.1 429 ")]
    assert len(refused) == 2 and all(b"retry-after: " in each for each in refused)
    assert sum(each.startswith(b"HTTP/1.1 200 ") for each in answers) == 8 and followed.most == 1


@pytest.mark.parametrize("page", [False, True], ids=["price", "page"])
def test_prices_that_nobody_waits_for_hold_nobody_back(town: Town, page: bool):
    ada, ben = town.tokens[Role.ANALYST], town.people.invite("Ben", Role.ANALYST, "city")
    long = asking("POST", "/v1/price", ada, scope="city", **LONG)
    if page:
        typed = str(httpx.QueryParams({"scope": "city", "mechanism": " * ".join(["Gaussian(5.0).sampled(0.01)", "9"])}))
        long = f"GET /?{typed} HTTP/1.1\r\nhost: x\r\ncookie: dpcompose={ada}\r\n\r\n".encode()
    with serving(town.app) as port:
        for _ in range(66):
            connected(port, long).close()
        for number in range(5):
            charge = asking("POST", "/v1/charge", ben, scope="city", mechanism="Gaussian(900.0)", key=f"{number}")
            with connected(port, charge) as client:
                assert status(client) == 200
        with connected(port, asking("POST", "/v1/price", ada, scope="city", mechanism="Laplace(90.0) * 3")) as client:
            client.settimeout(60)  # a process starts for it
            assert status(client) == 200
