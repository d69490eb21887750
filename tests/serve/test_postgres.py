"""Several servers over one PostgreSQL database share people and terms."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event

import pytest
from psycopg import connect

from campaigns.ledger.server import Server
from dpcompose.account import open_scope
from dpcompose.errors import DPComposeError, ReservationError, StoreError
from dpcompose.ledger import Amounts, Entry, Ledger, entry, postgres as module
from dpcompose.serve import Identities, Role, Service
from dpcompose.serve.gate import ROUTES
from tests.serve.conftest import Town, budget

pytestmark = pytest.mark.server


@contextmanager
def servers(url: str, now: list[float]) -> Iterator[tuple[Service, Service]]:
    """Two servers over one database, each with its own connections."""
    entry.clock = lambda: int(now[0] * 1e9)
    with Ledger.open(url) as first, Ledger.open(url) as second:
        open_scope(first, "city", filter=budget(), actor="keeper")
        yield Service(first, Identities(first)), Service(second, Identities(second))


def test_two_servers_share_people_and_terms(postgres: Server):
    url, now = postgres.create("city"), [1e9]
    with servers(url, now) as (first, second):
        _share(first, second, now)


def _share(first: Service, second: Service, now: list[float]) -> None:
    token = first.people.invite("Ada", Role.ANALYST, "city")
    ada = second.people.find(token)
    ben = second.people.find(first.people.invite("Ben", Role.ANALYST, "city"))
    grace = first.people.find(first.people.invite("Grace", Role.KEEPER, "city"))
    assert ada is not None and ben is not None and grace is not None
    large = {"mechanism": "Gaussian(10.0)"}
    held = ROUTES["reserve"].answer(
        first, ada, "city", {**large, "key": "study", "seconds": 60, "times": 2}
    )
    ROUTES["quota"].answer(second, grace, "city", {"actor": "Ben@city", "caps": {"rho": "0.0011"}})

    def one(number: int) -> str:
        service = (first, second)[number // 2 % 2]
        who, sigma = (ben, 50.0) if number % 2 else (grace, 10.0)
        try:
            answer = ROUTES["charge"].answer(
                service, who, "city", {"mechanism": f"Gaussian({sigma})", "key": str(number)}
            )
            return f"{who.name} {'receipt' in answer}"
        except DPComposeError as error:
            return f"{who.name} {type(error).__name__}"

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, range(40)))
    assert (
        found.count("Ben True") == 5
        and "Ben QuotaError" in found
        and "Grace ReservedError" in found
    )
    assert first.ledger.available("city")["rho"] >= Amounts.read(held["held"])["rho"]
    receipt = ROUTES["charge"].answer(
        second, ada, "city", {**large, "key": "one", "reservation": "study"}
    )
    assert receipt == ROUTES["charge"].answer(
        first, ada, "city", {**large, "key": "one", "reservation": "study"}
    )
    now[0] += 60
    with pytest.raises(ReservationError):
        ROUTES["charge"].answer(first, ada, "city", {**large, "key": "two", "reservation": "study"})
    assert first.people.revoke("Ada", "city") == 1 and second.people.find(token) is None
    assert first.ledger.verify().entries


def test_a_database_that_goes_in_the_middle_of_charges_loses_and_doubles_none(postgres: Server):
    url, stop = postgres.create("vanishing"), Event()
    with servers(url, [1e9]) as (first, second), ThreadPoolExecutor(5) as pool:
        ada = first.people.find(first.people.invite("Ada", Role.ANALYST, "city"))
        assert ada is not None
        ROUTES["quota"].answer(
            second, ada, "city", {"actor": "*", "caps": {"rho": "0.01"}}
        )  # all of them heed a term

        def cut() -> int:
            """End every other connection, six times."""
            ended = 0
            with connect(url, autocommit=True) as connection:
                for _ in range(6):
                    stop.wait(0.15)
                    found = connection.execute(
                        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                        " where datname = 'vanishing' and pid <> pg_backend_pid()"
                    ).fetchone()
                    ended += found[0] if found else 0
            return ended

        def one(number: int) -> dict[str, object]:
            service, fields = (
                (first, second)[number % 2],
                {"mechanism": "Gaussian(300.0)", "key": str(number)},
            )
            for _ in range(50):
                with suppress(StoreError):
                    return ROUTES["charge"].answer(service, ada, "city", fields)
            raise AssertionError("never answered")

        cutting = pool.submit(cut)
        receipts = list(pool.map(one, range(40)))
        stop.set()
        assert cutting.result() > 0
        kept = list[Entry]()
        for _ in range(20):  # connections that were cut are opened again
            with suppress(StoreError):
                kept = [each for each in first.ledger.entries("city") if each.kind == "granted"]
                break
        assert len(kept) == len({str(each) for each in receipts}) == 40
        for _ in range(20):
            with suppress(StoreError):
                assert first.ledger.verify().entries > 40
                break
        else:
            raise AssertionError("never verified")


def test_a_database_that_is_gone_is_told():
    with pytest.raises(StoreError):
        Ledger.open("postgresql://nobody@localhost:1/none")


def test_a_standby_that_is_missing_ends_a_wait_with_503(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
):
    """A commit that nobody confirms is cancelled after four seconds; here after one half."""
    assert module.LONGEST_COMMIT == 4.0
    monkeypatch.setattr(module, "LONGEST_COMMIT", 0.5)
    town = Town(url=postgres.create("alone"))
    with connect(postgres.url(), autocommit=True) as server:
        try:
            server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            server.execute("SELECT pg_reload_conf()")
            found = town.ask(
                "charge",
                town.tokens[Role.ANALYST],
                scope="city",
                mechanism="Gaussian(50.0)",
                key="k",
            )
        finally:
            server.execute("ALTER SYSTEM RESET synchronous_standby_names")
            server.execute("SELECT pg_reload_conf()")
    assert found.status_code == 503 and found.json()["uncertain"] is True
    assert "ask again with the same key" in found.json()["reason"]
    again = town.ask(
        "charge", town.tokens[Role.ANALYST], scope="city", mechanism="Gaussian(50.0)", key="k"
    )
    assert again.status_code == 200
    town.ledger.close()
