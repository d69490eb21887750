"""The draws for the laws are sufficient: they refute laws that do not hold."""

from __future__ import annotations

import pytest

from dpcompose.composition import Composable
from tests.laws.members import FEW, MEMBERS, Member, every


@pytest.mark.parametrize("member", MEMBERS[:2], ids=lambda member: member.name)
def test_a_law_that_does_not_hold_is_refuted(member: Member) -> None:
    with pytest.raises(AssertionError):

        @every(member)
        def small(one: Composable) -> None:
            assert one.epsilon(delta=1e-12).upper < 1e-3

    with pytest.raises(AssertionError):

        @every(member)
        def nothing(one: Composable) -> None:
            assert one.delta(epsilon=0.0).upper == 0


def test_a_law_makes_two_draws() -> None:
    seen: list[Composable] = []

    @every(MEMBERS[0])
    def law(one: Composable) -> None:
        seen.append(one)

    assert len(seen) >= FEW == 2
