"""Writes one plan for each published DP-SGD run in ../data/training_runs.json, and one for a DP-FTRL run known by rho.

    python -m examples.training.make_plans

A run is a Gaussian of the published noise multiplier on a Poisson sample, once for every step. The sampling rate is the
batch size over the size of the data set, rounded up to a double; the noise multiplier is the double that the decimal
reads as, which is what the training code used.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE.parent / "data" / "training_runs.json"


def runs() -> list[dict[str, Any]]:
    """The runs whose schedule is stated in full; numbers as they are written."""
    found = json.loads(DATA.read_text(encoding="utf-8"), parse_float=Decimal)["runs"]
    return [run for run in found if _sampled(run) or run["kind"] == "dp_ftrl_zcdp"]


def _sampled(run: dict[str, Any]) -> bool:
    return run["kind"] == "dp_sgd_poisson" and "steps" in run


def double_above(value: Fraction) -> float:
    """The smallest double that is at least `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def rate(run: dict[str, Any]) -> float:
    """The share of the data in each step, rounded up."""
    if run["batch_size"] is None:
        return double_above(Fraction(run["sampling_rate"]))
    return double_above(Fraction(run["batch_size"]) / Fraction(run["dataset_size"]))


def plan(run: dict[str, Any]) -> str:
    """The plan file of one run."""
    published, delta = run["published"], float(run["delta"])
    lines = [
        f"# {run['name']}.",
        f"# Published: epsilon {published['epsilon']} at delta {delta!r} ({published['accountant']}).",
        f"# Source: {run['source']}.",
        f"# Confidence: {run['confidence']}.",
        *([f"# Note: {run['note']}."] if run.get("note") else []),
        f"delta = {delta!r}",
        'adjacency = "add-remove"',
        "",
        "[[mechanism]]",
        'name = "training"',
    ]
    if _sampled(run):
        lines += ['kind = "gaussian"', f"sigma = {float(run['noise_multiplier'])!r}"]
        lines += [f"rate = {rate(run)!r}", f"times = {run['steps']}"]
    else:
        lines += ['kind = "concentrated"', f"rho = {double_above(Fraction(run['rho']))!r}"]
    return "\n".join(lines) + "\n"


def plans() -> dict[Path, str]:
    """Every plan of this folder and its text."""
    return {HERE / f"{run['id']}.toml": plan(run) for run in runs()}


if __name__ == "__main__":
    for path, text in plans().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")
