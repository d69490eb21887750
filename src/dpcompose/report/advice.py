"""The advice on filters, as a page and as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpcompose.adaptive import FilterAdvice
from dpcompose.report.layout import Heading, Page, PageTable, headings
from dpcompose.report.number import below, exactly
from dpcompose.values import rounded_down

TAKE_WHEN = {
    "budget": "always, unless another row is worth the trouble",
    "pure": "delta must be 0",
    "basic": "few answers, with deltas",
    "zcdp": "zero-concentrated privacy must be cited",
    "renyi": "all noise is sampled",
    "gaussian": "all noise is Gaussian",
    "menu": "all that may be asked is known",
}


def advice_document(
    result: Sequence[FilterAdvice], names: Sequence[str], target: Mapping[str, float]
) -> dict[str, Any]:
    """The advice, for a machine."""
    rows = [
        {
            "filter": each.kind,
            "open": None if each.filter is None else repr(each.filter),
            "work": "unlimited" if each.work is None else rounded_down(each.work),
            "alone": dict(zip(names, each.alone, strict=False)),
            "charge_delta": None if each.delta is None else float(_charge(each.delta)),
            "refusal": each.refusal or None,
        }
        for each in result
    ]
    return {"target": dict(target), "filters": rows}


def advice_page(
    result: Sequence[FilterAdvice], names: Sequence[str], target: Mapping[str, float]
) -> Page:
    """The advice as a table, the best filter first."""
    best = next((each for each in result if each.filter is not None and each.work != 0), None)
    first = headings("budget", ">of the plan")
    columns = (*first, *(Heading(name, "right") for name in names), *headings("~take it when"))
    rows = [
        (
            each.kind,
            _count(each.work),
            *(_count(count) for count in each.alone),
            TAKE_WHEN[each.kind],
        )
        for each in result
        if each.filter is not None
    ]
    notes = [f"No {each.kind} budget: {each.refusal}." for each in result if each.refusal]
    notes += [
        f"Charge {each.kind} at delta {_charge(each.delta)} where it asks."
        for each in result
        if each.delta
    ]
    aim = f"epsilon {exactly(target['epsilon'])} at delta {exactly(target['delta'])}"
    return Page(
        "Which budget to open",
        "No budget grants any of it"
        if best is None
        else f"Open the {best.kind}: {TAKE_WHEN[best.kind]}",
        "bad" if best is None else "plain",
        (),
        (PageTable(f"Granted within {aim}", columns, tuple(rows)),),
        (
            "Of the plan: how much of it fits, 1 for all of it. By mechanism: how often, if only that is asked.",
            "The advice holds before the first answer: a budget that is opened after one promises nothing.",
            *notes,
        ),
    )


def _count(count: Fraction | int | None) -> str:
    if count is None:
        return "no limit"
    return f"{count:,}" if isinstance(count, int) else below(rounded_down(count), 4)


def _charge(delta: Fraction) -> str:
    """A delta of three digits, rounded down."""
    return below(rounded_down(delta), 3)
