"""The placement of a contour and its nodes from one table of moments, and the three quadrature
rules.

A rule turns a placement into a `Contour`: a sum over its nodes, and a bound on the omitted nodes.

periodic    L lives on a lattice: M is periodic along the line, and the sum is finite;
direct      |M| decays along the line: the line is cut where a bound on the tail is small;
mollified   L + Z with a small Gaussian Z, E e^(-Z) = 1: an upper bound for g because (1 - e^(-y))_+
            is convex in e^(-y), and the gap is at most s^2 e^(-y/2) n_s(y), whose transform is
            known: two-sided for every L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcompose.contour import saddle
from dpcompose.contour.contour import WIDE, Contour, centered, kernel_peak, simple_kernel
from dpcompose.contour.saddle import Chart, shortened
from dpcompose.contour.transform import Line, Transform
from dpcompose.numerics import Reals, U, exp_or_inf

NEGLIGIBLE = 52.0
"""Nodes with |M| below e^-52 M(order) are negligible."""
# Up to this number of nodes, all are evaluated without a search for negligible ones and without a
# further bound.
_FEW_NODES, _VERY_FEW = 64, 24
# The reverse order reuses the line if its M is at least e^-1.8 of this one's, since its g may then
# be the larger one.
_ALIKE = -1.8


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A vertical line for bounds on the hockey-stick divergence g close to one x, before its nodes
    are chosen.

    Args:
        order: The real part of the line, at most 24 binary digits.
        period: W = 2 pi / step.
        outer: Pairs of an order larger than `order` and an upper bound on log M at it, for the
            aliases above x.
        log_m: K = log M at `order`.
        variance: K'' at `order`.
        height: An estimate of g(x) e^(order x) / M(order), at most 1.
        tolerance: The wanted (upper - lower) / g(x).
        most_nodes: The largest number of nodes if |M| does not decay along the line.
        two_sided: Whether a lower end is wanted too; only that needs bounds on the aliases.
        chart: The moments around the saddle point, if available.
    """

    order: float
    period: float
    outer: tuple[tuple[float, float], ...]
    log_m: float
    variance: float
    height: float
    tolerance: float
    most_nodes: int
    two_sided: bool
    chart: Chart | None

    @property
    def step(self) -> float:
        """The distance of the nodes, of at most 24 binary digits."""
        return shortened(2 * math.pi / self.period, bits=24)

    @property
    def error(self) -> float:
        """The part of the moment generating function M(order) e^(-order x) that may be omitted at
        either end.
        """
        return self.tolerance / 40 * self.height

    @property
    def limit(self) -> float:
        """The frequency at which the line is cut if |M| does not decay. M is the moment generating
        function.
        """
        return self.most_nodes * self.step

    def shared_with_reverse(self, transform: Transform) -> bool:
        """Whether the reverse order is so similar that one moment cannot decide which of the two
        orders has the larger hockey-stick divergence g.
        """
        other = transform.reverse
        if other is None or not self.two_sided or self.chart is None:
            return False
        orders = self.chart.orders
        at = min(int(np.searchsorted(orders, self.order)), len(orders) - 1)
        return float(other.curve(orders).log_m[at] - self.chart.curve.log_m[at]) > _ALIKE


def placement_of(
    transform: Transform,
    *,
    order: float,
    x: float,
    log_mass: float,
    tolerance: float,
    most_nodes: int,
    two_sided: bool = True,
    chart: Chart | None = None,
    bounded: bool = True,
    loss: float = 3.0,
) -> Placement:
    """Return the line close to the saddle point `order` that needs the fewest nodes for the
    tolerance.

    Close to the order where M becomes infinite, the aliases above x require a long period; a line
    slightly below the saddle point needs a shorter one. Any order is valid; one below the saddle
    point loses accuracy by a factor e^(increase of log M - order x).

    Args:
        transform: The variable L.
        order: The saddle point, or an order close to it, at most 24 binary digits.
        x: The approximate point at which g is wanted.
        log_mass: An estimate of log g(x), at most 0.
        tolerance: The wanted (upper - lower) / g(x); the result may be wider.
        most_nodes: The largest number of nodes if |M| does not decay along the line.
        two_sided: Whether a lower end is wanted too.
        chart: The moments around `order`, if available.
        bounded: Whether the largest value of the variable may be used instead of aliases above x.
        loss: The largest accepted increase of log M - order x for a shorter period.
    """
    digits = math.log(20 / tolerance)
    depth, log_error = max(-log_mass, 0.0) + digits, log_mass + math.log(tolerance / 20)
    outer: tuple[tuple[float, float], ...] = ()
    if not two_sided or (bounded and x + 0.9 * depth / order >= transform.maximum):
        log_m, _, variance = transform.cumulants(order) if chart is None else chart.cumulants
        period = depth / order
    else:
        around = chart or saddle.around(transform, order)
        at, period, beyond = _shortest(around, x, depth, log_error, loss)
        order, log_m, variance = (
            float(row[at]) for row in (around.orders, around.curve.log_m, around.curve.second)
        )
        if math.isfinite(period):
            period = min(period, 64 * depth / order)
            outer = ((beyond, transform.moment_bound(beyond)),)
        else:
            period, outer = depth / order, ((shortened(1.2 * order, bits=24), math.inf),)
    return Placement(
        order=order,
        period=period,
        outer=outer,
        log_m=log_m,
        variance=variance,
        height=math.exp(min(max(log_mass - log_m + order * x, -100.0), 0.0)),
        tolerance=tolerance,
        most_nodes=most_nodes,
        two_sided=two_sided,
        chart=chart,
    )


def _shortest(
    chart: Chart, x: float, depth: float, log_error: float, loss: float
) -> tuple[int, float, float]:
    """Return the index of the order in the chart with the shortest period, that period, and the
    order that bounds the aliases above x.

    Args:
        chart: The moments around the saddle point.
        x: The point at which g is wanted.
        depth: Minus the logarithm of the allowed aliases below x.
        log_error: The logarithm of the allowed aliases above x.
        loss: As in `placement_of`.
    """
    orders, known, center = chart.orders, chart.curve, chart.at
    first = int(np.searchsorted(orders, 0.56 * chart.order))
    inner = orders[first : center + 1]
    with np.errstate(all="ignore"):
        level = known.log_m - orders * x
        chernoff = level + kernel_peak(orders)
        apart = orders - inner[:, None]
        needed = np.where(
            apart > 0.01 * inner[:, None], (chernoff - log_error + 4.0) / apart, np.inf
        )
    needed = np.where(np.isfinite(needed), needed, np.inf)
    best = needed.argmin(axis=1)
    periods = np.maximum(needed[np.arange(len(inner)), best], depth / inner)
    periods = np.where(level[first : center + 1] <= level[center] + loss, periods, np.inf)
    chosen = int(periods.argmin())
    if periods[-1] <= 1.15 * periods[chosen]:
        chosen = len(inner) - 1
    order, period, outer = float(inner[chosen]), float(periods[chosen]), float(orders[best[chosen]])
    whole = float(round(outer))
    # At an integer order some transforms have a short sum. There K, being convex, is at most the
    # interpolation between neighboring orders.
    if whole > max(2.0, 1.01 * order) and math.isfinite(period):
        needed_there = (np.interp(whole, orders, chernoff) - log_error + 4.0) / (whole - order)
        outer = whole if needed_there <= 1.05 * period else outer
    return first + chosen, period, outer


def significant(transform: Transform, order: float, frequency: Reals, variance: float) -> Reals:
    """Return the nodes where cheap bounds on |M(order + iu) / M(order)| are above e^-NEGLIGIBLE. M
    is the moment generating function.

    Args:
        transform: The variable L.
        order: The real part of the line.
        frequency: The imaginary parts of the nodes, equally spaced from 0, shape (n,).
        variance: The variance of the smoothing Gaussian; 0 without smoothing.
    """
    if len(frequency) <= _FEW_NODES:
        return frequency
    # First whole blocks, then single nodes.
    edges = frequency[8] * 1.2 ** np.arange(
        math.ceil(math.log(frequency[-1] / frequency[8]) / math.log(1.2)) + 1
    )
    blocks = transform.log_envelope(order, edges) - variance * edges**2 / 2
    block = np.searchsorted(edges, frequency, side="right") - 1
    frequency = frequency[(block < 0) | ~(blocks[block] <= -NEGLIGIBLE)]
    magnitude = -variance * frequency**2 / 2
    for term in transform.summands:
        for bound in term.log_bounds(order):
            if len(frequency) <= _VERY_FEW:
                break
            magnitude = magnitude + np.minimum(bound(frequency), 0.0)
            keep = ~(magnitude <= -NEGLIGIBLE)
            frequency, magnitude = frequency[keep], magnitude[keep]
    return frequency


# The largest number of steps in the search for the end of a line on which |M| does not tend to 0.
_FARTHEST = 2.0**20 * math.pi
# Candidate ends of the line, in units of the frequency at which a Gaussian would have decayed.
_FURTHER = np.concatenate([[1.0, 1.25, 1.5], 2.0 ** np.arange(1, 18)])
# With more nodes than this, bounds for both orders, and lines for both, cost as much as one after the other.
_FEW, _FEW_TOGETHER = 64, 32


def draw(transform: Transform, placement: Placement) -> Contour:
    """Return the cheapest contour that certifies the hockey-stick divergence g close to the
    placement's x to about its tolerance.
    """
    return _unsmoothed(transform, placement) or mollified(transform, placement)


def draw_closely(transform: Transform, placement: Placement, most_gap: float) -> Contour | None:
    """Return what `draw` returns; None if that would be a smoothed contour whose smoothing adds more
    than the share `most_gap` to g.
    """
    contour = _unsmoothed(transform, placement)
    if contour is None and _mollifier(placement).gap <= most_gap * placement.height:
        contour = mollified(transform, placement)
    return contour


def _unsmoothed(transform: Transform, placement: Placement) -> Contour | None:
    found = (rule(transform, placement) for rule in (periodic, direct, direct_farther))
    return next((contour for contour in found if contour is not None), None)


_MOST_PERIODIC = 1 << 21
"""Frequencies of a lattice that is much finer than its sum is wide: more take seconds and gigabytes."""


def periodic(transform: Transform, placement: Placement) -> Contour | None:
    """Return the contour over one period of a lattice, without the outermost nodes if there are
    many; None without a lattice.
    """
    lattice, order = transform.lattice, placement.order
    if lattice is None:
        return None
    half = max(1, math.ceil(placement.period / lattice.spacing / 2))
    step = 2 * math.pi / lattice.spacing / (2 * half + 1)
    _, first, variance = transform.cumulants(order)
    count, tail = half + 1, 0.0
    reach = 9.5 / math.sqrt(variance)
    if half > 64 and reach < half * step:
        end = (half + 0.5) * step  # half a period, by symmetry
        edges = np.minimum(_increasing(reach, 1.2, end, 60), end)
        # |kernel| <= 2 / (1 - e^(-order spacing)) at each node.
        counts = np.exp(transform.log_envelope(order, edges)[:-1]) * (np.diff(edges) / step + 1)
        tails = (
            np.cumsum(counts[::-1])[::-1]
            * 4
            * lattice.spacing
            / -math.expm1(-order * lattice.spacing)
        )
        enough = np.flatnonzero(tails <= math.exp(-NEGLIGIBLE))
        if len(enough):
            count, tail = min(half + 1, math.ceil(edges[enough[0]] / step)), float(tails[enough[0]])
    if count > _MOST_PERIODIC:
        return None
    frequency = step * np.arange(count)
    line = transform.line(order, frequency)
    # j 2 pi / ((2 half + 1) spacing) is rounded: a relative error of 3 U in a frequency u changes
    # log M by at most 3 U u |log M|'.
    moved = 4 * U * frequency * (abs(first) + 8 * math.sqrt(variance))
    kernel = lattice.spacing * np.where(frequency == 0, 1.0, 2.0) + 0j
    contour = _ended(transform, placement, frequency, Line(line.log, line.error + moved), tail)
    return replace(contour, step=step, kernel=kernel, tail=tail, name="lattice", lattice=lattice)


def direct(transform: Transform, placement: Placement) -> Contour | None:
    """Return the contour up to the frequency where a Gaussian of this variance has decayed; None
    unless that is proved to suffice.
    """
    order, step, error, variance = (
        placement.order,
        placement.step,
        placement.error,
        placement.variance,
    )
    if not transform.limsup(order) <= _FARTHEST * step * error:
        return None
    reach = (
        math.sqrt(2 * (max(-math.log(error), 1.0) + 1.0) / variance) / step
        if variance > 0
        else math.inf
    )
    if not reach < min(placement.most_nodes, 512):
        return None
    count = math.ceil(reach) + 1
    edges = tail_edges(transform, step, count)
    with_reverse = placement.shared_with_reverse(transform) and count <= _FEW
    limit = min(placement.most_nodes, max(4 * count, 64)) * step
    envelope = transform.envelope_with_reverse if with_reverse else transform.log_envelope
    end = _end(envelope(order, edges), edges, placement, limit)
    if end is None:
        return None
    nodes = step * np.arange(math.ceil(end[0] / step))
    together = with_reverse and len(nodes) <= _FEW_TOGETHER
    line = (transform.line_with_reverse if together else transform.line)(order, nodes)
    return _ended(transform, placement, nodes, line, end[1])


def _end(
    log_bound: Reals, edges: Reals, placement: Placement, limit: float
) -> tuple[float, float] | None:
    """Return the first edge beyond which the tail is negligible, and the tail; None if that edge is
    above `limit`.
    """
    tails = block_sums(log_bound, edges, placement.step)[::-1].cumsum()[::-1]
    enough = np.flatnonzero(tails <= 2 * placement.error * math.pi)
    if not len(enough) or edges[enough[0]] > limit:
        return None
    return float(edges[enough[0]]), float(tails[enough[0]])


def tail_edges(transform: Transform, step: float, count: int) -> Reals:
    """Return the frequencies at which the tail of a line with this number of nodes is bounded,
    block by block.
    """
    # Blocks help up to about the spread of one summand, which is the root of `copies` in units of
    # the sum's spread.
    most = max(0.15 * math.sqrt(transform.copies), 8.0)
    return step * np.rint(count * _FURTHER[: int(np.searchsorted(_FURTHER, most)) + 1])


def block_sums(log_bound: Reals, edges: Reals, step: float) -> Reals:
    """Return a bound on step times the sum of |M| / M(order) / u^2 >= |1 / (t (t + 1))| from each
    edge to the next. M is the moment generating function.
    """
    return np.exp(log_bound) * (1 / edges + step / edges**2 - np.append(1 / edges[1:], 0.0))


def direct_farther(transform: Transform, placement: Placement) -> Contour | None:
    """Return the contour up to where |M| is proved to have decayed, without negligible nodes; None
    if that is too far. M is the moment generating function.
    """
    order, step, error, limit = placement.order, placement.step, placement.error, placement.limit
    most = math.pi * max(error, _mollifier(placement).gap / 2)
    if not transform.limsup(order) <= most * limit:
        return None
    edges = _increasing(max(6.0 / math.sqrt(placement.variance), step), 1.6, limit, 24, least=2)
    tails = np.cumsum(block_sums(transform.finest_envelope(order, edges), edges, step)[::-1])[::-1]
    enough = np.flatnonzero((tails <= most) & (edges <= limit))
    if not len(enough):
        return None
    exact = np.flatnonzero(tails[enough] <= math.pi * error)
    last = int(enough[exact[0] if len(exact) else -1])
    nodes = significant(
        transform, order, step * np.arange(math.ceil(float(edges[last]) / step)), 0.0
    )
    tail = float(tails[last]) + math.exp(-NEGLIGIBLE) * (
        step / (order * (order + 1)) + math.pi / (2 * order)
    )
    return _ended(transform, placement, nodes, transform.line(order, nodes), tail)


def _increasing(start: float, ratio: float, end: float, most: int, *, least: int = 1) -> Reals:
    """Return frequencies that grow by `ratio` up to the first at or above `end`; at least `least`
    and at most `most` of them.
    """
    edges = start * ratio ** np.arange(most)
    return edges[: max(least, int(np.searchsorted(edges, end)) + 1)]


def _ended(
    transform: Transform, placement: Placement, frequency: Reals, line: Line, tail: float
) -> Contour:
    """Return a contour that is cut where its tail is bounded by `tail`."""
    log, scale = centered(line.log)
    return Contour(
        order=placement.order,
        step=placement.step,
        frequency=frequency,
        log=log,
        error=line.error,
        scale=scale,
        kernel=simple_kernel(placement.order, frequency),
        tail=2 * tail * (1 + 1e-9) / placement.step,
        outer=placement.outer,
        maximum=transform.maximum,
        name="contour",
    )


@dataclass(frozen=True)
class _Mollifier:
    """The Gaussian Z that is added to L.

    Args:
        deviation: The standard deviation of Z.
        gap: An estimate of what Z adds to g, relative to M(order) e^(-order x); 0 if that is within
            the tolerance.
        error: The part of M(order) e^(-order x) that may be omitted in addition.
    """

    deviation: float
    gap: float
    error: float


def _mollifier(placement: Placement) -> _Mollifier:
    """Return the Gaussian with the wanted gap, or the one of smallest variance that makes the line
    short enough.
    """
    order, error = placement.order, placement.error
    deviation, gap, rest = math.sqrt(placement.tolerance / (order * (order + 1))), 0.0, error
    if _faded(deviation, error) > placement.limit:
        for _ in range(2):  # the error beyond the last node only matters relative to the gap
            deviation = _faded(1.0, rest) / placement.limit
            gap = deviation * deviation * order * (order + 1) * placement.height
            rest = max(error, gap / 200)
    return _Mollifier(deviation, gap, rest)


def _faded(deviation: float, error: float) -> float:
    """Return the frequency beyond which the Gaussian makes the line negligible."""
    return math.sqrt(2 * (max(-math.log(error), 0.0) + 8.0)) / deviation


def mollified(transform: Transform, placement: Placement) -> Contour:
    """Return the contour of L + Z, with the bump kernel that bounds the gap."""
    mollifier, order, step = _mollifier(placement), placement.order, placement.step
    deviation, error = mollifier.deviation, mollifier.error
    count = math.ceil(_faded(deviation, error) / step) + 1
    end, variance = count * step, deviation * deviation
    frequency, line = _screened(transform, order, step * np.arange(count), variance)
    contour = _ended(transform, placement, frequency, line, 0.0)
    lift = variance * order * (order + 1) / 2
    log = (
        contour.log + lift - variance * frequency**2 / 2 + 1j * variance * frequency * (order + 0.5)
    )
    gap = variance * exp_or_inf(variance / 8) * (1 + 8 * U) if deviation <= WIDE else 0.0
    # Nodes beyond the last one: e^lift times the integral of e^(-s^2 u^2 / 2) (1/u^2 + gap), both
    # bounded by means of u >= end.
    decayed = exp_or_inf(lift - variance * end * end / 2)
    tail = 2 * decayed * (1 / (variance * end) + step) * (1 / end**2 + gap) / step
    # Nodes omitted as negligible: |M| <= e^(-NEGLIGIBLE) M(order) each.
    dropped = (
        2
        * exp_or_inf(lift - NEGLIGIBLE)
        * (1 / (order * (order + 1)) + math.pi / (2 * order * step))
    )
    dropped += 2 * exp_or_inf(lift - NEGLIGIBLE) * gap * count
    outer = placement.outer
    if not outer:
        unit = 1 / math.sqrt(transform.cumulants(order)[2] + 1 / order**2)
        orders = (shortened(order + far * unit, bits=24) for far in (1.2, 3.0))
        outer = tuple((beyond, transform.moment_bound(beyond)) for beyond in orders)
    raised = tuple(
        (beyond, bound + variance * beyond * (beyond + 1) / 2 * (1 + 8 * U))
        for beyond, bound in outer
    )
    rounding = 4 * U * (lift + variance * frequency**2 + variance * frequency * (order + 1))
    return replace(
        contour,
        log=log,
        error=line.error + rounding,
        tail=(tail + dropped) * (1 + 1e-9),
        outer=raised,
        maximum=math.inf,
        name="smoothed contour",
        smoothing=deviation,
        bump=gap * np.where(frequency == 0, 1.0, 2.0) + 0j if deviation <= WIDE else None,
    )


def _screened(
    transform: Transform, order: float, frequency: Reals, variance: float
) -> tuple[Reals, Line]:
    """Return the line at the significant nodes: after each summand, nodes whose product is below
    e^(-NEGLIGIBLE) are dropped.
    """
    frequency = significant(transform, order, frequency, variance)
    log = np.zeros(len(frequency), dtype=np.complex128)
    total = np.zeros(len(frequency))
    scale = 0.0
    for term in transform.summands:
        line = term.line(order, frequency)
        scale += float(line.log[0].real)
        log = log + line.log
        total = total + line.error + U * np.abs(log)
        negligible = log.real - scale - variance * frequency**2 / 2 + total < -NEGLIGIBLE - 1
        if negligible.any():
            keep = ~negligible
            frequency, log, total = frequency[keep], log[keep], total[keep]
    return frequency, Line(log, total)


def draw_on(transform: Transform, contour: Contour) -> Contour | None:
    """Return the contour of the reverse order with the moment generating function M of this
    variable, for upper ends accurate to a percent; None if that fails.
    """
    if contour.name != "contour" or contour.frequency[-1] != contour.step * (contour.nodes - 1):
        return None  # nodes that are negligible for the reverse may be significant here
    edges = tail_edges(transform, contour.step, contour.nodes)
    log_bound = transform.envelope_with_reverse(contour.order, edges)
    tail = float(block_sums(log_bound, edges, contour.step).sum())
    tail = 2 * tail * (1 + 1e-9) / contour.step
    if not tail < 1e-3 / (contour.order * (contour.order + 1)):
        return None
    together = contour.nodes <= _FEW_TOGETHER
    line = (transform.line_with_reverse if together else transform.line)(
        contour.order, contour.frequency
    )
    log, scale = centered(line.log)
    return replace(
        contour,
        log=log,
        error=line.error,
        scale=scale,
        tail=tail,
        outer=(),
        maximum=transform.maximum,
    )
