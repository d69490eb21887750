"""Mechanisms of the zoo that describe themselves by their calls, broken ones and their twins, for replay."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpcompose.audit.pair import Pair
from dpcompose.audit.primitives import Norm, Primitives
from dpcompose.audit.replay import Recorded
from dpcompose.composition import Composable
from dpcompose.mechanisms import AboveThreshold, BlackBox, Gaussian

Data = tuple[float, ...]


@dataclass(frozen=True)
class RecordedEntry:
    """A broken mechanism and its twin, as functions of a dataset and of `Primitives`.

    Args:
        broken: Makes the broken one.
        twin: Makes the twin.
        claim: The claim of both.
        pairs: The pairs to run.
    """

    broken: Callable[[], Recorded]
    twin: Callable[[], Recorded]
    claim: Composable
    pairs: tuple[Pair, ...]


def _total(scale: float, *, clamped: bool = True) -> Recorded:
    def call(data: Data, noise: Primitives) -> float:
        return noise.laplace(
            sum(min(1.0, max(0.0, each)) if clamped else each for each in data), scale=scale
        )

    return call


def _mean(*, private: bool) -> Recorded:
    def call(data: Data, noise: Primitives) -> float:
        total = noise.laplace(sum(data), scale=2.0)
        return total / (max(1.0, noise.laplace(len(data), scale=2.0)) if private else len(data))

    return call


def _noisy_max(*, value: bool) -> Recorded:
    def call(data: Data, noise: Primitives) -> float:
        place = noise.choice(data, epsilon=0.1)
        return data[place] if value else place

    return call


def _response(epsilon: float) -> Recorded:
    return lambda data, noise: noise.randomized_response(len(data) > 0, epsilon=epsilon)


def _seeded(*, private: bool) -> Recorded:
    def call(data: Data, noise: Primitives) -> float:
        if private:
            return noise.laplace(sum(data), scale=1.0)
        return sum(data) + float(np.random.default_rng(len(data)).laplace())

    return call


def _cached(*, private: bool) -> Recorded:
    answers: dict[Data, float] = {}

    def call(data: Data, noise: Primitives) -> float:
        if private or data not in answers:
            answers[data] = noise.laplace(sum(data), scale=1.0)
        return answers[data]

    return call


def _training(*, fresh: bool = True, clipped: bool = True, steps: int = 8) -> Recorded:
    def call(data: Data, noise: Primitives) -> list[float]:
        theta, told = 0.0, list[float]()
        same = noise.gaussian(0.0, sigma=4.0)
        for _ in range(steps):
            gradients = np.array(data) - theta
            total = float(np.sum(np.clip(gradients, -1, 1) if clipped else gradients))
            told.append(noise.gaussian(total, sigma=4.0) if fresh else total + same)
            theta += 0.1 * told[-1]
        return told

    return call


def _largest(data: Data) -> int:
    return int(np.argmax(np.array(data) + np.random.default_rng().laplace(size=len(data))))


def _sparse(*, tells: bool = False, renewed: bool = True) -> Recorded:
    """Which answers are above a threshold: by the technique, which pays once, or with noise of their own, or none."""

    def call(data: Data, noise: Primitives) -> list[float]:
        if renewed:
            above = AboveThreshold(0.1, positives=1)
            most = partial(_largest, data)
            found = noise.call(
                "sparse vector", most, data, mechanism=above, sensitivity=1.0, norm=Norm.LINF
            )
            return [found, data[found]] if tells else [found]
        threshold = noise.laplace(0.0, scale=20.0)
        return [float(noise.laplace(each, scale=20.0) >= threshold) for each in data]

    return call


ONE, STEPS = BlackBox(1.0), Gaussian(4.0) * 9
RECORD = (Pair((), (1.0,)),)
SCORES = (Pair((0.0, 1.0, 0.0), (1.0, 0.0, 1.0)),)
TRAINED = (Pair((0.5, -0.5), (0.5, -0.5, 2.0)),)

RECORDED: dict[str, RecordedEntry] = {
    "half the scale": RecordedEntry(lambda: _total(0.5), lambda: _total(1.0), ONE, RECORD),
    "a tenth too small": RecordedEntry(lambda: _total(1 / 1.1), lambda: _total(1.0), ONE, RECORD),
    "never clamped": RecordedEntry(
        lambda: _total(1.0, clamped=False),
        lambda: _total(1.0),
        ONE,
        (Pair((), (30.0,)), Pair((), (math.nan,))),
    ),
    "mean by the true count": RecordedEntry(
        lambda: _mean(private=False), lambda: _mean(private=True), ONE, RECORD
    ),
    "noisy max": RecordedEntry(
        lambda: _noisy_max(value=True), lambda: _noisy_max(value=False), BlackBox(0.1), SCORES
    ),
    "sparse vector 3": RecordedEntry(lambda: _sparse(tells=True), _sparse, BlackBox(0.1), SCORES),
    "sparse vector 6": RecordedEntry(
        lambda: _sparse(renewed=False), _sparse, BlackBox(0.1), SCORES
    ),
    "seeded by the data": RecordedEntry(
        lambda: _seeded(private=False), lambda: _seeded(private=True), ONE, RECORD
    ),
    "randomized response": RecordedEntry(
        lambda: _response(1.5), lambda: _response(1.0), ONE, RECORD
    ),
    "answers from a cache": RecordedEntry(
        lambda: _cached(private=False), lambda: _cached(private=True), ONE, RECORD
    ),
    "one noise for all steps": RecordedEntry(
        lambda: _training(fresh=False), _training, STEPS, TRAINED
    ),
    "without clipping": RecordedEntry(lambda: _training(clipped=False), _training, STEPS, TRAINED),
}
