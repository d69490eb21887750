"""Reservations, quotas and approvals, over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from dpcompose import Gaussian
from dpcompose.account import open_scope
from dpcompose.errors import (
    ApprovalError,
    DomainError,
    DPComposeError,
    KeyReusedError,
    OverdrawnError,
    QuotaError,
    ReservationError,
    ReservedError,
    UnsupportedError,
)
from dpcompose.ledger import PEOPLE, Amount, Amounts, Ledger, SetFact, Token
from dpcompose.ledger.requests import noted
from dpcompose.serve import RemoteAccount, Role
from dpcompose.serve.gate import ROUTES
from tests.serve.conftest import Town, budget

LARGE, SMALL = Gaussian(10.0), Gaussian(50.0)  # rho of 1/200 and of 1/5000


def fill(account: RemoteAccount, sigma: float = 10.0) -> int:
    """Charge until it is refused, and say how often."""
    for number in range(1000):
        try:
            account.charge(Gaussian(sigma), key=f"fill {number}")
        except OverdrawnError:
            return number
    raise AssertionError("never refused")


def rho(amount: Amount | Any) -> float:
    return float(amount.fraction)


def granted(ledger: Ledger, path: str = "city") -> list[Any]:
    return [each for each in ledger.entries(path) if each.kind == "granted"]


def test_a_reservation_keeps_others_out_and_its_uses_are_ordinary_charges(town: Town):
    ada, ben = town.account(scope="city"), town.person("Ben")
    plain = rho(ben.left()["rho"])
    made = ada.reserve(LARGE, key="study", seconds=3600, times=2)
    assert made == ada.reserve(LARGE, key="study", seconds=3600, times=2) and not granted(
        town.ledger
    )
    with pytest.raises(KeyReusedError):
        ada.reserve(LARGE, key="study", seconds=3600, times=3)
    assert rho(ben.left()["rho"]) == pytest.approx(plain - 0.01)
    fill(ben)
    with pytest.raises(ReservedError) as refusal:
        ben.charge(LARGE, key="more")
    assert "reserved" in str(refusal.value) and refusal.value.requested > refusal.value.left
    with pytest.raises(ReservationError):
        ben.charge(LARGE, key="theft", reservation="study")
    for key in ("one", "two"):
        receipt = ada.charge(LARGE, key=key, reservation="study")
        assert receipt == ada.charge(LARGE, key=key, reservation="study")
    with pytest.raises(ReservationError):
        ada.charge(LARGE, key="three", reservation="study")
    with pytest.raises(KeyReusedError):
        ada.charge(LARGE, key="one")
    assert noted(granted(town.ledger)[-1].description)["reservation"] == made["reservation"]
    assert town.ledger.verify().entries


def test_what_was_never_committed_returns_at_the_end_and_late_commits_are_refused(town: Town):
    ada, ben = town.account(scope="city"), town.person("Ben")
    everything = rho(ada.left()["rho"])
    ada.reserve(SMALL, key="study", seconds=60, times=100)
    first = ada.charge(SMALL, key="one", reservation="study")
    town.now += 60
    with pytest.raises(ReservationError, match="ended"):
        ada.charge(SMALL, key="two", reservation="study")
    assert ada.charge(SMALL, key="one", reservation="study") == first  # it was committed in time
    assert rho(ben.left()["rho"]) == pytest.approx(everything - 1 / 5000)
    town.account(Role.KEEPER).threshold({"rho": "1"})  # the time is recorded
    town.now -= 60  # a clock that is set back brings no reservation back
    with pytest.raises(ReservationError, match="ended"):
        ada.charge(SMALL, key="two", reservation="study")
    ada.reserve(SMALL, key="again", seconds=60, times=100)
    ada.unreserve("again")
    ada.unreserve("again")
    with pytest.raises(ReservationError):
        ben.unreserve("again")
    assert rho(ben.left()["rho"]) == pytest.approx(everything - 1 / 5000)
    kept = ada.reserve(SMALL, key="third", seconds=60, times=100)
    keeper = town.tokens[Role.KEEPER]
    assert (
        town.ask("unreserve", keeper, scope="city", reservation=kept["reservation"]).status_code
        == 200
    )


def test_reservations_never_promise_more_than_there_is(town: Town):
    ada, ben = town.account(scope="city"), town.person("Ben", subtree="city/health")
    with pytest.raises(OverdrawnError):
        ada.reserve(LARGE, key="too much", seconds=60, times=5)
    ada.reserve(LARGE, key="most", seconds=60, times=4)
    with pytest.raises(ReservedError):
        ben.reserve(LARGE, key="rest", seconds=60, times=2)
    for times in (0, -1, 1.5, True, 10**7, "2", None):
        asked = {
            "scope": "city",
            "mechanism": "Gaussian(50.0)",
            "key": "k",
            "seconds": 60,
            "times": times,
        }
        assert town.ask("reserve", town.tokens[Role.ANALYST], **asked).status_code == 422
    for seconds in (0, -1, 1e9, float(10**308), True, "60", None):
        asked = {"scope": "city", "mechanism": "Gaussian(50.0)", "key": "k", "seconds": seconds}
        assert town.ask("reserve", town.tokens[Role.ANALYST], **asked).status_code == 422


def test_in_a_partition_the_largest_child_counts_for_reservations_too(town: Town):
    town.ledger.scope("other/by", kind="partition", actor="keeper")
    for name in ("a", "b"):
        open_scope(town.ledger, f"other/by/{name}", filter=budget(), actor="keeper")
    a, b = (town.person(name, subtree=f"other/by/{name}") for name in ("a", "b"))
    before = rho(b.left()["rho"])
    a.reserve(LARGE, key="study", seconds=60, times=3)
    assert rho(b.left()["rho"]) == before
    top = town.person("top", subtree="other")
    assert rho(top.left()["rho"]) == pytest.approx(before - 0.015)


def test_a_quota_bounds_each_person_in_each_period(town: Town):
    ada, ben, grace = (
        town.account(),
        town.person("Ben", subtree="city/health"),
        town.account(Role.KEEPER, scope="city"),
    )
    assert fill(town.account(scope="city"), 30.0) > 1
    town = Town()
    ada, ben, grace = (
        town.account(),
        town.person("Ben", subtree="city/health"),
        town.account(Role.KEEPER, scope="city"),
    )
    grace.quota("*", {"rho": "0.0007"}, period="year")
    receipts = [ada.charge(SMALL, key=key) for key in "abc"]
    with pytest.raises(QuotaError) as refusal:
        ada.charge(SMALL, key="d")
    assert refusal.value.currency == "rho" and "quota" in str(refusal.value)
    assert [ada.charge(SMALL, key=key) for key in "abc"] == receipts
    assert ben.charge(SMALL, key="a").actor == "Ben@city/health"
    with pytest.raises(QuotaError):
        ben.reserve(SMALL, key="r", seconds=60, times=3)
    grace.quota("Ben@city/health", {"rho": "0.0001"}, period="total")
    with pytest.raises(QuotaError):
        ben.charge(SMALL, key="b")
    grace.quota("*", {"rho": "0.0009"}, period="year")
    ada.charge(SMALL, key="d")
    grace.quota("*", {})
    ada.charge(SMALL, key="e")
    assert len(town.account(Role.AUDITOR, scope="city").agreed()["quotas"]) == 1
    assert not ada.agreed()["quotas"]  # of somebody else
    assert not [each for each in town.ledger.entries("city") if each.kind == "refused"]


def test_a_charge_above_a_threshold_needs_a_second_person(town: Town):
    ada, grace = town.account(), town.person("Grace", Role.KEEPER)
    grace.threshold({"rho": "0.001"})
    ada.charge(SMALL, key="small")
    with pytest.raises(ApprovalError, match="Request approval"):
        ada.charge(LARGE, key="large")
    asked = ada.request(LARGE, key="large", reason="a map")
    assert asked == ada.request(LARGE, key="large", reason="a map") and asked["state"] == "open"
    with pytest.raises(ApprovalError, match="not decided"):
        ada.charge(LARGE, key="large")
    there = RemoteAccount("http://testserver", grace.token, scope="city/health", client=town.client)
    same = town.account(Role.KEEPER)  # she is Ada, too
    with pytest.raises(ApprovalError, match="second person"):
        same.decide(asked["request"], approve=True)
    assert there.decide(asked["request"], approve=True) == there.decide(
        asked["request"], approve=True
    )
    with pytest.raises(ApprovalError):
        there.decide(asked["request"], approve=False)
    with pytest.raises(ApprovalError, match="another charge"):
        ada.charge(Gaussian(9.0), key="large")
    with pytest.raises(ApprovalError):
        ada.charge(LARGE, key="another key")
    receipt = ada.charge(LARGE, key="large")
    assert receipt == ada.charge(LARGE, key="large")
    assert noted(granted(town.ledger)[-1].description) == {"approved": "Grace@city"}
    declined = ada.request(LARGE, key="second", reason="again")
    assert [each["state"] for each in ada.requests()].count("open") == 1 and not town.person(
        "Ben"
    ).requests()
    there.decide(declined["request"], approve=False)
    with pytest.raises(ApprovalError, match="declined"):
        ada.charge(LARGE, key="second")
    late = ada.request(LARGE, key="third", reason="again")
    there.decide(late["request"], approve=True)
    town.now += 31 * 86400
    with pytest.raises(ApprovalError, match="expired"):
        ada.charge(LARGE, key="third")
    grace.threshold({})
    assert receipt == ada.charge(LARGE, key="large")


@pytest.mark.parametrize(
    "other", ["Zoe\u0308", "ZO\u00cb", "zoe\u0308", "\uff3ao\u00eb", "Z\u043e\u00eb"]
)
def test_one_name_in_two_spellings_is_one_person(town: Town, other: str):
    town.person("Grace", Role.KEEPER).threshold({"rho": "0.001"})
    asked = town.person("Zo\u00eb").request(LARGE, key="large", reason="a map")
    keeper = town.person("Somebody", Role.KEEPER)
    digest = town.people.digest_of(keeper.token)
    with town.people.ledger.moment() as moment:
        token = Token.of(moment.snapshot, PEOPLE, digest or "")
    assert token is not None
    earlier = SetFact(PEOPLE, "operator", Token.kind, digest or "", replace(token, name=other).text)
    town.people.ledger.state(earlier)  # as an earlier version took it
    with pytest.raises(ApprovalError, match="second person"):
        keeper.decide(asked["request"], approve=True)
    with pytest.raises(DomainError, match=r"NFC|does not look like"):
        town.people.invite(other, Role.KEEPER, "city")
    another = town.person("Zoe", Role.KEEPER)
    assert another.decide(asked["request"], approve=True)["state"] == "approved"


@pytest.mark.parametrize(
    "name", ["", " ", "A@b", "A\u2800", "\u3164", "A\u034fda", "A\u200bda", "A" * 101, "A\ud800", 5]
)
def test_a_name_that_does_not_show_is_nobodys(town: Town, name: Any):
    with pytest.raises(DomainError):
        town.people.invite(name, Role.ANALYST, "city")


def test_slots_are_opened_also_when_a_time_is_to_be_noted(town: Town):
    keeper = town.people.find(town.tokens[Role.KEEPER])
    assert keeper is not None
    town.now += 120
    asked: dict[str, Any] = {
        "kind": "slots",
        "filter": "concentrated",
        "parameters": {"rho": "0.0001", "delta": "0"},
    }
    assert ROUTES["open"].answer(town.service, keeper, "city/slots", {**asked, "slots": 1}) == {
        "scope": "city/slots"
    }


def test_a_keeper_of_less_changes_nothing_that_a_keeper_of_more_has_set(town: Town):
    above, below = town.account(Role.KEEPER), town.person("Ben", Role.KEEPER, "city/health")
    above.threshold({"rho": "0.001"})
    above.quota("*", {"rho": "0.001"})
    for asked in (lambda: below.threshold({}), lambda: below.quota("*", {})):
        with pytest.raises(UnsupportedError):
            asked()
    below.quota("Ada@city", {"rho": "1"})
    above.quota("Ada@city", {})


def test_what_the_service_notes_is_not_for_others_to_write(town: Town):
    for name in ("approved", "reservation"):
        asked = {
            "scope": "city",
            "mechanism": "Gaussian(50.0)",
            "key": "k",
            "description": {name: "Grace@city"},
        }
        assert town.ask("charge", town.tokens[Role.ANALYST], **asked).status_code == 422


def test_many_at_once_exceed_neither_a_quota_nor_what_others_reserved(town: Town):
    ada, keeper = town.account(scope="city"), town.account(Role.KEEPER, scope="city")
    held = Amounts.read(ada.reserve(LARGE, key="study", seconds=60, times=2)["held"])
    keeper.quota("Ben@city", {"rho": "0.0011"})
    ben, eve = (
        town.people.find(town.person("Ben").token),
        town.people.find(town.person("Eve").token),
    )
    assert ben is not None and eve is not None

    def one(number: int) -> str:
        who, sigma = (ben, 50.0) if number % 2 else (eve, 10.0)
        fields = {"mechanism": f"Gaussian({sigma})", "key": str(number)}
        try:
            return f"{who.name} {'receipt' in ROUTES['charge'].answer(town.service, who, 'city', fields)}"
        except DPComposeError as error:
            return f"{who.name} {type(error).__name__}"

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, range(40)))
    assert (
        found.count("Ben True") == 5 and "Ben QuotaError" in found and "Eve ReservedError" in found
    )
    assert town.ledger.available("city")["rho"] >= held["rho"]
    town.ledger.verify()


def test_a_reservation_in_a_budget_that_renews_is_of_the_period_that_is(town: Town):
    town.now = 1893456000.0  # the first day of 2030
    open_scope(town.ledger, "free", filter=None, actor="keeper")
    open_scope(town.ledger, "free/daily", filter=budget(), renew="day", actor="keeper")
    ada = town.person("Ada", subtree="free/daily")
    for number in range(4):
        ada.charge(LARGE, key=str(number))
    with pytest.raises(OverdrawnError):
        ada.reserve(LARGE, key="today", seconds=60, times=1)
    town.now += 86400
    assert rho(ada.left()["rho"]) > 4 * rho(ada.price(LARGE)["rho"])
    ada.reserve(LARGE, key="today", seconds=60, times=4)
    with pytest.raises(ReservedError):
        ada.charge(LARGE, key="others")
    ada.charge(LARGE, key="own", reservation="today")
