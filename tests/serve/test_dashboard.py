"""What pages show and forms do, without a browser; tests/browser has one."""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("starlette")
from dpcompose import Gaussian
from dpcompose.account import open_scope
from dpcompose.errors import EvidenceError, ReservedError
from dpcompose.ledger import Ledger, entry
from dpcompose.ledger.evidence import Evidence
from dpcompose.serve import Identity, Role, Service
from dpcompose.serve.demo import demo_service
from dpcompose.serve.look import MOST_SCOPES, children, ends_at, scopes_at, window
from dpcompose.serve.web import application
from tests.serve.conftest import TestClient, Town, budget


def plain(page: str) -> str:
    """A page with powers of ten as Python reads them."""
    raised = dict(
        zip(
            "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b",
            "0123456789-",
            strict=True,
        )
    )
    return re.sub("(?: \u00d7 )10(\u207b.)", r"e\1", page).translate(str.maketrans(raised))


def signed_in(app: Any, token: str) -> Any:
    client = TestClient(app)
    assert client.post("/login", data={"token": token}, follow_redirects=False).status_code == 303
    return client


def sent(client: Any, action: str, /, **fields: str) -> Any:
    form = re.search(r'name="form" value="([0-9a-f]{64})"', client.get("/").text)
    return client.post("/act", data={"action": action, "form": form[1] if form else "", **fields})


def test_a_keeper_opens_and_invites_and_only_by_the_form_of_the_page(town: Town):
    keeper = signed_in(town.app, town.tokens[Role.KEEPER])
    asked = {"scope": "city/parks", "epsilon": "0.1", "delta": "1e-7"}
    assert "city/parks is open" in sent(keeper, "open", **asked).text
    assert sent(keeper, "open", **asked | {"epsilon": "0.2"}).status_code == 409
    assert sent(keeper, "open", **asked | {"scope": "other/parks"}).status_code == 403
    invited = sent(keeper, "invite", scope="city/parks", name="Ben", role="analyst", days="3")
    token = re.search(r"<code>([A-Za-z0-9_-]{43})</code>", invited.text)
    assert token is not None and token[1] not in keeper.get("/").text
    ben = signed_in(town.app, token[1])
    assert "city/parks" in ben.get("/").text and sent(ben, "open", **asked).status_code == 403
    assert (
        sent(keeper, "invite", scope="city", name="<b>", role="analyst", days="many").status_code
        == 409
    )
    assert keeper.post("/act", data={"action": "open", **asked}).status_code == 403
    assert sent(keeper, "charge", **asked).status_code == 403
    for headers in ({"sec-fetch-site": "cross-site"}, {"cookie": "dpcompose=x"}):
        assert keeper.post(
            "/act", data={"action": "open", **asked}, headers=headers
        ).status_code in (401, 403)


def test_a_request_is_decided_on_the_page(town: Town):
    ada, keeper = (
        signed_in(town.app, town.people.invite("Eve", role, "city"))
        for role in (Role.ANALYST, Role.KEEPER)
    )
    grace = signed_in(town.app, town.people.invite("Grace", Role.KEEPER, "city"))
    asked = {"scope": "city", "mechanism": "Gaussian(50.0)", "key": "k", "reason": "<i>why</i>"}
    assert "A keeper is asked" in sent(ada, "request", **asked).text
    page = grace.get("/").text
    assert "&lt;i&gt;why&lt;/i&gt;" in page
    named = re.search(r'name="request" value="([^"]+)"', page)
    assert named is not None
    decided = {"scope": "city", "request": named[1], "decision": "approved"}
    assert sent(ada, "decide", **decided).status_code == 403
    assert sent(keeper, "decide", **decided).status_code == 409  # the same name
    assert "The request is approved" in sent(grace, "decide", **decided).text


def test_what_is_reserved_is_not_left_on_any_line_of_the_page(town: Town):
    ada, ben = town.account(scope="city"), town.person("Ben")
    mechanism = "Gaussian(51.0200)"  # the one of the page for an error of 100
    bens = signed_in(town.app, town.people.invite("Ben", Role.ANALYST, "city"))

    def shown() -> tuple[list[int], float, str]:
        page = bens.get("/", params={"scope": "city", "mechanism": mechanism}).text
        fits = re.search(r"It fits ([0-9,]+) times", page)
        counts = re.search(r"([0-9,]+) counts that are wrong by at most 100 ", page)
        left = re.search(r"rho: [^ ]+ spent, ([-0-9.e]+) left", plain(page))
        bar = re.search(r'aria-label="(city: [^"]*)"', page)
        assert fits and counts and left and bar
        return [int(each[1].replace(",", "")) for each in (fits, counts)], float(left[1]), bar[1]

    (before, same), left, bar = shown()
    assert before == same and left == pytest.approx(float(ben.left()["rho"].fraction), rel=1e-5)
    assert "0 % reserved" in bar
    ada.reserve(Gaussian(10.0), key="study", seconds=3600, times=2)
    ada.reserve(Gaussian(20.0), key="more", seconds=3600, times=1)
    (fits, same), left, bar = shown()
    assert fits == same < before and left == pytest.approx(
        float(ben.left()["rho"].fraction), rel=1e-5
    )
    assert bar == "city: 0 % spent, 46.2 % reserved"
    for number in range(before):
        try:
            ben.charge(Gaussian(51.02), key=f"fill {number}")
        except ReservedError:
            assert number == fits
            break
    else:
        raise AssertionError("never refused")
    assert shown()[0] == [0, 0]


def test_a_page_about_one_scope_shows_every_reservation_on_its_bar(town: Town):
    for number in range(60):
        town.account(scope="city").reserve(Gaussian(100.0), key=f"study {number}", seconds=3600)
    page = signed_in(town.app, town.tokens[Role.KEEPER]).get("/").text
    assert "city: 0 % spent, 12.4 % reserved" in page


def test_the_end_of_a_budget_is_said_after_a_week_and_of_what_is_left() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    for span, after, left, days in (
        (timedelta(seconds=0.1), 0.9, 0.9, None),
        (timedelta(days=6, hours=23), 0.9, 0.9, None),
        (timedelta(days=7), 0.9, 0.9, 63),
        (timedelta(days=14), 0.9, 0.4, 56),
        (timedelta(days=14), 0.9, 0.0, None),
        (timedelta(days=14), 1.0, 1.0, None),
        (timedelta(days=14), 1 - 1e-16, 1e300, None),
    ):
        end = ends_at([(start, 1.0), (start + span, after)], left)
        assert (end is None) == (days is None)
        assert end is None or round((end - start - span) / timedelta(days=1)) == days


def test_a_page_of_the_first_second_has_no_forecast(town: Town):
    for number in range(3):
        town.account(scope="city").charge(Gaussian(50.0), key=str(number))
    page = signed_in(town.app, town.tokens[Role.KEEPER]).get("/").text
    assert "Spent by week" in page and "nothing is left on" not in page


def test_the_course_of_a_budget_that_renews_is_that_of_its_period():
    town = Town()
    town.now = datetime.fromisoformat("2020-01-31T00:00:00Z").timestamp()
    open_scope(town.ledger, "free", filter=None, actor="keeper")
    open_scope(town.ledger, "free/monthly", filter=budget(), renew="month", actor="keeper")
    keeper = signed_in(town.app, town.people.invite("Eve", Role.KEEPER, "free"))
    ada = town.account(token=town.people.invite("Ben", Role.ANALYST, "free"), scope="free/monthly")
    shown: dict[str, str] = {}
    for day in ("2020-01-31", "2020-02-01", "2020-02-03"):
        town.now = datetime.fromisoformat(f"{day}T00:00:00Z").timestamp()
        ada.charge(Gaussian(50.0), key=day)
        shown[day] = keeper.get("/", params={"at": "free/monthly"}).text
    part = re.search(r"Week of 2020-01-27: ([0-9.]+) %", shown["2020-02-01"])
    assert part and "Week of 2020-02-03" not in shown["2020-02-01"]  # one charge in this period
    assert (
        part[0] in shown["2020-02-03"] and f"Week of 2020-02-03: {part[1]} %" in shown["2020-02-03"]
    )
    assert "nothing is left on" not in shown["2020-02-03"]  # it is renewed before


def test_the_whole_ledger_is_verified_each_week_and_a_page_says_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    service, tokens = demo_service(tmp_path)
    auditor = signed_in(
        application(service, watch=0.0), next(tokens[who] for who in tokens if "Cleo" in who)
    )
    assert "not verified yet" in auditor.get("/proofs").text
    service.verifier.verify_when_due()
    entries = service.ledger.verify().entries
    assert "verified 0 days ago" in auditor.get("/proofs").text
    start = entry.clock()
    for days, more in ((6, 0), (8, 1), (9, 1)):  # once, and not again within the week
        monkeypatch.setattr(entry, "clock", lambda days=days: start + days * 86400 * 10**9)
        service.verifier.verify_when_due()
        assert service.ledger.verify().entries == entries + more
    monkeypatch.setattr(entry, "clock", lambda: start + 16 * 86400 * 10**9)
    with sqlite3.connect(tmp_path / "city.db") as connection:  # the control
        connection.execute("UPDATE balance SET closed = 1 WHERE path = 'city/schools'")
    service.verifier.verify_when_due()
    assert "did not agree" in auditor.get("/proofs").text


def test_an_auditor_downloads_a_proof_that_needs_no_service(tmp_path: Path):
    service, tokens = demo_service(tmp_path)
    app = application(service, watch=0.0)
    auditor, ada = (
        signed_in(app, token) for who, token in tokens.items() if "Cleo" in who or "Ada" in who
    )
    if "Signed" not in auditor.get("/proofs").text:
        auditor, ada = ada, auditor
    page = auditor.get("/proofs").text
    assert "Proof of 5" in page and service.published is not None
    text = auditor.get("/download", params={"what": "proof", "scope": "city/schools", "entry": "5"})
    assert text.headers["content-disposition"] == 'attachment; filename="entry5.proof"'
    found = Evidence.read(text.text, service.published.keys)
    assert (
        found.entry is not None
        and found.entry.sequence == 5
        and found.entry.scope == "city/schools"
    )
    with pytest.raises(EvidenceError):  # the control: another byte
        Evidence.read(text.text.replace("index 4", "index 3"), service.published.keys)
    for wrong in ({"entry": "4"}, {"entry": "99"}, {"entry": "x"}, {"entry": "-1"}, {}):
        asked = {"what": "proof", "scope": "city/schools", **wrong}
        assert auditor.get("/download", params=asked).status_code == 422, wrong
    assert (
        ada.get(
            "/download", params={"what": "proof", "scope": "city/health", "entry": "4"}
        ).status_code
        == 403
    )
    assert auditor.get("/download", params={"what": "page", "scope": "city"}).status_code == 404
    assert auditor.get("/download", params={"what": "checkpoint", "scope": "city"}).text.startswith(
        "demo.example/city"
    )
    service.published.file.unlink()
    assert "None is published" in auditor.get("/proofs").text


def test_a_page_looks_at_so_many_scopes_and_entries_and_no_more(monkeypatch: pytest.MonkeyPatch):
    ledger = Ledger.open("memory:")
    paths = ["a", "a/b", "a/b-2", "a/b-2/x", "a/b/c", "a/b/c/d", "a/b0", "a/c", "b"]
    for path in paths:
        open_scope(ledger, path, filter=budget(), actor="keeper")
    with ledger.moment() as moment:
        assert list(children(moment, "a")) == ["a/b-2", "a/b", "a/b0", "a/c"] or list(
            children(moment, "a")
        ) == ["a/b", "a/b-2", "a/b0", "a/c"]
        assert list(children(moment, "a/b")) == ["a/b/c"]
        assert sorted(scopes_at(moment, ["a", "b"])[0]) == sorted(paths)
        auditor = Identity("Cleo", Role.AUDITOR, "")
        assert len(window(moment, auditor, ["a", "b"], before=None).entries) == len(paths)
        assert [each.sequence for each in window(moment, auditor, ["a"], before=3).entries] == [
            2,
            1,
        ]
    for number in range(MOST_SCOPES + 2):
        open_scope(ledger, f"b/{number:02}", filter=budget(), actor="keeper")
    monkeypatch.setattr("dpcompose.serve.look.MOST_ENTRIES", 4)
    with ledger.moment() as moment:
        shown, more = scopes_at(moment, ["b"])
        assert len(shown) == MOST_SCOPES and more
        found = window(moment, auditor, ["b"], before=None)
        assert len(found.entries) == 4 and found.before == found.entries[-1].sequence


def test_a_page_is_told_that_something_changed_until_its_token_is_revoked(town: Town):
    from asyncio import run

    endpoint: Any = town.app.endpoints["GET", "/events"]
    pages = endpoint.__self__
    pages = type(pages)(pages.gate, watch=60.0, every=0.01)
    token, heard = town.people.invite("Zoe", Role.AUDITOR, "city"), list[str]()
    request = SimpleNamespace(cookies={"dpcompose": token}, client=None)

    async def listen() -> None:
        async for each in (await pages.events(request)).body_iterator:
            heard.append(each)
            if len(heard) == 2:
                town.account().charge(Gaussian(30.0), key="k")
            if "changed" in each:
                assert town.people.revoke("Zoe", "city") == 1

    run(listen())
    assert heard[-1] == "event: changed\ndata: -\n\n" and len(heard) < 5
    assert town.client.get("/events").status_code == 401


def test_pages_of_every_kind_of_ledger(town: Town):
    empty = Service(Ledger.open("memory:"), town.people)
    app = application(empty, watch=0.0)
    for role in Role:
        for subtree in ("", "city"):
            page = signed_in(app, town.people.invite("Ada", role, subtree)).get(
                "/", params={"before": "9" * 15}
            )
            assert page.status_code == 200 and "no budget here yet" in page.text
    for text in ("0", "-1", "x", "9" * 400, "\u0663"):
        auditor = signed_in(town.app, town.tokens[Role.AUDITOR])
        assert (
            auditor.get("/log", params={"before": text, "at": "other", "kind": text}).status_code
            == 200
        )


def test_each_role_sees_its_pages_and_another_address_is_a_page_too(town: Town):
    town.account(scope="city").charge(Gaussian(50.0), key="k")
    for role, token in town.tokens.items():
        person = signed_in(town.app, token)
        for path in ("/", "/people", "/log", "/proofs", "/report"):
            page = person.get(path, params={"at": "city"}, headers={"accept": "text/html"})
            closed = role is Role.ANALYST and path in ("/people", "/proofs")
            assert page.status_code == (403 if closed else 200), (role, path)
            assert page.text.startswith("<!doctype html>")
            for box in re.findall(r"<input(?![^>]*hidden)[^>]*>", page.text):
                assert 'placeholder="such as ' in box, (path, box)
            for time in re.findall(r"[0-9]{2}:[0-9]{2}[^<]{0,4}", page.text):
                assert time.endswith("\u00a0UTC"), (path, time)
    unknown = town.client.get("/nowhere", headers={"accept": "text/html,*/*"})
    assert unknown.status_code == 404 and "<h1>Not Found</h1>" in unknown.text
    wrong = town.client.post("/log", headers={"accept": "text/html"})
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET") and "<h1>" in wrong.text
    assert town.client.get("/v1/nowhere", headers={"accept": "text/html"}).json()["reason"]


def test_a_report_has_date_head_percent_who_and_when(town: Town):
    for number in range(3):
        town.account(scope="city/health").charge(Gaussian(50.0), key=str(number))
    auditor = signed_in(town.app, town.tokens[Role.AUDITOR])
    page = auditor.get("/report", params={"at": "city/health"}).text
    with town.ledger.moment() as moment:
        head = moment.snapshot.head("city")
    percent = re.search(r"<strong>([0-9.]+) %</strong>", page)
    assert head.hash in page and percent is not None and "\u03b4 = 10\u207b\u2076" in page
    rows = re.findall(r'data-label="Actor">([^<]*)<.*?data-label="Percent">([0-9.]+)<', page)
    assert [actor for actor, _ in rows] == ["Ada@city"] * 3
    assert float(percent[1]) <= sum(float(part) for _, part in rows) < float(percent[1]) + 0.3
    assert "@page { size: A4" in town.client.get("/style.css").text


def test_a_keeper_revokes_on_the_page_of_people(town: Town):
    keeper, token = (
        signed_in(town.app, town.tokens[Role.KEEPER]),
        town.people.invite("Ben", Role.ANALYST, "city"),
    )
    assert town.people.find(token) is not None
    page = sent(keeper, "revoke", scope="city", name="Ben", here="/people?at=city").text
    assert "The tokens of Ben in city are revoked" in page and "by Ada@city" in page
    assert town.people.find(token) is None
