"""How often the limits of a survival function hold at all places at once, and how wide they are.

    python -m campaigns.bands [--runs 10000] [--transcripts 1000] [--seed 1]

Losses are drawn from a normal law, whose survival function is known. A run misses if some limit is wrong at some real
number: limits are steps, so that their ends suffice. The control counts every loss four times, and claims as much.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from scipy import stats

from dpcompose.experiment import Tally
from dpcompose.experiment.measured import ranks_of, shares_of, survival

FAILURES = (0.2, 0.02)
COUNTS = (0, 1, 2, 5, 20, 100, 1000, 10_000)


def misses(*, runs: int, transcripts: int, failure: float, seed: int, copies: int = 1) -> int:
    """The number of runs in which some limit was wrong; each loss is counted so many times."""
    rng, missed, law = np.random.default_rng(seed), 0, stats.norm
    for _ in range(runs):
        losses = np.repeat(rng.normal(0.0, 1.0, transcripts), copies)
        limits = survival(Tally.of(losses), failure=failure, margin=0.0)
        lower, upper = np.cumsum(limits.low), np.cumsum(limits.high)[:-1]
        # At most this just below a place, and at least this at it.
        too_high = np.any(lower > law.sf(limits.low_at))
        missed += bool(too_high or np.any(law.sf(limits.high_at[1:]) > upper))
    return missed


def holds(missed: int, runs: int, failure: float) -> bool:
    """Whether so many misses agree with the failure probability: false alarm about 1e-6."""
    return bool(stats.binom.sf(missed - 1, runs, failure) > 1e-6)


def ratios(transcripts: int, *, failure: float) -> Iterator[float]:
    """The width over that of the limits of one single place, by the number of losses above it."""
    ranks = ranks_of(transcripts)
    levels = failure / 2 * shares_of(ranks, transcripts)
    for count in COUNTS:
        below, above = (
            np.searchsorted(ranks, count, side="right") - 1,
            np.searchsorted(ranks, count + 1),
        )
        low = (
            0.0
            if count == 0
            else stats.beta.ppf(levels[below], ranks[below], transcripts - ranks[below] + 1)
        )
        high = stats.beta.isf(levels[above], ranks[above], transcripts - ranks[above] + 1)
        single = stats.beta.isf(failure / 2, count + 1, transcripts - count)
        single -= 0.0 if count == 0 else stats.beta.ppf(failure / 2, count, transcripts - count + 1)
        yield float((high - low) / single)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--transcripts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    common = {"runs": options.runs, "transcripts": options.transcripts, "seed": options.seed}
    for failure in FAILURES:
        missed = misses(failure=failure, **common)
        verdict = "holds" if holds(missed, options.runs, failure) else "FAILS"
        share = missed / options.runs
        print(
            f"failure {failure}: {missed} of {options.runs} runs miss, {share:.4f}: {verdict}",
            flush=True,
        )
        few = min(options.runs, 1000)
        caught = not holds(
            misses(failure=failure, copies=4, **(common | {"runs": few})), few, failure
        )
        print(
            f"control, every loss counted four times: {'caught' if caught else 'NOT CAUGHT'}",
            flush=True,
        )
    for failure in (0.05, 1e-6):
        pairs = zip(COUNTS, ratios(1 << 20, failure=failure), strict=True)
        shown = " ".join(f"{count}: {ratio:.2f}" for count, ratio in pairs)
        print(
            f"width over that of a single place, failure {failure}, of 2^20 losses, by those above: {shown}"
        )


if __name__ == "__main__":
    main()
