"""Any contour is valid: for every family of losses, the bounds from different lines enclose the
same value.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from flint import acb, arb, ctx

from dpcompose import Adjacency, Composition, compose
from dpcompose.contour import invert, saddle
from dpcompose.contour.contour import Bracket, relative_value
from dpcompose.contour.quadrature import draw, placement_of
from dpcompose.contour.transform import Transform
from dpcompose.loss.gaussian import GaussianSum
from dpcompose.loss.laplace import LaplaceLoss
from dpcompose.loss.product import Product
from tests.laws.members import Member, cases

MULTIPLES = (0.93, 0.97, 1.0, 1.03)
SEED = 5
# A promise has no loss, and so no line.
FAMILIES = cases(lambda member: member.name not in ("Concentrated", "RenyiCurve"))
# Random allocation plans from moments of whole orders, and far out its line is known to a few percent.
FINE = cases(lambda member: member.name not in ("Concentrated", "RenyiCurve", "RandomAllocation"))


def transforms(member: Member, seed: int) -> list[Transform]:
    """A random composition's sums of losses, one for each order of the pair."""
    rng = Random(f"{member.name} {seed}")
    times = int(10 ** rng.uniform(0.3, 3.0))
    size = min(10 ** rng.uniform(-1.0, 0.7) / math.sqrt(times), 2.0)
    composed: Composition = compose(member.build(size, rng.randint(0, 5))) * times
    entries = [
        (pair, n * k)
        for part, k in composed.parts
        for pair, n in part.pairs(Adjacency.ADD_REMOVE) or ()
    ]
    products = [
        Product(tuple((getattr(pair, side), n) for pair, n in entries))
        for side in ("remove", "add")
    ]
    return [product.transform for product in products]


def points(transform: Transform, seed: int) -> list[float]:
    """Where the value is not small, small, and tiny: two standard deviations below the mean to thirty above it."""
    rng = Random(seed)
    _, mean, variance = transform.cumulants(1e-3)
    ends = max(transform.minimum, -1e300), min(transform.maximum, 1e300)
    drawn = [mean + math.sqrt(variance) * rng.uniform(*span) for span in ((-2, 2), (2, 8), (8, 30))]
    return [x for x in drawn if ends[0] < x < ends[1] - 1e-3 * math.sqrt(variance)]


def bracket(transform: Transform, x: float, *, multiple: float, tolerance: float) -> Bracket:
    order = saddle.shortened(multiple * saddle.saddle_for_value(transform, x), bits=24)
    log_m, _, variance = transform.cumulants(order)
    if not (log_m < math.inf and variance < math.inf):
        return Bracket(
            0.0, math.inf, *[math.inf] * 4
        )  # no line where the moments are beyond floats
    log_mass = min(log_m - order * x + math.log(relative_value(variance, order)), 0.0)
    placement = placement_of(
        transform, order=order, x=x, log_mass=log_mass, tolerance=tolerance, most_nodes=20_000
    )
    return draw(transform, placement).bracket(x)


def intersect(brackets: list[Bracket]) -> bool:
    return max(each.lower for each in brackets) <= min(each.upper for each in brackets)


@pytest.mark.parametrize("member", FAMILIES)
def test_the_order_does_not_matter(member: Member) -> None:
    met = 0
    for seed in (SEED, SEED + 1):
        if met >= 4:
            break
        for transform in transforms(member, seed):
            for x in points(transform, seed):
                found = [bracket(transform, x, multiple=each, tolerance=1e-6) for each in MULTIPLES]
                assert intersect(found), (seed, x, found)
                met += all(math.isfinite(each.upper) for each in found)
    assert met >= 4


@pytest.mark.parametrize("member", FINE)
def test_the_tolerance_does_not_matter_and_is_reached(member: Member) -> None:
    for transform in transforms(member, SEED):
        for x in points(transform, SEED):
            found = [
                bracket(transform, x, multiple=1.0, tolerance=each) for each in (1e-2, 1e-4, 1e-8)
            ]
            assert intersect(found), (x, found)
            assert found[0].upper - found[0].lower <= 0.05 * found[0].upper


@pytest.mark.parametrize("member", FAMILIES)
def test_the_budget_adds_up_to_the_width(member: Member) -> None:
    for transform in transforms(member, SEED + 7):
        for x in points(transform, SEED):
            found = bracket(transform, x, multiple=1.0, tolerance=1e-4)
            terms = (found.aliasing, found.truncation, found.smoothing, found.rounding)
            assert min(terms) >= 0
            assert sum(terms) == pytest.approx(found.upper - found.lower, rel=1e-3, abs=1e-300)


@pytest.mark.parametrize("member", FAMILIES)
def test_one_line_serves_its_neighborhood(member: Member) -> None:
    """A line drawn for one point encloses the value at others; a curve read from few lines agrees with its points."""
    for transform in transforms(member, SEED + 3):
        xs = sorted(points(transform, SEED) + points(transform, SEED + 1))
        for together, x in zip(invert.values_at(transform, xs, tolerance=1e-4), xs, strict=True):
            alone = invert.value_at(transform, x, tolerance=1e-6)
            assert 0 <= alone.lower <= alone.upper <= 1
            assert max(alone.lower, together.lower) <= min(alone.upper, together.upper)
            assert invert.upper_at(transform, x) >= alone.lower


@pytest.mark.parametrize("member", FAMILIES)
def test_values_fall(member: Member) -> None:
    for transform in transforms(member, SEED + 5):
        xs = sorted(points(transform, SEED) + points(transform, SEED + 2))
        readings = [invert.value_at(transform, x, tolerance=1e-6) for x in xs]
        for one, other in itertools.pairwise(readings):
            assert other.lower <= one.upper


@pytest.mark.parametrize("member", FINE)
def test_the_transform_agrees_with_its_plan(member: Member) -> None:
    """Cumulants are for planning, but not far off: they are differences of the certified values on the line."""
    for transform in transforms(member, SEED):
        for order in (0.25, 1.0, 4.0):
            value, slope, curvature = transform.cumulants(order)
            exact = transform.line(order, np.zeros(1))
            upper = float(exact.log[0].real + exact.error[0])
            assert value == pytest.approx(upper, rel=1e-5, abs=1e-9)
            assert (
                upper - 2 * exact.error[0] - 1e-12 * abs(upper)
                <= transform.moment_bound(order)
                <= upper + 2.1
            )
            step = 2.0**-10
            ahead, behind = (transform.cumulants(order + side * step) for side in (1, -1))
            assert slope == pytest.approx((ahead[0] - behind[0]) / (2 * step), rel=1e-3, abs=1e-9)
            assert curvature == pytest.approx(
                (ahead[1] - behind[1]) / (2 * step), rel=1e-2, abs=1e-9
            )


@pytest.mark.parametrize("member", FAMILIES)
def test_the_envelope_is_above_the_line(member: Member) -> None:
    for transform in transforms(member, SEED):
        for order in (0.5, 3.0):
            edges = 0.3 * 1.5 ** np.arange(20)
            bound = transform.log_envelope(order, edges)
            exact = transform.line(order, np.zeros(1))
            start = float(exact.log[0].real + exact.error[0])
            for left, right, most in zip(edges, [*edges[1:], 4 * edges[-1]], bound, strict=True):
                inside = np.linspace(left, right, 15)
                line = transform.line(order, inside)
                assert np.all(line.log.real - line.error <= start + most + 1e-9)


@pytest.mark.parametrize("times", [1, 300, 301, 10**5])
def test_the_laplace_line_where_its_modulus_is_small(times: int) -> None:
    """Two atoms of nearly the same mass cancel at odd multiples of pi / (2 epsilon): relative errors grow there."""
    for epsilon in (1e-4, 1e-2, 0.3, 5.0):
        for order in (0.02, 1.0, 30.0):
            frequencies = np.array(
                [0.0, *(math.pi / (2 * epsilon) * odd for odd in (1, 3, 15, 1001))]
            )
            line = LaplaceLoss(epsilon).transform(times).line(order, frequencies)
            for u, log, error in zip(frequencies, line.log, line.error, strict=True):
                with ctx.workprec(300):
                    t, exact = acb(arb(order), arb(float(u))), arb(epsilon)
                    moment = ((t + 1) * (t * exact).exp() + t * (-(t + 1) * exact).exp()) / (
                        2 * t + 1
                    )
                    truth = float((abs(moment).log() * times).mid())
                assert truth <= log.real + error
                # A modulus that may vanish is only bounded from above; its error says so.
                assert truth >= log.real - error or error >= times


@pytest.mark.parametrize(("x", "least"), [(1.0, math.inf), (1.5, math.exp(-129.0))])
def test_a_bound_on_far_aliases_is_not_cut_where_one_factor_is_no_float(
    x: float, least: float
) -> None:
    """Chernoff's bound at order 2000 is e^1872 at x = 1 and e^872 at x = 1.5; the first alias has e^-1000 of that."""
    variable = GaussianSum(1.0)
    line = draw(
        variable,
        placement_of(variable, order=1.0, x=1.0, log_mass=-1.0, tolerance=1e-3, most_nodes=1000),
    )
    far = replace(line, order=1000.0, step=2 * math.pi, outer=((2000.0, 3881.0),), maximum=math.inf)
    assert far._aliases(x) >= least
