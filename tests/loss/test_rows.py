"""Losses in rows of one transform are the sum of their own transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from dpcompose.contour.exponential_sums import WeightedPoints, on_grid, turned_on_grid
from dpcompose.contour.saddle import moments_exceed
from dpcompose.loss.base import Loss
from dpcompose.loss.bounded_range import BoundedRangeLoss, attained_losses
from dpcompose.loss.sampled_gaussian import ReplacedGaussianLoss
from dpcompose.numerics.elementary import minus_log1p

GROUPS: dict[str, list[tuple[Loss, int]]] = {
    "atoms": [(attained_losses(0.1 + 0.07 * at)[2][at % 2], 1 + at % 3) for at in range(9)],
    "bounded range": [(BoundedRangeLoss(0.02 * 1.6**at), 1 + at) for at in range(9)],
    "replaced": [
        (ReplacedGaussianLoss(0.6 + 0.4 * at, 0.001 * 2**at), 1 + 7 * at) for at in range(7)
    ],
}


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("order", [0.5, 3.0, 40.0])
def test_rows_are_the_sum_of_single_transforms(name: str, order: float) -> None:
    group = GROUPS[name]
    (rows,) = type(group[0][0]).pool(group)
    singles: Sequence = [loss.transform(times) for loss, times in group]
    frequencies = np.array([0.0, 0.3, 2.0, 11.0, 60.0])
    line, lines = (
        rows.line(order, frequencies),
        [single.line(order, frequencies) for single in singles],
    )
    known = (line.error < 1) & np.all([one.error < 0.3 for one in lines], axis=0)
    assert known[:3].all()
    apart = line.log - np.sum([one.log for one in lines], axis=0)
    turned = np.abs(np.exp(1j * apart.imag) - 1) + np.abs(apart.real)  # any branch of the logarithm
    error = line.error + np.sum([one.error for one in lines], axis=0)
    assert np.all(turned[known] <= 1.1 * error[known] + 1e-15)
    one, all_of_them = (
        rows.cumulants(order),
        np.sum([single.cumulants(order) for single in singles], axis=0),
    )
    assert np.allclose(one, all_of_them, rtol=1e-6)
    assert rows.maximum >= math.fsum(single.maximum for single in singles) * (1 - 1e-15)
    bound = rows.log_envelope(order, frequencies[1:])
    seen = (line.log.real - line.error)[1:] - line.log.real[0] - line.error[0]
    assert np.all(bound >= seen)
    for part in rows.log_bounds(order):
        assert np.all(part(frequencies)[1:] >= seen - 1e-9)


def test_sums_on_a_grid_are_those_point_by_point() -> None:
    rng = np.random.default_rng(5)
    ratio = rng.normal(size=(8, 700)) * np.geomspace(1e-6, 2.0, 8)[:, None]
    weight = np.full(ratio.shape, 1 / 700)
    rise = weight * np.expm1(3 * ratio)
    frequencies = 0.7 * np.arange(50.0)
    assert on_grid(ratio, frequencies) and not on_grid(ratio, frequencies + 0.1)
    real, imaginary = turned_on_grid(ratio, (weight + rise, rise, weight), frequencies)
    angle = frequencies[:, None] * ratio[:, None, :].astype(np.longdouble)
    exact = ((weight + rise)[:, None, :] * 2 * np.sin(angle / 2) ** 2).sum(axis=-1)
    lag = (rise[:, None, :] * np.sin(angle) + weight[:, None, :] * (np.sin(angle) - angle)).sum(
        axis=-1
    )
    mass, size = (weight + np.abs(rise))[:, None, :], np.abs(angle)
    second = (mass * np.minimum(1.3 * size**2, 3 + size)).sum(axis=-1)
    linear = (np.abs(rise)[:, None, :] * size).sum(axis=-1)
    assert np.all(np.abs(real - exact) <= 1e-13 * second)
    assert np.all(np.abs(imaginary - lag) <= 1e-13 * (second + linear))


def test_a_line_on_a_grid_is_the_line_of_each_row() -> None:
    rng = np.random.default_rng(6)
    ratio = rng.normal(size=(16, 300)) * np.geomspace(1e-4, 0.3, 16)[:, None]
    log_weight = np.full(ratio.shape, -math.log(300))
    deficit = np.exp(log_weight) * minus_log1p(np.expm1(ratio))
    error = np.full(ratio.shape, 1e-15)
    points = WeightedPoints(log_weight, ratio, deficit, error, error)
    frequencies = 0.4 * np.arange(64.0)
    for plain in (True, False):
        line = points.line(3.0, frequencies, sign=1.0, plain=plain)
        for row in range(16):
            one = points[row].line(3.0, frequencies, sign=1.0, plain=plain)
            assert np.all(np.abs(line.log[row] - one.log) <= line.error[row] + one.error)


def test_no_moment_helps_below_the_mean_loss() -> None:
    def cumulants(order: float) -> tuple[float, float, float]:
        return 30 * order + order * order, 30 + 2 * order, 2.0

    assert moments_exceed(cumulants, 5.0, math.log(0.01), start=1.0)
    assert not moments_exceed(cumulants, 60.0, math.log(0.01), start=1.0)
