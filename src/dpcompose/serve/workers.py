"""Batches of work that waits for a disk, done in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

THREADS = 64
MOST = 256
"""Jobs of one name that are done together at most."""


def threads() -> Executor:
    """Threads that are started when they are needed."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix="dpcompose-serve")


def done(workers: Executor, work: Callable[[], Any]) -> asyncio.Future[Any]:
    """Have the work done in a thread; what it returns or raises, in the loop that asks."""
    return asyncio.get_running_loop().run_in_executor(workers, work)


_Name = tuple[asyncio.AbstractEventLoop, str]


@dataclass(eq=False)
class Together:
    """Batches of jobs by name: jobs that arrive while a batch of their name runs form the next one.

    Everything here happens in the loop where it is asked, but for the work itself.

    Args:
        workers: Where it is done.
        work: Given a name and jobs, the outcome of each, in their order; an exception is raised where it was asked.
    """

    workers: Executor
    work: Callable[[str, list[Any]], Sequence[Any]]
    _waiting: dict[_Name, list[tuple[Any, asyncio.Future[Any]]]] = field(
        default_factory=dict[Any, Any]
    )
    """Of every name that a thread works on: those that came since."""

    async def run(self, name: str, job: Any) -> Any:
        """The outcome of a job."""
        loop = asyncio.get_running_loop()
        future, lane = loop.create_future(), (loop, name)
        if lane in self._waiting:
            self._waiting[lane].append((job, future))
        else:
            self._start(lane, [(job, future)])
        return await future

    def _start(self, lane: _Name, jobs: list[tuple[Any, asyncio.Future[Any]]]) -> None:
        now, self._waiting[lane] = jobs[:MOST], jobs[MOST:]
        try:
            batch = done(self.workers, partial(self.work, lane[1], [job for job, _ in now]))
        except RuntimeError as error:  # no thread could be started
            del self._waiting[lane]
            _give([future for _, future in jobs], [error] * len(jobs))
            return
        batch.add_done_callback(partial(self._hand_back, lane, [future for _, future in now]))

    def _hand_back(
        self, lane: _Name, futures: list[asyncio.Future[Any]], batch: asyncio.Future[Any]
    ) -> None:
        error = batch.exception()
        _give(futures, batch.result() if error is None else [error] * len(futures))
        waiting = self._waiting.pop(lane)
        if waiting:
            self._start(lane, waiting)


def _give(futures: Sequence[asyncio.Future[Any]], outcomes: Sequence[Any]) -> None:
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.done():  # whoever asked is gone
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
