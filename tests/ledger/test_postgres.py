"""The PostgreSQL store: servers that may lose what they acknowledge are refused; lost connections are told."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from campaigns.ledger.server import Server, server

from dpcompose.errors import DomainError, NewerSchemaError, StoreError, TamperedError
from dpcompose.ledger import Ledger


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
def test_a_server_that_may_lose_commits_is_refused(setting: str, postgres: Server, url: str) -> None:
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


def test_databases_that_are_no_ledger_or_a_newer_one(url: str, postgres: Server) -> None:
    with pytest.raises(StoreError, match="no ledger in this database"):
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
        if not any(_status(Path(f"/proc/{pid}")) and "zombie" not in _status(Path(f"/proc/{pid}")) for pid in children):
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

    threads = [threading.Thread(target=work, args=each) for each in zip(ledgers, range(8), strict=True)]
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
