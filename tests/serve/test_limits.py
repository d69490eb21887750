"""One caller holds no other back: long work, endless headers, connections that say nothing, an issuer that is away."""

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
from dpcompose.serve import Role, listening, pages
from dpcompose.serve.issuer import FRESH
from dpcompose.serve.listening import BoundedProtocol
from dpcompose.serve.web import application
from tests.serve.conftest import Town
from tests.serve.test_issuer import Office, encoded, token as issued

HEAD = b"GET /style.css HTTP/1.1\r\nhost: x\r\n"
LONG = {
    "mechanism": " + ".join(f"Gaussian({5 + at / 7}).sampled(0.01)" for at in range(60)),
    "delta": "1e-7",
}
"""Half a minute of work, and more."""


@contextmanager
def serving(app: Any) -> Iterator[int]:
    """An application behind the protocol of the service; its port."""
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, http=BoundedProtocol, log_level="critical", lifespan="off"
    )
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
    head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: {len(body)}"
    return f"{head}\r\n\r\n{body}".encode()


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
    ids=[
        "lines",
        "a line",
        "a path",
        "empty lines",
        "a second request",
        "trailers",
        "an extension",
    ],
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
    ],
    ids=["nothing", "half a head", "half a body"],
)
def test_half_open_connections_are_closed(town: Town, monkeypatch: pytest.MonkeyPatch, sent: bytes):
    monkeypatch.setattr(listening, "PATIENCE", 0.3, raising=False)
    with serving(town.app) as port, connected(port, sent) as client:
        received(client)


def test_a_second_request_is_not_waited_for_without_end(
    town: Town, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(listening, "PATIENCE", 0.3, raising=False)
    with serving(town.app) as port, connected(port, HEAD + b"\r\n") as client:
        assert status(client) == 200
        client.sendall(HEAD)
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


def test_of_too_many_connections_those_without_a_request_are_closed(
    town: Town, monkeypatch: pytest.MonkeyPatch
):
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
def test_verifications_have_their_turn_and_end_with_who_asked(
    town: Town, monkeypatch: pytest.MonkeyPatch, asked: str
):
    account = town.account(scope="city")
    for number in range(100):
        account.charge(Gaussian(1000.0), key=str(number))
    followed, auditor = Followed(monkeypatch), town.tokens[Role.AUDITOR]
    sent = asking("GET", f"/v1/verify?scope=city{asked}", auditor)
    with serving(town.app) as port:
        for _ in range(10):
            connected(port, sent).close()
        charge = asking(
            "POST", "/v1/charge", account.token, scope="city", mechanism="Gaussian(1000.0)", key="k"
        )
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


def test_prices_that_nobody_waits_for_hold_nobody_back(town: Town):
    ada, ben = town.tokens[Role.ANALYST], town.people.invite("Ben", Role.ANALYST, "city")
    with serving(town.app) as port:
        for number in range(66):
            route = ("price", "charge", "reserve", "request")[number % 4]
            fields = {**LONG, "key": f"{number}", "seconds": 60, "reason": "why"}
            connected(port, asking("POST", f"/v1/{route}", ada, scope="city", **fields)).close()
        for number in range(5):
            charge = asking(
                "POST",
                "/v1/charge",
                ben,
                scope="city",
                mechanism="Gaussian(900.0)",
                key=f"{number}",
            )
            with connected(port, charge) as client:
                assert status(client) == 200
        price = asking("POST", "/v1/price", ada, scope="city", mechanism="Laplace(90.0) * 3")
        for _ in range(100):  # the server may still be noticing that nobody waits
            with connected(port, price) as client:
                client.settimeout(60)  # a process starts for it
                answered = status(client)
            if answered != 429:
                break
            time.sleep(0.1)
        assert answered == 200
    assert [each.actor for each in town.ledger.entries("city") if each.kind == "granted"] == [
        "Ben@city"
    ] * 5


def test_a_price_that_takes_too_long_is_given_up(town: Town, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dpcompose.serve.queue.LONGEST", 1.0, raising=False)
    with serving(town.app) as port:
        sent = asking("POST", "/v1/price", town.tokens[Role.ANALYST], scope="city", **LONG)
        with connected(port, sent) as client:
            answer = client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 503 ") and b"retry-after: " in answer


def test_pages_have_their_turn(town: Town, monkeypatch: pytest.MonkeyPatch):
    now = [0, 0]

    def slow(*_: Any, **__: Any) -> str:
        now[0] += 1
        now[1] = max(now)
        time.sleep(0.1)
        now[0] -= 1
        return "page"

    monkeypatch.setattr(pages, "page_for", slow)
    head = f"GET /?mechanism=x HTTP/1.1\r\nhost: x\r\ncookie: dpcompose={town.tokens[Role.KEEPER]}\r\n\r\n"
    with serving(town.app) as port, ExitStack() as stack:
        clients = [stack.enter_context(connected(port, head.encode())) for _ in range(10)]
        assert sorted(status(client) for client in clients) == [200] * 8 + [429] * 2
    assert now[1] == 1


def test_one_identity_does_not_watch_for_all(town: Town):
    town = Town(watch=60.0)
    asked = f"GET /events HTTP/1.1\r\nhost: x\r\ncookie: dpcompose={town.tokens[Role.KEEPER]}\r\n\r\n".encode()
    other = asked.replace(town.tokens[Role.KEEPER].encode(), town.tokens[Role.AUDITOR].encode())
    with serving(town.app) as port, ExitStack() as stack:
        clients = [
            stack.enter_context(connected(port, asked)) for _ in range(pages.MOST_OF_EACH + 1)
        ]
        assert sorted(status(client) for client in clients)[-1] == 503
        assert status(stack.enter_context(connected(port, other))) == 200


class Away(Office):
    """A service whose issuer does not answer until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.entered = threading.Event(), threading.Event()
        self.read = self.provider.read
        self.issuer.read = self.waits
        self.ada = self.people.invite("Ada", Role.ANALYST, "city")
        self.app = application(self.service, failures=5.0)

    def waits(self, url: str) -> bytes:
        self.entered.set()
        assert self.go.wait(20)
        return self.read(url)

    def charges(self, tokens: list[str], *, others: Callable[[], None]) -> list[int]:
        """The statuses of charges at once, of which the first is a charge with a token of the service itself."""

        async def ask() -> list[int]:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://testserver"
            ) as client:

                def post(token: str, key: str) -> Any:
                    fields = {"scope": "city", "mechanism": "Gaussian(900.0)", "key": key}
                    headers = {"authorization": f"Bearer {token}"}
                    return asyncio.ensure_future(
                        client.post("/v1/charge", json=fields, headers=headers)
                    )

                late = [post(token, f"{number}") for number, token in enumerate(tokens)]
                await asyncio.to_thread(self.entered.wait, 10)
                first = await asyncio.wait_for(post(self.ada, "first"), 10)
                others()
                return [each.status_code for each in [first, *await asyncio.gather(*late)]]

        return asyncio.run(ask())


@pytest.fixture
def away() -> Iterator[Away]:
    office = Away()
    yield office
    office.go.set()
    office.direct.close()


def unknown(number: int = 0) -> str:
    return f"{encoded({'alg': 'RS256', 'kid': f'nobody{number}'})}.{issued().split('.', 1)[1]}"


def test_a_stranger_does_not_hold_a_tree_while_the_issuer_is_asked(away: Away):
    assert away.charges([unknown()], others=away.go.set) == [200, 401]


def test_an_issuer_that_is_away_is_away_for_its_own_tokens_alone(away: Away):
    away.provider.down = True
    found = away.charges([issued(), *map(unknown, range(8))], others=away.go.set)
    assert found[0] == 200 and set(found[1:]) == {
        503,
        429,
    }  # strangers are counted, as those with any other token
    assert found.count(429) == 9 - 5


def test_one_asks_the_issuer_and_the_others_go_on(away: Away):
    away.go.set()
    assert away.people.find(issued()) is not None
    away.go.clear()
    away.ticks += FRESH
    away.entered.clear()
    thread = threading.Thread(target=away.people.find, args=(unknown(),), daemon=True)
    thread.start()
    assert away.entered.wait(10)
    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(away.people.find(issued())), daemon=True)
    other.start()
    other.join(10)
    assert found and found[0].actor == "Ada@city"
    away.go.set()
    thread.join(10)


def test_an_issuer_that_answers_in_drops_is_given_up(monkeypatch: pytest.MonkeyPatch):
    """Each drop came in time, and the whole never."""
    from dpcompose.serve import issuer

    class Drops:
        status_code = 200

        def iter_bytes(self) -> Iterator[bytes]:
            for _ in range(1000):
                time.sleep(0.01)
                yield b" "

    @contextmanager
    def stream(*_: Any, **__: Any) -> Iterator[Drops]:
        yield Drops()

    monkeypatch.setattr(httpx, "stream", stream)
    monkeypatch.setattr(issuer, "LONGEST", 0.1, raising=False)
    with pytest.raises(ValueError, match="too long"):
        issuer._get("https://login.example")


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_a_body_that_looks_like_a_head_is_no_head(pieces: int) -> None:
    """The head of an answer waits for what follows it: it was lost where that looked like another head."""
    part = b"HTTP/1.1 200 OK\r\n\r\n"

    async def app(scope: Any, receive: Any, send: Any) -> None:
        length = str(pieces * len(part)).encode()
        headers = [(b"content-length", length), (b"x-own", b"1")]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        for at in range(pieces):
            more = at < pieces - 1
            await send({"type": "http.response.body", "body": part, "more_body": more})

    with serving(app) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        for _ in range(2):
            answer = client.get("/")
            assert (answer.status_code, answer.headers["x-own"]) == (201, "1")
            assert answer.content == pieces * part
