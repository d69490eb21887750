"""`dpcompose import`: a document of another library as a plan file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcompose.cli.options import Json, option
from dpcompose.cli.output import emit_document, error_boundary
from dpcompose.cli.streams import stdout


def import_document(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A document of another library.", show_default=False),
    ],
    adjacency: Annotated[
        str,
        typer.Option(metavar="NAME", help="Who are neighbors: add-remove, replace or zero-out."),
    ] = "add-remove",
    delta: Annotated[float | None, option("The plan asks for epsilon at this delta.", "D")] = None,
    json: Json = False,
) -> None:
    """Turn FILE, a document of another library, into a plan; prints TOML.

    It reads a DpEvent of dp_accounting and the state dictionary of an accountant of Opacus, both as JSON.
    """
    with error_boundary():
        from dpcompose.interop import import_plan
        from dpcompose.plan import PlanQuestion, adjacency as named

        question = None if delta is None else PlanQuestion("delta", delta)
        plan = import_plan(file, adjacency=named("--adjacency", adjacency), question=question)
    if json:
        emit_document(
            "import", {"source": str(file), "adjacency": plan.adjacency.value, "toml": plan.toml()}
        )
    else:
        stdout(plan.toml())
