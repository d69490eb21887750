"""`dpcompose ledger`: what it prints is what the ledger holds, and every refusal ends in one sentence and a status."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dpcompose.ledger import Amount, Ledger, Receipt
from dpcompose.report.ledger import at_least, at_most, bar
from tests.cli.runner import invoke

PLAN = 'delta = 1e-6\n[[mechanism]]\nkind = "gaussian"\nsigma = 30.0\ntimes = 5\n'
Ask = Callable[..., str]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Runs `dpcompose ledger ...` in an empty folder; the output, if the status is the expected one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)

    def run(line: str, *, status: int = 0) -> str:
        result = invoke(["ledger", *line.split()], env={"COLUMNS": "140", "USER": "Ada"})
        assert result.exit_code == status, (line, result.output, result.exception)
        assert status == 0 or "Traceback" not in result.output
        return result.output

    run("init --ledger l.db")
    run("scope --ledger l.db world --filter concentrated --epsilon 1 --delta 1e-6 --unit citizen")
    run(
        "scope --ledger l.db world/sales --filter concentrated --parameter rho=0.01 --parameter delta=0"
    )
    run("scope --ledger l.db world/regions --kind partition")
    run("scope --ledger l.db world/regions/north")
    run(
        "scope --ledger l.db world/curators --kind slots --slots 2 --filter pure --parameter epsilon=0.01"
    )
    run("scope --ledger l.db world/curators/a")
    return run


@pytest.mark.slow
def test_charging_until_it_is_refused(ask: Ask) -> None:
    said = ask("charge --ledger l.db world/sales plan.toml --key one")
    assert "Granted: entry 7" in said
    again = json.loads(ask("charge --ledger l.db world/sales plan.toml --key one --json"))
    assert (again["granted"], again["sequence"], again["left"]["rho"][:6]) == (True, 7, "0.0072")
    ask("charge --ledger l.db world/sales plan.toml --key two")
    ask("charge --ledger l.db world/sales plan.toml --key three --redeem")
    refused = ask("charge --ledger l.db world/sales plan.toml --key four --json", status=1)
    document = json.loads(refused[: refused.rindex("}") + 1])
    assert (document["granted"], document["scope"], document["currency"]) == (
        False,
        "world/sales",
        "rho",
    )
    with Ledger.open("l.db", create=False) as ledger:
        kinds = [entry.kind for entry in ledger.entries("world/sales")]
        assert kinds == ["opened", "granted", "granted", "granted", "redeemed", "refused"]
        ledger.redeem(Receipt.read(again["receipt"]), actor="Ada")
        ledger.verify()


def test_the_tree_and_its_document(ask: Ask) -> None:
    ask("charge --ledger l.db world/sales --cost rho=0.004 --cost delta=0 --key one")
    shown = ask("show --ledger l.db")
    assert "[#######.........]  40 %" in shown
    document = json.loads(ask("show --ledger l.db --json"))
    assert {scope["path"]: scope["spent"].get("rho") for scope in document["scopes"]}[
        "world/sales"
    ] == "0.004"
    assert [
        scope["path"]
        for scope in json.loads(ask("show --ledger l.db world/regions --json"))["scopes"]
    ] == [
        "world/regions",
        "world/regions/north",
    ]
    slots = next(scope for scope in document["scopes"] if scope["kind"] == "slots")
    assert (slots["slots"], slots["taken"]) == (2, 1)


def test_the_log(ask: Ask) -> None:
    ask("charge --ledger l.db world/sales --cost rho=0.004 --cost delta=0 --key one")
    assert "key one" in ask("log --ledger l.db world/sales")
    entries = json.loads(ask("log --ledger l.db world --after 6 --json"))["entries"]
    assert [(entry["sequence"], entry["kind"], entry["actor"]) for entry in entries] == [
        (7, "granted", "Ada")
    ]
    assert len(json.loads(ask("log --ledger l.db world --most 3 --json"))["entries"]) == 3


def test_exposure(ask: Ask) -> None:
    document = json.loads(
        ask("exposure --ledger l.db world/sales world/regions/north --delta 1e-6 --json")
    )
    assert document["promised"]["epsilon"] <= 1 + 1e-9
    assert "promised" in ask("exposure --ledger l.db world/sales --delta 1e-6")
    ask("scope --ledger l.db city --filter concentrated --epsilon 1 --delta 1e-6 --odometer 1e-9")
    ask("charge --ledger l.db city plan.toml --key one")
    spent = json.loads(ask("exposure --ledger l.db city --delta 1e-6 --json"))["spent"]
    assert spent["regime"] == "odometer"
    assert spent["failure"] == pytest.approx(1e-9)
    assert 0 < spent["epsilon"] < 2


def test_verify_with_an_anchor(ask: Ask) -> None:
    assert "No anchor was given" in ask("verify --ledger l.db --keep anchor.json")
    older = Path("l.db").read_bytes()
    ask("charge --ledger l.db world/sales --cost rho=0.004 --cost delta=0 --key one")
    assert (
        json.loads(ask("verify --ledger l.db --anchor anchor.json --keep anchor.json --json"))[
            "anchored"
        ]
        is True
    )
    Path("l.db").write_bytes(older)
    assert "acknowledged and is gone" in ask("verify --ledger l.db", status=1)
    said = ask("verify --ledger l.db --anchor anchor.json --json --restored", status=1)
    assert json.loads(said[said.index("{") : said.rindex("}") + 1])["sound"] is False
    assert "the anchor has 7" in said
    ask("verify --ledger l.db --anchor nowhere.json", status=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("charge --ledger l.db world/nowhere --cost rho=1 --key a", 1, "no such scope"),
        ("charge --ledger l.db world --cost rho=-1 --cost delta=0 --key a", 2, "at least 0"),
        ("charge --ledger l.db world --cost rho=1 --key a", 1, "missing"),
        ("charge --ledger l.db world --cost rho --key a", 2, "name=value"),
        ("charge --ledger l.db world --cost rho=1 --cost rho=2 --key a", 2, "once"),
        ("charge --ledger l.db world --cost rho=1 --cost delta=0", 2, "--key"),
        ("charge --ledger l.db world --key a", 2, "one of them"),
        ("charge --ledger l.db world nowhere.toml --key a", 2, "nowhere.toml"),
        ("scope --ledger l.db world/x --filter natural --epsilon 1", 2, "expected pure"),
        ("scope --ledger l.db world/x --filter pure", 2, "target"),
        ("scope --ledger l.db world/x --delta 1e-6", 2, "epsilon"),
        ("scope --ledger l.db world/x --kind folder", 2, "folder"),
        (
            "scope --ledger l.db world/x --filter pure --epsilon 1 --parameter epsilon=1",
            2,
            "left out",
        ),
        ("scope --ledger l.db world/curators/b --filter pure --epsilon 1", 2, "slot"),
        ("scope --ledger l.db world --filter pure --epsilon 2", 1, "never changes"),
        ("scope --ledger l.db world/x --odometer 1.5", 2, "(0, 1)"),
        ("scope --ledger l.db world/x --adjacency sideways", 2, "sideways"),
        ("show --ledger nowhere.db", 1, "no such ledger"),
        ("show --ledger memory:", 2, "ends with the command"),
        ("show --ledger l.db nowhere", 1, "no such scope"),
        ("show --ledger mysql://host/db", 2, "postgresql"),
        ("exposure --ledger l.db world --delta 2", 2, "delta"),
        ("exposure --ledger l.db world --delta 0 --window never", 2, "window"),
        ("scope --ledger l.db y --cap epsilon=1 --renew never", 2, "renew"),
    ],
)
def test_bad_input_is_one_sentence(ask: Ask, line: str, status: int, said: str) -> None:
    output = ask(line, status=status)
    assert said in output
    assert len(output.strip().splitlines()) == 1


def test_a_budget_needs_no_theorem(ask: Ask) -> None:
    ask("scope --ledger l.db city --epsilon 100 --delta 1e-6")
    opened = ask("scope --ledger l.db city/a --epsilon 1 --delta 1e-6")
    assert "1 at 1e-6" in opened and "renyi" not in opened and "0 %" in opened
    ask("scope --ledger l.db cited --epsilon 1 --delta 1e-6 --only zcdp")
    assert "rho" in ask("show --ledger l.db cited")
    assert "only" in ask("scope --ledger l.db y --epsilon 1 --only zcd", status=2)
    assert "grants something" in ask("scope --ledger l.db y --epsilon 0", status=2)


def test_a_bare_epsilon_is_a_promise(ask: Ask) -> None:
    ask("scope --ledger l.db city --epsilon 1 --delta 1e-6")
    refused = ask("charge --ledger l.db city --cost epsilon=0.1 --key a", status=2)
    assert "delta=D beside epsilon=E" in refused
    charged = ask("charge --ledger l.db city --cost epsilon=0.1 --cost delta=1e-9 --key a")
    assert "as a promise" in charged and "rho 0.0049" in charged and "delta 1e-9" in charged
    refused = ask("charge --ledger l.db city --cost epsilon=0.95 --cost delta=0 --key b", status=1)
    assert "Nothing was spent; ask for less" in refused and "a defect" not in refused


def test_a_plan_charged_to_a_budget_reads_in_percent_of_it(ask: Ask) -> None:
    """Six currencies say nothing to who charges a plan; the document has them all."""
    ask("scope --ledger l.db city --epsilon 1 --delta 1e-6")
    priced = ask("price --ledger l.db city plan.toml")
    charged = ask("charge --ledger l.db city plan.toml --key a")
    for page in (priced, charged):
        assert "% of the budget" in page and "renyi" not in page and "mu squared" not in page
    document = json.loads(ask("charge --ledger l.db city plan.toml --key a --json"))
    assert "mu squared" in document["cost"] and "mu squared" in document["left"]


def test_closing(ask: Ask) -> None:
    assert "closed" in ask("close --ledger l.db world/sales")
    assert "closed" in ask(
        "charge --ledger l.db world/sales --cost rho=0 --cost delta=0 --key a", status=1
    )
    assert "filter, closed" in ask("show --ledger l.db")


def test_amounts_are_shown_on_the_safe_side() -> None:
    third = Amount.up(1 / 3)
    assert (at_least(third), at_most(third)) == ("0.333334", "0.333333")
    assert (at_least(Amount.of("1e-30")), at_most(Amount.of(0))) == ("1e-30", "0")
    assert bar(Amount.of("1e-40"), Amount.of(1)) == "[#...............]   1 %"
    assert bar(Amount.of(0), Amount.of(0)) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "scope --ledger l.db x --cap e=1 --filter pure", "scope --ledger l.db x --cap e=1 --epsilon 1",
        "scope --ledger l.db x --cap e=1 --delta 0", "scope --ledger l.db x --cap e=1 --adjacency replace",
        "scope --ledger l.db x --cap e=1 --parameter epsilon=1", "scope --ledger l.db x --cap e=1 --slots 2",
        "scope --ledger l.db x --cap e=1 --kind slots", "scope --ledger l.db x --cap e=1 --odometer 0.1",
        "charge --ledger l.db world/sales --cost rho=0 --cost delta=0 --delta 0.1 --key x",
    ],
)  # fmt: skip
def test_no_option_is_left_unheeded(line: str, ask: Ask) -> None:
    assert "beside" in ask(line, status=2)
    ask("show --ledger l.db x", status=1)


def test_no_database_is_written_over(ask: Ask) -> None:
    Path("l.db").rename("l.json")
    Path("l.db-head").rename("l.json-head")
    Path("link").symlink_to("l.json-head")
    with Ledger.open("l.json") as ledger:
        ledger.scope("more", caps={"epsilon": 1}, actor="Ada")
        shutil.copy("l.json-wal", "copy")
        ends = ["", "-wal", "-shm", "-head", "-turn", "-journal"]
        before = Path("l.json").read_bytes()
        files = [*(f"l.json{end}" for end in ends), "link", "copy"]
        lines = [f"verify --ledger l.json --keep {file}" for file in files]
        for line in lines:
            assert "written over" in ask(line, status=2)
        assert Path("l.json").read_bytes() == before
    ask("verify --ledger l.json --keep anchor.json")
    ask("verify --ledger l.json --anchor anchor.json --keep anchor.json")


def test_a_place_for_the_anchor_is_looked_for_before_the_work(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "verify", lambda *_: pytest.fail("verified for nothing"))
    assert "directory that exists" in ask(
        "verify --ledger l.db --keep nowhere/anchor.json", status=2
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    ['{"sequence":Infinity,"hash":"H"}', '{"sequence":0,"hash":"H"}', '{"sequence":true,"hash":"H"}',
     '{"sequence":1.0,"hash":"H"}', '{"sequence":1,"hash":7}', '{"sequence":1,"hash":"h"}', '{"sequence":1}', "[]",
     '{"sequence":1,"hash":"H","more":1}'],
)  # fmt: skip
def test_an_anchor_that_fits_no_chain_is_none(head: str, ask: Ask) -> None:
    text = f'{{"format":"dpcompose ledger anchor 1","heads":{{"world":{head}}}}}'
    Path("anchor.json").write_text(text.replace('"H"', f'"{"0" * 64}"'))
    assert "--keep" in ask("verify --ledger l.db --anchor anchor.json", status=2)


def test_show_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    environment = {"DPCOMPOSE_LEDGER": "l.db", "USER": "Ada"}
    for line in (
        "init",
        "scope city --filter pure --epsilon 2",
        "charge city --cost epsilon=0.5 --key one",
    ):
        assert invoke(["ledger", *line.split()], env=environment).exit_code == 0
    for words in (["show"], ["show", "city"]):
        found = invoke(["ledger", *words, "--html", "page.html"], env=environment)
        assert found.exit_code == 0 and "wrote page.html" in found.output
        assert (tmp_path / "page.html").read_text().count("<svg") == 2
    assert invoke(["ledger", "show", "--html", "page.txt"], env=environment).exit_code == 2


def test_many_scopes_are_opened_from_a_file_of_names(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("oslo\n\n  rome \r\nrome/centre\n")
    words = "scope --ledger l.db world --from names.txt --epsilon 0.5 --delta 1e-7"
    assert ask(words) == ask(words) == "world: 3 scopes are open below it\n"
    assert json.loads(ask(words + " --json"))["path"] == "world"
    shown = json.loads(ask("show --ledger l.db world --json"))["scopes"]
    assert {"world/oslo", "world/rome", "world/rome/centre"} <= {each["path"] for each in shown}
    assert "--key" in ask(words + " --key a", status=2)
    assert "one by one" in ask("scope --ledger l.db world --from names.txt --kind slots", status=2)
    assert "scopes above" in ask(words + " --adjacency replace", status=2)
