"""Nodes on raised and real lines are as near to the truth as they say, at every frequency, in both directions."""

from __future__ import annotations

import numpy as np
import pytest
from flint import acb, arb, ctx

from dpcompose.loss import sampled_gaussian_many as many
from dpcompose.loss.sampled_gaussian_plan import MOST_NODES, Parts, Targets
from dpcompose.numerics.elementary import Reals

CASES = [(0.7, 2e-3, 150.0), (1.6, 5e-3, 800.0), (3.0, 1.5e-3, 2000.0), (0.9, 0.2, 60.0)]


def _drawn(sigma: float, rate: float, times: float) -> many.Drawn:
    columns = (np.array([[each]]) for each in (sigma, rate, times))
    parts, targets = (
        Parts(*columns, count=1, ulps=0),
        Targets(np.array([[1e-5]]), np.array([[np.nan]]), 1e-9),
    )
    with np.errstate(all="ignore"):
        ((_, lines),) = many.planned(parts, targets, MOST_NODES)
    return many.Drawn(parts, lines)


def _true(sigma: float, rate: float, power: complex) -> acb:
    """log of E r^power under N(0, sigma^2), by a sum over a real line so fine that nothing is left out."""
    fine = 64 if sigma * sigma > abs(power.imag) / 400 else 256
    s, q, z, step = arb(sigma), arb(rate), acb(power.real, power.imag), arb(sigma) / fine
    total = acb(0)
    for at in range(-fine * 13, int(fine * (13 + (abs(power.real) + 1) / sigma)) + 1):
        x = step * at
        r = 1 + q * (((2 * x - 1) / (2 * s * s)).exp() - 1)
        total += (z * r.log() - x * x / (2 * s * s)).exp()
    return (total * step / (s * (2 * arb.pi()).sqrt())).log()


@pytest.mark.parametrize(("sigma", "rate", "times"), CASES)
@pytest.mark.parametrize("direction", [0, 1])
def test_nodes_are_as_good_as_they_say(
    sigma: float, rate: float, times: float, direction: int
) -> None:
    drawn = _drawn(sigma, rate, times)
    line, order = drawn.nodes(direction).line, float(drawn.lines.order[0, 0])
    count = line.log.shape[1]
    before, ctx.prec = ctx.prec, 120
    try:
        for at in (0, 1, count // 3, count - 1):
            frequency = float(drawn.lines.step[0, 0]) * at
            power = complex(-order, -frequency) if direction else complex(order + 1, frequency)
            truth = _true(sigma, rate, power)
            away = acb(line.log[0, at].real, line.log[0, at].imag) - truth
            assert float(abs(away.real).mid()) < 1e-9, "the branch is the principal one"
            assert abs(away) <= float(line.error[0, at]) * 1.0000001
    finally:
        ctx.prec = before


def test_errors_are_no_larger_than_needed() -> None:
    """Beside the test above: an error that were infinite would pass it."""
    errors: list[Reals] = [_drawn(*case).nodes(0).line.error for case in CASES]
    assert max(float(each.max()) for each in errors) < 1e-11
