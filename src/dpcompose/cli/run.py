"""The command `dpcompose`: a line of words is run, and ends in an exit status. typer is read when it is needed."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence

from dpcompose.cli.output import (
    DONE,
    INTERNAL,
    INVOKED,
    NOT_AVAILABLE,
    STOPPED,
    Invocation,
    UnprintedError,
    report_error,
    stderr,
    stdout,
)
from dpcompose.version import __version__


def run(words: Sequence[str]) -> int | str | None:
    """Run a command and return its exit status. Every error ends in a status and a sentence, never in a traceback."""
    try:
        if list(words) == ["--version"]:
            stdout(f"dpcompose {__version__}\n")
            return DONE
        from dpcompose.cli.table import COMMANDS, load, split, title

        line, rest = split(words)
        INVOKED.set(Invocation(title(line), "--json" in words))
        is_own = line in COMMANDS and "_DPCOMPOSE_COMPLETE" not in os.environ
        if is_own and (parsed := load(line).parse(rest)) is not None:
            load(line)(parsed[0], **parsed[1])
        else:
            from dpcompose.cli.app import app

            app(list(words))
    except SystemExit as end:
        return end.code
    except UnprintedError as error:
        return _unprinted(str(error))
    except KeyboardInterrupt:
        return STOPPED
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return _unprinted(error.strerror)
        import traceback

        function = traceback.extract_tb(error.__traceback__)[-1].name
        message = f"a defect, please report it with the plan: {type(error).__name__}: {error} ({function})"
        report_error(type(error).__name__, message, INTERNAL)
        return INTERNAL
    return DONE


def _unprinted(reason: str | None) -> int:
    """Say why standard output cannot be written, if its reader did not just close it."""
    # The buffered rest would fail again when Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if reason:
        cannot = f"standard output cannot be written ({reason})"
        stderr(f"dpcompose: {cannot}. What was asked for may have been done")
    return NOT_AVAILABLE


def main() -> None:
    """Run the command that was typed, and end the process with its status."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    status = run(sys.argv[1:])
    if status == STOPPED:
        stderr("dpcompose: stopped; what had been acknowledged stays, nothing else was done")
    sys.exit(status)


def _open_standard_streams() -> None:
    """Refuse to run with a closed standard output, and let no file take the number of a closed stream."""
    closed = sys.stdout is None  # pyright: ignore[reportUnnecessaryComparison]
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if closed:
        stderr(
            "dpcompose: standard output is closed: nothing was done. Redirect it to a file or to /dev/null"
        )
        sys.exit(NOT_AVAILABLE)
