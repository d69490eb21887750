"""Work in threads and in batches; work that takes long: its queue, prices in a process, long logs page by page."""

from __future__ import annotations

import asyncio
import json
import logging
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
from functools import cached_property, partial
from multiprocessing.pool import Pool
from threading import Lock
from typing import Any, NoReturn
from weakref import finalize

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dpcompose.account import Account
from dpcompose.errors import DomainError, StoreError, TamperedError, UnsupportedError
from dpcompose.ledger import (
    PEOPLE,
    Amounts,
    Entry,
    Ledger,
    Moment,
    SetFact,
    encode,
    later,
    root_of,
)
from dpcompose.mechanisms import parse
from dpcompose.serve.request import Answer

_log = logging.getLogger("dpcompose.serve")
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
    """The reason why work is to end early, once there is one.

    Args:
        waiting: The task that waits for its turn; it is cancelled when the reason is set.
        admit: Raises if whoever asks is no longer admitted.
        error: The reason; None until there is one.
    """

    waiting: asyncio.Task[Any] | None
    admit: Callable[[], object] = bool
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
        if self.waiting is not None:
            self.waiting.cancel()

    def heeded(self, work: Callable[[], Any]) -> Any:
        """Do work that calls `heed`."""
        token = _STOP.set(self)
        try:
            heed()
            self.admit()
            return work()
        finally:
            _STOP.reset(token)


_STOP: ContextVar[Stop | None] = ContextVar("_STOP", default=None)


def heed() -> None:
    """Raise if the work of this thread shall stop; long work calls it between its steps."""
    stop = _STOP.get()
    if stop is not None and stop.error is not None:
        raise stop.error


def still_admitted() -> None:
    """Raise if whoever asks was revoked meanwhile; work that has waited for another turn calls it."""
    stop = _STOP.get()
    if stop is not None:
        stop.admit()


@dataclass
class RateLimit:
    """A rate limit for each name: a number of units per second, and of units in a burst.

    >>> limit = RateLimit(1.0, 2, clock=lambda: 0.0)
    >>> [limit.admits("Ada") for _ in range(3)]
    [True, True, False]
    """

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _saved: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    _lock: Lock = field(default_factory=Lock)

    def admits(self, name: str, units: float = 1.0) -> bool:
        """Whether the limit admits so many more units of that name now; then they are taken."""
        with self._lock:
            saved, now = self._now(name)
            admitted = saved >= units
            self._saved[name] = (saved - units if admitted else saved, now)
            return admitted

    def take(self, name: str, units: float) -> None:
        """Take units that were used; the name may owe some."""
        with self._lock:
            saved, now = self._now(name)
            self._saved[name] = (saved - units, now)

    def _now(self, name: str) -> tuple[float, float]:
        now = self.clock()
        if len(self._saved) > 10_000:
            full = self.burst / self.rate
            self._saved = {each: at for each, at in self._saved.items() if now - at[1] < full}
        saved, then = self._saved.get(name, (self.burst, now))
        return min(self.burst, saved + (now - then) * self.rate), now


@dataclass(eq=False)
class Queue:
    """A queue of long work: a limited number of jobs run at once, at most one for each name.

    Args:
        running: At once.
        each: Requests of one name that wait or are worked on.
        most: Requests of all names.
        units: Seconds of work of one name: two minutes at once, and half of the time.
    """

    running: int = 2
    each: int = 8
    most: int = 256
    units: RateLimit = field(default_factory=lambda: RateLimit(0.5, 120.0))
    _counts: Counter[str] = field(default_factory=Counter[str])
    _names: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])
    _turns: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._turns = asyncio.Semaphore(self.running)

    async def run(
        self, request: Request, name: str, workers: Executor, work: Callable[[], Any],
        admit: Callable[[], object] = bool,
    ) -> Any:  # fmt: skip
        """Run a job when its turn comes, while the client stays connected; names take turns, so none delays the others.

        Args:
            request: Which is watched for the client's leaving.
            name: Whose job it is.
            workers: Where it is done.
            work: The job.
            admit: Raises if whoever asks is no longer admitted; called when the turn has come.

        Raises:
            HTTPException: 429 or 503: too many wait, this one waited too long, or its name had its share of work.
        """
        if not self._counts[name] < self.each:
            raise HTTPException(
                429, "too many of your requests wait for their turn; ask fewer at once"
            )
        if not self._counts.total() < self.most:
            raise HTTPException(503, "too many requests wait for their turn; ask again")
        if not self.units.admits(name, 0.0):
            raise HTTPException(
                429, "your requests took more work than your share; ask again in a minute"
            )
        self._counts[name] += 1
        stop = Stop(asyncio.current_task(), admit)
        left = asyncio.create_task(stop.watch(request))
        try:
            async with self._names.setdefault(name, asyncio.Lock()), self._turns:
                stop.waiting, start = None, self.units.clock()
                try:
                    return await done(workers, partial(stop.heeded, work))
                finally:
                    self.units.take(name, self.units.clock() - start)
        except asyncio.CancelledError:
            if stop.waiting is None or stop.error is None:
                raise
            stop.waiting.uncancel()
            raise stop.error from None
        finally:
            left.cancel()
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name], self._names[name]


MEMORY = 4 << 30
"""Bytes that a process for long work may use."""
State = dict[str, Any]
_state: State = {}
"""Kept by such a process from one piece of work to the next."""
_idle: list[Process] = []
"""Processes that wait for work."""


@dataclass(eq=False)
class Process:
    """A process for long work, which is ended as soon as nobody waits for it; `inline`: in this thread instead."""

    inline: bool = False
    state: State = field(default_factory=State)

    @classmethod
    def take(cls) -> Process:
        """One that waits for work, or a new one; the thread itself within such a process."""
        try:
            return cls(inline=True, state=_state) if _state else _idle.pop()
        except IndexError:
            return cls()

    @cached_property
    def _pool(self) -> Pool:
        method = "spawn" if sys.platform == "win32" else "forkserver"
        context = multiprocessing.get_context(method)
        if method == "forkserver":  # a process then costs a fork, and shares its memory
            context.set_forkserver_preload(["dpcompose.serve.pages", "dpcompose.adaptive"])
        pool = context.Pool(1, _begin)
        finalize(self, pool.terminate)
        return pool

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do the work, whose first argument is a state that the process keeps.

        Raises:
            HTTPException: Nobody waits for it any more.
        """
        if self.inline:
            return work(self.state, *arguments)
        try:
            answer = self._pool.apply_async(_worked, (work, arguments))
            while not answer.ready():
                heed()
                answer.wait(0.1)
        except BaseException:
            self.end()
            raise
        try:
            return answer.get()
        except Exception:  # of the work, which has ended
            self.give_back()
            raise

    def give_back(self) -> None:
        """Let others use the process."""
        if not self.inline:
            _idle.append(self)

    def end(self) -> None:
        """End the process, with what it keeps."""
        if not self.inline:
            self._pool.terminate()


def _begin() -> None:
    _state["inside"] = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        import resource

        os.nice(10)  # charges come first
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _worked(work: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    try:
        return work(_state, *arguments)
    except StoreError:  # the next piece of work connects again
        _state.clear()
        _state["inside"] = True
        raise


def elsewhere(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the work gives in one of the server's worker processes, started at need; it raises as `Process.run`."""
    process = Process.take()
    found = process.run(work, *arguments)
    process.give_back()
    return found


Computed = tuple[float, Amounts, Mapping[str, Any]]
"""Seconds of work, a price, and the description of a charge at that price."""


def computed(account: Account, mechanism: str, delta: str | Fraction | None) -> Computed:
    """The price of a mechanism; raises DPComposeError if it has none."""
    return elsewhere(_compute, account.detached(), mechanism, delta)


def _compute(_: State, account: Account, mechanism: str, delta: str | Fraction | None) -> Computed:
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
VERIFIED = "verified"
"""The kind of the fact that says when the whole ledger was verified, and whether it agreed with itself."""
WEEK, LOOKED = 7 * 86400.0, 600.0
"""Seconds between two verifications of the whole ledger, and between two looks whether one is due."""
RUNNING = 2
"""Verifications that go on from request to request, each in a process that has the keys of its tree."""


@dataclass(frozen=True)
class Page:
    """Entries, the newest first.

    Args:
        entries: At most a thousand.
        before: The number before which the next page begins; None at the end.
    """

    entries: list[Entry]
    before: int | None


def matching(actor: str, kind: str, words: str) -> Callable[[Entry], bool]:
    """Whether an entry is of that actor and kind, and has these words; where one is empty, of any."""
    return lambda entry: (
        actor in ("", entry.actor) and kind in ("", entry.kind) and words in entry.body
    )


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
    """Follows the chain of a tree, some entries for each request; and each week the whole ledger."""

    ledger: Ledger
    step: int = field(default_factory=lambda: FOLLOWED)
    _running: OrderedDict[tuple[str, str], Process] = field(
        default_factory=OrderedDict[tuple[str, str], Process]
    )
    _lock: Lock = field(default_factory=Lock)

    def follow(self, actor: str, root: str, after: int | None) -> Answer:
        """Follow entries after the number that was asked, 0 for some from the first; None for all. Say how far that is.

        Only an answer with `done` says that the tree agrees: with its hashes, its rules, and its balances.

        Raises:
            DomainError: That number is not where this server stopped.
        """
        source = self.ledger.store.source
        with self._lock:
            process = self._running.pop((actor, root), None) if after else None
        if process is None:
            process = Process(inline=True) if source is None else Process.take()
        found = process.run(_follow, source or self.ledger, root, after, self.step)
        if after is None or "followed" not in found:
            process.give_back()
            return found
        with self._lock:
            self._running[actor, root] = process
            while len(self._running) > RUNNING:
                self._running.popitem(last=False)[1].end()
        return found

    @staticmethod
    def last(moment: Moment) -> Answer:
        """When the whole ledger was verified (`at`), its `entries`, and whether it `agrees`; empty if it never was."""
        return json.loads(moment.snapshot.fact(PEOPLE, VERIFIED, "") or "{}")

    def verify_when_due(self) -> None:
        """Verify the whole ledger in a process of its own, unless that was done in the last week, and record it."""
        with self.ledger.moment() as moment:
            now, last = moment.now(PEOPLE), self.last(moment)
            is_new = moment.snapshot.node(PEOPLE) is None
        source = self.ledger.store.source
        if is_new or source is None or (last and now < later(last["at"], WEEK)):
            return
        outcome = elsewhere(_verify, source)
        if not outcome["agrees"]:
            _log.error(
                "the ledger does not agree with itself; `dpcompose ledger verify` says where"
            )
        stated = VERIFIED, "", encode({**outcome, "at": now})
        self.ledger.state(SetFact(PEOPLE, "operator", *stated))

    def verify_weekly(self) -> NoReturn:
        """Verify the whole ledger each week, for as long as the service runs."""
        while True:
            time.sleep(LOOKED)
            try:
                self.verify_when_due()
            except Exception as error:  # it is due still
                _log.error("the weekly verification failed: %s", error)


def _verify(state: State, source: str) -> Answer:
    try:
        return {"agrees": True, "entries": ledger_of(state, source).verify().entries}
    except TamperedError:
        return {"agrees": False, "entries": 0}


def ledger_of(state: State, source: str | Ledger) -> Ledger:
    """The ledger that a process reads, opened once."""
    if isinstance(source, Ledger):
        return source
    if source not in state:
        state[source] = Ledger.open(source, read_only=True)
    return state[source]


def _follow(state: State, source: str | Ledger, root: str, after: int | None, step: int) -> Answer:
    replay = state.pop("replay", None) if after else Ledger.replay(root)
    if replay is None or (replay.root, replay.last.sequence) != (root, after or 0):
        raise DomainError("after", after, "where this server stopped for you", "Begin again at 0")
    while True:
        with ledger_of(state, source).moment() as moment:
            end = moment.snapshot.head(root)
            agrees = replay.follow_on(moment.snapshot, step, heed)
        found: Answer = {"agrees": agrees, "entries": end.sequence}
        if replay.last.sequence >= end.sequence:
            return {**found, "done": True, "hash": end.hash}
        if not agrees:
            return {**found, "done": False}
        if after is not None:
            state["replay"] = replay
            return {**found, "done": False, "followed": replay.last.sequence}
