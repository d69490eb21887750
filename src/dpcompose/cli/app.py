"""The command `dpcompose`: its subcommands and its exit status."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dpcompose.cli.adaptive import app as adaptive
from dpcompose.cli.audit import app as audit
from dpcompose.cli.experiment import experiment
from dpcompose.cli.imported import import_document
from dpcompose.cli.ledger import app as ledger
from dpcompose.cli.output import (
    BAD_INPUT,
    DONE,
    INTERNAL,
    INVOKED,
    NOT_AVAILABLE,
    STOPPED,
    Invocation,
    package_version,
    report_error,
)
from dpcompose.cli.plan import account, calibrate
from dpcompose.cli.release import release
from dpcompose.cli.schema import schema
from dpcompose.cli.serve import serve
from dpcompose.cli.statement import statement, verify
from dpcompose.cli.streams import UnprintedError, stderr, stdout
from dpcompose.cli.theorem import theorem

_USAGE: Any = typer.BadParameter.__base__
"""The error of what cannot be parsed, which typer does not name."""


class _Root(TyperGroup):
    """All commands. It knows what was typed, so that every error can be a document under --json."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        found: list[str] = []
        known: dict[str, Any] = dict(self.commands)
        for word in args:
            if word not in known:
                break
            found.append(word)
            known = dict(known[word].commands) if isinstance(known[word], TyperGroup) else {}
        INVOKED.set(Invocation(" ".join(found), "--json" in args))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _USAGE as error:
            words = INVOKED.get()
            if words is None or not words.json:
                raise
            report_error("UsageError", error.format_message(), BAD_INPUT)
            raise typer.Exit(BAD_INPUT) from None


app = typer.Typer(
    name="dpcompose",
    cls=_Root,
    no_args_is_help=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    epilog="Exit status: 0 done, 1 refused, over budget or refuted, 2 bad input, 3 not available, 4 internal, "
    "130 stopped. Losses are in nats.",
)
app.command()(account)
app.command()(calibrate)
app.command()(experiment)
app.command()(release)
app.command("import")(import_document)
app.command()(statement)
app.command()(verify)
app.command()(schema)
app.command()(serve)
app.add_typer(adaptive, name="adaptive")
app.add_typer(audit, name="audit")
app.add_typer(ledger, name="ledger")
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(theorem)


def _version(asked: bool) -> None:
    if asked:
        stdout(f"dpcompose {package_version()}\n")
        raise typer.Exit


@app.callback()
def dpcompose(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Add up differential privacy: certified totals of the losses of many mechanisms."""


def main() -> None:
    """Run the command. Every error ends in an exit status and a sentence, never in a traceback."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    status = _run()
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


def _run() -> int | str | None:
    """The exit status."""
    try:
        app()
    except SystemExit as end:
        return end.code
    except UnprintedError as error:
        # The buffered rest would fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        stderr(
            f"dpcompose: standard output cannot be written ({error}). What was asked for may have been done"
        )
        return NOT_AVAILABLE
    except KeyboardInterrupt:
        return STOPPED
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            stderr(f"dpcompose: standard output cannot be written ({error.strerror})")
            return NOT_AVAILABLE
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = f"a defect, please report it with the plan: {type(error).__name__}: {error} ({place.name})"
        report_error(type(error).__name__, said, INTERNAL)
        return INTERNAL
    return DONE
