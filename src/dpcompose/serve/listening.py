"""The server that listens: uvicorn, but head and body of an answer leave together, and wake who waits once."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONG = 16384
"""Bytes of a part that are not kept for the end of the turn."""
MANY = 8
"""Parts that are not."""


def run(app: ASGIApp, *, host: str, port: int) -> None:
    """Answer requests until the process is told to end."""
    quiet: dict[str, Any] = {"access_log": False, "server_header": False, "timeout_graceful_shutdown": 5}
    uvicorn.Server(uvicorn.Config(app, host=host, port=port, http=JoinedAnswers, **quiet)).run()


class JoinedAnswers(HttpToolsProtocol):
    """The protocol of uvicorn, which writes the two one after the other."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write through what joins."""
        super().connection_made(cast("asyncio.Transport", Joined(transport)))


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
        """Send what was written, and close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._written:
            data, self._written = b"".join(self._written), []
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
