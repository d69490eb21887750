"""Two servers with one queue: the turn, the mark of who reads and the answers are in the database of the ledger."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("opendp")
from campaigns.ledger.server import Server
from dpcompose.errors import (
    DomainError,
    DPComposeError,
    EngineError,
    ReleaseError,
    SpentError,
    StoreError,
)
from dpcompose.ledger import Ledger
from dpcompose.release import Catalog, worker
from dpcompose.serve import Identities, Identity, Role, Service
from dpcompose.serve.counter import Counter, Desk, Shared
from dpcompose.serve.request import ROUTES
from tests.serve.test_counter import COUNT, ROWS, SCOPE

pytestmark = pytest.mark.server
ADA, BEN = (Identity(name, Role.ANALYST, "clinic") for name in ("Ada", "Ben"))
GRACE = Identity("Grace", Role.KEEPER, "clinic")


class Pair:
    """Two servers over one database."""

    def __init__(self, url: str, folder: Path, stack: ExitStack) -> None:
        lines = ["person,ward,minutes", *(",".join(map(str, row)) for row in ROWS)]
        (folder / "visits.csv").write_text("\n".join(lines))
        visits = {**SCOPE["tables"]["visits"], "source": str(folder / "visits.csv")}  # type: ignore[index]
        self.services = list[Service]()
        for name in ("first", "second"):
            ledger = stack.enter_context(Ledger.open(url))
            scopes = {"clinic": {**SCOPE, "tables": {"visits": visits}}}
            desks = Counter.open(ledger, folder / name, scopes)
            stack.callback(lambda desk=desks.desks["clinic"]: desk.worker.close())
            people = Identities(Ledger.open("memory:"))
            self.services.append(Service(ledger, people, None, desks))

    def desk(self, at: int) -> Desk:
        return self.services[at].counter.desks["clinic"]

    def ask(self, at: int, key: str, *, who: Identity = ADA, sql: str = COUNT) -> Any:
        fields = {"table": "visits", "sql": sql, "spend": {"epsilon": "0.01"}, "key": key}
        return ROUTES["ask"].answer(self.services[at], who, "clinic", fields)

    def reopen(self, at: int) -> None:
        ROUTES["reopen"].answer(self.services[at], GRACE, "clinic", {})

    def kinds(self) -> Counts[str]:
        return Counts(each.kind for each in self.services[0].ledger.entries("clinic"))


@contextmanager
def pair(url: str, folder: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(url, folder, stack)


def test_two_servers_share_turns_answers_and_what_is_closed(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # When an answer leaves is another test.
    monkeypatch.setattr("dpcompose.serve.counter.sleep", lambda seconds: None)
    with pair(postgres.create("counter"), tmp_path) as servers:
        first = servers.ask(0, "one")
        assert servers.ask(1, "one") == {**first, "replayed": True}
        assert servers.kinds()["granted"] == servers.kinds()["redeemed"] == 1
        _asked_at_once(servers)
        _marked_by_the_dead(servers)
        _closed_and_opened_elsewhere(servers)
        _taken_for_dead(servers, monkeypatch)
        with pytest.raises(StoreError):
            servers.desk(0).shared.store.close()  # type: ignore[union-attr]
            servers.ask(0, "one")


def _asked_at_once(servers: Pair) -> None:
    """Four people at two servers ask the same and other things: one charge and one draw for each key."""
    before = servers.kinds()

    def one(number: int) -> tuple[str, str]:
        who, key = (ADA, BEN)[number // 2 % 2], f"at once {number // 4 % 3}"
        return who.name + key, str(servers.ask(number % 2, key, who=who)["tables"])

    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(one, range(24)))
    assert len(found) == 6
    assert servers.kinds()["granted"] - before["granted"] == 6
    assert servers.kinds()["redeemed"] - before["redeemed"] == 6


def _marked_by_the_dead(servers: Pair) -> None:
    """A server that dies amid reading leaves its mark, by which the next one closes the tables."""
    shared = servers.desk(0).shared
    assert isinstance(shared, Shared)
    with shared.exclusive():
        shared.touch()
    with pytest.raises(ReleaseError, match="ended before an answer was stored"):
        servers.ask(1, "after a death")
    assert servers.desk(0).reason() == servers.desk(1).reason() != ""
    servers.reopen(0)
    assert servers.ask(1, "after a death") == {**servers.ask(0, "after a death"), "replayed": False}


def _closed_and_opened_elsewhere(servers: Pair) -> None:
    """A process that fails at one server closes the tables at both; opened at the other one, both answer again."""
    servers.desk(0).worker.process.kill()
    servers.desk(0).limit = 0.2
    with pytest.raises(EngineError):
        servers.ask(0, "failed")
    with pytest.raises(ReleaseError, match="keeper must look"):
        servers.ask(1, "failed")
    servers.reopen(1)
    for at in (0, 1):
        with pytest.raises(SpentError):
            servers.ask(at, "failed")
    servers.desk(0).limit = 10.0
    assert not servers.ask(0, "anew")["replayed"]


def _taken_for_dead(servers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose connection is lost amid an attempt stores nothing, and shows nothing."""
    shared, real = servers.desk(0).shared, Shared.keep
    assert isinstance(shared, Shared)

    def keep(self: Shared, *given: Any) -> None:
        if self is shared:
            self._rows.connection.close()
            with servers.desk(1).turn() as reason:
                assert "ended before an answer was stored" in reason
        real(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Shared, "keep", keep)
        with pytest.raises(DPComposeError):
            servers.ask(0, "lost")
    servers.reopen(1)
    for at in (0, 1):
        with pytest.raises(SpentError):
            servers.ask(at, "lost")
    assert servers.services[0].ledger.verify().entries


def test_a_table_of_postgresql_is_asked_at_the_counter(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its integers are those of the file: at a huge budget the answers are the plain query's."""
    url = postgres.create("asked")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE visits (person TEXT, ward TEXT, minutes BIGINT)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s)", ROWS)
            cursor.execute("INSERT INTO visits VALUES (%s, %s, %s)", ("x" * 300, "y" * 10**6, 1))
        connection.execute("CREATE VIEW seen AS SELECT * FROM visits")
    monkeypatch.setattr("dpcompose.serve.counter.sleep", lambda seconds: None)
    visits = {**SCOPE["tables"]["visits"], "source": url, "name": "visits"}  # type: ignore[index]
    del visits["schema"]
    scope = {**SCOPE, "epsilon": 1000, "tables": {"visits": visits}}
    with Ledger.open("memory:") as ledger:
        desks = Counter.open(ledger, tmp_path / "answers", {"clinic": scope})
        service = Service(ledger, Identities(Ledger.open("memory:")), None, desks)

        def ask(sql: str) -> list[Any]:
            fields = {"table": "visits", "sql": sql, "spend": {"epsilon": 100}}
            (columns,) = ROUTES["ask"].answer(service, ADA, "clinic", fields)["tables"]
            return [each["cells"] for each in columns]

        assert ask(COUNT) == [[400]]  # the name of 300 letters is nobody's
        wards, sums = ask("SELECT ward, SUM(minutes) AS n FROM visits GROUP BY ward ORDER BY ward")
        exact = [sum(row[2] for row in ROWS if row[1] == ward) for ward in ("east", "west")]
        assert wards == ["east", "west"]
        assert all(abs(one - other) < 60 for one, other in zip(sums, exact, strict=True))
        text = f"{COUNT} WHERE ward LIKE '%st' AND minutes % 7 = 3 AND ward <> 'a\\''b'"
        assert ask(text) == [[sum(row[2] % 7 == 3 for row in ROWS)]]
        desks.desks["clinic"].worker.close()
    raw = worker._opened({"visits": visits}, 2**30)  # pyright: ignore[reportPrivateUsage]
    read = worker._rows_of_postgres  # pyright: ignore[reportPrivateUsage]
    assert read(raw, "SET default_transaction_read_only = off", []) == []
    for words in ("DELETE FROM visits", "SELECT 1; SELECT 2"):
        with pytest.raises(psycopg.Error):
            read(raw, words, [])
    raw.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT COUNT(*) FROM visits").fetchone() == (401,)
    with pytest.raises(EngineError):
        worker.Worker({"seen": {**visits, "name": "seen"}})


def test_a_table_that_was_exchanged_is_opened_again_before_anything_is_charged(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.create("exchanged")
    monkeypatch.setattr("dpcompose.serve.counter.sleep", lambda seconds: None)
    visits = {**SCOPE["tables"]["visits"], "source": url, "name": "visits"}  # type: ignore[index]
    del visits["schema"]
    scope = {**SCOPE, "epsilon": 1000, "tables": {"visits": visits}}
    with psycopg.connect(url, autocommit=True) as connection, Ledger.open("memory:") as ledger:
        execute: Any = connection.execute

        def table(name: str, rows: int) -> None:
            execute(f"CREATE TABLE {name} (person TEXT, ward TEXT, minutes BIGINT)")
            words = (
                f"INSERT INTO {name} SELECT 'p' || n, 'east', 1 FROM generate_series(1, {rows}) n"
            )
            execute(words)

        table("visits", 10)
        desks = Counter.open(ledger, tmp_path / "answers", {"clinic": scope})
        service = Service(ledger, Identities(Ledger.open("memory:")), None, desks)

        def counted(key: str) -> Any:
            fields = {"table": "visits", "sql": COUNT, "spend": {"epsilon": 100}, "key": key}
            return ROUTES["ask"].answer(service, ADA, "clinic", fields)["tables"][0][0]["cells"]

        assert counted("first") == [10]
        table("next", 20)
        execute("ALTER TABLE visits RENAME TO last")
        execute("ALTER TABLE next RENAME TO visits")
        assert counted("renamed") == [20]
        execute("DROP TABLE visits CASCADE")
        table("visits", 30)
        assert counted("dropped") == [30]
        before = len(list(ledger.entries("clinic")))
        for change, undone in (
            ("RENAME TO next", "ALTER TABLE next RENAME TO visits"),
            ("ENABLE ROW LEVEL SECURITY", "ALTER TABLE visits DISABLE ROW LEVEL SECURITY"),
            ("ADD COLUMN more INT", "ALTER TABLE visits DROP COLUMN more"),
        ):
            execute(f"ALTER TABLE visits {change}")
            for _ in range(2):
                with pytest.raises((EngineError, DomainError), match=r"before the charge|more"):
                    counted(change)
            execute(undone)
        assert len(list(ledger.entries("clinic"))) == before
        assert counted("after all") == [30]
        execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert counted("cut") == [30]
        desks.desks["clinic"].worker.close()


def test_two_servers_may_open_a_scope_at_once(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, opened = postgres.create("at_once"), list[Counter]()
    (tmp_path / "visits.csv").write_text("person,ward,minutes\n")
    visits = {**SCOPE["tables"]["visits"], "source": str(tmp_path / "visits.csv")}  # type: ignore[index]
    scopes = {"clinic": {**SCOPE, "tables": {"visits": visits}}}
    real = Catalog.define.__func__  # type: ignore[attr-defined]

    def define(cls: Any, *given: Any, **more: Any) -> Any:
        """Where another server was a little faster."""
        monkeypatch.setattr(Catalog, "define", classmethod(real))
        with Ledger.open(url) as other:
            opened.append(Counter.open(other, tmp_path / "one", scopes))
        return real(cls, *given, **more)

    monkeypatch.setattr(Catalog, "define", classmethod(define))
    with Ledger.open(url) as ledger:
        opened.append(Counter.open(ledger, tmp_path / "two", scopes))
        first, second = (each.desks["clinic"].catalog.version for each in opened)
        assert first == second
    for each in opened:
        each.desks["clinic"].worker.close()
