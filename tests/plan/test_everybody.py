"""A Poisson sample of rate 1 is the mechanism itself, for every question about a plan."""

from __future__ import annotations

from importlib import import_module

import pytest

from dpcompose.errors import UnreachableError
from dpcompose.mechanisms import TruncatedPoisson
from dpcompose.plan import Plan, account, calibrate, risk_of
from dpcompose.plan.schema import FORMS, MECHANISMS
from tests.laws.members import example

CURVES = import_module("dpcompose.plan.account")

# A kind with a parameter that is not listed takes all its arguments from the table of the laws.
GIVEN = {"scale": "4.0", "sigma": "4.0", "epsilon": "0.5", "rho": "0.01", "mu": "0.2"}
GIVEN |= {
    "strategy": "[[1.0, 0.0], [0.5, 1.0]]",
    "participation": "{ most = 1 }",
    "steps": "4",
    "records": "10",
    "batch": "2",
    "noise": '"laplace"',
    "reports": "20",
    "variance": "4.0",
    "keep": "0.6",
    "flip": "0.3",
    "base": '{ kind = "gaussian", sigma = 4.0 }',
    "parts": '[{ kind = "gaussian", sigma = 4.0 }, { kind = "laplace", scale = 4.0, times = 2 }]',
    "upper": "[0.75, 0.25]",
    "lower": "[0.25, 0.75]",
    "xi": "0.1",
    "tries": "3.0",
    "curve": "[0.1, 0.3]",
    "orders": "[2, 5]",
    "holds_under": '"add-remove"',
    "shifts": "[0, 1, 2]",
    "weights": "[0.5, 0.25, 0.25]",
    "rate": "0.25",
}
ADJACENCIES = {"shuffled-epochs": "zero-out"}
ADJACENCIES |= dict.fromkeys(["fixed-size-sample", "shuffled-reports", "unary-encoding"], "replace")


def given(kind: str) -> list[str]:
    """What a call needs: a table of values needs its orders."""
    return [
        name
        for name, key in MECHANISMS[kind].parameters.items()
        if key.required or name == "orders"
    ]


def plan(kind: str, rate: str) -> Plan:
    names, build = given(kind), MECHANISMS[kind].build
    new = {} if all(name in GIVEN for name in names) else example(build.__name__)
    texts = GIVEN | {name: FORMS[name].write(value) for name, value in new.items()}
    keys = "\n".join(f"{name} = {texts[name]}" for name in names)
    adjacency = f'adjacency = "{ADJACENCIES[kind]}"\n' if kind in ADJACENCIES else ""
    return Plan.parse(
        f'{adjacency}delta = 1e-6\n[[mechanism]]\nname = "one"\nkind = "{kind}"\n{keys}\n{rate}times = 3\n'
    )


SECONDS = {"shuffled-epochs", "private-selection", "shuffled-reports", "random-allocation"}
"""Their answers take seconds each."""


@pytest.mark.slow
# The pair of several batches of a fixed size takes seconds; a capped batch has a rate of its own.
@pytest.mark.parametrize(
    "kind", sorted(MECHANISMS.keys() - {"fixed-size-sample", "truncated-poisson"})
)
def test_every_kind_at_rate_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CURVES, "DECADES", 1)  # each of the rates takes a search of its own
    monkeypatch.setattr(CURVES, "STEPS", 1)
    all_of_them, plain = plan(kind, "rate = 1\n"), plan(kind, "")
    assert all_of_them.question is not None
    # Of one composition there is one total, and one risk.
    assert all_of_them.composition() == plain.composition()
    assert Plan.parse(all_of_them.toml()) == all_of_them
    if kind in SECONDS:
        return
    assert (
        account(all_of_them, all_of_them.question).total
        == account(plain, all_of_them.question).total
    )
    profile = plain.composition().profile(adjacency=plain.adjacency, tolerance=CURVES.TOLERANCE)
    assert risk_of(all_of_them).risk.advantage == profile.question.delta(0.0)


def test_the_rate_of_a_capped_batch_is_its_own() -> None:
    capped = plan("truncated-poisson", "")
    assert capped.composition() == TruncatedPoisson(4.0, rate=0.25, records=10, batch=2) * 3
    assert Plan.parse(capped.toml()) == capped
    assert capped.with_value("mechanism.one.rate", 0.5).composition() == (
        TruncatedPoisson(4.0, rate=0.5, records=10, batch=2) * 3
    )


def test_a_rate_that_is_found_to_be_one() -> None:
    found = calibrate(
        plan("gaussian", "rate = 0.5\n"), "mechanism.one.rate", epsilon=5.0, delta=1e-6
    )
    assert found.value == 1.0 and found.calibration.neighbor is None
    again = Plan.parse(found.plan.toml())
    assert found.plan.question is not None
    assert account(again, found.plan.question).total.upper <= 5.0
    more = calibrate(again, "mechanism.one.times", epsilon=5.0, delta=1e-6)
    assert more.value > 3


def test_no_times_are_not_found() -> None:
    with pytest.raises(UnreachableError, match="at its least, already costs that much"):
        calibrate(plan("gaussian", "rate = 1\n"), "mechanism.one.times", epsilon=1e-3, delta=1e-6)
