"""Answers are bit-identical whatever was computed before, in every process and with every number of
threads.

    python -m campaigns.repeated --each 4 --others 400 --batch 200 --processes 4

computes one list of questions in several new processes, each in its own order, alternately with one
and two threads for linear algebra, and some questions twice in each process: compositions of every
family of `campaigns.soundness` (--each for each family, epsilon and delta), questions of
`campaigns.answers` (--others), schedules (`running_epsilon`), and calls of `epsilon` and `delta`
for many compositions (--batch), divided at random. All answers are compared to the last bit:
  DIFFERENT   two answers to one question
Questions that took too long in some process are left out. Exit status 1 if two answers differ, or
if there are none.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

from campaigns import answers
from campaigns.soundness.families import FAMILIES
from campaigns.soundness.meeting import REPLACING, Case

Row = list[Any]
"""[kind, line of Python, number]: `line` is a question as it stands, `epsilon` and `delta` are rows of a batch."""
TWICE = 0.2


def drawn(each: int, others: int, batch: int, seed: int) -> list[Row]:
    """The questions."""
    rng = Random(f"{seed} repeated")
    rows: list[Row] = [["line", question, 0] for question in answers.questions(others, seed)]
    for family in FAMILIES:
        where = ", adjacency=Adjacency.REPLACE" if family in REPLACING else ""
        for number in range(each):
            case = Case(family, number, seed)
            options = f"tolerance={case.options['tolerance']!r}{where}"
            rows.append(["line", f"{case.code}.epsilon(delta={case.delta!r}, {options})", 0])
            rows.append(
                ["line", f"{case.code}.delta(epsilon={case.epsilon(None)!r}, {options})", 0]
            )
    for number in range(batch):
        case = Case(
            rng.choice(("sgd_together", "phases_together", "sgd", "rare_sgd", "gaussians")),
            number,
            seed,
        )
        rows.append(["epsilon", case.code, 10 ** -rng.uniform(3, 12)])
        rows.append(["delta", case.code, rng.uniform(0.1, 5)])
        if number % 10 == 0:
            steps = [
                f"Gaussian({rng.uniform(0.8, 3)!r}).sampled({rng.uniform(0.001, 0.1)!r}) * 40"
                for _ in range(2)
            ]
            rows.append(["line", f"running_epsilon([{', '.join(steps)}], delta=1e-6)", 0])
    return rows


def asked(rows: list[Row], order: int) -> Iterator[tuple[Row, Any]]:
    """Every question with its answer, in an order of its own, some twice."""
    known, rng = answers.names(), Random(f"order {order}")
    rows = [*rows, *rng.sample(rows, int(TWICE * len(rows)))]
    rng.shuffle(rows)
    lines = [row for row in rows if row[0] == "line"]
    for kind, place in (("epsilon", "delta"), ("delta", "epsilon")):
        rest = [row for row in rows if row[0] == kind]
        while rest:
            size = rng.choice((1, 2, 5, 30, 200))
            some, rest = rest[:size], rest[size:]
            text = f"{kind}([{', '.join(row[1] for row in some)}], {place}={[row[2] for row in some]!r}, masked=True)"
            found = answers.answer(text, known)
            for at, row in enumerate(some):
                yield (
                    row,
                    found if isinstance(found, str) else [found["lower"][at], found["upper"][at]],
                )
            if lines:  # a batch now and then, among questions one by one
                line = lines.pop()
                yield line, answers.answer(line[1], known)
    for row in lines:
        yield row, answers.answer(row[1], known)


def process(rows: list[Row], order: int, threads: int) -> list[tuple[Row, Any]]:
    """What a fresh process answers."""
    environment = {**os.environ} | dict.fromkeys(
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)
    )
    done = subprocess.run(
        [sys.executable, "-m", "campaigns.repeated", "--ask", str(order)],
        input=json.dumps(rows),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def compared(found: list[list[tuple[Row, Any]]]) -> Counter[str]:
    """How many questions have one answer, or several, which are printed."""
    known: dict[str, dict[str, str]] = defaultdict(dict)
    for order, rows in enumerate(found):
        for row, answer in rows:
            known[json.dumps(row)].setdefault(json.dumps(answer), f"process {order}")
    counts: Counter[str] = Counter()
    for question, values in known.items():
        late = any(answers.SLOW in value for value in values)
        counts["late" if late else "different" if len(values) > 1 else "same"] += 1
        if not late and len(values) > 1:
            print(f"DIFFERENT {question}")
            for value, where in values.items():
                print(f"    {where}: {value[:300]}", flush=True)
    return counts


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=1, help="compositions of every family")
    parser.add_argument("--others", type=int, default=100, help="questions of campaigns.answers")
    parser.add_argument("--batch", type=int, default=50, help="rows of epsilons, and of deltas")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ask", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask is not None:
        warnings.simplefilter("ignore")
        for row, answer in asked(json.load(sys.stdin), options.ask):
            print(json.dumps([row, answer]))
        return 0
    rows = drawn(options.each, options.others, options.batch, options.seed)
    counts = compared([process(rows, order, 1 + order % 2) for order in range(options.processes)])
    print(
        f"{len(rows)} questions, {options.processes} processes: "
        + ", ".join(f"{n} {kind}" for kind, n in counts.items())
    )
    return 1 if counts["different"] or not counts["same"] else 0


if __name__ == "__main__":
    sys.exit(main())
