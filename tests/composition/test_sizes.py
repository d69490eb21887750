"""Losses that hold for one data set size are not used for groups or on samples."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from dpcompose import Composition, Gaussian, compose
from dpcompose.composition import Composable
from dpcompose.composition.parallel import one_of
from dpcompose.errors import UnsupportedError
from dpcompose.mechanisms import PrivateSelection, TruncatedPoisson

CAPPED = TruncatedPoisson(0.5, rate=1.0, records=4, batch=1)
HOLDERS: dict[str, Composable] = {
    "alone": CAPPED,
    "composed": CAPPED + Gaussian(50.0),
    "chosen": one_of(CAPPED, Gaussian(1.0)),
    "selected": PrivateSelection(CAPPED, tries=2.0),
    "selected by another": PrivateSelection(
        PrivateSelection(CAPPED, tries=2.0) + Gaussian(9.0), tries=2.0
    ),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_a_group_changes_the_number_of_records(name: str) -> None:
    with pytest.raises(
        UnsupportedError, match=r"hold for 4 records, and not for fewer\. Gaussian\(sigma / 2\)"
    ):
        HOLDERS[name].group(2).delta(epsilon=1.0)


@pytest.mark.parametrize("name", HOLDERS)
def test_a_sample_has_fewer_records(name: str) -> None:
    sampled = (HOLDERS[name] * 2).sampled(0.5)
    for each in (sampled, compose(sampled, sampled), sampled.group(2)):
        with pytest.raises(UnsupportedError, match="hold for 4 records"):
            each.delta(epsilon=1.0)


def test_one_person_is_answered_and_so_is_a_batch_that_is_never_cut() -> None:
    assert CAPPED.group(1).delta(epsilon=0.0) == CAPPED.delta(epsilon=0.0)
    whole = TruncatedPoisson(0.5, rate=0.2, records=4, batch=4)
    assert (
        whole.group(2).delta(epsilon=1.0).upper
        >= Gaussian(0.5).sampled(0.2).group(2).delta(epsilon=1.0).lower
    )
    assert isinstance(whole * 2, Composition)


@pytest.mark.parametrize(("sigma", "records", "size"), [(0.5, 10, 9), (0.5, 100, 99), (2.0, 3, 2)])
def test_the_remedy_bounds_a_uniform_draw_of_one_record(
    sigma: float, records: int, size: int
) -> None:
    """`size` of the records are 1, the others -1: a mixture of N(1, sigma^2) against N(-1, sigma^2)."""
    weight, mu = size / records, 2 / sigma
    for epsilon in (0.0, 1.0):
        reached = math.log1p(math.expm1(epsilon) / weight)
        truth = weight * (
            norm.cdf(mu / 2 - reached / mu) - math.exp(reached) * norm.cdf(-mu / 2 - reached / mu)
        )
        assert Gaussian(sigma / 2).group(size).delta(epsilon=epsilon).upper >= truth
