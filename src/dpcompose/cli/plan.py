"""`dpcompose account` and `dpcompose calibrate`: the commands about a plan file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcompose.cli.options import PICTURES, Csv, Json, Picture, PlanFile, option, read_plan
from dpcompose.cli.output import (
    REFUSED,
    emit,
    error_boundary,
    package_version,
    require_writable,
    write,
    writing,
)
from dpcompose.cli.streams import Progress, progress, stderr, stdout
from dpcompose.errors import PlanError

if TYPE_CHECKING:
    from dpcompose.plan import Plan, PlanAccount, PlanQuestion, PlanRisk


def account(
    plan: PlanFile,
    delta: Annotated[float | None, option("Ask for epsilon at this delta.", "D")] = None,
    epsilon: Annotated[
        float | None,
        option(
            "Ask for delta at this epsilon. Together with --delta: a budget, exceeded with exit status 1.",
            "E",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also explain how the total was certified, and what each theorem assumes.",
        ),
    ] = False,
    json: Json = False,
    csv: Csv = False,
    html: Annotated[Path | None, option("Write one self-contained page.", "FILE")] = None,
    plot: Picture = None,
    risk: Annotated[
        bool, typer.Option("--risk", help="Also report what an attacker gains from all answers.")
    ] = False,
) -> None:
    """Certify the total cost of a PLAN.

    Prints an interval that contains the true epsilon (or delta), the bounds of other theorems, and the contribution of
    each mechanism. The question is the plan's own `delta` or `epsilon`, unless --delta or --epsilon is given.
    """
    with error_boundary(), progress("reading") as steps:
        from dpcompose.plan import account as account_of, risk_of
        from dpcompose.report import account_document, account_page

        require_writable("--html", html, ".html", ".htm")
        require_writable("--plot", plot, *PICTURES)
        read = read_plan(plan)
        question, limit = _question(read, delta, epsilon)
        found = account_of(read, question, limit=limit, every=explain, progress=steps)
        attack = risk_of(read, progress=steps) if risk else None
        if html is not None or plot is not None:
            _draw(found, attack, html, plot, steps)
    emit(
        "account",
        lambda: account_document(found, risk=attack),
        lambda: account_page(found, explain=explain, risk=attack),
        json=json,
        csv=csv,
    )
    if found.within is False:
        raise typer.Exit(REFUSED)


def calibrate(
    plan: PlanFile,
    vary: Annotated[str, option("The number to vary, such as mechanism.training.sigma.", "KEY")],
    epsilon: Annotated[float | None, option("The target.", "E")] = None,
    delta: Annotated[float | None, option("At this delta.", "D")] = None,
    advantage: Annotated[
        float | None, option("The target instead: the largest advantage of an attacker.", "A")
    ] = None,
    true_positive_rate: Annotated[
        float | None, option("The target instead: the largest one at --false-positive-rate.", "T")
    ] = None,
    false_positive_rate: Annotated[float | None, option("At this one.", "F")] = None,
    bayes_error: Annotated[
        float | None,
        option("The target instead: the least chance of a wrong guess whether someone is in.", "B"),
    ] = None,
    prior: Annotated[float | None, option("With this prior; by default 0.5.", "P")] = None,
    json: Json = False,
    csv: Csv = False,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the plan with that value, as TOML.")
    ] = False,
) -> None:
    """Find the least noise (or most steps) that keeps PLAN within epsilon E at delta D, or an attacker within a gain.

    It is the smallest sigma or scale, or the largest rate, times or epsilon.
    """
    with error_boundary(), progress("reading") as steps:
        from dpcompose.plan import calibrate as calibrated

        steps(f"trying values of {vary}", 0, 1)
        stated = {
            "advantage": advantage,
            "true_positive_rate": true_positive_rate,
            "false_positive_rate": false_positive_rate,
            "bayes_error": bayes_error,
            "prior": prior,
        }
        attack = {name: value for name, value in stated.items() if value is not None}
        found = calibrated(read_plan(plan), vary, epsilon=epsilon, delta=delta, **attack)
    if toml and not json:
        stdout(found.plan.toml())
    else:
        from dpcompose.report import calibration_document, calibration_page

        emit(
            "calibrate",
            lambda: calibration_document(found),
            lambda: calibration_page(found),
            json=json,
            csv=csv,
        )


def _question(
    plan: Plan, delta: float | None, epsilon: float | None
) -> tuple[PlanQuestion, float | None]:
    """The question, and the budget if one was given."""
    from dpcompose.plan import PlanQuestion

    if delta is not None:
        return PlanQuestion("delta", delta), epsilon
    asked = PlanQuestion.stated(epsilon=epsilon) or plan.question
    if asked is None:
        raise PlanError(
            plan.source, "", "", None, "delta or epsilon, in the plan or as --delta or --epsilon"
        )
    return asked, None


def _draw(
    found: PlanAccount,
    attack: PlanRisk | None,
    html: Path | None,
    plot: Path | None,
    steps: Progress,
) -> None:
    from dpcompose import report
    from dpcompose.plan import over_delta, over_times
    from dpcompose.report import account_svgs, require_pictures, save_account

    require_pictures()
    curve, growth = over_delta(found, progress=steps), over_times(found, progress=steps)
    if html is not None:
        pictures = account_svgs(over_delta=curve, growth=growth, asked=growth.delta, risk=attack)
        page = report.account_page(found, explain=True, risk=attack)
        write(
            "--html",
            html,
            report.html(
                page, pictures=pictures, producer=f"Made by dpcompose {package_version()}."
            ),
        )
        stderr(f"wrote {html}")
    if plot is not None:
        with writing("--plot", plot):
            save_account(plot, over_delta=curve, growth=growth, asked=growth.delta, risk=attack)
        stderr(f"wrote {plot}")
