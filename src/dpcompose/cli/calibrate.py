"""`dpcompose calibrate`: the value of one number of a plan that meets a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpcompose.cli.account import PlanFile
from dpcompose.cli.outcome import emit, outcome
from dpcompose.cli.patience import patience

if TYPE_CHECKING:
    from dpcompose.plan import PlanCalibration


def calibrate(
    plan: PlanFile,
    vary: Annotated[
        str,
        typer.Option(help="The number to vary, such as mechanism.training.sigma.", metavar="KEY", show_default=False),
    ],
    epsilon: Annotated[float, typer.Option(help="The target.", metavar="E", show_default=False)],
    delta: Annotated[float, typer.Option(help="At this delta.", metavar="D", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
    toml: Annotated[bool, typer.Option("--toml", help="Print the plan with that value, as TOML.")] = False,
) -> None:
    """Find the value of KEY with which the PLAN costs at most E at D.

    The least noise (the smallest sigma or scale), or the most that may be spent (the largest rate, times or epsilon).
    """
    with outcome(), patience() as progress:
        from dpcompose.plan import Plan
        from dpcompose.plan import calibrate as calibrated

        progress(f"trying values of {vary}", 0, 1)
        found = calibrated(Plan.read(plan), vary, epsilon=epsilon, delta=delta)
    _print(found, json=json, toml=toml)


def _print(found: PlanCalibration, *, json: bool, toml: bool) -> None:
    from dpcompose.cli.output import emit_document
    from dpcompose.report import calibration_document, calibration_page

    if json:
        emit_document({"command": "calibrate"} | calibration_document(found))
    elif toml:
        emit(found.plan.toml())
    else:
        from dpcompose.cli.terminal import show

        show(calibration_page(found))
