"""Client processes: forked, killed with SIGKILL at random moments, started again where they were."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread


def fork(work: Callable[[], None]) -> int:
    """A child that does `work` and ends; the ledger must be opened in it, not before."""
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # later Pythons warn where other threads run
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.setpgid(0, 0)
        work()
        status = 0
    except BaseException:
        traceback.print_exc(limit=-3, chain=False)
    finally:
        os._exit(status)


def kill(child: int) -> None:
    """kill -9, and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def in_threads(works: Sequence[Callable[[], object]]) -> None:
    """Do all at once; the first exception is raised when all are done."""
    failed: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def run_with_kills(
    works: list[Callable[[], None]], *, kills: int, pause: float, rng: random.Random
) -> int:
    """Run every work in a process of its own until it ends by itself; kill some on the way. How many kills hit."""
    running = {fork(work): work for work in works}
    hit = 0
    try:
        while running:
            for child in list(running):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    running.pop(child)
                    if status != 0:
                        raise RuntimeError(f"a client failed by itself: status {status}")
            time.sleep(pause * rng.random() * 2)
            if hit < kills and running:
                victim = rng.choice(sorted(running))
                work = running.pop(victim)
                kill(victim)
                running[fork(work)] = work
                hit += 1
    finally:
        for child in running:
            kill(child)
    return hit
