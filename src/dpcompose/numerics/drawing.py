"""Where to draw the line of `contour`, and its nodes.

Three kernels make one engine:
  decaying   |M| falls along the line by itself;
  lattice    L lives on a lattice: the line is a circle and the sum is finite;
  smoothed   L + Z with a small Gaussian Z, E e^(-Z) = 1: an upper bound for g because (1 - e^(-y))_+ is convex in
             e^(-y), and the gap is at most s^2 e^(-y/2) n_s(y), whose transform is known: two-sided for every L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcompose.numerics import saddle
from dpcompose.numerics.contour import Contour, kernel_peak
from dpcompose.numerics.elementary import Complexes, Reals, U
from dpcompose.numerics.saddle import Chart, short
from dpcompose.numerics.transform import Lattice, Line, Sum, Transform, curve, facing, moment_bound, survey

_NEGLIGIBLE = 52.0
# So many nodes are not worth another look.
_FEW = 24
# Where the tail of a line may be bounded, from the frequency at which a Gaussian would have decayed.
_FURTHER = np.concatenate([[1.0, 1.25, 1.5], 2.0 ** np.arange(1, 11)])


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
        _placed(transform, order, x, quiet, log_mass + math.log(tolerance / 20), chart)
        if two_sided
        else _Place(order, quiet / order, (), *_cumulants(transform, order, chart)[::2])
    )
    order, period, outer = place.order, place.period, place.outer
    lattice = transform.lattice
    if lattice is not None:
        return _lattice(transform, lattice, order, period, outer)
    step = short(2 * math.pi / period, bits=24)
    relative = math.exp(min(max(log_mass - place.log_m + order * x, -100.0), 0.0))
    share = tolerance / 40 * relative
    together = two_sided and chart is not None and _facing_alike(transform, chart, order)
    simple = _decaying_at_once(
        transform, order, step, place.variance, share, budget, outer, two_sided=two_sided, together=together
    )
    if simple is not None:
        return simple
    edges, tails = _tails(transform, order, step, place.variance, budget)
    enough = np.flatnonzero(tails <= share * math.pi)
    if len(enough) and edges[enough[0]] <= budget * step:
        return _decaying(transform, order, step, float(edges[enough[0]]), float(tails[enough[0]]), outer)
    smoothing = math.sqrt(tolerance / (order * (order + 1)))
    if _reach(smoothing, share) > budget * step:
        smoothing = _reach(1.0, share) / (budget * step)
        within = np.flatnonzero(edges <= budget * step)
        last = int(within[-1]) if len(within) else 0
        gap = smoothing * smoothing * order * (order + 1)
        if len(within) and 2 * tails[last] / math.pi < gap * relative:
            return _decaying(transform, order, step, float(edges[last]), float(tails[last]), outer)
    return _smoothed(transform, order, step, share, smoothing, outer)


@dataclass(frozen=True)
class _Place:
    """A line: its order, its period, orders beyond it with bounds on log M there; K and K'' on it."""

    order: float
    period: float
    outer: tuple[tuple[float, float], ...]
    log_m: float
    variance: float


def _placed(
    transform: Transform, order: float, x: float, quiet: float, log_share: float, chart: Chart | None
) -> _Place:
    """Where to draw the line, its period, and the outer order that keeps the aliases above x below e^log_share.

    Next to where M explodes those aliases force a long period; a line a little below the saddle point needs a shorter
    one. Any order is valid: one below the saddle point costs digits, e^(the rise of log M - order x), of which two are
    allowed.
    """
    if x + 0.9 * quiet / order >= transform.maximum:
        return _Place(order, quiet / order, (), *_cumulants(transform, order, chart)[::2])
    chart = chart or saddle.around(transform, order)
    orders, known, center = chart.orders, chart.curve, chart.at
    first = int(np.searchsorted(orders, 0.56 * order))
    inner = orders[first : center + 1]
    with np.errstate(all="ignore"):
        level = known.log_m - orders * x
        chernoff = level + kernel_peak(orders)
        apart = orders - inner[:, None]
        needed = np.where(apart > 0.01 * inner[:, None], (chernoff - log_share + 4.0) / apart, np.inf)
    needed = np.where(np.isfinite(needed), needed, np.inf)
    best = needed.argmin(axis=1)
    periods = np.maximum(needed[np.arange(len(inner)), best], quiet / inner)
    periods = np.where(level[first : center + 1] <= level[center] + 3.0, periods, np.inf)
    place = int(periods.argmin())
    if periods[-1] <= 1.15 * periods[place]:
        place = len(inner) - 1
    kept, period = float(inner[place]), float(periods[place])
    log_m, variance = float(known.log_m[first + place]), float(known.second[first + place])
    if not math.isfinite(period):
        return _Place(kept, quiet / kept, ((short(1.2 * kept, bits=24), math.inf),), log_m, variance)
    outer = float(orders[best[place]])
    whole = float(round(outer))
    # K is convex: at a whole order, where some transforms know a short sum, it is below the line through two others.
    if (
        whole > max(2.0, 1.01 * kept)
        and (np.interp(whole, orders, chernoff) - log_share + 4.0) / (whole - kept) <= 1.05 * period
    ):
        outer = whole
    period = min(period, 64 * quiet / kept)
    return _Place(kept, period, ((outer, moment_bound(transform, outer)),), log_m, variance)


def _cumulants(transform: Transform, order: float, chart: Chart | None) -> tuple[float, float, float]:
    return transform.cumulants(order) if chart is None else chart.cumulants


def _exp(x: float) -> float:
    """e^x, infinite where that overflows: for bounds only."""
    return math.exp(x) if x < 700 else math.inf


# ----------------------------------------------------------------------------------------------------------- decaying


def _decaying_at_once(
    transform: Transform,
    order: float,
    step: float,
    variance: float,
    share: float,
    budget: int,
    outer: tuple[tuple[float, float], ...],
    *,
    two_sided: bool,
    together: bool,
) -> Contour | None:
    """The line up to where a Gaussian of this variance would have decayed, if that is proved to be enough."""
    reach = math.sqrt(2 * (max(-math.log(share), 1.0) + 1.0) / variance) / step if variance > 0 else math.inf
    if not reach < min(budget, 512):
        return None
    count = math.ceil(reach) + 1
    edges, nodes = _beyond(transform, step, count), step * np.arange(count)
    line, log_bound = survey(transform, order, nodes, edges, together=together)
    tails = _blocks(log_bound, edges, step)[::-1].cumsum()[::-1]
    enough = np.flatnonzero(tails <= 2 * share * math.pi)
    if not len(enough) or edges[enough[0]] > min(budget, max(4 * count, 64)) * step:
        return None
    if enough[0] > 0:
        nodes = step * np.arange(math.ceil(edges[enough[0]] / step))
    if enough[0] > 0 or two_sided or line is None:
        line = transform.line(order, nodes)
    return _ended(transform, order, step, nodes, line, float(tails[enough[0]]), outer)


def _facing_alike(transform: Transform, chart: Chart, order: float) -> bool:
    """Whether what faces the transform is so much like it that one moment will not tell which has the larger g."""
    other = facing(transform)
    if other is None:
        return False
    at = min(int(np.searchsorted(chart.orders, order)), len(chart.orders) - 1)
    return float(curve(other, chart.orders).log_m[at] - chart.curve.log_m[at]) > -1.8


@dataclass(frozen=True)
class _Seen:
    """What one table of moments says of g at a value, for planning.

    Args:
        chart: The orders, with the one of the least e^(-order x) M(order) as the center.
        level: log of that at each order, with the largest value of the kernel, shape (n,).
    """

    chart: Chart
    level: Reals

    @property
    def order(self) -> float:
        """The best order."""
        return self.chart.order

    @property
    def chernoff(self) -> float:
        """About log of the bound by its moment."""
        return float(self.level[self.chart.at])

    def serves(self, order: float) -> bool:
        """Whether a line through this order loses little."""
        near = min(int(np.searchsorted(self.chart.orders, order)), len(self.level) - 1)
        return bool(self.level[near] <= self.chernoff + 2)


def beside_chart(transform: Transform, chart: Chart, x: float) -> _Seen:
    """The moments of a transform at the orders of another's chart."""
    known = curve(transform, chart.orders)
    level = known.log_m - chart.orders * x + kernel_peak(chart.orders)
    level = np.where(np.isnan(level), np.inf, level)
    return _Seen(Chart(chart.orders, known, int(level.argmin())), level)


def draw_beside(transform: Transform, contour: Contour) -> Contour | None:
    """The nodes of another variable's line for this one, good for upper ends to a percent; None if that fails."""
    if contour.name != "contour":
        return None
    edges = _beyond(transform, contour.step, contour.nodes)
    line, log_bound = survey(transform, contour.order, contour.frequency, edges, together=True)
    tail = float(_blocks(log_bound, edges, contour.step).sum())
    if line is None:
        line = transform.line(contour.order, contour.frequency)
    tail = 2 * tail * (1 + 1e-9) / contour.step
    if not tail < 1e-3 / (contour.order * (contour.order + 1)):
        return None
    log, scale = _centered(line.log)
    return replace(contour, log=log, error=line.error, scale=scale, tail=tail, outer=(), maximum=transform.maximum)


def _beyond(transform: Transform, step: float, count: int) -> Reals:
    """Where the tail of a line of so many nodes is bounded, block by block."""
    # Blocks are of use up to about the spread of one of the summands, in units of which theirs is the root of copies.
    most = max(0.15 * math.sqrt(getattr(transform, "copies", math.inf)), 8.0)
    return step * np.rint(count * _FURTHER[: int(np.searchsorted(_FURTHER, most)) + 1])


def _blocks(log_bound: Reals, edges: Reals, step: float) -> Reals:
    """What the nodes between each edge and the next can add up to, times the step: |1 / (t (t + 1))| <= 1 / u^2."""
    return np.exp(log_bound) * (1 / edges + step / edges**2 - np.append(1 / edges[1:], 0.0))


def _tails(transform: Transform, order: float, step: float, variance: float, budget: int) -> tuple[Reals, Reals]:
    """Frequencies, and for each a bound on the nodes from there on, in units of M(order) / step, one side."""
    start = max(6.0 / math.sqrt(variance), step)
    edges = start * 1.6 ** np.arange(24)
    edges = edges[: max(2, int(np.searchsorted(edges, budget * step)) + 1)]
    finest = getattr(transform, "finest_envelope", transform.log_envelope)
    return edges, np.cumsum(_blocks(finest(order, edges), edges, step)[::-1])[::-1]


def _decaying(
    transform: Transform, order: float, step: float, edge: float, tail: float, outer: tuple[tuple[float, float], ...]
) -> Contour:
    nodes = _audible(transform, order, step * np.arange(math.ceil(edge / step)), 0.0)
    tail += math.exp(-_NEGLIGIBLE) * (step / (order * (order + 1)) + math.pi / (2 * order))
    return _ended(transform, order, step, nodes, transform.line(order, nodes), tail, outer)


def _ended(
    transform: Transform,
    order: float,
    step: float,
    frequency: Reals,
    line: Line,
    tail: float,
    outer: tuple[tuple[float, float], ...],
) -> Contour:
    """A line that is cut where a bound on the rest is known."""
    kernel = _simple_kernel(order, frequency)
    log, scale = _centered(line.log)
    return Contour(
        order,
        step,
        frequency,
        log,
        line.error,
        scale,
        kernel,
        None,
        2 * tail * (1 + 1e-9) / step,
        outer,
        transform.maximum,
        None,
        0.0,
        "contour",
    )


def _simple_kernel(order: float, frequency: Reals) -> Complexes:
    """2 / (t (t + 1)), halved at frequency 0."""
    line = order + 1j * frequency
    weight = np.where(frequency == 0, 1.0, 2.0)
    return weight / (line * (line + 1))


def _centered(log: Complexes) -> tuple[Complexes, float]:
    scale = float(log[0].real)
    return log - scale, scale


# ------------------------------------------------------------------------------------------------------------ lattice


def _lattice(
    transform: Transform, lattice: Lattice, order: float, period: float, outer: tuple[tuple[float, float], ...]
) -> Contour:
    half = max(1, math.ceil(period / lattice.spacing / 2))
    step = 2 * math.pi / lattice.spacing / (2 * half + 1)
    _, _, variance = transform.cumulants(order)
    kept, tail = half + 1, 0.0
    reach = 9.5 / math.sqrt(variance)
    if half > 64 and reach < half * step:
        kept, tail = _lattice_tail(transform, lattice, order, step, half, reach)
    frequency = step * np.arange(kept)
    line = transform.line(order, frequency)
    log, scale = _centered(line.log)
    # j 2 pi / ((2 half + 1) spacing) is rounded: a relative 3 U of a frequency moves log M by at most 3 U u |log M|'.
    _, first, _ = transform.cumulants(order)
    shaken = 4 * U * frequency * (abs(first) + 8 * math.sqrt(variance))
    kernel = lattice.spacing * np.where(frequency == 0, 1.0, 2.0) + 0j
    return Contour(
        order,
        step,
        frequency,
        log,
        line.error + shaken,
        scale,
        kernel,
        None,
        tail,
        outer,
        transform.maximum,
        lattice,
        0.0,
        "lattice",
    )


def _lattice_tail(
    transform: Transform, lattice: Lattice, order: float, step: float, half: int, reach: float
) -> tuple[int, float]:
    """How many of the nodes 0..half to keep, and a bound on the rest: |kernel| <= 2 / (1 - e^(-order spacing)) each."""
    end = (half + 1) * step
    edges = np.minimum(reach * 1.2 ** np.arange(60), end)
    edges = edges[: int(np.searchsorted(edges, end)) + 1]
    log_bound = transform.log_envelope(order, edges)[:-1]
    counts = np.diff(edges) / step + 1
    rest = (
        np.cumsum((np.exp(log_bound) * counts)[::-1])[::-1]
        * 4
        * lattice.spacing
        / -math.expm1(-order * lattice.spacing)
    )
    enough = np.flatnonzero(rest <= math.exp(-_NEGLIGIBLE))
    if not len(enough):
        return half + 1, 0.0
    first = int(enough[0])
    return min(half + 1, math.ceil(edges[first] / step)), float(rest[first])


# ----------------------------------------------------------------------------------------------------------- smoothed


def _reach(smoothing: float, share: float) -> float:
    """The frequency beyond which the smoothing Gaussian has made the line negligible."""
    return math.sqrt(2 * (max(-math.log(share), 0.0) + 8.0)) / smoothing


def _smoothed(
    transform: Transform,
    order: float,
    step: float,
    share: float,
    smoothing: float,
    outer: tuple[tuple[float, float], ...],
) -> Contour:
    count = math.ceil(_reach(smoothing, share) / step) + 1
    end = count * step
    variance = smoothing * smoothing
    frequency, log, error, dropped = _screened(transform, order, step * np.arange(count), variance)
    log, scale = _centered(log)
    lift = variance * order * (order + 1) / 2
    log = log + lift - variance * frequency**2 / 2 + 1j * variance * frequency * (order + 0.5)
    error = error + 4 * U * (lift + variance * frequency**2 + variance * frequency * (order + 1))
    weight = np.where(frequency == 0, 1.0, 2.0)
    gap = variance * _exp(variance / 8) * (1 + 8 * U)
    # Beyond the last node: e^lift times the integral of e^(-s^2 u^2 / 2) (1/u^2 + gap), both below by u >= end.
    gauss = _exp(lift - variance * end * end / 2)
    tail = 2 * gauss * (1 / (variance * end) + step) * (1 / end**2 + gap) / step
    # Nodes screened out: |M| <= e^(-NEGLIGIBLE) M(order) each.
    lost = 2 * _exp(lift - dropped) * (1 / (order * (order + 1)) + math.pi / (2 * order * step))
    lost += 2 * _exp(lift - dropped) * gap * count
    if not outer:
        unit = 1 / math.sqrt(transform.cumulants(order)[2] + 1 / order**2)
        outer = tuple(
            (beyond, moment_bound(transform, beyond))
            for beyond in (short(order + far * unit, bits=24) for far in (1.2, 3.0))
        )
    raised = tuple((beyond, bound + variance * beyond * (beyond + 1) / 2 * (1 + 8 * U)) for beyond, bound in outer)
    return Contour(
        order,
        step,
        frequency,
        log,
        error,
        scale,
        _simple_kernel(order, frequency),
        gap * weight + 0j,
        (tail + lost) * (1 + 1e-9),
        raised,
        math.inf,
        None,
        smoothing,
        "smoothed contour",
    )


def _audible(transform: Transform, order: float, frequency: Reals, variance: float) -> Reals:
    """The nodes that cheap bounds on |M(order + iu) / M(order)| leave above e^(-NEGLIGIBLE)."""
    if len(frequency) <= 64:
        return frequency
    # First whole blocks, then node by node.
    edges = frequency[8] * 1.2 ** np.arange(math.ceil(math.log(frequency[-1] / frequency[8]) / math.log(1.2)) + 1)
    blocks = transform.log_envelope(order, edges) - variance * edges**2 / 2
    block = np.searchsorted(edges, frequency, side="right") - 1
    frequency = frequency[(block < 0) | (blocks[block] > -_NEGLIGIBLE)]
    loud = -variance * frequency**2 / 2
    for term in _terms(transform):
        bounds = getattr(term, "log_bounds", None)
        for bound in bounds(order) if bounds is not None else ():
            if len(frequency) <= _FEW:
                break
            loud = loud + np.minimum(bound(frequency), 0.0)
            keep = loud > -_NEGLIGIBLE
            frequency, loud = frequency[keep], loud[keep]
    return frequency


def _terms(transform: Transform) -> tuple[Transform, ...]:
    return transform.terms if isinstance(transform, Sum) else (transform,)


def _screened(
    transform: Transform, order: float, frequency: Reals, variance: float
) -> tuple[Reals, Complexes, Reals, float]:
    """The line at the nodes that matter: after each term, those whose product is below e^(-NEGLIGIBLE) are dropped."""
    frequency = _audible(transform, order, frequency, variance)
    log = np.zeros(len(frequency), dtype=np.complex128)
    error = np.zeros(len(frequency))
    scale = 0.0
    for term in _terms(transform):
        line = term.line(order, frequency)
        scale += float(line.log[0].real)
        log = log + line.log
        error = error + line.error + U * np.abs(log)
        faint = log.real - scale - variance * frequency**2 / 2 + error < -_NEGLIGIBLE - 1
        if faint.any():
            keep = ~faint
            frequency, log, error = frequency[keep], log[keep], error[keep]
    return frequency, log, error, _NEGLIGIBLE
