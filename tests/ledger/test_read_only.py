"""Ledgers that are opened for reading alone: nothing is written, and nothing less is checked."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from campaigns.ledger.server import Server, place
from dpcompose.account import Account, exposure, open_scope
from dpcompose.adaptive import PureFilter
from dpcompose.errors import DomainError, StoreError
from dpcompose.ledger import Ledger
from dpcompose.mechanisms import Laplace
from tests.cli.runner import invoke

ADA: dict[str, Any] = {"actor": "Ada"}
NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that nobody but its owner may write, with a ledger of three entries."""
    folder = Path(mkdtemp())
    folder.chmod(0o755)
    with Ledger.open(folder / "city.db") as ledger:
        account = open_scope(ledger, "city", filter=PureFilter(1.0), **ADA)
        receipt = account.charge(Laplace(10.0), key="one", **ADA)
        ledger.redeem(receipt, **ADA)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Nothing below may be written: by its permissions, and by us as another user if we are root."""
    for each in (*folder.iterdir(), folder):
        each.chmod(each.stat().st_mode & ~0o222 | 0o044)  # its keeper lets others read
    os.seteuid(NOBODY) if os.geteuid() == 0 else None
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        for each in (folder, *folder.iterdir()):
            each.chmod(each.stat().st_mode | 0o200)


def _state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in folder.iterdir()}


def _read_everything(url: str | Path) -> None:
    with Ledger.open(url, read_only=True) as ledger:
        assert ledger.verify().entries == 3
        assert str(ledger.balance("city").left["epsilon"]) == "0.9"
        assert [each.kind for each in ledger.entries("city")] == ["opened", "granted", "redeemed"]
        assert exposure(ledger, paths=["city"], delta=0.0).spent.epsilon == 0.1
        account = Account(ledger, scope="city")
        for write in (
            lambda: account.charge(Laplace(10.0), key="two", **ADA),
            lambda: ledger.scope("other", **ADA),
            lambda: ledger.close_scope("city", key="close", **ADA),
        ):
            with pytest.raises(StoreError, match="opened for reading only"):
                write()


def _asked(url: str) -> list[str]:
    """The answers of the commands that read."""
    commands = ("show", "log city", "verify", "exposure city --delta 0")
    found = [
        invoke(["ledger", *command.split(), "--ledger", url, "--json"]) for command in commands
    ]
    assert {each.exit_code for each in found} == {0}, [each.output for each in found]
    return [each.stdout for each in found]


def test_a_folder_without_the_right_to_write_is_read(folder: Path) -> None:
    answers, before = _asked(str(folder / "city.db")), _state(folder)
    with without_rights(folder):
        with pytest.raises(StoreError, match="cannot be written"):
            Ledger.open(folder / "city.db")
        _read_everything(folder / "city.db")
        assert _asked(str(folder / "city.db")) == answers
    assert _state(folder) == before


def test_reading_makes_no_file_where_it_could(folder: Path) -> None:
    before = _state(folder)
    _read_everything(folder / "city.db")
    assert _state(folder) == before


_KILLED = """
import os, signal, sys
from dpcompose.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
ledger.charge("city", cost={"epsilon": 0.2}, actor="Ada", key="two")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_in_the_log_is_read(folder: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(folder / "city.db")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (folder / "city.db-wal").stat().st_size
    before = _state(folder)
    with without_rights(folder), Ledger.open(folder / "city.db", read_only=True) as ledger:
        assert ledger.verify().entries == 4
        assert str(ledger.balance("city").spent["epsilon"]) == "0.3"
    assert _state(folder) == before
    (folder / "city.db-shm").unlink()
    with pytest.raises(StoreError, match=r"its log city.db-wal has no index beside it"):
        Ledger.open(folder / "city.db", read_only=True)
    (folder / "city.db-wal").unlink()
    with pytest.raises(StoreError, match="entry 4 was acknowledged and is gone"):
        Ledger.open(folder / "city.db", read_only=True)


def test_a_reader_sees_what_writers_add_and_holds_nobody_up(folder: Path) -> None:
    path = folder / "city.db"
    with Ledger.open(path, read_only=True) as reader:
        for number in range(3):
            with Ledger.open(path) as writer, reader.moment() as moment:
                earlier = moment.balance("city").spent["epsilon"]
                writer.charge("city", cost={"epsilon": 0.1}, key=str(number), **ADA)
                assert moment.balance("city").spent["epsilon"] == earlier
                assert str(reader.balance("city").spent["epsilon"]) == f"0.{number + 2}"
        assert reader.verify().entries == 6


def test_a_file_that_is_written_while_it_is_taken_for_still_is_told(folder: Path) -> None:
    path = folder / "city.db"
    with (
        Ledger.open(path, read_only=True) as reader,
        pytest.raises(StoreError, match="written while it was read"),
        reader.moment(),
        Ledger.open(path) as writer,
    ):
        writer.charge(
            "city", cost={"epsilon": 0.1}, key="x", **ADA
        )  # its closing moves the log into the file


def test_what_is_lost_moved_or_of_another_schema_is_told(folder: Path, tmp_path: Path) -> None:
    path = folder / "city.db"
    with Ledger.open(path, read_only=True) as reader:
        path.rename(folder / "moved.db")
        shutil.copy(folder / "moved.db", path)
        with pytest.raises(StoreError, match="moved, replaced or deleted"):
            reader.balance("city")
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    _read_everything(copy)  # a copy has no head record of its own yet
    assert sorted(each.name for each in tmp_path.glob("copy*")) == ["copy.db"]
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("DELETE FROM migration WHERE number = 6")
        connection.execute("UPDATE migration SET number = 4")
    with pytest.raises(StoreError, match=r"schema of an earlier version \(4; this one reads 6\)"):
        Ledger.open(copy, read_only=True)
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("no database at all\n" * 99)
    for name, what in {
        "empty": "no ledger here",
        "text": "no SQLite database",
        "none": "no such ledger",
    }.items():
        with pytest.raises(StoreError, match=what):
            Ledger.open(tmp_path / f"{name}.db", read_only=True)
    with pytest.raises(DomainError, match="read_only"):
        Ledger.open("memory:", read_only=True)
    with pytest.raises(DomainError, match="read_only"):
        Ledger.open(path, read_only=True, restored=True)
    reader = Ledger.open(copy.with_name("again.db"))
    reader.close()
    closed = Ledger.open(reader.store.url, read_only=True)
    closed.close()
    with pytest.raises(StoreError, match="was closed"):
        closed.balances()


@pytest.mark.server
def test_users_and_servers_that_only_read(postgres: Server) -> None:
    import psycopg

    url = postgres.create("reading")
    with Ledger.open(url) as ledger:
        receipt = open_scope(ledger, "city", filter=PureFilter(1.0), **ADA).charge(
            Laplace(10.0), key="one", **ADA
        )
        ledger.redeem(receipt, **ADA)
    _read_everything(url)
    with psycopg.connect(url, autocommit=True) as keeper:
        keeper.execute(
            "CREATE ROLE auditor LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO auditor"
        )
    _read_everything(url.replace("ledger@", "auditor@"))
    with (
        pytest.raises(StoreError, match="may not write here"),
        Ledger.open(url.replace("ledger@", "auditor@")) as own,
    ):
        own.charge("city", cost={"epsilon": 0.1}, key="two", **ADA)
    assert len(_asked(url.replace("ledger@", "auditor@"))) == 4
    _read_everything(
        f"{url}&options=-c%20default_transaction_read_only%3Don%20-c%20synchronous_commit%3Doff"
    )
    with pytest.raises(StoreError, match="no ledger here"):
        Ledger.open(postgres.create("nothing"), read_only=True)


@pytest.mark.slow
@pytest.mark.server
def test_a_standby_is_read(postgres: Server) -> None:
    url = postgres.create("followed")
    with Ledger.open(url) as ledger:
        receipt = open_scope(ledger, "city", filter=PureFilter(1.0), **ADA).charge(
            Laplace(10.0), key="one", **ADA
        )
        ledger.redeem(receipt, **ADA)
    with place() as standby:
        standby.copy_from(postgres)
        process = standby.start("hot_standby=on")
        try:
            _read_everything(standby.url("followed"))
            with (
                pytest.raises(StoreError, match="takes no writes"),
                Ledger.open(standby.url("followed")) as own,
            ):
                own.charge("city", cost={"epsilon": 0.1}, key="two", **ADA)
        finally:
            standby.stop(process)
