"""How fast |M| of sampled Gaussian losses falls along a line, and the line itself where it is far from the real axis.

**Nearly normal.** Where the tilted losses are nearly normal, two moments and one shifted path bound |M|.

Let L be a loss under the measure n r^p / M, phi its characteristic function and L' another copy. 1 - cos v is at least
v^2 / 2 - v^4 / 24, so that with v = Var L and f = E (L - L')^4
  |phi(u)|^2 <= 1 - u^2 v + u^4 f / 24,   which falls up to u^2 = 12 v / f.
From there on, over the path Im x = theta s^2 and with a(x) = arg r(x + i theta s^2) >= 0,
  |phi(u)| <= e^(theta^2 s^2 / 2) cos(theta / 2)^min(p, 0) E e^(-u a(x)),   which falls with u.

This path is for speed: without it the benchmark row "DP-SGD sigma 4, rate 0.1, 10^4 steps" takes 1.3 times as long.
Both bounds come from sums over a grid. In the strip |Im x| <= angle s^2 the integrand n r^p is at most
e^(angle^2 s^2 / 2) cos(angle / 2)^min(p, 0) times itself on the real line, log r moves by at most 3.66, and a keeps its
sign as long as theta + angle < pi / 2. Their errors are relative to M, so that nothing is assumed about M.

**Shifted.** Elsewhere the transform is an integral over Im x = theta s^2, with as many points at every frequency. Rows
as in `sampled_gaussian_batch`: noise, rate, sign, power and ends of the range have shape (m, 1).

Reference: [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpcompose.contour import ArrayRows, Line, logarithm_of_excess
from dpcompose.loss.sampled_gaussian_grid import (
    Grid,
    on_shifted,
    positions,
    shortened,
    trapezoid_error,
)
from dpcompose.numerics import (
    ULPS,
    Complexes,
    Reals,
    U,
    applied,
    between,
    exponential_sums,
    row_dots,
    row_sums,
    row_tops,
)

_THETAS, _LARGE = np.array([[0.1], [0.25]]), 10.0
"""Heights of paths over s^2, where the noise is at most `_LARGE`; beyond it they are of so many s."""
_NARROW, _WIDE = 1.2, 2.5
"""Half-widths of the two strips, over s^2. In the wide one log r moves by at most theta - log cos(theta / 2), whose
fourth power is below 180."""
_QUIET = -50.0
"""No line needs its tail to be below e^this, and none that is above it is worth having."""
_NOTHING = 1e-20
"""The error of a sum over the narrow strip for which the wide one is not asked."""
_SHIFTS = (0.15, 0.4, 1.0, 1.5)
_MOST_POINTS = 60_000
_CHUNK = 1 << 18
_MOST_STEPPED, _LARGEST_MULTIPLE = 100, 1 << 16
Ends = tuple[Reals, Reals]


@dataclass(frozen=True)
class NearNormal(ArrayRows):
    """Bounds on log |M(order + iu) / M(order)| of one copy of each row; all shapes (m, 1).

    Args:
        variance: A lower bound on v.
        fourth: An upper bound on f.
        last: Up to which frequency they are used.
        after: The bound from there on.
    """

    variance: Reals
    fourth: Reals
    last: Reals
    after: Reals

    def log_envelope(self, edges: Reals) -> Reals:
        """For each edge a bound from there up to the next, the last for ever, shape (m, n)."""
        square = np.square(np.minimum(edges, self.last))
        falling = 0.5 * np.log1p(square * (square * self.fourth / 24 - self.variance)) + 64 * U
        return np.minimum(np.maximum(falling, self.after), 0.0)


def near_normal(
    grid: Grid,
    noise: Reals,
    rate: Reals,
    power: Reals,
    *,
    side: Reals,
    times: Reals,
    first_rows: slice,
) -> NearNormal | None:
    """The bounds at one order for each row; None if they cannot make all copies quiet together.

    Args:
        grid: Any grid over the rows' integrands; a fine one is not needed.
        noise: sigma / sensitivity, shape (m, 1), as are all others.
        rate: The sampling rates.
        power: order + 1 or -order.
        side: How far the integrands reach beyond 0, 1 and their modes, at least sqrt(78) noise.
        times: How many copies.
        first_rows: The rows that will be asked first: where they are not quiet, none of them.
    """
    points = grid.points
    exponent = points.log_weight + power * points.ratio
    share = np.exp(exponent - row_tops(exponent))
    share /= row_sums(share)
    mean = row_dots(share, points.ratio)
    away = points.ratio - mean
    square = away * away
    second, fourth = row_dots(share, square), row_dots(share * square, square)
    deepest = times * np.log1p(-6 * second * second / (2 * fourth + 6 * second * second))
    if not float(deepest[first_rows].sum()) < 2 * _QUIET:
        return None
    # From here on a row is a handful of numbers, and floats are cheaper than columns of two.
    ends = [
        each[:, at]
        for each in (share, away, points.ratio, points.log_weight)
        for at in (slice(1), slice(-1, None))
    ]
    columns = [
        noise,
        power,
        side,
        grid.step,
        mean,
        second,
        fourth,
        row_tops(points.ratio_error),
        row_tops(points.weight_error),
        *ends,
    ]
    numbers = np.concatenate(columns, axis=1).tolist()
    rows = [_bounded(row, share.shape[-1]) for row in numbers]
    bounds = [row for row in rows if row is not None]
    if len(bounds) < len(rows):
        return None
    last = np.array([[row.last] for row in bounds])
    weight = -np.expm1(np.log1p(-rate) - points.ratio)[:, None, :]
    thetas = _THETAS * np.minimum(1.0, _LARGE / noise)[:, None, :]
    angle = np.arctan2(weight * np.sin(thetas), 1 - weight * (2 * np.square(np.sin(thetas / 2))))
    decayed = np.vecdot(share[:, None, :], np.exp(-last[:, :, None] * angle))
    after = np.array(
        [
            [row.after(*each)]
            for row, *each in zip(bounds, thetas[:, :, 0].tolist(), decayed.tolist(), strict=True)
        ]
    )
    if not float((times * after)[first_rows].sum()) < _QUIET:
        return None
    variance, fourth = (np.array([[row[at]] for row in bounds]) for at in (0, 1))
    return NearNormal(variance, fourth, last, after)


def _bounded(row: list[float], points: int) -> _Bounds | None:
    """Bounds of one row from the numbers of its grid of so many points; None if they are vacuous.

    `first` and `final` numbers are those of its first and last point.
    """
    noise, power, side, step, mean, second, fourth, slant, fuzz, *ends = row
    first_share, final_share, first_away, final_away, first_ratio, final_ratio, *weights = ends
    if not second > 0:
        return None
    # Beyond the grid terms fall by e^(-step side / s^2) or faster, and log r moves by at most step / s^2.
    falling = math.expm1(min(step * side / (noise * noise), 700.0))
    before, beyond = first_share / falling, final_share / falling
    least = max(1 / noise, 1.0)
    far, farther = max(abs(first_away), least), max(abs(final_away), least)
    narrow, size = trapezoid_error(noise, power, step, _NARROW), 1 + second + fourth
    wide = trapezoid_error(noise, power, step, _WIDE) if narrow > _NOTHING else narrow
    # The errors of the means of (L - mean)^1, ^2 and ^4: 2^(j - 1) (size + 3.66^j) `wide`, and the ends.
    at_ends = before * far * far * far * far + beyond * farther * farther * farther * farther
    moment_error = 1600 * wide * size + 16 * at_ends
    # Rounding: of the shares, and of log r around its mean, whose square in units of the variance counts.
    largest, heaviest = max(abs(first_ratio), abs(final_ratio)), max(map(abs, weights))
    rounding = fuzz + slant * (1 + abs(power) * largest) + U * (points + 64 + 4 * heaviest)
    relative_error = 1e-9 + 64 * rounding * (1 + mean * mean / second)
    mean_error = moment_error + relative_error * math.sqrt(second)
    variance = second * (1 - relative_error) - moment_error - mean_error * mean_error
    fourth = (2 * fourth + 6 * second * second) * (1 + 16 * relative_error)
    fourth += 28 * size * moment_error
    if not (variance > 0 and fourth < math.inf):
        return None
    outside, last = before + beyond, math.sqrt(12 * variance / fourth)
    factor, omitted = 1 + 2 * (wide + outside) + relative_error, 1.1 * (narrow + outside)
    return _Bounds(variance, fourth, last, factor, omitted, noise=noise, power=power)


class _Bounds(NamedTuple):
    """The proved bounds of one row; its shifted sums are good to `factor`, but for an omitted mass."""

    variance: float
    fourth: float
    last: float
    factor: float
    omitted: float
    noise: float
    power: float

    def after(self, thetas: list[float], decayed: list[float]) -> float:
        """The bound from `last` on, the best of all shifts."""
        negative, least = max(-self.power, 0.0), math.inf
        for theta, sums in zip(thetas, decayed, strict=True):
            lifted = (theta * self.noise) ** 2 / 2 - negative * math.log(math.cos(theta / 2))
            least = min(least, lifted + math.log(sums * self.factor + self.omitted))
        return least + 1e-9 + 1e-14 * self.last


def shifted_line(
    noise: Reals,
    rate: Reals,
    sign: Reals,
    power: Reals,
    frequencies: Reals,
    *,
    ends: Ends,
    top_moment: Reals,
    spread: Reals | None,
    depth: float = 38.0,
    edges: int = 0,
) -> tuple[Line, Reals]:
    """log M(order + iu) with an error absolute in M, and with `spread` log of an envelope of |M| from the frequency of
    index `edges` on, nonincreasing in u.

    The envelope is the integral of the moduli, over the same points: a modulus is analytic in x and bounded in a strip
    of half-width min(theta, pi - theta) s^2 by the same integral without its decay in u.

    Args:
        noise: sigma / sensitivity.
        rate: The sampling rates.
        sign: 1 where the record is removed, -1 where it is added.
        power: order + 1 or -order.
        frequencies: u >= 0, shape (n,).
        ends: Where the integrand lives.
        top_moment: log M(order), rounded up; scales error terms only.
        depth: -log of what the step may leave out.
        spread: The tilted standard deviation, roughly; chooses the shift. None for a large one, and no envelope.
    """
    low, high = ends
    s2, negative = noise**2, np.maximum(-power, 0.0)
    theta = np.minimum(1.2, 1.5 / noise)
    if spread is not None:
        # A Gaussian of that spread falls fastest at frequency u on theta s = u spread; rare, large losses ask for less.
        wanted = np.minimum(frequencies[-1] * spread, 0.45) / noise
        theta = np.minimum(theta, between(wanted, 0.05, 0.35))
    while (steep := (negative * -np.log(np.cos(theta)) > 6) & (theta > 0.05)).any():
        theta = np.where(steep, 0.7 * theta, theta)
    upper = 2 * theta * theta * s2 - negative * np.log(np.cos(theta))
    step = shortened(2 * math.pi * theta * s2 / (depth + 0.001 + upper))
    if not float(((high - low) / step).max()) <= _MOST_POINTS:
        shape = (len(noise), len(frequencies))
        return Line(np.zeros(shape, dtype=np.complex128), np.full(shape, np.inf)), np.zeros(shape)[
            :, edges:
        ]
    x = positions(low, high, step)
    modulus, argument = on_shifted(noise, rate, x, theta)
    raised = theta * theta * s2 / 2
    log_weight = np.log(step / noise) - 0.5 * math.log(2 * math.pi) + raised - x * x / (2 * s2)
    exponent = log_weight + power * modulus
    top = exponent.max(axis=-1)[:, None]
    size, phase = np.exp(exponent - top), power * argument - x * theta
    multiples, first = _multiples(frequencies), size * (np.cos(phase) + 1j * np.sin(phase))
    if multiples is None:
        value, products = exponential_sums(frequencies, first, 1j * modulus - argument), 0
    else:
        value, products = (
            _stepped_sums(multiples, frequencies[1], first, modulus, argument),
            multiples[-1],
        )
    # The moduli fall with u; their sum at the first frequency bounds the later ones.
    faded = size if frequencies[0] == 0 else size * np.exp(-frequencies[0] * argument)
    wide = np.abs(modulus) + argument
    term_error = 2 + np.abs(log_weight) + np.abs(power) * wide + np.abs(x) * theta
    sum_error = U * (4 * x.shape[-1] + 96 + 32 * products) * row_sums(faded)
    sum_error = sum_error + 4 * ULPS * U * (row_sums(faded * term_error))
    sum_error = sum_error + 16 * ULPS * U * frequencies * row_sums(faded * wide)
    tails = _tails(noise, rate, x, theta, log_term=exponent - top, power=power, step=step)
    strip = (
        1.05
        * (np.exp(-depth - upper) + math.exp(-depth))
        * 2
        * np.exp(np.maximum(top_moment - top, -700.0))
    )
    line = logarithm_of_excess(value.real - 1, sign * value.imag, sum_error + tails + strip)
    line = Line(line.log + top, line.error + 8 * U * (np.abs(top) + 1))
    if spread is None:
        return line, np.full((len(noise), len(frequencies) - edges), np.inf)
    inner = 0.9 * theta
    error = 2.1 * np.exp(
        strip_growth(noise, power, theta, inner)
        - 2 * math.pi * inner * s2 / step
        + raised
        + top_moment
        - top
    )
    return line, top + np.log(_moduli(frequencies[edges:], size, argument) + tails + error) + 1e-9


def _stepped_sums(
    multiples: list[int], step: float, first: Complexes, modulus: Reals, argument: Reals
) -> Complexes:
    """The sums of first e^(u (i modulus - argument)) at the given multiples u of the step, shape (m, n).

    By products, of which each costs a tenth of a sine: without them the benchmark row "DP-SGD sigma 0.5, rate 0.0001,
    10^6 steps" takes 1.25 times as long. Error: 32 U more for every multiple that u is: a wave is good to
    17 U, a product to 3 U.
    """
    near = next((at for at, each in enumerate(multiples) if each != at), len(multiples))
    turn = step * modulus
    table = np.ones((len(first), near, first.shape[-1]), dtype=np.complex128)
    table[:, 1:] = (np.exp(-step * argument) * (np.cos(turn) + 1j * np.sin(turn)))[:, None]
    np.multiply.accumulate(table, axis=1, out=table)
    powers: dict[int, Complexes] = {at: table[:, at] for at in range(near)}
    for multiple in multiples[near:]:
        _fill(powers, multiple)
    far = np.stack([powers[multiple] for multiple in multiples[near:]] or [first], axis=1)
    sums = np.einsum("ijk,ik->ij", np.concatenate([table, far], axis=1), first)
    return sums[:, : len(multiples)]


def _fill(powers: dict[int, Complexes], exponent: int) -> None:
    """Add a power, the product of two of about half the exponent."""
    if exponent not in powers:
        half = exponent // 2
        _fill(powers, half)
        _fill(powers, exponent - half)
        powers[exponent] = powers[half] * powers[exponent - half]


def _multiples(frequencies: Reals) -> list[int] | None:
    """The frequencies in units of the second; None if they are not whole or too large."""
    if not 8 < len(frequencies) <= _MOST_STEPPED:
        return None
    whole = np.rint(frequencies / frequencies[1])
    exact = (
        whole[1] == 1
        and whole[-1] <= _LARGEST_MULTIPLE
        and bool((whole * frequencies[1] == frequencies).all())
    )
    return whole.astype(int).tolist() if exact else None


def _moduli(frequencies: Reals, size: Reals, argument: Reals) -> Reals:
    """The sums of size e^(-u argument), shape (m, n)."""
    found, chunk = np.empty((len(size), len(frequencies))), max(1, _CHUNK // size.size)
    for at in range(0, len(frequencies), chunk):
        decay = np.exp(
            np.maximum(-frequencies[at : at + chunk, None] * argument[:, None, :], -700.0)
        )
        found[:, at : at + chunk] = applied(decay, size)
    return found


def strip_growth(
    noise: Reals | float, power: Reals | float, theta: Reals | float, inner: Reals | float
) -> Reals:
    """How much the moduli may grow inside a strip of half-width inner s^2 around Im x = theta s^2."""
    sides = np.log(np.cos((theta + inner) / 2)) + np.log(np.cos((theta - inner) / 2))
    return (inner * noise) ** 2 / 2 - np.maximum(-power, 0.0) / 2 * sides


def shifted_envelope(
    noise: Reals, rate: Reals, power: float, edges: Reals, floor: Reals, ends: Ends
) -> Reals:
    """log of a bound on |M(order + iu)| / M(order), nonincreasing in u, the best of several shifts."""
    (low, high), best = ends, np.zeros((len(noise), len(edges)))
    s2 = noise**2
    for theta in _SHIFTS:
        inner = 0.9 * min(theta, math.pi - theta)
        step = 2 * math.pi * inner * s2 / (16 + strip_growth(noise, power, theta, inner))
        if not float(((high - low) / step).max()) <= 1500:
            continue
        x = positions(low, high, step)
        modulus, argument = on_shifted(noise, rate, x, theta)
        log_term = (
            np.log(step / noise)
            - 0.5 * math.log(2 * math.pi)
            - x * x / (2 * s2)
            + power * modulus
            - floor
        )
        decay = np.exp(-edges[:, None] * (argument * (1 - 8 * U))[:, None, :])
        decayed = applied(decay, np.exp(log_term))
        # e^-16 from the strip, and the two ends of the range, where the integrand is a Gaussian tail beyond 9 s.
        error = 2.1 * math.exp(-16.0) + _tails(
            noise, rate, x, theta, log_term=log_term, power=power, step=step
        )
        best = np.minimum(best, theta * theta * s2 / 2 + np.log(decayed + error) + 1e-9)
    return best


def _tails(
    noise: Reals,
    rate: Reals,
    x: Reals,
    theta: Reals | float,
    *,
    log_term: Reals,
    power: Reals | float,
    step: Reals,
) -> Reals:
    """The sum of the terms beyond the first and the last point, in their units; infinite where they may rise there.

    With w = q e^(z + i theta) / r the logarithm of |r| has the slope Re w / s^2, which for theta up to pi / 2 rises
    with x, from 0 to 1.
    """
    s2, first, last = noise**2, x[:, :1], x[:, -1:]
    falling = np.maximum(last - np.maximum(power, 0.0), 0.0)
    right = np.exp(log_term[:, -1:]) / np.expm1(step * falling / s2)
    odds = np.exp(np.minimum((2 * first - 1) / (2 * s2) + np.log(rate / (1 - rate)), 300.0))
    cosine = np.cos(theta)
    share = odds * (cosine + odds) / (1 + odds * (2 * cosine + odds))
    rising = np.maximum(-first - np.maximum(-power, 0.0) * share, 0.0)
    return right + np.exp(log_term[:, :1]) / np.expm1(step * rising / s2)
