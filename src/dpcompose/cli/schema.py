"""`dpcompose schema`: the JSON schema of what a command prints under --json."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcompose.cli.output import error_boundary
from dpcompose.cli.streams import stdout


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="Such as account, or ledger show; left out: the names of all.", show_default=False
        ),
    ] = None,
) -> None:
    """Print the JSON schema of a command's documents: dpcompose schema ledger show."""
    with error_boundary():
        from dpcompose.report import DOCUMENTS, dumps, schema as schema_of

        text = dumps(schema_of(" ".join(command))) if command else "\n".join(DOCUMENTS)
    stdout(text + "\n")
