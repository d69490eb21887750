"""Signal handlers raise, ledgers are closed while others charge: nobody hangs, nothing acknowledged is lost."""

from __future__ import annotations

import linecache
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dpcompose.errors import StoreError
from dpcompose.ledger import Ledger, batch
from dpcompose.ledger.batch import Batch, GroupCommit
from dpcompose.ledger.entry import Outcome, Request, RequestDecision


class InterruptionError(Exception):
    """What a handler of SIGALRM might raise."""


def _raising_at(line: int) -> Any:
    """A tracer that raises once, at the line-th line of batch.py that is run.

    Python lets no signal in between a block of `with` and the release of its lock; a tracer would: not there.
    """
    left = [line]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != batch.__file__:
            return None
        if event == "line" and not linecache.getline(
            batch.__file__, frame.f_lineno
        ).lstrip().startswith("with "):
            left[0] -= 1
            if left[0] == 0:
                raise InterruptionError
        return trace

    return trace


def _interrupted_at(line: int) -> bool:
    """Whether a leader was interrupted there; three others, waiting behind it, must all the same arrive."""
    arrived: list[Outcome] = []
    others: list[threading.Thread] = []

    def follow() -> None:
        try:
            arrived.append(group.submit([request])[0])
        except StoreError as error:
            arrived.append(error)

    def follow_all() -> None:
        others.extend(threading.Thread(target=follow, daemon=True) for _ in range(3))
        for other in others:
            other.start()

    def commit(requests: Sequence[Request]) -> list[Outcome]:
        if not others:
            follow_all()
            while len(group._waiting) < 4:
                time.sleep(0.0001)
        return [RequestDecision() for _ in requests]

    request: Any = object()
    group, interrupted = GroupCommit(commit), False
    sys.settrace(_raising_at(line))
    try:
        group.submit([request])
    except (InterruptionError, StoreError):
        interrupted = True
    finally:
        sys.settrace(None)
    if not others:
        follow_all()
    for other in others:
        other.join(10)
    assert len(arrived) == 3, f"interrupted at line {line}: {3 - len(arrived)} still wait"
    assert group.submit([request]) == [RequestDecision()]
    return interrupted


def test_whoever_leads_may_be_interrupted_anywhere() -> None:
    line = 1
    while _interrupted_at(line):
        line += 1
    assert line > 20, "the lines of a whole commit were interrupted, one after the other"


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_a_closed_ledger_says_so(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = {"memory": "memory:", "sqlite": str(tmp_path / "ledger.db")}.get(store)
    ledger = Ledger.open(url or request.getfixturevalue("postgres").create("closed"))
    ledger.scope("world", caps={"epsilon": 1}, actor="Ada")
    ledger.close()
    ledger.close()
    for ask in (
        lambda: ledger.charge("world", cost={"epsilon": 1}, actor="Ada", key="first"),
        lambda: ledger.balance("world"),
        ledger.verify,
    ):
        with pytest.raises(StoreError, match="this ledger was closed"):
            ask()


def test_closing_while_others_charge_and_read(tmp_path: Path) -> None:
    open_files = len(os.listdir("/proc/self/fd"))
    for attempt in range(6):
        path, odd, receipts = tmp_path / f"{attempt}.db", [], []
        ledger = Ledger.open(path)
        ledger.scope("world", caps={"epsilon": 10**6}, actor="Ada")

        def charge(client: int, ledger: Ledger = ledger, receipts: list[Any] = receipts) -> None:
            for number in range(10**6):
                receipts.append(
                    ledger.charge(
                        "world", cost={"epsilon": 1}, actor="Ada", key=f"{client} {number}"
                    )
                )

        def read(_: int, ledger: Ledger = ledger) -> None:
            while True:
                ledger.balance("world")

        def run(work: Any, client: int, odd: list[Any] = odd) -> None:
            try:
                work(client)
            except BaseException as error:
                if "this ledger was closed" not in str(error):
                    odd.append(error)

        threads = [threading.Thread(target=run, args=(charge, client)) for client in range(6)]
        threads += [threading.Thread(target=run, args=(read, client)) for client in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.01 * attempt)
        ledger.close()
        for thread in threads:
            thread.join()
        assert odd == []
        with Ledger.open(path) as again:
            kept = {entry.hash for entry in again.entries("world")}
            assert {receipt.hash for receipt in receipts} <= kept
            again.verify()
    assert len(os.listdir("/proc/self/fd")) <= open_files


def test_what_an_interrupted_commit_left_open_is_rolled_back(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.scope("world", caps={"epsilon": 1}, actor="Ada")
        store: Any = ledger.store
        store._writer.execute("BEGIN IMMEDIATE")
        store._writer.execute("UPDATE balance SET closed = 1")
        ledger.charge("world", cost={"epsilon": 1}, actor="Ada", key="first")
        ledger.verify()


def test_a_ledger_in_memory_stops_where_a_decision_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    ledger = Ledger.open("memory:")
    ledger.scope("world", caps={"epsilon": 1}, actor="Ada")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Batch, "_append", interrupted)
        ledger.charge("world", cost={"epsilon": 1}, actor="Ada", key="1")
    with pytest.raises(StoreError, match="interrupted"):
        ledger.charge("world", cost={"epsilon": 1}, actor="Ada", key="1")
    with pytest.raises(StoreError, match="interrupted"):
        ledger.balance("world")
