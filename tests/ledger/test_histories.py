"""What an open client has seen of a scope ends with the history that it saw."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dpcompose.errors import StoreError
from dpcompose.ledger import Ledger


def test_a_scope_does_not_outlive_a_copy_that_is_restored_through_sqlite(tmp_path: Path) -> None:
    """The file stays the same, its contents do not: in the copy the scope was opened later, with a smaller cap."""
    file, kept = tmp_path / "ledger.db", sqlite3.connect(tmp_path / "copy.db")
    with Ledger.open(file) as ledger, closing(kept):
        ledger.scope("world", caps={"epsilon": 100}, actor="Ada")
        with closing(sqlite3.connect(file)) as source:
            source.backup(kept)
        ledger.scope("world/team", caps={"epsilon": 50}, actor="Ada")
        ledger.charge("world/team", cost={"epsilon": 1}, actor="Ada", key="before")
        with closing(sqlite3.connect(file)) as target:
            kept.backup(target)
        with Ledger.open(file, restored=True) as other:
            other.scope("world/team", caps={"epsilon": 2}, actor="Eve")
            with pytest.raises(
                StoreError, match=r"world: entry 3 was acknowledged and is gone|moved, replaced"
            ):
                ledger.charge("world/team", cost={"epsilon": 1}, actor="Ada", key="after")
            assert other.verify().entries == 2
