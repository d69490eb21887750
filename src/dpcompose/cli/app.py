"""The command `dpcompose`: its subcommands and how it ends."""

from __future__ import annotations

import io
import sys
import traceback
from typing import Annotated

import typer

from dpcompose.cli.account import account
from dpcompose.cli.calibrate import calibrate
from dpcompose.cli.experiment import experiment
from dpcompose.cli.ledger import app as ledger
from dpcompose.cli.outcome import REFUSED, say
from dpcompose.cli.release import release
from dpcompose.cli.theorem import theorem

app = typer.Typer(
    name="dpcompose",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit status: 0 done, 1 refused or over budget, 2 bad input. Losses are in nats.",
)
app.command()(account)
app.command()(calibrate)
app.command()(experiment)
app.command()(release)
app.add_typer(ledger, name="ledger")
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(theorem)


def _version(asked: bool) -> None:
    if asked:
        from dpcompose.cli.output import package_version

        print(f"dpcompose {package_version()}")
        raise typer.Exit


@app.callback()
def dpcompose(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Differential privacy, added up: certified totals of what mechanisms spend together."""


def main() -> None:
    """Run the command; whatever happens ends in an exit status and a sentence, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        say(f"dpcompose: a defect, please report it with the plan: {type(error).__name__}: {error} ({place.name})")
        sys.exit(REFUSED)
