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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue

from benchmarks import picture, record
from benchmarks.case import Case
from benchmarks.catalog import TARGETS, cases
from benchmarks.measure import ROOT, Effort, Measurement, Worker, available, measure
from benchmarks.systems import OURS, PEERS, REFERENCE, TITLES
from benchmarks.table import Run, markdown
from benchmarks.verdict import judge, speedup, truth

QUICK = Effort(rounds=3, share=0.02, budget=0.5, asked=10.0, others=1.5)
QUICK_PEERS = tuple(name for name in PEERS if name != "pld_5")
FULL = Effort(rounds=7, share=0.05, budget=1.5, asked=60.0, others=10.0)
START, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"


def main() -> None:
    """Measure, or show again what was measured."""
    chosen = _arguments()
    (ROOT / "out").mkdir(exist_ok=True)
    run = record.read(chosen.show) if chosen.show else _measured(chosen)
    folder = ROOT / "out"
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
    parser.add_argument(
        "--quick", action="store_true", help="fewer cases and peers, results in out/"
    )
    parser.add_argument("--only", default="", help="only the cases of this group, results in out/")
    parser.add_argument(
        "--peers", type=Path, default=ROOT / ".venv/peers/bin/python", help="Python of the peers"
    )
    parser.add_argument(
        "--teams", type=int, default=1, help="so many sets of processes, each at a case of its own"
    )
    parser.add_argument(
        "--patience",
        type=float,
        help="seconds of the processor after which a turn of most peers is ended",
    )
    parser.add_argument(
        "--without", nargs="*", default=(), choices=PEERS, help="systems to leave out"
    )
    parser.add_argument("--show", type=Path, help="measure nothing; show this JSON again")
    return parser.parse_args()


def _measured(chosen: argparse.Namespace) -> Run:
    effort = QUICK if chosen.quick else FULL
    if chosen.patience is not None:
        effort = replace(effort, others=chosen.patience)
    asked = [
        case
        for case in cases()
        if (case.quick or not chosen.quick) and chosen.only in ("", case.group)
    ]
    names = tuple(
        name for name in (QUICK_PEERS if chosen.quick else PEERS) if name not in chosen.without
    )
    found = [available(chosen.peers, names, ours=OURS) for _ in range(chosen.teams)]
    for name, version in found[0][1].items():
        print(f"{TITLES[name]}: {version}", flush=True)
    teams: Queue[list[Worker]] = Queue()
    for team, _ in found:
        teams.put(team)

    done: list[tuple[Case, Mapping[str, Measurement]]] = []

    def answered(case: Case) -> tuple[Case, Mapping[str, Measurement]]:
        team = teams.get()
        row = measure(case, team, effort, _patience(case, effort))
        teams.put(team)
        print(_line(case, row), flush=True)
        done.append((case, row))
        record.write(Run(done, found[0][1], _machine(effort)), ROOT / "out" / "unfinished.json")
        return case, row

    with ThreadPoolExecutor(chosen.teams) as pool:
        results = list(pool.map(answered, asked))
    for team, _ in found:
        for worker in team:
            worker.end()
    return Run(results, found[0][1], _machine(effort))


def _patience(case: Case, effort: Effort) -> dict[str, float]:
    """Seconds after which a turn is ended, per system: the reference's later, where a target asks for a ratio."""
    compared = {OURS, REFERENCE} if TARGETS[case.group].speedup else {OURS}
    return {name: effort.asked if name in compared else effort.others for name in TITLES}


def _line(case: Case, row: Mapping[str, Measurement]) -> str:
    """One case on one screen paragraph."""
    known, ours = truth(case, row[OURS]), row[OURS]
    lines = [
        f"{case.name}, delta {case.delta:.4g}: {ours.failure or f'{ours.upper:.12g}, width {ours.width:.1e}'}"
    ]
    for name, one in row.items():
        said = one.failure or f"{one.time * 1e3:.4g} ms, {one.peak / 1e6:.0f} MB"
        ratio = speedup(row, name)
        against = "" if name == OURS or math.isnan(ratio) else f", {ratio:.3g} times ours"
        verdict = (
            judge(one.upper, known, lower=one.lower).words.replace("*", "")
            if known and not one.failure
            else ""
        )
        lines.append(f"    {TITLES[name]:30} {said}{against}  {verdict}")
    return "\n".join(lines)


def _machine(effort: Effort) -> str:
    model = platform.processor() or platform.machine()
    details = Path("/proc/cpuinfo")
    if details.exists():
        named = (
            line.split(":")[1].strip()
            for line in details.read_text().splitlines()
            if line.startswith("model name")
        )
        model = next(named, model)
    day = datetime.now(UTC).date().isoformat()
    ended = f"turns ended after {effort.asked:g} s for what a target compares, {effort.others:g} s for the others"
    return f"{model}, {os.cpu_count()} cores, one thread each, Python {platform.python_version()}, {day}; {ended}"


def _publish(text: str) -> None:
    page = ROOT / "docs" / "benchmarks.md"
    before, rest = page.read_text().split(START)
    _, after = rest.split(END)
    page.write_text(before + START + text + END + after)


if __name__ == "__main__":
    main()
