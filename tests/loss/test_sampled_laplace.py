"""The transform of sampled Laplace losses against balls, and its answers against atoms above and below."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings, strategies as st

from dpcompose import Adjacency, Laplace, compose
from dpcompose.loss import sampled_laplace as rule
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.product import Product
from dpcompose.loss.sampled_laplace import SampledLaplaceLoss, SampledLaplaceSum
from oracles.sampled_laplace import SampledLaplace


def test_the_rule_is_that_of_gauss_and_legendre() -> None:
    with ctx.workprec(200):
        count = len(rule.LEFT)
        for at in range(count):
            place, weight = arb.legendre_p_root(count, count - 1 - at, weight=True)
            for found, true in ((rule.LEFT[at], (1 + place) / 2), (rule.WEIGHT[at], weight / 2)):
                assert abs(arb(float(found)) / true - 1) < 2**-52
            assert rule.LEFT[at] + rule.RIGHT[at] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("share", [Fraction(1, 10**9), Fraction(1, 3), Fraction(999, 1000)])
def test_the_terms_of_an_end_are_derivatives(share: Fraction) -> None:
    found = rule.end_terms(np.array([[float(share)]]))[0]
    terms = [Fraction(1)]  # B_k, its coefficients in powers of the share
    for k in range(rule.TERMS):
        value = sum(each * share**j for j, each in enumerate(terms))
        assert abs(found[k] / float(value) - 1) < 1e-14
        slope = [j * each for j, each in enumerate(terms)]
        # (1/2 + (k + 1) (1 - w)) B - w (1 - w) B'
        rows = [
            [(k + Fraction(3, 2)) * each for each in terms],
            [0, *[-(k + 1) * each for each in terms]],
        ]
        rows += [[-each for each in slope], [0, *slope]]
        size = max(map(len, rows))
        terms = [
            sum((row[j] if j < len(row) else Fraction(0)) for row in rows) for j in range(size)
        ]


def _closed(epsilon: float, rate: float, power: acb) -> acb:
    """E_Q r^p by Gauss's hypergeometric function."""
    bound, q = arb(epsilon), arb(rate)
    kept = 1 - q

    def integral(loss: arb) -> acb:
        inner = acb(-q * loss.exp() / kept).hypgeom_2f1(-power, acb(-0.5), acb(0.5))
        return -2 * (-loss / 2).exp() * acb(kept).pow(power) * inner

    density = (-bound / 2).exp() / 4 * (integral(bound) - integral(-bound))
    ends = [
        (mass, (q * loss.expm1()).log1p())
        for mass, loss in (((-bound).exp() / 2, bound), (arb(0.5), -bound))
    ]
    return density + sum((mass * (power * ratio).exp() for mass, ratio in ends), acb(0))


CASES = [(1.0, 0.1), (0.01, 0.3), (0.3, 1e-4), (3.0, 0.02), (12.0, 0.5), (0.002, 0.9)]


@pytest.mark.parametrize(("epsilon", "rate"), CASES)
@pytest.mark.parametrize("remove", [True, False])
def test_lines_enclose_the_closed_form(epsilon: float, rate: float, remove: bool) -> None:
    one = np.ones((1, 1))
    transform = SampledLaplaceSum(epsilon * one, rate * one, one, 0, remove)
    span = transform.maximum - transform.minimum
    checked = 0
    for order in (0.3, 2.0, 25.0):
        frequencies = np.array([0.0, 1.0, 9.0, 40.0, 90.0, 150.0, 600.0, 5000.0]) / span
        line = transform.line(order, frequencies)
        for at, frequency in enumerate(frequencies.tolist()):
            real, imaginary = (order + 1, frequency) if remove else (-order, -frequency)
            with ctx.workprec(2000 if at > 2 else 400):
                true = _closed(epsilon, rate, acb(real, imaginary))
                found = acb(float(line.log[at].real), float(line.log[at].imag)).exp()
                if not true.rel_accuracy_bits() > 80:
                    continue
                away = abs(true / found - 1)
                assert away < arb(float(line.error[at])).expm1() + 1e-300
                assert float(line.error[at]) < 1e-7
                assert (
                    not abs(true * acb(1 + 1e-6) / found - 1) < arb(float(line.error[at])).expm1()
                )  # a control
                checked += 1
    assert checked >= 5  # where balls of the closed form are narrow


@settings(max_examples=8, deadline=None)
@given(
    scale=st.floats(0.3, 20.0), rate=st.floats(1e-3, 0.9), order=st.floats(0.1, 50.0), turns=st.floats(0.1, 400.0),
    remove=st.booleans(),
)  # fmt: skip
def test_lines_agree_with_balls(
    scale: float, rate: float, order: float, turns: float, remove: bool
) -> None:
    one = np.ones((1, 1))
    transform = SampledLaplaceSum(one / scale, rate * one, one, 1, remove)
    frequency = turns / (transform.maximum - transform.minimum)
    line = transform.line(order, np.array([0.0, frequency]))
    with ctx.workprec(160):
        truth = SampledLaplace(rate, 1 / arb(scale), remove).moments(order, frequency, 2)
        for at, value in enumerate(truth):
            found = acb(float(line.log[at].real), float(line.log[at].imag)).exp()
            assert abs(value / found - 1) < arb(float(line.error[at])).expm1()


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("order", [0.2, 4.0, 60.0])
def test_bounds_on_a_line_hold(order: float, remove: bool) -> None:
    rows = np.array([[0.05, 0.2, 3.0], [0.5, 0.02, 1.0], [2.0, 1e-3, 7.0], [9.0, 0.3, 1.0]])
    transform = SampledLaplaceSum(rows[:, :1], rows[:, 1:2], rows[:, 2:], 1, remove)
    edges = 0.5 * 1.5 ** np.arange(24)
    within = np.concatenate(
        [np.linspace(low, high, 9) for low, high in zip(edges, [*edges[1:], 1e6], strict=True)]
    )
    line = transform.line(order, np.append(0.0, within))
    size = (line.log.real - line.error)[1:] - (line.log.real[0] + line.error[0])
    bound = np.repeat(transform.log_envelope(order, edges), 9)
    known = line.error[1:] < 1
    assert known.sum() > 100 and np.all(size[known] <= bound[known] + 1e-12)
    cheap = sum(np.minimum(each(within), 0.0) for each in transform.log_bounds(order))
    assert np.all(size[known] <= np.asarray(cheap)[known] + 1e-12)
    assert np.min(cheap) < -1
    assert transform.limsup(order) >= np.exp(size[-1]) or not known[-1]


@pytest.mark.parametrize("remove", [True, False])
def test_rows_are_apart(remove: bool) -> None:
    generator = np.random.default_rng(7)
    rows = 10 ** generator.uniform([-2, -4, 0], [1, -0.1, 2], (40, 3))
    columns = rows[:, :1], rows[:, 1:2], rows[:, 2:]
    together = SampledLaplaceSum(*columns, 1, remove)
    frequencies = np.append(0.0, 10 ** np.linspace(-2, 3, 30))
    whole = together.line(1.5, frequencies)
    log, error, far = 0.0, 0.0, 0.0
    for at in range(40):
        epsilon, rate, times = (column[at : at + 1] for column in columns)
        one = SampledLaplaceSum(epsilon, rate, times, 1, remove)
        line = one.line(1.5, frequencies)
        log, error, far = (
            log + line.log,
            error + line.error,
            far + one.curve(np.array([0.5, 40.0])).log_m,
        )
    known = (np.asarray(error) < 0.5) & (whole.error < 0.5)
    assert known.sum() > 12
    assert np.all(
        np.abs(np.exp(whole.log - log) - 1)[known] <= np.expm1(whole.error + error)[known] + 1e-12
    )
    assert np.allclose(together.curve(np.array([0.5, 40.0])).log_m, far, rtol=1e-9)


@pytest.mark.parametrize(
    ("scale", "rate", "times"), [(1.0, 0.1, 2), (1.0, 0.1, 300), (0.3, 0.5, 20), (4.0, 1e-3, 10**6)]
)
def test_answers_lie_between_atoms_above_and_below(scale: float, rate: float, times: int) -> None:
    found = (Laplace(scale).sampled(rate) * times).epsilon(delta=1e-6)
    ends: list[float] = []
    for remove in (True, False):
        pairs: Any = Laplace(scale).pairs(Adjacency.ADD_REMOVE)
        loss = pairs[0][0].remove.sampled(rate, remove=remove)
        assert isinstance(loss, SampledLaplaceLoss)
        above, below = (Product(((AtomicLoss(each), times),)) for each in loss.enclosing())
        ends.append(below.epsilon(1e-6, tolerance=1e-9).lower)
        assert above.epsilon(1e-6, tolerance=1e-9).upper >= found.lower or not remove
    assert found.upper >= max(ends) * (1 - 1e-12)


def test_parts_and_their_sum_agree() -> None:
    parts = [Laplace(0.5 + at / 3).sampled(0.001 + at / 100) for at in range(8)]
    found = (compose(*parts) * 20).epsilon(delta=1e-6)
    again = compose(*[part * 20 for part in reversed(parts)]).epsilon(delta=1e-6)
    assert found == again and found.width < 1e-8 * found.upper
    proved = (parts[3] * 3).epsilon(delta=1e-3, proof=True)
    plain = (parts[3] * 3).epsilon(delta=1e-3)
    assert proved.lower <= plain.upper and plain.lower <= proved.upper
