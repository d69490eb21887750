"""The lattice of the tests: the loss on a lattice of step h, exponentially tilted, convolved by FFT; no code shared.

Upper end: the (P, Q) mass of each cell is split between its two edges so that both masses stay (this can only
separate the pair), what is above the last edge goes to infinity, what is below the first goes up to it. Lower end:
the mass of a cell is merged into one point of loss log(P/Q) (this can only blur the pair) and lowered to the lattice
start + n h, where the start is chosen so that smooth losses are lowered by O(h^2) only; what is outside the edges is
dropped.

Every rounding is enclosed, u = 2^-53. Masses: moved upward by their error for the upper end, reduced by it for the
lower. Tilted weights: each is good to (16 + 2 order |loss|) u, counted once a step. An FFT of weights that add up to 1
errs at each frequency by at most 8 u log2 n: each weight passes log2 n butterflies, of a few u each. A product of
powers errs by what the logarithms and this error of each factor move, an entry of the inverse FFT by the mean of these
errors. The period: what lies beyond it is bounded by Chernoff on the lattice itself, and can count at most once. Many
copies are summed in stages, each on a coarser lattice: the errors of a sum are those of each of its copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from oracles.cells import ROUNDED, Array, Cells, Listed, Masses, U

POINTS = 1 << 12
_DOUBLED = 2.0 ** np.arange(-30, 61)
_LADDER = np.concatenate([-_DOUBLED[::-1], [0.0], _DOUBLED])
MOST = {1: 200, -1: 20}  # copies on one lattice: the lower end is the coarser one
Parts = Sequence[tuple[Cells, int]]


@dataclass(frozen=True)
class Side:
    """One end: the sum's tilted masses on a lattice, e^scale times too small, and what may be missing or too much.

    Args:
        losses: The lattice, increasing.
        masses: The weights e^(order loss) P[sum = loss] / e^scale.
        each: A bound on the error of each.
        lost: A bound on the tilted weight that is not where it should be.
        scale: log of the whole tilted weight.
        vague: A bound on the relative error of e^scale.
        shift: A bound on the error of the losses.
        outside: The mass at infinity, for the upper end.
    """

    order: float
    losses: Array
    masses: Array
    each: float
    lost: float
    scale: float
    vague: float
    shift: float
    outside: float

    def value(self, epsilon: float, sign: int) -> float:
        """E[(1 - e^(epsilon - L))_+] rounded up or down."""
        epsilon -= sign * self.shift
        gaps = self.losses - epsilon
        kept = gaps > 0
        gaps = gaps[kept]
        kernel = np.exp(-self.order * gaps) * -np.expm1(-gaps)
        most = (
            self.order**self.order / (1 + self.order) ** (1 + self.order)
            if self.order < 100
            else 1.0 / self.order
        )
        doubt = self.each * float(kernel.sum()) + self.lost * most
        total = float(np.dot(self.masses[kept], kernel)) * (
            1 + sign * 64 * U * len(self.losses) ** 0.5
        )
        exponent = self.scale - self.order * epsilon
        if exponent > 690:
            return math.inf if sign > 0 else 0.0
        slack = self.vague + U * (16 + 4 * abs(self.scale) + 8 * self.order * (abs(epsilon) + 1))
        value = math.exp(exponent) * (total + sign * doubt) * (1 + sign * min(slack, 1.0) * 2)
        return min(value + self.outside, 1.0) if sign > 0 else max(value, 0.0)

    def copies(self, times: int, sign: int, spacing: float) -> _Part:
        """The sum as a loss of its own, so many times; its largest mass may be an atom, others a spacing apart."""
        masses = np.maximum(self.masses + sign * self.each, 0.0)
        with np.errstate(divide="ignore"):
            logs = np.log(masses) + self.scale - self.order * self.losses
        kept = logs > -700
        weights = np.exp(np.minimum(logs[kept], 1e-9))  # no probability is above 1
        exponent = abs(self.scale) + self.order * float(np.abs(self.losses).max())
        error = U * (64 + 8 * exponent)
        listed = Listed(
            self.losses[kept], weights, error, spacing, float(self.losses[masses.argmax()])
        )
        outside = self.outside + (len(logs) * 1e-304 if sign > 0 else 0.0)  # what was not kept
        step = float(self.losses[1] - self.losses[0]) if len(self.losses) > 1 else spacing
        return _Part(listed, times, self.lost, self.vague, self.shift, outside, step)


@dataclass(frozen=True)
class _Part:
    """A loss, how often it is there, and if it is a sum itself: the errors of its `Side`, and its lattice's step."""

    cells: Cells
    times: int
    lost: float = 0.0
    vague: float = 0.0
    shift: float = 0.0
    outside: float = 0.0
    step: float = 0.0

    def edge(self, step: float, sign: int) -> float:
        """Where an edge should be: at an atom, which is then not split, or half a cell from it, as if merged there."""
        return self.cells.anchor - self.step / 2 if sign > 0 else self.cells.anchor - step / 2


@dataclass(frozen=True)
class Enclosure:
    """delta of one direction, at any epsilon, from both ends and two ends around the mass at infinity."""

    above: Side
    below: Side
    infinite: tuple[float, float]

    def __call__(self, epsilon: float) -> tuple[float, float]:
        low, high = self.infinite
        lower, upper = self.below.value(epsilon, -1), self.above.value(epsilon, 1)
        return low + (1 - low) * lower * (1 - 8 * U), min(
            high + (1 - high) * upper * (1 + 8 * U), 1.0
        )


def delta(
    epsilon: float, parts: Parts, *, order: float, points: int = POINTS
) -> tuple[float, float]:
    """Two ends around delta(epsilon) of parts without mass at infinity; any `order` > 0 is valid."""
    found = enclosure(parts, order=order, target=1e-12, points=points)
    return (0.0, 1.0) if found is None else found(epsilon)


def enclosure(
    parts: Parts,
    *,
    order: float,
    target: float,
    infinite: tuple[float, float] = (0.0, 0.0),
    points: int = POINTS,
) -> Enclosure | None:
    """Both ends of one direction, or None where the steps are too many or too wide for the lattice.

    Args:
        parts: The finite parts of the losses, normalized, with their counts.
        order: The tilt.
        target: A delta of interest; decides the width only.
        infinite: Two ends around the mass at infinity.
        points: Of the lattice.
    """
    sides = [
        _side([_Part(cells, times) for cells, times in parts], order, target, points, sign)
        for sign in (1, -1)
    ]
    if sides[0] is None or sides[1] is None:
        return None
    return Enclosure(sides[0], sides[1], infinite)


def _side(given: list[_Part], order: float, target: float, points: int, sign: int) -> Side | None:
    """One end of the sum; many copies are first summed on finer lattices, some hundred of them on each."""
    total = sum(part.times for part in given)
    parts: list[_Part] = []
    for part in given:
        stages = math.ceil(math.log(part.times) / math.log(MOST[sign])) if part.times > 1 else 1
        if stages == 1:
            parts.append(part)
            continue
        copies = math.ceil(part.times ** (1 / stages))
        inside = _side(
            [_Part(part.cells, part.times // copies)], order, target / copies, points, sign
        )
        if inside is None or not inside.lost < 1e-3:
            return None
        whole = inside.copies(copies, sign, part.cells.spacing)
        if not whole.cells.above(-math.inf) > 0.5:
            return None  # rounding has eaten it
        parts.append(whole)
        if part.times % copies:
            parts.append(_Part(part.cells, part.times % copies))
    ends = [_ends(part.cells, order, target, total) for part in parts]
    widest = max(high - low for low, high in ends)
    variance = room = 0.0
    for part, each in zip(parts, ends, strict=True):
        variance += part.times * _variance(part.cells, order, each)
        room += part.times * (each[1] - each[0])
    reach = min(8 * math.sqrt(variance) + widest, room)
    step = _aligned(2 * reach / (points - 16), parts)
    count = sum(part.times for part in parts)
    if not (0 < widest / step < 4 * points and count * (step * order) ** 2 < 20):
        return None
    grids = [
        _Grid.of(part.cells, each, step, part.edge(step, sign))
        for part, each in zip(parts, ends, strict=True)
    ]
    rows = [grid.split() if sign > 0 else grid.merged(order) for grid in grids]
    side = _composed(rows, parts, order, step, points)
    if sign < 0:
        return side
    outside = sum(
        part.times * (grid.outside + part.outside) for grid, part in zip(grids, parts, strict=True)
    )
    return replace(side, outside=float(outside) * (1 + 1e-12))


@lru_cache(maxsize=256)
def _ends(cells: Cells, order: float, target: float, count: int) -> tuple[float, float]:
    """Between which losses to look: the rest is negligible, above untilted, as it goes to infinity, below tilted."""

    def damped(losses: Array) -> Array:
        return cells.roughly(-losses)[1] * np.exp(np.minimum(-order * losses, 600.0))

    high = _search(lambda losses: cells.roughly(losses)[0], 1e-5 * target / count)
    low = -_search(damped, 1e-10 / count)
    return min(low, high), max(low, high)


def _search(falling: Callable[[Array], Array], tiny: float) -> float:
    """About the least x with falling(x) <= tiny, a little above it; 2^60 if there is none below."""
    points = _LADDER
    for _ in range(3):
        found = int(np.argmax(np.append(falling(points[:-1]) <= tiny, True)))
        points = np.linspace(points[max(found - 1, 0)], points[found], 65)
    return float(points[-1])


@lru_cache(maxsize=256)
def _variance(cells: Cells, order: float, ends: tuple[float, float]) -> float:
    """That of the tilted loss, roughly."""
    return _Grid.of(cells, ends, max(ends[1] - ends[0], 1e-300) / 1000, 0.0).spread(order)


def _aligned(step: float, parts: list[_Part]) -> float:
    """A step near the given one that is a multiple of a finer lattice's, or a binary fraction of a common spacing."""
    finest = max(part.step for part in parts)
    spacing = parts[0].cells.spacing if len({part.cells.spacing for part in parts}) == 1 else 0.0
    if finest > 0:
        ratio = math.ceil(step / finest)
        return finest * (2 ** math.ceil(math.log2(ratio)) if spacing else ratio)
    return spacing / 2 ** math.floor(math.log2(spacing / step)) if spacing >= step else step


@dataclass(frozen=True)
class _Grid:
    """The cells of one loss: the first edge, the masses, what is below and above."""

    start: float
    step: float
    masses: Masses
    under: float
    outside: float

    @classmethod
    def of(cls, cells: Cells, ends: tuple[float, float], step: float, anchor: float) -> _Grid:
        low, high = math.floor((ends[0] - anchor) / step), math.floor((ends[1] - anchor) / step) + 2
        start = anchor + step * low
        edges = start + step * np.arange(high - low + 1)
        under, outside = cells.below(float(edges[0])), cells.above(float(edges[-1]))
        return cls(start, step, cells.masses(edges), under * (1 + ROUNDED), outside * (1 + ROUNDED))

    def spread(self, order: float) -> float:
        """The variance under the tilt, roughly."""
        if not self.masses[0].any():
            return self.step**2 / 12
        losses = self.start + self.step * np.arange(len(self.masses[0]))
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses[0]) + order * losses
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        mean = float(np.dot(weights, losses))
        return float(np.dot(weights, (losses - mean) ** 2)) + self.step**2 / 12

    def split(self) -> tuple[float, Array]:
        """The dominating masses on the edges."""
        p, q, p_error, q_error = self.masses
        p, q = p + p_error, np.maximum(q - q_error, 0.0)
        edges = self.start + self.step * np.arange(len(p))
        with np.errstate(over="ignore", invalid="ignore"):
            kept = q * np.exp(edges) * (1 - U * (8 + 8 * np.abs(edges)))
        up = (p - np.where(q > 0, kept, 0.0)) / -math.expm1(-self.step) + p * (32 * U / self.step)
        up = np.clip(up, 0.0, p)
        masses = np.zeros(len(p) + 1)
        masses[1:] += up
        masses[:-1] += p - up
        masses[0] += self.under
        return self.start, masses * (1 + 8 * U)

    def merged(self, order: float) -> tuple[float, Array]:
        """The dominated masses, each at least at the lattice point of its cell: cells that are vague are dropped."""
        p, q, p_error, q_error = self.masses
        edges = self.start + self.step * np.arange(len(p))
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = np.log(np.maximum(p - p_error, 0.0)) - np.log(q + q_error)
            weights = np.log(p) + order * edges
            clear = (p_error / p + q_error / q <= 0.02 * self.step) & (weights > weights.max() - 25)
            losses -= U * (16 + 16 * np.abs(losses))
        if not clear.any():
            return self.start, np.zeros(len(p))
        offset = min(float((losses[clear] - edges[clear]).min()), self.step)
        return self.start + offset, np.where(clear, np.maximum(p - p_error, 0.0), 0.0)


def _composed(
    rows: list[tuple[float, Array]], parts: list[_Part], order: float, step: float, points: int
) -> Side:
    """The sum of all of them, on a circle of so many points."""
    scale = vague = shift = before = origin = mean = variance = 0.0
    tilted: list[tuple[Array, Array, int]] = []
    folded = np.zeros((len(parts), points))
    for (start, masses), part, circle in zip(rows, parts, folded, strict=True):
        times = part.times
        losses = start + step * np.arange(len(masses))
        with np.errstate(divide="ignore"):
            logs = np.log(masses) + order * losses
        top = float(logs.max())
        if top == -math.inf:
            return Side(order, np.zeros(1), np.zeros(1), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        weights = np.exp(logs - top)
        total = float(weights.sum())
        weights /= total
        first = float(np.dot(weights, losses))
        center = round((first - start) / step)
        circle[:] = np.bincount((np.arange(len(masses)) - center) % points, weights, points)
        scale += times * (top + math.log(total))
        largest = float(np.abs(losses).max())
        before += times * math.log1p(part.lost)
        vague += times * (
            part.vague + U * (32 + 4 * order * largest + 4 * abs(top) + 4 * abs(math.log(total)))
        )
        shift += times * (part.shift + 16 * U * largest)
        origin += times * (start + step * center)
        mean += times * first
        variance += times * float(np.dot(weights, (losses - first) ** 2))
        some = weights > 0
        tilted.append((weights[some], losses[some] - first, times))
    sums, each = _convolved(folded, np.array([float(part.times) for part in parts]))
    middle = round((mean - origin) / step)
    index = np.arange(middle - points // 2, middle + points // 2)
    room = step * (points // 2 - 2) - abs(origin + step * middle - mean)
    lost = 2 * _beyond(tilted, room, math.sqrt(variance) + step) + math.expm1(min(before, 700.0))
    vague = math.expm1(vague) if vague < 1 else math.inf
    shift += 8 * U * (abs(origin) + step * points)
    return Side(
        order, origin + step * index, sums[index % points], each, lost, scale, vague, shift, 0.0
    )


def _convolved(folded: Array, times: Array) -> tuple[Array, float]:
    """The weights of the sum on the circle, from those of the parts, shape (parts, points); the error of each."""
    points = folded.shape[1]
    error = 8 * U * math.log2(points)
    spectra = np.fft.rfft(folded)
    sizes = np.abs(spectra)
    loud = times @ np.log(sizes + error)
    kept = loud > -700.0  # of what is no louder only that is known
    spectra, sizes, loud = spectra[:, kept], sizes[:, kept], loud[kept]
    with np.errstate(divide="ignore"):
        logarithms = np.where(sizes > 0, np.log(spectra), -1e3)
        spread = times @ (np.log(sizes + error) - np.log(np.maximum(sizes - error, 1e-300)))
    spread += U * (8 + len(times)) * (times @ np.minimum(np.abs(logarithms), 1e3))
    product = np.zeros(points // 2 + 1, complex)
    with np.errstate(under="ignore"):
        product[kept] = np.exp(times @ logarithms)
        errors = np.exp(loud) * -np.expm1(-np.minimum(spread + 16 * U, 700.0))
    missed = float(errors.sum()) + 1e-303 * points
    each = (2 * missed + 2 * error * float(np.abs(product).sum())) / points
    return np.fft.irfft(product, points), each


def _beyond(tilted: list[tuple[Array, Array, int]], room: float, deviation: float) -> float:
    """Chernoff's bound on the tilted weight of sums that are farther than `room` from their mean, both sides."""
    most = sum(times * float(np.abs(gaps).max()) for _, gaps, times in tilted)
    if most <= room:
        return 0.0
    thetas = np.array([35 / room, 2 / deviation, 4.5 / deviation, 8 / deviation])
    logs = np.zeros((2, len(thetas)))
    with np.errstate(over="ignore"):
        for weights, gaps, times in tilted:
            shifts = thetas[:, None] * gaps
            logs += times * np.log([np.exp(shifts) @ weights, np.exp(-shifts) @ weights])
        bounds = logs * (1 + 1e-9) + 1e-9 - thetas * room
    return min(float(np.exp(np.minimum(bounds.min(axis=1), 0.0)).sum()), 1.0)
