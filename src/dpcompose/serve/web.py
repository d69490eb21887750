"""The service over HTTP: sizes, rates, identities and permissions, decided before anything is looked at."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpcompose.errors import (
    DPComposeError,
    LedgerError,
    OverdrawnError,
    QuotaError,
    StoreError,
    TamperedError,
    UnknownScopeError,
)
from dpcompose.ledger.text import each_once, scope_path
from dpcompose.serve.document import document
from dpcompose.serve.identity import Identity
from dpcompose.serve.page import STYLE, login_page, page_for
from dpcompose.serve.permission import PERMISSIONS
from dpcompose.serve.service import HANDLERS, Fields, Service
from dpcompose.serve.workers import Workers

LARGEST_BODY = 65536
COOKIE = "dpcompose"
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none';"
    " base-uri 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_log = logging.getLogger("dpcompose.serve")


@dataclass
class RateLimit:
    """So many requests a second for each name, with as many saved up as one burst has.

    >>> limit = RateLimit(1.0, 2, clock=lambda: 0.0)
    >>> [limit.admits("Ada") for _ in range(3)]
    [True, True, False]
    """

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _saved: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    _lock: Lock = field(default_factory=Lock)

    def admits(self, name: str, *, cost: float = 1.0) -> bool:
        """Whether one more request of that name is answered now; without cost, whether one would be."""
        with self._lock:
            now = self.clock()
            if len(self._saved) > 10_000:
                self._saved = {each: at for each, at in self._saved.items() if now - at[1] < self.burst / self.rate}
            saved, then = self._saved.get(name, (self.burst, now))
            saved = min(self.burst, saved + (now - then) * self.rate)
            admitted = saved >= 1.0
            self._saved[name] = (saved - cost if admitted else saved, now)
            return admitted


class SecurityHeaders:
    """Adds `HEADERS` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_RAW_HEADERS]
            await send(message)

        await self.app(scope, receive, with_headers)


@dataclass(frozen=True)
class Web:
    """The service, and what is counted and limited of its requests.

    Args:
        service: What answers.
        limit: For each identity.
        failures: For each address, of requests without a valid token.
    """

    service: Service
    limit: RateLimit
    failures: RateLimit
    registry: CollectorRegistry
    answered: Counter
    seconds: Histogram
    workers: Workers = field(default_factory=Workers)

    def application(self) -> Starlette:
        """One route for each row of the table of permissions."""
        own = {
            "page": self.page,
            "login": self.login,
            "logout": self.logout,
            "style": self.style,
            "metrics": self.metrics,
            "openapi": self.openapi,
        }
        routes = [
            Route(each.path, own.get(name) or self.endpoint(name), methods=[each.method])
            for name, each in PERMISSIONS.items()
        ]
        app = Starlette(routes=routes, exception_handlers={HTTPException: _plain, Exception: _defect})
        app.add_middleware(SecurityHeaders)  # pyright: ignore[reportArgumentType]
        return app

    def endpoint(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of one route of the interface for programs; nothing but the header names the caller there."""

        async def answered(request: Request) -> Response:
            start = time.perf_counter()
            try:
                response = await self._answer(name, request)
            except DPComposeError as error:
                response = refusal(error)
            except (RecursionError, OverflowError, ZeroDivisionError):
                response = _error(422, "DomainError", "this mechanism cannot be priced")
            self.answered.labels(name, str(response.status_code)).inc()
            self.seconds.labels(name).observe(time.perf_counter() - start)
            return response

        return answered

    async def _answer(self, name: str, request: Request) -> Response:
        permission, caller = PERMISSIONS[name], _caller(request)
        token = request.headers.get("authorization", "")
        query, body = request.query_params, b"" if permission.method == "GET" else await _body(request)

        def answer() -> Response:
            who = self._identified(caller, token.removeprefix("Bearer ") if token.startswith("Bearer ") else "")
            if not permission.allows(who.role):
                raise HTTPException(403, "your role may not ask this")
            fields: Fields = dict(query) if permission.method == "GET" else _fields(body)
            scope = scope_path(fields.get("scope"))
            if not who.covers(scope):
                raise HTTPException(403, "this scope is not yours")
            return JSONResponse(HANDLERS[name](self.service, who, scope, fields))

        return await self.workers.run(answer)

    def _identified(self, caller: str, token: str) -> Identity:
        if not self.failures.admits(caller, cost=0.0):
            raise HTTPException(429, "too many requests without a valid token; wait a minute")
        found = self.service.people.find(token)
        if found is None:
            self.failures.admits(caller)
            raise HTTPException(401, "a valid token is needed")
        if not self.limit.admits(f"{found.role}:{found.actor}"):
            raise HTTPException(429, "too many requests; wait a second")
        return found

    async def page(self, request: Request) -> Response:
        """The dashboard of who is signed in."""
        token = request.cookies.get(COOKIE)
        try:
            if token is None:
                return Response(login_page(""), media_type="text/html")
            caller, asked = _caller(request), dict(request.query_params)

            def answer() -> Response:
                return Response(page_for(self.service, self._identified(caller, token), asked), media_type="text/html")

            return await self.workers.run(answer)
        except HTTPException as error:
            if error.status_code != 401:
                raise
            return Response(login_page("The token is not valid."), 401, media_type="text/html")
        except DPComposeError as error:
            return refusal(error)

    async def login(self, request: Request) -> Response:
        """A token becomes a cookie that no script reads and no other site sends."""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise HTTPException(403, "sign in from the page of this service")
        typed = parse_qs((await _body(request)).decode("latin-1")).get("token", [""])[0]
        try:
            caller = _caller(request)
            await self.workers.run(lambda: self._identified(caller, typed))
        except HTTPException as error:
            return Response(login_page(f"{error.detail}."), error.status_code, media_type="text/html")
        except DPComposeError as error:
            return refusal(error)
        response = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, typed, httponly=True, samesite="strict", secure=secure, max_age=8 * 3600)
        return response

    async def logout(self, request: Request) -> Response:
        """The cookie is taken away."""
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE)
        return response

    async def style(self, request: Request) -> Response:
        """The one style sheet."""
        return Response(STYLE, media_type="text/css")

    async def openapi(self, request: Request) -> Response:
        """The document of the interface for programs."""
        return JSONResponse(
            document({name: (each.__doc__ or "").partition("\n")[0] for name, each in HANDLERS.items()})
        )

    async def metrics(self, request: Request) -> Response:
        """Counts and times by route, without names of people or scopes."""
        return PlainTextResponse(generate_latest(self.registry))


def application(service: Service, *, rate: float = 200.0, failures: float = 30.0) -> Starlette:
    """The service as an ASGI application.

    Args:
        service: What answers.
        rate: Requests a second that each identity may make.
        failures: Requests without a valid token a minute, from one address.
    """
    registry = CollectorRegistry()
    answered = Counter("dpcompose_requests", "Answers by route and status.", ["route", "status"], registry=registry)
    seconds = Histogram("dpcompose_seconds", "Time to answer by route.", ["route"], registry=registry)
    limits = RateLimit(rate, 2 * rate), RateLimit(failures / 60, failures)
    return Web(service, *limits, registry, answered, seconds).application()


async def _body(request: Request) -> bytes:
    """The body; one that is announced or found to be too large is not read on."""
    announced = request.headers.get("content-length", "0")
    if not (announced.isdecimal() and len(announced) < 12 and int(announced) <= LARGEST_BODY):
        raise HTTPException(413, f"a body of at most {LARGEST_BODY} bytes is taken")
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > LARGEST_BODY:
            raise HTTPException(413, f"a body of at most {LARGEST_BODY} bytes is taken")
    return bytes(found)


def _fields(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body, object_pairs_hook=each_once)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise HTTPException(400, "a body of JSON, a mapping, is needed")
    return found  # pyright: ignore[reportUnknownVariableType]


def _caller(request: Request) -> str:
    """The address that asks."""
    return request.client.host if request.client else ""


def refusal(error: DPComposeError) -> Response:
    """An error of the library as a status and one sentence."""
    kind = type(error).__name__
    match error:
        case StoreError():
            said = "the ledger cannot be reached; ask again with the same key"
            return _error(503, "StoreError", said, uncertain=error.uncertain)
        case TamperedError():
            return _error(409, kind, "the ledger does not agree with itself; its keeper must look")
        case OverdrawnError() | QuotaError():
            amounts = {"asked": str(error.asked), "left": str(error.left)}
            return _error(409, kind, str(error), scope=error.scope, currency=error.currency, **amounts)
        case UnknownScopeError():
            return _error(404, kind, str(error))
        case LedgerError():
            return _error(409, kind, str(error))
        case _:
            return _error(422, kind, str(error))


def _error(status: int, kind: str, reason: str, **fields: object) -> Response:
    printable = " ".join(reason.split()).encode("utf-8", "backslashreplace").decode()
    return JSONResponse({"error": kind, "reason": printable, **fields}, status)


def _plain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for it alone"
    return _error(error.status_code, "HTTPException", error.detail)


def _defect(request: Request, error: Exception) -> Response:
    _log.error("a defect: %s at %s", type(error).__name__, request.url.path)
    return _error(500, "Defect", "a defect of the service; nothing is known of this request")
