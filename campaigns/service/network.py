"""A network that fails: connections that are cut, and sides that hear nothing of each other for a while."""

from __future__ import annotations

import asyncio
import random
import threading
from contextlib import suppress

LONGEST = 0.4
"""Seconds that a partition lasts at most."""


class Proxy:
    """Forwards connections to a service or a database, in a thread of its own; partitions it on demand.

    Args:
        target: A port of this machine, or the socket of PostgreSQL.
        at: The socket to listen at; none: a port, which `port` says.
    """

    def __init__(self, target: int | str, *, at: str | None = None) -> None:
        self.target, self.at, self.port = target, at, 0
        self.writers: set[asyncio.StreamWriter] = set()
        self.cuts = 0
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._listen()), daemon=True)
        self.thread.start()
        assert self.ready.wait(10)

    def partition(self, draw: random.Random) -> None:
        """Nothing arrives, at the target, at whoever asks, or at both, for a while; then every connection is cut."""
        deaf = draw.choice([(True, False), (False, True), (True, True)])
        asyncio.run_coroutine_threadsafe(
            self._partition(deaf, draw.uniform(0.0, LONGEST)), self.loop
        ).result(10)
        self.cuts += 1

    def close(self) -> None:
        """Forward nothing any more."""
        self.loop.call_soon_threadsafe(self.end.set)
        self.thread.join(10)

    async def _listen(self) -> None:
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        self.open = [asyncio.Event(), asyncio.Event()]
        for each in self.open:
            each.set()
        if self.at is None:
            server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
        else:
            server = await asyncio.start_unix_server(self._forward, self.at)
        self.ready.set()
        await self.end.wait()
        server.close()
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # they close now

    async def _partition(self, deaf: tuple[bool, bool], seconds: float) -> None:
        for each, is_deaf in zip(self.open, deaf, strict=True):
            if is_deaf:
                each.clear()
        await asyncio.sleep(seconds)
        for writer in self.writers:
            writer.transport.abort()
        for each in self.open:
            each.set()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if isinstance(self.target, int):
                further = await asyncio.open_connection("127.0.0.1", self.target)
            else:
                further = await asyncio.open_unix_connection(self.target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, further[1]}
        self.writers |= both
        await asyncio.gather(self._pump(reader, further[1], 0), self._pump(further[0], writer, 1))
        self.writers -= both

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, side: int
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                await self.open[side].wait()
                writer.write(piece)
                await writer.drain()
        writer.transport.abort()
