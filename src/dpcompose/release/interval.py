"""The interval of a quotient of two noisy numbers, exact but for the steps of the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import accumulate

from dpcompose.release.noise import DiscreteLaplaceNoise, Noise

SUMMED = 16.0
"""Up to this spread the denominator's noise is summed value by value; beyond it, half a step is a few percent of it."""
SCANNED, HALVINGS = 16, 26


def quotient_interval(
    released: tuple[float, int],
    noises: tuple[Noise, Noise],
    ends: tuple[float, float],
    failure: float,
) -> tuple[float, float]:
    """The quotients t between two ends that what was released does not speak against.

    With noise x on the numerator and y on the denominator, released a and b, the true quotient t has a - t b = x - t y,
    whose distribution is known. The interval holds every t at which |x - t y| is as large as |a - t b| with more than
    the failure probability; so it misses the truth with at most that probability. Where all of that is not one piece,
    what lies between is taken in: found by a scan from both ends.

    Reference: [Fieller1954]
    """
    numerator, denominator = released
    if denominator <= 0:
        return ends
    exceeds = partial(_exceeds, failure * (1 - 1e-6), noises[0], noises[1])

    def plausible(quotient: float) -> bool:
        return exceeds(quotient, abs(numerator - quotient * denominator))

    low, high = ends
    middle = min(max(numerator / denominator, low), high)
    return _edge(plausible, low, middle), _edge(plausible, high, middle)


def _edge(plausible: Callable[[float], bool], far: float, near: float) -> float:
    """The plausible number next to `far`, approached from outside; `near` is plausible."""
    inside, outside = near, far
    for step in range(SCANNED):
        # Finer towards `near`, where intervals end.
        place = near + (far - near) * ((SCANNED - step) / SCANNED) ** 6
        if plausible(place):
            inside = place
            break
        outside = place
    for _ in range(0 if inside == outside else HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if plausible(middle) else (inside, middle)
    return outside


def _exceeds(chance: float, noise: Noise, other: Noise, weight: float, reach: float) -> bool:
    """Whether P(|noise + weight * other noise| >= reach) is above a chance, to steps of the noise; both of one kind."""
    size, laplace = abs(weight), isinstance(noise, DiscreteLaplaceNoise)
    if other.spread > SUMMED:
        return (
            _beyond(
                noise.spread, size * other.spread, max(reach - (1 + size) / 2, 0.0), laplace=laplace
            )
            > chance
        )
    tail, spread, found = _laplace_tail if laplace else _gaussian_tail, noise.spread, 0.0
    for y, mass, rest in _masses(other.spread, laplace):
        # The noise is as likely at y as at -y, so one tail is enough; where both overlap they are 1.
        found += mass * min(tail(spread, reach - size * y) + tail(spread, reach + size * y), 1.0)
        if found > chance or found + rest <= chance:
            break
    return found > chance


def _beyond(spread: float, other: float, within: float, *, laplace: bool) -> float:
    """P(|x + y| >= within) for continuous noise of these spreads."""
    if not laplace:
        return math.erfc(within / math.hypot(spread, other) / math.sqrt(2))
    wide, narrow = sorted((spread, other), reverse=True)
    ratio, place = min(narrow / wide, 1 - 1e-6), within / wide
    inner = ratio * ratio * math.exp(-place * (1 / ratio - 1)) if ratio > 1e-3 else 0.0
    return math.exp(-place) * (1 - inner) / (1 - ratio * ratio)


def _shape(spread: float, place: float, laplace: bool) -> float:
    return math.exp(-place / spread if laplace else -0.5 * (place / spread) ** 2)


@cache
def _masses(spread: float, laplace: bool) -> Sequence[tuple[int, float, float]]:
    """The probabilities of 0, 1, 2, ..., those of two signs together, as far as they matter, and that of all beyond."""
    reach = math.ceil(spread * (30 if laplace else 8)) + 2
    masses = [_shape(spread, y, laplace) * (2 if y else 1) for y in range(reach)]
    whole = math.fsum(masses)
    rests = list(accumulate(reversed(masses)))[::-1]
    return [(y, mass / whole, (rests[y] - mass) / whole) for y, mass in enumerate(masses)]


def _laplace_tail(scale: float, reach: float) -> float:
    """P(x >= reach): q^t / (1 + q) for t >= 0, with q = e^(-1 / scale); else 1 - P(x >= 1 - t)."""
    steps = math.ceil(reach - 1e-9)
    below = math.exp(-abs(steps if steps > 0 else 1 - steps) / scale) / (1 + math.exp(-1 / scale))
    return below if steps > 0 else 1 - below


def _gaussian_tail(sigma: float, reach: float) -> float:
    """P(x >= reach): summed, or the normal's at half a step less."""
    steps = math.ceil(reach - 1e-9)
    if sigma > SUMMED:
        return 0.5 * math.erfc((steps - 0.5) / sigma / math.sqrt(2))
    tails = _tails(sigma)
    if steps <= 0:
        return 1 - (tails[1 - steps] if 1 - steps < len(tails) else 0.0)
    return tails[steps] if steps < len(tails) else 0.0


@cache
def _tails(sigma: float) -> Sequence[float]:
    """P(x >= t) for t = 0, 1, 2, ..."""
    masses = _masses(sigma, False)
    found = [0.0]
    for y, mass, _ in reversed(masses):
        found.append(found[-1] + (mass / 2 if y else mass))
    return found[::-1]
