"""Random compositions: all intervals that must contain the same truth intersect, and the truth is inside.

    python -m campaigns.soundness --compositions 100000 --proved 5000 --seed 1 --share 1/2 --journal out

draws as many compositions of every family (families.py) and asks each for epsilon(delta), delta from 0.5 to 1e-300,
and for delta(epsilon), epsilon also negative, 0 and next to the largest loss, at tolerances from 1e-3 to 1e-12. Each
answer is held against lines at 0.93, 0.97, 1 and 1.03 of the saddle point (lines.py), against a lattice that shares no
code with the library (oracles/tilted.py), and, for as many compositions as are to be proved, the same number of every
family, against ball arithmetic (verdicts.py). Printed at once, with the line of Python that repeats them:
  LOOSE           an answer above an elementary theorem's from the library's own one-step answers (elementary.py), by
                  more than the tolerance that was asked for
  APART, OUTSIDE  two intervals that do not meet; an answer that the truth is not in: the library is wrong, or a test is
  FAILED          an answer that ended in an exception or a warning
  BROKEN          a check that ended in an exception
  UNPROVED        a ball too wide to tell; counted as `own proof` if the library's own proof is inside the answer
  NO LINE         a line beside the saddle point that ended in an exception
  SLOW            more than ten seconds
and, one line for every family, how many there were of each, with what share of its numbers is done. All families
advance together, so that the campaign is even wherever it stops: after --minutes, or when it is killed. A journal keeps
what is done; with the same journal the same campaign goes on, in the same shares or in others, and --report prints what
they all wrote there. Exit status 1 after APART, OUTSIDE, FAILED, BROKEN or LOOSE.
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
