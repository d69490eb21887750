"""How a command ends: its exit status, and errors as one sentence on standard error."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

import typer

from dpcompose.errors import (
    DomainError,
    LedgerError,
    MissingExtraError,
    PlanError,
    RefusedRoundError,
    ReleaseError,
    UnreachableError,
    UnsupportedError,
    printable,
)

DONE = 0
REFUSED = 1
"""Refused, over budget, refuted, or not to be reached."""
BAD_INPUT = 2
NOT_AVAILABLE = 3
"""A part that is not installed, a question without a sound answer, or nowhere to print to."""
INTERNAL = 4


@contextmanager
def outcome() -> Generator[None]:
    """Turn the errors of dpcompose, raised inside, into a sentence and an exit status."""
    try:
        yield
    except (PlanError, DomainError) as error:
        raise _end(str(error), BAD_INPUT) from None
    except (UnsupportedError, MissingExtraError) as error:
        raise _end(str(error), NOT_AVAILABLE) from None
    except (UnreachableError, RefusedRoundError, LedgerError, ReleaseError) as error:
        raise _end(str(error), REFUSED) from None


class UnprintedError(Exception):
    """Standard output could not be written; typer would end the command with another status for an OSError."""


def emit(text: str) -> None:
    """Write text to standard output, and see that it got there."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise UnprintedError(error.strerror or str(error)) from None


def say(text: str) -> None:
    """Write a line to standard error, where it cannot disturb what is piped, without anything a terminal obeys."""
    with suppress(OSError):
        print(printable(text), file=sys.stderr, flush=True)


def _end(message: str, status: int) -> typer.Exit:
    say(f"dpcompose: {message}")
    return typer.Exit(status)
