"""Broken mechanisms, each with a correct twin: they show how to use the audit, and test that it
detects errors.

    python -m campaigns.audit_zoo [NAME ...] [--samples 2000000] [--seconds 60]

Exit status 1 if a broken mechanism is not refuted, or a twin is.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from dpcompose.audit import (
    LEARNERS,
    AuditResult,
    Pair,
    Source,
    Subject,
    Transcripts,
    Verdict,
    audit,
)
from dpcompose.audit.outcome import Outcomes, Reals
from dpcompose.composition import Composable
from dpcompose.experiment import Experiment, NaturalFilterBreaker, World
from dpcompose.mechanisms import BlackBox, Gaussian

Data = Sequence[float]
Batch = Callable[[Data, int], Outcomes]
_rng = np.random.default_rng()
ABOVE, BELOW = 1.0, 0.0


def laplace(scale: float, *, clamped: bool = True) -> Batch:
    """The sum of the records with Laplace noise on a fine lattice; records are clamped to [0, 1] if
    `clamped`.
    """

    def batch(data: Data, n: int) -> Outcomes:
        total = sum(min(1.0, max(0.0, each)) for each in data) if clamped else sum(data)
        return round(total * 2**20) / 2**20 + _fine(scale, n)

    return batch


def _fine(scale: float, n: int) -> Reals:
    """n samples of discrete Laplace noise on multiples of 2^-20, so that sums with records on that
    lattice are exact.
    """
    return _geometric(scale * 2**20, n) / 2**20


def _on_lattice(numbers: Reals) -> Reals:
    """Each number rounded to the nearest multiple of 2^-20, on which sums are exact."""
    return np.rint(numbers * 2**20) / 2**20


def _geometric(scale: float, shape: int | tuple[int, ...]) -> Reals:
    """Discrete Laplace noise on the integers: P(z) proportional to e^(-|z|/scale)."""
    success = -math.expm1(-1 / scale)
    return (_rng.geometric(success, shape) - _rng.geometric(success, shape)).astype(np.float64)


def float_laplace(scale: float) -> Batch:
    """The sum of the records with numpy's floating-point Laplace noise, whose low bits reveal the
    sum.
    """
    return lambda data, n: sum(data) + _rng.laplace(scale=scale, size=n)


def noisy_max(scale: float, *, exponential: bool = False, value: bool = False) -> Batch:
    """Report noisy max: the index of the largest noisy answer; if `value`, that answer itself,
    which is not private.

    Args:
        scale: The scale of the noise.
        exponential: Whether the noise is exponential rather than Laplace.
        value: Whether to return the noisy answer instead of its index.
    """

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
    """The sparse vector technique: for each answer whether it exceeds a noisy threshold, NaN after
    `most` that do.

    Args:
        threshold_scale: The scale of the threshold's noise.
        query_scale: The scale of each answer's noise.
        most: The number of answers above the threshold after which it stops.
        tells: Whether to return the noisy answers above the threshold themselves, which is not
            private.
        renewed: The scale of a new threshold's noise after each answer above; 0 retains the old
            threshold.
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
    """The sum with Laplace noise, but without noise with probability `chance`."""

    def batch(data: Data, n: int) -> Outcomes:
        return np.where(_rng.random(n) < chance, sum(data), sum(data) + _fine(1.0, n))

    return batch


def mean(*, private: bool) -> Callable[[Data], float]:
    """A noisy mean: divided by the true count, which fails on empty data, or if `private` by a
    noisy count of at least 1.
    """

    def call(data: Data) -> float:
        total = sum(data) + float(_fine(2.0, 1)[0])
        return (
            total / max(1.0, len(data) + float(_fine(2.0, 1)[0])) if private else total / len(data)
        )

    return call


def typed(*, private: bool) -> Callable[[Data], float]:
    """A count with discrete Laplace noise that is an int if the noise is 0; if `private`, always a
    float.
    """

    def call(data: Data) -> float:
        noise = float(_geometric(1.0, 1)[0])
        return float(len(data)) + noise if noise or private else len(data)

    return call


def seeded(*, private: bool) -> Batch:
    """A sum with Laplace noise seeded by a hash of the data; if `private`, seeded by the system."""

    def batch(data: Data, n: int) -> Outcomes:
        if private:
            return sum(data) + _fine(2.0, n)
        own = np.random.default_rng(abs(hash(tuple(data))))
        return np.full(n, sum(data) + float(own.laplace(scale=2.0)))

    return batch


def truncated(*, private: bool, most: int = 10) -> Batch:
    """A count with geometric noise in [0, most]: redrawn until it is inside, or if `private`
    clamped to the ends.
    """

    def batch(data: Data, n: int) -> Outcomes:
        drawn = len(data) + _geometric(1.0, n)
        while not private and (outside := (drawn < 0) | (drawn > most)).any():
            drawn[outside] = len(data) + _geometric(1.0, int(outside.sum()))
        return np.clip(drawn, 0, most)

    return batch


def randomized_response(epsilon: float) -> Batch:
    """Whether there is a record, reported truthfully with probability 1 / (1 + e^-epsilon)."""
    truth = 1 / (1 + math.exp(-epsilon))
    return lambda data, n: np.where(_rng.random(n) < truth, len(data) > 0, len(data) == 0).astype(
        np.float64
    )


def cached(*, private: bool) -> Callable[[Data], float]:
    """A noisy sum that returns the same answer again for the same dataset; if `private`, with new
    noise in every call.
    """

    def call(data: Data) -> float:
        return sum(data) + float(_fine(1.0, 1)[0])

    return call if private else cache(call)


class Patient:
    """A mechanism with correct noise in its first calls and half of it afterwards.

    Args:
        honest: The number of correct calls; infinite for the twin.
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
    """Noisy gradient sums of all steps of gradient descent on (x - theta)^2 / 2.

    Args:
        steps: The number of steps.
        noise: The standard deviation of the Gaussian noise.
        fresh: Whether each step has new noise; otherwise all steps have the same.
        clipped: Whether gradients are clipped to [-1, 1].
    """

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
    """A count with geometric noise whose running time depends on the noise; if `private`, the time
    is constant.
    """

    def call(data: Data) -> float:
        noise = float(np.clip(_geometric(1.0, 1)[0], -8, 8))
        ends = time.perf_counter() + 1e-4 * (8 if private else 8 + noise)
        while time.perf_counter() < ends:
            pass
        return len(data) + noise

    return call


ONE, TENTH = BlackBox(1.0), BlackBox(0.1)
RECORD = (Pair((), (1.0,)),)
FAR = (Pair((0.0,) * 20, (1.0,) * 20, distance=20), Pair((0.0,) * 5, (20.0,) * 5, distance=20))
SPLIT = tuple(
    Pair((*(0.0,) * 5, float(size)), (*(float(size),) * 5, 0.0), distance=size)
    for size in (1, 10, 20)
)
RISING = tuple(Pair((0.0,) * 10, (float(size),) * 10, distance=size) for size in (1, 10, 20))
STEPS = Gaussian(4.0) * 8


@dataclass(frozen=True)
class Entry:
    """A broken mechanism and its correct twin.

    Args:
        name: The name.
        broken: Creates the broken mechanism.
        twin: Creates the twin.
        claim: The claim tested on the broken mechanism, and on the twin unless `twin_claim` is set.
        pairs: The pairs of datasets.
        truth: The true epsilon of the broken mechanism at the claim's delta, in words.
        reference: The key of the publication that describes the error.
        twin_claim: The claim tested on the twin; None for `claim`.
    """

    name: str
    broken: Callable[[], Source]
    twin: Callable[[], Source]
    _: KW_ONLY
    claim: Composable = ONE
    pairs: tuple[Pair, ...] = RECORD
    truth: str = "infinite"
    reference: str = ""
    twin_claim: Composable | None = None


def _entry(name: str, broken: Batch, twin: Batch, **fields: Any) -> Entry:
    """An entry of mechanisms that draw many answers at once."""
    both = (partial(Subject, batch=each, label="zoo") for each in (broken, twin))
    return Entry(name, *both, **fields)


def _called(name: str, call: Callable[..., Callable[[Data], float]], **how: Any) -> Entry:
    """An entry of mechanisms that are called for each answer; `private` selects the twin."""

    def subject(*, private: bool) -> Subject:
        return Subject(call(private=private), label="zoo", **how)

    return Entry(name, partial(subject, private=False), partial(subject, private=True))


def _patient(honest: float) -> Subject:
    return Subject(batch=Patient(honest), label="zoo")


def _breaker() -> Transcripts:
    """An adversary whose two branches each compose to (1.5, 0.05)-DP, and who gains more by
    choosing between them.
    """
    breaker = NaturalFilterBreaker()
    family = tuple(query.mechanism for query in breaker.queries)
    return Transcripts(Experiment(breaker, family=family, rounds=2))


ENTRIES = (
    _entry("half the scale", laplace(0.5), laplace(1.0), truth="2"),
    _entry("a tenth too small", laplace(1 / 1.1), laplace(1.0), truth="1.1"),
    _entry("float Laplace", float_laplace(10.0), laplace(10.0), claim=TENTH, reference="Mironov2012"),
    _entry("noisy max, Laplace", noisy_max(20.0, value=True), noisy_max(20.0), claim=TENTH, pairs=FAR,
           truth="0.05 for each answer", reference="DingWangKifer2018"),
    _entry("noisy max, exponential", noisy_max(20.0, exponential=True, value=True),
           noisy_max(20.0, exponential=True), claim=TENTH, pairs=FAR, reference="DingWangKifer2018"),
    _entry("sparse vector 3", sparse_vector(20.0, 20.0, most=1, tells=True), sparse_vector(20.0, 40.0, most=1),
           claim=TENTH, pairs=SPLIT, reference="LyuSuLi2017"),
    _entry("sparse vector 4", sparse_vector(40.0, 40 / 3, most=3), sparse_vector(60.0, 120.0, most=3, renewed=60.0),
           claim=TENTH, pairs=SPLIT, truth="0.475", reference="LyuSuLi2017"),
    _entry("sparse vector 5", sparse_vector(20.0, 0.0, most=10), sparse_vector(20.0, 120.0, most=3),
           claim=TENTH, pairs=RISING + SPLIT, reference="LyuSuLi2017"),
    _entry("sparse vector 6", sparse_vector(20.0, 20.0, most=10), sparse_vector(20.0, 120.0, most=3),
           claim=TENTH, pairs=RISING + SPLIT, reference="LyuSuLi2017"),
    _entry("rare leak", leak(1e-4), leak(1e-4), claim=BlackBox(1.0, delta=1e-5),
           truth="infinite at a delta below 1e-4", twin_claim=BlackBox(1.0, delta=1e-4)),
    _called("mean by the true count", mean),
    _entry("never clamped", laplace(1.0, clamped=False), laplace(1.0), pairs=(Pair((), (30.0,)),)),
    _called("int when the noise is zero", typed),
    _entry("seeded by the data", seeded(private=False), seeded(private=True)),
    _entry("drawn again at the ends", truncated(private=False), truncated(private=True), truth="1.208"),
    _entry("randomized response", randomized_response(1.5), randomized_response(1.0), truth="1.5"),
    _called("answers from a cache", cached),
    Entry("honest at first", partial(_patient, 5000), partial(_patient, math.inf), truth="2 in the end"),
    _entry("one noise for all steps", training(fresh=False), training(),
           claim=STEPS, pairs=(Pair((0.5, -0.5), (0.5, -0.5, 2.0)),)),
    _entry("without clipping", training(clipped=False), training(),
           claim=STEPS, pairs=(Pair((0.5, -0.5), (0.5, -0.5, 10.0)),)),
    _called("time tells the noise", rejecting, timed=True),
    Entry("natural filter", _breaker, _breaker, claim=BlackBox(1.5, delta=0.05), pairs=(Pair(World.ZERO, World.ONE),),
          truth="more than 1.5 at a delta below 0.0634", twin_claim=BlackBox(1.5, delta=0.0635)),
)  # fmt: skip


def audited(entry: Entry, which: str, **options: Any) -> AuditResult:
    """The audit of an entry's broken mechanism, or of its twin."""
    broken = which == "broken"
    claim = entry.claim if broken or entry.twin_claim is None else entry.twin_claim
    subject = entry.broken() if broken else entry.twin()
    return audit(subject, entry.pairs, claim=claim, learners=LEARNERS, **options)


def main() -> int:
    """Audit the named entries, or all of them, and their twins."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--samples", type=int, default=2_000_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    known = [each.name for each in ENTRIES]
    if unknown := {*options.names} - {*known}:
        parser.error(f"{min(unknown)!r} is none of {', '.join(known)}")
    wrong = 0
    for entry in ENTRIES:
        for which in ("broken", "twin") if entry.name in (options.names or [entry.name]) else ():
            result = audited(entry, which, samples=options.samples, seconds=options.seconds)
            wrong += (result.verdict is Verdict.REFUTED) is not (which == "broken")
            print(
                f"{entry.name:28} {which:6} {result.verdict.value:12} {result.samples:>9,} samples  {result.event}"
            )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
