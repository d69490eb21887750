"""The SQLite store: what it refuses to open, what it does when the disk fails, and how its schema grows."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from campaigns.ledger.processes import fork
from dpcompose.errors import (
    LedgerError,
    NewerSchemaError,
    OverdrawnError,
    StoreError,
    TamperedError,
)
from dpcompose.ledger import Ledger, sqlite_connection, tables
from dpcompose.ledger.sqlite import SQLiteStore
from dpcompose.ledger.sqlite_connection import SQLiteRows
from dpcompose.ledger.tables import VERSION, LedgerTables, migrate


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with one charge."""
    made = tmp_path / "ledger.db"
    with Ledger.open(made) as ledger:
        ledger.scope("world", caps={"epsilon": 100}, actor="Ada")
        _charge(ledger, "first")
    return made


def _charge(ledger: Ledger, key: str) -> Any:
    return ledger.charge("world", cost={"epsilon": 0.1}, actor="Ada", key=key)


def _writer(ledger: Ledger) -> sqlite3.Connection:
    assert isinstance(ledger.store, SQLiteStore)
    return ledger.store._writer


def test_every_way_to_name_a_file_leads_to_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    for url in [path, str(path), f"sqlite:///{path}", "sqlite:///ledger.db", "ledger.db"]:
        with Ledger.open(url, create=False) as ledger:
            assert str(ledger.balance("world").spent["epsilon"]) == "0.1"


def test_what_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    foreign, words = tmp_path / "foreign.db", tmp_path / "words.txt"
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("CREATE TABLE mine (x)")
    words.write_text("no database, only words" * 100)
    before = foreign.read_bytes(), words.read_bytes()
    for place, said in [
        (foreign, "no ledger"),
        (words, "no SQLite"),
        (tmp_path, "directory"),
        (tmp_path / "a/b", "not"),
    ]:
        with pytest.raises(StoreError, match=said):
            Ledger.open(place)
    with pytest.raises(StoreError, match="no such ledger"):
        Ledger.open(tmp_path / "nowhere.db", create=False)
    assert (foreign.read_bytes(), words.read_bytes()) == before
    assert not (tmp_path / "nowhere.db").exists()


def test_an_empty_file_is_no_ledger_until_one_is_made(tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(StoreError, match="no ledger here"):
        Ledger.open(empty, create=False)
    Ledger.open(empty).close()
    Ledger.open(empty, create=False).close()


def test_a_table_called_migration_makes_no_ledger(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("CREATE TABLE migration (id)")
    before = foreign.read_bytes()
    with pytest.raises(StoreError, match="no ledger"):
        Ledger.open(foreign)
    assert foreign.read_bytes() == before


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO migration VALUES (99, 'from the future')")
    before = path.read_bytes()
    with pytest.raises(NewerSchemaError) as raised:
        Ledger.open(path)
    assert (raised.value.schema, raised.value.newest) == (99, VERSION)
    assert path.read_bytes() == before


def test_tables_that_are_not_all_made_are_not_made_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tables._statements("")
    with monkeypatch.context() as failing:
        failing.setattr(tables, "_statements", lambda *_: [*made, "CREATE TABLE half (x"])
        with pytest.raises(StoreError):
            Ledger.open(tmp_path / "half.db")
    with closing(sqlite3.connect(tmp_path / "half.db")) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    with Ledger.open(tmp_path / "half.db") as ledger:
        assert ledger.verify().entries == 0


def test_an_earlier_schema_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM migration WHERE number = 6")
        connection.execute("UPDATE migration SET number = 4")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(
            StoreError, match=r"earlier version \(4; this one reads 6\).*commit aa7d735"
        ):
            Ledger.open(path, read_only=read_only)
    assert path.read_bytes() == before


def test_sqlalchemy_and_numpy_are_not_loaded(tmp_path: Path) -> None:
    program = (
        "import sys; from dpcompose.ledger import Ledger\n"
        "for url in ('memory:', sys.argv[1]): Ledger.open(url).scope('world', actor='Ada')\n"
        "assert not {'numpy', 'sqlalchemy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "ledger.db"], check=True)


@pytest.mark.parametrize(("name", "value"), [("journal_mode", "delete"), ("synchronous", 1)])
def test_settings_are_set_on_every_connection(path: Path, name: str, value: Any) -> None:
    with closing(
        sqlite3.connect(path)
    ) as connection:  # someone else changes what is kept in the file
        connection.execute(f"PRAGMA {name} = {value}")
    with Ledger.open(path) as ledger:
        assert _writer(ledger).execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert _writer(ledger).execute("PRAGMA synchronous").fetchone() == (2,)
        with ledger.store.snapshot() as snapshot:
            assert snapshot.rows.row("PRAGMA synchronous") == (2,)  # type: ignore[attr-defined]


def test_a_setting_that_cannot_be_had_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sqlite_connection, "SETTINGS", {**sqlite_connection.SETTINGS, "page_size": 512}
    )
    with pytest.raises(StoreError, match="page_size cannot be set"):
        Ledger.open(path)


def test_a_full_disk_is_told_and_then_forgotten(path: Path) -> None:
    with Ledger.open(path) as ledger:
        writer = _writer(ledger)
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="disk is full") as raised:
            for number in range(1000):
                _charge(ledger, f"fills {number}")
        assert not raised.value.uncertain
        writer.execute("PRAGMA max_page_count = 1000000")
        failed, before = f"fills {number}", ledger.balance("world").spent["epsilon"]
        _charge(ledger, failed)
        assert ledger.balance("world").spent["epsilon"].units - before.units == 10**39
        ledger.verify()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_really_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    if (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], check=False
        ).returncode
        != 0
    ):
        pytest.skip("mount is not allowed here")
    try:
        granted = 0
        with Ledger.open(folder / "ledger.db") as ledger:
            ledger.scope("world", caps={"epsilon": 1000}, actor="Ada")
            with pytest.raises(StoreError, match="disk is full"):
                for number in range(10_000):
                    _charge(ledger, str(number))
                    granted = number + 1
            subprocess.run(["mount", "-o", "remount,size=20m", folder], check=True)
            _charge(ledger, "after")
            assert ledger.balance("world").spent["epsilon"].units == (granted + 1) * 10**39
            ledger.verify()
    finally:
        subprocess.run(["umount", folder], check=True)


UNPRIVILEGED = """
import os, sys
from dpcompose.ledger import Ledger, sqlite
from dpcompose.errors import StoreError
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
try:
    Ledger.open(sys.argv[1])
except StoreError as error:
    print(error)
    sys.exit(3)
"""


@pytest.mark.slow
def test_a_ledger_that_others_may_write_is_theirs_to_open() -> None:
    """The file of turns is made under the umask of whoever came first, and never written."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o777)
        Ledger.open(folder / "ledger.db").close()
        for each in folder.iterdir():  # made for its owner alone
            each.chmod(0o666)
        command = [sys.executable, "-c", UNPRIVILEGED, folder / "ledger.db"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("read_only", ["file", "folder", "unseen"])
def test_a_read_only_file_is_one_clear_error(path: Path, read_only: str) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        copy = folder / "ledger.db"
        shutil.copy(path, copy)
        before = copy.read_bytes()
        copy.chmod(0o444)
        folder.chmod({"file": 0o777, "folder": 0o555, "unseen": 0o000}[read_only])
        command = [sys.executable, "-c", UNPRIVILEGED, copy]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 3, run.stdout + run.stderr
        assert "cannot be" in run.stdout
        assert run.stdout.count("\n") == 1
        folder.chmod(0o755)
        copy.chmod(0o644)
        assert copy.read_bytes() == before
        with Ledger.open(copy) as ledger:
            _charge(ledger, "afterwards")
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_after_a_fork_the_ledger_must_be_opened_again(path: Path) -> None:
    with Ledger.open(path) as ledger:

        def child() -> None:
            with pytest.raises(StoreError, match="another process"):
                _charge(ledger, "child")
            ledger.close()  # closes nothing of the parent's

        assert os.waitpid(fork(child), 0)[1] == 0
        _charge(ledger, "parent")
        ledger.verify()


def test_a_link_leads_to_the_same_ledger_log_and_lock(path: Path) -> None:
    folder = path.parent / "elsewhere"
    folder.mkdir()
    link = folder / "link.db"
    link.symlink_to(path)
    with Ledger.open(link) as linked, Ledger.open(path) as direct:
        _charge(linked, "through the link")
        assert str(direct.balance("world").spent["epsilon"]) == "0.2"
        assert sorted(each.name for each in folder.iterdir()) == ["link.db"]


@pytest.mark.slow
def test_many_threads_read_while_one_writes(path: Path) -> None:
    with Ledger.open(path) as ledger:
        seen: list[int] = []

        def read() -> None:
            for _ in range(20):
                with ledger.store.snapshot() as snapshot:
                    entries, spent = (
                        snapshot.head("world").sequence,
                        next(snapshot.nodes()).spent["epsilon"],
                    )
                    seen.append(
                        entries * 10**39 - spent
                    )  # one moment: the balance is that of its entries
                ledger.verify()

        threads = [threading.Thread(target=read) for _ in range(12)]
        for thread in threads:
            thread.start()
        for number in range(50):
            _charge(ledger, str(number))
        for thread in threads:
            thread.join()
        assert len(seen) == 12 * 20
        assert set(seen) == {10**39}


def test_threads_share_commits_and_each_gets_its_own_answer(path: Path) -> None:
    answers: dict[int, str] = {}

    def work(ledger: Ledger, number: int) -> None:
        try:
            answers[number] = ledger.charge(
                "world", cost={"epsilon": 8}, actor="Ada", key=str(number)
            ).key
        except OverdrawnError as error:
            answers[number] = str(error.left)
        except LedgerError as error:
            answers[number] = type(error).__name__

    with Ledger.open(path) as ledger:
        threads = [threading.Thread(target=work, args=(ledger, number)) for number in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        granted = [number for number, answer in answers.items() if answer == str(number)]
        assert len(granted) == 12  # 99.9 were left
        assert {answer for number, answer in answers.items() if number not in granted} == {"3.9"}
        assert ledger.verify().entries == 2 + 64


def test_an_interrupted_leader_does_not_stop_the_others(path: Path) -> None:
    with Ledger.open(path) as ledger:
        store: Any = ledger.store
        commit, calls = store._group_commit.commit, iter([KeyboardInterrupt, None, None])

        def interrupted(requests: Any) -> Any:
            error = next(calls)
            if error is not None:
                raise error
            return commit(requests)

        store._group_commit.commit = interrupted
        with pytest.raises(KeyboardInterrupt):
            _charge(ledger, "interrupted")
        _charge(ledger, "next")
        assert str(ledger.balance("world").spent["epsilon"]) == "0.2"


def test_an_older_copy_is_found_with_an_anchor_only(path: Path) -> None:
    older = path.with_name("older.db")
    shutil.copy(path, older)
    with Ledger.open(path) as ledger:
        _charge(ledger, "second")
        anchor = ledger.anchor()
        assert ledger.verify(anchor).anchored
    with Ledger.open(older) as ledger:
        ledger.verify()  # it agrees with itself
        with pytest.raises(TamperedError, match="ends at entry 2, the anchor has 3"):
            ledger.verify(anchor)


def test_the_step_is_taken_once() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        rows = SQLiteRows(connection)
        migrate(rows, url="memory")
        assert tables.version_of(rows, url="memory") == VERSION
        migrate(rows, url="memory")  # nothing more to do
        assert tuple(rows.run(tables.RECORDED)) == tables.RECORDS_OF_STEPS[0]


@pytest.fixture(autouse=True)
def _no_files_left_open() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("value", [b"abc", b"\xff\xfe", None, 1.5, "x"])
def test_values_of_another_type_are_tampering(path: Path, value: object) -> None:
    tables = {
        "entry": ("scope", "body", "hash", "key", "root"),
        "balance": ("spent", "taken"),
        "scope": ("path", "caps"),
    }
    for table, columns in tables.items():
        for column in columns:
            copy = path.with_name(f"{table}-{column}.db")
            shutil.copy(path, copy)
            with closing(sqlite3.connect(copy)) as connection:
                try:
                    connection.execute(f"UPDATE {table} SET {column} = ?", [value])
                    connection.commit()
                except sqlite3.IntegrityError:
                    continue
            with pytest.raises(TamperedError), Ledger.open(copy) as ledger:
                ledger.verify()


def test_the_same_bytes_as_a_blob_are_tampering(path: Path) -> None:
    for number, (table, column) in enumerate(
        [("balance", "spent"), ("scope", "caps"), ("entry", "body"), ("entry", "hash")]
    ):
        copy = path.with_name(f"{number}.db")
        shutil.copy(path, copy)
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute(f"UPDATE {table} SET {column} = CAST({column} AS BLOB)")
        with pytest.raises(TamperedError), Ledger.open(copy) as ledger:
            ledger.verify()


@pytest.mark.slow
def test_a_schema_that_is_no_text_is_damage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b"balancebalance", b"b\xa9lanceb\xa9lance"))
    assert path.read_bytes() != data
    with pytest.raises(StoreError, match="damaged"):
        Ledger.open(path)


@pytest.mark.parametrize(
    ("path", "below"),
    [("world", False), ("world/a", False), ("world/a", True), ("world/a/b", True)],
)
def test_the_records_of_a_scope_are_found_by_their_index(
    tmp_path: Path, path: str, below: bool
) -> None:
    """Asked another way, SQLite walks the whole chain: a look at a little costs what the ledger holds."""
    with Ledger.open(tmp_path / "ledger.db") as ledger, ledger.store.snapshot() as snapshot:
        assert isinstance(snapshot, LedgerTables)
        connection: Any = snapshot.rows.connection  # type: ignore[attr-defined]
        seen: list[str] = []
        connection.set_trace_callback(seen.append)
        list(snapshot.records_of(path, below=below))
        connection.set_trace_callback(None)
        plan = str(connection.execute(f"EXPLAIN QUERY PLAN {seen[0]}").fetchall())
        assert len(seen) == 1
        assert "USING INDEX entry_of_scope (root=? AND scope" in plan


def test_a_lock_that_is_lost_after_a_commit_leaves_it_uncertain(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a network file system may lose it: the charge stands, and its key finds it."""

    def lost(*_: object) -> None:
        raise OSError(37, "No locks available")

    with Ledger.open(path) as ledger:
        with monkeypatch.context() as patched:
            patched.setattr(sqlite_connection.FileLock, "__exit__", lost)
            with pytest.raises(StoreError, match="No locks available") as raised:
                _charge(ledger, "stands")
        assert raised.value.uncertain
        spent = ledger.balance("world").spent["epsilon"]
        _charge(ledger, "stands")
        assert ledger.balance("world").spent["epsilon"] == spent
        assert str(spent) == "0.2"
