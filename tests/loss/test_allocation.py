"""Moments of one random allocation: tables and rays against balls, whole orders against the recurrence, controls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx
from scipy.special import loggamma

from dpcompose.loss import allocation
from dpcompose.loss.allocation import moments
from dpcompose.loss.allocation_table import Allocation
from oracles.allocation import two_steps


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("order", [2.5, 7.0, -4.25, -13.0])
def test_two_steps_are_one_integral(sigma: float, order: float) -> None:
    """Within the stated errors, which are not vacuous near the real axis."""
    frequencies = np.array([0.0, 0.5, 3.0])
    log, error = moments(Allocation(sigma, 2), order, frequencies)
    assert error[0] < 1e-9
    for frequency, found, bound in zip(frequencies, log, error, strict=True):
        truth = complex(two_steps(sigma, order, -float(frequency), digits=25))
        if bound < 1:
            assert abs(np.exp(found) / truth - 1) <= math.expm1(bound)
        else:
            assert math.log(abs(truth)) <= found.real + bound


@pytest.mark.parametrize(
    ("sigma", "steps"), [(0.5, 20), (1.0, 3), (1.0, 100_000), (2.0, 7), (5.0, 1000)]
)
def test_whole_orders_are_the_recurrence(sigma: float, steps: int) -> None:
    law = Allocation(sigma, steps)
    assert abs(law.whole[0]) < 1e-14 and abs(law.whole[1]) < 1e-14
    # E S^2 = 1 + (e^(1 / s^2) - 1) / t
    assert law.whole[2] == pytest.approx(
        math.log1p(math.expm1(1 / sigma**2) / steps), rel=1e-8, abs=1e-14
    )
    for order in (2.0, 3.0, 5.0):
        log, error = moments(law, order, np.zeros(1))
        assert abs(log[0].real - law.whole[int(order)]) <= error[0] + law.whole_error(int(order))
        assert error[0] < 1e-8


@pytest.mark.parametrize(
    ("sigma", "steps"), [(0.1, 3), (0.5, 2), (1.0, 10**6), (6.0, 2), (8.0, 1000), (30.0, 10**5)]
)
def test_whole_orders_are_the_recurrence_in_balls(sigma: float, steps: int) -> None:
    """Up to the last one, where 1 / k! is no double."""
    law = Allocation(sigma, steps)
    with ctx.workprec(1500):  # of two steps the recurrence cancels
        factors = [
            (arb(j * (j - 1)) / (2 * arb(sigma) ** 2)).exp() / arb(j).gamma() / j
            for j in range(1, law.most + 1)
        ]
        ratios = [factor / arb(steps) ** j for j, factor in enumerate(factors, 1)]
        sums = [arb(1)]
        for k in range(1, law.most + 1):
            sums.append(
                sum(
                    ((j * (steps + 1) - k) * ratios[j - 1] * sums[k - j] for j in range(1, k + 1)),
                    arb(0),
                )
                / k
            )
            assert sums[k].rel_accuracy_bits() > 60
            truth = float((sums[k] * arb(k + 1).gamma()).log())
            assert abs(law.whole[k] - truth) <= law.whole_error(k) < 1e-8


def test_a_record_makes_no_sum_larger() -> None:
    """|E S^(c - iu)| <= E S^c e^(-u^2 / (2 t s^2)): the Gaussian factor."""
    law, frequencies = Allocation(1.0, 30), np.linspace(0.0, 25.0, 40)
    for order in (3.3, -6.0):
        log, error = moments(law, order, frequencies)
        assert np.all(log.real - error <= log[0].real + error[0] - frequencies**2 / 60)


def test_a_longer_step_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: with half the nodes the alias bound takes over, and still holds."""
    law, frequencies = Allocation(1.0, 2), np.array([0.0, 1.0])
    fine, _ = moments(law, 2.5, frequencies)
    monkeypatch.setattr(allocation, "_step", lambda *_: 1.0)
    coarse, error = moments(law, 2.5, frequencies)
    gap = np.abs(np.exp(coarse - fine) - 1)
    assert error.max() > 1e-6 and gap.max() > 1e-9
    assert np.all((gap <= np.expm1(error)) | (error >= 1))


def test_the_gamma_function_is_as_good_as_assumed() -> None:
    """log Gamma of scipy against balls: within a tenth of what is allowed for it."""
    rng = np.random.default_rng(3)
    with ctx.workprec(120):
        for _ in range(400):
            share, frequency = 10 ** rng.uniform(-0.3, 4), 10 ** rng.uniform(-2, 4)
            truth = acb(arb(share), arb(frequency)).lgamma()
            found = loggamma(share + 1j * frequency)
            allowed = 64 * 2.0**-53 * (4 + abs(found) + frequency)
            assert abs(complex(truth - acb(arb(found.real), arb(found.imag)))) <= allowed / 10


def test_tables_are_sums_of_balls() -> None:
    """D_2(x) = E S^2 e^(-xS) for t = 1: one integral, on rays up to nearly a right angle."""
    for sigma, angle in ((1.0, 0.0), (1.0, 1.4), (3.0, 1.2), (0.4, 0.8)):
        table = Allocation(sigma, 1).table(2, -3.0, 0.5, 14, angle)
        with ctx.workprec(200):
            for k in (0, 5, 9, 13):
                z = acb(arb(math.exp(0)), 0) * acb(0, arb(angle)).exp() * arb(-3 + 0.5 * k).exp()
                h, total, s = arb("0.02"), acb(0), arb(sigma)
                for j in range(-900, 1100):
                    g = h * j
                    y = (g / s - 1 / (2 * s * s)).exp()
                    total += (-g * g / 2).exp() * y * y * (-z * y).exp()
                truth = complex(total * h / (2 * arb.pi()).sqrt())
                assert abs(np.exp(table.log[k]) / truth - 1) <= math.expm1(table.error[k]) < 1e-9


def test_rays_stop_where_rounding_hides_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last ray may end in what is unknown; the Gaussian factor bounds what is farther out."""
    known: list[bool] = []
    ray = allocation._on_ray

    def watched(*given: Any) -> Any:
        log, error = ray(*given)
        known.append(bool(error[-1] < 1))
        return log, error

    monkeypatch.setattr(allocation, "_on_ray", watched)
    law, frequencies = Allocation(1.0, 200), np.arange(0.0, 2000.0, 5.0)
    log, error = moments(law, 5.5, frequencies)
    assert known[:-1] and all(known[:-1]) and not known[-1]
    assert np.all(error[-200:] == 1.0)
    assert np.all(log.real <= log[0].real + 2 * error - frequencies**2 / 400)
    with ctx.workprec(600):  # a bound of all, known or not, where one integral gives the truth
        near, two = Allocation(1.0, 2), np.arange(0.0, 30.0, 2.0)
        log, error = moments(near, 5.5, two)
        for frequency, top in zip(two, log.real + np.where(error < 1, error, 0.0), strict=True):
            assert (
                math.log(abs(complex(two_steps(1.0, 5.5, -float(frequency), digits=60))))
                <= top + 1e-12
            )
