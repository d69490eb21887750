"""`dpcompose account --risk`: the table, the document and the picture say the same numbers as the library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpcompose import BlackBox, Gaussian
from dpcompose.plan import Plan, risk_of
from dpcompose.report.account import risk_document, risk_page
from tests.cli.runner import invoke

PLAN = """delta = 1e-6
[[mechanism]]
kind = "gaussian"
sigma = 4.0
times = 10
[[mechanism]]
kind = "black-box"
epsilon = 0.1
delta = 1e-8
"""
CURVELESS = 'delta = 1e-6\n[[mechanism]]\nkind = "concentrated"\nrho = 0.1\n'


def written(path: Path, text: str = PLAN) -> Path:
    path.write_text(text)
    return path


def test_it_is_what_the_library_says(tmp_path: Path) -> None:
    found = risk_of(Plan.read(written(tmp_path / "plan.toml")))
    expected = (Gaussian(4.0) * 10 + BlackBox(0.1, delta=1e-8)).risk(
        prior=0.5, false_positive_rate=1e-3
    )
    assert found.risk.true_positive_rate.upper == pytest.approx(
        expected.true_positive_rate.upper, rel=1e-6
    )
    assert found.risk.bayes_error.lower == pytest.approx(expected.bayes_error.lower, rel=1e-6)
    power, rate = found.power(1e-3), found.risk.true_positive_rate
    assert max(power.lower, rate.lower) <= min(power.upper, rate.upper)
    assert all(power.upper >= rate for rate, power in zip(found.rates, found.powers, strict=True))


def test_every_number_is_rounded_against_the_victim(tmp_path: Path) -> None:
    found = risk_of(Plan.read(written(tmp_path / "plan.toml")))
    rows = {row[0]: row[1] for row in risk_page(found).tables[0].rows}
    for name, shown in rows.items():
        sign, number = shown.split()
        if name.startswith("Bayes"):
            assert sign == ">=" and float(number) <= found.risk.bayes_error.lower
        else:
            assert sign == "<="
    assert (
        float(rows["advantage: the largest difference of the two rates"].split()[1])
        >= found.risk.advantage.upper
    )
    assert len(risk_document(found)["curve"]) == len(found.rates)


def test_the_command(tmp_path: Path) -> None:
    plan = str(written(tmp_path / "plan.toml"))
    shown = invoke(["account", plan, "--risk"])
    assert shown.exit_code == 0
    assert "What an attacker gains" in shown.stdout and "advantage" in shown.stdout
    document = json.loads(invoke(["account", plan, "--risk", "--json"]).stdout)
    assert (
        0.001
        < document["risk"]["true_positive_rate"]["lower"]
        <= document["risk"]["true_positive_rate"]["upper"]
    )
    assert "risk" not in json.loads(invoke(["account", plan, "--json"]).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("text", [PLAN, CURVELESS], ids=["losses", "concentrated"])
def test_the_picture(tmp_path: Path, text: str) -> None:
    plan, page, picture = (
        written(tmp_path / "plan.toml", text),
        tmp_path / "page.html",
        tmp_path / "picture.png",
    )
    words = ["account", str(plan), "--risk", "--html", str(page), "--plot", str(picture)]
    result = invoke(words)
    assert result.exit_code == 0, result.output
    assert page.read_text().count("<svg") == 3 + (
        text is PLAN
    )  # several steps have a picture of their own
    assert "guessing blindly" in page.read_text()
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
