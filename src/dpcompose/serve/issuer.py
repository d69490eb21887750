"""Single sign-on: tokens that an OpenID Connect issuer signed for this service."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Any, cast
from urllib.parse import urlsplit

from dpcompose.errors import DomainError, StoreError
from dpcompose.files import each_once

ALGORITHMS = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC"}
"""Those that are taken, each with the type of its keys; none whose key is a secret, which what is published is not."""

TYPES = ("jwt", "at+jwt")
"""Types of tokens, where one is stated: others, such as logout+jwt, say something else than who asks."""
LEEWAY = 60.0
"""Seconds by which the issuer's clock may be ahead."""
FRESH, STALE, AGAIN = 3600.0, 86400.0, 30.0
"""Seconds after which keys are asked for again, are no longer believed, and until they are asked for once more."""
LONGEST_TOKEN, LARGEST_ANSWER, LONGEST = 8192, 262144, 5.0


@dataclass(eq=False)
class Issuer:
    """An issuer that authenticates people; what they may do is stored by the service.

    Args:
        url: As it stands in the tokens; https, or http on this machine.
        audience: The name of this service at the issuer.
        read: Reads an address; by default httpx, without redirects, with a time limit of five seconds.
        clock: Seconds since some moment.
    """

    url: str
    audience: str
    read: Callable[[str], bytes] | None = None
    clock: Callable[[], float] = time.monotonic
    _keys: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    _got: float | None = None
    _last_request: float | None = None
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        _require_safe("issuer", self.url)
        if not self.audience:
            raise DomainError("audience", self.audience, "the name of this service at the issuer")

    def subject(self, token: str, now: float) -> str | None:
        """The subject of a token, as the issuer names it; None if the token is not valid now.

        Raises:
            StoreError: The issuer's keys are not known, and it cannot be reached.
        """
        header = _header(token)
        if header is None or not isinstance(kid := header.get("kid"), str):
            return None
        algorithm = header.get("alg")
        if (
            not (isinstance(algorithm, str) and algorithm in ALGORITHMS)
            or "crit" in header
            or "b64" in header
        ):
            return None
        key = self._key(kid)
        if (
            key is None
            or key.get("kty") != ALGORITHMS[algorithm]
            or key.get("alg", algorithm) != algorithm
        ):
            return None
        claims = _signed(token, key, algorithm)
        return None if claims is None else self._stated(claims, now)

    def _stated(self, claims: Mapping[str, Any], now: float) -> str | None:
        """The subject of claims that are for this service, and hold now."""
        subject, audience = claims.get("sub"), claims.get("aud")
        audiences = cast("list[Any]", audience) if isinstance(audience, list) else [audience]
        begins = [_time(claims.get(name, now)) for name in ("nbf", "iat")]
        holds = now < _time(claims.get("exp"), unknown=0.0) and all(
            at <= now + LEEWAY for at in begins
        )
        known = (
            claims.get("iss") == self.url and self.audience in audiences and "events" not in claims
        )
        return (
            subject
            if holds and known and isinstance(subject, str) and 0 < len(subject) <= 255
            else None
        )

    def _key(self, kid: str) -> Mapping[str, Any] | None:
        """The key of that name. The keys are fetched again if it is unknown or they are old, at a limited rate."""
        if self._is_fresh() and (key := self._keys.get(kid)) is not None:
            return key
        now = self.clock()
        if self._lock.acquire(
            blocking=False
        ):  # one asks; meanwhile the others go on with the keys that are known
            try:
                waits = self._last_request is not None and now - self._last_request < AGAIN
                if not (self._is_fresh() and kid in self._keys) and not waits:
                    self._last_request = now
                    self._fetch(now)
            finally:
                self._lock.release()
        elif kid not in self._keys:
            raise StoreError(
                self.url, "the issuer of identities is being asked", "Ask again in a second"
            )
        if self._got is None or now - self._got > STALE:
            raise StoreError(
                self.url, "the issuer of identities cannot be reached", "Ask again later"
            )
        return self._keys.get(kid)

    def _is_fresh(self) -> bool:
        return self._got is not None and self.clock() - self._got < FRESH

    def _fetch(self, now: float) -> None:
        """Fetch the keys; if that fails, the present keys stay."""
        found = self._json(f"{self.url.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != self.url or not isinstance(where := found.get("jwks_uri"), str):
            return
        try:
            _require_safe("jwks_uri", where)
        except DomainError:
            return
        listed: Any = self._json(where).get("keys")
        if not isinstance(listed, list):
            return
        keys = [_mapping(each) for each in cast("list[Any]", listed)]
        named = [(key.get("kid"), key) for key in keys if key.get("use", "sig") == "sig"]
        names = [name for name, _ in named]
        self._keys = {
            name: key for name, key in named if isinstance(name, str) and names.count(name) == 1
        }
        self._got = now

    def _json(self, url: str) -> dict[str, Any]:
        import httpx

        try:
            return _object((self.read or _get)(url))
        except (httpx.HTTPError, OSError, ValueError, RecursionError):
            return {}


def _mapping(value: Any) -> dict[str, Any]:
    """An object of JSON; anything else is an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _object(text: bytes) -> dict[str, Any]:
    """The object of a text of JSON; ValueError or RecursionError where it is none, or a name is there twice."""
    return _mapping(json.loads(text, object_pairs_hook=each_once))


def _signed(token: str, key: Mapping[str, Any], algorithm: str) -> dict[str, Any] | None:
    """The claims of a token that this key has signed."""
    from joserfc import jws
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    try:
        if "d" in key or (key["kty"] == "RSA" and len(_bytes(key["n"])) < 256):
            return None  # no secret any more, or too short for one
        public = JWKRegistry.import_key(dict(key))
        return _object(jws.deserialize_compact(token, public, algorithms=[algorithm]).payload)
    except (JoseError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _header(token: str) -> dict[str, Any] | None:
    if not (len(token) <= LONGEST_TOKEN and token.isascii() and token.count(".") == 2):
        return None
    try:
        header = _object(_bytes(token.partition(".")[0]))
    except (ValueError, RecursionError):
        return None
    kind = str(header.get("typ", "JWT")).lower().removeprefix("application/")
    return header if kind in TYPES else None


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _time(value: Any, *, unknown: float = inf) -> float:
    """Seconds since 1970; `unknown` where that is no time."""
    return value if type(value) in (int, float) and 0 <= value < 1e12 else unknown


def _require_safe(name: str, url: str) -> None:
    """Raise DomainError unless an address is https, or on this machine."""
    try:
        found = urlsplit(url)
        host, safe = (
            found.hostname,
            found.scheme == "https" or found.hostname in ("localhost", "127.0.0.1", "::1"),
        )
    except ValueError:
        host, safe = None, False
    if not (host and safe and urlsplit(url).scheme in ("http", "https")):
        raise DomainError(name, url, "an address with https")


def _get(url: str) -> bytes:
    import httpx

    with httpx.stream("GET", url, timeout=5.0, follow_redirects=False) as response:
        if response.status_code != 200:
            raise ValueError(response.status_code)
        found, start = b"", time.monotonic()
        for piece in response.iter_bytes():
            found += piece
            if len(found) > LARGEST_ANSWER or time.monotonic() - start > LONGEST:
                raise ValueError("too long")
    return found
