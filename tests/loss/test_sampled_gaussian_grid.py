"""What the grid for planning bounds: moments and variances, against grids forty times as fine."""

import math
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose.loss.sampled_gaussian_batch import SampledGaussianBatch
from dpcompose.loss.sampled_gaussian_grid import (
    built,
    coarse_step,
    most_moment,
    most_variance,
    shortened,
    trapezoid_error,
)
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


def test_step_misses_little():
    noise = np.logspace(-4, 5, 2001)
    for each, step in zip(noise.tolist(), coarse_step(noise).tolist(), strict=True):
        assert trapezoid_error(each, 0.0, step, 2.5) < 0.001
        assert trapezoid_error(each, -40 * each * each, step, 2.5) < 0.006


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_hold_and_are_close(sign: int):
    rng = np.random.default_rng(7)
    raised: list[float] = []
    widened: list[float] = []
    for _ in range(CASES):
        noise = float(np.exp(rng.uniform(math.log(0.08), math.log(30))))
        rate = float(np.exp(rng.uniform(math.log(1e-6), math.log(0.9))))
        power = sign * float(np.exp(rng.uniform(math.log(0.1), math.log(4000 * noise * noise + 5))))
        rows = SampledGaussianBatch(*(np.array([[each]]) for each in (noise, rate, 1.0)), ulps=1)
        own = slice(0, 1) if sign > 0 else slice(1, 2)
        order = power - 1 if sign > 0 else -power
        grid, one = rows.coarse(order, own), rows.moments(order, own)
        if grid is None or one is None:
            continue  # too many points: the engine makes no statement
        s, q, p = np.array([[noise]]), np.array([[rate]]), np.array([[power]])
        fine = built(s, q, grid.low, grid.high, shortened(grid.step / 40), 1).points
        exponent = fine.log_weight + p * fine.ratio
        log_m = float(log_sum(exponent)[0, 0])
        share = np.exp(exponent - log_m)
        variance = float((share * np.square(fine.ratio - (share * fine.ratio).sum())).sum())
        upper = float(most_moment(grid, None, s, p)[0, 0])
        widest = float(most_variance(one, s, q, p, np.array([[float(sign)]]))[0, 0])
        assert upper >= log_m, (noise, rate, power)
        assert widest >= variance * (1 - 1e-9), (noise, rate, power)
        raised.append(upper - log_m)
        widened.append(widest / variance)
    assert len(raised) > 0.8 * CASES
    assert np.median(raised) < 0.02
    # Far to the left, where the grid is too coarse, all that is known is 1 / s^2.
    assert np.median(widened) < 1.05 if sign > 0 else np.quantile(widened, 0.2) < 1.05


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
