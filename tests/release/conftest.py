"""Fixtures for the engines of releases: DuckDB always; one PostgreSQL server and one Spark session
for all tests, if available.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from campaigns.ledger.server import Server

pytest.importorskip("duckdb", reason="the extra `data` is not installed")
pytest.importorskip("opendp", reason="the extra `data` is not installed")


def _missing(name: str, reason: str) -> None:
    if name in os.environ.get("DPCOMPOSE_REQUIRE", "").split(","):
        pytest.fail(f"{name} is required: {reason}")
    pytest.skip(reason)


@pytest.fixture(autouse=True)
def closed_ledgers() -> Iterator[None]:
    """The ledgers that a test opened let go of their files when it ends."""
    from tests.release import world

    yield
    while world.OPENED:
        world.OPENED.pop().close()


@pytest.fixture(scope="session")
def postgres_url(postgres: Server) -> str:
    """The URL of a database of its own."""
    return postgres.create("release")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark session, in local mode."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        _missing("spark", "Java is not installed: apt-get install openjdk-17-jre-headless")
    try:
        from campaigns.release.spark import session
    except ImportError:
        _missing("spark", "pyspark is not installed: pip install '.[spark]'")
    # Small queries take a third of the time where none is compiled; the campaign asks compiled ones.
    interpreted = {
        "spark_sql_codegen_wholeStage": "false",
        "spark_sql_codegen_factoryMode": "NO_CODEGEN",
    }
    home = tmp_path_factory.mktemp("spark")
    with session(
        home, **interpreted, spark_sql_adaptive_enabled="false", spark_sql_shuffle_partitions="1"
    ) as found:
        yield found
