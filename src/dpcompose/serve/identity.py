"""Who asks: roles and what each may do, tokens, and the subjects of an issuer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from secrets import token_urlsafe
from time import monotonic

from dpcompose import check
from dpcompose.errors import DomainError, UnknownScopeError, UnsupportedError
from dpcompose.ledger import (
    PEOPLE,
    Ledger,
    Moment,
    Statement,
    Token,
    is_at_or_below,
    later,
    now,
    scope_path,
)
from dpcompose.serve.issuer import Issuer

OPERATOR = "operator"
"""Who invites and revokes at the machine of the ledger."""


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
    name: Permission(method, path, None, scoped=False)
    for name, method, path in (
        ("page", "GET", "/"),
        ("page_ask", "GET", "/ask"),
        ("page_people", "GET", "/people"),
        ("page_log", "GET", "/log"),
        ("page_proofs", "GET", "/proofs"),
        ("page_report", "GET", "/report"),
        ("act", "POST", "/act"),
        ("download", "GET", "/download"),
        ("events", "GET", "/events"),
        ("login", "POST", "/login"),
        ("logout", "POST", "/logout"),
        ("style", "GET", "/style.css"),
        ("live", "GET", "/live.js"),
        ("openapi", "GET", "/openapi.json"),
        ("metrics", "GET", "/metrics"),
        ("health", "GET", "/health"),
        ("ready", "GET", "/ready"),
    )
}
"""The routes for browsers, by name."""


LONGEST_NAME = 100
YEAR = 366 * 86400.0
"""No token lasts longer."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


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
        return is_at_or_below(path, self.subtree)


@dataclass
class Clock:
    """A clock that never runs back behind a recorded time, and runs on from it where it was ahead."""

    _recorded: str = ""
    _latest: str = ""
    _at: float = 0.0

    def time(self, recorded: str) -> str:
        """The time now, given the latest recorded one. A record that changed since the last call replaces what was reckoned."""
        running, clock = monotonic(), now()
        if recorded != self._recorded:
            latest = recorded
        else:
            latest = self._latest
            latest = later(latest, running - self._at) if latest > clock else latest
        self._recorded, self._latest, self._at = recorded, max(latest, clock), running
        return self._latest


@dataclass(frozen=True)
class Identities:
    """The people of a service, who are invited and revoked by entries of the ledger, in a chain of their own.

    >>> people = Identities(Ledger.open("memory:"))
    >>> token = people.invite("Ada", Role.ANALYST, "city/health", by="Grace")
    >>> people.find(token).actor
    'Ada@city/health'
    >>> people.find("0" * 43) is None
    True

    Args:
        ledger: Where; of a token it holds the digest alone.
        issuer: Whose tokens are taken too, of subjects that were invited.
    """

    ledger: Ledger
    issuer: Issuer | None = None
    _clock: Clock = field(default_factory=Clock)

    def invite(
        self, name: str, role: Role, subtree: str, *, seconds: float = YEAR, by: str = OPERATOR
    ) -> str:
        """A new token, which is written nowhere: whoever loses it is invited again.

        Args:
            name: Of the person; visible letters on one line, at most 100, without @, in Unicode's form NFC.
            role: What it may do.
            subtree: Where; empty for every scope.
            seconds: How long, at most a year.
            by: Who invites.

        Raises:
            DomainError: A value outside its domain, or a name that looks like another one.
            StoreError: It could not be kept.
        """
        token = token_urlsafe(32)
        self._keep(_digest(token), name, role, subtree, seconds, by)
        return token

    def admit(
        self,
        subject: str,
        name: str,
        role: Role,
        subtree: str,
        *,
        seconds: float = YEAR,
        by: str = OPERATOR,
    ) -> None:
        """Invite a subject of the issuer, whose tokens are then good here; see `invite`.

        Raises:
            UnsupportedError: There is no issuer, or that subject is invited already.
        """
        if self.issuer is None:
            raise UnsupportedError(
                "inviting a subject", "this service has no issuer", "Start it with --issuer"
            )
        digest = _of_subject(self.issuer, check.line("subject", subject))
        self._keep(digest, name, role, subtree, seconds, by)

    def _keep(
        self, digest: str, name: str, role: Role, subtree: str, seconds: float, by: str
    ) -> None:
        if "@" in check.line("name", name) or not len(name) <= LONGEST_NAME:
            raise DomainError(
                "name", name, f"a name of at most {LONGEST_NAME} characters, without @"
            )
        if not 0 < seconds <= YEAR:
            raise DomainError("seconds", seconds, "more than 0, at most a year")
        where, at = scope_path(subtree) if subtree else "", self.now()
        stated = name, Role(role).value, where, at, later(at, seconds)
        self._state(Token.Invite(PEOPLE, by, digest, *stated))

    def find(self, token: str) -> Identity | None:
        """The identity of a token; None if it was never issued, has expired or was revoked."""
        return self.find_all([token])[token]

    def find_all(self, tokens: Collection[str]) -> dict[str, Identity | None]:
        """The identities of several tokens at one moment."""
        found: dict[str, Identity | None] = dict.fromkeys(tokens)
        digests = {token: digest for token in tokens if (digest := self.digest_of(token))}
        if not digests:
            return found
        with self.ledger.moment() as moment:
            time = self._time(moment)
            for token, digest in digests.items():
                own = Token.of(moment.snapshot, PEOPLE, digest)
                if own is not None and own.is_live(time):
                    found[token] = Identity(own.name, Role(own.role), own.subtree)
        return found

    def digest_of(self, token: str) -> str | None:
        """The digest that is kept for a token, if it may be one.

        Raises:
            StoreError: Only an issuer knows, and it cannot be reached.
        """
        if self.issuer is not None and "." in token:
            seconds = datetime.fromisoformat(self.now()).timestamp()
            subject = self.issuer.subject(token, seconds)
            return None if subject is None else _of_subject(self.issuer, subject)
        return _digest(token) if _TOKEN.fullmatch(token) else None

    def listed(self, subtree: str) -> list[tuple[str, Token]]:
        """Everybody who was ever invited at or below a scope, with the digest, the newest first."""
        with self.ledger.moment() as moment:
            tokens = Token.all(moment.snapshot, PEOPLE)
        own = [each for each in tokens.items() if is_at_or_below(each[1].subtree, subtree)]
        return sorted(own, key=lambda each: (each[1].at, each[1].name, each[1].role), reverse=True)

    def revoke(self, name: str, subtree: str, *, by: str = OPERATOR) -> int:
        """Revoke every token of a name in a subtree; returns how many there were.

        Raises:
            DomainError: Nobody of that name was invited for exactly that subtree.
            UnsupportedError: If nobody could keep that subtree afterwards.
        """
        before, at = self._live(), self.now()
        self._state(Token.Revoke(PEOPLE, by, name, subtree, at))
        return len(before - self._live())

    def _live(self) -> set[str]:
        with self.ledger.moment() as moment:
            time = self._time(moment)
            tokens = Token.all(moment.snapshot, PEOPLE)
        return {digest for digest, token in tokens.items() if token.is_live(time)}

    def trust_clock(self) -> float:
        """Accept the clock although a later time was recorded; returns the seconds between the two.

        Tokens that were invited in the time that is still to come are revoked.
        """
        ahead = self.ahead
        self._state(Token.TrustClock(PEOPLE, OPERATOR, now()))
        return ahead

    @property
    def ahead(self) -> float:
        """The seconds that a recorded time is ahead of the clock."""
        latest, clock = self.now(), now()
        return (datetime.fromisoformat(latest) - datetime.fromisoformat(clock)).total_seconds()

    def now(self) -> str:
        """The time; it never runs back, so an expired token stays expired when the clock is set back."""
        with self.ledger.moment() as moment:
            return self._time(moment)

    def _time(self, moment: Moment) -> str:
        return self._clock.time(Token.clock(moment.snapshot))

    def _state(self, statement: Statement) -> None:
        try:
            self.ledger.state(statement)
        except UnknownScopeError:
            self.ledger.scope(PEOPLE, actor=OPERATOR)
            self.ledger.state(statement)


def _of_subject(issuer: Issuer, subject: str) -> str:
    """The digest under which a subject is kept; that of no token."""
    return _digest(json.dumps([issuer.url, subject]))


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
