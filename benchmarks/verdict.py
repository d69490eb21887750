"""Verdicts on claimed values against the truth, and on groups of cases against their targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.case import Case
from benchmarks.catalog import TARGETS, Target
from benchmarks.measure import Measurement
from benchmarks.systems import OURS, REFERENCE, RENYI

GOLDEN = 1e-13
"""Golden values hold for decimal parameters; their nearest doubles move them by 1e-15 to 1e-14."""


@dataclass(frozen=True)
class Truth:
    """An interval that contains the true value, and where it comes from."""

    lower: float
    upper: float
    source: str


@dataclass(frozen=True)
class Verdict:
    """How far a claimed upper value is from the truth.

    Args:
        excess: (claim - truth) / truth, to the nearer end; 0 within the truth's interval, negative below it.
        unsound: Whether the claim is not an upper bound: below the truth, NaN, or with a lower end above the truth.
    """

    excess: float
    unsound: bool

    @property
    def words(self) -> str:
        """The excess with its direction."""
        if math.isnan(self.excess):
            return "**UNSOUND** not a number"
        if self.excess == math.inf:
            return "infinite"
        size = "inside" if self.excess == 0 else f"{self.excess:+.1e}"
        return f"**UNSOUND** {size}" if self.unsound else size


def truth(case: Case, ours: Measurement | None) -> Truth | None:
    """The golden value where there is one, else dpcompose's certified interval; None where there is neither."""
    if case.golden is not None:
        return Truth(case.golden * (1 - GOLDEN), case.golden * (1 + GOLDEN), "golden")
    if ours is None or ours.failure or not ours.lower > 0:
        return None
    return Truth(ours.lower, ours.upper, "certified")


def judge(upper: float, truth: Truth, *, lower: float = -math.inf) -> Verdict:
    """Whether `upper` is an upper value, and by how much it exceeds the truth."""
    if upper > truth.upper:
        excess = upper / truth.upper - 1
    elif upper < truth.lower:
        excess = upper / truth.lower - 1
    else:
        excess = upper if math.isnan(upper) else 0.0
    return Verdict(excess, not (upper >= truth.lower and lower <= truth.upper))


@dataclass(frozen=True)
class Outcome:
    """The worst of a group of cases against its target; NaN where nothing was measured."""

    target: Target
    speedup: float
    over_renyi: float
    width: float

    @property
    def met(self) -> bool:
        """Whether every demand is met."""
        fast = self.target.speedup is None or self.speedup >= self.target.speedup
        beats = not self.target.beats_renyi or self.over_renyi > 1
        return fast and beats and (self.target.width is None or self.width <= self.target.width)


Results = Sequence[tuple[Case, Mapping[str, Measurement]]]


def outcomes(results: Results) -> list[Outcome]:
    """One for every target that has cases among the results."""
    found: list[Outcome] = []
    for group, target in TARGETS.items():
        measured = [row for case, row in results if case.group == group and OURS in row]
        if measured:
            widths = [row[OURS].width for row in measured]
            width = (
                math.nan if any(map(math.isnan, widths)) else max(widths)
            )  # no answer meets nothing
            found.append(
                Outcome(
                    target,
                    least_speedup(measured, REFERENCE),
                    least_speedup(measured, RENYI),
                    width,
                )
            )
    return found


def least_speedup(rows: Sequence[Mapping[str, Measurement]], peer: str) -> float:
    """The least of the rows in which both have a time; NaN if there is none."""
    ratios = (speedup(row, peer) for row in rows)
    return min((ratio for ratio in ratios if not math.isnan(ratio)), default=math.nan)


def speedup(row: Mapping[str, Measurement], peer: str) -> float:
    """The peer's time over ours; at least that where it ran out of time; NaN where either has no time."""
    if peer not in row or not row[OURS].time > 0:
        return math.nan
    return (row[peer].over or row[peer].time) / row[OURS].time
