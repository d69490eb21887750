"""Long logs are read page by page."""

from __future__ import annotations

import pytest

from dpcompose import Gaussian
from dpcompose.errors import DomainError
from dpcompose.ledger import Entry
from dpcompose.serve import Role, queue
from tests.serve.conftest import Town


@pytest.fixture
def long(town: Town, monkeypatch: pytest.MonkeyPatch) -> Town:
    for name, value in (("WINDOW", 7), ("MOST_ENTRIES", 3), ("FOLLOWED", 4)):
        monkeypatch.setattr(queue, name, value)
    for number in range(20):
        account = town.account(scope="city" if number % 3 else "city/health")
        account.charge(Gaussian(500.0), key=str(number))
    return town


def change(town: Town, statement: str) -> None:
    """Change the stored rows behind the ledger's back."""
    with town.ledger.store.snapshot() as tables:
        tables.rows.run(statement)  # type: ignore[attr-defined]


def test_every_entry_is_on_one_page(long: Town):
    kept = [each.sequence for each in long.ledger.entries("city") if each.kind == "granted"]
    assert [each["sequence"] for each in long.account(scope="city").history()] == kept[::-1]
    own = [each.sequence for each in long.ledger.entries("city/health") if each.kind == "granted"]
    assert [each["sequence"] for each in long.account().history()] == own[::-1]
    first = long.ask("entries", long.tokens[Role.AUDITOR], scope="city").json()
    assert len(first["entries"]) == 3 and first["before"] == first["entries"][-1]["sequence"]
    for before in ("-1", "x", "1.5", "9" * 30, ""):
        assert (
            long.ask("entries", long.tokens[Role.AUDITOR], scope="city", before=before).status_code
            == 422
        )
    assert (
        long.ask("entries", long.tokens[Role.AUDITOR], scope="city", before="0").json()["before"]
        is None
    )


def test_a_tree_is_verified_in_several_requests(long: Town, monkeypatch: pytest.MonkeyPatch):
    auditor = long.account(Role.AUDITOR, scope="city")
    found = auditor.verify()
    assert found["done"] and found["agrees"] and found["entries"] == 22
    assert found["hash"] == dict(long.ledger.anchor().heads)["city"].hash
    first = long.ask("verify", auditor.token, scope="city", after=0).json()
    assert first == {"agrees": True, "done": False, "followed": 4, "entries": 22}
    with pytest.raises(DomainError):
        auditor._request("GET", "verify", after=5)
    change(
        long, "UPDATE entry SET body = replace(body, 'Ada@city', 'Eve@city') WHERE sequence = 10"
    )
    assert not auditor.verify()["agrees"]
    change(
        long, "UPDATE entry SET body = replace(body, 'Eve@city', 'Ada@city') WHERE sequence = 10"
    )
    assert auditor.verify()["agrees"]
    caps = "SELECT caps FROM scope WHERE path = 'city'"
    change(long, f"UPDATE balance SET spent = ({caps}) WHERE path = 'city'")
    assert not auditor.verify()["agrees"]
    assert isinstance(next(long.ledger.entries("city")), Entry)


def test_balances_come_in_pages(town: Town, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dpcompose.serve.service.PAGE", 2)
    for path in ("city/health-2", "city/health/a", "city/health/b", "city/health=x"):
        town.ledger.scope(path, actor="keeper")
    every = {each.scope.path for each in town.ledger.balances("city")}
    listed: list[str] = []
    after: str | None = ""
    while after is not None:
        token = town.tokens[Role.AUDITOR]
        page = town.ask("balances", token, scope="city", after=after).json()
        listed += [each["scope"] for each in page["balances"]]
        after = page["after"]
    assert set(listed) == every and len(listed) == len(every) > 4
