"""Published bugs that are refuted quickly with default settings, and their corrected versions that
are not; all are in the campaign.
"""

from __future__ import annotations

import pytest

from campaigns.audit_bugs import BUGS, audited
from dpcompose.audit import Verdict

FAST = (
    "a constant seed",
    "an exception for no records",
    "a sum that wraps",
    "contributions without a bound",
)


def test_the_campaign_has_thirty_bugs_each_with_its_citation() -> None:
    assert len(BUGS) == len({bug.name for bug in BUGS}) >= 30
    assert all(bug.reference and bug.broken is not bug.twin for bug in BUGS)


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.name in FAST], ids=lambda bug: bug.name)
def test_the_bug_is_refuted_and_its_twin_is_not(bug) -> None:  # pyright: ignore
    assert audited(bug, "broken", seconds=60, samples=20_000).verdict is Verdict.REFUTED
    assert audited(bug, "twin", seconds=60, samples=1200).verdict is Verdict.NOT_REFUTED
