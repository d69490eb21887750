"""`campaigns` is a package at the root of the repository: it is importable here. One PostgreSQL server for all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

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
