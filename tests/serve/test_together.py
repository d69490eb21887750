"""Charges that arrive together: each is answered as if it came alone, and they share a commit."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from dpcompose.account import Account, account
from dpcompose.errors import StoreError
from dpcompose.mechanisms.text import parse
from dpcompose.serve import Role, service
from tests.serve.conftest import Town

SMALL, LARGE, WRONG = "Gaussian(100.0)", "Gaussian(0.5)", "Gaussian(0"


def charge(
    key: str, mechanism: str = SMALL, scope: str = "city/health", **more: Any
) -> dict[str, Any]:
    return {"scope": scope, "mechanism": mechanism, "key": key, **more}


def at_once(
    town: Town, asked: list[tuple[str, dict[str, Any]]], *, busy: bool = True
) -> list[httpx.Response]:
    """The answers to charges, all but the first of which wait while the first is committed."""
    arrived, transact = Event(), town.ledger.store.transact

    def slow(requests: Any) -> Any:
        assert arrived.wait(10)
        return transact(requests)

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=town.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:

            def post(token: str, fields: dict[str, Any]) -> Any:
                headers = {"authorization": f"Bearer {token}"}
                return asyncio.ensure_future(
                    client.post("/v1/charge", json=fields, headers=headers)
                )

            first = post(*asked[0])
            if busy:
                await asyncio.sleep(0.05)
            others = [post(*each) for each in asked[1:]]
            await asyncio.sleep(0.1)
            arrived.set()
            return list(await asyncio.gather(first, *others))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(town.ledger.store, "transact", slow)
        return asyncio.run(ask())


def test_each_is_answered_as_if_it_came_alone(tmp_path: Path):
    town, alone = Town(url=str(tmp_path / "together.db")), Town(url=str(tmp_path / "alone.db"))
    asked: list[tuple[Role | None, dict[str, Any]]] = [
        (Role.ANALYST, charge("first")),
        (Role.ANALYST, charge("second", description={"why": "age"})),
        (Role.ANALYST, charge("large", LARGE)),
        (Role.ANALYST, charge("second", "Gaussian(90.0)")),
        (Role.ANALYST, charge("first")),
        (Role.ANALYST, charge("large", LARGE)),
        (Role.ANALYST, charge("elsewhere", scope="other")),
        (Role.ANALYST, charge("nowhere", scope="city/nowhere")),
        (Role.ANALYST, charge("wrong", WRONG)),
        (Role.ANALYST, charge("deep", "-" * 3000 + "1")),
        (Role.ANALYST, charge("noted", description={"approved": "Ben"})),
        (Role.ANALYST, charge("study", reservation="study")),
        (Role.ANALYST, charge("", SMALL)),
        (Role.AUDITOR, charge("auditor")),
        (None, charge("stranger")),
        (Role.ANALYST, charge("last")),
    ]
    found = at_once(
        town, [("x" * 43 if role is None else town.tokens[role], each) for role, each in asked]
    )
    single = [
        alone.ask("charge", "x" * 43 if role is None else alone.tokens[role], **each)
        for role, each in asked
    ]
    assert [each.status_code for each in found] == [each.status_code for each in single]
    assert {200, 401, 403, 404, 409, 422} == {each.status_code for each in found}
    for one, other in zip(found, single, strict=True):
        if one.status_code != 200:
            assert _said(one) == _said(other)
    receipts = [each.json()["receipt"] for each in found if each.status_code == 200]
    assert receipts[0] == receipts[2] and len(set(receipts)) == 3  # the first, asked twice
    assert town.ledger.verify().entries == alone.ledger.verify().entries


def _said(answer: httpx.Response) -> dict[str, Any]:
    """The answer; how much is left in words may be told after others were charged."""
    said = answer.json()
    return {**said, "reason": ""} if said["error"] == "OverdrawnError" else said


def test_they_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    town = Town(url=str(tmp_path / "ledger.db"))
    commits: list[int] = []
    transact = town.ledger.store.transact
    monkeypatch.setattr(
        town.ledger.store, "transact", lambda asked: commits.append(len(asked)) or transact(asked)
    )
    token = town.tokens[Role.ANALYST]
    found = at_once(town, [(token, charge(f"key {at}")) for at in range(30)])
    assert all(each.status_code == 200 for each in found)
    assert commits == [1, 29]
    assert town.ledger.verify().entries == 3 + 30


def test_a_commit_that_fails_is_said_to_each(monkeypatch: pytest.MonkeyPatch):
    town = Town()
    transact, token = town.ledger.store.transact, town.tokens[Role.ANALYST]

    def lost(requests: Any) -> Any:
        found = transact(requests)
        if len(requests) > 1:
            raise StoreError("ledger", "the connection ended", uncertain=True)
        return found

    monkeypatch.setattr(town.ledger.store, "transact", lost)
    asked = [(token, charge(f"key {at}")) for at in range(5)]
    found = at_once(town, asked)
    assert [each.status_code for each in found] == [200, 503, 503, 503, 503]
    assert all(each.json()["uncertain"] for each in found[1:])
    again = [town.ask("charge", token, **each) for _, each in asked]
    assert [each.status_code for each in again] == [200] * 5
    assert town.ledger.verify().entries == 3 + 5


def test_policies_hold_for_each_charge_of_a_batch():
    town = Town()
    token = town.tokens[Role.ANALYST]
    town.ask("quota", town.tokens[Role.KEEPER], scope="city", actor="*", caps={"rho": "0.0001"})
    found = at_once(town, [(token, charge(f"key {at}")) for at in range(4)], busy=False)
    assert sorted(each.status_code for each in found) == [200, 200, 409, 409]
    assert {each.json()["error"] for each in found if each.status_code == 409} == {"QuotaError"}
    assert town.ledger.verify().entries == 3 + 1 + 2  # the quota is an entry


def test_a_token_that_is_revoked_is_not_known_any_more():
    town = Town()
    token = town.people.invite("Ben", Role.ANALYST, "city")
    assert town.ask("charge", token, **charge("one")).status_code == 200
    town.people.revoke("Ben", "city")
    found = at_once(
        town, [(token, charge("two")), (town.tokens[Role.ANALYST], charge("three"))], busy=False
    )
    assert [each.status_code for each in found] == [401, 200]


def test_rates_are_counted_once_for_each_charge():
    town = Town(rate=1.0)
    token = town.tokens[Role.ANALYST]
    found = at_once(town, [(token, charge(f"key {at}", LARGE)) for at in range(4)])
    assert sorted(each.status_code for each in found) == [409, 409, 429, 429]


def test_nobody_waits_for_a_price_that_takes_long(monkeypatch: pytest.MonkeyPatch):
    town, slow = Town(), "Laplace(100.0) * 3"
    token, go, seconds = town.tokens[Role.ANALYST], Event(), [0.3]

    def computed(*asked: Any) -> Any:
        assert go.wait(20)
        return seconds[0], *in_this_process(*asked)[1:]

    assert town.service.soon_priced("city", SMALL) and not town.service.soon_priced(
        "city/health", slow
    )
    assert not any(
        town.service.soon_priced("city", each) for each in (None, [], "Gaussian(1.0).sampled(0.1)")
    )
    monkeypatch.setattr(service, "computed", computed)

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=town.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:

            def post(fields: dict[str, Any]) -> Any:
                headers = {"authorization": f"Bearer {token}"}
                return asyncio.ensure_future(
                    client.post("/v1/charge", json=fields, headers=headers)
                )

            late = [post(charge(f"slow {at}", slow)) for at in range(6)]
            await asyncio.sleep(0.05)
            quick = await asyncio.wait_for(post(charge("quick")), 10)
            assert not any(each.done() for each in late)
            go.set()
            return [quick, *await asyncio.gather(*late)]

    assert {each.status_code for each in asyncio.run(ask())} == {200}
    assert not town.service.soon_priced("city/health", slow)
    seconds[0] = 0.001
    assert town.ask("charge", token, **charge("delta", slow, delta="1e-9")).status_code == 200
    assert town.service.soon_priced("city/health", slow, "1e-9") and not town.service.soon_priced(
        "city/health", slow
    )


def test_a_price_that_is_forgotten_is_computed_outside_of_a_batch(monkeypatch: pytest.MonkeyPatch):
    """Asked for its price first, a slow mechanism looked quick when it was charged, and held its tree the next time."""
    town, slow, priced = Town(), "(Laplace(50.0) + Laplace(100.0)) * 2", account.chain_cost
    token = town.tokens[Role.ANALYST]

    def price(*chain: Any, **more: Any) -> Any:
        time.sleep(0.02)
        return priced(*chain, **more)

    monkeypatch.setattr(account, "chain_cost", price)
    monkeypatch.setattr(service, "computed", in_this_process, raising=False)
    for name in ("price", "charge"):
        assert town.ask(name, token, **charge("first", slow)).status_code == 200
    assert not town.service.soon_priced("city/health", slow)


def in_this_process(priced: Account, mechanism: str, delta: Any) -> Any:
    start = time.monotonic()
    quote = priced.quote(parse(mechanism), delta)
    return time.monotonic() - start, quote.cost, quote.description
