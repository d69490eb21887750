"""Mistakes and oddities that the audit was not developed for: mistakes must be refuted by default
settings, oddities not.

    python -m campaigns.audit_attack [--seconds 60] [--samples 200000] [--only TEXT]

A refutation for repeated calls counts too. Exit status 1 if a mistake outside of `MISSED` is not
refuted, or an oddity is.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np

from campaigns.audit_bugs import RNG, Bug, Call, Rows, audited, clamped, fine, lap
from dpcompose import BlackBox
from dpcompose.audit import Verdict


def common_noise(rows: Rows) -> list[float]:
    """A sum and a count with one draw of noise between them."""
    noise = lap(2.0)
    return [clamped(rows) + noise, len(rows) + noise]


def by_size(rows: Rows) -> dict[str, float]:
    """Noisy counts, in the order of the true ones."""
    counts = {"low": sum(row < 0.5 for row in rows), "high": sum(row >= 0.5 for row in rows)}
    return {name: counts[name] + lap(1.0) for name in sorted(counts, key=lambda each: counts[each])}


def digits(rows: Rows) -> float:
    """A noisy sum with as many decimals as a number of that many rows deserves."""
    return round(clamped(rows) + lap(1.0), 1 + min(4, len(rows)))


def seed_of_time(rows: Rows) -> float:
    """Noise from a generator whose seed is the time in hundredths of a second."""
    return clamped(rows) + fine(np.random.default_rng(int(time.time() * 100)).laplace())


def sometimes_exact() -> Call:
    """Every fiftieth call answers without noise, as if debugging had been left on."""
    calls = itertools.count(1)
    return lambda rows: clamped(rows) + (lap(1.0) if next(calls) % 50 else 0.0)


def strict(rows: Rows) -> float:
    """A noisy sum that refuses datasets in which two records are equal."""
    if len(set(rows)) != len(rows):
        raise ValueError("duplicates")
    return clamped(rows) + lap(1.0)


def nearest(rows: Rows) -> float:
    """The record nearest to a noisy mean, which is thought to be as private as the mean."""
    return min(rows, key=lambda row: abs(row - clamped(rows) - lap(1.0)), default=0.0)


def sample_size(rows: Rows) -> list[float]:
    """A noisy sum over a random half of the rows, and how many they were."""
    taken = [row for row in rows if RNG.random() < 0.5]
    return [clamped(taken) + lap(1.0), len(taken)]


def two_bits(rows: Rows) -> list[int]:
    """Two properties of the last record, each by randomized response with the whole budget."""
    record = rows[-1] if rows else 0.0
    truth = 1 / (1 + math.exp(-1.0))
    return [int((RNG.random() < truth) == bit) for bit in (record > 0.5, record > 0.25)]


def running_mean() -> Call:
    """The mean of all noisy answers so far, each of which alone is private."""
    answers: dict[int, list[float]] = {}

    def call(rows: Rows) -> float:
        earlier = answers.setdefault(len(rows), [])
        earlier.append(clamped(rows) + lap(1.0))
        return fine(math.fsum(earlier) / len(earlier))

    return call


def streamed(rows: Rows) -> Iterator[float]:
    """One noisy number for each row, up to five."""
    for row in itertools.islice(rows, 5):
        yield clamped([row]) + lap(5.0)


def rare(rows: Rows) -> float:
    """One call in three hundred tells how many rows there are."""
    return float(len(rows)) if RNG.random() < 1 / 300 else clamped(rows) + lap(1.0)


def labelled(rows: Rows) -> str:
    """A text with an identifier of the answer, which is random."""
    return f"{uuid.uuid4()}: about {clamped(rows) + lap(1.0):.3f} of {random.randrange(10**6)}"


def unreliable(rows: Rows) -> float:
    """Refuses at random, with a message that is random too."""
    if random.random() < 0.3:
        raise random.choice([ValueError, KeyError, OSError])(f"try again in {random.random()} s")
    return clamped(rows) + lap(1.0)


def buffered() -> Call:
    """Noise that was drawn beforehand, a thousand at a time, used once each."""
    noise = list[float]()

    def call(rows: Rows) -> float:
        if not noise:
            noise.extend(lap(1.0) for _ in range(1000))
        return clamped(rows) + noise.pop()

    return call


def tired() -> Call:
    """Noise that grows with every call."""
    calls = itertools.count(1000)
    return lambda rows: clamped(rows) + lap(next(calls) / 1000)


def motley(rows: Rows) -> Any:
    """A noisy sum in a form, a type and a place that are random."""
    noisy = clamped(rows) + lap(1.0)
    forms: list[Any] = [
        noisy,
        [noisy],
        {"a": noisy},
        (None, noisy),
        np.float32(noisy),
        math.nan,
        str(noisy),
    ]
    return random.choice(forms)


def permute_and_flip(answers: Rows) -> int:
    """The mechanism of McKenna and Sheldon (2020), exact at its epsilon."""
    best = max(answers)
    for place in RNG.permutation(len(answers)).tolist():
        if RNG.random() < math.exp((answers[place] - best) / 2):
            return place
    raise AssertionError("the best one is always accepted")


def honest(rows: Rows) -> float:
    return clamped(rows) + lap(1.0)


MISTAKES: dict[str, Call] = {
    "one noise for two answers": common_noise, "keys in the order of true counts": by_size,
    "decimals by the number of rows": digits, "a seed of the time": seed_of_time,
    "every fiftieth answer exact": sometimes_exact(), "duplicates refused": strict, "the nearest record": nearest,
    "size of a sample": sample_size, "two bits at the price of one": two_bits, "mean of all answers": running_mean(),
    "as many numbers as rows": streamed, "rarely the number of rows": rare,
}  # fmt: skip
ODDITIES: dict[str, Call] = {
    "a random label": labelled, "refuses at random": unreliable, "noise from a buffer": buffered(),
    "noise that grows": tired(), "forms at random": motley, "permute and flip": permute_and_flip,
}  # fmt: skip


MISSED = ("a seed of the time",)
"""Mistakes that are known to be missed: those answers recur in one batch, whose bets are fixed before it."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    wrong = 0
    for name, call in (MISTAKES | ODDITIES).items():
        if options.only not in name:
            continue
        queries = {"queries": 5} if call is permute_and_flip else {}
        bug = Bug(name, "", call, honest, BlackBox(1.0), options=queries)
        found = audited(bug, "broken", seconds=options.seconds, samples=options.samples)
        refuted = found.verdict is Verdict.REFUTED
        wrong += refuted is not (name in MISTAKES) and name not in MISSED
        repeated = " (for repeated calls)" if found.repeated else ""
        print(
            f"{name:34} {found.verdict.value}{repeated:22} {found.samples:>9,}  {found.event}",
            flush=True,
        )
    print(f"{wrong} of {len(MISTAKES | ODDITIES)} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
