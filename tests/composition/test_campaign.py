"""A short campaign: all intervals meet, and the truth lies inside. The long one is `python -m campaigns.soundness`."""

from __future__ import annotations

import pytest

from campaigns.soundness.families import FAMILIES
from campaigns.soundness.run import VIOLATIONS, Campaign, Journal, report, run

pytestmark = pytest.mark.slow

PROVED = 2
EACH = dict.fromkeys(FAMILIES, 12)
EACH |= dict.fromkeys(("different_laplace", "sgd", "phases", "mixtures", "rare_shifts"), 4)
EACH |= dict.fromkeys(("rare_sgd", "sgd_together", "many_sgd", "many_replaced"), 4)
LITTLE = ("little_noise", "little_noise_together", "replaced_little_noise")
EACH |= dict.fromkeys(LITTLE, 4)
EACH |= {
    "edges_of_sgd": 10,
    "replaced_edges": 8,
}  # with 12, balls of ten seconds are among the proved
PROVED_OF = dict.fromkeys(FAMILIES, PROVED)
PROVED_OF |= dict.fromkeys(LITTLE, 0)  # balls are left to the campaign; lines and lattices stay
LONG = {"many_sampled_laplace"}  # half a minute each


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in LONG])
def test_the_truth_is_inside_every_interval(family: str) -> None:
    each, proved = EACH[family], PROVED_OF[family]
    campaign = Campaign(each, proved, seed=1)
    counts = report(campaign, run(campaign, campaign.blocks((family,)), Journal(None)))
    assert {kind: counts[kind] for kind in VIOLATIONS} == dict.fromkeys(VIOLATIONS, 0)
    assert counts["answers"] + counts["refused"] == 2 * each
    assert counts["tried"] == proved
    assert counts["proved"] >= 0.5 * proved
    assert counts["without news"] <= 0.5 * counts["answers"]
    assert counts["line"] >= 2 * each
