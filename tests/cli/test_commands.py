"""The commands as somebody types them: what they print, how they end, and that no mistake ends in a traceback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.cli.runner import Ended, invoke

PLAN = """delta = 1e-6
[[mechanism]]
kind = "gaussian"
sigma = 4.0
times = 10
name = "counts"
[[mechanism]]
kind = "black-box"
epsilon = 0.1
delta = 1e-8
"""


def run(*words: str) -> Ended:
    return invoke(list(words))


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def test_account(plan: Path) -> None:
    result = run("account", str(plan))
    assert result.exit_code == 0, result.output
    for word in ("certified", "counts", "[ZhuDongWang2022, Theorem 10]", "epsilon"):
        assert word in result.stdout


def test_json_is_one_document(plan: Path) -> None:
    result = run("account", str(plan), "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert 0 < document["total"]["lower"] <= document["total"]["upper"]
    infinite = json.loads(run("account", str(plan), "--json", "--delta", "1e-12").stdout)
    assert infinite["total"]["upper"] == "inf"


def test_explain_names_the_budget(plan: Path) -> None:
    assert "rounding" in run("account", str(plan), "--explain").stdout


def test_budget(plan: Path) -> None:
    assert run("account", str(plan), "--delta", "1e-6", "--epsilon", "100").exit_code == 0
    assert run("account", str(plan), "--delta", "1e-6", "--epsilon", "0.01").exit_code == 1


@pytest.mark.slow
def test_page_and_picture(plan: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "picture.png"
    result = run("account", str(plan), "--html", str(page), "--plot", str(picture))
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert "<svg" in text and "counts" in text
    assert not any(word in text for word in ('src="http', 'href="http', "@import", "<script src"))
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_theorem() -> None:
    words = [
        "3.20",
        "--epsilon",
        "0.0012484394506866417",
        "--times",
        "10000",
        "--slack",
        "1.2664165549094176e-14",
    ]
    text = " ".join(run("theorem", *words).stdout.split())
    assert "1.01434730431488" in text
    assert "1/801 exceeds 1 under this theorem" in text and "the optimum certifies it" in text
    assert json.loads(run("theorem", *words, "--json").stdout)["value"]["epsilon"] == pytest.approx(
        1.01434730431488
    )
    assert run("theorem").exit_code == 0
    for wrong in (
        ["9.9"],
        ["3.20"],
        ["3.20", "--epsilon", "x"],
        ["3.20", "--eta", "1"],
        ["3.20", "--epsilon"],
    ):
        assert run("theorem", *wrong).exit_code == 2
    assert "option = '--eta': expected one of 3.20" in run("theorem", "3.20", "--eta", "1").stderr
    assert (
        "option = '--times': expected a value after it" in run("theorem", "3.20", "--times").stderr
    )


PAIR = ["--first", "2/3,1/3", "--second", "1/3,2/3"]


@pytest.mark.parametrize(
    ("name", "number", "rest"),
    [
        *((name, "3.20", ["--epsilon", "0.1", "--times", "9", "--slack", "1e-6"]) for name in (
            "定理 3.20", "定理3.20", " Theorem  3.20 ", "theorem3.20", "\uff13\uff0e\uff12\uff10", "3.20",
        )),
        ("推论 3.15", "3.15", ["--epsilon", "0.1,0.2"]),
        ("引理3.18", "3.18", ["--epsilon", "1"]),
        ("Lemma 3.17", "3.17", [*PAIR, "--epsilon", "0.1"]),
        ("例 3.7", "example 3.7", ["--epsilon", "1/801"]),
        ("Example 3.7", "example 3.7", []),
        ("定义3.5", "definition 3.5", PAIR),
        ("3.5", "definition 3.5", PAIR),
        ("定义 3.6", "definition 3.6", [*PAIR, "--delta", "0"]),
        ("2.4", "definition 2.4", [*PAIR, "--epsilon", "0"]),
        ("注 3.1", "remark 3.1", [*PAIR, "--delta", "0.1"]),
        ("备注3.1", "remark 3.1", [*PAIR, "--delta", "0.1"]),
        ("2.3.1节", "2.3.1", ["--epsilon", "1", "--without", "2", "--utility-range", "inf"]),
        ("定理 3.22", "3.22", ["--epsilon", "0.5", "--delta", "1e-5"]),
        ("2.2", "2.2", ["--epsilon", "1", "--size", "2"]),
    ],
)  # fmt: skip
def test_a_statement_is_known_by_the_name_that_the_book_gives_it(
    name: str, number: str, rest: list[str]
) -> None:
    for words in ([name], name.split()):
        result = run("theorem", *words, *rest, "--json")
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["number"] == number


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("3.7", 2, "NUMBER = '3.7': expected one of example 3.7, definition 3.7"),
        ("定理 3.7", 2, "expected one of example 3.7, definition 3.7"),
        ("2.1", 2, "expected one of definition 2.1, proposition 2.1"),
        ("定义 3.20", 2, "expected one of 3.20"),
        ("definition", 2, "expected one of definition 2.4"),
        ("定义 3.7", 3, "definition 3.7: it states no number that could be computed. docs/book.md"),
        ("命题2.1", 3, "proposition 2.1: it states no number"),
        ("2.3", 3, "definition 2.3: it states no number"),
    ],
)
def test_what_has_no_number_is_named_and_two_of_one_number_are_asked_about(
    name: str, code: int, message: str
) -> None:
    result = run("theorem", name)
    assert result.exit_code == code and message in " ".join(result.stderr.split())


def test_every_numbered_statement_of_the_questions_is_evaluated_or_located() -> None:
    page = (Path(__file__).parents[2] / "docs" / "questions.md").read_text("utf-8")
    kinds = "Theorem|Lemma|Corollary|Definition|Example|Remark|Proposition|Section"
    names = set(re.findall(rf"\b(?:{kinds}) (?:2\.3\.1|[23]\.\d+)\b", page)) - {
        "Section 2.3",
        "Section 3.5",
    }
    assert len(names) >= 17
    for name in names:
        message = run("theorem", name).stderr
        assert message == "" or " requires " in message or "it states no number" in message, (
            f"{name}: {message}"
        )


@pytest.mark.parametrize("wrong", ["1/0", "1/", "1/x", "nan/1", "1e400/1"])
def test_a_fraction_that_is_none_is_refused(wrong: str) -> None:
    result = run("theorem", "3.18", "--epsilon", wrong)
    assert result.exit_code == 2 and f"--epsilon = '{wrong}': expected a number" in result.stderr


def test_calibrate(plan: Path) -> None:
    result = run(
        "calibrate",
        str(plan),
        "--vary",
        "mechanism.counts.sigma",
        "--epsilon",
        "2",
        "--delta",
        "1e-6",
        "--json",
    )
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["epsilon"]["upper"] <= 2 < document["beyond"]["upper"]
    assert (
        run(
            "calibrate",
            str(plan),
            "--vary",
            "mechanism.none.sigma",
            "--epsilon",
            "2",
            "--delta",
            "1e-6",
        ).exit_code
        == 2
    )
    assert (
        run(
            "calibrate",
            str(plan),
            "--vary",
            "mechanism.counts.sigma",
            "--epsilon",
            "0.01",
            "--delta",
            "1e-6",
        ).exit_code
        == 1
    )


def test_no_common_adjacency(plan: Path) -> None:
    plan.write_text(
        'adjacency = "replace"\n' + PLAN.replace("times = 10", "rate = 0.1") + "rate = 0.1\n"
    )
    result = run("account", str(plan))
    assert result.exit_code == 3
    assert "black-box" in result.stderr or "BlackBox" in result.stderr


@pytest.mark.slow
def test_mangled_plans_never_trace_back(plan: Path) -> None:
    rng = Random(7)
    for _ in range(120):
        text = bytearray(PLAN.encode())
        for _ in range(rng.randint(1, 4)):
            text[rng.randrange(len(text))] = rng.randrange(256)
        plan.write_bytes(bytes(text))
        result = run("account", str(plan))
        assert result.exit_code in (0, 1, 2, 3), (bytes(text), result.output)
        assert "Traceback" not in result.output and not isinstance(result.exception, Exception)


@pytest.mark.slow
def test_what_is_imported() -> None:
    lazy = ["matplotlib", "rich", "typer", "flint", "sqlite3"]
    code = f"import dpcompose, sys; print([m for m in {lazy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_missing_extra_says_what_to_type(plan: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from dpcompose.cli import main\n"
        f"sys.argv = ['dpcompose', 'account', {str(plan)!r}, '--plot', {str(tmp_path / 'x.png')!r}]\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "pip install '.[plot]' in a clone" in done.stderr and "'dpcompose[plot]'" in done.stderr
    assert "Traceback" not in done.stderr
