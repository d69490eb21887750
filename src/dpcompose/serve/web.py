"""The application: routes, charges in batches, and each request counted, timed and logged."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from http import HTTPStatus
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from dpcompose.account import Account
from dpcompose.errors import (
    DPComposeError,
    KeyReusedError,
    ScopeExistsError,
    StoreError,
)
from dpcompose.files import each_once
from dpcompose.ledger import Charge, Receipt, encode, root_of, scope_path
from dpcompose.serve.gate import (
    PERMISSIONS,
    Gate,
    Work,
    body_of,
    caller_of,
    error_answer,
    refusal,
)
from dpcompose.serve.identity import PAGES, Identity
from dpcompose.serve.pages import Pages, problem_page
from dpcompose.serve.queue import RateLimit, Together, done
from dpcompose.serve.request import ROUTES, Fields, document
from dpcompose.serve.service import Service

requests = logging.getLogger("dpcompose.serve.requests")
_ROUTES = {each.path: name for name, each in PERMISSIONS.items()}
_METHODS = ("GET", "POST", "HEAD", "OPTIONS")


Endpoint = Callable[[Request], Awaitable[Response]]


Outcome = Response | Exception | Identity
"""An answer; what is raised instead; or whose charge it is, to be made alone."""


@dataclass(frozen=True)
class Call:
    """A charge as it arrived.

    Args:
        caller: The address.
        token: As it was sent.
        fields: The body.
        who: Whose token it is, where an issuer had to say so before.
    """

    caller: str
    token: str
    fields: Fields
    who: Identity | None = None


def outcomes(gate: Gate, _: str, calls: Sequence[Call]) -> list[Outcome]:
    """The outcome of each charge of a tree, in their order."""
    found: list[Outcome] = []
    charges: dict[int, tuple[Account, Charge]] = {}
    service = gate.service
    people = service.people.find_all({call.token for call in calls if call.who is None})
    for index, call in enumerate(calls):
        try:
            who = call.who or gate.admitted(call.caller, people[call.token])
            found.append(who)
            scope = gate.allowed("charge", who, call.fields)
            fields = ROUTES["charge"].read(call.fields)
            quote = service.quick_quote(scope, fields["mechanism"], fields["delta"])
            if quote is not None:
                charges[index] = service.ledger_charge(who, quote, fields)
        except Exception as error:  # of this charge alone; raised where it was asked
            found[index:] = [error]
    committed = service.charge_all(list(charges.values()))
    for index, receipt in zip(charges, committed, strict=True):
        if isinstance(receipt, Receipt):
            text = encode({"receipt": receipt.to_json()})
            found[index] = Response(text, media_type="application/json")
        elif not isinstance(receipt, KeyReusedError | ScopeExistsError):
            found[index] = receipt  # those are asked again alone
    return found


SAFE = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none';"
    " base-uri 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}
HEADERS = [(name.encode(), text.encode()) for name, text in SAFE.items()]
"""Of every answer."""
SHORT = 4096
"""Bytes of a body that are read in the loop."""
_JSON = json.JSONDecoder(object_pairs_hook=each_once)
_log = logging.getLogger("dpcompose.serve")


PATIENCE = 4.0
"""Seconds that `/ready` waits for the ledger."""


def bearer(request: Request) -> str:
    """The token of a program; empty if there is none."""
    token = request.headers.get("authorization", "")
    return token.removeprefix("Bearer ") if token.startswith("Bearer ") else ""


class Application:
    """The service as an ASGI application: an endpoint for each method and path; each answer is counted, timed and logged.

    Args:
        gate: What lets in and answers.
        pages: The dashboard.
    """

    def __init__(self, gate: Gate, pages: Pages) -> None:
        self.gate, self.registry, labels = gate, CollectorRegistry(), ["route", "status"]
        answers = Counter(
            "dpcompose_requests", "Answers by route and status.", labels, registry=self.registry
        )
        seconds = Histogram(
            "dpcompose_seconds", "Time to answer by route.", labels[:1], registry=self.registry
        )
        self._answers: Callable[[str, str], Counter] = cache(answers.labels)
        self._times: Callable[[str], Histogram] = cache(seconds.labels)
        # The batches in which charges of one tree wait for each other.
        self.charges = Together(gate.workers, partial(outcomes, gate))
        self._probe: asyncio.Future[Any] | None = None
        own = {name: name.partition("_")[0] for name in PAGES}
        shown = {n: getattr(self, n, None) or getattr(pages, of) for n, of in own.items()}
        self.endpoints: Mapping[tuple[str, str], Endpoint] = {
            (each.method, each.path): shown.get(name) or partial(self._answer, name)
            for name, each in PERMISSIONS.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError(f"only requests of HTTP are answered, not {scope['type']}")
        start, request = time.perf_counter(), Request(scope, receive)
        try:
            response = await self._endpoint(request)(request)
        except EXPECTED as error:
            response = refused(request, error)
        except Exception as error:
            _log.exception("a defect: %s", type(error).__name__)
            what = "a defect of the service; nothing is known of this request"
            response = error_answer(500, "Defect", what)
        response.raw_headers += HEADERS
        seconds = time.perf_counter() - start
        note = partial(self._note, request, response.status_code, seconds)
        asyncio.get_running_loop().call_soon(note)  # once the answer is on its way
        await response(scope, receive, send)

    def _endpoint(self, request: Request) -> Endpoint:
        """The endpoint of a request.

        Raises:
            HTTPException: 404 or 405, if there is none.
        """
        path = request.scope["path"]
        method = "GET" if request.method == "HEAD" else request.method
        endpoint = self.endpoints.get((method, path))
        if endpoint is not None:
            return endpoint
        if path in _ROUTES:
            allowed = PERMISSIONS[_ROUTES[path]].method
            raise HTTPException(405, f"ask this by {allowed}", {"allow": allowed})
        raise HTTPException(404, "there is no such page or route; /openapi.json lists the routes")

    def _note(self, request: Request, status: int, seconds: float) -> None:
        route = _ROUTES.get(request.scope["path"], "unknown")
        self._answers(route, str(status)).inc()
        self._times(route).observe(seconds)
        if requests.isEnabledFor(logging.INFO):
            stated = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "method": request.method if request.method in _METHODS else "other",
                "route": route,
                "status": status,
                "milliseconds": round(seconds * 1e3, 1),
            }
            requests.info("%s", json.dumps(stated))

    async def _answer(self, name: str, request: Request) -> Response:
        """The answer of a route for programs; nothing but the header names the caller there."""
        caller, token = caller_of(request), bearer(request)
        is_read = PERMISSIONS[name].method == "GET"
        body = b"" if is_read else await body_of(request)
        if name == "charge" and (fields := self._quick_charge(body)) is not None:
            foreign = self.gate.is_foreign(
                token
            )  # an issuer that is slow keeps nobody else waiting
            who = await self.gate.identity_of(caller, token) if foreign else None
            found = await self.charges.run(
                root_of(fields["scope"]), Call(caller, token, fields, who)
            )
            if isinstance(found, Response):
                return found
            return await self.gate.run(request, found, partial(self._work, name, lambda: fields))
        read = partial(dict[str, Any], request.query_params) if is_read else partial(_fields, body)
        work = partial(self._work, name, read)
        return await self.gate.run(request, token, work, asks=name == "ask")

    def _work(self, name: str, read: Callable[[], Fields], who: Identity) -> Work:
        """The answer of a route, or the work that gives it."""
        if not PERMISSIONS[name].allows(who.role):
            raise HTTPException(403, "your role may not ask this")
        fields = read()

        def work() -> Response:
            return JSONResponse(self.gate.answered(name, who, fields))

        scope = self.gate.allowed(name, who, fields)
        if self.gate.service.takes_long(name, scope, ROUTES[name].read(fields)):
            return work
        return work()

    def _quick_charge(self, body: bytes) -> Fields | None:
        """The fields of a charge for which others may wait."""
        if len(body) > SHORT:
            return None
        try:
            fields = _fields(body)
            scope = scope_path(fields.get("scope"))
            soon = self.gate.service.soon_priced(
                scope, fields.get("mechanism"), fields.get("delta")
            )
            return fields if soon else None
        except (HTTPException, DPComposeError):
            return None

    async def openapi(self, request: Request) -> Response:
        """The document of the interface for programs."""
        return JSONResponse(document(ROUTES))

    async def metrics(self, request: Request) -> Response:
        """Counts and times by route; to an auditor's or a keeper's token also what is spent and left of each budget."""
        lines, token = [generate_latest(self.registry).decode()], bearer(request)
        if token:
            who = await self.gate.identity_of(caller_of(request), token)
            lines += await done(self.gate.workers, partial(self.gate.service.gauges, who))
        return PlainTextResponse("".join(lines))

    async def health(self, request: Request) -> Response:
        """That this process answers; it says nothing of the ledger."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether charges move, and why they do not."""
        if self._probe is None or self._probe.done():
            self._probe = done(self.gate.workers, self.gate.service.ready)
        try:
            warnings: list[str] = await asyncio.wait_for(asyncio.shield(self._probe), PATIENCE)
        except TimeoutError:
            reasons = [
                f"a turn at the ledger was not had in {PATIENCE:g} s: another process has it"
            ]
        except Exception as error:
            reasons = [error.what if isinstance(error, StoreError) else type(error).__name__]
        else:
            return JSONResponse({"status": "ready", "reasons": warnings})
        return JSONResponse({"status": "not ready", "reasons": reasons}, 503)


def application(
    service: Service, *, rate: float = 200.0, failures: float = 30.0, watch: float = 600.0
) -> Application:
    """The service as an ASGI application.

    Args:
        service: What answers.
        rate: Requests a second that each identity may make.
        failures: Requests without a valid token a minute, from one address.
        watch: Seconds for which a page is told of changes over one connection.
    """
    gate = Gate(service, RateLimit(rate, 2 * rate), RateLimit(failures / 60, failures))
    return Application(gate, Pages(gate, watch))


def _fields(body: bytes) -> Fields:
    try:
        found = _JSON.decode(body.decode())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise HTTPException(400, "a body of JSON, a mapping, is needed")
    return found  # pyright: ignore[reportUnknownVariableType]


EXPECTED = HTTPException, DPComposeError, RecursionError, OverflowError, ZeroDivisionError
"""Errors that an answer names; the last three are of mechanisms that nobody can price."""


def refused(request: Request, error: Exception) -> Response:
    """An expected error as an answer: to a browser that asks for a page, as a page."""
    match error:
        case HTTPException():
            response = error_answer(error.status_code, "HTTPException", error.detail)
            response.headers.update(error.headers or {})
        case DPComposeError():
            response = refusal(error)
        case _:
            response = error_answer(422, "DomainError", "this mechanism cannot be priced")
    if "text/html" in request.headers.get("accept", "") and "/v1/" not in request.url.path:
        heading = HTTPStatus(response.status_code).phrase
        reason = json.loads(bytes(response.body))["reason"]
        headers = {n: v for n, v in response.headers.items() if n in ("allow", "retry-after")}
        return HTMLResponse(problem_page(reason, heading), response.status_code, headers)
    return response
