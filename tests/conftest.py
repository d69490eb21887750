"""How hypothesis draws, and which tests need a server.

Under CI the examples are always the same; elsewhere they are fresh, and hypothesis prints their seed on failure.
"""

from __future__ import annotations

import os

# Two workers on two cores: matrix products in threads of their own would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings

SERVERS = {"postgres", "postgres_url", "spark"}

# No deadline: nothing here measures time, and a busy machine is no counterexample.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "fresh")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test is marked `server` that takes a server's fixture, or has a parameter with a server's name."""
    for item in items:
        if isinstance(item, pytest.Function):
            parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
            if SERVERS & {*item.fixturenames, *(value for value in parameters if isinstance(value, str))}:
                item.add_marker(pytest.mark.server)
