"""The counter: statements to a table that another process reads, answered once for each charge."""

from __future__ import annotations

import json
import logging
import math
import os
import pickle
import re
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("opendp")
import duckdb

from dpcompose.errors import DomainError, StoreError, UnsupportedError
from dpcompose.ledger import Ledger, entry
from dpcompose.mechanisms import Gaussian
from dpcompose.release import Catalog, Explanation, col
from dpcompose.release.planner import SelectedAnswer
from dpcompose.serve import Identities, RemoteSession, Role, Service
from dpcompose.serve.counter import Counter, Desk, Payer
from tests.cli.runner import invoke
from tests.serve.conftest import Town
from tests.serve.test_dashboard import signed_in

ROWS = [(f"p{n % 200}", ("east", "west")[n % 2], n % 60) for n in range(400)]
SCOPE = {
    "epsilon": 5,
    "after": 0.05,
    "limit": 10.0,
    "tables": {
        "visits": {
            "source": "visits.csv",
            "unit": "person",
            "max_rows_per_unit": 2,
            "schema": {"minutes": "int64"},
            "ranges": {"minutes": [0, 60], "ward": ["east", "west"]},
        }
    },
}
COUNT = "SELECT COUNT(*) AS n FROM visits"


class Clinic(Town):
    """A town with a table that is asked at its counter."""

    def __init__(self, folder: Path, **more: Any) -> None:
        super().__init__()
        lines = ["person,ward,minutes", *(",".join(map(str, row)) for row in ROWS)]
        (folder / "visits.csv").write_text("\n".join(lines))
        said = {
            **SCOPE,
            **more,
            "tables": {
                "visits": {**SCOPE["tables"]["visits"], "source": str(folder / "visits.csv")}
            },
        }  # type: ignore[index]
        self.desks = Counter.open(self.ledger, folder / "answers", {"clinic": said})
        object.__setattr__(self.service, "counter", self.desks)
        self.token = self.people.invite("Ben", Role.ANALYST, "clinic")
        self.keeper = self.people.invite("Grace", Role.KEEPER, "clinic")

    def post(self, name: str, token: str = "", **fields: Any) -> tuple[int, Any]:
        found = self.ask(name, token or self.token, scope="clinic", **fields)
        return found.status_code, found.json()

    def look(self) -> None:
        """What a keeper does after looking, but for starting the process again."""
        self.desks.desks["clinic"].record("", "Grace@clinic")

    @property
    def kinds(self) -> list[str]:
        return [each.kind for each in self.ledger.entries("clinic")]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry, "clock", entry.clock)  # a town stops it; it goes on after this module
        made = Clinic(tmp_path_factory.mktemp("clinic"))
        yield made
        made.desks.desks["clinic"].worker.close()


def test_a_statement_is_answered_once_for_one_charge(clinic: Clinic) -> None:
    status, quoted = clinic.post("quote", table="visits", sql=COUNT, spend="5%")
    assert (
        status == 200
        and quoted["words"].startswith("Price: epsilon 0.25")
        and clinic.kinds.count("granted") == 0
    )
    status, first = clinic.post("ask", table="visits", sql=COUNT, spend="5%")
    assert (
        status == 200
        and not first["replayed"]
        and abs(first["tables"][0][0]["cells"][0] - 400) < 300
    )
    low, high = (first["tables"][0][0][end][0] for end in ("low", "high"))
    assert low < first["tables"][0][0]["cells"][0] < high
    again = clinic.post("ask", table="visits", sql=COUNT, spend="5%")[1]
    assert again == {**first, "replayed": True} and clinic.kinds.count("granted") == 1
    (entry,) = (each for each in clinic.ledger.entries("clinic") if each.kind == "granted")
    assert entry.actor == "Ben@clinic" and entry.description["note"]["sql"] == COUNT
    other = clinic.post("ask", table="visits", sql=COUNT, spend="5%", key="mine")[1]
    assert not other["replayed"] and clinic.kinds.count("granted") == 2


def test_a_key_belongs_to_one_request_of_one_person(clinic: Clinic) -> None:
    asked = {"table": "visits", "spend": {"epsilon": "0.01"}, "key": "one"}
    assert clinic.post("ask", sql=COUNT, **asked)[0] == 200
    status, refused = clinic.post(
        "ask", sql="SELECT COUNT(*) FROM visits WHERE minutes > 3", **asked
    )
    assert status == 409 and refused["error"] == "KeyReusedError"
    eve = clinic.people.invite("Eve", Role.ANALYST, "clinic")
    assert not clinic.post("ask", eve, sql=COUNT, **asked)[1]["replayed"]
    # In other words it would be another draw for the same charge.
    assert clinic.post("ask", sql=COUNT.replace(" AS", "  AS"), **asked)[0] == 409


def test_a_final_semicolon_or_blanks_around_it_make_no_other_request(clinic: Clinic) -> None:
    first, *others = (
        clinic.post("ask", table="visits", sql=text, spend={"epsilon": "0.011"})[1]
        for text in (COUNT, f"{COUNT};", f"{COUNT} ;\n", f"{COUNT} \n", f"\t{COUNT}")
    )
    assert not first["replayed"] and others == [{**first, "replayed": True}] * 4


def test_an_answer_that_is_too_old_is_no_longer_stored(clinic: Clinic) -> None:
    desk, asked = clinic.desks.desks["clinic"], {"table": "visits", "spend": {"epsilon": "0.012"}}
    assert clinic.post("ask", sql=COUNT, **asked)[0] == 200
    before = clinic.kinds
    desk.days = 30.0
    assert clinic.post("ask", sql=COUNT, **asked)[1]["replayed"]
    for each in desk.answers.glob("*.json"):
        os.utime(each, (0, time.time() - 31 * 86400))
    assert clinic.post("ask", sql=COUNT, **asked)[1]["error"] == "SpentError"
    desk.days = math.inf
    assert clinic.kinds == before and not list(desk.answers.glob("*.json"))


def test_a_public_table_of_the_counter_is_joined_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "wards.csv").write_text("ward,floor\neast,low\nwest,high\n")
    clinic = Clinic(tmp_path, public={"wards": str(tmp_path / "wards.csv")})
    visits = RemoteSession(
        "http://testserver", clinic.token, scope="clinic", table="visits", client=clinic.client
    )
    assert visits.table.public_tables["wards"].opened().kinds == {"ward": "text", "floor": "text"}
    text = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY floor"
    text = text.replace("GROUP", "WHERE floor IN ('low', 'high', 'top') GROUP")
    answer = visits.sql(text, spend="50%")
    assert not isinstance(answer, Explanation)
    assert [row["floor"] for row in answer.rows] == ["low", "high", "top"]
    counted = zip(answer.rows, (200, 200, 0), strict=True)
    assert all(abs(row["n"] - exact) < 60 for row, exact in counted)
    with pytest.raises(DomainError, match="wards"):
        visits.sql(text.replace("wards", "other"), spend="1%")
    clinic.desks.desks["clinic"].worker.close()


def test_groups_and_questions_are_answered_in_the_shape_that_was_asked_for(clinic: Clinic) -> None:
    text = "SELECT ward, AVG(minutes) AS mean FROM visits GROUP BY ward ORDER BY ward"
    found = clinic.post("ask", table="visits", sql=text, spend="20%")[1]
    ward, mean = found["tables"][0]
    assert ward["cells"] == ["east", "west"] and mean["name"] == "mean" and len(mean["low"]) == 2
    questions = [{"kind": "count"}, {"kind": "sum", "column": "minutes"}]
    found = clinic.post("ask", table="visits", questions=questions, spend="5%")[1]
    assert [each[0]["name"] for each in found["tables"]] == ["count", "sum"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"sql": "SELECT person FROM visits"}, "rows are never shown"),
        ({"sql": "SELECT COUNT(*) FROM other"}, "other"),
        ({"sql": "SELECT COUNT(*) FROM read_csv('/etc/passwd')"}, "sql"),
        ({"sql": "EXPLAIN SELECT COUNT(*) FROM visits"}, "quote"),
        ({"sql": COUNT, "table": "others"}, "visits"),
        ({"sql": COUNT, "spend": "500%"}, "spend"),
        ({"sql": COUNT, "spend": "60%", "error": 3}, "spend"),
        ({"sql": 3}, "SELECT"),
        ({"questions": [{"kind": "rows"}]}, "kind"),
        ({"questions": []}, "questions"),
        ({"questions": ["x"]}, "a table"),
        ({"questions": [{"kind": "count", "spend": 3}]}, "spend"),
        ({"sql": COUNT, "spend": 3}, "spend"),
        ({"sql": COUNT, "spend": {"epsilon": []}}, "spend"),
        ({"sql": COUNT, "spend": {"epsilon": "1/0"}}, "spend"),
        ({"sql": COUNT, "spend": None}, "spend"),
        ({"sql": COUNT, "keys": "x"}, "keys"),
        ({"sql": COUNT, "keys": [[[]]]}, "keys"),
        ({"sql": COUNT, "error": "3"}, "error"),
        ({}, "questions"),
    ],
)
def test_what_is_refused_costs_nothing(clinic: Clinic, fields: dict[str, Any], said: str) -> None:
    before = clinic.kinds
    for route in ("ask", "quote"):
        if route == "quote" and "EXPLAIN" in str(fields):
            continue
        status, refused = clinic.post(route, **{"table": "visits", "spend": "1%", **fields})
        assert status in (409, 422) and said in refused["reason"] and clinic.kinds == before


def test_a_quote_asks_nothing_of_the_process_that_has_the_rows(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = clinic.desks.desks["clinic"].worker
    monkeypatch.setattr(worker, "_request", lambda *_: pytest.fail("the worker was asked"))
    assert clinic.post("quote", table="visits", sql=COUNT, error=30)[0] == 200
    found = clinic.ask("tables", clinic.token, scope="clinic").json()
    assert (
        found["tables"]["visits"]["types"][0] == ["person", "string"]
        and found["budget"]["epsilon"] == "5"
    )


def test_no_letter_of_a_statement_or_of_a_row_is_in_a_log(
    clinic: Clinic, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    text = "SELECT COUNT(*) FROM visits WHERE ward = 'a secret'"
    assert clinic.post("ask", table="visits", sql=text, spend="1%")[0] == 200
    assert (
        clinic.post("ask", table="visits", sql=text.replace("ward", "secret"), spend="1%")[0] == 422
    )
    out, err = capfd.readouterr()
    assert "secret" not in caplog.text + out + err


def test_long_texts_are_cut_before_any_function_and_long_names_belong_to_nobody(
    tmp_path: Path,
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import dpcompose.release as release
    from dpcompose.release.query import run

    long = {"person": ["a", "b" * 300, "c"], "note": ["x" * 10**6, "y", "z" * 10]}
    pq.write_table(pa.table(long), tmp_path / "notes.parquet")
    said = {
        "source": str(tmp_path / "notes.parquet"),
        "unit": "person",
        "max_rows_per_unit": 1,
        "longest": 200,
    }
    catalog = release.Catalog.define(
        Ledger.open("memory:"), "notes", {"notes": said}, filter=release_budget(), actor="keeper"
    )
    worker = release.Worker(dict(catalog.tables))
    table = worker.tables(catalog)["notes"]
    found = run(table.mutate(size=release.col("note").length()).data.select("person", "size"))
    assert sorted(found) == [("a", 200), ("c", 10)]
    worker.close()


def release_budget() -> Any:
    from dpcompose.adaptive import Budget

    return Budget(1, 1e-6)


def away(*_: Any) -> None:
    raise StoreError("city", "away", uncertain=False)


def test_a_worker_that_fails_closes_the_tables_until_a_keeper_has_looked(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = clinic.desks.desks["clinic"]
    desk.worker.process.kill()
    desk.limit = 0.3
    asked = {"table": "visits", "sql": COUNT, "spend": {"epsilon": "0.02"}}
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "state", away)  # it is not recorded, and is closed all the same
        status, failed = clinic.post("ask", **asked)
        assert status == 409 and failed["error"] == "EngineError"
        before = clinic.kinds
        assert "closed" in clinic.post("ask", **asked)[1]["reason"] and clinic.kinds == before
        assert desk.reading.exists()
    assert "closed" in clinic.post("ask", **asked)[1]["reason"]
    assert clinic.kinds == [*before, "stated"] and not desk.reading.exists()
    before = clinic.kinds
    assert "closed" in clinic.post("ask", **asked)[1]["reason"] and clinic.kinds == before
    assert clinic.post("reopen")[0] == 403 and clinic.post("reopen", clinic.keeper)[0] == 200
    # The charge was redeemed: there is no second draw for it.
    assert clinic.post("ask", **asked)[1]["error"] == "SpentError"
    desk.limit = 10.0
    assert clinic.post("ask", **{**asked, "key": "anew"})[0] == 200
    assert clinic.ledger.verify().entries


DIED = {(step, after) for step in ("redeem", "scan", "draw", "keep") for after in (False, True)}
"""Between a charge and its answer: there a defect closes the tables."""
STEPS = ("charge", "redeem", "scan", "draw", "keep", "leave")


@pytest.mark.parametrize("step", STEPS)
def test_whatever_dies_there_is_one_draw_at_most_and_one_charge(
    clinic: Clinic, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that ends before or after a step, and is asked again: as a kill there, for what is kept."""
    from dpcompose.release import aggregate, answers, design
    from dpcompose.serve.counter import Desk

    draws, where = (
        list[int](),
        {
            "charge": (Service, "charge_all"),
            "redeem": (Payer, "redeem"),
            "scan": (aggregate.Scans, "exact"),
            "draw": (design.Design, "draw"),
            "keep": (answers.InDirectory, "keep"),
            "leave": (Desk, "leave"),
        },
    )
    drawn = design.Design.draw

    def counted(self: Any, *given: Any) -> Any:
        draws.append(1)
        return drawn(self, *given)

    monkeypatch.setattr(design.Design, "draw", counted)
    # When an answer leaves is another test.
    monkeypatch.setattr("dpcompose.serve.counter.sleep", lambda seconds: None)
    for after in (False, True):
        owner, name = where[step]
        before, original = clinic.kinds, getattr(owner, name)

        def dies(*given: Any, _real: Any = original, _after: bool = after, **more: Any) -> Any:
            if _after:
                _real(*given, **more)
            raise RuntimeError("killed")

        draws.clear()
        asked = {
            "table": "visits",
            "sql": COUNT,
            "spend": {"epsilon": "0.01"},
            "key": f"{step} {after}",
        }
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dies)
            assert clinic.ask("ask", clinic.token, scope="clinic", **asked).status_code == 500
        reason = clinic.desks.desks["clinic"].reason()
        assert bool(reason) == ((step, after) in DIED)
        clinic.look()
        outcomes = [clinic.post("ask", **asked) for _ in range(3)]
        assert outcomes[1] == outcomes[2] and len(draws) <= 1
        found = {json.dumps(each.get("tables", each.get("error", ""))) for _, each in outcomes}
        assert len(found) == 1
        new = clinic.kinds[len(before) :]
        assert new.count("granted") == 1 and new.count("redeemed") == 1


def test_a_process_that_died_before_its_answer_closes_the_tables_when_it_starts(
    clinic: Clinic,
) -> None:
    desk = clinic.desks.desks["clinic"]
    desk.reading.touch()
    unstored = desk.answers / "1.1.partial"
    unstored.write_text("a draw")
    again = Desk(desk.catalog, desk.answers, desk.after, desk.limit)
    again.worker.close()
    assert "ended before" in again.reason() and not unstored.exists()
    assert "closed" in clinic.post("ask", table="visits", sql=COUNT, spend="1%")[1]["reason"]
    desk.record("", "Grace@clinic")
    assert not desk.reason() and not desk.reading.exists()


def test_the_process_with_the_rows_has_nothing_else(clinic: Clinic, tmp_path: Path) -> None:
    from dpcompose.release import worker

    process = Path(f"/proc/{clinic.desks.desks['clinic'].worker.process.pid}")
    if process.exists():
        variables = (process / "environ").read_bytes().split(b"\0")
        assert [each.partition(b"=")[0] for each in variables if each] == [b"PYTHONPATH"]
        for limit, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_AS, 2**32),
        ):
            assert resource.prlimit(int(process.name), limit) == (most, most)
    raw = worker._opened(dict(clinic.desks.desks["clinic"].catalog.tables), 2**30)  # pyright: ignore[reportPrivateUsage]
    read = worker._rows  # pyright: ignore[reportPrivateUsage]
    assert read(raw, "SELECT COUNT(*) FROM counter_visits", []) == [(400,)]
    secret, there = tmp_path / "secret.csv", clinic.desks.desks["clinic"].answers
    secret.write_text("a\n1\n")
    for text in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM glob('{there}/*')",
        "SELECT * FROM read_parquet('https://x.example/a.parquet')",
        f"COPY counter_visits TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'other.db'}'",
        "INSTALL httpfs",
        "CREATE OR REPLACE TEMP VIEW counter_visits AS SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT getenv('PATH')",
    ):
        with pytest.raises((duckdb.Error, UnsupportedError)):
            read(raw, text, [])
    assert read(raw, "SET enable_external_access = true", []) == [] and not secret.is_dir()
    with pytest.raises(duckdb.Error, match="locked"):
        raw.execute("SET enable_external_access = true")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"after": "soon"}, "after"),
        ({"after": True}, "after"),
        ({"limit": float("nan")}, "limit"),
        ({"memory": -1}, "memory"),
        ({"after": 3, "limit": 2}, "after < limit"),
        ({"tables": [1]}, "tables"),
        ({"tabels": {}}, "tables"),
        (None, "tables"),
        (7, "tables"),
    ],
)
def test_a_catalog_of_wrong_types_is_one_clear_error(
    clinic: Clinic, tmp_path: Path, changed: Any, said: str
) -> None:
    tables = {"tables": dict(clinic.desks.desks["clinic"].catalog.tables)}
    stated = tables | changed if isinstance(changed, dict) else changed
    with pytest.raises(DomainError, match=said):
        Counter.open(clinic.ledger, tmp_path, {"clinic": stated})


def test_a_browser_session_cannot_be_ridden(clinic: Clinic) -> None:
    """Another site sends the cookie at most: nothing of the counter listens to it."""
    before, fields = (
        clinic.kinds,
        {"scope": "clinic", "table": "visits", "sql": COUNT, "spend": "1%"},
    )
    sent = {"cookie": f"dpcompose={clinic.token}", "origin": "https://evil.example"}
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
        headers = {**sent, "content-type": kind, "sec-fetch-site": "cross-site"}
        for name in ("ask", "quote", "reopen"):
            found = clinic.client.post(f"/v1/{name}", content=json.dumps(fields), headers=headers)
            assert found.status_code == 401 and "access-control-allow-origin" not in found.headers
        form = {**fields, "action": "ask", "form": "x"}
        assert clinic.client.post("/act", data=form, headers=headers).status_code in (403, 404)
    assert (
        clinic.client.get("/v1/tables", params={"scope": "clinic"}, headers=sent).status_code == 401
    )
    assert clinic.kinds == before


def test_a_page_asks_and_shows_the_price_before(clinic: Clinic) -> None:
    def sent(client: Any, **fields: str) -> Any:
        form = re.search(r'name="form" value="([0-9a-f]{64})"', client.get("/ask").text)
        typed = {"scope": "clinic", "table": "visits", "here": "/ask", "spend": "1%", "error": ""}
        return client.post("/act", data={**typed, "form": form[1] if form else "", **fields})

    ben, grace = (signed_in(clinic.app, each) for each in (clinic.token, clinic.keeper))
    page = ben.get("/ask").text
    assert (
        "<code>minutes</code> int64: 0, 60" in page and 'href="/ask?at=clinic"' in ben.get("/").text
    )
    assert grace.get("/ask").status_code == 404 and "/ask" not in grace.get("/").text
    before = clinic.kinds.count("granted")
    text = "SELECT ward, COUNT(*) AS n FROM visits WHERE ward <> '<i>' GROUP BY ward ORDER BY n"
    quoted = sent(ben, action="quote", sql=text).text
    assert "Price: epsilon 0.05" in quoted and "Nothing was charged" in quoted
    assert clinic.kinds.count("granted") == before and "&lt;i&gt;" in quoted and "<i>" not in quoted
    asked = sent(ben, action="ask", sql=text).text
    assert (
        clinic.kinds.count("granted") == before + 1
        and ">west<" in asked
        and "data:text/csv" in asked
    )
    assert asked.count('class="promised"') == 2 and "My statements" in asked
    again = sent(ben, action="ask", sql=f"{text};").text
    numbers = re.compile("<tbody>.*?</tbody>", re.DOTALL)
    assert numbers.findall(again)[0] == numbers.findall(asked)[0]
    assert clinic.kinds.count("granted") == before + 1
    exact = sent(ben, action="ask", sql=COUNT, spend="0.01")
    assert exact.status_code == 200 and "epsilon" in exact.text
    for fields in ({"sql": "SELECT person FROM visits"}, {"sql": COUNT, "error": "soon"}):
        refused = sent(ben, action="ask", **fields)
        assert refused.status_code == 409 and fields["sql"] in refused.text
    assert sent(ben, action="ask", sql="").status_code == 409
    for headers in ({"sec-fetch-site": "cross-site"}, {}):
        ridden = {
            "action": "ask",
            "scope": "clinic",
            "table": "visits",
            "sql": COUNT,
            "spend": "2%",
        }
        assert ben.post("/act", data=ridden, headers=headers).status_code == 403
    assert clinic.kinds.count("granted") == before + 2


def test_a_dummy_is_asked_for_nothing_in_the_words_of_the_table(clinic: Clinic) -> None:
    where: dict[str, Any] = {"scope": "clinic", "table": "visits", "client": clinic.client}
    before = clinic.kinds
    visits = RemoteSession.dummy("http://testserver", clinic.token, **where)
    real = RemoteSession("http://testserver", clinic.token, **where)
    assert visits.table.columns == real.table.columns and visits.table.ranges == real.table.ranges
    text = (
        "SELECT ward, COUNT(*) AS n, AVG(minutes) AS mean FROM visits GROUP BY ward ORDER BY ward"
    )
    words = [each.explain(text, spend="5%").in_words(0.95) for each in (visits, real)]
    assert words[0].partition(",")[0] == words[1].partition(",")[0]
    answer = visits.sql(text, spend="40%")
    assert isinstance(answer, SelectedAnswer) and [row["ward"] for row in answer.rows] == [
        "east",
        "west",
    ]
    assert sum(row["n"] for row in answer.rows) == pytest.approx(1000, abs=60)
    assert visits.units(spend="30%").value == pytest.approx(500, abs=40)
    assert clinic.kinds == before
    types = [
        ("who", "uuid"),
        ("day", "date"),
        ("ok", "boolean"),
        ("cost", "decimal(9, 2)"),
        ("at", "timestamp(6)"),
    ]
    described = {"version": "1", "types": types, "unit": ["who"], "bounds": [2, 2, 2], "ranges": {}}
    made = Catalog.without_rows({"notes": described}, invented=50)["notes"]
    rows = made.engine.rows("SELECT * FROM notes")
    assert (
        len(rows) == 50
        and len({row[0] for row in rows}) == 25
        and {row[4] for row in rows} == {None}
    )
    assert None not in {cell for row in rows for cell in row[:4]}


def test_an_analyst_does_not_learn_which_rows_are_kept(clinic: Clinic) -> None:
    found = clinic.ask("kept", clinic.token, scope="clinic", name="release:table").json()
    assert found["description"]["release"]["key"] == ""
    assert clinic.ledger.entries("clinic") and not clinic.desks.desks["clinic"].reason()


def test_a_prompt_asks_a_service_as_it_asks_a_file(
    clinic: Clinic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dpcompose.serve as serve

    monkeypatch.setattr(serve, "RemoteSession", partial(RemoteSession, client=clinic.client))
    token = tmp_path / "ben.token"
    token.write_text(f"{clinic.token}\n")
    words = ["ask", "clinic/visits", "--server", "http://testserver"]
    token.chmod(0o644)
    refused = invoke([*words, "--token-file", str(token), "-c", COUNT])
    assert refused.exit_code == 2 and f"chmod 600 {token}" in refused.stderr
    token.chmod(0o600)
    lines = f"{COUNT};\n.tables\n.budget\n.history\n.save {tmp_path / 'answer.csv'}\n"
    found = invoke([*words, "--token-file", str(token), "--spend", "1%"], stdin=lines.encode())
    assert found.exit_code == 0 and "Price: epsilon 0.05" in found.stderr
    assert "minutes" in found.stdout and "is left" in found.stdout
    assert (tmp_path / "answer.csv").read_text().startswith('"n"')
    again = invoke(
        [*words, "-c", f"{COUNT};", "--spend", "1%"], env={"DPCOMPOSE_TOKEN": clinic.token}
    )
    assert again.exit_code == 0 and again.stdout in found.stdout
    for more, said in (
        (["--person", "person"], "--server"),
        (["--token-file", str(tmp_path / "none")], "--token-file"),
        ([], "token"),
    ):
        refused = invoke([*words, "-c", COUNT, *more], env={"DPCOMPOSE_TOKEN": None})
        assert refused.exit_code == 2 and said in refused.stderr


def test_an_identity_without_the_scope_or_the_role_is_refused(clinic: Clinic) -> None:
    other = clinic.people.invite("Ian", Role.ANALYST, "city")
    for token in (other, clinic.keeper, ""):
        status = clinic.ask(
            "ask", token, scope="clinic", table="visits", sql=COUNT, spend="1%"
        ).status_code
        assert status in (401, 403)
    town = Service(clinic.ledger, Identities(Ledger.open("memory:")))
    assert town.counter is None


def test_a_remote_session_has_the_answers_of_a_session(clinic: Clinic) -> None:
    def session(**more: Any) -> RemoteSession:
        return RemoteSession(
            "http://testserver",
            clinic.token,
            scope="clinic",
            client=clinic.client,
            **{"table": "visits"} | more,
        )

    visits = session()
    answer = visits.count(by="ward", spend={"epsilon": Fraction(1, 50)}, keys=["east", "west"])
    assert answer.rows[0]["ward"] == "east" and answer.low[0] < answer.main.cells[0]
    half, most = (answer.expected_error(each) for each in (0.5, 0.95))
    assert isinstance(half, float) and isinstance(most, float)
    assert half < most and not answer.replayed
    assert visits.count(
        by="ward", spend={"epsilon": Fraction(1, 50)}, keys=["east", "west"]
    ).replayed
    text = (
        "SELECT ward, SUM(minutes) / COUNT(*) AS mean FROM visits GROUP BY ward ORDER BY ward DESC"
    )
    found = visits.sql(text, spend="4%", key="means")
    assert isinstance(found, SelectedAnswer)
    served = clinic.post("ask", table="visits", sql=text, spend="4%", key="means")[1]["tables"][0]
    assert [list(each.cells) for each in found.columns] == [each["cells"] for each in served]
    assert [list(end) for end in found.interval_of("mean", 0.95)] == [
        served[1][end] for end in ("low", "high")
    ]
    quoted = clinic.post("quote", table="visits", sql=text, spend="4%")[1]
    explained = visits.explain(text, spend="4%")
    assert explained.in_words(0.95) == quoted["words"] and all(
        one["noise"] == other["noise"] and one["stability"] == other["stability"]
        for one, other in zip(explained.rows, quoted["questions"], strict=True)
    )
    assert visits.sql(f"EXPLAIN {COUNT}", error=40).quotes[0].expected_error(0.95) <= 40  # type: ignore[union-attr]
    own = [each for each in clinic.ledger.entries("clinic") if each.kind == "granted"]
    assert len(list(visits.history())) == len([each for each in own if each.actor == "Ben@clinic"])
    with pytest.raises(DomainError, match="visits"):
        session(table="others")
    with pytest.raises(UnsupportedError, match="SQL"):
        visits.count(table=visits.table.where(col("minutes") > 3), spend="1%")


def test_an_account_goes_to_a_process_that_prices_after_it_said_what_is_left(
    clinic: Clinic,
) -> None:
    account = clinic.service.account("clinic")
    assert account.left() and account.room(account.price(Gaussian(30.0)))
    copy = pickle.loads(pickle.dumps(account.detached()))
    assert copy.price(Gaussian(20.0)) == account.price(Gaussian(20.0))


def test_where_the_tables_are_is_not_told_to_who_asks_them(clinic: Clinic) -> None:
    for name in ("budget", "tables", "left", "history"):
        assert "visits.csv" not in clinic.ask(name, clinic.token, scope="clinic").text
    assert "visits.csv" in clinic.ask("budget", clinic.keeper, scope="clinic").text


def test_a_catalog_that_says_otherwise_than_the_ledger_is_refused(
    clinic: Clinic, tmp_path: Path
) -> None:
    stored = clinic.desks.desks["clinic"].catalog.tables["visits"]
    visits = {**SCOPE["tables"]["visits"], "source": stored["source"]}  # type: ignore[index]
    for changes, more, said in (
        ({"max_rows_per_unit": 3}, {}, "visits.max_rows_per_unit"),
        ({"unit": ["ward"]}, {}, "visits.unit"),
        ({"source": str(tmp_path / "other.csv")}, {}, "visits.source"),
        ({"ranges": {"minutes": [0, 61]}}, {}, "visits.ranges"),
        ({"ranges": {"minutes": 5}}, {}, "visits.ranges"),
        ({"ranges": 5}, {}, "ranges"),
        ({"longest": 3}, {}, "visits.longest"),
        ({}, {"epsilon": 6}, "epsilon"),
        ({}, {"delta": 1e-5}, "delta"),
    ):
        scope = {**SCOPE, **more, "tables": {"visits": {**visits, **changes}}}
        with pytest.raises(DomainError, match=said):
            Counter.open(clinic.ledger, tmp_path, {"clinic": scope})
    with pytest.raises(DomainError, match="a definition of a table"):
        Counter.open(clinic.ledger, tmp_path, {"clinic": {**SCOPE, "tables": {"visits": 5}}})


def test_a_token_that_was_revoked_while_its_request_waited_is_charged_nothing(
    clinic: Clinic,
) -> None:
    desk, token = clinic.desks.desks["clinic"], clinic.people.invite("Eve", Role.ANALYST, "clinic")
    fields, before = {"table": "visits", "sql": COUNT, "spend": "1%"}, clinic.kinds
    with ThreadPoolExecutor(1) as threads:
        with desk.lock:
            asked = threads.submit(clinic.post, "ask", token, **fields)
            time.sleep(0.5)  # it waits for the tables
            assert not asked.done()
            clinic.people.revoke("Eve", "clinic")
        assert asked.result()[0] == 401
    assert clinic.kinds == before
