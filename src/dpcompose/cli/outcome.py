"""How a command ends: its exit status, and errors as one sentence on standard error."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

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
)

DONE = 0
REFUSED = 1
"""Refused, over budget, or not to be reached."""
BAD_INPUT = 2


@contextmanager
def outcome() -> Generator[None]:
    """Turn the errors of dpcompose, raised inside, into a sentence and an exit status."""
    try:
        yield
    except (PlanError, DomainError) as error:
        raise _end(str(error), BAD_INPUT) from None
    except (
        UnsupportedError, UnreachableError, MissingExtraError, RefusedRoundError, LedgerError, ReleaseError,
    ) as error:  # fmt: skip
        raise _end(str(error), REFUSED) from None


def say(text: str) -> None:
    """Write a line to standard error, where it cannot disturb what is piped."""
    print(text, file=sys.stderr)


def _end(message: str, status: int) -> typer.Exit:
    say(f"dpcompose: {message}")
    return typer.Exit(status)
