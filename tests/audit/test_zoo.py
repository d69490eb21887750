"""The fast half of the zoo: broken ones are refuted, and their twins are not; all of it: `dpcompose audit zoo --all`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpcompose.audit import Verdict, audit
from dpcompose.audit.learned import LEARNERS
from dpcompose.audit.zoo import ENTRIES, Entry, entry_of
from dpcompose.errors import DomainError

SLOW = {
    "natural filter",
    "rare leak",
    "a tenth too small",
    "one noise for all steps",
    "without clipping",
}
SLOW |= {f"sparse vector {number}" for number in (3, 4, 5, 6)}
FAST = [
    entry for entry in ENTRIES if entry.name not in SLOW and entry.name != "time tells the noise"
]


def _verdict(entry: Entry, which: str, samples: int) -> Verdict:
    claim = entry.claim if which == "broken" or entry.twin_claim is None else entry.twin_claim
    made = entry.broken() if which == "broken" else entry.twin()
    return audit(
        made, entry.pairs, claim=claim, samples=samples, learners=LEARNERS, ladder=False
    ).verdict


@pytest.mark.parametrize("entry", FAST, ids=lambda entry: entry.name)
def test_the_broken_is_refuted_and_the_twin_is_not(entry: Entry) -> None:
    assert _verdict(entry, "broken", 200_000) is Verdict.REFUTED
    assert _verdict(entry, "twin", 2000) is Verdict.NOT_REFUTED


def test_an_unknown_entry_is_refused() -> None:
    with pytest.raises(DomainError, match="'half the scale'"):
        entry_of("unicorn")


def test_no_verdict_promises() -> None:
    package = Path(__file__).parents[2] / "src" / "dpcompose"
    for file in [
        *(package / "audit").glob("*.py"),
        package / "report" / "audit.py",
        package / "cli" / "audit.py",
    ]:
        words = set(file.read_text().lower().replace(".", " ").replace(",", " ").split())
        assert not words & {"passed", "verified", "safe"}, file
