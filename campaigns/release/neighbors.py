"""Tables that differ in one unit lead to the same errors, shapes, types, order, warnings and log
lines.

python -m campaigns.release.neighbors [PAIRS] [SEED]      (10,000 pairs: about ten minutes)

Every fifth pair is followed by a pair of CSV files that differ in the lines of one person, with
arbitrary bytes: their exact counts may differ by no more than those lines.
"""

from __future__ import annotations

import io
import logging
import random
import sys
import tempfile
import time
import uuid
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import dpcompose.release as release
from campaigns.release import tables
from dpcompose.account import open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.errors import DPComposeError
from dpcompose.ledger import Ledger
from dpcompose.release.aggregate import exact


def question(rng: random.Random) -> release.Question:
    """A question, sensible or not."""
    private = rng.random() < 0.3
    spend = {"epsilon": rng.choice([0.1, 1, 5])} | (
        {"delta": 1e-3} if private or rng.random() < 0.3 else {}
    )
    by, keys = rng.choice(
        [
            ((), None),
            ("city", [*tables.CITIES, None]),
            ("code", [0, 1, 2**40, 99]),
            ("day", None),
            (["flag", "city"], [(True, "Zug"), (None, ""), (False, "nowhere")]),
            ("amount", None),
            ("city", [1, 2]),
            ("nothing", None),
        ]
    )
    groups: dict[str, Any] = {
        "by": by,
        "keys": None if private or by == () else keys,
        "spend": spend,
    }
    column = rng.choice(["amount", "single", "points", "small", "price", "flag", "city", "nothing"])
    ends = {"lower": rng.choice([-100, 0, 5]), "upper": rng.choice([100, 5, "1e9"])}
    step = {"granularity": rng.choice([None, "0.01", 1, 0.3, 1000])}
    made = [
        lambda: release.Count(**groups),
        lambda: release.Units(**groups),
        lambda: release.Sum(column, **ends, **step, **groups),
        lambda: release.Mean(column, **ends, **step, **groups),
        lambda: release.Histogram(
            column, edges=rng.choice([[0, 1, 50], [3, 2], ["-1e9", 0.005, "1e308"]]), **groups
        ),
        lambda: release.Quantile(
            column, 0.5, lower=-10, upper=10, granularity=rng.choice([1, 0.5, "1e-9"]), **groups
        ),
    ]
    return rng.choice(made)()


def seen(
    rows: list[tuple[Any, ...]], bounds: dict[str, Any], asked: release.Question
) -> tuple[Any, ...]:
    """All that an analyst sees of a session besides the released numbers."""
    ledger = Ledger.open("memory:")
    open_scope(ledger, "world", filter=BasicFilter(100.0, delta=0.1), actor="keeper")
    lines, out = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(lines)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            redirect_stderr(out),
            redirect_stdout(out),
        ):
            warnings.simplefilter("always")
            shown = _asked(rows, bounds, asked, ledger)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    balance = {name: str(amount) for name, amount in ledger.available("world").items()}
    return (
        shown,
        balance,
        [str(each.message) for each in warned],
        _without_names(lines.getvalue()),
        out.getvalue(),
    )


def _asked(
    rows: list[tuple[Any, ...]], bounds: dict[str, Any], asked: release.Question, ledger: Ledger
) -> Any:
    try:
        table = release.table(tables.arrow(rows), **bounds)
        session = release.Session(table, ledger=ledger, scope="world", actor="ana")
        answer = session.ask(asked, key=str(uuid.UUID(int=7)))
    except DPComposeError as error:
        return type(error).__name__, str(error), error.__cause__, type(error.__context__).__name__
    found = answer.table
    shape = [(field.name, str(field.type)) for field in found.schema]
    by = answer.design.aggregation.by
    keys = [tuple(row[name] for name in by) for row in answer.rows]
    if answer.design.aggregation.public is None:
        # Which keys come out is drawn; that they are sorted is not.
        distinct = list(dict.fromkeys(keys))
        return shape, distinct == sorted(
            distinct, key=lambda key: [(part is None, part) for part in key]
        )
    return shape, keys, found.num_rows


def _without_names(text: str) -> str:
    """Log lines without what libraries number by themselves."""
    return "\n".join(line for line in text.splitlines() if "frame_" not in line)


def pair(rng: random.Random) -> tuple[tuple[Any, ...], tuple[Any, ...], release.Question]:
    """Return the views of a table and of one with another unit in it."""
    most = rng.choice([1, 3, 30])
    bounds: dict[str, Any] = {
        "unit": rng.choice(["person", "number", ["person", "number"]]),
        "max_rows_per_unit": most,
    }
    if rng.random() < 0.3:
        bounds |= {
            "max_groups_per_unit": rng.randint(1, most),
            "max_rows_per_group": rng.randint(1, most),
        }
    without = tables.rows(
        rng, units=rng.choice([0, 1, 5, 20]), most=4, nothing=rng.choice([0.0, 0.3, 1.0])
    )
    unit = tables.of_unit(
        rng, "p9999", most=rng.choice([1, 5, 200]), nothing=rng.choice([0.0, 0.3, 1.0])
    )
    asked = question(rng)
    return seen(without, bounds, asked), seen([*without, *unit], bounds, asked), asked


CELLS = [
    b"rome",
    b'"rome"',
    b'"rome',
    b'ro"me',
    b'ro""me',
    b'rome"',
    b'""',
    b'"',
    b"",
    b"\xff",
    b"r\xf4me",
    b"\xed\xa0\x80",
]
CELLS += [
    b"\x00",
    b"\r",
    b"rome,oslo",
    b'"rome,oslo',
    b"\xe2\x80\xa8",
    b"\x1c",
    b"x" * 200_000,
    b'"' + b"x" * 200_000,
]


def beyond(rng: random.Random, *, line_breaks: bool = False) -> int:
    """By how much the counts of two files differ more than the lines that one of them has more; 0 is sound."""
    lines = [
        b"p%d,%s" % (number % 9, rng.choice([b"rome", b"oslo", b'"rome"']))
        for number in range(rng.randint(0, 40))
    ]
    own = [
        rng.choice([b"me", b'"me', b'"me"', b"m\xe9"]) + b"," + rng.choice(CELLS)
        for _ in range(rng.randint(1, 3))
    ]
    joined = list(lines)
    for line in own:
        joined.insert(rng.randint(0, len(joined)), line)
    counts: list[dict[Any, int]] = []
    for each in (lines, joined):
        with tempfile.TemporaryDirectory() as home:
            path = Path(home) / "visits.csv"
            path.write_bytes(b"\n".join([b"person,city", *each]) + rng.choice([b"", b"\n"]))
            table = release.table(
                path, unit="person", max_rows_per_unit=50, line_breaks=line_breaks
            )
            design = release.Count(by="city", spend={"epsilon": 1, "delta": 1e-6}).design(table)
            counts.append(
                {key: bins[0][1] for key, bins in exact(table, design.aggregation).items()}
            )
            table.close()
    one, other = counts
    return max(
        0,
        sum(abs(one.get(key, 0) - other.get(key, 0)) for key in one.keys() | other.keys())
        - len(own),
    )


def run(pairs: int, seed: int) -> list[str]:
    """The pairs that were told apart by anything but their numbers."""
    told: list[str] = []
    for number in range(pairs):
        one, other, asked = pair(random.Random(f"{seed} {number}"))
        if one != other:
            told.append(f"pair {number} of seed {seed}: {asked!r}\n  {one}\n  {other}")
        excess = 0 if number % 5 else beyond(random.Random(f"file {seed} {number}"))
        if excess:
            told.append(
                f"files {number} of seed {seed}: counts differ by {excess} more than one person's lines"
            )
        if (number + 1) % 500 == 0:
            print(f"{number + 1:,} pairs, {len(told)} told apart", file=sys.stderr, flush=True)
    return told


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    began = time.perf_counter()
    told = run(pairs, seed)
    print(*told, sep="\n")
    print(
        f"{pairs:,} pairs, seed {seed}: {len(told)} told apart, in {time.perf_counter() - began:.0f} s"
    )
    sys.exit(bool(told))


if __name__ == "__main__":
    main()
