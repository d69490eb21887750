"""Authentication, rate limits and size limits; and errors of the library as answers."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dpcompose import errors
from dpcompose.ledger import scope_path
from dpcompose.serve import agreement, counter  # noqa: F401  # pyright: ignore[reportUnusedImport]
from dpcompose.serve.identity import PAGES, Identity, Permission
from dpcompose.serve.queue import Queue, RateLimit, done, threads
from dpcompose.serve.request import ROUTES, Answer, Fields
from dpcompose.serve.service import Service

PERMISSIONS: Mapping[str, Permission] = {**ROUTES, **PAGES}
"""Every route by name. The application is built from this table, so no other route answers."""
LARGEST_BODY = 65536
TOO_LARGE = f"a body of at most {LARGEST_BODY} bytes is taken"
AT_ONCE = 32
"""Requests of one token that are read and worked on at once; charges that form batches are not counted."""
NO_TOKEN = "a valid token is needed"
TOO_MANY = "too many requests without a valid token; wait a minute"
Work = Response | Callable[[], Response]
"""An answer, or the work that gives it and may take long."""


@dataclass(frozen=True)
class Gate:
    """The service behind authentication and rate limits.

    Args:
        service: What answers.
        limit: For each identity.
        failures: For each address, of requests without a valid token.
        workers: Who wait for the disk.
        queue: Where whatever may take long waits for its turn.
        statements: Likewise for statements, which wait for the moment at which their answers leave.
    """

    service: Service
    limit: RateLimit
    failures: RateLimit
    workers: Executor = field(default_factory=threads)
    queue: Queue = field(default_factory=Queue)
    statements: Queue = field(default_factory=lambda: Queue(16))
    _asking: Counter[str] = field(default_factory=Counter[str])

    async def run(
        self,
        request: Request,
        caller: str | Identity,
        work: Callable[[Identity], Work],
        *,
        asks: bool = False,
    ) -> Response:
        """The answer to a request with a token. Long work waits in the queue, and stops if the client disconnects."""

        def begin() -> tuple[Identity, Work]:
            who = self.identified(caller_of(request), caller) if isinstance(caller, str) else caller
            return who, work(who)

        token = caller if isinstance(caller, str) else caller.actor
        if not self._asking[token] < AT_ONCE:  # before it costs a thread, or a look at the ledger
            raise HTTPException(429, "too many of your requests at once; wait for an answer")
        self._asking[token] += 1
        try:
            who, found = await done(self.workers, begin)
            if isinstance(found, Response):
                return found
            queue = self.statements if asks else self.queue
            still = partial(self.still, caller) if isinstance(caller, str) else bool
            return await queue.run(request, f"{who.role}:{who.actor}", self.workers, found, still)
        finally:
            self._asking[token] -= 1
            if not self._asking[token]:
                del self._asking[token]

    def still(self, token: str) -> None:
        """Refuse a token that was revoked, or has expired, since its request arrived.

        Raises:
            HTTPException: 401.
        """
        if self.service.people.find(token) is None:
            raise HTTPException(401, NO_TOKEN)

    async def identity_of(self, caller: str, token: str) -> Identity:
        """The identity that a token belongs to, read in a thread; see `identified`."""
        return await done(self.workers, lambda: self.identified(caller, token))

    def identified(self, caller: str, token: str) -> Identity:
        """The identity that a token belongs to.

        Raises:
            HTTPException: 401 for nobody's, 429 for one that asks too often.
        """
        try:
            return self.admitted(caller, self.service.people.find(token))
        except errors.StoreError:
            if self.is_foreign(token) and not self.failures.admits(
                caller
            ):  # a stranger asks with a name of no key
                raise HTTPException(429, TOO_MANY) from None
            raise

    def is_foreign(self, token: str) -> bool:
        """Whether only an issuer can identify the token."""
        return self.service.people.issuer is not None and "." in token

    def admitted(self, caller: str, identity: Identity | None) -> Identity:
        """The identity of a token, if its rate limit admits one more request.

        Raises:
            HTTPException: See `identified`.
        """
        if identity is None:  # whoever has a token is let in, whatever comes from the same address
            if not self.failures.admits(caller):
                raise HTTPException(429, TOO_MANY)
            raise HTTPException(401, NO_TOKEN)
        if not self.limit.admits(f"{identity.role}:{identity.actor}"):
            raise HTTPException(429, "too many requests; wait a second")
        return identity

    def answered(self, name: str, who: Identity, fields: Fields) -> Answer:
        """The answer of a route, if this identity may ask it of this scope.

        Raises:
            HTTPException: 403, if not.
        """
        return self.service.answer(name, who, self.allowed(name, who, fields), fields)

    def allowed(self, name: str, who: Identity, fields: Fields) -> str:
        """The scope of a request, if this identity may ask that of it.

        Raises:
            HTTPException: 403, if not.
        """
        if not PERMISSIONS[name].allows(who.role):
            raise HTTPException(403, "your role may not ask this")
        scope = scope_path(fields.get("scope"))
        if not who.covers(scope):
            raise HTTPException(403, "this scope is not yours")
        return scope


async def body_of(request: Request) -> bytes:
    """The body of a request; reading stops once it is announced or measured as too large."""
    announced = request.headers.get("content-length", "0")
    if not (announced.isdecimal() and len(announced) < 12):
        raise HTTPException(413, TOO_LARGE)
    size, found, more = int(announced), bytearray(), True
    while more and max(size, len(found)) <= LARGEST_BODY:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(400, "the body was broken off")
        found += message.get("body", b"")
        more = message.get("more_body", False)
    if max(size, len(found)) > LARGEST_BODY:
        raise HTTPException(413, TOO_LARGE)
    return bytes(found)


def caller_of(request: Request) -> str:
    """The address of the client."""
    return request.client.host if request.client else ""


_log = logging.getLogger("dpcompose.serve")
_causes = RateLimit(1 / 60, 1)
"""Each cause is logged once a minute, however many ask meanwhile."""


def refusal(error: errors.DPComposeError) -> Response:
    """An error of the library as a status and one sentence."""
    kind = type(error).__name__
    if isinstance(error, errors.StoreError | errors.TamperedError) and _causes.admits(str(error)):
        _log.error("%s", error)  # whoever asks is not told what, nor where
    match error:
        case errors.StoreError():
            said = "the ledger cannot be reached; ask again with the same key"
            return error_answer(503, "StoreError", said, uncertain=error.uncertain)
        case errors.TamperedError():
            return error_answer(
                409, kind, "the ledger does not agree with itself; its keeper must look"
            )
        case errors.OverdrawnError() | errors.QuotaError():
            amounts = {"asked": str(error.requested), "left": str(error.left)}
            return error_answer(
                409, kind, str(error), scope=error.scope, currency=error.currency, **amounts
            )
        case errors.UnknownScopeError():
            return error_answer(404, kind, str(error))
        case errors.LedgerError() | errors.ReleaseError():
            return error_answer(409, kind, str(error))
        case _:
            return error_answer(422, kind, str(error))


def error_answer(status: int, kind: str, reason: str, **fields: object) -> Response:
    """A status and one sentence, as JSON."""
    printable = " ".join(reason.split()).encode("utf-8", "backslashreplace").decode()
    headers = {"retry-after": "1"} if status in (429, 503) else None
    return JSONResponse({"error": kind, "reason": printable, **fields}, status, headers)
