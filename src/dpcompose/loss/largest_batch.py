"""The loss of an attack on shuffled batches: how large the largest of many normal variables is, not which one."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import Atoms
from dpcompose.numerics import Reals, U, bracketed_root

CELLS, STEP, LEAST_NOISE = 1024, 0.02, 0.05
FARTHEST, RAREST = 16.0, 1e-12
LOG_ERROR = 1e-12
"""The relative error of ln Phi at a rounded place, z <= 37: against balls the worst of 20,000 is below 3e-13."""


@lru_cache(maxsize=64)
def largest_batch(noise: float, steps: int) -> AtomicLoss:
    """The loss of the largest of `steps` batches, in cells: one mean is 2 with the record and 1 without, all others 0.

    All other records contribute -1 to their batch; the record contributes +1, or nothing. Seen from -(batch size), the
    mean of its batch is 2 or 1, which batch it is being uniform, and that of the others 0; the noise has standard
    deviation `noise`. Below z the largest has probability Phi(z - 2 / noise) Phi(z)^(steps - 1), or the same with 1.
    What is computed from an answer never costs more than the answer. So any cells, and more noise where there is next
    to none, give a loss that is below an attained one.

    Reference: [Chua2024]
    """
    far = 2 / max(noise, LEAST_NOISE)
    high = far + FARTHEST
    rare = math.log(RAREST)
    low = bracketed_root(
        lambda z: float(_log_below(np.array([z]), far, steps)[0]) - rare,
        lower=-FARTHEST,
        upper=high,
    )
    places = np.linspace(low, high, min(CELLS, max(2, math.ceil((high - low) / STEP))))
    (upper, first), (lower, second) = (
        _cells(_log_below(places, shift, steps)) for shift in (far, far / 2)
    )
    return AtomicLoss(
        Atoms(tuple(upper.tolist()), tuple(lower.tolist()), relative_error=max(first, second))
    )


def _log_below(places: Reals, shift: float, steps: int) -> Reals:
    """The logarithm of the probability that all are below; a sum of negative terms."""
    return log_ndtr(places - shift) + (steps - 1) * log_ndtr(places)


def _cells(logs: Reals) -> tuple[Reals, float]:
    """The masses between the places, from whichever tail is smaller, and the largest relative error of one."""
    below, above = np.exp(logs), -np.expm1(logs)
    below_error, above_error = (
        (np.abs(logs) * LOG_ERROR + 8 * U) * below,
        (LOG_ERROR + 8 * U) * above,
    )
    from_below = np.append(below, 1.0)
    lower_half = below[:-1] < 0.5
    inner = np.where(lower_half, np.diff(below), -np.diff(above))
    inner_error = np.where(
        lower_half, below_error[:-1] + below_error[1:], above_error[:-1] + above_error[1:]
    )
    masses = np.concatenate([from_below[:1], inner, above[-1:]])
    errors = np.concatenate([below_error[:1], inner_error, above_error[-1:]])
    return masses, float(np.max(errors / masses)) * (1 + 1e-9) + 8 * U
