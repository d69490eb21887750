"""`python -m benchmarks.many_parts [--only TEXT] [--peers PYTHON]`: many distinct parts, and parts with a Renyi curve.

One table, printed: seconds of the processor for the question alone (the composition is built before), the answer, its
relative width and the peak of the memory. Each row has a process of its own, limited to one thread. Where
dp-accounting is present its accountant of privacy losses (PLD, grid 1e-4) is asked the same in another process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SAMPLED = "[(1 + 3 * (at * 0.618034 % 1), 1e-3 + 0.05 * (at * 0.754878 % 1)) for at in range({count})]"
HARDER = "[(0.6 + 2.4 * (at * 0.618034 % 1), 1e-4 + 0.01 * (at * 0.754878 % 1)) for at in range({count})]"
PLD = (
    "a = dp_accounting.pld.PLDAccountant(); [a.compose(dp_accounting.PoissonSampledDpEvent(q, "
    "dp_accounting.GaussianDpEvent(s))) for s, q in {pairs}]"
)
KINDS = (
    "[Gaussian(20 + at / 9) for at in k] + [Laplace(50 + at / 4) for at in k] + "
    "[RandomizedResponse(.001 + at / 1e5) for at in k] + [Exponential(.001 + at / 1e5) for at in k] + "
    "[Gaussian(1 + at / 600).sampled(1e-4 + at / 1e6) for at in k] + [Concentrated(1e-7 + at / 2e9) for at in k]"
)
SELF = """
import resource, time
from dpcompose import *
{setup}
Gaussian(3.0).sampled(.1).epsilon(delta=1e-6)
start = time.process_time()
bound = {question}
spent = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
import json
print(json.dumps([spent, bound.lower, bound.upper, peak]))
"""
PEER = """
import json, time
import dp_accounting
start = time.process_time()
{setup}
print(json.dumps([time.process_time() - start, a.get_epsilon(1e-6)]))
"""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Row:
    """A question with its name, what is built before it, the seconds it may take, and the same for the peer."""

    name: str
    setup: str
    question: str
    seconds: float | None = None
    peer: str | None = None


def _distinct(name: str, pairs: str, seconds: float, replace: float | None = None) -> list[Row]:
    setup = f"c = compose(*[Gaussian(s).sampled(q) for s, q in {pairs}])"
    rows = [Row(name, setup, "c.epsilon(delta=1e-6)", seconds, PLD.format(pairs=pairs))]
    if replace is not None:
        question = "c.epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)"
        rows.append(Row(f"{name}, replaced", setup, question, replace))
    return rows


ROWS = (
    *_distinct("1,000 distinct sampled Gaussian", SAMPLED.format(count=1000), 0.3, 0.6),
    *_distinct("1,000 distinct, less noise, rarer", HARDER.format(count=1000), 0.3, 0.6),
    *_distinct("10^4 distinct sampled Gaussian", SAMPLED.format(count=10**4), 3.0),
    Row(
        "100 distinct sampled Laplace",
        "c = compose(*[Laplace(.5 + at / 30).sampled(.001 + at / 1000) for at in range(100)])",
        "c.epsilon(delta=1e-6)",
        1.0,
    ),
    Row(
        "200 distinct Exponential",
        "c = compose(*[Exponential(.05 + at / 450) for at in range(200)])",
        "c.epsilon(delta=1e-6)",
        0.5,
    ),
    Row("10^4 parts of six kinds", f"k = range(1667); c = compose(*{KINDS})", "c.epsilon(delta=1e-6)", 4.0),
    Row(
        "5,000 terms by +",
        "parts = [Gaussian(50 + at / 10) for at in range(5000)]",
        "[t := compose(), [t := t + part for part in parts], t.parts, Bound(len(t.parts), len(t.parts))][-1]",
        0.2,
    ),
    Row("10 Exponential", "", "(Exponential(1.0) * 10).epsilon(delta=1e-6)"),
    Row("1,000 Exponential", "", "(Exponential(1.0) * 1000).epsilon(delta=1e-6)"),
    Row("Concentrated and DP-SGD", "", "(Concentrated(.02) + Gaussian(1.0).sampled(.01) * 1000).epsilon(delta=1e-6)"),
    Row("Concentrated and Gaussian", "", "(Concentrated(.125) + Gaussian(1.0)).epsilon(delta=1e-6)"),
    Row("Concentrated and 100 Laplace", "", "(Concentrated(.5) + Laplace(10.0) * 100).epsilon(delta=1e-6)"),
    Row(
        "replaced, delta 1e-100",
        "c = Gaussian(2.06).sampled(.00029) * 8 + Gaussian(5.2).sampled(.0694) * 8",
        "c.epsilon(delta=1e-100, adjacency=Adjacency.REPLACE)",
    ),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only the rows whose name has this text")
    parser.add_argument("--peers", type=Path, help="Python that has dp-accounting")
    chosen = parser.parse_args()
    print("| parts | seconds | asked | lower | upper | width | MB | PLD |\n|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        if chosen.only in row.name:
            spent, lower, upper, peak = _run(sys.executable, SELF.format(setup=row.setup, question=row.question))
            asked = f"{row.seconds:g}" if row.seconds else ""
            peer = _beside(chosen.peers, row)
            width = (upper - lower) / upper
            answer = f"{lower:.7g} | {upper:.7g} | {width:.1e}"
            print(f"| {row.name} | {spent:.3f} | {asked} | {answer} | {peak:.0f} | {peer} |", flush=True)


def _beside(peers: Path | None, row: Row) -> str:
    if peers is None or row.peer is None:
        return ""
    spent, epsilon = _run(str(peers), PEER.format(setup=row.peer))
    return f"{spent:.1f} s, {epsilon:.7g}"


def _run(python: str, code: str) -> list[float]:
    done = subprocess.run([python, "-c", code], env={**os.environ, **ONE_THREAD}, capture_output=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
