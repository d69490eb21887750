"""How hypothesis draws, which tests need a server, and the one PostgreSQL server that all of them share.

Under CI the examples are always the same; elsewhere they are fresh, and hypothesis prints their seed on failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

# Two workers on two cores: matrix products in threads of their own would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from campaigns.ledger.missing import MissingError
from campaigns.ledger.server import Server, server

SERVERS = {"postgres", "postgres_url", "spark"}

# No deadline: nothing here measures time, and a busy machine is no counterexample.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "fresh")


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    """The working precision of balls is that of the process: no test leaves another one to the next."""
    flint: Any = sys.modules.get("flint")
    before = flint.ctx.prec if flint else 53
    yield
    if flint := sys.modules.get("flint"):
        flint.ctx.prec = before


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test is marked `server` that takes a server's fixture, or has a parameter with a server's name."""
    for item in items:
        if isinstance(item, pytest.Function):
            parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
            if SERVERS & {
                *item.fixturenames,
                *(value for value in parameters if isinstance(value, str)),
            }:
                item.add_marker(pytest.mark.server)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running server; skipped where it is not installed, unless DPCOMPOSE_REQUIRE names it."""
    required = "postgres" in os.environ.get("DPCOMPOSE_REQUIRE", "").split(",")
    pytest.importorskip("psycopg") if not required else __import__("psycopg")
    running = server()
    try:
        started = running.__enter__()
    except MissingError as missing:
        if required:
            raise
        pytest.skip(str(missing))
    try:
        yield started
    finally:
        running.__exit__(None, None, None)
