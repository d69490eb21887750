"""Whether a SQLite file holds all that was acknowledged: its head record and its log are compared with its entries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import sleep

from dpcompose.errors import StoreError, TamperedError
from dpcompose.ledger.head_record import Claim, missing_claims, read_claims
from dpcompose.ledger.pool import Pool
from dpcompose.ledger.schema import VERSION, require_known, version_of
from dpcompose.ledger.sqlite_connection import (
    beside,
    damage_of,
    is_in_file,
    log_at,
    mark_of,
    transaction,
)
from dpcompose.ledger.store import Rows
from dpcompose.ledger.tables import LedgerTables
from dpcompose.ledger.verification import verify


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
        return beside(self.path, "-head")

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
        if version == VERSION and not self._belongs(log_at(self.path), claims):
            try:
                verify(tables, anchor=None, progress=None)
            except TamperedError as error:
                what = f"the file and its log {self.path.name}-wal do not belong together: {error.problems[0]}"
                raise self.lost(what) from error

    def _belongs(self, log: str, claims: Sequence[Claim]) -> bool:
        """Whether a log is known to go on where this file ends; if not, it may, and everything is looked at."""
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
        """Faults of the file itself, and claims of the head record that the ledger does not hold."""
        claims = self._claims() or []
        with transaction(self.pool) as later:  # begun after the record was read
            yield from missing_claims(LedgerTables(later), claims)
        yield from damage_of(rows)
