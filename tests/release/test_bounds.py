"""Sensitivities from bounds are exact: brute force over small tables finds no larger change, and
finds one as large.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction

import pyarrow as pa
import pytest

import dpcompose.release as release
from campaigns.release import tables
from campaigns.release.truncation import excess
from dpcompose.errors import DomainError
from dpcompose.release.aggregate import Scan
from dpcompose.release.columns import Bounds
from dpcompose.release.design import scores
from dpcompose.release.query import Engine, Query
from dpcompose.release.source import of_arrow
from tests.release.world import refill, table

SPEND = {"epsilon": 1}
PRIVATE = {"epsilon": 1, "delta": 0.01}
CITIES = ["bern", "kyiv", "lima", "oslo", "rome", "zug"]
QUESTIONS = {
    "count": release.Count(spend=SPEND),
    "count by": release.Count(by="city", keys=CITIES, spend=SPEND),
    "count by private": release.Count(by="city", spend=PRIVATE),
    "units by": release.Units(by="city", keys=CITIES, spend=SPEND),
    "units by private": release.Units(by="city", spend=PRIVATE),
    "sum": release.Sum("amount", lower=-1, upper=3, granularity=1, spend=SPEND),
    "sum by": release.Sum(
        "amount", lower=-4, upper=3, granularity="0.5", by="city", keys=CITIES, spend=SPEND
    ),
    "mean by private": release.Mean(
        "amount", lower=0, upper=4, granularity=1, by="city", spend=PRIVATE
    ),
    "histogram by": release.Histogram(
        "amount", edges=[0, 2, 4], by="city", keys=CITIES, spend=SPEND
    ),
    "histogram by private": release.Histogram("amount", edges=[0, 2, 4], by="city", spend=PRIVATE),
    "median by": release.Quantile(
        "amount", 0.75, lower=0, upper=4, granularity=1, by="city", keys=CITIES, spend=SPEND
    ),
}
BOUNDS = [
    (1, None, None),
    (2, None, None),
    (3, 2, None),
    (3, 2, 1),
    (4, 3, 2),
    (4, 1, 3),
    (5, 2, 3),
    (3, None, 1),
]


def _tables(seed: int) -> list[list[tuple[str | None, str | None, float | None, int]]]:
    rng = random.Random(seed)
    units = []
    for name in ("ann", "bob", "cyd"):
        count = rng.randint(0, 6)
        amounts = [-9.0, 0.0, 1.0, 2.5, 3.0, 99.0, float("nan"), None]
        units.append(
            [(name, rng.choice([*CITIES, None]), rng.choice(amounts), 0) for _ in range(count)]
        )
    # One that spends all it has in the worst way.
    units.append(
        [
            ("dee", city, extreme, 0)
            for city in CITIES
            for extreme in (99.0, -99.0, 2.0)
            for _ in range(3)
        ]
    )
    return units


@pytest.mark.slow
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_unit_moves_an_aggregate_further_than_computed(
    name: str, bounds: tuple[int, int | None, int | None]
) -> None:
    rows, groups, each = bounds
    limits = {"max_rows_per_unit": rows, "max_groups_per_unit": groups, "max_rows_per_group": each}
    for seed in range(1):
        units = _tables(seed)
        whole = list(itertools.chain(*units))
        made = table(whole, **limits)
        design = QUESTIONS[name].design(made)
        scan = Scan.of(made, [design.aggregation])
        (full,) = scan.exact()
        for unit in units:
            refill(made, [row for row in whole if row not in unit])
            assert excess(full, scan.exact()[0], design) == []


@pytest.mark.parametrize(
    ("rows", "groups", "each"),
    [(r, g, e) for r, g, e in itertools.product(range(1, 6), repeat=3) if max(g, e) <= r],
)
@pytest.mark.parametrize("bins", [1, 2])
def test_the_norms_are_those_of_the_worst_vector(
    rows: int, groups: int, each: int, bins: int
) -> None:
    bounds = Bounds.stated(rows, groups=groups, rows_per_group=each)
    change = bounds.change(3, bins=bins)
    allowed = list(_spread(rows, groups, each, bins))
    assert change.largest == 3 * max(max(cell) for cell in allowed)
    assert change.l1 == 3 * max(sum(cell) for cell in allowed)
    assert change.l2_squared == 9 * max(sum(n * n for n in cell) for cell in allowed)
    assert change.coordinates == max(sum(n > 0 for n in cell) for cell in allowed)
    if change.box:
        size = change.largest // 3
        sorted_worst = [size] * change.coordinates
        for cell in allowed:
            moved = sorted((n for n in cell if n), reverse=True)
            assert all(n <= m for n, m in zip(moved, sorted_worst, strict=False))
            assert len(moved) <= len(sorted_worst)


def _spread(rows: int, groups: int, each: int, bins: int) -> Iterator[tuple[int, ...]]:
    """Every vector of at most so many rows, of which each group has at most `each`, over the bins of all groups."""
    if not groups:
        yield ()
        return
    for group in itertools.product(range(min(rows, each) + 1), repeat=bins):
        if sum(group) <= min(rows, each):
            yield from (
                group + others for others in _spread(rows - sum(group), groups - 1, each, bins)
            )


def test_a_change_beyond_floats_is_refused() -> None:
    with pytest.raises(DomainError, match="coarser"):
        Bounds.stated(2**31).change(2**30)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", None, 2**40, float("nan")])
def test_bounds_are_counts(bad: object) -> None:
    with pytest.raises(DomainError):
        Bounds.stated(bad)


@pytest.mark.parametrize("bad", [0, 4, 2.0, float("nan")])
def test_group_bounds_are_within_the_rows(bad: object) -> None:
    with pytest.raises(DomainError):
        Bounds.stated(3, groups=bad)
    with pytest.raises(DomainError):
        Bounds.stated(3, rows_per_group=bad)


def test_quantile_scores_are_those_of_the_definition() -> None:
    counts, a, b = [2, 0, 5, 1], 3, 4
    expected = [abs((b - a) * sum(counts[:i]) - a * sum(counts[i + 1 :])) for i in range(4)]
    assert scores(counts, Fraction(a, b)) == expected


def test_places_from_one_sort_of_all_rows_are_those_of_each_group() -> None:
    edge = 2**31
    units = [0, -1, edge - 1, edge, -edge, -edge - 1, 2**63 - 1, -(2**63)]
    rng = random.Random(1)
    rows = [(unit, rng.choice([None, 1, 2])) for unit in units for _ in range(rng.randint(1, 9))]
    unit, key = (list(column) for column in zip(*rng.sample(rows, len(rows)), strict=True))
    rows = of_arrow(pa.table({"unit0": unit, "key0": key}))
    for of in (["unit0"], ["unit0", "key0"]):

        def order(each: Query) -> list[str]:
            return [f"{each['key0']} ASC NULLS LAST"]

        expected, found = (
            sorted(map(repr, tables.rows_of(made(rows.engine, rows, of, order))))
            for made in (Engine.numbered, type(rows.engine).numbered)
        )
        assert found == expected
