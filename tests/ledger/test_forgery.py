"""What was not made by the rules is found: amounts, receipts and texts from outside, rows and entries made by hand."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dpcompose.errors import CurrencyError, DomainError, OverdrawnError, StoreError, TamperedError
from dpcompose.ledger import Amount, Amounts, Ledger, Receipt
from dpcompose.ledger.amount import encode


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with one charge of a half."""
    made = tmp_path / "ledger.db"
    with Ledger.open(made) as ledger:
        ledger.scope("world", caps={"epsilon": 1}, actor="Ada")
        ledger.charge("world", cost={"epsilon": "0.5"}, actor="Ada", key="first")
    return made


@pytest.mark.parametrize("units", [-1, -(10**40), 10**80, 0.5, True, "1", None, 10**81])
def test_no_amount_is_made_of_units_that_are_none(units: Any) -> None:
    with pytest.raises(DomainError, match="integer of at least 0"):
        Amount(units)
    with pytest.raises(DomainError, match="units of epsilon"):
        Amounts({"epsilon": units})


@pytest.mark.parametrize("name", ['a":"0","b', "", "epsilon\n", "slots", "\u202e", 7])
def test_no_vector_is_made_of_names_that_are_none(name: Any) -> None:
    with pytest.raises(DomainError, match="currency"):
        Amounts({name: 1})


def test_a_number_too_long_to_print_is_told_in_words(path: Path) -> None:
    with Ledger.open(path) as ledger:
        for amount in [10**5000, -(10**5000)]:
            with pytest.raises(DomainError, match="hundreds of digits"):
                ledger.charge("world", cost={"epsilon": amount}, actor="Ada", key="long")
        with pytest.raises(DomainError, match="hundreds of digits"):
            ledger.scope("other", kind="slots", slots=10**5000, caps={"rho": 1}, actor="Ada")


@pytest.mark.parametrize(
    "changed",
    [{"sequence": 2.0}, {"sequence": True}, {"sequence": 10**30}, {"sequence": [2]}, {"sequence": "2"},
     {"scope": 7}, {"scope": "\ud800"}, {"scope": "world\n"}],
)  # fmt: skip
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_no_receipt_of_another_type_is_redeemed(
    changed: dict[str, Any], store: str, tmp_path: Path
) -> None:
    with Ledger.open("memory:" if store == "memory" else tmp_path / "ledger.db") as ledger:
        ledger.scope("world", caps={"epsilon": 1}, actor="Ada")
        receipt = ledger.charge("world", cost={"epsilon": "0.5"}, actor="Ada", key="first")
        with pytest.raises(DomainError):
            ledger.redeem(replace(receipt, **changed), actor="Ada")
        with pytest.raises(DomainError):
            ledger.redeem(
                Receipt.read(json.dumps(json.loads(receipt.to_json()) | changed)), actor="Ada"
            )
        ledger.redeem(receipt, actor="Ada")
        assert ledger.verify().entries == 3


@pytest.mark.parametrize(
    "description", [{"\ud83d\ude00": 1, "\uffff": 2}, {"text": "\ud800"}, {"list": [{"\udfff": 0}]}]
)
def test_halves_of_characters_are_no_text(description: dict[str, Any], path: Path) -> None:
    """JSON joins two halves: the names would sort otherwise when they are read, and the hash would not be met again."""
    with Ledger.open(path) as ledger:
        with pytest.raises(DomainError, match="lone surrogates"):
            ledger.scope("other", description=description, actor="Ada")
        ledger.scope("other", description={"\U0001f600": 1, "\uffff": "\U0001f600"}, actor="Ada")
        ledger.verify()


@pytest.mark.parametrize("after", [-1, 10**30, "x", None, 1.5, True])
def test_entries_after_what_is_no_number(after: Any, path: Path) -> None:
    with Ledger.open(path) as ledger:
        with pytest.raises(DomainError, match="after"):
            ledger.entries("world", after)
        assert len(list(ledger.entries("world"))) == 2


def _changed(path: Path, statement: str, *values: object) -> Path:
    copy = path.with_name("changed.db")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute(statement, values)
    return copy


@pytest.mark.parametrize(
    ("column", "value"),
    [("spent", "{}"), ("spent", '{"epsilon":"-1"}'), ("spent", '{"epsilon":"7"}'), ("spent", '{"epsilon":"0.50"}'),
     ("spent", '{"epsilon":"1e-3"}'), ("spent", '{"epsilon":"1","epsilon":"0.5"}'), ("spent", '{ "epsilon":"0.5"}'),
     ("taken", -1), ("taken", 2.5), ("taken", 1), ("closed", 7)],
)  # fmt: skip
def test_a_balance_that_no_rule_writes_is_no_balance(
    column: str, value: object, path: Path
) -> None:
    with Ledger.open(_changed(path, f"UPDATE balance SET {column} = ?", value)) as ledger:
        for ask in (
            lambda: ledger.balance("world").left,
            lambda: ledger.charge("world", cost={"epsilon": "0.1"}, actor="Ada", key="next"),
            lambda: ledger.charge("world", cost={}, actor="Ada", key="free"),
            ledger.verify,
        ):
            with pytest.raises(TamperedError):
                ask()


@pytest.mark.parametrize(
    "caps", ['{"epsilon":"9","epsilon":"1"}', '{"epsilon": "1"}', '["epsilon"]', "7"]
)
def test_caps_that_are_not_as_they_were_written_are_none(caps: str, path: Path) -> None:
    assert Amounts.of({"epsilon": 1}).text == '{"epsilon":"1"}'
    with Ledger.open(_changed(path, "UPDATE scope SET caps = ?", caps)) as ledger:
        for ask in (lambda: ledger.balance("world"), ledger.verify):
            with pytest.raises(TamperedError):
                ask()


@pytest.mark.parametrize(
    "body", ["x", "[]", "{}", "7", "[" * 100_000, '{"cost":{"epsilon":"half"}}']
)
def test_an_entry_that_is_none_is_tampering_to_every_reader(body: str, path: Path) -> None:
    with Ledger.open(
        _changed(path, "UPDATE entry SET body = ? WHERE sequence = 2", body)
    ) as ledger:
        receipt = Receipt("world", 2, "first", "Ada", Amounts.of({"epsilon": "0.5"}), "now", "0")
        entry = list(ledger.entries("world"))[-1]
        for ask in (
            lambda: ledger.redeem(receipt, actor="Ada"),
            lambda: (entry.cost, entry.kind),
            lambda: (entry.cost, entry.sequence),
            ledger.verify,
        ):
            with pytest.raises(TamperedError):
                ask()


def _forged(ledger: Ledger, changes: dict[str, Any], write: Any = encode) -> None:
    """One more charge, made by hand, its hash right and the balance with it."""
    store: Any = ledger.store
    sequence, head = ledger.anchor().heads[0][1].sequence + 1, ledger.anchor().heads[0][1].hash
    fields = dict(list(ledger.entries("world"))[1].fields)
    fields |= {"previous": head, "sequence": sequence, "key": "forged", **changes}
    body = write({name: value for name, value in fields.items() if value is not ...})
    row = ("world", sequence, "world", fields["key"], None, body, sha256(body.encode()).hexdigest())
    store._writer.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _with_spaces(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True)


def _twice(fields: dict[str, Any]) -> str:
    return encode(fields).replace(
        '"cost":{"epsilon":"0"}', '"cost":{"epsilon":"0.5"},"cost":{"epsilon":"0"}'
    )


@pytest.mark.parametrize(
    ("changes", "write"),
    [({"cost": {"epsilon": "-1"}}, encode), ({"cost": {"epsilon": "-0.5"}}, encode), ({"version": 1}, encode),
     ({"version": 3}, encode), ({"time": "1999-12-31T23:59:59.999999Z"}, encode), ({"time": "later"}, encode),
     ({"more": 1}, encode), ({"description": ...}, encode), ({}, _with_spaces), ({}, _twice)],
)  # fmt: skip
def test_a_forged_charge_is_found_though_every_hash_is_right(
    changes: dict[str, Any], write: Any, path: Path
) -> None:
    with Ledger.open(path) as ledger:
        _forged(ledger, {"cost": {"epsilon": "0"}})  # what a client may ask is followed
        ledger.verify()
        _forged(ledger, {"cost": {"epsilon": "0"}, "key": "second"} | changes, write)
        with pytest.raises(TamperedError, match="world: entry 4 "):
            ledger.verify()


@pytest.mark.parametrize("name", ["sqliteXstat", "SQLITE-STAT", "sqlite_stat1"])
def test_no_trigger_hides_behind_a_name(name: str, path: Path) -> None:
    try:
        copy = _changed(path, f'CREATE TRIGGER "{name}" AFTER INSERT ON entry BEGIN SELECT 1; END')
    except sqlite3.OperationalError:
        return  # SQLite keeps these names for itself
    with Ledger.open(copy) as ledger, pytest.raises(TamperedError, match=name):
        ledger.verify()


@pytest.mark.parametrize("on", ["UPDATE ON balance", "INSERT ON entry"])
def test_a_trigger_that_swallows_a_write_fails_the_charge(on: str, path: Path) -> None:
    ignore = f"CREATE TRIGGER swallows BEFORE {on} BEGIN SELECT RAISE(IGNORE); END"
    with Ledger.open(_changed(path, ignore)) as ledger:
        with pytest.raises(TamperedError, match="wrote 0 rows instead of 1"):
            ledger.charge("world", cost={"epsilon": "0.5"}, actor="Ada", key="next")
        assert str(ledger.balance("world").spent["epsilon"]) == "0.5"
        assert len(list(ledger.entries("world"))) == 2


def test_what_a_store_remembers_is_not_believed(path: Path) -> None:
    """A balance that another connection changed is read again, whatever this one has parsed before."""
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        for number in range(4):
            each = (ledger, other)[number % 2]
            each.charge("world", cost={"epsilon": "0.1"}, actor="Ada", key=str(number))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("""UPDATE balance SET spent = '{"epsilon":"1"}'""")
        with pytest.raises(OverdrawnError, match="0 left"):
            ledger.charge("world", cost={"epsilon": "0.1"}, actor="Ada", key="over")
        with pytest.raises(TamperedError):
            ledger.verify()


def test_a_currency_of_a_cap_cannot_go_missing() -> None:
    with Ledger.open("memory:") as ledger:
        ledger.scope("world", caps={"epsilon": 1}, actor="Ada")
        with pytest.raises(CurrencyError):
            ledger.charge("world", cost=Amounts({}), actor="Ada", key="none")


@pytest.mark.parametrize("how", ["replaced", "deleted", "moved"])
def test_a_file_that_is_no_longer_there_takes_no_charges(how: str, path: Path) -> None:
    older = path.with_name("older.db")
    shutil.copy(path, older)
    with Ledger.open(path) as ledger:
        ledger.charge("world", cost={"epsilon": "0.1"}, actor="Ada", key="second")
        {
            "replaced": lambda: older.replace(path),
            "deleted": path.unlink,
            "moved": lambda: path.rename(older),
        }[how]()
        for _ in range(2):
            with pytest.raises(StoreError, match="moved, replaced or deleted"):
                ledger.charge("world", cost={"epsilon": "0.1"}, actor="Ada", key="third")
            with pytest.raises(StoreError, match="moved, replaced or deleted"):
                ledger.balance("world")


def test_a_file_of_two_names_is_refused(path: Path) -> None:
    other = path.with_name("other.db")
    other.hardlink_to(path)
    for each in (path, other):
        with pytest.raises(StoreError, match="2 names"):
            Ledger.open(each)
    other.unlink()
    Ledger.open(path).close()
