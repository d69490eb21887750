"""The head record: a ledger that lost what it acknowledged says so, and one that lost nothing is never accused."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from campaigns.ledger.processes import fork, kill
from dpcompose.errors import NewerSchemaError, StoreError, TamperedError
from dpcompose.ledger import Ledger, head_record, sqlite_connection
from dpcompose.ledger.entry import Head
from dpcompose.ledger.head_record import SECTOR, Claim, HeadRecord, read_claims, write_record
from dpcompose.ledger.sqlite import SQLiteStore

LONG = "o" * 400
"""A name that no sector has room for."""


def charge(ledger: Ledger, key: str, path: str = "world") -> Any:
    return ledger.charge(path, cost={"epsilon": 0.1}, actor="Ada", key=key)


def make(path: Path, roots: tuple[str, ...] = ("world",), *, charges: int = 3) -> None:
    with Ledger.open(path) as ledger:
        for root in roots:
            ledger.scope(root, caps={"epsilon": 100}, actor="Ada")
        for number in range(charges):
            for root in roots:
                charge(ledger, f"early {number}", root)


def killed(path: Path, work: Callable[[Ledger], None]) -> None:
    """A client that does `work` and is killed with the ledger open."""

    def client() -> None:
        ledger = Ledger.open(path)
        work(ledger)
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(fork(client), 0)


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger whose client was killed after five charges that are in the log only."""
    made = tmp_path / "city.db"
    make(made)
    killed(made, lambda ledger: [charge(ledger, f"late {number}") for number in range(5)])  # type: ignore[arg-type]
    return made


def test_what_a_killed_client_left_is_all_there(path: Path) -> None:
    with Ledger.open(path) as ledger:
        assert str(ledger.balance("world").spent["epsilon"]) == "0.8"
        ledger.verify()


@pytest.mark.parametrize("create", [True, False])
def test_a_log_that_is_gone_is_told(path: Path, create: bool) -> None:
    beside(path, "-wal").unlink()
    with pytest.raises(StoreError, match=r"world: entry 9 was acknowledged and is gone.*Put back"):
        Ledger.open(path, create=create)


def test_a_new_ledger_whose_log_is_gone_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "city.db"
    killed(path, lambda ledger: ledger.scope("world", caps={"epsilon": 1}, actor="Ada"))  # type: ignore[arg-type]
    for end in ("-wal", "-shm"):
        beside(path, end).unlink()
    with pytest.raises(StoreError, match="world: entry 1 was acknowledged and is gone"):
        Ledger.open(path)
    path.unlink()
    with pytest.raises(StoreError, match="all of world"):
        Ledger.open(path)


def test_every_flipped_bit_of_a_log_that_costs_an_entry_is_told(path: Path) -> None:
    log = beside(path, "-wal")
    whole = log.read_bytes()
    for place in range(7, len(whole), len(whole) // 40):
        log.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        beside(path, "-shm").unlink(missing_ok=True)
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            entries = connection.execute("SELECT count(*) FROM entry").fetchone()[0]
            if entries == 9:  # the bit was in a part that is not read
                continue
            with pytest.raises(StoreError, match="acknowledged"):
                Ledger.open(path)
        log.write_bytes(whole)


@pytest.mark.parametrize("root", ["world", "Zürich", LONG])
def test_an_older_file_beside_a_newer_record_is_told(tmp_path: Path, root: str) -> None:
    path, older = tmp_path / "city.db", tmp_path / "older.db"
    make(path, (root,))
    shutil.copy(path, older)
    make(path, (root, "other"), charges=5)
    older.replace(path)
    with pytest.raises(StoreError, match="entry 6 was acknowledged and is gone"):
        Ledger.open(path)


def test_a_file_that_does_not_fit_its_log_is_told(tmp_path: Path) -> None:
    """The log holds the newest pages; those that are not in it are older than it."""
    path, older = tmp_path / "city.db", tmp_path / "older.db"
    roots = tuple(f"root-{number}" for number in range(40))  # balances on several pages
    make(path, roots)
    shutil.copy(path, older)
    with Ledger.open(path) as ledger:
        charge(ledger, "forgotten", "root-7")
    killed(path, lambda ledger: charge(ledger, "last", "root-30"))
    with Ledger.open(path) as ledger:
        assert str(ledger.balance("root-7").spent["epsilon"]) == "0.4"
    killed(path, lambda ledger: charge(ledger, "very last", "root-30"))
    older.replace(path)
    with pytest.raises(StoreError, match=r"acknowledged|belong together"):
        Ledger.open(path)


def test_restoring_all_files_together_is_found_with_an_anchor_only(tmp_path: Path) -> None:
    path, older = tmp_path / "city.db", tmp_path / "older"
    make(path)
    shutil.copytree(tmp_path, older)
    with Ledger.open(path) as ledger:
        charge(ledger, "later")
        anchor = ledger.anchor()
    for file in older.iterdir():
        shutil.copy(file, tmp_path)
    with Ledger.open(path) as ledger:
        ledger.verify()  # it agrees with itself
        with pytest.raises(TamperedError, match="ends at entry 4, the anchor has 5"):
            ledger.verify(anchor)


def test_a_record_that_is_behind_accuses_nobody(path: Path) -> None:
    """As after a kill between a commit and its record, or after a power loss."""
    head = beside(path, "-head")
    older = head.read_bytes()
    with Ledger.open(path) as ledger:
        charge(ledger, "another")
    head.write_bytes(older)
    with Ledger.open(path) as ledger:
        charge(ledger, "and another")
        ledger.verify()
    assert read_claims(head)[1].head.sequence == 11


def test_sectors_that_a_power_loss_left_empty_accuse_nobody(path: Path) -> None:
    head = beside(path, "-head")
    head.write_bytes(head.read_bytes()[:SECTOR] + bytes(3 * SECTOR))
    with Ledger.open(path) as ledger:
        charge(ledger, "another")
    assert [claim.head.sequence for claim in read_claims(head)[1:]] == [10]


@pytest.mark.parametrize("what", ["gone", "empty", "flipped", "flipped in the first sector"])
def test_a_record_that_is_gone_or_damaged_gives_nothing_back_and_locks_nobody_out(
    path: Path, what: str
) -> None:
    head = beside(path, "-head")
    data = bytearray(head.read_bytes())
    data[SECTOR + 20 if what == "flipped" else 20] ^= 1
    head.unlink() if what == "gone" else head.write_bytes(b"" if what == "empty" else bytes(data))
    for end in ("-wal", "-shm"):
        beside(path, end).unlink()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"head record city.db-head is (gone|damaged)"):
            Ledger.open(path)
    with Ledger.open(path, restored=True) as ledger:
        charge(ledger, "late 0")
    with Ledger.open(path, create=False) as ledger:
        assert str(ledger.balance("world").spent["epsilon"]) == "0.4"
        ledger.verify()


def test_a_copy_begins_a_record_of_its_own(path: Path) -> None:
    copy = path.with_name("copy.db")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    with Ledger.open(copy) as ledger:
        assert str(ledger.balance("world").spent["epsilon"]) == "0.8"
    assert [claim.head.sequence for claim in read_claims(beside(copy, "-head"))[1:]] == [9]
    with Ledger.open(path) as ledger:
        ledger.verify()


@pytest.mark.parametrize("end", ["-wal", "-shm", "-head", ""])
@pytest.mark.parametrize("what", ["deleted", "replaced", "moved"])
def test_an_open_ledger_stops_when_one_of_its_files_is_not_there(
    tmp_path: Path, end: str, what: str
) -> None:
    path = tmp_path / "city.db"
    make(path)
    with Ledger.open(path) as ledger:
        file = beside(path, end)
        copy = shutil.copy(file, tmp_path / "copy")
        {
            "deleted": file.unlink,
            "replaced": lambda: Path(copy).replace(file),
            "moved": lambda: file.rename(copy),
        }[what]()
        for _ in range(2):
            with pytest.raises(
                StoreError, match="was moved, replaced or deleted while it was open"
            ):
                charge(ledger, "later")
        with pytest.raises(StoreError):
            ledger.balance("world")


def test_a_log_that_goes_while_a_charge_is_committed_acknowledges_nothing(tmp_path: Path) -> None:
    path = tmp_path / "city.db"
    make(path)
    with Ledger.open(path) as ledger:
        store: Any = ledger.store
        charge(ledger, "first")
        write = store._stored.write
        store._stored.write = lambda batch: (write(batch), beside(path, "-wal").unlink())
        with pytest.raises(StoreError, match="deleted") as raised:
            charge(ledger, "later")
        assert raised.value.uncertain


def test_a_link_that_leads_elsewhere_stops_the_ledger(tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        make(tmp_path / name)
    link = tmp_path / "city.db"
    link.symlink_to("a.db")
    with Ledger.open(link) as ledger:
        charge(ledger, "first")
        link.unlink()
        link.symlink_to("b.db")
        with pytest.raises(StoreError, match="moved, replaced"):
            charge(ledger, "second")


def test_a_client_that_sees_less_than_was_acknowledged_stops(tmp_path: Path) -> None:
    """As where the index of the log was deleted, and another client made a new one."""
    path = tmp_path / "city.db"
    make(path, ("world", "other"))
    with Ledger.open(path) as ledger:
        with closing(HeadRecord(beside(path, "-head"))) as record:
            record.reserve("world")
            record.advance("world", Head(7, "0" * 64))
        for _ in range(2):
            with pytest.raises(StoreError, match="world: entry 7 was acknowledged and is gone"):
                charge(ledger, "later")
        with pytest.raises(StoreError):  # nothing is written to the others either
            charge(ledger, "later", "other")


def test_verifying_an_open_ledger_looks_at_the_record_too(tmp_path: Path) -> None:
    path = tmp_path / "city.db"
    make(path)
    with Ledger.open(path) as ledger:
        ledger.verify()
        with closing(HeadRecord(beside(path, "-head"))) as record:
            record.reserve("world")
            record.advance("world", Head(4, "0" * 64))
        with pytest.raises(TamperedError, match="world: entry 4 was acknowledged and is another"):
            ledger.verify()


def test_a_newer_schema_stops_clients_that_have_the_ledger_open(tmp_path: Path) -> None:
    path = tmp_path / "city.db"
    make(path)
    with Ledger.open(path) as ledger:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("INSERT INTO migration VALUES (99, 'from the future')")
        for ask in (lambda: charge(ledger, "later"), lambda: ledger.balance("world")):
            with pytest.raises(NewerSchemaError):
                ask()
        with pytest.raises(NewerSchemaError):
            ledger.scope("new", caps={"epsilon": 1}, actor="Ada")


def test_nobody_waits_for_ever_for_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(sqlite_connection, "LOCK_PATIENCE", 0.05)
    path = tmp_path / "city.db"
    make(path)
    with beside(path, "-turn").open() as handle, Ledger.open(path, create=False) as ledger:
        fcntl.flock(handle, fcntl.LOCK_SH)
        for number in range(3):
            charge(ledger, f"with a reader {number}")
        fcntl.flock(handle, fcntl.LOCK_UN)
        charge(ledger, "without")
        ledger.verify()
    _no_thread_is_left()


def test_looking_takes_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "city.db"
    make(path)
    monkeypatch.setattr(
        sqlite_connection.FileLock, "__enter__", lambda _: pytest.fail("took a turn")
    )
    with Ledger.open(path, create=False) as ledger:
        assert len(ledger.scopes()) == 1
        ledger.verify()


def test_a_stopped_writer_is_waited_for_and_then_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "LOCK_PATIENCE", 0.05)
    path = tmp_path / "city.db"
    make(path)

    def client() -> None:
        with Ledger.open(path) as ledger:
            store: Any = ledger.store
            with store._file_lock:
                (tmp_path / "holds").touch()
                time.sleep(60)

    child = fork(client)
    while not (tmp_path / "holds").exists():
        time.sleep(0.002)
    os.kill(child, signal.SIGSTOP)
    try:
        with Ledger.open(path) as ledger:
            charge(ledger, "later")
    finally:
        os.kill(child, signal.SIGCONT)
        kill(child)
    _no_thread_is_left()


def _no_thread_is_left() -> None:
    for thread in threading.enumerate():
        if thread.name == sqlite_connection.WAITER:
            thread.join(5)


def test_files_beside_a_ledger_are_as_open_as_it_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        path = tmp_path / "city.db"
        path.touch()
        path.chmod(0o664)
        make(path)
    finally:
        os.umask(before)
    for end in ("-turn", "-head"):
        assert beside(path, end).stat().st_mode & 0o777 == 0o664


def test_a_claim_is_one_sector_and_every_flipped_bit_of_it_shows() -> None:
    for root in ("world", "Zürich-東京", "ü" * 150):
        claim = Claim(head_record.label_of(root), Head(2**63 - 1, "f" * 64), "0" * 24)
        assert len(claim.sector) == SECTOR
        assert Claim.read(claim.sector) == claim
    written = len(claim.sector.rstrip())
    for bit in range(8 * written):
        flipped = bytearray(claim.sector)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            assert (
                Claim.read(bytes(flipped)) == claim
            )  # a blank at the end that is another blank now
        except ValueError:
            continue


def test_a_record_has_room_for_chains_of_other_processes(tmp_path: Path) -> None:
    path, like = tmp_path / "record", tmp_path / "like"
    like.touch()
    write_record(path, {"first": Head(1, "1" * 64)}, like=like)
    with closing(HeadRecord(path)) as one, closing(HeadRecord(path)) as other:
        for number, record in enumerate([one, other, one, other]):
            record.reserve(f"root-{number}")
            record.advance(f"root-{number}", Head(number + 1, "2" * 64))
        one.advance("root-0", Head(9, "3" * 64))
        assert [other.claim(f"root-{number}").sequence for number in range(4)] == [9, 2, 3, 4]
        assert one.claim("first") == Head(1, "1" * 64)
        assert one.claim("nowhere") == Head()


def test_a_store_of_files_says_where_it_is(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "city.db") as ledger:
        assert isinstance(ledger.store, SQLiteStore)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "city.db",
        "city.db-head",
        "city.db-turn",
    ]


def test_one_who_is_moved_away_from_his_log_stops_and_is_told(path: Path) -> None:
    """It acknowledges no more; opening says that what it acknowledged before is gone."""

    def moved(ledger: Ledger) -> None:
        charge(ledger, "in place")
        beside(path, "-wal").rename(path.with_name("elsewhere"))
        with pytest.raises(StoreError, match="moved, replaced or deleted"):
            charge(ledger, "later")
        path.with_name("stopped").touch()

    killed(path, moved)
    assert path.with_name("stopped").exists()
    with pytest.raises(StoreError, match="was acknowledged and is gone"):
        Ledger.open(path)


@pytest.mark.parametrize("is_full", [False, True])
def test_a_new_sector_is_written_to_its_end_or_cut_off(
    is_full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write, calls = os.pwrite, itertools.count()

    def short(handle: int, data: bytes, start: int) -> int:
        if (number := next(calls)) and is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data if number else data[:20], start)

    with Ledger.open(tmp_path / "l.db") as ledger:
        ledger.scope("first", caps={"epsilon": 1}, actor="Ada")
        with monkeypatch.context() as patched, suppress(StoreError):
            patched.setattr(os, "pwrite", short)
            ledger.scope("second", caps={"epsilon": 1}, actor="Ada")
    with Ledger.open(tmp_path / "l.db") as ledger:
        ledger.scope("second", caps={"epsilon": 1}, actor="Ada")
        ledger.charge("second", cost={"epsilon": 1}, actor="Ada", key="1")
        ledger.verify()


def _fails(*_: Any) -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_an_error_at_the_first_sector_keeps_all_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, like = tmp_path / "record", tmp_path / "like"
    like.touch()
    write_record(path, {"world": Head(3, "1" * 64)}, like=like)
    before = path.read_bytes()
    with closing(HeadRecord(path)) as record, monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", _fails)
        with pytest.raises(OSError):
            record.begin_log("0" * 24, "world", Head(3, "1" * 64))
    assert path.read_bytes() == before


def test_a_ledger_opens_again_after_an_error_while_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", _fails)
        with pytest.raises(StoreError, match="Input/output error"):
            Ledger.open(tmp_path / "l.db")
    make(tmp_path / "l.db")
