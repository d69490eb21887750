"""A soundness campaign: its questions, its findings, and the journal of finished blocks."""

from __future__ import annotations

import json
import math
import os
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from campaigns.soundness.meeting import Case, Findings, examine

BLOCK = 10
PATIENCE = 10.0
VIOLATIONS = ("apart", "outside", "failed", "broken")
WEAK = ("loose",)
QUIET = ("refused",)
Block = tuple[str, range]


@dataclass(frozen=True)
class Campaign:
    """How many compositions of each family, and which of them are proved.

    Args:
        each: Compositions of each family.
        proved: How many of each are held against ball arithmetic, spread evenly.
        seed: Of all random numbers.
        proof: Whether the library answers in ball arithmetic itself.
    """

    each: int
    proved: int
    seed: int
    proof: bool = False

    def blocks(self, families: tuple[str, ...], share: int = 1, shares: int = 1) -> Iterator[Block]:
        """All families in turn, some numbers at a time; each share has every so manieth turn, whole."""
        for first in islice(range(0, self.each, BLOCK), share - 1, None, shares):
            for family in families:
                yield family, range(first, min(first + BLOCK, self.each))

    def block(self, family: str, numbers: range) -> Findings:
        """Return the findings about these compositions."""
        total = Findings()
        for number in numbers:
            total.add(self.one(Case(family, number, self.seed), prove=self.proves(family, number)))
        return total

    def proves(self, family: str, number: int) -> bool:
        """Whether this one is to be proved: evenly spread, not the same numbers of every family."""
        start = zlib.crc32(family.encode()) % self.each
        return (start + number * self.proved) // self.each < (
            start + (number + 1) * self.proved
        ) // self.each

    def one(self, case: Case, *, prove: bool) -> Findings:
        """Return the findings about one composition and its cost, also where a check breaks down."""
        start = time.process_time()
        try:
            found = examine(case, prove=prove, proof=self.proof)
        except Exception as error:  # the campaign goes on, and says so
            found = Findings()
            found.counts["compositions"] += 1
            found.note("broken", f"{case}: {case.code}  # {type(error).__name__}: {error}")
        spent = time.process_time() - start
        found.counts[f"cost {math.ceil(math.log2(1e3 * spent + 1e-9)):d}"] += 1
        if spent > PATIENCE:
            found.note("slow", f"{spent:.0f} s: {case.code}, delta {case.delta!r}, {case.options}")
        return found


class Journal:
    """The blocks that are done, each a line of JSON; several processes may write to one and be killed meanwhile."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: dict[Campaign, dict[tuple[str, int], Findings]] = {}
        for line in path.read_text().splitlines() if path and path.exists() else ():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # a line that was being written when its process was killed: the block is done again
            campaign = Campaign(row["each"], row["proved"], row["seed"], row["proof"])
            self.rows.setdefault(campaign, {})[row["family"], row["first"]] = findings(row)

    def known(self, campaign: Campaign, family: str, numbers: range) -> Findings | None:
        return self.rows.get(campaign, {}).get((family, numbers.start))

    def write(self, campaign: Campaign, family: str, numbers: range, found: Findings) -> None:
        if self.path is None:
            return
        row = {**asdict(campaign), "family": family, "first": numbers.start}
        row |= {"counts": found.counts, "seconds": found.seconds, "lines": found.lines}
        # At once, so that lines of two processes do not mix, and after an end, in case of one that was cut off.
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, f"\n{json.dumps(row)}\n".encode())
        finally:
            os.close(file)


Totals = dict[str, Findings]


def findings(row: dict) -> Findings:
    """A block, as it was written."""
    return Findings(Counter(row["counts"]), defaultdict(float, row["seconds"]), row["lines"])


def run(
    campaign: Campaign, blocks: Iterator[Block], journal: Journal, *, minutes: float = math.inf
) -> Totals:
    """Every family's findings; what is to be seen is printed at once."""
    totals: Totals = {}
    end, turn = time.monotonic() + 60 * minutes, None
    for family, numbers in blocks:
        found = journal.known(campaign, family, numbers)
        if found is None:
            if time.monotonic() > end and turn not in (None, numbers.start):
                break  # all families have done as many
            found = campaign.block(family, numbers)
            journal.write(campaign, family, numbers, found)
        turn = numbers.start
        show(family, found)
        totals.setdefault(family, Findings()).add(found)
    return totals


def show(family: str, found: Findings) -> None:
    """Print the findings that are worth a line, at once."""
    for line in found.lines:
        if not line.lower().startswith(QUIET):
            print(f"{family}: {line}", flush=True)


def report(campaign: Campaign, totals: Totals) -> Counter[str]:
    """A line for each family and for all; return the sum of all counts."""
    whole = Findings()
    print(
        f"seed {campaign.seed}, {campaign.each} of every family, {campaign.proved} of them proved"
    )
    for family, found in totals.items():
        _line(family, found, campaign.each)
        whole.add(found)
    _line("all", whole, campaign.each * len(totals))
    _costs(whole)
    violations = sum(whole.counts[kind] for kind in VIOLATIONS)
    print(
        f"{violations} violations; CPU "
        + ", ".join(f"{kind} {time:.0f} s" for kind, time in whole.seconds.items())
    )
    return whole.counts


def _line(name: str, found: Findings, planned: int) -> None:
    count = found.counts
    wide = {
        kind: f"{count[kind]} ({count[f'{kind} wide']} wide)"
        for kind in ("line", "lattice", "ball")
    }
    shown = {
        "compositions": f"{count['compositions']} ({100 * count['compositions'] / planned:.1f}%)",
        "answers": count["answers"],
        "without news": count["without news"],
        "over 1% wide": count["over 1% wide"],
        **wide,
        "proved": f"{count['proved']} of {count['tried']} ({count['vacuous']} vacuous)",
        **{
            kind: count[kind]
            for kind in ("unproved", "own proof", "refused", "no line", "slow", *WEAK, *VIOLATIONS)
        },
    }
    spent = sum(found.seconds.values()) / max(count["compositions"], 1)
    print(
        f"{name:18} "
        + "  ".join(f"{key} {value}" for key, value in shown.items())
        + f"  {1e3 * spent:.0f} ms each"
    )


def _costs(whole: Findings) -> None:
    """How many compositions cost how much."""
    powers = sorted(
        int(kind.removeprefix("cost ")) for kind in whole.counts if kind.startswith("cost ")
    )
    shown = (f"{2.0**power / 1e3:g} s: {whole.counts[f'cost {power}']}" for power in powers)
    print("compositions that cost up to " + ", ".join(shown))
