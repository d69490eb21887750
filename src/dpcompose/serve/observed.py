"""Each request counted, timed and logged: its route and status, never a name, an amount, an address or a token."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime

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

    def __init__(self, app: ASGIApp, registry: CollectorRegistry, headers: Mapping[str, str]) -> None:
        self.app, self.headers = app, [(name.encode(), text.encode()) for name, text in headers.items()]
        labels = ["route", "status"]
        self.answered = Counter("dpcompose_requests", "Answers by route and status.", labels, registry=registry)
        self.seconds = Histogram("dpcompose_seconds", "Time to answer by route.", ["route"], registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500
        route = _ROUTES.get(scope["path"], "unknown")

        async def with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *self.headers]
                self._note(scope["method"], route, status, time.perf_counter() - start)
            await send(message)

        await self.app(scope, receive, with_headers)

    def _note(self, method: str, route: str, status: int, seconds: float) -> None:
        self.answered.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)
        if requests.isEnabledFor(logging.INFO):
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            said = {"time": now, "method": method if method in _METHODS else "other", "route": route}
            requests.info("%s", json.dumps({**said, "status": status, "milliseconds": round(seconds * 1e3, 1)}))
