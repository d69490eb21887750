"""Turns: processes that write to one file wait for each other in the kernel, instead of polling SQLite's lock.

Only fairness hangs on it. Without it, or on a system that has no `flock`, SQLite's own lock still keeps writers apart.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None

PATIENCE = 10.0
"""Seconds to wait for a turn; then somebody who is stopped, or never writes, holds it, and we go without."""


class Turn:
    """The right to go next, among all processes that use this file; held for one transaction.

    Args:
        path: A file of its own. The database itself must not be opened for it: closing it would drop SQLite's locks.
    """

    def __init__(self, path: Path) -> None:
        self._handle: int | None = None
        with suppress(PermissionError):  # then without turns
            self._handle = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)  # whoever may read it may wait his turn
        self._waiter: Thread | None = None

    def __enter__(self) -> None:
        """Wait for the turn, and keep it inside the block."""
        if fcntl is None or self._handle is None:
            return
        try:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._wait(self._handle)
        except BaseException:  # what a signal handler raises while we wait, or just after
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            raise

    def __exit__(self, *_: object) -> None:
        if fcntl is not None and self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def _wait(self, handle: int) -> None:
        """Wait in another thread: a wait in the kernel has no limit of its own."""
        if self._waiter is not None and self._waiter.is_alive():
            return  # whoever holds it has held it for too long already
        arrived, given_up = Lock(), Lock()
        arrived.acquire()

        def wait() -> None:
            assert fcntl is not None
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
                arrived.release()
                if given_up.locked():
                    fcntl.flock(handle, fcntl.LOCK_UN)

        self._waiter = Thread(target=wait, daemon=True)
        try:
            self._waiter.start()
            if not arrived.acquire(timeout=PATIENCE):
                given_up.acquire()
        except BaseException:
            given_up.acquire()
            raise
        if not given_up.locked():
            self._waiter = None

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None:
            with suppress(OSError):
                os.close(self._handle)
