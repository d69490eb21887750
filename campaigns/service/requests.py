"""Fuzzed requests against the service: no 5xx, no charge lost or doubled, nothing of one tenant in another's answer.

    python -m campaigns.service.requests --requests 100000

Requests are drawn from the OpenAPI document that the service publishes, then spoiled. They go to two services that
differ in the other tenant alone: its names hold a mark, and its budgets and charges are others. Both must answer alike,
and no answer holds the mark. The ledger fails now and then, before or after it committed; whoever asks again must get
what an undisturbed service would have given. In the end the ledger holds each acknowledged charge once, and no other.
Each control breaks the service on purpose and must be caught.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock
from urllib.parse import urlencode

from campaigns.service.direct import Answer, Direct
from dpcompose import Gaussian
from dpcompose.account import open_scope
from dpcompose.adaptive import Budget, Filter
from dpcompose.errors import DPComposeError, StoreError
from dpcompose.ledger import Ledger, Receipt, entry
from dpcompose.serve import PERMISSIONS, Identities, Identity, Role, Service
from dpcompose.serve.gate import ROUTES
from dpcompose.serve.service import own_key
from dpcompose.serve.web import application

MARK = "zzforeignzz"
WORDS = [
    "",
    "city",
    "city/none",
    "other",
    "../other",
    "<script>alert(1)</script>",
    "a\r\nx: y",
    "%00",
    "NaN",
]
WORDS += [
    "\ud800",
    "é" * 300,
    "9" * 400,
    "-1",
    "1e999",
    "'; drop table service_token; --",
    "{{7*7}}",
]
WORDS += ["city/health/new"]
MECHANISMS = [
    "Gaussian(30.0)",
    "Laplace(90.0) * 3",
    "Gaussian(80.0)",
    "Gaussian(1e-300)",
    "Gaussian(0)",
]
MECHANISMS += [
    "().__class__",
    "Gaussian(" * 500,
    "Gaussian(10.0) * 10**9",
    "Gaussian(5.0).sampled(0.01) * 20",
    "1",
]
MECHANISMS += ["Laplace(1e400)", "-" * 3000 + "1"]
VALUES: list[Any] = [None, True, 1, -1.5, [], {}, [[1]], {"a": {"b": 1}}, 10**30, 1e308]
VOLATILE = re.compile(
    r"[0-9a-f]{64}|\d{4}-\d\d-\d\d[T ][\d:.+]*Z?|\"token\":\"[^\"]*\"|<path class=\"line\"[^>]*>"  # charges over time
)
LEAKS = re.compile(r"Traceback|site-packages|sqlite3|psycopg|\.py\b|/tmp/", re.IGNORECASE)


@cache
def budget(epsilon: int) -> Filter:
    """A budget, made once."""
    return Budget(Fraction(epsilon), Fraction(1, 10**6), reserve=Fraction(0), only="zcdp")


class World:
    """A service with two tenants; the other one differs from world to world."""

    def __init__(self, number: int) -> None:
        ledger, people = Ledger.open("memory:"), Identities(Ledger.open("memory:"))
        for path, epsilon in (("city", 9), ("city/health", 9), (MARK, number + 1)):
            open_scope(ledger, path, filter=budget(epsilon), actor="keeper")
        self.service, self.fails = Service(ledger, people), ""
        for key in WORDS[: number * 5]:
            named = {
                "actor": f"{MARK}@{MARK}",
                "key": own_key(Identity(MARK, Role.ANALYST, MARK), key),
            }
            self.service.account(MARK).charge(Gaussian(50.0), description={"note": MARK}, **named)
        if number:
            keeper = Identity(MARK, Role.KEEPER, MARK)
            ROUTES["quota"].answer(
                self.service, keeper, MARK, {"actor": "*", "caps": {"rho": "0.001"}}
            )
        invited = [("Ada", role, "city") for role in Role] + [("Ben", Role.ANALYST, "city/health")]
        tokens = [people.invite(*each) for each in invited]
        self.tokens = 8 * tokens + [
            "",
            "x" * 43,
            people.invite("Old", Role.KEEPER, MARK, seconds=1e-9),
            tokens[0][::-1],
        ]
        self.direct = Direct(application(self.service, rate=1e9, failures=1e9, watch=0.0))
        self.receipts = ["{}"]
        self.acknowledged: dict[str, Receipt] = {}
        self.transact = ledger.store.transact
        mock.patch.object(ledger.store, "transact", self._transact).start()

    def _transact(self, requests: Any) -> Any:
        if self.fails == "before":
            raise StoreError("ledger", "gone")
        outcomes = self.transact(requests)
        if self.fails == "after" and any(
            getattr(each, "refusal", each) is None for each in outcomes
        ):
            raise StoreError("ledger", "gone", uncertain=True)
        return outcomes

    def complaint(self) -> str:
        """Whether the ledger holds each acknowledged charge once, and nothing else."""
        kept = [
            each.sequence for each in self.service.ledger.entries("city") if each.kind == "granted"
        ]
        told = sorted(each.sequence for each in self.acknowledged.values())
        self.service.ledger.verify()
        return "" if kept == told else f"{len(kept)} charges are kept, {len(told)} acknowledged"


class Fuzz:
    """Two worlds, and requests of one tenant, the same in both."""

    def __init__(self, seed: int) -> None:
        self.draw, self.now = random.Random(seed), 1e9
        mock.patch.object(entry, "clock", lambda: int(self.now * 1e9)).start()
        self.worlds = [World(number) for number in range(2)]
        found = json.loads(self.worlds[0].direct.ask("GET", "/openapi.json").text)
        self.fields = {
            operation["operationId"]: _schemas(operation)
            for path in found["paths"].values()
            for operation in path.values()
        }

    def one(self, name: str, schema: dict[str, Any]) -> Any:
        """A value as the document wants it, mostly one that gets far."""
        draw = self.draw
        known = {
            "scope": ["city", "city/health"],
            "mechanism": MECHANISMS[:3] if draw.random() < 0.7 else MECHANISMS,
            "key": [str(draw.randrange(200))],
            "nonce": ["0" * 64, "1" * 64],
            "delta": [None, "1e-9", "1/1000", "2"],
            "actor": ["Ada@city", "*", "Ben@city/health"],
            "caps": [{"rho": "0.5"}, {}, {"rho": "0.0001"}, {"rho": "x"}],
            "amounts": [{"rho": "0.0004"}, {}, {"rho": "1"}],
            "request": [own_key(Identity("Ada", Role.ANALYST, "city"), str(draw.randrange(200)))],
            "reservation": [str(draw.randrange(50))],
            "seconds": [60, 1000, 0.5],
            "times": [1, 2, 9],
            "filter": ["concentrated"],
            "target": [{"epsilon": "1", "delta": "1e-6"}],
            "name": ["Eve", "Ada"],
            "days": [1, 0.001],
            "description": [{"note": "x"}, {"reservation": "x"}, {"release": {"key": "x"}}],
        }
        return draw.choice(schema.get("enum") or known.get(name) or ["a", "city", "granted"])

    def asked(self) -> tuple[str, dict[str, Any]]:
        """A route, and its fields: mostly sensible, so that requests get far."""
        draw = self.draw
        weights = {"charge": 9, "redeem": 2, "close": 0.02, "revoke": 0.05, "open": 0.3}
        name = draw.choices(
            sorted(PERMISSIONS), [weights.get(each, 1) for each in sorted(PERMISSIONS)]
        )[0]
        schemas, required = self.fields.get(name, ({}, set[str]()))
        chance = {"reservation": 0.1, "description": 0.1, "delta": 0.1}
        fields = {
            each: self.one(each, schema)
            for each, schema in schemas.items()
            if each in required or draw.random() < chance.get(each, 0.3)
        }
        if draw.random() < 0.2:
            chosen = draw.choice(sorted(fields) or ["scope"])
            fields[chosen] = draw.choice(
                [draw.choice(WORDS), draw.choice(VALUES), draw.choice(MECHANISMS)]
            )
        if draw.random() < 0.05:
            others = len(WORDS) * [MARK] if name in ROUTES else []  # a page repeats it
            fields["scope"] = draw.choice(["other", *others, *WORDS])
        return name, fields

    def problem(self) -> tuple[int, str]:
        """The status of one more request, and what is wrong with its answers."""
        draw, (name, fields) = self.draw, self.asked()
        self.now += draw.choice([0, 0, 0, 0.1, -1, -10])
        permission = PERMISSIONS[name]
        method = (
            permission.method
            if draw.random() < 0.98
            else draw.choice(["PUT", "DELETE", "HEAD", "OPTIONS"])
        )
        place, bearer = draw.randrange(len(self.worlds[0].tokens)), draw.random() < 0.95
        raw = draw.randbytes(50) if draw.random() < 0.02 else None
        receipt, number = "receipt" in fields and draw.random() < 0.9, draw.randrange(10**9)
        fails = (
            draw.choice(["before", "after"])
            if name in ("charge", "redeem", "close") and draw.random() < 0.05
            else ""
        )
        answers = list[Answer]()
        for world in self.worlds:
            token = world.tokens[place]
            headers = {"cookie": f"dpcompose={token}"} | (
                {"authorization": f"Bearer {token}"} if bearer else {}
            )
            if receipt:
                fields["receipt"] = world.receipts[number % len(world.receipts)]
            query, body = "", b""
            if method == "GET":
                query = urlencode(
                    {each: str(value).encode("utf-8", "replace") for each, value in fields.items()}
                )
            else:
                body = json.dumps(fields).encode() if raw is None else raw

            def ask(
                world: World = world, headers: Any = headers, query: str = query, body: bytes = body
            ) -> Answer:
                return world.direct.ask(
                    method, permission.path, query=query, headers=headers, body=body
                )

            world.fails = fails
            answer = ask()
            world.fails = ""
            if fails and answer.status == 503:
                answer = ask()
            answers.append(answer)
            said = self._complaint(world, name, answer)
            if said:
                return answer.status, f"{name} {fields}: {said}"
        first, second = (f"{each.status} {VOLATILE.sub('~', each.text)}" for each in answers)
        if name != "metrics" and first != second:
            return (
                answers[0].status,
                f"{name}: the answer depends on another tenant: {first[:200]} / {second[:200]}",
            )
        return answers[0].status, ""

    def _complaint(self, world: World, name: str, answer: Answer) -> str:
        text = answer.text
        if answer.status >= 500:
            return f"status {answer.status}: {text[:200]}"
        if MARK in text:
            return f"tells of another tenant: {text[:200]}"
        if any(each in text for each in world.tokens if len(each) > 20):
            return "a token is told"
        if name in ROUTES and answer.status >= 400 and answer.status != 405:
            error = json.loads(text)
            if (
                LEAKS.search(text)
                or not {"error", "reason"} <= set(error)
                or "\n" in error["reason"]
            ):
                return f"no plain sentence: {text[:200]}"
        if answer.kind == "text/html; charset=utf-8" and "<script>alert" in text:
            return f"markup: {text[:200]}"
        return (
            self._charged(world, answer)
            if name == "charge" and answer.status == 200 and text
            else ""
        )

    def _charged(self, world: World, answer: Answer) -> str:
        written: str = json.loads(answer.text)["receipt"]
        receipt = Receipt.read(written)
        if world.acknowledged.setdefault(receipt.key, receipt) != receipt:
            return "the same key gave two receipts"
        world.receipts.append(written)
        return ""


def _schemas(operation: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """The fields of an operation, and which of them it requires."""
    if "parameters" in operation:
        found = operation["parameters"]
        return {each["name"]: each["schema"] for each in found}, {
            each["name"] for each in found if each.get("required")
        }
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return schema["properties"], set(schema["required"])


def run(requests: int, *, seed: int) -> tuple[Counter[int], list[str]]:
    """The statuses of so many requests, and every complaint."""
    fuzz, statuses, problems = Fuzz(seed), Counter[int](), list[str]()
    for number in range(requests):
        if number and number % 5000 == 0:  # the log would be long, and the budget is spent
            problems += [said for world in fuzz.worlds if (said := world.complaint())]
            fuzz = Fuzz(seed + number)
        status, problem = fuzz.problem()
        statuses[status] += 1
        if problem:
            problems.append(problem)
    problems += [said for world in fuzz.worlds if (said := world.complaint())]
    return statuses, problems


def _everywhere(self: Identity, path: str) -> bool:
    return True


def _answering(name: str, handler: Any) -> AbstractContextManager[object]:
    return mock.patch.dict(ROUTES, {name: replace(ROUTES[name], handler=handler)})


def _broken(*_: object) -> dict[str, object]:
    raise KeyError("left")


_once = Service.ledger_charge


def _twice(self: Service, who: Identity, quote: Any, fields: Any) -> Any:
    account, charge = _once(self, who, quote, fields)
    self.ledger.charge(charge.path, cost=charge.cost, actor=charge.actor, key=f"{charge.key} again")
    return account, charge


def _told(service: Service, *_: object, **__: object) -> dict[str, object]:
    spent = service.ledger.balance(MARK).spent["rho"].units
    raise DPComposeError(f"refused after {spent} of others")


CONTROLS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "every scope is everybody's": lambda: mock.patch.object(Identity, "covers", _everywhere),
    "an error is a defect": lambda: _answering("left", _broken),
    "a charge is made twice": lambda: mock.patch.object(Service, "ledger_charge", _twice),
    "a refusal tells what others spent": lambda: _answering("price", _told),
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    statuses, problems = run(asked.requests, seed=asked.seed)
    print(
        f"{asked.requests} requests: {dict(sorted(statuses.items()))}; {len(problems)} problems {problems[:3]}"
    )
    for name, control in CONTROLS.items():
        with control():
            caught = bool(run(1000, seed=asked.seed)[1])
        print(f"control, {name}: {'caught' if caught else 'NOT CAUGHT'}")
        problems += [] if caught else [name]
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
