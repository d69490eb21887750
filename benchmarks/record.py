"""A run as JSON, and back, kept apart from how it is shown. Strict JSON: what is not finite is a string."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.case import Case
from benchmarks.measure import Measurement
from benchmarks.table import Run

ENDS = ("upper", "lower")


def write(run: Run, path: Path) -> None:
    """The run, one line a case."""
    head = {"machine": run.machine, "versions": dict(run.versions)}
    lines = [
        json.dumps({"case": case.to_json(), "measured": dict(_strict(row))}, allow_nan=False)
        for case, row in run.results
    ]
    text = (
        json.dumps(head, allow_nan=False)[:-1] + ', "results": [\n' + ",\n".join(lines) + "\n]}\n"
    )
    path.write_text(text)


def read(path: Path) -> Run:
    """The run that `write` wrote."""
    record = json.loads(path.read_text())
    results = [
        (
            Case.from_json(entry["case"]),
            {name: _measured(one) for name, one in entry["measured"].items()},
        )
        for entry in record["results"]
    ]
    return Run(results, record["versions"], record["machine"])


def _strict(row: Mapping[str, Measurement]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, one in row.items():
        fields = asdict(one)
        yield (
            name,
            fields
            | {
                end: fields[end] if math.isfinite(fields[end]) else str(fields[end]) for end in ENDS
            },
        )


def _measured(fields: dict[str, Any]) -> Measurement:
    ends = {name: float(fields[name]) for name in ENDS}
    return Measurement(**{**fields, **ends, "seconds": tuple(fields["seconds"])})
