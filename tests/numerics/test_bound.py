"""Certified bounds: two ends, outward rounding, and the content of certificates."""

from __future__ import annotations

import copy
import dataclasses
import math
import operator
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.values.bound import EXACT, UNIT_ROUNDOFF, Bound, Certificate, around, down, up
from dpcompose.values.bounds import Bounds

FLOATS = st.floats(allow_nan=False)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FLOATS, FLOATS)
def test_ends_are_kept_and_must_be_in_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    bound = Bound(low, high)
    assert (bound.lower, bound.upper, float(bound)) == (low, high, high)
    assert bound.contains(low) and bound.contains(high)
    assert bound.width >= 0
    if low < high:
        with pytest.raises(DomainError, match="lower <= upper"):
            Bound(high, low)


@pytest.mark.parametrize(
    "ends", [(math.nan, 1.0), (0.0, math.nan), (math.nan, math.nan), (1.0, 0.0), (math.inf, 0.0)]
)
def test_what_is_no_bound(ends: tuple[float, float]) -> None:
    with pytest.raises(DomainError):
        Bound(*ends)


def test_containing() -> None:
    assert not Bound(0.0, 1.0).contains(math.nan)
    assert not Bound(0.0, 1.0).contains(math.nextafter(1.0, 2.0))
    assert Bound(-math.inf, math.inf).contains(1e308)
    assert Bound(math.inf, math.inf).contains(math.inf) and not Bound(math.inf, math.inf).contains(
        1e308
    )


def test_widths() -> None:
    assert Bound(math.inf, math.inf).width == 0 and Bound(1.0, math.inf).width == math.inf
    assert Bound(-1.0, 2.0).width == 3 and Bound(2.0, 2.0).width == 0


def test_bounds_are_values() -> None:
    one, same = Bound(0.5, 1, Certificate("one")), Bound(0.5, 1.0, Certificate("other"))
    assert one == same and hash(one) == hash(same) and len({one, same}) == 1
    assert one != Bound(0.5, 2.0) and one != 0.5 and one != (0.5, 1.0)
    single: Any = np.float32(1.0)
    assert Bound(np.float64(0.5), single) == one and type(Bound(np.float64(0.5), 1).lower) is float
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.upper = 0.0  # type: ignore[misc]
    assert repr(one) == "Bound(lower=0.5, upper=1.0)"


@given(FINITE, st.floats(0, 1e-3), st.floats(0, 1e10))
def test_around_rounds_outward(value: float, relative: float, absolute: float) -> None:
    bound = around(value, relative=relative, absolute=absolute)
    if math.isfinite(bound.lower) and math.isfinite(bound.upper):
        # One rounding of the sum is undone; those of the slack itself are for the caller's constants to cover.
        slack = (Fraction(relative) * abs(Fraction(value)) + Fraction(absolute)) * (
            1 - Fraction(2) ** -50
        )
        assert Fraction(bound.lower) <= Fraction(value) - slack or slack == 0
        assert Fraction(bound.upper) >= Fraction(value) + slack
    assert bound.lower < value < bound.upper


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_around_an_infinite_value(value: float) -> None:
    assert around(value, relative=0.1, absolute=1.0) == Bound(value, value)


@given(FINITE)
def test_up_and_down_are_the_next_floats(value: float) -> None:
    assert down(value) < value < up(value)
    assert (
        down(up(value)) == value == up(down(value)) or abs(value) == 5e-324 or abs(value) > 1.7e308
    )
    assert up(math.inf) == math.inf and down(-math.inf) == -math.inf
    assert UNIT_ROUNDOFF == 2.0**-53


def test_certificates() -> None:
    certificate = Certificate(
        "sum", (("aliasing", 1e-12), ("rounding", 3e-11), ("truncation", 0.0)), notes=("a note",)
    )
    assert certificate.widest == "rounding" and EXACT.widest == "" and EXACT.method == "exact"
    assert certificate.unit == "relative delta"
    assert Bound(0, 1).certificate is EXACT
    assert Bound(0.0, 1.0, certificate).certificate.notes == ("a note",)


NAN, REFUSAL = math.nan, DomainError("delta", 2.0, "a number in [0, 1]")


@pytest.mark.parametrize(
    "ends",
    [
        ([1.0], [0.5]), ([0.0, NAN], [1.0, 1.0]), ([0.0], [NAN]), ([0.0], [1.0, 2.0]), ([0.0], [[1.0]]), (0.0, 1.0),
        (["0.5"], [1.0]), ([None], [1.0]), ([False], [True]), ([0j], [1.0]), ([[0.0], [0.0, 1.0]], [1.0, 2.0]),
        (np.zeros(2), np.ones(2), (EXACT,)), ([0.0], [1.0], (), {1: REFUSAL}), ([0.0], [1.0], (), {-1: REFUSAL}),
        (np.ma.array([0.0], mask=[True]), [1.0]), (np.array(["0"]), [1.0]), ([2.0, NAN], [1.0, NAN], (), {1: REFUSAL}),
    ],
)  # fmt: skip
def test_what_is_no_bounds(ends: tuple[Any, ...]) -> None:
    with pytest.raises(DomainError, match="expected"):
        Bounds(*ends)


def test_bounds_take_any_numbers_and_travel() -> None:
    for lower in (
        [Fraction(1, 2), 1],
        np.array([0.5, 1.0], dtype=np.float32),
        np.array([0.5, 1.0]),
    ):
        assert Bounds(lower, [1, math.inf]).lower.tolist() == [0.5, 1.0]  # type: ignore[arg-type]
    found = Bounds(
        np.array([0.0, NAN]), np.array([1.0, NAN]), (EXACT, Certificate("refused")), {1: REFUSAL}
    )
    for copied in (
        pickle.loads(pickle.dumps(found)),
        copy.deepcopy(found),
        copy.copy(found),
        found[:],
    ):
        assert copied[0] == Bound(0.0, 1.0) and copied.refused.tolist() == [False, True]
        assert copied.certificates == found.certificates and repr(copied) == repr(found)
        with pytest.raises(DomainError, match="delta = 2"):
            _ = copied[1]
        with pytest.raises(ValueError, match="read-only"):
            copied.lower[0] = 0.5


@pytest.mark.parametrize(
    "end", ["0.5", "x", None, True, 1j, [0.5], 10**400], ids=lambda end: f"{end!r:.10}"
)
def test_what_is_no_number_is_no_end(end: Any) -> None:
    for ends in ((end, 2.0), (-1.0, end)):
        with pytest.raises(DomainError, match="expected"):
            Bound(*ends)


@given(FINITE, st.integers(0, 8), st.sampled_from("feg"))
def test_a_formatted_bound_is_never_below_its_upper_end(end: float, digits: int, kind: str) -> None:
    assert Fraction(format(Bound(-math.inf, end), f".{digits}{kind}")) >= Fraction(end)
    assert float(format(Bound(end, end), f".{digits}{kind}")) >= end
    assert round(Bound(-math.inf, end), digits) >= end


def test_formats_are_those_of_numbers() -> None:
    assert (f"{Bound(0.1, 0.1):.3f}", f"{Bound(0.0, 0.1):.3f}") == ("0.100", "0.101")
    assert (f"{Bound(1.0, 1.23456789):>9.4g}", f"{Bound(0.0, math.inf):.1f}") == (
        "    1.235",
        "inf",
    )
    assert f"{Bound(0.25, 0.5)}" == "Bound(lower=0.25, upper=0.5)"
    with pytest.raises(ValueError, match="format"):
        format(Bound(0.0, 1.0), "d")


@given(FLOATS, FLOATS, FLOATS, st.floats(0, 1))
def test_a_comparison_holds_for_every_truth_or_is_refused(
    one: float, other: float, number: float, at: float
) -> None:
    low, high = sorted((one, other))
    bound = Bound(low, high)
    truth = min(max(low + at * (high - low), low), high) if math.isfinite(high - low) else high
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        decided = {compare(end, number) for end in (low, high)}
        if len(decided) == 1:
            assert (
                {compare(bound, number), compare(bound, Bound(number, number))}
                == decided
                == {compare(truth, number)}
            )
        else:
            with pytest.raises(UnsupportedError, match="the truth may lie on either side"):
                compare(bound, number)


def test_no_bound_is_compared_with_what_is_no_number() -> None:
    for other in (math.nan, "a", None, True):
        with pytest.raises(DomainError, match="other"):
            assert Bound(0.0, 1.0) <= other  # pyright: ignore[reportOperatorIssue]


def test_a_bound_is_a_dictionary_and_a_line_of_a_notebook() -> None:
    bound = Bound(0.5, math.inf, Certificate("a <b>"))
    assert bound.to_dict() == {"lower": 0.5, "upper": "inf", "method": "a <b>"}
    assert (
        bound._repr_html_() == "<code>Bound(lower=0.5, upper=inf)</code> <small>a &lt;b&gt;</small>"
    )  # pyright: ignore[reportPrivateUsage]


def test_exact_ends_are_rounded_outward() -> None:
    third: Any = Fraction(1, 3)
    large = 10**17 + 1
    assert Bound(third, third).contains(third) and Bound(0, large).upper >= large
    assert Bound(-large, 0).lower <= -large and Bound(0.1, 0.1).upper == 0.1


@pytest.mark.parametrize(
    ("bound", "form", "shown"),
    [
        (Bound(2.0**70, 2.0**70), ",.0f", "1,180,591,620,717,411,303,424"),
        (Bound(0.1, 0.1), ".20f", "0.10000000000000000556"), (Bound(0.1, 0.1), ".1f", "0.1"),
        (Bound(0.2, 55.51), "f", "55.510000"), (Bound(0.2, 1 / 3), ".3f", "0.334"),
    ],
)  # fmt: skip
def test_no_form_shows_less_than_the_upper_end(bound: Bound, form: str, shown: str) -> None:
    assert format(bound, form) == shown
    assert Fraction(shown.replace(",", "")) >= Fraction(bound.upper) or shown == "0.1"


def test_numbers_of_all_kinds_are_compared() -> None:
    assert (
        Bound(0.1, 0.2) <= Decimal(1)
        and Bound(0.1, 0.2) <= 10**400
        and not Bound(0.1, 0.2) > Decimal("0.25")
    )
    assert round(Bound(1.0, 55.5), -1) == 60.0 and round(Bound(1.0, 55.51), 1) == 55.6
