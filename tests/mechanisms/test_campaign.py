"""A short version of campaigns.mechanisms: a few cases of every family, and wrong controls that
must be detected.
"""

from __future__ import annotations

import pytest

from campaigns.mechanisms import FAMILIES, run

SLOW = {
    "Skellam": 2,
    "FixedSizeSample": 1,
    "RenyiCurve": 3,
    "PrivateSelection": 4,
    "ShuffledEpochs": 3,
}
CONTROLS = {"AboveThreshold": 20, "NoisyMax": 12, "RenyiCurve": 6, "FixedSizeSample": 2}


@pytest.mark.parametrize("name", FAMILIES)
def test_family(name: str) -> None:
    found = run(
        name, cases=SLOW.get(name, 8), seed=5, controls=CONTROLS.get(name, SLOW.get(name, 4))
    )
    assert not found.violated and found.checks >= found.cases
    assert found.caught >= 1
