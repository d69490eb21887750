"""A session of releases that a service's account pays for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("opendp")
import pandas as pd

import dpcompose.release as release
from dpcompose.account import open_scope
from dpcompose.errors import DomainError, OverdrawnError, StoreError
from dpcompose.ledger import Ledger
from dpcompose.release import bounding
from dpcompose.serve import Role, service
from tests.serve.conftest import Town

FRAME = pd.DataFrame(
    {"person": [f"p{n % 40}" for n in range(120)], "ward": ["east", "west", "south"] * 40}
)


def table(**more: Any) -> release.Table:
    return release.table(FRAME, unit="person", max_rows_per_unit=3, **more)


@pytest.fixture
def paid(town: Town) -> Town:
    open_scope(
        town.ledger,
        "people",
        epsilon="1",
        only="pure",
        note={"about": "people"},
        actor="keeper",
    )
    return town


def kinds(ledger: Ledger) -> list[str]:
    return [each.kind for each in ledger.entries("people")]


def test_an_analyst_asks_a_private_count_through_the_service_and_is_refused_at_the_end(paid: Town):
    account = paid.person("Ada", subtree="people")
    session = release.Session(table(), account=account, actor="Ada")
    here = release.Session(table(), ledger=paid.ledger, scope="people", actor="Ada")
    asked = {"by": "ward", "keys": ["east", "west", "south"], "spend": {"epsilon": "0.4"}}
    assert session.quote(release.Count(**asked)).price == here.quote(release.Count(**asked)).price
    answer = session.count(**asked, key="wards")
    again = session.count(**asked, key="wards")  # stored: nothing is charged, and nothing drawn
    assert again.replayed and replace(again, replayed=False) == answer
    assert kinds(paid.ledger) == ["opened", "opened", "granted", "redeemed"]
    entry = list(paid.ledger.entries("people"))[2]
    assert entry.actor == "Ada@people" and entry.cost == answer.receipt.cost
    assert (
        float(entry.cost["epsilon"].fraction) == pytest.approx(0.4)
        and entry.description["note"]["release"]
    )
    session.count(**asked)
    with pytest.raises(OverdrawnError):
        session.count(**asked)
    assert kinds(paid.ledger)[-1] == "refused" and paid.ledger.verify().entries
    assert session.account.note == {"about": "people"}


def test_what_a_scope_holds_for_is_kept_by_the_service(paid: Town):
    first, second = (
        release.Session(table(), account=paid.person(name, subtree="people"), actor=name)
        for name in "AB"
    )
    for session in (first, second):
        session.count(spend={"epsilon": "0.1"})
    assert kinds(paid.ledger).count("opened") == 2 and service.PLACE == bounding.PLACE
    other = release.table(FRAME, unit="person", max_rows_per_unit=2)
    with pytest.raises(DomainError, match="max_rows_per_unit"):
        release.Session(other, account=first.account, actor="A").count(spend={"epsilon": "0.1"})
    token = paid.people.invite("Eve", Role.ANALYST, "people")
    for name, described in (
        ("other", {"release": {}}),
        (service.PLACE, {"release": {}, "budget": {}}),
    ):
        answer = paid.ask("keep", token, scope="people", name=name, description=described)
        assert answer.status_code == 422


def test_a_session_has_one_place_to_charge(paid: Town):
    account = paid.person("Ada", subtree="people")
    for given in (
        {"account": account, "scope": "people"},
        {"account": account, "ledger": paid.ledger},
        {},
    ):
        with pytest.raises(DomainError, match="ledger and scope"):
            release.Session(table(), actor="Ada", **given)  # type: ignore[arg-type]


def test_an_answer_that_was_lost_between_charge_and_noise_is_asked_again(
    paid: Town, monkeypatch: pytest.MonkeyPatch
):
    account, lost = paid.person("Ada", subtree="people"), ["charge", "redeem"]
    asked = type(account)._request

    def loses(self: Any, method: str, route: str, **fields: Any) -> Any:
        answer = asked(self, method, route, **fields)
        if route in lost:
            lost.remove(route)
            raise StoreError("service", "gone", uncertain=True)
        return answer

    monkeypatch.setattr(type(account), "_request", loses)
    session = release.Session(table(), account=account, actor="Ada")
    with pytest.raises(StoreError):
        session.count(spend={"epsilon": "0.2"}, key="k")
    assert not session.count(spend={"epsilon": "0.2"}, key="k").replayed and not lost
    assert session.count(spend={"epsilon": "0.2"}, key="k").replayed
    assert kinds(paid.ledger) == ["opened", "opened", "granted", "redeemed"]


def test_the_data_are_not_touched_before_the_service_has_charged(
    paid: Town, monkeypatch: pytest.MonkeyPatch
):
    paid.account(
        Role.KEEPER, token=paid.people.invite("G", Role.KEEPER, "people"), scope="people"
    ).threshold({"epsilon": "0.1"})

    def touched(*_: Any) -> Any:
        raise AssertionError("the data were touched")

    monkeypatch.setattr("dpcompose.release.aggregate.Scans.exact", touched)
    session = release.Session(table(), account=paid.person("Ada", subtree="people"), actor="Ada")
    with pytest.raises(Exception, match="threshold"):
        session.count(spend={"epsilon": "0.2"})
    with pytest.raises(AssertionError, match="touched"):
        session.count(spend={"epsilon": "0.1"})
