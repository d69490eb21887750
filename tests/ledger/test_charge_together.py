"""Charges that are made together are charges of one tree, or nothing is charged."""

from __future__ import annotations

from typing import Any

import pytest

from dpcompose.errors import DomainError
from dpcompose.ledger import Ledger, Receipt
from dpcompose.ledger.requests import Charge

CAPS = {"epsilon": "1"}


def _charge(path: str, key: str) -> Charge:
    return Charge.of(path, {"epsilon": "0.5"}, None, actor="Ada", key=key)


@pytest.mark.parametrize(
    "other",
    [_charge("b", "3"), None, "a", {"path": "a"}],
    ids=["other tree", "None", "text", "mapping"],
)
def test_what_is_no_charge_of_the_tree_is_refused_before_any_is_made(other: Any) -> None:
    with Ledger.open("memory:") as ledger:
        for name in ("a", "b"):
            ledger.scope(name, caps=CAPS, actor="keeper")
        with pytest.raises(DomainError, match="charges of one tree"):
            ledger.charge_together([_charge("a", "1"), other])
        assert str(ledger.balance("a").spent["epsilon"]) == "0"


def test_no_charges_are_no_receipts() -> None:
    with Ledger.open("memory:") as ledger:
        assert ledger.charge_together([]) == []
        ledger.scope("a", caps=CAPS, actor="keeper")
        assert [type(each) for each in ledger.charge_together([_charge("a", "1")])] == [Receipt]
