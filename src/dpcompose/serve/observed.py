"""Each request counted, timed and logged: its route and status, never a name, an amount, an address or a token."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpcompose.serve.permission import PERMISSIONS

requests = logging.getLogger("dpcompose.serve.requests")
_ROUTES = {each.path: name for name, each in PERMISSIONS.items()}
_METHODS = ("GET", "POST", "HEAD", "OPTIONS")


class Observed:
    """Counts and logs every answer of an application, and adds headers to it.

    Args:
        app: The application.
        registry: Where metrics are kept.
        headers: For every answer.
    """

    def __init__(
        self, app: ASGIApp, registry: CollectorRegistry, headers: Mapping[str, str]
    ) -> None:
        self.app, self.headers = (
            app,
            [(name.encode(), text.encode()) for name, text in headers.items()],
        )
        labels = ["route", "status"]
        answers = Counter(
            "dpcompose_requests", "Answers by route and status.", labels, registry=registry
        )
        seconds = Histogram(
            "dpcompose_seconds", "Time to answer by route.", ["route"], registry=registry
        )
        self._answers: Callable[[str, str], Counter] = cache(answers.labels)
        self._times: Callable[[str], Histogram] = cache(seconds.labels)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        route = _ROUTES.get(scope["path"], "unknown")

        async def with_headers(message: Message) -> None:
            is_start = message["type"] == "http.response.start"
            if is_start:
                message["headers"] = [*message.get("headers", ()), *self.headers]
            await send(message)
            if is_start:
                note = partial(
                    self._note,
                    scope["method"],
                    route,
                    message["status"],
                    time.perf_counter() - start,
                )
                asyncio.get_running_loop().call_soon(note)  # once the answer is on its way

        await self.app(scope, receive, with_headers)

    def _note(self, method: str, route: str, status: int, seconds: float) -> None:
        self._answers(route, str(status)).inc()
        self._times(route).observe(seconds)
        if requests.isEnabledFor(logging.INFO):
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            said = {
                "time": now,
                "method": method if method in _METHODS else "other",
                "route": route,
            }
            requests.info(
                "%s",
                json.dumps({**said, "status": status, "milliseconds": round(seconds * 1e3, 1)}),
            )
