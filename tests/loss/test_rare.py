"""Rare, large losses, split by a smooth cut: against closed forms, exact integrals and golden values."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from dpcompose import Bound, Gaussian, Laplace, compose
from dpcompose.loss import lattice, rare
from dpcompose.loss.base import Loss
from dpcompose.loss.cut_noise import BelowSum, Cuts
from dpcompose.loss.gaussian import GaussianLoss
from dpcompose.loss.laplace import LaplaceLoss
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.mechanisms.base import Mechanism

ANYTHING = Bound(0.0, 1.0)


@pytest.mark.parametrize(
    ("sigma", "rate", "times", "delta", "truth"),
    [(1.0, 1e-4, 10**5, 1e-15, 0.40942683639813), (2.0, 1e-5, 10**7, 1e-30, 0.18382356633282)],
)
def test_golden_values(sigma: float, rate: float, times: int, delta: float, truth: float) -> None:
    answer = (Gaussian(sigma).sampled(rate) * times).epsilon(delta=delta)
    assert answer.lower - 1e-13 <= truth <= answer.upper + 1e-13 and answer.width < 1e-9


CASES = [(1.0, 1e-4, 0.3), (0.5, 1e-3, 4.0), (0.3, 1e-4, 8.0), (2.0, 1e-3, 0.02), (0.7, 1e-6, 0.02)]


@pytest.mark.parametrize(("sigma", "rate", "x"), CASES)
def test_one_step_has_a_closed_form(sigma: float, rate: float, x: float) -> None:
    loss = SampledGaussianLoss(sigma, rate, remove=True)
    truth = loss.profile(x)
    found = rare.delta([(loss, 1)], x, Bound(0.0, 1e3 * truth.upper), tolerance=1e-9)
    assert found.lower <= truth.upper and truth.lower <= found.upper


@pytest.mark.parametrize(("sigma", "rate", "x"), CASES)
def test_two_steps_are_one_integral(sigma: float, rate: float, x: float) -> None:
    """delta(x) = E delta_1(x - L) under the law with the record."""
    loss = SampledGaussianLoss(sigma, rate, remove=True)

    def integrand(at: float) -> float:
        density = math.exp(-((at / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        ratio = 1 + rate * math.expm1((2 * at - 1) / (2 * sigma**2))
        rest = loss.profile(x - math.log(ratio))
        return density * ratio * (rest.lower + rest.upper) / 2

    # The profile turns sharply where the first loss alone is x.
    turn = 0.5 + sigma**2 * math.log1p(math.expm1(x) / rate)
    ends = sorted(
        [
            -10 * sigma,
            0.0,
            1.0,
            10 * sigma + 1,
            *(turn + sigma * each for each in (-1, -0.1, 0, 0.1, 1)),
        ]
    )
    parts = [
        quad(integrand, low, high, epsabs=0, epsrel=1e-11, limit=200)[0]
        for low, high in pairwise(ends)
    ]
    truth = math.fsum(parts)
    found = rare.delta([(loss, 2)], x, Bound(0.0, 1e3 * truth), tolerance=1e-9)
    assert found.lower <= truth * (1 + 1e-8) and truth * (1 - 1e-8) <= found.upper
    assert found.upper - found.lower < 0.7 * found.upper


@pytest.mark.parametrize(("at", "width"), [(3.0, 0.2), (5.0, 0.4), (8.0, 0.1)])
def test_the_pieces_add_up_to_the_second_moment(at: float, width: float) -> None:
    """E r^2 = 1 + q^2 (e^(1 / s^2) - 1)."""
    noise, rate = 1.2, 1e-3
    cuts = Cuts(noise, rate, 1, 0, at=at, low=-9.0, width=width, order=2.0, frequency=2.0)
    below, above = (
        cuts.pieces.below.line(1.0, np.zeros(1), sign=1.0),
        cuts.pieces.above.line(1.0, np.zeros(1), sign=1.0),
    )
    total = math.exp(below.log[0].real) + math.exp(above.log[0].real)
    assert total == pytest.approx(1 + rate**2 * math.expm1(noise**-2), rel=1e-13)
    between = cuts.pieces.between.line(1.0, np.zeros(1), sign=1.0)
    assert between.log[0].real == pytest.approx(below.log[0].real, abs=1e-12)
    assert max(float(each.error[0]) for each in (below, above, between)) < 1e-9


def _exact(cuts: Cuts, power: complex, *, below: bool | None) -> complex:
    """E of a share times r^power, by a fine sum on the real line with 30 digits."""
    with mpmath.workdps(30):
        total, noise, count = mpmath.mpc(0), mpmath.mpf(cuts.noise), 1000
        step = 26 * noise / count
        for at in range(count + 1):
            x = -13 * noise + at * step
            v = (x - cuts.at) / mpmath.mpf(cuts.width)
            size = (
                mpmath.e ** (v - mpmath.e ** (-v))
                if -8 < v < 12
                else mpmath.mpf(0 if v < 0 else 10**6)
            )
            part = 1 if below is None else mpmath.e**-size if below else -mpmath.expm1(-size)
            ratio = 1 + mpmath.mpf(cuts.rate) * mpmath.expm1((2 * x - 1) / (2 * noise * noise))
            total += (
                mpmath.npdf(x, 0, noise)
                * part
                * mpmath.e ** (mpmath.mpmathify(power) * mpmath.log(ratio))
            )
        return complex(total * step)


@pytest.mark.parametrize(("noise", "rate", "at", "width"), [(2.0, 1e-5, 9.0, 0.7)])
@pytest.mark.parametrize(("name", "sign"), [("below", 1.0), ("above", -1.0), ("whole", -1.0)])
def test_the_shifted_path_is_the_integral(
    noise: float, rate: float, at: float, width: float, name: str, sign: float
) -> None:
    cuts = Cuts(
        noise,
        rate,
        10,
        0,
        at=at,
        low=-12 * noise,
        width=width,
        order=20.0,
        frequency=60.0,
        shifted=True,
    )
    piece = {"below": cuts.pieces.below, "above": cuts.pieces.above, "whole": cuts.pieces.whole}[
        name
    ]
    frequencies = np.array([0.0, 140.0])
    line, power = piece.line(20.0, frequencies, sign=sign), 21.0 if sign > 0 else -20.0
    for frequency, log, error in zip(frequencies.tolist(), line.log, line.error, strict=True):
        truth = _exact(
            cuts,
            complex(power, sign * frequency),
            below=None if name == "whole" else name == "below",
        )
        assert abs(np.exp(log) / truth - 1) <= error + 1e-14
        assert error < 1e-10


FEW = [
    (1.0, 1e-5, 10, 1e-5, 1.5367225e-05),
    (0.5, 1e-5, 1000, 1e-5, 0.019724694),
    (0.7, 1e-5, 100, 1e-5, 0.00051674676),
]


@pytest.mark.parametrize(("sigma", "rate", "times", "delta", "truth"), FEW)
def test_few_steps(sigma: float, rate: float, times: int, delta: float, truth: float) -> None:
    """Against the line at Re t = -1/2, summed in floats."""
    answer = (Gaussian(sigma).sampled(rate) * times).epsilon(delta=delta)
    assert answer.width < 1e-8 * answer.upper
    assert answer.upper == pytest.approx(truth, rel=2e-8)


def test_the_envelope_bounds_the_line() -> None:
    cuts = Cuts(1.0, 1e-3, 1000, 0, at=6.0, low=0.0, width=0.2, order=20.0, frequency=500.0)
    edges = 5.0 * 1.5 ** np.arange(12)
    bound = BelowSum((cuts,)).log_envelope(15.0, edges)
    nodes = np.sort(np.concatenate([[0.0], *(edges * each for each in (1.0, 1.1, 1.3, 1.49))]))
    line = BelowSum((cuts,)).line(15.0, nodes)
    size = line.log.real - line.error - line.log.real[0] - line.error[0]
    for edge, high, most in zip(edges, [*edges[1:], math.inf], bound, strict=True):
        assert (size[(nodes >= edge) & (nodes <= high)] <= most + 1e-9).all()


def test_cuts_do_not_move_the_answer() -> None:
    """Lines at other cuts and orders enclose the same number."""
    rows = [(SampledGaussianLoss(1.0, 1e-4, remove=True), 10**5)]
    plan = rare.Plan(x=0.4, order=70.0, tolerance=1e-8, least=1e-28, frequency=210.0)
    found = [
        rare.Split(rows, plan._replace(beyond=far, order=order)).bracket(0.4)
        for far in (1.0, 3.0)
        for order in (50.0, 80.0)
    ]
    assert max(each.lower for each in found) <= min(each.upper for each in found)
    assert all(each.width < 1e-6 * each.upper for each in found)


@pytest.mark.parametrize("sigma", [0.05, 0.055])
def test_what_lies_beyond_the_farthest_place_is_not_claimed(sigma: float) -> None:
    found = rare.epsilon(
        [(SampledGaussianLoss(sigma, 1e-6, remove=True), 2)],
        1e-30,
        1e-30,
        Bound(0.0, math.inf),
        tolerance=1e-9,
    )
    assert found is None or found.upper > 2 * rare.FARTHEST


def test_a_ratio_beyond_floats_has_an_answer() -> None:
    found = (Gaussian(0.03830311882856817).sampled(1.2593422698076838e-08) * 2).epsilon(
        delta=2.0466468374553175e-06
    )
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_what_is_below_floats_has_an_answer() -> None:
    """A cut beyond which there is no mass that a float can hold."""
    found = (Gaussian(3.6267014624056158).sampled(0.234375) * 3).delta(epsilon=25.69982167632294)
    assert 0 <= found.lower <= found.upper < 1e-200


MIXED = [
    (0.7, 1e-4, 100, 1e-5, Gaussian(100.0), GaussianLoss(0.01)),
    (1.0, 1e-3, 2000, 1e-8, Gaussian(50.0), GaussianLoss(0.02)),
    (1.0, 1e-4, 5000, 1e-6, Laplace(50.0), LaplaceLoss(0.02)),
]


@pytest.mark.parametrize(("sigma", "rate", "times", "delta", "other", "loss"), MIXED)
def test_other_losses_beside_rare_ones(
    sigma: float, rate: float, times: int, delta: float, other: Mechanism, loss: Loss
) -> None:
    """The split gives what one line over all losses gives, where that is good; its epsilon and its delta agree."""
    rows = [(SampledGaussianLoss(sigma, rate, remove=True), times)]
    other_losses = rare.OtherLosses(loss.transform(1), loss.transform(1))
    line = compose(Gaussian(sigma).sampled(rate) * times, other).epsilon(delta=delta)
    split = rare.epsilon(
        rows, delta, delta, Bound(0.0, 1.0), tolerance=1e-9, other_losses=other_losses
    )
    assert line.lower <= split.upper and split.lower <= line.upper
    assert split.width < 1e-6 * split.upper and line.width < 1e-3 * line.upper
    back = rare.delta(rows, split.upper, Bound(0.0, 1.0), tolerance=1e-9, other_losses=other_losses)
    assert back.lower <= delta <= back.upper * (1 + 1e-5)


@pytest.mark.parametrize(("scale", "share"), [(50.0, 0.5), (5.0, 0.01)])
def test_sampled_laplace_beside_rare_ones(scale: float, share: float) -> None:
    """Its losses differ in the two orders; a lattice, and lines over all losses, agree."""
    rows = [(SampledGaussianLoss(1.0, 1e-4, remove=True), 5000)]
    one, other = (LaplaceLoss(1 / scale).sampled(share, remove=side) for side in (True, False))
    assert isinstance(one, Loss) and isinstance(other, Loss) and one.in_other_order == other
    other_losses = rare.OtherLosses(one.transform(3), other.transform(3))
    split = rare.epsilon(
        rows, 1e-6, 1e-6, Bound(0.0, 1.0), tolerance=1e-9, other_losses=other_losses
    )
    grid = lattice.epsilon([*rows, (one, 3)], 1e-6, 1e-6)
    assert grid.lower <= split.upper and split.lower <= grid.upper
    assert split.width < 1e-6 * split.upper and grid.width < 0.02 * grid.upper
    swapped = rare.OtherLosses(other_losses.backward, other_losses.forward)
    wrong = rare.epsilon(rows, 1e-6, 1e-6, Bound(0.0, 1.0), tolerance=1e-9, other_losses=swapped)
    assert wrong.lower > split.upper or wrong.upper < split.lower, "a control that cannot fail"


def test_rare_losses_beside_a_gaussian_have_an_answer() -> None:
    answer = compose(Gaussian(1.0).sampled(1e-4) * 1000, Gaussian(50.0)).epsilon(delta=1e-10)
    assert "split" in answer.certificate.method and answer.width < 1e-8


def test_a_search_that_stops_says_so_and_holds_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    composition, delta = Gaussian(0.5).sampled(1e-6) * 1000, 1e-5
    whole = composition.epsilon(delta=delta)
    monkeypatch.setattr(rare, "_MOST_WORK", 1e6)
    stopped = composition.epsilon(delta=delta)
    assert any("stopped after" in note for note in stopped.certificate.notes)
    assert not any("stopped after" in note for note in whole.certificate.notes)
    assert stopped.lower <= whole.upper and whole.lower <= stopped.upper
    assert stopped.width >= whole.width


def test_a_path_of_millions_of_points_is_not_taken() -> None:
    plan = rare.Plan(2.5e-13, 8.3e13, 5e-9, 7.7e-35, 2.5e14, shifted=True)
    rows = [(SampledGaussianLoss(3467.0, 8.5e-11, True), 2)]
    split = rare.Split(rows, plan)
    assert sum(cut.path_points for cut in split.cuts) > 1e6 and not split.sound
    ordinary = rare.Split(rows, plan._replace(shifted=False))
    assert sum(cut.path_points for cut in ordinary.cuts) == 0 and ordinary.sound


def test_small_losses_are_left_out_at_small_deltas() -> None:
    """At delta 1.5e-156 the answer was 0.126 to 0.781: no order was tried between 1.5 and 3 times the planned one."""
    found = (Gaussian(5.827).sampled(0.0018225) * 298).epsilon(delta=1.46e-156)
    assert 0.17 < found.lower <= found.upper < 1.1 * found.lower
