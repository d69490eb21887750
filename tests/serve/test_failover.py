"""A short version of the campaign that changes the database under the service."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("psycopg")
from campaigns.ledger.history import HistoryError
from campaigns.service.failover import campaign

pytestmark = [pytest.mark.slow, pytest.mark.server, pytest.mark.usefixtures("postgres")]


def test_nothing_acknowledged_is_lost_over_failovers(tmp_path: Path):
    assert "none lost" in campaign(tmp_path, rounds=3, clients=2)


@pytest.mark.parametrize("weakness", ["unconfirmed"])
def test_a_store_that_waits_for_no_standby_is_found(weakness: str, tmp_path: Path):
    with pytest.raises(HistoryError, match=r"lost|another receipt|good again"):
        campaign(tmp_path, rounds=1, clients=2, weakness=weakness)
