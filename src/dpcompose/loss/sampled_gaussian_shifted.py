"""The transforms of sampled Gaussian losses as integrals over Im x = theta s^2: as many points at every frequency.

Rows as in `sampled_gaussian_rows`: noise, rate, sign, power and ends of the range have shape (m, 1).
"""

from __future__ import annotations

import math

import numpy as np

from dpcompose.contour.exponential_sums import logarithm_of_excess
from dpcompose.contour.transform import Line
from dpcompose.loss.sampled_gaussian_points import log_ratio, positions, shortened
from dpcompose.numerics.elementary import ULPS, Complexes, Reals, U, applied, between, exponential_sums, row_sums

_SHIFTS = (0.15, 0.4, 1.0, 1.5)
_MOST_POINTS = 60_000
_CHUNK = 1 << 18
_MANY, _LARGEST = 100, 1 << 16
Ends = tuple[Reals, Reals]


def on_shifted(noise: Reals, rate: Reals, x: Reals, theta: Reals | float) -> tuple[Reals, Reals]:
    """log |r| and arg r on Im x = theta s^2."""
    z = (2 * x - 1) / (2 * noise**2) + (np.log(rate) - np.log1p(-rate))
    share = 1 / (1 + np.exp(-between(z, -700.0, 700.0)))
    rest = 2 * np.square(np.sin(theta / 2))
    shrink = 0.5 * np.log1p(-2 * share * (1 - share) * rest)
    return log_ratio(x, noise, rate) + shrink, np.arctan2(share * np.sin(theta), 1 - share * rest)


def shifted_line(
    noise: Reals,
    rate: Reals,
    sign: Reals,
    power: Reals,
    frequencies: Reals,
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
        return Line(np.zeros(shape, dtype=np.complex128), np.full(shape, np.inf)), np.zeros(shape)[:, edges:]
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
        value, products = _stepped_sums(multiples, frequencies[1], first, modulus, argument), multiples[-1]
    # The moduli fall with u; their sum at the first frequency bounds the later ones.
    faded = size if frequencies[0] == 0 else size * np.exp(-frequencies[0] * argument)
    wide = np.abs(modulus) + argument
    doubt = 2 + np.abs(log_weight) + np.abs(power) * wide + np.abs(x) * theta
    lost = U * (4 * x.shape[-1] + 96 + 32 * products) * row_sums(faded)
    lost = lost + 4 * ULPS * U * (row_sums(faded * doubt))
    lost = lost + 16 * ULPS * U * frequencies * row_sums(faded * wide)
    tails = _tails(noise, rate, x, theta, exponent - top, power, step)
    strip = 1.05 * (np.exp(-depth - upper) + math.exp(-depth)) * 2 * np.exp(np.maximum(top_moment - top, -700.0))
    line = logarithm_of_excess(value.real - 1, sign * value.imag, lost + tails + strip)
    line = Line(line.log + top, line.error + 8 * U * (np.abs(top) + 1))
    if spread is None:
        return line, np.full((len(noise), len(frequencies) - edges), np.inf)
    inner = 0.9 * theta
    error = 2.1 * np.exp(
        _growth(noise, power, theta, inner) - 2 * math.pi * inner * s2 / step + raised + top_moment - top
    )
    return line, top + np.log(_moduli(frequencies[edges:], size, argument) + tails + error) + 1e-9


def _stepped_sums(multiples: list[int], step: float, first: Complexes, modulus: Reals, argument: Reals) -> Complexes:
    """The sums of first e^(u (i modulus - argument)) at the given multiples u of the step, shape (m, n).

    By products, of which each costs a tenth of a sine. Error: 32 U more for every multiple that u is: a wave is good to
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
    if not 8 < len(frequencies) <= _MANY:
        return None
    whole = np.rint(frequencies / frequencies[1])
    exact = whole[1] == 1 and whole[-1] <= _LARGEST and bool((whole * frequencies[1] == frequencies).all())
    return whole.astype(int).tolist() if exact else None


def _moduli(frequencies: Reals, size: Reals, argument: Reals) -> Reals:
    """The sums of size e^(-u argument), shape (m, n)."""
    found, chunk = np.empty((len(size), len(frequencies))), max(1, _CHUNK // size.size)
    for at in range(0, len(frequencies), chunk):
        decay = np.exp(np.maximum(-frequencies[at : at + chunk, None] * argument[:, None, :], -700.0))
        found[:, at : at + chunk] = applied(decay, size)
    return found


def _growth(noise: Reals, power: Reals | float, theta: Reals | float, inner: Reals | float) -> Reals:
    """How much the moduli may grow inside a strip of half-width inner s^2 around Im x = theta s^2."""
    sides = np.log(np.cos((theta + inner) / 2)) + np.log(np.cos((theta - inner) / 2))
    return (inner * noise) ** 2 / 2 - np.maximum(-power, 0.0) / 2 * sides


def shifted_envelope(noise: Reals, rate: Reals, power: float, edges: Reals, floor: Reals, ends: Ends) -> Reals:
    """log of a bound on |M(order + iu)| / M(order), nonincreasing in u, the best of several shifts."""
    (low, high), best = ends, np.zeros((len(noise), len(edges)))
    s2 = noise**2
    for theta in _SHIFTS:
        inner = 0.9 * min(theta, math.pi - theta)
        step = 2 * math.pi * inner * s2 / (16 + _growth(noise, power, theta, inner))
        if not float(((high - low) / step).max()) <= 1500:
            continue
        x = positions(low, high, step)
        modulus, argument = on_shifted(noise, rate, x, theta)
        log_term = np.log(step / noise) - 0.5 * math.log(2 * math.pi) - x * x / (2 * s2) + power * modulus - floor
        decay = np.exp(-edges[:, None] * (argument * (1 - 8 * U))[:, None, :])
        decayed = applied(decay, np.exp(log_term))
        # e^-16 from the strip, and the two ends of the range, where the integrand is a Gaussian tail beyond 9 s.
        error = 2.1 * math.exp(-16.0) + _tails(noise, rate, x, theta, log_term, power, step)
        best = np.minimum(best, theta * theta * s2 / 2 + np.log(decayed + error) + 1e-9)
    return best


def _tails(
    noise: Reals,
    rate: Reals,
    x: Reals,
    theta: Reals | float,
    log_term: Reals,
    power: Reals | float,
    step: Reals,
) -> Reals:
    """What lies beyond the first and the last point, in the units of the terms; infinite where they may rise there.

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
