"""Numbers on a page are rounded the safe way."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given, strategies as st

from dpcompose import Bound
from dpcompose.report.number import above, below, interval

VALUES = st.floats(1e-300, 1e300)


@given(VALUES, st.integers(1, 17))
def test_directions(value: float, digits: int) -> None:
    assert Fraction(below(value, digits)) <= Fraction(value) <= Fraction(above(value, digits))


@given(VALUES, st.floats(0, 1))
def test_intervals_contain_their_bound(value: float, width: float) -> None:
    bound = Bound(value, value * (1 + width))
    if math.isfinite(bound.upper):
        low, high = interval(bound)
        assert float(low) <= bound.lower and bound.upper <= float(high)
