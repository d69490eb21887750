"""A line along which |M| falls by itself: it is cut where a bound on the rest is small."""

from __future__ import annotations

import math

import numpy as np

from dpcompose.contour.contour import Contour, centered, simple_kernel
from dpcompose.contour.placement import NEGLIGIBLE, audible
from dpcompose.contour.transform import Line, Transform, line_together, near_normal, survey
from dpcompose.numerics.elementary import Reals

# Where the tail of a line may be bounded, from the frequency at which a Gaussian would have decayed.
_FURTHER = np.concatenate([[1.0, 1.25, 1.5], 2.0 ** np.arange(1, 18)])
# With more nodes than that a survey of both directions is no cheaper than two.
_FEW = 64


def decaying_at_once(
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
    edges, nodes, together = beyond(transform, step, count), step * np.arange(count), together and count <= _FEW
    most = min(budget, max(4 * count, 64)) * step
    # A survey's line to a thousandth is enough where no lower end is wanted.
    log_bound = near_normal(transform, order, edges, together=together) if two_sided else None
    if log_bound is not None and (end := _end(log_bound, edges, step, share, most)):
        nodes = nodes if end[0] == edges[0] else step * np.arange(math.ceil(end[0] / step))
        line = line_together(transform, order, nodes) if together else transform.line(order, nodes)
        return _ended(transform, order, step, nodes, line, end[1], outer)
    seen = nodes if together or not two_sided else nodes[:1]
    line, log_bound = survey(transform, order, seen, edges, together=together)
    end = _end(log_bound, edges, step, share, most)
    if end is None:
        return None
    if end[0] > edges[0]:
        nodes = step * np.arange(math.ceil(end[0] / step))
    if end[0] > edges[0] or two_sided or line is None:
        line = transform.line(order, nodes)
    return _ended(transform, order, step, nodes, line, end[1], outer)


def _end(log_bound: Reals, edges: Reals, step: float, share: float, most: float) -> tuple[float, float] | None:
    """The first edge beyond which little is left, and how much; None if it is above `most`."""
    tails = blocks(log_bound, edges, step)[::-1].cumsum()[::-1]
    enough = np.flatnonzero(tails <= 2 * share * math.pi)
    if not len(enough) or edges[enough[0]] > most:
        return None
    return float(edges[enough[0]]), float(tails[enough[0]])


def decaying(
    transform: Transform, order: float, step: float, edge: float, tail: float, outer: tuple[tuple[float, float], ...]
) -> Contour:
    """The line up to `edge`, beyond which `tail` bounds the rest, without the nodes that cannot matter."""
    nodes = audible(transform, order, step * np.arange(math.ceil(edge / step)), 0.0)
    tail += math.exp(-NEGLIGIBLE) * (step / (order * (order + 1)) + math.pi / (2 * order))
    return _ended(transform, order, step, nodes, transform.line(order, nodes), tail, outer)


def beyond(transform: Transform, step: float, count: int) -> Reals:
    """Where the tail of a line of so many nodes is bounded, block by block."""
    # Blocks are of use up to about the spread of one of the summands, in units of which theirs is the root of copies.
    most = max(0.15 * math.sqrt(getattr(transform, "copies", math.inf)), 8.0)
    return step * np.rint(count * _FURTHER[: int(np.searchsorted(_FURTHER, most)) + 1])


def blocks(log_bound: Reals, edges: Reals, step: float) -> Reals:
    """What the nodes between each edge and the next can add up to, times the step: |1 / (t (t + 1))| <= 1 / u^2."""
    return np.exp(log_bound) * (1 / edges + step / edges**2 - np.append(1 / edges[1:], 0.0))


def tails_of(transform: Transform, order: float, step: float, variance: float, budget: int) -> tuple[Reals, Reals]:
    """Frequencies, and for each a bound on the nodes from there on, in units of M(order) / step, one side."""
    start = max(6.0 / math.sqrt(variance), step)
    edges = start * 1.6 ** np.arange(24)
    edges = edges[: max(2, int(np.searchsorted(edges, budget * step)) + 1)]
    finest = getattr(transform, "finest_envelope", transform.log_envelope)
    return edges, np.cumsum(blocks(finest(order, edges), edges, step)[::-1])[::-1]


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
    kernel = simple_kernel(order, frequency)
    log, scale = centered(line.log)
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
