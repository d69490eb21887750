"""Identities and their tokens: 256 random bits each, of which the file beside the ledger keeps the SHA-256 alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger.text import scope_path
from dpcompose.serve.database import Database, Row
from dpcompose.serve.permission import Role

_NAME = re.compile(r"[^\x00-\x20\x7f-\x9f@\ud800-\udfff](?:[^\x00-\x1f\x7f-\x9f@\ud800-\udfff]{0,98}[^\s@])?")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
YEAR = 366 * 86400.0


@dataclass(frozen=True)
class Identity:
    """Who asks.

    Args:
        name: As whoever invited wrote it.
        role: What it may do.
        subtree: Where: this scope and all below it; empty for every scope.
    """

    name: str
    role: Role
    subtree: str

    @property
    def actor(self) -> str:
        """As entries name it. Who may invite in one subtree can so be nobody of another."""
        return f"{self.name}@{self.subtree}" if self.subtree else self.name

    def covers(self, path: str) -> bool:
        """Whether a scope lies in the subtree."""
        return not self.subtree or path == self.subtree or path.startswith(f"{self.subtree}/")


@dataclass(frozen=True)
class Identities:
    """The tokens that were given, in a file of their own.

    >>> people = Identities.open(":memory:")
    >>> token = people.invite("Ada", Role.ANALYST, "city/health")
    >>> people.find(token).actor
    'Ada@city/health'
    >>> people.find("0" * 43) is None
    True

    Args:
        database: Where.
    """

    database: Database

    @classmethod
    def open(cls, path: str | Path, *, clock: Callable[[], float] = time.time) -> Identities:
        """The identities in a SQLite file, which is made where there is none, or in a PostgreSQL database.

        Args:
            path: The file, or `postgresql://user@host/database`, which several servers share.
            clock: Seconds since 1970.

        Raises:
            StoreError: It cannot be opened.
        """
        return cls(Database.open(path, clock=clock))

    def invite(self, name: str, role: Role, subtree: str, *, seconds: float = YEAR) -> str:
        """A new token, which is shown once and kept nowhere.

        Raises:
            DomainError: A value outside its domain.
            StoreError: It could not be kept.
        """
        if not (isinstance(name, str) and _NAME.fullmatch(name)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("name", name, "a name of at most 100 characters, without @")
        if not 0 < seconds <= YEAR:
            raise DomainError("seconds", seconds, "more than 0, at most a year")
        token, where = token_urlsafe(32), scope_path(subtree) if subtree else ""
        self._run(
            "insert into service_token (digest, name, role, subtree, expires) values (?, ?, ?, ?, ?)",
            (_digest(token), name, Role(role).value, where, self.database.now() + seconds),
            write=True,
        )
        return token

    def find(self, token: str) -> Identity | None:
        """Whose token it is; None for one that was never given, has expired or was revoked."""
        if not _TOKEN.fullmatch(token):
            return None
        digest = _digest(token)
        rows = self._run(
            "select digest, name, role, subtree from service_token where digest = ? and revoked = 0 and expires > ?",
            (digest, self.database.now()),
        )
        for found, name, role, subtree in rows:
            if compare_digest(found, digest):
                return Identity(name, Role(role), subtree)
        return None

    def revoke(self, name: str, subtree: str) -> int:
        """Revoke every token of a name in a subtree, and say how many there were.

        Raises:
            UnsupportedError: If nobody could keep that subtree afterwards.
        """
        now = self.database.now()
        with self.database.locked("") as run:
            live = run("select name, role, subtree from service_token where revoked = 0 and expires > ?", (now,))
            gone = [each for each in live if each[0] == name and each[2] == subtree]
            keepers = [each for each in live if each not in gone and each[1] == Role.KEEPER]
            kept = any(Identity(other, Role.KEEPER, where).covers(subtree) for other, _, where in keepers)
            if any(role == Role.KEEPER for _, role, _ in gone) and not kept:
                what, remedy = "revoking the last keeper", "Invite another first"
                raise UnsupportedError(what, "nobody could keep that subtree", remedy)
            run("update service_token set revoked = 1 where name = ? and subtree = ?", (name, subtree))
        return len(gone)

    def _run(self, statement: str, values: tuple[object, ...], *, write: bool = False) -> list[Row]:
        with self.database.transaction(write=write) as run:
            return run(statement, values)


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
