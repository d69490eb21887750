"""A file of people that is older than what was acknowledged, or lacks a part, is refused: no token comes back."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from dpcompose.errors import StoreError
from dpcompose.serve import Identities, Role

_KILLED = """
import os, signal, sys
from dpcompose.serve import Identities, Role
people = Identities.open(sys.argv[1])
people.revoke("Ada", "city")
with people.database.transaction(write=False) as run:
    run("pragma wal_checkpoint(truncate)")
people.invite("Ben", Role.ANALYST, "city")  # begins another log
os.kill(os.getpid(), signal.SIGKILL)
"""
ENDS = ("", "-wal", "-shm", "-head")


class Files:
    """A file of people whose server was killed after a revocation, and a copy from before."""

    def __init__(self, folder: Path) -> None:
        self.path, self.older, self.whole = (
            folder / "people.db",
            folder / "monday.db",
            folder / "whole",
        )
        people = Identities.open(self.path)
        people.invite("Grace", Role.KEEPER, "")
        self.ada = people.invite("Ada", Role.ANALYST, "city")
        people.database.close()
        shutil.copy(self.path, self.older)
        killed = subprocess.run([sys.executable, "-c", _KILLED, self.path], check=False)
        assert killed.returncode == -signal.SIGKILL
        self.whole.mkdir()
        for end in filter(lambda end: self.at(end).exists(), ENDS):
            shutil.copy(self.at(end), self.whole)

    def at(self, end: str) -> Path:
        return self.path.with_name(f"people.db{end}")

    def remove(self, *ends: str) -> None:
        for end in ends:
            self.at(end).rename(self.at(f"{end}-kept"))

    def go_back(self) -> None:
        """Put the copy from before into the file, which stays the same file."""
        self.path.write_bytes(self.older.read_bytes())

    def put_back(self) -> None:
        for end in ENDS:
            if self.at(f"{end}-kept").exists():
                self.at(f"{end}-kept").replace(self.at(end))
            self.at(end).write_bytes((self.whole / self.at(end).name).read_bytes())

    def exchange(self) -> None:
        """Another file, of the same name."""
        self.remove("")
        shutil.copy(self.older, self.path)

    def spoil(self) -> None:
        self.at("-head").write_bytes(b"0" * 1024)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("people"))


SPOILED: dict[str, Callable[[Files], object]] = {
    "the log is gone": lambda files: files.remove("-wal", "-shm"),
    "an older file without a log": lambda files: (files.remove("-wal", "-shm"), files.go_back()),
    "an older file beside the log": lambda files: (files.remove("-shm"), files.go_back()),
    "another older file beside the log": lambda files: (files.remove("-shm"), files.exchange()),
    "another older file": lambda files: (files.remove("-wal", "-shm"), files.exchange()),
    "the record is gone": lambda files: files.remove("-head"),
    "the log and the record are gone": lambda files: files.remove("-wal", "-shm", "-head"),
    "the record is damaged": Files.spoil,
    "the file is gone": lambda files: files.remove("", "-wal", "-shm"),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_file_of_people_that_lacks_a_change_is_refused_until_it_is_put_back(
    files: Files, spoil: Callable[[Files], object]
):
    spoil(files)
    for _ in range(2):  # to look at it heals nothing
        with pytest.raises(
            StoreError, match=r"acknowledged are missing.*docs/service\.md, Operations"
        ):
            Identities.open(files.path)
    files.put_back()
    people = Identities.open(files.path)
    assert people.find(files.ada) is None
    people.database.close()
    files.put_back()


def test_a_file_of_people_that_was_killed_goes_on_and_so_does_a_copy_under_a_new_name(
    files: Files, tmp_path: Path
):
    people = Identities.open(files.path)
    assert (
        people.find(files.ada) is None
        and people.find(people.invite("Cleo", Role.AUDITOR, "")) is not None
    )
    copied = tmp_path / "copied.db"
    with sqlite3.connect(files.path) as connection:
        connection.execute("vacuum into ?", (str(copied),))
    people.database.close()
    again = Identities.open(copied)
    assert again.find(files.ada) is None and again.revoke("Ben", "city") == 1
    older = Identities.open(
        files.older
    )  # the documented way to go on with less: whoever was revoked is revoked again
    assert older.find(files.ada) is not None and older.revoke("Ada", "city") == 1


def test_two_processes_change_one_file_of_people(tmp_path: Path):
    first, second = (Identities.open(tmp_path / "people.db") for _ in range(2))
    first.invite("Grace", Role.KEEPER, "")
    for number in range(5):
        token = (first, second)[number % 2].invite("Ada", Role.ANALYST, "city")
        assert (second, first)[number % 2].revoke("Ada", "city") == 1
        assert first.find(token) is None and second.find(token) is None
    for each in (first, second):
        each.database.close()
    Identities.open(tmp_path / "people.db")


def test_a_file_that_goes_back_under_a_running_service_is_not_written(tmp_path: Path):
    path = tmp_path / "people.db"
    people = Identities.open(path)
    people.invite("Grace", Role.KEEPER, "")
    with sqlite3.connect(path) as connection:
        connection.execute("update service_head set sequence = 0")
    with pytest.raises(StoreError, match="acknowledged are missing"):
        people.invite("Ada", Role.ANALYST, "city")
    people.database.close()
    with pytest.raises(StoreError, match="acknowledged are missing"):
        Identities.open(path)


def test_a_file_of_an_earlier_version_gets_a_record(tmp_path: Path):
    path = tmp_path / "people.db"
    people = Identities.open(path)
    token = people.invite("Grace", Role.KEEPER, "")
    people.database.close()
    with sqlite3.connect(path) as connection:
        connection.execute("drop table service_head")
        connection.execute("pragma user_version = 0")
    connection.close()
    for end in ("-head", "-turn"):
        os.unlink(f"{path}{end}")
    assert Identities.open(path).find(token) is not None and Path(f"{path}-head").exists()
