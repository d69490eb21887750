"""`dpcompose adaptive`: which budget to open."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcompose.cli.options import Csv, Json, PlanFile, option, read_plan
from dpcompose.cli.output import emit, error_boundary
from dpcompose.cli.streams import progress
from dpcompose.errors import PlanError

app = typer.Typer(no_args_is_help=True, help="Budgets for whoever chooses along the way.")


@app.callback()
def adaptive() -> None:
    """Budgets for whoever chooses along the way."""


@app.command()
def advise(
    plan: PlanFile,
    epsilon: Annotated[float | None, option("The target, instead of the plan's.", "E")] = None,
    delta: Annotated[float | None, option("At this delta, instead of the plan's.", "D")] = None,
    json: Json = False,
    csv: Csv = False,
) -> None:
    """Say which budget to open for work such as PLAN: how much of it each would grant within epsilon E at delta D.

    The plan's mechanisms are what may be asked, and its `times` how often, about.
    """
    with error_boundary(), progress("reading") as steps:
        from dpcompose import adaptive
        from dpcompose.report import advice_document, advice_page

        read = read_plan(plan)
        stated = {} if read.question is None else {read.question.fixed: read.question.value}
        given = {
            name: value
            for name, value in (("epsilon", epsilon), ("delta", delta))
            if value is not None
        }
        target = stated | given
        for name in ("epsilon", "delta"):
            if name not in target:
                raise PlanError(read.source, "", name, None, f"a value, in the plan or as --{name}")
        steps("trying budgets", 0, 1)
        asked: dict[object, str] = {}
        for entry in read.entries:
            if entry.times:
                asked.setdefault(entry.mechanism, entry.name)
        work = [(entry.mechanism, entry.times) for entry in read.entries]
        found = adaptive.advise(
            work, target["epsilon"], delta=target["delta"], adjacency=read.adjacency
        )
    names = list(asked.values())
    emit(
        "adaptive advise",
        lambda: advice_document(found, names, target),
        lambda: advice_page(found, names, target),
        json=json,
        csv=csv,
    )
