"""Threads for work that waits for a disk; they return results to the event loop in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

THREADS = 64
MOST = 256
"""Jobs of one name that are done together at most."""


_Name = tuple[asyncio.AbstractEventLoop, str]


@dataclass(eq=False)
class _Job:
    work: Callable[[], Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


@dataclass(eq=False)
class Workers:
    """Threads that are started when they are needed, and end with the program.

    A pool of asyncio wakes its loop for each answer. Here answers that are ready together wake it once.

    Args:
        most: Threads.
    """

    most: int = THREADS
    _jobs: SimpleQueue[_Job] = field(default_factory=SimpleQueue[_Job])
    _done: dict[asyncio.AbstractEventLoop, list[_Job]] = field(default_factory=dict[Any, Any])
    _lock: Lock = field(default_factory=Lock)
    _open: int = 0
    _threads: int = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Do the work in one of the threads; return what it returns, or raise what it raises."""
        return await self.start(work)

    def start(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Have the work done in one of the threads; what it returns or raises."""
        job = _Job(work, asyncio.get_running_loop().create_future())
        with self._lock:
            self._open += 1
            starts = self._threads < min(self._open, self.most)
            self._threads += starts
        if starts:
            Thread(target=self._work, name="dpcompose-serve", daemon=True).start()
        self._jobs.put(job)
        return job.future

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job.result = job.work()
            except BaseException as error:
                job.error = error
            loop = job.future.get_loop()
            with self._lock:
                self._open -= 1
                is_first = loop not in self._done
                self._done.setdefault(loop, []).append(job)
            if is_first:
                try:
                    loop.call_soon_threadsafe(self._hand_back, loop)
                except RuntimeError:  # it was closed, and nobody waits
                    self._ready(loop)

    def _ready(self, loop: asyncio.AbstractEventLoop) -> list[_Job]:
        with self._lock:
            return self._done.pop(loop, [])

    def _hand_back(self, loop: asyncio.AbstractEventLoop) -> None:
        for job in self._ready(loop):
            if job.future.done():  # whoever asked is gone
                continue
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)


@dataclass(eq=False)
class Together:
    """Batches of jobs by name: jobs that arrive while a batch of their name runs form the next one.

    Everything here happens in the loop where it is asked, but for the work itself.

    Args:
        workers: Where it is done.
        work: Given a name and jobs, the outcome of each, in their order; an exception is raised where it was asked.
    """

    workers: Workers
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
            done = self.workers.start(partial(self.work, lane[1], [job for job, _ in now]))
        except RuntimeError as error:  # no thread could be started
            del self._waiting[lane]
            _give([future for _, future in jobs], [error] * len(jobs))
            return
        done.add_done_callback(partial(self._hand_back, lane, [future for _, future in now]))

    def _hand_back(
        self, lane: _Name, futures: list[asyncio.Future[Any]], done: asyncio.Future[Any]
    ) -> None:
        error = done.exception()
        _give(futures, done.result() if error is None else [error] * len(futures))
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
