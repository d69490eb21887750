"""The server that listens: uvicorn, but head and body of an answer leave together, and wake who waits once."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, ClassVar, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

LONG = 16384
"""Bytes of a part that are not kept for the end of the turn."""
MANY = 8
"""Parts that are not."""
LARGEST_HEAD = 32768
"""Bytes of a request up to the end of its headers, and of those after a piece of its body until the next one."""
TOO_LONG = STATUS_LINE[431] + b"content-length: 0\r\nconnection: close\r\n\r\n"
PATIENCE = 10.0
"""Seconds in which a request is sent, from the connection or its first byte on; and in which an answer is read on."""


def run(app: ASGIApp, *, host: str, port: int) -> None:
    """Answer requests until the process is told to end."""
    quiet: dict[str, Any] = {
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": 5,
        "ws": "none",
    }
    uvicorn.Server(uvicorn.Config(app, host=host, port=port, http=JoinedAnswers, **quiet)).run()


def most_connections() -> int:
    """Half of the files that this process may open, so that the ledger can still be opened; at most 2,000."""
    if sys.platform == "win32":
        return 500
    import resource

    return min(2000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


class JoinedAnswers(HttpToolsProtocol):
    """The protocol of uvicorn, which writes the two one after the other, and waits for requests without limits."""

    waiting: ClassVar[dict[JoinedAnswers, asyncio.TimerHandle]] = {}
    """The connections whose client is waited for, the longest first, and when each is given up."""
    _size, _in_head = 0, True

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write through what joins; of too many connections, give up the one that is waited for the longest."""
        super().connection_made(cast("asyncio.Transport", Joined(transport)))
        self._wait()
        if len(self.connections) > most_connections():
            next(iter(self.waiting)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the headers are too long."""
        while data and not self.transport.is_closing():
            if self._size == LARGEST_HEAD:
                if cast("Any", self.cycle) is None or self.cycle.response_complete:
                    self.transport.write(TOO_LONG)
                self.transport.close()
                return
            piece, data = data[: LARGEST_HEAD - self._size], data[LARGEST_HEAD - self._size :]
            self._size += len(piece)
            super().data_received(piece)
        if self._size or not self._in_head:
            self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those after a body are not heard."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The body comes next."""
        self._in_head = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Whatever is no body is counted anew."""
        self._size = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The next request begins anew."""
        self._size, self._in_head = 0, True
        self._go_on()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A connection that is idle is given up before one that is not."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait()

    def pause_writing(self) -> None:
        """Wait until the client reads of its answer."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """It reads."""
        super().resume_writing()
        self._go_on()

    def _wait(self) -> None:
        if self not in self.waiting:
            self.waiting[self] = self.loop.call_later(PATIENCE, self.transport.abort)

    def _go_on(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()


class Joined:
    """A transport that sends at once what was written in one turn of the loop, and else does as another.

    Args:
        transport: The other.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._written = transport, list[bytes]()

    def write(self, data: bytes) -> None:
        """Send this, soon; at once if it is much, so that whoever writes is told to wait for a slow reader."""
        if not self._written:
            asyncio.get_running_loop().call_soon(self._send)
        self._written.append(data)
        if len(data) > LONG or len(self._written) == MANY:
            self._send()

    def close(self) -> None:
        """Send what was written, and close; soon, even if nobody reads it."""
        self._send()
        if self._transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(PATIENCE, self._transport.abort)
        self._transport.close()

    def _send(self) -> None:
        if self._written:
            data, self._written = b"".join(self._written), []
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
