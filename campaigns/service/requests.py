"""Fuzzed requests against the service: no 5xx, no trace of the program, nothing of one tenant in another's answer.

    python -m campaigns.service.requests --requests 100000

Another tenant's names hold a mark that no request holds; it must never come back. Each control breaks the service on
purpose and must be caught.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from unittest import mock

from dpcompose import Gaussian
from dpcompose.account import open_scope
from dpcompose.adaptive import ConcentratedFilter
from dpcompose.ledger import Ledger
from dpcompose.serve import PERMISSIONS, Identities, Identity, Role, Service
from dpcompose.serve.service import HANDLERS, own_key
from dpcompose.serve.web import application

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it asks for another name of httpx
    from starlette.testclient import TestClient

MARK = "zzforeignzz"
WORDS = [
    "",
    "city",
    "city/health",
    "city/none",
    "other",
    "../other",
    "<script>alert(1)</script>",
    "a\r\nx: y",
    "%00",
    "NaN",
]
WORDS += ["\ud800", "é" * 300, "9" * 400, "-1", "1e999", "'; drop table tokens; --", "{{7*7}}", "city/health/new"]
MECHANISMS = [
    "Gaussian(30.0)",
    "Laplace(9.0) * 3",
    "Gaussian(1e-300)",
    "Gaussian(0)",
    "().__class__",
    "Gaussian(" * 500,
]
MECHANISMS += ["Gaussian(10.0) * 10**9", "Gaussian(5.0).sampled(0.01) * 20", "1", "Laplace(1e400)", "-" * 3000 + "1"]
VALUES = [None, True, 1, -1.5, [], {}, [[1]], {"a": {"b": 1}}, 10**30]
FIELDS = [
    "scope",
    "mechanism",
    "key",
    "delta",
    "receipt",
    "nonce",
    "description",
    "kind",
    "filter",
    "target",
    "role",
    "name",
]
FIELDS += ["times", "seconds", "reservation", "caps", "period", "amounts", "reason", "request", "decision"]
FIELDS += ["days", "actor", "words", "slots", "parameters", "note", "adjacency", "odometer", "price_delta", "verify"]


class Fuzz:
    """A service with two tenants, and requests of one of them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        ledger, people = Ledger.open("memory:"), Identities.open(":memory:")
        for path in ("city", "city/health", f"{MARK}"):
            open_scope(ledger, path, filter=ConcentratedFilter, epsilon=1, delta="1e-6", actor="keeper")
        self.service = Service(ledger, people)
        other = Identity(MARK, Role.ANALYST, MARK)
        for key in WORDS[:5]:
            named = {"actor": other.actor, "key": own_key(other, key)}
            self.service.account(MARK).charge(Gaussian(50.0), description={"note": MARK}, **named)
        self.tokens = [people.invite("Ada", role, "city") for role in Role] + [
            people.invite("Ben", Role.ANALYST, "city/health")
        ]
        self.tokens = 3 * self.tokens + ["", "x" * 43, people.invite("Old", Role.KEEPER, MARK, seconds=1e-9)]
        self.client = TestClient(application(self.service, rate=1e9, failures=1e9), raise_server_exceptions=False)
        self.receipts: list[str] = []

    def fields(self) -> dict[str, object]:
        """Mostly sensible fields, so that requests get far."""
        draw = self.draw
        found: dict[str, object] = {"scope": draw.choice(["city", "city/health"]), "mechanism": draw.choice(MECHANISMS)}
        found |= {"key": str(draw.randrange(100)), "nonce": "0" * 64, "name": "Eve", "role": "analyst"}
        found["receipt"] = draw.choice(self.receipts) if self.receipts else "{}"
        for _ in range(draw.choice([0, 0, 1, 2])):
            found[draw.choice(FIELDS)] = draw.choice([draw.choice(WORDS), draw.choice(VALUES), draw.choice(MECHANISMS)])
        if draw.random() < 0.1:
            found["scope"] = draw.choice(["other", "", *WORDS])
        return found

    def problem(self) -> tuple[int, str]:
        """The status of one more request, and what is wrong with its answer."""
        draw, fields = self.draw, self.fields()
        permission = PERMISSIONS[draw.choice(sorted(PERMISSIONS))]
        if permission.scoped and draw.random() < 0.1:
            fields["scope"] = MARK
        method = permission.method if draw.random() < 0.97 else draw.choice(["PUT", "DELETE", "HEAD", "OPTIONS"])
        token = draw.choice(self.tokens)
        headers = {"authorization": f"Bearer {token}"} if draw.random() < 0.9 else {}
        headers |= {"cookie": f"dpcompose={token}"}
        if method == "GET":
            texts = {name: str(each).encode("utf-8", "replace").decode() for name, each in fields.items()}
            answer = self.client.request(method, permission.path, params=texts, headers=headers, follow_redirects=False)
        else:
            content = json.dumps(fields).encode() if draw.random() < 0.95 else draw.randbytes(50)
            answer = self.client.request(
                method, permission.path, content=content, headers=headers, follow_redirects=False
            )
        if answer.status_code == 200 and permission.path == "/v1/charge":
            self.receipts.append(answer.json()["receipt"])
        return answer.status_code, _complaint(answer.status_code, answer.text, [each for each in self.tokens if each])


def _complaint(status: int, text: str, tokens: list[str]) -> str:
    if status >= 500:
        return f"status {status}: {text[:200]}"
    if MARK in text:
        return f"tells of another tenant: {text[:200]}"
    if "Traceback" in text or ("<script>" in text and "{" not in text[:1]):
        return f"a trace or markup: {text[:200]}"
    return "a token is told" if any(each in text for each in tokens) else ""


def run(requests: int, *, seed: int) -> tuple[Counter[int], list[str]]:
    """The statuses of so many requests, and every complaint."""
    fuzz, statuses, problems = Fuzz(seed), Counter[int](), list[str]()
    for _ in range(requests):
        status, problem = fuzz.problem()
        statuses[status] += 1
        if problem:
            problems.append(problem)
    return statuses, problems


def _everywhere(self: Identity, path: str) -> bool:
    return True


def _broken(*_: object) -> dict[str, object]:
    raise KeyError("left")


CONTROLS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "every scope is everybody's": lambda: mock.patch.object(Identity, "covers", _everywhere),
    "an error is a defect": lambda: mock.patch.dict(HANDLERS, {"left": _broken}),
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    statuses, problems = run(asked.requests, seed=asked.seed)
    print(f"{asked.requests} requests: {dict(sorted(statuses.items()))}; {len(problems)} problems {problems[:3]}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
