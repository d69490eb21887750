"""Tokens of an issuer, sound and hostile ones."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("joserfc")
from joserfc import jwk, jws

from campaigns.service.direct import Direct
from dpcompose.account import open_scope
from dpcompose.errors import DomainError, StoreError, UnsupportedError
from dpcompose.ledger import Ledger, entry
from dpcompose.serve import Identities, Role, Service
from dpcompose.serve.issuer import AGAIN, FRESH, STALE, Issuer
from dpcompose.serve.web import application
from tests.serve.conftest import budget

URL, NOW = "https://login.example/city", 1e9
RSA = jwk.RSAKey.generate_key(2048, {"kid": "rsa"})
ELLIPTIC = jwk.ECKey.generate_key("P-256", {"kid": "ec"})
OTHER = jwk.RSAKey.generate_key(2048, {"kid": "rsa"})


class Provider:
    """An issuer on this machine, which may be hostile."""

    def __init__(self) -> None:
        self.keys: list[Any] = [key.as_dict(private=False) for key in (RSA, ELLIPTIC)]
        self.found: dict[str, Any] = {"issuer": URL, "jwks_uri": f"{URL}/keys"}
        self.asked, self.down = 0, False

    def read(self, url: str) -> bytes:
        self.asked += 1
        if self.down:
            raise OSError("down")
        return json.dumps(
            self.found if url.endswith("configuration") else {"keys": self.keys}
        ).encode()


def encoded(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token(
    key: Any = RSA, alg: str = "RS256", header: dict[str, Any] | None = None, **claims: Any
) -> str:
    stated = {"iss": URL, "aud": "budgets", "sub": "ada-17", "exp": NOW + 60, "iat": NOW} | claims
    kept = {name: value for name, value in stated.items() if value is not None}
    named = {"alg": alg, "kid": key.kid} | (header or {})
    registry = jws.JWSRegistry(algorithms=[alg], strict_check_header=False)
    return jws.serialize_compact(named, json.dumps(kept).encode(), key, registry=registry)


def unsigned() -> str:
    return f"{encoded({'alg': 'none', 'kid': 'rsa'})}.{token().split('.')[1]}."


def confused() -> str:
    """The published key taken as a shared secret."""
    signed = f"{encoded({'alg': 'HS256', 'kid': 'rsa'})}.{token().split('.')[1]}"
    last = hmac.digest(RSA.as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{urlsafe_b64encode(last).rstrip(b'=').decode()}"


def parts(**changed: Any) -> str:
    first, _, last = token().split(".")
    return ".".join(
        [
            first,
            encoded({"iss": URL, "aud": "budgets", "sub": "eve", "exp": NOW + 60, **changed}),
            last,
        ]
    )


HOSTILE = {
    "another key of that name": lambda: token(OTHER),
    "no signature": unsigned,
    "a public key as a secret": confused,
    "changed claims": parts,
    "another issuer": lambda: token(iss="https://evil.example"),
    "no issuer": lambda: token(iss=None),
    "another audience": lambda: token(aud="mail"),
    "no audience": lambda: token(aud=None),
    "an audience in another": lambda: token(aud="budgets-of-others"),
    "expired": lambda: token(exp=NOW),
    "no end": lambda: token(exp=None),
    "an end that is text": lambda: token(exp=str(NOW + 60)),
    "an end that is no number": lambda: token(exp=float("nan")),
    "not yet": lambda: token(nbf=NOW + 120),
    "from the future": lambda: token(iat=NOW + 120),
    "a beginning that is text": lambda: token(nbf="0"),
    "no subject": lambda: token(sub=None),
    "a subject that is no text": lambda: token(sub=17),
    "an empty subject": lambda: token(sub=""),
    "somebody who was not invited": lambda: token(sub="eve"),
    "a name that no key has": lambda: token(header={"kid": "unknown"}),
    "a name that is a list": lambda: (
        f"{encoded({'alg': 'RS256', 'kid': ['rsa']})}.{token().split('.', 1)[1]}"
    ),
    "an algorithm of another key": lambda: token(ELLIPTIC, "ES256", header={"kid": "rsa"}),
    "extensions that must be known": lambda: (
        f"{encoded({'alg': 'RS256', 'kid': 'rsa', 'crit': ['x'], 'x': 1})}.{token().split('.', 1)[1]}"
    ),
    "a key of its own": lambda: token(OTHER, header={"jwk": OTHER.as_dict(private=False)}),
    "a token to sign out with": lambda: token(header={"typ": "logout+jwt"}),
    "a token to sign out with, as a media type": lambda: token(
        header={"typ": "application/Logout+JWT"}
    ),
    "a token to sign out with, of no type": lambda: token(
        events={"http://schemas.openid.net/event/backchannel-logout": {}}
    ),
    "a type that is a list": lambda: (
        f"{encoded({'alg': 'RS256', 'kid': 'rsa', 'typ': ['JWT']})}.{token().split('.', 1)[1]}"
    ),
    "too long": lambda: token(padding="x" * 9000),
    "two parts": lambda: token().rpartition(".")[0],
    "four parts": lambda: f"{token()}.x",
    "no JSON": lambda: f"{'!' * 20}.{token().split('.', 1)[1]}",
    "a header that is a list": lambda: f"{encoded([1])}.{token().split('.', 1)[1]}",
    "claims that are a list": lambda: jws.serialize_compact(
        {"alg": "RS256", "kid": "rsa"}, b"[1]", RSA
    ),
}


class Office:
    """A service that takes tokens of the provider."""

    def __init__(self) -> None:
        self.provider, self.now, self.ticks = Provider(), NOW, 0.0
        self.issuer = Issuer(URL, "budgets", read=self.provider.read, clock=lambda: self.ticks)
        entry.clock = lambda: int(self.now * 1e9)
        self.people = Identities(Ledger.open("memory:"), self.issuer)
        ledger = Ledger.open("memory:")
        open_scope(ledger, "city", filter=budget(), actor="keeper")
        self.people.admit("ada-17", "Ada", Role.ANALYST, "city")
        self.service = Service(ledger, self.people)
        self.direct = Direct(application(self.service, failures=1e9))

    def status(self, token: str) -> int:
        headers = {"authorization": f"Bearer {token}"}
        return self.direct.ask("GET", "/v1/left", query="scope=city", headers=headers).status


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office()
    yield made
    made.direct.close()


def test_a_token_of_the_issuer_names_who_was_invited(office: Office):
    for type in ("JWT", "jwt", "at+jwt", "application/at+jwt"):
        assert office.status(token(header={"typ": type})) == 200
    for key, alg in ((RSA, "RS256"), (RSA, "PS256"), (ELLIPTIC, "ES256")):
        who = office.people.find(token(key, alg))
        assert who is not None and who.actor == "Ada@city" and who.role is Role.ANALYST
    assert office.status(token(aud=["mail", "budgets"])) == 200
    assert office.provider.asked == 2  # its document and its keys, once
    with pytest.raises(UnsupportedError):
        office.people.admit("ada-17", "Eve", Role.KEEPER, "city")
    office.people.revoke("Ada", "city")
    assert office.status(token()) == 401
    office.people.admit("ada-17", "Ada", Role.AUDITOR, "city")
    found = office.people.find(token())
    assert found is not None and found.role is Role.AUDITOR


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_token_is_nobody(office: Office, name: str):
    assert office.status(token()) == 200
    assert office.status(HOSTILE[name]()) == 401


def test_a_token_that_expired_stays_so_when_the_clock_is_set_back(office: Office):
    old = token()
    assert office.status(old) == 200
    office.now += 61
    assert office.status(old) == 401
    office.now -= 61
    assert office.status(old) == 401


def test_keys_are_changed_by_the_issuer_and_not_asked_for_again_and_again(office: Office):
    assert office.status(token()) == 200
    new = jwk.ECKey.generate_key("P-256", {"kid": "new"})
    office.provider.keys = [new.as_dict(private=False)]
    assert office.status(token(new, "ES256")) == 401
    for _ in range(5):
        assert office.status(token(new, "ES256")) == 401
    assert office.provider.asked == 2
    office.ticks += AGAIN
    assert office.status(token(new, "ES256")) == 200 and office.status(token()) == 401


def test_an_issuer_that_is_away_is_believed_for_a_day(office: Office):
    office.provider.down = True
    assert office.status(token()) == 503
    office.provider.down, office.ticks = False, office.ticks + AGAIN
    assert office.status(token()) == 200
    office.provider.down, office.ticks = True, office.ticks + FRESH
    assert office.status(token()) == 200
    office.ticks += STALE
    assert office.status(token()) == 503


@pytest.mark.parametrize(
    "changed",
    [
        {"found": {"issuer": "https://evil.example", "jwks_uri": f"{URL}/keys"}},
        {"found": {"issuer": URL, "jwks_uri": "http://evil.example/keys"}},
        {"found": {"issuer": URL, "jwks_uri": 7}},
        {"found": []},
        {"keys": 7},
    ],
)
def test_a_document_that_is_not_the_issuers_gives_no_keys(office: Office, changed: dict[str, Any]):
    for name, value in changed.items():
        setattr(office.provider, name, value)
    assert office.status(token()) == 503


@pytest.mark.parametrize(
    "key",
    [
        {**RSA.as_dict(private=False), "use": "enc"},
        {**RSA.as_dict(private=False), "alg": "PS256"},
        RSA.as_dict(private=True),
        jwk.OctKey.generate_key(256, {"kid": "rsa"}).as_dict(),
        {**RSA.as_dict(private=False), "n": "AQAB" * 40},
        {"kid": "rsa", "kty": "RSA"},
        "rsa",
    ],
)
def test_a_key_that_is_for_something_else_signs_nothing(office: Office, key: Any):
    office.provider.keys = [key]
    assert office.status(token()) == 401
    office.ticks += AGAIN
    office.provider.keys = [
        RSA.as_dict(private=False),
        OTHER.as_dict(private=False),
    ]  # of one name: neither
    assert office.status(token()) == 401


def test_addresses_and_names_that_are_none():
    for url in (
        "http://login.example",
        "ftp://login.example",
        "login.example",
        "https://",
        "",
        "https://[::1",
    ):
        with pytest.raises(DomainError):
            Issuer(url, "budgets")
    with pytest.raises(DomainError):
        Issuer(URL, "")
    people = Identities(Ledger.open("memory:"))
    with pytest.raises(UnsupportedError):
        people.admit("ada-17", "Ada", Role.ANALYST, "city")


def test_keys_are_read_over_http_and_no_redirect_is_followed():
    answers: dict[str, tuple[int, bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers[self.path]
            self.send_response(status)
            self.send_header("location", "/keys")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    url, clock = f"http://127.0.0.1:{server.server_port}", [0.0]
    keys = json.dumps({"keys": [RSA.as_dict(private=False)]}).encode()
    document = json.dumps({"issuer": url, "jwks_uri": f"{url}/moved"}).encode()
    answers |= {
        "/.well-known/openid-configuration": (200, document),
        "/keys": (200, keys),
        "/moved": (302, keys),
    }
    issuer = Issuer(url, "budgets", clock=lambda: clock[0])
    with pytest.raises(StoreError):
        issuer.subject(token(iss=url), NOW)
    answers["/moved"] = (200, b" " * 300_000 + keys)
    clock[0] += AGAIN
    with pytest.raises(StoreError):
        issuer.subject(token(iss=url), NOW)
    answers["/moved"] = (200, keys)
    clock[0] += AGAIN
    assert issuer.subject(token(iss=url), NOW) == "ada-17"
    server.shutdown()
    server.server_close()
