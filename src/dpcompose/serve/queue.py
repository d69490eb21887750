"""Work that may take long: it waits for its turn, and ends when nobody waits for its answer any more."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dpcompose.serve.workers import Workers

LONGEST = 30.0
"""Seconds for which a request waits for its turn and is worked on."""


@dataclass(eq=False)
class Stop:
    """The reason why work is to end early, once there is one."""

    error: Exception | None = None

    async def watch(self, request: Request) -> None:
        """Wait until whoever asked has left, or has waited too long."""
        try:
            async with asyncio.timeout(LONGEST):
                while (await request.receive())["type"] != "http.disconnect":
                    pass
            self.error = HTTPException(503, "whoever asked has left")
        except TimeoutError:
            self.error = HTTPException(
                503, f"no answer within {LONGEST:g} seconds; ask for less at once, or later"
            )

    def heeded(self, work: Callable[[], Any]) -> Any:
        """Do work that calls `heed`."""
        token = _STOP.set(self)
        try:
            heed()
            return work()
        finally:
            _STOP.reset(token)


_STOP: ContextVar[Stop | None] = ContextVar("_STOP", default=None)


def heed() -> None:
    """Raise if the work of this thread is to end: to be called between its steps."""
    stop = _STOP.get()
    if stop is not None and stop.error is not None:
        raise stop.error


@dataclass(eq=False)
class Queue:
    """Work that may take long: some at once, one for each name. All but the work happens in one loop.

    Args:
        running: At once.
        each: Requests of one name that wait or are worked on.
        most: Requests of all names.
    """

    running: int = 4
    each: int = 8
    most: int = 256
    _counts: Counter[str] = field(default_factory=Counter[str])
    _names: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])
    _turns: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._turns = asyncio.Semaphore(self.running)

    async def run(
        self, request: Request, name: str, workers: Workers, work: Callable[[], Any]
    ) -> Any:
        """Do work in its turn, for as long as whoever asks is there; a name with many requests holds no other back.

        Raises:
            HTTPException: 429 or 503: too many wait, or this one waited too long.
        """
        if not self._counts[name] < self.each:
            raise HTTPException(
                429, "too many of your requests wait for their turn; ask fewer at once"
            )
        if not self._counts.total() < self.most:
            raise HTTPException(503, "too many requests wait for their turn; ask again")
        self._counts[name] += 1
        stop = Stop()
        left = asyncio.create_task(stop.watch(request))
        try:
            async with self._names.setdefault(name, asyncio.Lock()), self._turns:
                return await workers.run(partial(stop.heeded, work))
        finally:
            left.cancel()
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name], self._names[name]
