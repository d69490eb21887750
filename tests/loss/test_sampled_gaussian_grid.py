"""What the grid for planning bounds: moments, against grids forty times as fine."""

import math
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose.loss.sampled_gaussian_batch import SampledGaussianBatch
from dpcompose.loss.sampled_gaussian_grid import built, shortened
from dpcompose.loss.sampled_gaussian_plan import (
    Parts,
    Targets,
    class_of,
    coarse_grid,
    coarse_points,
    first_orders,
    placed,
)
from dpcompose.numerics.elementary import log_sum

CASES = 300


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_hold_and_are_close(sign: int):
    rng = np.random.default_rng(7)
    raised: list[float] = []
    for _ in range(CASES):
        noise = float(np.exp(rng.uniform(math.log(0.08), math.log(30))))
        rate = float(np.exp(rng.uniform(math.log(1e-6), math.log(0.9))))
        power = sign * float(np.exp(rng.uniform(math.log(0.1), math.log(4000 * noise * noise + 5))))
        times = float(round(np.exp(rng.uniform(0, 25))))
        rows = SampledGaussianBatch(*(np.array([[each]]) for each in (noise, rate, times)), ulps=1)
        own = slice(0, 1) if sign > 0 else slice(1, 2)
        order = power - 1 if sign > 0 else -power
        grid = rows.coarse(order, own)
        if grid is None:
            continue  # too many points: the engine makes no statement
        s, q, p = np.array([[noise]]), np.array([[rate]]), np.array([[power]])
        fine = built(s, q, grid.low, grid.high, shortened(grid.step / 40), 1).points
        log_m = float(log_sum(fine.log_weight + p * fine.ratio)[0, 0])
        upper, slack = (float(each[0, 0]) for each in rows.log_moment(order, own))
        assert upper >= log_m - 1e-12 * (1 + abs(log_m)), (noise, rate, power)
        assert upper - log_m <= slack + 1e-12 * (1 + abs(log_m))
        raised.append(times * slack)
    assert len(raised) > 0.8 * CASES
    assert np.median(raised) < 0.02


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
        points = int(class_of(coarse_points(parts, guess, most))[0])
        grid = coarse_grid(parts, guess, most, points)
        lines = placed(parts, targets, grid, guess, most)
    assert lines.solved.all()
    assert (grid.high >= lines.outer + 1 + parts.side).all()
