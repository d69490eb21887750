"""The points of grids, against balls, and how far the grid for planning reaches."""

from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose.loss.sampled_gaussian_grid import built, shortened
from dpcompose.loss.sampled_gaussian_plan import (
    Parts,
    Targets,
    coarse_grid,
    first_orders,
    placed,
)


@pytest.mark.parametrize(("noise", "rate"), [(0.06, 1e-120), (0.1, 1e-18), (0.05, 0.02), (3, 0.1)])
def test_points_are_as_good_as_they_say(noise: float, rate: float) -> None:
    """log r and w (r - 1 - log r), also where r - 1 is tiny although its exponential is not."""
    sigmas, rates, first, last = (
        np.array([[each]]) for each in (noise, rate, -10 * noise, 2 + 10 * noise)
    )
    step = shortened(np.array([[noise / 7]]))
    grid = built(sigmas, rates, first, last, step, ulps=0)
    points, before, ctx.prec = grid.points, ctx.prec, 1000
    try:
        s, checked = arb(noise), 0
        for at in range(0, grid.x.shape[1], 2):
            x = arb(float(grid.x[0, at]))
            rise = rate * ((2 * x - 1) / (2 * s * s)).expm1()
            density = float(step[0, 0]) / s * (-x * x / (2 * s * s)).exp() / (2 * arb.pi()).sqrt()
            for found, truth, error in (
                (points.ratio, rise.log1p(), points.ratio_error),
                (points.deficit, density * (rise - rise.log1p()), points.weight_error),
            ):
                value, bound = float(found[0, at]), float(error[0, at])
                if bound < 0.1 and truth > 1e-290:
                    assert abs(truth - value) <= bound * abs(truth)
                    checked += 1
        assert checked > 20
    finally:
        ctx.prec = before


def test_no_order_is_beyond_the_grid_for_planning() -> None:
    """Bounds on what a grid leaves out hold for orders that it was laid out for, the outer one among them."""
    columns: Any = (np.array([[each]]) for each in (0.0381132, 2.107709e-4, 595109.0))
    parts = Parts(*columns, count=1, ulps=0)
    targets = Targets(np.array([[0.033958683]]), np.array([[np.nan]]), 1e-6)
    with np.errstate(all="ignore"):
        guess, most = first_orders(parts, targets)
        grid = coarse_grid(parts, guess, most)
        assert grid is not None
        lines = placed(parts, targets, grid, guess, most)
    assert lines.solved.all()
    assert (grid.high >= lines.outer + 1 + parts.side).all()
