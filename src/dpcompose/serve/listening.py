"""The HTTP server: uvicorn, with limits for requests that do not arrive and answers that nobody reads."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import Any, ClassVar, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from dpcompose.errors import StoreError

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
    gc.freeze()  # what is loaded by now stays, and need not be looked at
    gc.set_threshold(10_000)
    sys.setswitchinterval(0.0005)  # a thread that reads waits for one that charges, not the reverse
    uvicorn.Server(uvicorn.Config(app, host=host, port=port, http=BoundedProtocol, **quiet)).run()


def require_only(file: Path) -> None:
    """Hold the lock of the one server of a ledger in a file, or of stored answers, until this process ends.

    Nobody can take the lock of SQLite from a server that was stopped, so a second one would wait behind it.

    Raises:
        StoreError: Another process serves it.
    """
    if sys.platform == "win32":
        return
    import fcntl

    handle = os.open(file.with_name(f"{file.name}-served"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(handle, 20).decode() or "another one"
        os.close(handle)
        what = f"process {process} serves this ledger already"
        remedy = "Stop it first; several servers need a ledger on PostgreSQL"
        raise StoreError(str(file), what, remedy) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, str(os.getpid()).encode(), 0)  # it stays open


def most_connections() -> int:
    """Half of the files that this process may open, so that the ledger can still be opened; at most 2,000."""
    if sys.platform == "win32":
        return 500
    import resource

    return min(2000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


class BoundedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn with time limits for requests that do not arrive, and for answers that nobody reads."""

    waiting: ClassVar[dict[BoundedProtocol, float]] = {}
    """The connections whose client is waited for, the longest first, and since when, by the clock of the loop."""
    _size, _in_head = 0, True

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Above the limit of connections, close the one that is idle the longest."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(PATIENCE, self._give_up)
        self._wait()
        if len(self.connections) > most_connections():
            next(iter(self.waiting)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limits."""
        self._timer.cancel()
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse more data, unless the headers are too long."""
        while data and not self.transport.is_closing():
            if self._size == LARGEST_HEAD:
                if cast("Any", self.cycle) is None or self.cycle.response_complete:
                    self.transport.write(TOO_LONG)
                self.transport.close()
                break
            piece, data = data[: LARGEST_HEAD - self._size], data[LARGEST_HEAD - self._size :]
            self._size += len(piece)
            super().data_received(piece)
        if self._size or not self._in_head:
            self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers after a body are ignored."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to count the bytes of the body."""
        self._in_head = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Begin to count the bytes of headers again."""
        self._size = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Begin the time limit of the next request."""
        self._size, self._in_head = 0, True
        self._go_on()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Mark the connection as idle, or as one whose last answer is not read: those are closed first.

        Uvicorn's own time limit for idle connections is left out: a timer for each request costs as much as its parsing.
        """
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
        self._wait()

    def pause_writing(self) -> None:
        """Pause writing until the client has read some of the response."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """Resume writing: the client reads again."""
        super().resume_writing()
        self._go_on()
        if self.transport.is_closing():
            self._wait()

    def _wait(self) -> None:
        self.waiting.setdefault(self, self.loop.time())

    def _go_on(self) -> None:
        self.waiting.pop(self, None)

    def _give_up(self) -> None:
        """Close the connection if its client was waited for too long; else look again when that may be so."""
        left = self.waiting.get(self, self.loop.time()) + PATIENCE - self.loop.time()
        if left > 0:
            self._timer = self.loop.call_later(left, self._give_up)
        else:
            self.transport.abort()
