"""The mechanisms of the zoo, broken ones and their twins: from a dataset and n to n answers, in numpy.

A dataset is a tuple of numbers: records of [0, 1], or the true answers of the queries that are asked about it. Noise
comes from the system's own entropy and is never seeded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from dpcompose.audit.outcome import Outcomes, Reals

Data = Sequence[float]
Batch = Callable[[Data, int], Outcomes]
_rng = np.random.default_rng()
ABOVE, BELOW = 1.0, 0.0


def laplace(scale: float, *, clamped: bool = True) -> Batch:
    """The sum of the records, each clamped to [0, 1] or not, with Laplace noise on a lattice far finer than it."""

    def batch(data: Data, n: int) -> Outcomes:
        total = sum(min(1.0, max(0.0, each)) for each in data) if clamped else sum(data)
        return round(total * 2**20) / 2**20 + _fine(scale, n)

    return batch


def _fine(scale: float, n: int) -> Reals:
    """Discrete Laplace noise on multiples of 2^-20: sums with records of that lattice are exact."""
    return _geometric(scale * 2**20, n) / 2**20


def _on_lattice(numbers: Reals) -> Reals:
    """Each number at the nearest multiple of 2^-20, where sums are exact."""
    return np.rint(numbers * 2**20) / 2**20


def _geometric(scale: float, shape: int | tuple[int, ...]) -> Reals:
    """Discrete Laplace noise: P(z) proportional to e^(-|z|/scale)."""
    success = -math.expm1(-1 / scale)
    return (_rng.geometric(success, shape) - _rng.geometric(success, shape)).astype(np.float64)


def float_laplace(scale: float) -> Batch:
    """The sum plus numpy's Laplace noise in floats."""
    return lambda data, n: sum(data) + _rng.laplace(scale=scale, size=n)


def noisy_max(scale: float, *, exponential: bool = False, value: bool = False) -> Batch:
    """The place of the largest noisy answer, or, which is not private, that answer itself."""

    def batch(data: Data, n: int) -> Outcomes:
        shape = (n, len(data))
        noise = (
            _rng.exponential(scale, shape) if exponential else _rng.laplace(scale=scale, size=shape)
        )
        noisy = np.array(data) + noise
        return noisy.max(axis=1) if value else noisy.argmax(axis=1).astype(np.float64)

    return batch


def sparse_vector(
    threshold_scale: float,
    query_scale: float,
    *,
    most: int,
    tells: bool = False,
    renewed: float = 0.0,
) -> Batch:
    """For each answer whether it is above a noisy threshold, until `most` of them were; NaN afterwards.

    Args:
        threshold_scale: The scale of the threshold's noise.
        query_scale: The scale of each answer's noise.
        most: The answers above after which it stops.
        tells: Whether it tells the noisy answer that is above.
        renewed: The scale of a new threshold's noise after each answer above; 0 keeps the old one.
    """

    def batch(data: Data, n: int) -> Outcomes:
        threshold, seen = _rng.laplace(scale=threshold_scale, size=n), np.zeros(n)
        told = np.full((n, len(data)), math.nan)
        for place, answer in enumerate(data):
            noisy = answer + (_rng.laplace(scale=query_scale, size=n) if query_scale else 0.0)
            above, going = noisy >= threshold, seen < most
            told[going, place] = np.where(
                above, noisy if tells else ABOVE, -math.inf if tells else BELOW
            )[going]
            seen += above & going
            if renewed:
                threshold = np.where(above, _rng.laplace(scale=renewed, size=n), threshold)
        return told

    return batch


def leak(chance: float) -> Batch:
    """Laplace noise, but with a small probability the truth alone."""

    def batch(data: Data, n: int) -> Outcomes:
        return np.where(_rng.random(n) < chance, sum(data), sum(data) + _fine(1.0, n))

    return batch


def mean(*, private: bool) -> Callable[[Data], float]:
    """A noisy sum by the true count, which fails without records; or by a noisy count of at least 1."""

    def call(data: Data) -> float:
        total = sum(data) + float(_fine(2.0, 1)[0])
        return (
            total / max(1.0, len(data) + float(_fine(2.0, 1)[0])) if private else total / len(data)
        )

    return call


def typed(*, private: bool) -> Callable[[Data], float]:
    """A count with discrete Laplace noise, which is an int when the noise is 0, or always a float."""

    def call(data: Data) -> float:
        noise = float(_geometric(1.0, 1)[0])
        return float(len(data)) + noise if noise or private else len(data)

    return call


def seeded(*, private: bool) -> Batch:
    """A sum whose noise is seeded by a hash of the data, or by the system."""

    def batch(data: Data, n: int) -> Outcomes:
        if private:
            return sum(data) + _fine(2.0, n)
        own = np.random.default_rng(abs(hash(tuple(data))))
        return np.full(n, sum(data) + float(own.laplace(scale=2.0)))

    return batch


def truncated(*, private: bool, most: int = 10) -> Batch:
    """A count with geometric noise: cut to [0, most] at its ends, or drawn again until it lies there."""

    def batch(data: Data, n: int) -> Outcomes:
        drawn = len(data) + _geometric(1.0, n)
        while not private and (outside := (drawn < 0) | (drawn > most)).any():
            drawn[outside] = len(data) + _geometric(1.0, int(outside.sum()))
        return np.clip(drawn, 0, most)

    return batch


def randomized_response(epsilon: float) -> Batch:
    """Whether there is a record, told truly with probability 1 / (1 + e^-epsilon)."""
    truth = 1 / (1 + math.exp(-epsilon))
    return lambda data, n: np.where(_rng.random(n) < truth, len(data) > 0, len(data) == 0).astype(
        np.float64
    )


def cached(*, private: bool) -> Callable[[Data], float]:
    """A noisy sum that remembers its answer to each dataset, or draws anew."""

    def call(data: Data) -> float:
        return sum(data) + float(_fine(1.0, 1)[0])

    return call if private else cache(call)


class Patient:
    """Honest for its first calls, then with half the noise.

    Args:
        honest: The number of honest calls; infinite for the twin.
    """

    def __init__(self, honest: float) -> None:
        self.left = honest

    def __call__(self, data: Data, n: int) -> Outcomes:
        halved = np.arange(n) >= self.left
        self.left -= n
        return sum(data) + np.where(halved, _fine(0.5, n), _fine(1.0, n))


def training(
    *, steps: int = 8, noise: float = 4.0, fresh: bool = True, clipped: bool = True
) -> Batch:
    """The noisy sums of gradients of all steps of a descent on (x - theta)^2 / 2, each clipped to [-1, 1]."""

    def batch(data: Data, n: int) -> Outcomes:
        theta, told, records = np.zeros(n), np.zeros((n, steps)), np.array(data).reshape(-1, 1)
        same = _on_lattice(_rng.normal(scale=noise, size=n))
        for step in range(steps):
            gradients = records - theta
            total = _on_lattice(np.clip(gradients, -1, 1) if clipped else gradients).sum(axis=0)
            told[:, step] = total + (
                _on_lattice(_rng.normal(scale=noise, size=n)) if fresh else same
            )
            theta = theta + 0.1 * told[:, step]
        return told

    return batch


def rejecting(*, private: bool) -> Callable[[Data], float]:
    """A count with geometric noise, drawn by tries whose number is the noise; or by so many tries always."""

    def call(data: Data) -> float:
        noise = float(np.clip(_geometric(1.0, 1)[0], -8, 8))
        ends = time.perf_counter() + 1e-4 * (8 if private else 8 + noise)
        while time.perf_counter() < ends:
            pass
        return len(data) + noise

    return call
