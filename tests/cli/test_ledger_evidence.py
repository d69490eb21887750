"""`dpcompose ledger evidence key`, `checkpoint`, `prove`, `check-proof`; `verify` with a checkpoint, and with prices."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dpcompose import Gaussian
from dpcompose.account import Account
from dpcompose.ledger import Ledger
from tests.cli.runner import invoke

Ask = Callable[..., str]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.chdir(tmp_path)

    def run(line: str, *, status: int = 0) -> str:
        environment = {"COLUMNS": "140", "USER": "Ada", "DPCOMPOSE_LEDGER": "l.db"}
        group = [] if line.split(maxsplit=1)[0] in ("init", "scope", "verify") else ["evidence"]
        result = invoke(["ledger", *group, *line.split()], env=environment)
        assert result.exit_code == status, (line, result.output, result.exception)
        return result.output

    run("init")
    run("scope world --filter concentrated --epsilon 1 --delta 1e-6")
    with Ledger.open("l.db") as ledger:
        account = Account(ledger, scope="world")
        for number in range(4):
            account.charge(Gaussian(50.0), actor="Ada", key=str(number))
    public = run("key acme.example --out secret.key").splitlines()[0]
    Path("public.key").write_text(f"{public}\n")
    return run


def test_from_a_key_to_a_checked_proof(ask: Ask) -> None:
    assert stat.S_IMODE(Path("secret.key").stat().st_mode) == 0o600
    assert "announced" in ask("announce world --key public.key")
    ask("checkpoint --key secret.key --out kept.txt")
    with Ledger.open("l.db") as ledger:
        Account(ledger, scope="world").charge(Gaussian(50.0), actor="Ada", key="later")
    ask("prove world --entry 3 --checkpoint kept.txt --trust public.key --out entry.proof")
    ask("prove world --since kept.txt --key secret.key --out since.proof")
    assert "Entry 3 is in the log: world, granted" in ask(
        "check-proof entry.proof --trust public.key"
    )
    document = json.loads(ask("check-proof entry.proof --trust public.key --json"))
    assert document["holds"] and document["entry"]["sequence"] == 3 and document["entries"] == 6
    assert "Nothing of the first 6 entries was changed" in ask(
        "check-proof since.proof --trust public.key"
    )
    assert json.loads(ask("check-proof since.proof --trust public.key --json"))["since"] == 6
    assert "so does the anchor" in ask("verify --anchor kept.txt --trust public.key")
    ask("announce world --key public.key --revoke")
    ask("checkpoint world --key secret.key --out late.txt")
    assert "revokes it" in ask("verify --anchor late.txt --trust public.key", status=1)


def test_a_proof_that_shows_nothing(ask: Ask) -> None:
    ask("prove world --entry 2 --key secret.key --out entry.proof")
    text = Path("entry.proof").read_text()
    Path("changed.proof").write_text(text.replace("index 1", "index 2"))
    assert "the evidence is invalid" in ask(
        "check-proof changed.proof --trust public.key", status=1
    )
    refused = ask("check-proof changed.proof --trust public.key --json", status=1)
    assert json.loads(refused[: refused.rindex("}") + 1])["holds"] is False
    ask("key mallory.example --out other.key")
    ask("prove world --entry 2 --key other.key --out foreign.proof")
    assert "none of the keys given" in ask("check-proof foreign.proof --trust public.key", status=1)


BAD = {
    "key acme.example": "--out",
    "key two+names --out new.key": "name",
    "key acme.example --out secret.key": "a new file",
    "announce world --key nonsense": "key",
    "checkpoint": "--key",
    "checkpoint --key public.key": "secret key",
    "checkpoint town --key secret.key": "top-level scopes: world",
    "checkpoint --key secret.key --out l.db": "not one of a database",
    "prove world --key secret.key": "--entry",
    "prove world --entry 99 --key secret.key": "1 to 5",
    "prove world --entry 2": "--key",
    "check-proof missing --trust public.key": "can be read",
    "check-proof public.key": "--trust",
    "verify --anchor public.key": "an anchor or a checkpoint",
}


def test_bad_input_is_one_sentence(ask: Ask) -> None:
    for line, said in BAD.items():
        output = ask(line, status=2)
        assert said in output and output.count("\n") == 1, line
    assert "no such scope" in ask("announce world --key public.key --revoke", status=1)


def test_a_charge_below_the_price_of_its_mechanism_is_found(ask: Ask) -> None:
    ask("scope world/bare --cap coins=1")
    with Ledger.open("l.db") as ledger:
        honest = next(each for each in ledger.entries("world") if each.kind == "granted")
        description = {**honest.description, "mechanism": "Gaussian(1.0)"}
        ledger.charge("world", cost=honest.cost, description=description, actor="Eve", key="cheap")
    assert "charge 7 of 'world' paid less than the mechanism it names costs" in ask(
        "verify", status=1
    )


def test_a_verification_that_begins_at_a_checkpoint(ask: Ask) -> None:
    ask("checkpoint --key secret.key --out kept.txt --state kept.state")
    with Ledger.open("l.db") as ledger:
        Account(ledger, scope="world").charge(Gaussian(50.0), actor="Ada", key="later")
    line = "verify --anchor kept.txt --trust public.key --state kept.state"
    said = ask(line)
    assert "the first 5 entries, which were signed, were not read again" in said
    document = json.loads(ask(f"{line} --json"))
    assert (document["since"], document["entries"]) == ({"world": 5}, 1)
    Path("changed.state").write_text(Path("kept.state").read_text().replace("rho", "tho"))
    assert "signed the state" in ask(line.replace("kept.state", "changed.state"), status=1)
    assert "--anchor" in ask("verify --state kept.state", status=2)
    assert "--state" in ask(line.replace("kept.state", "kept.txt"), status=2)
