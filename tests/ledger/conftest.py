"""One PostgreSQL server for all tests of the ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from campaigns.ledger.missing import MissingError
from campaigns.ledger.server import Server, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running server; skipped where it is not installed, unless DPCOMPOSE_REQUIRE names it."""
    pytest.importorskip("psycopg") if not _required() else __import__("psycopg")
    running = server()
    try:
        found = running.__enter__()
    except MissingError as missing:
        if _required():
            raise
        pytest.skip(str(missing))
    try:
        yield found
    finally:
        running.__exit__(None, None, None)


def _required() -> bool:
    return "postgres" in os.environ.get("DPCOMPOSE_REQUIRE", "").split(",")
