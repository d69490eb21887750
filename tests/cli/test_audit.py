"""`dpcompose audit`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcompose.cli.app import app

MODULE = """
import os
import time

import numpy as np

_rng = np.random.default_rng()


def bare(rows):
    return float(sum(rows))


def count(rows):
    return len(rows) + int(_rng.geometric(0.6) - _rng.geometric(0.6))


def slow(rows):
    time.sleep(0.002)
    return count(rows)


def ends(rows):
    os._exit(0)


def ends_sometimes(rows):
    if _rng.random() < 0.5:
        os._exit(0)
    return 0.0


def typo(rows):
    import no_such_library


def slow_import(rows):
    import slow_library
    return count(rows)


number = 3
"""


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "noisy.py").write_text(MODULE)
    (tmp_path / "same.json").write_text('[{"zero": 1, "one": 1}]')
    monkeypatch.chdir(tmp_path)


def _run(line: str) -> tuple[int, str]:
    ended = CliRunner().invoke(app, ["audit", *line.split()])
    return ended.exit_code, ended.output


def test_a_bare_sum_is_refuted_and_its_certificate_is_checked() -> None:
    status, text = _run("noisy.py:bare --epsilon 1 --certificate c.json")
    assert status == 1 and "REFUTED" in text and "NOT REFUTED" not in text
    assert _run("check c.json")[0] == 0
    certificate = Path("c.json").read_text()
    Path("c.json").write_text(certificate.replace('"alpha":"1e-06"', '"alpha":"1e-05"'))
    status, text = _run("check c.json")
    assert status == 2 and "unchanged certificate" in text


def test_a_noisy_count_is_not_refuted() -> None:
    status, text = _run("noisy.py:count --epsilon 1 --samples 1000 --json")
    assert status == 0
    assert json.loads(text[text.index("{") :])["verdict"] == "not refuted"


def test_other_claims() -> None:
    Path("plan.toml").write_text('[[mechanism]]\nkind = "laplace"\nscale = 1.0\n')
    for claim in ("--rho 0.5", "--mu 1", "--plan plan.toml"):
        assert _run(f"noisy.py:bare {claim}")[0] == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("noisy.py --epsilon 1", "MODULE:NAME"),
        ("nowhere:f --epsilon 1", "a module that can be imported"),
        ("nowhere.py:f --epsilon 1", "a module that can be imported"),
        ("noisy.py:missing --epsilon 1", "a name in noisy.py"),
        ("noisy.py:number --epsilon 1", "a function from a dataset"),
        ("noisy.py:count", "one claim"),
        ("noisy.py:count --epsilon 1 --rho 1", "one claim"),
        ("noisy.py:count --epsilon inf", "finite epsilon"),
        ("noisy.py:count --epsilon nan", "finite epsilon"),
        ("noisy.py:count --epsilon 1 --delta 1", "delta below 1"),
        ("noisy.py:count --epsilon 1 --seconds 0", "a finite number > 0"),
        ("noisy.py:count --epsilon 1 --samples 0", "samples"),
        ("noisy.py:count --epsilon 1 --alpha 2", "alpha"),
        ("noisy.py:count --epsilon 1 --seed ff", "64 hexadecimal digits"),
        ("noisy.py:count --epsilon 1 --fresh never", "call, instance or process"),
        ("noisy.py:count --epsilon 1 --pairs missing.json", "a file that can be read"),
        ("noisy.py:count --epsilon 1 --pairs same.json", "two different datasets"),
        ("check missing.json", "a file that can be read"),
        ("check same.json", "unchanged certificate"),
    ],
)
def test_bad_input_is_one_clear_error(line: str, said: str) -> None:
    status, text = _run(line)
    assert status == 2 and said in text


def test_scores_of_canaries() -> None:
    Path("s.csv").write_text(
        "score,inside\n" + "".join(f"{place},{int(place >= 50)}\n" for place in range(100))
    )
    assert _run("scores s.csv --epsilon 1")[0] == 1
    assert _run("scores s.csv --epsilon 9 --delta 1e-6")[0] == 0
    assert _run("scores missing.csv --epsilon 1")[0] == 2


def test_made_up_counts_are_found_by_new_draws() -> None:
    Path("pairs.json").write_text('[{"zero": [], "one": [1.0]}]')
    assert _run("noisy.py:bare --epsilon 1 --pairs pairs.json --certificate c.json")[0] == 1
    assert _run("check c.json --again noisy.py:bare --pairs pairs.json")[0] == 0
    status, text = _run("check c.json --again noisy.py:count --pairs pairs.json")
    assert status == 1 and "New draws do not refute the claim" in text
    assert _run("check c.json --again noisy.py:bare")[0] == 0


def test_a_killed_audit_goes_on_from_its_journal(tmp_path: Path) -> None:
    line = "noisy.py:slow --epsilon 1 --samples 900 --resume run.journal --certificate c.json"
    running = subprocess.Popen(
        [sys.executable, "-m", "dpcompose", "audit", *line.split()],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    journal = tmp_path / "run.journal"
    while running.poll() is None and not (
        journal.exists() and journal.read_bytes().count(b"\n") > 4
    ):
        time.sleep(0.02)
    running.kill()
    running.wait()
    before = journal.read_bytes()
    status, text = _run(line)
    assert status == 0 and "900, of either world" in text
    assert journal.read_bytes().startswith(before[: before.rindex(b"\n")])
    assert _run("check c.json")[0] == 0
    journal.write_bytes(b"{}\n" + before)
    status, text = _run(line)
    assert status == 2 and "journal of an audit, undamaged" in text


def test_a_mechanism_that_ends_its_process_does_not_end_the_audit() -> None:
    Path("pairs.json").write_text('[{"zero": [], "one": [1.0]}]')
    status, text = _run("noisy.py:ends --epsilon 1 --samples 48 --seconds 5 --pairs pairs.json")
    assert status == 2 and "process ended" in text and "nothing was audited" in text
    status, text = _run("noisy.py:ends_sometimes --epsilon 1 --samples 24 --pairs pairs.json")
    assert status == 0 and "ended its process" not in text and "NOT REFUTED" in text


@pytest.mark.parametrize("fresh", ["worker", "call", "process"])
@pytest.mark.parametrize("samples", [4, 30])
def test_a_mechanism_that_never_answers_is_bad_input(fresh: str, samples: int) -> None:
    Path("pairs.json").write_text('[{"zero": [], "one": [1.0]}]')
    line = f"noisy.py:typo --epsilon 1 --samples {samples} --fresh {fresh} --pairs pairs.json --certificate c.json"
    status, text = _run(line)
    assert status == 2 and "nothing was audited" in text and "ModuleNotFoundError" in text
    assert "NOT REFUTED" not in text and not Path("c.json").exists()


REGISTERED = """
import time
import registry
if registry.names:
    raise ValueError("private_pca is already registered")
registry.names.append("private_pca")
time.sleep(0.6)
"""


@pytest.mark.parametrize("fresh", ["worker", "call"])
def test_a_limit_leaves_no_library_half_imported(
    fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pairs.json").write_text('[{"zero": [], "one": [1.0]}]')
    Path("registry.py").write_text("names = []\n")
    Path("slow_library.py").write_text(REGISTERED)
    for name in ("registry", "slow_library"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    status, text = _run(
        f"noisy.py:slow_import --epsilon 1 --samples 60 --limit 0.1 --fresh {fresh} --pairs pairs.json"
    )
    assert status == 0 and "already registered" not in text and "NOT REFUTED" in text


@pytest.mark.parametrize(
    "end",
    [
        "import os; os._exit(0)",
        "import sys; sys.exit(0)",
        "import os; os.execv('/bin/true', ['true'])",
    ],
)
def test_a_module_that_ends_its_process_is_no_audit(end: str) -> None:
    Path("ending.py").write_text(end + "\ndef f(rows): return 0.0\n")
    line = [
        sys.executable,
        "-m",
        "dpcompose",
        "audit",
        "ending.py:f",
        "--epsilon",
        "1",
        "--samples",
        "24",
    ]
    ended = subprocess.run(line, check=False, capture_output=True, text=True)
    assert ended.returncode == 2 and "a module that can be imported" in ended.stderr


def test_the_gaussian_line_stands_beside_a_gaussian_claim_alone() -> None:
    rows = [f"{place},{int(place >= 60)}" for place in range(120)]
    Path("scores.csv").write_text("score,inside\n" + "\n".join(rows))
    status, text = _run("scores scores.csv --mu 0.5 --delta 1e-5")
    assert status == 1 and "if it is Gaussian, epsilon >= " in text
    status, text = _run("scores scores.csv --epsilon 4.4 --delta 1e-5")
    assert "if it is Gaussian" not in text


def test_a_certificate_carries_its_pairs_and_says_how_far_new_draws_came() -> None:
    status, text = _run("noisy.py:bare --epsilon 1 --certificate bare.json --samples 4000")
    assert status == 1
    status, text = _run("check bare.json --again noisy.py:bare")
    assert status == 0 and "New draws refute the claim too: " in text and "samples, wealth" in text
    assert "it refutes its claim for repeated calls at alpha" in text and "calls.\nRepeated" in text
    status, text = _run("check bare.json --again noisy.py:count --samples 300")
    assert status == 1 and "New draws do not refute the claim: 300 samples" in text
    told = json.loads(Path("bare.json").read_text())["header"]["pairs"]
    assert {
        "one": {"list": []},
        "zero": {"list": [{"float": "0x1.0000000000000p+0"}]},
        "distance": 1,
    } in told


def test_the_module_is_imported_in_other_processes_alone() -> None:
    text = "import os\nopen('pids', 'a').write(f'{os.getpid()} ')\n" + MODULE
    Path("telling.py").write_text(text)
    status, _ = _run("telling.py:count --epsilon 1 --samples 24")
    assert status == 0 and str(os.getpid()) not in Path("pids").read_text().split()
    assert "telling" not in sys.modules


def test_the_domain_records_and_adjacency_of_pairs() -> None:
    Path("clamped.py").write_text(
        "import math, random\n"
        "def public_n(rows):\n"
        "    assert all(0 <= row <= 1 for row in rows)\n"
        "    noise = random.expovariate(1) - random.expovariate(1)\n"
        "    return [len(rows), round((sum(rows) + noise) * 2**20) / 2**20]\n"
        "def words(rows):\n"
        "    return float(sum(map(len, rows)))\n"
    )
    claim = "clamped.py:public_n --epsilon 1 --samples 600 --domain 0,1"
    assert _run(claim)[0] == 1 and _run(claim + " --adjacency replace")[0] == 0
    Path("records.json").write_text('["a", "bcd"]')
    assert _run("clamped.py:words --epsilon 1 --records records.json")[0] == 1
    for wrong in (
        "--domain 1,0",
        "--domain 1",
        "--domain 0,inf",
        "--records none",
        "--adjacency x",
    ):
        assert _run(f"noisy.py:count --epsilon 1 {wrong}")[0] == 2


def test_a_record_at_the_edge_of_numbers_is_tried() -> None:
    Path("edges.py").write_text(
        "import random\n"
        "def clamped(rows):\n"
        "    total = sum(max(0.0, min(1.0, row)) if row == row else row for row in rows)\n"
        "    noise = random.expovariate(1) - random.expovariate(1)\n"
        "    return round((total + noise) * 2**20) / 2**20\n"
        "def typed(rows):\n"
        "    return clamped([float(row) if row == row else 0.0 for row in rows])\n"
    )
    assert _run("edges.py:clamped --epsilon 1 --samples 20000 --distance 1")[0] == 1
    # What takes numbers alone is tried on numbers alone.
    assert _run("edges.py:typed --epsilon 1 --samples 3000 --distance 1")[0] == 0
