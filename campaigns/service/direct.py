"""Requests to an ASGI application, without a network and without a client that repairs them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """A status, the type of the body, the body as text, and how many pieces of the request were read."""

    status: int
    kind: str
    text: str
    read: int


class Direct:
    """An application, asked one request at a time."""

    def __init__(self, app: Any) -> None:
        self.app, self.loop = app, asyncio.new_event_loop()

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] = b"",
    ) -> Answer:
        """The answer to one request; a body in pieces has no stated length."""
        pieces = iter([body] if isinstance(body, bytes) else body)
        sent = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": sent,
            "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
        }
        found: list[dict[str, Any]] = []
        read, ended, answered = 0, False, asyncio.Event()

        async def receive() -> dict[str, Any]:
            nonlocal read, ended
            read += 1
            if ended:  # whoever asked stays for the answer
                await answered.wait()
                return {"type": "http.disconnect"}
            piece = next(pieces, None)
            ended = piece is None
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

        async def send(message: dict[str, Any]) -> None:
            found.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                answered.set()

        async def asked() -> None:
            try:
                await self.app(scope, receive, send)
            except Exception:  # the server would log it; what was sent says what the caller sees
                if not found:
                    found.append({"status": 500, "headers": []})

        self.loop.run_until_complete(asked())
        content = dict(found[0]["headers"]).get(b"content-type", b"").decode()
        text = b"".join(each.get("body", b"") for each in found[1:]).decode("utf-8", "replace")
        return Answer(found[0]["status"], content, text, read)

    def close(self) -> None:
        """End its loop."""
        self.loop.close()
