"""The statements of `tests/data/statements` are answered with the numbers of the plain query, or
refused without a charge.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpcompose.errors import DomainError, UnsupportedError
from tests.release import statements

AT_LEAST = 96
"""Of 100, answered in the shape that was asked for, within the stated error."""


@pytest.fixture(scope="module")
def world() -> Iterator[statements.World]:
    made = statements.World()
    yield made
    made.close()


def test_statements_have_the_numbers_of_the_plain_query(world: statements.World) -> None:
    """Every fourth is answered here, all are by `python -m tests.release.statements`; the others are priced."""
    listed = list(statements.statements())
    wrong = [said for each in listed[::4] if (said := world.judged(each))]
    assert len(listed) >= 90 and (len(listed[::4]) - len(wrong)) * 100 >= AT_LEAST * len(
        listed[::4]
    ), wrong
    refused = 0
    for each in (each for number, each in enumerate(listed) if number % 4):
        try:
            assert world.session(each.text).explain(
                each.text, spend=statements.SPEND, tables=world.tables
            )
        except (DomainError, UnsupportedError):
            refused += 1
    assert (len(listed) - refused) * 100 >= AT_LEAST * len(listed)


def test_what_must_be_refused_is_refused_before_the_charge(world: statements.World) -> None:
    listed, before = statements.refused(), world.ledger.balance("world").spent
    assert len(listed) >= 100
    for text in listed:
        with pytest.raises((UnsupportedError, DomainError)):
            world.ask(text)
    assert world.ledger.balance("world").spent == before
