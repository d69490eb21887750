"""People: who was invited to which subtree, and revoked, as facts of a chain of their own."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, replace
from typing import ClassVar

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger.amount import encode
from dpcompose.ledger.entry import Fact, Facts, Statement, View, later
from dpcompose.ledger.scope import is_at_or_below

PEOPLE = "~people"
"""The tree in whose chain people are invited and revoked; a scope without a budget."""
WEEK = 7 * 86400.0
"""Whoever is to stay as the last keeper has a token for so long, or as long as the one that is revoked."""

_LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u043a\u043c\u0442\u043d\u0432"
    "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c5\u03c7\u03b5\u03c4\u03b2\u0131\u01010l1|",
    "aeopcyxijshdqwkmthb" + "aopviku" + "xetbia" + "oiii",
)


def skeleton(name: str) -> str:
    """One text for all spellings of a name that look alike: case, width, and letters of other scripts."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return folded.translate(_LOOKALIKES)


@dataclass(frozen=True)
class Token(Fact):
    """A token, or a subject of an issuer; the digest names the fact.

    Args:
        name: Of the person, as whoever invited wrote it.
        role: What it may do.
        subtree: Where: this scope and all below it; empty for every scope.
        until: When it expires, by the clock of the service.
        at: When it was invited.
        by: Who invited.
        revoked: When it was revoked; empty if it was not.
        revoked_by: Who revoked it.
    """

    kind = "token"
    CLOCK: ClassVar[str] = "clock"
    """The kind of the fact that says how far the clock of the people had come."""
    name: str
    role: str
    subtree: str
    until: str
    at: str
    by: str
    revoked: str = ""
    revoked_by: str = ""

    def is_live(self, time: str) -> bool:
        """Whether it is good at a time."""
        return not self.revoked and time < self.until

    @classmethod
    def clock(cls, view: View) -> str:
        """The latest time of which a statement about people said that it had come; empty if none did."""
        return json.loads(view.fact(PEOPLE, cls.CLOCK, "") or '""')

    @dataclass(frozen=True)
    class Invite(Statement, stated="Invite"):
        """Invite a person: a token of that digest is good until a time."""

        digest: str
        name: str
        role: str
        subtree: str
        at: str
        until: str

        def changes(self, view: View, time: str) -> Facts:
            tokens = Token.all(view, PEOPLE)
            old = tokens.get(self.digest)
            if old is not None and old.is_live(self.at):
                what = "it is invited already, and has one role in one subtree"
                raise UnsupportedError("inviting this subject", what, "Revoke that first")
            for each in tokens.values():
                one, other = each.subtree, self.subtree
                meets = is_at_or_below(one, other) or is_at_or_below(other, one)
                alike = each.name != self.name and skeleton(each.name) == skeleton(self.name)
                if alike and meets and each.is_live(self.at):
                    domain = f"a name that does not look like {each.name!r}, who is invited"
                    raise DomainError("name", self.name, domain)
            stated = self.name, self.role, self.subtree, self.until
            new = Token(*stated, at=self.at, by=self.actor)
            return {(Token.kind, self.digest): new.text, **_clock(self.at)}

    @dataclass(frozen=True)
    class Revoke(Statement, stated="Revoke"):
        """Revoke the tokens of a name in a subtree."""

        name: str
        subtree: str
        at: str

        def changes(self, view: View, time: str) -> Facts:
            tokens, named = Token.all(view, PEOPLE), (self.name, self.subtree)
            own = {digest: t for digest, t in tokens.items() if (t.name, t.subtree) == named}
            if not own:
                domain = (
                    f"a name and scope as they were invited, not {self.subtree or 'every scope'}"
                )
                raise DomainError("name", self.name, domain)
            live = {digest: each for digest, each in own.items() if each.is_live(self.at)}
            until = max((t.until for t in live.values() if t.role == "keeper"), default="")
            needed = min(until, later(self.at, WEEK))
            others = (t for digest, t in tokens.items() if digest not in live)
            keepers = [t for t in others if t.is_live(self.at) and t.role == "keeper"]
            if until and not any(
                each.until >= needed and is_at_or_below(self.subtree, each.subtree)
                for each in keepers
            ):
                what = "nobody could keep that subtree"
                remedy = "Invite another for a week or longer first"
                raise UnsupportedError("revoking the last keeper", what, remedy)
            return _revoked(live, self.at, self.actor) if live else {}

    @dataclass(frozen=True)
    class TrustClock(Statement, stated="TrustClock"):
        """Accept a clock that is behind a time that was recorded: tokens that were invited later are revoked."""

        at: str

        def changes(self, view: View, time: str) -> Facts:
            tokens, latest = Token.all(view, PEOPLE), later(self.at, 366 * 86400.0)
            wrong = {d: t for d, t in tokens.items() if t.at > self.at or t.until > latest}
            return _revoked(wrong, self.at, self.actor)


def _clock(at: str) -> dict[tuple[str, str], str | None]:
    return {(Token.CLOCK, ""): encode(at)}


def _revoked(tokens: dict[str, Token], at: str, by: str) -> Facts:
    """The facts that revoke tokens, by their digests."""
    gone = {digest: replace(each, revoked=at, revoked_by=by) for digest, each in tokens.items()}
    return _clock(at) | {(Token.kind, digest): each.text for digest, each in gone.items()}
