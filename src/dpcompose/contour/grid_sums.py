"""Sums over weighted points of waves at many multiples of one frequency, in rows, as matrix products."""

from __future__ import annotations

import math

import numpy as np

from dpcompose.numerics import Reals, applied, product, sine_minus_linear

_LARGE = 1 << 17
"""From so many entries on matrix products are cheaper than a sine for each."""
Weights = tuple[Reals, Reals, Reals]


def on_grid(ratio: Reals, frequencies: Reals) -> bool:
    """Whether these are so many multiples of a step, for so many rows, that `turned_on_grid` is worth its while."""
    if ratio.ndim < 2 or ratio.size * len(frequencies) < _LARGE or len(frequencies) < 9:
        return False
    return bool(np.all(frequencies == frequencies[1] * np.arange(len(frequencies))))


def turned_on_grid(ratio: Reals, weights: Weights, frequencies: Reals) -> tuple[Reals, Reals]:
    """The sums of tilted v(a), and of rise sin(a) + weight d(a), v = 1 - cos and d(a) = sin a - a, for a = u log r.

    With u = u_block + u_within the angles are a = A + B: so few sines are taken, and
      v(a) = v(A) + cos(A) v(B) + sin(A) sin(B),   d(a) = d(A) + d(B) - sin(A) v(B) - v(A) sin(B),
      sin(a) = sin(A) - sin(A) v(B) + cos(A) sin(B).
    Term by term those of v and d are at most 3 min(a^2, 3 + |a|) in size, those of the sine at most 2 |a|.

    Args:
        ratio: log r, shape (m, k).
        weights: tilted, rise and weight = tilted - rise, shape (m, k) each.
        frequencies: Multiples of the second, shape (n,).

    Returns:
        Two arrays of shape (m, n).
    """
    tilted, rise, weight = weights
    count = len(frequencies)
    size = math.isqrt(count)
    sine, versed, lag = _wave(frequencies[::size, None] * ratio[:, None, :])
    sine_within, versed_within, lag_within = _wave(frequencies[:size, None] * ratio[:, None, :])
    cosine, slanted = 1 - versed, tilted[:, None, :] * sine
    right = np.swapaxes(versed_within, 1, 2), np.swapaxes(sine_within, 1, 2)
    real = applied(versed, tilted)[..., None] + product(tilted[:, None, :] * cosine, right[0])
    real += product(slanted, right[1])
    whole = (applied(sine, rise) + applied(lag, weight))[..., None] + applied(lag_within, weight)[
        :, None, :
    ]
    leaning = rise[:, None, :] * cosine - weight[:, None, :] * versed
    imaginary = whole - product(slanted, right[0]) + product(leaning, right[1])
    return real.reshape(len(ratio), -1)[:, :count], imaginary.reshape(len(ratio), -1)[:, :count]


def _wave(angle: Reals) -> tuple[Reals, Reals, Reals]:
    """sin a, 1 - cos a and sin a - a, of small angles too."""
    half = np.sin(0.5 * angle)
    sine = 2 * half * np.cos(0.5 * angle)
    return sine, 2 * half * half, sine_minus_linear(angle, sine)
