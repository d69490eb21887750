"""Prices that may take long: computed in processes of their own, which are ended when nobody waits for them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Mapping
from fractions import Fraction
from multiprocessing.pool import Pool
from typing import Any

from dpcompose.account import Account
from dpcompose.errors import UnsupportedError
from dpcompose.ledger import Amounts
from dpcompose.mechanisms import parse
from dpcompose.serve.queue import heed

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
