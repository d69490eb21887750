"""The text of a number with its error: two digits of the error, rounded up, and the same last
decimal for the number.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st

from dpcompose.numerics.digits import two_digits, with_error


def _places(text: str) -> int:
    return len(text.partition(".")[2])


@given(
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30),
    st.floats(5e-324, 1.7e308),
)
@example(53384, 1498.2)
@example(40.01987, 0.562)
@example(890.0, 4345.0)
@example(0.995, 0.0995)
@example(-0.0001, 0.5)
@example(3, 6.0)
@example(3, 2.3)
def test_the_error_has_two_digits_and_the_number_as_many_places(value: float, error: float) -> None:
    number, reach = (text.replace(",", "") for text in with_error(value, error))
    assert not {"e", "E"} & {*number, *reach} and _places(number) == _places(reach)
    digits = reach.replace(".", "").lstrip("0")
    assert digits.strip("0") == digits[:2].rstrip("0")
    shown, whole = Fraction(reach), isinstance(value, int)
    assert (
        Fraction(error)
        <= shown
        <= max(Fraction(error) * Fraction(111, 100), math.ceil(error) if whole else 0)
    )
    second = Fraction(10) ** (len(digits) - 2 - _places(reach))
    unit = max(second, Fraction(1)) if whole else second
    assert abs(Fraction(number) - Fraction(value)) <= unit / 2
    assert number not in ("-0", "-0.0") and not (whole and "." in number)


@pytest.mark.parametrize(
    ("value", "error", "texts"),
    [
        (53384, 1498.2, ("53,400", "1,500")),
        (40.01987, 0.562, ("40.02", "0.57")),
        (60, 98.5, ("60", "99")),
        (60, 99.5, ("60", "100")),
        (12.345, 0.0, ("12.345", "0")),
        (1.5, math.inf, ("1.5", "infinite")),
        (math.nan, 1.0, ("nan", "1")),
        (1234, math.nan, ("1,234", "nan")),
    ],
)
def test_errors_as_they_are_printed(value: float, error: float, texts: tuple[str, str]) -> None:
    assert with_error(value, error) == texts


@pytest.mark.parametrize(
    ("error", "text"), [(4345.0, "4,400"), (76.11, "77"), (6.0, "6"), (0.5620, "0.57"), (12, "12")]
)
def test_an_error_by_itself(error: float, text: str) -> None:
    assert two_digits(error) == text
