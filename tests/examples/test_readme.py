"""The page of the examples: every plan is on it, every link leads somewhere, every certified interval contains ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpcompose.plan import Plan

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| \[.*?\]\((\S+\.toml)\) \| .* \| (\S+) \.\. (\S+) \| (\S+) \|$", PAGE, re.MULTILINE
)


def test_every_plan_is_on_the_page() -> None:
    plans = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*.toml")} - {
        "bob/deployments.toml"
    }
    assert {path for path, *_ in ROWS} == plans


def test_links_lead_somewhere() -> None:
    assert [
        link for link in re.findall(r"\]\((\S+?)\)", PAGE) if not (EXAMPLES / link).exists()
    ] == []


@pytest.mark.parametrize(("path", "lower", "upper", "delta"), ROWS, ids=[path for path, *_ in ROWS])
def test_the_interval_shown_contains_the_certified_one(
    path: str, lower: str, upper: str, delta: str
) -> None:
    plan = Plan.read(EXAMPLES / path)
    assert plan.question is not None
    assert plan.question.fixed == "delta"
    assert plan.question.value == float(delta)
    bound = plan.composition().epsilon(delta=plan.question.value, adjacency=plan.adjacency)
    assert float(lower) <= bound.lower <= bound.upper <= float(upper)
    # Nothing wider than six digits is shown, but for statements known by their Renyi curves.
    assert float(upper) - float(lower) <= 2e-5 * float(upper) or path in (
        "bob/plan.toml",
        "training/gboard_es_ES.toml",
    )
