"""The commands about plan files: account, calibrate, compare, adaptive advise and import."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dpcompose.cli.command import ARGUMENT, PlanFile, Result, command
from dpcompose.cli.inputs import read_plan
from dpcompose.cli.output import DONE, REFUSED, Progress
from dpcompose.errors import PlanError

if TYPE_CHECKING:
    from dpcompose.plan import Plan, PlanQuestion


@command("json", "csv", "html", "plot")
def account(
    steps: Progress,
    plan: PlanFile,
    delta: float | None = None,
    epsilon: float | None = None,
    explain: bool = False,
    risk: bool = False,
) -> Result:
    """Certify the total cost of a PLAN.

    Prints an interval that contains the true epsilon (or delta), the bounds of other theorems, and the contribution of
    each mechanism. The question is the plan's own `delta` or `epsilon`, unless --delta or --epsilon is given.

    Args:
        delta (D): Ask for epsilon at this delta.
        epsilon (E): Ask for delta at this epsilon. Together with --delta: a budget, exceeded with exit status 1.
        explain: Also explain how the total was certified, and what each theorem assumes.
        risk: Also report what an attacker gains from all answers.
    """
    from dpcompose.plan import account as account_of, risk_of
    from dpcompose.report import document, page, pictures

    read = read_plan(plan)
    question, limit = _question(read, delta, epsilon)
    total = account_of(read, question, limit=limit, every=explain, progress=steps)
    attack = risk_of(read, progress=steps) if risk else None

    return Result(
        lambda: document(total, risk=attack),
        lambda: page(total, explain=explain, risk=attack),
        status=REFUSED if total.within is False else DONE,
        html=lambda: page(total, explain=True, risk=attack),
        pictures=lambda: pictures(total, risk=attack, progress=steps),
    )


@command("json", "csv")
def calibrate(
    steps: Progress,
    plan: PlanFile,
    vary: str,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    bayes_error: float | None = None,
    prior: float | None = None,
    toml: bool = False,
) -> Result:
    """Find the least noise (or most steps) that keeps PLAN within epsilon E at delta D, or an attacker within a gain.

    It is the smallest sigma or scale, or the largest rate, times or epsilon.

    Args:
        vary (KEY): The number to vary, such as mechanism.training.sigma.
        epsilon (E): The target.
        delta (D): At this delta.
        advantage (A): The target instead: the largest advantage of an attacker.
        true_positive_rate (T): The target instead: the largest one at --false-positive-rate.
        false_positive_rate (F): At this one.
        bayes_error (B): The target instead: the least chance of a wrong guess whether someone is in.
        prior (P): With this prior; by default 0.5.
        toml: Print the plan with that value, as TOML.
    """
    from dpcompose.plan import calibrate as calibrated

    steps(f"trying values of {vary}", 0, 1)
    stated = {
        "advantage": advantage, "true_positive_rate": true_positive_rate, "false_positive_rate": false_positive_rate,
        "bayes_error": bayes_error, "prior": prior,
    }  # fmt: skip
    attack = {name: value for name, value in stated.items() if value is not None}
    result = calibrated(read_plan(plan), vary, epsilon=epsilon, delta=delta, **attack)
    return replace(Result.of(result), text=result.plan.toml() if toml else "")


@command("json", "csv")
def compare(
    steps: Progress,
    plans: Annotated[list[Path], ARGUMENT],
    delta: float | None = None,
    epsilon: float | None = None,
) -> Result:
    """Compare PLANs: the certified total of each, and the bounds of the theorems side by side.

    All are asked the same question: that of --delta or --epsilon, or else that of the first plan.

    Args:
        plans (PLAN...): Plan files (TOML), or - for standard input.
        delta (D): Compare epsilon at this delta.
        epsilon (E): Compare delta at this epsilon.
    """
    from dpcompose.plan import account as account_of

    read = [read_plan(plan) for plan in plans]
    if delta is not None and epsilon is not None:
        raise PlanError(read[0].source, "", "", None, "one question: --delta or --epsilon")
    question, _ = _question(read[0], delta, epsilon)
    accounts = [account_of(each, question, progress=steps) for each in read]
    return Result.of(accounts)


@command("json", "csv")
def advise(
    steps: Progress,
    plan: PlanFile,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Result:
    """Say which budget to open for work such as PLAN: how much of it each would grant within epsilon E at delta D.

    The plan's mechanisms are what may be asked, and its `times` how often, about.

    Args:
        epsilon (E): The target, instead of the plan's.
        delta (D): At this delta, instead of the plan's.
    """
    from dpcompose import adaptive

    read = read_plan(plan)
    target = {} if read.question is None else {read.question.fixed: read.question.value}
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value is not None:
            target[name] = value
        if name not in target:
            raise PlanError(read.source, "", name, None, f"a value, in the plan or as --{name}")
    steps("trying budgets", 0, 1)
    work = [(entry.mechanism, entry.times) for entry in read.entries]
    several = [entry for entry in read.entries if entry.times]
    names = {entry.mechanism: entry.name for entry in reversed(several)}
    distinct = [names[each] for each in dict.fromkeys(entry.mechanism for entry in several)]
    epsilon, delta = target["epsilon"], target["delta"]
    advice = adaptive.advise(work, epsilon, delta=delta, adjacency=read.adjacency)
    return Result.of(advice, distinct, target)


@command("json", doing=None)
def import_document(
    file: Annotated[Path, ARGUMENT],
    adjacency: str = "add-remove",
    delta: float | None = None,
) -> Result:
    """Turn FILE, a document of another library, into a plan; prints TOML.

    It reads a DpEvent of dp_accounting and the state dictionary of an accountant of Opacus, both as JSON.

    Args:
        file (FILE): A document of another library.
        adjacency (NAME): Who are neighbors: add-remove, replace or zero-out.
        delta (D): The plan asks for epsilon at this delta.
    """
    from dpcompose.interop import import_plan
    from dpcompose.plan import PlanQuestion, adjacency as named

    question = None if delta is None else PlanQuestion("delta", delta)
    plan = import_plan(file, adjacency=named("--adjacency", adjacency), question=question)
    members = {"source": str(file), "adjacency": plan.adjacency.value, "toml": plan.toml()}
    return Result(lambda: members, text=plan.toml())


def _question(
    plan: Plan, delta: float | None, epsilon: float | None
) -> tuple[PlanQuestion, float | None]:
    """The question, and the budget if one was given."""
    from dpcompose.plan import PlanQuestion

    if delta is not None:
        return PlanQuestion("delta", delta), epsilon
    question = PlanQuestion.stated(epsilon=epsilon) or plan.question
    if question is None:
        raise PlanError(
            plan.source, "", "", None, "delta or epsilon, in the plan or as --delta or --epsilon"
        )
    return question, None
