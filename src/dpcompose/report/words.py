"""Sentences and names for readers who know neither the field nor Python; numbers are rounded the safe way."""

from __future__ import annotations

import math
import re
from typing import Any, cast

from dpcompose.plan import PlanAccount, PlanEntry
from dpcompose.report.number import above, below, exactly, nearest, trimmed
from dpcompose.values import Adjacency

_NAMES = {"gaussian", "laplace", "poisson", "skellam", "renyi", "bernoulli"}
_DISTANCES = {"shift", "sensitivity", *(each.name.lower() for each in Adjacency)}
_CHANGES = {
    Adjacency.ADD_REMOVE: "is added or taken out",
    Adjacency.REPLACE: "is replaced",
    Adjacency.ZERO_OUT: "is left out",
}


def in_words(entry: PlanEntry) -> str:
    """A mechanism of a plan, numbers to four digits: "discrete Gaussian, sigma 34.85"; the plan has them exactly.

    Distances of 1 and the adjacency are left out: every row would repeat them.
    """
    given = [
        (name.replace("_", " "), value)
        for name, value in entry.parameters
        if not isinstance(value, Adjacency) and not (name in _DISTANCES and value in (1, (1, 1)))
    ]
    rate = () if entry.rate is None else (f"sampled at {_few(entry.rate)}",)
    kind = " ".join(
        word.title() if word in _NAMES else word for word in re.split("[-_ ]", entry.kind)
    )
    return ", ".join((kind, *(f"{name} {_few(value)}" for name, value in given), *rate))


def _few(value: Any) -> str:
    match value:
        case bool() | int() | str():
            return str(value)
        case float():
            return trimmed(nearest(value, 4))
        case tuple():
            entries = cast("tuple[Any, ...]", value)
            if not all(isinstance(each, int | float) for each in entries):
                return "as in the plan"
            return ", ".join([*map(_few, entries[:4]), *["..."][: len(entries) > 4]])
        case _:
            return "as in the plan"


def answer(account: PlanAccount, *, published: float | None = None) -> str:
    """The answer in one line, beside the published epsilon at the same delta if there is one."""
    asked, given = account.question.computed, account.question.fixed
    total = above(account.total.upper)
    said = f"{asked} is infinite" if total == "infinite" else f"{asked} <= {total}"
    said += f" ({given} = {exactly(account.question.value)})"
    return (
        said
        if published is None
        else f"{said}; published {exactly(published)}: {compared(account, published)}"
    )


def compared(account: PlanAccount, published: float) -> str:
    """How much lower the certified upper end is than a published number, to nearest."""
    saved = 100 * (1 - account.total.upper / published) if 0 < published < math.inf else 0.0
    return f"{saved:.0f} % lower" if saved >= 0.5 else "not lower by a percent"


def meaning(account: PlanAccount) -> str:
    """One sentence on what the answer promises, and one on the budget if there is one."""
    question = account.question
    epsilon = account.total.upper if question.computed == "epsilon" else question.value
    delta = account.total.upper if question.computed == "delta" else question.value
    changes = (
        f"If the data of one protected unit, such as a person, {_CHANGES[account.plan.adjacency]}"
    )
    if not (epsilon < math.inf and delta < 1):
        promise = f"Nothing is promised: {changes[0].lower()}{changes[1:]}, anything may be seen in the answers."
    elif epsilon > 700:
        promise = (
            f"{changes}, almost nothing is promised about how the chance of an outcome changes."
        )
    else:
        factor = above(math.nextafter(math.exp(epsilon) * (1 + 1e-12), math.inf), 3)
        shown = above(delta) if question.computed == "delta" else exactly(delta)
        beyond = f", and by at most {shown} beyond that" if delta else ""
        promise = (
            f"{changes}, the chance of any outcome grows at most by the factor {factor}{beyond}."
        )
    return f"{promise} {_verdict(account)}".strip()


def tolerance(account: PlanAccount) -> str:
    """How far above the truth the upper end may be."""
    if not account.total.upper < math.inf:
        return f"at least {below(account.total.lower)}"
    return f"proved; the truth is at most {above(account.total.width, 1)} lower"


def _verdict(account: PlanAccount) -> str:
    if account.limit is None:
        return ""
    budget = f"the budget of epsilon {exactly(account.limit)}"
    if account.within:
        return f"It keeps within {budget}."
    return (
        f"It exceeds {budget}."
        if account.total.lower > account.limit
        else f"It is not proved to keep within {budget}."
    )
