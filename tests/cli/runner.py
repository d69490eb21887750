"""A command line run in this process, as `dpcompose` runs it, with its streams caught."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from dpcompose.cli.run import run


class _Stream(io.StringIO):
    """A stream of its own, and of what both print in turn."""

    encoding = "utf-8"  # pyright: ignore[reportIncompatibleVariableOverride, reportAssignmentType]

    def __init__(self, both: io.StringIO) -> None:
        super().__init__()
        self._both = both

    def write(self, text: str, /) -> int:
        self._both.write(text)
        return super().write(text)


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    exit_code: int | str | None
    stdout: str
    stderr: str
    output: str

    @property
    def exception(self) -> None:
        """None: `run` turns every error into a status."""


def invoke(
    words: Sequence[str], env: Mapping[str, str | None] | None = None, stdin: bytes = b""
) -> Ended:
    """`dpcompose` with these words, these variables (None: without it) and this standard input."""
    changed = {name: text for name, text in (env or {}).items() if text is not None}
    both = io.StringIO()
    out, err = _Stream(both), _Stream(both)
    with (
        patch.dict(os.environ, changed),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        for name in (env or {}).keys() - changed.keys():
            os.environ.pop(name, None)
        status = run(words)
    return Ended(status, out.getvalue(), err.getvalue(), both.getvalue())
