"""The standard streams of a command: results on standard output, messages and progress on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from dpcompose.errors import printable

SECOND, LONG = 1.0, 10.0
"""After the first, progress is shown; what takes longer than the second says so before it begins."""


class UnprintedError(Exception):
    """Standard output could not be written; typer would end the command with another status for an OSError."""


def stdout(text: str) -> None:
    """Write text to standard output and flush it.

    Raises:
        UnprintedError: If it cannot be written.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise UnprintedError(error.strerror or str(error)) from None


def stderr(text: str) -> None:
    """Write a line to standard error, without characters that control a terminal."""
    with suppress(OSError):
        print(printable(text), file=sys.stderr, flush=True)


def announce(what: str, seconds: float) -> None:
    """Say on standard error what is about to take long, if it takes more than ten seconds."""
    if seconds > LONG:
        about = f"{seconds:,.0f} seconds" if seconds < 600 else f"{seconds / 60:,.0f} minutes"
        stderr(f"dpcompose: {what} takes about {about}; Ctrl-C stops it")


class Progress:
    """Shows the current step after one second: as a bar on a terminal, otherwise as a line now and then.

    Args:
        what: The first step.
    """

    def __init__(self, what: str) -> None:
        self._step: tuple[str, int, int | None] = (what, 0, None)
        self._bar: Bar | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(SECOND, self._begin)
        self._timer.daemon = True
        self._printed: float | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """The next step is `what`, after `done` of `total`."""
        with self._lock:
            self._step = (what, done, total)
            if self._bar is not None:
                self._bar.update(*self._step)
            elif self._printed is not None and time.monotonic() - self._printed > SECOND:
                self._print()

    def start(self) -> None:
        """Begin to count the first second."""
        self._timer.start()

    def stop(self) -> None:
        """Remove the bar."""
        self._timer.cancel()
        with self._lock:
            if self._bar is not None:
                self._bar.stop()

    def _begin(self) -> None:
        with self._lock:
            if self._timer.finished.is_set():
                return
            if sys.stderr.isatty():
                self._bar = Bar(*self._step)
            else:
                self._print()

    def _print(self) -> None:
        what, done, total = self._step
        stderr(f"dpcompose: {what}" + (" ..." if total is None else f" ({done + 1} of {total})"))
        self._printed = time.monotonic()


class Bar:
    """A bar on a terminal, and the seconds so far."""

    def __init__(self, what: str, done: int, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress as RichProgress,
            TextColumn,
            TimeElapsedColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._drawn = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._drawn.add_task(what, completed=done, total=total)
        self._drawn.start()

    def update(self, what: str, done: int, total: int | None) -> None:
        """The step that is shown."""
        self._drawn.update(self._task, description=what, completed=done, total=total)

    def stop(self) -> None:
        """Remove it."""
        self._drawn.stop()


@contextmanager
def progress(what: str) -> Generator[Progress]:
    """Progress while the block runs: first of `what`, then of the steps that it is told."""
    shown = Progress(what)
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()
