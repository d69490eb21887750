"""The growth of epsilon: its abscissa counts what the plan states, and ends with the whole plan."""

from __future__ import annotations

import pytest

from dpcompose.plan import Plan, PlanQuestion, account, over_times

STEPS = '[[mechanism]]\nkind = "gaussian"\nsigma = 40.0\ntimes = {}\n'
COUNTS = '[[mechanism]]\nkind = "laplace"\nscale = 20.0\ntimes = {}\n'


@pytest.mark.parametrize(
    ("text", "unit", "first", "last"),
    [
        (
            STEPS.format(1000) + COUNTS.format(10),
            "answers, of all mechanisms in proportion",
            101,
            1010,
        ),
        (STEPS.format(64) + COUNTS.format(64), "answers, of all mechanisms in proportion", 2, 128),
        (COUNTS.format(10), "answers", 1, 10),
        (STEPS.format(7) + COUNTS.format(3), "repetitions of the whole plan", 1, 64),
    ],
)
def test_the_abscissa_counts_answers_up_to_those_of_the_plan(
    text: str, unit: str, first: int, last: int
) -> None:
    found, heard = account(Plan.parse(text), PlanQuestion("delta", 1e-6)), list[str]()
    growth = over_times(found, progress=lambda what, done, total: heard.append(what))
    assert (growth.unit, growth.stops[0], growth.stops[-1]) == (unit, first, last)
    assert all(
        curve.points[-1][0] == last
        for curve in growth.curves
        if len(curve.points) == len(growth.stops)
    )
    assert heard[0] == f"theorems at {first:,} {unit.partition(',')[0]}" and len(heard) == len(
        growth.stops
    )
    certified = next(curve for curve in growth.curves if curve.kind == "certified")
    whole = certified.points[-1 if unit != "repetitions of the whole plan" else 0][1]
    assert whole == pytest.approx(found.total.upper, rel=1e-9)
