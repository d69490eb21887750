"""Everything that follows from the declared parameters of mechanisms, as JSON.

`python -m tests.mechanisms.declared` writes it; `test_declarations.py` compares it with
`tests/data/declarations.json`.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dpcompose import Adjacency, Gaussian, Laplace
from dpcompose.composition import ComposablePart
from dpcompose.errors import DPComposeError
from dpcompose.interop.dp_accounting import from_dp_event, to_named_tuple
from dpcompose.interop.event_tree import event_to_json
from dpcompose.interop.imported import plan_of
from dpcompose.mechanisms import (
    FixedSizeSample,
    NoisyMax,
    ShuffledEpochs,
    Staircase,
    UnaryEncoding,
    arguments,
    kinds,
    serialize,
)
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
    None, "x", True, math.nan, math.inf, -1, 0, 0.5, 1.5, 2, 1e-13, 1e7, 1e301, 10**13, [1, "x"], (0, 0), (5000,),
    Adjacency.REPLACE,
)  # fmt: skip


def parts() -> Iterator[ComposablePart]:
    """Every mechanism of the laws' table in its variants, and some with more arguments."""
    for member in MEMBERS:
        for variant in range(3):
            one = member.build(0.37, variant)
            if isinstance(one, ComposablePart):
                yield one
    yield from MORE


def attempt(run: Callable[[], Any]) -> str:
    """What a call returns, or the error that it raises, as text."""
    try:
        return str(run())
    except DPComposeError as error:
        return f"{type(error).__name__}: {error}"


def documents(one: ComposablePart) -> dict[str, Any]:
    """All that is written about a mechanism, and what is read back."""
    texts: dict[str, Any] = {"serialized": serialize(one), "costlier": repr(one.costlier())}
    texts["arguments"] = attempt(lambda: repr(arguments(one)))
    for adjacency in Adjacency:
        name = adjacency.value
        texts[f"typed {name}"] = attempt(partial(one.typed, adjacency=adjacency))
        texts[f"plan {name}"] = attempt(partial(_plan, one, adjacency))
        texts[f"event {name}"] = attempt(partial(_event, one, adjacency))
        if texts[f"event {name}"].startswith("{"):
            texts[f"read {name}"] = attempt(partial(_read, one, adjacency))
    return texts


def _plan(one: ComposablePart, adjacency: Adjacency) -> str:
    return plan_of(one, adjacency=adjacency).toml()


def _event(one: ComposablePart, adjacency: Adjacency) -> str:
    return event_to_json(to_named_tuple(one, adjacency=adjacency))


def _read(one: ComposablePart, adjacency: Adjacency) -> str:
    return repr(from_dp_event(to_named_tuple(one, adjacency=adjacency), adjacency=adjacency))


def errors(one: ComposablePart) -> dict[str, str]:
    """What the constructor says of bad values of each argument."""
    values = arguments(one)[1]
    return {
        f"{name}={bad!r:.40}": attempt(partial(_built, type(one), {**values, name: bad}))
        for name in inspect.signature(type(one)).parameters
        for bad in BAD
    }


def _built(kind: type[Any], values: dict[str, Any]) -> str:
    return f"{kind(**values)!r:.200}"


def everything() -> dict[str, Any]:
    """The documents of all mechanisms, and the errors of one of each kind."""
    one_of_each: dict[str, ComposablePart] = {}
    for one in parts():
        one_of_each.setdefault(type(one).__name__, one)
    return {
        "documents": {repr(one): documents(one) for one in parts()},
        "errors": {kind: errors(one) for kind, one in one_of_each.items() if kind in kinds()},
    }


if __name__ == "__main__":
    FIXTURE.write_text(json.dumps(everything(), indent=0, sort_keys=True) + "\n")
