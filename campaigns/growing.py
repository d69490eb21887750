"""Growing histories of sampled Gaussians against fresh questions and integrals: `python -m campaigns.growing`.

Written from the promise of `GrowingEpsilon` alone: each answer is that of the whole history, to the last bit whether or
not shorter ones were asked, and its ends enclose the truth. A history has one to six phases, or a new noise and rate at
every step; rates go down to 1e-9, noises from .05 to 200, deltas from 1e-3 to 1e-40. Questions are skipped and repeated.
Each grown answer must be that of a fresh object, and meet that of the composition, another engine.

Two peers that share no code with the library know the truth. Two steps: the profile of the second one, a formula,
integrated over the first one by mpmath. Any number of steps with a delta from 1e-9 on: losses rounded up, and rounded
down, to a grid, convolved by FFT. Both must have delta between the profiles at the ends of epsilon.

Control, which must fail: answers whose ends are moved by their own width.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from unittest.mock import patch

import mpmath
import numpy as np
from scipy.special import ndtr

from dpcompose import Bound, Gaussian, compose
from dpcompose.composition import Composable, GrowingEpsilon, batch

Step = tuple[float, float]
"""A noise multiplier and a rate."""
Schedule = list[tuple[Step, int]]


class GrowingError(Exception):
    """An answer that another one, or the truth, contradicts."""


class _OffLineError(Exception):
    """A history that no line serves, so that it would be asked as a composition."""


def line_answer(growing: GrowingEpsilon, history: list[tuple[Composable, int]]) -> Bound | None:
    """The answer of a line; None if no line serves the history."""
    with patch.object(batch, "compose", side_effect=_OffLineError):
        try:
            return growing.bound(history)
        except _OffLineError:
            return None


def _log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _step(rng: random.Random) -> Step:
    """A noise and a rate; half of them such as people train with."""
    if rng.random() < 0.5:
        return _log_uniform(rng, 0.5, 20), _log_uniform(rng, 1e-4, 0.5)
    rate = rng.choice([1e-9, 1e-4, 1e-2, 0.3, _log_uniform(rng, 1e-9, 0.999)])
    return _log_uniform(rng, 0.05, 200), rate


def schedule(rng: random.Random) -> Schedule:
    """A random history, as steps with their numbers."""
    if rng.random() < 0.5:
        most = 10 ** rng.uniform(0, 3.5)
        return [(_step(rng), max(1, int(most * rng.random()))) for _ in range(rng.randrange(1, 7))]
    noise, rate = _step(rng)
    slope = rng.choice([0.999, 0.99, 1.0, 1.003, rng.uniform(0.9, 1.1)])
    steps: Schedule = []
    for _ in range(rng.randrange(2, 60)):
        noise = min(max(noise * slope * rng.uniform(0.98, 1.02), 0.05), 200.0)
        rate = min(max(rate * rng.uniform(0.9, 1.1), 1e-9), 0.999)
        steps.append(((noise, rate), 1))
    return steps


def delta_of(rng: random.Random) -> float:
    return 10 ** -rng.choice([3.0, 5.0, 6.0, rng.uniform(3, 12), rng.uniform(12, 40)])


def _mechanisms(steps: Schedule) -> list[tuple[Composable, int]]:
    known: dict[Step, Composable] = {}
    return [
        (known.setdefault(each, Gaussian(each[0]).sampled(each[1])), times) for each, times in steps
    ]


def prefixes(rng: random.Random, steps: Schedule) -> Iterator[Schedule]:
    """Some histories that grow to the whole one, some of them asked twice."""
    for at, (each, times) in enumerate(steps):
        is_last = at == len(steps) - 1
        if not is_last and rng.random() < 0.6:
            continue
        count = 0
        while count < times:
            count = min(times, count + rng.choice([1, 1, 2, 7, times]))
            if rng.random() < 0.5 or (is_last and count == times):
                for _ in range(rng.choice([1, 1, 2])):
                    yield [*steps[:at], (each, count)]
            if rng.random() < 0.3:
                count = times if not is_last else max(count, times - 2)


def meets(one: Bound, other: Bound) -> bool:
    return max(one.lower, other.lower) <= min(one.upper, other.upper)


def grown(rng: random.Random, *, most: int = 4) -> tuple[Schedule, float, Bound | None, int]:
    """A history that was asked while it grew; GrowingError if an answer is not that of a fresh question.

    Returns:
        The history, delta, the answer if it is on a line, and how many answers were.
    """
    steps, delta = schedule(rng), delta_of(rng)
    mechanisms, growing, count = _mechanisms(steps), GrowingEpsilon(delta), 0
    same, answer = dict(zip([each for each, _ in steps], mechanisms, strict=True)), None
    questions = [*prefixes(rng, steps)]
    few = sorted(rng.sample(range(len(questions) - 1), min(most, len(questions) - 1)))
    for history in [*(questions[at] for at in few), questions[-1]]:
        entries = [(same[each][0], times) for each, times in history]
        answer, fresh = (
            line_answer(growing, entries),
            line_answer(GrowingEpsilon(delta), entries),
        )
        if answer != fresh:
            raise GrowingError(f"{history} at {delta}: grown {answer}, fresh {fresh}")
        count += answer is not None
    if answer is not None:
        whole = compose(*(mechanism * times for mechanism, times in mechanisms)).epsilon(
            delta=delta
        )
        if not meets(answer, whole):
            raise GrowingError(f"{steps} at {delta}: grown {answer}, the composition {whole}")
    return steps, delta, answer, count


# Peer one: two steps, by an integral.


def _profile(level: mpmath.mpf, step: Step, *, remove: bool) -> mpmath.mpf:
    """delta at any epsilon of one Gaussian step on a Poisson sample."""
    noise, rate = (mpmath.mpf(each) for each in step)
    if remove:
        odds = (mpmath.exp(level) - 1 + rate) / rate
        factor = rate
    else:
        factor = 1 - mpmath.exp(level) * (1 - rate)
        odds = mpmath.exp(level) * rate / factor if factor > 0 else mpmath.inf
    if factor <= 0:
        return mpmath.mpf(0)
    if odds <= 0:
        return 1 - mpmath.exp(level)
    inner = mpmath.log(odds)
    first, second = noise * inner - 1 / (2 * noise), noise * inner + 1 / (2 * noise)
    return factor * (mpmath.ncdf(-first) - odds * mpmath.ncdf(-second))


def two_steps(epsilon: float, steps: Sequence[Step], *, remove: bool) -> mpmath.mpf:
    """delta at epsilon of two Gaussian steps on Poisson samples, of a record removed or added."""
    (noise, rate), other = steps
    s, q = mpmath.mpf(noise), mpmath.mpf(rate)

    def ratio(x: mpmath.mpf) -> mpmath.mpf:
        return 1 - q + q * mpmath.exp((2 * x - 1) / (2 * s * s))

    def term(x: mpmath.mpf) -> mpmath.mpf:
        sampled = ratio(x)
        weight = mpmath.npdf(x, 0, s)
        weight = weight * sampled if remove else weight
        loss = mpmath.log(sampled) if remove else -mpmath.log(sampled)
        return weight * _profile(epsilon - loss, other, remove=remove)

    edges = [mpmath.mpf(each) * s for each in (-60, -40, -28, -20, -14, -9, -5, -2, 0)]
    ends = sorted(
        {
            *edges,
            *(-each for each in edges),
            *(1 + each for each in edges),
            *(1 - each for each in edges),
        }
    )
    # Where the second step releases all: its profile has a corner there.
    corner = epsilon - mpmath.log(1 - mpmath.mpf(other[1]))
    level = (mpmath.exp(corner) - 1 + q) / q if remove else None
    if level is not None and level > 0:
        ends = sorted({*ends, mpmath.log(level) * s * s + mpmath.mpf(1) / 2})
    value: mpmath.mpf = mpmath.quad(term, ends)  # pyright: ignore[reportAssignmentType]
    return value


def require_two_steps(steps: Sequence[Step], delta: float, answer: Bound) -> None:
    """GrowingError if the profile of two steps does not have delta between the ends of epsilon."""
    with mpmath.workdps(40):
        for end, is_upper in ((answer.lower, False), (answer.upper, True)):
            curve = max(two_steps(end, steps, remove=each) for each in (True, False))
            slack = mpmath.mpf(10) ** -14
            if (
                (curve > delta * (1 + slack))
                if is_upper
                else (end > 0 and curve < delta * (1 - slack))
            ):
                raise GrowingError(
                    f"{list(steps)} at {delta}: {answer}, but delta at {end!r} is {mpmath.nstr(curve, 17)}"
                )


# Peer two: any number of steps, by convolutions of losses on a grid.


def _masses(step: Step, grid: np.ndarray, *, remove: bool) -> np.ndarray:
    """The mass of the first distribution of a pair at losses in each cell, and of the cells' ends below and above."""
    noise, rate = step
    ratios = (np.expm1(grid) + rate) / rate if remove else (np.expm1(-grid) + rate) / rate
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(ratios > 0, np.log(np.maximum(ratios, 1e-300)) * noise**2 + 0.5, -np.inf)
    below = (
        (1 - rate) * ndtr(x / noise) + rate * ndtr((x - 1) / noise) if remove else ndtr(x / noise)
    )
    distribution = below if remove else 1 - below
    return np.diff(distribution, prepend=0.0, append=1.0)


def convolved(
    epsilon: float, steps: Schedule, *, remove: bool, cell: float, size: int
) -> tuple[float, float]:
    """delta at epsilon, with all losses rounded down, and rounded up, to a grid; masses beyond it count as infinite above."""
    grid = cell * np.arange(-(size // 2), size // 2)
    ends = []
    for is_up in (False, True):
        total, outside = np.ones(size // 2 + 1, dtype=complex), 0.0
        for step, times in steps:
            mass = _masses(step, grid, remove=remove)
            inner = mass[1:-1]
            rounded = np.concatenate([[0.0], inner]) if is_up else np.concatenate([inner, [0.0]])
            rounded[0] += mass[0]
            outside += times * mass[-1]
            total = total * np.fft.rfft(np.roll(rounded, -(size // 2))) ** times
        sums = np.roll(np.fft.irfft(total, size), size // 2)
        value = float(np.sum(np.maximum(sums, 0.0) * -np.expm1(np.minimum(epsilon - grid, 0.0))))
        ends.append(value + outside * is_up)
    return ends[0], ends[1]


def require_convolved(steps: Schedule, delta: float, answer: Bound) -> bool:
    """GrowingError if delta on a grid contradicts the ends of epsilon; False if the grid shows nothing."""
    size, count = 1 << 17, sum(times for _, times in steps)
    span = 6.0 * (answer.upper + 1.0)
    shown = True
    for end, is_upper in ((answer.lower, False), (answer.upper, True)):
        curves = [
            convolved(end, steps, remove=each, cell=2 * span / size, size=size)
            for each in (True, False)
        ]
        low, high = (max(each[at] for each in curves) for at in (0, 1))
        spare = 1e-13 * (count + 10)
        if is_upper and low > delta * (1 + 1e-9) + spare:
            raise GrowingError(
                f"{steps} at {delta}: {answer}, but delta at {end!r} is at least {low!r}"
            )
        if not is_upper and end > 0 and high < delta * (1 - 1e-9) - spare:
            raise GrowingError(
                f"{steps} at {delta}: {answer}, but delta at {end!r} is at most {high!r}"
            )
        shown &= high < 2 * delta if is_upper else high >= delta / 2
    return shown


def campaign(
    *, histories: int, seed: int, first: int = 0, integrals: float = 0.3, moved: float = 0.0
) -> str:
    """Try so many random histories; GrowingError if an answer is contradicted.

    Args:
        histories: How many.
        seed: The seed.
        first: The number of the first.
        integrals: In which part of two steps the integral is taken.
        moved: By how many of its widths an answer is moved up before the truth is asked: the control.
    """
    outcomes: Counter[str] = Counter()
    for number in range(first, first + histories):
        rng = random.Random(f"{seed}/{number}")
        steps, delta, answer, lines = grown(rng)
        outcomes["histories"] += 1
        outcomes["answers of lines"] += lines
        if answer is not None:
            outcomes["wholes that met the composition"] += 1
        if answer is not None and delta >= 1e-9 and 0 < answer.upper < 50 and len(steps) <= 12:
            shown = require_convolved(steps, delta, answer)
            outcomes["held by convolutions" if shown else "convolutions that show little"] += 1
        first_step = _step(rng)
        pair = [first_step, rng.choice([first_step, _step(rng)])]
        answer = line_answer(GrowingEpsilon(delta), _mechanisms([(each, 1) for each in pair]))
        if answer is not None and rng.random() < integrals:
            away = moved * (answer.upper - answer.lower)
            require_two_steps(pair, delta, Bound(answer.lower + away, answer.upper + away))
            outcomes["held by integrals"] += 1
    return ", ".join(f"{times:,} {name}" for name, times in outcomes.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first history")
    options = parser.parse_args()
    try:
        campaign(histories=60, seed=options.seed, moved=3.0)
    except GrowingError as caught:
        print(f"control: caught: {str(caught)[:200]}", flush=True)
    else:
        sys.exit("the control passed")
    print(campaign(histories=options.histories, seed=options.seed, first=options.first), flush=True)


if __name__ == "__main__":
    main()
