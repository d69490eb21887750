"""Variances, ratios, quantiles, top groups and other questions: exact integers, prices, intervals,
errors and displays.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import dpcompose.release as release
from campaigns.release import coverage
from dpcompose import compose
from dpcompose.account import open_scope
from dpcompose.adaptive import ConcentratedFilter
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Ledger
from dpcompose.release import sampler
from dpcompose.release.columns import Bounds
from dpcompose.release.design import NoiseStep, PeelingStep, RankStep
from dpcompose.release.noise import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Selection,
    Spend,
    quotient_interval,
)
from dpcompose.report.release import release_page
from tests.release import world

SPEND, SMALL = {"epsilon": 10}, {"epsilon": 0.001}
CITIES = ["zug", "rome", "oslo", None]
ENDS: dict[str, Any] = {"lower": 0, "upper": 10}
GRID: dict[str, Any] = ENDS | {"granularity": 1}


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "discrete_laplace", lambda values, **_: list(values))
    monkeypatch.setattr(sampler, "discrete_gaussian", lambda values, **_: list(values))
    monkeypatch.setattr(sampler, "least_with_noise", lambda scores, **_: scores.index(min(scores)))


def asked() -> release.Session:
    return world.session(world.ledger(epsilon=10_000.0), max_rows_per_unit=3)


@pytest.mark.usefixtures("quiet")
def test_exact_numbers_without_noise() -> None:
    session, amounts = asked(), [3.0, 5.0, 1.0, 9.0, 2.0]
    found = session.variance("amount", **ENDS, spend=SPEND)
    assert found.rows == [{"variance": statistics.pvariance(amounts), "mean": 4.0, "count": 5}]
    assert session.standard_deviation("amount", **ENDS, spend=SPEND).value == math.sqrt(8)
    ratio = session.ratio("amount", per="age", **ENDS, per_lower=0, per_upper=10, spend=SPEND)
    assert ratio.rows == [{"ratio": pytest.approx(20 / 15), "sum of age": 15.0}]
    assert [
        row["quantile"]
        for row in session.quantiles("amount", [0.25, 0.5, 0.75], **GRID, spend=SPEND).rows
    ] == [
        2,
        3,
        5,
    ]
    assert session.distinct("age", by="city", keys=CITIES, spend=SPEND).columns[1].cells == (
        0,
        3,
        2,
        1,
    )
    assert session.distinct("city", spend=SPEND).value == 2
    table = session.contingency(by=["city", "age"], keys=[["rome", "oslo"], [1, 2, 3]], spend=SPEND)
    assert table.columns[2].cells == (1, 1, 0, 0, 0, 1)
    assert session.rows_per_unit(spend=SPEND).columns[0].cells == (1, 1, 1)
    by_city = session.rows_per_unit(by="city", keys=CITIES, most=2, spend=SPEND)
    assert by_city.columns[1].cells == (0, 0, 1, 1, 2, 0, 1, 0)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("method", ["counts", "peeling"])
def test_the_largest_groups_come_first(method: str) -> None:
    found = asked().top(2, by="city", keys=CITIES, method=method, spend=SPEND)
    assert found.rows == [{"city": "rome", "count": 3}, {"city": "oslo", "count": 2}]
    private = asked().top(1, by="age", spend=SPEND | {"delta": 0.01})
    assert private.rows == []


@pytest.mark.usefixtures("quiet")
def test_units_that_lose_rows_are_told_apart() -> None:
    by_city = release.Count(by="city", keys=CITIES)
    for bounds, question, lost in (
        ({"max_rows_per_unit": 3}, by_city, 0),
        ({"max_rows_per_unit": 1}, by_city, 2),
        ({"max_rows_per_unit": 3, "max_groups_per_unit": 1}, by_city, 2),
        ({"max_rows_per_unit": 3, "max_rows_per_group": 1}, by_city, 1),
        (
            {"max_rows_per_unit": 3, "max_groups_per_unit": 1},
            release.Units(by="city", keys=["rome"]),
            0,
        ),
        ({"max_rows_per_unit": 1}, release.Sum("amount", **ENDS), 2),
    ):
        session = world.session(world.ledger(epsilon=100.0), **bounds)
        found = session.left_out(question, spend=SPEND)
        assert found.value == pytest.approx(lost / found.rows[0]["units"])


def test_counts_of_a_unit_are_clamped_to_its_bounds() -> None:
    for question, size in (
        (release.Variance("amount", lower=0, upper=4, granularity=1), (1, 2, 2)),
        (
            release.Ratio(
                "amount", per="age", lower=-3, upper=1, per_lower=0, per_upper=5, granularity=1
            ),
            (3, 5),
        ),
        (release.Distinct("city"), (1,)),
    ):
        design = question.design(world.table(max_rows_per_unit=7), SPEND)
        changes = [step.noise.change.l1 for step in design.steps if isinstance(step, NoiseStep)]
        assert changes == [7 * each for each in size]
    for question in (release.RowsPerUnit(by="city", keys=CITIES), release.RowsPerUnit()):
        (step,) = question.design(world.table(max_rows_per_unit=3), SPEND).steps
        assert isinstance(step, NoiseStep)
        assert step.noise.change.l1 == (3 if question.by else 1)


def test_the_price_is_within_the_spend() -> None:
    table = world.table(max_rows_per_unit=3)
    for spend in ({"epsilon": 1}, {"rho": 0.5}):
        for question in (
            release.Variance("amount", **ENDS),
            release.Quantiles("amount", [0.1, 0.5, 0.9], **GRID),
            release.Minimum("amount", **GRID, by="city", keys=CITIES),
            release.Top(2, by="city", keys=CITIES, method="peeling"),
            release.LeftOut(release.Count()),
        ):
            mechanism = compose(question.design(table, spend).mechanism)
            zcdp = mechanism.zcdp()
            price = mechanism.pure() if "epsilon" in spend else None if zcdp is None else zcdp.rho
            assert price is not None
            (most,) = spend.values()
            assert most * (1 - 1e-6) <= price <= most


def test_a_rank_is_found_where_many_rows_are_alike() -> None:
    step = RankStep(Selection(1.0, 1), 3, above=False)
    assert step.scores([0, 0, 100, 0, 4]) == [3, 3, 0, 97, 97]
    mirrored = RankStep(Selection(1.0, 1), 3, above=True)
    assert mirrored.scores([4, 0, 100, 0, 0]) == step.scores([0, 0, 100, 0, 4])[::-1]


def test_peeling_is_chosen_where_units_are_in_many_groups() -> None:
    keys = list(range(50))
    for rows, kind in ((1, NoiseStep), (50, PeelingStep)):
        table = world.table(max_rows_per_unit=rows, max_rows_per_group=1)
        (step,) = release.Top(2, by="age", keys=keys).design(table, {"epsilon": 1}).steps
        assert isinstance(step, kind)


def test_private_keys_have_no_more_noise_than_public_ones() -> None:
    table, spend = world.table(max_rows_per_unit=3), {"epsilon": 1, "delta": 1e-6}
    private, public = release.Count(by="city"), release.Count(by="city", keys=[*CITIES, "bern"])
    errors = [
        question.errors(question.design(table, each), 0.05, ())
        for question, each in ((private, spend), (public, {"epsilon": 1}))
    ]
    assert errors[0] == errors[1]
    units = release.Count(by="city", threshold="units").design(table, spend)
    assert units.threshold is not None
    rows = private.design(table, spend).threshold
    assert rows is not None
    # A lone unit's three rows pass with probability delta / 3.
    assert rows.least == 3 + rows.noise.passing(1e-6 / 3 * (1 - 1e-9))
    with pytest.raises(DomainError, match="threshold"):
        release.Count(threshold="some").design(table, spend)


@pytest.mark.parametrize(
    ("make", "spend"),
    [
        (lambda: release.Variance("city", **ENDS), SPEND),
        (lambda: release.Ratio("amount", per="age", **ENDS, per_lower=-1, per_upper=2), SPEND),
        (lambda: release.Quantiles("amount", [], **GRID), SPEND),
        (lambda: release.Quantiles("amount", [0.5, 0.25], **GRID), SPEND),
        (lambda: release.Quantiles("amount", "0.5", **GRID), SPEND),
        (lambda: release.Top(0, by="city", keys=CITIES), SPEND),
        (lambda: release.Top(5, by="city", keys=CITIES), SPEND),
        (lambda: release.Top(1), SPEND),
        (lambda: release.Top(1, by="city", keys=CITIES, method="other"), SPEND),
        (lambda: release.Top(1, by="city", method="peeling"), SPEND | {"delta": 0.1}),
        (lambda: release.Distinct("amount"), SPEND),
        (lambda: release.Distinct("age", by="city"), SPEND | {"delta": 0.1}),
        (lambda: release.Contingency(by=["city", "age"], keys=[["rome"]]), SPEND),
        (lambda: release.Contingency(by=["city", "age"], keys=[["rome"], []]), SPEND),
        (lambda: release.RowsPerUnit(most=0), SPEND),
        (lambda: release.RowsPerUnit(by="city"), SPEND | {"delta": 0.1}),
        (lambda: release.LeftOut(release.LeftOut(release.Count())), SPEND),
        (lambda: release.LeftOut(release.Count(), by="city"), SPEND),
        (lambda: release.Mean("amount", **ENDS, error=1), None),
        (lambda: release.Count(error=50, spend={"epsilon": 1}), None),
        (lambda: release.Count(error=-1), None),
        (lambda: release.Count(error=1, confidence=1.5), None),
        (lambda: release.Sum("amount", lower=0, upper=10**9, error=1e-9), None),
    ],
)  # fmt: skip
def test_bad_questions_cost_nothing(make: Callable[[], release.Question], spend: Any) -> None:
    session = world.session()
    left = session.account.left()
    with pytest.raises(DomainError):
        session.batch([make()], spend=spend)
    assert session.account.left() == left


def test_an_error_finds_its_price() -> None:
    session = world.session(max_rows_per_unit=2)
    quote = session.quote(release.Count(by="city", keys=CITIES, error=50))
    assert quote.expected_error(0.95) <= 50
    assert quote.design.spend.amount == Fraction("0.119")
    dearer = session.quote(release.Count(by="city", keys=CITIES, spend={"epsilon": "0.118"}))
    assert dearer.expected_error(0.95) > 50
    assert quote.times == int(100 / 0.119)
    assert quote.error_of_the_rest(0.95) == 0
    answer = session.count(by="city", keys=CITIES, error=50)
    assert answer.spent["epsilon"].fraction == quote.price["epsilon"].fraction
    reach = session.units(
        by="city", error=30, confidence=0.9, spend={"delta": 1e-6}
    ).expected_error(0.9)
    assert isinstance(reach, float) and reach <= 30


def test_the_cheaper_noise_is_found() -> None:
    ledger = Ledger.open("memory:")
    world.OPENED.append(ledger)
    open_scope(ledger, "world", filter=ConcentratedFilter(1.0, delta=1e-6), actor="keeper")
    session = release.Session(
        world.table(max_rows_per_unit=2), ledger=ledger, scope="world", actor="ana"
    )
    quote = session.quote(release.Count(by="age", keys=list(range(40)), error=50))
    assert quote.design.spend.currency == "rho"


def test_quotes_of_ratios_say_that_they_cannot() -> None:
    quote = world.session().quote(
        release.Ratio("amount", per="age", **ENDS, per_lower=0, per_upper=5, spend=SPEND)
    )
    with pytest.raises(UnsupportedError, match="depends on both sums"):
        quote.expected_error(0.95, count=100)
    spread = world.session().quote(release.Variance("amount", **ENDS, spend=SPEND))
    assert spread.expected_error(0.95, count=10_000) < spread.expected_error(0.95, count=100) <= 25


@pytest.mark.parametrize("kind", [DiscreteLaplaceNoise, DiscreteGaussianNoise])
def test_an_interval_holds_what_is_plausible_and_no_more(kind: Any) -> None:
    change = Bounds(1, 1, 1).change(1)
    noises = (
        kind.costing(
            change, Spend(Fraction(1, 50), "epsilon" if kind is DiscreteLaplaceNoise else "rho")
        ),
        kind.costing(
            change, Spend(Fraction(1, 2), "epsilon" if kind is DiscreteLaplaceNoise else "rho")
        ),
    )
    low, high = quotient_interval((1000.0, 100), noises, (-50.0, 50.0), 0.05)
    assert -50 < low < 10 < high < 50
    wider = quotient_interval((1000.0, 100), noises, (-50.0, 50.0), 0.01)
    assert wider[0] < low
    assert high < wider[1]
    # Where the denominator's noise does not matter, the ends are the quantiles of the numerator's.
    reach = noises[0].error(0.05)
    small = quotient_interval((0.0, 10**6), noises, (-50.0, 50.0), 0.05)
    assert small == pytest.approx((-reach / 1e6, reach / 1e6), rel=0.03)
    assert quotient_interval((5.0, 0), noises, (-1.0, 1.0), 0.05) == (-1.0, 1.0)


@pytest.mark.statistical
@pytest.mark.parametrize("name", coverage.SETS)
@pytest.mark.parametrize("noise", coverage.SPENDS)
def test_intervals_of_means_cover_as_stated(name: str, noise: str) -> None:
    # 150 draws, of which at least 0.95 cover: 126 or fewer with a probability below 1e-6.
    share, _ = coverage.covered(
        coverage.QUESTIONS["mean"], coverage.SETS[name], coverage.SPENDS[noise], 150
    )
    assert share > 126 / 150


@pytest.mark.usefixtures("quiet")
def test_errors_and_ends_are_those_of_the_number_that_they_are_about() -> None:
    """Without noise: the column that the errors are about stands for itself, wherever it stands."""
    per: dict[str, Any] = {"per": "age", "per_lower": 0, "per_upper": 10}
    for question, name in (
        (release.Histogram("amount", edges=[0, 4.5, 9], spend=SPEND), "count"),
        (release.RowsPerUnit(spend=SPEND), "units"),
        (release.Mean("amount", **ENDS, spend=SPEND), "mean"),
        (release.Variance("amount", **ENDS, spend=SPEND), "variance"),
        (release.Ratio("amount", **ENDS, **per, spend=SPEND), "ratio"),
        (release.Count(by="city", keys=["rome", "oslo"], spend=SPEND), "count"),
        (release.Quantiles("amount", [0.25, 0.75], **GRID, spend=SPEND), "quantile"),
        (release.Maximum("amount", **GRID, spend=SPEND), "maximum"),
    ):
        answer = asked().ask(question)
        assert answer.main.name == name
        page = release_page([answer], confidence=0.95, left={}).tables[0]
        column = [heading.title for heading in page.columns].index(name)
        texts = answer.texts()
        assert [row[: len(texts[0])] for row in page.rows] == [tuple(row) for row in texts]
        if question.in_ranks:
            assert all(re.fullmatch(r"\(rank ± [0-9,.]+\)", error) for *_, error in texts)
            assert (
                all(math.isnan(low) for low in answer.low)
                and "█" not in str(page)
                and "░" not in str(page)
            )
        else:
            for cell, low, high in zip(answer.main.cells, answer.low, answer.high, strict=True):
                assert low <= cell <= high
            assert all(error.startswith("± ") for *_, error in texts)
            assert [float(row[column].replace(",", "")) for row in texts] == pytest.approx(
                answer.main.cells, abs=5
            )
            assert not re.search(r"\de[+-]\d", str(page.rows))
    counts = asked().histogram("amount", edges=[0, 4.5, 9], spend=SPEND)
    reach = counts.expected_error(0.95)
    assert counts.low == tuple(cell - reach for cell in counts.columns[2].cells)


@pytest.mark.usefixtures("quiet")
def test_a_notebook_shows_numbers_and_errors_to_the_same_place() -> None:
    answer = asked().sum("amount", lower=0, upper=1000, granularity=0.001, spend={"epsilon": 0.5})
    number, error = re.findall(r"<td>([^<]*)</td>", answer._repr_html_())[-2:]
    reach = answer.expected_error(0.95)
    assert isinstance(reach, float) and [[number, error]] == answer.texts()
    assert reach <= int(error.removeprefix("± ").replace(",", "")) <= 1.1 * reach
    assert reach > 9900 and error.endswith("00") and int(number.replace(",", "")) % 100 == 0
    ratio = asked().ratio(
        "amount", per="age", **ENDS, per_lower=0, per_upper=10, by="city", keys=CITIES, spend=SPEND
    )
    endless = asked().ratio(
        "amount", per="age", **ENDS, per_lower=0, per_upper=10, by="city", keys=CITIES, spend=SMALL
    )
    assert all(len(row) == 4 for row in ratio.texts()) and endless.texts()[0][-1] == "± infinite"
    page = release_page([endless], confidence=0.95, left={})
    assert page.tables[0].rows == tuple(tuple(row) for row in endless.texts())


@pytest.mark.usefixtures("quiet")
def test_answers_are_frames_and_pictures() -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.use("Agg")
    answer = asked().count(by="city", keys=["rome", "oslo", "<b>"], spend={"epsilon": 1})
    frame, reach = answer.to_pandas(), answer.expected_error(0.95)
    assert list(frame.columns) == ["city", "count", "low", "high"] and isinstance(reach, float)
    assert list(frame["low"]) == [3 - reach, 2 - reach, -reach] == list(answer.low)
    assert answer.to_polars(0.5).columns == ["city", "count", "low", "high"]
    page = answer._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    axes = answer.plot()
    assert [each.get_text() for each in axes.get_yticklabels()] == ["rome", "oslo", "<b>"]
    assert answer.plot(axes=axes) is axes
    bins = asked().histogram("amount", edges=[0, 4.5, 9], spend=SPEND)
    drawn = bins.plot(axes=Figure().subplots())
    assert [box.get_width() for box in drawn.patches] == list(bins.columns[2].cells)
    ranks = asked().quantile("amount", 0.5, **GRID, spend=SPEND)
    assert math.isnan(ranks.low[0])
    with pytest.raises(DomainError):
        answer.to_pandas(1.0)
