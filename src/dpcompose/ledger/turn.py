"""Turns: processes that write to one file wait for each other in the kernel, instead of polling SQLite's lock.

Only fairness hangs on it. Without it, or on a system that has no `flock`, SQLite's own lock still keeps writers apart.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None


class Turn:
    """The right to go next, among all processes that use this file; held for one transaction.

    Args:
        path: A file of its own. The database itself must not be opened for it: closing it would drop SQLite's locks.
    """

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)  # whoever may read it may wait his turn

    @contextmanager
    def __call__(self) -> Generator[None]:
        """Wait for the turn, and keep it inside the block."""
        if fcntl is None:
            yield
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            yield
        finally:  # also where a signal handler raises while we wait, or just after
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file."""
        with suppress(OSError):
            os.close(self._handle)
