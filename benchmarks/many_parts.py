"""`python -m benchmarks.many_parts [--only TEXT] [--peers PYTHON]`: rare sampling, many distinct parts, Renyi curves.

One table, printed: seconds of the processor for the question alone (the composition is built before), the answer, its
relative width and the peak of the memory. Each row has a process of its own, limited to one thread. Where
dp-accounting is present its two accountants, of privacy losses (PLD, grid 1e-4) and of Renyi divergences, are asked the
same in other processes: their seconds, and how far their epsilon is from our upper end, relatively.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import ROOT

SAMPLED = (
    "[(1 + 3 * (at * 0.618034 % 1), 1e-3 + 0.05 * (at * 0.754878 % 1)) for at in range({count})]"
)
HARDER = "[(0.6 + 2.4 * (at * 0.618034 % 1), 1e-4 + 0.01 * (at * 0.754878 % 1)) for at in range({count})]"
STEP = "PoissonSampledDpEvent({rate}, GaussianDpEvent({sigma}))"
EVENTS = "[(PoissonSampledDpEvent(q, GaussianDpEvent(s)), 1) for s, q in {pairs}]"
LAPLACE = "[(PoissonSampledDpEvent(.001 + at / 1000, LaplaceDpEvent(.5 + at / 30)), 1) for at in range(100)]"
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
from dp_accounting import *
from dp_accounting import pld, rdp
start = time.process_time()
accountant = {accountant}()
try:
    for event, count in {events}:
        accountant.compose(event, count)
    found = accountant.get_epsilon({delta})
except UnsupportedEventError:
    found = None
print(json.dumps([time.process_time() - start, found]))
"""
ACCOUNTANTS = ("pld.PLDAccountant", "rdp.RdpAccountant")
PATIENCE = 120
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Row:
    """A question with its name, what is built before it, the seconds it may take, and the same for the peer.

    Args:
        name: As the table shows it.
        setup: Code before the clock starts.
        question: Code whose value is a Bound.
        seconds: The most that it may take; None where nothing is asked.
        events: Code for the peer: pairs of an event and how often; None where the peer cannot say it.
        delta: Of the peer's question.
    """

    name: str
    setup: str
    question: str
    seconds: float | None = None
    events: str | None = None
    delta: float = 1e-6


def _distinct(name: str, pairs: str, seconds: float, replace: float | None = None) -> list[Row]:
    setup = f"c = compose(*[Gaussian(s).sampled(q) for s, q in {pairs}])"
    rows = [Row(name, setup, "c.epsilon(delta=1e-6)", seconds, EVENTS.format(pairs=pairs))]
    if replace is not None:
        question = "c.epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)"
        rows.append(Row(f"{name}, replaced", setup, question, replace))
    return rows


def _rare(sigma: float, rate: float, times: int, delta: float) -> Row:
    question = f"(Gaussian({sigma}).sampled({rate}) * {times}).epsilon(delta={delta})"
    events = f"[({STEP.format(rate=rate, sigma=sigma)}, {times})]"
    return Row(
        f"sigma {sigma:g}, rate {rate:g}, {times:.0e} steps, delta {delta:g}",
        "",
        question,
        0.02,
        events,
        delta,
    )


ROWS = (
    _rare(1.0, 1e-4, 10**5, 1e-15),
    _rare(2.0, 1e-5, 10**7, 1e-30),
    *_distinct("1,000 distinct sampled Gaussian", SAMPLED.format(count=1000), 0.3, 0.6),
    *_distinct("1,000 distinct, less noise, rarer", HARDER.format(count=1000), 0.3, 0.6),
    *_distinct("10^4 distinct sampled Gaussian", SAMPLED.format(count=10**4), 3.0),
    Row(
        "100 distinct sampled Laplace",
        "c = compose(*[Laplace(.5 + at / 30).sampled(.001 + at / 1000) for at in range(100)])",
        "c.epsilon(delta=1e-6)",
        1.0,
        LAPLACE,
    ),
    Row(
        "200 distinct Exponential",
        "c = compose(*[Exponential(.05 + at / 450) for at in range(200)])",
        "c.epsilon(delta=1e-6)",
        0.5,
    ),
    Row(
        "10^4 parts of six kinds",
        f"k = range(1667); c = compose(*{KINDS})",
        "c.epsilon(delta=1e-6)",
        4.0,
    ),
    Row(
        "5,000 terms by +",
        "parts = [Gaussian(50 + at / 10) for at in range(5000)]",
        "[t := compose(), [t := t + part for part in parts], t.parts, Bound(len(t.parts), len(t.parts))][-1]",
        0.2,
    ),
    Row("10 Exponential", "", "(Exponential(1.0) * 10).epsilon(delta=1e-6)"),
    Row("1,000 Exponential", "", "(Exponential(1.0) * 1000).epsilon(delta=1e-6)"),
    Row(
        "Concentrated and DP-SGD",
        "",
        "(Concentrated(.02) + Gaussian(1.0).sampled(.01) * 1000).epsilon(delta=1e-6)",
        events=f"[(ZCDpEvent(.02), 1), ({STEP.format(rate=0.01, sigma=1.0)}, 1000)]",
    ),
    Row(
        "Concentrated and Gaussian",
        "",
        "(Concentrated(.125) + Gaussian(1.0)).epsilon(delta=1e-6)",
        events="[(ZCDpEvent(.125), 1), (GaussianDpEvent(1.0), 1)]",
    ),
    Row(
        "Concentrated and 100 Laplace",
        "",
        "(Concentrated(.5) + Laplace(10.0) * 100).epsilon(delta=1e-6)",
        events="[(ZCDpEvent(.5), 1), (LaplaceDpEvent(10.0), 100)]",
    ),
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
    parser.add_argument(
        "--peers", type=Path, default=ROOT / ".venv/peers/bin/python", help="Python of the peers"
    )
    chosen = parser.parse_args()
    print(
        "| parts | seconds | asked | lower | upper | width | MB | PLD | RDP |\n|---|---|---|---|---|---|---|---|---|"
    )
    for row in ROWS:
        if chosen.only in row.name:
            spent, lower, upper, peak = _run(
                sys.executable, SELF.format(setup=row.setup, question=row.question)
            )
            asked = f"{row.seconds:g}" if row.seconds else ""
            peers = " | ".join(_beside(chosen.peers, row, each, upper) for each in ACCOUNTANTS)
            width = (upper - lower) / upper
            answer = f"{lower:.7g} | {upper:.7g} | {width:.1e}"
            print(
                f"| {row.name} | {spent:.3f} | {asked} | {answer} | {peak:.0f} | {peers} |",
                flush=True,
            )


def _beside(peers: Path, row: Row, accountant: str, upper: float) -> str:
    if not peers.exists() or row.events is None:
        return ""
    code = PEER.format(accountant=accountant, events=row.events, delta=row.delta)
    try:
        spent, epsilon = _run(str(peers), code, patience=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"over {PATIENCE} s"
    return "not offered" if epsilon is None else f"{spent:.2f} s, {epsilon / upper - 1:+.1e}"


def _run(python: str, code: str, *, patience: float | None = None) -> list[float]:
    limited = {**os.environ, **ONE_THREAD}
    done = subprocess.run(
        [python, "-c", code], env=limited, capture_output=True, check=True, timeout=patience
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
