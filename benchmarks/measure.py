"""Every system in its own process, asked the same case in turns: A B C, A B C, ..."""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.case import Case

ROOT = Path(__file__).parents[1]
START = 120.0
"""Seconds by the clock that a system may take to be imported."""
BUSY = 20
"""How many times longer than its processor time a turn may take by the clock before the worker is given up."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Effort:
    """How much processor time is given, in seconds.

    Args:
        rounds: Turns that each system gets at a case.
        share: Of a turn, which fast systems fill with repetitions.
        budget: After it a system gets no further turn at a case.
        asked: After it a turn of dpcompose is ended, and of the system to which a target compares it.
        others: After it a turn of any other system is ended.
    """

    rounds: int
    share: float
    budget: float
    asked: float
    others: float


@dataclass(frozen=True)
class Measurement:
    """A system's run on one case.

    Args:
        seconds: Of the processor, one per repetition; none if there is no answer.
        upper: The value it offers as safe.
        lower: Its lower end, or -inf.
        method: How, in its own words.
        peak: Of resident memory, in bytes, interpreter and libraries included.
        failure: Why there is no answer: "not offered", "over 60 s", or the exception; empty if there is one.
        over: The seconds after which a turn was ended, or 0.
    """

    seconds: tuple[float, ...] = ()
    upper: float = math.nan
    lower: float = -math.inf
    method: str = ""
    peak: int = 0
    failure: str = ""
    over: float = 0.0

    @property
    def time(self) -> float:
        """The median of the seconds; NaN without an answer."""
        return median(self.seconds) if self.seconds else math.nan

    @property
    def width(self) -> float:
        """The relative width of the interval."""
        return (self.upper - self.lower) / self.upper if self.upper else 0.0


@dataclass
class Worker:
    """A system's process: started when it is first asked, ended when it takes too long, then started again."""

    name: str
    python: Path
    _process: subprocess.Popen[str] | None = field(default=None, init=False)

    def greet(self) -> Mapping[str, Any]:
        """Start the process; its version, or what is missing."""
        command = [str(self.python), "-m", "benchmarks.worker", self.name]
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.DEVNULL,
        }
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | ONE_THREAD, text=True, **pipes
        )
        return self._answer(START) or {"missing": "it does not start"}

    def ask(self, case: Case, *, share: float, patience: float) -> Mapping[str, Any] | None:
        """One turn; None if the process died or the clock ran far past `patience`."""
        if self._process is None and "missing" in self.greet():
            return None
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(
            json.dumps({"case": case.to_json(), "share": share, "patience": patience}) + "\n"
        )
        self._process.stdin.flush()
        return self._answer(BUSY * patience)

    def end(self) -> None:
        """Stop the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _answer(self, patience: float) -> Mapping[str, Any] | None:
        assert self._process is not None and self._process.stdout is not None
        # An answer is one short line, written at once: what can be read at all is the whole line.
        ready, _, _ = select.select([self._process.stdout], [], [], patience)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.end()
            return None
        return json.loads(line)


def available(
    peers: Path, names: tuple[str, ...], *, ours: str
) -> tuple[list[Worker], dict[str, str]]:
    """The workers that start, and per system its version or why it is left out."""
    workers: list[Worker] = []
    versions: dict[str, str] = {}
    for name in (ours, *names):
        worker = Worker(name, Path(sys.executable) if name == ours else peers)
        try:
            said = worker.greet()
        except OSError as error:
            said = {"missing": str(error)}
        if "version" in said:
            workers.append(worker)
        versions[name] = said.get("version") or f"left out: {said['missing']}"
    return workers, versions


def measure(
    case: Case, workers: list[Worker], effort: Effort, patience: Mapping[str, float]
) -> dict[str, Measurement]:
    """All systems at one case, in turns; `patience` says per system when its turn is ended."""
    found: dict[str, Measurement] = {}
    for _ in range(effort.rounds):
        for worker in workers:
            before = found.get(worker.name, Measurement())
            if not before.failure and sum(before.seconds) <= effort.budget:
                said = worker.ask(case, share=effort.share, patience=patience[worker.name])
                found[worker.name] = _added(before, said)
    return found


def _added(before: Measurement, said: Mapping[str, Any] | None) -> Measurement:
    if said is None or "over" in said:
        over = said["over"] if said else 0.0
        late = Measurement(failure=f"over {over:g} s" if said else "process ended", over=over)
        return before if before.seconds else late
    if "not_offered" in said:
        return Measurement(failure="not offered")
    if "failure" in said:
        return Measurement(failure=said["failure"])
    seconds = (*before.seconds, *said["seconds"])
    return Measurement(
        seconds, said["upper"], said["lower"], said["method"], max(before.peak, said["peak"])
    )
