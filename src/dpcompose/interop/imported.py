"""Documents of other libraries, read from JSON files: how each kind is recognized, and the plan
that it becomes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpcompose.composition import Composable, ComposablePart, Composition, Sampled, compose
from dpcompose.errors import DomainError, PlanError, UnsupportedError
from dpcompose.files import each_once, load_text
from dpcompose.guarantee import RenyiLine
from dpcompose.interop.dp_accounting import from_dp_event
from dpcompose.interop.event_tree import event_from_document
from dpcompose.interop.opacus import from_state_dict
from dpcompose.law import Atoms, Pair
from dpcompose.mechanisms import DominatingPair, PrivateSelection, RenyiCurve, arguments
from dpcompose.plan import COMPOSITION, MECHANISMS, SELECTION, Plan, PlanEntry, PlanQuestion, dashed
from dpcompose.values import Adjacency

Keys = tuple[tuple[str, Any], ...]


def plan_of(
    composition: Composable, *, adjacency: Adjacency, question: PlanQuestion | None = None
) -> Plan:
    """The plan that describes a composition under an adjacency.

    >>> from dpcompose import Adjacency, Gaussian
    >>> print(plan_of(Gaussian(1.5).sampled(0.25) * 10, adjacency=Adjacency.ADD_REMOVE).toml())
    adjacency = "add-remove"
    <BLANKLINE>
    [[mechanism]]
    name = "gaussian"
    kind = "gaussian"
    sigma = 1.5
    rate = 0.25
    times = 10
    <BLANKLINE>

    Raises:
        DomainError: If the composition is empty.
        UnsupportedError: If a mechanism is defined by a function, which a plan cannot contain.
    """
    parts = compose(composition).parts
    if not parts:
        remedy = "What releases nothing needs no plan"
        raise DomainError("composition", "nothing", "at least one mechanism", remedy)
    tables = [dict(_table(part, times)) for part, times in parts]
    uses = Counter(table["kind"] for table in tables)
    entries: list[PlanEntry] = []
    for position, table in enumerate(tables, start=1):
        kind, times = table.pop("kind"), table.pop("times", 1)
        name = kind if uses[kind] == 1 else f"{kind}-{position}"
        rate = None if "rate" in MECHANISMS[kind].parameters else table.pop("rate", None)
        entries.append(PlanEntry(name, kind, tuple(table.items()), rate, times))
    return Plan(tuple(entries), question, adjacency)


def _table(part: ComposablePart, times: int) -> Keys:
    """The plan entry of a mechanism that runs `times` times, as key-value pairs."""
    return (*_stated(part), ("times", times)) if times > 1 else _stated(part)


def _whole(composition: Composition) -> Keys:
    """The plan entry of a composition: that of its only mechanism, or one with `parts`."""
    if composition.count == 1:
        return _table(composition.parts[0][0], 1)
    parts = tuple(_table(part, times) for part, times in composition.parts)
    return (("kind", COMPOSITION), ("parts", parts))


def _stated(part: ComposablePart) -> Keys:
    match part:
        case Sampled(base=base, rate=rate):
            return (*_whole(base), ("rate", rate))
        case PrivateSelection(base=base, tries=tries, shape=shape):
            inner = ("base", _whole(compose(base)))
            return (("kind", SELECTION), inner, ("tries", tries), ("shape", shape))
        case RenyiCurve() if isinstance(line := part.stated.curve, RenyiLine):
            numbers = (("rho", line.rho), ("xi", line.xi))
            return (("kind", "renyi-line"), *numbers, ("holds_under", part.holds_under))
        case DominatingPair(
            pair=Pair(remove=Atoms(upper=upper, lower=lower)), holds_under=adjacency
        ) if part == DominatingPair.atoms(upper=upper, lower=lower, adjacency=adjacency):
            masses = (("upper", upper), ("lower", lower))
            return (("kind", "dominating-pair"), *masses, ("holds_under", part.holds_under))
        case _:
            try:
                name, given = arguments(part)
            except DomainError:
                reason = "it is given by a function, and a plan holds numbers"
                raise UnsupportedError(
                    repr(part), reason, "Give its values at some points"
                ) from None
            return (("kind", dashed(name)), *given.items())


LARGEST_FILE = 10_000_000
"""The largest size of a document, in bytes."""


def import_plan(
    path: str | Path, *, adjacency: Adjacency, question: PlanQuestion | None = None
) -> Plan:
    """The plan that a document of another library describes.

    Args:
        path: A JSON file.
        adjacency: The neighboring relation, if the document does not state one.
        question: The question of the plan: a delta or an epsilon.

    Raises:
        PlanError: If the file cannot be read, is not JSON of a known kind, or has a value outside
            its domain.
        UnsupportedError: If something in it has no certified mechanism under the adjacency, or no
            place in a plan.
    """
    try:
        described = _composition(path, _loaded(path), adjacency)
        return plan_of(described, adjacency=adjacency, question=question)
    except DomainError as error:
        expected = f"{error.domain} {error.remedy}".rstrip()
        raise PlanError(str(path), error.name, "", error.value, expected) from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{path}: {error.what}", error.reason, error.remedy) from None
    except RecursionError:
        raise _refused(path, "a document that is not nested so deeply") from None


def _composition(
    path: str | Path, document: Mapping[str, Any], adjacency: Adjacency
) -> Composition:
    """The composition that a document describes; each known kind has keys of its own."""
    if "class_name" in document:
        return from_dp_event(event_from_document(document), adjacency=adjacency)
    if {"history", "mechanism"} <= document.keys():
        return from_state_dict(document, adjacency=adjacency)
    state = "an Opacus state dictionary (with history and mechanism)"
    raise _refused(path, f"one of a DpEvent (with class_name), {state}")


def _refused(path: str | Path, expected: str) -> PlanError:
    return PlanError(str(path), "", "", None, expected)


def _loaded(path: str | Path) -> Mapping[str, Any]:
    text = load_text(path, most=LARGEST_FILE, what="a document")
    try:
        document = json.loads(text, object_pairs_hook=each_once)
    except ValueError as error:
        raise _refused(path, f"JSON: {error}") from None
    if not isinstance(document, dict):
        raise _refused(path, "a JSON object")
    return document  # pyright: ignore[reportUnknownVariableType]
