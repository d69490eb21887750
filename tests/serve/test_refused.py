"""Refused charges: whoever has no budget does not fill the disk with them, and is answered alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("starlette")
from dpcompose.serve import Role
from tests.serve.conftest import Town

LARGE, MOST, LONGEST = "Gaussian(0.01)", 10, 1024


def entries(town: Town) -> list[int]:
    """The sizes of the refusals in the ledger."""
    return [len(each.body) for each in town.ledger.entries("city") if each.kind == "refused"]


def charge(town: Town, token: str, key: str, note: str = "", **fields: Any) -> Any:
    asked = {"mechanism": LARGE, "key": key, "description": {"note": note}}
    return town.ask("charge", token, scope="city", **{**asked, **fields})


@pytest.mark.parametrize("terms", [False, True])
def test_refused_charges_are_entries_so_often_and_while_they_are_short(town: Town, terms: bool):
    if terms:  # such a tree is charged one by one
        town.account(Role.KEEPER, scope="city").quota("*", {"rho": "0.5"})
    ada, ben = town.tokens[Role.ANALYST], town.person("Ben").token
    answers = [charge(town, ada, f"long {number}", "x" * 50_000) for number in range(5)]
    assert len(entries(town)) == 5
    again = charge(town, ada, "long 0", "x" * 50_000)
    assert again.json() == answers[0].json() and len(entries(town)) == 5
    assert charge(town, ada, "long 0", "y" * 50_000).json()["error"] == "KeyReusedError"
    answers += [charge(town, ada, f"short {number}") for number in range(50)]
    assert {(each.status_code, each.json()["error"]) for each in answers} == {
        (409, "OverdrawnError")
    }
    found = entries(town)
    assert len(found) == MOST and max(found) <= LONGEST
    assert (
        charge(town, ada, "short 0").json() == charge(town, ada, "short 49").json()
    )  # an entry or not
    assert charge(town, ben, "his own").status_code == 409 and len(entries(town)) > len(found)
    assert charge(town, ada, "fits", "x" * 50_000, mechanism="Gaussian(50.0)").status_code == 200
    assert town.ledger.verify().entries


def test_refusals_of_an_hour_beyond_ten_are_counted_in_one_entry(town: Town):
    for hour in range(2):
        before = len(entries(town))
        for number in range(MOST + 5):
            answer = charge(town, town.tokens[Role.ANALYST], f"{hour} {number}")
            assert answer.status_code == 409
        assert len(entries(town)) == before + MOST
        town.now += 3600
    charge(town, town.tokens[Role.ANALYST], "the last")
    counts = [
        each.fields["statement"] for each in town.ledger.entries("city") if each.kind == "stated"
    ]
    stated = [(json.loads(each["name"])[0], each["value"]) for each in counts]
    assert stated == [("Ada@city", "5")] * 2
    town.ledger.verify()
