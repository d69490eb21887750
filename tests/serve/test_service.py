from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from campaigns.service.direct import Direct
from campaigns.service.requests import CONTROLS, run
from dpcompose import Gaussian
from dpcompose.account import Account
from dpcompose.errors import (
    AlreadyRedeemedError,
    KeyReusedError,
    LedgerError,
    OverdrawnError,
    StoreError,
)
from dpcompose.ledger import PEOPLE
from dpcompose.serve import PERMISSIONS, Role
from dpcompose.serve.gate import ROUTES
from dpcompose.serve.web import SAFE
from tests.serve.conftest import TestClient, Town

NONCE = "ab" * 32


def test_every_route_has_a_permission_and_every_cell_is_tried(town: Town):
    assert town.app.endpoints.keys() == {(each.method, each.path) for each in PERMISSIONS.values()}
    scoped = {name for name, each in PERMISSIONS.items() if each.scoped}
    assert scoped == set(ROUTES)
    for name in scoped:
        assert PERMISSIONS[name].roles, name
        for role, token in town.tokens.items():
            own = town.ask(name, token, scope="city").status_code
            assert (own == 403) == (not PERMISSIONS[name].allows(role)), (name, role, own)
            for foreign in ("other", "othernone", "city2", "cit"):
                assert town.ask(name, token, scope=foreign).status_code == 403, (
                    name,
                    role,
                    foreign,
                )
        assert town.ask(name, "x" * 43, scope="city").status_code == 401
        for role in Role:  # whoever has every scope, of one that is not there
            everywhere = town.people.invite("Zoe", role, "")
            assert town.ask(name, everywhere, scope="none").status_code < 500
        assert town.ask(name, "", scope="city").status_code == 401


def test_a_program_changes_the_place_of_the_ledger_and_nothing_else(town: Town):
    there, here = town.account(), Account(town.ledger, scope="city/health")
    assert there.price(Gaussian(30.0)) == here.price(Gaussian(30.0))
    assert there.price(Gaussian(30.0), delta=1e-9) == here.price(Gaussian(30.0), delta=1e-9)
    for account in (there, here):
        receipt = account.charge(Gaussian(30.0), actor="Ada@city", key="mean")
        assert receipt == account.charge(Gaussian(30.0), actor="Ada@city", key="mean")
        account.redeem(receipt, actor="Ada@city", nonce=NONCE)
        account.redeem(receipt, actor="Ada@city", nonce=NONCE)
        with pytest.raises(AlreadyRedeemedError):
            account.redeem(receipt, actor="Ada@city", nonce="cd" * 32)
        with pytest.raises(KeyReusedError):
            account.charge(Gaussian(40.0), actor="Ada@city", key="mean")
        before = account.left()
        with pytest.raises(OverdrawnError) as refusal:
            account.charge(Gaussian(0.1), actor="Ada@city", key="much")
        assert refusal.value.currency == "rho" and refusal.value.requested > refusal.value.left
        assert account.left() == before
    assert town.ledger.verify().entries == 9


def test_a_price_or_an_actor_that_is_sent_is_not_heard(town: Town):
    sent = {
        "scope": "city",
        "mechanism": "Gaussian(10.0)",
        "key": "k",
        "cost": {"rho": "0"},
        "actor": "Eve",
    }
    assert town.ask("charge", town.tokens[Role.ANALYST], **sent).status_code == 200
    (entry,) = [each for each in town.ledger.entries("city") if each.kind == "granted"]
    assert (
        entry.actor == "Ada@city"
        and entry.cost["rho"] >= Account(town.ledger, scope="city").price(Gaussian(10.0))["rho"]
    )


def test_a_key_neither_blocks_nor_reveals_that_of_another(town: Town):
    ben = town.account(token=town.people.invite("Ben", Role.ANALYST, "city/health"))
    mine, theirs = (
        town.account().charge(Gaussian(30.0), key="k"),
        ben.charge(Gaussian(31.0), key="k"),
    )
    assert mine.key != theirs.key and mine.sequence != theirs.sequence
    with pytest.raises(LedgerError):
        ben.redeem(mine, nonce=NONCE)
    shown = town.ask("history", ben.token, scope="city/health").json()["entries"]
    assert [each["actor"] for each in shown] == ["Ben@city/health"]


def test_tokens_expire_are_revoked_and_are_kept_nowhere(
    town: Town, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    keeper = town.tokens[Role.KEEPER]
    made = town.ask("invite", keeper, scope="city/health", name="Ben", role="analyst", days=1)
    token = made.json()["token"]
    assert town.ask("left", token, scope="city/health").status_code == 200
    assert town.ask("left", token, scope="city").status_code == 403
    town.now += 86401
    assert town.ask("left", token, scope="city/health").status_code == 401
    town.now -= 86401  # a clock that is set back gives no token back
    assert town.ask("left", token, scope="city/health").status_code == 401
    again = town.ask(
        "invite", keeper, scope="city/health", name="Ben", role="analyst", days=2
    ).json()["token"]
    assert town.ask("revoke", keeper, scope="city/health", name="Ben").json() == {"revoked": 1}
    assert town.ask("left", again, scope="city/health").status_code == 401
    assert town.ask("left", token, scope="city/health").status_code == 401
    assert town.ask("revoke", keeper, scope="city/health", name="Ben").json() == {
        "revoked": 0
    }  # asked again
    for name, scope in (("Bne", "city/health"), ("ben", "city/health"), ("Ben", "city")):
        wrong = town.ask("revoke", keeper, scope=scope, name=name)
        assert wrong.status_code == 422 and "as they were invited" in wrong.json()["reason"]
    assert (
        town.ask("revoke", keeper, scope="city", name="Ada").status_code == 422
    )  # the last keeper
    written = "".join(each.body for each in town.people.ledger.entries(PEOPLE))
    assert token not in written + caplog.text
    assert token not in repr(town.account(token=token))


def test_what_is_too_large_or_too_fast_is_refused(town: Town):
    headers = {"authorization": f"Bearer {town.tokens[Role.ANALYST]}"}

    direct = Direct(town.app)
    answer = direct.ask(
        "POST", "/v1/charge", headers=headers, body=(b" " * 65536 for _ in range(16384))
    )
    assert answer.status == 413 and answer.read <= 2  # of a gigabyte
    direct.close()
    assert (
        town.client.post(
            "/v1/charge", content=b"", headers={**headers, "content-length": "1000000000"}
        ).status_code
        == 413
    )
    assert town.client.post("/v1/charge", content=b" " * 70000, headers=headers).status_code == 413
    slow = Town(rate=1.0, failures=3.0)
    answers = [
        slow.ask("left", slow.tokens[Role.ANALYST], scope="city").status_code for _ in range(5)
    ]
    assert answers[0] == 200 and answers[-1] == 429
    guesses = [slow.ask("left", "x" * 43, scope="city").status_code for _ in range(5)]
    assert guesses == [401, 401, 401, 429, 429]


def test_a_store_that_vanishes_is_a_503_and_nothing_is_half_done(tmp_path: Path):
    town = Town(url=str(tmp_path / "city.db"))
    town.account().charge(Gaussian(30.0), key="before")
    shutil.copytree(tmp_path, tmp_path / "kept")
    for each in tmp_path.glob("city.db*"):
        each.unlink()
    for name, fields in {"charge": {"mechanism": "Gaussian(30.0)", "key": "k"}}.items():
        answer = town.ask(name, town.tokens[Role.ANALYST], scope="city/health", **fields)
        assert answer.status_code == 503 and str(tmp_path) not in answer.text
    with pytest.raises(StoreError):
        town.account().charge(Gaussian(30.0), key="k")
    town.people.ledger.close()
    assert town.ask("left", town.tokens[Role.ANALYST], scope="city").status_code == 503


def test_pages_escape_names_and_carry_their_headers(town: Town):
    town.account().charge(Gaussian(30.0), key="k", description={"note": "<b>"})
    name = "<script>alert(1)</script>"
    for role in Role:
        token = town.people.invite(name, role, "city")
        client = TestClient(town.app)
        assert (
            client.post("/login", data={"token": token}, follow_redirects=False).status_code == 303
        )
        page = client.get(
            "/", params={"scope": "city", "mechanism": name, "words": name, "verify": "now"}
        )
        assert (
            page.status_code == 200
            and "<script>" not in page.text
            and "&lt;script&gt;" in page.text
        )
        assert (
            page.text.count("<script") == 1
            and " style=" not in page.text
            and " onclick" not in page.text
        )
        assert "other" not in page.text and SAFE.items() <= dict(page.headers).items()
        assert (
            client.post("/v1/charge", json={"scope": "city"}).status_code == 401
        )  # a cookie writes nothing
    crossed = TestClient(town.app).post(
        "/login", data={"token": "x"}, headers={"sec-fetch-site": "cross-site"}
    )
    assert crossed.status_code == 403
    assert SAFE.items() <= dict(town.client.get("/nowhere").headers).items()
    assert "city" not in town.client.get("/metrics").text


def test_fuzzed_requests_find_nothing_and_controls_are_caught():
    statuses, problems = run(1200, seed=1)  # to each of two services
    assert not problems and statuses[200] > 200 and statuses[409] > 10 and statuses[403] > 100, (
        statuses,
        problems[:3],
    )
    for control in CONTROLS.values():
        with control():
            assert any(run(250, seed=seed)[1] for seed in (2, 3, 4))
