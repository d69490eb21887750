"""Whoever was revoked stays revoked: a ledger that is older, or lacks a part, is refused until it is put back."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from dpcompose.errors import StoreError
from dpcompose.ledger import Ledger
from dpcompose.serve import Identities, Role

_KILLED = """
import os, signal, sqlite3, sys
from dpcompose.ledger import Ledger
from dpcompose.serve import Identities, Role
people = Identities(Ledger.open(sys.argv[1]))
people.revoke("Ada", "city")
sqlite3.connect(sys.argv[1]).execute("pragma wal_checkpoint(truncate)").fetchall()
people.invite("Ben", Role.ANALYST, "city")  # begins another log
os.kill(os.getpid(), signal.SIGKILL)
"""
ENDS = ("", "-wal", "-shm", "-head")


class Files:
    """A ledger whose server was killed after a revocation, and a copy from before."""

    def __init__(self, folder: Path) -> None:
        self.path, self.older, self.whole = (
            folder / name for name in ("city.db", "monday.db", "whole")
        )
        people = Identities(Ledger.open(self.path))
        people.invite("Grace", Role.KEEPER, "")
        self.ada = people.invite("Ada", Role.ANALYST, "city")
        people.ledger.close()
        shutil.copy(self.path, self.older)
        killed = subprocess.run([sys.executable, "-c", _KILLED, self.path], check=False)
        assert killed.returncode == -signal.SIGKILL
        self.whole.mkdir()
        for end in filter(lambda end: self.at(end).exists(), ENDS):
            shutil.copy(self.at(end), self.whole)

    def at(self, end: str) -> Path:
        return self.path.with_name(f"city.db{end}")

    def remove(self, *ends: str) -> None:
        for end in ends:
            self.at(end).unlink()

    def go_back(self) -> None:
        """Put the copy from before into the file, which stays the same file."""
        self.path.write_bytes(self.older.read_bytes())

    def put_back(self) -> None:
        for end in ENDS:
            self.at(end).write_bytes((self.whole / self.at(end).name).read_bytes())

    def exchange(self) -> None:
        """Another file, of the same name."""
        self.remove("")
        shutil.copy(self.older, self.path)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Files of its own for each test: a file that was exchanged is another one, which is marked as without a record."""
    return Files(tmp_path)


SPOILED: dict[str, Callable[[Files], object]] = {
    "the log is gone": lambda files: files.remove("-wal", "-shm"),
    "an older file without a log": lambda files: (files.remove("-wal", "-shm"), files.go_back()),
    "an older file beside the log": lambda files: (files.remove("-shm"), files.go_back()),
    "another older file": lambda files: (files.remove("-wal", "-shm"), files.exchange()),
    "the record is gone": lambda files: files.remove("-head"),
    "the file is gone": lambda files: files.remove("", "-wal", "-shm"),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_revocation_is_there_or_its_loss_is_told(files: Files, spoil: Callable[[Files], object]):
    files.put_back()
    spoil(files)
    for _ in range(2):  # to look at it heals nothing
        try:
            with Ledger.open(files.path) as ledger:  # pages that the log has are those of the end
                assert spoil is SPOILED["an older file beside the log"]
                assert Identities(ledger).find(files.ada) is None and ledger.verify().entries
        except StoreError as error:
            assert re.search("missing|gone|belong", str(error))
    files.put_back()
    with Ledger.open(files.path) as ledger:
        assert Identities(ledger).find(files.ada) is None and ledger.verify().entries


def test_two_processes_invite_and_revoke_in_one_ledger(tmp_path: Path):
    first, second = (Identities(Ledger.open(tmp_path / "city.db")) for _ in range(2))
    first.invite("Grace", Role.KEEPER, "")
    for number in range(3):
        token = (first, second)[number % 2].invite("Ada", Role.ANALYST, "city")
        assert (second, first)[number % 2].revoke("Ada", "city") == 1
        assert first.find(token) is None and second.find(token) is None
    first.ledger.verify()


def test_who_was_invited_by_whom_and_revoked_when_is_in_the_chain(tmp_path: Path):
    people = Identities(Ledger.open(tmp_path / "city.db"))
    people.invite("Grace", Role.KEEPER, "")
    token = people.invite("Ada", Role.ANALYST, "city", by="Grace")
    people.revoke("Ada", "city", by="Grace")
    stated = [each for each in people.ledger.entries("~people") if each.kind == "stated"]
    kinds = [(each.actor, each.fields["statement"]["kind"]) for each in stated]
    assert kinds == [
        ("operator", "Invite"),
        ("Grace", "Invite"),
        ("Grace", "Revoke"),
    ]
    ((_, ada),) = people.listed("city")
    assert (ada.name, ada.by, ada.revoked_by) == ("Ada", "Grace", "Grace") and ada.revoked
    assert not any(token in each.body for each in stated)
    assert (tmp_path / "city.db").stat().st_mode & 0o777 == 0o600
