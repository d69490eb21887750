"""A short campaign: the truth lies inside every interval. The long one is `python -m truth.campaign`."""

from __future__ import annotations

import pytest
from truth import campaign

COMPOSITIONS = {
    "gaussians": 500,
    "few_laplace": 100,
    "many_laplace": 60,
    "promises": 400,
    "different_promises": 80,
    "two_term_mixtures": 50,
    "exponentials": 10,
    "responses": 400,
    "discrete": 200,
    "sgd": 8,
    "short_sgd": 4,
    "replaced": 200,
    "replaced_sgd": 8,
    "many_kinds": 30,
    "sampled_once": 300,
    "sampled_atoms": 15,
    "mixtures": 15,
}


@pytest.mark.parametrize("family", COMPOSITIONS)
def test_the_truth_is_inside_every_interval(family: str) -> None:
    seeds = range(1, COMPOSITIONS[family] + 1)
    print(f"seeds of {family}: {seeds.start} to {seeds.stop - 1}")
    verdicts = campaign.report(campaign.run([family], seeds))
    assert verdicts["outside"] == 0
    assert verdicts["failed"] == 0
    assert verdicts["inside"] >= 0.7 * sum(verdicts.values())


def test_the_short_campaign_is_not_too_short() -> None:
    assert set(COMPOSITIONS) == set(campaign.FAMILIES)
    assert sum(COMPOSITIONS.values()) >= 2000
