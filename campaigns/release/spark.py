"""Starts a local Spark session on the loopback interface, with its files in one directory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


@contextmanager
def session(home: Path, **more: str) -> Iterator[Any]:
    """A session that runs inside the block, with more settings of Spark's, `_` for a dot."""
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
        # Queries that run once are hardly ever worth the second compiler.
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home} -XX:TieredStopAtLevel=1",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
    }
    settings |= {name.replace("_", "."): value for name, value in more.items()}
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("dpcompose")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        running = builder.getOrCreate()
    try:
        yield running
    finally:
        running.stop()
