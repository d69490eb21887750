"""Backups, what is restored from them, and schemas: nothing half done, nothing written over, no budget given back."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from campaigns.ledger.server import Server
from dpcompose.account import Account, exposure, open_scope
from dpcompose.adaptive import PureFilter
from dpcompose.errors import ClosedScopeError, DomainError, StoreError, TamperedError
from dpcompose.ledger import Anchor, Ledger, copying
from dpcompose.ledger.copying import backup, restore
from dpcompose.ledger.entry import Head
from dpcompose.mechanisms import Laplace
from tests.cli.runner import invoke

ADA: dict[str, Any] = {"actor": "Ada"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of two trees, one of which renews."""
    with Ledger.open(tmp_path / "city.db") as ledger:
        for root, renew in (("city", None), ("survey", "month")):
            open_scope(ledger, root, filter=PureFilter(1.0), renew=renew, **ADA)
            receipt = Account(ledger, scope=root).charge(Laplace(10.0), key="one", **ADA)
            ledger.redeem(receipt, **ADA)
    return tmp_path / "city.db"


def _charge(ledger: Ledger, key: str) -> Any:
    return ledger.charge("city", cost={"epsilon": "0.01"}, key=key, **ADA)


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_a_backup_is_a_ledger_and_is_restored_to_the_byte(path: Path, tmp_path: Path) -> None:
    copy, again = tmp_path / "copy.db", tmp_path / "again.db"
    with Ledger.open(path) as ledger:
        found = backup(ledger, copy)
        assert found == ledger.verify(found.anchor)
        entries = list(ledger.entries("city")), ledger.balances()
    assert copy.stat().st_mode & 0o077 == 0
    restored = restore(copy, str(again), anchor=found.anchor, actor="keeper")
    assert (restored.verification.anchor, restored.lost) == (found.anchor, {})
    with Ledger.open(again) as ledger:
        assert (list(ledger.entries("city")), ledger.balances()) == entries
        assert exposure(ledger, paths=["city"], delta=0.0).spent.epsilon == 0.1
        _charge(ledger, "two")
        ledger.verify(found.anchor)
    assert not [name for name in _names(tmp_path) if name.endswith(".part")]


def test_a_backup_of_a_ledger_in_use_is_one_moment(path: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    with Ledger.open(path) as ledger:

        def work(name: int) -> None:
            for number in range(10**6):
                if stop.is_set():
                    return
                _charge(ledger, f"{name}.{number}") if number < 20 else stop.wait(0.001)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        try:
            copies = [backup(ledger, tmp_path / f"copy{number}.db") for number in range(3)]
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        for copy in copies:
            ledger.verify(copy.anchor)
    for number, copy in enumerate(copies):
        with Ledger.open(tmp_path / f"copy{number}.db") as kept:
            assert kept.verify().anchor == copy.anchor


def test_what_is_lost_is_told_and_its_tree_is_closed(path: Path, tmp_path: Path) -> None:
    with Ledger.open(path) as ledger:
        backup(ledger, tmp_path / "copy.db")
        for key in "abc":
            _charge(ledger, key)
        ledger.scope("new", **ADA)
        (tmp_path / "anchor.json").write_text(ledger.anchor().to_json())
    asked = [
        "ledger",
        "admin",
        "restore",
        str(tmp_path / "copy.db"),
        "--anchor",
        str(tmp_path / "anchor.json"),
    ]
    found = invoke([*asked, "--ledger", str(tmp_path / "again.db")])
    assert found.exit_code == 0
    assert "city: what the anchor has after entry 3, up to 6, is lost; it is closed" in found.stderr
    assert "new: it is gone" in found.stderr
    with Ledger.open(tmp_path / "again.db") as ledger:
        with pytest.raises(ClosedScopeError):
            _charge(ledger, "a")
        ledger.charge("survey", cost={"epsilon": "0.01"}, key="still open", **ADA)
        assert [each.kind for each in ledger.entries("city")][-1] == "closed"
        ledger.verify()
    without = invoke(
        [
            "ledger",
            "admin",
            "restore",
            str(tmp_path / "copy.db"),
            "--ledger",
            str(tmp_path / "blind.db"),
        ]
    )
    assert "No anchor was given" in without.stderr


def test_what_is_damaged_or_another_history_is_not_restored(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with Ledger.open(path) as ledger:
        anchor = backup(ledger, copy).anchor
    forked = Anchor(((anchor.heads[0][0], Head(2, "0" * 64)),))
    with pytest.raises(TamperedError, match="entry 2 is not the one that the anchor has"):
        restore(copy, str(tmp_path / "new.db"), anchor=forked, actor="keeper")
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE balance SET spent = replace(spent, '0.1', '0.05')")
    with pytest.raises(TamperedError, match="balance"):
        restore(copy, str(tmp_path / "new.db"), actor="keeper")
    with Ledger.open(path) as ledger, closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE entry SET body = replace(body, '0.1', '0.2') WHERE sequence = 2")
        connection.commit()
        with pytest.raises(TamperedError, match="hash"):
            backup(ledger, tmp_path / "bad.db")
    assert not {"new.db", "bad.db"} & set(_names(tmp_path))


def test_nothing_is_written_over(path: Path, tmp_path: Path) -> None:
    copy, before = tmp_path / "copy.db", path.read_bytes()
    with Ledger.open(path) as ledger:
        backup(ledger, copy)
        for taken in (path, copy, tmp_path):
            with pytest.raises(StoreError, match="is there already"):
                backup(ledger, taken)
        with pytest.raises(StoreError, match="cannot be used"):
            backup(ledger, tmp_path / "no" / "folder.db")
    for beside in ("-wal", "-head", "-shm", "-journal"):
        (tmp_path / f"new.db{beside}").touch()
        with pytest.raises(StoreError, match=rf"new.db{beside} is there already"):
            restore(copy, str(tmp_path / "new.db"), actor="keeper")
        (tmp_path / f"new.db{beside}").unlink()
    with pytest.raises(StoreError, match="is there already"):
        restore(copy, str(path), actor="keeper")
    for url in ("memory:", ""):
        with pytest.raises(DomainError, match="url"):
            restore(copy, url, actor="keeper")
    with pytest.raises(StoreError, match="no such ledger"):
        restore(tmp_path / "nowhere.db", str(tmp_path / "new.db"), actor="keeper")
    assert path.read_bytes() == before


_KILLED = """
import os, signal, sys
from pathlib import Path
from dpcompose.ledger import copying
copying.AT_A_TIME, left = 1, int(sys.argv[3])
written = copying._write
class Killing:
    def __init__(self, rows):
        self.rows = rows
    def many(self, *arguments):
        global left
        left -= 1
        left or os.kill(os.getpid(), signal.SIGKILL)
        return self.rows.many(*arguments)
copying._write = lambda rows, *arguments: written(Killing(rows), *arguments)
if not left:
    copying._name = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
copying.restore(Path(sys.argv[1]), sys.argv[2], actor="keeper")
"""


@pytest.mark.parametrize("writes", [7, 0])
def test_a_killed_restore_leaves_nothing_half_done(path: Path, tmp_path: Path, writes: int) -> None:
    with Ledger.open(path) as ledger:
        backup(ledger, tmp_path / "copy.db")
    _kill(tmp_path, str(tmp_path / "new.db"), writes)
    assert not (tmp_path / "new.db").exists()
    restore(tmp_path / "copy.db", str(tmp_path / "new.db"), actor="keeper")
    with Ledger.open(tmp_path / "new.db") as ledger:
        assert ledger.verify().entries == 6


def _kill(folder: Path, url: str, writes: int) -> None:
    command = [sys.executable, "-c", _KILLED, str(folder / "copy.db"), url, str(writes)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


@pytest.mark.server
def test_a_ledger_moves_between_files_and_databases(
    path: Path, tmp_path: Path, postgres: Server
) -> None:
    url = postgres.create("restored")
    with Ledger.open(path) as ledger:
        anchor = backup(ledger, tmp_path / "copy.db").anchor
    _kill(tmp_path, url, 7)
    with pytest.raises(StoreError, match="no ledger here"):
        Ledger.open(url, read_only=True)
    assert (
        restore(tmp_path / "copy.db", url, anchor=anchor, actor="keeper").verification.anchor
        == anchor
    )
    with pytest.raises(StoreError, match="there is a ledger already"):
        restore(tmp_path / "copy.db", url, anchor=anchor, actor="keeper")
    with Ledger.open(url) as ledger:
        _charge(ledger, "two")
        after = backup(ledger, tmp_path / "back.db").anchor
    restore(tmp_path / "back.db", str(tmp_path / "file.db"), anchor=after, actor="keeper")
    with Ledger.open(tmp_path / "file.db") as ledger:
        assert ledger.verify(anchor).anchor == after
    ahead = Anchor((("city", Head(9, "9" * 64)), ("survey", dict(after.heads)["survey"])))
    other = postgres.create("behind")
    assert restore(tmp_path / "back.db", other, anchor=ahead, actor="keeper").lost == {
        "city": (4, 9)
    }
    with Ledger.open(other) as ledger:
        assert ledger.balance("city").closed
        ledger.verify()


def test_a_copy_that_fails_leaves_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = _names(tmp_path)
    with Ledger.open(path) as ledger, monkeypatch.context() as failing:
        failing.setattr(copying, "_name", full)
        with pytest.raises(StoreError, match="No space left"):
            backup(ledger, tmp_path / "copy.db")
    assert _names(tmp_path) == before
