"""Where to draw the line of `contour`, and its nodes.

Three kernels make one engine:
  decaying   |M| falls along the line by itself;
  lattice    L lives on a lattice: the line is a circle and the sum is finite;
  smoothed   L + Z with a small Gaussian Z, E e^(-Z) = 1: an upper bound for g because (1 - e^(-y))_+ is convex in
             e^(-y), and the gap is at most s^2 e^(-y/2) n_s(y), whose transform is known: two-sided for every L.
"""

from __future__ import annotations

import math

import numpy as np

from dpcompose.contour.contour import Contour
from dpcompose.contour.decaying import decaying, decaying_at_once, tails_of
from dpcompose.contour.latticed import latticed
from dpcompose.contour.placement import Place, cumulants_of, placed, terms_of
from dpcompose.contour.reverse import facing_alike
from dpcompose.contour.saddle import Chart, short
from dpcompose.contour.smoothed import reach_of, smoothed
from dpcompose.contour.transform import Transform

# How far, in steps, the end of a line that comes back is worth looking for.
_FARTHEST = 2.0**20 * math.pi


def draw(
    transform: Transform,
    *,
    order: float,
    x: float,
    log_mass: float,
    tolerance: float,
    budget: int,
    two_sided: bool = True,
    chart: Chart | None = None,
) -> Contour:
    """The cheapest line through `order` that certifies g near x to about `tolerance`, relative to e^log_mass.

    Args:
        transform: The variable L.
        order: The real part of the line, from `saddle`, at most 24 binary digits.
        x: Where g will be wanted, roughly.
        log_mass: log g(x), roughly.
        tolerance: Wanted (upper - lower) / g; what is reached may be more.
        budget: How many nodes may be spent on a line that does not end by itself.
        two_sided: Whether the aliases are to be bounded: only the lower end needs them.
        chart: The moments around `order`, if at hand.
    """
    quiet = max(-log_mass, 0.0) + math.log(20 / tolerance)
    place = (
        placed(transform, order, x, quiet, log_mass + math.log(tolerance / 20), chart)
        if two_sided
        else Place(order, quiet / order, (), *cumulants_of(transform, order, chart)[::2])
    )
    order, period, outer = place.order, place.period, place.outer
    lattice = transform.lattice
    if lattice is not None:
        return latticed(transform, lattice, order, period, outer)
    step = short(2 * math.pi / period, bits=24)
    relative = math.exp(min(max(log_mass - place.log_m + order * x, -100.0), 0.0))
    share = tolerance / 40 * relative
    echo = _echo(transform, order)
    if echo <= _FARTHEST * step * share:
        together = two_sided and chart is not None and facing_alike(transform, chart, order)
        simple = decaying_at_once(
            transform, order, step, place.variance, share, budget, outer, two_sided=two_sided, together=together
        )
        if simple is not None:
            return simple
    smoothing, gap, shown = math.sqrt(tolerance / (order * (order + 1))), 0.0, share
    if reach_of(smoothing, share) > budget * step:
        for _ in range(2):  # what is left out beyond the last node may be as large as shows beside the gap
            smoothing = reach_of(1.0, shown) / (budget * step)
            gap = smoothing * smoothing * order * (order + 1) * relative
            shown = max(share, gap / 200)
    most = math.pi * max(share, gap / 2)
    if echo <= most * budget * step:
        edges, tails = tails_of(transform, order, step, place.variance, budget)
        enough = np.flatnonzero((tails <= most) & (edges <= budget * step))
        if len(enough):
            exact = np.flatnonzero(tails[enough] <= math.pi * share)
            last = int(enough[exact[0] if len(exact) else -1])
            return decaying(transform, order, step, float(edges[last]), float(tails[last]), outer)
    return smoothed(transform, order, step, shown, smoothing, outer)


def _echo(transform: Transform, order: float) -> float:
    """What |M| comes back to along the line however far, as a share of M(order); 0 if nothing is known."""
    found = [getattr(term, "echo", None) for term in terms_of(transform)]
    return math.prod(echo(order) for echo in found if echo is not None) if all(found) else 0.0
