"""What follows from the declarations of parameters: written by `python -m tests.mechanism.declared`, and compared by
`test_declarations.py` with `tests/data/declarations.json`, which was written before parameters were declared."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpcompose import (
    Adjacency,
    FixedSizeSample,
    Gaussian,
    Laplace,
    NoisyMax,
    ShuffledEpochs,
    Staircase,
    UnaryEncoding,
)
from dpcompose.composition import ComposablePart
from dpcompose.errors import DPComposeError
from dpcompose.interop.dp_accounting import from_dp_event, to_named_tuple
from dpcompose.interop.event_document import event_to_json
from dpcompose.interop.plan_writing import plan_of
from dpcompose.mechanism import arguments, kinds, serialize
from tests.laws.members import MEMBERS

FIXTURE = Path(__file__).parents[1] / "data" / "declarations.json"
MORE = (
    Gaussian(0.1, sensitivity=0.3, replace_sensitivity=0.5),
    Laplace(0.7, sensitivity=1e-3),
    NoisyMax(0.3, noise="gumbel", sensitivity=0.1, replace_sensitivity=0.15, monotone=True),
    Staircase(0.3, holds_under=Adjacency.REPLACE),
    UnaryEncoding(0.7, flip=0.1),
    FixedSizeSample(0.7, records=100, batch=10),
    ShuffledEpochs(0.7, steps=10),
)
BAD: tuple[Any, ...] = (
    None, "x", b"x", True, math.nan, math.inf, -math.inf, -1, 0, 0.5, 1.5, 2, 1e-320, 1e-13, 1e7, 1e12, 1e301, 10**13, 10**400,
    (), [], [1, "x"], (0, 0), (5000,), [[0.0]], {}, Adjacency.REPLACE, Gaussian(1.0),
)  # fmt: skip


def parts() -> Iterator[ComposablePart]:
    """Every mechanism of the laws' table in all its variants, and some with more arguments."""
    for member in MEMBERS:
        for size in (0.1, 0.37):
            for variant in range(6):
                one = member.build(size, variant)
                if isinstance(one, ComposablePart):
                    yield one
    yield from MORE


def attempt(run: Any) -> Any:
    """What a call returns, or the error that it raises, as text."""
    try:
        return run()
    except DPComposeError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001: bugs are compared too
        return f"{type(error).__name__}"


def documents(one: ComposablePart) -> dict[str, Any]:
    """All that is written about a mechanism, and whether it is read back."""
    found: dict[str, Any] = {"serialized": serialize(one), "costlier": repr(one.costlier())}
    found["arguments"] = attempt(lambda: repr(arguments(one)))
    for adjacency in Adjacency:
        name = adjacency.value
        found[f"typed {name}"] = attempt(lambda: repr(one.typed(adjacency=adjacency)))
        found[f"plan {name}"] = attempt(lambda: plan_of(one, adjacency=adjacency).toml())
        event = attempt(lambda: to_named_tuple(one, adjacency=adjacency))
        found[f"event {name}"] = event if isinstance(event, str) else event_to_json(event)
        if not isinstance(event, str):
            found[f"read {name}"] = attempt(lambda: repr(from_dp_event(event, adjacency=adjacency)))
    return found


def errors(kind: str) -> dict[str, str]:
    """What the constructor says of bad values of each argument."""
    build = kinds()[kind]
    good = next(one for one in parts() if type(one) is build)
    given = arguments(good)[1]
    return {
        f"{name}={bad!r:.40}": attempt(lambda: f"{build(**{**given, name: bad})!r:.200}")
        for name in inspect.signature(build).parameters
        for bad in BAD
    }


def everything() -> dict[str, Any]:
    return {
        "documents": {repr(one): documents(one) for one in parts()},
        "errors": {kind: errors(kind) for kind in sorted(kinds()) if any(type(o).__name__ == kind for o in parts())},
    }


if __name__ == "__main__":
    FIXTURE.write_text(json.dumps(everything(), indent=0, sort_keys=True) + "\n")
