"""Random compositions: all intervals that must contain the same truth intersect, and the truth is
inside.

    python -m campaigns.soundness --compositions 100000 --proved 5000 --seed 1 --share 1/2 --journal out

draws this number of compositions of every family (families.py) and computes for each
epsilon(delta), with delta from 0.5 to 1e-300, and delta(epsilon), with epsilon also negative, 0 and
close to the largest loss, at tolerances from 1e-3 to 1e-12. Each answer is compared with lines at
0.93, 0.97, 1 and 1.03 of the saddle point (lines.py), with a lattice that shares no code with the
library (oracles/tilted.py), and, for the number of compositions to be proved, the same for every
family, with ball arithmetic (verdicts.py). Printed at once, with the line of Python that repeats
them:
  LOOSE           an answer above that of an elementary theorem applied to the library's own
                  one-step answers (elementary.py), by more than the requested tolerance
  APART, OUTSIDE  two intervals that do not meet; an answer that does not contain the truth: the
                  library or a test is wrong
  FAILED          an answer that ended in an exception or a warning
  BROKEN          a check that ended in an exception
  UNPROVED        a ball too wide to decide; counted as `own proof` if the library's own proof is
                  inside the answer
  NO LINE         a line close to the saddle point that ended in an exception
  SLOW            more than ten seconds
and, one line for every family, the number of each, with the fraction that is done. All families
advance together, so that the campaign is balanced whenever it stops: after --minutes, or when it is
killed. A journal stores what is done; with the same journal the same campaign continues, in the
same shares or in others, and --report prints all results in the journal. Exit status 1 after APART,
OUTSIDE, FAILED, BROKEN or LOOSE.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from pathlib import Path

from campaigns.soundness.families import FAMILIES
from campaigns.soundness.meeting import Findings
from campaigns.soundness.run import VIOLATIONS, WEAK, Campaign, Journal, Totals, report, run, show


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--compositions", type=int, default=1000, help="of all families and shares together"
    )
    parser.add_argument(
        "--proved", type=int, default=50, help="how many of them are held against ball arithmetic"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", default="1/1", help="1/2 and 2/2 are the halves of one campaign")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop after the turn that is then under way"
    )
    parser.add_argument(
        "--family", action="append", choices=sorted(FAMILIES), help="default: all of them"
    )
    parser.add_argument("--journal", type=Path, help="where to keep what is done")
    parser.add_argument("--report", action="store_true", help="only print what the journal has")
    parser.add_argument(
        "--proof", action="store_true", help="ask the library for its answers in ball arithmetic"
    )
    options = parser.parse_args()
    if options.journal is not None and options.journal.is_dir():
        parser.error(f"--journal {options.journal} is a directory: name a file in it")
    journal = Journal(options.journal)
    if options.report:
        counts = sum(
            (_reported(campaign, rows) for campaign, rows in journal.rows.items()), Counter[str]()
        )
        return _status(counts)
    families = tuple(options.family or FAMILIES)
    each = math.ceil(options.compositions / len(families))
    proved = min(math.ceil(options.proved / len(families)), each)
    campaign = Campaign(each, proved, options.seed, options.proof)
    share, shares = map(int, options.share.split("/"))
    totals = run(
        campaign, campaign.blocks(families, share, shares), journal, minutes=options.minutes
    )
    return _status(report(campaign, totals))


def _status(counts: Counter[str]) -> int:
    return 1 if any(counts[kind] for kind in (*VIOLATIONS, *WEAK)) else 0


def _reported(campaign: Campaign, rows: dict[tuple[str, int], Findings]) -> Counter[str]:
    """All that the journal has of a campaign."""
    totals: Totals = {}
    for (family, _), found in rows.items():
        show(family, found)
        totals.setdefault(family, Findings()).add(found)
    return report(campaign, totals)


if __name__ == "__main__":
    sys.exit(main())
