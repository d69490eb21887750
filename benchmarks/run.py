"""`python -m benchmarks.run [--quick]`: measure, print, and write JSON, tables and a picture.

The full run replaces benchmarks/results.json, docs/benchmarks.png and the tables in docs/benchmarks.md; the quick one
writes to out/.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import picture, record
from benchmarks.case import Case
from benchmarks.catalog import TARGETS, cases
from benchmarks.measure import ROOT, Effort, Measurement, available, measure
from benchmarks.systems import OURS, PEERS, REFERENCE, TITLES
from benchmarks.table import Run, markdown
from benchmarks.verdict import judge, speedup, truth

QUICK = Effort(rounds=3, share=0.02, budget=0.5, asked=10.0, others=2.0, idle=1.0)
QUICK_PEERS = tuple(name for name in PEERS if name != "pld_5")
FULL = Effort(rounds=3, share=0.05, budget=0.7, asked=60.0, others=6.0, idle=2.0)
START, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"


def main() -> None:
    """Measure, or show again what was measured."""
    chosen = _arguments()
    run = record.read(chosen.show) if chosen.show else _measured(chosen)
    folder = ROOT / "out"
    folder.mkdir(exist_ok=True)
    text = markdown(run)
    if chosen.quick or chosen.only:
        (folder / "benchmarks.md").write_text(text)
        picture.draw(run, folder / "benchmarks.png")
        record.write(run, folder / "benchmarks.json")
    else:
        _publish(text)
        picture.draw(run, ROOT / "docs" / "benchmarks.png")
        record.write(run, ROOT / "benchmarks" / "results.json")
    print(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer cases and peers, results in out/")
    parser.add_argument("--only", default="", help="only the cases of this group, results in out/")
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv/peers/bin/python", help="Python of the peers")
    parser.add_argument("--show", type=Path, help="measure nothing; show this JSON again")
    return parser.parse_args()


def _measured(chosen: argparse.Namespace) -> Run:
    effort = QUICK if chosen.quick else FULL
    asked = [case for case in cases() if (case.quick or not chosen.quick) and chosen.only in ("", case.group)]
    workers, versions = available(chosen.peers, QUICK_PEERS if chosen.quick else PEERS, ours=OURS)
    for name, version in versions.items():
        print(f"{TITLES[name]}: {version}")
    results: list[tuple[Case, Mapping[str, Measurement]]] = []
    for case in asked:
        results.append((case, measure(case, workers, effort, _patience(case, effort))))
        print(_line(*results[-1]), flush=True)
    for worker in workers:
        worker.end()
    return Run(results, versions, _machine())


def _patience(case: Case, effort: Effort) -> dict[str, float]:
    """Seconds after which a turn is ended, per system."""
    usual = effort.others if TARGETS[case.group].speedup else effort.idle
    return (
        dict.fromkeys(PEERS, usual)
        | {OURS: effort.asked}
        | ({REFERENCE: effort.asked} if usual == effort.others else {})
    )


def _line(case: Case, row: Mapping[str, Measurement]) -> str:
    """One case on one screen paragraph."""
    known, ours = truth(case, row[OURS]), row[OURS]
    lines = [f"{case.name}, delta {case.delta:.4g}: {ours.failure or f'{ours.upper:.12g}, width {ours.width:.1e}'}"]
    for name, one in row.items():
        said = one.failure or f"{one.time * 1e3:.4g} ms, {one.peak / 1e6:.0f} MB"
        ratio = speedup(row, name)
        against = "" if name == OURS or math.isnan(ratio) else f", {ratio:.3g} times ours"
        verdict = judge(one.upper, known, lower=one.lower).words.replace("*", "") if known and not one.failure else ""
        lines.append(f"    {TITLES[name]:30} {said}{against}  {verdict}")
    return "\n".join(lines)


def _machine() -> str:
    model = platform.processor() or platform.machine()
    details = Path("/proc/cpuinfo")
    if details.exists():
        named = (
            line.split(":")[1].strip() for line in details.read_text().splitlines() if line.startswith("model name")
        )
        model = next(named, model)
    day = datetime.now(UTC).date().isoformat()
    return f"{model}, {os.cpu_count()} cores, one thread each, Python {platform.python_version()}, {day}"


def _publish(text: str) -> None:
    page = ROOT / "docs" / "benchmarks.md"
    before, rest = page.read_text().split(START)
    _, after = rest.split(END)
    page.write_text(before + START + text + END + after)


if __name__ == "__main__":
    main()
