"""The PostgreSQL store: servers that may lose what they acknowledge are refused; lost connections are told."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg")

from campaigns.ledger.processes import in_threads
from campaigns.ledger.server import Server, server
from dpcompose.errors import (
    DomainError,
    NewerSchemaError,
    OverdrawnError,
    StoreError,
    TamperedError,
)
from dpcompose.ledger import Ledger
from dpcompose.ledger.postgres import PostgresRows, differences


@pytest.fixture
def url(postgres: Server, tmp_path: Path) -> str:
    """A database of its own."""
    return postgres.create(tmp_path.name)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger.open(url) as opened:
        opened.scope("world", caps={"epsilon": 10}, actor="Ada")
        yield opened


def _charge(ledger: Ledger, key: str, path: str = "world") -> Any:
    return ledger.charge(path, cost={"epsilon": 0.1}, actor="Ada", key=key)


def _execute(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "synchronous_commit"])
def test_a_server_that_may_lose_commits_is_refused(
    setting: str, postgres: Server, url: str
) -> None:
    if setting == "synchronous_commit":
        with pytest.raises(StoreError, match="synchronous_commit is off"):
            Ledger.open(f"{url}&options=-csynchronous_commit%3Doff")
        return
    with server(f"{setting}=off") as weak, pytest.raises(StoreError, match=f"{setting} is off"):
        Ledger.open(weak.url())


def test_a_server_that_is_not_there(tmp_path: Path, postgres: Server) -> None:
    with pytest.raises(StoreError, match="cannot be reached") as raised:
        Ledger.open(f"postgresql://someone:secret@/nowhere?host={tmp_path}")
    assert "secret" not in str(raised.value)
    with pytest.raises(DomainError) as refused:
        Ledger.open("postgresql://someone:secret@host:port/database")
    assert "secret" not in str(refused.value)


def test_a_server_that_lets_nobody_in_is_quoted(postgres: Server) -> None:
    for url in (
        postgres.url("nosuch"),
        postgres.url("nosuch").replace("ledger@", "ledger:secret@"),
    ):
        for create in (True, False):
            with pytest.raises(StoreError, match='database "nosuch" does not exist') as raised:
                Ledger.open(url, create=create)
            said = str(raised.value)
            assert (
                "cannot be reached" not in said
                and "secret" not in said
                and not raised.value.uncertain
            )
    with pytest.raises(StoreError, match='role "nobody" does not exist'):
        Ledger.open(postgres.url().replace("ledger@", "nobody@"))


def test_databases_that_are_no_ledger_or_a_newer_one(url: str, postgres: Server) -> None:
    with pytest.raises(StoreError, match="no ledger here"):
        Ledger.open(url, create=False)
    with Ledger.open(url):
        pass
    _execute(url, "INSERT INTO migration VALUES (99, 'from the future')")
    with pytest.raises(NewerSchemaError):
        Ledger.open(url)
    foreign = postgres.create("foreign")
    _execute(foreign, "CREATE TABLE mine (x int)")
    with pytest.raises(StoreError, match="no ledger"):
        Ledger.open(foreign)


@pytest.mark.server
def test_a_server_that_crashes_loses_nothing(tmp_path: Path) -> None:
    with server() as running:
        url = running.create("crash")
        with Ledger.open(url) as ledger:
            ledger.scope("world", caps={"epsilon": 1000}, actor="Ada")
            for number in range(50):
                _charge(ledger, str(number))
            pid = int((running.home / "data" / "postmaster.pid").read_text().split()[0])
            _kill_all(pid)
            with pytest.raises(StoreError):
                _charge(ledger, "while it is down")
            process = running.start()
            try:
                receipt = _charge(ledger, "while it is down")
                assert _charge(ledger, "while it is down") == receipt
                assert str(ledger.balance("world").spent["epsilon"]) == "5.1"
                ledger.verify()
            finally:
                ledger.close()
                running.stop(process)


def _kill_all(postmaster: int) -> None:
    """kill -9 the server and its children, and wait for it."""
    children = [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and f"\nPPid:\t{postmaster}\n" in _status(path)
    ]
    for pid in [postmaster, *children]:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(postmaster, 0)
    for _ in range(100):
        if not any(
            _status(Path(f"/proc/{pid}")) and "zombie" not in _status(Path(f"/proc/{pid}"))
            for pid in children
        ):
            break
        time.sleep(0.05)


def _status(path: Path) -> str:
    try:
        return (path / "status").read_text()
    except OSError:
        return ""


def test_two_processes_open_one_root_at_once(url: str) -> None:
    ledgers = [Ledger.open(url) for _ in range(8)]
    failed: list[BaseException] = []

    def work(ledger: Ledger, number: int) -> None:
        try:
            for root in range(5):
                ledger.scope(f"root{root}", caps={"epsilon": 10}, actor="Ada")
                _charge(ledger, f"{number}", f"root{root}")
        except BaseException as error:
            failed.append(error)

    threads = [
        threading.Thread(target=work, args=each) for each in zip(ledgers, range(8), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert ledgers[0].verify().entries == 5 * 9
    for ledger in ledgers:
        ledger.close()


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE balance SET spent = \'{"epsilon":"0"}\'',
        'UPDATE scope SET caps = \'{"epsilon":"11"}\'',
        "UPDATE entry SET body = replace(body, '0.1', '0.0') WHERE sequence = 2",
        "UPDATE entry SET key = 'other' WHERE sequence = 2",
        "DELETE FROM entry WHERE sequence = 3",
        "DELETE FROM scope",
        "DELETE FROM balance",
        "DELETE FROM migration",
        "DROP INDEX key_is_used_once",
        "INSERT INTO balance VALUES ('a', 'a', '{}', 0, 0)",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; "
        "CREATE TRIGGER quiet BEFORE UPDATE ON balance FOR EACH ROW EXECUTE FUNCTION f()",
    ],
)
def test_tampering_is_found(ledger: Ledger, url: str, statement: str) -> None:
    for number in range(3):
        _charge(ledger, str(number))
    anchor = ledger.anchor()
    ledger.verify(anchor)
    _execute(url, statement)
    with pytest.raises(TamperedError):
        ledger.verify(anchor)


# What an acknowledgment rests on


def test_a_commit_that_no_standby_confirmed_is_uncertain(postgres: Server, tmp_path: Path) -> None:
    """There is none: every wait is cancelled. Neither the charge nor the same request once more is acknowledged."""
    with (
        server("synchronous_standby_names=*") as alone,
        _cancelling(alone),
        Ledger.open(alone.url()) as ledger,
    ):
        for ask in (_open, _open, _charge_once, _charge_once):
            with pytest.raises(StoreError, match="committed with a warning") as raised:
                ask(ledger)
            assert raised.value.uncertain


def _open(ledger: Ledger) -> None:
    ledger.scope("world", caps={"epsilon": 10}, actor="Ada")


def _charge_once(ledger: Ledger) -> None:
    _charge(ledger, "once")


@contextmanager
def _cancelling(running: Server) -> Iterator[None]:
    done = threading.Event()

    def cancel() -> None:
        while not done.wait(0.02):
            _execute(
                running.url(),
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
            )

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("value", ["off", "local", "remote_write"])
def test_a_level_of_commit_below_on_is_refused(url: str, value: str) -> None:
    with pytest.raises(StoreError, match=f"synchronous_commit is {value}"):
        Ledger.open(f"{url}&options=-csynchronous_commit%3D{value}")
    _execute(url, f"ALTER ROLE ledger IN DATABASE {_quoted(url)} SET synchronous_commit = {value}")
    with pytest.raises(StoreError, match=f"synchronous_commit is {value}"):
        Ledger.open(url)


def _quoted(url: str) -> str:
    return '"' + url.partition("@/")[2].partition("?")[0] + '"'


def test_warnings_are_asked_for(url: str) -> None:
    """A client that is told of errors only would take a cancelled wait for a commit."""
    with (
        Ledger.open(f"{url}&options=-cclient_min_messages%3Derror") as ledger,
        ledger.store._pool.connection() as connection,  # type: ignore[attr-defined]
    ):
        (level,) = connection.execute("SHOW client_min_messages").fetchone()
    assert level == "warning"


def test_settings_are_looked_at_in_every_transaction(ledger: Ledger) -> None:
    for name, value in {"synchronous_commit": "local", "client_min_messages": "error"}.items():
        with ledger.store._pool.connection() as connection:  # type: ignore[attr-defined]
            connection.execute(f"SET {name} = {value}")
            connection.commit()
        with pytest.raises(StoreError, match=f"{name} is {value}"):
            _charge(ledger, name)
        ledger.store._pool.clear()  # type: ignore[attr-defined]
    _charge(ledger, "sound again")


def test_more_rows_than_a_statement_holds_are_written(url: str) -> None:
    """A statement holds 65,535 values: many scopes are opened by several."""
    import psycopg

    rows = [(number, -number) for number in range(40_000)]
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TEMP TABLE wide (a integer, b integer)")
        assert (
            PostgresRows(connection).many("INSERT INTO wide (a, b) VALUES (?, ?)", rows) == 40_000
        )
        found = connection.execute("SELECT count(*), sum(a), sum(b) FROM wide").fetchone()
    assert found == (40_000, sum(range(40_000)), -sum(range(40_000)))


def test_fronts_of_partitions_are_stored(url: str) -> None:
    sets = [{"a": "4", "b": "0"}, {"a": "0", "b": "4"}]
    with Ledger.open(url) as ledger:
        budget = {"budget": {"alternatives": sets}}
        ledger.scope("w", caps={"a": 4, "b": 4}, description=budget, actor="Ada")
        fronts = {"budget": {"fronts": True}}
        ledger.scope("w/wards", kind="partition", description=fronts, actor="Ada")
        for number, name in enumerate(("north", "south")):
            ledger.scope(f"w/wards/{name}", actor="Ada")
            cost = {"a": 4 - 4 * number, "b": 3 * number}
            ledger.charge(f"w/wards/{name}", cost=cost, actor="Ada", key=name)
    with Ledger.open(url) as ledger:
        assert ledger.available("w/wards/south").texts() == {"a": "0", "b": "1"}
        with pytest.raises(OverdrawnError):
            ledger.charge("w/wards/north", cost={"a": 0, "b": 1}, actor="Ada", key="too much")
        assert ledger.verify().entries == 7


def test_an_open_client_stops_at_a_newer_schema(ledger: Ledger, url: str) -> None:
    _charge(ledger, "1")
    _execute(url, "INSERT INTO migration VALUES (99, 'from the future')")
    with pytest.raises(NewerSchemaError):
        _charge(ledger, "2")
    with pytest.raises(NewerSchemaError):
        ledger.scope("new", actor="Ada")


def test_no_charge_fails_where_transactions_are_serializable(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conflict that the server gives up would show at once: nothing is tried again."""
    _execute(
        url, f"ALTER DATABASE {_quoted(url)} SET default_transaction_isolation = 'serializable'"
    )
    monkeypatch.setattr("dpcompose.ledger.postgres.ATTEMPTS", 1)
    ledgers = [Ledger.open(url) for _ in range(4)]
    ledgers[0].scope("world", caps={"epsilon": 100}, actor="Ada")
    in_threads([lambda n=n: [_charge(ledgers[n], f"{n} {k}") for k in range(25)] for n in range(4)])  # type: ignore[misc]
    assert str(ledgers[0].balance("world").spent["epsilon"]) == "10"
    for ledger in ledgers:
        ledger.close()


# What a failover changes under an open client


def test_a_scope_of_before_does_not_outlive_it(ledger: Ledger, url: str) -> None:
    """The standby that took over never had that scope, and it was opened again with a smaller cap."""
    dump = ["migration", "scope", "balance", "entry"]
    for table in dump:
        _execute(url, f"CREATE TABLE kept_{table} AS TABLE {table}")
    ledger.scope("world/team", caps={"epsilon": 50}, actor="Ada")
    _charge(ledger, "1", "world/team")
    for table in dump:
        _execute(url, f"TRUNCATE {table}; INSERT INTO {table} TABLE kept_{table}")
    with Ledger.open(url) as other:
        other.scope("world/team", caps={"epsilon": "0.2"}, actor="Ada")
    for number in range(2):
        _charge(ledger, f"after {number}", "world/team")
    with pytest.raises(OverdrawnError, match=r"world/team: 0.1 of epsilon asked, 0 left"):
        _charge(ledger, "after 2", "world/team")
    assert ledger.verify().scopes == 2


# Tables


SHAPES = {
    "ALTER TABLE {} SET UNLOGGED": "is not logged",
    "ALTER TABLE {} DROP CONSTRAINT {}_pkey": "unique",
    "ALTER TABLE {} DROP CONSTRAINT {}_pkey; CREATE INDEX {}_pkey ON {} ({key})": "unique",
    "ALTER TABLE {} DROP CONSTRAINT {}_pkey; ALTER TABLE {} ADD PRIMARY KEY ({key}) DEFERRABLE": "unique",
    "CREATE RULE quiet AS ON UPDATE TO {} DO INSTEAD NOTHING": "a rule",
    "ALTER TABLE {} ENABLE ROW LEVEL SECURITY": "row security",
    "CREATE TABLE child () INHERITS ({})": "a parent or children",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; "
    "CREATE TRIGGER quiet BEFORE UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION f()": "a trigger",
    "ALTER TABLE {} RENAME TO hidden; CREATE VIEW {} AS TABLE hidden": "no plain table",
    "ALTER TABLE {} ADD COLUMN twice bigint GENERATED ALWAYS AS (1) STORED": "columns",
}
INDEXES = [
    "DROP INDEX key_is_used_once",
    "DROP INDEX key_is_used_once; CREATE UNIQUE INDEX key_is_used_once ON entry (root, sequence)",
    "DROP INDEX key_is_used_once; CREATE UNIQUE INDEX key_is_used_once ON entry (root, key) WHERE key > 'k'",
    "DROP INDEX key_is_used_once; CREATE UNIQUE INDEX key_is_used_once ON entry (root, lower(key))",
    "DROP INDEX charge_is_redeemed_once; CREATE INDEX charge_is_redeemed_once ON entry (root, redeems)",
    "DROP INDEX charge_is_redeemed_once; CREATE UNIQUE INDEX charge_is_redeemed_once ON entry (root, redeems, hash)",
]
KEYS = {"scope": "root, path", "balance": "root, path", "entry": "root, sequence"}
CHANGES = [
    *((statement.replace("{}", table).format(key=key), said) for statement, said in SHAPES.items()
      for table, key in list(KEYS.items())[:: 1 if "UNLOGGED" in statement or "CONSTRAINT" in statement else 3]),
    *((statement, "unique") for statement in INDEXES),
    ("ALTER TABLE balance ALTER COLUMN closed TYPE bigint", "columns"),
    ("ALTER TABLE entry ALTER COLUMN hash DROP NOT NULL", "columns"),
]  # fmt: skip


@pytest.fixture(scope="module")
def changed(postgres: Server) -> str:
    url = postgres.create("changed tables")
    with Ledger.open(url) as ledger:
        ledger.scope("world", caps={"epsilon": 10}, actor="Ada")
    return url


@pytest.mark.parametrize(("statement", "said"), CHANGES, ids=range(len(CHANGES)))
def test_tables_that_lose_or_hide_rows_are_refused_and_found(
    changed: str, statement: str, said: str
) -> None:
    with Ledger.open(changed) as ledger:
        with ledger.store._pool.connection() as connection:  # type: ignore[attr-defined]
            connection.execute(statement)
            assert any(said in problem for problem in differences(PostgresRows(connection)))
        ledger.verify()


def test_changed_tables_are_refused_at_opening_and_told_by_verify(ledger: Ledger, url: str) -> None:
    _execute(url, "ALTER TABLE entry SET UNLOGGED")
    with pytest.raises(TamperedError, match="the table entry is not logged"):
        ledger.verify()
    with pytest.raises(StoreError, match="the table entry is not logged"):
        Ledger.open(url)
    ledger.store._pool.clear()  # type: ignore[attr-defined]
    with pytest.raises(StoreError, match="the table entry is not logged"):
        _charge(ledger, "on a new connection")


def test_no_other_table_of_the_same_name_comes_before_ours(ledger: Ledger, url: str) -> None:
    """A schema that the search path names first, and temporary tables, which come before all others by default."""
    _execute(
        url,
        "CREATE SCHEMA ledger; CREATE TABLE ledger.balance AS TABLE public.balance WITH NO DATA",
    )
    _execute(url, f"ALTER ROLE ledger IN DATABASE {_quoted(url)} SET search_path = ledger, public")
    ledger.store._pool.clear()  # type: ignore[attr-defined]
    with ledger.store._pool.connection() as connection:  # type: ignore[attr-defined]
        connection.execute("CREATE TEMPORARY TABLE entry AS TABLE public.entry WITH NO DATA")
        connection.commit()
    _charge(ledger, "1")
    with Ledger.open(url) as again:
        assert _charge(again, "1") == _charge(ledger, "1")
        assert again.verify().entries == 2
