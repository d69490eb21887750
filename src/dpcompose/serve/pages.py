"""The pages of the service: their templates, forms and cookies."""

from __future__ import annotations

import asyncio
import csv
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from hmac import compare_digest
from importlib.resources import files
from io import StringIO
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

from jinja2 import DictLoader, Environment, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from dpcompose.errors import DomainError, DPComposeError, StoreError
from dpcompose.ledger import root_of
from dpcompose.notebook import written
from dpcompose.report import at_least, at_most
from dpcompose.serve.counter import bars, served
from dpcompose.serve.gate import Gate, body_of, caller_of
from dpcompose.serve.identity import Identity, Role
from dpcompose.serve.look import CLOSED, NAMES, SEARCHED, Look, when
from dpcompose.serve.queue import done
from dpcompose.serve.request import Answer
from dpcompose.serve.service import Service

_TEMPLATES = files("dpcompose.serve") / "templates"
STYLE = "".join(
    [
        (files("dpcompose.report") / "page.css").read_text("utf-8"),
        (_TEMPLATES / "style.css").read_text("utf-8"),
    ]
)
"""The style of all pages, and what the dashboard has beside it."""
SCRIPT = (_TEMPLATES / "live.js").read_text("utf-8")
TEMPLATES = {path: name.lower() for path, name in NAMES.items()} | {"/report": "report"}
"""The templates of pages, by path."""
_TYPED = (*SEARCHED, "at", "scope", "mechanism", "before")


@cache
def _environment() -> Environment:
    names = ("base", "forms", "login", *TEMPLATES.values())
    pages = {f"{name}.html": (_TEMPLATES / f"{name}.html").read_text("utf-8") for name in names}
    made = Environment(
        loader=DictLoader(pages), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    own: dict[str, Any] = {"query": _query, "when": when, "written": written}
    own |= {"at_least": at_least, "at_most": at_most, "bars": bars, "csv": _csv}
    made.filters.update(own)  # pyright: ignore[reportUnknownMemberType]
    # Of a page without a time no two answers differ within a day.
    made.globals["today"] = lambda: f"{datetime.now(UTC):%Y-%m-%d}"  # pyright: ignore[reportUnknownMemberType]
    return made


def _csv(columns: Sequence[Answer]) -> str:
    """An answer as a link to its CSV file."""
    text = StringIO()
    rows = [
        [each["name"] for each in columns],
        *zip(*(each["cells"] for each in columns), strict=True),
    ]
    csv.writer(text).writerows(rows)
    return f"data:text/csv;charset=utf-8,{quote(text.getvalue())}"


def _query(named: Mapping[str, object], path: str = "/") -> str:
    words = urlencode({name: value for name, value in named.items() if value})
    return f"{path}?{words}" if words else path


def problem_page(problem: str, heading: str = "Sign in") -> str:
    """The page that asks for a token, or under another heading one that says what went wrong."""
    return _environment().get_template("login.html").render(heading=heading, problem=problem)


def page_for(
    service: Service,
    who: Identity,
    path: str,
    query: Mapping[str, str],
    form: str = "",
    outcome: Mapping[str, Any] | None = None,
    desk: Mapping[str, Any] | None = None,
) -> str:
    """A page of the dashboard for an identity, with the answer to the query in its URL.

    Args:
        service: What answers.
        who: Who looks.
        path: Of the page.
        query: The fields of the URL.
        form: What proves that a form came from this page.
        outcome: What became of a form that was sent.
        desk: The scopes with tables that this person may ask; on the page Ask also the tables of one of them.
    """
    typed = {name: query.get(name, "")[:4096] for name in _TYPED}
    shown: dict[str, Any] = {"who": who, "form": form, "said": outcome or {}, "desk": desk}
    shown |= {"asked": typed, "here": _query(typed, path), "at_page": path, "verified": None}
    with service.ledger.moment() as moment:
        look = shown["look"] = Look(service, moment, who, typed, bool(desk))
        if "verify" in query and look.tops and who.role is Role.AUDITOR:
            shown["verified"] = service.verify(who, look.tops[0])
        return _environment().get_template(f"{TEMPLATES[path]}.html").render(shown)


_log = logging.getLogger("dpcompose.serve")
COOKIE = "dpcompose"
MOST_WATCHERS, MOST_OF_EACH = 500, 20
_STATED = ("table", "sql", "spend", "error")
ACTIONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "open": (("epsilon", "delta"), "{scope} is open."),
    "invite": (
        ("name", "role", "days"),
        "{name} is invited to {scope}. Give this token by a way that is safe.",
    ),
    "revoke": (("name",), "The tokens of {name} in {scope} are revoked."),
    "request": (("mechanism", "key", "reason"), "A keeper is asked."),
    "decide": (("request", "decision"), "The request is {decision}."),
    "quote": (_STATED, "{words}. Nothing was charged."),
    "ask": (_STATED, "This was charged. The same statement again costs nothing."),
}
"""The routes that a form of the page may ask, as the identity that is signed in: their fields, and what was done."""


@dataclass(frozen=True)
class Pages:
    """The pages of a service.

    Args:
        gate: What lets in and answers.
        watch: Seconds for which one connection is told of changes; the browser then asks again.
        every: Seconds between two looks.
    """

    gate: Gate
    watch: float = 600.0
    every: float = 1.0
    _watchers: Counter[str] = field(default_factory=Counter[str])

    async def page(self, request: Request) -> Response:
        """A page of the dashboard, for who is signed in."""
        token, path = request.cookies.get(COOKIE), request.url.path
        try:
            if token is None:
                return Response(problem_page(""), media_type="text/html")
            asked = dict(request.query_params)

            def page(who: Identity) -> Response:
                if who.role is Role.ANALYST and path in CLOSED:
                    raise HTTPException(403, "this page is for keepers and auditors")
                return self._shown(request, who, path, asked)

            return await self.gate.run(request, token, lambda who: partial(page, who))
        except HTTPException as error:
            if error.status_code != 401:
                raise
            return Response(problem_page("The token is not valid."), 401, media_type="text/html")

    async def act(self, request: Request) -> Response:
        """Process a form of the page, and answer with the page."""
        require_own(request)
        token = request.cookies.get(COOKIE, "")
        fields = dict(
            parse_qsl((await body_of(request)).decode("utf-8", "replace"), keep_blank_values=True)
        )

        def answer(who: Identity) -> Response:
            if not compare_digest(fields.get("form", "").encode(), form_of(token).encode()):
                raise HTTPException(403, "send the form from the page of this service")
            said, status = self._acted(who, fields)
            here = urlsplit(fields.get("here", ""))
            path = here.path if here.path in TEMPLATES else "/"
            return self._shown(request, who, path, dict(parse_qsl(here.query)), said, status)

        asks = fields.get("action") == "ask"
        return await self.gate.run(request, token, lambda who: partial(answer, who), asks=asks)

    def _shown(
        self,
        request: Request,
        who: Identity,
        path: str,
        query: Mapping[str, str],
        outcome: Mapping[str, Any] | None = None,
        status: int = 200,
    ) -> Response:
        """A page, with the answer to the query in its URL, and what became of a form that was sent."""
        desk = self._desk(who, path, query.get("at", ""), str(request.base_url))
        own = who, path, query, form_of(request.cookies.get(COOKIE, "")), outcome, desk
        page = self.gate.service.read(page_for, *own)
        return Response(page, status, media_type="text/html")

    def _desk(self, who: Identity, path: str, at: str, address: str) -> Answer:
        """The scopes with tables that somebody may ask; on the page Ask also the tables of one of them."""
        scopes = served(self.gate.service, who)
        if path != "/ask":
            return {"scopes": scopes} if scopes else {}
        if not scopes:
            raise HTTPException(404, "there are no tables here that you may ask")
        scope = at if at in scopes else scopes[0]
        shown = {"scopes": scopes, "scope": scope, "address": address}
        return shown | self.gate.answered("tables", who, {"scope": scope})

    def _acted(self, who: Identity, fields: dict[str, str]) -> tuple[dict[str, Any], int]:
        action, said = fields.get("action", ""), {"secret": "", "sent": defaultdict(str, fields)}
        if action not in ACTIONS:
            raise HTTPException(403, "no form asks this")
        try:
            answer = self.gate.answered(action, who, typed(action, fields))
        except StoreError:
            raise
        except DPComposeError as error:
            return {**said, "tone": "bad", "words": str(error)}, 409
        except (RecursionError, OverflowError, ZeroDivisionError):
            return {**said, "tone": "bad", "words": "This mechanism cannot be priced."}, 422
        return {
            **said,
            "tone": "good",
            "words": ACTIONS[action][1].format_map(defaultdict(str, {**fields, **answer})),
            "secret": str(answer.get("token", "")),
            "tables": answer.get("tables", []),
        }, 200

    async def download(self, request: Request) -> Response:
        """A checkpoint or a proof as a file."""
        token, fields = request.cookies.get(COOKIE, ""), dict(request.query_params)
        what = fields.get("what", "")
        if what not in ("proof", "checkpoint"):
            raise HTTPException(404, "there is a proof and a checkpoint to download")

        def answer(who: Identity) -> Response:
            found = self.gate.answered(what, who, fields)
            name = f"entry{int(fields['entry'])}.proof" if what == "proof" else "checkpoint.txt"
            headers = {"content-disposition": f'attachment; filename="{name}"'}
            return Response(found[what], media_type="text/plain; charset=utf-8", headers=headers)

        return await self.gate.run(request, token, lambda who: partial(answer, who))

    async def events(self, request: Request) -> Response:
        """Server-sent events that say that something changed, without saying what."""
        caller, token = caller_of(request), request.cookies.get(COOKIE, "")
        who: Identity = await self.gate.identity_of(caller, token)
        watching = self._watchers[f"{who.role}:{who.actor}"]
        if not (watching < MOST_OF_EACH and self._watchers.total() < MOST_WATCHERS):
            raise HTTPException(503, "too many look at once; reload the page to see what changed")
        changes = self._changes(who, token)
        await anext(
            changes
        )  # it is counted from here on, and until it is closed, whether it is sent or not
        return StreamingResponse(changes, media_type="text/event-stream")

    async def _changes(self, who: Identity, token: str) -> AsyncIterator[str]:
        seen, loop, name = "", asyncio.get_running_loop(), f"{who.role}:{who.actor}"
        end = loop.time() + self.watch
        self._watchers[name] += 1
        try:
            yield ""
            yield "retry: 2000\n\n"
            while True:
                state = await done(self.gate.workers, lambda: self._state(who, token))
                if state is None:
                    return
                yield (
                    "event: changed\ndata: -\n\n" if seen and state != seen else ": still here\n\n"
                )
                seen = state
                if not loop.time() < end:
                    return
                await asyncio.sleep(self.every)
        except DPComposeError as error:
            _log.warning("watching ended: %s", type(error).__name__)
        finally:
            self._watchers[name] -= 1

    def _state(self, who: Identity, token: str) -> str | None:
        """A text that differs after each change; None if the token is no longer valid."""
        service = self.gate.service
        if service.people.find(token) != who:
            return None
        with service.ledger.moment() as moment:
            roots = [root_of(who.subtree)] if who.subtree else moment.snapshot.roots()[:100]
            heads = [moment.snapshot.head(root).hash for root in roots]
        return repr(heads)

    async def live(self, request: Request) -> Response:
        """The one script."""
        return Response(SCRIPT, media_type="text/javascript")

    async def login(self, request: Request) -> Response:
        """A token becomes a cookie that no script reads and no other site sends."""
        require_own(request)
        typed = parse_qs((await body_of(request)).decode("latin-1")).get("token", [""])[0]
        try:
            caller = caller_of(request)
            await self.gate.identity_of(caller, typed)
        except HTTPException as error:
            return Response(
                problem_page(f"{error.detail}."), error.status_code, media_type="text/html"
            )
        response = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, typed, httponly=True, samesite="strict", secure=secure, max_age=8 * 3600
        )
        return response

    async def logout(self, request: Request) -> Response:
        """The cookie is taken away."""
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE)
        return response

    async def style(self, request: Request) -> Response:
        """The one style sheet."""
        return Response(STYLE, media_type="text/css")


def form_of(token: str) -> str:
    """The secret of a form against cross-site requests; it cannot be computed without the token."""
    return sha256(f"form of {token}".encode()).hexdigest()


def require_own(request: Request) -> None:
    """Raise HTTPException if another site sends this form."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, "send the form from the page of this service")


def typed(action: str, fields: dict[str, str]) -> Answer:
    """The fields of a route, from the fields of its form."""
    found: Answer = {name: fields.get(name, "") for name in ACTIONS[action][0]}
    if action == "open":
        found = {"target": found}
    # What was left empty is not stated, and an error has no price yet.
    if action in ("quote", "ask"):
        found = {name: text for name, text in found.items() if text}
        if "error" in found:
            found.pop("spend", None)
        elif "%" not in found.get("spend", "%"):
            found["spend"] = {"epsilon": found["spend"]}
    for name in found.keys() & {"days", "error"}:
        try:
            found[name] = float(found[name])
        except ValueError:
            raise DomainError(name, found[name], "a number") from None
    return {"scope": fields.get("scope", ""), **found}
