"""Who may ask what: one table of every route of the service."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """The part that an identity has in its subtree."""

    KEEPER = "keeper"
    """Opens and closes budgets, and invites."""
    ANALYST = "analyst"
    """Asks prices, charges and redeems; reads own entries."""
    AUDITOR = "auditor"
    """Reads everything, writes nothing."""


@dataclass(frozen=True)
class Permission:
    """One route, and who may ask it of scopes in their subtree; of other scopes nobody may.

    >>> PERMISSIONS["charge"].allows(Role.AUDITOR)
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
        """Whether that role may ask it, of its own subtree."""
        return self.roles is None or role in self.roles


_KEEPER, _ANALYST, _AUDITOR = (
    frozenset({Role.KEEPER}),
    frozenset({Role.ANALYST}),
    frozenset({Role.AUDITOR}),
)

PERMISSIONS = {
    "price": Permission("POST", "/v1/price", _KEEPER | _ANALYST),
    "charge": Permission("POST", "/v1/charge", _ANALYST),
    "redeem": Permission("POST", "/v1/redeem", _ANALYST),
    "budget": Permission("GET", "/v1/budget", _KEEPER | _ANALYST | _AUDITOR),
    "kept": Permission("GET", "/v1/kept", _KEEPER | _ANALYST | _AUDITOR),
    "keep": Permission("POST", "/v1/keep", _ANALYST),
    "left": Permission("GET", "/v1/left", _KEEPER | _ANALYST | _AUDITOR),
    "history": Permission("GET", "/v1/history", _ANALYST),
    "balances": Permission("GET", "/v1/balances", _KEEPER | _AUDITOR),
    "entries": Permission("GET", "/v1/entries", _KEEPER | _AUDITOR),
    "verify": Permission("GET", "/v1/verify", _AUDITOR),
    "checkpoint": Permission("GET", "/v1/checkpoint", _KEEPER | _AUDITOR),
    "proof": Permission("GET", "/v1/proof", _KEEPER | _AUDITOR),
    "reserve": Permission("POST", "/v1/reserve", _ANALYST),
    "unreserve": Permission("POST", "/v1/unreserve", _KEEPER | _ANALYST),
    "request": Permission("POST", "/v1/request", _ANALYST),
    "requests": Permission("GET", "/v1/requests", _KEEPER | _ANALYST | _AUDITOR),
    "decide": Permission("POST", "/v1/decide", _KEEPER),
    "quota": Permission("POST", "/v1/quota", _KEEPER),
    "threshold": Permission("POST", "/v1/threshold", _KEEPER),
    "agreed": Permission("GET", "/v1/agreed", _KEEPER | _ANALYST | _AUDITOR),
    "open": Permission("POST", "/v1/open", _KEEPER),
    "close": Permission("POST", "/v1/close", _KEEPER),
    "invite": Permission("POST", "/v1/invite", _KEEPER),
    "revoke": Permission("POST", "/v1/revoke", _KEEPER),
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
"""Every route by name. The application is built from this table, so no other route answers."""
