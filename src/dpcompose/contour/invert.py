"""Certified bounds on g(x) = E[(1 - e^(x - L))_+] at a given x, and on the x at which g has a given
value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcompose.contour import saddle
from dpcompose.contour.contour import Bracket, Contour, chernoff_bound, relative_value
from dpcompose.contour.quadrature import draw, draw_closely, draw_on, placement_of
from dpcompose.contour.saddle import Chart
from dpcompose.contour.transform import Transform
from dpcompose.values import met, up

_FINEST = 1e-13
_USUAL, _MOST = 20_000, 400_000
_LEAST_GAP = 1e-6
"""No smaller share of an answer for epsilon, over order * x, limits how much a line is smoothed."""
_STEPS = np.array([1.0, 2.0])
# The number of further lines tried for a lower end if the first lines give none.
_RETRIES = 6


@dataclass(frozen=True)
class LineReading:
    """A certified interval with the contour and bracket from which it was computed; None for both
    if no sum was needed.

    `chart` holds the moments that placed the contour, if one table of them was enough; `refused`
    says that a line was not drawn because it would have been smoothed too much.
    """

    lower: float
    upper: float
    contour: Contour | None = None
    bracket: Bracket | None = None
    chart: Chart | None = None
    refused: bool = False


@np.errstate(
    all="ignore"
)  # an overflow leads to an infinite or undefined bracket, which certifies nothing
def value_at(
    transform: Transform,
    x: float,
    *,
    tolerance: float,
    most_nodes: int = _MOST,
    loosest: float = math.inf,
) -> LineReading:
    """Return bounds on the hockey-stick divergence g(x) of relative width `tolerance` if that can
    be reached; always 0 <= lower <= g(x) <= upper <= 1. No line is smoothed so much that its answer
    is wider than `loosest`.
    """
    if x >= transform.maximum:
        return LineReading(0.0, 0.0)
    chart = saddle.charted(transform, saddle.Aim(value=x))
    for closeness in (0.02, 1e-4):  # an order that is only near may be far from x where K' is steep
        order = chart.order if chart else saddle.saddle_for_value(transform, x, tolerance=closeness)
        log_m, first, variance = chart.cumulants if chart else transform.cumulants(order)
        gap = abs(first - x - 1 / order - 1 / (order + 1)) if chart is None else 0.0
        near = gap <= 1e-2 * (abs(x) + 1) or order * gap <= 2
        if math.isfinite(log_m) and near and variance > 0:
            break
    else:
        return LineReading(0.0, _one_moment(transform, x))
    log_mass = min(log_m - order * x + math.log(relative_value(variance, order)), 0.0)
    placement = placement_of(
        transform,
        order=order,
        x=x,
        log_mass=log_mass,
        tolerance=max(tolerance, _FINEST),
        most_nodes=min(_most_nodes(tolerance), most_nodes),
        chart=chart,
    )
    contour = draw_closely(transform, placement, loosest)
    if contour is None:
        return LineReading(0.0, _one_moment(transform, x, order), chart=chart, refused=True)
    bracket = contour.bracket(x)
    if not bracket.upper < 0.5:
        # At an extreme x every line may fail; then a single moment still gives an upper end.
        return replace(
            _read(contour, bracket), upper=min(_one_moment(transform, x, order), bracket.upper)
        )
    return replace(_read(contour, bracket), chart=chart)


def values_at(
    transform: Transform, xs: Sequence[float], *, tolerance: float
) -> Iterator[LineReading]:
    """Yield bounds on the hockey-stick divergence g at many increasing points; a line is reused for
    neighboring points while it meets the tolerance.
    """
    contour: Contour | None = None
    for x in xs:
        bracket = contour.bracket(x) if contour is not None and x < transform.maximum else None
        if (
            contour is None
            or bracket is None
            or not bracket.upper - bracket.lower <= tolerance * bracket.upper
        ):
            reading = value_at(transform, x, tolerance=tolerance / 4)
        else:
            reading = _read(contour, bracket)
        contour = reading.contour
        yield reading


def _read(contour: Contour, bracket: Bracket) -> LineReading:
    lower, upper = max(bracket.lower, 0.0), min(bracket.upper, 1.0)
    return LineReading(min(lower, upper), upper, contour, bracket)


def _one_moment(transform: Transform, x: float, *orders: float) -> float:
    """Return an upper bound on the hockey-stick divergence g(x) by the best of a few moments, for
    very unlikely x without a saddle point.
    """
    best = 1.0
    for order in orders or (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0):
        bound = transform.moment_bound(order)
        bound += 16 * 2.0**-53 * (abs(bound) + abs(order * x)) - order * x
        best = (
            min(best, math.exp(bound))
            if -745 < bound < 0
            else (min(best, 5e-324) if bound <= -745 else best)
        )
    return min(up(up(best * (1 + 1e-12))), 1.0)


@np.errstate(
    all="ignore"
)  # an overflow leads to an infinite or undefined bracket, which certifies nothing
def at_most(
    transform: Transform,
    x: float,
    mass: float,
    *,
    reverse: LineReading | None = None,
    loosest: float = math.inf,
) -> bool:
    """Return whether an upper end proves that the hockey-stick divergence g(x) is at most `mass`:
    from one moment, from the nodes of the reverse order, or from a new line.

    Args:
        transform: The variable L.
        x: The point.
        mass: The value that g(x) is compared with, > 0.
        reverse: The result for the reverse order of the pairs close to x; its orders and its line
            are tried first.
        loosest: As in `value_at`.
    """
    chart = reverse.chart if reverse is not None and transform.tabulates else None
    if chart is None or reverse is None or reverse.contour is None:
        return upper_at(transform, x, loosest=loosest) <= mass
    levels = saddle.moment_levels(transform, chart, x)
    if levels.chernoff < math.log(mass) - 0.01:
        return chernoff_bound(levels.order, transform.moment_bound(levels.order), x) <= math.log(
            mass
        )
    contour = draw_on(transform, reverse.contour) if levels.serves(reverse.contour.order) else None
    if contour is not None:
        return contour.bracket(x).upper <= mass
    return upper_at(transform, x, levels.chart, loosest=loosest) <= mass


@np.errstate(
    all="ignore"
)  # an overflow leads to an infinite or undefined bracket, which certifies nothing
def upper_at(
    transform: Transform, x: float, chart: Chart | None = None, *, loosest: float = math.inf
) -> float:
    """Return an upper bound on the hockey-stick divergence g(x), accurate to about a percent; no
    aliases need to be bounded for it. `chart` holds moments around the order of the line, if
    available; `loosest` is that of `value_at`.
    """
    order = chart.order if chart else saddle.saddle_for_value(transform, x, tolerance=0.1)
    log_m, _, variance = chart.cumulants if chart else transform.cumulants(order)
    if not (math.isfinite(log_m) and 0 < variance < math.inf):
        return _one_moment(transform, x)
    placement = placement_of(
        transform,
        order=order,
        x=x,
        log_mass=min(log_m - order * x + math.log(relative_value(variance, order)), 0.0),
        tolerance=1e-2,
        most_nodes=_USUAL,
        two_sided=False,
        chart=chart,
    )
    contour = draw_closely(transform, placement, loosest * max(order * abs(x), _LEAST_GAP))
    return _one_moment(transform, x, order) if contour is None else contour.bracket(x).upper


@np.errstate(
    all="ignore"
)  # an overflow leads to an infinite or undefined bracket, which certifies nothing
def point_of(
    transform: Transform,
    least: float,
    most: float,
    *,
    tolerance: float,
    scale: float = 1.0,
    loosest: float = math.inf,
) -> LineReading:
    """Return bounds on the x with hockey-stick divergence g(x) = mass, valid for every mass in
    [least, most], of relative width `tolerance` if possible.

    Args:
        transform: The variable L.
        least: The smallest mass, in (0, 1).
        most: The largest mass, at least `least`.
        tolerance: The wanted (upper - lower) / |x|.
        scale: A width below tolerance * scale * 1e-3 is never needed; this matters for x close to
            0.
        loosest: No line is smoothed so much that its answer is wider than this.
    """
    log_mass = math.log(min(max(least, 5e-324), 1.0))
    chart = saddle.charted(transform, saddle.Aim(log_mass=log_mass))
    order = chart.order if chart else saddle.for_mass(transform, log_mass)
    best = LineReading(-math.inf, transform.maximum, chart=chart)
    x = saddle.value_for(
        order, *(chart.cumulants if chart else transform.cumulants(order)), log_mass
    )
    if not math.isfinite(x):
        return best  # the moments overflow, or exceed the tables
    for _ in range(4):
        wanted = tolerance / 4 * order * max(abs(x), 1e-3 * scale)
        placement = placement_of(
            transform,
            order=order,
            x=x,
            log_mass=log_mass,
            tolerance=min(max(wanted, _FINEST), 1e-2),
            most_nodes=_most_nodes(tolerance),
            chart=chart if chart and chart.order == order else None,
        )
        if not (placement.log_m < math.inf and 0 < placement.variance < math.inf):
            break  # the moments overflow
        contour = draw_closely(transform, placement, loosest * max(order * abs(x), _LEAST_GAP))
        if contour is None:
            return replace(best, refused=True)
        found, reading = _on_contour(contour, (least, most), x, transform, tolerance)
        if reading is not None:
            best = _narrower(best, reading)
        if best.contour is not None and best.upper - best.lower <= tolerance * max(
            abs(best.upper), 1e-3 * scale
        ):
            break
        moved = abs(found - x) * order
        if moved <= 0.3 or (moved <= 5 and reading is not None and _rounded(reading)):
            break  # another line would be nearly the same, or have the same rounding errors
        order = saddle.saddle_for_value(
            transform, min(found, math.nextafter(transform.maximum, -math.inf)), start=order
        )
        x = found
    if best.lower == -math.inf and loosest == math.inf:
        best = _lower_end(transform, best, (least, most), order, x, tolerance)
    if best.lower == -math.inf and most < 1e-3 and loosest == math.inf:
        # x is too close to the largest value to be bounded from below; the x of a larger mass is a
        # lower bound.
        above = point_of(
            transform, math.sqrt(most), math.sqrt(most), tolerance=tolerance, scale=scale
        )
        best = replace(best, lower=min(above.lower, best.upper))
    return best


def _lower_end(
    transform: Transform,
    best: LineReading,
    masses: tuple[float, float],
    order: float,
    x: float,
    tolerance: float,
) -> LineReading:
    """Return `best` with a lower end from lines at decreasing orders, for cases where rounding
    errors spoil the line at the saddle point.

    Close to the largest value the saddle point is so large that a rounding error of one loss
    exceeds the mass.
    """
    for _ in range(_RETRIES):
        order = saddle.shortened(order / 8, bits=24)
        if not order > saddle.LEAST_ORDER:
            break
        placement = placement_of(
            transform,
            order=order,
            x=x,
            log_mass=math.log(masses[0]),
            tolerance=1e-2,
            most_nodes=_most_nodes(tolerance),
        )
        if not (placement.log_m < math.inf and 0 < placement.variance < math.inf):
            continue
        _, reading = _on_contour(draw(transform, placement), masses, x, transform, tolerance)
        if reading is not None and reading.lower > -math.inf:
            return _narrower(best, reading)
    return best


def _rounded(reading: LineReading) -> bool:
    """Whether at least half of the width is rounding error."""
    bracket = reading.bracket
    return bracket is not None and bracket.rounding >= 0.5 * (bracket.upper - bracket.lower)


def _most_nodes(tolerance: float) -> int:
    """Return the largest number of nodes of a line on which |M| does not decay: more only if the
    tolerance is below the default 1e-9. M is the moment generating function.
    """
    return _MOST if tolerance < 1e-9 else _USUAL


def _narrower(one: LineReading, two: LineReading) -> LineReading:
    """Return the intersection of two enclosures, with the contour of the second."""
    return LineReading(*met(one, two), two.contour, two.bracket, one.chart)


def _on_contour(
    contour: Contour, masses: tuple[float, float], x: float, transform: Transform, tolerance: float
) -> tuple[float, LineReading | None]:
    """Return the solution by Newton's method for log g over the stored nodes, widened outward until
    both ends are certified. g is the hockey-stick divergence.
    """
    least, most = masses
    # g(x) >= 1 - e^x, so the solution is at least log(1 - mass).
    rate, left, right = (
        contour.order,
        math.log1p(-min(most, 1 - 1e-16)) * (1 + 1e-15) - 1e-300,
        transform.maximum,
    )
    x = max(x, left)
    for looks in range(60):
        value, slope = contour.slope(x)
        if value > least:
            left = max(left, x)
        else:
            right = min(right, x)
        reach = 4.0 / contour.order
        if value > 0 and slope > 0:
            rate = slope
            step = min(max(math.log(value / least) / slope, -reach), reach)
        else:
            step = -math.inf
        target = x + step
        # Where g has kinks, as over a lattice, Newton's method may alternate between two points;
        # then a bisection step follows.
        if not (left < target < right or target == transform.maximum) or (
            looks % 4 == 3 and looks > 8
        ):
            target = (left + min(right, x + reach)) / 2
        moved, x = abs(target - x), target
        # The error of Newton's method is of the order of the square of its last step.
        if min(moved, moved * moved * contour.order) <= 1e-3 * tolerance * abs(x) + 1e-15:
            break
    x = min(x, transform.maximum)
    start = x - math.log(most / least) / rate
    # First try the expected width, then the one that was computed.
    margin = contour.margin(abs(x))
    steps = (
        max(0.6 * contour.width(x, least, margin) / least / rate, 4e-16 * max(abs(x), abs(start)))
        * _STEPS
    )
    ends = (
        np.concatenate([x + steps, start - steps])
        if steps[-1] < 0.1 / contour.order
        else np.zeros(0)
    )
    bracket, *found = contour.brackets([x, *ends.tolist()], margin)
    if not bracket.upper < math.inf:
        return x, None
    if not bracket.upper > 0 or x >= transform.maximum:
        # The solution is within rounding of the largest value, so only its lower end is searched.
        step = 1e-16 * (abs(x) + 1e-3 / contour.order)
        lower = -walk_to_proof(
            lambda point: contour.bracket(-point, margin).lower >= most,
            -x,
            step,
            math.inf,
            growth=4.0,
        )
        return x, LineReading(lower, transform.maximum, contour, bracket)
    half = len(ends) // 2
    upper = next(
        (end for end, at in zip(ends[:half], found[:half], strict=True) if at.upper <= least), None
    )
    lower = next(
        (end for end, at in zip(ends[half:], found[half:], strict=True) if at.lower >= most), None
    )
    offset = min(
        max(bracket.upper - bracket.lower, 1e-16 * least) / least / rate, 0.1 / contour.order
    )
    if upper is None:
        upper = walk_to_proof(
            lambda point: contour.bracket(point, margin).upper <= least,
            x,
            offset,
            transform.maximum,
        )
    if lower is None:
        lower = -walk_to_proof(
            lambda point: contour.bracket(-point, margin).lower >= most, -start, offset, math.inf
        )
    return x, LineReading(float(lower), min(float(upper), transform.maximum), contour, bracket)


def walk_to_proof(
    proved: Callable[[float], bool], x: float, offset: float, end: float, *, growth: float = 1.5
) -> float:
    """Return the first point, at increasing distances above x, that is proved to lie above the
    solution; `end` if none is.
    """
    offset = max(offset * 0.6, 4e-16 * abs(x))
    for step in range(60):
        point = x + offset
        if point >= end:
            return end
        if proved(point):
            return point
        offset *= growth if step < 20 else max(growth, 4.0)
    return end
