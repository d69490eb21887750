"""The campaigns, in short: each must find nothing with the shipped store, and something with a broken one."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.ledger import (
    concurrency,
    failover,
    faults,
    files,
    keys,
    kills,
    power,
    sums,
    tampering,
)
from campaigns.ledger.history import HistoryError
from campaigns.ledger.missing import MissingError
from campaigns.ledger.power import Recording
from campaigns.ledger.server import Server

pytestmark = pytest.mark.slow


def test_many_clients_with_kills_leave_a_history_of_the_model(tmp_path: Path) -> None:
    url = str(tmp_path / "ledger.db")
    assert "replay exactly" in concurrency.campaign(
        url, tmp_path, clients=8, threads=3, operations=1200, kills=6
    )


def test_many_clients_on_postgres(tmp_path: Path, postgres: Server) -> None:
    url = postgres.create("clients")
    assert "replay exactly" in concurrency.campaign(
        url, tmp_path, clients=6, threads=3, operations=600, kills=3
    )


def test_checking_before_the_lock_is_caught(tmp_path: Path) -> None:
    url = str(tmp_path / "ledger.db")
    with pytest.raises(HistoryError):
        concurrency.campaign(
            url, tmp_path, clients=6, threads=1, operations=600, kills=0, weakness="checking"
        )


def test_killed_clients_lose_nothing(tmp_path: Path) -> None:
    assert "none lost" in kills.campaign(tmp_path, cycles=25)


def test_acknowledging_before_the_commit_is_caught(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="lost"):
        kills.campaign(tmp_path, cycles=40, weakness="early")


@pytest.mark.parametrize("way", files.WAYS)
def test_files_that_are_lost_or_changed_are_told(way: str) -> None:
    assert "no loss in silence" in files.campaign(way, times=6)


@pytest.mark.parametrize(
    "way", ["log deleted", "log flipped", "log replaced", "all beside it deleted"]
)
def test_a_ledger_that_keeps_no_head_record_is_caught(way: str) -> None:
    with pytest.raises(HistoryError, match=r"lost|redemption|receipt"):
        files.campaign(way, times=60, weakness="unrecorded")


def _recorded(weakness: str) -> Recording:
    try:
        return Recording.of(40, weakness=weakness)
    except MissingError as missing:
        pytest.skip(str(missing))


def test_power_loss_loses_nothing() -> None:
    assert "acknowledged charges found" in power.campaign(_recorded("shipped"), states=600)


@pytest.mark.parametrize("weakness", power.CONTROLS)
def test_power_loss_finds_weak_settings(weakness: str) -> None:
    with pytest.raises(HistoryError, match=r"lost|missing|cannot go on"):
        power.campaign(_recorded(weakness), states=2500)


@pytest.mark.parametrize("weakness", ["shipped", "careless"])
def test_injected_errors(weakness: str) -> None:
    try:
        if weakness == "shipped":
            assert "nothing half done" in faults.campaign(charges=3, every=19)
        else:
            with pytest.raises(HistoryError, match="lost"):
                faults.campaign(charges=3, every=3, weakness=weakness)
    except MissingError as missing:
        pytest.skip(str(missing))


def test_tampering_is_found() -> None:
    assert tampering.campaign(tries=80).startswith("80 of 80 found")


def test_looking_at_hashes_only_is_caught() -> None:
    with pytest.raises(HistoryError, match="not found"):
        tampering.campaign(tries=250, verify=tampering._hashes_only)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_retries_get_one_receipt_and_one_answer(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = (
        str(tmp_path / "ledger.db")
        if store == "sqlite"
        else request.getfixturevalue("postgres").create("keys")
    )
    assert "the same to the byte" in keys.campaign(url, tmp_path, retries=400)


def test_sums_are_exact(tmp_path: Path) -> None:
    assert "end at exactly" in sums.campaign(tmp_path / "ledger.db", charges=500, threads=8)
    assert "end at exactly" in sums.campaign("memory:", charges=3000)


@pytest.mark.usefixtures("postgres")
@pytest.mark.parametrize("weakness", ["shipped", *failover.CONTROLS])
def test_old_clients_over_failovers(weakness: str, tmp_path: Path) -> None:
    if weakness == "shipped":
        assert "none lost" in failover.campaign(tmp_path, rounds=1, clients=2)
    else:
        with pytest.raises(HistoryError):
            failover.campaign(tmp_path, rounds=1, clients=2, weakness=weakness)
