"""The points of mixtures of normal distributions and their moments, against ball arithmetic."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from flint import acb, arb, ctx
from scipy.special import ndtr

from dpcompose import Adjacency, Gaussian
from dpcompose.loss.gaussian_mixture import GaussianMixture, OpposedMixtures, binomial_mixture
from dpcompose.loss.mixture_loss import MixtureLoss
from dpcompose.loss.mixture_quadrature import MixtureQuadrature


def _sampled(noise: float, rate: float) -> GaussianMixture:
    return GaussianMixture((1 / noise,)).sampled(rate)[0]


def _mirrored(noise: float, rate: float) -> OpposedMixtures:
    return OpposedMixtures(_sampled(noise, rate), _sampled(noise, rate))


PAIRS = {
    "plateau": _mirrored(0.05, 0.3),
    "rare": _mirrored(0.7, 3e-4),
    "much noise": _mirrored(1e5, 1e-7),
    "one side": OpposedMixtures(_sampled(1.3, 0.01), GaussianMixture()),
    "group": OpposedMixtures(
        binomial_mixture(3, 0.02, mean=0.9, ulps=0)[0],
        binomial_mixture(2, 0.02, mean=0.9, ulps=0)[0],
    ),
}


@cache
def _terms(mixture: GaussianMixture, precision: int) -> list[tuple[arb, arb]]:
    """Each mean m and w e^(-m^2 / 2); the first weight is what the others leave, so that the sum is 1."""
    with ctx.workprec(precision):
        weights = [arb(weight) for weight in mixture.weights[1:]]
        weights.insert(0, 1 - sum(weights, arb(0)))
        means = [arb(mean) for mean in mixture.means]
        return [(m, w * (-m * m / 2).exp()) for m, w in zip(means, weights, strict=True)]


def _ratio(mixture: GaussianMixture, x: acb) -> acb:
    """r(x) of the mixture to N(0, 1)."""
    terms = _terms(mixture, ctx.prec)
    return sum(
        (acb(factor) * (mean * x).exp() if mean else acb(factor) for mean, factor in terms), acb(0)
    )


@pytest.mark.parametrize("name", PAIRS)
def test_points_are_as_good_as_they_say(name: str) -> None:
    pair = PAIRS[name]
    quadrature = MixtureQuadrature.of([pair], [10.0])
    grid = quadrature._coarse(3.0)
    assert grid is not None
    points, ctx.prec = grid.points, 3000
    try:
        for at in range(0, grid.x.shape[1], 23):
            x = acb(float(grid.x[0, at]))
            one, two = _ratio(pair.first, x).real, _ratio(pair.second, -x).real
            loss = one.log() - two.log()
            density = float(grid.step[0, 0]) * (-x.real * x.real / 2).exp() / (2 * arb.pi()).sqrt()
            deficit = density * (one - two - two * loss)
            for found, truth, error in (
                (points.ratio, loss, points.ratio_error),
                (points.deficit, deficit, points.weight_error),
            ):
                value, bound = float(found[0, at]), float(error[0, at])
                if bound < 0.1 and abs(value) > 1e-280:
                    assert float(abs(truth - value)) <= bound * abs(value)
    finally:
        ctx.prec = 53


@pytest.mark.parametrize("name", ["much noise", "one side", "group"])
@pytest.mark.parametrize("order", [0.3, 6.0])
def test_lines_and_envelopes_enclose_balls(name: str, order: float) -> None:
    """M of one copy by a ball quadrature; beyond each edge |M| stays below its bound."""
    pair = PAIRS[name]
    transform = MixtureLoss(((1.0, pair),)).transform(1)
    _, _, variance = transform.cumulants(order)
    frequencies = np.concatenate([[0.0], np.array([0.5, 4.0, 40.0]) / math.sqrt(variance)])
    line = transform.line(order, frequencies)
    bounds = transform.finest_envelope(order, frequencies[1:])
    quick = transform.log_envelope(order, frequencies[1:])
    ctx.prec = 80
    try:
        reach = 12 + (order + 1) * pair.first.largest + order * pair.second.largest
        values: list[complex] = []
        for frequency in frequencies.tolist():
            t = acb(order, frequency)

            def term(x: acb, analytic: bool, t: acb = t) -> acb:
                one, two = _ratio(pair.first, x), _ratio(pair.second, -x)
                logs = [each.log(analytic=analytic) for each in (one, two)]
                return ((t + 1) * logs[0] - t * logs[1] - x * x / 2).exp()

            whole = acb.integral(term, -reach, reach, abs_tol=arb(2) ** -60)
            values.append(complex(whole / (2 * acb.pi()).sqrt()))
    finally:
        ctx.prec = 53
    top = abs(values[0])
    for at, value in enumerate(values):
        error = float(line.error[at])
        if error < 0.1:
            assert abs(np.exp(line.log[at]) / value - 1) <= math.expm1(error) + 1e-15
        if at:
            assert math.log(abs(value) / top) <= bounds[at - 1] + 1e-12
            assert bounds[at - 1] <= quick[at - 1] + 1e-12
    assert line.error[0] < 1e-9


def test_little_noise_is_not_below_a_lattice() -> None:
    """Losses rounded down to a lattice, those below -50 left out: a lower bound on delta, good to 4e-4 here."""
    noise, rate, times, epsilon, spacing = (
        0.05167557917399836,
        0.022362623472294927,
        6,
        787.93,
        4e-3,
    )
    x = np.linspace(-0.2, 1.6, 600_001)

    def log_ratio(x: np.ndarray) -> np.ndarray:
        lifted = math.log(rate) + (2 * x - 1) / (2 * noise * noise)
        return np.logaddexp(math.log1p(-rate), lifted)

    loss = (log_ratio(x) - log_ratio(-x))[:-1]
    mass = np.diff((1 - rate) * ndtr(x / noise) + rate * ndtr((x - 1) / noise))
    kept = (loss >= -50) & (loss < 1100)
    cells = np.bincount(np.floor((loss[kept] + 50) / spacing).astype(int), weights=mass[kept])
    size = 1 << 21
    total = np.fft.irfft(np.fft.rfft(cells, size) ** times, size)
    over = spacing * np.arange(size) - 50 * times - epsilon
    least = float((total * -np.expm1(-np.maximum(over, 0.0))).sum()) - 1e-12
    found = (Gaussian(noise).sampled(rate) * times).delta(
        epsilon=epsilon, adjacency=Adjacency.REPLACE
    )
    assert least < found.upper < least * 1.001


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_many_levels_of_a_profile_are_read_as_one_by_one(pair: OpposedMixtures) -> None:
    epsilons = [-math.inf, -30.0, -1.0, 0.0, 1e-9, 0.3, 4.0, 250.0, math.inf]
    one = MixtureLoss(((1.0, pair),))
    two = MixtureLoss(((0.25, pair), (0.75, OpposedMixtures(pair.first, GaussianMixture()))))
    for loss in (one, two):
        assert loss.profiles(epsilons) == [loss.profile(epsilon) for epsilon in epsilons]
