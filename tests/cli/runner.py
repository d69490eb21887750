"""The commands, built once: typer's runner builds them anew for every call, a third of the time of these tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from typer import testing

from dpcompose.cli.app import app

testing._get_command = cache(testing._get_command)  # pyright: ignore[reportPrivateImportUsage]


def invoke(words: Sequence[str], env: Mapping[str, str | None] | None = None) -> testing.Result:
    """`dpcompose` with these words."""
    return testing.CliRunner().invoke(app, words, env=env)
