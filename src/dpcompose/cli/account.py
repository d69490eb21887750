"""`dpcompose account`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcompose.cli.outcome import REFUSED, outcome, say
from dpcompose.cli.output import emit_document, package_version, require_writable, write, writing
from dpcompose.cli.patience import Patience, patience
from dpcompose.errors import PlanError

if TYPE_CHECKING:
    from dpcompose.plan import Plan, PlanAccount, PlanRisk, Question

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file (TOML).", show_default=False)]


def account(
    plan: PlanFile,
    delta: Annotated[
        float | None, typer.Option(help="Ask for epsilon at this delta.", metavar="D", show_default=False)
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Ask for delta at this epsilon. Together with --delta: a budget, exceeded with exit status 1.",
            metavar="E",
            show_default=False,
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say also how the total was certified, and what each theorem assumes.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write one self-contained page.", metavar="FILE", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write the pictures as PNG.", metavar="FILE.png", show_default=False)
    ] = None,
    risk: Annotated[bool, typer.Option("--risk", help="Say also what an attacker gains from all answers.")] = False,
) -> None:
    """Certify what a PLAN costs in total.

    Prints an interval that contains the true epsilon (or delta), what other theorems would say, and what each
    mechanism contributes. The question is the plan's own `delta` or `epsilon`, unless --delta or --epsilon is given.
    """
    with outcome(), patience() as progress:
        from dpcompose.plan import Plan, risk_of
        from dpcompose.plan import account as account_of
        from dpcompose.report import account_document, account_page

        require_writable("--html", html, ".html", ".htm")
        require_writable("--plot", plot, ".png")
        read = Plan.read(plan)
        question, limit = _question(read, delta, epsilon)
        found = account_of(read, question, limit=limit, every=explain, progress=progress)
        attack = risk_of(read, progress=progress) if risk else None
        if html is not None or plot is not None:
            _draw(found, attack, html, plot, progress)
    if json:
        emit_document({"command": "account"} | account_document(found, risk=attack))
    else:
        from dpcompose.cli.terminal import show

        show(account_page(found, explain=explain, risk=attack))
    if found.within is False:
        raise typer.Exit(REFUSED)


def _question(plan: Plan, delta: float | None, epsilon: float | None) -> tuple[Question, float | None]:
    """What is asked, and the budget if one was given."""
    from dpcompose.plan import Question

    if delta is not None:
        return Question("delta", delta), epsilon
    asked = Question.stated(epsilon=epsilon) or plan.question
    if asked is None:
        raise PlanError(plan.source, "", "", None, "delta or epsilon, in the plan or as --delta or --epsilon")
    return asked, None


def _draw(
    found: PlanAccount, attack: PlanRisk | None, html: Path | None, plot: Path | None, progress: Patience
) -> None:
    from dpcompose import report
    from dpcompose.plan import over_delta, over_times
    from dpcompose.plan.curve import drawn_delta
    from dpcompose.report import picture

    picture.require()
    curve, growth = over_delta(found, progress=progress), over_times(found, progress=progress)
    asked = drawn_delta(found)
    if html is not None:
        pictures = picture.svgs(over_delta=curve, growth=growth, asked=asked, risk=attack)
        page = report.account_page(found, explain=True, risk=attack)
        write("--html", html, report.html(page, pictures=pictures, producer=f"Made by dpcompose {package_version()}."))
        say(f"wrote {html}")
    if plot is not None:
        with writing("--plot", plot):
            picture.save(plot, over_delta=curve, growth=growth, asked=asked, risk=attack)
        say(f"wrote {plot}")
