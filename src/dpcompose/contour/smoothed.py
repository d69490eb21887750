"""The line of L + Z with a small Gaussian Z, which falls whatever L is; the gap between the two is known."""

from __future__ import annotations

import math

import numpy as np

from dpcompose.contour.contour import WIDE, Contour, centered, simple_kernel
from dpcompose.contour.placement import NEGLIGIBLE, audible, terms_of
from dpcompose.contour.saddle import short
from dpcompose.contour.transform import Line, Transform, moment_bound
from dpcompose.numerics.elementary import Complexes, Reals, U, exp_or_inf

# With fewer nodes nothing is gained by roughness, of which that share of the tolerance may be spent.
_MANY, _SHOWS = 256, 0.05
# A line bears no error of this size.
_VAGUE = 100.0


def reach_of(smoothing: float, share: float) -> float:
    """The frequency beyond which the smoothing Gaussian has made the line negligible."""
    return math.sqrt(2 * (max(-math.log(share), 0.0) + 8.0)) / smoothing


def smoothed(
    transform: Transform,
    order: float,
    step: float,
    share: float,
    smoothing: float,
    outer: tuple[tuple[float, float], ...],
) -> Contour:
    """The line of L + Z, Z of standard deviation `smoothing`, and the bump that bounds the gap."""
    count = math.ceil(reach_of(smoothing, share) / step) + 1
    end = count * step
    variance = smoothing * smoothing
    frequency, log, error, dropped = _screened(transform, order, step * np.arange(count), variance, share / step)
    log, scale = centered(log)
    lift = variance * order * (order + 1) / 2
    log = log + lift - variance * frequency**2 / 2 + 1j * variance * frequency * (order + 0.5)
    error = error + 4 * U * (lift + variance * frequency**2 + variance * frequency * (order + 1))
    weight = np.where(frequency == 0, 1.0, 2.0)
    gap = variance * exp_or_inf(variance / 8) * (1 + 8 * U) if smoothing <= WIDE else 0.0
    # Beyond the last node: e^lift times the integral of e^(-s^2 u^2 / 2) (1/u^2 + gap), both below by u >= end.
    gauss = exp_or_inf(lift - variance * end * end / 2)
    tail = 2 * gauss * (1 / (variance * end) + step) * (1 / end**2 + gap) / step
    # Nodes screened out: |M| <= e^(-NEGLIGIBLE) M(order) each.
    lost = 2 * exp_or_inf(lift - dropped) * (1 / (order * (order + 1)) + math.pi / (2 * order * step))
    lost += 2 * exp_or_inf(lift - dropped) * gap * count
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
        simple_kernel(order, frequency),
        gap * weight + 0j if smoothing <= WIDE else None,
        (tail + lost) * (1 + 1e-9),
        raised,
        math.inf,
        None,
        smoothing,
        "smoothed contour",
    )


def _screened(
    transform: Transform, order: float, frequency: Reals, variance: float, share: float
) -> tuple[Reals, Complexes, Reals, float]:
    """The line at the nodes that matter: after each term, those whose product is below e^(-NEGLIGIBLE) are dropped."""
    frequency = audible(transform, order, frequency, variance)
    log = np.zeros(len(frequency), dtype=np.complex128)
    error = np.zeros(len(frequency))
    scale = 0.0
    terms = terms_of(transform)
    for term in terms:
        line = _precise(term, order, frequency, log.real - scale - variance * frequency**2 / 2, share / len(terms))
        scale += float(line.log[0].real)
        log = log + line.log
        error = error + line.error + U * np.abs(log)
        faint = log.real - scale - variance * frequency**2 / 2 + error < -NEGLIGIBLE - 1
        if faint.any():
            keep = ~faint
            frequency, log, error = frequency[keep], log[keep], error[keep]
    return frequency, log, error, NEGLIGIBLE


def _precise(term: Transform, order: float, frequency: Reals, loud: Reals, share: float) -> Line:
    """A term's line, as rough as does not show where the product is no louder than `loud` and the rough line say."""
    offered = getattr(term, "rough_line", None) if len(frequency) > _MANY else None
    rough = offered(order, frequency) if offered is not None else None
    if rough is None:
        return term.line(order, frequency)
    exact = term.line(order, frequency[:1])
    size = np.exp(np.minimum(loud + (rough.log.real - exact.log[0].real), 1.0)) / (order * (order + 1) + frequency**2)
    # However small the node: a sum gives up at a large error of one.
    doubt = np.where(rough.error < _VAGUE, size * np.expm1(rough.error), np.inf)
    ranks = np.argsort(doubt)
    clear = ranks[~(np.cumsum(doubt[ranks]) <= _SHOWS * share)]
    clear = np.sort(np.append(clear, 0)) if 0 not in clear else np.sort(clear)
    line = term.line(order, frequency[clear])
    rough.log[clear], rough.error[clear] = line.log, line.error
    return rough
