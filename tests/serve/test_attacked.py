"""What an attack from outside found: locked doors, terms that were walked around, answers that were not so."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dpcompose import Gaussian
from dpcompose.errors import DomainError, ReservedError, UnsupportedError
from dpcompose.ledger import Ledger
from dpcompose.mechanisms.text import parse
from dpcompose.serve import Role
from dpcompose.serve.service import PLACE
from tests.cli.runner import invoke
from tests.serve.conftest import Town

LARGE = Gaussian(10.0)  # rho of 1/200
SLOTS: dict[str, Any] = {
    "kind": "slots",
    "filter": "concentrated",
    "parameters": {"rho": "0.009", "delta": "0"},
}


def test_strangers_lock_nobody_out():
    town = Town(failures=3.0)
    assert [town.ask("left", "x" * 43, scope="city").status_code for _ in range(9)][-1] == 429
    for role in (Role.ANALYST, Role.KEEPER):
        assert town.ask("left", town.tokens[role], scope="city").status_code == 200
    town.client.cookies.set("dpcompose", town.tokens[Role.KEEPER])
    assert town.client.get("/").status_code == 200


def test_long_mechanisms_at_once_are_read():
    # What is cleaned up while a tree is made lets other threads go on.
    gc.callbacks.append(_gives_way)
    try:
        _read_at_once()
    finally:
        gc.callbacks.remove(_gives_way)


def _gives_way(_phase: str, _info: Any) -> None:
    time.sleep(0)


def _read_at_once() -> None:
    deep, wide = (
        "Gaussian(5.0)" + "*2" * 1500,
        " + ".join(f"Laplace({at}.5)" for at in range(1, 150)),
    )

    def read(number: int) -> object:
        try:
            return parse((deep, wide)[number % 2])
        except DomainError:
            return "too deep"

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(read, range(400))) == {"too deep", parse(wide)}


def test_a_body_that_is_broken_off_is_no_defect(town: Town, caplog: pytest.LogCaptureFixture):
    said: list[Any] = []
    messages = iter(
        [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        said.append(message)

    scope: Any = {
        "type": "http",
        "method": "POST",
        "path": "/v1/charge",
        "query_string": b"",
        "headers": [],
    }
    with caplog.at_level(logging.DEBUG, logger="dpcompose.serve"):
        asyncio.run(
            town.app(
                {**scope, "http_version": "1.1", "scheme": "http", "root_path": ""}, receive, send
            )
        )
    assert said[0]["status"] == 400 and "defect" not in caplog.text


def test_slots_leave_alone_what_is_reserved(town: Town):
    ada, keeper = town.account(scope="city"), town.tokens[Role.KEEPER]
    size = 0
    while ada.left()["rho"].fraction > 3 * ada.price(LARGE)["rho"].fraction:
        ada.charge(LARGE, key=f"fill {size}")
        size += 1
    ada.reserve(LARGE, key="study", seconds=3600, times=2)
    refused = town.ask("open", keeper, scope="city/slots", slots=1, **SLOTS)
    assert (refused.status_code, refused.json()["error"]) == (409, "ReservedError")
    for number in range(2):
        ada.charge(LARGE, key=f"use {number}", reservation="study")


def test_slots_heed_thresholds_and_quotas(town: Town):
    keeper = town.account(Role.KEEPER, scope="city")
    keeper.threshold({"rho": "0.001"})
    refused = town.ask("open", keeper.token, scope="city/slots", slots=1, **SLOTS)
    assert (refused.status_code, refused.json()["error"]) == (409, "ApprovalError")
    keeper.threshold({})
    keeper.quota("*", {"rho": "0.01"})
    assert town.ask("open", keeper.token, scope="city/slots", slots=1, **SLOTS).status_code == 200
    # Asked again it is there; another does not fit beside it.
    assert town.ask("open", keeper.token, scope="city/slots", slots=1, **SLOTS).status_code == 200
    refused = town.ask("open", keeper.token, scope="city/more", slots=1, **SLOTS)
    assert refused.json()["error"] == "QuotaError"


def test_left_counts_a_charge_in_a_reservation_once(town: Town):
    ada, ben = town.account(scope="city"), town.person("Ben")
    before = ben.left()["rho"].fraction
    ada.reserve(LARGE, key="study", seconds=3600, times=1)
    held = ben.left()["rho"].fraction
    ada.charge(LARGE, key="use", reservation="study")
    assert ben.left()["rho"].fraction == held < before
    (shown,) = ada.agreed()["reservations"]
    assert shown["used"] == shown["held"]
    with pytest.raises(ReservedError):
        while True:
            ada.reserve(LARGE, key=f"more {ben.left()['rho']}", seconds=3600)


def test_a_keeper_for_a_moment_is_not_the_last_one(town: Town):
    people, keeper = town.people, town.tokens[Role.KEEPER]
    people.invite("Moment", Role.KEEPER, "city", seconds=2.0)
    assert town.ask("revoke", keeper, scope="city", name="Ada").status_code == 422
    with pytest.raises(UnsupportedError, match="nobody could keep"):
        people.revoke("Ada", "city")
    people.invite("Grace", Role.KEEPER, "city")
    assert people.revoke("Ada", "city") == len(Role)


def test_what_is_kept_for_good_has_its_form(town: Town):
    ada = town.account(scope="city")
    column, key = ["person", "int64"], "0" * 64
    short: dict[str, Any] = {"unit": [column], "bounds": [1], "key": key}
    nobody: dict[str, Any] = {"unit": [], "bounds": [1, 1, 1], "key": key}
    for release in ([], {}, short, nobody, {"unit": [column], "bounds": [1, 1, 1], "key": "k"}):
        with pytest.raises(DomainError):
            ada.keep(PLACE, {"release": release})
    ada.keep(PLACE, {"release": {"unit": [column], "bounds": [1, 1, 1], "key": key}})
    assert ada.description_of(PLACE) is not None


def test_addresses_that_are_none(town: Town):
    keeper = town.tokens[Role.KEEPER]
    headers = {"authorization": f"Bearer {keeper}", "host": "evil.example"}
    assert (
        town.client.get("/v1/left/?scope=city", headers=headers, follow_redirects=False).status_code
        == 404
    )
    for name in ("agreed", "requests"):
        assert town.ask(name, keeper, scope="city/nowhere").status_code == 404


def test_whoever_keeps_everything_can_be_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPCOMPOSE_LEDGER", "city.db")
    Ledger.open("city.db").close()
    people = ["ledger", "people"]
    assert invoke([*people, "--invite", "keeper:Grace", "--invite", "keeper:Ann"]).exit_code == 0
    assert invoke([*people, "--revoke", "Grace"]).stdout == "1 revoked\n"
    again = invoke([*people, "--revoke", "Grace"]).stderr
    assert "a name and scope as they were invited" in again
    assert "nobody could keep" in invoke([*people, "--revoke", "Ann"]).stderr


def test_people_are_listed_and_looked_up_at_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPCOMPOSE_LEDGER", "city.db")
    Ledger.open("city.db").close()
    people = ["ledger", "people"]
    assert invoke(people).stdout == ""
    token = invoke([*people, "--invite", "keeper:Grace"]).stdout.strip()
    invoke([*people, "--invite", "analyst:Ada:city/health", "--invite", "auditor:Cleo"])
    invoke([*people, "--revoke", "Ada:city/health"])
    listed = invoke(people).stdout
    assert token not in listed and "keeper Grace of every scope: until" in listed
    (ada,) = invoke([*people, "--name", "Ada"]).stdout.splitlines()
    assert re.match(
        "analyst Ada of city/health: revoked .* by operator, invited .* by operator", ada
    )
    document = json.loads(invoke([*people, "--json"]).stdout)
    assert {each["name"] for each in document["people"]} == {"Grace", "Ada", "Cleo"}
    assert not document["changes"] and token not in json.dumps(document)
    refused = invoke([*people, "--invite", "analyst:Ben", "--subject", "8f3e"])
    assert refused.exit_code == 3 and "--issuer" in refused.stderr
    named = ["--subject", "8f3e", "--issuer", "https://login.example/city"]
    assert invoke([*people, "--invite", "analyst:Ben", *named]).stdout == "invited\n"
    assert invoke([*people, "--invite", "nobody:Ben"]).exit_code == 2
