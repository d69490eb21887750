"""A case for every system (a composition, a delta, and the question), and its answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """`times` fresh uses of one mechanism.

    Args:
        kind: "gaussian", "laplace", "black-box" or "randomized-response".
        parameter: sigma, the scale, or epsilon; sensitivity 1.
        times: How often it is used, each time on a fresh sample.
        rate: Of Poisson sampling; 1 for all records.
    """

    kind: str
    parameter: float
    times: int = 1
    rate: float = 1.0


@dataclass(frozen=True)
class Case:
    """One question: epsilon at `delta`; or, with a target, the least sigma of the only part that meets it.

    Args:
        name: As the tables show it.
        group: The line of the targets that it belongs to.
        parts: What is composed; add-remove adjacency.
        delta: In (0, 1).
        target: The epsilon to calibrate sigma to, or None.
        golden: The answer from arbitrary precision, where one is on record in tests/data.
        quick: Whether the quick run asks it.
    """

    name: str
    group: str
    parts: tuple[Part, ...]
    delta: float
    target: float | None = None
    golden: float | None = None
    quick: bool = False

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it."""
        return asdict(self)

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Case:
        """The case that `to_json` wrote."""
        return Case(**{**record, "parts": tuple(Part(**part) for part in record["parts"])})


@dataclass(frozen=True)
class Answer:
    """A system's claim.

    Args:
        upper: The value it offers as safe.
        lower: Its certified lower end, where it has one.
        method: How, in its own words.
    """

    upper: float
    lower: float = -math.inf
    method: str = ""


class NotOfferedError(Exception):
    """The system has no way to answer this kind of case."""
