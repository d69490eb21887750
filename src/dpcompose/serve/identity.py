"""Who asks: roles and what each may do, tokens, and the subjects of an issuer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import scope_path
from dpcompose.serve.database import YEAR, Database, Row
from dpcompose.serve.issuer import Issuer


class Role(StrEnum):
    """The role of an identity in its subtree."""

    KEEPER = "keeper"
    """Opens and closes budgets, and invites."""
    ANALYST = "analyst"
    """Asks prices, charges and redeems; reads own entries."""
    AUDITOR = "auditor"
    """Reads everything, writes nothing."""


@dataclass(frozen=True)
class Permission:
    """A route, and the roles that may call it for scopes of their own subtree.

    >>> Permission("POST", "/v1/charge", frozenset({Role.ANALYST})).allows(Role.AUDITOR)
    False

    Args:
        method: Of HTTP.
        path: Of the URL.
        roles: Who may ask it; None for everybody, also without a token.
        scoped: Whether it is about one scope, which must lie in the subtree; else about the caller alone.
    """

    method: str
    path: str
    roles: frozenset[Role] | None
    scoped: bool = True

    def allows(self, role: Role) -> bool:
        """Whether that role may call it, for its own subtree."""
        return self.roles is None or role in self.roles


PAGES = {
    "page": Permission("GET", "/", None, scoped=False),
    "act": Permission("POST", "/act", None, scoped=False),
    "download": Permission("GET", "/download", None, scoped=False),
    "events": Permission("GET", "/events", None, scoped=False),
    "login": Permission("POST", "/login", None, scoped=False),
    "logout": Permission("POST", "/logout", None, scoped=False),
    "style": Permission("GET", "/style.css", None, scoped=False),
    "openapi": Permission("GET", "/openapi.json", None, scoped=False),
    "live": Permission("GET", "/live.js", None, scoped=False),
    "metrics": Permission("GET", "/metrics", None, scoped=False),
}
"""The routes for browsers, by name."""


LONGEST_NAME = 100
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
WEEK = 7 * 86400.0
"""Whoever is to stay as the last keeper has a token for so long, or as long as the one that is revoked."""


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
        """The actor as entries name it. It holds the subtree, so no keeper can invite an actor of another subtree."""
        return f"{self.name}@{self.subtree}" if self.subtree else self.name

    def covers(self, path: str) -> bool:
        """Whether a scope lies in the subtree."""
        return not self.subtree or path == self.subtree or path.startswith(f"{self.subtree}/")


@dataclass(frozen=True)
class Identities:
    """The issued tokens, in a database of their own.

    >>> people = Identities.open(":memory:")
    >>> token = people.invite("Ada", Role.ANALYST, "city/health")
    >>> people.find(token).actor
    'Ada@city/health'
    >>> people.find("0" * 43) is None
    True

    Args:
        database: Where.
        issuer: Whose tokens are taken too, of subjects that were invited.
    """

    database: Database
    issuer: Issuer | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        clock: Callable[[], float] = time.time,
        issuer: Issuer | None = None,
    ) -> Identities:
        """The identities in a SQLite file, which is made where there is none, or in a PostgreSQL database.

        Args:
            path: The file, or `postgresql://user@host/database`, which several servers share.
            clock: Seconds since 1970.
            issuer: Of OpenID Connect, whose tokens are taken too.

        Raises:
            StoreError: It cannot be opened.
        """
        return cls(Database.open(path, clock=clock), issuer)

    def invite(self, name: str, role: Role, subtree: str, *, seconds: float = YEAR) -> str:
        """A new token; it is shown once, and only its digest is stored.

        Raises:
            DomainError: A value outside its domain.
            StoreError: It could not be kept.
        """
        token = token_urlsafe(32)
        self._keep(_digest(token), name, role, subtree, seconds)
        return token

    def admit(
        self, subject: str, name: str, role: Role, subtree: str, *, seconds: float = YEAR
    ) -> None:
        """Invite the subject of an issuer; no token of the service is created.

        Raises:
            DomainError: A value outside its domain.
            UnsupportedError: There is no issuer, or that subject is invited already.
            StoreError: It could not be kept.
        """
        if self.issuer is None:
            raise UnsupportedError(
                "inviting a subject", "this service has no issuer", "Start it with --issuer"
            )
        self._keep(
            _of_subject(self.issuer, check.line("subject", subject)), name, role, subtree, seconds
        )

    def _keep(self, digest: str, name: str, role: Role, subtree: str, seconds: float) -> None:
        if "@" in check.line("name", name) or not len(name) <= LONGEST_NAME:
            raise DomainError(
                "name", name, f"a name of at most {LONGEST_NAME} characters, without @"
            )
        if not 0 < seconds <= YEAR:
            raise DomainError("seconds", seconds, "more than 0, at most a year")
        where, now = scope_path(subtree) if subtree else "", self.database.now()
        with self.database.locked("") as run:
            if run(
                "select 1 from service_token where digest = ? and revoked = 0 and expires > ?",
                (digest, now),
            ):
                what, remedy = "inviting this subject", "Revoke that first"
                raise UnsupportedError(
                    what, "it is invited already, and has one role in one subtree", remedy
                )
            run("delete from service_token where digest = ?", (digest,))
            run(
                "insert into service_token (digest, name, role, subtree, expires) values (?, ?, ?, ?, ?)",
                (digest, name, Role(role).value, where, now + seconds),
            )
            run("delete from service_issued where digest = ?", (digest,))
            run("insert into service_issued (digest, issued) values (?, ?)", (digest, now))

    def find(self, token: str) -> Identity | None:
        """The identity of a token; None if it was never issued, has expired or was revoked."""
        return self.find_all([token])[token]

    def find_all(self, tokens: Collection[str]) -> dict[str, Identity | None]:
        """The identities of several tokens at one moment."""
        digests = {token: self._digest_of(token) for token in tokens}
        asked = [digest for digest in digests.values() if digest is not None]
        found: dict[str | None, Identity] = {}
        if asked:
            rows = self._run(
                "select digest, name, role, subtree from service_token where revoked = 0 and expires > ?"
                f" and digest in ({', '.join('?' * len(asked))})",
                (self.database.now(), *asked),
            )
            found = {
                digest: Identity(name, Role(role), subtree) for digest, name, role, subtree in rows
            }
        return {token: found.get(digest) for token, digest in digests.items()}

    def _digest_of(self, token: str) -> str | None:
        """The digest that is kept for a token, if it may be one."""
        if self.issuer is not None and "." in token:
            subject = self.issuer.subject(token, self.database.now())
            return None if subject is None else _of_subject(self.issuer, subject)
        return _digest(token) if _TOKEN.fullmatch(token) else None

    def revoke(self, name: str, subtree: str) -> int:
        """Revoke every token of a name in a subtree, and say how many there were.

        Raises:
            DomainError: Nobody of that name was invited for exactly that subtree.
            UnsupportedError: If nobody could keep that subtree afterwards.
        """
        now = self.database.now()
        with self.database.locked("") as run:
            live = run(
                "select name, role, subtree, expires from service_token where revoked = 0 and expires > ?",
                (now,),
            )
            if not run(
                "select 1 from service_token where name = ? and subtree = ?", (name, subtree)
            ):
                raise DomainError(
                    "name",
                    name,
                    f"a name and scope as they were invited, not {subtree or 'every scope'}",
                )
            gone = [each for each in live if each[0] == name and each[2] == subtree]
            until = max(
                (expires for _, role, _, expires in gone if role == Role.KEEPER), default=0.0
            )
            keepers = [
                each
                for each in live
                if each not in gone and each[1] == Role.KEEPER and each[3] >= min(until, now + WEEK)
            ]
            kept = any(
                Identity(other, Role.KEEPER, where).covers(subtree)
                for other, _, where, _ in keepers
            )
            if until and not kept:
                what, remedy = (
                    "revoking the last keeper",
                    "Invite another for a week or longer first",
                )
                raise UnsupportedError(what, "nobody could keep that subtree", remedy)
            run(
                "update service_token set revoked = 1 where name = ? and subtree = ?",
                (name, subtree),
            )
        return len(gone)

    def _run(self, statement: str, values: tuple[object, ...]) -> list[Row]:
        with self.database.transaction(write=False) as run:
            return run(statement, values)


def _of_subject(issuer: Issuer, subject: str) -> str:
    """The digest under which a subject is kept; that of no token."""
    return _digest(json.dumps([issuer.url, subject]))


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
