"""Work in threads and in batches; work that takes long: its queue, prices in a process, long logs page by page."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from multiprocessing.pool import Pool
from threading import Lock
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dpcompose.account import Account
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Amounts, Entry, Ledger, Moment, Replay, root_of
from dpcompose.mechanisms import parse
from dpcompose.serve.request import Answer

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


LONGEST = 30.0
"""Seconds for which a request waits for its turn and is worked on."""


@dataclass(eq=False)
class Stop:
    """The reason why work is to end early, once there is one."""

    error: Exception | None = None

    async def watch(self, request: Request) -> None:
        """Wait until the client disconnects or the time limit passes."""
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
    """Raise if the work of this thread shall stop; long work calls it between its steps."""
    stop = _STOP.get()
    if stop is not None and stop.error is not None:
        raise stop.error


@dataclass(eq=False)
class Queue:
    """A queue of long work: a limited number of jobs run at once, at most one for each name.

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
        self, request: Request, name: str, workers: Executor, work: Callable[[], Any]
    ) -> Any:
        """Run a job when its turn comes, while the client stays connected; names take turns, so none delays the others.

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
                return await done(workers, partial(stop.heeded, work))
        finally:
            left.cancel()
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name], self._names[name]


Computed = tuple[float, Amounts, Mapping[str, Any]]
"""Seconds of work, a price, and the description of a charge at that price."""
MEMORY = 4 << 30
"""Bytes that such a process may use."""
_idle: list[Pool] = []
"""Processes that wait for work, each in a pool of its own, so that it can be ended by itself."""


def computed(account: Account, mechanism: str, delta: str | Fraction | None) -> Computed:
    """The price of a mechanism.

    Raises:
        DPComposeError: It has none.
        HTTPException: Nobody waits for it any more.
    """
    try:
        pool = _idle.pop()
    except IndexError:
        pool = multiprocessing.get_context("spawn").Pool(1, _yield_to_charges)
    try:
        answer = pool.apply_async(_compute, (account.detached(), mechanism, delta))
        while not answer.ready():
            heed()
            answer.wait(0.1)
    except BaseException:
        pool.terminate()
        raise
    _idle.append(pool)
    return answer.get()


def _yield_to_charges() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        import resource

        os.nice(10)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _compute(account: Account, mechanism: str, delta: str | Fraction | None) -> Computed:
    start = time.perf_counter()
    try:
        quote = account.quote(parse(mechanism), delta)
        return time.perf_counter() - start, quote.cost, quote.description
    except MemoryError:
        raise UnsupportedError(
            "a price of this mechanism", "it needs too much memory", "Charge its parts"
        ) from None


WINDOW = 5000
"""Numbers of a tree that one request for entries looks at."""
MOST_ENTRIES = 1000
FOLLOWED = 20_000
"""Entries that one request of a verification follows."""
RUNNING = 4
"""Verifications that are remembered; each remembers the keys of its tree."""


@dataclass(frozen=True)
class Page:
    """Entries, the newest first.

    Args:
        entries: At most a thousand.
        before: The number before which the next page begins; None at the end.
    """

    entries: list[Entry]
    before: int | None


def page(
    moment: Moment,
    scope: str,
    before: int | None,
    wanted: Callable[[Entry], bool],
    numbers: int = WINDOW,
) -> Page:
    """The newest entries at or below a scope among so many numbers below `before`."""
    moment.balance(scope)
    end = moment.snapshot.head(root_of(scope)).sequence + 1
    before = end if before is None else min(before, end)
    first = max(before - numbers, 1)
    found = list(moment.snapshot.records_of(scope, below=True, after=first - 1, limit=numbers))
    entries: list[Entry] = []
    for record in reversed(found):
        if record.sequence < before and wanted(record.entry):
            entries.append(record.entry)
            if len(entries) == MOST_ENTRIES:
                return Page(entries, record.sequence if record.sequence > 1 else None)
    return Page(entries, first if first > 1 else None)


@dataclass(frozen=True)
class Verifier:
    """Follows the chain of a tree, some entries for each request."""

    ledger: Ledger
    _running: OrderedDict[tuple[str, str], Replay] = field(
        default_factory=OrderedDict[tuple[str, str], Replay]
    )
    _lock: Lock = field(default_factory=Lock)

    def follow(self, actor: str, root: str, after: int) -> Answer:
        """Follow the entries after the number that was asked, 0 for all from the first; say how far that is.

        Only an answer with `done` says that the tree agrees: with its hashes, its rules, and its balances.

        Raises:
            DomainError: That number is not where this server stopped.
        """
        with self._lock:
            replay = self._running.pop((actor, root), None) if after else Replay(root)
        if replay is None or replay.last.sequence != after:
            raise DomainError(
                "after", after, "where this server stopped for you", "Begin again at 0"
            )
        found = self._followed(replay, root)
        if "followed" in found:
            with self._lock:
                self._running[actor, root] = replay
                while len(self._running) > RUNNING:
                    self._running.popitem(last=False)
        return found

    def follow_all(self, root: str) -> Answer:
        """Follow the entries of a tree to the last one."""
        replay = Replay(root)
        while "followed" in (found := self._followed(replay, root)):
            pass
        return found

    def _followed(self, replay: Replay, root: str) -> Answer:
        with self.ledger.moment() as moment:
            end = moment.snapshot.head(root)
            agrees = replay.follow_on(moment.snapshot, FOLLOWED, heed)
        found = {"agrees": agrees, "entries": end.sequence}
        if replay.last.sequence >= end.sequence:
            return {**found, "done": True, "hash": end.hash}
        return {**found, "done": False, "followed": replay.last.sequence} if agrees else found
