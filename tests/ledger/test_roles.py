"""Roles of PostgreSQL: analysts charge and redeem by functions, and whatever else they or auditors try is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from campaigns.ledger.periods import campaign
from campaigns.ledger.server import Server
from dpcompose.account import Account, open_scope
from dpcompose.adaptive import ConcentratedFilter
from dpcompose.errors import DomainError, OverdrawnError, StoreError, UnknownScopeError
from dpcompose.ledger import Ledger
from dpcompose.ledger.text import encode
from dpcompose.mechanism import Gaussian
from dpcompose.report.schemas import schema
from tests.cli.runner import invoke

validate = pytest.importorskip("jsonschema").validate

pytestmark = pytest.mark.server
ADA: dict[str, Any] = {"actor": "ada"}
STRANGE = {
    "numbers": [0, -7, 2.5, 1e-7, 1e16, 0.1, 1e300, 10**50],
    "text": 'é\n"\\\t€😀\x7f',
    "more": [None, True, {}, []],
}


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A ledger with two trees; Ada may charge one scope of the first, Grace one beside it, Eve reads."""
    from dpcompose.ledger.postgres_roles import roles

    found = postgres.create("roles")
    with Ledger.open(found) as ledger:
        open_scope(ledger, "city", filter=ConcentratedFilter(1.0, delta=0), actor="keeper")
        open_scope(ledger, "city/ada", filter=ConcentratedFilter(0.05, delta=0), actor="keeper")
        ledger.scope("city/ada/now", actor="keeper")
        ledger.scope("city/ada2", actor="keeper")
        ledger.scope("other", caps={"epsilon": 1}, actor="keeper")
        ledger.charge("city/ada", cost={"rho": 0, "delta": 0}, key="taken", actor="keeper")
    with pytest.raises(UnknownScopeError):
        roles(found, analysts={"ada": ["nowhere"]}, auditors=[])
    granted = {"analysts": {"ada": ["city/ada"], "grace": ["city/ada2"]}, "auditors": ["eve"]}
    text = roles(found, **granted)
    assert "CREATE ROLE" in text
    assert text == roles(found, **granted, apply=True) == roles(found, **granted, apply=True)
    return found


def _as(url: str, role: str) -> str:
    return url.replace("ledger@", f"{role}@")


def _charge(ledger: Ledger, key: str, rho: float = 0.01, path: str = "city/ada/now") -> Any:
    return ledger.charge(path, cost={"rho": rho, "delta": 0}, key=key, description=STRANGE, **ADA)


def test_an_analyst_charges_and_redeems_like_everybody(url: str) -> None:
    with Ledger.open(_as(url, "ada")) as ledger:
        receipt = Account(ledger, scope="city/ada").charge(Gaussian(20.0), key="é 😀", **ADA)
        ledger.redeem(receipt, nonce="n" * 40, **ADA)
        ledger.redeem(receipt, nonce="n" * 40, **ADA)
        assert _charge(ledger, "b") == _charge(ledger, "b")
        ledger.redeem(_charge(ledger, "b"), **ADA)
        with pytest.raises(OverdrawnError):
            _charge(ledger, "too much", 0.6)
        with pytest.raises(OverdrawnError):
            _charge(ledger, "too much", 0.6)
        assert str(ledger.balance("city/ada").spent["rho"]) == "0.01125"
        ledger.verify()


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_the_functions_decide_as_the_rules_do(seed: int, postgres: Server) -> None:
    """Trees of partitions and filters that renew, charged by an analyst; `verify` decides every entry again."""
    from dpcompose.ledger.postgres_roles import roles

    address = postgres.create(f"renewed{seed}")

    def analyst(root: str) -> str:
        roles(address, analysts={"ada": [root]}, auditors=[], apply=True)
        return _as(address, "ada")

    assert campaign(address, seed=seed, requests=30, analyst=analyst) > 3


WRITES = [
    "UPDATE balance SET spent = '{}'", "UPDATE balance SET closed = 0 WHERE false",
    "DELETE FROM entry", "TRUNCATE entry", "DELETE FROM ledger_right",
    "INSERT INTO entry VALUES ('x', 1, 'x', NULL, NULL, '', '')", "UPDATE scope SET caps = '{\"epsilon\":\"99\"}'",
    "INSERT INTO migration VALUES (9, '')", "INSERT INTO ledger_right VALUES ('ada', 'other')",
    "ALTER TABLE entry DROP COLUMN hash", "DROP TABLE entry", "DROP FUNCTION ledger_append(text)",
    "CREATE TRIGGER t BEFORE INSERT ON entry EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE OR REPLACE FUNCTION ledger_may(place text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE TABLE public.balance2 ()", "SELECT ledger_charge('{}', now()::timestamp)", "SELECT * FROM ledger_right",
    "SELECT 1 FROM balance FOR UPDATE", "LOCK TABLE entry", "SET ROLE ledger", "SET SESSION AUTHORIZATION ledger",
    "ALTER ROLE ada SUPERUSER", "GRANT ledger TO eve", "COPY entry FROM PROGRAM 'true'",
    "SET session_replication_role = replica", "COMMENT ON TABLE entry IS 'mine'", "CREATE INDEX ON entry (hash)",
]  # fmt: skip


@pytest.mark.parametrize("role", ["ada", "eve"])
def test_whatever_else_a_role_tries_is_refused(role: str, url: str) -> None:
    import psycopg

    with Ledger.open(url) as ledger:
        before = ledger.anchor()
    with psycopg.connect(_as(url, role), autocommit=True) as connection:
        for statement in WRITES:
            with pytest.raises(psycopg.Error):
                connection.execute(statement.encode())
                raise AssertionError(statement)
        if role == "eve":
            for called in ("SELECT ledger_append('{}')", "SELECT ledger_lock('city')"):
                with pytest.raises(psycopg.Error, match="permission denied"):
                    connection.execute(called.encode())
    with Ledger.open(url) as ledger:
        assert ledger.verify().anchor == before


def _forged(last: Mapping[str, Any], hash: str) -> Iterator[tuple[str, Any]]:
    """Entries that an analyst may not write, each with one thing wrong; the first has none."""
    own = {
        "actor": "ada", "cost": {"delta": "0", "rho": "0.001"}, "description": {"a": 1.5}, "key": "forged",
        "kind": "granted", "previous": hash, "scope": "city/ada", "sequence": last["sequence"] + 1,
        "time": last["time"], "version": 2,
    }  # fmt: skip
    yield "", own
    ahead = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%S.000000Z}"
    for name, values in {
        "actor": ["grace", "keeper", "Ada", 1, None], "kind": ["opened", "closed", "redeemed", "refused", "", None, 3],
        "previous": ["0" * 64, last["previous"], None, ""],
        "scope": ["city", "city/ada2", "other", "city/ada/", "x", None, "", 7],
        "sequence": [last["sequence"], last["sequence"] + 2, 0, -1, str(last["sequence"] + 1), 1.0, True],
        "time": ["1999-01-01T00:00:00.000000Z", ahead, "9999-12-31T00:00:00.000000Z", "now", last["time"][:-1], 3, None,
                 f"{last['time'][:8]}00T00:00:00.000000Z"],
        "version": [1, 3, "2", None, 2.0], "key": ["", "x\n", "x" * 257, None, 3, "taken"],
        "description": [None, [], "x", 1],
        "cost": [{"rho": each, "delta": "0"} for each in ("-0.1", "0.0010", 0.001, "9", "NaN", "1e-3", " 0", None)]
                + [{}, {"rho": "0.001"}, {"rho": "0.001", "delta": "0", "epsilon": "0"}, None, [], "0"],
    }.items():  # fmt: skip
        yield from ((f"{name} {value!r}", own | {name: value}) for value in values)
        yield f"no {name}", {each: own[each] for each in own if each != name}
    yield "one more name", own | {"more": 1}
    yield "redeems and cost", own | {"redeems": 3}
    short = {"asked": "0.001", "currency": "rho", "left": "0", "scope": "city"}
    yield "a refusal of what fits", own | {"kind": "refused", "short": short}
    large = own | {"kind": "refused", "cost": {"delta": "0", "rho": "9"}}
    yield "a refusal with other numbers", large | {"short": short}
    redeemed = {name: own[name] for name in own if name not in ("cost", "description", "key")} | {"kind": "redeemed"}
    for number in (1, 2, 10**6, 0, -1, "3", 3.5, None):
        yield f"redeems {number}", redeemed | {"redeems": number}
    yield "an odd attempt", redeemed | {"redeems": 6, "attempt": "x"}


def test_no_forged_entry_is_taken(url: str) -> None:
    import psycopg

    with Ledger.open(url) as ledger:
        (*_, last) = ledger.entries("city")
        before = ledger.verify()
    good, *forged = _forged(last.fields, last.hash)
    plain = encode(good[1])
    texts = [(name, encode(each)) for name, each in forged]
    texts += [
        ("blanks", json.dumps(good[1], sort_keys=True)), ("a name twice", f'{{"actor":"ada",{plain[1:]}'),
        ("unsorted", plain.replace('"a":1.5', '"b":1,"a":1.5')), ("other digits", plain.replace("1.5", "1.50")),
        ("an exponent", plain.replace("1.5", "15e-1")),
        ("too many digits", plain.replace("1.5", "0.1000000000000000055")), ("no JSON", plain[:-1]),
        ("plus nothing", plain.replace("1.5", "-0")), ("an escape", plain.replace('"a"', '"\\u0061"')),
        ("letters", plain.replace('"a"', '"é"')), ("nothing", ""), ("a list", "[]"),
        ("NaN", plain.replace("1.5", "NaN")),
        ("half a pair", plain.replace('"a"', '"\\ud800"')), ("zero", plain.replace('"a"', '"\\u0000"')),
        ("an integer of Python's limit", plain.replace("1.5", "9" * 5000)),
        ("deep", plain.replace("1.5", "[" * 900 + "]" * 900)), ("deeper", plain.replace("1.5", "[" * 40 + "]" * 40)),
        ("long", plain.replace('"a"', f'"{"a" * 10**5}"')), ("blank at the end", f"{plain} "),
    ]  # fmt: skip
    with psycopg.connect(_as(url, "ada"), autocommit=True) as connection:
        for name, text in texts:
            with pytest.raises(psycopg.Error):
                connection.execute("SELECT ledger_append(%s)", (text,))
                raise AssertionError(name)
        with psycopg.connect(_as(url, "ada"), autocommit=True) as other:
            for setting in ("standard_conforming_strings = off", "extra_float_digits = -15", "DateStyle = 'SQL, DMY'"):
                other.execute(f"SET {setting}".encode())
            for number in ("1e5", "1.50", "0.10", "0.30000000000000004441", "150e-2"):
                with pytest.raises(psycopg.Error):
                    other.execute("SELECT ledger_append(%s)", (plain.replace("1.5", number),))
                    raise AssertionError(number)
        with psycopg.connect(url, autocommit=True) as keeper:  # the functions read texts alike in every session
            keeper.execute("SET standard_conforming_strings = off")
            with pytest.raises(psycopg.Error, match="not written as entries are"):
                keeper.execute("SELECT ledger_number('1e5')")
        for level in ("REPEATABLE READ", "SERIALIZABLE"):
            connection.execute(f"SET default_transaction_isolation = '{level}'".encode())
            connection.execute("SET search_path = pg_temp")
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS balance (root text, path text, spent text)")
            with pytest.raises(psycopg.Error, match="does not fit"):
                connection.execute("SELECT public.ledger_append(%s)", (plain.replace("0.001", "0.9"),))
        with Ledger.open(url) as ledger:
            assert ledger.verify() == before
        connection.execute("SELECT public.ledger_append(%s)", (plain,))  # the control: what is right is taken
    with Ledger.open(url) as ledger:
        assert ledger.verify().entries == before.entries + 1


def test_rights_are_of_scopes_and_can_be_withdrawn(url: str) -> None:
    with Ledger.open(_as(url, "grace")) as ledger:
        for path in ("city", "city/ada", "city/ada/now", "other"):
            cost = {"epsilon": 0} if path == "other" else {"rho": 0, "delta": 0}
            with pytest.raises(StoreError, match=f"grace may not charge {path}"):
                ledger.charge(path, cost=cost, actor="grace", key=path)
        with pytest.raises(StoreError, match="the actor is grace"):
            ledger.charge("city/ada2", cost={"rho": 0, "delta": 0}, actor="ada", key="as Ada")
        for write in (
            lambda: ledger.scope("city/ada2/own", actor="grace"),
            lambda: ledger.close_scope("city/ada2", actor="grace", key="close"),
        ):
            with pytest.raises(StoreError, match="analysts charge and redeem"):
                write()
        ledger.charge("city/ada2", cost={"rho": 0, "delta": 0}, actor="grace", key="own")
        asked = ["ledger", "roles", "--ledger", url, "--withdraw", "grace", "--apply", "--json"]
        document = json.loads(invoke(asked).stdout)
        validate(document, schema("ledger roles"))
        assert document["applied"] is True
        with pytest.raises(StoreError):
            ledger.charge("city/ada2", cost={"rho": 0, "delta": 0}, actor="grace", key="later")


def test_names_that_no_role_can_have(url: str) -> None:
    from dpcompose.ledger.postgres_roles import roles

    for bad in ("", "x" * 64, "a\nb", "é" * 32):
        with pytest.raises(DomainError, match="role"):
            roles(url, analysts={}, auditors=[bad])
    with pytest.raises(DomainError, match="one list"):
        roles(url, analysts={"ada": []}, auditors=["ada"])
    text = roles(url, analysts={}, auditors=['"; DROP TABLE entry; --', "o'hara"])
    assert 'TO """; DROP TABLE entry; --";' in text
    assert "rolname = 'o''hara'" in text
