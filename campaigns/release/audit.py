"""Audits of releases on the exact aggregates of two neighboring tables: no event may distinguish
them better than charged.

python -m campaigns.release.audit [DRAWS] [SESSIONS] [QUESTION ...]      (10^6 draws, 10^4 sessions: half an hour)

For each question, noise is drawn many times on the aggregates of a table and of the table without
one unit, by the design that is charged, and audited against the charge. With probability at least 1
- ALARM over the whole campaign, no correct design is refuted. Designs with planted defects must be
refuted.
"""

from __future__ import annotations

import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import dpcompose.release as release
from campaigns.release.audited import (
    AuditedRelease,
    World,
    audited_question,
    audited_session,
    audited_worlds,
)
from campaigns.release.marginals import audited_rounds
from dpcompose.audit import AuditResult, Verdict, audit
from dpcompose.release.aggregate import Scans, exact
from dpcompose.release.columns import Change
from dpcompose.release.design import Design, NoiseStep, PeelingStep, RankStep, SelectionStep
from dpcompose.release.noise import DiscreteLaplaceNoise, Spend
from dpcompose.release.table import Table

ALARM = 1e-6
"""The probability that the audit of private designs reports any violation at all, at most."""
DELTA = 1e-3
ROWS = 2
_SPEND = {"epsilon": 1}
_PRIVATE = {"epsilon": 1, "delta": DELTA}
_CITIES = ["a", "b", "c"]

_STEPS: dict[str, Any] = {"granularity": 1, "per_granularity": 1}

QUESTIONS: dict[str, release.Question] = {
    "count": release.Count(spend=_SPEND),
    "count by keys": release.Count(by="city", keys=_CITIES, spend=_SPEND),
    "count, Gaussian": release.Count(by="city", keys=_CITIES, spend=_PRIVATE),
    "count by private keys": release.Count(by="city", spend=_PRIVATE),
    "units by keys": release.Units(by="city", keys=_CITIES, spend=_SPEND),
    "units by private keys": release.Units(by="city", spend=_PRIVATE),
    "sum": release.Sum("amount", lower=0, upper=3, granularity=1, spend=_SPEND),
    "mean": release.Mean("amount", lower=0, upper=4, granularity=1, spend=_SPEND),
    "histogram": release.Histogram(
        "amount", edges=[0, 2, 4, "1e21"], by="city", keys=_CITIES, spend=_SPEND
    ),
    "quantile": release.Quantile("amount", 0.5, lower=0, upper=4, granularity=1, spend=_SPEND),
    "variance": release.Variance("amount", lower=0, upper=4, granularity=1, spend=_SPEND),
    "deviation by keys": release.StandardDeviation(
        "amount", lower=0, upper=2, granularity=1, by="city", keys=_CITIES, spend=_SPEND
    ),
    "ratio": release.Ratio(
        "amount", per="age", lower=0, upper=2, per_lower=0, per_upper=1, spend=_SPEND, **_STEPS
    ),
    "quantiles": release.Quantiles(
        "amount", [0.25, 0.75], lower=0, upper=4, granularity=1, spend=_SPEND
    ),
    "minimum": release.Minimum("amount", lower=0, upper=3, granularity=1, spend=_SPEND),
    "maximum": release.Maximum("amount", lower=0, upper=3, granularity=1, spend=_SPEND),
    "top by counts": release.Top(2, by="city", keys=_CITIES, method="counts", spend=_SPEND),
    "top by peeling": release.Top(2, by="city", keys=_CITIES, method="peeling", spend=_SPEND),
    "top of private keys": release.Top(2, by="city", spend=_PRIVATE),
    "distinct": release.Distinct("city", spend=_SPEND),
    "distinct by keys": release.Distinct("age", by="city", keys=_CITIES, spend=_SPEND),
    "contingency table": release.Contingency(
        by=["city", "age"], keys=[["a", "c"], [1, 7]], spend=_SPEND
    ),
    "rows per unit": release.RowsPerUnit(spend=_SPEND),
    "rows per unit by keys": release.RowsPerUnit(by="city", keys=_CITIES, most=2, spend=_SPEND),
    "left out": release.LeftOut(release.Count(), spend=_SPEND),
}


def neighbors() -> tuple[Table, Table]:
    """A table, and the same with a unit that alone holds a key, shares another, and pulls every number one way."""
    rows = [("p1", "a", 1.0, 1), ("p2", "a", 2.0, 1), ("p2", "b", 0.0, 2), ("p3", "b", 4.0, 3)]
    unit = [("q", "c", 9.0, 7), ("q", "a", 1e20, 7)]
    return _table(rows), _table(rows + unit)


def _table(rows: Sequence[tuple[str, str, float, int]]) -> Table:
    names = ("person", "city", "amount", "age")
    frame = pa.table(
        dict(zip(names, (list(cells) for cells in zip(*rows, strict=True)), strict=True))
    )
    return release.table(frame, unit="person", max_rows_per_unit=ROWS)


def totals(asked: release.Question, table: Table) -> Counter[tuple[Any, ...]]:
    """The exact integers of a question, by group, bin and measure."""
    found = exact(table, asked.design(table).aggregation)
    cells = ((key, bin, numbers) for key, bins in found.items() for bin, numbers in bins.items())
    return Counter(
        {(key, bin, at): n for key, bin, numbers in cells for at, n in enumerate(numbers)}
    )


def audited(asked: release.Question, draws: int, alarm: float) -> AuditResult:
    """The audit of one question, on the neighbors."""
    return _found(audited_question(asked, *neighbors()), draws, alarm)


def _found(
    what: AuditedRelease, draws: int, alarm: float, journal: Path | None = None
) -> AuditResult:
    return audit(
        what.subject,
        [what.pair],
        claim=what.claim,
        alpha=alarm,
        samples=draws,
        ladder=False,
        resume=journal,
    )


def sessions(count: int, alarm: float) -> AuditResult:
    """The audit of whole sessions: a batch of three questions, charged and answered, on both tables."""
    asked = [QUESTIONS["count"], QUESTIONS["units by keys"], QUESTIONS["sum"]]
    tables, made, write = neighbors(), dict[int, Scans](), Scans.of
    small = [replace(each, spend={"epsilon": "0.5"}) for each in asked]

    def written(wanted: Sequence[tuple[Table, Any]], _sampling: object) -> Scans:
        """To write the same statements again takes most of a session's time, and tells nothing."""
        place = id(wanted[0][0])
        if place not in made:
            made[place] = write(wanted)
        return made[place]

    with patch.object(Scans, "of", written):
        return _found(audited_session(small, *tables), count, alarm)


def marginals(draws: int, alarm: float) -> AuditResult:
    """The audit of the rounds that measure marginals for synthetic data."""
    return _found(audited_rounds(), draws, alarm)


# --- Planted defects: each must be found. ---


def too_little_noise_on_marginals(draws: int) -> AuditResult:
    """Marginals with a quarter of the noise."""
    return _found(audited_rounds(parts=4), draws, ALARM)


def _planted(name: str, draws: int, worlds: Sequence[World]) -> AuditResult:
    """The audit of two worlds against what the question of that name is charged."""
    claim = QUESTIONS[name].design(neighbors()[0]).mechanism
    return _found(audited_worlds(worlds[0], worlds[1], claim=claim, name=name), draws, ALARM)


def too_little_noise(draws: int) -> AuditResult:
    """Noise for a sensitivity of 1 where 2 is due."""
    honest = QUESTIONS["count"].design(neighbors()[0])
    one = Change(1, 1, 1, 1, box=True)
    design = replace(
        honest, steps=(NoiseStep(DiscreteLaplaceNoise.costing(one, Spend(Fraction(1), "epsilon"))),)
    )
    return _planted(
        "count", draws, [World(design, exact(table, design.aggregation)) for table in neighbors()]
    )


def missing_group_dropped(draws: int) -> AuditResult:
    """Only the groups that have rows come out, without a threshold."""
    design = QUESTIONS["count by keys"].design(neighbors()[0])

    def world(table: Table) -> World:
        found = exact(table, design.aggregation)
        there = replace(design.aggregation, public=tuple(sorted(found)))
        return World(replace(design, aggregation=there), found)

    return _planted("count by keys", draws, [world(table) for table in neighbors()])


def noise_before_clamping(draws: int) -> AuditResult:
    """Noise for clamped values on a sum of values that were never clamped."""
    first, _ = neighbors()
    design = QUESTIONS["sum"].design(first)
    wide = release.Sum("amount", lower=0, upper=30, granularity=1, spend=_SPEND).design(first)
    return _planted(
        "sum", draws, [World(design, exact(table, wide.aggregation)) for table in neighbors()]
    )


def float_sum(draws: int) -> AuditResult:
    """A sum in floating point, on a table built to expose it: one unit's rows decide how all others are rounded.

    In half precision, so that a thousand rows do; doubles do the same with more rows. Below 2048 halves are 1 apart,
    above 2 apart: -0.6 and +0.4 take 1 off there and nothing here. A unit that lifts the sum over 2048 saves 500.
    """
    others = [2047.0, *([-0.6, 0.4] * 500)]
    unit = [1.5, 1.5]
    honest = release.Sum("amount", lower=-3, upper=3, granularity=1, spend=_SPEND).design(
        neighbors()[0]
    )

    def added(values: Sequence[float]) -> int:
        total = 0.0
        for value in values:
            (total,) = struct.unpack("e", struct.pack("e", total + value))
        return int(total) - 2040

    return _planted(
        "sum",
        draws,
        [World(honest, {(): {0: (1, added(rows))}}) for rows in (others, unit + others)],
    )


def weakened(design: Design, parts: float = 4) -> Design:
    """The same design with noise for a sensitivity so many times too small."""

    def quieter(noise: Any) -> Any:
        return replace(noise, spread=noise.spread / parts)

    steps: list[Any] = []
    for step in design.steps:
        match step:
            case NoiseStep():
                steps.append(replace(step, noise=quieter(step.noise)))
            case RankStep():
                # From above, a rank that so few rows reach.
                rank = 2 if step.above else step.rank
                steps.append(replace(step, selection=quieter(step.selection), rank=rank))
            case SelectionStep():
                steps.append(replace(step, selection=quieter(step.selection)))
            case PeelingStep():
                steps.append(
                    replace(step, noise=quieter(step.noise), selection=quieter(step.selection))
                )
            case _:
                raise AssertionError(step)
    threshold = design.threshold
    if threshold is not None:
        threshold = replace(threshold, noise=quieter(threshold.noise))
    return replace(design, steps=tuple(steps), threshold=threshold)


def wrong_sensitivity(name: str, draws: int, parts: float = 4) -> AuditResult:
    """A question whose noise is for a quarter of the sensitivity."""
    first, second = neighbors()
    honest = QUESTIONS[name].design(first)
    weak = weakened(honest, parts)
    worlds = [World(weak, exact(table, weak.aggregation)) for table in (first, second)]
    return _found(audited_worlds(*worlds, claim=honest.mechanism, name=name), draws, ALARM)


WHOLES = ("sessions", "marginals")
NEW = list(QUESTIONS)[list(QUESTIONS).index("variance") :]
PLANTED: dict[str, Callable[[int], AuditResult]] = {
    "sensitivity 1 where 2 is due": too_little_noise,
    "a missing group dropped": missing_group_dropped,
    "noise before clamping": noise_before_clamping,
    "a float sum": float_sum,
    "too little noise on marginals": too_little_noise_on_marginals,
    # Of so few rows no private key comes out.
    **{
        f"wrong sensitivity: {name}": partial(wrong_sensitivity, name)
        for name in NEW
        if "private" not in name
    },
}


def main() -> None:
    draws = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6
    played = int(float(sys.argv[2])) if len(sys.argv) > 2 else 10**4
    chosen = sys.argv[3:] or [*QUESTIONS, *WHOLES, "planted"]
    alarm = ALARM / (len(QUESTIONS) + len(WHOLES))
    bad = False
    for name in chosen:
        began = time.perf_counter()
        if name == "planted":
            for planted, plant in PLANTED.items():
                found = plant(min(draws, 10**5))
                bad |= found.verdict is not Verdict.REFUTED
                print(
                    f"planted: {planted:32} {found.verdict.value}, {found.samples:,} draws  {found.event}",
                    flush=True,
                )
            continue
        if name in WHOLES:
            found = sessions(played, alarm) if name == "sessions" else marginals(draws, alarm)
        else:
            found = audited(QUESTIONS[name], draws, alarm)
        bad |= found.verdict is Verdict.REFUTED
        took, excess = (
            time.perf_counter() - began,
            max((tried.excess for tried in found.tried), default=0.0),
        )
        print(f"{name:24} {found.verdict.value}, {found.samples:,} draws, largest excess {excess:+.5f}, unseen "
              f"{found.unseen:.2g}  {took:.0f} s", flush=True)  # fmt: skip
    verdict = "a violation, or a plant missed" if bad else "all as it should be"
    print(f"false alarm probability at most {ALARM:g}: {verdict}")
    sys.exit(bad)


if __name__ == "__main__":
    main()
