"""Jobs of one name are done together: each has its own outcome, whatever becomes of the others or of who asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from dpcompose.serve.queue import MOST, Together, threads

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
