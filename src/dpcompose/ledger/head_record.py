"""The head record: a file beside the ledger that says how far each chain had come when it was last acknowledged.

It is written after a commit is on disk and never before, and is not synced itself. So it may be behind the ledger; a
ledger that is behind it has lost entries. It has a sector for each chain, with a checksum of its own, because a disk
writes a sector or leaves it; the first sector names the log that was written beside it, and an entry of the file below.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import sleep
from weakref import finalize
from zlib import crc32

from dpcompose.errors import StoreError, TamperedError
from dpcompose.ledger.entry import GENESIS, Head
from dpcompose.ledger.sqlite_connection import (
    damage_of,
    is_in_file,
    log_at,
    mark_of,
    sidecar,
    transaction,
)
from dpcompose.ledger.store import Pool
from dpcompose.ledger.tables import LATEST, VERSION, LedgerTables, Rows, require_known, version_of
from dpcompose.ledger.verification import verify

SECTOR = 512
LONGEST = 300
"""Bytes of a name that is written out; a longer one is known by its hash."""

NO_LOG = "-"
_HEAD_AND_VERSION = (
    f"SELECT sequence, hash, ({LATEST}) FROM entry WHERE root = ? ORDER BY sequence DESC LIMIT 1"
)
Entries = Callable[[str, int], str | None]
"""The hash of an entry by top-level scope and number; None if there is no such entry."""


class LossError(Exception):
    """An acknowledged entry is missing; the message says which."""


@dataclass(frozen=True)
class Claim:
    """That the chain of a top-level scope had come to this head.

    Args:
        label: The scope, as `label_of` writes it.
        head: Its last entry; number 0 claims nothing.
        log: In the first sector: the log that was begun when this entry was in the file itself.
    """

    label: str
    head: Head
    log: str = NO_LOG

    @classmethod
    def read(cls, sector: bytes) -> Claim:
        """The claim of a sector; ValueError if it is damaged."""
        check, _, text = sector.decode().rstrip().partition(" ")
        label, sequence, hash, log = text.split(" ")
        if f"{crc32(text.encode()):08x}" != check:
            raise ValueError(text)
        return cls(label, Head(int(sequence), hash), log)

    @property
    def sector(self) -> bytes:
        """The claim as it is written."""
        text = f"{self.label} {self.head.sequence} {self.head.hash} {self.log}".encode()
        return (b"%08x %b" % (crc32(text), text)).ljust(SECTOR - 1) + b"\n"

    def missing(self, entries: Entries, roots: Callable[[], Iterable[str]]) -> str:
        """The part of this claim that a ledger does not hold, in words; empty if it holds all."""
        root = self.label[1:]
        if self.label[0] == "#":
            root = next((each for each in roots() if label_of(each) == self.label), root)
        if not self.head.sequence or (found := entries(root, self.head.sequence)) == self.head.hash:
            return ""
        return f"{root}: entry {self.head.sequence} was acknowledged and is {'gone' if found is None else 'another'}"


def label_of(root: str) -> str:
    """The name of a top-level scope in a sector."""
    return f"={root}" if len(root.encode()) <= LONGEST else f"#{sha256(root.encode()).hexdigest()}"


def read_claims(path: Path) -> list[Claim]:
    """The claims of the record at `path`, the first sector first; ValueError if it is damaged.

    An empty sector is none: after a power loss a record that grew may have its size and not its content.
    """
    data = path.read_bytes()
    sectors = [data[index : index + SECTOR] for index in range(0, len(data), SECTOR)]
    claims = [
        Claim.read(sector) for index, sector in enumerate(sectors) if not index or any(sector)
    ]
    if not claims:
        raise ValueError("an empty record")
    return claims


def write_record(path: Path, heads: Mapping[str, Head], *, like: Path) -> None:
    """Replace the record by a new one, durably, with the owner and permissions of the ledger `like`."""
    new = path.with_name(f"{path.name}-new")
    claims = [Claim(NO_LOG, Head()), *(Claim(label_of(root), head) for root, head in heads.items())]
    with suppress(FileNotFoundError):
        new.unlink()
    with open(new, "xb", buffering=0) as handle:
        for claim in claims:
            _require_written(handle.write(claim.sector), of=SECTOR)
        copy_permissions(new, like=like)
        os.fsync(handle.fileno())
    new.replace(path)


def copy_permissions(path: Path, *, like: Path) -> None:
    """Give the file at `path` the owner and the permissions of `like`, as SQLite does with its log."""
    wanted = like.stat()
    with suppress(OSError):
        path.chmod(wanted.st_mode & 0o777)
    with suppress(OSError, AttributeError):
        os.chown(path, wanted.st_uid, wanted.st_gid)


class HeadRecord:
    """An open record. Whoever writes holds the ledger's own lock.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._handle = path, os.open(path, os.O_RDWR)
        self._closing = finalize(self, os.close, self._handle)
        self._labels: dict[str, int] = {}
        self._searched = 1
        self._known: dict[int, tuple[bytes, Claim]] = {}

    def claim(self, root: str) -> Head:
        """How far the chain of a top-level scope had come; number 0 where the record does not say."""
        index = self._index(root)
        return Head() if index is None else self._at(index).head

    def reserve(self, root: str) -> None:
        """Make room for a top-level scope before its first entry is committed."""
        if self._index(root) is None:
            index = -(-os.lseek(self._handle, 0, os.SEEK_END) // SECTOR)
            try:
                self._put(index, Claim(label_of(root), Head()))
            except OSError:  # a part of a sector would read as damage
                os.ftruncate(self._handle, index * SECTOR)
                raise
            self._labels[label_of(root)] = index

    def advance(self, root: str, head: Head) -> None:
        """Claim `head`, which is on disk; room was made before."""
        index = self._labels[label_of(root)]
        self._put(index, Claim(self._known[index][1].label, head))

    def is_beside(self, log: str) -> bool:
        """Whether the record names this log."""
        return self._at(0).log == log

    def begin_log(self, log: str, root: str, head: Head) -> None:
        """Note that a new log was begun when the entry `head` was in the file itself."""
        self._put(
            0, Claim(label_of(root), head, log) if head.sequence else Claim(NO_LOG, Head(), log)
        )

    def close(self) -> None:
        """Let go of the file."""
        self._closing()

    def _index(self, root: str) -> int | None:
        label = label_of(root)
        if label not in self._labels:
            stop = os.lseek(self._handle, 0, os.SEEK_END) // SECTOR
            for index in range(self._searched, stop):  # what other processes made room for
                self._labels[self._at(index).label] = index
            self._searched = stop
        return self._labels.get(label)

    def _at(self, index: int) -> Claim:
        sector = os.pread(self._handle, SECTOR, index * SECTOR)
        known = self._known.get(index)
        if known is None or known[0] != sector:
            try:
                known = self._known[index] = sector, Claim.read(sector)
            except (
                ValueError
            ):  # while another process writes it, or after a power loss: it claims nothing
                return Claim(NO_LOG, Head())
        return known[1]

    def _put(self, index: int, claim: Claim) -> None:
        """Write a sector to its end."""
        sector, start, done = claim.sector, index * SECTOR, 0
        while done < SECTOR:
            written = os.pwrite(self._handle, sector[done:], start + done)
            _require_written(written, of=1)
            done += written
        self._known[index] = sector, claim


def _require_written(written: int | None, *, of: int) -> None:
    if written is None or written < of:
        raise OSError(f"only {written} of {SECTOR} bytes of the head record were written")


@dataclass
class CheckedTables(LedgerTables):
    """The stored ledger, compared with the head record: nothing is added to a chain that has lost its end."""

    record: HeadRecord = field(kw_only=True)
    url: str = field(kw_only=True)

    def head(self, root: str) -> Head:
        found, claimed = self._last(root), self.record.claim(root)
        self.forget_before(root, found)
        if claimed == found:
            return found
        if what := Claim(label_of(root), claimed).missing(self.hash, lambda: [root]):
            raise LossError(what)
        return found

    def _last(self, root: str) -> Head:
        """The last entry of a tree; raises if another program has changed the schema to an unknown version."""
        row = self.rows.row(_HEAD_AND_VERSION, (root,))
        sequence, hash, version = row or (0, GENESIS, (self.rows.row(LATEST) or (0,))[0])
        if version != VERSION:
            require_known(version, url=self.url)
        return Head(sequence, hash)


def missing_claims(tables: LedgerTables, claims: Sequence[Claim]) -> Iterator[str]:
    """The claims of a head record that the ledger does not hold, in words."""
    yield from (what for claim in claims[1:] if (what := claim.missing(tables.hash, tables.roots)))


def heads_of(tables: LedgerTables) -> dict[str, Head]:
    """The last entries of all chains, by top-level scope."""
    try:
        return {root: tables.head(root) for root in tables.roots()}
    except TypeError as error:  # other things than text where names are
        raise TamperedError([f"the names of top-level scopes cannot be read ({error})"]) from error


@dataclass(frozen=True)
class CheckedFile:
    """A ledger's file, with the record and the log beside it.

    Args:
        path: The file, links followed.
        url: Its name for messages.
        pool: Connections to it.
    """

    path: Path
    url: str
    pool: Pool[sqlite3.Connection]

    @property
    def record(self) -> Path:
        """The head record."""
        return sidecar(self.path, "-head")

    def state(self) -> tuple[list[Claim] | None, int, bool]:
        """The claims of the record, the version of the schema, and whether the file is marked as one with a record.

        Raises:
            StoreError: An entry is missing, or the log is none that this file can have.
        """
        claims = self._claims()
        with transaction(self.pool) as rows:
            version = version_of(rows, url=self.url)
            require_known(version, url=self.url)
            is_marked = rows.row("PRAGMA user_version") == (mark_of(self.path),)
            if claims is None and is_marked and not self.record.exists():
                raise self.lost(
                    f"its head record {self.record.name} is gone, and entries may be gone with it"
                )
            self._require_whole(rows, version, claims or [])
        return claims, version, is_marked

    def _claims(self) -> list[Claim] | None:
        """The claims of the head record, read before the ledger is; None if there is no record."""
        for pause in (0.001, 0.01, 0.1):
            with suppress(ValueError):
                return read_claims(self.record) if self.record.exists() else None
            sleep(pause)  # another process may be writing that sector
        raise self.lost(f"its head record {self.record.name} is damaged, and entries may be gone")

    def _require_whole(self, rows: Rows, version: int, claims: Sequence[Claim]) -> None:
        tables = LedgerTables(rows, inspect=self.damage)
        missing = list(missing_claims(tables, claims if version else []))
        missing += [
            f"all of {claim.label[1:]}"
            for claim in claims[1:]
            if claim.head.sequence and not version
        ]
        if missing:
            raise self.lost(f"what was acknowledged is missing: {missing[0]}")
        if version and not self._belongs(log_at(self.path), claims):
            try:
                verify(tables, anchor=None, progress=None)
            except TamperedError as error:
                what = f"the file and its log {self.path.name}-wal do not belong together: {error.problems[0]}"
                raise self.lost(what) from error

    def _belongs(self, log: str, claims: Sequence[Claim]) -> bool:
        """Whether a log certainly continues this file; if not, every claim is checked."""
        if not log:
            return True
        if not claims or claims[0].log != log:
            return False
        root, head = claims[0].label[1:], claims[0].head
        return not head.sequence or is_in_file(self.path, root, head)

    def lost(self, what: str) -> StoreError:
        """The error of a ledger that is not whole."""
        remedy = "Put back what is missing; docs/ledger.md, Backup, says how to go on without it"
        return StoreError(self.url, what, remedy)

    def damage(self, rows: Rows) -> Iterator[str]:
        """Faults of the ledger's own file, and heads in the record beside it that the ledger lacks."""
        claims = self._claims() or []
        with transaction(self.pool) as later:  # begun after the record was read
            yield from missing_claims(LedgerTables(later), claims)
        yield from damage_of(rows)
