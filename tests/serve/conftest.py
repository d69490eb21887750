"""A town with a service."""

from __future__ import annotations

import warnings
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

pytest.importorskip("starlette")
from dpcompose.account import open_scope
from dpcompose.adaptive import Budget, Filter
from dpcompose.ledger import Ledger, entry
from dpcompose.serve import PERMISSIONS, Identities, RemoteAccount, Role, Service
from dpcompose.serve.web import application

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it asks for another name of httpx
    from starlette.testclient import TestClient


@cache
def budget() -> Filter:
    """The budget of every scope here."""
    return Budget(Fraction(1), Fraction(1, 10**6), reserve=Fraction(0), only="zcdp")


class Town:
    """A service with a tree, another tree, and a token for each role."""

    def __init__(self, *, url: str = "memory:", **limits: float) -> None:
        self.now = 1e9
        self.ledger, self.people = Ledger.open(url), Identities(Ledger.open("memory:"))
        for path in ("city", "city/health", "other"):
            open_scope(self.ledger, path, filter=budget(), actor="keeper")
        self.tokens = {role: self.people.invite("Ada", role, "city") for role in Role}
        self.service = Service(self.ledger, self.people)
        self.app = application(
            self.service, **{"rate": 1e6, "failures": 1e6, "watch": 0.0, **limits}
        )
        self.client = TestClient(self.app, raise_server_exceptions=False)

    @property
    def now(self) -> float:
        """The clock of the ledgers, in seconds since 1970."""
        return entry.clock() / 1e9

    @now.setter
    def now(self, seconds: float) -> None:
        entry.clock = lambda: int(seconds * 1e9)

    def ask(self, name: str, token: str, /, **fields: Any) -> Any:
        permission, headers = PERMISSIONS[name], {"authorization": f"Bearer {token}"}
        if permission.method == "GET":
            return self.client.get(permission.path, params=fields, headers=headers)
        return self.client.post(permission.path, json=fields, headers=headers)

    def account(
        self, role: Role = Role.ANALYST, token: str = "", scope: str = "city/health"
    ) -> RemoteAccount:
        return RemoteAccount(
            "http://testserver", token or self.tokens[role], scope=scope, client=self.client
        )

    def person(self, name: str, role: Role = Role.ANALYST, subtree: str = "city") -> RemoteAccount:
        """Somebody new."""
        return self.account(token=self.people.invite(name, role, subtree), scope=subtree)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on as before after each test."""
    monkeypatch.setattr(entry, "clock", entry.clock)


@pytest.fixture
def town() -> Town:
    return Town()
