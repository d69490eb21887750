"""Jobs of one name are done together, and long work by processes, whatever becomes of the others or of who asked."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from starlette.exceptions import HTTPException

from dpcompose import Gaussian
from dpcompose.errors import DomainError
from dpcompose.serve import Role
from dpcompose.serve.queue import (
    MOST,
    Queue,
    RateLimit,
    Stop,
    Together,
    Verifier,
    elsewhere,
    threads,
)
from tests.serve.conftest import Town

Work = Callable[[str, list[Any]], Sequence[Any]]


def _asked(
    work: Work,
    jobs: Sequence[Any],
    *,
    then: Callable[[list[asyncio.Task[Any]]], None] | None = None,
) -> Any:
    """The outcomes of jobs of one name, all but the first of which wait for it."""
    go, batches = Event(), list[list[Any]]()

    def waited(name: str, some: list[Any]) -> Sequence[Any]:
        batches.append(some)
        assert go.wait(10)
        return work(name, some)

    async def ask() -> list[Any]:
        together = Together(threads(), waited)
        tasks = [asyncio.create_task(together.run("tree", job)) for job in jobs]
        await asyncio.sleep(0.05)
        if then is not None:
            then(tasks)
        go.set()
        return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)

    return asyncio.run(ask()), batches


def test_those_that_wait_are_done_together_and_no_more_than_the_most() -> None:
    jobs = range(MOST + 3)
    found, batches = _asked(lambda name, some: [(name, job) for job in some], jobs)
    assert found == [("tree", job) for job in jobs]
    assert [len(each) for each in batches] == [1, MOST, 2]


def test_an_error_of_one_is_raised_where_it_was_asked() -> None:
    found, _ = _asked(
        lambda name, some: [KeyError(job) if job == 2 else job for job in some], range(4)
    )
    assert [type(each) for each in found] == [int, int, KeyError, int]


def test_an_error_of_all_is_raised_everywhere_and_ends_nothing() -> None:
    def fails_at_first(name: str, some: list[Any]) -> Sequence[Any]:
        if some == [0]:
            raise SystemError("once")
        return some

    found, _ = _asked(fails_at_first, range(3))
    assert [type(each) for each in found] == [SystemError, int, int]


def test_who_is_gone_keeps_nobody() -> None:
    def gone(tasks: list[asyncio.Task[Any]]) -> None:
        for each in tasks[:2]:
            each.cancel()

    found, batches = _asked(lambda name, some: some, range(4), then=gone)
    assert [type(each) for each in found] == [
        asyncio.CancelledError,
        asyncio.CancelledError,
        int,
        int,
    ]
    assert batches == [[0], [1, 2, 3]]


def test_without_a_thread_each_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(work: Any, *_: Any) -> Any:
        raise RuntimeError("can't start new thread")

    async def ask() -> list[Any]:
        workers = threads()
        together = Together(workers, lambda name, some: some)
        monkeypatch.setattr(workers, "submit", none)
        first = await asyncio.gather(
            *(together.run("tree", job) for job in range(3)), return_exceptions=True
        )
        monkeypatch.undo()
        return [*first, await together.run("tree", 3)]

    found = asyncio.run(ask())
    assert [type(each) for each in found] == [RuntimeError, RuntimeError, RuntimeError, int]


def _place(service: Any) -> tuple[int, int, bool]:
    with suppress(Exception):
        service.account("city").charge(Gaussian(50.0), actor="nobody", key="k")
        return os.getpid(), os.nice(0), True
    return os.getpid(), os.nice(0), False


def test_long_reads_are_done_by_another_process_that_charges_nothing(tmp_path: Path):
    town = Town(url=str(tmp_path / "city.db"))
    process, niceness, has_charged = town.service.read(_place)
    assert (process, niceness, has_charged) != (os.getpid(), os.nice(0), True) and not has_charged
    assert niceness == min(os.nice(0) + 10, 19)
    account = town.account(scope="city")
    receipt = account.charge(Gaussian(50.0), key="k")
    assert [each["hash"] for each in account.history()] == [receipt.hash]
    auditor = town.account(Role.AUDITOR, scope="city")
    assert auditor.verify()["hash"] == receipt.hash
    balances = town.ask("balances", town.tokens[Role.KEEPER], scope="city").json()["balances"]
    assert [each["scope"] for each in balances][:2] == ["city", "city/health"]
    other = town.person("Ben", subtree="other")
    assert town.ask("history", other.token, scope="city").status_code == 403
    asked = (
        (Role.AUDITOR, "/proofs", "Verify"),
        (Role.KEEPER, "/", "Open"),
        (Role.ANALYST, "/", "price"),
    )
    for role, path, words in asked:
        town.client.cookies.set("dpcompose", town.tokens[role])
        page = town.client.get(path)
        assert page.status_code == 200 and words in page.text and "city/health" in page.text


def test_a_verification_goes_on_in_its_process_from_step_to_step(tmp_path: Path):
    town = Town(url=str(tmp_path / "city.db"))
    for number in range(5):
        town.account(scope="city").charge(Gaussian(900.0), key=f"{number}")
    verifier, steps = Verifier(town.ledger, step=3), [{"followed": 0}]
    while "followed" in steps[-1]:
        steps.append(verifier.follow("Cleo", "city", steps[-1]["followed"]))
    assert [each.get("followed") for each in steps[1:]] == [3, 6, None] and steps[-1]["done"]
    verifier.follow("Cleo", "city", 0)
    for actor, after in (("Cleo", 2), ("Dan", 3)):
        with pytest.raises(DomainError, match="where this server stopped for you"):
            verifier.follow(actor, "city", after)
    for actor in ("Cleo", "Dan", "Eve"):  # the first one's process is ended for the third
        verifier.follow(actor, "city", 0)
    with pytest.raises(DomainError):
        verifier.follow("Cleo", "city", 3)
    assert verifier.follow("Dan", "city", 3)["followed"] == 6


def _slow(_: Any, file: Path) -> None:
    file.write_text(str(os.getpid()))
    time.sleep(600)


def test_a_process_is_ended_with_who_waits_for_it(tmp_path: Path):
    stop, file = Stop(None), tmp_path / "process"
    work = threads().submit(stop.heeded, lambda: elsewhere(_slow, file))
    while not (file.exists() and file.read_text()):
        time.sleep(0.01)
    process = int(file.read_text())
    os.kill(process, 0)
    stop.error = HTTPException(503, "whoever asked has left")
    with pytest.raises(HTTPException):
        work.result(60)
    with pytest.raises(ProcessLookupError):
        for _ in range(6000):
            os.kill(process, 0)
            time.sleep(0.01)


class Caller:
    """A request of a client that leaves when it is told to."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def receive(self) -> dict[str, str]:
        await self.gone.wait()
        return {"type": "http.disconnect"}


def test_who_leaves_waits_no_more_and_work_has_its_share():
    now, go = [0.0], Event()

    async def ask() -> list[Any]:
        queue, workers = Queue(1, each=2, units=RateLimit(0.5, 10.0, lambda: now[0])), threads()
        callers = [Caller() for _ in range(4)]

        def run(caller: Any, work: Any) -> asyncio.Task[Any]:
            return asyncio.create_task(queue.run(caller, "Ada", workers, work))

        first = run(callers[0], lambda: go.wait(60))
        await asyncio.sleep(0.05)
        second = run(callers[1], lambda: "second")
        await asyncio.sleep(0.05)
        callers[1].gone.set()  # its place is free while the first is still worked on
        outcomes: list[Any] = [*await asyncio.gather(second, return_exceptions=True)]
        third = run(callers[2], lambda: "third")
        await asyncio.sleep(0.05)
        now[0] = 11.0
        go.set()
        outcomes += [await first, await third]
        outcomes += await asyncio.gather(run(callers[3], bool), return_exceptions=True)
        now[0] = 20.0
        return [*outcomes, await run(Caller(), lambda: "later")]

    left, *others = asyncio.run(asyncio.wait_for(ask(), 60))
    assert left.status_code == 503 and "has left" in left.detail
    assert others[:2] == [True, "third"] and others[3] == "later"
    assert others[2].status_code == 429 and "your share" in others[2].detail


def test_one_token_has_so_many_requests_at_once(town: Town, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dpcompose.serve.gate.AT_ONCE", 1)
    assert town.ask("left", town.tokens[Role.ANALYST], scope="city").status_code == 200
    monkeypatch.setattr("dpcompose.serve.gate.AT_ONCE", 0)
    refused = town.ask("left", town.tokens[Role.ANALYST], scope="city")
    assert refused.status_code == 429 and "retry-after" in refused.headers
