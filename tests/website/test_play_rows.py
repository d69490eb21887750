"""docs/assets/play.js: the rows that its pages show, run by Node with as much of a browser as the script uses."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dpcompose import book
from dpcompose.book.theorems import SLACK

NODE = shutil.which("node")
REQUIRED = "node" in os.environ.get("DPCOMPOSE_REQUIRE", "")
RUN = Path(__file__).parent / "play_rows.js"
pytestmark = pytest.mark.skipif(NODE is None and not REQUIRED, reason="Node is not installed")


def rows(page: str, **typed: str) -> dict[str, list[str]]:
    """The rows of a page's table by their first cell."""
    assert NODE is not None
    command = [NODE, str(RUN), page, *(f"{name}={value}" for name, value in typed.items())]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return {name: cells for name, *cells in json.loads(done.stdout)}


@pytest.mark.parametrize("odds", ["690", "768", "768.5", "775.3", "800.5", "801", "859.9", "860"])
def test_both_ends_of_example_3_7_lie_on_their_side_of_the_truth(odds: str) -> None:
    shown, truth = rows("3.7", odds=odds), book.example_3_7(1 / float(odds))
    lower, where = shown["the same, of randomized response"]
    assert float(lower.removeprefix("≥ ")) <= truth.loss_above_1_response / SLACK
    assert where == f"certified at 1/{math.ceil(float(odds))}"
    upper, where = shown["P[loss > 1], in units of e^\N{MINUS SIGN}32, everyone"]
    assert float(upper.removeprefix("≤ ")) >= truth.loss_above_1 / SLACK
    assert where == f"certified at 1/{math.floor(float(odds))}"


@pytest.mark.parametrize(
    ("k", "epsilon", "delta", "word"),
    [
        ("100", "0.9", "1e-6", "neither is more"),
        ("100", "0.9", "0.9", "the second is more"),
        ("1", "19.4", "1e-6", "the second is more"),
    ],
)
def test_the_second_term_of_corollary_3_21_is_compared_with_half(
    k: str, epsilon: str, delta: str, word: str
) -> None:
    shown = rows("3.21", k=k, epsilon=epsilon, delta=delta)
    second, half = (
        float(shown["second term of 3.20"][0]),
        float(shown[f"half of epsilon\N{PRIME}: {word}"][0]),
    )
    assert (second <= half) == (word == "neither is more")
    assert shown["Corollary 3.21, each"][0].startswith("refused") == (second > half)
