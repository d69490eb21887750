"""The city: nothing above a cap, nobody charged twice, and Bob's promise is the city's."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.city import city

pytestmark = pytest.mark.slow


def test_forty_analysts_spend_no_more_than_there_is(tmp_path: Path) -> None:
    outcome = city.run(tmp_path / "city.db", questions=2)
    assert outcome.granted + outcome.refused == 2 * city.ANALYSTS
    assert all(
        amount.units >= 0 for balance in outcome.balances for amount in balance.left.values()
    )
    assert len(outcome.balances) == 1 + len(city.REGISTERS)
    assert outcome.bob.promised.available
    assert outcome.bob.promised.epsilon <= 3 * (1 + 1e-9)
    assert "none twice" in "\n".join(city.lines(outcome))
