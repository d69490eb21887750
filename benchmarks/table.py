"""The results as markdown: the targets, then every case with every system."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.case import Case
from benchmarks.catalog import FEWEST, MOST
from benchmarks.measure import Measurement
from benchmarks.systems import OURS, TITLES
from benchmarks.verdict import Outcome, Results, judge, outcomes, speedup, truth

MEMORY, CONSTANT = 300, 2.0
"""Megabytes that no case may exceed, and how many times longer the most steps may take than the fewest."""


@dataclass(frozen=True)
class Run:
    """One run of the benchmark.

    Args:
        results: Every case with what each system did.
        versions: Per system, its version or why it was left out.
        machine: Where and when.
    """

    results: Results
    versions: Mapping[str, str]
    machine: str


def markdown(run: Run) -> str:
    """Both tables, and under what they were measured."""
    rows = [*_targets(run), "", *_cases(run), "", *_systems(run)]
    return "\n".join(rows) + "\n"


def _targets(run: Run) -> Iterable[str]:
    titles = [
        "demanded of every case",
        "faster than PLD, grid 1e-4",
        "faster than its RDP",
        "relative width",
        "met",
    ]
    yield f"| {' | '.join(titles)} |"
    yield "|---|---|---|---|---|"
    for outcome in outcomes(run.results):
        if outcome.target.speedup or outcome.target.width:
            yield _outcome(outcome)
    measured = [row[OURS] for _, row in run.results if OURS in row]
    peak = max((one.peak for one in measured), default=0) / 1e6
    yield f"| peak memory of dpcompose under {MEMORY} MB | | | {peak:.0f} MB | {_mark(0 < peak < MEMORY)} |"
    for name, ratio in _growth(run.results):
        met = _mark(0 < ratio < CONSTANT)
        yield f"| {name}: time of 10^9 steps over 10^3, less than {CONSTANT:g}x | {ratio:.2f} | | | {met} |"


def _outcome(outcome: Outcome) -> str:
    target = outcome.target
    speed = f"{_times(outcome.speedup)} (asked: {target.speedup:g}x)" if target.speedup else ""
    renyi = f"{_times(outcome.over_renyi)} (asked: over 1x)" if target.beats_renyi else ""
    width = f"{outcome.width:.1e} (asked: {target.width:.0e})" if target.width else ""
    return f"| {target.title} | {speed} | {renyi} | {width} | {_mark(outcome.met)} |"


def _growth(results: Results) -> Iterable[tuple[str, float]]:
    """Per step of the scale cases, the time of the most over the time of the fewest."""
    scale = {(case.parts[0].parameter, case.parts[0].rate, case.parts[0].times): row[OURS].time
             for case, row in results if case.group == "scale" and OURS in row}  # fmt: skip
    for (sigma, rate, times), most in scale.items():
        if times == MOST and (sigma, rate, FEWEST) in scale:
            yield f"sigma {sigma:g}, rate {rate:g}", most / scale[sigma, rate, FEWEST]


def _cases(run: Run) -> Iterable[str]:
    peers = [name for name in TITLES if name != OURS and any(name in row for _, row in run.results)]
    titles = [
        "case",
        "delta",
        "dpcompose",
        "relative width",
        "time",
        "memory",
        *(TITLES[name] for name in peers),
    ]
    yield f"| {' | '.join(titles)} |"
    yield "|" + "---|" * len(titles)
    for case, row in run.results:
        cells = [case.name, f"{case.delta:.4g}", *_ours(case, row[OURS])]
        cells += [_peer(case, row, name) for name in peers]
        yield f"| {' | '.join(cells)} |"


def _ours(case: Case, ours: Measurement) -> Sequence[str]:
    if ours.failure:
        return [f"**{ours.failure}**", "", "", ""]
    known = truth(case, ours)
    sound = known is None or not judge(ours.upper, known, lower=ours.lower).unsound
    value = f"{ours.upper:.10g}" if sound else f"**UNSOUND** {ours.upper:.10g}"
    return [
        value,
        f"{ours.width:.1e}",
        _seconds(ours.time),
        f"{ours.peak / 1e6:.0f} MB",
    ]


def _peer(case: Case, row: Mapping[str, Measurement], name: str) -> str:
    if name not in row:
        return ""
    peer, known = row[name], truth(case, row[OURS])
    ratio = _times(speedup(row, name))
    if peer.over:
        return f"over {ratio}, {peer.failure}"
    if peer.failure:
        return peer.failure.split(":")[0]
    return f"{ratio}, {judge(peer.upper, known, lower=peer.lower).words if known else f'{peer.upper:.10g}'}"


def _systems(run: Run) -> Iterable[str]:
    yield f"{run.machine}. Systems:"
    for name, version in run.versions.items():
        yield (
            f"{TITLES[name]} ({version});"
            if name != list(run.versions)[-1]
            else f"{TITLES[name]} ({version})."
        )


def _times(ratio: float) -> str:
    return "-" if math.isnan(ratio) else f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.2g}x"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _mark(met: bool) -> str:
    return "yes" if met else "**no**"
