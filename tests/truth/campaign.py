"""Random compositions: all intervals that must contain the same truth intersect, and the truth is inside.

    PYTHONPATH=src:tests python -m truth.campaign --compositions 100000 --proved 5000 --seed 1 --share 1/2 --journal out

draws as many compositions of every family (truth/families.py) and asks each for epsilon(delta), delta from 0.5 to
1e-300, and for delta(epsilon), epsilon also negative, 0 and next to the largest loss, at tolerances from 1e-3 to 1e-12.
Each answer is held against lines at 0.93, 0.97, 1 and 1.03 of the saddle point (truth/lines.py), against a lattice that
shares no code with the library (truth/tilted.py), and, for as many compositions as are to be proved, the same number of
every family, against ball arithmetic (truth/verdicts.py). Printed at once, with the line of Python that repeats them:
  APART, OUTSIDE  two intervals that do not meet; an answer that the truth is not in: the library is wrong, or a test is
  FAILED          an answer that ended in an exception
  UNPROVED        a ball too wide to tell; counted as `own proof` if the library's own proof is inside the answer
  NO LINE         a line beside the saddle point that ended in an exception
and, one line for every family, how many there were of each. All families advance together, so that the campaign is even
wherever it stops: after --minutes, or when it is killed. A journal keeps what is done; with the same journal the same
campaign goes on, and --report prints what several shares wrote there. Exit status 1 after APART, OUTSIDE or FAILED.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from truth.families import FAMILIES
from truth.meeting import Case, Findings, examine

BLOCK = 10
VIOLATIONS = ("apart", "outside", "failed")
QUIET = ("refused",)


@dataclass(frozen=True)
class Campaign:
    """How many compositions of each family, and which of them are proved.

    Args:
        families: The names.
        each: Compositions of each family.
        proved: How many of each are held against ball arithmetic, spread evenly.
        seed: Of all random numbers.
        share: The first and the last but one of the numbers that this process does.
        proof: Whether the library answers in ball arithmetic itself.
    """

    families: tuple[str, ...]
    each: int
    proved: int
    seed: int
    share: tuple[int, int]
    proof: bool = False

    def blocks(self) -> Iterator[tuple[str, range]]:
        """All families in turn, some numbers at a time."""
        for first in range(*self.share, BLOCK):
            for family in self.families:
                yield family, range(first, min(first + BLOCK, self.share[1]))

    def block(self, family: str, numbers: range) -> Findings:
        """What these compositions showed."""
        total = Findings()
        for number in numbers:
            prove = number * self.proved // self.each < (number + 1) * self.proved // self.each
            total.add(examine(Case(family, number, self.seed), prove=prove, proof=self.proof))
        return total


class Journal:
    """What is done, a line of JSON for each block; several processes may write to one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: dict[tuple[int, str, int], dict] = {}
        for line in path.read_text().splitlines() if path and path.exists() else ():
            row = json.loads(line)
            self.rows[row["seed"], row["family"], row["first"]] = row

    def known(self, seed: int, family: str, numbers: range) -> Findings | None:
        row = self.rows.get((seed, family, numbers.start))
        return None if row is None or row["last"] != numbers.stop else findings(row)

    def write(self, seed: int, family: str, numbers: range, found: Findings) -> None:
        if self.path is None:
            return
        row = {"seed": seed, "family": family, "first": numbers.start, "last": numbers.stop}
        row |= {"counts": found.counts, "seconds": found.seconds, "lines": found.lines}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def findings(row: dict) -> Findings:
    """A block, as it was written."""
    return Findings(Counter(row["counts"]), Counter(row["seconds"]), row["lines"])


def run(campaign: Campaign, journal: Journal, *, minutes: float = math.inf) -> dict[str, Findings]:
    """Every family's findings; what is to be seen is printed at once."""
    totals = {family: Findings() for family in campaign.families}
    end = time.monotonic() + 60 * minutes
    for family, numbers in campaign.blocks():
        found = journal.known(campaign.seed, family, numbers)
        if found is None:
            late = time.monotonic() > end and numbers.start > campaign.share[0]
            if late and family == campaign.families[0]:
                break  # all families have done as many
            found = campaign.block(family, numbers)
            journal.write(campaign.seed, family, numbers, found)
        show(family, found)
        totals[family].add(found)
    return totals


def show(family: str, found: Findings) -> None:
    """What is worth a line, at once."""
    for line in found.lines:
        if not line.lower().startswith(QUIET):
            print(f"{family}: {line}", flush=True)


def report(totals: dict[str, Findings]) -> Counter[str]:
    """A line for each family and for all; return the sum of all counts."""
    whole = Findings()
    for family, found in totals.items():
        _line(family, found)
        whole.add(found)
    _line("all", whole)
    violations = sum(whole.counts[kind] for kind in VIOLATIONS)
    print(f"{violations} violations; CPU " + ", ".join(f"{kind} {time:.0f} s" for kind, time in whole.seconds.items()))
    return whole.counts


def _line(name: str, found: Findings) -> None:
    count = found.counts
    wide = {kind: f"{count[kind]} ({count[f'{kind} wide']} wide)" for kind in ("line", "lattice", "ball")}
    shown = {
        "compositions": count["compositions"],
        "answers": count["answers"],
        "without news": count["without news"],
        "over 1% wide": count["over 1% wide"],
        **wide,
        "proved": f"{count['proved']} of {count['tried']}",
        **{kind: count[kind] for kind in ("unproved", "own proof", "refused", "no line", *VIOLATIONS)},
    }
    spent = sum(found.seconds.values()) / max(count["compositions"], 1)
    print(f"{name:18} " + "  ".join(f"{key} {value}" for key, value in shown.items()) + f"  {1e3 * spent:.0f} ms each")


def planned(options: argparse.Namespace) -> Campaign:
    """The campaign of a command line."""
    families = tuple(options.family or FAMILIES)
    each, proved = math.ceil(options.compositions / len(families)), math.ceil(options.proved / len(families))
    number, shares = map(int, options.share.split("/"))
    share = each * (number - 1) // shares, each * number // shares
    return Campaign(families, each, min(proved, each), options.seed, share, options.proof)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compositions", type=int, default=1000, help="of all families and shares together")
    parser.add_argument("--proved", type=int, default=50, help="how many of them are held against ball arithmetic")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", default="1/1", help="1/2 and 2/2 are the halves of one campaign")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after the turn that is then under way")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="default: all of them")
    parser.add_argument("--journal", type=Path, help="where to keep what is done")
    parser.add_argument("--report", action="store_true", help="only print what the journal has")
    parser.add_argument("--proof", action="store_true", help="ask the library for its answers in ball arithmetic")
    options = parser.parse_args()
    journal = Journal(options.journal)
    if options.report:
        totals: dict[str, Findings] = {}
        for (_, family, _), row in journal.rows.items():
            show(family, findings(row))
            totals.setdefault(family, Findings()).add(findings(row))
    else:
        campaign = planned(options)
        print(f"seed {campaign.seed}, numbers {campaign.share[0]} to {campaign.share[1] - 1} of {campaign.each} each")
        totals = run(campaign, journal, minutes=options.minutes)
    counts = report(totals)
    return 1 if any(counts[kind] for kind in VIOLATIONS) else 0


if __name__ == "__main__":
    sys.exit(main())
