"""One machine of states drives every store and an exact model: all of them always agree, to the byte of the hashes."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from campaigns.ledger.list_store import ListStore
from campaigns.ledger.model import DONE, Model, Outcome
from campaigns.ledger.server import Server
from dpcompose.errors import LedgerError, OverdrawnError
from dpcompose.ledger import Anchor, Ledger, Receipt

AMOUNTS = ["0", "0.1", "0.2", "0.3", "1", "1e-30", "0.7", "1e-40"]
CURRENCIES = ["delta", "epsilon", "rho"]
COSTS = st.dictionaries(st.sampled_from(CURRENCIES), st.sampled_from(AMOUNTS), max_size=3)
PATHS = [
    f"{root}{a}{b}{c}"
    for root in "wv"
    for a in ("", "/a", "/b")
    for b in ("", "/a", "/b")
    for c in ("", "/a")
]
PATHS = sorted({path for path in PATHS if "//" not in path})
KEYS = [f"key {number}" for number in range(8)]


def exact(costs: dict[str, str] | None) -> dict[str, Fraction]:
    return {name: Fraction(text) for name, text in (costs or {}).items()}


def paged(ledger: Ledger) -> list[str]:
    """The paths of all scopes, two of them at a time."""
    paths: list[str] = []
    while True:
        with ledger.moment() as moment:
            page = moment.some_balances(None, after=paths[-1] if paths else "", limit=2)
        paths += [each.scope.path for each in page]
        if len(page) < 2:
            return paths


class Agreement(RuleBasedStateMachine):
    """The same requests to every store."""

    openers: tuple[Callable[[Path], str], ...] = ()
    prepare: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self) -> None:
        super().__init__()
        self.prepare()
        self.folder = Path(tempfile.mkdtemp())
        self.urls = [opener(self.folder) for opener in self.openers]
        self.ledgers = [
            Ledger(ListStore()) if url == "lists" else Ledger.open(url) for url in self.urls
        ]
        self.model = Model()
        self.receipts: dict[tuple[str, str], list[Receipt]] = {}
        self.anchors: list[Anchor] = []

    def everywhere(self, ask: Callable[[Ledger], Any], expected: Outcome) -> list[Any]:
        """What every store answers, which must be what the model expects."""
        answers: list[Any] = []
        for ledger in self.ledgers:
            try:
                answers.append(ask(ledger))
                found = DONE
            except OverdrawnError as error:
                asked, left = (Fraction(str(amount)) for amount in (error.requested, error.left))
                found = Outcome("OverdrawnError", (error.scope, error.currency, asked, left))
            except LedgerError as error:
                found = Outcome(type(error).__name__)
            assert found == expected, ledger.store.url
        assert all(answer == answers[0] for answer in answers)
        return answers

    @rule(
        path=st.sampled_from(PATHS),
        kind=st.sampled_from(["filter", "filter", "slots", "partition"]),
        caps=st.none() | COSTS,
        cost=COSTS,
        slots=st.integers(1, 2),
        exactly=st.booleans(),
    )
    def open(
        self,
        path: str,
        kind: str,
        caps: dict[str, str] | None,
        cost: dict[str, str],
        slots: int,
        exactly: bool,
    ) -> None:
        above = path.rpartition("/")[0]
        given: dict[str, Any] = {"kind": kind, "caps": caps}
        if kind == "slots":
            if exactly and above in self.model.places:
                cost = dict.fromkeys(sorted(self.model.currencies(above)), "0.1")
            given |= {"slots": slots, "cost": cost, "caps": caps or {"rho": "0.3"}}
        elif exactly and above in self.model.places and self.model.places[above].kind == "slots":
            given["caps"] = None
        expected = self.model.open(
            path,
            kind,
            None if given["caps"] is None else exact(given["caps"]),
            given.get("slots"),
            exact(given.get("cost")),
            request=repr(given),
        )
        self.everywhere(lambda ledger: ledger.scope(path, actor="Ada", **given), expected)

    @rule(
        path=st.sampled_from(PATHS),
        cost=COSTS,
        exactly=st.booleans(),
        key=st.sampled_from(KEYS),
        data=st.data(),
    )
    def charge(
        self, path: str, cost: dict[str, str], exactly: bool, key: str, data: st.DataObject
    ) -> None:
        if exactly and path in self.model.places:
            cost = {
                name: data.draw(st.sampled_from(AMOUNTS))
                for name in sorted(self.model.currencies(path))
            }
        expected = self.model.charge(path, exact(cost), key, request=(path, exact(cost)))
        answers = self.everywhere(
            lambda ledger: ledger.charge(path, cost=cost, actor="Bob", key=key), expected
        )
        root = path.split("/", maxsplit=1)[0]
        if expected == DONE:
            earlier = self.receipts.setdefault((root, key), answers)
            assert [receipt.to_json() for receipt in answers] == [
                receipt.to_json() for receipt in earlier
            ]

    @rule(data=st.data(), attempt=st.sampled_from(["", "a" * 32, "b" * 32]), stranger=st.booleans())
    def redeem(self, data: st.DataObject, attempt: str, stranger: bool) -> None:
        if self.receipts:
            root, key = data.draw(st.sampled_from(sorted(self.receipts)))
            receipt = Receipt.read(self.receipts[root, key][0].to_json())
            given: dict[str, Any] = {
                "actor": "Eve" if stranger else "Bob",
                "nonce": attempt or None,
            }
            expected = (
                Outcome("ReceiptError") if stranger else self.model.redeem(root, key, attempt)
            )
            self.everywhere(lambda ledger: ledger.redeem(receipt, **given), expected)

    @rule(data=st.data(), sequence=st.integers(1, 9))
    def redeem_what_was_never_given(self, data: st.DataObject, sequence: int) -> None:
        forged = Receipt(
            "w", sequence, "key 0", "Bob", next(iter(self.forgeries())), "2030-01-01", "0" * 64
        )
        self.everywhere(lambda ledger: ledger.redeem(forged, actor="Bob"), Outcome("ReceiptError"))

    def forgeries(self) -> Any:
        yield from (receipt[0].cost for receipt in self.receipts.values())
        from dpcompose.ledger import Amounts

        yield Amounts.of({"epsilon": 1})

    @rule(path=st.sampled_from(PATHS), key=st.sampled_from(KEYS))
    def close_scope(self, path: str, key: str) -> None:
        expected = self.model.close(path, key, request=("close", path))
        self.everywhere(lambda ledger: ledger.close_scope(path, actor="Eve", key=key), expected)

    @rule()
    def open_the_files_again(self) -> None:
        for place, url in enumerate(self.urls):
            if url not in ("lists", "memory:"):
                self.ledgers[place].close()
                self.ledgers[place] = Ledger.open(url, create=False)

    @rule()
    def keep_an_anchor(self) -> None:
        self.anchors.append(self.ledgers[0].anchor())

    @invariant()
    def balances_are_those_of_the_model(self) -> None:
        for ledger in self.ledgers:
            balances = {balance.scope.path: balance for balance in ledger.balances()}
            assert balances.keys() == self.model.places.keys()
            for path, balance in balances.items():
                place, spent = self.model.places[path], self.model.spent(path)
                expected = {name: spent.get(name, Fraction(0)) for name in balance.spent}
                assert {name: amount.fraction for name, amount in balance.spent.items()} == expected
                assert (balance.closed, balance.scope.kind) == (place.closed, place.kind)
        assert not list(self.model.over())

    def teardown(self) -> None:
        try:
            for ledger in self.ledgers:
                assert paged(ledger) == [each.scope.path for each in ledger.balances()]
            histories = [
                [
                    entry
                    for root in ledger.scopes()
                    if root.parent is None
                    for entry in ledger.entries(root.path)
                ]
                for ledger in self.ledgers
            ]
            assert all(history == histories[0] for history in histories)
            for ledger in self.ledgers:
                for anchor in self.anchors:
                    assert ledger.verify(anchor).anchored
                assert ledger.verify().anchor == self.ledgers[0].anchor()
        finally:
            for ledger in self.ledgers:
                ledger.close()
            shutil.rmtree(self.folder)


@pytest.fixture
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every store writes the same times, hence the same hashes."""
    for module in ("dpcompose.ledger.batch", "campaigns.ledger.list_store"):
        monkeypatch.setattr(f"{module}.now", lambda last: "2030-01-01T00:00:00.000000Z")


@pytest.mark.slow
@pytest.mark.usefixtures("standing_clock")
def test_lists_memory_and_sqlite_agree_with_the_model() -> None:
    class Local(Agreement):
        openers = (lambda _: "lists", lambda _: "memory:", lambda folder: str(folder / "ledger.db"))

    run_state_machine_as_test(
        Local, settings=settings(max_examples=30, stateful_step_count=40, deadline=None)
    )


@pytest.mark.usefixtures("standing_clock")
def test_postgres_agrees_too(postgres: Server) -> None:
    url, counter = postgres.create("agreement"), itertools.count()

    def empty() -> None:
        import psycopg

        if next(counter):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("TRUNCATE scope, balance, entry")

    class Everywhere(Agreement):
        openers = (
            lambda _: "lists",
            lambda _: "memory:",
            lambda folder: f"sqlite:///{folder / 'ledger.db'}",
            lambda _: url,
        )
        prepare = staticmethod(empty)

    run_state_machine_as_test(
        Everywhere, settings=settings(max_examples=13, stateful_step_count=30, deadline=None)
    )
