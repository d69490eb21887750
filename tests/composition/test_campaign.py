"""A short soundness campaign: all certified intervals meet and contain the truth. The long one is
`python -m campaigns.soundness`.
"""

from __future__ import annotations

import pytest

from campaigns.soundness.families import FAMILIES
from campaigns.soundness.run import VIOLATIONS, Campaign, Journal, report, run

pytestmark = pytest.mark.slow

SEEDS = {  # whose balls take a second or two; that of all others is 2
    "little_noise": 4,
    "many_replaced": 1,
    "many_exponentials": 1,
    "many_sgd": 3,
    "capped_batches": 4,
    "rare_shifts": 3,
}
SLOW = {  # their balls or lines take seconds
    *(
        "different_laplace",
        "rare_sgd",
        "rare_shifts",
        "random_shifts",
        "edges_of_sgd",
        "capped_batches",
    ),
    *(
        "little_noise",
        "little_noise_together",
        "replaced_little_noise",
        "many_sgd",
        "many_replaced",
    ),
    *(
        "many_exponentials",
        "phases",
        "phases_together",
        "sgd",
        "sgd_together",
        "short_sgd",
        "replaced_sgd",
        "mixtures",
    ),
}
EACH = {family: 4 if family in SLOW else 10 for family in FAMILIES} | {"replaced_edges": 2}
PROVED = {family: 1 if EACH[family] < 10 else 2 for family in FAMILIES}
LONG = {"many_sampled_laplace"}  # half a minute each


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in LONG])
def test_the_truth_is_inside_every_interval(family: str) -> None:
    each, proved = EACH[family], PROVED[family]
    campaign = Campaign(each, proved, seed=SEEDS.get(family, 2))
    counts = report(campaign, run(campaign, campaign.blocks((family,)), Journal(None)))
    assert {kind: counts[kind] for kind in VIOLATIONS} == dict.fromkeys(VIOLATIONS, 0)
    assert counts["answers"] + counts["refused"] == 2 * each
    assert counts["tried"] == proved
    assert counts["proved"] >= 0.5 * proved
    assert counts["without news"] <= 0.5 * counts["answers"]
    assert counts["line"] >= 2 * each
