"""Progress of long questions: one line on a terminal, with nothing in it that the engine counted."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Timer

SECONDS = 1.0


@contextmanager
def told(engine: str, asked: Sequence[str]) -> Generator[None]:
    """Say on a terminal's standard error what is computed, once it takes longer than a second.

    The words are those of the questions and the engine; how long it takes is seen by whoever waits.

    Args:
        engine: The name of the engine.
        asked: The kinds of the questions.
    """
    kinds = ", ".join(dict.fromkeys(asked))
    timer = Timer(SECONDS, lambda: sys.stderr.write(f"{engine} is computing {kinds} ...\n"))
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
