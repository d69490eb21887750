"""Rounds of a batch drawn without replacement: the dominating loss on a grid, rounded up and down, by convolution.

A record moves the mean by 2 at most, which is the unit here; s is the noise in it, q the share of the records in a
batch. Under Q the answer is N(0, s^2), under P (1 - q) N(0, s^2) + q N(1, s^2), and the loss is positive beyond 1/2.
The dominating loss has P's mass there, Q's mass mirrored, and the rest at 0.
"""

from __future__ import annotations

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtr

STEP, REACH = 5e-4, 9.0


def deltas(sigma: float, rate: float, *, times: int, epsilon: float) -> tuple[float, float]:
    """Two ends around delta of the dominating loss, good to about 1e-13; epsilon >= 0."""
    s = sigma / 2
    largest = np.log1p(rate * np.expm1((REACH * s + 0.5) / s**2))
    losses = np.arange(0.0, largest + STEP, STEP)
    places = 0.5 + s * s * np.log1p(np.expm1(losses) / rate)
    beyond_q = ndtr(-places / s)
    beyond_p = (1 - rate) * beyond_q + rate * ndtr((1 - places) / s)
    positive, negative = (
        beyond_p - np.append(beyond_p[1:], 0.0),
        beyond_q - np.append(beyond_q[1:], 0.0),
    )
    found = []
    for up in (0, 1):
        cells = len(losses)
        masses = np.zeros(2 * cells + 1)  # the loss of cell i is (i - cells) STEP
        masses[cells + up : 2 * cells + up] += positive
        masses[cells - np.arange(cells) - (1 - up)] += negative
        masses[cells] += 1 - beyond_p[0] - beyond_q[0]
        width = 2 * cells * times + 1
        size = next_fast_len(width, real=True)
        total = irfft(rfft(masses, size) ** times, size)[:width]
        at = (np.arange(width) - cells * times) * STEP
        above = at > epsilon
        found.append(float(np.sum(np.maximum(total[above], 0.0) * -np.expm1(epsilon - at[above]))))
    return found[0], found[1]
